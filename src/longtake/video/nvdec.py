"""Decoding on an NVIDIA GPU: frames stay there until they are small.

A film at 720p gives 1.4 MB a frame, and of thirty frames a second one is wanted. So the decoder
keeps its frames in GPU memory; only a wanted one is scaled and converted to RGB there, by PyTorch,
and copied to the host. Frames are chosen by the same packet table as on a CPU, so their times are
the same.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from av.codec.hwaccel import HWAccel, hwdevices_available

from longtake.errors import ConfigError

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

    from longtake.config import MediaSettings
    from longtake.types import Pixels

SESSIONS = 8
"""Decoders that work on one film; more are no faster on an H200, which has seven engines
(``benchmarks/gpu.py``)."""

_BT709 = 1
_FULL_RANGE = 2


def on_gpu(limits: MediaSettings) -> bool:
    """Whether films are decoded on a GPU: as configured, or where one can be used."""
    if limits.device == "cpu":
        return False
    obstacle = _obstacle()
    if obstacle and limits.device == "cuda":
        raise ConfigError(f"media.device is cuda, but {obstacle}", key="media.device")
    return not obstacle


@cache
def _obstacle() -> str:
    """What keeps this machine from decoding on a GPU; an empty string if nothing does."""
    if "cuda" not in hwdevices_available():
        return "this build of PyAV has no CUDA"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver is installed (libcuda.so.1)"
    if find_spec("torch") is None:
        return "PyTorch is not installed (pip install 'longtake[gpu]')"
    import torch

    return "" if torch.cuda.is_available() else "PyTorch finds no GPU"


def hardware() -> HWAccel:
    """What a container is opened with; codecs that the chip does not know decode on the CPU."""
    import torch

    # PyTorch can only read frames of its own context, and FFmpeg refuses to share one that it did
    # not set up (primary_ctx); it uses the one that is current in this thread instead
    torch.zeros(1, device="cuda")
    return HWAccel(
        device_type="cuda",
        allow_software_fallback=True,
        options={"current_ctx": "1", "primary_ctx": "0"},
        is_hw_owned=True,
    )


def is_on_gpu(frame: VideoFrame) -> bool:
    """Whether a frame is in GPU memory."""
    return frame.format.name == "cuda"


def to_pixels(frame: VideoFrame, *, width: int, height: int) -> Pixels:
    """Scale a frame in GPU memory, convert it to RGB and copy it to the host."""
    import torch

    # the decoder writes on the default stream, which orders its work before ours
    with torch.inference_mode():
        # of interlaced frames, every other line: one field
        lines = 2 if frame.interlaced_frame else 1
        # without a copy; PyAV rejects the stream that torch.from_dlpack would pass
        read = torch.utils.dlpack.from_dlpack
        planes: list[Any] = [read(plane.__dlpack__(stream=None)) for plane in frame.planes]
        luma, chroma = (plane[::lines] for plane in planes)
        deep = luma.dtype == torch.uint16
        full = frame.color_range == _FULL_RANGE
        y = _resized(luma[None, None].float(), width, height)[0, 0]
        u, v = _resized(chroma.permute(2, 0, 1)[None].float(), width, height)[0]
        scale = 256.0 if deep else 1.0  # 10 bits are stored in the upper bits of 16
        rgb = _rgb(y / scale, u / scale, v / scale, bt709=frame.colorspace == _BT709, full=full)
        pixels: Pixels = rgb.round_().clamp_(0, 255).to(torch.uint8).cpu().numpy()
    return pixels


def _resized(values: Any, width: int, height: int) -> Any:
    """Planes at the target size; averaging as the CPU's path does, where they shrink."""
    from torch.nn import functional

    if values.shape[-1] >= width and values.shape[-2] >= height:
        return functional.interpolate(values, (height, width), mode="area")
    return functional.interpolate(values, (height, width), mode="bilinear", align_corners=False)


def _rgb(y: Any, u: Any, v: Any, *, bt709: bool, full: bool) -> Any:
    """YUV as RGB, height × width × 3; the constants are those of ITU-R BT.709 and BT.601."""
    import torch

    red, blue = (0.2126, 0.0722) if bt709 else (0.299, 0.114)
    green = 1 - red - blue
    if full:
        luma, pb, pr = y, (u - 128) / 255, (v - 128) / 255
    else:
        luma, pb, pr = (y - 16) * (255 / 219), (u - 128) / 224, (v - 128) / 224
    r = luma + 255 * 2 * (1 - red) * pr
    b = luma + 255 * 2 * (1 - blue) * pb
    g = (luma - red * r - blue * b) / green
    return torch.stack([r, g, b], -1)
