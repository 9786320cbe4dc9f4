"""One set of oriented boxes as COCO JSON, in tables and in dicts: the same numbers, and NMS by their own overlap."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run_here

from jaccard_eval import (
    BoxTable,
    DataError,
    Evaluator,
    JaccardEvalWarning,
    ReadOptions,
    UsageError,
    evaluate,
    load,
    nms,
)
from jaccard_eval.similarity.obb import Quads, QuadSide, covering_quads, quad_pairs

Record = dict[str, Any]
CORNERS = [f"{axis}{corner}" for corner in range(1, 5) for axis in "xy"]


def boxes(seed: int, n: int, noise: float = 0.0) -> list[list[float]]:
    """Centre, width, height and angle in radians, clockwise."""
    rng = random.Random(seed)
    made = [
        [40 + 60 * (at % 5), 40 + 50 * (at // 5), rng.uniform(20, 50), rng.uniform(8, 25), rng.uniform(-1.5, 1.5)]
        for at in range(n)
    ]
    return [[value + rng.gauss(0, noise) * (0.02 if at == 4 else 1) for at, value in enumerate(box)] for box in made]


def corners(rows: list[list[float]]) -> np.ndarray:
    numbers = np.array(rows)
    return Quads.rotated(numbers[:, :4], numbers[:, 4]).corners


@pytest.fixture(scope="module")
def scene() -> tuple[list[Record], list[Record]]:
    """Objects and detections of two images; the first detections are doubled, a little off."""
    objects, found = [boxes(1, 8), boxes(2, 6)], [boxes(1, 8, 1.0), boxes(2, 6, 1.5)]
    found = [[*rows, *boxes(image + 1, 3, 2.5)] for image, rows in enumerate(found)]
    rng = random.Random(0)
    gt = [
        {"image_id": image, "xywhr": rows, "labels": [at % 2 for at in range(len(rows))]}
        for image, rows in enumerate(objects)
    ]
    pred = [
        {
            "image_id": image,
            "xywhr": rows,
            "labels": [at % 2 for at in range(len(rows) - 3)] + [0, 1, 0],
            "scores": [round(rng.random(), 3) for _ in rows],
        }
        for image, rows in enumerate(found)
    ]
    return gt, pred


def records(side: list[Record]) -> list[Record]:
    return [
        {
            "image_id": image["image_id"],
            "category_id": label,
            "bbox": quad.ravel().tolist(),
            **({"score": image["scores"][row]} if "scores" in image else {"id": row + 100 * image["image_id"] + 1}),
        }
        for image in side
        for row, (label, quad) in enumerate(zip(image["labels"], corners(image["xywhr"]), strict=True))
    ]


def document(side: list[Record]) -> Record:
    images = [{"id": row, "file_name": f"{row}.jpg", "width": 400, "height": 300} for row in range(len(side))]
    categories = [{"id": 0, "name": "0"}, {"id": 1, "name": "1"}]
    return {"images": images, "annotations": records(side), "categories": categories}


def table(side: list[Record], *, angles: bool) -> pd.DataFrame:
    rows = []
    for image in side:
        for at, box in enumerate(image["xywhr"]):
            numbers = box if angles else corners([box])[0].ravel().tolist()
            names = ["cx", "cy", "w", "h", "angle"] if angles else CORNERS
            scores = {"score": image["scores"][at]} if "scores" in image else {}
            given = dict(zip(names, numbers, strict=True))
            rows.append({"image": image["image_id"], "class": image["labels"][at], **given, **scores})
    return pd.DataFrame(rows)


def dicts(side: list[Record], *, angles: bool) -> list[Record]:
    shaped = [
        np.array(image["xywhr"])
        if angles
        else corners(image["xywhr"]).reshape((-1, 8) if image["image_id"] else (-1, 4, 2))
        for image in side
    ]
    return [
        {"obb": obb, **{name: image[name] for name in ("image_id", "labels", "scores") if name in image}}
        for obb, image in zip(shaped, side, strict=True)
    ]


def numbers(result: Any) -> dict[str, str]:
    return {name: str(metric.value) for name, metric in result.metrics.items()}


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_corners_give_the_same_numbers_wherever_they_stand(
    scene: tuple[list[Record], list[Record]], tmp_path: Path
) -> None:
    gt, pred = scene
    expected = evaluate(document(gt), records(pred), iou_type="obb")
    assert 0.3 < expected["AP"] < 1
    tables = table(gt, angles=False), table(pred, angles=False)
    for frame, name in zip(tables, ("gt", "pred"), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    found = [
        evaluate(*tables, iou_type="obb"),
        evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv"),  # by the header, oriented boxes are all there is
        evaluate(dicts(gt, angles=False), dicts(pred, angles=False), iou_type="obb"),
    ]
    parts = [Evaluator(iou_type="obb") for _ in range(2)]
    for image, part in enumerate(parts):
        sides = dicts(pred, angles=False)[image : image + 1], dicts(gt, angles=False)[image : image + 1]
        part.update([image], *sides)
    found.append(Evaluator.from_state(parts[1].state()).merge(parts[0]).compute())
    for result in found:
        assert result.protocol.iou_type == "obb"
        assert numbers(result) == numbers(expected)
    # Compared as boxes, they are the boxes around the corners.
    upright = evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv", iou_type="bbox")
    around = load(tmp_path / "gt.csv").boxes.xywh[0]
    quad = corners(gt[0]["xywhr"])[0]
    assert around.tolist() == pytest.approx([*quad.min(axis=0), *np.ptp(quad, axis=0)])
    assert upright["AP"] != expected["AP"]


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_angles_of_tables_and_dicts_are_turned_as_they_are_named(
    scene: tuple[list[Record], list[Record]], tmp_path: Path
) -> None:
    gt, pred = scene
    expected = numbers(evaluate(document(gt), records(pred), iou_type="obb"))
    tables = table(gt, angles=True), table(pred, angles=True)
    assert numbers(evaluate(dicts(gt, angles=True), dicts(pred, angles=True), iou_type="obb")) == expected
    with pytest.raises(DataError, match="may be degrees, clockwise or") as refused:
        evaluate(*tables, iou_type="obb")
    assert {finding.code for finding in refused.value.findings} == {"angle-ambiguous"}
    turned = {f"{side}_options": ReadOptions(angle="rad-cw") for side in ("gt", "pred")}
    assert numbers(evaluate(*tables, iou_type="obb", **turned)) == expected
    degrees = [frame.assign(angle=-np.degrees(frame["angle"])) for frame in tables]
    pytest.importorskip("pyarrow")
    for frame, name in zip(degrees, ("gt", "pred"), strict=True):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    flags = ("--iou-type", "obb", "--gt-angle", "deg-ccw", "--pred-angle", "deg-ccw", "-o", "out.json", "-q")
    done = run_here("gt.parquet", "pred.parquet", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "out.json").read_text())["metrics"]
    assert metrics["AP"] == pytest.approx(float(expected["AP"]), abs=1e-9)


@pytest.mark.parametrize(
    ("obb", "problem"),
    [
        (np.zeros((2, 6)), r"expected corners \(n, 4, 2\) or \(n, 8\), or centre, width, height and angle"),
        ([[1, 1, 4, 2, 45.0]], "has the angle 45; expected radians, clockwise"),
        ([[1, 1, -4, 2, 0.5]], "is -4 wide and 2 high"),
        ([[1, 1, float("nan"), 2, 0.5]], "must be finite numbers"),
    ],
)
def test_oriented_boxes_that_are_none_are_refused_with_their_place(obb: Any, problem: str) -> None:
    record = {"obb": obb, "labels": [0] * len(obb), "scores": [0.5] * len(obb)}
    with pytest.raises(UsageError, match=problem):
        Evaluator(iou_type="obb").update([0], [record], [record])


def test_a_cell_without_an_angle_or_a_corner_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("image,class,cx,cy,w,h,angle\na.jpg,dog,5,5,4,2,30\na.jpg,dog,5,5,4,2,\n")
    with pytest.raises(DataError, match=r"a.csv:3: angle: the cell is empty"):
        load(tmp_path / "a.csv", options=ReadOptions(iou_type="obb", angle="deg-cw"))
    (tmp_path / "b.csv").write_text(f"image,class,{','.join(CORNERS)}\na.jpg,dog,1,1,2,1,2,2,1,\n")
    with pytest.raises(DataError, match=r"b.csv:2: y4: the box is incomplete"):
        load(tmp_path / "b.csv")


@pytest.mark.parametrize("by", ["iou", "ioa"])
def test_suppression_compares_oriented_boxes_themselves(by: str) -> None:
    """Against one box after the other, by the overlap of each pair alone."""
    rows = [*boxes(1, 12), *boxes(1, 12, 3.0), *boxes(1, 12, 6.0)]
    quads, scores = Quads(corners(rows)), np.random.default_rng(0).permutation(len(rows)) / 100
    table = BoxTable.from_arrays(
        [0] * len(rows), [0] * len(rows), quads.bounds(), encoding="xywh", score=scores, shapes=quads
    )
    side = QuadSide.of(quads)

    def overlap(i: int, j: int) -> float:
        found = (quad_pairs if by == "iou" else covering_quads)(side, side, np.array([i]), np.array([j]))[2]
        if by == "ioa":  # the greater share of the two
            shares = [quad_pairs(side, side, np.array([a]), np.array([b]), crowd=np.ones(len(rows), dtype=bool))[2]
                      for a, b in ((i, j), (j, i))]  # fmt: skip
            assert found.tolist() == pytest.approx(max(share.tolist() for share in shares))
        return float(found[0]) if len(found) else 0.0

    kept: list[int] = []
    for row in np.argsort(-scores).tolist():
        if all(overlap(row, other) <= 0.5 for other in kept):
            kept.append(row)
    assert nms(table, iou=0.5, by=by).tolist() == kept
    upright = nms(BoxTable.from_arrays([0] * len(rows), [0] * len(rows), quads.bounds(), encoding="xywh", score=scores))
    assert upright.tolist() != kept


def test_dicts_of_oriented_boxes_alone_have_the_boxes_around_them() -> None:
    corners = np.array([[[10.0, 0], [20, 10], [10, 20], [0, 10]]])
    moved, found = corners + np.array([2, 0]), {"labels": [0], "scores": [0.9]}
    # Diamonds 2 px apart: of the boxes around them, 18 x 20 of 400 + 40 px are common (IoU .818).
    result = evaluate([{"obb": corners, "labels": [0]}], [{"obb": moved, **found}], iou_type="bbox")
    boxes = {"boxes": [[0.0, 0, 20, 20]], "labels": [0]}
    same = evaluate([boxes], [{"boxes": [[2.0, 0, 22, 20]], **found}])
    assert result.metrics == same.metrics
    assert [result[f"AP[iou={iou}]"] > 0.99 for iou in (0.8, 0.85)] == [True, False]


def test_named_angles_are_no_reading_of_the_boxes_around_them(tmp_path: Path) -> None:
    # Centres read as corners: two of three leave the image, so that the encoding is doubted while the angle is named.
    image = {"id": 1, "file_name": "a.jpg", "width": 320, "height": 240}
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [140, 130, 60, 40, 0.3], "area": 2400, "iscrowd": 0}
    truth = {"images": [image], "categories": [{"id": 1, "name": "c"}], "annotations": [box]}
    boxes = [[189, 201, 99, 66, 0.03], [145, 225, 135, 6, 0.3], [133, 219, 89, 16, -0.37]]
    found = [{"image_id": 1, "category_id": 1, "score": 0.8, "bbox": numbers} for numbers in boxes]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "pred.json").write_text(json.dumps(found))
    options = {f"{role}_options": ReadOptions(angle="rad-cw") for role in ("gt", "pred")}
    with pytest.warns(JaccardEvalWarning, match="box-encoding"):
        result = evaluate(tmp_path / "gt.json", tmp_path / "pred.json", iou_type="obb", **options)
    assert result["AP"] == 0
