"""A pandas table and the CSV file that pandas writes of it read alike, whichever way the table is read."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jaccard_eval import DataError, Dataset, ReadOptions, load
from jaccard_eval.reading.tabular import delimited
from jaccard_eval.reading.tabular.delimited import shortest_decimals

TEXTS = st.sampled_from(
    ["dog", "cat", "a b", "NA", "null", "nan", "True", "1", "01", "1.0", "", " cat", "\tcat", "#dog", "a,b", 'say "x"',
     "two\nlines", "back\rslash", "é", "inf", "12.5", "\ufeffdog", None, np.nan]
)  # fmt: skip
PLAIN = st.sampled_from(["dog", "cat", "a b", "NA", "null", "é", "x;y", "1", "2", "01"])
NUMBERS = st.one_of(
    st.floats(0, 1000, allow_nan=False),
    st.integers(0, 640).map(float),
    st.sampled_from([0.1, 1 / 3, 1e-7, 1e16, 0.30000000000000004, 2.0**53 + 2]),
)
ODD_NUMBERS = st.one_of(NUMBERS, st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0]))
COORDS = ("xmin", "ymin", "xmax", "ymax")


def outcome(source: Any, role: str, **options: Any) -> tuple[Any, ...]:
    """What was read, or what was wrong; places are the table's rows or the file's lines, so that none is compared."""
    try:
        side = load(source, role=role, options=ReadOptions(**options))
    except DataError as error:
        return tuple((finding.severity, finding.code, finding.count) for finding in error.findings)
    assert isinstance(side, Dataset)
    columns = ("image", "label", "xywh", "score", "area", "crowd", "difficult", "group_of", "ignore", "source")
    boxes = tuple(
        None if column is None else column.tobytes() for column in (getattr(side.boxes, name) for name in columns)
    )
    found = [(finding.severity, finding.code, finding.count) for finding in side.findings]
    return (boxes, side.images.keys, side.images.file_names, side.labels, side.details, side.ignored, found)


def written(frame: pd.DataFrame, folder: Path) -> Path:
    path = folder / "table.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = frame.to_csv(index=False, lineterminator="\n")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@st.composite
def frames(draw: st.DrawFn, texts: st.SearchStrategy[Any], numbers: st.SearchStrategy[float]) -> pd.DataFrame:
    n = draw(st.integers(1, 6))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    kind = draw(st.sampled_from(["text", "whole", "category", "single"]))
    data: dict[str, Any] = {
        name: pd.Series(column(st.integers(0, 3)) if kind == "whole" else column(texts)) for name in ("image", "class")
    }
    if kind == "category":
        data["class"] = data["class"].astype("category")
    for name in COORDS:
        data[name] = pd.Series(column(numbers), dtype="float32" if kind == "single" else "float64")
    data["score"] = pd.Series(column(numbers))
    for name, values in (
        ("iscrowd", st.sampled_from([0, 1])),
        ("difficult", st.booleans()),
        ("remark", st.one_of(texts, numbers)),
        ("image_id", st.sampled_from([1.0, 2.0, np.nan])),
    ):
        if draw(st.booleans()):
            data[name] = pd.Series(column(values))
    order = draw(st.permutations(list(data)))
    return pd.DataFrame({name: data[name] for name in order})


@settings(max_examples=150)
@given(frame=frames(PLAIN, NUMBERS), role=st.sampled_from(["gt", "pred"]))
def test_a_plain_table_and_its_file_read_alike(
    frame: pd.DataFrame, role: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(frame, tmp_path_factory.mktemp("frame"))
    assert outcome(frame, role) == outcome(path, role)


@settings(max_examples=150)
@given(frame=frames(TEXTS, ODD_NUMBERS), role=st.sampled_from(["gt", "pred"]))
def test_an_odd_table_reads_as_the_text_that_it_is_written_as(frame: pd.DataFrame, role: str) -> None:
    by_column = outcome(frame, role)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_plain_table", lambda *_: None)
        assert outcome(frame, role) == by_column


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda box: np.array(box, dtype=np.float32)])
def test_packed_boxes_read_as_the_text_that_they_are_written_as(kind: Any) -> None:
    boxes = [[0.1, 2, 3.5, 4], [5, 6, 1 / 3, 8]]
    frame = pd.DataFrame({"image": ["a", "b"], "class": ["x", "y"], "bbox": [kind(box) for box in boxes]})
    by_column = outcome(frame, "gt", box="xywh")
    assert by_column[1] == ("a", "b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_plain_table", lambda *_: None)
        assert outcome(frame, "gt", box="xywh") == by_column


def test_a_lone_surrogate_is_an_error_of_encoding() -> None:
    cells = {"image": "a" + chr(0xD800), "class": "dog", "xmin": 1, "ymin": 1, "xmax": 2, "ymax": 2}
    with pytest.raises(DataError, match=r"error\[encoding\]: <DataFrame>:2"):
        load(pd.DataFrame({name: pd.Series([cell], dtype=object) for name, cell in cells.items()}))


def test_plain_tables_are_not_written_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("written as text")

    monkeypatch.setattr(delimited, "parse_table", refuse)
    rows = {"image": ["a.jpg", "b.jpg"], "class": ["dog", "cat"]}
    corners: dict[str, Any] = {name: [1.5, 20.25] for name in COORDS[:2]} | {name: [30.0, 40.5] for name in COORDS[2:]}
    for frame in (
        pd.DataFrame(rows | corners | {"score": [0.25, 0.75]}),
        pd.DataFrame(rows | corners | {"score": [0.25, 0.75]}).astype(dict.fromkeys(COORDS, "float32")),
        pd.DataFrame({"image_id": [3, 4], "category_id": [1, 2]} | corners | {"score": [0.25, 0.75]}),
        pd.DataFrame(rows | {"bbox": [[1, 2, 30, 40], [2, 3, 40, 50]], "score": [0.25, 0.75]}),
        pd.DataFrame(rows | corners | {"score": [0.25, 0.75]}).astype({"image": "category", "class": "category"}),
    ):
        side = load(frame, role="pred")
        assert len(side.boxes) == 2


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
@example([0.1, -0.1, 1e-38, 3.4e38, 0.0, -0.0, float("inf"), float("nan"), 16777216.0, 2.0**-149])
def test_single_precision_is_the_shortest_decimal_that_reads_back(values: list[float]) -> None:
    single = np.array(values, dtype=np.float32)
    expected = np.array([float(str(number)) for number in single])
    assert shortest_decimals(single).tobytes() == expected.tobytes() or np.array_equal(
        shortest_decimals(single), expected, equal_nan=True
    )
