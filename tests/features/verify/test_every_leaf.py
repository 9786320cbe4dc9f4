"""Every leaf of every kind of document is edited, with a digest made anew: `verify` finds it, or there is a reason."""

import contextlib
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json
from judged_scenes import write_lvis, write_open_images
from shaped import give_shapes

from jaccard_eval import evaluation, verify
from jaccard_eval.data.document import document_digest
from jaccard_eval.errors import JaccardEvalError

# What no evaluation of the inputs can tell, and why.
UNVERIFIED = {
    r"digest": "it is made anew",
    r"tool\.version|signature_fields\.v|signature": "another version is a warning; numbers show what it changes",
    r"protocol\.recall_points": "without effect where the curve has all its points, and signed elsewhere",
    r"gates\.\d+\.(rule|slice|reason|severity)": "these are of the rules, by which `gate` judges again",
    r"gates\.\d+\.spread\..*": "drawn for the rules, and from the baseline, which `gate` has",
    r"warnings\.\d+\.(message|examples\.\d+)": "rows and places differ between machines; that they agree is checked",
}
CONFIG = """[gates]
slices.first = ["*0*"]
[[gates.rules]]
metric = "AP50"
slice = "first"
min = 0.1
[[gates.rules]]
metric = "AP"
max_drop = 0.1
severity = "warning"
[[gates.rules]]
metric = "AP50"
classes = ["*"]
aggregate = "mean"
min = 0.9
min_support = 2
severity = "info"
[[gates.rules]]
metric = "warnings"
max = 100
"""

Pair = tuple[Path, Path]


def write_coco(folder: Path) -> Pair:
    gt, pred = write_lvis(folder, 3, 30, 1)
    truth = json.loads(gt.read_text())
    for name in ("neg_category_ids", "not_exhaustive_category_ids"):
        for image in truth["images"]:
            del image[name]
    return write_json(gt, truth), pred


KINDS: dict[str, tuple[Callable[[Path], Pair], tuple[str, ...]]] = {
    "all parts": (
        write_coco,
        (
            *("--bootstrap", "5", "--score", "best-f1", "--errors", "--confusion"),
            *("--worst-images", "2"),
        ),
    ),
    "lvis": (lambda folder: write_lvis(folder, 3, 40, 1), ("--protocol", "lvis")),
    "open images": (lambda folder: write_open_images(folder, 3, 40, 1), ("--protocol", "openimages")),
    "masks": (lambda folder: give_shapes(write_coco(folder), "segm", 0), ("--iou-type", "segm")),
    "poses": (lambda folder: give_shapes(write_coco(folder), "keypoints", 0), ("--iou-type", "keypoints")),
    "oriented": (
        lambda folder: give_shapes(write_coco(folder), "obb", 0),
        ("--iou-type", "obb", "--gt-angle", "rad-cw", "--pred-angle", "rad-cw"),
    ),
}


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each value that is no list or object, or is empty, with its keys; of long lists of rows the first few."""
    if not value or not isinstance(value, dict | list):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    else:
        for row, inner in enumerate(value[:2]):
            yield from leaves(inner, (*place, row))


def changed(value: Any) -> Any:
    """Return another value for a leaf, as near to it as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (max(1.0, abs(value)) * 2**-40 if isinstance(value, float) else 1)
    if isinstance(value, str):
        return f"{value}x"
    return 0.5 if value is None else ["x"] if value == [] else {"x": 1}


def edited(document: Mapping[str, Any], place: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    *outer, last = place
    new: Any = copy.deepcopy(document)
    at = new
    for key in outer:
        at = at[key]
    at[last] = value
    return {**new, "digest": document_digest(new)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_of_any_leaf_is_found(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, options = KINDS[kind]
    options = (*options, "--slice", "first=*0*")
    gt, pred = write(tmp_path)
    (tmp_path / "gates.toml").write_text(CONFIG)
    done = run_here(gt, pred, *options, "-o", tmp_path / "main.json")
    assert done.returncode == 0, done.stderr
    gates = ("--config", tmp_path / "gates.toml", "--baseline", tmp_path / "main.json")
    done = run_here(gt, pred, *options, *gates, "-o", tmp_path / "result.json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads((tmp_path / "result.json").read_text())
    evaluate, known = evaluation.evaluate_inputs, {}

    def once(*sides: Any, version: str) -> Any:
        key = repr(sides)
        if key not in known:
            known[key] = evaluate(*sides, version=version)
        return known[key]

    monkeypatch.setattr(evaluation, "evaluate_inputs", once)
    assert verify(tmp_path / "result.json", gt, pred).differences == ()
    missed = []
    for place, value in leaves(document):
        name = ".".join(map(str, place))
        if any(re.fullmatch(pattern, name) for pattern in UNVERIFIED):
            continue
        path = write_json(tmp_path / "edited.json", edited(document, place, changed(value)))
        with contextlib.suppress(JaccardEvalError):  # refused, which is found as well
            if verify(path, gt, pred).equal:
                missed.append((name, value))
    assert missed == []
