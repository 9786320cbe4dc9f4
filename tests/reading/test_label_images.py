import io
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from label_map_builder import label_map, write_npy, write_png
from PIL import Image

from jaccard_eval import DataError
from jaccard_eval.reading.labelmaps import EncodedImage, LabelImage


def read(path: Path, *, by_color: bool = False) -> LabelImage:
    return EncodedImage(path).decode(by_color=by_color)


def values(image: LabelImage) -> list[list[int]]:
    rows: list[list[int]] = np.concatenate(list(image.strips())).tolist()
    return rows


def refusal(path: Path, *, by_color: bool = False) -> str:
    with pytest.raises(DataError) as caught:
        read(path, by_color=by_color)
    assert len(caught.value.findings) == 1
    return str(caught.value)


def write_raw_png(path: Path, depth: int, color_type: int, rows: list[bytes], width: int, *more: bytes) -> Path:
    """Write a PNG chunk by chunk, as the specification has it: what Pillow does not write."""
    chunks = [b"IHDR" + struct.pack(">IIBBBBB", width, len(rows), depth, color_type, 0, 0, 0), *more]
    chunks += [b"IDAT" + zlib.compress(b"".join(b"\0" + row for row in rows)), b"IEND"]
    body = b"".join(struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def test_grey_of_8_bits_holds_values(tmp_path: Path) -> None:
    assert values(read(write_png(tmp_path / "a.png", "01x / 230"))) == [[0, 1, 255], [2, 3, 0]]


def test_grey_of_16_bits_keeps_large_values(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", np.array([[0, 300], [65535, 7]], dtype=np.uint16))
    assert values(read(path)) == [[0, 300], [65535, 7]]


@pytest.mark.parametrize(
    ("depth", "row", "expected"),
    [(1, b"\x50", [0, 1, 0, 1]), (2, b"\x1b", [0, 1, 2, 3]), (4, b"\x01\x2f", [0, 1, 2, 15])],
)
def test_grey_of_few_bits_is_not_spread_over_the_range_of_8(
    tmp_path: Path, depth: int, row: bytes, expected: list[int]
) -> None:
    assert values(read(write_raw_png(tmp_path / "a.png", depth, 0, [row], 4))) == [expected]


@pytest.mark.parametrize(("depth", "row"), [(2, b"\x1b"), (4, b"\x01\x23")])
def test_indices_of_a_palette_of_few_bits_are_values(tmp_path: Path, depth: int, row: bytes) -> None:
    palette = b"PLTE" + bytes(range(12))
    assert values(read(write_raw_png(tmp_path / "a.png", depth, 3, [row], 4, palette))) == [[0, 1, 2, 3]]


def test_indices_of_a_palette_are_values_and_its_colours_are_kept(tmp_path: Path) -> None:
    image = read(write_png(tmp_path / "a.png", "01 / 10", palette=[0, 0, 0, 128, 64, 32]))
    assert values(image) == [[0, 1], [1, 0]]
    assert not image.is_colored
    assert image.palette is not None
    assert image.palette[:2].tolist() == [[0, 0, 0], [128, 64, 32]]


def test_colours_are_numbers_of_red_green_and_blue(tmp_path: Path) -> None:
    image = read(write_png(tmp_path / "a.png", np.array([[[1, 2, 3], [255, 0, 0]]], dtype=np.uint8)), by_color=True)
    assert image.is_colored
    assert values(image) == [[1 + 2 * 2**8 + 3 * 2**16, 255]]


def test_a_table_of_colours_decides_over_the_indices_of_a_palette(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", "01", palette=[9, 0, 0, 0, 0, 1])
    assert values(read(path, by_color=True)) == [[9, 2**16]]


def test_transparent_entries_of_a_palette_change_no_value(tmp_path: Path) -> None:
    chunks = b"PLTE" + bytes([9, 0, 0, 0, 0, 1]), b"tRNS" + bytes([0, 128])
    path = write_raw_png(tmp_path / "a.png", 8, 3, [b"\0\1"], 2, *chunks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(read(path)) == [[0, 1]]
        assert values(read(path, by_color=True)) == [[9, 2**16]]


def test_an_opaque_alpha_channel_is_no_hindrance(tmp_path: Path) -> None:
    grey = np.dstack([label_map("01 / 23"), np.full((2, 2), 255, np.uint8)])
    assert values(read(write_png(tmp_path / "la.png", grey))) == [[0, 1], [2, 3]]
    color = np.dstack([label_map("01")] * 3 + [label_map("xx")])
    assert values(read(write_png(tmp_path / "rgba.png", color), by_color=True)) == [[0, 1 + 2**8 + 2**16]]


def test_an_alpha_channel_that_is_not_opaque_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", np.dstack([label_map("012 / 012"), label_map("xxx / xx7")]))
    assert "alpha channel that is not opaque: 7 of 255 at (2, 1)" in refusal(path)


def test_colours_without_a_table_are_refused(tmp_path: Path) -> None:
    message = refusal(write_png(tmp_path / "a.png", np.array([[[0, 0, 1], [9, 9, 9]]], np.uint8)))
    assert "error[map-mode]" in message
    assert "--colors FILE" in message


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif"])
def test_grey_that_is_stored_as_rgb_is_grey(tmp_path: Path, suffix: str) -> None:
    grey = label_map("01x / 230")
    Image.fromarray(np.dstack([grey] * 3)).save(tmp_path / f"a.{suffix}")
    assert values(read(tmp_path / f"a.{suffix}")) == grey.tolist()


@pytest.mark.parametrize("suffix", ["bmp", "gif"])
def test_masks_of_other_programs_hold_values(tmp_path: Path, suffix: str) -> None:
    Image.fromarray(label_map("0x / xx")).save(tmp_path / f"a.{suffix}")
    assert values(read(tmp_path / f"a.{suffix}")) == [[0, 255], [255, 255]]
    (tmp_path / "cut").write_bytes((tmp_path / f"a.{suffix}").read_bytes()[:20])
    assert "header is damaged" in refusal(tmp_path / "cut")


def test_indices_of_a_coloured_gif_are_values_and_its_colours_have_a_table(tmp_path: Path) -> None:
    image = Image.fromarray(label_map("01 / 10"))
    image.putpalette([9, 0, 0, 0, 7, 0])
    image.save(tmp_path / "a.gif")
    assert values(read(tmp_path / "a.gif")) == [[0, 1], [1, 0]]
    assert values(read(tmp_path / "a.gif", by_color=True)) == [[9, 7 << 8], [7 << 8, 9]]


@pytest.mark.parametrize(("color_type", "width"), [(2, 6), (6, 8), (4, 4)])
def test_16_bits_per_colour_are_refused_because_they_would_be_cut_to_8(
    tmp_path: Path, color_type: int, width: int
) -> None:
    message = refusal(write_raw_png(tmp_path / "a.png", 16, color_type, [bytes(width)], 1), by_color=True)
    assert "16 bit" in message


def test_an_animation_is_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(label_map(picture)) for picture in ("01", "10")]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    assert "animation of 2 frames" in refusal(tmp_path / "a.png")


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "<u2", ">u2", "<i4", ">i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_integers_hold_values(tmp_path: Path, dtype: str, order: Any) -> None:
    path = write_npy(tmp_path / "a.npy", np.array([[0, 1, 1], [1, 0, 0]], dtype=dtype, order=order))
    assert values(read(path)) == [[0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2)), "holds float64 values; a label map holds integers"),
        (np.zeros((19, 4, 6), dtype=np.uint8), "has the shape (19, 4, 6); a label map has (height, width)"),
        (np.zeros((0, 5), dtype=np.uint8), "has no pixels: 5 x 0"),
        (np.array([["road"]]), "holds <U4 values"),
        (np.zeros((2, 2), dtype=[("a", "u1")]), "holds [('a', 'u1')] values"),
    ],
    ids=["float", "stack", "empty", "text", "fields"],
)
def test_arrays_that_are_no_label_map_are_refused(tmp_path: Path, array: npt.NDArray[Any], message: str) -> None:
    assert message in refusal(write_npy(tmp_path / "a.npy", array))


