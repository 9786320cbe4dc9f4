"""Any fact of an input, edited: where a number changed, the signature did, for every kind of input."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_scenes import write_lvis, write_open_images
from segment_maps import side
from shaped import give_shapes, shape_options

from jaccard_eval import AreaRange, DataError, UsageError, evaluate, get_protocol, panoptic, pixels

Edit = Callable[[], Any]
PER_LEAF = 2  # records whose leaf of a name is edited


def numbers(result: Any) -> Any:
    """All that was measured, by class whatever it is called."""
    document = result.to_dict()
    per_class = [{k: v for k, v in row.items() if k not in ("class", "name", "value")} for row in document["per_class"]]
    points = [
        {k: v for k, v in row.items() if isinstance(v, float | int)} for row in document.get("operating_points", [])
    ]
    return json.loads(json.dumps([document.get("metrics"), *sorted(json.dumps([row]) for row in per_class + points)]))


def is_same(first: Any, second: Any) -> bool:
    return json.dumps(first) == json.dumps(second)


def leaves(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value that is no container, and of each container that is not empty."""
    if isinstance(content, dict | list):
        if path and content:
            yield path
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from leaves(content[key], (*path, key))
    else:
        yield path


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Return another value of the same kind; of a container, one without some of what it holds."""
    if isinstance(value, dict):
        lost = rng.choice(list(value))
        return {key: one for key, one in value.items() if key != lost}
    if isinstance(value, list):
        return [one for place, one in enumerate(value) if place != rng.integers(len(value))] if len(value) > 1 else []
    if isinstance(value, str):
        return {"r": "c", "c": "f", "f": "r"}.get(value, value + "x")
    if value in (0, 1):
        return 1 - value
    return type(value)(value + rng.choice([1, -1, 7])) if value else 1


def edited_documents(documents: dict[str, Any], rng: np.random.Generator) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield documents with one leaf changed, some of those that are called alike."""
    alike: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in leaves(documents):
        alike.setdefault((*(key for key in path if isinstance(key, str)), len(path)), []).append(path)
    for paths in alike.values():
        for place in rng.permutation(len(paths))[:PER_LEAF].tolist():
            path, again = paths[place], copy.deepcopy(documents)
            if len(path) < 2:  # not a side as a whole
                continue
            holder = again
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = changed(holder[path[-1]], rng)
            yield "/".join(map(str, path)), again


