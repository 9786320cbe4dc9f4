"""Splitting label files in whole-array steps gives what splitting line by line gives."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from jaccard_eval import load
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats._yolo.reader import read_label_files

PLAIN = ("0", "12", "0.25", "-1", "1e-05", "1E+3", ".5", "7.", "007", "-0", "-0.0")
NUMBERS = st.one_of(st.sampled_from(PLAIN), st.floats(allow_nan=False, allow_infinity=False).map(repr))
FIELDS = st.sampled_from([*PLAIN, "dog", "é", "nan", "+1", "1_0", "0,5"])
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])


@st.composite
def label_texts(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.lists(FIELDS, max_size=7), max_size=5))
    text = "".join(draw(BLANKS).join(fields) + draw(ENDS) for fields in lines)
    return text if draw(st.booleans()) else text.rstrip("\n")


def split_line_by_line(texts: list[str]) -> list[tuple[int, int, list[str]]]:
    numbered = [(file, number, line.split()) for file, text in enumerate(texts) for number, line in _numbered(text)]
    return [(file, number, fields) for file, number, fields in numbered if fields]


def _numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.replace("\r\n", "\n").split("\n"), 1))


@given(st.lists(label_texts(), max_size=4))
def test_lines_fields_and_places_are_those_of_a_plain_reader(texts: list[str]) -> None:
    first = [text.lstrip(" \t").split("\n")[0].split() for text in texts if text.strip()]
    assume(not first or any(len(fields) != 1 or not fields[0].isdigit() for fields in first))  # a count of the others
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{row}.txt") for row in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text.encode())
        lines = read_label_files(paths, FindingLog())
    expected = split_line_by_line(texts)
    assert list(zip(lines.file.tolist(), lines.number.tolist(), strict=True)) == [row[:2] for row in expected]
    values = [float(field) if field in PLAIN else np.nan for _, _, fields in expected for field in fields]
    np.testing.assert_array_equal(lines.values, values)
    words = {row: " ".join(fields) for row, (_, _, fields) in enumerate(expected) if not set(PLAIN).issuperset(fields)}
    assert lines.text == words


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_numbers_are_to_the_bit_what_float_makes_of_their_text(numbers: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_text(" ".join(numbers))
        lines = read_label_files([path], FindingLog())
    assert [value.hex() for value in lines.values.tolist()] == [float(number).hex() for number in numbers]


def test_numbers_that_overflow_are_infinite_and_left_to_the_checks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"0 1e400 -1e400 1 {'9' * 400}")
    lines = read_label_files([tmp_path / "a.txt"], FindingLog())
    assert lines.values.tolist() == [0, np.inf, -np.inf, 1, np.inf]


def test_no_file_has_no_lines() -> None:
    lines = read_label_files([], FindingLog())
    assert (len(lines), lines.trailing_numbers().tolist()) == (0, [])


def test_lines_of_dota_in_front_of_labels_are_no_labels_and_keep_the_numbers_of_the_others(tmp_path: Path) -> None:
    corners = "0.1 0.1 0.3 0.1 0.3 0.2 0.1 0.2"
    (tmp_path / "labels").mkdir()
    path = tmp_path / "labels" / "P0001.txt"
    path.write_text(f"imagesource:GoogleEarth\r\nGSD:0.146\r\n0 {corners}\r\n1 {corners}\r\n")
    lines = read_label_files([path], FindingLog())
    assert (lines.number.tolist(), lines.count.tolist(), lines.text) == ([3, 4], [9, 9], {})
    # x 0.1 to 0.3, y 0.1 to 0.2: width 0.2, height 0.1, as without these lines.
    assert np.allclose(load(tmp_path / "labels").boxes.xywh, [[0.1, 0.1, 0.2, 0.1]] * 2)
    path.write_text("imagesource:GoogleEarth\ngsd:0.146")  # an image without objects
    assert len(read_label_files([path], FindingLog())) == 0
