"""The options that commands share, in the groups that the help shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from jaccard_eval.cli.ci import SYSTEMS, announce_failure
from jaccard_eval.cli.inputs import IMAGES, LABELS, AnyPath, InputPath, InputText
from jaccard_eval.cli.parse import (
    OneOf,
    is_map_file,
    parse_areas,
    parse_class_map,
    parse_iou,
    parse_max_dets,
    parse_names,
    parse_number,
    parse_score,
    parse_sort,
    parsed_by,
)
from jaccard_eval.errors import JaccardEvalError

PATH = AnyPath()
BOX_ENCODINGS = ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx")
UNITS = ("px", "norm")
ORIGINS = ("0", "1")
IMAGE_WAYS = ("id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1", "id-1")
NAMES: dict[str, Any] = {"metavar": "A,B,...", "callback": parsed_by(parse_names)}
NUMBER: dict[str, Any] = {"metavar": "NUMBER", "callback": parsed_by(parse_number)}


def _is_names_file(text: str) -> bool:
    from jaccard_eval.reading.names import is_file

    return is_file(text)


NAMES_TEXT = InputText(_is_names_file)


class SectionOption(click.Option):
    """An option that the help lists below the title of its section."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help groups the options by section, and whose failures the CI system is told."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except JaccardEvalError as error:
            announce_failure(error, ctx)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options per section, in the order of declaration."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "section", "Help"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def section(title: str) -> Callable[..., SectionOption]:
    """Return what makes options of a section."""

    def option(*names: str, help: str, **settings: Any) -> SectionOption:  # noqa: A002 - click's own word
        return SectionOption(names, section=title, help=help, **settings)

    return option


def _format_name(name: str) -> str:
    from jaccard_eval.errors import UsageError, did_you_mean, shown
    from jaccard_eval.formats import format_names

    known = format_names()
    if name not in known:
        raise UsageError(f"unknown format {shown(name)}; known are {', '.join(known)}.{did_you_mean(name, known)}")
    return name


