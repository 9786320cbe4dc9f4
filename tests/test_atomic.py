"""Outputs are whole or untouched."""

import os
import stat
from pathlib import Path

import pytest

from jaccard_eval.atomic import replace_file, replace_folder, require_free
from jaccard_eval.errors import MachineError, UsageError


def contents(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in sorted(folder.rglob("*")) if one.is_file()}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    replace_file(tmp_path / "a", b"new")
    assert contents(tmp_path) == {"a": "new"}


def test_a_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    for data in (b"old", b"new"):
        replace_folder(tmp_path / "out", {"deep/b.txt": data, "a.txt": data})
    assert contents(tmp_path) == {"out/a.txt": "new", "out/deep/b.txt": "new"}
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "out/deep").stat().st_mode


def test_a_folder_with_files_that_are_not_written_anew_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/photo.png").write_text("mine")
    (tmp_path / "out/a.txt").write_text("old")
    with pytest.raises(UsageError, match=r"contains 1 file that is not rewritten: 'photo\.png'"):
        replace_folder(tmp_path / "out", {"a.txt": b"new"})
    assert contents(tmp_path) == {"out/a.txt": "old", "out/photo.png": "mine"}


def test_of_many_files_that_are_not_written_anew_five_are_named(tmp_path: Path) -> None:
    replace_folder(tmp_path / "out", {f"{number}.txt": b"" for number in range(7)})
    with pytest.raises(UsageError, match=r"7 files .*: '0.txt', '1.txt', '2.txt', '3.txt', '4.txt' and 2 more; choose"):
        replace_folder(tmp_path / "out", {"a.txt": b"new"})


def test_a_link_to_a_folder_inside_counts_as_another_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/link").symlink_to("../elsewhere")
    with pytest.raises(UsageError, match="rewritten: 'link'"):
        replace_folder(tmp_path / "out", {})


def test_a_folder_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    replace_folder(tmp_path / "out", {"a.txt": b"old"})
    with pytest.raises(MachineError, match="cannot write"):
        replace_folder(tmp_path / "out", {"a.txt": b"new", "a.txt/b.txt": b"no folder"})
    assert contents(tmp_path) == {"out/a.txt": "old"}
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_a_file_does_not_take_the_place_of_a_folder_nor_a_folder_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(MachineError, match="it is a folder"):
        replace_file(tmp_path / "folder", b"")
    with pytest.raises(MachineError, match="it is a file"):
        replace_folder(tmp_path / "file", {})


def test_what_exists_is_replaced_on_request_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    require_free(tmp_path / "b", [], replace=False)
    require_free(tmp_path / "a", [], replace=True)
    with pytest.raises(UsageError, match=r"exists\. Replace it with --force"):
        require_free(tmp_path / "a", [], replace=False)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("output", ["labels", "labels/out", ".", "alias"])
def test_an_output_must_not_touch_an_input(output: str, tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "alias").symlink_to("labels")
    with pytest.raises(UsageError, match="must not contain each other"):
        require_free(tmp_path / output, [tmp_path / "labels"], replace=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_fifo_is_refused_before_anything_is_computed_and_a_folder_is_made_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    require_free(tmp_path / "new/folder/a", [], replace=False)
    assert not (tmp_path / "new").exists()
    replace_file(tmp_path / "new/folder/a", b"1")
    assert (tmp_path / "new/folder/a").read_bytes() == b"1"
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        require_free(tmp_path / "fifo", [], replace=True)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_files_get_the_permissions_of_any_new_file_or_of_the_one_that_they_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        # Whoever asks for the umask sets it, and files that other threads make meanwhile could be written by all.
        monkeypatch.setattr(os, "umask", None)
        (tmp_path / "shared").write_text("old", encoding="utf-8")
        (tmp_path / "shared").chmod(0o666)
        for name in ("new", "shared"):
            replace_file(tmp_path / name, b"new")
    finally:
        monkeypatch.undo()
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "shared")}
    assert modes == {"new": 0o640, "shared": 0o666}
    assert contents(tmp_path) == {"new": "new", "shared": "new"}
