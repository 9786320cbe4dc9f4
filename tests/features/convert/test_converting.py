"""Every format that is read into every one that is written: the same boxes, or a refusal to lose any of them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import BoxTable, DataError, UsageError, convert, evaluate, load
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.formats import Format, format_module, format_names, write_dataset, written_formats
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder

SAMPLE = Path(__file__).parents[3] / "sample_data"
GT, PRED = SAMPLE / "coco/gt.json", SAMPLE / "coco/better.json"
MASKS_ALONE = "instances"  # boxes are refused
WRITTEN = [name for name in written_formats() if name != MASKS_ALONE]
SCORED = [name for name in WRITTEN if "scores" in format_module(name).FORMAT.carries]  # CVAT has none
REFUSALS = {"size-unknown", "write-name", "write-unnamed"}
TOLERANCE = 6  # decimals of a pixel: fractions of an image are pixels again but for the last bit


def pictures() -> ReadOptions:
    return ReadOptions(images=ImageFolder(SAMPLE / "yolo/images/val"))


def named(folder: Path, name: str) -> Path:
    """Return a path that a format would be written to."""
    suffixes = about(name).suffixes
    return folder / (f"{name}{suffixes[0]}" if suffixes else name)


def about(name: str) -> Format:
    return format_module(name).FORMAT


def boxes_of(dataset: Dataset) -> list[tuple[object, ...]]:
    """Return image, class, box and score of each row, in an order of their own."""
    assert dataset.units == "px"
    stems = [Path(dataset.images.name(row)).stem for row in range(len(dataset.images))]
    table = dataset.boxes
    scores = [None] * len(table) if table.score is None else table.score.tolist()
    rows = zip(table.image, table.label, table.xywh.round(TOLERANCE).tolist(), scores, strict=True)
    return sorted((stems[image], dataset.labels.names[label], *xywh, score) for image, label, xywh, score in rows)


@pytest.mark.parametrize(
    ("source", "target", "role"),
    [
        *((source, target, "gt") for source in WRITTEN for target in WRITTEN),
        *((source, target, "pred") for source in SCORED for target in SCORED),
    ],
)
def test_the_sample_is_the_same_in_every_format_by_way_of_every_other(
    source: str, target: str, role: str, tmp_path: Path
) -> None:
    sample = load(SAMPLE / "yolo" / ("labels/val" if role == "gt" else "better"), role=role, options=pictures())
    write_dataset(sample, named(tmp_path, source), format_name=source)
    there = named(tmp_path / "there", target)
    there.parent.mkdir()
    reading = {"source_format": source, "options": pictures(), "lossy": True}
    done = convert(named(tmp_path, source), there, to=target, role=role, **reading)
    assert boxes_of(done.dataset) == boxes_of(sample)
    assert boxes_of(load(there, role=role, format_name=target, options=pictures())) == boxes_of(sample)


@pytest.mark.parametrize("target", written_formats())
@pytest.mark.parametrize("source", format_names())
def test_every_example_is_written_in_every_format_or_refused_with_a_reason(
    source: str, target: str, tmp_path: Path
) -> None:
    module, file = format_module(source), tmp_path / "example" / f"example{(*about(source).suffixes, '.txt')[0]}"
    file = file if about(source).suffixes else file.with_suffix(about(source).member)
    file.parent.mkdir()
    if hasattr(module, "write_example"):
        module.write_example(file)
    else:
        file.write_text(about(source).example, encoding="utf-8")
    there = named(tmp_path, target)
    try:
        done = convert(file if about(source).suffixes else file.parent, there, to=target, lossy=True)
    except DataError as error:
        refusals = REFUSALS | ({"write-loss"} if target == MASKS_ALONE else set())
        assert {one.code for one in error.findings if one.severity == "error"} <= refusals
        assert not there.exists()
        return
    assert len(read_by_advice(there, done.dataset.role, target).boxes) == len(done.dataset.boxes) > 0


def read_by_advice(path: Path, role: str, format_name: str) -> Dataset:
    """Read a data set; one box as text labels, which have no header, is read by the first flags that are offered."""
    try:
        return load(path, role=role, format_name=format_name)
    except DataError as error:
        (asked,) = error.findings[:1]
        if asked.code == "score-missing":  # of CVAT, with a loss
            return load(path, role="gt", format_name=format_name)
        if asked.code == "field-missing":  # masks alone
            return load(path, role=role, format_name=format_name, options=ReadOptions(role=role, iou_type="segm"))
        assert asked.code == "columns-ambiguous"
        flags = dict(re.findall(rf"--{role}-(columns|box) ([a-z-]+)", asked.fix.partition(" or ")[0]))
        return load(path, role=role, format_name=format_name, options=ReadOptions(role=role, **flags))


def flagged() -> Dataset:
    """Two boxes in a picture of 20 x 20, the first of them with every flag and half of its area."""
    flags = {flag: [True, False] for flag in ("crowd", "difficult", "group_of", "ignore")}
    table = BoxTable.from_arrays([0, 0], [0, 0], [[0, 0, 10, 10], [5, 5, 9, 9]], area=[50, 16], **flags)
    images = ImageTable(("a.png",), (None,), np.array([[20.0, 20.0]]), listed=True)
    return Dataset("memory", "arrays", "gt", images, LabelMap(("dog",), ("dog",), named=True), table)


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_written_where_the_format_cannot_carry_a_flag_that_is_set(name: str, tmp_path: Path) -> None:
    there = named(tmp_path, name)
    carried = {"crowd", "difficult", "group_of", "ignore", "area"} & set(about(name).carries)
    if len(carried) == 5:
        assert not [one for one in convert(flagged(), there, to=name).findings if one.severity == "warning"]
        return
    with pytest.raises(DataError, match="lossy=True") as caught:
        convert(flagged(), there, to=name)
    lost = {one.examples[0].where.field for one in caught.value.findings if one.severity == "error"}
    assert lost == {"crowd", "difficult", "group_of", "ignore", "area"} - carried
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_asked_to_be_lost_is_lost_and_said(name: str, tmp_path: Path) -> None:
    done = convert(flagged(), named(tmp_path, name), to=name, lossy=True)
    said = {one.examples[0].where.field for one in done.findings if one.code == "write-loss"}
    assert {"crowd", "difficult", "group_of", "ignore", "area"} - set(about(name).carries) <= said
    assert len(load(done.path, format_name=name).boxes) == 2


def test_a_name_that_would_be_changed_is_not_changed_unasked(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("image,class,xmin,ymin,xmax,ymax\na.jpg,=1+1,0,0,10,10\n")
    with pytest.raises(DataError, match="write-formula"):
        convert(source, tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()


def test_scores_tell_predictions_from_ground_truth(tmp_path: Path) -> None:
    assert convert(GT, tmp_path / "gt.csv").dataset.role == "gt"
    assert convert(PRED, tmp_path / "pred.csv").dataset.role == "pred"


@pytest.mark.parametrize(
    ("target", "to", "message"),
    [
        ("out", None, "cannot choose a format by the suffix of"),
        ("out.txt", "kitti", "cannot be written; choose from arrow, coco"),
        ("out.json", "cocoo", "unknown format 'cocoo'"),
    ],
)
def test_a_target_that_cannot_be_is_said(target: str, to: str | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=message) as caught:
        convert(GT, tmp_path / target, to=to)
    assert type(caught.value).__name__ in ("UsageError", "MachineError")


def test_an_input_is_never_its_own_target(tmp_path: Path) -> None:
    source = tmp_path / "gt.json"
    source.write_bytes(GT.read_bytes())
    with pytest.raises(UsageError, match="must not contain each other"):
        convert(source, source, replace=True)
    assert source.read_bytes() == GT.read_bytes()


@pytest.mark.parametrize("target", SCORED)
@pytest.mark.parametrize("source", SCORED)
def test_both_sides_converted_twice_give_the_numbers_that_they_gave(
    source: str, target: str, tmp_path: Path, expected: dict[str, float]
) -> None:
    for folder in ("first", "second"):
        for side in ("gt", "pred"):
            (tmp_path / folder / side).mkdir(parents=True)
    first, second = ({side: tmp_path / folder / side for side in ("gt", "pred")} for folder in ("first", "second"))
    gt, pred = named(first["gt"], source), named(first["pred"], source)
    convert(SAMPLE / "yolo/labels/val", gt, to=source, options=pictures())
    convert(SAMPLE / "yolo/better", pred, to=source, gt=SAMPLE / "yolo/labels/val", gt_options=pictures())
    images = {"gt_options": pictures(), "options": pictures(), "source_format": source}
    convert(gt, named(second["gt"], target), to=target, options=pictures(), source_format=source, role="gt")
    # Lossy: a table of ground truth knows no class without boxes, and one prediction is of such a class.
    convert(pred, named(second["pred"], target), to=target, gt=gt, gt_format=source, lossy=True, **images)
    again = evaluate(
        named(second["gt"], target),
        named(second["pred"], target),
        **{"gt_format": target, "pred_format": target, "gt_options": pictures(), "pred_options": pictures()},
        iou_type="bbox",  # the four corners of DOTA are polygons in Label Studio, which would be compared as masks
    )
    assert {name: value.value for name, value in again.metrics.items()} == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def expected() -> dict[str, float]:
    sides = SAMPLE / "yolo/labels/val", SAMPLE / "yolo/better"
    result = evaluate(*sides, gt_options=pictures(), pred_options=pictures())
    return {name: value.value for name, value in result.metrics.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"match_images": "stem"},
        {"extra_images": "ignore"},
        {"images_in_common": True},
        {"gt_format": "coco"},
        {"gt_class_map": {"a": "b"}},
    ],
)
def test_what_pairs_predictions_with_ground_truth_is_refused_without_it(options: Any, tmp_path: Path) -> None:
    boxes = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    with pytest.raises(UsageError, match=f"{next(iter(options))}: pass the ground truth with gt"):
        convert(boxes, tmp_path / "out.csv", **options)
    assert not (tmp_path / "out.csv").exists()
