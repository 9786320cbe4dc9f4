"""A message that names an option is followed here: what it asks for has to work."""

import json
from pathlib import Path

import pytest
from command_line import run_here

SAMPLE = Path(__file__).parents[2] / "sample_data/coco"
SIDES = (SAMPLE / "gt.json", SAMPLE / "better.json")


@pytest.mark.parametrize(
    ("given", "named", "followed"),
    [
        (("--fail-under", "AP83=0"), "Evaluate with --iou 0.83.", ("--fail-under", "AP83=0", "--iou", "0.83")),
        (
            ("--fail-drop", "AP=0.1", "--baseline", "none.json"),
            "create it with --update-baseline",
            ("--fail-drop", "AP=0.1", "--baseline", "none.json", "--update-baseline"),
        ),
        (
            ("--fail-drop", "AP=0.1", "--baseline", "none.json"),
            "skip the rules that need it with --allow-missing-baseline",
            ("--fail-drop", "AP=0.1", "--baseline", "none.json", "--allow-missing-baseline"),
        ),
        (("-o", "thresholds.json", "--no-errors"), "remove --no-errors", ("-o", "thresholds.json")),
        (
            ("--update-baseline",),
            "--update-baseline needs --baseline FILE.json",
            ("--baseline", "b.json", "--update-baseline"),
        ),
        (
            ("--metric", "ms=12", "--fail-under", "AP=0"),
            "add --fail-over external.ms=LIMIT",
            ("--metric", "ms=12", "--fail-over", "external.ms=15"),
        ),
        (("--confidence", "0.9"), "--confidence needs --bootstrap N", ("--confidence", "0.9", "--bootstrap", "20")),
    ],
)
def test_what_evaluate_asks_for_works(
    tmp_path: Path, given: tuple[str, ...], named: str, followed: tuple[str, ...]
) -> None:
    refused = run_here("evaluate", *SIDES, *given, cwd=tmp_path)
    assert refused.returncode == 2
    assert named in " ".join(refused.stderr.split())
    done = run_here("evaluate", *SIDES, *followed, cwd=tmp_path)
    assert (done.returncode, "error" in done.stderr) == (0, False)


def test_what_convert_asks_for_works(tmp_path: Path) -> None:
    for given, named, followed in (
        ((SIDES[0], "out"), "name one with --to", (SIDES[0], "out.xyz", "--to", "coco")),
        (
            (SIDES[1], "a.json", "--gt", SIDES[0], "--role", "gt"),
            "remove --role gt",
            (SIDES[1], "a.json", "--gt", SIDES[0]),
        ),
    ):
        refused = run_here("convert", *given, cwd=tmp_path)
        assert refused.returncode == 2
        assert named in " ".join(refused.stderr.split())
        assert run_here("convert", *followed, cwd=tmp_path).returncode == 0


def test_a_result_without_the_metric_of_a_rule_is_evaluated_again_with_it(tmp_path: Path) -> None:
    assert run_here("evaluate", *SIDES, "-o", "result.json", "-o", "run.npz", cwd=tmp_path).returncode == 0
    refused = run_here("gate", "result.json", "--fail-under", "AP85=0", cwd=tmp_path)
    assert refused.returncode == 2
    assert "result.json has no AP85. Re-run evaluate with this rule, or use the saved run (.npz)." in refused.stderr
    assert run_here("gate", "run.npz", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0
    assert run_here("evaluate", *SIDES, "-o", "again.json", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0
    assert run_here("gate", "again.json", "--fail-under", "AP85=0", cwd=tmp_path).returncode == 0


def test_a_significance_gets_the_runs_that_it_asks_for(tmp_path: Path) -> None:
    rule = ("--fail-significant-drop", "AP=0.9", "--baseline", "main.json")
    assert run_here("evaluate", *SIDES, "-o", "main.json", cwd=tmp_path).returncode == 0
    refused = run_here("evaluate", *SIDES, *rule, cwd=tmp_path)
    assert refused.returncode == 2
    assert "Write both: evaluate GT PRED -o main.json -o main.npz" in refused.stderr
    assert run_here("evaluate", *SIDES, "-o", "main.json", "-o", "main.npz", cwd=tmp_path).returncode == 0
    done = run_here("evaluate", *SIDES, *rule, "-o", "new.json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads((tmp_path / "new.json").read_text())["gates"][0]["status"] == "pass"
