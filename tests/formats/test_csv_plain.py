"""The short way through a table of plain cells gives what the long way gives, to the last bit, or is not taken."""

import warnings
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaccard_eval import BoxTable, DataError, Dataset, load
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.columns import open_table
from jaccard_eval.reading.tabular.delimited import plain_table, text_table
from jaccard_eval.reading.tabular.table import add_boxes, read_cells

SAMPLE = Path(__file__).parents[2] / "sample_data"
SIDES = "image,class,xmin,ymin,xmax,ymax"


def short_way(path: Path, role: str = "gt") -> Dataset | DataError | None:
    draft = Draft(str(path), "csv", ReadOptions(role=role))
    found = plain_table(open_table(path, draft), draft.options)
    if found is None:
        return None
    add_boxes(*found, draft)
    return built(draft)


def long_way(path: Path, role: str = "gt") -> Dataset | DataError:
    draft = Draft(str(path), "csv", ReadOptions(role=role))
    try:
        found = text_table(open_table(path, draft), draft)
    except DataError as error:
        return error
    if found is not None:
        table, columns = found
        add_boxes(table, columns, read_cells(table, columns, draft.findings), draft)
    return built(draft)


def built(draft: Draft) -> Dataset | DataError:
    try:
        return draft.build()
    except DataError as error:
        return error


def told(result: Dataset | DataError) -> object:
    """Everything that a reading gives, arrays as their bytes."""
    if isinstance(result, DataError):
        return str(result)
    columns = {one.name: getattr(result.boxes, one.name) for one in fields(BoxTable)}
    arrays = {name: None if column is None else column.tobytes() for name, column in columns.items()}
    images = result.images.keys, result.images.sizes.tobytes(), result.images.listed
    notes = [str(one) for one in result.findings], result.details, result.ignored, result.units, result.reading
    return arrays, images, result.labels, notes


def table(folder: Path, *rows: str, header: str = SIDES, end: str = "\n") -> Path:
    path = folder / "a.csv"
    path.write_text(end.join([header, *rows]) + end, encoding="utf-8", newline="")
    return path


LOW = st.one_of(
    st.floats(-10, 10).map(repr),
    st.integers(-3, 10).map(str),
    st.sampled_from(["0", "1", "-0", "007", ".5", "7.", "1E-2", "+2", " 4", "4 "]),
)
HIGH = st.one_of(
    st.floats(10, 1e6).map(repr), st.integers(10, 2000).map(str), st.sampled_from(["1e3", "640", "480.0", "0100"])
)
ODD = st.sampled_from(
    ["", "nan", "inf", "1_0", "1,5", "True", "dog", "0x1", '"3"', "\uff11", "1.2.3", "1e400", "é", "\t2"]
)
TEXTS = st.sampled_from(
    [
        '"a,b"',
        '"c;d"',
        '" e"',
        '"f ""g"""',
        "a.jpg",
        "b.jpg",
        "b",
        "7",
        "007",
        "dog",
        "traffic light",
        " cat",
        "é",
        "NA",
        "nan",
        "1.0",
    ]
)
HEADERS = (
    SIDES,
    "image,width,height,class,xmin,ymin,xmax,ymax,score",
    "filename,class_id,class_name,x,y,w,h,iscrowd,extra",
    "image,class,cx,cy,w,h,area",
)
TEXT_COLUMNS = {"image", "filename", "class", "class_name", "class_id", "extra"}


def column(name: str) -> st.SearchStrategy[str]:
    """Cells that a column may have; ends and sizes are larger than starts."""
    if name == "iscrowd":
        return st.sampled_from(["0", "1", "true"])
    if name in TEXT_COLUMNS:
        return TEXTS
    return LOW if name in {"xmin", "ymin", "x", "y", "cx", "cy", "score"} else HIGH


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[str], str]:
    header = draw(st.sampled_from(HEADERS))
    mark = draw(st.sampled_from([",", ";", "\t", "|"]))
    odd = draw(st.booleans())
    cells = [st.one_of(column(name), ODD) if odd and name != "iscrowd" else column(name) for name in header.split(",")]
    rows = draw(st.lists(st.tuples(*cells), max_size=6))
    lines = [mark.join(row) for row in rows]
    if draw(st.integers(0, 3)) == 0:
        bare = [draw(TEXTS), *(draw(TEXTS) if name in TEXT_COLUMNS else "" for name in header.split(",")[1:])]
        lines.insert(draw(st.integers(0, len(lines))), mark.join(bare))
    if draw(st.integers(0, 9)) == 0:
        lines.append(draw(st.sampled_from(["", " ", mark, mark * 5, "a", "a" + mark * 12])))
    return header.replace(",", mark), lines, draw(st.sampled_from(["\n", "\r\n"]))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=tables(), role=st.sampled_from(["gt", "pred"]))
