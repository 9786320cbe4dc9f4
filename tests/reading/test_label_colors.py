from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError
from jaccard_eval.reading.labelmaps import UNKNOWN, ColorTable, read_color_table


def table(folder: Path, text: str) -> ColorTable:
    path = folder / "colors.txt"
    path.write_text(text)
    return read_color_table(path)


def code(red: int, green: int, blue: int) -> int:
    return red + 256 * green + 65536 * blue


@pytest.mark.parametrize(
    "text",
    [
        "128 64 128 road\n0 0 0 traffic light\n",
        "128 64 128\t\troad\n0 0 0\t\ttraffic light\n",  # CamVid
        "name,r,g,b\nroad,128,64,128\ntraffic light,0,0,0\n",
        "name, r, g, b\nroad, 128, 64, 128\ntraffic light, 0, 0, 0\n",
        "# label:color_rgb:parts:actions\nroad:128,64,128::\ntraffic light:0,0,0::\n",  # CVAT
        "#804080 road\n#000000 traffic light\n",
        "\n# seen from a car\n128,64,128,road\n\n0,0,0,traffic light\n",
    ],
)
def test_tables_of_several_tools_say_the_same(tmp_path: Path, text: str) -> None:
    read = table(tmp_path, text)
    assert read.names == ("road", "traffic light")
    assert read.codes.tolist() == [code(128, 64, 128), 0]


def test_colours_without_names_are_called_by_their_numbers(tmp_path: Path) -> None:
    assert table(tmp_path, "1 2 3\n4 5 6\n").names == ("1 2 3", "4 5 6")


def test_a_colour_has_the_class_of_its_line_and_others_have_none(tmp_path: Path) -> None:
    read = table(tmp_path, "9 0 0 c\n0 0 9 a\n0 9 0 b\n")
    codes = np.array([code(0, 9, 0), code(9, 0, 0), code(9, 9, 9), code(0, 0, 9), 0])
    assert read.classes_of(codes).tolist() == [2, 0, UNKNOWN, 1, UNKNOWN]


def test_every_bad_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        table(tmp_path, "0 0 0 sky\nroad\n1 2 300 tree\n0,0,0,night\n")
    (finding,) = caught.value.findings
    assert [(one.where.line, one.detail) for one in finding.examples] == [
        (2, "no colour in 'road'"),
        (3, "no colour in '1 2 300 tree'"),
        (4, "the colour 0 0 0 is already on line 1"),
    ]


def test_a_table_without_colours_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the table has no colours"):
        table(tmp_path, "# nothing\n")
