"""Label maps whose sides number classes differently: found by the pixels that values share, and mapped."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import DataError, PixelsResult, ReadOptions, UsageError, evaluate, pixels
from jaccard_eval.features.pixels.counting import RULES

PAIRS = ((7, 0), (8, 1), (11, 2))  # labelId and trainId
BANDS = np.repeat(np.arange(4, dtype=np.uint8), 16)[:, None] * np.ones((1, 40), dtype=np.uint8)  # (64, 40)


def poor(classes: np.ndarray, seed: int = 1) -> np.ndarray:
    """Return predictions of which every tenth pixel has another class."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(classes.shape) < 0.1, rng.permuted(classes), classes)


def compare(folder: Path, gt: np.ndarray, pred: np.ndarray, **options: object) -> PixelsResult:
    for name, values in (("gt.png", gt), ("pred.png", pred)):
        Image.fromarray(values.astype(np.uint8)).save(folder / name)
    return pixels(folder / "gt.png", folder / "pred.png", **options)  # type: ignore[arg-type]


SAME = {value: value for value in range(4)}
NUMBERINGS = {  # of the ground truth, and of the predictions, for the classes 0 to 3
    "off by one": (SAME, {value: value + 1 for value in range(4)}),
    "Cityscapes": ({0: 7, 1: 8, 2: 11, 3: 26}, {0: 0, 1: 1, 2: 2, 3: 13}),
    "Cityscapes, the other way": ({0: 0, 1: 1, 2: 2, 3: 13}, {0: 7, 1: 8, 2: 11, 3: 26}),
    "in tens, background alike": (SAME, {0: 0, 1: 10, 2: 20, 3: 30}),
    "another order": (SAME, {0: 2, 1: 3, 2: 1, 3: 0}),
    "0 and 1 against 0 and 255": ({0: 0, 1: 1, 2: 1, 3: 0}, {0: 0, 1: 255, 2: 255, 3: 0}),
    "0 and 255 against 0 and 1": ({0: 0, 1: 255, 2: 255, 3: 0}, {0: 0, 1: 1, 2: 1, 3: 0}),
    "0 and 128 against 0 and 255": ({0: 0, 1: 128, 2: 128, 3: 0}, {0: 0, 1: 255, 2: 255, 3: 0}),
    "0 and 100 against 0 and 255": ({0: 0, 1: 100, 2: 100, 3: 0}, {0: 0, 1: 255, 2: 255, 3: 0}),
    "0, 1 and 2 against greys": ({0: 0, 1: 1, 2: 2, 3: 0}, {0: 0, 1: 127, 2: 254, 3: 0}),
}


def numbered(classes: np.ndarray, by: dict[int, int]) -> np.ndarray:
    return np.vectorize(by.get)(classes)


@pytest.mark.parametrize("name", NUMBERINGS)
def test_another_numbering_stops_and_the_map_of_the_message_gives_the_right_number(name: str, tmp_path: Path) -> None:
    first, second = NUMBERINGS[name]
    gt, found = numbered(BANDS, first), poor(BANDS)
    right = compare(tmp_path, gt, numbered(found, first))["mIoU"]
    assert right > 0.7
    with pytest.raises(DataError, match="class-mapping") as caught:
        compare(tmp_path, gt, numbered(found, second))
    (error,) = caught.value.findings
    assert error.fix is not None
    assert error.fix.after == pytest.approx(right, abs=1e-12)
    advised = str(error.fix.options["class_map"])
    assert (advised in RULES) == name.startswith(("off by one", "Cityscapes"))
    pairs = dict(pair.split("=") for pair in advised.split(",")) if advised not in RULES else advised
    for given in (pairs, "auto"):
        assert compare(tmp_path, gt, numbered(found, second), class_map=given)["mIoU"] == right
    # What was named is not doubted.
    assert compare(tmp_path, gt, numbered(found, second), class_map="id")["mIoU"] < right


