"""Which file configures the gates of a run, and what is refused."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_here, write_pair

from jaccard_eval import Gates, UsageError
from jaccard_eval.cli.config import find_config, read_config
from jaccard_eval.cli.gating import load_gates

OWN = '[[gates.rules]]\nmetric = "AP"\nmin = 0.5\n'
SHARED = '[project]\nname = "dogs"\n\n[[tool.jaccard-eval.gates.rules]]\nmetric = "AP"\nmin = 0.5\n'
YAML = "gates:\n  rules:\n    - metric: AP\n      min: 0.5\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def found_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    found = find_config()
    return None if found is None else found.resolve()


def load(path: Path) -> Gates:
    gates = load_gates(read_config(path))
    assert gates is not None
    return gates


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_gates(read_config(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("jaccard-eval.toml", OWN), ("jaccard-eval.yaml", YAML), ("jaccard-eval.yml", YAML), ("pyproject.toml", SHARED)],
)
def test_the_nearest_file_upward_is_found_and_read(
    tmp_path: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / name, text)
    assert found_from(tmp_path / "deep" / "er", monkeypatch) == path
    assert load(path).rules[0].min == 0.5


def test_a_nearer_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "jaccard-eval.toml", OWN)
    nearer = write(tmp_path / "near" / "pyproject.toml", SHARED)
    assert found_from(tmp_path / "near", monkeypatch) == nearer


def test_a_pyproject_that_does_not_speak_to_this_tool_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = write(tmp_path / "pyproject.toml", SHARED)
    write(tmp_path / "in" / "pyproject.toml", '[project]\nname = "x"\ndependencies = ["jaccard-eval"]\n')
    assert found_from(tmp_path / "in", monkeypatch) == outer


def test_the_search_ends_at_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "jaccard-eval.toml", OWN)
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    assert found_from(tmp_path / "repository" / "src", monkeypatch) is None


def test_two_configurations_in_one_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "jaccard-eval.toml", OWN)
    write(tmp_path / "pyproject.toml", SHARED)
    with pytest.raises(UsageError, match=r"jaccard-eval\.toml, pyproject\.toml. Keep one"):
        found_from(tmp_path, monkeypatch)


def test_the_rules_of_a_file_know_their_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pyproject.toml", SHARED + '\n[[tool."jaccard-eval".gates.rules]]\nmetric = "AR"\nmax = 45\n'
    )
    assert f"{path}:8: tool.jaccard-eval.gates.rules[1]: max = 45, but 'AR' is between 0 and 1" in refused(path)
    where = load(write(tmp_path / "jaccard-eval.toml", f"# why\n{OWN}")).rules[0].where
    assert where is not None
    assert where.line == 2


def test_a_file_of_images_is_found_beside_the_configuration(tmp_path: Path) -> None:
    write(tmp_path / "lists" / "night.txt", "# taken at night\n\nb.png\n a.png \n")
    path = write(tmp_path / "jaccard-eval.toml", '[gates]\nslices.night = "lists/night.txt"\n' + OWN)
    (images,) = load(path).slices
    assert (images.patterns, images.exact) == (("b.png", "a.png"), True)


def test_any_toml_may_use_the_table_of_pyproject(tmp_path: Path) -> None:
    assert load(write(tmp_path / "gates.toml", SHARED)).rules[0].metric == "AP"


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("gates.toml", "[gates\n", "not valid TOML: "),
        ("gates.toml", OWN + "min = 0.6\n", "not valid TOML: "),
        ("gates.yaml", "gates: [\n", "not valid YAML: "),
        ("gates.yaml", "- a\n", "expected a mapping"),
        ("gates.yaml", "gates:\n  rules:\n    - metric: AP\n      min: half\n", "[0].min: expected a number"),
        ("gates.yaml", "gates:\n  rules:\n    - metric: AP\n      min: .nan\n", "expected a number, got '.nan'"),
        ("gates.toml", '[gates]\nslices.night = "night.txt"\n' + OWN, "gates.slices.night: "),
        ("pyproject.toml", 'tool.jaccard-eval = "strict"\n', "expected a table, got 'strict'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_place(tmp_path: Path, name: str, text: str, part: str) -> None:
    path = write(tmp_path / name, text)
    assert part in refused(path)
    assert str(path) in refused(path)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "gates.toml")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.skipif(os.name == "nt", reason="POSIX links, pipes and devices")
@pytest.mark.parametrize(
    ("put", "what"),
    [
        (lambda path: path.symlink_to("gone.toml"), "is a dangling symbolic link"),
        (link_to_itself, "is a symbolic link loop"),
        (lambda path: os.mkfifo(path, 0o600), "is not a regular file"),
        (lambda path: path.symlink_to("/dev/null"), "is not a regular file"),
        (lambda path: path.mkdir(), "is a directory, not a file"),
    ],
    ids=["dangling link", "loop", "pipe", "device", "folder"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["jaccard-eval.toml", "jaccard-eval.yaml", "jaccard-eval.yml", "pyproject.toml"])
def test_a_configuration_that_cannot_be_read_is_never_skipped(
    tmp_path: Path, name: str, put: Callable[[Path], None], what: str
) -> None:
    put(tmp_path / name)
    (tmp_path / "deep").mkdir()
    done = run_here(*write_pair(tmp_path), cwd=tmp_path / "deep")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{name}: {what}" in done.stderr
    assert "--isolated" in done.stderr
    assert run_here(*write_pair(tmp_path), "--isolated", cwd=tmp_path / "deep").returncode == 0


def test_an_empty_pyproject_configures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = write(tmp_path / "pyproject.toml", SHARED)
    write(tmp_path / "in" / "pyproject.toml", "")
    assert found_from(tmp_path / "in", monkeypatch) == outer


@pytest.mark.parametrize("name", ["pyproject.toml", "jaccard-eval.toml"])
@pytest.mark.parametrize("table", ["tool.jaccard_eval", "tool.JaccardEval", "tool.'Jaccard Eval'", "jaccard-eval"])
def test_a_misspelt_table_is_refused_with_the_right_spelling(tmp_path: Path, name: str, table: str) -> None:
    path = write(tmp_path / name, SHARED.replace("tool.jaccard-eval", table))
    done = run_here(*write_pair(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    wrong = table.replace("'", "")
    assert f"{name}: table [{wrong}] is misspelt; rename it to [tool.jaccard-eval]" in done.stderr
    assert "rename it to [tool.jaccard-eval]" in refused(path)  # as with --config
