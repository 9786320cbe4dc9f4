"""Open Images with instance masks: against a slow reference, which the goldens of boxes prove first."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_images_reference import (
    Marked,
    average_precisions,
    box_area,
    box_ioa,
    box_iou,
    mask_ioa,
    mask_iou,
)

from jaccard_eval import ReadOptions, evaluate, explain, load
from jaccard_eval.data.dataset import ABSENT, PRESENT, ClassFacts, Dataset, ImageLabels

GOLDEN = Path(__file__).parents[3] / "shared" / "oracle" / "golden"
CASES = [json.loads(path.read_bytes()) for path in sorted(GOLDEN.glob("oid_*.json"))]
SIDE, N_IMAGES = 24, 5
CLASSES = ["animal", "dog", "poodle", "car", "wheel"]
ABOVE = {"dog": ["animal"], "poodle": ["animal", "dog"]}
CHALLENGE = "openimages-challenge"


def classes_above(tree: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Read a hierarchy of Open Images without its root."""
    found: dict[str, set[str]] = {}
    for child in tree.get("Subcategory", []):
        name = child["LabelName"]
        found.setdefault(name, set()).update(path)
        for below, parents in classes_above(child, (*path, name)).items():
            found.setdefault(below, set()).update(parents)
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_reference_gives_the_numbers_of_the_goldens(case: dict[str, Any]) -> None:
    objects = [
        Marked(box["ImageID"], box["LabelName"], box["box"], bool(box["IsGroupOf"])) for box in case["gt"]["boxes"]
    ]
    detections = [
        Marked(box["ImageID"], box["LabelName"], box["box"], score=box["Score"])
        for box in case["dt"]
        if box_area(box["box"]) > 0
    ]
    labels = {(row["ImageID"], row["LabelName"]): int(row["Confidence"]) for row in case["gt"]["labels"]}
    for variant, given in (("v2", None), ("challenge", labels)):
        above = classes_above(case["gt"]["hierarchy"])
        found = average_precisions(objects, detections, above=above, labels=given, overlaps=(box_iou, box_ioa))
        for name, known in case["oracle"][variant]["per_class"].items():
            if not known["score_ties"] and known["AP"] is not None:
                assert found[name] == pytest.approx(known["AP"], abs=1e-9), name


def draw(seed: int) -> tuple[list[Marked], list[Marked], dict[tuple[str, str], int]]:
    """Draw masks of two rectangles each; detections are objects that were moved, or anything."""
    rng = np.random.default_rng(seed)

    def mask() -> Any:
        found = np.zeros((SIDE, SIDE), dtype=bool)
        for _ in range(2):
            top, left = rng.integers(0, SIDE - 8, 2)
            height, width = rng.integers(3, 9, 2)
            found[top : top + height, left : left + width] = True
        return found

    def place() -> tuple[str, str]:
        return f"{rng.integers(N_IMAGES)}.jpg", CLASSES[rng.integers(len(CLASSES))]

    objects = [Marked(*place(), mask(), bool(rng.random() < 0.3)) for _ in range(25)]
    detections = []
    for score in rng.permutation(60) / 100 + 0.05:
        one = objects[rng.integers(len(objects))]
        label = one.label if rng.random() < 0.7 else CLASSES[rng.integers(len(CLASSES))]
        shape = np.roll(one.shape, rng.integers(-2, 3, 2), axis=(0, 1)) if rng.random() < 0.8 else mask()
        detections.append(Marked(one.image, label, shape, score=float(score)))
    labels = {place(): int(rng.random() < 0.5) for _ in range(8)}
    return objects, detections, labels


def rle(mask: Any) -> dict[str, Any]:
    pixels = mask.T.ravel()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], pixels)).astype(np.int8)))
    counts = np.diff(np.concatenate(([0], edges, [len(pixels)])))
    return {"size": list(mask.shape), "counts": counts.tolist()}


def box_of(mask: Any) -> list[int]:
    y, x = np.nonzero(mask)
    return [int(x.min()), int(y.min()), int(np.ptp(x)) + 1, int(np.ptp(y)) + 1]