MERGED = {  # numbers of the ground truth, of the predictions, whether it stops, and the advice, for the classes 0 to 3
    "one lower, the last two one": ({0: 1, 1: 2, 2: 3, 3: 4}, {0: 0, 1: 1, 2: 2, 3: 2}, True, ("id+1", "4=3")),
    "one lower without a gap": ({0: 1, 1: 2, 2: 3, 3: 4}, {0: 0, 1: 1, 2: 1, 3: 2}, True, ("0=1,1=2,2=4", "3=2")),
    "one lower with a gap": ({0: 1, 1: 2, 2: 3, 3: 4}, {0: 0, 1: 1, 2: 1, 3: 3}, True, ("id+1", "3=2")),
    "background stays": (SAME, {0: 0, 1: 0, 2: 1, 3: 1}, False, ("1=2", "3=2")),
    # What lies in the background is missed: it is not one class with it.
    "one lower, the first is background": (SAME, {0: 0, 1: 0, 2: 1, 3: 2}, True, ("1=2,2=3", None)),
    "one fits": (SAME, {0: 0, 1: 1, 2: 1, 3: 2}, False, ("2=3", None)),
}


@pytest.mark.parametrize("name", MERGED)
def test_classes_that_predictions_have_as_one_are_found_and_the_advice_measures_them_as_one(
    name: str, tmp_path: Path
) -> None:
    first, second, stops, (class_map, gt_class_map) = MERGED[name]
    # A background that is as large as a class could be ADE20K's, which no prediction means.
    bands = BANDS if min(first.values()) else np.repeat(np.arange(4), (40, 8, 8, 8))[:, None] * np.ones((1, 40), int)
    gt, found = numbered(bands, first), poor(numbered(bands, second))
    if stops:
        with pytest.raises(DataError, match="class-mapping") as caught:
            compare(tmp_path, gt, found)
        (finding,) = caught.value.findings
    else:
        findings = compare(tmp_path, gt, found).findings
        (finding,) = (one for one in findings if one.code == "class-mapping")
    options = {"class_map": class_map} | ({"gt_class_map": gt_class_map} if gt_class_map else {})
    assert finding.fix is not None and finding.fix.options == options
    goals = {value: value + 1 for value in range(4)} if class_map == "id+1" else pairs_of(class_map)
    truth = np.vectorize(lambda value: pairs_of(gt_class_map or "").get(value, value))(gt)
    meant = np.vectorize(lambda value: goals.get(value, value))(found)
    ious = [
        ((truth == value) & (meant == value)).sum() / ((truth == value) | (meant == value)).sum()
        for value in np.union1d(truth, meant).tolist()
    ]
    assert finding.fix.after == pytest.approx(np.mean(ious), abs=1e-12)
    advised = {option: given if given in RULES else pairs_of(given) for option, given in options.items()}
    assert compare(tmp_path, gt, found, **advised)["mIoU"] == finding.fix.after
    # What was merged is not doubted again.
    again = compare(tmp_path, gt, found, **advised)
    assert not [one for one in again.findings if one.code == "class-mapping"]


def pairs_of(text: str) -> dict[int, int]:
    return {int(value): int(goal) for value, goal in (pair.split("=") for pair in text.split(",") if pair)}