def coco(folder: Path, kind: str, **options: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """Documents of a scene, and what evaluates them as files."""
    sides = write_lvis(folder, 3, 30, 3)
    if kind:
        give_shapes(sides, kind, 3)
        options |= shape_options(kind)
    documents = dict(zip(("gt", "pred"), (json.loads(path.read_text()) for path in sides), strict=True))
    for row, annotation in enumerate(documents["gt"]["annotations"]):
        annotation |= {"iscrowd": int(row == 2), "ignore": int(row == 5)}

    def run(given: dict[str, Any]) -> Any:
        for path, document in zip(sides, given.values(), strict=True):
            path.write_text(json.dumps(document))
        return evaluate(*sides, engine="memory", score=0.3, **options)

    return documents, run


def open_images(folder: Path, protocol: str) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """The tables as lists of cells."""
    sides = write_open_images(folder, 3, 30, 3)
    tables = {path.name: path for path in (*sides, folder / "gt-imagelabels.csv")}
    documents: dict[str, Any] = {
        name: [[number(cell) for cell in line.split(",")] for line in path.read_text().splitlines()[1:]]
        for name, path in tables.items()
    }
    documents["hierarchy.json"] = json.loads((folder / "hierarchy.json").read_text())
    heads = {name: path.read_text().splitlines()[0] for name, path in tables.items()}

    def run(given: dict[str, Any]) -> Any:
        for name, path in tables.items():
            lines = [",".join(map(str, cells)) for cells in given[name]]
            path.write_text("\n".join([heads[name], *lines]) + "\n")
        (folder / "hierarchy.json").write_text(json.dumps(given["hierarchy.json"]))
        return evaluate(*sides, engine="memory", protocol=protocol, score=0.3)

    return documents, run


def number(cell: str) -> Any:
    try:
        return int(cell) if cell.isdigit() else float(cell)
    except ValueError:
        return cell


def segments(folder: Path) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    """Segments as documents, and the maps as lists of pixels."""
    rng = np.random.default_rng(0)
    maps = {f"{name}.png": np.kron(rng.integers(0, 8, (3, 4)), np.ones((4, 4), int)) for name in "ab"}
    moved = {name: np.roll(values, 1, axis=1) for name, values in maps.items()}
    documents = {
        "gt": side(maps, crowds=(3,), gt=True),
        "pred": side(moved),
        "gt_masks": {name: values.tolist() for name, values in maps.items()},
        "pred_masks": {name: values.tolist() for name, values in moved.items()},
    }

    def run(given: dict[str, Any]) -> Any:
        masks = {
            f"{role}_masks": {name: np.array(rows, dtype=np.uint8) for name, rows in given[f"{role}_masks"].items()}
            for role in ("gt", "pred")
        }
        return panoptic(given["gt"], given["pred"], **masks)

    return documents, run


def label_maps(folder: Path, **options: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    rng = np.random.default_rng(0)
    maps = [np.kron(rng.integers(0, 4, (3, 4)), np.ones((4, 4), int)) for _ in range(2)]
    documents = {"gt": [values.tolist() for values in maps], "pred": [np.roll(one, 1, 1).tolist() for one in maps]}

    def run(given: dict[str, Any]) -> Any:
        return pixels(*([np.array(rows, dtype=np.uint8) for rows in given[role]] for role in ("gt", "pred")), **options)

    return documents, run


SCENES: dict[str, Callable[[Path], tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]]] = {
    "boxes": lambda folder: coco(folder, "", protocol="coco"),
    "voc": lambda folder: coco(folder, "", protocol="voc2012"),
    "masks": lambda folder: coco(folder, "segm"),
    "boundaries": lambda folder: coco(folder, "boundary"),
    "poses": lambda folder: coco(folder, "keypoints"),
    "oriented": lambda folder: coco(folder, "obb"),
    "lvis": lambda folder: coco(folder, "", protocol="lvis"),
    "lvis-fixed": lambda folder: coco(folder, "segm", protocol="lvis-fixed"),
    "openimages": lambda folder: open_images(folder, "openimages"),
    "openimages-challenge": lambda folder: open_images(folder, "openimages-challenge"),
    "segments": segments,
    "label maps": label_maps,
    "label maps, ignore": lambda folder: label_maps(folder, ignore=[3]),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize("name", SCENES)
def test_what_changes_a_number_changes_the_signature(tmp_path: Path, name: str) -> None:
    documents, run = SCENES[name](tmp_path)
    before = run(documents)
    found = numbers(before)
    unsigned, n_changed = [], 0
    for path, edited in edited_documents(documents, np.random.default_rng(1)):
        try:
            after = run(edited)
        except (DataError, UsageError, ValueError):  # what stops has no numbers; ragged rows are no map
            continue
        if not is_same(found, numbers(after)):
            n_changed += 1
            if after.signature == before.signature:
                unsigned.append(path)
    assert not unsigned
    assert n_changed > 1


OPTIONS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "poses": ("keypoints", [{"sigmas": [0.05] * 17}, {"sigmas": [0.05] * 16 + [0.2]}]),
    "boundaries": ("boundary", [{"dilation_ratio": 0.01}, {"dilation_ratio": 0.05}]),
    "boxes": (
        "",
        [
            {"iou": [0.5]},
            {"max_dets": [3]},
            {"areas": [AreaRange("tiny", 0, 500)]},
            {"classes": ["class 1"]},
            {"class_agnostic": True},
            {"score_min": 0.4},
            {"nms": 0.3},
            {"class_map": {"1": "class 2", "2": "class 1"}},
            {"drop_duplicates": True},
            {"score": 0.6},
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_change_a_number_change_the_signature(tmp_path: Path, name: str) -> None:
    kind, given = OPTIONS[name]
    sides = write_lvis(tmp_path, 3, 60, 3)
    base: dict[str, Any] = {"engine": "memory", "score": 0.3}
    if kind:
        give_shapes(sides, kind, 3)
        base |= shape_options(kind)
    known = [evaluate(*sides, **base)] + [evaluate(*sides, **(base | options)) for options in given]
    assert len({result.signature for result in known}) == len(known)


def test_rules_of_label_maps_that_change_a_number_change_the_signature() -> None:
    rng = np.random.default_rng(0)
    gt, pred = ([rng.integers(0, 4, (9, 9)).astype(np.uint8)] for _ in range(2))
    given: list[dict[str, Any]] = [{}, {"ignore": [1]}, {"ignore": [2]}, {"class_map": {1: 2, 2: 1}}, {"background": 0}]
    known = [pixels(gt, pred, **options) for options in given]
    assert len({result.signature for result in known}) == len(known)


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_recall_points_change_no_number_where_the_curve_has_all_its_points() -> None:
    # That rule is in no signature of VOC 2012: of all that a document has, only the protocol differs.
    sample, found = Path(__file__).parents[2] / "sample_data/coco", []
    for points in (0, 11, 1001):
        rules = replace(get_protocol("voc2012"), recall_points=points)
        document = evaluate(sample / "gt.json", sample / "worse.json", protocol=rules, errors=True, score=0.5).to_dict()
        assert document.pop("protocol")["recall_points"] == points
        document.pop("digest", None)
        found.append(json.dumps(document))
    assert len(set(found)) == 1
