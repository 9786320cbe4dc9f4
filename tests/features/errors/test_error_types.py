import numpy as np
import pytest
from pictures import Picture, det, evaluate, gt

from jaccard_eval.features.errors import ErrorReport, ErrorType

HALF = 51 / 101  # one of two objects found first: precision 1 at the 51 recall points up to 1/2


def report(truth: list[Picture], found: list[Picture], **options: object) -> ErrorReport:
    errors = evaluate(truth, found, errors=True, **options).errors
    assert errors is not None
    return errors


def types(truth: list[Picture], found: list[Picture], **options: object) -> dict[str, ErrorType]:
    return {one.name: one for one in report(truth, found, **options).types}


def counts(truth: list[Picture], found: list[Picture], **options: object) -> dict[str, int]:
    return {name: one.count for name, one in types(truth, found, **options).items() if one.count}


DOG, CAT = gt("dog 0 0 10 10"), gt("cat 50 0 10 10")


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (det("dog 50 0 10 10", 0.5), "classification"),
        (det("dog 0 5 10 10", 0.5), "localisation"),  # IoU 50 / 150
        (det("dog 50 5 10 10", 0.5), "both"),
        (det("dog 80 80 10 10", 0.5), "background"),
        (det("dog 0 9 10 10", 0.5), "background"),  # IoU 10 / 190 < .1
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_false_positive_has_one_type(found: Picture, name: str) -> None:
    assert counts([DOG, CAT], [found]).get(name) == 1


def test_a_second_detection_of_a_box_is_a_duplicate() -> None:
    found = [det("dog 0 0 10 10", 0.9), det("dog 0 0 10 10", 0.8)]
    assert counts([DOG], found) == {"duplicate": 1}


def test_another_class_in_the_place_comes_before_a_duplicate_as_in_tide() -> None:
    truth = [DOG, gt("cat 0 0 10 10")]
    found = [det("dog 0 0 10 10", 0.9), det("dog 0 0 10 10", 0.8)]
    assert counts(truth, found) == {"classification": 1}


def test_a_box_that_a_repaired_detection_would_match_is_not_missed() -> None:
    assert counts([DOG], [det("dog 0 5 10 10", 0.5)]) == {"localisation": 1}
    assert counts([DOG], []) == {"missed": 1}


def test_ignored_boxes_make_no_errors() -> None:
    assert counts([gt("dog 0 0 10 10", crowd=True)], [det("dog 0 0 10 10", 0.5)]) == {}
    assert counts([DOG, gt("cat 50 0 10 10", crowd=True)], [det("dog 50 0 10 10", 0.5)]) == {
        "background": 1,
        "missed": 1,
    }


def test_pooled_classes_have_no_errors_of_classification() -> None:
    found = [det("dog 0 0 10 10", 0.9), det("cat 0 0 10 10", 0.8)]
    assert counts([DOG], found, class_agnostic=True) == {"duplicate": 1}


@pytest.mark.parametrize("names", [("dog", "cat"), ("cat", "dog")])
def test_what_is_not_there_gains_nothing_where_equal_scores_of_pooled_classes_stand_by_class(
    names: tuple[str, str],
) -> None:
    # In an image they stand by class, and not in the order of the file: AP is 1 or 1/2, and so it stays.
    found = [det(f"{names[0]} 0 0 10 10", 0.5), det(f"{names[1]} 80 80 10 10", 0.5)]
    kinds = types([DOG], found, class_agnostic=True)
    assert [kind.gain for kind in kinds.values() if not kind.count] == [0.0] * 5


def test_repairs_give_back_what_hand_arithmetic_says() -> None:
    truth = [DOG, CAT, gt("dog 100 0 10 10", "b")]
    found = [
        det("dog 0 0 10 10", 0.9),
        det("dog 50 0 10 10", 0.8),  # a cat
        det("dog 0 0 10 10", 0.7),  # again
        det("dog 100 4 10 10", 0.6, "b"),  # IoU 60 / 140
    ]
    # As it is, dogs have AP 51/101 and cats 0. The cat repaired: 1 and 51/101. The place repaired: dogs are found first
    # and fourth, with precision 1/2 at the other 50 recall points. Removing the duplicate alone changes nothing.
    gains = {name: one.gain for name, one in types(truth, found).items()}
    assert report(truth, found).ap == pytest.approx(HALF / 2, abs=1e-12)
    assert gains["classification"] == pytest.approx(1 / 2, abs=1e-12)
    assert gains["localisation"] == pytest.approx((50 / 101) * (1 / 2) / 2, abs=1e-12)
    assert gains["duplicate"] == pytest.approx(0, abs=1e-12)
    assert gains["missed"] == 0


