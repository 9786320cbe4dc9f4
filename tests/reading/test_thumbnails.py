"""Images decoded to be shown: upright as sizes are read, in RGB, bounded; what cannot be shown is a note."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaccard_eval.reading import thumbnails
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.thumbnails import ImageFiles, Thumbnail

RED, BLUE = (220, 30, 30), (30, 30, 220)


def files_of(folder: Path, *names: str, size: tuple[float, float] = (np.nan, np.nan)) -> ImageFiles:
    return ImageFiles([folder], names, np.array([size] * len(names), dtype=np.float64))


def codes(images: ImageFiles) -> list[tuple[str, str]]:
    return [(str(finding.severity), finding.code) for finding in images.findings.findings()]


def small(images: ImageFiles, row: int = 0, side: int = 360) -> Thumbnail:
    found = images.thumbnail(row, side=side, quality=90)
    assert found is not None
    return found


def pixels_of(thumbnail: Thumbnail) -> Image.Image:
    image = Image.open(io.BytesIO(thumbnail.data))
    assert (image.format, image.mode) == ("JPEG", "RGB")
    return image


def is_near(pixel: object, colour: tuple[int, int, int]) -> bool:
    return bool(np.abs(np.subtract(pixel, colour)).max() < 40)  # type: ignore[arg-type]


def halves(size: tuple[int, int]) -> Image.Image:
    """A picture whose left half is red and right half is blue."""
    image = Image.new("RGB", size, BLUE)
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image


def test_a_thumbnail_is_as_large_as_asked_and_knows_the_size_of_its_image(tmp_path: Path) -> None:
    halves((1200, 600)).save(tmp_path / "a.png")
    found = small(files_of(tmp_path, "a.png"))
    assert (pixels_of(found).size, found.size) == ((360, 180), (1200, 600))
    assert is_near(pixels_of(found).getpixel((10, 90)), RED)
    assert is_near(pixels_of(found).getpixel((350, 90)), BLUE)


def test_a_small_image_keeps_its_size(tmp_path: Path) -> None:
    halves((64, 48)).save(tmp_path / "a.png")
    assert pixels_of(small(files_of(tmp_path, "a"))).size == (64, 48)


# Where red, the left half as stored, is to be seen after each orientation: EXIF 2.3, tag 0x0112.
@pytest.mark.parametrize(
    ("orientation", "size", "red"),
    [
        (1, (80, 40), (10, 20)),
        (2, (80, 40), (70, 20)),
        (3, (80, 40), (70, 20)),
        (4, (80, 40), (10, 20)),
        (5, (40, 80), (20, 10)),
        (6, (40, 80), (20, 10)),
        (7, (40, 80), (20, 70)),
        (8, (40, 80), (20, 70)),
    ],
)
def test_orientation_turns_the_pixels_as_it_turns_the_size(
    tmp_path: Path, orientation: int, size: tuple[int, int], red: tuple[int, int]
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    halves((80, 40)).save(tmp_path / "a.jpg", exif=exif, quality=95)
    found = small(files_of(tmp_path, "a.jpg"))
    assert found.size == pixels_of(found).size == ImageFolder(tmp_path).size("a.jpg") == size
    assert is_near(pixels_of(found).getpixel(red), RED)
    assert is_near(pixels_of(found).getpixel((size[0] - 1 - red[0], size[1] - 1 - red[1])), BLUE)


def test_an_image_is_not_turned_where_the_boxes_are_of_its_pixels_as_stored(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    halves((80, 40)).save(tmp_path / "a.jpg", exif=exif)
    assert small(files_of(tmp_path, "a.jpg", size=(80, 40))).size == (80, 40)
    assert small(files_of(tmp_path, "a.jpg", size=(40, 80))).size == (40, 80)


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("1", ".png"), ("L", ".png"), ("P", ".png"), ("P", ".gif"), ("RGB", ".bmp"), ("CMYK", ".jpg"), ("YCbCr", ".tif")],
)
def test_every_mode_is_shown_in_rgb(tmp_path: Path, mode: str, suffix: str) -> None:
    halves((80, 40)).convert(mode).save(tmp_path / f"a{suffix}")
    try:
        with Image.open(tmp_path / f"a{suffix}") as written:
            written.load()
    except OSError:
        pytest.skip("this version of Pillow cannot read what it writes")
    shown = pixels_of(small(files_of(tmp_path, f"a{suffix}")))
    left, right = shown.getpixel((20, 20)), shown.getpixel((60, 20))
    assert left != right or mode == "1"
    if mode in ("P", "RGB", "CMYK", "YCbCr"):
        assert is_near(left, RED)
        assert is_near(right, BLUE)


def test_transparent_pixels_are_white_whatever_colour_they_hide(tmp_path: Path) -> None:
    image = Image.new("RGBA", (80, 40), (*RED, 0))
    image.paste((*BLUE, 255), (40, 0, 80, 40))
    image.save(tmp_path / "a.png")
    palette = halves((80, 40)).quantize(2)
    palette.save(tmp_path / "p.png", transparency=int(palette.getpixel((0, 0))))  # type: ignore[arg-type]
    for row in (0, 1):
        shown = pixels_of(small(files_of(tmp_path, "a.png", "p.png"), row))
        assert is_near(shown.getpixel((20, 20)), (255, 255, 255))
        assert is_near(shown.getpixel((60, 20)), BLUE)


@pytest.mark.parametrize(("low", "high"), [(0, 4095), (1000, 65535), (7, 7)])
def test_sixteen_bits_are_stretched_to_eight(tmp_path: Path, low: int, high: int) -> None:
    values = np.full((40, 80), low, dtype=np.uint16)
    values[:, 40:] = high
    Image.fromarray(values).save(tmp_path / "a.png")
    shown = pixels_of(small(files_of(tmp_path, "a.png")))
    assert is_near(shown.getpixel((10, 20)), (0, 0, 0))
    assert is_near(shown.getpixel((70, 20)), (255, 255, 255) if high > low else (0, 0, 0))


def test_the_bytes_are_those_of_the_pixels_alone(tmp_path: Path) -> None:
    halves((80, 40)).save(tmp_path / "a.png", pnginfo=None)
    halves((80, 40)).save(tmp_path / "b.gif", comment=b"secret")
    image = Image.open(tmp_path / "a.png")
    image.info["comment"] = b"secret"
    image.save(tmp_path / "c.jpg", comment=b"secret", quality=95)
    once, twice = (small(files_of(tmp_path, "a.png")).data for _ in range(2))
    assert once == twice
    assert b"secret" not in small(files_of(tmp_path, "b.gif")).data + small(files_of(tmp_path, "c.jpg")).data


def test_a_bomb_is_refused_with_a_note_before_it_is_decoded(tmp_path: Path) -> None:
    rows = zlib.compress(b"\0" * 100)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    images = files_of(tmp_path, "bomb.png")
    assert images.thumbnail(0, side=360, quality=60) is None
    assert codes(images) == [("note", "image-too-large")]


def test_a_large_jpeg_is_decoded_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "MAX_DECODED", 2000 * 1500)
    halves((4000, 3000)).save(tmp_path / "a.jpg")
    images = files_of(tmp_path, "a.jpg")
    assert small(images).size == (4000, 3000)
    assert images.upright(0) is None  # all of it would be too large
    assert codes(images) == [("note", "image-too-large")]


@pytest.mark.parametrize("content", [b"", b"no image at all", "half"])
def test_a_damaged_image_is_a_note(tmp_path: Path, content: bytes | str) -> None:
    if isinstance(content, str):
        halves((800, 400)).save(tmp_path / "whole.jpg")
        whole = (tmp_path / "whole.jpg").read_bytes()
        content = whole[: len(whole) // 2]
    (tmp_path / "a.jpg").write_bytes(content)
    images = files_of(tmp_path, "a.jpg")
    assert images.thumbnail(0, side=360, quality=60) is None
    assert codes(images) == [("note", "image-unreadable")]


def test_what_is_missing_or_ambiguous_is_one_note_with_its_count(tmp_path: Path) -> None:
    for name in ("x/a.png", "y/a.png", "b.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        halves((8, 8)).save(tmp_path / name)
    images = files_of(tmp_path, "a.png", "b", "c.png")
    images.mention_missing([0, 1, 2])
    [note] = images.findings.findings()
    assert note.code == "image-file-missing"
    assert "2 images of 3 to show" in str(note)
    assert [images.thumbnail(row, side=8, quality=60) is None for row in range(3)] == [True, False, True]


def test_without_a_folder_nothing_is_missing_and_a_folder_that_went_away_is_a_note(tmp_path: Path) -> None:
    images = ImageFiles([], ["a"], np.full((1, 2), np.nan))
    images.mention_missing([0])
    assert (images.upright(0), codes(images)) == (None, [])
    gone = files_of(tmp_path / "gone", "a")
    assert gone.upright(0) is None
    assert [severity for severity, _ in codes(gone)] == ["note"]


def test_a_name_that_leads_out_of_the_folder_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    halves((8, 8)).save(tmp_path / "secret.png")
    assert files_of(tmp_path / "in", "../secret.png").upright(0) is None
    assert files_of(tmp_path / "in", str(tmp_path / "secret.png")).upright(0) is None
