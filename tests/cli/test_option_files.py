"""Files that options name, in every wrong shape: exit code 2 or 3, and sentences that name the file and no Python."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import run_here, write_json, write_pair
from PIL import Image

from jaccard_eval import evaluate
from jaccard_eval.errors import MachineError

PYTHON = re.compile(
    r"Traceback|internal error|object has no|NoneType|<class|invalid literal|could not convert|not supported between"
    r"|\bNone\b|\bTrue\b|\bFalse\b|\bdict\b|\btuple\b|`|[.:;,?] ?[.:;,](?![./\w])"
)
JSON_SHAPES: tuple[object, ...] = (
    None,
    True,
    -1,
    0.5,
    "",
    [],
    [None],
    [[]],
    [{"a": 1}],
    {},
    {"odd": None},
    {"odd": [1]},
    {"a": {"b": {}}},
)
TEXTS = (
    "",
    "  \n",
    "{",
    "[",
    '{"a": 1, "a": 2}',
    "%",
    "a: b: c",
    "- a\n- b",
    "? [a]\n: b",
    "a: *x",
    "!!python/x y",
    "\0",
)
TOML_VALUES = ("true", "1", '"x"', "[true]", "[{a=true}]", "{a=true}", "2020-01-01", "[]", "nan")
RULE = '[[gates.rules]]\nmetric="AP"\nmin=0\n'
TOML_PLACES = (
    *("gates={}", "tool={}", "[tool]\njaccard-eval={}", "[gates]\nbaseline={}", "[gates]\nbootstrap={}"),
    *("[gates]\nepsilon={}", "[gates]\nslices={}", "[gates]\nrules={}", "[gates.slices]\na={}"),
    *(f"[gates.bootstrap]\n{key}={{}}" for key in ("resamples", "confidence", "seed", "group-by")),
    *(f"{RULE}{key}={{}}" for key in ("id", "classes", "aggregate", "below", "at", "area", "max-dets", "slice", "max")),
    *(f"{RULE}{key}={{}}" for key in ("min-support", "missing-metric", "severity", "significance")),
)
WHOLE_SHAPES = [*(json.dumps(shape) for shape in JSON_SHAPES), *TEXTS]
RIGHT = {  # shapes that mean something, odd as they are
    ("--metrics-file", "json"): ("{}", '{"odd": null}', '{"odd": [1]}', '{"a": {"b": {}}}'),
    ("--class-map", "json"): ("{}",),
    ("--class-map", "yaml"): ("{}", '{"odd": null}'),  # in YAML every value is a text
}
FILES = (
    *(("--slices", "toml"), ("--config", "toml"), ("--config", "yaml"), ("--metrics-file", "json")),
    *(("--class-map", "json"), ("--class-map", "yaml"), ("--names", "json"), ("--names", "yaml")),
)
CASES = [(*file, text) for file in FILES for text in WHOLE_SHAPES if text not in RIGHT.get(file, ())]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return write_pair(tmp_path)


def refused(argv: Sequence[str | Path], path: Path, *, may_pass: bool = False) -> None:
    done = run_here(*argv)
    said = done.stderr.replace(str(path.parent), "")
    assert done.returncode in ((0, 1, 2, 3) if may_pass else (2, 3)), said
    if done.returncode > 1:
        assert path.name in said.split("\n")[0], said
        assert not PYTHON.search(said), said


@pytest.mark.parametrize(("option", "suffix", "text"), CASES)
def test_a_file_of_a_wrong_shape_is_named(sides: tuple[Path, Path], option: str, suffix: str, text: str) -> None:
    path = sides[0].parent / f"odd.{suffix}"
    path.write_text(text)
    rules = ["--fail-under", "external.a=1"] if option == "--metrics-file" else []
    refused(["evaluate", *sides, option, path, *rules], path)


@pytest.mark.parametrize("place", TOML_PLACES)
def test_every_field_of_a_configuration_of_a_wrong_type_is_named(sides: tuple[Path, Path], place: str) -> None:
    path = sides[0].parent / "rules.toml"
    for value in TOML_VALUES:
        path.write_text(place.format(value))
        refused(["evaluate", *sides, "--config", path], path, may_pass='"' in value or value in ("1", "nan", "[]"))


@pytest.mark.parametrize("field", ["names", "nc", "path", "train", "val"])
def test_every_field_of_a_data_yaml_of_a_wrong_type_is_named(tmp_path: Path, field: str) -> None:
    for folder in ("labels/val", "images/val", "pred"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "labels/val/a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "pred/a.txt").write_text("0 0.9 0.5 0.5 0.2 0.2\n")
    path = tmp_path / "data.yaml"
    for shape in JSON_SHAPES:
        write_json(path, {"names": ["a"], "path": ".", "val": "images/val", field: shape})
        if (field, shape) != ("names", [None]):  # a class may be called null, as all of YAML is text
            refused(["evaluate", path, tmp_path / "pred", "--pred-names", "a"], path, may_pass=True)


@pytest.mark.parametrize("text", WHOLE_SHAPES)
def test_lists_of_label_maps_of_a_wrong_shape_are_named(tmp_path: Path, text: str) -> None:
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(np.zeros((2, 2), dtype=np.uint8)).save(tmp_path / side / "a.png")
    path = tmp_path / "odd.txt"
    path.write_text(text)
    for option in ("--colors", "--list"):
        refused(["pixels", tmp_path / "gt", tmp_path / "pred", option, path], path)


def test_the_advice_on_a_file_of_values_is_for_that_file(sides: tuple[Path, Path]) -> None:
    path = write_json(sides[0].parent / "perf.json", [1, 2])
    done = run_here("evaluate", *sides, "--metrics-file", path, "--fail-under", "external.fps=1")
    assert done.returncode == 2
    said = 'is [1, 2]; expected an object with numbers by name. Write it like {"latency_ms": 12.3}.'
    assert done.stderr == f"error[record-type]: {path}: {said}\n"


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["evaluate", "memory://bucket/x", "{pred}"], 3),
        (["evaluate", "{gt}", "{pred}", "--images", "memory://bucket/x"], 3),
        (["evaluate", "{gt}", "{pred}", "--names", "memory://bucket/x"], 2),
        (["evaluate", "{gt}", "{pred}", "--class-map", "memory://bucket/x.json"], 2),
        (["gate", "{gt}", "--config", "memory://bucket/x"], 2),
        (["verify", "memory://bucket/x", "{gt}", "{pred}"], 3),
        (["explain", "memory://bucket/x", "{pred}"], 3),
        (["inspect", "memory://bucket/x"], 3),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_an_address_is_reported_as_given(sides: tuple[Path, Path], argv: list[str], code: int) -> None:
    done = run_here(*(word.format(gt=sides[0], pred=sides[1]) for word in argv))
    assert "memory://bucket/x" in done.stderr
    assert "there is no object and no folder of this name" in done.stderr
    assert done.returncode == code


@pytest.mark.needs("fsspec")
def test_an_address_of_a_web_server_is_no_output(sides: tuple[Path, Path]) -> None:
    with pytest.raises(MachineError, match=r"cannot write 'https://127.0.0.1:9/r.json': web servers take no files"):
        evaluate(*sides).save("https://127.0.0.1:9/r.json")
