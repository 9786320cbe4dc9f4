"""Every field of every record with every kind of bad value: refused with file, place, field and value, or said."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.cli import run

pytestmark = pytest.mark.slow

# Written value -> what the message says of it.
NO_NUMBERS = {
    '"abc"': "number",
    '""': "number|empty",
    '"12.5"': "text|number",
    '"1,5"': "number",
    '"12px"': "number",
    '"0x1F"': "number",
    '"1_000"': "number",
    '"\uff11\uff12"': "number",
    '"\u22125"': "number",
    "true": "boolean|number",
    "false": "boolean|number",
    "null": "null",
    "[1]": "array|number",
    "[]": "array|number",
    '{"v": 1}': "object|number",
}
NOT_FINITE = dict.fromkeys(("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "7" * 5000), "finite")
NO_IDS = dict.fromkeys(
    ("null", "true", "1.5", "NaN", "Infinity", "1e400", "1e30", "[1]", '{"v": 1}', "9223372036854775808", "7" * 5000),
    "integer|range",
)
NO_FLAGS = dict.fromkeys(("2", "-1", "0.5", "256", '"0"', '"true"', "NaN", "[0]", "{}"), "0 or 1")

GT = {
    "images": [{"id": i, "file_name": f"{i}.png", "width": 100, "height": 100} for i in (1, 2)],
    "annotations": [
        {"id": i, "image_id": 1 + i % 2, "category_id": i, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0}
        for i in (1, 2)
    ],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
}
PRED = [{"image_id": 1 + i % 2, "category_id": i, "bbox": [10, 10, 20, 20], "score": 0.5} for i in (1, 2)]

Steps = tuple[str | int, ...]

COCO_FIELDS: dict[tuple[str, Steps], dict[str, str]] = {
    **{("gt", ("annotations", 1, "bbox", i)): NO_NUMBERS | NOT_FINITE for i in range(4)},
    **{("pred", (1, "bbox", i)): NO_NUMBERS | NOT_FINITE for i in range(4)},
    ("gt", ("annotations", 1, "area")): {
        name: said for name, said in (NO_NUMBERS | NOT_FINITE).items() if name != "null"
    },
    ("pred", (1, "score")): NO_NUMBERS | NOT_FINITE,
    **{("gt", ("annotations", 1, field)): NO_IDS for field in ("image_id", "category_id")},
    **{("pred", (1, field)): NO_IDS for field in ("image_id", "category_id")},
    ("gt", ("images", 1, "id")): NO_IDS,
    ("gt", ("categories", 1, "id")): NO_IDS,
    **{("gt", ("annotations", 1, flag)): NO_FLAGS for flag in ("iscrowd", "ignore")},
    **{("gt", (section,)): dict.fromkeys(("null", "1", '"x"', "{}"), "array") for section in GT},
    **{("gt", (section, 1)): dict.fromkeys(("null", "1", '"x"', "[]"), "object") for section in GT},
    ("pred", (1,)): dict.fromkeys(("null", "1", '"x"', "[1]"), "object"),
    ("gt", ("annotations", 1, "bbox")): dict.fromkeys(
        ("null", "[1, 2, 3]", "[1, 2, 3, 4, 5]", '"1"', "{}"), "4 numbers"
    ),
    ("pred", (1, "bbox")): dict.fromkeys(("null", "[]", "[[1, 2, 3, 4]]", '"1"', "{}", "7"), "4 numbers"),
}


def with_value(document: Any, path: Steps, value: str) -> str:
    """Return JSON with one value replaced by a text."""
    copy = json.loads(json.dumps(document))
    parent = copy
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = "@"
    return json.dumps(copy).replace('"@"', value)


def evaluate(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str]:
    """Return exit code and everything on standard error."""
    code = run.run(["evaluate", *map(str, argv), "--json"])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(("side", "path"), COCO_FIELDS, ids=str)
def test_every_bad_value_in_coco_json_is_refused_with_its_place(
    side: str, path: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"gt": tmp_path / "gt.json", "pred": tmp_path / "pred.json"}
    documents = {"gt": GT, "pred": PRED}
    for value, mention in COCO_FIELDS[side, path].items():
        for name, file in files.items():
            file.write_text(with_value(documents[name], path, value) if name == side else json.dumps(documents[name]))
        code, said = evaluate(capsys, files["gt"], files["pred"])
        first = said.partition("\n")[0]
        assert (code, f"{side}.json: " in first, shown_path(path) in first) == (3, True, True), f"{value[:20]}: {said}"
        assert re.search(mention, first), f"{value[:20]}: {said}"


def shown_path(path: Steps) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


TEXT_NUMBERS = {  # of delimited text and label lines, as they are written there
    **dict.fromkeys(("nan", "NaN", "inf", "-inf", "infinity", "1e400", "-1e400"), "finite|number"),
    **dict.fromkeys(
        ("abc", "12px", "0x1F", "1_000", "true", "[1]", "{1}", "50%", "--5", "1e", "-", "NA", "N/A"), "number"
    ),
    **dict.fromkeys(("\uff11\uff12", "\u22125", "\u0663", "\u00b2", "1/2", "#DIV/0!", "None", "null"), "number"),
}


TABLE_CELLS = [
    *(("gt", column) for column in ("xmin", "ymin", "xmax", "ymax", "area", "width")),
    *(("pred", column) for column in ("xmin", "ymin", "xmax", "ymax", "score")),
]


@pytest.mark.parametrize(("side", "column"), TABLE_CELLS)
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_every_bad_number_in_a_table_is_refused_with_line_and_column(
    side: str, column: str, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        "gt": [dict(image=image, **{"class": "dog"}, **numbers("10 10 30 30 400 0 100 100")) for image in ("a", "b")],
        "pred": [dict(image=image, **{"class": "dog"}, **numbers("10 10 30 30 0.25")) for image in ("a", "b")],
    }
    for value, mention in TEXT_NUMBERS.items():
        for name, own in rows.items():
            lines = [own[0], own[1] | {column: value} if name == side else own[1]]
            text = [mark.join(own[0]), *(mark.join(line.values()) for line in lines)]
            (tmp_path / f"{name}.csv").write_text("\n".join(text), encoding="utf-8")
        code, said = evaluate(capsys, tmp_path / "gt.csv", tmp_path / "pred.csv")
        first = said.partition("\n")[0]
        assert (code, f"{side}.csv:3: {column}: " in first) == (3, True), f"{value}: {said}"
        assert re.search(mention, first), f"{value}: {said}"


def numbers(text: str) -> dict[str, str]:
    values = text.split()
    names = "xmin ymin xmax ymax score" if len(values) == 5 else "xmin ymin xmax ymax area iscrowd width height"
    return dict(zip(names.split(), values, strict=True))


@pytest.mark.parametrize("side", ["gt", "pred"])
@pytest.mark.parametrize("column", ["image", "class"])
def test_an_empty_name_in_a_table_is_refused(
    side: str, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("gt", "pred"):
        row = {"image": "a", "class": "dog", **numbers("10 10 30 30 0.5")} | ({column: " "} if name == side else {})
        (tmp_path / f"{name}.csv").write_text(f"{','.join(row)}\n{','.join(row.values())}\n")
    code, said = evaluate(capsys, tmp_path / "gt.csv", tmp_path / "pred.csv")
    assert (code, f"{side}.csv:2: {column}: " in said) == (3, True), said


@pytest.mark.parametrize("value", ["2", "-1", "0.5", "yes", "nan", "1.0"])
@pytest.mark.parametrize("flag", ["iscrowd", "difficult", "IsGroupOf", "ignore"])
def test_a_flag_in_a_table_is_0_or_1(flag: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, row = f"image,class,xmin,ymin,xmax,ymax,{flag}", f"a,dog,10,10,30,30,{value}"
    (tmp_path / "gt.csv").write_text(f"{header}\n{row}\n")
    (tmp_path / "pred.csv").write_text("image,class,xmin,ymin,xmax,ymax,score\na,dog,1,1,3,3,0.5\n")
    code, said = evaluate(capsys, tmp_path / "gt.csv", tmp_path / "pred.csv")
    assert (code, f"gt.csv:2: {flag}: '{value}' is neither 0 nor 1" in said) == (3, True), said


@pytest.fixture
def labels(sample_data: Path, tmp_path: Path) -> Path:
    """Labels and predictions of two pictures; the second line of a.txt is for the tests."""
    line = "0 0.375 0.25 0.25 0.3"
    for side, end in (("gt", ""), ("pred", " 0.9")):
        (tmp_path / side).mkdir()
        for name in ("a", "b"):
            (tmp_path / f"{side}/{name}.txt").write_text(f"{line}{end}\n1 0.5 0.5 0.2 0.2{end}\n")
    (tmp_path / "images").mkdir()
    for name in ("a", "b"):
        shutil.copy(sample_data / "yolo/images/val/street_01.png", tmp_path / f"images/{name}.png")
    return tmp_path


@pytest.mark.parametrize(("side", "column"), [("gt", i) for i in range(5)] + [("pred", i) for i in range(6)])
def test_every_bad_field_of_a_label_line_is_refused_with_its_line(
    side: str, column: int, labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = labels / side / "a.txt"
    first, second = file.read_text().splitlines()
    for value, mention in (TEXT_NUMBERS | {"": "columns", "+0.5": "number|class", "1,5": "number|class"}).items():
        fields = second.split()
        fields[column] = value
        file.write_text(f"{first}\n{' '.join(fields)}\n", encoding="utf-8")
        code, said = evaluate(
            capsys, labels / "gt", labels / "pred", "--images", labels / "images", "--names", "cat,dog"
        )
        top = said.partition("\n")[0]
        assert (code, f"{side}/a.txt:2: " in top) == (3, True), f"{value}: {said}"
        assert re.search(mention if column else "class|columns", top), f"{value}: {said}"
        assert repr(value)[1:-1] in top or value in ("", "1e400", "-1e400"), f"{value}: {said}"


@pytest.mark.parametrize(("column", "value"), [(1, "1.2"), (2, "-0.2"), (3, "-0.1"), (4, "1.5"), (1, "320"), (3, "64")])
@pytest.mark.parametrize("side", ["gt", "pred"])
def test_a_coordinate_outside_of_the_picture_is_refused_or_said(
    side: str, column: int, value: str, labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = labels / side / "a.txt"
    first, second = file.read_text().splitlines()
    fields = second.split()
    fields[column] = value
    file.write_text(f"{first}\n{' '.join(fields)}\n")
    code, said = evaluate(capsys, labels / "gt", labels / "pred", "--images", labels / "images", "--names", "cat,dog")
    assert code == 3 or (side == "pred" and "warning[" in said), said
    assert re.search(rf"{side}/a.txt:2: .* is {value}", said), said
