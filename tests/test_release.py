"""What a release consists of besides the package: versions, workflows, hooks, image, recipe, policies agree."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import run_here

from jaccard_eval.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENT = re.compile(r"([\w-]+)(?:\[.*\])?(>=\S+)?")
# Of this project, wherever it may be published: nobody has decided on that.
ADDRESS = re.compile(r"(?:github\.com|ghcr\.io|pypi\.org|readthedocs\.io|github\.io)/[\w./-]*jaccard[-_]eval")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def document(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(text(name))
    return content


def test_all_files_are_of_one_version() -> None:
    recipe = document("conda/recipe.yaml")
    assert PROJECT["version"] == __version__
    assert document("CITATION.cff")["version"] == __version__
    assert recipe["context"]["version"] == __version__
    assert "dev" in __version__ or f"\n## [{__version__}] - 2" in text("CHANGELOG.md")


def test_no_file_has_an_address_before_pyproject_does() -> None:
    if "urls" in PROJECT:
        assert document("CITATION.cff")["repository-code"] == PROJECT["urls"]["Source"]
        return
    pages = [*ROOT.glob("*.*"), *ROOT.glob(".github/**/*.*"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("conda/*")]
    assert [path for path in pages if path.is_file() and ADDRESS.search(path.read_text("utf-8", "replace"))] == []


def test_the_recipe_needs_what_the_package_needs() -> None:
    def pairs(requirements: list[str]) -> set[tuple[str, str]]:
        matches = (REQUIREMENT.fullmatch(one.replace(" ", "")) for one in requirements)
        return {(found[1].lower().replace("-base", ""), found[2] or "") for found in matches if found}

    needs = document("conda/recipe.yaml")["requirements"]
    extras = PROJECT["optional-dependencies"]
    assert pairs(needs["run"]) - {("python", PROJECT["requires-python"])} == pairs(PROJECT["dependencies"])
    optional = [one for name in ("cloud", "dask", "excel", "parquet", "report") for one in extras[name]]
    assert pairs(needs["run_constraints"]) == pairs(optional)
    system = tomllib.loads(text("pyproject.toml"))["build-system"]["requires"]
    assert pairs([one for one in needs["host"] if one not in ("python", "pip")]) == pairs(system)


def test_the_workflow_checks_what_the_classifiers_promise() -> None:
    jobs = document(".github/workflows/checks.yml")["jobs"]
    tests = jobs["tests"]
    promised = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert tests["strategy"]["matrix"]["python"] == promised
    assert {name.partition("-")[0] for name in tests["strategy"]["matrix"]["os"]} == {"ubuntu", "macos", "windows"}
    needed = re.search(r"^NEEDED := ((?:.*\\\n)*.*)$", text("Makefile"), re.MULTILINE)
    assert needed is not None
    assert tests["env"]["NEEDED"].split() == shlex.split(needed[1].replace("\\\n", ""))
    targets = {one["make"] for one in jobs["libraries"]["strategy"]["matrix"]["include"]}
    assert targets == {"oldest", "newest", "plain"}
    assert all(re.search(rf"^{target}:", text("Makefile"), re.MULTILINE) for target in targets)


@pytest.mark.parametrize("name", ["checks", "wheels"])
def test_workflows_name_what_nobody_has_run(name: str) -> None:
    assert "macOS and Windows are not verified" in text(f".github/workflows/{name}.yml")
    assert "macOS and Windows are not verified" in " ".join(text("docs/releasing.md").split())


def test_wheels_are_built_for_three_systems() -> None:
    systems = document(".github/workflows/wheels.yml")["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}


def test_only_the_jobs_that_publish_may_write() -> None:
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path
        more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
        expected = {"publish": {"id-token": "write"}, "image": {"contents": "read", "packages": "write"}}
        assert more == (expected if path.name == "release.yml" else {})
        # Text of an expression that is put into a script would be run: it arrives as a variable.
        scripts = [step.get("run", "") for job in workflow["jobs"].values() for step in job.get("steps", ())]
        assert not [script for script in scripts if "${{" in script]


def test_the_action_in_the_workflow_gets_inputs_that_it_has() -> None:
    action = document("action.yml")
    steps = [step for step in document(".github/workflows/checks.yml")["jobs"]["action"]["steps"] if "with" in step]
    for step in (step for step in steps if step["uses"] == "./"):
        assert set(step["with"]) <= set(action["inputs"])
        for name in ("ground-truth", "predictions"):
            assert (ROOT / step["with"][name]).exists()
        expected = {"passes": 0, "fails": 1}[step["id"]]
        done = run_here(
            step["with"]["ground-truth"], step["with"]["predictions"], *step["with"]["options"].split(), "-q", cwd=ROOT
        )
        assert done.returncode == expected


def test_the_image_is_built_of_files_that_are_sent_and_runs_without_rights() -> None:
    lines = re.sub(r"\\\n\s*", "", text("Dockerfile")).splitlines()
    sent = {line.removeprefix("!") for line in text(".dockerignore").splitlines() if line.startswith("!")}
    copied = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    (user,) = (line.split()[1] for line in last if line.startswith("USER "))
    assert user.isdigit() and user != "0"
    assert 'ENTRYPOINT ["jaccard-eval"]' in last
    extras = re.findall(r"pip install .*\[([\w,]+)\]", "\n".join(lines))
    assert set(extras[0].split(",")) <= set(PROJECT["optional-dependencies"])


def test_hooks_do_what_the_example_of_the_page_asks_for(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(# \.pre-commit-config.*?)^```$", text("docs/ci.md"), re.MULTILINE | re.DOTALL)
    assert block is not None
    hooks = {hook["id"]: hook for hook in yaml.safe_load(text(".pre-commit-hooks.yaml"))}
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    run_here("sample_data/coco/gt.json", "sample_data/coco/better.json", "-o", "result.json", "-q", cwd=tmp_path)
    wanted = yaml.safe_load(block[1])["repos"][0]["hooks"]
    assert {hook["id"] for hook in wanted} == set(hooks)
    for hook in wanted:
        program, *entry = hooks[hook["id"]]["entry"].split()
        assert program in PROJECT["scripts"]
        assert not hooks[hook["id"]]["pass_filenames"]
        assert run_here(*entry, *hook["args"], cwd=tmp_path).returncode == 0
    assert run_here("gate", "--quiet", "result.json", "--fail-under", "AP=0.9", cwd=tmp_path).returncode == 1
    # Corners in place of sizes.
    swapped = [ROOT / "sample_data/coco/gt.json", ROOT / "sample_data/coco/better.json", "--pred-box", "xyxy"]
    done = run_here("inspect", "--strict", "--quiet", *swapped)
    assert done.returncode == 3
    assert "error" in done.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_ask_for_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_tests_that_hold_what_security_promises_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", text("SECURITY.md"))
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).is_file()] == []