def test_a_pickled_array_is_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[print]]), allow_pickle=True)
    assert "holds object values" in refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("kept", [5, 9, 20, 40, 60, 127])
def test_an_array_that_was_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    path = write_npy(tmp_path / "a.npy", np.zeros((4, 4), np.uint8))
    path.write_bytes(path.read_bytes()[:kept])
    assert "image-unreadable" in refusal(path)


def test_an_array_whose_header_claims_more_than_the_file_has_takes_no_memory(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "a.npy", np.zeros((40, 40), np.uint8))
    path.write_bytes(path.read_bytes().replace(b"(40, 40), ", b"(9999, 9), ")[:300])
    assert "image-unreadable" in refusal(path)
    path.write_bytes(path.read_bytes().replace(b"(9999, 9), ", b"(99999999, 99999999), "))
    assert "its header claims a size of 99999999 x 99999999 pixels" in refusal(path)


@pytest.mark.parametrize("kept", [9, 20, 30, 45, 60])
def test_a_png_that_was_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    path = write_png(tmp_path / "a.png", np.random.default_rng(1).integers(0, 255, (40, 40), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:kept])
    assert "image-unreadable" in refusal(path)


def test_every_damaged_byte_is_noticed_or_leaves_a_map_of_the_same_size(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", "0123 / 3210 / 0000")
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            image = read(path)
        except DataError:
            continue
        assert np.concatenate(list(image.strips())).shape == image.shape


def test_a_header_that_claims_an_absurd_size_is_refused_before_decoding(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", "00")
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack(">II", 100_000, 100_000)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    path.write_bytes(data)
    assert "its header claims a size of 100000 x 100000 pixels" in refusal(path)


def test_a_jpeg_is_refused_whatever_its_suffix_says(tmp_path: Path) -> None:
    Image.fromarray(label_map("01")).save(tmp_path / "a.png", "JPEG")
    assert "does not keep label values" in refusal(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty (0 bytes)"),
        (b"hello", "is neither a PNG, TIFF, BMP or GIF image nor a NumPy array"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<html>", "an HTML page"),
        (b'[{"labels": []}]', "is JSON, which is not a label map"),
    ],
)
def test_other_contents_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.png").write_bytes(content)
    assert message in refusal(tmp_path / "a.png")


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.save(file, label_map("01"))
    (tmp_path / "a.png").write_bytes(file.getvalue())
    assert values(read(tmp_path / "a.png")) == [[0, 1]]


def test_the_first_place_of_a_value_is_found_across_strips(tmp_path: Path) -> None:
    array = np.zeros((300, 2000), dtype=np.uint8)
    array[251, 1999] = array[252, 3] = 7
    assert read(write_png(tmp_path / "a.png", array)).first_place(7) == (1999, 251)
