"""The compiled reader of results lists gives what the Python readers give, or leaves the text to them."""

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.formats._coco.strict import decode_plain_results
from jaccard_eval.native import calls
from jaccard_eval.native.calls import SHORTEST_RECORD, RecordColumns, ScannedResults

ROOT = Path(__file__).parents[2]
RECORD = '{"image_id":1,"category_id":1,"bbox":[1,1,1,1],"score":1}'
HAS_COMPILER = shutil.which("c++") is not None or shutil.which("g++") is not None

needs_core = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")


def scan_results(data: bytes) -> ScannedResults | None:
    """Read a text by the core."""
    return calls.scan_results(io.BytesIO(data), len(data))


def in_python(data: bytes) -> RecordColumns | None:
    """Decode without the core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        found = decode_plain_results(data)
        return None if found is None else found[1]


def bits(columns: RecordColumns) -> tuple[bytes, ...]:
    """Return the columns as bytes, which tell 0 from -0."""
    return tuple(column.tobytes() for column in (columns.image, columns.category, columns.coords, columns.score))


def require_alike(data: bytes) -> bool:
    """Require that what the core reads is what Python reads; return whether it reads it."""
    scanned = scan_results(data)
    if scanned is None:
        return False
    decoded = in_python(data)
    assert decoded is not None, data
    assert bits(scanned.columns) == bits(decoded), data
    return True


@pytest.mark.skipif(not HAS_COMPILER or not native.is_on(), reason="no compiler, or the core is turned off")
def test_an_installation_with_a_compiler_has_the_core() -> None:
    assert native.load_core() is not None, "run make again: the core is built when the package is installed"


def test_a_text_has_no_more_records_than_room_is_made_for() -> None:
    assert len(RECORD) == SHORTEST_RECORD


@needs_core
@pytest.mark.parametrize("indent", [None, 2])
def test_what_tools_write_is_read_by_the_core(indent: int | None) -> None:
    rng = np.random.default_rng(3)
    records = [
        {"image_id": int(i), "category_id": int(i % 80), "bbox": rng.uniform(0, 600, 4).tolist(), "score": rng.random()}
        for i in rng.integers(0, 600_000, 2_000)
    ]
    assert require_alike((json.dumps(records, indent=indent) + "\n").encode())


@needs_core
@pytest.mark.parametrize("blank", ["", " \n"])
def test_records_are_read_wherever_pieces_begin(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RECORD.replace(",", f",{blank}")
    for n in (1, 2, 5):
        text = f"[{blank}{f'{blank},{blank}'.join([record] * n)}{blank}]{blank}".encode()
        for piece in range(len(record) + 7, 2 * len(record) + 9):
            monkeypatch.setattr(calls, "PIECE", piece)
            scanned = scan_results(text)
            assert scanned is not None
            assert len(scanned.columns.score) == n
            for end in range(max(0, len(text.rstrip()) - len(record) - 9), len(text.rstrip())):
                assert scan_results(text[:end]) is None
                assert scan_results(text[:end] + b"]") is None or text[:end].rstrip().endswith(b"}")


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["-0", "-0.0", "1e400", "-1e400", "1e-400", "01", "1.", ".5", "+1", "NaN", "Infinity", "0x1", ""]),
)
BLANKS = st.text(" \n\t\r", max_size=2)


@st.composite
def result_lists(draw: st.DrawFn) -> str:
    """Draw a text that is a results list, or nearly."""
    records = []
    for _ in range(draw(st.integers(0, 3))):
        box = f"[{','.join(draw(NUMBERS) for _ in range(draw(st.sampled_from([4, 4, 4, 3, 5]))))}]"
        fields = [f'"image_id":{draw(NUMBERS)}', f'"category_id":{draw(NUMBERS)}', f'"bbox":{box}']
        fields.append(f'"score":{draw(NUMBERS)}')
        fields += draw(st.sampled_from([[], [], [], ['"score":1'], ['"id":1'], ['"file_name":"a"']]))
        blank = draw(BLANKS)
        records.append(f"{blank}{{{blank}{f'{blank},'.join(draw(st.permutations(fields)))}{blank}}}{draw(BLANKS)}")
    return f"[{draw(BLANKS)}{','.join(records)}]{draw(BLANKS)}"


@needs_core
@given(result_lists())
def test_any_list_is_read_alike_or_left_to_python(text: str) -> None:
    require_alike(text.encode())


@needs_core
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
@example([("0.1", "123456789012345678")])
@example([("9007199254740993", "9007199254740992")])
@example([("0.30000000000000004", "2.2250738585072011e-308")])
def test_any_number_is_the_nearest_float(numbers: list[tuple[str, str]]) -> None:
    records = (RECORD.replace('"score":1', f'"score":{score}').replace("[1,", f"[{x},") for score, x in numbers)
    text = f"[{','.join(records)}]"
    if require_alike(text.encode()):
        scanned = scan_results(text.encode())
        assert scanned is not None
        expected = [float(score) for score, _ in numbers]
        assert scanned.columns.score.tobytes() == struct.pack(f"{len(expected)}d", *expected)


SOUND = f'[ {RECORD} ,\n{{"score": 0.25, "bbox": [-1.5, 2e1, 3, 0.0], "category_id": 7, "image_id": -12}}]\n'.encode()


@needs_core
def test_a_text_cut_anywhere_is_left_to_python() -> None:
    assert require_alike(SOUND)
    assert not [end for end in range(len(SOUND.rstrip())) if scan_results(SOUND[:end]) is not None]


@needs_core
@pytest.mark.parametrize("byte", [*b'"{}[],:.-+eE0 9\n\\\0\x1f\x80\xff\xef'])
def test_a_byte_changed_anywhere_is_read_alike_or_left_to_python(byte: int) -> None:
    for place in range(len(SOUND)):
        require_alike(SOUND[:place] + bytes([byte]) + SOUND[place + 1 :])
        require_alike(SOUND[:place] + bytes([byte]) + SOUND[place:])
        require_alike(SOUND[:place] + SOUND[place + 1 :])


@needs_core
@pytest.mark.parametrize(
    "text", ["", "[", "[]", "[ ]", "{}", "null", "\ufeff[]", "[[]]", "[{}]", f"[{RECORD},]", f"[{RECORD}]]"]
)
def test_what_is_no_list_of_results_is_left_to_python(text: str) -> None:
    assert scan_results(text.encode()) is None


def test_the_core_is_off_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.VARIABLE, "0")
    assert native.load_core() is None
    assert native.describe_core() == "off (JACCARD_EVAL_NATIVE=0)"
    assert scan_results(f"[{RECORD}]".encode()) is None


def test_a_library_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "VERSION", 0)
    assert native._load.__wrapped__() is None


@needs_core
def test_a_run_writes_the_same_bytes_with_and_without_the_core(tmp_path: Path) -> None:
    for on in ("0", "1"):
        words = ["sample_data/coco/gt.json", "sample_data/coco/worse.json", "-q", "-o", str(tmp_path / f"{on}.json")]
        subprocess.run(
            [sys.executable, "-m", "jaccard_eval", *words],
            env=os.environ | {native.VARIABLE: on},
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


def read_ahead(path: Path, *, change: bool = False) -> tuple[ScannedResults | None, int]:
    """Read a file as the second of two; return it and how many pieces were read in its turn."""
    pieces = 0
    scan = calls._scan

    def counted(*args: Any) -> ScannedResults | None:
        nonlocal pieces
        pieces += threading.current_thread() is threading.main_thread()
        return scan(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "LARGE", 1)
        patch.setattr(calls, "_scan", counted)
        with calls.scanning_ahead(path):
            if change:
                path.write_bytes(path.read_bytes().replace(b'"score":1', b'"score":0'))
            with path.open("rb") as file:
                return calls.scan_results(file, path.stat().st_size), pieces


@needs_core
def test_a_list_is_scanned_while_another_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(f"[{', '.join([RECORD] * 100)}]")
    os.utime(path, ns=(0, 0))  # clocks of file systems are coarse: it would be changed in the moment of its making
    in_turn = scan_results(path.read_bytes())
    ahead, pieces = read_ahead(path)
    assert in_turn is not None and ahead is not None
    assert bits(ahead.columns) == bits(in_turn.columns)
    assert pieces == 0
    changed, pieces = read_ahead(path, change=True)
    assert changed is not None and pieces == 1  # what was scanned is of another file by now
    assert changed.columns.score.tolist() == [0] * 100


@needs_core
@pytest.mark.parametrize("key", calls.LISTS)
def test_a_list_that_an_object_holds_alone_is_scanned_like_one_by_itself(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = SOUND.strip()
    by_itself = scan_results(listed)
    assert by_itself is not None and by_itself.key == ""
    monkeypatch.setattr(calls, "LARGE", 1)
    for opening, closing in ((b'{"%s":', b"}"), (b' \n{ "%s" :\n ', b" \n}\n")):
        data = opening % key.encode() + listed + closing
        for size in (len(data), 200):
            monkeypatch.setattr(calls, "PIECE", size)  # a piece may end anywhere, the end of the object included
            scanned = scan_results(data)
            assert scanned is not None and scanned.key == key
            assert bits(scanned.columns) == bits(by_itself.columns)
        assert require_alike(data)
        path = tmp_path / "dt.json"
        path.write_bytes(data)
        ahead, pieces = read_ahead(path)
        assert ahead is not None and bits(ahead.columns) == bits(by_itself.columns) and not pieces


@pytest.mark.parametrize(
    "text",
    [
        '{"results": [RECORD], "predictions": [RECORD]}',
        '{"results": [RECORD]]}',
        '{"results": [RECORD]}}',
        '{"results": [RECORD]',
        '{"results": [RECORD], "info": {}}',
        '{"info": {}, "results": [RECORD]}',
        '{"others": [RECORD]}',
        '{"results": [[RECORD]]}',
    ],
)
def test_an_object_with_anything_else_is_left_to_the_other_readers(text: str) -> None:
    data = text.replace("RECORD", RECORD).encode()
    assert scan_results(data) is None
    assert in_python(data) is None


@needs_core
@pytest.mark.parametrize("text", ["{}", "[1]", f"[{RECORD}", f"[{RECORD}, 1]", ""])
def test_what_cannot_be_scanned_ahead_is_left_to_its_turn(text: str, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(text)
    assert read_ahead(path) == (None, text.startswith("["))  # of what is not a list, nothing is read
    path.unlink()
    with calls.scanning_ahead(path), calls.scanning_ahead(tmp_path):
        pass


@needs_core
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_scanned_ahead(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dt.json")
    with calls.scanning_ahead(tmp_path / "dt.json"):
        pass


@needs_core
def test_a_run_does_without_threads_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dt.json"
    path.write_text(f"[{RECORD}]")

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    scanned, pieces = read_ahead(path)
    assert scanned is not None and pieces == 1