def test_both_ways_give_the_same_wherever_the_short_one_is_taken(
    drawn: tuple[str, list[str], str], role: str, tmp_path: Path
) -> None:
    header, rows, end = drawn
    path = table(tmp_path, *rows, header=header, end=end)
    short = short_way(path, role)
    assert short is None or told(short) == told(long_way(path, role))


@pytest.mark.parametrize(("name", "role"), [("gt.csv", "gt"), ("better.csv", "pred"), ("worse.csv", "pred")])
def test_the_sample_takes_the_short_way(name: str, role: str) -> None:
    short = short_way(SAMPLE / "csv" / name, role)
    assert short is not None
    assert told(short) == told(long_way(SAMPLE / "csv" / name, role))


@pytest.mark.parametrize(
    "row",
    [
        "a.jpg,dog,1,2,3,nan",
        "a.jpg,dog,1,2,3,inf",
        "a.jpg,dog,1,2,3,",
        "a.jpg,dog,1,2,3",
        "a.jpg,dog,1,2,3,4,5",
        ",dog,1,2,3,4",
        "a.jpg,,1,2,3,4",
        "a.jpg,dog,1,2,,",
        "a.jpg,dog,1_0,2,3,4",
        'a.jpg,dog,"1,5",2,3,4',
        "a.jpg,dog,\uff11,2,3,4",
    ],
)
def test_a_cell_that_is_not_plain_takes_the_long_way(row: str, tmp_path: Path) -> None:
    assert short_way(table(tmp_path, "b.jpg,cat,1.5,2,30,40", "b.jpg,cat,1,2.5,30,40")) is not None
    assert short_way(table(tmp_path, "b.jpg,cat,1.5,2,30,40", row)) is None


def test_quotes_around_plain_cells_are_no_reason_for_the_long_way(tmp_path: Path) -> None:
    path = table(tmp_path, '"a, b.jpg","traffic ""light""","1.5",2,30,40', "b.jpg,dog,1,2,30,40")
    short = short_way(path)
    assert isinstance(short, Dataset)
    assert (short.images.keys, short.labels.names) == (("a, b.jpg", "b.jpg"), ("dog", 'traffic "light"'))
    assert told(short) == told(long_way(path))


def test_a_row_that_is_short_of_a_field_is_not_made_up_for_by_a_quoted_delimiter(tmp_path: Path) -> None:
    path = table(tmp_path, '"a,b",dog,1,2,30,40', header=f"{SIDES},extra")
    assert short_way(path) is None
    assert "expected 7 fields, got 6" in str(long_way(path))


def test_scores_of_ground_truth_are_counted_the_short_way_unless_all_are_1(tmp_path: Path) -> None:
    rows = "a.jpg,dog,1,2,30,40,0.5", "a.jpg,dog,2,3,40,50,"
    short = short_way(table(tmp_path, *rows, header=f"{SIDES},score"))
    assert isinstance(short, Dataset)
    assert short.ignored == {"score": 1}
    assert told(short) == told(long_way(tmp_path / "a.csv"))
    assert short_way(table(tmp_path, rows[0].replace("0.5", "1.0"), rows[1], header=f"{SIDES},score")) is None


def test_columns_of_true_and_false_are_no_numbers(tmp_path: Path) -> None:
    path = table(tmp_path, "a.jpg,dog,1,2,30,40,True", "a.jpg,dog,2,3,40,50,False", header=f"{SIDES},score")
    assert short_way(path, "pred") is None
    assert "'True' is not a plain finite number" in str(long_way(path, "pred"))


def test_the_short_way_names_the_line_of_a_box_that_cannot_be(tmp_path: Path) -> None:
    path = table(tmp_path, "a.jpg,dog,1,2,30,40", "", "a.jpg,dog,50,2,30,40.5")
    assert f"{path}:4: bbox has width -20" in str(short_way(path))


def test_a_column_that_turns_from_words_to_numbers_keeps_its_texts(tmp_path: Path) -> None:
    # pandas reads pieces of some 100,000 cells, each of which may look like numbers.
    names = ["a.png", *(f"{row % 50:03d}" for row in range(300_000))]
    classes = ["c", *("True" if row < 200_000 else "1" for row in range(300_000))]
    lines = [f"{name},{label},1,2,3,4" for name, label in zip(names, classes, strict=True)]
    path = tmp_path / "gt.csv"
    path.write_text("\n".join(["image,class,left,top,width,height", *lines, ""]), encoding="utf-8")
    with warnings.catch_warnings(action="error"):
        found = load(path)
    assert found.images.keys == ("000", *(f"{row:03d}" for row in range(1, 50)), "a.png")
    assert found.labels.names == ("1", "True", "c")
    assert len(found.boxes) == 300_001
