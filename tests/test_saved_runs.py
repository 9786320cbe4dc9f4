"""Saved runs are read back as they were, and what is damaged is refused."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import box, write_json, write_pair

from jaccard_eval import Bootstrap, CompareOptions, DataError, UsageError, compare, evaluate, get_protocol, load
from jaccard_eval.cli import run as _run
from jaccard_eval.data.document import RUN_ENTRY
from jaccard_eval.plugins import Limit, Subset
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.npz import BOX_COLUMNS, PAIR_COLUMNS, digest_run, render
from jaccard_eval.runs import is_saved_run, load_run

Arrays = dict[str, Any]


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, Path, Path]:
    gt, before = write_pair(tmp_path)
    return gt, before, write_json(tmp_path / "after.json", [box(2, 2, [20, 20, 10, 10], score=0.8)])


def saved(gt: Path, pred: Path) -> Path:
    path = pred.with_suffix(".npz")
    assert _run.run(["evaluate", str(gt), str(pred), "-o", str(path)]) == 0
    return path


def saved_with_subsets(gt: Path, pred: Path) -> Path:
    """Save a run that has every column: those of subsets, too."""
    rules = get_protocol("coco").with_options(subsets=(Subset("tall", (Limit("height", 50),)),))
    path = pred.with_suffix(".npz")
    path.write_bytes(render(evaluate(gt, pred, protocol=rules), ReportOptions()))
    return path


def damaged(path: Path, change: Callable[[Arrays], object]) -> Path:
    with np.load(path) as content:
        arrays = dict(content)
    change(arrays)
    np.savez(path, **arrays)
    return path


def test_a_run_is_read_back_with_all_its_numbers(three: tuple[Path, ...]) -> None:
    result, again = evaluate(*three[:2]), load_run(saved(*three[:2]))
    for part in ("metrics", "per_class", "inputs", "protocol", "signature"):
        assert again.to_dict()[part] == result.to_dict()[part]
    assert again["recall[iou=0.5,score=0.5,class=dog]"] == 0.5  # one of two dogs, asked of the match table


def test_a_run_that_was_packed_again_in_another_order_is_known_as_one(three: tuple[Path, ...]) -> None:
    path = saved(*three[:2])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in reversed(archive.namelist())}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert is_saved_run(path)
    with pytest.raises(DataError, match="is a saved result of jaccard-eval, not ground truth or predictions"):
        load(path)


def test_a_run_is_saved_in_the_same_bytes_every_time(three: tuple[Path, ...]) -> None:
    first, second = (render(evaluate(*three[:2]), ReportOptions()) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("what", ["boxes", "classes"])
def test_runs_on_one_ground_truth_in_two_orders_are_not_compared_row_by_row(three: tuple[Path, ...], what: str) -> None:
    gt, before, after = three
    first, document = saved(gt, before), json.loads(gt.read_text())
    boxes, classes = document["annotations"][::-1], [*document["categories"], {"id": 3, "name": "fox"}]
    changes = {"annotations": boxes} if what == "boxes" else {"categories": classes}
    turned = write_json(gt.parent / "turned.json", document | changes)
    with pytest.raises(DataError, match=f"{what}: the {what} of the ground truth, or their order, differ"):
        compare(None, first, saved(turned, after))


def test_images_may_be_in_two_orders(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    first, document = saved(gt, before), json.loads(gt.read_text())
    turned = write_json(gt.parent / "turned.json", document | {"images": document["images"][::-1]})
    options = CompareOptions(bootstrap=Bootstrap(n_resamples=20))
    whole = compare(gt, before, after, options=options).to_dict()
    assert compare(None, first, saved(turned, after), options=options).to_dict()["comparisons"] == whole["comparisons"]


def test_saved_runs_compare_as_their_inputs_do(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    whole = compare(gt, before, after).to_dict()
    runs = saved(gt, before), saved(gt, after)
    assert compare(None, *runs).to_dict()["comparisons"] == whole["comparisons"]
    assert compare(gt, before, runs[1]).to_dict()["comparisons"] == whole["comparisons"]


def test_runs_may_be_named_by_anything_that_has_a_path(three: tuple[Path, ...]) -> None:
    class Named:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __fspath__(self) -> str:
            return str(self.path)

    run = saved(*three[:2])
    assert compare(None, Named(run), str(run)).to_dict()["comparisons"][0]["counts"]["lost"] == 0


def test_the_command_takes_saved_runs_without_ground_truth(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(saved(three[0], pred)) for pred in three[1:]]
    capsys.readouterr()
    assert _run.run(["compare", *runs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["counts"]["lost"] == 1


def test_unequal_ground_truths_are_refused(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    first = saved(gt, before)
    write_json(gt, json.loads(gt.read_text().replace("50, 50", "51, 50")))
    with pytest.raises(DataError, match="the fingerprint of the ground truth is"):
        compare(None, first, saved(gt, after))


def test_ground_truth_beside_nothing_but_saved_runs_is_refused(three: tuple[Path, ...]) -> None:
    run = saved(*three[:2])
    with pytest.raises(UsageError, match="remove the other one"):
        compare(three[0], run, run)
    with pytest.raises(UsageError, match="is not a saved run; pass its ground truth"):
        compare(None, run, three[2])


def test_an_archive_of_boxes_is_no_saved_run(tmp_path: Path) -> None:
    path = tmp_path / "pred.npz"
    np.savez(path, boxes=[[10, 20, 40, 60]])
    assert not is_saved_run(path)
    (tmp_path / "text.npz").write_text("no archive")
    assert not is_saved_run(tmp_path / "text.npz")


ARRAYS = (*(f"{side}.{name}" for side in ("gt", "pred") for name in BOX_COLUMNS), *PAIR_COLUMNS)


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "gt.score"])
def test_a_run_in_which_any_array_was_changed_is_refused(three: tuple[Path, ...], name: str) -> None:
    path = saved_with_subsets(*three[:2])
    for change in (
        lambda arrays: arrays.update({name: arrays[name] == 0 if arrays[name].dtype == bool else arrays[name] + 1}),
        lambda arrays: arrays.update({name: arrays[name][:-1]}),
        lambda arrays: arrays.pop(name),
        lambda arrays: arrays.update({f"{name}.more": arrays[name]}),
    ):
        with pytest.raises(DataError, match="does not match its digest: it was changed after it was written") as caught:
            load_run(damaged(path, change))
        assert caught.value.findings[0].code == "result-edited"
        path = saved_with_subsets(*three[:2])


def with_digest(arrays: Arrays) -> None:
    """Sign changed arrays as if they had been written so."""
    run = json.loads(arrays[RUN_ENTRY].tobytes())
    run["digest"] = digest_run(run, arrays)
    arrays[RUN_ENTRY] = np.frombuffer(json.dumps(run).encode(), dtype=np.uint8)


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "gt.score"])
def test_a_digest_made_anew_lets_nothing_pass_that_cannot_be_computed_with(three: tuple[Path, ...], name: str) -> None:
    faults: list[Callable[[Arrays], object]] = [
        lambda arrays: arrays.update({name: arrays[name][:-1]}),
        lambda arrays: arrays.update({name: arrays[name].astype("U4")}),
    ]
    if name in ("gt.image", "pred.image", "pair_detection", "pair_gt"):
        faults.append(lambda arrays: arrays.update({name: arrays[name] + 7}))
    if name in ("gt.xywh", "pred.xywh", "pred.score", "pair_overlap"):
        faults.append(lambda arrays: arrays.update({name: np.full_like(arrays[name], np.inf)}))
    for fault in faults:

        def change(arrays: Arrays, fault: Callable[[Arrays], object] = fault) -> None:
            fault(arrays)
            with_digest(arrays)

        with pytest.raises(DataError, match="cannot be read back") as caught:
            load_run(damaged(saved_with_subsets(*three[:2]), change))
        assert caught.value.findings[0].code == "result-invalid"


@pytest.mark.parametrize("schema", [0, 1, 3, True, 2.0, None, [2]])
def test_a_run_of_another_schema_is_refused(three: tuple[Path, ...], schema: object) -> None:
    def change(arrays: Arrays) -> None:
        run = json.loads(arrays[RUN_ENTRY].tobytes()) | {"run_schema": schema}
        arrays[RUN_ENTRY] = np.frombuffer(json.dumps(run).encode(), dtype=np.uint8)

    with pytest.raises(DataError, match=r"has run schema .*; expected 2"):
        load_run(damaged(saved(*three[:2]), change))


def test_pickled_objects_are_never_loaded(three: tuple[Path, ...]) -> None:
    path = damaged(saved(*three[:2]), lambda arrays: arrays.update(**{"pred.score": np.array([{}, {}], dtype=object)}))
    with pytest.raises(DataError, match="allow_pickle=False"):
        load_run(path)


def test_only_evaluations_of_boxes_are_saved_as_runs(three: tuple[Path, ...]) -> None:
    with pytest.raises(UsageError, match="match table"):
        render(compare(*three), ReportOptions())


def test_a_document_stands_for_the_run_beside_it(three: tuple[Path, ...]) -> None:
    gt, before, after = three
    runs = saved(gt, before), saved(gt, after)
    for pred, run in zip((before, after), runs, strict=True):
        document = run.with_name(f"{run.stem}-run.json")
        assert _run.run(["evaluate", str(gt), str(pred), "-o", str(document)]) == 0
        run.rename(document.with_suffix(".npz"))
    documents = before.with_name("pred-run.json"), before.with_name("after-run.json")
    assert compare(None, *documents).to_dict()["comparisons"] == compare(gt, before, after).to_dict()["comparisons"]
    assert _run.run(["compare", *map(str, documents)]) == 0


def test_saved_runs_take_no_other_rules(three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    gt, before, after = three
    runs = saved(gt, before), saved(gt, after)
    assert _run.run(["compare", *map(str, runs), "--protocol", "voc2012", "--nms", "0.3"]) == 2
    assert "--protocol, --nms: a saved result has rules and options of its own" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"^classes, iou: results have rules and options of their own"):
        compare(None, *runs, iou=(0.5,), classes=("dog",))


def test_a_document_without_its_run_cannot_be_compared(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    gt, before, after = three
    document = before.with_name("run.json")
    assert _run.run(["evaluate", str(gt), str(before), "-o", str(document)]) == 0
    assert _run.run(["compare", str(document), str(document)]) == 3
    assert "has no match table, and there is no run.npz next to it" in capsys.readouterr().err
    saved(gt, after).rename(document.with_suffix(".npz"))
    assert _run.run(["compare", str(document), str(document)]) == 3
    assert "run.npz next to it belongs to a different evaluation" in capsys.readouterr().err
    document.write_text('{"bootstrap": {}}')  # begins as that of an evaluation, and is none
    assert _run.run(["compare", str(document), str(document)]) == 3
    assert "run.json: is not a result of jaccard-eval: it has no 'kind'" in capsys.readouterr().err


def test_a_run_is_explained_and_gated_as_its_document_is(
    three: tuple[Path, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    gt, before, _ = three
    run = saved(gt, before)
    capsys.readouterr()
    assert _run.run(["explain", str(run), "AP50"]) == 0
    assert "Fixing all 2:" in capsys.readouterr().out
    assert _run.run(["gate", str(run), "--fail-under", "AP50=0.9"]) == 1
