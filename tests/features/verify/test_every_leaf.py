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

from jaccard_eval import verify
from jaccard_eval.api import files
from jaccard_eval.data.document import document_digest
from jaccard_eval.errors import JaccardEvalError
from jaccard_eval.features import verify as verifying
from jaccard_eval.features.gates.judging import ResultAnswers

# What no evaluation of the inputs can tell, and why.
UNVERIFIED = {
    r"digest": "it is made anew",
    r"tool\.version|signature_fields\.v|signature": "another version is a warning; numbers show what it changes",
    r"protocol\.recall_points": "without AP from a grid it is where pages draw the points of curves, and no value",
    r"gates\.\d+\.(rule|asked\..*)": "what was asked: another rule is found where another verdict follows",
    r"gates\.\d+\.spread\..*": "drawn for the rules, and from the baseline, which `gate` has",
    r"(inputs\.baseline|comparisons\.\d+\.pred)\.name": "a name is the user's",
    r"options\..*": "what was asked: other options are found where they give other values",
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


def once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """Let a function of a module compute once what it is asked for by the same arguments."""
    compute, known = getattr(module, name), {}

    def looked_up(*sides: Any, **options: Any) -> Any:
        key = repr((sides, options))
        if key not in known:
            known[key] = compute(*sides, **options)
        return known[key]

    monkeypatch.setattr(module, name, looked_up)


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
    once(monkeypatch, files, "evaluate_inputs")
    once(monkeypatch, ResultAnswers, "on")
    once(monkeypatch, verifying, "find_ties")
    assert missed_edits(tmp_path, document, tmp_path / "result.json", gt, pred) == []


MAPS = Path(__file__).parents[2] / "golden/given/inputs/maps"
SAMPLE = Path(__file__).parents[3] / "sample_data"
SEGMENTS = SAMPLE / "panoptic/gt.json", SAMPLE / "panoptic/better.json"
OTHERS = {
    "pixels": (
        *("pixels", MAPS / "gt", MAPS / "pred", "--background", "0"),
        *("--bootstrap", "5", "--fail-under", "mIoU=0.1", "--fail-over", "warnings=5"),
    ),
    "panoptic": (
        *("panoptic", *SEGMENTS, "--against", SAMPLE / "panoptic/worse.json"),
        *("--bootstrap", "5", "--fail-under", "PQ=0.1", "--fail-drop", "PQ_things=0.1"),
    ),
    "comparison": (
        *("compare", *(SAMPLE / f"coco/{name}.json" for name in ("gt", "better", "worse"))),
        *("--slice", "some=*0*", "--bootstrap", "5", "--name", "B=worse"),
    ),
    "gate": ("gate", "run.json", "--baseline", "main.json", "--fail-drop", "AP=0.01", "--fail-under", "AP50=0.2"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_an_edit_of_a_result_of_another_kind_is_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "gate":
        for name, pred in (("run", "worse"), ("main", "better")):
            run_here(SAMPLE / "coco/gt.json", SAMPLE / f"coco/{pred}.json", "-o", f"{name}.json")
    done = run_here(*OTHERS[kind], "-o", "result.json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(Path("result.json").read_text())
    for name in ("pixels", "panoptic"):
        once(monkeypatch, files, name)
    for name in ("evaluate_inputs", "compare_results"):
        once(monkeypatch, files, name)
    inputs = [word for word in OTHERS[kind] if isinstance(word, Path)]
    paths = {"panoptic": SEGMENTS, "gate": (Path("run.json"), Path("main.json"))}.get(kind, inputs)
    assert missed_edits(tmp_path, document, Path("result.json"), *paths) == []


def missed_edits(folder: Path, document: Mapping[str, Any], saved: Path, *inputs: Path) -> list[tuple[str, Any]]:
    """Return the leaves whose edits `verify` does not find; of the document as it is, it finds nothing."""
    assert verify(saved, *inputs).differences == ()
    missed = []
    for place, value in leaves(document):
        name = ".".join(map(str, place))
        if any(re.fullmatch(pattern, name) for pattern in UNVERIFIED) or str(value).startswith("no interval: "):
            continue
        path = write_json(folder / "edited.json", edited(document, place, changed(value)))
        with contextlib.suppress(JaccardEvalError):  # refused, which is found as well
            if verify(path, *inputs).equal:
                missed.append((name, value))
    return missed
