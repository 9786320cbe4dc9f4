"""What a stranger gets of a clean clone: the action and the hooks with a real pip, and the wheel by pipx and uvx.

The clone has what is committed. Where no package registry answers, these tests are skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_ci_examples import PRE_COMMIT, WITH_ACTION, GitHub, Project, github_steps
from test_wheel import NEEDED, NO_REGISTRY

ROOT = Path(__file__).parents[1]
AUTHOR = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")

pytestmark = [pytest.mark.slow, NEEDED, pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a checkout")]


def run(*words: str | Path, cwd: Path, **settings: str | Path) -> str:
    """Return what a program prints; skip the test where it finds no registry."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "GIT_DIR", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PIP_COMPILE": "0"} | {name: str(value) for name, value in settings.items()}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    if done.returncode and any(text in printed for text in (*NO_REGISTRY, "Failed to fetch", "error sending request")):
        pytest.skip("there is no package registry")
    assert done.returncode == 0, printed
    return printed


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clean") / "jaccard-eval"
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of pip, pipx, uvx and pre-commit in an environment of their own."""
    folder = tmp_path_factory.mktemp("tools") / "tools"
    run(sys.executable, "-m", "venv", folder, cwd=ROOT)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", "pipx", "uv", "pre-commit", cwd=ROOT)
    return folder / "bin"


def test_the_action_installs_the_clone_and_evaluates(clone: Path, tmp_path: Path) -> None:
    project = Project(tmp_path)
    for stand_in in project.programs.iterdir():
        stand_in.unlink()
    names = ("PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "SSL_CERT_FILE")
    project.environment |= {"PIP_COMPILE": "0"} | {name: os.environ[name] for name in names if name in os.environ}
    runner = GitHub(project)
    runner.values["github.action_path"] = str(clone)
    # The job's Python; the program is the one that is installed from the clone.
    base = Path(sys.base_prefix) / "bin"
    runner.path = os.pathsep.join([str(base), os.defpath])
    runner.run(github_steps(WITH_ACTION))
    if any(text in runner.log for text in NO_REGISTRY):
        pytest.skip("there is no package registry")
    assert runner.exit_code == 0, runner.log
    assert (tmp_path / "jaccard-eval/program/jaccard-eval").is_file()
    assert (project.folder / "jaccard-eval-reports/result.json").is_file()
    assert runner.summary.startswith("## ✅ jaccard-eval, evaluation: 2 passed")


def test_pre_commit_installs_the_hooks_and_runs_them(clone: Path, programs: Path, tmp_path: Path) -> None:
    project = Project(tmp_path).folder
    hooks = PRE_COMMIT["repos"][0] | {"repo": str(clone), "rev": run("git", "rev-parse", "HEAD", cwd=clone).strip()}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [hooks]}))
    program = Path(sys.executable).parent / "jaccard-eval"
    sides = ("sample_data/coco/gt.json", "sample_data/coco/better.json")
    run(program, *sides, "-q", "-o", "result.json", cwd=project)
    run("git", "init", "--quiet", cwd=project)
    run("git", "add", ".", cwd=project)
    settings = {"PRE_COMMIT_HOME": tmp_path / "hooks", "HOME": tmp_path}
    printed = run(programs / "pre-commit", "run", "--all-files", "--color=never", cwd=project, **settings)
    assert printed.count("...Passed\n") == 2
    # Now as that of a worse model, which the gate is there for.
    run(program, sides[0], "sample_data/coco/worse.json", "-q", "-o", "result.json", cwd=project)
    run("git", "add", ".", cwd=project)
    words = [programs / "pre-commit", "run", "--all-files", "--color=never"]
    environment = os.environ | {name: str(value) for name, value in settings.items()}
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAILED  AP 0.3463 < 0.60" in done.stdout


def test_pipx_and_uvx_run_the_wheel_of_the_clone(clone: Path, programs: Path, tmp_path: Path) -> None:
    run(programs / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, clone, cwd=tmp_path)
    (wheel,) = tmp_path.glob("jaccard_eval-*.whl")
    words = ("jaccard-eval", clone / "sample_data/coco/gt.json", clone / "sample_data/coco/better.json", "-q")
    settings = {"HOME": tmp_path, "PIPX_HOME": tmp_path / "pipx", "UV_CACHE_DIR": tmp_path / "uv"}
    for tool in (("pipx", "run", "--spec", wheel), ("uvx", "--from", wheel)):
        printed = run(programs / tool[0], *tool[1:], *words, cwd=tmp_path, **settings)
        assert "AP 0.6616  AP50 0.8826  AP75 0.8168" in printed
