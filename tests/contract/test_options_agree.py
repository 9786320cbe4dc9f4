"""An option is declared once: values, verbs, command line, configuration, documents and docs name the same ones."""

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import pytest

import jaccard_eval
from jaccard_eval import Bootstrap, ReadOptions, Slice
from jaccard_eval.cli import COMMAND_TABLE
from jaccard_eval.cli.options import FIELDS, SectionedCommand
from jaccard_eval.cli.parse import RunOptions
from jaccard_eval.data.protocol import ProtocolOptions
from jaccard_eval.features.gates import build_schema
from jaccard_eval.options import EngineOptions, EvaluateOptions, SideOptions, changed, to_document
from jaccard_eval.runs import converted

DOCS = Path(__file__).parents[2] / "docs"
SIDES = {"gt", "pred"}
# Options whose parameter on the command line is another: a path or text for each side, and what resamples are drawn by.
READING = {"gt_options", "pred_options"}
COMPANIONS = {"hierarchy", "image_labels", "class_descriptions"}  # files that come with ground truth
PROGRAMS = {"client"}  # what only a program holds


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


# What a run holds: fields, its own annotations, and what the options of reading and of the engine declare.
DECLARED = {field.name: set(field.metadata.get("help", ())) for field in fields(ReadOptions)}
SHARED = {name for name, groups in DECLARED.items() if "both" in groups}
PER_SIDE = {f"{side}_{name}" for side in SIDES for name, groups in DECLARED.items() if "side" in groups}
RUN_OPTIONS = names(SideOptions) | set(RunOptions.__annotations__) | names(EngineOptions) - PROGRAMS | SHARED | PER_SIDE


def defaults(kind: type) -> dict[str, Any]:
    return {field.name: field.default for field in fields(kind) if field.default is not MISSING}


def keywords(verb: str) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(getattr(jaccard_eval, verb)).parameters
    return {name: one for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}