def test_networks_that_are_poor_or_untrained_never_stop(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for seed in range(40):
        n = int(rng.integers(2, 8))
        gt = np.kron(rng.integers(0, n, (6, 8)), np.ones((8, 8), dtype=np.int64))
        kinds = {
            "constant": np.full_like(gt, int(rng.integers(0, n))),
            "noise": rng.integers(0, n, gt.shape),
            "one class for another": np.where(gt == 0, n - 1, gt),
            "poor": poor(gt, seed),
            "blocks": np.kron(rng.integers(0, n, (6, 8)), np.ones((8, 8), dtype=np.int64)),
        }
        for pred in kinds.values():
            compare(tmp_path, gt, pred)  # raises where it stops


def test_arrays_warn_and_a_map_is_part_of_the_signature() -> None:
    result = pixels([BANDS], [BANDS + 1])
    assert [str(f.severity) for f in result.findings if f.code == "class-mapping"] == ["warning"]
    mapped = pixels([BANDS], [BANDS + 1], class_map={1: 0, 2: 1, 3: 2, 4: 3})
    assert mapped["mIoU"] == 1.0
    assert "|class_map=1=0,2=1,3=2,4=3|" in mapped.signature
    assert "class_map" not in result.signature


@pytest.mark.parametrize("given", ["contiguous", {"road": "sky"}])
@pytest.mark.parametrize("option", ["class_map", "gt_class_map"])
def test_what_is_no_map_of_values_is_refused(option: str, given: object) -> None:
    with pytest.raises(UsageError, match=f"{option} of label maps"):
        pixels([BANDS], [BANDS], **{option: given})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="gt_class_map of label maps"):  # which is what the other side is judged by
        pixels([BANDS], [BANDS], gt_class_map="auto")


def test_a_rule_by_name_is_its_pairs_and_stays_when_an_image_has_few_classes() -> None:
    labels = np.array([[7, 7, 8, 11, 33, 4]])
    # Of Cityscapes' labels, 4 is not evaluated: 255. By hand: of 7, 8, 11, 33 the trainIds are 0, 1, 2, 18.
    assert pixels([labels], [[[0, 0, 1, 2, 18, 255]]], gt_class_map="labelIds-trainIds")["mIoU"] == 1.0
    back = pixels([labels], [[[0, 0, 1, 2, 18, 4]]], class_map="trainIds-labelIds")
    assert back["mIoU"] == 4 / 6  # the wall's trainId is 4, so that it means 13: neither 4 nor 13 is found
    assert "|class_map=trainIds-labelIds|" in back.signature
    shifted = pixels([[[1, 2, 255]]], [[[0, 1, 255]]], class_map="id+1", ignore=[255])
    assert shifted["mIoU"] == 1.0
    assert [f.code for f in shifted.findings] == []


def test_one_folder_for_both_sides_is_compared_with_itself(tmp_path: Path) -> None:
    Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / "a.png")
    result = pixels(tmp_path, tmp_path)
    assert result["mIoU"] == 1.0
    assert [finding.code for finding in result.findings if finding.severity == "warning"] == ["pred-copies-gt"]


def test_values_of_the_ground_truth_are_merged() -> None:
    # By hand: 24 and 25 are one class of four pixels, of which three are found; 0 has two, and one false alarm.
    gt, pred = [[24, 24, 25, 25, 0, 0]], [[24, 24, 24, 0, 0, 0]]
    result = pixels([gt], [pred], gt_class_map={25: 24})
    assert result["IoU[class=24]"] == 3 / 4
    assert result["mIoU"] == (3 / 4 + 2 / 3) / 2
    assert "|gt_class_map=25=24|" in result.signature


def test_labels_that_the_benchmark_does_not_evaluate_are_advised_away_with_the_measured_number(tmp_path: Path) -> None:
    gt = numbered(BANDS, {0: 7, 1: 8, 2: 11, 3: 4})
    pred = poor(numbered(BANDS, {0: 0, 1: 1, 2: 2, 3: 0}))
    with pytest.raises(DataError, match="class-mapping") as caught:
        compare(tmp_path, gt, pred)
    (fix,) = (finding.fix for finding in caught.value.findings)
    assert fix is not None
    assert fix.options == {"gt_class_map": "labelIds-trainIds", "ignore": "255"}
    kept = gt != 4
    ious = [(kept & (gt == a) & (pred == b)).sum() / (kept & ((gt == a) | (pred == b))).sum() for a, b in PAIRS]
    assert fix.after == pytest.approx(np.mean(ious), abs=1e-12)
    advised = compare(tmp_path, gt, pred, gt_class_map="labelIds-trainIds", ignore=[255])
    assert advised["mIoU"] == fix.after


