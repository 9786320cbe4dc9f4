"""Predictions compared through the public interface: deltas, movers, and what cannot be compared."""

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import write_pair
from pictures import det, evaluate, gt

import jaccard_eval
from jaccard_eval import BoxTable, DataError, Slice, UsageError, compare
from jaccard_eval.data.document import to_document
from jaccard_eval.data.result import Resamples, Shown
from jaccard_eval.features.bootstrap import paired_deltas
from jaccard_eval.features.compare import ComparisonResult, Delta, Verdict
from jaccard_eval.features.compare.comparison import (
    CompareOptions,
    _affordable,
    compare_results,
    side_names,
    verdict,
    with_intervals,
)
from jaccard_eval.features.compare.report import build_report
from jaccard_eval.options import Bootstrap
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.text import lay_out

ASKED = CompareOptions(bootstrap=Bootstrap())

TRUTH = [gt("dog 0 0 10 10"), gt("dog 50 50 10 10"), gt("cat 20 20 10 10", "b")]
DOG, OTHER_DOG = det("dog 0 0 10 10", 0.9), det("dog 50 50 10 10", 0.8)
CAT = det("cat 20 20 10 10", 0.7, "b")


def compared(names: dict[str, str] | None = None, **options: float | str) -> ComparisonResult:
    """A finds one dog and the cat, B both dogs and no cat, C everything."""
    runs = ([DOG, CAT], [DOG, OTHER_DOG], [DOG, OTHER_DOG, CAT])
    how = CompareOptions(bootstrap=None, **options)  # type: ignore[arg-type]
    return compare_results([evaluate(TRUTH, run) for run in runs], how, version="0.1.0", names=names)


def last_line(result: ComparisonResult) -> str:
    return lay_out(build_report(result, ReportOptions()), ReportOptions()).splitlines()[-1]


def test_each_is_compared_with_the_first_in_every_metric_and_class() -> None:
    # Dogs: 51/101 with one of two found, 1 with both; the cat: 1, and 0 when missed.
    b, c = compared().others
    deltas = {(one.metric, one.class_name): one for one in b.deltas}
    assert deltas["AP", "dog"].delta == pytest.approx(1 - 51 / 101)
    assert deltas["AP", "cat"].delta == pytest.approx(-1)
    assert deltas["AP", None].baseline == pytest.approx((51 / 101 + 1) / 2)
    assert deltas["AP", None].delta == pytest.approx(0.5 - (51 / 101 + 1) / 2)
    assert [one.class_name for one in b.movers()] == ["cat", "dog"]
    assert [one.class_name for one in c.movers()] == ["dog"]


def test_changes_are_those_since_the_first() -> None:
    b, c = compared().others
    assert [(str(one.kind), one.image, one.row) for one in b.changes] == [("found", "a", 1), ("lost", "b", 2)]
    assert [(str(one.kind), one.image, one.row) for one in c.changes] == [("found", "a", 1)]


def test_boxes_are_looked_at_from_the_score_of_the_best_f1_of_each() -> None:
    # All that is detected is right, so the lowest score has the best F1.
    result = compared()
    assert [result.baseline.score, *(one.contender.score for one in result.others)] == [0.7, 0.8, 0.7]
    assert compared(score=0.85).others[0].changes == ()  # the first dog alone, in both


def test_the_document_counts_what_changed() -> None:
    document = compared().to_dict()
    assert document["comparisons"][0]["counts"]["lost"] == 1
    assert document["comparisons"][1]["metrics"][0]["delta"] == pytest.approx(1 - (51 / 101 + 1) / 2)
    assert document["signature_fields"]["box_iou"] == "0.5"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"moved_iou": 2.0}, "moved_iou must be between 0 and 1, got 2"),
        ({"moved_iou": -0.1}, "moved_iou must be between 0 and 1, got -0.1"),
        ({"box_iou": 3}, "box_iou must be above 0 and at most 1, got 3"),
        ({"box_iou": 0.42}, "^box_iou: IoU 0.42 is not evaluated; thresholds are 0.5, "),
    ],
)
def test_an_iou_that_boxes_cannot_be_compared_by_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compared(**options)


