"""Masks and keypoints in dicts by image: `evaluate` and `Evaluator` measure them as COCO files of the same objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import DataError, Evaluator, UsageError, evaluate

HEIGHT, WIDTH = 24, 32
CLASSES = ["cat", "dog"]
SIGMAS = (0.05, 0.08, 0.1)
Document = dict[str, Any]


def square(left: int, top: int, side: int) -> np.ndarray:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=bool)
    pixels[top : top + side, left : left + side] = True
    return pixels


def listed(mask: np.ndarray) -> Document:
    """Return the runs of a mask, pixel by pixel."""
    counts, last = [0], False
    for pixel in mask.T.ravel().tolist():
        if pixel != last:
            counts.append(0)
            last = pixel
        counts[-1] += 1
    return {"size": [HEIGHT, WIDTH], "counts": counts}


def pose(x: float, y: float, seen: int = 2) -> list[list[float]]:
    return [[x, y, seen], [x + 6, y, 2 * (seen > 0)], [x, y + 7, 0]]


@pytest.fixture
def scene() -> tuple[list[Document], list[Document]]:
    """Two images by dicts: objects and predictions, of which one is beside its object and one of another class."""
    masks = [square(2, 3, 8), square(15, 6, 9)], [square(4, 4, 6)]
    poses = [pose(2, 3), pose(15, 6)], [pose(4, 4, seen=0)]
    targets = [
        {"labels": np.array([0, 1]), "masks": np.array(masks[0]), "keypoints": poses[0], "area": [60.0, 80.0]},
        {"labels": np.array([1]), "masks": np.array(masks[1]), "keypoints": poses[1], "area": [36.0]},
    ]
    preds = [
        {
            "labels": np.array([0, 1, 0]), "scores": np.array([0.9, 0.8, 0.7]),
            "masks": np.array([square(3, 3, 8), square(15, 6, 9), square(15, 6, 9)], dtype=np.uint8),
            "keypoints": [pose(2.5, 3), pose(15, 6), pose(15, 6)],
        },
        {"labels": np.array([1]), "scores": np.array([0.6]), "masks": np.array([square(5, 5, 6)]),
         "keypoints": [pose(5, 4.5)]},
    ]  # fmt: skip
    return targets, preds


def as_coco(targets: list[Document], preds: list[Document], folder: Path) -> tuple[Path, Path]:
    """Write the scene as COCO JSON: masks as runs, predictions without boxes, as their dicts have none."""

    def records(side: list[Document]) -> list[Document]:
        return [
            {
                "image_id": image, "category_id": int(record["labels"][row]), "iscrowd": 0,
                "segmentation": listed(record["masks"][row]),
                "keypoints": [float(number) for point in record["keypoints"][row] for number in point],
                **({"score": float(record["scores"][row])} if "scores" in record else {"area": record["area"][row]}),
            }
            for image, record in enumerate(side)
            for row in range(len(record["labels"]))
        ]  # fmt: skip

    annotations = records(targets)
    poses = [*targets[0]["keypoints"], *targets[1]["keypoints"]]
    for number, (ann, record) in enumerate(zip(annotations, poses, strict=True)):
        seen = [point[:2] for point in record if point[2] > 0] or [point[:2] for point in record]
        (left, top), (right, bottom) = np.min(seen, axis=0).tolist(), np.max(seen, axis=0).tolist()
        count = sum(point[2] > 0 for point in record)
        ann |= {"id": number + 1, "bbox": [left, top, right - left, bottom - top], "num_keypoints": count}
    document = {
        "images": [{"id": row, "height": HEIGHT, "width": WIDTH, "file_name": f"{row}.jpg"} for row in range(2)],
        "categories": [{"id": row, "name": name} for row, name in enumerate(CLASSES)],
        "annotations": annotations,
    }
    (folder / "gt.json").write_text(json.dumps(document))
    (folder / "pred.json").write_text(json.dumps(records(preds)))
    return folder / "gt.json", folder / "pred.json"


KINDS: list[tuple[str, Document]] = [
    ("segm", {}),
    ("boundary", {"dilation_ratio": 0.05}),
    ("keypoints", {"sigmas": SIGMAS}),
]


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
@pytest.mark.parametrize(("kind", "rules"), KINDS, ids=[kind for kind, _ in KINDS])
def test_dicts_batches_states_and_files_give_equal_numbers(
    kind: str, rules: Document, scene: tuple[list[Document], list[Document]], tmp_path: Path
) -> None:
    targets, preds = scene
    gt, pred = as_coco(targets, preds, tmp_path)
    rules = {"iou_type": kind, **rules}
    expected = evaluate(gt, pred, **rules)
    assert 0 < expected["AP"] < 1
    whole = Evaluator(CLASSES, **rules)
    parts = [Evaluator(CLASSES, **rules) for _ in targets]
    for image in (1, 0):
        for evaluator in (whole, parts[image]):
            evaluator.update([image], preds[image : image + 1], targets[image : image + 1])
    merged = Evaluator.from_state(parts[1].state()).merge(parts[0])
    assert merged.state() == whole.state() == Evaluator.from_state(whole.state()).state()
    truth = Evaluator(gt=gt, **rules)
    truth = Evaluator.from_state(truth.state())
    truth.update([0, 1], [{**record, "labels": [CLASSES[label] for label in record["labels"]]} for record in preds])
    found = [
        whole.compute(), merged.compute(), truth.compute(),
        evaluate([{**record, "image_id": row} for row, record in enumerate(targets)],
                 [{**record, "image_id": row} for row, record in enumerate(preds)], **rules),
    ]  # fmt: skip
    for result in found:
        assert {name: str(value.value) for name, value in result.metrics.items()} == {
            name: str(value.value) for name, value in expected.metrics.items()
        }
    assert found[0].to_dict() == found[1].to_dict()


def test_masks_of_pycocotools_are_taken_and_equal_their_pixels(scene: tuple[list[Document], list[Document]]) -> None:
    targets, preds = scene
    dense = Evaluator(CLASSES, iou_type="segm")
    dense.update([0, 1], preds, targets)
    coded = Evaluator(CLASSES, iou_type="segm")
    coded.update(
        [0, 1],
        [{**record, "masks": [listed(mask) for mask in record["masks"]]} for record in preds],
        [{**record, "masks": [listed(mask) for mask in record["masks"]]} for record in targets],
    )
    assert coded.state() == dense.state()
    with pytest.raises(DataError, match="was added before with other boxes"):
        coded.update([0], [{**preds[0], "masks": ~preds[0]["masks"].astype(bool)}], targets[:1])


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("segm", {"masks": np.zeros((3, 4))}, r"preds\[image 0\]\['masks'\] has shape \(3, 4\); expected \(n, height"),
        ("segm", {"masks": np.full((3, 4, 4), 0.5)}, r"must be booleans, or 0 and 1; threshold the masks first"),
        ("segm", {"masks": np.zeros((2, 4, 4))}, r"\['labels'\] has shape \(3,\); expected \(2,\)"),
        (
            "segm",
            {"masks": np.zeros((2, 4, 4)), "boxes": np.zeros((3, 4))},
            "has 3 boxes and 2 masks; expected one per",
        ),
        ("segm", {"masks": [{"size": [4, 4], "counts": [3]}] * 3}, r"\['masks'\]\[0\] counts of RLE sum to 3"),
        ("segm", {"masks": None}, r"\['masks'\] has shape \(\)"),
        ("keypoints", {"keypoints": np.zeros((3, 51))}, r"\['keypoints'\] has shape \(3, 51\); expected \(n, k, 3\)"),
        ("keypoints", {"keypoints": np.full((3, 3, 3), np.nan)}, r"\['keypoints'\] must be finite numbers"),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    kind: str, change: Document, message: str, scene: tuple[list[Document], list[Document]]
) -> None:
    targets, preds = scene
    evaluator = Evaluator(CLASSES, iou_type=kind, sigmas=SIGMAS if kind == "keypoints" else None)
    with pytest.raises(UsageError, match=message):
        evaluator.update([0], [{**preds[0], **change}], targets[:1])
    assert len(evaluator) == 0


def test_masks_of_another_size_than_the_objects_are_an_error(scene: tuple[list[Document], list[Document]]) -> None:
    targets, preds = scene
    evaluator = Evaluator(CLASSES, iou_type="segm")
    evaluator.update([0, 1], [{**record, "masks": record["masks"][:, ::2, ::2]} for record in preds], targets)
    with pytest.raises(DataError, match=r"size of RLE is 12 x 16 .* but the image has 24 x 32"):
        evaluator.compute()