def test_a_box_is_repaired_by_the_best_detection_alone() -> None:
    found = [det("dog 0 5 10 10", 0.5), det("dog 5 0 10 10", 0.9)]
    # Both aim at the dog: the better one finds it, the other one goes.
    assert types([DOG], found)["localisation"].gain == pytest.approx(1, abs=1e-12)


def test_missed_boxes_are_taken_out_of_the_ground_truth() -> None:
    truth = [DOG, gt("dog 50 0 10 10")]
    assert types(truth, [det("dog 0 0 10 10", 0.5)])["missed"].gain == pytest.approx(1 - HALF, abs=1e-12)


def test_false_positives_and_misses_together_are_all_that_is_lost() -> None:
    found = [det("dog 80 80 10 10", 0.9), det("dog 0 0 10 10", 0.8)]
    one = report([DOG], found)
    assert one.ap == pytest.approx(1 / 2, abs=1e-12)
    assert (one.false_positives.count, one.false_positives.gain) == (1, pytest.approx(1 / 2, abs=1e-12))
    assert (one.false_negatives.count, one.false_negatives.gain) == (0, 0)


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
def test_every_false_positive_has_a_type_and_ap_is_that_of_the_evaluation(protocol: str) -> None:
    rng = np.random.default_rng(1)
    truth = [gt(f"{'dc'[i % 2]} {x} {y} 20 20", str(i // 4)) for i, (x, y) in enumerate(rng.uniform(0, 60, (40, 2)))]
    found = [
        det(f"{'dc'[i % 2]} {x} {y} 20 20", round(s, 1), str(i // 8))
        for i, (x, y, s) in enumerate(zip(*rng.uniform(0, 60, (2, 80)), rng.random(80), strict=True))
    ]
    result = evaluate(truth, found, errors=True, protocol=protocol)
    assert result.errors is not None
    assert result.errors.ap == pytest.approx(result["AP50"], abs=1e-12)
    assert sum(one.count for one in result.errors.types[:5]) == result.errors.false_positives.count
    assert result.errors.false_positives.count == result.matches["fp"][:, 0].sum()
    assert result.errors.false_negatives.count == result.missed["missed"][:, 0].sum()


def test_errors_of_nothing_are_undefined() -> None:
    one = report([], [], names=["dog"])
    assert np.isnan(one.ap) and all(np.isnan(kind.gain) for kind in one.types)
    assert one.thresholds == {}


def test_a_class_that_is_wholly_missed_stays_in_the_mean() -> None:
    # Dogs: the first of two detections is false, so that AP50 is 1/2. Cats: one object, which nothing finds. Found,
    # cats have 1: the mean of both rises from 1/4 to 3/4. Without the cats there is no mean of two.
    truth = [gt("dog 0 0 10 10"), gt("cat 50 0 10 10")]
    found = evaluate(truth, [det("dog 80 80 5 5", 0.9), det("dog 0 0 10 10", 0.8)], errors=True, iou=(0.5,)).errors
    assert found.ap == pytest.approx(1 / 4)
    missed = found.types[-1]
    assert (missed.name, missed.gain) == ("missed", pytest.approx(1 / 2))
    assert found.false_negatives.gain == pytest.approx(1 / 2)


def test_detections_of_another_class_stand_by_their_images_among_equal_scores() -> None:
    # Relabelled, the dog on the first image is the first of two cats with one score: AP of cats is 1, not 1/2.
    truth = [gt("cat 0 0 10 10", "a"), gt("dog 50 50 10 10", "a")]
    found = [det("dog 0 0 10 10", 0.5, "a"), det("cat 50 0 10 10", 0.5, "b")]
    types = {one.name: one.gain for one in evaluate(truth, found, errors=True, iou=(0.5,)).errors.types}
    assert types["classification"] == pytest.approx(1 / 2)
