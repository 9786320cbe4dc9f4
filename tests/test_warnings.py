"""What may change a number is a Python warning where a program calls, and a line of text where a person does."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_pair

import jaccard_eval
from jaccard_eval import BoxTable, JaccardEvalWarning
from jaccard_eval.findings import Severity

GT = BoxTable.from_arrays([0, 1], ["dog", "cat"], [[0, 0, 10, 10], [20, 20, 40, 40]])
# A class that the ground truth does not have: `class-unknown`.
PRED = BoxTable.from_arrays([0, 1], ["dog", "zebra"], [[0, 0, 10, 10], [20, 20, 40, 40]], score=[0.9, 0.8])

CALLS: dict[str, Callable[[], Any]] = {
    "evaluate": lambda: jaccard_eval.evaluate(GT, PRED),
    "compare": lambda: jaccard_eval.compare(GT, [PRED, PRED]),
    "explain": lambda: jaccard_eval.explain(GT, PRED),
    "inspect": lambda: jaccard_eval.inspect(GT, PRED),
    "sensitivity": lambda: jaccard_eval.sensitivity(GT, PRED),
}


def caught(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        returned = call()
    return returned, [message for message in issued if issubclass(message.category, JaccardEvalWarning)]


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_issues_one_warning_per_finding_that_is_one_in_the_name_of_its_caller(verb: str) -> None:
    result, issued = caught(CALLS[verb])
    expected = [finding for finding in result.findings if finding.severity is Severity.WARNING]
    assert expected
    assert [message.message.finding for message in issued] == expected  # type: ignore[union-attr]
    assert {message.filename for message in issued} == {__file__}
    assert {message.lineno for message in issued} == {CALLS[verb].__code__.co_firstlineno}


def test_reading_issues_what_it_finds(tmp_path: Path) -> None:
    _, pred = write_pair(tmp_path, warned=True)
    dataset, issued = caught(lambda: jaccard_eval.load(pred, role="pred"))
    assert [str(message.message).partition(":")[0] for message in issued] == ["box-empty"]
    assert [message.message.finding for message in issued] == [  # type: ignore[union-attr]
        finding for finding in dataset.findings if finding.severity is Severity.WARNING
    ]


def test_a_gate_below_the_noise_of_its_test_set_is_a_warning() -> None:
    # An interval needs 20 images.
    images, labels, boxes = range(40), ["dog"] * 40, [[0, 0, 10, 10]] * 40
    found = [[0, 0, 10, 10 - image % 4] for image in images]
    truth = BoxTable.from_arrays(images, labels, boxes)
    pred = BoxTable.from_arrays(images, [*labels[1:], "zebra"], found, score=[1 - image / 100 for image in images])
    result, _ = caught(lambda: jaccard_eval.evaluate(truth, pred))
    gates = jaccard_eval.Gates(
        rules=(jaccard_eval.Rule(metric="AP", max_drop=0.0001, significance="significant-drop"),),
    )
    judged, issued = caught(lambda: jaccard_eval.gate(result, gates, baseline=result))
    assert [message.message.finding for message in issued] == [  # type: ignore[union-attr]
        finding for finding in judged.findings if finding.severity is Severity.WARNING
    ]
    # Those of the evaluation were issued when it was made.
    assert "class-unknown" not in {finding.code for finding in judged.findings}


def test_a_warning_begins_with_its_code_and_can_be_ignored_by_it() -> None:
    _, (message,) = caught(CALLS["evaluate"])
    warning = message.message
    assert isinstance(warning, JaccardEvalWarning)
    assert warning.code == "class-unknown"
    assert str(warning).startswith("class-unknown: <arrays>: class: 1 prediction of 1 class")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "class-unknown:", JaccardEvalWarning)
        CALLS["evaluate"]()
    with warnings.catch_warnings(), pytest.raises(JaccardEvalWarning, match=r"^class-unknown:"):
        warnings.simplefilter("error", JaccardEvalWarning)
        CALLS["evaluate"]()


def test_a_warning_crosses_processes() -> None:
    _, (message,) = caught(CALLS["evaluate"])
    again = pickle.loads(pickle.dumps(message.message))
    assert (again.code, str(again)) == ("class-unknown", str(message.message))


def test_the_verbs_cross_processes() -> None:
    assert pickle.loads(pickle.dumps(jaccard_eval.evaluate)) is jaccard_eval.evaluate


def test_the_command_line_issues_no_python_warning(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = run_here("evaluate", gt, pred)
    assert done.returncode == 0
    assert "warning[box-empty]" in done.stderr
