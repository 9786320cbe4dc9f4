"""Mistakes about images, planted into good data: what is said, and that the flag it names restores the true AP."""

import copy
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from planting import run_evaluate, suggested_flags

from jaccard_eval import DataError, EvaluationResult, evaluate
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder

Truth = dict[str, Any]
Results = list[dict[str, Any]]

MEDWASTE = "d2-medwaste"


@dataclass
class Pair:
    """One good pair of COCO files as objects, and its folder to write into."""

    gt: Truth
    pred: Results
    folder: Path

    def renumber(self, new: Callable[[int], int]) -> None:
        """Give the images other ids on both sides.

        Those with predictions keep their order, for it decides among equal scores, and come first and last.
        """
        predicted = sorted({record["image_id"] for record in self.pred})
        others = sorted({image["id"] for image in self.gt["images"]} - set(predicted))
        ids = {key: new(row) for row, key in enumerate((predicted[0], *others, *predicted[1:]))}
        for record in self.gt["images"]:
            record["id"] = ids[record["id"]]
        for record in (*self.gt["annotations"], *self.pred):
            record["image_id"] = ids[record["image_id"]]

    def rename(self, new: Callable[[Any, str], str]) -> None:
        """Give the images of the ground truth other file names."""
        for image in self.gt["images"]:
            image["file_name"] = new(image["id"], image["file_name"])

    def call(self, new: Callable[[Any, str], object]) -> None:
        """Let the predictions call the images otherwise."""
        names = {image["id"]: image["file_name"] for image in self.gt["images"]}
        for record in self.pred:
            record["image_id"] = new(record["image_id"], names[record["image_id"]])

    def evaluate(self, **options: Any) -> EvaluationResult:
        paths = [self.folder / "gt.json", self.folder / "pred.json"]
        for path, content in zip(paths, (self.gt, self.pred), strict=True):
            path.write_text(json.dumps(content))
        return evaluate(*paths, **options)


