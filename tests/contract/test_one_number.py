"""However a metric is written, and wherever it is asked for, one run has one number for it."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaccard_eval import EvaluationResult, evaluate
from jaccard_eval.api.results import log_metrics
from jaccard_eval.data.metricref import AT_POINTS, BOX_METRICS, FINDING_METRICS, KEYS, METRICS, MetricRef, canonical
from jaccard_eval.data.protocol import COCO
from jaccard_eval.errors import UsageError
from jaccard_eval.features.gates.judging import SavedAnswers, answers_of

SAMPLE = Path(__file__).parents[2] / "sample_data/coco"
SCORES = (None, 0.6, "best-f1", "precision=0.9", "recall=0.6", "fppi=0.5")
# All but what curves of other rules have not; documents have counts of images where their protocol's summary has them.
NAMES = (
    *(name for name in BOX_METRICS if name not in ("AP_R11", "image_accuracy") and METRICS[name].on != "images"),
    *FINDING_METRICS,
)


@pytest.fixture(scope="module", params=SCORES, ids=str)
def result(request: pytest.FixtureRequest) -> EvaluationResult:
    # A document has what its protocol names.
    rules = COCO.with_options(metrics=("wAP", "wAR", "P", "R", "LAMR", "CPM", "JI"))
    return evaluate(SAMPLE / "gt.json", SAMPLE / "worse.json", protocol=rules, score=request.param, errors=True)


def spellings(name: str, score: float | str | None) -> Iterator[str]:
    """Every way to write a metric of the run, and of a class of it."""
    metric = METRICS[name]
    words = dict.fromkeys([name, name.lower(), name.upper(), *metric.aliases])
    of_class = "class" in KEYS[metric.on] and not name.startswith("dAP")
    for class_name in (None, "dog") if of_class else (None,):
        for word in words:
            bare = [f"class={class_name}"] if class_name else []
            judged = [] if "iou" not in KEYS[metric.on] or metric.on in ("curves", "sweep") else ["iou=0.5"]
            at = [str(MetricRef(name=name, score=score))[len(name) + 1 : -1]] if score is not None else []
            asked = [bare, [*judged, *bare]]
            asked += [[*at, *bare], [*judged, *at, *bare]] if "score" in KEYS[metric.on] else []
            for items in asked:
                yield f"{word}[{','.join(items)}]" if items else word
            if class_name:
                yield f"{word}[{class_name}]"


@pytest.mark.parametrize("name", NAMES)
def test_no_two_ways_to_write_a_metric_give_two_numbers(name: str, result: EvaluationResult) -> None:
    score = result.options.get("score")
    if score is None and METRICS[name].on in AT_POINTS:
        example = f"{name}.iou=0.5," if METRICS[name].on == "point" else f"{name}.score=0.5"
        with pytest.raises(UsageError, match=f"{name} needs a score; write {example}"):
            result[name]
        return
    answers = answers_of(result), SavedAnswers(json.loads(json.dumps(result.to_dict())), "result.json")
    numbers: dict[str | None, set[str]] = {None: set(), "dog": set()}
    for text in spellings(name, score):
        of_class = "dog" if "dog" in text else None
        for value in (result[text], *(answer.value(text).value for answer in answers)):
            numbers[of_class].add(f"{value:.12g}")
    assert [len(found) for found in numbers.values()] == [1, 1 if numbers["dog"] else 0], numbers
    # What reports and exports show is that number.
    logged = log_metrics(result, prefix="")
    shown = {None: name, "dog": f"{name}/dog"}
    for of_class, label in shown.items():
        if label in logged and numbers[of_class]:
            assert f"{logged[label]:.12g}" in numbers[of_class], label


def test_what_the_analysis_of_errors_prints_is_what_its_names_mean(result: EvaluationResult) -> None:
    errors = result.errors
    assert result["best_F1"] == errors.pooled.best_f1 == result["F1[score=best-f1]"]
    assert result["best_score[dog]"] == errors.thresholds["dog"] == result["score[score=best-f1,class=dog]"]
    assert result["dAP_Loc"] == errors.types[1].gain
    assert result["localisation errors"] == errors.types[1].count
    assert result["missed_errors[person]"] == errors.types[5].by_class[errors.confusion.names.index("person")]
    assert result["false_positive_errors"] == errors.false_positives.count
    assert result["oLRP_Loc[dog]"] == next(row for row in errors.classes if row.name == "dog").lrp.localisation
    # At another threshold it is analysed there.
    assert result["oLRP[iou=0.75]"] > result["oLRP"]


def test_the_mean_iou_of_matches_is_that_of_the_pairs_that_are_listed(result: EvaluationResult) -> None:
    matches, score = result.matches, result.options.get("score")
    for column, iou in ((0, 0.5), (5, 0.75)):
        least = -math.inf
        if score is not None:
            least = result[f"score[iou={iou}]"]
        pairs = [
            iou
            for iou, hit, at in zip(matches["iou"][:, column], matches["tp"][:, column], matches["score"], strict=True)
            if hit and at >= least
        ]
        expected = sum(pairs) / len(pairs) if pairs else math.nan
        assert result[f"mean_IoU[iou={iou}]"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("alias", ["map", "map50", "map75", "f1", "AP50[dog]", "mAP@.5", "MAP@[.5:.95]"])
def test_aliases_are_one_metric(alias: str, result: EvaluationResult) -> None:
    if result.options.get("score") is not None or alias != "f1":
        assert result[alias] == result[canonical(alias)]


def test_findings_are_counted_for_gates(result: EvaluationResult) -> None:
    assert result["warnings"] == sum(finding.severity == "warning" for finding in result.findings)