def test_slices_have_deltas_of_their_own() -> None:
    # Image b holds the cat alone: A finds it, B does not.
    runs = [evaluate(TRUTH, run) for run in ([DOG, CAT], [DOG, OTHER_DOG])]
    slices = [Slice(name="cats", patterns=("b",)), Slice(name="dogs", patterns=("[a]", "a"))]
    (versus,) = compare_results(runs, CompareOptions(slices=slices, bootstrap=None), version="0.1.0").others
    cats, dogs = versus.slices
    assert [(one.metric, one.baseline, one.value, one.n) for one in cats.deltas] == [
        ("AP", pytest.approx(1), 0.0, 1),
        ("AP50", pytest.approx(1), 0.0, 1),
    ]
    assert (dogs.images, dogs.deltas[0].baseline) == (1, pytest.approx(51 / 101))


def test_a_slice_without_images_is_refused() -> None:
    runs = [evaluate(TRUTH, [DOG])] * 2
    with pytest.raises(UsageError, match="slice 'fog': no image is matched by 'x/"):
        compare_results(runs, CompareOptions(slices=[Slice(name="fog", patterns=("x/*",))]), version="0.1.0")


def test_differences_have_intervals_by_paired_resamples() -> None:
    # Both miss the cat of b: whichever images are drawn, the two are equal on the dogs of image a.
    runs = [evaluate(TRUTH, [DOG]), evaluate(TRUTH, [DOG])]
    result = compare_results(runs, CompareOptions(bootstrap=Bootstrap(n_resamples=50)), version="0.1.0")
    deltas = {(one.metric, one.class_name): one for one in result.others[0].deltas}
    assert deltas["AP", None].interval == (0.0, 0.0)
    assert deltas["AP50", "dog"].interval == (0.0, 0.0)
    document = result.to_dict()["bootstrap"]
    assert (document["n_resamples"], document["unit"], document["n_units"]) == (50, "image", 2)
    assert result.signature.endswith("|bootstrap=halves,50,0.95,0")


def test_slices_have_intervals_of_their_own_images() -> None:
    # On ten images A finds the box of each, B that of none; on ten others both find it: no doubt within a slice.
    truth = [gt("cat 0 0 10 10", f"{i // 10}/{i}") for i in range(20)]
    found = [det("cat 0 0 10 10", 0.9, f"{i // 10}/{i}") for i in range(20)]
    slices = [Slice(name=name, patterns=(glob,)) for name, glob in (("lost", "0/*"), ("same", "1/*"), ("one", "1/10"))]
    options = CompareOptions(slices=slices, bootstrap=Bootstrap(n_resamples=30))
    runs = [evaluate(truth, found), evaluate(truth, found[10:], images=[f"0/{i}" for i in range(10)])]
    (versus,) = compare_results(runs, options, version="0.1.0").others
    assert [part.deltas[0].interval for part in versus.slices] == [
        (pytest.approx(-1), pytest.approx(-1)),
        (0.0, 0.0),
        None,
    ]
    assert versus.deltas[0].interval is not None
    assert "|slices=lost[" in compare_results(runs, options, version="0.1.0").signature
    assert -1 < versus.deltas[0].interval[0] < versus.deltas[0].interval[1] < 0


def test_few_images_are_warned_of_once() -> None:
    runs = [evaluate(TRUTH, [DOG]), evaluate(TRUTH, [CAT])]
    result = compare_results(runs, CompareOptions(bootstrap=Bootstrap(n_resamples=9)), version="0.1.0")
    assert [str(one.severity) for one in result.findings if one.code == "bootstrap-few"] == ["warning"]


def truth_of(n_images: int, n_classes: int) -> tuple[BoxTable, BoxTable]:
    """Objects of every class over some images, and predictions that find all of them."""
    n = max(n_images, n_classes)
    rows = np.arange(n)
    columns = rows % n_images, rows % n_classes, np.tile([0.0, 0.0, 10.0, 10.0], (n, 1))
    return BoxTable.from_arrays(*columns), BoxTable.from_arrays(*columns, score=np.linspace(1, 0.5, n))


def test_intervals_are_the_default_and_those_of_1000_resamples() -> None:
    truth, pred = truth_of(4, 2)
    default, asked = (compare(truth, pred, pred.take(pred.image > 0), options=options) for options in (None, ASKED))
    documents = [result.to_dict() for result in (default, asked)]
    assert documents[0]["bootstrap"]["n_resamples"] == 1000
    few, asked_for = ([document.pop(key) for document in documents] for key in ("warnings", "options"))
    assert [one["compared"]["bootstrap"] for one in asked_for] == ["auto", to_document(Bootstrap())]
    assert len({document.pop("digest") for document in documents}) == 2  # which covers these
    assert documents[0] == documents[1]
    # Nobody asked, so that few images are no warning, which --strict would refuse.
    assert [[one["severity"] for one in one_side if one["code"] == "bootstrap-few"] for one_side in few] == [
        ["note"],
        ["warning"],
    ]


