"""Pictures after seeks, against a decode from the first frame to the last, for every encoder.

The encoders are those of the FFmpeg in PyAV that need no hardware.
"""

import random
import re
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.codec import codecs_available
from films import ordinary_priority

from longtake.config import MediaSettings
from longtake.types import Pixels
from longtake.video.decode import FrameShape, to_pixels
from longtake.video.video import Video

HARDWARE = ("_amf", "_nvenc", "_qsv", "_v4l2m2m", "_vaapi", "_videotoolbox", "_mf")
CONTAINERS = ("mkv", "mov", "nut", "avi")
FRAMES = 24
OPTIONS = {
    "libx264": {"preset": "veryfast"},
    "libx265": {"preset": "ultrafast", "x265-params": "log-level=none"},
    "libsvtav1": {"preset": "10", "svtav1-params": "keyint=8"},
    "libvpx": {"deadline": "realtime", "cpu-used": "8"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"},
}


def encoders() -> dict[str, list[str]]:
    """The names of the encoders with their pixel formats."""
    found = {}
    for name in sorted(codecs_available):
        try:
            codec = av.Codec(name, "w")
        except (ValueError, av.error.FFmpegError):
            continue  # decodes only
        if codec.type == "video" and codec.video_formats and not name.endswith(HARDWARE):
            formats = [each.name for each in codec.video_formats]
            # FFmpeg converts nothing to palettes
            found[name] = [each for each in formats if each != "pal8"]
    return found


ENCODERS = encoders()
BETWEEN_KEYFRAMES = [
    *("libx264", "libx265", "libsvtav1", "libvpx", "libvpx-vp9", "ffv1", "flv", "h263p"),
    *("mpeg1video", "mpeg2video", "mpeg4", "msmpeg4", "wmv2", "zmbv", "qtrle"),
]
"""Those whose pictures depend on others, as far as films have them; the rest is a campaign."""


def pictures() -> list[Pixels]:
    """A coarse pattern that moves, with noise, so that no two pictures are alike."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 255, (18, 22, 3), np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    moved = (np.roll(coarse, (2 * number, 3 * number), (0, 1)) for number in range(FRAMES))
    return [each // 2 + rng.integers(0, 64, each.shape, np.uint8) for each in moved]


def written(folder: Path, encoder: str, pixel_format: str, **options: str) -> Path:
    """A film by this encoder, in the first container that takes it."""
    options = {**OPTIONS.get(encoder, {}), **options}
    for suffix in CONTAINERS:
        path = folder / f"{encoder}-{pixel_format}.{suffix}"
        try:
            with ordinary_priority(), av.open(str(path), "w") as file:
                stream = file.add_stream(encoder, rate=25, options=options)
                stream.width, stream.height, stream.pix_fmt = 176, 144, pixel_format
                stream.codec_context.gop_size = 7
                stream.codec_context.max_b_frames = 2 if "libx26" in encoder else 0
                for number, pixels in enumerate(pictures()):
                    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                    frame.pts, frame.time_base = number, Fraction(1, 25)
                    file.mux(stream.encode(frame))
                file.mux(stream.encode(None))
        except (av.error.FFmpegError, ValueError):
            continue
        return path
    raise ValueError("no container takes this, or not in this size")


def linear(path: Path) -> list[Pixels]:
    shape = FrameShape(aspect=Video(path).info.aspect)
    with av.open(str(path)) as file:
        file.streams.video[0].thread_type = "NONE"
        return [to_pixels(frame, shape) for frame in file.decode(video=0)]


def check_seeks(path: Path, seed: int = 0) -> None:
    """Ask for pictures in random order, one and several at once, of readers new and used."""
    expected = linear(path)
    rng = random.Random(seed)
    for workers in (1, 3):
        video = Video(path, limits=MediaSettings(workers=workers))
        assert len(video.table) == len(expected)
        for size in (1, 1, 1, 4):
            wanted = sorted(rng.sample(range(len(expected)), size))
            times = [float(video.table.times[number]) + 1e-3 for number in wanted]
            for number, frame in zip(wanted, video.at(times), strict=True):
                np.testing.assert_array_equal(frame.pixels, expected[number], str(number))


@pytest.mark.parametrize("encoder", BETWEEN_KEYFRAMES)
def test_a_seek_shows_what_a_linear_decode_shows(tmp_path, encoder):
    check_seeks(written(tmp_path, encoder, ENCODERS[encoder][0]))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("encoder", "pixel_format"), [(name, each) for name in ENCODERS for each in ENCODERS[name]]
)
def test_every_encoder_and_pixel_format(tmp_path, encoder, pixel_format):
    try:
        path = written(tmp_path, encoder, pixel_format)
        linear(path)
    except (ValueError, av.error.PatchWelcomeError) as error:
        pytest.skip(str(error))
    for seed in range(3):
        check_seeks(path, seed)


def test_a_palette_is_known_after_a_seek(tmp_path):
    check_seeks(written(tmp_path, "qtrle", "gray"))


def test_the_version_of_an_old_encoder_is_known_after_a_seek(tmp_path):
    """x264 before build 151 predicted otherwise in the High 4:4:4 profile, which lossless films
    have, and it names its build once, at the start.

    The film is by a later build that calls itself an earlier one, so its pictures are wrong, but
    the same from wherever decoding begins.
    """
    path = written(tmp_path, "libx264", "yuv420p", qp="0", preset="medium")
    true = linear(path)
    path.write_bytes(re.sub(rb"(?<=x264 - core )\d{3}", b"142", path.read_bytes(), count=1))
    old = linear(path)
    assert any(not np.array_equal(*pair) for pair in zip(true, old, strict=True))
    check_seeks(path)
