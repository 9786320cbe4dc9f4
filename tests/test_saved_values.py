"""Saved results with values that no evaluation can have are refused by whatever reads them, with file and field."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import repeat_images, run_here, write_json, write_pair

from jaccard_eval import DataError, UsageError, evaluate, gate
from jaccard_eval.data.document import RUN_ENTRY
from jaccard_eval.data.from_document import Fault, find_faults
from jaccard_eval.features.gates import Gates, Rule
from jaccard_eval.runs import classes_of

Document = dict[str, Any]
RULE = ("--fail-under", "AP50=0.1")
PYTHON = re.compile(
    r"Traceback|Error\b|object has no|NoneType|<class|invalid literal|could not convert|not supported between"
    r"|\bint\b|\bstr\b|\bdict\b|\bNone\b|\bTrue\b|\bFalse\b|`|[.:]{2}|[.:;,] ?[.:;,]"
)


ALLOWED = (0, 1, 2, 3)  # a null is an undefined value, and another kind or signature a wrong call


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both sides, their result and its run, with as much in it as there can be."""
    here = tmp_path_factory.mktemp("saved")
    pair = write_pair(here)
    repeat_images(*pair, times=12)  # of fewer than 20 images there are no intervals
    options = ("--bootstrap", "20", "--score", "best-f1", "--slice", "first=a.*", "--slice", "all=*", *RULE)
    done = run_here(*pair, *options, "-o", here / "whole.json", "-o", here / "whole.npz")
    assert done.returncode == 0, done.stderr
    return here


@pytest.fixture
def whole(folder: Path) -> Document:
    document: Document = json.loads((folder / "whole.json").read_text())
    return document


def put(document: Document, place: str, value: object) -> Document:
    """Set a field by its place, such as ``per_class[1].AP50``."""
    *outer, last = [int(key) if key.isdecimal() else key for key in re.findall(r"[^.\[\]]+", place)]
    at: Any = document
    for key in outer:
        at = at[key]
    at[last] = value
    return document


