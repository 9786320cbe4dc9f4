"""What the disk engine cannot give is refused by the command line before anything is read, with a way that works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import repeat_images, run_here, write_pair

from jaccard_eval import evaluate
from jaccard_eval.engine import choice
from jaccard_eval.errors import UsageError


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["--errors"], "errors"),
        (["--bootstrap", "10"], "bootstrap"),
        (["--worst-images", "3"], "--worst-images"),
        (["-o", "images.csv"], "images.csv"),
        (["-o", "run.npz"], "run.npz"),
        (["-o", "shown/"], "shown"),
        (["-o", "curves.csv"], "curves.csv"),
        (["-o", "calibration.csv"], "calibration.csv"),
        (["-o", "thresholds.json"], "thresholds.json"),
        (["--fail-significant-drop", "AP=0.1", "--baseline", "base.npz"], "--fail-significant-drop AP=0.1"),
        (["--fail-inferior", "AP=0.1", "--baseline", "base.npz"], "--fail-inferior AP=0.1"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_what_needs_every_match_is_refused_with_a_way_that_works(tmp_path: Path, asked: list[str], named: str) -> None:
    sides = write_pair(tmp_path)
    if "base.npz" in asked:
        repeat_images(*sides, times=10)  # an interval needs 20 images
        assert run_here(*sides, "-q", "-o", tmp_path / "base.npz").returncode == 0
    refused = run_here(*sides, "-q", "--engine", "disk", *asked, cwd=tmp_path)
    assert refused.returncode == 2
    assert not refused.stdout
    assert named in refused.stderr
    assert not [path for path in tmp_path.iterdir() if path.name in asked[1:]] or "base.npz" in asked
    advice = re.search(r"Pass (--engine memory)", refused.stderr)
    assert advice is not None
    # Few images decide little about significance: what counts is that the rule is judged.
    assert run_here(*sides, "-q", *advice[1].split(), *asked, cwd=tmp_path).returncode in (0, 1)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["--worst-images", "3"], "worst_images"),
        (["--errors"], "errors"),
        (["-o", "run.npz"], "run.npz"),
    ],
)
def test_auto_stays_in_memory_with_a_note_where_the_disk_lacks_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], named: str
) -> None:
    sides = write_pair(tmp_path)
    alone = run_here(*sides, *asked, cwd=tmp_path)
    (tmp_path / "run.npz").unlink(missing_ok=True)
    monkeypatch.setattr("jaccard_eval.engine.places.SMALL", 0)
    monkeypatch.setattr(choice, "usable_memory", lambda: 1)
    done = run_here(*sides, *asked, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, alone.stdout)
    assert (
        f"note[engine]: {named}: not available with the disk engine, so all boxes are read into memory" in done.stderr
    )
    assert "note[engine]" not in run_here(*sides, cwd=tmp_path).stderr  # which goes to the disk
    refused = run_here(*sides, *asked, "--engine", "disk", cwd=tmp_path)
    assert refused.returncode == 2
    assert (named if asked[0] == "-o" else asked[0].removeprefix("--")) in refused.stderr


def test_auto_in_the_library_logs_why_all_is_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sides = write_pair(tmp_path)
    monkeypatch.setattr("jaccard_eval.engine.places.SMALL", 0)
    monkeypatch.setattr(choice, "usable_memory", lambda: 1)
    result = evaluate(*sides, errors=True)
    assert "errors: not available with the disk engine" in caplog.text
    assert result.to_dict() == evaluate(*sides, errors=True, engine="memory").to_dict()


def test_confusions_are_there_where_the_kinds_of_errors_are_refused(tmp_path: Path) -> None:
    sides = write_pair(tmp_path)
    refused = run_here(*sides, "-q", "--engine", "disk", "--errors")
    assert "with --confusion." in refused.stderr
    shown = run_here(*sides, "--engine", "disk", "--confusion")
    assert shown.returncode == 0
    assert "Confusion" in shown.stdout
    assert shown.stdout == run_here(*sides, "--engine", "memory", "--confusion").stdout
    with pytest.raises(UsageError, match="confusion=True"):
        evaluate(*sides, engine="disk", errors=True)


def test_files_of_the_disk_engine_have_confusions_and_no_kinds_of_errors(tmp_path: Path) -> None:
    sides = write_pair(tmp_path)
    for engine, options in (("disk", ["--confusion"]), ("memory", ["--no-errors", "--confusion"])):
        (tmp_path / engine).mkdir()
        files = [part for name in ("result.json", "confusion.csv", "table.csv") for part in ("-o", f"{engine}/{name}")]
        assert run_here(*sides, "-q", "--engine", engine, *options, *files, cwd=tmp_path).returncode == 0
    for name in ("result.json", "confusion.csv", "table.csv"):
        assert (tmp_path / "disk" / name).read_bytes() == (tmp_path / "memory" / name).read_bytes()
    document = json.loads((tmp_path / "disk/result.json").read_text())
    # A dog is found and one is missed; the cat matches nothing, and so does its prediction. (Classes: dog, cat.)
    assert document["confusion"]["counts"] == [[1, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert "errors" not in document
    without = run_here(*sides, "-q", "--engine", "disk", "--no-errors", "-o", "plain.json", cwd=tmp_path)
    assert without.returncode == 0
    assert "confusion" not in json.loads((tmp_path / "plain.json").read_text())
    assert run_here("verify", tmp_path / "disk/result.json", *sides).returncode == 0
    assert run_here("report", "disk/result.json", "-o", "again.html", cwd=tmp_path).returncode == 0
    assert '<h2 id="title-confusion">' in (tmp_path / "again.html").read_text()
