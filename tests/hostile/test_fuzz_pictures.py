"""Damaged headers of pictures: a size or a finding, never another exception, a warning or a word of the decoder's."""

import io
import random
import time
from pathlib import Path

import damage
import pytest
from PIL import Image

from jaccard_eval.findings import DataError
from jaccard_eval.reading.images import ImageFolder

pytestmark = pytest.mark.slow

N_MUTANTS = 300  # of each format
SECONDS = 2.0
KINDS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO", "TGA", "EPS", "DDS", "PCX")  # by content, not name
LARGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0")


def claim(data: bytes, rng: random.Random) -> bytes:
    """Put an absurd number into a header."""
    at = rng.randrange(min(len(data), 200) + 1)
    return data[:at] + rng.choice(LARGE) + data[at + 4 :]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_pictures_have_a_size_or_are_refused_clearly(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(picture(kind))
    rng, folder, end = random.Random(kind), ImageFolder(tmp_path), time.monotonic() + SECONDS
    for _ in range(N_MUTANTS):
        with damage.damaged(path, rng, (claim, claim, damage.flip, damage.delete, damage.truncate, damage.repeat)):
            require_size_or_finding(folder)
        if time.monotonic() > end:
            break
    assert capfd.readouterr() == ("", "")


def require_size_or_finding(folder: ImageFolder) -> None:
    try:
        assert min(folder.size("a.png")) > 0
    except DataError as error:
        (finding,) = error.findings
        assert finding.code in {"image-unreadable", "image-too-large"}
        assert "a.png" in finding.message


def picture(kind: str) -> bytes:
    """Return a small picture, turned by EXIF where its format has that."""
    exif = Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    Image.new("RGB", (20, 10)).save(stream, kind, **({"exif": exif} if kind in ("PNG", "JPEG", "TIFF", "WEBP") else {}))
    return stream.getvalue()
