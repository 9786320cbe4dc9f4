"""Options of any command may stand in a configuration; the command line wins, and whoever runs it is told."""

import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml
from command_line import run_here, write_pair

from jaccard_eval.cli import COMMAND_TABLE
from jaccard_eval.cli.config import config_schema

NOTE = "note[option-configured]: "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pair(tmp_path)
    return tmp_path


def configure(folder: Path, text: str, name: str = "jaccard-eval.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def document(done: Any) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_configured_run_is_that_of_the_command_line(folder: Path) -> None:
    plain = document(run_here("gt.json", "pred.json", "--iou", "0.5,0.75", "--classes", "dog", "--json", cwd=folder))
    configure(folder, '[evaluate]\niou = [0.5, 0.75]\nclasses = "dog"\ngt = "gt.json"\npred = "pred.json"\n')
    # What decides what is evaluated is printed with --quiet, too.
    assert f"{NOTE}jaccard-eval.toml: --iou 0.5,0.75" in run_here("evaluate", "--json", "-q", cwd=folder).stderr
    done = run_here("evaluate", "--json", cwd=folder)
    found = document(done)
    line = "jaccard-eval.toml: --iou 0.5,0.75, --classes dog, --gt gt.json, --pred pred.json"
    assert [line.removeprefix(NOTE) for line in done.stderr.splitlines() if NOTE in line] == [line]
    assert found["signature"] == plain["signature"]
    assert found["metrics"] == plain["metrics"]
    # The document says where its options are from.
    notes = [one["message"] for one in found["warnings"] if one["code"] == "option-configured"]
    assert notes == [line]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "x"\n[tool.jaccard-eval.evaluate]\nscore-min = 0.85\n'),
        ("pyproject.toml", "[tool.jaccard-eval]\nevaluate.score-min = 0.85\n"),
        ("pyproject.toml", "[tool.jaccard-eval]\nevaluate = { score_min = '0.85' }\n"),
        ("jaccard-eval.toml", "[evaluate]\nscore-min = 0.85\n"),
        ("jaccard-eval.yaml", "evaluate:\n  score-min: 0.85\n"),
    ],
)
def test_any_file_and_spelling_sets_the_option(folder: Path, name: str, text: str) -> None:
    configure(folder, text, name)
    done = run_here("gt.json", "pred.json", "--json", cwd=folder)
    assert document(done)["options"] == {"score_min": 0.85}
    assert "--score-min 0.85" in done.stderr
    assert done.stderr.splitlines()[0] == f"{NOTE}{name}: --score-min 0.85"


def test_the_command_line_wins_and_isolated_ignores_the_file(folder: Path) -> None:
    configure(folder, "[evaluate]\nscore-min = 0.85\nper-class = true\n")
    done = run_here("gt.json", "pred.json", "--score-min", "0.1", "--json", cwd=folder)
    assert document(done)["options"] == {"score_min": 0.1}
    assert done.stderr.splitlines()[0] == f"{NOTE}jaccard-eval.toml: --per-class"
    assert "--score-min" not in done.stderr
    done = run_here("gt.json", "pred.json", "--isolated", "--json", cwd=folder)
    assert document(done)["options"] == {}
    assert "option-configured" not in done.stderr + done.stdout


def test_inputs_as_words_win_over_configured_ones(folder: Path) -> None:
    configure(folder, '[evaluate]\ngt = "missing.json"\npred = "missing.json"\n')
    assert document(run_here("gt.json", "pred.json", "--json", cwd=folder))["inputs"]["gt"]["path"] == "gt.json"


def test_paths_lead_from_the_file(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "names.txt").write_text("dog\ncat\n")
    configure(
        folder,
        '[evaluate]\ngt = "gt.json"\npred = "pred.json"\noutput = ["r.json", "r.md"]\nnames = "names.txt"\n',
    )
    done = run_here("evaluate", cwd=folder / "deep")
    assert done.returncode == 0, done.stderr
    assert (folder / "r.json").exists()
    assert (folder / "r.md").exists()
    assert "--names ../names.txt" in done.stderr


def test_a_configured_output_does_not_overwrite_what_is_read(folder: Path) -> None:
    before = (folder / "gt.json").read_bytes()
    configure(folder, '[evaluate]\noutput = "gt.json"\n')
    done = run_here("gt.json", "pred.json", cwd=folder)
    assert done.returncode == 2
    assert "would overwrite the input" in done.stderr
    assert (folder / "gt.json").read_bytes() == before
    config = configure(folder, '[evaluate]\noutput = "jaccard-eval.toml"\n')
    assert run_here("gt.json", "pred.json", cwd=folder).returncode == 2
    assert config.read_text().startswith("[evaluate]")


