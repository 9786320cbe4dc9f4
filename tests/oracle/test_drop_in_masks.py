"""`jaccard_eval.pycocotools.mask` beside pycocotools 2.0.11: the same bytes, numbers, types and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pycocotools.mask as peer
import pytest

from jaccard_eval import UsageError
from jaccard_eval.pycocotools import COCO, mask


class Image(COCO):
    """One image of a height and a width, for polygons."""

    def __init__(self) -> None:
        super().__init__({"images": [{"id": 1, "height": 9, "width": 8}]}, verbose=False)


# Of the peer, with NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def draw(rng: np.random.Generator, height: int, width: int, n: int) -> Any:
    return np.asfortranarray((rng.random((height, width, n)) < rng.random()).astype(np.uint8))


def require_equal(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    assert np.array_equal(ours, theirs)
    if isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.flags.f_contiguous) == (theirs.dtype, theirs.flags.f_contiguous)


@pytest.mark.parametrize("seed", range(40))
def test_masks_are_encoded_measured_merged_and_compared_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 40, 2).tolist()
    pixels, others = draw(rng, height, width, int(rng.integers(1, 6))), draw(rng, height, width, 3)
    crowd = rng.integers(0, 2, 3).tolist()
    ours, theirs = mask.encode(pixels), peer.encode(pixels)
    assert ours == theirs
    assert mask.encode(pixels[:, :, 0]) == peer.encode(np.asfortranarray(pixels[:, :, 0]))
    for listed in (theirs, theirs[0]):
        require_equal(mask.decode(listed), peer.decode(listed))
        require_equal(mask.area(listed), peer.area(listed))
        require_equal(mask.toBbox(listed), peer.toBbox(listed))
    assert mask.merge(ours) == peer.merge(theirs)
    assert mask.merge(ours, True) == peer.merge(theirs, True)
    require_equal(mask.iou(ours, mask.encode(others), crowd), peer.iou(theirs, peer.encode(others), crowd))
    # Masks of another size.
    taller = peer.encode(draw(rng, height + 1, width, 3))
    require_equal(mask.iou(ours, taller, crowd), peer.iou(theirs, taller, crowd))


@pytest.mark.parametrize("seed", range(40))
def test_boxes_and_polygons_become_the_same_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 40, 2).tolist()
    boxes, others = (np.abs(rng.uniform(-5, 30, (n, 4)).round(1)) for n in (4, 3))
    crowd = rng.integers(0, 2, 3).tolist()
    require_equal(mask.iou(boxes, others, crowd), peer.iou(boxes, others, crowd))
    require_equal(mask.iou(boxes.tolist(), others.tolist(), crowd), peer.iou(boxes.tolist(), others.tolist(), crowd))
    assert mask.frPyObjects(boxes, height, width) == peer.frPyObjects(boxes, height, width)
    polygons = [rng.uniform(-3, 40, 2 * rng.integers(3, 8)).round(1).tolist() for _ in range(3)]
    assert mask.frPyObjects(polygons, height, width) == peer.frPyObjects(polygons, height, width)
    listed = {"size": [height, width], "counts": [height * width // 2, height * width - height * width // 2]}
    assert mask.frPyObjects([listed], height, width) == peer.frPyObjects([listed], height, width)
    assert mask.frPyObjects(listed, height, width) == peer.frPyObjects(listed, height, width)


def test_nothing_gives_what_it_gives_there() -> None:
    assert mask.merge([]) == peer.merge([])
    assert mask.iou([], [], []) == peer.iou([], [], []) == []
    require_equal(mask.area([]), peer.area([]))
    require_equal(mask.toBbox([]), peer.toBbox([]))


def test_what_pycocotools_stops_at_without_a_reason_is_one_mask_or_a_usage_error() -> None:
    # There a TypeError: object of type 'float' has no len().
    assert mask.frPyObjects([1.0, 2.0, 3.0, 4.0], 9, 9) == mask.frPyObjects(np.array([[1.0, 2.0, 3.0, 4.0]]), 9, 9)[0]
    square = mask.encode(np.ones((3, 3), dtype=np.uint8))
    with pytest.raises(UsageError, match="one size"):
        mask.merge([square, mask.encode(np.ones((3, 4), dtype=np.uint8))])
    with pytest.raises(UsageError, match="RLE with RLE"):
        mask.iou([square], np.zeros((1, 4)), [0])
    with pytest.raises(UsageError, match="1 values"):
        mask.iou([square], [square], [0, 0])
    with pytest.raises(UsageError, match="expected"):
        mask.area({"size": [3, 3], "counts": None})
    with pytest.raises(ValueError, match="sum to 7, but 3 x 3 are 9 pixels"):  # there, pixels of other memory
        mask.decode({"size": [3, 3], "counts": b"7"})


@pytest.mark.parametrize("counts", [[0, 5, 5, 5, 5, 2, 3, 5, 2, 3, 55], [3, 0, 0, 4], [7], [], [0, 0, 4, 0]])
def test_listed_runs_are_compressed_whatever_they_sum_to(counts: list[int]) -> None:
    runs = {"size": [9, 8], "counts": counts}
    assert mask.frPyObjects(dict(runs), 9, 8) == peer.frPyObjects(dict(runs), 9, 8)
    outline = [np.array([1.0, 1, 7, 1, 7, 6])]
    found = mask.frPyObjects([dict(runs)], 9, 8), COCO.annToRLE(Image(), {"image_id": 1, "segmentation": outline})
    assert found == (peer.frPyObjects([dict(runs)], 9, 8), peer.frPyObjects(outline, 9, 8)[0])


SQUARE = mask.encode(np.ones((20, 30), dtype=np.uint8))
RUNS = [0, 600]
SPELLINGS: dict[str, Any] = {
    "text": {"size": [20, 30], "counts": SQUARE["counts"].decode()},
    "tuple": {"size": (20, 30), "counts": SQUARE["counts"]},
    "array": {"size": np.array([20, 30]), "counts": SQUARE["counts"]},
    "scalars of NumPy": {"size": [np.int64(20), np.int32(30)], "counts": SQUARE["counts"]},
    "floats": {"size": [20.0, 30.0], "counts": [float(run) for run in RUNS]},
    "array of runs": {"size": [20, 30], "counts": np.array(RUNS)},
    "tuple of runs": {"size": (20, 30), "counts": tuple(RUNS)},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_rle_is_taken_as_programs_have_it(spelling: str) -> None:
    assert mask.area(SPELLINGS[spelling]) == 600
    assert mask.iou([SPELLINGS[spelling]], [SQUARE], [0]).item() == 1.0


@pytest.mark.parametrize("size", [[20.5, 30], [True, 30], ["20", 30], [20], "20x30", [-1, 5], None])
def test_sizes_that_are_none_are_still_refused(size: Any) -> None:
    with pytest.raises(UsageError, match="size of RLE"):
        mask.area({"size": size, "counts": SQUARE["counts"]})