def commands() -> dict[str, click.Command]:
    context = click.Context(COMMAND_TABLE)
    found = {name: COMMAND_TABLE.get_command(context, name) for name in COMMAND_TABLE.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def own(command: click.Command) -> set[str]:
    """Return the parameters that the function of a command names itself."""
    assert command.callback is not None
    return set(inspect.signature(command.callback).parameters) - {"options"}


def parameters(command: click.Command) -> set[str]:
    return {str(one.name) for one in command.params if one.expose_value}


SHAPES = {"iou_type", "sigmas", "dilation_ratio"}  # sensitivity looks at boxes alone
READ = {"skip_invalid"}  # of both sides, as on the command line
SHOWN = {"images"}  # and where both have their images
VERBS = {
    "evaluate": READ | SHOWN | names(EvaluateOptions) | names(ProtocolOptions) | names(EngineOptions),
    "compare": READ | SHOWN | names(SideOptions) | names(ProtocolOptions) | {"options", "names", "bootstrap", "slices"},
    "explain": READ | names(SideOptions) | names(ProtocolOptions) | {"against", "boxes"},
    # Labels are judged at thresholds of their own.
    "labels": READ
    | names(SideOptions)
    | names(ProtocolOptions) - {"iou", "max_dets", "areas"}
    | {"every", "reviewed", "apply", "annotate", "image_root", "suspects"},
    "sensitivity": READ | names(SideOptions) | names(ProtocolOptions) - {"areas", *SHAPES} | {"scale"},
    # inspect tells of everything and stops at nothing
    "inspect": READ
    | names(SideOptions) - {"classes", "exclude_classes", "score_min", "nms", "drop_duplicates", "allow"}
    | SHAPES
    | {"role"},
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_writes_out_the_options_that_it_passes_on(verb: str) -> None:
    assert set(keywords(verb)) == VERBS[verb]


@pytest.mark.parametrize("verb", [*VERBS, "convert", "load"])
def test_what_commands_read_of_both_sides_is_a_keyword_of_every_verb_that_reads(verb: str) -> None:
    assert {name: one.default for name, one in keywords(verb).items() if name in READ} == dict.fromkeys(READ, False)
    assert verb == "load" or parameters(commands()[verb]) >= READ


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_defaults_of_the_options(verb: str) -> None:
    expected = defaults(EvaluateOptions) | defaults(ProtocolOptions) | defaults(EngineOptions)
    given = {name: one.default for name, one in keywords(verb).items() if name in expected}
    assert given == {name: expected[name] for name in given}


@pytest.mark.parametrize("verb", VERBS)
def test_the_docstring_of_a_verb_explains_every_option(verb: str) -> None:
    text = inspect.getdoc(getattr(jaccard_eval, verb)) or ""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\nReturns\n")[0]
    heads = re.findall(r"^(?! )(.+?)(?: :.*)?$", section, re.MULTILINE)
    explained = {name for head in heads for name in head.split(", ")}
    assert set(keywords(verb)) <= explained


def test_evaluate_on_the_command_line_has_every_option_of_the_library() -> None:
    given = parameters(commands()["evaluate"])
    assert (names(EvaluateOptions) | names(ProtocolOptions) | names(EngineOptions)) - READING - PROGRAMS <= given
    assert given >= SHARED | PER_SIDE
    # But which side it is, and its kind.
    assert {name for name, groups in DECLARED.items() if not groups} == {"role", "iou_type", "regions", "whole_bodies"}
    assert given >= COMPANIONS
    assert set(FIELDS.values()) == names(Bootstrap)
    assert set(FIELDS) <= given


@pytest.mark.parametrize("name", [name for name, one in commands().items() if isinstance(one, SectionedCommand)])
def test_every_parameter_of_a_command_is_its_own_or_shared(name: str) -> None:
    command = commands()[name]
    assert own(command) <= parameters(command)
    assert parameters(command) - own(command) <= RUN_OPTIONS


def test_every_shared_option_is_one_of_a_command() -> None:
    shared = set().union(*(parameters(one) - own(one) for one in commands().values()))
    assert RUN_OPTIONS - shared == READING


@pytest.mark.parametrize("name", ["evaluate", "compare", "explain", "sensitivity", "inspect"])
def test_the_command_line_has_the_defaults_of_the_library(name: str) -> None:
    command = commands()[name]
    given = command.make_context(name, ["gt.json", "pred.json"]).params
    expected = defaults(SideOptions) | defaults(ProtocolOptions)
    shared = (set(given) & set(expected)) - own(command)
    assert {name: given[name] or None for name in shared} == {name: expected[name] or None for name in shared}


def test_a_configuration_names_the_settings_of_the_bootstrap() -> None:
    gates = build_schema()["properties"]["gates"]["properties"]
    of_fields = {"resamples": "n_resamples", "confidence": "confidence_level", "seed": "rng", "group-by": "group_by"}
    assert {of_fields[name] for name in gates["bootstrap"]["properties"]} == names(Bootstrap)


GIVEN: dict[str, Any] = {
    "classes": ("dog",),
    "exclude_classes": ("cat",),
    "score_min": 0.25,
    "nms": 0.5,
    "drop_duplicates": True,
    "class_map": {"a": "dog"},
    "gt_class_map": {"hound": "dog"},
    "match_images": "stem",
    "extra_images": "ignore",
    "images_in_common": True,
    "gt_format": "coco",
    "pred_format": "csv",
    "gt_options": ReadOptions(box="xyxy", names=("dog", "cat"), images="images", columns="class=a,score=b", origin=1),
    "pred_options": ReadOptions(
        units="px", resized="letterbox:640", assume_score=0.5, split="test", columns="class x y w h", drop_inverted=True
    ),
    "score": "best-f1",
    "errors": True,
    "confusion": True,
    "worst_images": 5,
    "bootstrap": Bootstrap(n_resamples=9, group_by="folder"),
    "slices": (Slice(name="night", patterns=("n*",)),),
    "allow": ("box-encoding",),
}


def test_what_is_recorded_is_read_back_as_it_was() -> None:
    options = EvaluateOptions(**GIVEN)
    assert set(changed(options)) == set(GIVEN) == names(EvaluateOptions)
    document = to_document(options)
    # These change no number, and tell of themselves.
    beside = {"errors", "confusion", "worst_images"}
    assert set(document) == names(EvaluateOptions) - beside
    again = converted(document, EvaluateOptions, "options")
    assert to_document(again) == document
    assert {name: getattr(again, name) for name in GIVEN if name not in {*beside, "slices"}} == {
        name: value for name, value in GIVEN.items() if name not in {*beside, "slices"}
    }
    assert tuple(again.slices) == GIVEN["slices"]


def test_nothing_is_recorded_of_what_was_left_at_its_default() -> None:
    assert to_document(EvaluateOptions()) == {}
    assert to_document(EvaluateOptions(classes=[], slices=[], class_map={}, gt_options=ReadOptions())) == {}


def test_the_docs_name_what_a_signature_says_of_a_selection() -> None:
    page = (DOCS / "reproducibility.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `classes`"))
    chosen = names(SideOptions) - READING - {"gt_format", "pred_format", "allow"}
    assert set(re.findall(r"`(\w+)`", row.split("|")[1])) == chosen
