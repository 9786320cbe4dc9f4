"""Predictions compared through the public interface: deltas, movers, and what cannot be compared."""

import os
from pathlib import Path

import pytest
from command_line import write_pair
from pictures import det, evaluate, gt

from jaccard_eval import BoxTable, DataError, Slice, UsageError, compare
from jaccard_eval.features.compare.comparison import CompareOptions, compare_results
from jaccard_eval.features.compare.result import ComparisonResult
from jaccard_eval.options import Bootstrap

TRUTH = [gt("dog 0 0 10 10"), gt("dog 50 50 10 10"), gt("cat 20 20 10 10", "b")]
DOG, OTHER_DOG = det("dog 0 0 10 10", 0.9), det("dog 50 50 10 10", 0.8)
CAT = det("cat 20 20 10 10", 0.7, "b")


def compared(**options: float | str) -> ComparisonResult:
    """A finds one dog and the cat, B both dogs and no cat, C everything."""
    runs = ([DOG, CAT], [DOG, OTHER_DOG], [DOG, OTHER_DOG, CAT])
    return compare_results([evaluate(TRUTH, run) for run in runs], CompareOptions(**options), version="0.1.0")  # type: ignore[arg-type]


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
    (versus,) = compare_results(runs, CompareOptions(slices=slices), version="0.1.0").others
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
    assert result.signature.endswith("|bootstrap=50,0.95,0")


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
    assert [one.code for one in result.findings if one.code == "bootstrap-few"] == ["bootstrap-few"]


def test_unequal_ground_truths_are_refused_with_all_that_differs() -> None:
    first = evaluate(TRUTH, [DOG, CAT])
    second = evaluate(TRUTH[1:], [DOG, CAT], iou=[0.5])
    with pytest.raises(DataError) as caught:
        compare_results([first, second], CompareOptions(), version="0.1.0")
    message = str(caught.value)
    assert message.startswith("error[comparison-unequal]: pred: iou: the rule iou is '0.5', and '0.5:0.95:0.05'")
    assert "the fingerprint of the ground truth is 'sha256:" in message


def test_bare_arrays_may_have_images_without_ground_truth() -> None:
    truth = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    boxes = ([0, 0, 10, 10], [50, 0, 60, 10])
    found, elsewhere = (BoxTable.from_arrays([0, 1], [0, 0], [one, one], score=[0.9, 0.1]) for one in boxes)
    assert [str(one.kind) for one in compare(truth, found, elsewhere).others[0].changes] == ["lost"]


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
    assert len(compare(gt, pred, pred, pred).others) == 2
    assert gt.asked == 1


def test_resamples_of_a_comparison_are_asked_for_in_its_options(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bootstrap'"):
        compare(gt, pred, pred, bootstrap=9)  # type: ignore[call-arg]


def test_one_set_of_predictions_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="two or more predictions, got 1"):
        compare_results([evaluate(TRUTH, [DOG])], CompareOptions(), version="0.1.0")


def test_the_iou_for_boxes_is_one_of_the_protocol() -> None:
    assert compared(box_iou=0.75).box_iou == 0.75
    with pytest.raises(UsageError, match=r"IoU 0\.33 is not evaluated"):
        compared(box_iou=0.33)
