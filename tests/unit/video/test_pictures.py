"""Pictures from outside: a few formats, nothing else that Pillow could read."""

import io
import re
from pathlib import Path

import pytest
from PIL import Image, UnidentifiedImageError

import longtake
from longtake.video.pictures import open_picture


def a_file(kind: str) -> io.BytesIO:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(file, kind)
    file.seek(0)
    return file


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_common_formats_are_opened(kind: str) -> None:
    with open_picture(a_file(kind)) as picture:
        assert picture.size == (4, 3)


@pytest.mark.parametrize("kind", ["EPS", "GIF", "TIFF", "BMP"])
def test_other_formats_are_rejected(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UnidentifiedImageError):
        open_picture(a_file(kind))
    path = tmp_path / "00000"  # the bytes decide, not the name
    path.write_bytes(a_file(kind).getvalue())
    with pytest.raises(UnidentifiedImageError):
        open_picture(path)


def test_nothing_else_in_the_package_opens_pictures() -> None:
    root = Path(longtake.__file__).parent
    openers = []
    for path in root.rglob("*.py"):
        if re.search(r"Image\s*\.\s*open\b", path.read_text(encoding="utf-8")):
            openers.append(path.relative_to(root).as_posix())
    assert openers == ["video/pictures.py"]
