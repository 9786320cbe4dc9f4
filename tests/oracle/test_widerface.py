"""Numbers of WIDER FACE's evaluation on drawn faces, and ours.

`widerface.json` has what WiderFace-Evaluation at 53474e0d, the Python port of the benchmark's code, printed for drawn
sets, whose detections were sorted by score on each image, as MATLAB's reader does; its overlap was written in Python.
"""

import json
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from drawn_boxes import Faces, drawn_faces

from jaccard_eval import Bootstrap, DataError, EvaluationResult, evaluate
from jaccard_eval.formats.widerface import SUBSETS
from jaccard_eval.reading.matlab import read_variables

RECORDED: list[dict[str, float | None]] = json.loads(
    Path(__file__).with_name("widerface.json").read_text(encoding="utf-8")
)
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
TEXT, NUMBERS, CELL = 4, 6, 1


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(value: Any, name: str = "") -> bytes:
    """Return an element of a MATLAB 5 file: a cell of a list, a text, or a column of numbers."""
    if isinstance(value, list) and value and not isinstance(value[0], int):
        kind, content, n = CELL, b"".join(map(matrix, value)), len(value)
    elif isinstance(value, str):
        kind, content, n = TEXT, element(4, value.encode("utf-16-le")), len(value)
    else:
        kind, content, n = NUMBERS, element(9, struct.pack(f"<{len(value)}d", *value)), len(value)
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<ii", n, 1))
    # A name of up to four letters stands in the place of its length.
    short = struct.pack("<HH4s", 1, len(name), name.encode().ljust(4, b"\0"))
    return element(14, head + (short if 0 < len(name) <= 4 else element(1, name.encode())) + content)


def mat(variables: dict[str, Any], *, packed: bool = False) -> bytes:
    content = [matrix(value, name) for name, value in variables.items()]
    if packed:
        content = [struct.pack("<II", 15, len(data := zlib.compress(part))) + data for part in content]
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(content)


def evaluated(folder: Path, events: Faces, subsets: Sequence[str] = SUBSETS, **asked: Any) -> EvaluationResult:
    gt, lines = folder / "wider_face_val_bbx_gt.txt", []
    for event, images in events.items():
        (folder / "pred" / event).mkdir(parents=True, exist_ok=True)
        for image, (faces, _, found) in images.items():
            rows = [" ".join(map(str, face)) + " 0 0 0 0 0 0" for face in faces] or ["0 0 0 0 0 0 0 0 0 0"]
            lines += [f"{event}/{image}.jpg", str(len(faces)), *rows]
            text = [image, str(len(found)), *(" ".join(map(str, box)) for box in found)]
            (folder / "pred" / event / f"{image}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    gt.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for place, name in enumerate(SUBSETS):
        if name in subsets:
            variables = {
                "event_list": [*events],
                "file_list": [[*images] for images in events.values()],
                "gt_list": [[lists[place] for _, lists, _ in images.values()] for images in events.values()],
            }
            (folder / f"wider_{name}_val.mat").write_bytes(mat(variables, packed=place == 1))
    formats = {"gt_format": "widerface", "pred_format": "widerface"}
    return evaluate(gt, folder / "pred", **formats | {"protocol": "widerface"} | asked)


@pytest.mark.parametrize("seed", range(100))
def test_the_numbers_are_those_of_the_benchmark(tmp_path: Path, seed: int) -> None:
    result = evaluated(tmp_path, drawn_faces(seed))
    for name, value in RECORDED[seed].items():
        # Of no face, the port has NaN, and 0 by its envelope.
        assert result[name] == pytest.approx(value, abs=1e-9) or (math.isnan(result[name]) and value in (None, 0.0))


def test_area_by_hand(tmp_path: Path) -> None:
    faces = [[0, 0, 20, 20], [50, 0, 20, 20], [100, 0, 20, 20]]
    found = [
        [0.0, 0.0, 20.0, 20.0, 0.2],
        [100.0, 0.0, 20.0, 20.0, 0.9],
        [0.0, 1.0, 20.0, 20.0, 0.8],
        [50.0, 0.0, 20.0, 20.0, 0.5],
    ]
    result = evaluated(
        tmp_path,
        {"0--A": {"x": (faces, [[1], [1, 2], [1, 2]], found), "y": ([], [[], [], []], [[0.0, 0.0, 9.0, 9.0, 0.95]])}},
    )
    # Easy: .9 and .5 lie on faces that are not in it; .8 hits (21 x 20 px of 21 x 22: above a half), and .2 is a second
    # hit, so that it is a proposal more. On y there is no face.
    assert result["AP_easy"] == 1.0
    # Medium: .8 hits, .5 hits, .2 is a proposal more behind both.
    assert result["AP_medium"] == 1.0
    assert result["recall[score=0.6]"] == pytest.approx(2 / 3)


def test_a_subset_without_its_file_is_undefined_and_named(tmp_path: Path) -> None:
    result = evaluated(tmp_path, drawn_faces(1), subsets=("hard",), bootstrap=Bootstrap(n_resamples=10))
    assert math.isnan(result["AP_easy"])
    assert result["AP_hard"] == pytest.approx(RECORDED[1]["AP[subset=hard]"])
    (lacks,) = [finding for finding in result.findings if finding.code == "subset-unknown"]
    assert "easy, medium" in lacks.examples[0].detail


def test_files_of_other_faces_are_refused(tmp_path: Path) -> None:
    events = drawn_faces(1)
    evaluated(tmp_path, events)
    (tmp_path / "wider_easy_val.mat").write_bytes(
        mat({"event_list": ["0--Event"], "file_list": [["0_x_0"]], "gt_list": [[[99]]]})
    )
    with pytest.raises(DataError, match="does not list the faces"):
        evaluated(tmp_path, events, subsets=())


@pytest.mark.parametrize("content", [b"", b"MATLAB", mat({"a": [1]})[:-4], bytes(126) + b"IM" + bytes(range(64))])
def test_damaged_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    try:
        assert read_variables(path) == {}
    except DataError as error:
        assert "a.mat" in str(error)


def test_cells_texts_and_numbers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    for packed in (False, True):
        path.write_bytes(mat({"one": [[3, 1], ["x", "yz"]], "numbers": [7, 8]}, packed=packed))
        found = read_variables(path)
        assert [found["one"][0].tolist(), found["one"][1], found["numbers"].tolist()] == [[3, 1], ["x", "yz"], [7, 8]]