@pytest.mark.parametrize(
    ("n_images", "n_classes", "n_preds", "drawn"),
    [
        # Work is predictions x (images + 40 x classes): 1,000 resamples up to 1,000, 200 up to 17,000.
        (100, 10, 2, 1000),
        (101, 10, 2, 200),
        (93, 6, 3, 1000),
        (94, 6, 3, 200),
        (1000, 187, 2, 200),
        (1021, 187, 2, None),
    ],
)
def test_intervals_are_left_out_where_they_take_long(
    n_images: int, n_classes: int, n_preds: int, drawn: int | None
) -> None:
    truth, pred = truth_of(n_images, n_classes)
    results = [jaccard_eval.evaluate(truth, pred) for _ in range(n_preds)]
    settings, findings = _affordable(results, 1)
    assert (settings and settings.n_resamples) == drawn
    assert [str(one.message) for one in findings] == (
        []
        if drawn
        else [
            f"<arrays>: no confidence intervals: {n_images:,} images and {n_classes} classes take a while."
            " Add them with --bootstrap 1000."
        ]
    )
    assert _affordable(results[:2], 60)[0] is None  # slices are measured, too


def test_without_intervals_nothing_is_claimed() -> None:
    result = compared()
    assert [one.verdict for one in result.others] == [None, None]
    assert last_line(result) == "C scores higher than A: AP +0.248 (significance not tested); B -0.252"


@pytest.mark.parametrize("value", [None, 0])
def test_intervals_can_be_turned_off(value: int | None) -> None:
    truth, pred = truth_of(3, 1)
    result = compare(truth, pred, pred, options=CompareOptions(bootstrap=value))
    assert (result.bootstrap, result.findings) == (None, ())


def test_a_word_that_is_no_way_to_resample_is_refused() -> None:
    with pytest.raises(UsageError, match="bootstrap must be a number of resamples or 'auto', got 'often'"):
        CompareOptions(bootstrap="often")


def drawn_of(values: list[float]) -> Resamples:
    """AP at some draws with repeats."""
    return Resamples(
        settings=Bootstrap(n_resamples=len(values)),
        method="percentile",
        unit="image",
        n_units=50,
        refs=("AP",),
        estimate=np.array([np.mean(values)]),
        values=np.array(values)[:, None],
        shown=(Shown(50, 0, 1),),
    )


def paired(deltas: list[float]) -> Delta:
    """A difference of AP with the interval and p-value of some resamples of it."""
    drawn = drawn_of([0.0] * len(deltas)), drawn_of(deltas)
    delta = Delta(metric="AP", class_name=None, baseline=0.0, value=float(np.mean(deltas)), n=1)
    return with_intervals([delta], paired_deltas(*drawn))[0]


@pytest.mark.parametrize(
    ("deltas", "p_value", "expected"),
    [
        # 2 (tail + 1) / (resamples + 1), the sample itself being one more resample.
        ([0.1] * 39, 2 / 40, "better"),
        ([-0.1] * 39, 2 / 40, "worse"),
        ([0.1] * 38, 2 / 39, None),  # all 38 are above 0, and too few to be sure at 95 %
        ([0.1] * 99, 2 / 100, "better"),
        ([0.1] * 98 + [-0.1], 4 / 100, "better"),  # the 2.5 % quantile stands at place 2.45 of 99
        ([0.1] * 97 + [-0.1] * 2, 6 / 100, "no different"),
        ([0.1] * 50 + [-0.1] * 49, 1.0, "no different"),  # 2 * 50 / 100
        ([0.0] * 99, 1.0, "no different"),  # 2 * 100 / 100, and no probability is above 1
    ],
)
def test_a_verdict_is_that_of_hand_arithmetic(deltas: list[float], p_value: float, expected: str | None) -> None:
    delta = paired(deltas)
    assert delta.p_value == pytest.approx(p_value, abs=1e-12)
    assert verdict(delta, drawn_of(deltas)) == expected