@pytest.fixture(params=["sample", "cocoapi"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    if request.param == "sample":
        folder = request.getfixturevalue("sample_data") / "coco"
        paths = folder / "gt.json", folder / "better.json"
    else:
        folder = request.getfixturevalue("shared_data")
        entry = json.loads((folder / "EXPECTED.json").read_text())["cocoapi-bbox"]
        paths = folder / entry["gt"], folder / entry["dets"]
    gt, pred = (json.loads(path.read_text()) for path in paths)
    return Pair(gt, pred, tmp_path)


def _text_ids(pair: Pair) -> None:
    pair.call(lambda key, _: str(key))


def _text_ids_beside_numeric_names(pair: Pair) -> None:
    pair.rename(lambda key, _: f"{key:012d}.jpg")
    pair.call(lambda key, _: str(key))


def _counted_from_0(pair: Pair) -> None:
    pair.renumber(lambda row: row + 1)
    pair.call(lambda key, _: key - 1)


def _counted_from_1(pair: Pair) -> None:
    pair.renumber(lambda row: row)
    pair.call(lambda key, _: key + 1)


def _counted_from_0_as_text(pair: Pair) -> None:
    pair.renumber(lambda row: row + 1)
    pair.call(lambda key, _: f"{key - 1:06d}")


@pytest.mark.parametrize(
    ("mistake", "difference", "flag"),
    [
        (_text_ids, "ids are texts on one side and integers on the other", "--match-images id"),
        (_text_ids_beside_numeric_names, "ids are texts on one side", "--match-images id"),
        (_counted_from_0, "prediction ids are one less", "--match-images id+1"),
        (_counted_from_1, "prediction ids are one more", "--match-images id-1"),
        (_counted_from_0_as_text, "prediction ids are one less", "--match-images id+1"),
    ],
)
def test_ids_that_do_not_correspond_are_an_error_with_the_flag_that_mends_it(
    pair: Pair, mistake: Callable[[Pair], None], difference: str, flag: str
) -> None:
    truth = pair.evaluate()["AP"]
    mistake(pair)
    with pytest.raises(DataError) as caught:
        pair.evaluate()
    (error,) = caught.value.findings
    assert error.code == "image-unknown"
    assert difference in error.examples[0].detail
    assert str(error.fix).startswith(f"Rerun with {flag}: ")
    assert pair.evaluate(**_options_of(error))["AP"] == truth


def test_images_of_another_split_beside_ids_as_text_are_left_out_by_the_flag(pair: Pair) -> None:
    truth = pair.evaluate()["AP"]
    _text_ids(pair)
    pair.pred.append(copy.deepcopy(pair.pred[0]) | {"image_id": "999999999"})
    with pytest.raises(DataError) as caught:
        pair.evaluate()
    (error,) = caught.value.findings
    assert str(error.fix).startswith("Rerun with --match-images id --extra-images ignore: ")
    assert pair.evaluate(**_options_of(error))["AP"] == truth


def test_an_image_that_the_ground_truth_lacks_is_not_taken_for_a_shift(pair: Pair) -> None:
    pair.renumber(lambda row: row + 1)
    pair.pred.append(copy.deepcopy(pair.pred[0]) | {"image_id": 0})
    with pytest.raises(DataError, match='extra_images="ignore"') as caught:
        pair.evaluate()
    assert "match_images" not in str(caught.value)


def _decomposed(_: object, name: str) -> str:
    return unicodedata.normalize("NFD", name)


@pytest.mark.parametrize(
    ("gt_name", "pred_name", "strategy", "is_noted"),
    [
        (None, lambda _, name: f"val/{name}", "path", False),
        (None, lambda _, name: rf"C:\data\val\{name}", "path", False),
        (lambda _, name: f"a/{name}", lambda _, name: name.replace("a/", "b/", 1), "basename", False),
        (None, lambda _, name: name.rpartition(".")[0], "stem", False),
        (None, lambda _, name: name.upper(), "case", True),
        (lambda _, name: f"\u00e9_{name}", _decomposed, "case", True),
        (None, lambda key, name: f"{name.replace('.', '_')}.rf.{key:032x}.jpg", "decorated", True),
        (None, lambda key, name: f"{key:08x}-{name}", "decorated", True),
        (lambda key, name: f"{key}/{name}", lambda _, name: name.replace("/", "_"), "decorated", True),
        (lambda key, _: f"{key:012d}.jpg", lambda key, _: f"{key}.jpg", "number", True),
    ],
)  # fmt: skip
def test_other_spellings_of_names_cost_nothing_and_are_noted_where_something_is_overlooked(
    pair: Pair,
    gt_name: Callable[[Any, str], str] | None,
    pred_name: Callable[[Any, str], str],
    strategy: str,
    is_noted: bool,
) -> None:
    truth = pair.evaluate()["AP"]
    if gt_name is not None:
        pair.rename(gt_name)
    pair.call(pred_name)
    result = pair.evaluate()
    assert result["AP"] == truth
    assert result.correspondence.image_strategy == strategy
    assert [one.severity for one in _about_images(result)] == [Severity.NOTE] * is_noted


def test_base_names_shared_by_folders_are_named(pair: Pair) -> None:
    pair.renumber(lambda row: row)
    pair.rename(lambda key, _: f"{'left' if key % 2 else 'right'}/{key // 2}.jpg")
    pair.call(lambda _, name: name.partition("/")[2])
    with pytest.raises(DataError) as caught:
        pair.evaluate()
    (error,) = caught.value.findings
    assert "'right/0.jpg' and 'left/0.jpg'; 'right/1.jpg' and 'left/1.jpg'" in error.examples[0].detail
    assert str(error.fix) == "Include in the names of both sides the folders that distinguish images."


def _shifted_behind(pair: Pair) -> None:
    """Count from 1, in the predictions from 2, and list one image more, so that every id exists."""
    pair.renumber(lambda row: row + 1)
    pair.call(lambda key, _: key + 1)
    pair.gt["images"].append(dict(pair.gt["images"][0], id=len(pair.gt["images"]) + 1, file_name="last.jpg"))


def _shifted_before(pair: Pair) -> None:
    pair.renumber(lambda row: row + 1)
    pair.call(lambda key, _: key - 1)
    pair.gt["images"].append(dict(pair.gt["images"][0], id=0, file_name="first.jpg"))


def _numbers_of_other_images(pair: Pair) -> None:
    """Ids in the order of the list; file names numbered backwards, and their number taken for the id."""
    n = len(pair.gt["images"])
    pair.renumber(lambda row: row + 1)
    pair.rename(lambda key, _: f"{n + 1 - key:05d}.jpg")
    pair.call(lambda key, _: n + 1 - key)


@pytest.mark.parametrize(
    ("mistake", "code", "evidence", "flag"),
    [
        (_shifted_behind, "image-shifted", r"off by one: .* by id \(as matched\), \d\d\.\d% by id-1", "id-1"),
        (_shifted_before, "image-shifted", r"off by one: .* by id \(as matched\), \d\d\.\d% by id\+1", "id+1"),
        (_numbers_of_other_images, "image-number", r"mixed up with the numbers in file names: .*% by number", "number"),
    ],
)
def test_ids_that_exist_on_both_sides_and_mean_other_images_are_a_warning_with_the_flag_that_mends_it(
    pair: Pair, mistake: Callable[[Pair], None], code: str, evidence: str, flag: str
) -> None:
    truth = pair.evaluate()["AP"]
    mistake(pair)
    result = pair.evaluate(match_images="id")
    assert result["AP"] < 0.1 * truth
    (warning,) = _about_images(result)
    assert (warning.severity, warning.code) == (Severity.WARNING, code)
    assert re.search(evidence, warning.message)
    assert str(warning.fix) == f"Rerun with --match-images {flag}."
    assert pair.evaluate(**_options_of(warning))["AP"] == truth


def test_predictions_of_another_split_whose_ids_exist_are_told_from_weak_ones(pair: Pair) -> None:
    ids = [image["id"] for image in pair.gt["images"]]
    other = dict(zip(ids, [*ids[len(ids) // 2 :], *ids[: len(ids) // 2]], strict=True))
    pair.call(lambda key, _: other[key])
    (warning,) = _about_images(pair.evaluate())
    assert (warning.severity, warning.code) == (Severity.WARNING, "image-mismatch")
    assert "probably for a different set of images" in warning.message


def test_the_published_wrong_split_is_named(shared_data: Path) -> None:
    medwaste = shared_data / MEDWASTE
    result = evaluate(medwaste / "data/valid/_annotations.coco.json", medwaste / "output/coco_instances_results.json")
    coverage, mismatch = _about_images(result)
    assert (coverage.code, mismatch.code) == ("image-coverage", "image-mismatch")
    assert "25 of 50 images with objects of predicted classes (50%) have no prediction at all" in coverage.message
    assert "predictions overlap 3 of 70 objects (4.3%" in mismatch.message


def test_a_partial_run_is_named_with_its_share(pair: Pair) -> None:
    order = sorted({record["image_id"] for record in pair.gt["annotations"] if not record["iscrowd"]})
    kept = set(order[: len(order) // 2])
    pair.pred = [record for record in pair.pred if record["image_id"] in kept]
    (warning,) = _about_images(pair.evaluate())
    assert (warning.severity, warning.code) == (Severity.WARNING, "image-coverage")
    assert re.search(
        r"of \d+ images with objects of predicted classes \((?:48|55)%\) have no prediction at all", warning.message
    )
    assert "partial run" in str(warning.fix)


def test_sizes_that_changed_places_are_named_and_the_pictures_restore_them(sample_data: Path, tmp_path: Path) -> None:
    gt = json.loads((sample_data / "coco/gt.json").read_text())
    for image in gt["images"]:
        Image.new("1", (image["width"], image["height"])).save(tmp_path / image["file_name"])
        image["width"], image["height"] = image["height"], image["width"]
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(gt))
    names = ("person", "bicycle", "car", "cat", "dog")
    fractions = sample_data / "yolo/better"
    truth = evaluate(sample_data / "coco/gt.json", fractions, pred_options=ReadOptions(names=names))["AP"]

    doubted = evaluate(path, fractions, pred_options=ReadOptions(names=names))
    assert doubted["AP"] < truth / 2
    (warning,) = (one for one in doubted.findings if one.code == "image-size-transposed")
    right = evaluate(sample_data / "coco/gt.json", fractions, class_agnostic=True)["AP50"]
    assert f"as listed, {right:.3f} with them exchanged" in warning.message
    assert "--pred-images DIR" in str(warning.fix)

    mended = evaluate(path, fractions, pred_options=ReadOptions(names=names, images=ImageFolder(tmp_path)))
    assert mended["AP"] == truth
    (warning,) = (one for one in mended.findings if one.code == "image-size-transposed")
    assert warning.severity == Severity.WARNING
    assert "12 images seem swapped" in warning.message


@pytest.mark.parametrize("written", ["csv/better.csv", "coco/better.json"])
def test_boxes_in_pixels_are_not_doubted_for_sizes_that_changed_places(
    written: str, sample_data: Path, tmp_path: Path
) -> None:
    gt = json.loads((sample_data / "coco/gt.json").read_text())
    for image in gt["images"]:
        image["width"], image["height"] = image["height"], image["width"]
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(gt))
    result = evaluate(path, sample_data / written)
    assert result["AP"] == evaluate(sample_data / "coco/gt.json", sample_data / written)["AP"]  # pixels are pixels
    codes = {one.code for one in result.findings}
    assert "image-size-transposed" in codes
    assert not codes & {"box-axes", "box-encoding", "box-resized", "box-units"}


@pytest.mark.parametrize(
    "pair_name", ["cocoapi-bbox", "d2-medwaste", "sahi-eval", "yfpeng-sample", "hotcoco-edge", "faster-coco-eval-small"]
)
def test_good_public_pairs_give_no_finding_about_images(pair_name: str, shared_data: Path) -> None:
    entry = json.loads((shared_data / "EXPECTED.json").read_text())[pair_name]
    assert _about_images(evaluate(shared_data / entry["gt"], shared_data / entry["dets"])) == []


def _about_images(result: EvaluationResult) -> list[Finding]:
    return [one for one in result.findings if one.code.startswith("image-")]


def _options_of(finding: Finding) -> dict[str, str]:
    """The options that a fix names, as the call takes them."""
    found = re.findall(r"--(match-images|extra-images) ([a-z]+(?:[+-]1)?)", str(finding.fix))
    return {name.replace("-", "_"): value for name, value in found}


def test_images_that_a_ground_truth_does_not_list_count_where_others_are_matched_by_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A table names no image without objects. The detection on c has the best score: without it AP would be 1.
    gt, pred = tmp_path / "gt.csv", tmp_path / "pred.csv"
    gt.write_text("image,class,xmin,ymin,xmax,ymax\na,dog,10,10,60,60\nb,dog,20,20,80,90\n")
    rows = ["c.jpg,dog,10,10,60,60,0.9", "a.jpg,dog,10,10,60,60,0.8", "b.jpg,dog,20,20,80,90,0.7"]
    pred.write_text("\n".join(["image,class,xmin,ymin,xmax,ymax,score", *rows]))
    stopped = run_evaluate(capsys, str(gt), str(pred))
    message = stopped.errors["image-unknown"]
    assert "the others count as images without objects, which this ground truth does not list" in message
    flags = [flag.rstrip(":") for flag in suggested_flags(message)[:4]]
    assert flags == ["--match-images", "stem", "--extra-images", "empty"]
    # Precision is at best 2/3 at every recall.
    assert run_evaluate(capsys, str(gt), str(pred), *flags).ap == pytest.approx(2 / 3)
