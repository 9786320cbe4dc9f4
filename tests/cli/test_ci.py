import json
from pathlib import Path

import pytest
from command_line import box, run_here, write_json, write_pair
from workflow_parser import Command, parse_log


@pytest.fixture
def github(tmp_path: Path) -> dict[str, str]:
    """The variables of a step on GitHub, with files that the runner has made."""
    names = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}
    for name in names.values():
        (tmp_path / name).touch()
    paths = {key: str(tmp_path / name) for key, name in names.items()}
    return {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path), **paths}


def test_github_gets_annotations_a_summary_and_outputs_and_stdout_stays_json(
    tmp_path: Path, github: dict[str, str]
) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    done = run_here(gt, pred, "--json", env=github)
    assert done.returncode == 0
    value = json.loads(done.stdout)["metrics"]["AP"]
    (only,) = parse_log(done.stderr)
    assert (only.name, only.properties["file"]) == ("warning", "pred.json")
    assert f"AP={value}" in (tmp_path / "output").read_text().splitlines()
    assert "### Metrics" in (tmp_path / "summary.md").read_text()


def test_two_runs_of_a_step_append_to_one_summary(tmp_path: Path, github: dict[str, str]) -> None:
    gt, pred = write_pair(tmp_path)
    for _ in range(2):
        run_here(gt, pred, env=github)
    assert (tmp_path / "summary.md").read_text().count("## jaccard-eval, evaluation") == 2


def test_a_full_summary_is_left_as_it_is(tmp_path: Path, github: dict[str, str]) -> None:
    gt, pred = write_pair(tmp_path)
    (tmp_path / "summary.md").write_bytes(b" " * (1024 * 1024 - 10))
    done = run_here(gt, pred, env=github)
    assert (done.returncode, "no room for a job summary" in done.stderr) == (0, True)
    assert (tmp_path / "summary.md").stat().st_size == 1024 * 1024 - 10


def test_files_that_cannot_be_written_are_said_and_fail_no_run(tmp_path: Path, github: dict[str, str]) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_here(gt, pred, env=github | {"GITHUB_OUTPUT": str(tmp_path / "none/output")})
    assert done.returncode == 0
    assert "output: no such file or directory" in done.stderr


def test_unusable_data_is_annotated_once_at_its_file(tmp_path: Path, github: dict[str, str]) -> None:
    gt, _ = write_pair(tmp_path)
    bad = write_json(tmp_path / "bad.json", [box(1, 1, [0, 0, 10], score=0.9)])
    for command in ("evaluate", "inspect"):
        done = run_here(command, gt, bad, env=github)
        assert done.returncode == 3
        errors = [one for one in parse_log(done.stderr) if one.name == "error"]
        assert [one.properties["file"] for one in errors] == ["bad.json"]


def test_a_wrong_option_value_is_annotated_without_a_place(tmp_path: Path, github: dict[str, str]) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_here(gt, pred, "--classes", "dgo", env=github)
    (only,) = parse_log(done.stderr)
    assert done.returncode == 2
    assert only == Command("error", {"title": "jaccard-eval"}, only.message)
    assert "dgo" in only.message


@pytest.mark.parametrize("options", [("--ci", "off"), ("--ci", "gitlab")])
def test_another_choice_than_the_detected_one_is_kept_to(
    tmp_path: Path, github: dict[str, str], options: tuple[str, str]
) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    done = run_here(gt, pred, *options, env=github, cwd=tmp_path)
    assert parse_log(done.stderr) == []
    assert (tmp_path / "summary.md").read_text() == ""
    assert (tmp_path / "gl-code-quality-report.json").exists() == ("gitlab" in options)


def test_nothing_is_told_outside_of_ci_systems(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    before = set(tmp_path.iterdir())
    done = run_here(gt, pred, env={"CI": "true"}, cwd=tmp_path)
    assert parse_log(done.stderr) == []
    assert set(tmp_path.iterdir()) == before


def test_github_on_request_needs_none_of_its_variables(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    done = run_here(gt, pred, "--ci", "github")
    assert [one.name for one in parse_log(done.stderr)] == ["warning"]


def test_gitlab_finds_its_report_in_the_project_folder(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path, warned=True)
    done = run_here(gt, pred, env={"GITLAB_CI": "true", "CI_PROJECT_DIR": str(tmp_path)})
    assert done.returncode == 0
    (issue,) = json.loads((tmp_path / "gl-code-quality-report.json").read_text())
    assert issue["severity"] == "minor"


def test_all_outputs_come_from_one_run(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    names = ("junit.xml", "summary.md", "metrics.txt", "badge.json", "gl-code-quality-report.json", "result.json")
    options = [part for name in names for part in ("-o", str(tmp_path / "out" / name))]
    (tmp_path / "out").mkdir()
    assert run_here(gt, pred, *options).returncode == 0
    starts = {name: (tmp_path / "out" / name).read_text()[:14] for name in names}
    assert starts == {
        "junit.xml": "<?xml version=",
        "summary.md": "## jaccard-eva",
        "metrics.txt": "# TYPE jaccard",
        "badge.json": '{\n  "schemaVer',
        "gl-code-quality-report.json": "[]\n",
        "result.json": '{\n  "correspon',
    }


@pytest.mark.parametrize("name", ["::error::pwned", "::stop-commands::x", "##[error]pwned"])
def test_names_of_classes_are_no_commands_of_the_runner(tmp_path: Path, github: dict[str, str], name: str) -> None:
    gt, pred = write_pair(tmp_path)
    document = json.loads(gt.read_text())
    document["categories"][0]["name"] = name
    write_json(gt, document)
    done = run_here(gt, pred, "--per-class", env=github)
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.lstrip().startswith("::") or "##[" in line] == []
    as_json = run_here(gt, pred, "--json", env=github)
    assert "##[" not in as_json.stdout
    assert json.loads(as_json.stdout)["per_class"][0]["class"] == name
    assert name in run_here(gt, pred, "--per-class").stdout
