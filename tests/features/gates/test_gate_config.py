"""Configurations as they are written: what they mean, and that nothing misspelt passes."""

import json
import tomllib
from typing import Any

import jsonschema
import pytest

from jaccard_eval import Gates, UsageError
from jaccard_eval.features.gates import (
    BOOTSTRAP_KEYS,
    GATES_KEYS,
    RULE_KEYS,
    ConfigText,
    Rule,
    build_schema,
    parse_config,
)
from jaccard_eval.options import Bootstrap

EVERYTHING = """
[gates]
baseline = "metrics/main.json"
missing-baseline = "warn"
missing-metric = "pass"
epsilon = 1e-8
slices.night = ["night/*", "dusk.png"]
slices.hard = "hard.txt"
bootstrap = { resamples = 500, confidence = 0.9, seed = 3, group-by = "folder" }

[[gates.rules]]
id = "floor"
metric = "AP"
min = 0.45
warn-min = 0.48
max-drop = 0.1
significance = "non-inferior"

[[gates.rules]]
metric = "recall"
classes = ["person", "cyc*"]
at = { iou = 0.5, score = "best-f1" }
min = 1
min-support = 30
severity = "warning"
slice = "night"

[[gates.rules]]
metric = "AP50"
classes = "*"
aggregate = "count-below"
below = 0.3
max = 2
area = "small"
max_dets = 10
missing-metric = "error"
"""


def parse(text: str, **settings: Any) -> Gates:
    place = ConfigText(path="gates.toml", read_names=lambda path: (f"names of {path}",), **settings)
    gates = parse_config(tomllib.loads(text), place)
    assert gates is not None
    return gates


def refused(text: str, **settings: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse(text, **settings)
    return str(caught.value).splitlines()


def rule(text: str) -> str:
    return f'[[gates.rules]]\nmetric = "AP50"\n{text}\n'


def test_every_key_is_understood() -> None:
    gates = parse(EVERYTHING)
    assert (gates.baseline, gates.missing_baseline, gates.missing_metric, gates.epsilon) == (
        "metrics/main.json", "warn", "pass", 1e-8,
    )  # fmt: skip
    assert [(one.name, one.patterns, one.exact) for one in gates.slices] == [
        ("night", ("night/*", "dusk.png"), False),
        ("hard", ("names of hard.txt",), True),
    ]
    assert gates.bootstrap == Bootstrap(n_resamples=500, confidence_level=0.9, rng=3, group_by="folder")
    floor, recall, counted = gates.rules
    assert (floor.id, floor.min, floor.warn_min, floor.significance) == ("floor", 0.45, 0.48, "non-inferior")
    assert (recall.reference, recall.classes, recall.min_support) == (
        "recall[iou=0.5,score=best-f1]", ("person", "cyc*"), 30,
    )  # fmt: skip
    assert (recall.severity, recall.slice, recall.min) == ("warning", "night", 1.0)
    assert (counted.reference, counted.classes, counted.below) == ("AP50[area=small,max_dets=10]", ("*",), 0.3)
    assert counted.missing_metric == "error"


def test_numbers_in_yaml_are_texts_and_mean_the_same() -> None:
    content = {"gates": {"epsilon": "1e-8", "rules": [{"metric": "AP50", "min": "0.5", "min-support": "3"}]}}
    gates = parse_config(content, ConfigText(path="gates.yaml", typed=False))
    assert gates is not None
    assert (gates.epsilon, gates.rules[0].min, gates.rules[0].min_support) == (1e-8, 0.5, 3)


def test_a_configuration_without_gates_has_none() -> None:
    assert parse_config({}, ConfigText(path="gates.toml")) is None


def test_gates_need_a_rule_unless_one_is_added() -> None:
    assert refused("[gates]\nbaseline = 'a.json'") == [
        "gates.toml: gates: no rules: a gate without rules passes everything"
    ]
    further = (Rule(metric="AP", min=0.1),)
    gates = parse_config({"gates": {"baseline": "a.json"}}, ConfigText(path="gates.toml"), further=further)
    assert gates is not None
    assert gates.rules == further


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rule("min = 0.5\nmax-dropp = 0.01"), "gates.rules[0]: unknown key 'max-dropp'. Did you mean 'max-drop'"),
        (rule("min = 0.5\nclass = 'dog'"), "Did you mean 'classes'?"),
        (rule("min = 0.5\nat = { iou = 0.5, conf = 0.4 }"), "unknown key 'conf'. Choose from iou, score."),
        ("[gate]\nrules = []", "gates.toml: unknown key 'gate'. Did you mean 'gates'?"),
        ("[gates]\nepsilonn = 3\n" + rule("min = 0.5"), "toml: gates: unknown key 'epsilonn'. Did you mean 'epsilon'?"),
        (rule("min = 45"), "gates.toml: gates.rules[0]: min = 45, but 'AP50' is between 0 and 1. Did you mean 0.45?"),
        (rule("min = true"), "gates.toml: gates.rules[0].min: expected a number, got true"),
        (rule("min = '0.5'"), "gates.toml: gates.rules[0].min: expected a number, got '0.5'"),
        (rule("min = 0.5\nmin-support = 1.5"), "gates.rules[0].min-support: expected a whole number, got 1.5"),
        (rule("min = 0.5\nclasses = []"), "gates.rules[0].classes: expected a string or a list of strings, got []"),
        (rule("min = 0.5\nmin_support = 3\nmin-support = 3"), "min-support is given twice"),
        (rule("min = 0.5\nat = 0.5"), "gates.rules[0].at: expected a table, got 0.5"),
        (rule("min = 0.5\nat = { iou = '50' }"), "gates.rules[0].iou: expected a number, got '50'"),
        ("[[gates.rules]]\nmin = 0.5", "gates.toml: gates.rules[0]: metric is missing"),
        ("[gates]\nrules = 'AP50'", "gates.toml: gates.rules: expected a list of tables, got 'AP50'"),
        ("[gates]\nrules = ['AP50']", "gates.toml: gates.rules[0]: expected a table, got 'AP50'"),
        ("gates = 1", "gates.toml: gates: expected a table, got 1"),
        (rule("min = 0.5\nslice = 'night'"), "gates.toml: gates: rule 'AP50 on night min': unknown slice 'night'."),
        (rule("max-drop = 0.1\nsignificance = 'yes'"), "must be one of significant-drop, non-inferior; got 'yes'."),
        (rule("min = 0.5\nsignificance = 'non-inferior'"), "significance works with drops only; set max-drop"),
        ("[gates]\nbootstrap = 1000\n" + rule("min = 0.5"), "gates.bootstrap: expected a table, got 1000"),
        ("[gates.bootstrap]\nn = 9\n" + rule("min = 0.5"), "gates.bootstrap: unknown key 'n'. Choose from resamples,"),
        ("[gates.bootstrap]\nresamples = 1\n" + rule("min = 0.5"), "gates.bootstrap: n_resamples must be a whole"),
        ("[gates.bootstrap]\nconfidence = 95\n" + rule("min = 0.5"), "must be above 0 and below 1, got 95"),
        ("[gates]\nslices.night = 3\n" + rule("min = 0.5"), "gates.slices.night: expected a list of names and globs"),
        ("[gates]\nslices.night = 'n/*'\n" + rule("min = 0.5"), "write globs as a list: ['n/*']"),
    ],
)  # fmt: skip
def test_what_is_misspelt_or_of_a_wrong_type_is_refused(text: str, message: str) -> None:
    (line,) = refused(text)
    assert message in line


