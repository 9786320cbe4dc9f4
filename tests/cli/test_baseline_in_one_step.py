"""A baseline is read again before it is replaced, and no report costs the inputs of what it reports."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval.cli.gating import Gatekeeper

SAMPLE = Path(__file__).parents[2] / "sample_data"


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gt", "better", "worse"):
        shutil.copy(SAMPLE / f"coco/{name}.json", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_a_slow_worse_run_does_not_replace_a_better_one_that_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    update = ("--baseline", "main.json", "--update-baseline", "--fail-drop", "AP=0.01", "-q")
    assert run_here("gt.json", "worse.json", *update).returncode == 0
    judge = Gatekeeper.judge

    def judge_late(keeper: Gatekeeper, result: object) -> object:
        # While this run computed, a better one has become the baseline.
        monkeypatch.setattr(Gatekeeper, "judge", judge)
        assert run_here("gt.json", "better.json", *update).returncode == 0
        return judge(keeper, result)  # type: ignore[type-var]

    monkeypatch.setattr(Gatekeeper, "judge", judge_late)
    assert run_here("gt.json", "worse.json", *update).returncode == 1
    assert json.loads(Path("main.json").read_text())["inputs"]["pred"]["path"] == "better.json"


@pytest.mark.usefixtures("_here")
def test_a_baseline_of_another_kind_is_not_replaced() -> None:
    maps = Path(__file__).parents[1] / "golden/given/inputs/maps"
    assert run_here("pixels", maps / "gt", maps / "pred", "-q", "-o", "main.json").returncode == 0
    before = Path("main.json").read_bytes()
    done = run_here("gt.json", "better.json", "-q", "--baseline", "main.json", "--update-baseline")
    assert done.returncode == 2
    assert "is a result of kind pixels, and this is one of kind evaluation" in done.stderr
    assert Path("main.json").read_bytes() == before


@pytest.mark.usefixtures("_here")
def test_reports_and_comparisons_do_not_write_over_the_inputs_of_a_saved_result() -> None:
    for name in ("better", "worse"):
        assert (
            run_here("gt.json", f"{name}.json", "-q", "-o", f"{name}-run.npz", "-o", f"{name}-result.json").returncode
            == 0
        )
    before = Path("gt.json").read_bytes()
    for argv in (("report", "better-result.json"), ("compare", "worse-run.npz", "better-run.npz")):
        done = run_here(*argv, "-q", "-o", "gt.json")
        assert (done.returncode, Path("gt.json").read_bytes()) == (2, before), done.stderr