def test_a_difference_that_its_interval_does_not_hold_is_none() -> None:
    # Percentiles need not: here every resample is above 0, and the difference itself is not.
    assert verdict(replace(paired([0.1] * 99), value=-0.01), drawn_of([0.1] * 99)) == "no different"


def test_names_stand_in_place_of_letters() -> None:
    result = compared(names={"A": "yolo11n", "C": " big "})
    document = result.to_dict()
    assert document["inputs"]["baseline"]["name"] == "yolo11n"
    assert [one["pred"]["name"] for one in document["comparisons"]] == ["B", "big"]
    text = lay_out(build_report(result, ReportOptions(width=160)), ReportOptions(width=160))
    assert text.splitlines()[-1].startswith("big scores higher than yolo11n: AP +0.248")
    for expected in ("yolo11n (baseline)", "big - yolo11n", "big against yolo11n", "IoU in yolo11n", "AP of big"):
        assert expected in text
    assert " A " not in text and " C " not in text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"D": "x"}, "cannot name side 'D'; the sides are A, B, C"),
        ({"a": "x"}, "cannot name side 'a'"),
        ({"A": " "}, "the name of side A is empty"),
        ({"A": "x", "C": "x"}, "sides A and C have the same name 'x'"),
        ({"A": "B"}, "sides A and B have the same name 'B'"),
    ],
)
def test_names_that_name_nothing_or_two_things_are_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compared(names=names)


def test_wrong_names_are_told_before_anything_is_read() -> None:
    with pytest.raises(UsageError, match="cannot name side 'X'"):
        compare("no-such-gt.json", "no-such-a.json", "no-such-b.json", names={"X": "x"})


def test_the_sides_beyond_the_letters_have_numbers() -> None:
    assert side_names(28, {"27": "last but one"})[24:] == ("Y", "Z", "last but one", "28")


def test_a_single_object_does_not_lead_the_classes_that_moved() -> None:
    def delta(name: str, n: int, value: float) -> Delta:
        return Delta(metric="AP", class_name=name, baseline=0.5, value=value, n=n)

    # 0.5 * 1 = 0.5; 0.1 * 10 = 1; 0.1 * 20 = 2.
    rows = (delta("rare", 1, 1.0), delta("usual", 100, 0.4), delta("frequent", 400, 0.6), delta("same", 9, 0.5))
    versus = replace(compared().others[0], deltas=rows)
    assert [row.class_name for row in versus.movers()] == ["frequent", "usual", "rare"]


def told(*verdicts: tuple[Verdict | None, float]) -> str:
    """The last line of a report on several predictions, with these verdicts and differences of AP."""
    result = compared()
    model = result.others[0]
    drawn = None if verdicts[0][0] is None else compare(*truth_and_two(), options=CompareOptions(bootstrap=9)).bootstrap
    others = []
    for i, (outcome, delta) in enumerate(verdicts):
        row = replace(model.deltas[0], baseline=0.0, value=delta, interval=(-0.5, 0.25), probability=0.75)
        contender = replace(model.contender, name="BCDEFG"[i])
        others.append(replace(model, verdict=outcome, deltas=(row,), contender=contender))
    return last_line(replace(result, others=tuple(others), bootstrap=drawn))


def truth_and_two() -> tuple[BoxTable, BoxTable, BoxTable]:
    truth, pred = truth_of(3, 1)
    return truth, pred, pred


BETTER, WORSE, SAME = Verdict.BETTER, Verdict.WORSE, Verdict.NO_DIFFERENT
CI = "95 % CI -0.500 to +0.250, p = 0.25"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([(BETTER, 0.125)], f"B is better than A: AP +0.125 ({CI})"),
        ([(WORSE, -0.0004)], f"B is worse than A: AP -0.0004 ({CI})"),
        ([(SAME, 0.002)], f"B is not significantly different from A: AP +0.002 ({CI})"),
        ([(SAME, 0.0)], f"B is not significantly different from A: AP 0.000 ({CI})"),
        ([(SAME, 0.5), (BETTER, 0.25)], f"C is better than A: AP +0.250 ({CI}); B no different +0.500"),
        (
            [(WORSE, -0.5), (BETTER, 0.25), (BETTER, 0.5)],
            f"D is better than A: AP +0.500 ({CI}); C better +0.250; B worse -0.500",
        ),
        (
            [(BETTER, 0.5), (WORSE, -0.1), (WORSE, -0.2), (SAME, 0.1), (WORSE, -0.4)],
            f"B is better than A: AP +0.500 ({CI}); 4 others: 1 no different, 3 worse",
        ),
        ([(None, 0.0)], "B scores the same as A: AP 0.000 (significance not tested)"),
        ([(None, -0.25)], "B scores lower than A: AP -0.250 (significance not tested)"),
        ([(None, math.nan)], "No verdict: AP is undefined"),
        ([(None, math.nan), (None, 0.25)], "C scores higher than A: AP +0.250 (significance not tested); B n/a"),
    ],
)
def test_the_last_line_has_the_verdict(verdicts: list[tuple[Verdict | None, float]], expected: str) -> None:
    assert told(*verdicts) == expected


