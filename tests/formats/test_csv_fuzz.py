"""Random tables: read as the csv module and the rules of this file read them, or refused; never otherwise."""

import csv
import io
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaccard_eval.findings import DataError
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions

N_TABLES = 400

# The usual names, which go before the rare ones.
IMAGES = ("image", "image_path", "filename", "file", "image_name", "frame", "image_id", "img", "img_id", "patient_id")
RARE_IMAGES = ("image_file", "image_filename", "img_name", "img_path", "fname", "frame_name", "frame_id")
CLASSES = ("class_name", "label_name", "class", "label", "category", "name", "cls", "class_id", "category_id")
RARE_CLASSES = ("class_label", "object_class", "species", "labels", "object", "cls_id", "class_idx", "label_index")
SCORES = ("score", "scores", "confidence", "conf", "probability", "prob", "objectness")
RARE_SCORES = ("confidence_score", "det_score", "det_confidence", "detection_score", "bbox_score", "certainty")
BOXES = {
    "xyxy": ("xmin,ymin,xmax,ymax", "x1,y1,x2,y2", "left,top,right,bottom", "xtl,ytl,xbr,ybr"),
    "cxcywh": ("cx,cy,w,h", "x_center,y_center,width,height", "xc,yc,w,h"),
    "xywh": ("bbox_x,bbox_y,bbox_w,bbox_h", "left,top,width,height", "x,y,w,h", "x,y,width,height"),
}
RARE_BOXES = {
    "xyxy": ("x0,y0,x1,y1", "bbox_x1,bbox_y1,bbox_x2,bbox_y2", "box_xmin,box_ymin,box_xmax,box_ymax"),
    "cxcywh": ("center_x,center_y,width,height", "bbox_cx,bbox_cy,bbox_w,bbox_h"),
    "xywh": ("xmin,ymin,width,height", "x1,y1,w,h", "bb_left,bb_top,bb_width,bb_height", "box_x,box_y,box_w,box_h"),
}
OTHERS = ("occluded", "notes", "source", "track", "weather")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that was written, and what its writer knows of it."""

    text: str
    delimiter: str
    encoding: str
    columns: dict[str, tuple[int, ...]]  # by what they mean
    role: str
    commas: bool
    scored: str  # "all", "some", "none", or "no column"


def spelled(name: str, rng: random.Random) -> str:
    """Write a name as another tool would."""
    blank = rng.choice(("_", "_", " ", "-", ""))
    return rng.choice((str, str, str.upper, str.title))(name.replace("_", blank))


def number(value: float, *, commas: bool) -> str:
    text = repr(value)
    return text.replace(".", ",") if commas else text


def coordinates(encoding: str, rng: random.Random, *, is_norm: bool) -> list[float]:
    scale, digits = (1000.0, 4) if is_norm else (1.0, rng.choice((0, 1, 2)))
    left, top = (rng.uniform(0, 600) for _ in range(2))
    width, height = (rng.uniform(5, 300) for _ in range(2))
    box = {
        "xyxy": (left, top, left + width, top + height),
        "cxcywh": (left + width / 2, top + height / 2, width, height),
        "xywh": (left, top, width, height),
    }[encoding]
    return [round(value / scale, digits) for value in box]


def make(rng: random.Random) -> Table:
    encoding = rng.choice(("xyxy", "xywh", "cxcywh"))
    is_packed = rng.random() < 0.15
    delimiter = rng.choice((",", ",", ";", "\t", "|"))
    commas = not is_packed and rng.random() < 0.2
    role, is_norm = rng.choice(("gt", "pred")), rng.random() < 0.2
    scored = rng.choice(("all", "all", "all", "all", "some", "none", "no column")) if role == "pred" else "no column"
    meanings: list[tuple[str, str]] = []
    for meaning, usual, rare in (
        ("image", IMAGES, RARE_IMAGES),
        ("class", CLASSES, RARE_CLASSES),
        ("score", SCORES, RARE_SCORES),
    ):
        if meaning == "score" and scored == "no column":
            continue
        is_rare = rng.random() < 0.5
        meanings.append((meaning, rng.choice(rare if is_rare else usual)))
        if not is_rare and rng.random() < 0.3:
            meanings.append(("other", rng.choice(rare)))  # a name that must not count beside the usual one
    if is_packed:
        meanings.append(("box", "bbox"))
    else:
        is_rare = rng.random() < 0.5
        names = rng.choice((RARE_BOXES if is_rare else BOXES)[encoding]).split(",")
        meanings += [("box", name) for name in names]
        if not is_rare and rng.random() < 0.2:
            meanings += [("other", name) for name in ("x0", "y0") if name not in names]
    meanings += [("other", name) for name in rng.sample(OTHERS, rng.randint(0, 3))]
    order = list(range(len(meanings)))
    if rng.random() < 0.5:  # the columns of a box in their order, all else anywhere
        box = iter([at for at in order if meanings[at][0] == "box"])
        rng.shuffle(order)
        order = [next(box) if meanings[at][0] == "box" else at for at in order]
    header = [spelled(meanings[at][1], rng) for at in order]
    out = io.StringIO(newline="")
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    end = rng.choice(("\n", "\n", "\r\n"))
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(header)
    by_number = rng.random() < 0.4
    for row in range(rng.randint(1, 12)):
        box = coordinates(encoding, rng, is_norm=is_norm)
        texts = iter([number(value, commas=commas) for value in box])
        cells = []
        for meaning, _ in meanings:
            if meaning == "image":
                cells.append(f"{rng.choice('abc')}{rng.choice(('.png', ' 1.jpg', ', x.png', '/y.png'))}")
            elif meaning == "class":
                cells.append(
                    str(rng.randint(0, 5)) if by_number else rng.choice(("dog", "traffic light", 'a "big" cat'))
                )
            elif meaning == "score":
                is_empty = scored == "none" or (scored == "some" and row % 2 == 0)
                cells.append("" if is_empty else number(round(rng.uniform(0.01, 0.99), 3), commas=commas))
            elif meaning == "box" and is_packed:
                join = rng.choice(("[{}, {}, {}, {}]", "{} {} {} {}", "({},{},{},{})"))
                cells.append(join.format(*texts))
            elif meaning == "box":
                cells.append(next(texts))
            else:
                cells.append(rng.choice(("", "0", "some text", "0.25" if not commas else "0,25", "a, b; c | d")))
        writer.writerow([cells[at] for at in order])
        if rng.random() < 0.05:
            out.write(end)
    places = {
        meaning: tuple(at for at, source in enumerate(order) if meanings[source][0] == meaning)
        for meaning in ("image", "class", "score", "box")
    }
    text = ("\ufeff" if rng.random() < 0.1 else "") + out.getvalue()
    return Table(
        text=text, delimiter=delimiter, encoding=encoding, columns=places, role=role, commas=commas, scored=scored
    )


def plain_rows(table: Table) -> list[tuple[str, str, list[float], float | None]]:
    """Read image, class, xywh and score of each row with the csv module."""
    text = table.text.removeprefix("\ufeff")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter) if row][1:]

    def value(cell: str) -> float:
        return float(cell.replace(",", ".") if table.commas else cell)

    found = []
    for row in rows:
        cells = [row[at] for at in table.columns["box"]]
        if len(cells) == 1:
            cells = re.findall(r"[\d.]+", cells[0])
        a, b, c, d = map(value, cells)
        xywh = {"xyxy": [a, b, c - a, d - b], "xywh": [a, b, c, d], "cxcywh": [a - c / 2, b - d / 2, c, d]}[
            table.encoding
        ]
        score = [row[at] for at in table.columns["score"]]
        image, label = row[table.columns["image"][0]], row[table.columns["class"][0]]
        found.append((image, label, xywh, value(score[0]) if score and score[0] else None))
    return found


def may_refuse(table: Table, error: DataError) -> bool:
    """Whether a refusal is for what is wrong, or can be taken in two ways, in the table."""
    codes = {finding.code for finding in error.findings if finding.severity == "error"}
    allowed = set()
    if table.scored in ("some", "none", "no column") and table.role == "pred":
        allowed |= {"score-missing", "csv-number"}
    if table.commas:  # among whole numbers, or few with a comma, or all like 1,000
        allowed |= {"csv-number"}
    header = {re.sub(r"[\W_]", "", name.lower()) for name in table.text.splitlines()[0].split(table.delimiter)}
    if header >= {"x0", "y0", "x1", "y1", "x2", "y2"}:  # three points, or a box and one
        allowed |= {"columns-ambiguous"}
    return codes <= allowed


@pytest.mark.parametrize("seed", range(8))
def test_a_random_table_is_read_as_the_csv_module_reads_it_or_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    n_read = 0
    for at in range(N_TABLES // 8):
        table = make(rng)
        path = tmp_path / f"{at}{'.tsv' if table.delimiter == chr(9) else rng.choice(('.csv', '.csv', '.txt'))}"
        path.write_bytes(table.text.encode())
        is_packed = len(table.columns["box"]) == 1
        options = ReadOptions(role=table.role, box=table.encoding if is_packed else None)
        try:
            data = read_dataset(path, options)
        except DataError as error:
            assert may_refuse(table, error), f"{error}\n{table.text}"
            continue
        n_read += 1
        expected = plain_rows(table)
        boxes = data.boxes
        assert [str(data.images.keys[row]) for row in boxes.image] == [row[0] for row in expected], table.text
        assert [data.labels.names[row] for row in boxes.label] == [row[1] for row in expected], table.text
        for given, row in zip(boxes.xywh.tolist(), expected, strict=True):
            assert given == pytest.approx(row[2], abs=1e-9), table.text
        if table.role == "pred":
            assert boxes.score is not None
            assert boxes.score.tolist() == [row[3] for row in expected], table.text
    assert n_read >= N_TABLES // 8 * 0.6  # most of them have nothing to be refused for
