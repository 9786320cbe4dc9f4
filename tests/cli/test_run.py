import errno
import os

import click
import pytest

from jaccard_eval.cli import run
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import DataError, Where


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no such class"), 2, "error: no such class"),
        (click.UsageError("bad option"), 2, "error: bad option\nSee 'jaccard-eval --help'."),
        (DataError.single("code", Where("gt.json"), "is odd"), 3, "error[code]: gt.json: is odd"),
        (MachineError("cannot write"), 4, "error: cannot write"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES), "x.json"), 4, "error: x.json: permission denied"),
        (MemoryError(), 4, "error: out of memory"),
        (
            ImportError("numpy:\nno such file", name="numpy"),
            4,
            "error: a library cannot be loaded: numpy: no such file",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_kind_of_error_has_its_exit_code(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run._explain(error) == code
    assert capsys.readouterr().err == f"{message}\n"


def test_a_bug_is_one_line_that_says_how_to_report_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run._explain(ZeroDivisionError("division by zero\x1b[2J")) == 5
    text = capsys.readouterr().err
    assert text.startswith(r"error: internal error: ZeroDivisionError: division by zero\x1b[2J. This is a bug")
    assert "JACCARD_EVAL_TRACEBACK=1" in text
    assert text.count("\n") == 1


def test_the_traceback_is_shown_on_request(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACCARD_EVAL_TRACEBACK", "1")
    run._explain(ZeroDivisionError("division by zero"))
    assert "ZeroDivisionError: division by zero\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["evalaute", "gt.json", "pred.json"], "'evalaute' is neither a command nor a file. Did you mean 'evaluate'?"),
        (["gt.json"], "Missing argument 'PRED'."),
        (
            ["a", "b", "c"],
            "Got unexpected extra argument (c). GT and PRED are one path each: compare several models with",
        ),
        (["--gt", "a", "--gt", "b", "c"], "GT is given 2 times"),
        (["a", "b", "--per-clas"], "--per-class"),
        (
            ["a", "b", "--gt-box", "xyxx"],
            "'xyxx' is not one of xywh, xyxy, cxcywh, xxyy, yxyx. Did you mean 'yxyx' or 'xyxy'?",
        ),
        (["a", "b", "--gt-format", "cooc"], "unknown format 'cooc'; choose from "),
        (["a", "b", "--iou", "x"], "Invalid value for '--iou': 'x' is not a number"),
        (["a", "b", "-o", "x.jsn"], "Did you mean '.json'?"),
        (["a", "b", "--sort", "APP"], "Did you mean 'AP'"),
        (["a", "b", "--nonsense\x1b[2J"], r"--nonsense\x1b[2J"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_was_meant(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(argv) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["-h"], ["evaluate", "--help"], ["formats", "--help"]])
def test_help_and_version_go_to_the_standard_output(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(argv) == 0
    shown = capsys.readouterr()
    assert shown.out
    assert shown.err == ""