def _complete_format(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from jaccard_eval.formats import format_names

    return [CompletionItem(name) for name in format_names() if name.startswith(start)]


def _known_codes(_: click.Context, __: click.Parameter, codes: tuple[str, ...]) -> tuple[str, ...]:
    from jaccard_eval.codes import CODES
    from jaccard_eval.errors import did_you_mean, shown

    for code in codes:
        if code not in CODES:
            hint = did_you_mean(code, CODES) or " docs/findings.md lists all."
            raise click.BadParameter(f"{shown(code)} is no code of a finding.{hint}")
    return codes


def _complete_code(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from jaccard_eval.codes import CODES

    return [CompletionItem(code) for code in sorted(CODES) if code.startswith(start)]


def _side_options(side: str, what: str) -> list[click.Parameter]:
    """Return how one side is read, where looking at it does not settle it."""
    option = section(f"Reading the {what} (found by looking when not given)")
    return [
        option(
            f"--{side}-format",
            metavar="FORMAT",
            callback=parsed_by(_format_name),
            shell_complete=_complete_format,
            help="Format; 'jaccard-eval formats' lists them.",
        ),
        option(f"--{side}-box", type=OneOf(BOX_ENCODINGS), help="What the four numbers of a box are."),
        option(f"--{side}-units", type=OneOf(UNITS), help="Pixels, or fractions of the image's width and height."),
        option(f"--{side}-origin", type=OneOf(ORIGINS), help="What the first pixel is called: 0, or 1 as in VOC."),
        option(f"--{side}-names", type=NAMES_TEXT, metavar="FILE|A,B,...", help="Class names by index, for this side."),
        option(
            f"--{side}-images", type=InputPath(IMAGES), metavar="DIR", help="Folder of the pictures, for this side."
        ),
        option(f"--{side}-columns", metavar="LAYOUT", help="Layout of the columns in text files."),
    ]


_path = section("Paths, instead of GT and PRED")
_both = section("Reading both sides")
_pair = section("How the two sides correspond")
_rule = section("Protocol")
_show = section("Output")
_find = section("Findings (each has a code, explained in docs/findings.md)")

PATH_OPTIONS: list[click.Parameter] = [
    _path("--gt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Ground truth."),
    _path("--pred", "--dt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Predictions."),
]

INPUT_OPTIONS: list[click.Parameter] = [
    _both("--names", type=NAMES_TEXT, metavar="FILE|A,B,...", help="Class names by index: a file, or a list."),
    _both("--images", type=InputPath(IMAGES), metavar="DIR", help="Folder of the pictures, for their list and sizes."),
    _both("--split", default="val", show_default=True, help="Split of a data set that is read, where it has splits."),
    _both("--assume-score", **NUMBER, help="Score of predictions that carry none."),
    *_side_options("gt", "ground truth"),
    *_side_options("pred", "predictions"),
]

PAIR_OPTIONS: list[click.Parameter] = [
    _pair(
        "--match-images",
        type=OneOf(IMAGE_WAYS),
        help="What images of the two sides have in common; id+1: the prediction's id plus one is the ground truth's.",
    ),
    _pair(
        "--extra-images",
        type=OneOf(("error", "ignore", "empty")),
        default="error",
        show_default=True,
        help="Images that only the predictions name: refuse, leave out, or count as images without objects.",
    ),
    _pair(
        "--class-map",
        type=InputText(is_map_file),
        metavar="PRED=GT,...|FILE|RULE|auto",
        callback=parsed_by(parse_class_map),
        help="Ground-truth class of each prediction class: pairs, a JSON or YAML file, a rule such as id+1 or "
        "contiguous, or auto: what the boxes speak for.",
    ),
]

PROTOCOL_OPTIONS: list[click.Parameter] = [
    _rule(
        "--protocol", metavar="coco|voc2007|voc2012", default="coco", show_default=True, help="The rules that count."
    ),
    _rule(
        "--iou",
        metavar="IOU",
        callback=parsed_by(parse_iou),
        help="Thresholds: 0.5, 0.5,0.75 or 0.5:0.95:0.05, both ends.",
    ),
    _rule(
        "--max-dets",
        metavar="N,...|none",
        callback=parsed_by(parse_max_dets),
        help="Caps on detections per image and class.",
    ),
    _rule(
        "--areas",
        metavar="NAME=LOW:HIGH,...",
        callback=parsed_by(parse_areas),
        help="Ranges in square pixels, such as small=0:32²,large=32²:inf.",
    ),
    _rule("--class-agnostic", is_flag=True, help="Pool all classes."),
    _rule("--classes", **NAMES, help="Evaluate these classes only."),
    _rule("--exclude-classes", **NAMES, help="Evaluate all classes but these."),
    _rule("--score-min", **NUMBER, help="Leave out predictions with a lower score."),
    _rule(
        "--nms",
        **NUMBER,
        help="First leave out predictions that a better one of their image and class overlaps by more than this IoU.",
    ),
    _rule("--drop-duplicates", is_flag=True, help="Leave out rows that equal an earlier row of their side."),
    _rule(
        "--score",
        "--conf",
        metavar="NUMBER|best-f1",
        callback=parsed_by(parse_score),
        help="Operating point: precision, recall and F1 of the detections with at least this score.",
    ),
]

PER_CLASS = _show("--per-class", is_flag=True, help="List every class.")

CLASS_OPTIONS: list[click.Parameter] = [
    PER_CLASS,
    _show(
        "--sort",
        metavar="name|gt|pred|METRIC",
        callback=parsed_by(parse_sort),
        help="Order of the classes, such as AP or name; implies --per-class.",
    ),
]

OUTPUT_OPTIONS: list[click.Parameter] = [
    _show(
        "-o",
        "--output",
        type=PATH,
        multiple=True,
        metavar="PATH",
        help="Also write PATH, by its suffix: .json .csv .md .txt .npz (a run, to be compared) .xml (JUnit) .prom"
        " (OpenMetrics), and .svg .png where there is a picture; by its name: metrics.txt (OpenMetrics) badge.json"
        " gl-code-quality-report.json thresholds.yaml confusion.csv curves.csv calibration.csv; '-' is the standard"
        " output. Repeatable.",
    ),
    _show("--json", "as_json", is_flag=True, help="Print the JSON document and nothing else."),
    _show("--color", type=OneOf(("auto", "always", "never")), default="auto", help="Colours in the report."),
    _show(
        "--ci",
        type=OneOf(SYSTEMS),
        default="auto",
        help="Tell the CI system: annotations, summary and outputs on GitHub, a code quality report on GitLab. auto:"
        " the one that the environment names.",
    ),
]

FINDING_OPTIONS: list[click.Parameter] = [
    _find("--strict", is_flag=True, help="Take warnings for errors (exit code 3)."),
    _find(
        "--allow",
        multiple=True,
        metavar="CODE",
        callback=_known_codes,
        shell_complete=_complete_code,
        help="Let warnings of this code pass under --strict. Repeatable.",
    ),
    _find("-q", "--quiet", is_flag=True, help="Leave out the notes on what was decided."),
]
