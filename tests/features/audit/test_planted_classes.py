"""Mistakes about classes, planted into good data: what is said, and that the flag it names restores the true AP."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from planting import SETS, Pair, run_evaluate, suggested_flags

from jaccard_eval import DataError, Dataset, ReadOptions, evaluate, load
from jaccard_eval.cli.run import run
from jaccard_eval.reading.images import ImageFolder

Loader = Callable[[str], Pair]
SCENE = "padilla-review/data/database"


def _shifted(by: int) -> Callable[[Pair], Callable[[int], int]]:
    return lambda pair: lambda number: number + by


def _counted(start: int) -> Callable[[Pair], Callable[[int], int]]:
    def plant(pair: Pair) -> Callable[[int], int]:
        ids = sorted(one["id"] for one in pair.gt["categories"])
        return lambda number: ids.index(number) + start

    return plant


def _alphabetical(pair: Pair) -> Callable[[int], int]:
    ids = [one["id"] for one in sorted(pair.gt["categories"], key=lambda one: str(one["name"]))]
    return ids.index


RENUMBERED = {  # mistake: how ids are changed, the set, the rule that undoes it
    "ids one too low": (_shifted(-1), "cocoapi", "id+1"),
    "ids one too high": (_shifted(1), "cocoapi", "id-1"),
    "ids of the sample one too low": (_shifted(-1), "sample", "id+1"),
    "ids of the waste one too low": (_shifted(-1), "medwaste", "id+1"),
    "80 indices for 90 ids": (_counted(0), "cocoapi", "contiguous"),
    "80 numbers for 90 ids": (_counted(1), "cocoapi", "contiguous-from-1"),
    "indices of a few categories of COCO": (_counted(0), "sample", "contiguous"),
    "alphabetical": (_alphabetical, "cocoapi", "alphabetical"),
}


@pytest.mark.parametrize("mistake", RENUMBERED)
def test_renumbered_classes_are_named_with_the_rule_that_undoes_it(mistake: str, good_pair: Loader) -> None:
    plant, name, rule = RENUMBERED[mistake]
    pair = good_pair(name)
    true = pair.as_it_came()
    pair.change_classes(plant(pair))
    wrong = pair.evaluate("--class-map", "id")
    assert (wrong.code, wrong.ap < 0.2 * true.ap) == (0, True)
    (warning,) = wrong.warnings("class-mapping")
    assert "overlapping pairs," in warning["message"]
    best = warning["table"][2]
    assert (best[0], float(best[1]) > 0.7) == (rule, True)
    assert suggested_flags(warning["message"]) == ["--class-map", rule]
    for value in (rule, "auto"):
        mended = pair.evaluate("--class-map", value)
        assert mended.ap == true.ap
        assert mended.result["correspondence"]["class_strategy"] == rule
        assert f"|class_map={rule}|" in mended.result["signature"]
        assert mended.warnings("class-mapping") == []


def test_ids_that_are_a_subset_and_yet_wrong_are_named(good_pair: Loader) -> None:
    # 1 to 70 are ids of COCO's categories and, counted, its first 70 categories: those below the first gap agree.
    pair = good_pair("cocoapi")
    ids = sorted(one["id"] for one in pair.gt["categories"])
    pair.pred = [one for one in pair.pred if ids.index(one["category_id"]) + 1 in ids]
    true = pair.evaluate()
    pair.change_classes(lambda number: ids.index(number) + 1)
    wrong = pair.evaluate("--class-map", "id")
    assert wrong.warnings("class-unknown") == []
    (warning,) = wrong.warnings("class-mapping")
    assert suggested_flags(warning["message"]) == ["--class-map", "contiguous-from-1"]
    assert pair.evaluate(*suggested_flags(warning["message"])).ap == pair.evaluate().ap == true.ap


def test_two_classes_that_changed_places_are_named_and_changed_back(good_pair: Loader) -> None:
    pair = good_pair("cocoapi")
    true = pair.as_it_came()
    pair.change_classes(lambda number: {1: 3, 3: 1}.get(number, number))
    (warning,) = pair.evaluate().warnings("class-mapping")
    assert suggested_flags(warning["message"]) == ["--class-map", "1=car,3=person"]
    for value in ("1=car,3=person", "auto"):
        assert pair.evaluate("--class-map", value).ap == true.ap


def test_classes_in_no_order_at_all_are_paired_one_to_one(good_pair: Loader) -> None:
    pair = good_pair("sample")
    frequent = {1, 3, 18}  # person, car and dog: a class that is never found cannot be paired
    pair.pred = [one for one in pair.pred if one["category_id"] in frequent]
    true = pair.evaluate()
    pair.change_classes({1: 3, 3: 18, 18: 1}.__getitem__)
    (warning,) = pair.evaluate().warnings("class-mapping")
    flags = suggested_flags(warning["message"])
    assert set(flags[1].split(",")) == {"1=dog", "3=person", "18=car"}
    assert pair.evaluate(*flags).ap == true.ap


def test_ids_of_which_the_ground_truth_has_none_are_an_error_with_the_flag_that_maps_them(good_pair: Loader) -> None:
    pair = good_pair("sample")
    true = pair.as_it_came()
    pair.change_classes(lambda number: number + 100)
    wrong = pair.evaluate()
    assert wrong.code == 3
    assert "error[class-none]" in wrong.said
    assert "Rerun with --class-map order." in " ".join(wrong.said.split())
    assert "classes agree" in wrong.said
    assert pair.evaluate("--class-map", "order").ap == pair.evaluate("--class-map", "auto").ap == true.ap


def test_an_error_without_boxes_in_one_place_keeps_to_what_is_known(good_pair: Loader) -> None:
    pair = good_pair("sample")
    pair.change_classes(lambda number: number + 100)
    pair.change_boxes("pred", lambda box, _: [box[0] + 1000, *box[1:]])
    wrong = pair.evaluate()
    assert wrong.code == 3
    assert "map them with --class-map" in " ".join(wrong.said.split())


def test_numbers_on_one_side_and_texts_on_the_other_correspond_by_id_when_asked(tmp_path: Path) -> None:
    rows = [f"a.png,{number},{20 * number},0,{20 * number + 9},9" for number in (1, 2)]
    gt, pred = tmp_path / "gt.csv", tmp_path / "pred.csv"
    gt.write_text("\n".join(["image,class,xmin,ymin,xmax,ymax", *rows, "a.png,dog,80,80,90,90"]))  # "1", "2", "dog"
    pred.write_text("\n".join(["image,class,xmin,ymin,xmax,ymax,score", *(f"{row},0.9" for row in rows)]))  # 1, 2
    with pytest.raises(DataError, match="no prediction class"):
        evaluate(gt, pred)
    assert evaluate(gt, pred, class_map="id")["AP"] == pytest.approx(2 / 3)  # 1, 1 and 0


def test_lists_of_names_in_different_orders_are_named(shared_data: Path) -> None:
    scene = shared_data / SCENE
    pictures = ImageFolder(scene / "images")
    gt = load(scene / "gts/yolo_format", options=ReadOptions(images=pictures))

    def read(names: str) -> Dataset:
        options = ReadOptions(images=pictures, names=tuple((scene / names).read_text().split()))
        return load(scene / "dets/abs_xywh", role="pred", options=options)

    true = evaluate(gt, read("voc.names"))
    wrong = read("gts/yolo_format/obj.names")  # the numbers of the detections count the other list
    result = evaluate(gt, wrong)
    (warning,) = (one for one in result.findings if one.code == "class-mapping")
    (rule,) = suggested_flags(warning.message)[1:]
    assert result["AP"] < 0.1 * true["AP"]
    assert rule == "alphabetical"  # as voc.names is
    for class_map in (rule, "auto"):
        assert evaluate(gt, wrong, class_map=class_map)["AP"] == pytest.approx(true["AP"], rel=0, abs=1e-12)


def test_auto_leaves_classes_that_agree_as_they_are(good_pair: Loader) -> None:
    pair = good_pair("cocoapi")
    plain, auto = pair.evaluate(), pair.evaluate("--class-map", "auto")
    assert auto.ap == plain.ap
    assert auto.result["correspondence"]["class_strategy"] == "id"
    (note,) = (one for one in auto.result["warnings"] if one["code"] == "class-map-auto")
    assert "classes are read as given: of 731 overlapping pairs, 88.5% have the same class as given" in note["message"]


def test_pooled_classes_need_no_map(good_pair: Loader) -> None:
    pair = good_pair("cocoapi")
    pair.change_classes(lambda number: {1: 3, 3: 1}.get(number, number))
    assert pair.evaluate("--class-agnostic").warnings("class-mapping") == []


@pytest.mark.parametrize("seed", range(5))
def test_a_detector_that_guesses_classes_is_no_mistake_of_the_map(seed: int, good_pair: Loader) -> None:
    pair = good_pair("medwaste")
    ids = [one["id"] for one in pair.gt["categories"]]
    guess = random.Random(seed)
    pair.change_classes(lambda _: guess.choice(ids))
    assert pair.evaluate().warnings("class-mapping") == []


@pytest.mark.parametrize("name", SETS)
def test_nothing_is_said_of_good_classes(name: str, good_pair: Loader) -> None:
    assert good_pair(name).evaluate().warnings("class-mapping") == []


def test_an_unknown_rule_is_refused_with_a_suggestion(sample_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(sample_data / "coco" / name) for name in ("gt.json", "better.json")]
    outcome = run_evaluate(capsys, *paths, "--class-map", "contigous")
    assert outcome.code == 2
    assert "'contigous'. Did you mean 'contiguous'" in " ".join(outcome.said.split())


@pytest.mark.parametrize(("names", "share"), [("dog,car,cat", "0.0%"), ("dog,cat,car", "33.3%")])
def test_names_in_another_order_than_the_boxes_show_end_the_run(
    names: str, share: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 20 images with one object of each class, the classes of predictions counted from 0: cat, dog, car.
    boxes = [(image, row, [50.0 * row + image, 10.0 * row, 40.0, 30.0]) for image in range(20) for row in range(3)]
    truth = {
        "images": [{"id": image, "file_name": f"{image}.jpg", "width": 400, "height": 400} for image in range(20)],
        "categories": [{"id": row + 1, "name": name} for row, name in enumerate(["cat", "dog", "car"])],
        "annotations": [
            {"id": n, "image_id": image, "category_id": row + 1, "bbox": box, "area": 1200, "iscrowd": 0}
            for n, (image, row, box) in enumerate(boxes, start=1)
        ],
    }
    moved = [(image, row, [box[0] + 1.0, *box[1:]]) for image, row, box in boxes]
    found = [{"image_id": image, "category_id": row, "bbox": box, "score": 0.9} for image, row, box in moved]
    paths = [tmp_path / "gt.json", tmp_path / "pred.json"]
    for path, document in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(document))
    given = [*map(str, paths), "--pred-names", names]
    assert run(["evaluate", *given]) == 3
    message = capsys.readouterr().err
    assert f"{share} have the same class as given, 100.0% by id+1; the names given for the predictions" in message
    flags = suggested_flags(message.partition("To go on")[0])
    assert flags == ["--class-map", "id+1"]
    # A shift of 1 in 40: IoU 39/41, above nine of ten thresholds and .95 as well.
    assert run_evaluate(capsys, *given, *flags).ap == 1.0
    assert run(["evaluate", *given, "--allow", "class-mapping", "-q"]) == 0
    assert run(["evaluate", *map(str, paths), "--pred-names", "cat,dog,car", "-q"]) == 0


def _write_named(folder: Path, classes: list[str], found: list[str]) -> tuple[str, str]:
    """Objects of some classes, a few an image, and perfect detections of them with the ids in which `found` counts."""
    rows = [(at // 3, name, 100 * (at % 3)) for at, name in enumerate(classes)]
    lines = [f"{image}.jpg,{name},{x},10,{x + 70},60" for image, name, x in rows]
    (folder / "gt.csv").write_text("\n".join(["image,class,xmin,ymin,xmax,ymax", *lines]))
    results = [
        {"image_id": image, "category_id": found.index(name) + 1, "bbox": [x, 10, 70, 50], "score": 1 - x / 1000}
        for image, name, x in rows
    ]
    (folder / "pred.json").write_text(json.dumps(results))
    return str(folder / "gt.csv"), str(folder / "pred.json")


def test_classes_that_one_object_shows_are_asked_for_and_not_dropped_by_the_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Four classes of five objects are evident. A single overlap proves nothing: advice that names four would give
    # 4/6, where all detections are perfect.
    found = ["dog", "cat", "bus", "cow", "car", "tv"]
    paths = _write_named(tmp_path, [*["car", "dog", "cat", "bus"] * 5, "tv", "cow"], found)
    stopped = run_evaluate(capsys, *paths)
    assert (stopped.code, list(stopped.errors)) == (3, ["class-none"])
    assert (
        "Name all classes by index with --pred-names, or add to --class-map 1=dog,2=cat,3=bus,5=car: the boxes do not"
        " show what '4', '6' mean, and 2 predictions of 2 classes would be ignored."
    ) in stopped.said
    (tmp_path / "names.txt").write_text("\n".join(found))
    for flags in (
        ("--pred-names", str(tmp_path / "names.txt")),  # which count from 1, as no id is 0 and one is 6
        ("--class-map", "1=dog,2=cat,3=bus,5=car,4=cow,6=tv"),
    ):
        assert run_evaluate(capsys, *paths, *flags).ap == pytest.approx(1.0)


def test_a_map_without_a_place_for_other_classes_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The third class of the detector is on no object: what the two others are is all there is to know.
    gt, pred = _write_named(tmp_path, ["car", "dog"] * 5, ["dog", "car"])
    results = json.loads(Path(pred).read_text())
    Path(pred).write_text(json.dumps([*results, {**results[0], "category_id": 7, "bbox": [500, 300, 20, 20]}]))
    stopped = run_evaluate(capsys, gt, pred)
    flags = suggested_flags(stopped.errors["class-none"])
    assert (stopped.code, flags[0], set(flags[1].split(","))) == (3, "--class-map", {"1=dog", "2=car"})
    assert run_evaluate(capsys, gt, pred, *flags).ap == pytest.approx(1.0)


@pytest.mark.parametrize(("ids", "names"), [((0, 2), ("a", "c")), ((1, 2), ("b", "c")), ((1, 3), ("a", "c"))])
def test_names_count_from_one_only_where_every_id_has_a_name_then(
    tmp_path: Path, ids: tuple[int, int], names: tuple[str, str]
) -> None:
    path = tmp_path / "pred.json"
    results = [{"image_id": 1, "category_id": one, "bbox": [0, 0, 9, 9], "score": 0.5} for one in ids]
    path.write_text(json.dumps(results))
    labels = load(path, role="pred", options=ReadOptions(names=("a", "b", "c"))).labels
    called = dict(zip(labels.keys, labels.names, strict=True))
    assert tuple(called[one] for one in ids) == names


@pytest.mark.parametrize(
    ("found", "advice"),
    [(["dog", "car", "cat"], []), (["other", "car", "dog", "cat"], ["--class-map", "id-1"])],
    ids=["mixed up", "one too high"],
)
def test_few_overlapping_pairs_of_which_none_has_one_class_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: list[str], advice: list[str]
) -> None:
    # Two objects of each: less than the five pairs that would be evidence. As given all have another class: AP 0.
    names, classes = ["car", "dog", "cat"], ["car", "dog", "car", "dog"]
    gt, pred = _write_named(tmp_path, classes, found)
    boxes = [one["bbox"] for one in json.loads(Path(pred).read_text())]
    truth = {
        "images": [{"id": 0, "file_name": "0.jpg"}, {"id": 1, "file_name": "1.jpg"}],
        "categories": [{"id": at + 1, "name": name} for at, name in enumerate(names)],
        "annotations": [
            {"id": at + 1, "image_id": at // 3, "category_id": names.index(name) + 1, "bbox": box, "area": 3500}
            for at, (name, box) in enumerate(zip(classes, boxes, strict=True))
        ],
    }
    Path(gt).with_suffix(".json").write_text(json.dumps(truth))
    ran = run_evaluate(capsys, str(Path(gt).with_suffix(".json")), pred)
    (warning,) = ran.warnings("class-mapping")
    told = suggested_flags(warning["message"]) if "Rerun" in warning["message"] else []
    assert (ran.ap, told) == (0.0, advice)
    assert "class: none of 4 overlapping pairs have the same class on both sides" in warning["message"]
    if advice:
        assert run_evaluate(capsys, str(Path(gt).with_suffix(".json")), pred, *advice).ap == pytest.approx(1.0)
