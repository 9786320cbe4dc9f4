"""The version, and what a bug report has to tell beside it."""

import platform
from importlib.metadata import version

import pytest
from command_line import environment, run_process
from test_process import loaded_modules

from jaccard_eval.cli import run
from jaccard_eval.version import __version__


@pytest.mark.parametrize(
    "argv", [["--version", "-v"], ["-v", "--version"], ["--version", "--verbose"], ["version", "-v"]]
)
def test_the_verbose_version_tells_what_a_bug_report_needs(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(argv) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"jaccard-eval {__version__}"
    rows = dict(line.split(maxsplit=1) for line in lines)
    assert rows["python"].startswith(platform.python_version())
    assert rows["platform"] == platform.platform()
    assert "output " in rows["locale"]
    assert rows["native"].split()[0] in ("yes", "no", "off")
    assert rows["numpy"] == version("numpy")
    assert {"pandas", "click", "pyarrow", "matplotlib"} <= set(rows)
    assert "pytest" not in rows


def test_the_verbose_version_loads_nothing_heavy() -> None:
    assert loaded_modules("--version", "-v") == set()


def test_the_version_alone_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["--version"]) == 0
    assert capsys.readouterr().out == f"jaccard-eval {__version__}\n"


def test_verbose_in_front_of_two_inputs_is_that_of_the_evaluation() -> None:
    done = run_process("-v", "missing.json", "missing.json", env=environment())
    assert done.returncode == 3
    assert "missing.json" in done.stderr
