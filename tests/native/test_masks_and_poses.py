"""The compiled core reads the masks and poses that the Python readers read, or leaves the text to them."""

import json
import random
import threading
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as reference

from jaccard_eval import native
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.formats._coco.shapes import (
    _compiled_outlines,
    _compiled_truth_poses,
    _outlines_of,
    read_keypoints,
    read_outlines,
    shape_records,
)
from jaccard_eval.formats._coco.strict import Layout
from jaccard_eval.native import calls
from jaccard_eval.native.calls import (
    SHORTEST_RESULT,
    SHORTEST_TRUTH,
    ScannedOutlines,
    ScannedShapeList,
    read_poses,
    scan_shape_list,
    scan_shapes,
)
from jaccard_eval.similarity.masks import Masks, Outlines, intersections
from jaccard_eval.similarity.runs import Runs, offsets_of, runs_of_polygons

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

SEEDS = st.integers(0, 2**32 - 1)
SQUARE = [1, 1, 5.5, 1, 5.5, 4, 1, 4]
RESULT = {"image_id": 1, "category_id": 2, "score": 0.5}


def place(row: int) -> Where:
    return Where("file.json", record=f"[{row}]")


def mask_records(rng: np.random.Generator) -> list[Any]:
    """Draw masks in each of the ways that they are written."""
    height, width = (int(side) for side in rng.integers(1, 40, 2))
    dense = np.asfortranarray(rng.random((height, width)) < rng.random(), dtype=np.uint8)
    text = reference.encode(dense)
    flat = dense.ravel("F")
    runs = np.diff(np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1], [True])))).tolist()
    counts = [0, *runs] if flat[0] else runs
    size = [height, width]
    rings = [rng.uniform(-9, 50, 2 * int(n)).round(2).tolist() for n in rng.integers(3, 9, int(rng.integers(1, 4)))]
    return [
        {"size": size, "counts": text["counts"].decode()},
        {"counts": [*counts, 0, 0], "size": size, "more": None},
        rings,
        [*rings, [1, 2, 3, 4]],
        [SQUARE],
    ]


def bits(outlines: Outlines) -> list[Any]:
    arrays = outlines.to_arrays()
    return [(name, arrays[name].dtype, arrays[name].shape, arrays[name].tobytes()) for name in sorted(arrays)]


