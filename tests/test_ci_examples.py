"""The examples of docs/ci.md and the steps of action.yml run as they stand, with the variables of their CI system.

What CI systems do themselves is done here in a few lines: expressions are filled in, steps run one by one in the shell
that the system documents, and every file that an example hands over to the system must be there. Python and pip are
stand-ins that install nothing; jaccard-eval is this environment's.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from workflow_parser import parse_log

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
YAML = [yaml.safe_load(text) for language, text in BLOCKS if language == "yaml"]
WITH_ACTION, WITHOUT_ACTION, GITLAB = YAML
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
SHELL = ("sh", "-e", "-c")
STAND_IN = """#!/bin/sh
# Stands for python and pip: a virtual environment is a folder of stand-ins, and installing is nothing.
for last; do :; done
if [ "$2" = venv ]; then
  mkdir -p "$last/bin" && cp "$0" "$last/bin/python" && cp "$0" "$last/bin/pip" && : > "$last/bin/activate"
fi
"""


class Project:
    """A checkout with the sample, and the programs that a CI system would find."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        shutil.copytree(ROOT / "sample_data", self.folder / "sample_data", ignore=shutil.ignore_patterns("__pycache__"))
        programs = folder / "programs"
        programs.mkdir()
        for name in ("python", "python3", "pip"):
            (programs / name).write_text(STAND_IN)
            (programs / name).chmod(0o755)
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        self.environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "CI": "true"}

    def run(self, shell: tuple[str, ...], script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shell, script],
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def break_the_model(self) -> None:
        """Let the predictions be those of the worse model."""
        shutil.copy(self.folder / "sample_data/coco/worse.json", self.folder / "sample_data/coco/better.json")

    def has(self, *paths: str) -> bool:
        return all((self.folder / path).is_file() for path in paths)


class GitHub:
    """The steps of one job on GitHub: their files, their outputs, and expressions."""

    def __init__(self, project: Project) -> None:
        self.project, self.values, self.log = project, {"github.action_path": str(ROOT)}, ""
        self.files = project.folder.parent
        self.exit_code = 0

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            if self.exit_code and "always()" not in str(step.get("if", "")):
                continue
            if "run" in step:
                self._run_step(step)
            elif step["uses"].startswith("OWNER/jaccard-eval@"):
                self._run_action(step)

    def _run_step(self, step: dict[str, Any]) -> None:
        files = {name: self.files / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        files["GITHUB_OUTPUT"].write_text("")
        own = {name: self.fill(str(value)) for name, value in step.get("env", {}).items()}
        fixed = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self.project.folder), "RUNNER_TEMP": str(self.files)}
        done = self.project.run(BASH, self.fill(step["run"]), **fixed, **own, **{k: str(v) for k, v in files.items()})
        self.log += done.stdout + done.stderr
        self.exit_code = self.exit_code or done.returncode
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step.get('id')}.outputs.{name}"] = value

    def _run_action(self, step: dict[str, Any]) -> None:
        assert set(step["with"]) <= set(ACTION["inputs"])
        for name, about in ACTION["inputs"].items():
            self.values[f"inputs.{name}"] = str(step["with"].get(name, about.get("default", "")))
        self.run(ACTION["runs"]["steps"])
        for name, about in ACTION["outputs"].items():
            self.values[f"steps.{step['id']}.outputs.{name}"] = self.fill(about["value"])

    def fill(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self.values.get(found[1], ""), text)

    @property
    def summary(self) -> str:
        return (self.files / "github_step_summary").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def block(language: str) -> str:
    (text,) = [text for one, text in BLOCKS if one == language]
    return str(text)


def github_steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = workflow["jobs"]["evaluate"]["steps"]
    return steps


def jenkins_script() -> str:
    (script,) = re.findall(r"sh '''(.*?)'''", block("groovy"), re.DOTALL)
    return str(script).replace("\\\\", "\\")


def test_github_with_the_action_evaluates_and_hands_over_outputs(project: Project) -> None:
    runner = GitHub(project)
    runner.run(github_steps(WITH_ACTION))
    assert runner.exit_code == 0, runner.log
    value = json.loads((project.folder / "jaccard-eval-reports/result.json").read_text())["metrics"]["AP"]
    assert f"AP is {value}, gates passed" in runner.log
    assert project.has(*(f"jaccard-eval-reports/{name}" for name in ("junit.xml", "metrics.txt", "badge.json")))
    assert runner.summary.startswith("## ✅ jaccard-eval, evaluation: 2 passed")


def test_github_with_the_action_turns_red_with_an_annotation_per_broken_rule(project: Project) -> None:
    project.break_the_model()
    runner = GitHub(project)
    runner.run(github_steps(WITH_ACTION))
    assert runner.exit_code == 1
    assert [one.name for one in parse_log(runner.log)].count(
        "error"
    ) == 1  # AP .3463 < .6, and persons' AP50 .8421 > .8
    assert "gates failed" in runner.log
    assert project.has("jaccard-eval-reports/result.json")


def test_options_of_the_action_are_words_and_never_run(project: Project) -> None:
    runner = GitHub(project)
    step = {"uses": "OWNER/jaccard-eval@v1", "id": "x", "with": dict(github_steps(WITH_ACTION)[1]["with"])}
    step["with"]["options"] = "--classes 'dog,$(touch pwned)' ; touch pwned"
    runner.run([step])
    assert runner.exit_code == 2
    assert not project.has("pwned")


def test_github_without_the_action(project: Project) -> None:
    runner = GitHub(project)
    runner.run(github_steps(WITHOUT_ACTION))
    assert runner.exit_code == 0, runner.log
    assert project.has(*github_steps(WITHOUT_ACTION)[-1]["with"]["path"].split())


@pytest.mark.parametrize("broken", [False, True], ids=["green", "red"])
def test_gitlab_finds_every_report_that_the_job_names(project: Project, broken: bool) -> None:
    if broken:
        project.break_the_model()
    job = GITLAB["evaluate"]
    variables = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(project.folder)}
    done = project.run(SHELL, "\n".join(job["script"]), **variables)
    assert done.returncode == int(broken), done.stderr
    assert project.has(*job["artifacts"]["paths"], *job["artifacts"]["reports"].values())
    issues = json.loads((project.folder / "gl-code-quality-report.json").read_text())
    assert ["critical" in one["severity"] for one in issues].count(True) == int(broken)


def test_jenkins_finds_the_reports_that_the_pipeline_names(project: Project) -> None:
    done = project.run(SHELL, jenkins_script(), JENKINS_URL="https://jenkins.example")
    assert done.returncode == 0, done.stderr
    assert project.has(*re.findall(r"(?:junit|archiveArtifacts) '([^']+)'", block("groovy")))


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_builds_the_target_and_fails_with_the_gate(project: Project) -> None:
    (project.folder / "Makefile").write_text(block("make"))
    assert project.run(("make",), "evaluate").returncode == 0
    assert project.has("result.json", "junit.xml", "badge.json")
    project.break_the_model()
    assert project.run(("make",), "evaluate").returncode != 0


def test_the_page_names_every_output_that_is_known_by_name() -> None:
    from jaccard_eval.report.outputs import badge, gitlab, openmetrics

    reporters = (*badge.REPORTERS, *gitlab.REPORTERS, *openmetrics.REPORTERS)
    assert [name for reporter in reporters for name in reporter.names if f"`{name}`" not in PAGE] == []
