"""The compiled core decodes and counts label maps as Pillow and NumPy do, or leaves them to these."""

import io
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from jaccard_eval import DataError, native
from jaccard_eval.metrics.pixel_counts import ConfusionCounts
from jaccard_eval.native.maps import LAST_CAPACITY, count_pairs
from jaccard_eval.reading.labelmaps.images import EncodedImage
from jaccard_eval.reading.labelmaps.plain_png import decode_plain

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

SEEDS = st.integers(0, 2**32 - 1)
GREY, RGB, PALETTE = 0, 2, 3
KINDS = ((GREY, 8), (GREY, 16), (RGB, 8), (PALETTE, 8))


def chunk(name: bytes, contents: bytes) -> bytes:
    return struct.pack(">I", len(contents)) + name + contents + struct.pack(">I", zlib.crc32(name + contents))


def filtered(rng: np.random.Generator, rows: npt.NDArray[np.uint8], step: int) -> bytes:
    """Filter rows of bytes, each in one of the five ways, as section 9 of the PNG specification writes them down."""
    known = np.zeros((len(rows) + 1, rows.shape[1] + step), np.int64)
    known[1:, step:] = rows
    done = []
    for y in range(1, len(known)):
        left, above, corner = known[y, :-step], known[y - 1, step:], known[y - 1, :-step]
        nearest = [abs(left + above - corner - one) for one in (left, above, corner)]
        paeth = np.choose(np.argmin(nearest, axis=0), (left, above, corner))
        number = int(rng.integers(5))
        guess = (0, left, above, (left + above) // 2, paeth)[number]
        done.append(bytes([number]) + ((known[y, step:] - guess) % 256).astype(np.uint8).tobytes())
    return b"".join(done)


def drawn_png(rng: np.random.Generator) -> bytes:
    """Draw a map of blocks with a little noise, of one of the usual kinds, cut into chunks at any places."""
    color_type, bits = KINDS[int(rng.integers(len(KINDS)))]
    step = 3 if color_type == RGB else bits // 8
    height, width = (int(side) for side in rng.integers(1, 40, 2))
    colors = bytes(rng.integers(0, 256, 3 * int(rng.integers(1, 257)), np.uint8)) if color_type == PALETTE else b""
    top = len(colors) // 3 or 256
    pixels = rng.integers(0, top, (height, width, step)) * (rng.random((height, width, 1)) < rng.random() / 4)
    pixels += np.repeat(rng.integers(0, top, (1, width, step)), height, axis=0) // int(rng.integers(1, 4))
    raw = filtered(rng, (pixels % top).astype(np.uint8).reshape(height, -1), step)
    packed = zlib.compress(raw, int(rng.integers(0, 10)))
    cuts = [0, *np.sort(rng.integers(0, len(packed) + 1, int(rng.integers(0, 3)))).tolist(), len(packed)]
    chunks = [
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, 0)),
        chunk(b"pHYs", bytes(9)) if rng.random() < 0.3 else b"",
        chunk(b"PLTE", colors) if colors else b"",
        *(chunk(b"IDAT", packed[start:stop]) for start, stop in pairwise(cuts)),
        chunk(b"tEXt", b"Software\0one") if rng.random() < 0.3 else b"",
        chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def read_every_way(path: Path, data: bytes) -> list[Any]:
    """Read a file as label maps and as ids, and return the values, or what is wrong."""
    path.write_bytes(data)
    found: list[Any] = []
    for decode in (
        lambda file: file.decode(by_color=False),
        lambda file: file.decode(by_color=True),
        lambda file: file.decode_ids(colored=True),
        lambda file: file.decode_ids(colored=False),
    ):
        try:
            image = decode(EncodedImage(path))
        except DataError as error:
            found.append(str(error))
        else:
            values = np.concatenate([*image.strips()]).astype(np.int64)
            palette = None if image.palette is None else image.palette.tolist()
            found.append((values.tolist(), image.is_colored, palette))
    return found


