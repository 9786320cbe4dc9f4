"""The package of docs/extending.md, built from the page, installed and used: all that a third party can add."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from command_line import run_here
from test_readme import ROOT, read_blocks, read_commands, run_shell

from jaccard_eval import UsageError, evaluate
from jaccard_eval.data.metricref import METRICS
from jaccard_eval.errors import MachineError
from jaccard_eval.similarity import KINDS

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = re.compile(r"^In `([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AGREEMENT = math.exp(-5 / 12.8)  # of centres 3 and 4 px apart
GT, PRED = (f"{side}.spots" for side in ("gt", "pred"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a folder, by pip where a fitting setuptools is here, else as a wheel would be."""
    folder = tmp_path_factory.mktemp("tiny_objects")
    for name, text in FILES.findall(PAGE):
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "source/tiny_objects/__init__.py").touch()
    if int(version("setuptools").partition(".")[0]) < 61:
        pytest.skip("needs setuptools 61")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    target = ["--no-compile", "--target", str(folder / "site"), str(folder / "source")]
    done = subprocess.run([*pip, *target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def added(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the package importable, and a folder with the two files of the page the current one."""
    monkeypatch.syspath_prepend(str(installed))
    for command in read_commands(next(block.text for block in read_blocks(PAGE) if block.language == "console")):
        if command.text.startswith("cat "):
            (tmp_path / command.text.removeprefix("cat ")).write_text(command.output)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    METRICS.pop("F2", None)
    KINDS.pop("nwd", None)
    for name in [name for name in sys.modules if name.startswith("tiny_objects")]:
        del sys.modules[name]


def test_the_commands_of_the_page_print_what_it_shows(
    added: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(sys.executable).with_name("jaccard-eval").exists():
        pytest.skip("needs the installed script")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    (block,) = (block for block in read_blocks(PAGE) if block.language == "console")
    for command in read_commands(block.text):
        assert run_shell(command.text, added).stdout == command.output, command.text


@pytest.mark.parametrize(
    ("command", "listed"),
    [
        (("help", "metrics"), r"Added by installed packages:\n  F2  tiny-objects 1\.0"),
        (("help", "outputs"), r"Added by installed packages:\n  latex  tiny-objects 1\.0"),
        (("help", "protocols"), r"Added by installed packages:\n  tiny  tiny-objects 1\.0"),
        (("help", "protocols"), r"for --iou-type:\n  nwd  tiny-objects 1\.0"),
        (("formats", "spots"), r"spots: .*\n  added by: tiny-objects 1\.0"),
        (("formats",), r"\n  spots  "),
    ],
)
def test_lists_name_what_packages_add(command: tuple[str, ...], listed: str, added: Path) -> None:
    assert re.search(listed, run_here(*command).stdout)


def test_all_additions_work_together_and_are_saved(added: Path) -> None:
    result = evaluate(GT, PRED, protocol="tiny")
    assert result.gt.format == "spots"
    # At .5 the first detection is right, with half of the objects found; at .75 neither is.
    assert [result["AP50"], result["AP75"]] == pytest.approx([51 / 101, 0], abs=1e-12)
    assert result["F2[iou=0.5,score=0]"] == 5 / 10
    assert result["F2[iou=0.75,score=0]"] == 0
    assert result.signature.startswith("tiny|iou=0.5,0.75|")
    assert "|iou_type=nwd|" in result.signature
    for name in ("run.npz", "result.json", "result.tex"):
        result.save(name)
    table = (added / "result.tex").read_text().partition("% Summary")[2]
    assert r"AP\_small & 0.2525 & 2 \\" in table
    # An installed metric is a rule of gates, and is read back with the result.
    done = run_here("gate", "result.json", "--fail-under", "F2[iou=0.5,score=0]=0.6")
    assert done.returncode == 2 and "has no F2[iou=0.5,score=0]" in done.stderr
    done = run_here("gate", "run.npz", "--fail-under", "F2[iou=0.5,score=0]=0.6", "-o", "gates.json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAILED  F2[iou=0.5,score=0] 0.5000 < 0.60")
    assert json.loads((added / "gates.json").read_text())["gates"][0]["value"] == 0.5
    done = run_here(
        GT, PRED, "--protocol", "tiny", "--fail-under", "F2[iou=0.5,score=0]=0.4", "-o", "judged.json", "-q"
    )
    assert run_here("gate", "judged.json", "--fail-under", "F2[iou=0.5,score=0]=0.6", "-q").returncode == 1


def test_the_similarity_is_that_of_the_formula(added: Path) -> None:
    from jaccard_eval.data.protocol import COCO

    kind, boxes = KINDS["nwd"], evaluate(GT, PRED, protocol="tiny")
    corners = np.array([[98.0, 48.0, 4.0, 4.0]]), np.array([[102.0, 51.0, 4.0, 4.0]])
    sides = [kind.prepare(type("Boxes", (), {"xywh": xywh})(), COCO) for xywh in corners]  # type: ignore[arg-type]
    _, _, agreement = kind.pairs(*sides, np.array([0]), np.array([0]))
    assert agreement.tolist() == pytest.approx([AGREEMENT], abs=1e-15)
    assert boxes.matches["iou"][0, 0] == pytest.approx(AGREEMENT, abs=1e-15)
    # The boxes of all formats can be compared by it, those of COCO with masks too.
    sample = ROOT / "sample_data/coco"
    result = evaluate(sample / "gt.json", sample / "better.json", iou_type="nwd")
    assert result["AP50"] > 0


def test_bounds_and_qualifiers_are_those_of_a_metric_at_a_point(added: Path) -> None:
    done = run_here(GT, PRED, "--protocol", "tiny", "--fail-under", "F2[iou=0.5,score=0]=50")
    assert done.returncode == 2
    assert "0.5" in done.stderr  # a fraction was probably meant
    with pytest.raises(UsageError, match="F2 takes iou, score and class only"):
        _ = evaluate(GT, PRED, protocol="tiny")["F2[area=small]"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--protocol", "tinny"], r"unknown protocol 'tinny'; .*tiny\. Did you mean 'tiny'\?"),
        (["--iou-type", "nwdd"], r"'nwdd' is not one of .*nwd\. Did you mean 'nwd'\?"),
        (["--fail-under", "F3=0.5"], r"unknown metric 'F3'; choose from .*F2"),
        (["--gt-format", "spot"], r"unknown format 'spot'.*spots.*Did you mean"),
        (["-o", "tables.texx"], r"'\.texx', choose from .*\.tex"),
    ],
)
def test_a_misspelt_name_shows_what_is_installed(added: Path, arguments: list[str], expected: str) -> None:
    done = run_here(GT, PRED, "--gt-format", "spots", *arguments)
    assert done.returncode == 2
    assert re.search(expected, " ".join(done.stderr.split())), done.stderr


def write_package(folder: Path, name: str, points: str, module: str = "") -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)
    (folder / f"{name}_module.py").write_text(module)


@pytest.mark.parametrize(
    ("group", "target", "asked", "fault"),
    [
        ("metrics", "broken_module:GONE", ["--fail-under", "odd=1"], "cannot be imported: AttributeError"),
        ("metrics", "nowhere.at.all", ["--fail-under", "odd=1"], "cannot be imported: ModuleNotFoundError"),
        ("metrics", "broken_module:TEXT", ["--fail-under", "odd=1"], "is not a Metric of that name"),
        ("metrics", "broken_module:MEAN", ["--fail-under", "odd=1"], "must be a ratio, a count or a mean count"),
        ("protocols", "broken_module:TEXT", ["--protocol", "odd"], "is not a Protocol of that name"),
        ("similarities", "broken_module:TEXT", ["--iou-type", "odd"], "is not a Similarity of that name"),
        ("reporters", "broken_module:TEXT", ["-o", "a.odd"], "is not a Reporter with suffixes or names"),
        ("formats", "broken_module:TEXT", ["--gt-format", "odd"], "is not a module with FORMAT, looks_like and read"),
    ],
)
def test_a_package_that_does_not_fit_is_named(
    group: str, target: str, asked: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "from jaccard_eval.plugins import BOXES, Metric\nTEXT = 'odd'\n"
    module += "MEAN = Metric('odd', 'average', (BOXES,), '')\n"
    write_package(tmp_path, "broken", f"[jaccard_eval.{group}]\nodd = {target}\n", module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken_module", raising=False)
    sample = ROOT / "sample_data/coco"
    done = run_here(sample / "gt.json", sample / "better.json", *asked, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert f"'odd' of the installed package 'broken 1.0' {fault}" in done.stderr


def test_two_packages_with_one_name_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        write_package(tmp_path, name, f"[jaccard_eval.protocols]\nours = {name}_module:RULES\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MachineError, match=r"protocol 'ours' is in 2 installed packages: 'first 1\.0', 'second 1\.0'"):
        evaluate("gt.json", "pred.json", protocol="ours")


def test_a_plain_run_reads_no_entry_points() -> None:
    sample = ROOT / "sample_data/coco"
    program = f"""
import sys
from jaccard_eval import extensions
from jaccard_eval.cli.run import run_process
def refuse(*_): raise AssertionError("entry points are read")
extensions._points = refuse
run_process(["{sample}/gt.json", "{sample}/better.json", "--fail-under", "AP50=0.1", "--iou-type", "bbox", "-q"], print)
print("importlib.metadata" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["False"], done.stderr