def write(folder: Path, objects: list[Marked], detections: list[Marked]) -> tuple[Path, Path]:
    def record(one: Marked) -> dict[str, Any]:
        number = int(one.image.partition(".")[0]) + 1
        return {
            "image_id": number,
            "category_id": CLASSES.index(one.label) + 1,
            "segmentation": rle(one.shape),
            "bbox": box_of(one.shape),
        }

    truth = {
        "images": [{"id": i + 1, "file_name": f"{i}.jpg", "width": SIDE, "height": SIDE} for i in range(N_IMAGES)],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(CLASSES)],
        "annotations": [
            {"id": row + 1, "area": int(one.shape.sum()), "iscrowd": int(one.group), **record(one)}
            for row, one in enumerate(objects)
        ],
    }
    gt, pred = folder / "gt.json", folder / "pred.json"
    gt.write_text(json.dumps(truth))
    pred.write_text(json.dumps([{**record(one), "score": one.score} for one in detections]))
    return gt, pred


def with_facts(gt: Path, labels: dict[tuple[str, str], int]) -> Dataset:
    """Read ground truth and add what a hierarchy and image-level labels say, as the reader of these files does."""
    rows = set()
    for (image, label), is_present in labels.items():
        below = [name for name, parents in ABOVE.items() if label in parents]
        for name in (label, *(ABOVE.get(label, []) if is_present else below)):
            rows.add((int(image.partition(".")[0]), CLASSES.index(name), PRESENT if is_present else ABSENT))
    columns = (np.array(column, dtype=np.int32) for column in zip(*sorted(rows), strict=True))
    ancestors = tuple(tuple(sorted(CLASSES.index(name) for name in ABOVE.get(label, ()))) for label in CLASSES)
    facts = ClassFacts(ImageLabels.ordered(*columns), ancestors=ancestors, usual_protocol=CHALLENGE)  # type: ignore[arg-type]
    return replace(load(gt, options=ReadOptions(iou_type="segm")), facts=facts)


@pytest.mark.parametrize("protocol", ["openimages", CHALLENGE])
@pytest.mark.parametrize("seed", range(8))
def test_masks_give_the_numbers_of_the_reference(seed: int, protocol: str, tmp_path: Path) -> None:
    objects, detections, labels = draw(seed)
    gt, pred = write(tmp_path, objects, detections)
    expected = average_precisions(
        objects,
        detections,
        above=ABOVE,
        labels=labels if protocol == CHALLENGE else None,
        overlaps=(mask_iou, mask_ioa),
    )
    result = evaluate(with_facts(gt, labels), pred, protocol=protocol, iou_type="segm")
    rows = {row.name: row.values["AP"].value for row in result.per_class if row.gt}
    # A class that has groups alone has no AP in V2.
    assert {name: ap for name, ap in rows.items() if ap == ap} == pytest.approx(
        {name: ap for name, ap in expected.items() if name in rows}, abs=1e-9
    )
    assert set(expected) == set(rows)
    assert result["AP"] == pytest.approx(np.mean(list(expected.values())), abs=1e-9)
    assert result["AP"] != evaluate(with_facts(gt, labels), pred, protocol=protocol)["AP"]


def test_an_object_of_a_class_that_is_not_evaluated_counts_for_the_class_above(tmp_path: Path) -> None:
    objects, detections, labels = draw(3)
    gt, pred = write(tmp_path, objects, detections)
    both = [
        evaluate(with_facts(gt, labels), pred, protocol=CHALLENGE, iou_type="segm", classes=classes)
        for classes in ([], ["animal"])
    ]
    assert len({result["AP[class=animal]"] for result in both}) == 1


@pytest.mark.parametrize("classes", [[], ["animal"]])
def test_the_disk_engine_gives_the_same_bytes(
    classes: list[str], tmp_path: Path, small_parts: Callable[..., None]
) -> None:
    objects, detections, labels = draw(5)
    gt, pred = write(tmp_path, objects, detections)
    small_parts(15)
    options: dict[str, Any] = {"protocol": CHALLENGE, "iou_type": "segm", "classes": classes}
    memory, on_disk = (evaluate(with_facts(gt, labels), pred, engine=name, **options) for name in ("memory", "disk"))
    assert json.dumps(on_disk.to_dict(), sort_keys=True) == json.dumps(memory.to_dict(), sort_keys=True)


def test_rules_are_told_apart_on_masks_as_well(tmp_path: Path) -> None:
    objects, detections, _ = draw(4)
    gt, pred = write(tmp_path, objects, detections)
    found = explain(gt, pred, metric="AP50", protocol="openimages", against="coco", iou_type="segm")
    assert found.metric.value == evaluate(gt, pred, protocol="openimages", iou_type="segm")["AP50"]
    assert found.steps[-1].value == evaluate(gt, pred, iou_type="segm")["AP50"]