def test_unequal_ground_truths_are_refused_with_all_that_differs() -> None:
    first = evaluate(TRUTH, [DOG, CAT])
    second = evaluate(TRUTH[1:], [DOG, CAT], iou=[0.5])
    with pytest.raises(DataError) as caught:
        compare_results([first, second], CompareOptions(), version="0.1.0")
    message = str(caught.value)
    assert message.startswith("error[comparison-unequal]: pred: iou: the rule iou is '0.5', and '0.5:0.95:0.05'")
    assert "the fingerprint of the ground truth is 'sha-256-128:" in message


def test_bare_arrays_may_have_images_without_ground_truth() -> None:
    truth = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    boxes = ([0, 0, 10, 10], [50, 0, 60, 10])
    found, elsewhere = (BoxTable.from_arrays([0, 1], [0, 0], [one, one], score=[0.9, 0.1]) for one in boxes)
    result = compare(truth, found, elsewhere, options=CompareOptions(bootstrap=None))
    assert [str(one.kind) for one in result.others[0].changes] == ["lost"]


def test_predictions_for_different_images_have_no_intervals_by_default() -> None:
    results = [evaluate(TRUTH, [DOG], images=[f"only of {side}"]) for side in "ab"]
    result = compare_results(results, CompareOptions(), version="0.1.0")
    assert result.bootstrap is None
    (note,) = (one for one in result.findings if one.code == "bootstrap-skipped")
    assert note.message == "pred: no confidence intervals: the predictions are for different images"


class CountedPath(os.PathLike[str]):
    """A path that counts how often it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.asked = path, 0

    def __fspath__(self) -> str:
        self.asked += 1
        return str(self.path)


def test_the_ground_truth_is_read_once(tmp_path: Path) -> None:
    path, pred = write_pair(tmp_path)
    gt = CountedPath(path)
    assert len(compare(gt, pred, pred, pred, options=CompareOptions(bootstrap=None)).others) == 2
    assert gt.asked == 1


def test_resamples_and_slices_are_asked_for_as_of_an_evaluation(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    part = Slice(name="all", patterns=("*",))
    asked = compare(gt, pred, pred, bootstrap=9, slices=[part]).to_dict()
    assert asked == compare(gt, pred, pred, options=CompareOptions(bootstrap=9, slices=[part])).to_dict()
    assert compare(gt, pred, pred, bootstrap=0).bootstrap is None


def test_results_in_memory_are_compared_as_the_files_that_they_are_of(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    of_files = compare(gt, pred, pred, bootstrap=9).to_dict()
    result = jaccard_eval.evaluate(gt, pred)
    assert compare(result, result, bootstrap=9).to_dict() == of_files
    assert compare(None, [result, result], bootstrap=9).to_dict() == of_files
    with pytest.raises(UsageError, match="iou: results have rules and options of their own"):
        compare(result, result, iou=0.5)
    result.save(tmp_path / "run.npz")
    assert (
        compare(tmp_path / "run.npz", result, bootstrap=9).others[0].deltas
        == compare(gt, pred, pred, bootstrap=9).others[0].deltas
    )


def test_one_set_of_predictions_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="two or more predictions, got 1"):
        compare_results([evaluate(TRUTH, [DOG])], CompareOptions(), version="0.1.0")


def test_the_iou_for_boxes_is_one_of_the_protocol() -> None:
    assert compared(box_iou=0.75).box_iou == 0.75
    with pytest.raises(UsageError, match=r"IoU 0\.33 is not evaluated"):
        compared(box_iou=0.33)
