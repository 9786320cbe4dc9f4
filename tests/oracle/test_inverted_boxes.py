"""Boxes of negative size in text and tables: as pycocotools has them in JSON."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from adapter import stats
from command_line import run_here

import jaccard_eval
from jaccard_eval.findings import DataError
from jaccard_eval.options import ReadOptions

pytest.importorskip("pycocotools")

N_IMAGES, N_BOXES = 8, 40
Rows = list[tuple[int, list[float], float]]


def rows(rng: np.random.Generator, *, inverted: dict[int, tuple[int, ...]]) -> Rows:
    """Return image, xywh and score of boxes on a grid; `inverted` names the sides that are negative, by box."""
    made = []
    for at in range(N_BOXES):
        left, top = 60 * (at % 5), 70 * (at // 5 % 8)
        shift = rng.integers(-4, 5, size=2)
        box = [float(left + 2 + shift[0]), float(top + 2 + shift[1]), 40.0, 50.0]
        for side in inverted.get(at, ()):
            box[side] += box[side + 2]
            box[side + 2] *= -1
        made.append((at % N_IMAGES, box, round(float(rng.uniform(0.05, 0.95)), 4)))
    return made


def write_csv(path: Path, boxes: Rows) -> Path:
    lines = ["image,class,score,xmin,ymin,xmax,ymax"]
    for image, (x, y, w, h), score in boxes:
        lines.append(f"{image}.png,dog,{score},{x},{y},{x + w},{y + h}")
    path.write_text("\n".join(lines) + "\n")
    return path


def by_pycocotools(folder: Path, gt: Rows, pred: Rows) -> np.ndarray:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    annotations = [
        {"id": at + 1, "image_id": image, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for at, (image, box, _) in enumerate(gt)
    ]
    images = [{"id": image, "file_name": f"{image}.png", "width": 400, "height": 640} for image in range(N_IMAGES)]
    truth = {"images": images, "categories": [{"id": 1, "name": "dog"}], "annotations": annotations}
    (folder / "gt.json").write_text(json.dumps(truth))
    found = [{"image_id": image, "category_id": 1, "bbox": box, "score": score} for image, box, score in pred]
    (folder / "pred.json").write_text(json.dumps(found))
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(folder / "gt.json"))
        evaluation = COCOeval(coco, coco.loadRes(str(folder / "pred.json")), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return np.asarray(evaluation.stats)


@pytest.mark.parametrize("side", ["gt", "pred"])
@pytest.mark.parametrize("sides", [(0,), (1,), (0, 1)])
def test_a_few_inverted_boxes_of_a_table_give_the_numbers_of_pycocotools(
    tmp_path: Path, side: str, sides: tuple[int, ...]
) -> None:
    # 4 of 40 boxes are a tenth: the most that are kept.
    inverted = dict.fromkeys((3, 11, 20, 39), sides)
    gt = rows(np.random.default_rng(1), inverted=inverted if side == "gt" else {})
    pred = rows(np.random.default_rng(2), inverted=inverted if side == "pred" else {})
    result = jaccard_eval.evaluate(write_csv(tmp_path / "gt.csv", gt), write_csv(tmp_path / "pred.csv", pred))
    assert stats(result) == pytest.approx(by_pycocotools(tmp_path, gt, pred), abs=1e-12)
    assert [one.count for one in result.findings if one.code == "box-negative"] == [4]


def write_labels(folder: Path, boxes: Rows, *, has_score: bool) -> Path:
    folder.mkdir()
    for image in range(N_IMAGES):
        lines = [
            " ".join(["dog", *([f"{score}"] if has_score else []), *map(str, (x, y, x + w, y + h))])
            for at, (x, y, w, h), score in boxes
            if at == image
        ]
        (folder / f"{image}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("side", ["gt", "pred"])
@pytest.mark.parametrize("form", ["csv", "labels"])
def test_the_advice_to_drop_them_gives_the_numbers_of_a_file_without_them(tmp_path: Path, side: str, form: str) -> None:
    # 1 of 40 boxes is 2.5 %.
    flipped = {17: (0, 1)}
    sides = {
        "gt": rows(np.random.default_rng(1), inverted=flipped if side == "gt" else {}),
        "pred": rows(np.random.default_rng(2), inverted=flipped if side == "pred" else {}),
    }
    if form == "csv":
        paths = [write_csv(tmp_path / f"{name}.csv", boxes) for name, boxes in sides.items()]
    else:
        paths = [write_labels(tmp_path / name, boxes, has_score=name == "pred") for name, boxes in sides.items()]
    as_given = jaccard_eval.evaluate(*paths)
    (warning,) = (one for one in as_given.findings if one.code == "box-negative")
    # Labels leave open what their numbers are: that most boxes decided against some is said. A header leaves nothing.
    decided = [one.message for one in as_given.findings if "are inverted or leave" in one.message]
    assert len(decided) == (form == "labels")
    flag = f"--{side}-drop-inverted"
    assert f"Rerun with {flag}" in str(warning.fix)
    done = run_here("evaluate", *paths, flag, "--isolated", "-o", tmp_path / "result.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "result.json").read_text())
    cut = {name: [row for at, row in enumerate(boxes) if name != side or at != 17] for name, boxes in sides.items()}
    expected = by_pycocotools(tmp_path, cut["gt"], cut["pred"])
    names = ("AP", "AP50", "AP75")
    assert [document["metrics"][name] for name in names] == pytest.approx(expected[:3].tolist(), abs=1e-12)
    assert document["inputs"][side]["ignored"]["inverted"] == 1
    assert document["inputs"][side]["boxes"] == N_BOXES - 1
    assert "1 box has a negative width or height: ignored, of 40" in done.stderr
    assert document["options"] == {f"{side}_options": {"drop_inverted": True}}


def test_dropping_many_is_a_warning(tmp_path: Path) -> None:
    """A file that is read in a wrong order must not come out as one with few boxes, in silence."""
    pred = rows(np.random.default_rng(2), inverted=dict.fromkeys((3, 11, 20, 30, 39), (0,)))
    path = write_csv(tmp_path / "pred.csv", pred)
    data = jaccard_eval.load(path, role="pred", options=ReadOptions(drop_inverted=True))
    assert (len(data.boxes), data.ignored["inverted"]) == (35, 5)
    assert [one.severity for one in data.findings if one.code == "box-negative"] == ["warning"]
    few = write_csv(tmp_path / "few.csv", rows(np.random.default_rng(2), inverted={3: (1,)}))
    data = jaccard_eval.load(few, role="pred", options=ReadOptions(drop_inverted=True))
    assert [one.severity for one in data.findings if one.code == "box-negative"] == ["note"]


def test_many_inverted_boxes_doubt_the_order_of_coordinates(tmp_path: Path) -> None:
    gt = rows(np.random.default_rng(1), inverted={})
    pred = rows(np.random.default_rng(2), inverted=dict.fromkeys((3, 11, 20, 30, 39), (0,)))
    with pytest.raises(DataError) as caught:
        jaccard_eval.evaluate(write_csv(tmp_path / "gt.csv", gt), write_csv(tmp_path / "pred.csv", pred))
    assert "error[box-negative]" in str(caught.value)
    assert "pred.csv:5: bbox has width -40" in str(caught.value)
    assert '(pred_options=ReadOptions(box="xywh"|"xyxy"|"cxcywh"|"xxyy"|"yxyx"))' in str(caught.value)


def test_text_and_tables_keep_an_inverted_box_alike(tmp_path: Path) -> None:
    pred = rows(np.random.default_rng(2), inverted={7: (1,)})
    (tmp_path / "labels").mkdir()
    (tmp_path / "gts").mkdir()
    for image in range(N_IMAGES):
        own = [(box, score) for at, box, score in pred if at == image]
        corners = [(x, y, x + w, y + h, score) for (x, y, w, h), score in own]
        lines = [f"dog {score} {x} {y} {right} {bottom}" for x, y, right, bottom, score in corners]
        (tmp_path / "labels" / f"{image}.txt").write_text("\n".join(lines) + "\n")
    text = jaccard_eval.load(tmp_path / "labels", role="pred")
    table = jaccard_eval.load(write_csv(tmp_path / "pred.csv", pred), role="pred")
    assert [one.code for one in text.findings if one.severity == "warning"] == ["box-negative"]
    assert sorted(text.boxes.xywh.tolist()) == sorted(table.boxes.xywh.tolist())
