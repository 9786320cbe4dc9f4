"""The examples of docs/ci.md and the steps of action.yml run as they stand, with the variables of their CI system.

What CI systems do themselves is done here in a few lines: expressions are filled in, steps run one by one in the shell
that the system documents, and every file that an example hands over to the system must be there. Python and pip are
stand-ins that install nothing; jaccard-eval is this environment's. Caches keep the folder that they
are told to, each branch sees its own and those of main.
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
MAIN_ON_GITHUB, MAIN_ON_GITLAB, WITH_ACTION, WITHOUT_ACTION, GITLAB, PRE_COMMIT = YAML
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
NAME = re.compile(r"'[^']*'|&&|\|\||[A-Za-z][\w.-]*(?=\W|$)(?!\()")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
SHELL = ("sh", "-e", "-c")
HERE = Path(sys.executable).parent
STAND_IN = f"""#!/bin/sh
# Stands for python and pip: a virtual environment is a folder of stand-ins, to install is to link what is here.
for last; do :; done
case "$*" in
  *sys.executable*) echo "$0" ;;
  *-m\\ venv*)
    mkdir -p "$last/bin" && cp "$0" "$last/bin/python" && cp "$0" "$last/bin/pip" && : > "$last/bin/activate" ;;
  *pip\\ install*) ln -sf {HERE}/jaccard-eval "$(dirname "$0")/jaccard-eval" ;;
  *-c\\ *) exec {sys.executable} "$@" ;;