def test_all_problems_of_a_file_are_said_at_once_with_their_lines() -> None:
    text = rule("min = 45") + rule("severity = 'eror'\nmin = 0.5") + rule("mim = 0.5")
    lines = refused(text, rule_lines=(1, 4, 8), table="tool.jaccard-eval.")
    assert [line.partition(": tool.jaccard-eval.gates.rules")[0] for line in lines] == [
        "gates.toml:1", "gates.toml:4", "gates.toml:8",
    ]  # fmt: skip


def test_the_schema_names_every_key() -> None:
    gates = build_schema()["properties"]["gates"]
    assert set(gates["properties"]) == set(GATES_KEYS)
    assert set(gates["properties"]["rules"]["items"]["properties"]) == set(RULE_KEYS)
    assert set(gates["properties"]["bootstrap"]["properties"]) == set(BOOTSTRAP_KEYS)


def test_the_schema_is_one_and_accepts_what_the_reader_accepts() -> None:
    schema = json.loads(json.dumps(build_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(EVERYTHING.replace("max_dets", "max-dets")), schema)


@pytest.mark.parametrize(
    "text",
    [
        rule(""),
        "[[gates.rules]]\nmin = 0.5",
        "[gates]\nrules = []",
        rule("min = '0.5'"),
        rule("min = 0.5\nmax-dropp = 0.01"),
        rule("min = 0.5\nseverity = 'eror'"),
        rule("min = 0.5\nat = { score = 'best' }"),
        rule("min = 0.5\nmin-support = -1"),
        rule("max-drop = 0.5\nsignificance = 'yes'"),
        "[gates]\nbootstrap = { n = 9 }\n" + rule("min = 0.5"),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text: str) -> None:
    assert refused(text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), build_schema())


def test_a_key_of_the_table_is_a_field_of_the_rule() -> None:
    fields = set(Rule.__dataclass_fields__)
    assert {name.replace("-", "_") for name in RULE_KEYS} - fields == {"at"}
    assert fields - {name.replace("-", "_") for name in RULE_KEYS} == {"iou", "score", "where"}
