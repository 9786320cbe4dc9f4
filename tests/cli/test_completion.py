"""Completion: what each shell gets for a word, and what bash itself makes of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment, run_process
from test_process import loaded_modules

from jaccard_eval.cli.commands.completion import SHELLS
from jaccard_eval.codes import CODES
from jaccard_eval.data.known_protocols import RULES

SCRIPTS = Path(sys.executable).parent
bash_only = pytest.mark.skipif(
    shutil.which("bash") is None or not (SCRIPTS / "jaccard-eval").exists(),
    reason="needs bash and the installed script",
)


def asked(words: str, shell: str = "bash") -> dict[str, str]:
    """The variables by which a shell asks for the last of some words."""
    before, _, last = words.rpartition(" ")
    at = last if shell == "fish" else str(before.count(" ") + 1)
    return {"_JACCARD_EVAL_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": at}


def complete(words: str, shell: str = "bash") -> list[str]:
    done = run_process(env=asked(words, shell))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def words_for(words: str) -> set[str]:
    return {line.removeprefix("plain,") for line in complete(words) if line.startswith("plain,")}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("jaccard-eval ver", {"verify"}),
        ("jaccard-eval --proto", {"--protocol"}),
        ("jaccard-eval evaluate --protocol v", {"visdrone", "voc2007", "voc2012"}),
        ("jaccard-eval evaluate --protocol = v", {"visdrone", "voc2007", "voc2012"}),  # bash splits at the equals sign
        ("jaccard-eval explain a b --against ", set(RULES)),
        ("jaccard-eval a b --pred-format kit", {"kitti"}),
        ("jaccard-eval convert a b --to pasc", set()),
        ("jaccard-eval a b --allow box-en", {"box-encoding"}),
        ("jaccard-eval a b --allow ", CODES),
        ("jaccard-eval a b --sort AP_", {"AP_small", "AP_medium", "AP_large"}),
        ("jaccard-eval a b --sort na", {"name"}),
        ("jaccard-eval a b --fail-under AR1", {"AR1=", "AR10=", "AR100="}),
        ("jaccard-eval a b --pred-box xy", {"xywh", "xyxy"}),
        ("jaccard-eval help exit", {"exit-codes"}),
        ("jaccard-eval completion ", set(SHELLS)),
        ("jaccard-eval a b --iou 0.5:0.9:0.1 --score be", {"best-f1"}),
    ],
)
def test_the_words_that_fit_are_completed(words: str, expected: set[str]) -> None:
    assert words_for(words) == expected


@pytest.mark.parametrize(
    "words",
    ["jaccard-eval gt.j", "jaccard-eval gt.json p", "jaccard-eval a b -o r", "jaccard-eval a b --names cl"],
)
def test_files_are_completed_where_they_can_stand(words: str) -> None:
    last = words.rsplit(maxsplit=1)[-1]
    assert complete(words) == [f"file,{last}"]
    assert complete(words, "zsh") == ["file", last, "_"]
    assert complete(words, "fish") == [f"file,{last}"]


def test_the_place_of_a_command_takes_commands_and_files() -> None:
    assert complete("jaccard-eval ev") == ["plain,evaluate", "file,ev"]
    assert complete("jaccard-eval ev", "zsh") == [
        *("plain", "evaluate", "Evaluate predictions against ground truth."),
        *("file", "ev", "_"),
    ]
    assert complete("jaccard-eval ev", "fish") == [
        "plain,evaluate\tEvaluate predictions against ground truth.",
        "file,ev",
    ]


def test_a_flag_that_would_show_something_does_not_while_a_word_is_completed() -> None:
    assert complete("jaccard-eval evaluate --help-all --proto") == ["plain,--protocol"]
    assert "plain,--version" not in complete("jaccard-eval --version -")


@pytest.mark.parametrize(
    "words",
    [
        "jaccard-eval ",
        "jaccard-eval a b --allow ",
        "jaccard-eval a b --sort ",
        "jaccard-eval a b --pred-format ",
        "jaccard-eval a b --iou 0.5:0.9:0.1 --fail-under AP=0.5 --pred-resized scale:0.5 --protocol ",
        "jaccard-eval explain a ",
    ],
)
def test_completion_loads_no_numpy(words: str) -> None:
    assert loaded_modules(env=asked(words)) == set()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    done = run_process("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_JACCARD_EVAL_COMPLETE={shell}_complete" in done.stdout
    assert "%(" not in done.stdout


def test_the_script_of_another_shell_is_refused() -> None:
    done = run_process("completion", "tcsh")
    assert done.returncode == 2
    assert "'tcsh' is not one of bash, zsh, fish." in done.stderr


@bash_only
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["jaccard-eval", "ver"], ["verify"]),
        (["jaccard-eval", "eva"], ["evaluate", "eval set.json"]),
        (["jaccard-eval", "gt"], ["<default>"]),
        (["jaccard-eval", "gt.json", "eva"], ["<default>"]),
        (["jaccard-eval", "--protocol", "=", "voc"], ["voc2007", "voc2012"]),
        (["jaccard-eval", "gt.json", "pred.json", "--fail-drop", "AP7"], ["<nospace>", "AP75="]),
    ],
)
def test_bash_makes_of_the_script_what_is_meant(words: list[str], expected: list[str], tmp_path: Path) -> None:
    for name in ("eval set.json", "gt.json"):
        (tmp_path / name).touch()
    program = """
        eval "$(jaccard-eval completion bash)"
        compopt() { [[ $2 == filenames ]] || echo "<$2>"; }
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _jaccard_eval_completion jaccard-eval
        [[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", *words],
        cwd=tmp_path,
        env=environment({"PATH": path}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(done.stdout.splitlines()) == sorted(expected)
    assert done.stderr == ""
