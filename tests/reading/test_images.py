"""Folders of pictures: what a key means, sizes from headers alone, and headers that lie."""

import os
import struct
import unicodedata
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.reading import files
from jaccard_eval.reading.images import ImageFolder


def folder_of(root: Path, *names: str, size: tuple[int, int] = (8, 4)) -> ImageFolder:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", size).save(path)
    return ImageFolder(root)


def png_claiming(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


def test_all_pictures_are_listed_and_nothing_else(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "b.png", "sub/a.JPG")
    (tmp_path / "notes.txt").write_text("no picture")
    assert folder.names == ("b.png", "sub/a.JPG")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sub/a.png", "sub/a.png"),
        ("sub/a", "sub/a.png"),
        ("a", "sub/a.png"),
        ("elsewhere/a.png", "sub/a.png"),
        ("sub\\a.png", "sub/a.png"),
        ("SUB/A", "sub/a.png"),
        ("frame.5", "frame.5.png"),
    ],
)
def test_a_key_finds_its_picture_by_path_then_name_then_stem(tmp_path: Path, key: str, name: str) -> None:
    assert folder_of(tmp_path, "sub/a.png", "frame.5.png").find(key) == (name,)


def test_a_key_finds_its_picture_across_unicode_compositions(tmp_path: Path) -> None:
    composed = unicodedata.normalize("NFC", "é.png")
    folder = folder_of(tmp_path, composed)
    assert folder.find(unicodedata.normalize("NFD", "é")) == (composed,)


def test_a_key_that_means_several_pictures_gives_all_of_them(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "a.png", "a.gif").find("a") == ("a.gif", "a.png")


def test_a_key_without_picture_finds_nothing(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "a.png").find("b") == ()


def test_a_picture_found_by_path_is_not_given_to_a_key_of_equal_base_name(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "a.png").match(["a", "train/a", "val/a"]) == ["a.png", None, None]


def test_a_base_name_is_enough_when_one_key_claims_one_picture(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "x/a.png", "x/b.png", "y/b.png").match(["a", "b"]) == ["x/a.png", None]


def test_sizes_are_width_and_height(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "a.png", size=(640, 480))
    assert folder.size("a.png") == (640, 480)


@pytest.mark.parametrize(("orientation", "size"), [(1, (8, 4)), (3, (8, 4)), (6, (4, 8)), (8, (4, 8))])
def test_exif_orientation_turns_the_picture(tmp_path: Path, orientation: int, size: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (8, 4)).save(tmp_path / "a.jpg", exif=exif)
    assert ImageFolder(tmp_path).size("a.jpg") == size


def test_sizes_of_unknown_pictures_are_nan_and_said_by_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "good.png")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("not a picture")
    log = FindingLog()
    sizes = folder.read_sizes(["good.png", "empty.png", None, "text.png", "gone.png"], log)
    np.testing.assert_array_equal(sizes, [[8, 4], *[[np.nan, np.nan]] * 4])
    text = "\n".join(map(str, log.findings()))
    assert "empty.png: is empty (0 bytes)" in text
    assert "text.png: is not a readable image" in text
    assert "gone.png: no such file" in text
    assert {finding.severity for finding in log.findings()} == {Severity.ERROR}


def test_a_header_that_claims_an_absurd_size_is_refused_without_decoding(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(png_claiming(1_000_000, 1_000_000))
    with pytest.raises(DataError, match=r"bomb\.png: its header claims a size of 1000000 x 1000000 pixels"):
        ImageFolder(tmp_path).size("bomb.png")


def test_a_large_picture_is_no_attack_and_pillows_own_limit_is_put_back(tmp_path: Path) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    (tmp_path / "satellite.png").write_bytes(png_claiming(40_000, 40_000))
    assert ImageFolder(tmp_path).size("satellite.png") == (40_000, 40_000)
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("name", ["../secret.png", "x/../../secret.png", "{root}/secret.png"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, "secret.png")
    with pytest.raises(DataError, match="outside the folder of images"):
        folder_of(tmp_path / "images", "x/a.png").size(name.format(root=tmp_path))


def test_links_that_lie_in_the_folder_are_followed_as_link_farms_need_it(tmp_path: Path) -> None:
    folder_of(tmp_path / "cache", "train/0a1b.png", size=(640, 480))
    folder = folder_of(tmp_path / "images", "a.png")
    (folder.root / "b.png").symlink_to(tmp_path / "cache/train/0a1b.png")
    (folder.root / "more").symlink_to(tmp_path / "cache/train")
    assert folder.names == ("a.png", "b.png", "more/0a1b.png")
    assert folder.size("b.png") == folder.size("more/0a1b.png") == (640, 480)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_pipe_that_looks_like_a_picture_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataError, match="not a regular file"):
        ImageFolder(tmp_path).size("pipe.png")


def test_a_folder_that_links_to_itself_is_listed_once(tmp_path: Path) -> None:
    folder_of(tmp_path, "a.png")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert ImageFolder(tmp_path).names == ("a.png",)


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    one, other = folder_of(tmp_path / "one", "a.png").root, folder_of(tmp_path / "other", "b.png").root
    (one / "there").symlink_to(other)
    (other / "back").symlink_to(one)
    assert ImageFolder(one).names == ("a.png", "there/b.png")


def test_a_whole_disk_is_no_folder_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to("/")
    for root in (Path("/"), tmp_path / "link", Path("/usr/..")):
        with pytest.raises(DataError, match="is the root of the file system"):
            _ = ImageFolder(root).names
    folder = folder_of(tmp_path / "pictures", "a.png", "b.png", "c.png")
    monkeypatch.setattr(files, "MAX_ENTRIES", 2)
    with pytest.raises(DataError, match="holds more than 2 files and folders"):
        _ = folder.names


def test_a_missing_folder_and_a_file_are_refused_at_once(tmp_path: Path) -> None:
    folder_of(tmp_path, "a.png")
    with pytest.raises(DataError, match="no such file"):
        ImageFolder(tmp_path / "nowhere")
    with pytest.raises(DataError, match="not a folder"):
        ImageFolder(tmp_path / "a.png")
