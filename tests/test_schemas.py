"""docs/schema is what the code generates, and what it writes is valid by it.

Run as a script, this file writes the schemas again.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import evaluate, pixels
from jaccard_eval.data.from_document import find_faults, json_schema
from jaccard_eval.data.result import EvaluationResult, Resamples
from jaccard_eval.features.gates import build_schema
from jaccard_eval.features.images import WorstImages
from jaccard_eval.features.labels import LabelsResult
from jaccard_eval.features.panoptic import PanopticResult
from jaccard_eval.features.pixels import PixelsResult
from jaccard_eval.options import Bootstrap, Slice

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/schema"
SCHEMAS = {
    "config-1.json": build_schema,
    "evaluation-1.json": lambda: json_schema(EvaluationResult, {"bootstrap": Resamples, "worst_images": WorstImages}),
    "labels-1.json": lambda: json_schema(LabelsResult, {}),
    "panoptic-1.json": lambda: json_schema(PanopticResult, {"bootstrap": Resamples}),
    "pixels-1.json": lambda: json_schema(PixelsResult, {"bootstrap": Resamples}),
}
SAMPLE = ROOT / "sample_data/coco"
# Parts with an own reader, from the types of their fields.
PARTS = {"errors", "part"}


def written(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_the_docs_is_that_of_the_code(name: str) -> None:
    from jsonschema import Draft202012Validator

    assert (FOLDER / name).read_text() == written(name), "python tests/test_schemas.py"
    Draft202012Validator.check_schema(json.loads(written(name)))


def test_every_schema_is_listed() -> None:
    page = (FOLDER / "README.md").read_text()
    assert {path.name for path in FOLDER.glob("*.json")} == set(SCHEMAS)
    assert all(f"[{name}]({name})" in page for name in SCHEMAS)


@pytest.fixture(scope="module")
def fresh() -> dict[str, Any]:
    """A result with all that can be asked for."""
    return evaluate(
        SAMPLE / "gt.json",
        SAMPLE / "better.json",
        score="best-f1",
        errors=True,
        bootstrap=Bootstrap(n_resamples=10),
        slices=(Slice(name="streets", patterns=("street_0*",)),),
    ).to_dict()


def problems(document: dict[str, Any]) -> list[str]:
    from jsonschema import Draft202012Validator

    schema = SCHEMAS[f"{document['kind']}-1.json"]()
    return [error.json_path for error in Draft202012Validator(schema).iter_errors(document)]


def test_what_is_written_is_valid_and_described(fresh: dict[str, Any]) -> None:
    assert problems(fresh) == []
    assert set(fresh) - set(SCHEMAS["evaluation-1.json"]()["properties"]) <= PARTS
    maps = ROOT / "tests/golden/given/inputs/maps"
    assert problems(pixels(maps / "gt", maps / "pred").to_dict()) == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value[:2]):
            yield from leaves(item, (*path, key))
    elif path:
        yield path


def test_schema_and_reader_refuse_the_same_types(fresh: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(SCHEMAS["evaluation-1.json"]())
    refused = 0
    for path in leaves(
        {name: fresh[name] for name in ("metrics", "per_class", "operating_points", "inputs", "slices")}
    ):
        damaged = copy.deepcopy({name: value for name, value in fresh.items() if name not in PARTS})
        place = damaged
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = {"odd": True}
        by_schema = next(validator.iter_errors(damaged), None) is not None
        by_reader = bool(find_faults(damaged, EvaluationResult, {}))
        assert by_schema == by_reader, path
        refused += by_schema
    assert refused > 50


if __name__ == "__main__":
    for one in SCHEMAS:
        (FOLDER / one).write_text(written(one))