def test_every_problem_is_named_with_its_line(folder: Path) -> None:
    configure(
        folder,
        "[evaluate]\nper-clas = true\niou = true\nper-class = 1\nscore-min = { a = 1 }\nconfig = 'x'\n",
    )
    done = run_here("gt.json", "pred.json", cwd=folder)
    assert done.returncode == 2
    for part in (
        "jaccard-eval.toml:2: evaluate.per-clas: unknown option. Did you mean 'per-class'?",
        "jaccard-eval.toml:3: evaluate.iou: expected text, a number, or a list of these, got true",
        "jaccard-eval.toml:4: evaluate.per-class: expected true or false, got 1",
        "jaccard-eval.toml:5: evaluate.score-min: expected text",
        "jaccard-eval.toml:6: evaluate.config: unknown option",
    ):
        assert part in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[evalute]\niou = 0.5\n", "jaccard-eval.toml:1: unknown key 'evalute'. Did you mean 'evaluate'?"),
        ("evaluate = 3\n", "evaluate: expected a table of options, got 3"),
        ('[evaluate]\niou = "much"\n', "'much' is not a number"),
        ("[evaluate]\nscore-min = 0.1\nscore_min = 0.2\n", "score_min: the option is set twice; keep one"),
    ],
)
def test_what_means_nothing_is_refused(folder: Path, text: str, message: str) -> None:
    configure(folder, text)
    done = run_here("gt.json", "pred.json", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_table_of_another_command_does_not_count(folder: Path) -> None:
    configure(folder, "[compare]\nbootstrap = 20\n[evaluate]\nscore-min = 0.85\n")
    done = run_here("inspect", "gt.json", "--json", cwd=folder)
    assert done.returncode == 0
    assert "option-configured" not in done.stderr
    done = run_here("compare", "gt.json", "pred.json", "pred.json", "--json", cwd=folder)
    assert f"{NOTE}jaccard-eval.toml: --bootstrap 20" in done.stderr


def test_options_and_gates_stand_in_one_file(folder: Path) -> None:
    config = configure(folder, '[evaluate]\nscore-min = 0.85\n[[gates.rules]]\nmetric = "AP"\nmin = 0.99\n', "ci.toml")
    done = run_here("gt.json", "pred.json", "--config", config, "--json", cwd=folder)
    assert done.returncode == 1
    assert json.loads(done.stdout)["options"] == {"score_min": 0.85}
    other = configure(folder, "[compare]\n", "c.toml")
    assert run_here("gt.json", "pred.json", "--config", other, cwd=folder).returncode == 0


def test_help_reads_no_configuration(folder: Path) -> None:
    configure(folder, "[evaluate]\nnonsense = 1\n")
    for flag in ("--help", "--help-all"):
        assert run_here("evaluate", flag, cwd=folder).returncode == 0


def test_the_schema_knows_every_option_of_every_command(folder: Path) -> None:
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    context = click.Context(COMMAND_TABLE)
    for name in set(schema["properties"]) - {"gates"}:
        command = COMMAND_TABLE.get_command(context, name)
        assert command is not None
        long = {
            spelling[2:]
            for param in command.params
            if isinstance(param, click.Option) and param.expose_value and not param.hidden
            for spelling in param.opts
            if spelling.startswith("--")
        }
        assert set(schema["properties"][name]["properties"]) == long - {"config", "isolated"}
    good = yaml.safe_load("evaluate: {iou: [0.5, 0.75], per-class: true, output: r.json}\ncompare: {bootstrap: 20}")
    jsonschema.validate(good, schema)
    for bad in ({"evaluate": {"per-clas": True}}, {"evalute": {}}, {"evaluate": {"per-class": 1}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)


@pytest.mark.parametrize("command", sorted(set(config_schema()["properties"]) - {"gates"}))
def test_every_command_takes_its_options_from_the_file(command: str, folder: Path) -> None:
    configure(folder, f"[{command}]\nno-such-thing = 1\n")
    done = run_here(command, "gt.json", "pred.json", "pred.json", cwd=folder)
    assert done.returncode == 2
    assert f"jaccard-eval.toml:2: {command}.no-such-thing: unknown option" in done.stderr
