import os
import stat
from pathlib import Path

import pytest

from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.report.write import plan_outputs, write_outputs

as_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind this user")


def write(*paths: Path, text: str = "new\n") -> None:
    write_outputs([(output, text) for output in plan_outputs(paths)])


def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    write(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == "new\n"
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o640)
    write(path)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new\n", 0o640)


def test_planning_leaves_nothing_behind(tmp_path: Path) -> None:
    plan_outputs([tmp_path / "a.json", tmp_path / "b.csv"])
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed_to_its_target(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder.json", "it is a directory"),
        ("file/a.json", "not a directory"),
        (f"{'x' * 300}.json", "file name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_computing(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match=reason):
        plan_outputs([tmp_path / name])


def test_folders_above_an_output_are_made_when_it_is_written_and_not_before(tmp_path: Path) -> None:
    (output,) = plan_outputs([tmp_path / "new/folder/a.json"])
    assert not (tmp_path / "new").exists()
    write_outputs([(output, "{}")])
    assert (tmp_path / "new/folder/a.json").read_text() == "{}"


@as_root
@pytest.mark.parametrize("mode", [0o555, 0o444])
def test_a_read_only_folder_or_file_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.json").touch(0o444)
    folder.chmod(mode if mode == 0o555 else 0o755)
    with pytest.raises(MachineError, match="cannot write"):
        plan_outputs([folder / "a.json"])
    folder.chmod(0o755)


def test_the_same_output_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="given twice"):
        plan_outputs([tmp_path / "a.json", tmp_path / "x/../a.json"])


def test_when_one_of_several_fails_all_old_files_are_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b.csv"):
        Path(name).write_text("old")
    Path("later").mkdir()
    outputs = plan_outputs([Path("a.json"), Path("b.csv"), Path("later/c.md")])
    Path("later").rmdir()  # between planning and writing
    Path("later").touch()
    with pytest.raises(MachineError, match=r"c\.md"):
        write_outputs([(output, "new") for output in outputs])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.json": "old",
        "b.csv": "old",
        "later": "",
    }


def test_a_failed_rename_says_what_was_written_before(tmp_path: Path) -> None:
    outputs = plan_outputs([tmp_path / "a.json", tmp_path / "b.csv"])
    (tmp_path / "b.csv").mkdir()  # a file cannot replace a folder
    with pytest.raises(MachineError, match=r"b\.csv.*written before that: .*a\.json"):
        write_outputs([(output, "new") for output in outputs])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.csv"]


def test_a_device_is_written_directly() -> None:
    (output,) = plan_outputs([Path("/dev/null")])
    assert output.is_device
    write_outputs([(output, "text")])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error_of_the_machine() -> None:
    with pytest.raises(MachineError, match=r"/dev/full.*no space left on device"):
        write(Path("/dev/full"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_fifo_without_reader_fails_instead_of_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    with pytest.raises(MachineError, match="no such device or address"):
        write(tmp_path / "fifo.json")


def test_lone_surrogates_of_odd_file_names_are_escaped(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", text="\udcff")
    assert (tmp_path / "a.txt").read_bytes() == rb"\udcff"
