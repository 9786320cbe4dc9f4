"""Headerless text with a class and five numbers: the layout is found, or asked for with the flags that settle it."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from command_line import run_here
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import evaluate
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import DataError
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions

Floats = npt.NDArray[np.float64]

PLACES = ("box-conf", "conf-box")
ENCODINGS = ("cxcywh", "xywh", "xyxy")
UNITS = ("norm", "px")
SIZES = ((64, 48), (640, 480), (4000, 3000))
SCENES = 200  # of each layout
FIELDS = {"cxcywh": "cx cy w h", "xywh": "x y w h", "xyxy": "x1 y1 x2 y2"}
CONVENTION = ("box-conf", "norm", "cxcywh")  # what few boxes of fractions are read as: Ultralytics and darknet
# What tools write: that, Padilla's evaluator with fractions; Cartucho's, Padilla's with pixels.
WRITTEN = {(place, units, encoding) for place in PLACES for units, encoding in (("norm", "cxcywh"), ("px", "xyxy"))}
FLAGS = re.compile(r"(?:--pred-columns (?P<columns>[a-z-]+) )?--pred-box (?P<box>[a-z]+)")


def scene(rng: np.random.Generator) -> tuple[Floats, Floats, tuple[int, int]]:
    """Boxes as left, top, width and height in fractions, scores, and the size of the image."""
    n = int(rng.choice([1, 2, 3, 5, 10, 20, 50, 200]))
    smallest, largest = ((0.01, 0.06), (0.05, 0.2), (0.02, 0.6), (0.3, 0.95))[rng.integers(4)]
    diameter = np.exp(rng.uniform(np.log(smallest), np.log(largest), (n, 1)))
    side = np.minimum(diameter * np.exp(rng.normal(0, 0.35, (n, 2))), 0.98)
    left = (rng.random((n, 2)), rng.beta(2, 2, (n, 2)))[rng.integers(2)] * (1 - side)
    scores = (rng.random(n), rng.beta(5, 1.2, n), rng.beta(0.6, 4, n))[rng.integers(3)]
    return np.hstack((left, side)), scores, SIZES[rng.integers(3)]


def columns(xywh: Floats, scores: Floats, place: str, encoding: str) -> Floats:
    low, side = xywh[:, :2], xywh[:, 2:]
    first, second = {"cxcywh": (low + side / 2, side), "xywh": (low, side), "xyxy": (low, low + side)}[encoding]
    box, score = np.hstack((first, second)), scores[:, np.newaxis]
    return np.hstack((box, score) if place == "box-conf" else (score, box))


def write(folder: Path, numbers: Floats) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = (" ".join(("0", *(f"{value:.6f}" for value in row))) for row in numbers.tolist())
    (folder / "a.txt").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path, **options: object) -> Dataset:
    return read_dataset(folder, ReadOptions(role="pred", **options), "yolo")  # type: ignore[arg-type]


def is_as_written(data: Dataset, xywh: Floats, scores: Floats) -> bool:
    assert data.boxes.score is not None
    scale = max(1.0, float(np.abs(xywh).max()))
    return bool(
        np.allclose(data.boxes.xywh, xywh, atol=4e-6 * scale) and np.allclose(data.boxes.score, scores, atol=1e-6)
    )


def settles(folder: Path, flags: dict[str, str], xywh: Floats, scores: Floats) -> bool:
    """Whether the flags make what was meant of a file; boxes inside out are an error of their own."""
    try:
        return is_as_written(read(folder, **flags), xywh, scores)
    except DataError:
        return False


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("place", PLACES)
def test_a_layout_is_read_right_or_asked_for_and_the_answer_settles_it(
    tmp_path: Path, place: str, units: str, encoding: str
) -> None:
    rng = np.random.default_rng(PLACES.index(place) * 6 + UNITS.index(units) * 3 + ENCODINGS.index(encoding))
    outcomes: Counter[str] = Counter()
    for _ in range(SCENES):
        xywh, scores, size = scene(rng)
        if units == "px":
            xywh = xywh * np.array([*size, *size])
        folder = write(tmp_path / "labels", columns(xywh, scores, place, encoding))
        try:
            data = read(folder)
        except DataError as error:
            text = str(error)
            assert "error[columns-ambiguous]" in text
            given = [{name: flag for name, flag in found.groupdict().items() if flag} for found in FLAGS.finditer(text)]
            assert len(given) >= 2
            offered = any(settles(folder, flags, xywh, scores) for flags in given)
            # What the message offers may have left out one of the two that no value tells apart; --pred-box has it.
            assert offered or is_as_written(read(folder, columns=place, box=encoding), xywh, scores)
            outcomes["asked"] += 1
            continue
        if is_as_written(data, xywh, scores):
            outcomes["right"] += 1
        else:
            doubts = [str(finding) for finding in data.findings if finding.code in ("box-assumed", "columns-assumed")]
            assert doubts, f"silently wrong: {place} {encoding} in {units}: {data.details}"
            assert "--pred-box" in doubts[0]
            assert FIELDS[encoding] in doubts[0]  # what was meant is among what is possible
            named = read(folder, box=encoding)  # with the encoding named, the place is right or still in doubt
            assert is_as_written(named, xywh, scores) or "--pred-columns" in "".join(map(str, named.findings))
            assert settles(folder, {"columns": place, "box": encoding}, xywh, scores)
            outcomes["said"] += 1
    if (place, units, encoding) == CONVENTION:
        assert outcomes["right"] == SCENES
    if (place, units, encoding) in WRITTEN:
        assert outcomes["said"] == 0 or units == "norm"
        assert outcomes["right"] >= 0.6 * SCENES  # the others have one to five boxes, by and large


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_named_encoding_is_obeyed_when_the_place_of_the_score_is_found(
    tmp_path: Path, place: str, encoding: str
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        xywh, scores, _ = scene(rng)
        if len(xywh) < 10:
            continue
        folder = write(tmp_path / "labels", columns(xywh, scores, place, encoding))
        try:
            data = read(folder, box=encoding)
        except DataError as error:
            assert "--pred-columns" in str(error)
            continue
        said = "".join(map(str, data.findings))
        assert is_as_written(data, xywh, scores) or ("--pred-columns" in said and place == "conf-box")


def test_a_few_inverted_corners_do_not_turn_a_file_into_sizes(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    left = rng.uniform(0, 500, (400, 2))
    corners = np.hstack((left, left + rng.uniform(10, 130, (400, 2))))
    corners[::40] = corners[::40][:, [2, 3, 0, 1]]  # 10 of 400: 2.5 %
    folder = write(tmp_path / "labels", np.round(corners))
    data = read_dataset(folder, ReadOptions(role="gt"), "yolo")
    told = {finding.code: finding for finding in data.findings}
    assert "10 of 400 boxes are inverted or leave their image as x1 y1 x2 y2" in told["box-assumed"].message
    assert told["box-negative"].count == 10
    assert "a.txt:1: " in told["box-negative"].message  # the first of those that are inverted, named with its line
    assert data.boxes.xywh[1].tolist() == [
        *np.round(corners[1, :2]),
        *(np.round(corners[1, 2:]) - np.round(corners[1, :2])),
    ]


def average_precision(gt: list[dict[str, object]], pred: list[dict[str, object]], n_images: int) -> float:
    """AP of pycocotools."""
    truth = COCO()
    images = [{"id": image, "width": 1000, "height": 1000} for image in range(n_images)]
    truth.dataset = {"images": images, "annotations": gt, "categories": [{"id": 0, "name": "0"}]}
    truth.createIndex()
    judged = COCOeval(truth, truth.loadRes(pred), "bbox")
    judged.evaluate()
    judged.accumulate()
    judged.summarize()
    return float(judged.stats[0])


@pytest.mark.parametrize("place", PLACES)
def test_corners_as_fractions_have_the_ap_of_pycocotools(tmp_path: Path, place: str) -> None:
    rng = np.random.default_rng(11)
    (tmp_path / "images").mkdir()
    gt, pred = [], []
    for image in range(8):
        left, side = rng.uniform(0, 0.6, (6, 2)), rng.uniform(0.1, 0.4, (6, 2))
        boxes = np.round(np.hstack((left, side)) * 1000) / 1000
        moved = np.round((boxes + rng.normal(0, 0.02, boxes.shape)).clip(0.001, 0.6) * 1000) / 1000
        scores = np.round(rng.uniform(0.2, 1, 6), 3)
        Image.new("L", (1000, 1000)).save(tmp_path / f"images/{image}.png")
        for name, rows in (
            ("gt", columns(boxes, scores, "box-conf", "cxcywh")[:, :4]),
            ("pred", columns(moved, scores, place, "xyxy")),
        ):
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            (folder / f"{image}.txt").write_text("".join(f"0 {' '.join(map(repr, row))}\n" for row in rows.tolist()))
        gt += [
            {"id": len(gt) + row + 1, "image_id": image, "category_id": 0, "iscrowd": 0}
            | {"bbox": (box * 1000).tolist(), "area": float(box[2] * box[3] * 1e6)}
            for row, box in enumerate(boxes)
        ]
        pred += [
            {"image_id": image, "category_id": 0, "bbox": (box * 1000).tolist(), "score": float(score)}
            for box, score in zip(moved, scores, strict=True)
        ]
    options = {role: ReadOptions(role=role, images=tmp_path / "images") for role in ("gt", "pred")}
    result = evaluate(tmp_path / "gt", tmp_path / "pred", gt_options=options["gt"], pred_options=options["pred"])
    assert result["AP"] == pytest.approx(average_precision(gt, pred, 8), abs=1e-12)


def test_the_advice_of_an_ambiguous_file_is_a_command_that_runs(tmp_path: Path) -> None:
    write(tmp_path / "gt", np.array([[10, 20, 50, 60]]))
    write(tmp_path / "pred", np.array([[10, 20, 50, 60, 0.3]]))
    asked = run_here(tmp_path / "gt", tmp_path / "pred")
    assert asked.returncode == 3
    advice = FLAGS.search(asked.stderr)
    assert advice is not None
    box = ["--gt-box", str(advice["box"])]
    answered = run_here(tmp_path / "gt", tmp_path / "pred", *box, *advice.group().split(), "--json")
    assert answered.returncode == 0
    assert json.loads(answered.stdout)["metrics"]["AP"] == pytest.approx(1, abs=1e-12)  # one box, found as it is


def test_few_boxes_of_fractions_are_read_as_yolo_writes_them(tmp_path: Path) -> None:
    data = read(write(tmp_path / "pred", np.array([[0.5, 0.5, 0.2, 0.4, 0.3]])))
    assert is_as_written(data, np.array([[0.4, 0.3, 0.2, 0.4]]), np.array([0.3]))
    (note,) = map(str, data.findings)
    assert note.startswith("note[columns-assumed]")
    assert "read as class cx cy w h conf, as YOLO writes it, but 1 box also fits as class conf cx cy w h" in note
    assert "--pred-columns and --pred-box" in note


def test_values_that_speak_against_the_convention_are_asked_about(tmp_path: Path) -> None:
    # With a centre at 0.1 and a width of 0.6 the box would begin at -0.2. As corners, and as left, top, width and
    # height behind or before a score, it lies in its image.
    with pytest.raises(DataError, match=r"columns-ambiguous.*--pred-columns") as caught:
        read(write(tmp_path / "pred", np.array([[0.1, 0.1, 0.6, 0.6, 0.3]])))
    assert "cx cy w h" not in str(caught.value)
