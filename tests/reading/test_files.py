"""Opening files: what is compressed is unpacked up to a limit, and a file that is damaged says so."""

import gzip
import os
from pathlib import Path

import pytest

from jaccard_eval.findings import DataError, FindingLog, Severity
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.files import open_regular, unchanging


def refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        files.read_bytes(path)
    return str(caught.value)


@pytest.mark.parametrize("text", [b"x", b"0123456789" * 300_000])
def test_compressed_files_are_unpacked_whole(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "gt.json").write_bytes(gzip.compress(text))
    assert files.read_bytes(tmp_path / "gt.json") == text


def test_members_that_follow_each_other_are_one_file_as_gzip_defines_it(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(100))
    assert files.read_bytes(tmp_path / "gt.json") == b"one two"


def test_a_file_that_unpacks_to_far_more_than_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = gzip.compress(bytes(10_000_000))
    monkeypatch.setattr(files, "UNPACKED_FLOOR", 5_000_000)
    text = refusal(tmp_path / "bomb.json", bomb)
    assert "error[gzip]" in text
    assert f"too large: more than 5,000,000 bytes from {len(bomb):,}" in text
    monkeypatch.setattr(files, "UNPACKED_FLOOR", 10_000_000)
    assert len((tmp_path / "bomb.json").read_bytes()) < 10_000
    assert len(files.read_bytes(tmp_path / "bomb.json")) == 10_000_000


@pytest.mark.parametrize("cut", [5, 30, -1])
def test_compressed_data_that_was_cut_off_is_damaged(tmp_path: Path, cut: int) -> None:
    assert "the gzip-compressed data is damaged" in refusal(
        tmp_path / "gt.json", gzip.compress(b"0123456789" * 99)[:cut]
    )


def test_files_that_fail_alike_are_one_finding(tmp_path: Path) -> None:
    errors = []
    for name in ("a", "b", "c"):
        with pytest.raises(DataError) as caught:
            files.read_bytes(tmp_path / name)
        errors.append(caught.value)
    log = FindingLog()
    files.record_failures(errors, log, severity=Severity.WARNING)
    (warning,) = log.findings()
    assert (warning.severity, warning.code, warning.count) == (Severity.WARNING, "file-missing", 3)
    assert [Path(one.where.path).name for one in warning.examples] == ["a", "b", "c"]


def test_a_file_that_is_written_to_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pred.json"
    path.write_text("[]")
    with (
        pytest.raises(DataError, match=r"pred.json: changed while it was read: 2 bytes before, 3 after"),
        open_regular(path) as file,
        unchanging(path, file),
    ):
        path.write_text("[ ]")


def test_a_file_that_is_replaced_while_it_is_read_stays_what_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "pred.json", tmp_path / "other.json"
    path.write_text("old")
    other.write_text("new one")
    with open_regular(path) as file, unchanging(path, file):
        other.replace(path)
        assert file.read() == b"old"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system_and_nowhere_within_a_name(tmp_path: Path, end: str) -> None:
    names = ["dog", "sea\u2028lion", "", "big\x0ccat"]
    (tmp_path / "names.txt").write_bytes(end.join(names).encode())
    assert files.read_lines(tmp_path / "names.txt") == names


@pytest.mark.parametrize(
    ("name", "line", "role"),
    [
        ("a.txt", "Car 0 0 -1.5 10 20 40 60 1 1 1 1 1 1 0", "gt"),
        ("comp4_det_test_Car.txt", "a 0.5 10 20 40 60", "pred"),
        ("Task1_Car.txt", "a 0.5 10 20 40 20 40 60 10 60", "pred"),
    ],
)
def test_text_formats_read_lines_that_end_in_carriage_returns(tmp_path: Path, name: str, line: str, role: str) -> None:
    (tmp_path / name).write_bytes(f"{line}\r{line}\r".encode())
    layout = {"a.txt": "kitti", "Task1_Car.txt": "dota"}.get(name, "voc")
    dataset = read_dataset(tmp_path, ReadOptions(role=role), layout)
    assert (dataset.labels.names, len(dataset.boxes.xywh)) == (("Car",), 2)


def test_a_file_is_whole_however_little_the_system_reads_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "labels.txt"
    file.write_bytes(b"0 .5 .5 .25 .25\n" * 9)
    read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, n: read(descriptor, min(n, 7)))
    assert files.read_bytes(file) == b"0 .5 .5 .25 .25\n" * 9