esac
"""


class Project:
    """A checkout with the sample, and the programs that a CI system would find."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        shutil.copytree(ROOT / "sample_data", self.folder / "sample_data", ignore=shutil.ignore_patterns("__pycache__"))
        self._double()
        programs = self.programs = folder / "programs"
        programs.mkdir()
        for name in ("python", "python3", "pip"):
            self.install(name, STAND_IN)
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        self.environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "CI": "true"}

    def _double(self) -> None:
        """Write each image of the sample twice: a rule with a significance needs twenty."""
        folder = self.folder / "sample_data/coco"
        gt = json.loads((folder / "gt.json").read_text())
        again = max(image["id"] for image in gt["images"])
        gt["images"] += [
            image | {"id": image["id"] + again, "file_name": f"again/{image['file_name']}"} for image in gt["images"]
        ]
        more = len(gt["annotations"])
        gt["annotations"] += [
            one | {"id": one["id"] + more, "image_id": one["image_id"] + again} for one in gt["annotations"]
        ]
        (folder / "gt.json").write_text(json.dumps(gt))
        for path in (folder / "better.json", folder / "worse.json"):
            boxes = json.loads(path.read_text())
            path.write_text(json.dumps([*boxes, *(one | {"image_id": one["image_id"] + again} for one in boxes)]))

    def install(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def run(
        self, shell: tuple[str, ...], script: str, *, inside: str = ".", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shell, script],
            cwd=self.folder / inside,
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


class Cache:
    """Folders by branch and key, the newest last."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.saved = folder, list[tuple[str, str, Path]]()

    def save(self, branch: str, key: str, source: Path) -> None:
        if (branch, key) not in [(one, other) for one, other, _ in self.saved]:  # what is saved never changes
            copy = self.folder / str(len(self.saved))
            shutil.copytree(source, copy)
            self.saved.append((branch, key, copy))

    def restore(self, branch: str, keys: list[str], target: Path) -> None:
        for key in keys:
            found = [copy for one, other, copy in self.saved if one in (branch, "main") and other.startswith(key)]
            if found:
                shutil.copytree(found[-1], target)
                return


class GitHub:
    """The steps of one job on GitHub: their files, their outputs, and expressions."""

    def __init__(
        self, project: Project, *, branch: str = "feature", cache: Cache | None = None, sha: str = "1"
    ) -> None:
        self.project, self.branch, self.log = project, branch, ""
        self.values = {"github.action_path": str(ROOT), "github.ref": f"refs/heads/{branch}", "github.sha": sha}
        self.files = project.folder.parent
        self.cache = cache or Cache(self.files / "cache")
        self.exit_code = 0
        self.path = project.environment["PATH"]
        self.uploaded: dict[str, list[str]] = {}

    def run(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            condition = str(step.get("if", ""))
            if self.exit_code and "always()" not in condition:
                continue
            if condition and not self.value(condition.removeprefix("${{").removesuffix("}}")):
                continue
            if "run" in step:
                self._run_step(step)
            elif step["uses"].startswith("./"):
                self._run_action(step)
            else:
                with_ = {name: self.fill(str(value)) for name, value in step.get("with", {}).items()}
                self._use(step["uses"], with_, str(step.get("id")))

    def _use(self, uses: str, given: dict[str, str], name: str) -> None:
        """Do what an action of GitHub does."""
        action, _, version = uses.partition("@")
        assert version == {
            "actions/cache/restore": "v5",
            "actions/cache/save": "v5",
            "actions/upload-artifact": "v7",
        }.get(action, "v6")
        folder = self.project.folder / given.get("path", ".")
        if action == "actions/cache/restore":
            self.cache.restore(self.branch, [given["key"], *given["restore-keys"].split()], folder)
        elif action == "actions/cache/save":
            self.cache.save(self.branch, given["key"], folder)
        elif action == "actions/upload-artifact":
            paths = [self.project.folder / path for path in given["path"].split("\n") if path]
            assert paths and given["name"] not in self.uploaded
            files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
            self.uploaded[given["name"]] = sorted(file.name for file in files if file.is_file())
        elif action == "actions/setup-python" and given.get("update-environment") == "False":
            self.project.install("downloaded-python", STAND_IN)
            self.values[f"steps.{name}.outputs.python-path"] = str(self.project.programs / "downloaded-python")

    def _run_step(self, step: dict[str, Any]) -> None:
        files = {name: self.files / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        files["GITHUB_OUTPUT"].write_text("")
        files["GITHUB_PATH"].write_text("")
        own = {name: self.fill(str(value)) for name, value in step.get("env", {}).items()}
        fixed = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self.project.folder), "RUNNER_TEMP": str(self.files)}
        done = self.project.run(
            BASH,
            self.fill(step["run"]),
            inside=self.fill(step.get("working-directory", ".")),
            **fixed | own | {name: str(path) for name, path in files.items()} | {"PATH": self.path},
        )
        self.log += done.stdout + done.stderr
        self.exit_code = self.exit_code or done.returncode
        self.path = os.pathsep.join([*reversed(files["GITHUB_PATH"].read_text().splitlines()), self.path])
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step.get('id')}.outputs.{name}"] = value

    def _run_action(self, step: dict[str, Any]) -> None:
        given = step.get("with", {})
        assert set(given) <= set(ACTION["inputs"])
        for name, about in ACTION["inputs"].items():
            self.values[f"inputs.{name}"] = str(given.get(name, about["default"]))
        self.run(ACTION["runs"]["steps"])
        for name, about in ACTION["outputs"].items():
            self.values[f"steps.{step['id']}.outputs.{name}"] = self.fill(about["value"])

    def fill(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: str(self.value(found[1])), text)

    def value(self, expression: str) -> Any:
        """Return the value of an expression, whose operators are those of Python by other names."""

        def in_python(found: re.Match[str]) -> str:
            words = {"&&": " and ", "||": " or "}
            return words.get(found[0]) or (found[0] if found[0][0] == "'" else repr(self.values.get(found[0], "")))

        return eval(NAME.sub(in_python, expression.strip()), {"always": lambda: True})

    @property
    def summary(self) -> str:
        return (self.files / "github_step_summary").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def block(language: str) -> str:
    (text,) = [text for name, text in BLOCKS if name == language]
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
    names = ["badge.json", "junit.xml", "metrics.txt", "plot.svg", "report.html", "result.json", "summary.md"]
    assert runner.uploaded == {"evaluation": names}
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
    assert {"plot.svg", "report.html"} <= {*runner.uploaded["evaluation"]}


def use_action(project: Project, *, then: str = ":", **given: str) -> GitHub:
    """Run the action with some inputs, and a step after it."""
    runner = GitHub(project)
    inputs = {name.replace("_", "-"): value for name, value in given.items()}
    runner.run([{"uses": "./", "id": "x", "with": inputs}, {"run": then}])
    return runner


SIDES = {"ground_truth": "sample_data/coco/gt.json", "predictions": "sample_data/coco/better.json"}


def test_the_action_has_all_metrics_as_outputs_and_uploads_nothing_unasked(project: Project) -> None:
    runner = use_action(project, **SIDES, options="--iou 0.5,0.9")
    assert runner.exit_code == 0, runner.log
    metrics = json.loads((project.folder / "jaccard-eval-reports/result.json").read_text())["metrics"]
    assert json.loads(runner.values["steps.x.outputs.metrics"]) == metrics
    assert metrics["AP90"] != metrics["AP50"]
    assert runner.uploaded == {}
    assert not project.has("jaccard-eval-reports/plot.svg")
    assert not project.has("jaccard-eval-reports/report.html")


def test_the_action_lists_the_metrics_of_coco(project: Project) -> None:
    runner = use_action(project, **SIDES)
    metrics = json.loads(runner.values["steps.x.outputs.metrics"])
    others = {"metrics", "verdict", "failed", "signature", "reports"}
    assert set(ACTION["outputs"]) == {*metrics, *others}
    values = {name: runner.values[f"steps.x.outputs.{name}"] for name in metrics}
    assert {name: json.loads(text or "null") for name, text in values.items()} == metrics


def test_the_action_leaves_the_python_of_the_job_alone(project: Project) -> None:
    runner = use_action(project, **SIDES, then="echo it is $(command -v python3 python pip); jaccard-eval --version")
    assert runner.exit_code == 0, runner.log
    assert f"it is {' '.join(str(project.programs / name) for name in ('python3', 'python', 'pip'))}" in runner.log
    assert not (project.programs / "downloaded-python").exists()


def test_the_action_downloads_a_python_if_that_of_the_job_will_not_do(project: Project) -> None:
    for name in ("python3", "python"):
        project.install(name, "#!/bin/sh\nexit 1\n")  # as when it is too old, or has no ensurepip
    runner = use_action(project, **SIDES, then="command -v python3")
    assert runner.exit_code == 0, runner.log
    assert (project.programs / "downloaded-python").exists()
    assert runner.log.splitlines()[-1] == str(project.programs / "python3")


def test_the_action_runs_in_a_folder_with_a_configuration_and_a_baseline(project: Project) -> None:
    inside = project.folder / "models/a b"
    inside.mkdir(parents=True)
    (inside / "gates.toml").write_text(
        "[evaluate]\ngt = '../../sample_data/coco/gt.json'\npred = '../../sample_data/coco/better.json'\n"
        "[[gates.rules]]\nmetric = 'AP'\nmax-drop = 0.01\n"
    )
    given = {"working_directory": "models/a b", "config": "gates.toml", "baseline": "base/main.json", "reports": "out"}
    assert use_action(project, **given).exit_code == 2  # there is no baseline yet
    first = use_action(project, **given, options="--update-baseline", artifact="first")
    assert (first.exit_code, first.values["steps.x.outputs.failed"]) == (0, "0"), first.log
    assert "result.json" in first.uploaded["first"]
    assert (inside / "base/main.json").is_file()
    project.break_the_model()
    second = use_action(project, **given)
    assert (second.exit_code, second.values["steps.x.outputs.verdict"]) == (1, "failed"), second.log
    assert second.values["steps.x.outputs.reports"] == str(inside / "out")


@pytest.mark.parametrize("name", ["ground_truth", "predictions", "config", "baseline", "reports", "working_directory"])
@pytest.mark.parametrize("text", ["$(touch pwned)'\"; touch pwned", "--exit-zero"])
def test_no_input_of_the_action_is_run_or_read_as_an_option(project: Project, name: str, text: str) -> None:
    if name == "working_directory":  # GitHub sees that it exists
        (project.folder / text).mkdir(parents=True)
    runner = use_action(project, **SIDES | {"options": "--fail-under AP=0.99"} | {name: text})
    # A folder of reports may be called anything; no other of these names has what is read.
    assert runner.exit_code == (1 if name == "reports" else 2 if name in ("config", "baseline") else 3), runner.log
    assert list(project.folder.parent.rglob("pwned")) == []


def test_options_of_the_action_are_words_and_never_run(project: Project) -> None:
    runner = GitHub(project)
    step = {"uses": "./", "id": "x", "with": dict(github_steps(WITH_ACTION)[1]["with"])}
    step["with"]["options"] = "--classes 'dog,$(touch pwned)' ; touch pwned"
    runner.run([step])
    assert runner.exit_code == 2
    assert not project.has("pwned")


def test_github_without_the_action(project: Project) -> None:
    runner = GitHub(project)
    runner.run(github_steps(WITHOUT_ACTION))
    assert runner.exit_code == 0, runner.log
    assert runner.uploaded == {"evaluation": ["junit.xml", "result.json", "summary.md"]}


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
    from jaccard_eval.report.outputs import ci, openmetrics

    reporters = (*ci.REPORTERS, *openmetrics.REPORTERS)
    assert [name for reporter in reporters for name in reporter.names if f"`{name}`" not in PAGE] == []


class Team:
    """A project with the recipe, whose main and pull requests run on one CI system with one cache."""

    def __init__(self, project: Project) -> None:
        self.project = project
        (project.folder / "jaccard-eval.toml").write_text(block("toml"))
        self.cache = Cache(project.folder.parent / "cache")
        self.clean = project.folder.parent / "clean"
        shutil.copytree(project.folder, self.clean)
        self.runs = 0

    def checkout(self, *, broken: bool) -> None:
        shutil.rmtree(self.project.folder)
        shutil.copytree(self.clean, self.project.folder)
        if broken:
            self.project.break_the_model()
        self.runs += 1

    def on_github(self, branch: str, *, broken: bool = False) -> tuple[int, str]:
        self.checkout(broken=broken)
        runner = GitHub(self.project, branch=branch, cache=self.cache, sha=str(self.runs))
        runner.run(github_steps(MAIN_ON_GITHUB))
        assert runner.uploaded == {"evaluation": ["junit.xml", "report.html", "report.md", "result.json"]}
        return runner.exit_code, runner.log

    def on_gitlab(self, branch: str, *, broken: bool = False) -> tuple[int, str]:
        self.checkout(broken=broken)
        variables = {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(self.project.folder), "CI_DEFAULT_BRANCH": "main"}
        if branch == "main":
            variables |= {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main"}
        else:
            variables |= {"CI_PIPELINE_SOURCE": "merge_request_event"}
        (job,) = [job for job in map(self._extended, MAIN_ON_GITLAB) if self._is_run(job, variables)]
        cache = job["cache"]
        assert cache["unprotect"] is True
        (path,) = cache["paths"]
        self.cache.restore("main", [cache["key"]], self.project.folder / path)
        done = self.project.run(SHELL, "\n".join([*job["before_script"], *job["script"]]), **variables)
        if done.returncode == 0 and "push" in cache["policy"]:
            self.cache.saved.clear()  # on GitLab a key has one content, the last
            self.cache.folder /= "x"
            self.cache.save("main", cache["key"], self.project.folder / path)
        artifacts = job["artifacts"]
        assert self.project.has(*artifacts["reports"].values(), "reports/report.html", "reports/report.md")
        assert artifacts["paths"] == ["reports"]
        return done.returncode, done.stdout + done.stderr

    @staticmethod
    def _extended(name: str) -> dict[str, Any]:
        """Return a job with that which it extends: mappings are merged, all else is replaced."""
        job = MAIN_ON_GITLAB[name]
        if name.startswith(".") or "extends" not in job:
            return {"rules": []}
        base = MAIN_ON_GITLAB[job["extends"]]
        return base | job | {"cache": base["cache"] | job.get("cache", {})}

    @staticmethod
    def _is_run(job: dict[str, Any], variables: dict[str, str]) -> bool:
        def value(word: str) -> str | None:
            return variables.get(word[1:]) if word.startswith("$") else word.strip('"')

        sides = [rule["if"].split(" == ") for rule in job["rules"]]
        return any(value(left) == value(right) for left, right in sides)


@pytest.fixture(params=["on_github", "on_gitlab"])
def evaluated(request: pytest.FixtureRequest, project: Project) -> Any:
    """Run the recipe for a branch: its exit code, and what it prints."""
    return getattr(Team(project), request.param)


def test_a_pull_request_that_is_worse_than_main_is_red_and_another_is_green(evaluated: Any) -> None:
    code, said = evaluated("main")
    assert code == 0, said
    assert "made folder 'baseline'; wrote baseline 'baseline/main.json' and 'baseline/main.npz'" in said
    code, said = evaluated("feature", broken=True)
    assert code == 1, said
    assert "FAILED" in said  # AP falls from .66 to .35
    code, said = evaluated("feature")
    assert code == 0, said
    assert "skipped" not in said


def test_without_a_baseline_a_pull_request_is_green_and_says_that_rules_were_skipped(evaluated: Any) -> None:
    code, said = evaluated("feature", broken=True)
    assert code == 0, said
    assert "2 skipped" in said


def test_what_is_merged_is_the_new_baseline_and_a_pull_request_never_is(evaluated: Any) -> None:
    evaluated("main")
    evaluated("feature", broken=True)
    evaluated("feature")
    assert evaluated("feature", broken=True)[0] == 1
    assert evaluated("main", broken=True)[0] == 0
    assert evaluated("feature", broken=True)[0] == 0


def test_the_rules_of_the_recipe_can_be_options(project: Project) -> None:
    (options,) = re.findall(r"Without a file, write `(.*?)`", PAGE)
    command = f"jaccard-eval evaluate sample_data/coco/gt.json sample_data/coco/better.json {options}"
    assert project.run(SHELL, command).returncode == 0
    assert project.run(SHELL, f"{command} --update-baseline").returncode == 0
    assert project.run(SHELL, command).returncode == 0
    project.break_the_model()
    done = project.run(SHELL, command)
    assert (done.returncode, "FAILED" in done.stdout) == (1, True), done.stderr


def test_actions_have_inputs_that_the_page_names() -> None:
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    assert set(ACTION["inputs"]) <= listed
