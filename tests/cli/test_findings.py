"""Findings on the standard error: wrapped on a terminal, whole lines elsewhere; --strict and --allow."""

import os
import subprocess
from pathlib import Path

import pytest
from command_line import command, environment, run_here, run_process, write_pair

from jaccard_eval.cli import run, streams
from jaccard_eval.cli.run import findings_text
from jaccard_eval.findings import FindingLog, Severity, Where

ALL = tuple(Severity)
SAMPLE_PAIR = [Path(__file__).parents[2] / "sample_data/coco" / name for name in ("gt.json", "better.json")]
LONG = "predictions look like corners: AP50 .001 as given, .742 as x1 y1 x2 y2; boxes were read as x y width height"
FIX = "Rerun with --pred-box xyxy."


def log_of(*severities: Severity, detail: str = "odd", **settings) -> FindingLog:
    log = FindingLog()
    for severity in severities:
        {Severity.ERROR: log.error, Severity.WARNING: log.warning, Severity.NOTE: log.note}[severity](
            f"code-{severity}", Where("pred.json"), detail, **settings
        )
    return log


def test_errors_come_before_warnings_before_notes() -> None:
    one, other = log_of(Severity.NOTE, Severity.WARNING).findings(), log_of(Severity.WARNING, Severity.ERROR).findings()
    lines = findings_text([*one, *other], ALL).splitlines()
    assert [line.partition("[")[0] for line in lines] == ["error", "warning", "warning", "note"]


def test_a_message_is_one_line_in_a_pipe() -> None:
    text = findings_text(log_of(Severity.WARNING, detail=LONG, fix=FIX).findings(), ALL)
    assert text == f"warning[code-warning]: pred.json: {LONG}. {FIX}"


def test_a_long_message_hangs_and_its_fix_stands_by_itself_on_a_terminal() -> None:
    text = findings_text(log_of(Severity.WARNING, detail=LONG, fix=FIX).findings(), ALL, width=80)
    assert text.splitlines() == [
        "warning[code-warning]: pred.json: predictions look like corners: AP50 .001 as",
        "    given, .742 as x1 y1 x2 y2; boxes were read as x y width height",
        "    fix: Rerun with --pred-box xyxy.",
    ]


def test_a_short_message_keeps_to_its_line_on_a_terminal() -> None:
    text = findings_text(log_of(Severity.WARNING, fix="Mend it.").findings(), ALL, width=80)
    assert text == "warning[code-warning]: pred.json: odd. Mend it."


def test_a_word_to_be_copied_is_never_cut() -> None:
    word = "--class-map=" + ",".join(f"{i}={i + 1}" for i in range(30))
    assert word in findings_text(log_of(Severity.WARNING, fix=f"Pass {word}").findings(), ALL, width=60)


def test_a_table_stays_aligned_below_a_wrapped_message() -> None:
    table = (("map", "agreement"), ("as given", ".012"), ("one up", ".9"))
    lines = findings_text(log_of(Severity.WARNING, detail=LONG, table=table).findings(), ALL, width=60).splitlines()
    assert lines[-3:] == ["    map       agreement", "    as given       .012", "    one up           .9"]


def test_a_usage_error_wraps_at_blanks_on_a_terminal_and_is_one_line_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [str(path) for path in SAMPLE_PAIR]
    assert run.run([*pair, "--protocol", "voc"]) == 2
    whole = capsys.readouterr().err
    assert whole.count("\n") == 1
    monkeypatch.setattr(streams, "message_width", lambda: 60)
    assert run.run([*pair, "--protocol", "voc"]) == 2
    wrapped = capsys.readouterr().err
    assert max(map(len, wrapped.splitlines())) <= 60
    assert wrapped.startswith("error: unknown protocol 'voc'; ")
    assert wrapped.split() == whole.split()


def test_strict_ends_with_3_and_an_allowed_warning_of_a_loader_does_not(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, warned=True)
    strict = run_here("evaluate", *pair, "--strict")
    assert (strict.returncode, strict.stdout) == (3, "")
    assert strict.stderr.startswith("error[box-empty]: ")
    allowed = run_here("evaluate", *pair, "--strict", "--allow", "box-empty")
    assert allowed.returncode == 0
    assert "warning[box-empty]: " in allowed.stderr


def test_allowing_one_warning_lets_no_other_pass(tmp_path: Path) -> None:
    done = run_here("evaluate", *write_pair(tmp_path, warned=True), "--strict", "--allow", "class-unknown")
    assert done.returncode == 3


def test_an_unknown_code_is_a_usage_error_that_suggests_the_known_one(tmp_path: Path) -> None:
    done = run_here("evaluate", *write_pair(tmp_path), "--allow", "box-emtpy")
    assert done.returncode == 2
    assert "'box-emtpy' is not the code of a finding. Did you mean 'box-empty'" in done.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_process_wraps_at_the_width_of_its_terminal(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    argv = command("evaluate", *write_pair(tmp_path, warned=True), "--progress", "never")
    subprocess.run(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    lines = os.read(ours, 65536).decode().splitlines()
    os.close(ours)
    # Only words that cannot be broken, as the path of the test's folder, may stand out.
    assert all(len(line) <= 60 or " " not in line.strip() for line in lines)
    assert len(lines) > 1


@pytest.mark.parametrize("command", [["evaluate"], ["explain"]])
def test_a_warning_stands_once_where_both_streams_end_in_one_place(command: list[str], tmp_path: Path) -> None:
    argv = [*command, *write_pair(tmp_path, warned=True)]
    together = run_process(*argv, stderr=subprocess.STDOUT)
    assert together.stdout.count("box-empty") == 1
    assert "Warnings" in together.stdout
    apart = run_process(*argv)
    assert (apart.stdout.count("box-empty"), apart.stderr.count("box-empty")) == (1, 1)


def test_a_warning_is_said_beside_a_document(tmp_path: Path) -> None:
    done = run_process("evaluate", *write_pair(tmp_path, warned=True), "--json", stderr=subprocess.STDOUT)
    assert "warning[box-empty]" in done.stdout


def test_a_warning_is_said_beside_a_headline(tmp_path: Path) -> None:
    done = run_process("evaluate", *write_pair(tmp_path, warned=True), "--quiet", stderr=subprocess.STDOUT)
    assert "warning[box-empty]" in done.stdout
