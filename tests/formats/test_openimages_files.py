"""Files that come with a table of Open Images: hierarchy, image-level labels, class descriptions, and their faults."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import DataError, Dataset, ReadOptions, UsageError, evaluate, load
from jaccard_eval.cli.run import run
from jaccard_eval.data.dataset import ABSENT, PRESENT

BOXES = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\n"
LABELS = "ImageID,Source,LabelName,Confidence\n"
TREE: dict[str, Any] = {
    "LabelName": "/m/root",
    "Subcategory": [
        {
            "LabelName": "/m/animal",
            "Subcategory": [
                {"LabelName": "/m/pet", "Subcategory": [{"LabelName": "/m/dog"}]},
                {"LabelName": "/m/dog"},
            ],
            "Part": [{"LabelName": "/m/leg"}],
        },
        {"LabelName": "/m/car"},
    ],
}


def write(folder: Path, boxes: Sequence[str], **others: Any) -> Path:
    """Write gt.csv and what comes with it: `tree`, `labels` (rows) or `names` (rows)."""
    names = {"tree": "hierarchy.json", "labels": "gt-imagelabels.csv", "names": "class-descriptions.csv"}
    for kind, content in others.items():
        text = json.dumps(content) if kind == "tree" else "\n".join(content)
        (folder / names[kind]).write_text((LABELS if kind == "labels" else "") + text)
    (folder / "gt.csv").write_text(BOXES + "".join(f"{row}\n" for row in boxes))
    return folder / "gt.csv"


DOG, CAR = "a,/m/dog,0.1,0.5,0.1,0.5,0", "b,/m/car,0.1,0.5,0.1,0.5,0"


def facts(dataset: Dataset, fact: int) -> set[tuple[str, str]]:
    """Images and classes of labels, by their keys."""
    assert dataset.facts.images is not None
    rows = zip(*dataset.facts.images.of(fact), strict=True)
    return {(str(dataset.images.keys[image]), str(dataset.labels.keys[label])) for image, label in rows}


def found(dataset: Dataset) -> dict[str, str]:
    return {finding.code: finding.statement for finding in dataset.findings}


def test_every_class_knows_all_classes_above_it_but_the_root(tmp_path: Path) -> None:
    """A class may stand in several places; what is listed as a part is no kind."""
    dataset = load(write(tmp_path, [DOG], tree=TREE))
    keys = dataset.labels.keys
    assert keys == ("/m/animal", "/m/car", "/m/dog", "/m/pet")
    above = {key: {keys[row] for row in rows} for key, rows in zip(keys, dataset.facts.ancestors, strict=True)}
    assert above == {
        "/m/animal": set(),
        "/m/car": set(),
        "/m/dog": {"/m/animal", "/m/pet"},
        "/m/pet": {"/m/animal"},
    }


def test_labels_hold_for_the_classes_above_or_below_and_name_their_images(tmp_path: Path) -> None:
    rows = ["a,verification,/m/dog,1", "c,verification,/m/animal,0", "c,crowdsource,/m/car,1"]
    dataset = load(write(tmp_path, [DOG], tree=TREE, labels=rows))
    assert dataset.images.keys == ("a", "c")
    assert facts(dataset, PRESENT) == {("a", "/m/dog"), ("a", "/m/pet"), ("a", "/m/animal"), ("c", "/m/car")}
    assert facts(dataset, ABSENT) == {("c", "/m/animal"), ("c", "/m/pet"), ("c", "/m/dog")}
    assert not found(dataset)


def test_names_files_and_labels_are_those_of_the_options(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG])
    other = tmp_path / "other"
    other.mkdir()
    write(other, [], tree=TREE, labels=["a,,/m/dog,1"], names=["/m/dog,Dog", "/m/car,Car", "/m/animal,Animal"])
    options = ReadOptions(
        hierarchy=other / "hierarchy.json",
        image_labels=other / "gt-imagelabels.csv",
        class_descriptions=other / "class-descriptions.csv",
    )
    dataset = load(gt, options=options)
    assert dataset.labels.names == ("Animal", "Car", "Dog", "/m/pet")
    assert ("a", "/m/pet") in facts(dataset, PRESENT)
    assert "1 of 4 classes are not in the class descriptions: '/m/pet'" in found(dataset)["hierarchy-undescribed"]


def test_labels_of_the_same_split_that_people_verified_are_found(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG]).rename(tmp_path / "validation-annotations-bbox.csv")
    for name in ("validation-annotations-human-imagelabels-boxable", "validation-annotations-human-imagelabels"):
        (tmp_path / f"{name}.csv").write_text(LABELS + f"a,,/m/dog,{'boxable' in name:d}\n")
    for name in ("validation-annotations-machine-imagelabels", "train-annotations-human-imagelabels-boxable"):
        (tmp_path / f"{name}.csv").write_text(LABELS + "z,,/m/dog,1\n")
    assert facts(load(gt), PRESENT) == {("a", "/m/dog")}


def test_labels_of_other_classes_alone_are_refused_if_named(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG], tree=TREE, labels=["a,,/m/9,1", "a,,/m/8,0"])
    dataset = load(gt)
    assert dataset.facts.images is None
    assert "none of the 1 classes with boxes" in found(dataset)["image-labels-other"]
    with pytest.raises(DataError, match=r"LabelName: none of the 1 classes .* has a label: labels are of '/m/9'"):
        load(gt, options=ReadOptions(image_labels=tmp_path / "gt-imagelabels.csv"))


def test_several_hierarchies_leave_the_choice_to_the_user(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG], tree=TREE)
    (tmp_path / "challenge-2019-label500-hierarchy.json").write_text(json.dumps(TREE))
    dataset = load(gt)
    assert "2 files next to it may belong to it" in found(dataset)["companion-ambiguous"]
    assert not dataset.facts.ancestors


def node(name: Any, *below: Any) -> dict[str, Any]:
    return {"LabelName": name, "Subcategory": list(below)}


BAD_TREES: dict[str, tuple[Any, str]] = {
    "list": ([TREE], r"hierarchy-invalid\]: .*hierarchy.json: not a hierarchy of classes"),
    "other keys": ({"name": "root"}, "expected an object with LabelName and Subcategory"),
    "no class": (node("r"), "there is no class below the root"),
    "circle": (
        node("r", node("a", node("b", node("a")))),
        r"hierarchy-circle\]: .*: Subcategory\[0\].Subcategory\[0\].Subcategory\[0\].LabelName: a is above itself:"
        " a below b below a",
    ),
    "circle over two places": (node("r", node("x", node("y")), node("y", node("x"))), "x is above itself: x below y"),
    "itself": (node("r", node("x", node("x"))), "x is above itself: x below x"),
    "number": (node("r", node(7), {}, "x"), r"(?s)Subcategory\[0\].*Subcategory\[1\].*Subcategory\[2\]"),
    "no list": (node("r", {"LabelName": "x", "Subcategory": {}}), "expected a list of classes"),
    "other classes": (node("r", node("/m/1")), "has none of the 1 classes that have boxes"),
}


@pytest.mark.parametrize(("tree", "message"), BAD_TREES.values(), ids=BAD_TREES)
def test_a_bad_hierarchy_is_refused_where_it_was_named_and_else_not_used(
    tree: Any, message: str, tmp_path: Path
) -> None:
    gt = write(tmp_path, [DOG], tree=tree)
    with pytest.raises(DataError, match=message):
        load(gt, options=ReadOptions(hierarchy=tmp_path / "hierarchy.json"))
    dataset = load(gt)
    assert not dataset.facts.ancestors
    assert any(code.startswith("hierarchy-") for code in found(dataset))


def test_a_hierarchy_of_three_hundred_levels_is_read(tmp_path: Path) -> None:
    tree: dict[str, Any] = {"LabelName": "/m/dog"}
    for level in range(300):  # what the JSON parser of every supported Python takes
        tree = {"LabelName": f"/m/{level}", "Subcategory": [tree]}
    dataset = load(write(tmp_path, [DOG], tree=tree))
    assert len(dataset.facts.ancestors[dataset.labels.keys.index("/m/dog")]) == 299


BAD_LABELS: dict[str, tuple[str, str]] = {
    "no column": ("ImageID,LabelName\na,/m/dog\n", r"image-labels-invalid\]: .*csv:1: the header has no Confidence"),
    "boxes": (BOXES + DOG + "\n", "the header has no Confidence"),
    "short row": (LABELS + "a,,/m/dog,1\na,b\n", r"csv:3: expected 4 fields, got 2"),
    "no image": (LABELS + ",,/m/dog,1\n", r"csv:2: ImageID: the cell is empty"),
    "word": (LABELS + "a,,/m/dog,yes\na,,/m/dog,-1\n", r"csv:2: Confidence: 'yes' is not 0 or 1"),
    "other images": (LABELS + "z,,/m/dog,1\n", r"none of the 1 images with boxes in .* has a label: labels are of 'z'"),
}


@pytest.mark.parametrize(("text", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels_are_refused_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labels-of-another-year.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load(write(tmp_path, [DOG]), options=ReadOptions(image_labels=path))


def test_what_does_not_fit_the_boxes_is_counted_with_its_place(tmp_path: Path) -> None:
    rows = ["a,,/m/dog,1", "b,,/m/tree,1", "b,,/m/car,0.7", "b,,/m/dog,0"]
    dataset = load(write(tmp_path, [DOG, CAR, "b,/m/boat,0.1,0.5,0.1,0.5,0"], tree=TREE, labels=rows))
    messages = found(dataset)
    assert "1 box of 1 class that the hierarchy hierarchy.json does not have" in messages["hierarchy-class"]
    assert "gt.csv:4" in messages["hierarchy-class"]
    assert "ignored 1 label that a program gave" in messages["image-labels-unverified"]
    assert "1 label of 1 class without boxes and outside of the hierarchy" in messages["image-labels-unused"]
    # b has a car and a boat, neither verified there.
    assert "2 of 5 classes with boxes on an image" not in messages["image-labels-differ"]
    assert "2 of 3 classes with boxes on an image are not verified there" in messages["image-labels-differ"]
    assert "gt.csv:3" in messages["image-labels-differ"]


def test_other_formats_have_no_such_files(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps({"images": [], "annotations": [], "categories": []}))
    with pytest.raises(UsageError, match="read with ground truth in the tables of Open Images"):
        load(path, options=ReadOptions(hierarchy=tmp_path / "hierarchy.json"))


def test_one_class_alone_has_the_objects_of_those_below_it(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG, CAR], tree=TREE, labels=["a,,/m/dog,1", "b,,/m/car,1"])
    pred = tmp_path / "pred.csv"
    pred.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\na,/m/animal,0.9,0.1,0.5,0.1,0.5\n")
    for options in ({}, {"classes": ["/m/animal"]}):
        result = evaluate(gt, pred, protocol="openimages-challenge", **options)
        assert result["AP[class=/m/animal]"] == 1.0
        assert [row.gt for row in result.per_class if row.name == "/m/animal"] == [1]
    pooled = evaluate(gt, pred, protocol="openimages", class_agnostic=True)
    assert pooled["AP"] == pytest.approx(0.5)  # of two objects, each counted once


def test_classes_with_names_and_without_correspond_by_their_ids(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG], tree=TREE, names=["/m/dog,Dog"])
    pred = tmp_path / "elsewhere" / "pred.csv"
    pred.parent.mkdir()
    pred.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\na,/m/dog,0.9,0.1,0.5,0.1,0.5\n")
    assert evaluate(gt, pred, protocol="openimages")["AP[class=Dog]"] == 1.0
    options = ReadOptions(role="pred", class_descriptions=tmp_path / "class-descriptions.csv")
    assert load(pred, role="pred", options=options).labels.names == ("Dog",)


def test_without_labels_the_challenge_cannot_be_judged(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG])
    pred = tmp_path / "pred.csv"
    pred.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\na,/m/dog,0.9,0.1,0.5,0.1,0.5\n")
    with pytest.raises(UsageError, match=r"Pass gt_options=ReadOptions\(image_labels=...\)"):
        evaluate(gt, pred, protocol="openimages-challenge")
    result = evaluate(gt, pred, protocol="openimages")
    assert [finding.code for finding in result.findings if finding.severity == "warning"] == ["hierarchy-missing"]
    assert np.isclose(result["AP"], 1.0)


def test_a_detection_without_an_area_is_not_punished(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG], tree=TREE)
    pred = tmp_path / "pred.csv"
    rows = ["a,/m/dog,0.9,0.2,0.2,0.1,0.5", "a,/m/dog,0.8,0.1,0.5,0.1,0.5"]
    pred.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n" + "\n".join(rows))
    assert evaluate(gt, pred, protocol="openimages")["AP[class=/m/dog]"] == 1.0


def test_what_boxes_cannot_hold_is_named_when_they_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt = write(tmp_path, [DOG], tree=TREE, labels=["a,,/m/dog,1"])
    assert run(["convert", str(gt), str(tmp_path / "out.csv"), "--to", "csv"]) == 3
    told = capsys.readouterr().err
    assert "verified: classes that are verified on an image: 3" in told
    assert "hierarchy: classes below others: 2" in told


def test_a_detection_is_confused_with_none_of_the_classes_above_or_below_its_own(tmp_path: Path) -> None:
    """Three are right on the dog, though the boxes of its copies are equal; the second animal is a false positive."""
    gt = write(tmp_path, [DOG, CAR], tree=TREE)
    pred = tmp_path / "pred.csv"
    rows = ["animal,0.9", "dog,0.8", "pet,0.7", "animal,0.6", "car,0.5"]
    pred.write_text(
        "ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n" + "".join(f"a,/m/{row},.1,.5,.1,.5\n" for row in rows)
    )
    result = evaluate(gt, pred, protocol="openimages", confusion=True, score=0.0)
    assert result.confusion is not None
    assert result.confusion.counts.tolist() == [
        [1, 0, 0, 0, 0],  # animal
        [0, 0, 0, 0, 1],  # car: on the other image
        [0, 0, 1, 0, 0],  # dog
        [0, 0, 0, 1, 0],  # pet
        [1, 1, 0, 0, 0],  # background
    ]


def test_rules_that_judge_every_class_are_named(tmp_path: Path) -> None:
    gt = write(tmp_path, [DOG], tree=TREE, labels=["a,,/m/dog,1"])
    pred = tmp_path / "pred.csv"
    pred.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\na,/m/dog,0.9,0.1,0.5,0.1,0.5\n")
    codes = {
        protocol: {finding.code for finding in evaluate(gt, pred, protocol=protocol).findings}
        for protocol in ("coco", "openimages", "openimages-challenge")
    }
    assert [name for name, found in codes.items() if "classes-unverified" in found] == ["coco"]
