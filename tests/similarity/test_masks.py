"""Masks: codec, polygons, areas, boxes and overlap are those of pycocotools, bit for bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as reference

from jaccard_eval import UsageError
from jaccard_eval.similarity.boundary import boundaries
from jaccard_eval.similarity.masks import Masks, MaskSide, mask_pairs
from jaccard_eval.similarity.runs import (
    Runs,
    counts_of_runs,
    decode_strings,
    encode_counts,
    offsets_of,
    runs_of_counts,
    runs_of_pixels,
    runs_of_polygons,
)

pytestmark = pytest.mark.usefixtures("with_core")

Rings = Sequence[Sequence[np.ndarray]]  # of each mask
SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def drawn(rng: np.random.Generator, n: int = 12) -> tuple[Rings, int, int]:
    """Draw polygons of some parts: outside of the image, on borders of pixels, closed, doubled, flat."""
    height, width = (int(side) for side in rng.integers(1, 80, 2))
    masks = []
    for _ in range(n):
        rings = []
        for _ in range(int(rng.integers(1, 4))):
            corners = rng.uniform(-20, 100, (int(rng.integers(3, 9)), 2))
            corners = np.round(corners * (steps := rng.choice([1, 2, 10, 1e6]))) / steps
            corners = np.concatenate((corners, corners[: rng.integers(0, 2)]))
            corners = np.tile(corners, (1 + (rng.random() < 0.2), 1))
            rings.append(corners if rng.random() < 0.9 else np.repeat(corners[:1], 3, axis=0))
        masks.append(rings)
    return masks, height, width


def of_polygons(masks: Rings, height: int, width: int) -> Masks:
    rings = [ring for mask in masks for ring in mask]
    sizes = np.tile([height, width], (len(masks), 1))
    corners, lengths = np.concatenate(rings), [len(ring) for ring in rings]
    return Masks(runs_of_polygons(corners, offsets_of(lengths), offsets_of([*map(len, masks)]), sizes), sizes)


def of_reference(masks: Rings, height: int, width: int) -> list[Any]:
    flat = [[ring.ravel().tolist() for ring in mask] for mask in masks]
    return [reference.merge(reference.frPyObjects(rings, height, width)) for rings in flat]


def strings(masks: Masks) -> list[bytes]:
    return encode_counts(*counts_of_runs(masks.runs, masks.sizes.prod(axis=1)))


def of_strings(texts: Sequence[bytes], sizes: np.ndarray) -> Masks:
    counts, offsets, wrong = decode_strings(texts)
    assert not wrong.any()
    runs, pixels = runs_of_counts(counts, offsets)
    assert (pixels == sizes.prod(axis=1)).all()
    return Masks(runs, sizes)


@given(SEEDS)
def test_polygons_fill_the_pixels_that_the_reference_fills(rng: np.random.Generator) -> None:
    scene = drawn(rng)
    masks, expected = of_polygons(*scene), of_reference(*scene)
    assert strings(masks) == [mask["counts"] for mask in expected]
    assert masks.areas().tolist() == reference.area(expected).tolist()
    assert masks.bounds().tolist() == reference.toBbox(expected).tolist()
    again = of_strings(strings(masks), masks.sizes)
    assert again.runs.edges.tolist() == masks.runs.edges.tolist()
    assert again.hashes().tolist() == masks.hashes().tolist()


@given(SEEDS, st.sampled_from([0.0, 0.5]))
def test_overlap_is_that_of_the_reference(rng: np.random.Generator, threshold: float) -> None:
    scene = drawn(rng, n=20)
    masks, expected = of_polygons(*scene), of_reference(*scene)
    crowd = rng.random(8) < 0.3
    overlap = reference.iou(expected[8:], expected[:8], crowd.tolist())
    i, j = (rows.ravel() for rows in np.mgrid[:12, :8])
    first, second = (MaskSide.of(masks.take(rows)) for rows in (np.arange(8, 20), np.arange(8)))
    found = np.zeros((12, 8))
    i, j, value = mask_pairs(first, second, i, j, crowd=crowd, threshold=threshold)
    found[i, j] = value
    assert found.tolist() == np.where(overlap >= threshold, overlap, 0.0).tolist()


def test_hashes_differ_where_a_pixel_or_the_image_does() -> None:
    square, shifted = np.array([[2.0, 2], [5, 2], [5, 5], [2, 5]]), np.array([[2.0, 2], [5, 2], [5, 6], [2, 5]])
    masks = of_polygons([[square], [shifted]], 10, 10).joined([of_polygons([[square]], 10, 11)])
    assert len(set(map(tuple, masks.hashes().tolist()))) == 3


def test_zero_runs_and_masks_without_pixels_are_read() -> None:
    counts = np.array([0, 0, 3, 0, 2, 4, 3, 12, 0, 12, 0, 12])
    runs, pixels = runs_of_counts(counts, np.array([0, 7, 9, 10, 12]))
    assert pixels.tolist() == [12, 12, 12, 12]
    assert runs.areas().tolist() == [4, 0, 0, 12]
    assert runs.edges.tolist() == [5, 9, 0, 12]
    assert runs.bounds(np.array([[3, 4]] * 4)).tolist() == [[1, 0, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 4, 3]]


@pytest.mark.parametrize(
    "text",
    [b"/", b"p", b"\xff0", b"1~", b"X", b"1Z", b"PPPPPPPP1", b"0N"],
    ids=["below", "above", "not-ascii", "unused", "cut", "cut-later", "long", "negative"],
)
def test_strings_that_are_none_are_marked_and_leave_others_alone(text: bytes) -> None:
    good = reference.encode(np.asfortranarray(np.eye(9, dtype=np.uint8)))["counts"]
    counts, offsets, wrong = decode_strings([good, text, b"", good])
    assert wrong.tolist() == [False, True, False, False]
    assert counts[: offsets[1]].tolist() == counts[offsets[3] :].tolist() == [0, *[1, 9] * 8, 1]
    assert np.diff(offsets[1:4]).tolist() == [0, 0]


@given(st.lists(st.binary(max_size=12), max_size=6))
def test_any_bytes_are_decoded_or_marked(texts: list[bytes]) -> None:
    counts, offsets, wrong = decode_strings(texts)
    assert len(wrong) == len(offsets) - 1 == len(texts)
    assert (counts >= 0).all() and offsets[-1] == len(counts)


@given(SEEDS)
def test_boundaries_are_what_a_square_does_not_fit_around(rng: np.random.Generator) -> None:
    sizes = rng.integers(3, 60, (6, 2))
    ratio = float(rng.choice([0.02, 0.05, 0.1]))
    dense = [rng.random((height, width)) < rng.choice([0.5, 0.97, 1.0]) for height, width in sizes]
    texts = [reference.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"] for mask in dense]
    found = boundaries(of_strings(texts, sizes), ratio)
    expected = []
    for mask in dense:
        distance = max(1, round(ratio * float(np.hypot(*mask.shape))))
        padded = np.pad(mask, distance)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * distance + 1,) * 2)
        expected.append(mask & ~windows.all(axis=(2, 3)))
    assert strings(Masks(found, sizes)) == [
        reference.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"] for mask in expected
    ]


def test_masks_are_saved_and_read_back_and_forged_ones_refused() -> None:
    square = np.array([[2.0, 2], [5, 2], [5, 5], [2, 5]])
    masks = of_polygons([[square], [square + 1]], 10, 12)
    arrays = masks.to_arrays()
    assert Masks.from_arrays(arrays).hashes().tolist() == masks.hashes().tolist()
    edges, offsets = arrays["edges"], arrays["offsets"]
    for forged in (
        {},
        arrays | {"edges": edges.astype(float)},
        arrays | {"edges": edges[::-1].copy()},
        arrays | {"edges": edges + 200},
        arrays | {"offsets": offsets[:-1]},
        arrays | {"offsets": offsets + 1},
        arrays | {"sizes": -arrays["sizes"]},
    ):
        with pytest.raises(UsageError, match="masks"):
            Masks.from_arrays(forged)


def test_masks_have_no_size_but_their_own() -> None:
    masks = Masks(Runs(np.zeros(0, dtype=np.int64), np.zeros(2, dtype=np.int64)), np.array([[4, 5]]))
    assert masks.scaled(np.ones((1, 2))) is masks.shifted(np.ones((1, 2))) is masks
    with pytest.raises(UsageError, match="cannot be scaled"):
        masks.scaled(np.full((1, 2), 2.0))


@given(SEEDS)
def test_transposed_masks_are_those_of_transposed_pixels(rng: np.random.Generator) -> None:
    pixels = [rng.random(rng.integers(1, 12, 2)) < rng.random() for _ in range(int(rng.integers(0, 6)))]
    sizes = np.array([mask.shape for mask in pixels], dtype=np.int64).reshape(-1, 2)
    masks = Masks(runs_of_pixels((mask, 0, 0, len(mask)) for mask in pixels), sizes)
    expected = runs_of_pixels((mask.T, 0, 0, len(mask.T)) for mask in pixels)
    turned = masks.transposed()
    assert (turned.runs.edges.tolist(), turned.runs.offsets.tolist()) == (
        expected.edges.tolist(),
        expected.offsets.tolist(),
    )
    assert turned.sizes.tolist() == sizes[:, ::-1].tolist()
    assert turned.transposed().runs.edges.tolist() == masks.runs.edges.tolist()