def commands(folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Every command that reads result.json, with the exit code of one that cannot be used."""
    sides, result = [str(folder / "gt.json"), str(folder / "pred.json")], str(folder / "result.json")
    whole = str(folder / "whole.json")
    yield "gate", 3, ["gate", result, *RULE]
    yield "compare", 3, ["compare", result, whole]
    yield "explain", 3, ["explain", result]
    yield "verify", 3, ["verify", result, *sides]
    yield "baseline of evaluate", 2, ["evaluate", *sides, "--fail-drop", "AP=0.1", "--baseline", result]
    yield "baseline of gate", 2, ["gate", whole, "--fail-drop", "AP=0.1", "--baseline", result]
    yield "baseline to update", 2, ["evaluate", *sides, "--baseline", result, "--update-baseline"]


def refused_by_all(folder: Path, text: str, field: str) -> None:
    (folder / "result.json").write_text(text)
    (folder / "result.npz").write_bytes((folder / "whole.npz").read_bytes())
    for name, code, argv in commands(folder):
        done = run_here(*argv)
        first = done.stderr.split("\n")[0].replace(str(folder), "")
        assert (name, done.returncode, done.stdout) == (name, code, ""), done.stderr
        assert re.match(rf"error(\[[a-z-]+\])?: /result\.json: {re.escape(field)}(\[[01]\])?: ", first), first
        assert not PYTHON.search(first), first


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metrics.AP", True),
        ("metrics.AP", "0.1"),
        ("metrics.AP", -1.0),
        ("metrics.AP", 1e9),
        ("metrics.AP", float("nan")),
        ("metrics.AP50", float("-inf")),
        ("metrics.AP", 10**400),
        ("per_class[1].class", "dog"),
        ("per_class[0].gt", -1),
        ("per_class[0].gt", 2.5),
        ("per_class[0].AP50", [0.5]),
        ("support.AP", True),
        ("intervals.AP", [0.5, 1.5]),
        ("intervals.AP", [0.5, 0.25]),
        ("intervals.AP", [0.5]),
        ("per_class[0].intervals.AP", [0.5, 0.25]),
        ("operating_points[0].precision", 1.5),
        ("operating_points[0].tp", "3"),
        ("slices[0].AP", 2),
        ("gates[0].cells[0].value", -0.5),
        ("inputs.gt.images", None),
        ("bootstrap.n_resamples", -3),
        ("gates[0].cells[0].metric", "text"),
        ("protocol.iou_thresholds", [0.9, "much"]),
    ],
    ids=str,
)
def test_every_command_refuses_an_impossible_value(folder: Path, whole: Document, field: str, value: object) -> None:
    refused_by_all(folder, json.dumps(put(whole, field, value)), field)


@pytest.mark.parametrize(
    ("given", "twice", "field"),
    [
        ('"metrics": {', '"metrics": {"AP": 0.9, ', "metrics.AP"),
        ('"tool": {', '"tool": {"version": "0.1.0", ', "tool.version"),
        ('"kind":', '"kind": "evaluation", "kind":', "kind"),
        ('"protocol": {', '"protocol": {"areas": [], ', "protocol.areas"),
    ],
    ids=lambda one: one,
)
def test_every_command_refuses_a_repeated_key_wherever_it_stands(
    folder: Path, whole: Document, given: str, twice: str, field: str
) -> None:
    text = json.dumps(whole)
    # Of a key that stands inside others as well, the one of the document is the last.
    before, found, after = text.rpartition(given)
    assert found
    refused_by_all(folder, before + twice + after, field)


def places(value: Any, place: str = "") -> Iterator[str]:
    """Yield the place of every field; of a list, those of its first entry."""
    if isinstance(value, dict):
        for key, one in value.items():
            inner = f"{place}.{key}" if place else key
            yield inner
            yield from places(one, inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield f"{place}[0]"
        yield from places(value[0], f"{place}[0]")


WRONG = (None, True, -7, 1e300, "text", [None], {"odd": [1]})
RUN_AGAIN = ("kind", "schema", "signature", "protocol", "options", "inputs")  # what `gate` does not go by


@pytest.mark.parametrize("command", ["gate", "verify", "explain"])
def test_no_shape_of_any_field_gets_a_message_of_more_than_plain_words(folder: Path, command: str) -> None:
    whole = json.loads((folder / "whole.json").read_text())
    argv = next(argv for name, _, argv in commands(folder) if name == command)
    parts = RUN_AGAIN if command != "gate" else [key for key in whole if key not in ("warnings", "errors")]
    for place in places({key: whole[key] for key in parts}):
        for value in WRONG:
            write_json(folder / "result.json", put(copy.deepcopy(whole), place, value))
            done = run_here(*argv)
            assert done.returncode in ALLOWED, (place, value, done.stderr)
            for line in done.stderr.split("\n") if done.returncode in (2, 3) else ():
                assert "result.json" in line or line.startswith("  ") or not line, (place, value, line)
                assert not PYTHON.search(line.replace(str(folder), "")), (place, value, line)


def faults_of(document: Document) -> list[Fault]:
    return find_faults(document, *classes_of(document))


def test_all_that_is_wrong_is_said_at_once(whole: Document) -> None:
    changed = put(put(put(whole, "metrics.AP", 7), "support.AP", -1), "per_class[0].gt", "2")
    assert faults_of(changed) == [
        ("metrics.AP", "expected a number from 0 to 1, got 7"),
        ("per_class[0].gt", "expected a whole number >= 0, got the string '2'"),
        ("support.AP", "expected a whole number >= 0, got -1"),
    ]


def test_rates_and_counts_have_no_upper_bound(whole: Document) -> None:
    cell = whole["gates"][0]["cells"][0]
    for metric, value in (("FPPI[score=0.5]", 12.5), ("TP[score=0.5]", 1e9), ("external.loss", -3.5)):
        cell |= {"metric": metric, "value": value}
        assert faults_of(whole) == []
    cell |= {"metric": "FPPI[score=0.5]", "value": -0.5}
    assert faults_of(whole) == [("gates[0].cells[0].value", "expected a number >= 0, got -0.5")]


def test_a_share_may_exceed_1_by_rounding(whole: Document) -> None:
    assert faults_of(put(whole, "metrics.AP", 1 + 2**-50)) == []
    assert faults_of(put(whole, "intervals.AP", [0.5, 0.5 - 2**-50])) == []


def test_two_classes_of_one_name_have_two_rows(folder: Path) -> None:
    gt = json.loads((folder / "gt.json").read_text())
    gt["categories"][1]["name"] = "dog"
    result = evaluate(write_json(folder / "twins.json", gt), folder / "pred.json", score=0.5).to_dict()
    assert [row["class"] for row in result["per_class"]] == ["dog", "dog"]
    assert faults_of(result) == []
    result["per_class"].append(result["per_class"][0])
    assert faults_of(result) == [("per_class[2].class", "the string 'dog' has two rows")]


def test_a_saved_run_is_held_to_the_same(folder: Path) -> None:
    def damaged(change: Callable[[Document], object]) -> list[int]:
        with np.load(folder / "whole.npz") as content:
            arrays = dict(content)
        run = json.loads(arrays[RUN_ENTRY].tobytes())
        change(run)
        arrays[RUN_ENTRY] = np.frombuffer(json.dumps(run).encode(), dtype=np.uint8)
        np.savez(folder / "run.npz", **arrays)
        run_path, other = folder / "run.npz", folder / "whole.npz"
        done = [run_here("gate", run_path, *RULE), run_here("compare", run_path, other), run_here("explain", run_path)]
        assert [one.stderr for one in done if PYTHON.search(one.stderr.replace(str(folder), ""))] == []
        return [one.returncode for one in done]

    assert damaged(lambda run: None) == [0, 0, 0]
    assert damaged(lambda run: put(run, "result.metrics.AP", True)) == [3, 3, 3]
    assert damaged(lambda run: put(run, "result.support.AP", -1)) == [3, 3, 3]
    assert damaged(lambda run: put(run, "class_names", "dog")) == [3, 3, 3]
    assert damaged(lambda run: put(run, "image_names", [1, 2])) == [3, 3, 3]
    assert damaged(lambda run: put(run, "area_known", "no")) == [3, 3, 3]
    assert damaged(lambda run: run.pop("result")) == [3, 3, 3]


def test_the_library_calls_a_bad_result_data_and_a_bad_baseline_usage(folder: Path, whole: Document) -> None:
    bad, gates = (
        write_json(folder / "bad.json", put(whole, "metrics.AP", 7)),
        Gates(rules=(Rule(metric="AP", max_drop=1),)),
    )
    with pytest.raises(DataError, match=r"bad\.json: metrics\.AP: expected a number from 0 to 1, got 7"):
        gate(bad, gates, baseline=folder / "whole.json")
    with pytest.raises(UsageError, match=r"bad\.json: metrics\.AP: expected a number from 0 to 1, got 7"):
        gate(folder / "whole.json", gates, baseline=bad)


def test_a_count_of_pixels_is_held_to_its_values(tmp_path: Path) -> None:
    from PIL import Image

    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(np.array([[0, 0, 1]], dtype=np.uint8)).save(tmp_path / side / "a.png")
    argv = ("pixels", tmp_path / "gt", tmp_path / "pred", "--classes", "road,car", "-o", tmp_path / "pixels.json")
    assert run_here(*argv).returncode == 0
    whole = json.loads((tmp_path / "pixels.json").read_text())
    assert faults_of(whole) == []
    for field, value in (
        ("metrics.mIoU", 1.5),
        ("per_class[0].Dice", "1"),
        ("per_class[1].class", "road"),
        ("per_class[0].gt_pixels", -1),
        ("confusion[0].pixels", 1.5),
    ):
        path = write_json(tmp_path / "bad.json", put(copy.deepcopy(whole), field, value))
        done = run_here("gate", path, "--fail-under", "mIoU=0.5")
        assert (done.returncode, field in done.stderr) == (3, True), done.stderr