def in_pieces(data: bytes, size: int, *, poses: bool) -> ScannedShapeList | None:
    """Return what the core reads of a list of which pieces of that size are in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "PIECE", size)
        return scan_shape_list(BytesIO(data), len(data), poses=poses)


def require_alike(data: bytes, layout: Layout) -> bool:
    """Require that masks that the core reads are what Python reads without an error; return whether it reads them."""
    log = FindingLog()
    scanned = scan_shapes(data, poses=False, role="gt" if layout is Layout.OBJECT else "pred")
    outlines = None if scanned is None else _compiled_outlines(data, scanned, place, log)
    if layout is Layout.ARRAY:
        for size in (7, 100, 1 << 20):  # a piece may end anywhere
            found = in_pieces(data, size, poses=False)
            assert (found is None) == (outlines is None or not data.isascii()), data
            if scanned and outlines and found and isinstance(found.shapes, ScannedOutlines):
                assert bits(_outlines_of(found.shapes, place, FindingLog())) == bits(outlines), data
                for name in ("image", "category", "coords", "score"):
                    expected = getattr(scanned.columns, name)
                    assert np.array_equal(getattr(found.columns, name), expected, equal_nan=True), data
    if outlines is None:
        return False
    others, records = (
        FindingLog(),
        shape_records(Path("x.json"), data, layout, "annotations" if layout is Layout.OBJECT else ""),
    )
    expected = read_outlines(records, np.full((len(records), 4), np.nan), place, others, role="gt")
    assert bits(outlines) == bits(expected), data
    assert log.findings() == others.findings(), data
    return True


def test_a_text_has_no_more_records_than_room_is_made_for() -> None:
    assert len('{"image_id":1,"category_id":1,"score":1,"keypoints":[]},') == SHORTEST_RESULT
    assert len('{"keypoints":[]},') == SHORTEST_TRUTH


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([None, 1]))
def test_masks_are_read_alike(seed: int, indent: int | None) -> None:
    masks = mask_records(np.random.default_rng(seed))
    random.Random(seed).shuffle(masks)
    truth = {"images": [], "annotations": [{"segmentation": mask, "id": 7} for mask in masks], "info": {"a": [{}]}}
    assert require_alike(json.dumps(truth, indent=indent).encode(), Layout.OBJECT)
    results = [RESULT | {"segmentation": mask} for mask in masks]
    assert require_alike(json.dumps(results, indent=indent).encode(), Layout.ARRAY)


@settings(max_examples=25)
@given(SEEDS)
def test_damaged_masks_are_read_alike_or_left_to_python(seed: int) -> None:
    rng = random.Random(seed)
    whole = json.dumps([RESULT | {"segmentation": mask} for mask in mask_records(np.random.default_rng(seed))]).encode()
    for _ in range(15):
        at, n = rng.randrange(len(whole)), rng.choice((0, 1, 1, 2, 9))
        filler = bytes(rng.choices(b'"{}[],:.-+eEoO09 \\1PQ~', k=rng.choice((0, 1, 1, 2))))
        require_alike(whole[:at] + filler + whole[at + n :], Layout.ARRAY)


@pytest.mark.parametrize(
    "mask",
    [
        None,
        [],
        [[]],
        [[1, 1, 2, 2]],
        SQUARE,
        [[*SQUARE, 3]],
        [[[1, 1], [2, 2], [3, 3]]],
        [[1e8, 0, 2e8, 0, 2e8, 9]],
        [[*SQUARE, 1e400, 1]],
        [[*SQUARE, True, 1]],
        {"size": [3, 4]},
        {"size": [3, 4], "counts": "5"},
        {"size": [3, 4], "counts": "=0"},
        {"size": [3, 4], "counts": "b'61'"},
        {"size": [3, 4], "counts": "PPPPPPPP1"},
        {"size": [3, 4], "counts": "oooooo1oooooo1"},
        {"size": [3, 4], "counts": "~~~"},
        {"size": [3, 4], "counts": "\u00e9"},
        {"size": [3, 4], "counts": [5, 8]},
        {"size": [3, 4], "counts": [13, -1]},
        {"size": [3, 4], "counts": [5, 7.0]},
        {"size": [3, 4], "counts": [10**18] * 20},
        {"size": [3, 4, 1], "counts": [12]},
        {"size": [3], "counts": [3]},
        {"size": [-3, -4], "counts": [12]},
        {"size": [10**8, 10**8], "counts": [10**16]},
    ],
)
def test_masks_that_are_none_are_left_to_python(mask: Any) -> None:
    for sound in ([], [[SQUARE]]):
        masks = [*sound, mask]
        results = json.dumps([RESULT | {"segmentation": one} for one in masks]).replace("Infinity", "1e400")
        assert not require_alike(results.encode(), Layout.ARRAY)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[]]",
        "{}",
        '[{"image_id":1,"category_id":1,"segmentation":[[1,1,2,2,3,3]]}]',
        '[{"image_id":1,"category_id":1,"score":1,"file_name":"a","segmentation":[[1,1,2,2,3,3]]}]',
        '[{"image_id":1,"category_id":1,"score":1,"segmentation":[[1,1,2,2,3,3]],"segmentation":[[1,1,2,2,3,3]]}]',
        '[{"image_id":1,"category_id":1,"score":1,"segmentation":[[1,1,2,2,3,3]',
        '[{"image_id":1,"category_id":1,"score":1,"segmentation":{"size":[1,1],"counts":"1"',
    ],
)
def test_texts_that_are_unusual_are_left_to_python(text: str) -> None:
    assert not require_alike(text.encode(), Layout.ARRAY)


def test_huge_sizes_need_no_room() -> None:
    side = 10**7
    mask = {"size": [side, side], "counts": [5, 3, side * side - 8]}
    scanned = scan_shapes(json.dumps([RESULT | {"segmentation": mask}]).encode(), poses=False, role="pred")
    assert scanned is not None and scanned.bounds[2] < 100
    assert require_alike(json.dumps([RESULT | {"segmentation": mask}]).encode(), Layout.ARRAY)
    far = np.array([[-1e8, -1e8], [1e8, -1e8], [1e8, 1e8], [-1e8, 1e8]])
    runs = runs_of_polygons(far, np.array([0, 4]), np.array([0, 1]), np.array([[20, 30]]))
    assert runs.edges.tolist() == [0, 600]


def without_core(function: Any, *arguments: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        return function(*arguments)


@settings(max_examples=25)
@given(SEEDS)
def test_masks_of_any_size_are_measured_as_in_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, rng.choice([3, 50, 10**6]), (9, 2))
    pixels = sizes.prod(axis=1)
    edges = [np.unique(rng.integers(0, n + 1, 2 * int(rng.integers(0, 20)))) for n in pixels]
    edges = [one[: len(one) // 2 * 2] for one in edges]
    masks = Masks(Runs(np.concatenate(edges), offsets_of([*map(len, edges)])), sizes)
    rows = rng.integers(0, 9, 12)
    i, j = rng.integers(0, 9, (2, 20))

    def measured() -> list[Any]:
        taken, shared = masks.take(rows), intersections(masks.runs, masks.runs, i, j)
        arrays = (masks.areas(), masks.bounds(), masks.hashes(), taken.runs.edges, taken.runs.offsets, shared)
        return [array.tolist() for array in arrays]

    assert measured() == without_core(measured)


@settings(max_examples=25)
@given(SEEDS)
def test_far_corners_are_drawn_as_in_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (20, 2)) * 10.0 ** rng.integers(0, 9, (20, 1))
    given_rows = corners, np.array([0, 3, 9, 14, 20]), np.array([0, 1, 3, 3, 4]), np.array([[40, 300]] * 4)
    drawn, expected = runs_of_polygons(*given_rows), without_core(runs_of_polygons, *given_rows)
    assert drawn.edges.tolist() == expected.edges.tolist()
    assert drawn.offsets.tolist() == expected.offsets.tolist()


POSE = [1.5, 2, 2, 3, 4, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("poses", "is_read"),
    [
        ([POSE, POSE], True),
        ([POSE, POSE[3:]], False),
        ([POSE[3:], POSE], False),
        ([POSE, [*POSE, 1, 1, 1]], False),
        ([POSE, []], False),
        ([[], []], False),
        ([POSE, None], False),
        ([POSE, {"x": 1}], False),
        ([POSE, [[1, 1, 1], [2, 2, 2]]], False),
        ([POSE, "1,2,3"], False),
        ([POSE, [*POSE[:8], None]], False),
    ],
)
def test_poses_are_read_alike_or_left_to_python(poses: list[Any], is_read: bool) -> None:
    data = json.dumps([RESULT | {"keypoints": pose} for pose in poses]).encode()
    scanned = scan_shapes(data, poses=True, role="pred")
    points = None if scanned is None else read_poses(data, scanned)
    assert (points is not None) == is_read
    for size in (7, 200):
        found = in_pieces(data, size, poses=True)
        assert np.array_equal([] if found is None else found.shapes, [] if points is None else points)
    if points is not None:
        expected, _ = read_keypoints(shape_records(Path("x"), data, Layout.ARRAY), place, FindingLog(), role="pred")
        assert points.tolist() == expected.points.tolist()


@pytest.mark.parametrize(
    ("pose", "number", "is_read"),
    [(POSE, 1, True), (POSE[6:] * 3, 0, True), (POSE, 0, False), (POSE, None, False), (POSE, -1, False)],
)
def test_labels_of_poses_are_counted_alike(pose: list[float], number: int | None, is_read: bool) -> None:
    record = {"keypoints": pose} | ({} if number is None else {"num_keypoints": number})
    data = json.dumps({"annotations": [record, {"keypoints": POSE, "num_keypoints": 2}]}).encode()
    scanned = scan_shapes(data, poses=True, role="gt")
    found = None if scanned is None else _compiled_truth_poses(data, scanned)
    assert (found is not None) == is_read
    if found is not None:
        log = FindingLog()
        poses, unlabelled = read_keypoints(
            shape_records(Path("x"), data, Layout.OBJECT, "annotations"), place, log, role="gt"
        )
        assert not log.findings()
        assert (found[0].points.tolist(), found[1].tolist()) == (poses.points.tolist(), unlabelled.tolist())


@pytest.mark.parametrize(
    ("iou_type", "shape"), [("segm", {"segmentation": [SQUARE]}), ("keypoints", {"keypoints": POSE[:3] * 17})]
)
def test_a_run_reads_the_same_when_the_list_is_scanned_ahead(
    iou_type: str, shape: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = {"id": 1, "image_id": 1, "category_id": 2, "bbox": [1, 1, 5, 4], "area": 20, "iscrowd": 0} | shape
    document = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "annotations": [truth | {"num_keypoints": 2}],
        "categories": [{"id": 2, "name": "a"}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(document))
    (tmp_path / "dt.json").write_text(json.dumps([RESULT | shape] * 3))
    read = calls._scan_shape_list
    threads: list[bool] = []

    def noted(*args: Any, **options: Any) -> ScannedShapeList | None:
        threads.append(threading.current_thread() is threading.main_thread())
        return read(*args, **options)

    monkeypatch.setattr(calls, "_scan_shape_list", noted)
    written = []
    for largest in (1 << 22, 1):
        monkeypatch.setattr(calls, "LARGE", largest)
        done = run_here(tmp_path / "gt.json", tmp_path / "dt.json", "--iou-type", iou_type, "--json")
        written.append((done.returncode, done.stdout, done.stderr))
    assert threads == [True, False]
    assert written[0] == written[1] and written[0][0] == 0