def without_core(monkeypatch: pytest.MonkeyPatch, path: Path, data: bytes) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        return read_every_way(path, data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("maps")


@given(SEEDS)
@settings(max_examples=200)
def test_files_of_every_filter_are_decoded_as_by_pillow(folder: Path, seed: int) -> None:
    data = drawn_png(np.random.default_rng(seed))
    assert decode_plain(data) is not None
    with pytest.MonkeyPatch.context() as patch:
        assert read_every_way(folder / "a.png", data) == without_core(patch, folder / "a.png", data)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, of what is damaged
@given(SEEDS)
@settings(max_examples=150)
def test_damaged_files_are_what_they_are_to_pillow(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = drawn_png(rng)
    at, n = int(rng.integers(8, len(data))), int(rng.choice([0, 1, 1, 4]))
    data = data[:at] + bytes(rng.integers(0, 256, int(rng.choice([0, 1, 1, 4])), np.uint8)) + data[at + n :]
    with pytest.MonkeyPatch.context() as patch:
        assert read_every_way(folder / "a.png", data) == without_core(patch, folder / "a.png", data)


def saved(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


def test_what_pillow_writes_is_decoded() -> None:
    values = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    text = PngInfo()
    text.add_text("Author", "somebody")
    for data in (
        saved(Image.fromarray(values)),
        saved(Image.fromarray(values.astype(np.uint16) * 256)),
        saved(Image.fromarray(np.stack([values] * 3, axis=-1)), dpi=(72, 72)),
        saved(Image.fromarray(values), pnginfo=text, compress_level=0, optimize=True),
    ):
        plain = decode_plain(data)
        assert plain is not None
        assert plain.values[1, 2] in (120, 120 * 256, 120 * 65_793)


def test_anything_unusual_is_left_to_pillow() -> None:
    grey = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    usual = saved(grey)
    pixels = usual.index(b"IDAT") - 4
    for data in (
        saved(grey.convert("1")),
        saved(grey.convert("LA")),
        saved(grey.convert("RGBA")),
        saved(grey, transparency=3),
        saved(grey, save_all=True, append_images=[grey.rotate(180)]),
        usual[:pixels] + chunk(b"eXIf", b"MM") + usual[pixels:],
        usual[:pixels] + chunk(b"tEXt", b"a" * 2000) + usual[pixels:],
        usual[:pixels] + chunk(b"tEXt", b"a") * 100 + usual[pixels:],
        usual[:pixels] + chunk(b"IDAT", b"") + chunk(b"tEXt", b"a") + usual[pixels:],
        usual[:pixels] + chunk(b"PLTE", bytes(3)) + usual[pixels:],
        usual[:-12],
        usual + b"\0",
        usual.replace(b"IHDR", b"IHDr"),
    ):
        assert decode_plain(data) is None


def test_more_pixels_than_the_header_claims_are_not_decoded() -> None:
    header = struct.pack(">IIBBBBB", 4, 1, 8, 0, 0, 0, 0)
    for n, is_plain in ((5, True), (6, False), (10**7, False)):
        pixels = chunk(b"IDAT", zlib.compress(bytes(n)))
        data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")
        assert (decode_plain(data) is not None) == is_plain


TYPES = (np.uint8, np.uint16, np.uint32, np.int64, np.bool_)


@given(SEEDS)
def test_counts_are_those_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 60, 2).tolist())
    sides = []
    for _ in range(2):
        kind = TYPES[int(rng.integers(len(TYPES)))]
        top = min(int(rng.choice([2, 5, 255, 70_000, 2**32 - 1])), np.iinfo(kind).max if kind is not np.bool_ else 1)
        values = rng.integers(0, top, shape, np.int64, endpoint=True).astype(kind)
        repeats = np.sort(rng.integers(0, max(values.size, 1), values.size)) if rng.random() < 0.7 else slice(None)
        sides.append(values.reshape(-1)[repeats].reshape(shape))
    sides[1] = np.asfortranarray(sides[1])
    counted = ConfusionCounts.from_maps(*sides)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        plain = ConfusionCounts.from_maps(*sides)
    for name in ConfusionCounts.__slots__:
        np.testing.assert_array_equal(getattr(counted, name), getattr(plain, name))
        assert getattr(counted, name).dtype == np.int64


def test_maps_of_very_many_pairs_are_left_to_numpy() -> None:
    few, many = np.arange(LAST_CAPACITY // 2, dtype=np.uint32), np.arange(LAST_CAPACITY, dtype=np.uint32)
    counted = count_pairs(few, few)
    assert counted is not None
    assert len(counted[0]) == len(few)
    assert counted[2].tolist() == [1] * len(few)
    assert count_pairs(many, many) is None
    assert len(ConfusionCounts.from_maps(many, many).pixels) == len(many)