@pytest.mark.parametrize("mask", [1, 255])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_probabilities_as_greys_stop_at_a_mask_and_the_advice_takes_the_bright_ones(
    mask: int, suffix: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    truth = BANDS == 1
    greys = np.where(poor(BANDS) == 1, rng.integers(128, 256, BANDS.shape), rng.integers(0, 128, BANDS.shape))
    right = pixels([truth * 1], [(greys > 127) * 1])["mIoU"]
    with pytest.raises(DataError, match=f"grey-{mask}") as caught:
        compare(tmp_path, truth * mask, greys)
    (fix,) = (finding.fix for finding in caught.value.findings)
    assert fix is not None and fix.after == pytest.approx(right, abs=1e-12)
    assert compare(tmp_path, truth * mask, greys, class_map=fix.options["class_map"])["mIoU"] == fix.after
    # What is not brighter where the object is, is no probability of it.
    assert compare(tmp_path, truth * mask, np.roll(greys, 30, axis=0))["mIoU"] < 0.1
    # JPEG keeps what is bright, and no value.
    Image.fromarray((truth * 255).astype(np.uint8)).save(tmp_path / f"mask.{suffix}")
    sides = tmp_path / f"mask.{suffix}", tmp_path / "pred.png"
    if suffix == "jpg":
        with pytest.raises(DataError, match=r"map-lossy.*gt_class_map=.grey-255"):
            pixels(*sides, class_map="grey-255")
    Image.fromarray(greys.astype(np.uint8)).save(sides[1])
    assert pixels(*sides, gt_class_map="grey-255", class_map="grey-255")["mIoU"] == pytest.approx(right, abs=1e-12)


def test_labels_of_cityscapes_that_nobody_evaluates_are_warned_of_with_the_measured_number(tmp_path: Path) -> None:
    gt, found = numbered(BANDS, {0: 7, 1: 8, 2: 11, 3: 4}), poor(numbered(BANDS, {0: 7, 1: 8, 2: 11, 3: 7}))
    for folder, name, values in (("gt", "ulm_1_gtFine_labelIds.png", gt), ("pred", "ulm_1_pred.png", found)):
        (tmp_path / folder).mkdir()
        Image.fromarray(values.astype(np.uint8)).save(tmp_path / folder / name)
    sides = tmp_path / "gt", tmp_path / "pred"
    (finding,) = pixels(*sides).findings
    assert (finding.code, str(finding.severity)) == ("map-void", "warning")
    kept = gt != 4
    ious = [(kept & (gt == a) & (found == a)).sum() / (kept & ((gt == a) | (found == a))).sum() for a in (7, 8, 11)]
    assert finding.fix is not None and finding.fix.after == pytest.approx(np.mean(ious), abs=1e-12)
    advised = pixels(*sides, gt_class_map="labelIds-trainIds", class_map="labelIds-trainIds", ignore=[255])
    assert advised["mIoU"] == finding.fix.after
    assert not [note for note in advised.findings if note.code == "map-void"]


def test_zero_that_no_prediction_means_is_ignored_by_the_advice(tmp_path: Path) -> None:
    # As ADE20K has it: 0 is of no class, and models number the others from 0.
    gt = numbered(BANDS, {0: 1, 1: 2, 2: 3, 3: 4})
    gt[:2] = 0
    found = poor(BANDS)
    for folder, values in (("gt", gt), ("pred", found)):
        (tmp_path / folder).mkdir()
        Image.fromarray(values.astype(np.uint8)).save(tmp_path / folder / "a.png")
    sides = tmp_path / "gt", tmp_path / "pred"
    with pytest.raises(DataError, match="class-mapping") as caught:
        pixels(*sides)
    fix = caught.value.findings[0].fix
    kept = gt != 0
    ious = [
        (kept & (gt == a + 1) & (found == a)).sum() / (kept & ((gt == a + 1) | (found == a))).sum() for a in range(4)
    ]
    assert fix is not None and fix.options == {"class_map": "id+1", "ignore": "0"}
    assert fix.after == pytest.approx(np.mean(ious), abs=1e-12)
    assert pixels(*sides, class_map="id+1", ignore=[0])["mIoU"] == fix.after == pixels(*sides, reduce_zero="gt")["mIoU"]
    # Both sides reduced, which the predictions need no more.
    with pytest.raises(DataError, match="class-mapping") as caught:
        pixels(*sides, reduce_zero="both")
    fix = caught.value.findings[0].fix
    assert fix is not None and (fix.options, fix.after) == (
        {"class_map": "id+1"},
        pytest.approx(np.mean(ious), abs=1e-12),
    )
    assert pixels(*sides, reduce_zero="both", class_map="id+1")["mIoU"] == pytest.approx(fix.after, abs=1e-12)


def test_no_value_means_void(tmp_path: Path) -> None:
    # A model has a class for what the ground truth does not judge.
    gt, found = numbered(BANDS, SAME | {3: 255}), numbered(BANDS, SAME | {3: 100})
    result = compare(tmp_path, gt, found)
    assert [one.code for one in result.findings if one.code == "class-mapping"] == []


def test_auto_names_its_evidence(tmp_path: Path) -> None:
    first, second = NUMBERINGS["Cityscapes"]
    result = compare(tmp_path, numbered(BANDS, first), numbered(poor(BANDS), second), class_map="auto")
    (note,) = (finding for finding in result.findings if finding.code == "class-map-auto")
    assert f"{result['mIoU']:.4f} with 0=7,1=8,2=11,13=26" in str(note)
    assert "trainIds-labelIds" in str(note)
    kept = compare(tmp_path, BANDS, poor(BANDS), class_map="auto")
    assert "as given" in str([str(finding) for finding in kept.findings if finding.code == "class-map-auto"])


def test_a_mask_of_0_and_255_stops_where_the_truth_marks_void_with_255(tmp_path: Path) -> None:
    gt = numbered(BANDS, {0: 0, 1: 1, 2: 1, 3: 255})
    found = numbered(BANDS, {0: 0, 1: 1, 2: 1, 3: 0})
    with pytest.raises(DataError, match=r"class-mapping.*255=1"):
        compare(tmp_path, gt, found * 255)
    assert compare(tmp_path, gt, found * 255, class_map={255: 1}, ignore=[255])["mIoU"] == 1.0


@pytest.mark.parametrize(
    ("values", "also", "is_classes"),
    [
        ((1, 1, 2), (), True),
        ((1, 3, 2), (), False),
        ((255, 255, 255), (), True),  # how images store 0 and 1
        ((1, 1, 2), (3,), True),  # one that only the predictions have
        ((1, 1, 255), (), True),
        ((1, 2, 255), (), True),  # in one piece each, and void, which no map of objects has
    ],
)
def test_label_maps_given_to_evaluate_lead_to_pixels_and_maps_of_objects_do_not(
    values: tuple[int, int, int], also: tuple[int, ...], is_classes: bool, tmp_path: Path
) -> None:
    image = np.zeros((40, 40), dtype=np.uint8)
    image[2:10, 2:10], image[20:30, 2:10], image[2:30, 20:30] = values
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(image).save(tmp_path / side / "a.png")
        image[29, 20:30] = 0  # of equal maps it is said that the labels are given twice
        image[35, : len(also)] = also
    if is_classes:
        with pytest.raises(DataError, match=r"score-missing(?s:.)*compare their pixels with pixels\(gt, pred\)"):
            evaluate(tmp_path / "gt", tmp_path / "pred")
    else:  # objects without scores have a protocol: one of three lost 10 of its 280 pixels, and is found
        result = evaluate(tmp_path / "gt", tmp_path / "pred")
        assert (result.protocol.name, result["TP[iou=0.5]"], result["FP[iou=0.5]"]) == ("cells", 3, 0)
    result = evaluate(tmp_path / "gt", tmp_path / "pred", pred_options=ReadOptions(assume_score=1.0))
    (assumed,) = (finding for finding in result.findings if finding.code == "score-assumed")
    assert (assumed.severity == "warning") == is_classes
