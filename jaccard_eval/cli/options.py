"""The options that commands share, in the groups that the help shows, and what they mean to the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.cli.ci import SYSTEMS, announce_failure
from jaccard_eval.cli.inputs import IMAGES, LABELS, AnyPath, InputPath, InputText
from jaccard_eval.cli.parse import (
    OneOf,
    RunOptions,
    is_map_file,
    parse_areas,
    parse_class_map,
    parse_iou,
    parse_max_dets,
    parse_names,
    parse_number,
    parse_score,
    parse_sort,
    parse_toml,
    parse_whole,
    parsed_by,
    read_settings,
)
from jaccard_eval.data.known_protocols import RULES
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.findings import CODES
from jaccard_eval.options import BY_FOLDER, SideOptions
from jaccard_eval.text import did_you_mean, quoted_value, shown_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jaccard_eval.options import Bootstrap, Slice

PATH = AnyPath()
BOX_ENCODINGS = ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx")
UNITS = ("px", "norm")
ORIGINS = ("0", "1")
IMAGE_WAYS = ("id", "name", "path", "basename", "stem", "case", "decorated", "number", "id+1", "id-1")
PROTOCOLS = "|".join(RULES)
WHOLE: dict[str, Any] = {"metavar": "N", "callback": parsed_by(parse_whole)}
NUMBER: dict[str, Any] = {"metavar": "NUMBER", "callback": parsed_by(parse_number)}
SCORE: dict[str, Any] = {"metavar": "NUMBER|best-f1", "callback": parsed_by(parse_score)}


def _is_names_file(text: str) -> bool:
    from jaccard_eval.reading.names import is_file  # only where names are given

    return is_file(text)


NAMES: dict[str, Any] = {"metavar": "FILE|A,B,...", "type": InputText(_is_names_file)}


class SectionOption(click.Option):
    """An option that the help lists below the title of its section."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class OutputOption(SectionOption):
    """The option that names outputs; its help lists those that there are, which are looked for when it is read."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option and its help."""
        from jaccard_eval.report import describe_outputs

        names, text = super().get_help_record(ctx) or ("", "")
        return names, text.replace("{outputs}", describe_outputs())


class SectionedCommand(click.Command):
    """A command whose help groups the options by section, and whose failures the CI system is told."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command: parameters that its function names are its own, all others are shared options."""
        function: Callable[..., Any] = self.callback or (lambda _: None)
        named = inspect.signature(function).parameters
        own = {name: value for name, value in ctx.params.items() if name in named}
        options = RunOptions(
            **{name: value for name, value in ctx.params.items() if name not in named and value is not None}
        )
        if options.verbose and options.quiet:
            raise click.UsageError("--verbose and --quiet exclude each other; give one of them", ctx)
        try:
            return ctx.invoke(function, options, **own)
        except JaccardEvalError as error:
            announce_failure(error, options)
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


def removed_option(name: str, instead: str) -> click.Option:
    """Return a flag that is no more: whoever gives it is told what to use in its place."""

    def refuse(ctx: click.Context, _: click.Parameter, given: bool) -> None:
        if given:
            raise click.UsageError(f"{name} was removed; {instead}", ctx)

    return click.Option([name], is_flag=True, hidden=True, expose_value=False, callback=refuse)


def _format_names() -> tuple[str, ...]:
    from jaccard_eval.formats import format_names  # lists a folder, and what other packages add

    return tuple(format_names())


def _format_name(name: str) -> str:
    known = _format_names()
    if name not in known:
        raise UsageError(
            f"unknown format {quoted_value(name)}; known are {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return name


def _resized(text: str) -> str:
    from jaccard_eval.data.resizing import Resizing  # brings NumPy along, only where it is asked for

    return str(Resizing.parse(text))


def _known_codes(_: click.Context, __: click.Parameter, codes: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes:
        if code not in CODES:
            hint = did_you_mean(code, CODES) or " docs/findings.md lists all."
            raise click.BadParameter(f"{quoted_value(code)} is no code of a finding.{hint}")
    return codes


def _completed_from(
    known: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes a word for a shell; what is known is looked up when a word is to be completed."""

    def complete(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # brings the scripts of three shells along

        return [CompletionItem(name) for name in known() if name.startswith(start)]

    return complete


def _side_options(side: str, what: str) -> list[click.Parameter]:
    """Return how one side is read, where looking at it does not settle it."""
    option = section(f"Reading the {what} (found by looking when not given)")
    return [
        option(
            f"--{side}-format",
            metavar="FORMAT",
            callback=parsed_by(_format_name),
            shell_complete=_completed_from(_format_names),
            help="Format; 'jaccard-eval formats' lists them.",
        ),
        option(f"--{side}-box", type=OneOf(BOX_ENCODINGS), help="What the four numbers of a box are."),
        option(f"--{side}-units", type=OneOf(UNITS), help="Pixels, or fractions of the image's width and height."),
        option(f"--{side}-origin", type=OneOf(ORIGINS), help="What the first pixel is called: 0, or 1 as in VOC."),
        option(
            f"--{side}-resized",
            metavar="HOW",
            callback=parsed_by(_resized),
            help="Map boxes back from resized images: letterbox:640, stretch:640x512 (width, height), scale:0.5.",
        ),
        # Not False: what reads one input takes any option of a side that is given for a word on which side it is.
        option(
            f"--{side}-drop-inverted", is_flag=True, default=None, help="Leave out boxes of negative width or height."
        ),
        option(f"--{side}-names", **NAMES, help="Class names by index, for this side."),
        option(
            f"--{side}-images", type=InputPath(IMAGES), metavar="DIR", help="Folder of the pictures, for this side."
        ),
        option(
            f"--{side}-columns",
            metavar="LAYOUT",
            help="Layout of text (box-conf), or of a table: class=a,score=b.",
        ),
    ]


_path = section("Paths, instead of GT and PRED")
_both = section("Reading both sides")
_pair = section("How the two sides correspond")
_rule = section("Protocol")
_show = section("Output")
_find = section("Findings (each has a code, explained in docs/findings.md)")


# Of the options that the fields of a dataclass declare, the type says how a text is read.
_BY_TYPE: dict[str, dict[str, Any]] = {
    "bool": {"is_flag": True},
    "float | None": NUMBER,
    "Sequence[str]": {"metavar": "A,B,...", "callback": parsed_by(parse_names)},
}

PATH_OPTIONS: list[click.Parameter] = [
    _path("--gt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Ground truth."),
    _path("--pred", "--dt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Predictions."),
]

INPUT_OPTIONS: list[click.Parameter] = [
    _both("--names", **NAMES, help="Class names by index: a file, or a list."),
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
        help="Images that only the predictions name: refuse, leave out, or count as images without objects. Default:"
        " error where the ground truth lists its images, else empty.",
    ),
    _pair(
        "--images-in-common",
        is_flag=True,
        help="Evaluate only the images that both sides list; what is left out is counted in a warning.",
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
    _rule("--protocol", metavar=PROTOCOLS, default="coco", show_default=True, help="The rules that count."),
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
    _rule(
        "--difficult",
        type=OneOf(("count", "ignore")),
        help="Objects marked difficult: count them, or take them for neither found nor missed; as the protocol says"
        " when not given.",
    ),
    *(
        _rule(f"--{field.name.replace('_', '-')}", help=field.metadata["help"], **_BY_TYPE[str(field.type)])
        for field in fields(SideOptions)
        if field.metadata
    ),
    _rule(
        "--score",
        "--conf",
        **SCORE,
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

QUIET = _show("-q", "--quiet", is_flag=True, help="Print the last line of the report only, and hide notes.")

OUTPUT_OPTIONS: list[click.Parameter] = [
    OutputOption(
        ("-o", "--output"),
        section="Output",
        type=PATH,
        multiple=True,
        metavar="PATH",
        help="Also write PATH, {outputs}; '-' is the standard output. Repeatable.",
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
    _show("-v", "--verbose", is_flag=True, help="Print details and the full signature."),
    QUIET,
]

FINDING_OPTIONS: list[click.Parameter] = [
    _find("--strict", is_flag=True, help="Take warnings for errors (exit code 3)."),
    _find(
        "--allow",
        multiple=True,
        metavar="CODE",
        callback=_known_codes,
        shell_complete=_completed_from(lambda: sorted(CODES)),
        help="Go on in spite of a finding of this code: one that would stop the run, or a warning under --strict."
        " Repeatable.",
    ),
]
FIELDS = {  # by the names of the options
    "bootstrap": "n_resamples",
    "confidence": "confidence_level",
    "seed": "rng",
    "group_by": "group_by",
}


def is_group_file(group_by: str | None) -> bool:
    """Whether images are grouped by a file."""
    return group_by not in (None, BY_FOLDER)


_noise = section("Noise")

BOOTSTRAP_OPTIONS: list[click.Parameter] = [
    _noise(
        "--bootstrap",
        **WHOLE,
        help="Intervals for the summary and every class, from N resamples of the images, the same for all predictions;"
        " 1000 is a good number.",
    ),
    _noise("--confidence", **NUMBER, help="Confidence of the intervals, 0.95 when not given."),
    _noise("--seed", **WHOLE, help="Seed of the resamples, 0 when not given."),
    _noise(
        "--group-by",
        type=InputText(is_group_file),
        metavar="folder|FILE",
        help="Draw groups of images as a whole, such as the frames of a video: those of one folder, or of one group in"
        " a CSV file of rows image,group.",
    ),
]


def read_bootstrap(options: RunOptions) -> Bootstrap | None:
    """Return how to resample for intervals; None where they were not asked for."""
    if options.bootstrap is None:
        return None
    from jaccard_eval.options import Bootstrap

    return adjusted(Bootstrap(), options)


def adjusted(drawn: Bootstrap, options: RunOptions) -> Bootstrap:
    """Return settings with what options say otherwise; a UsageError where that is out of range."""
    try:
        return replace(drawn, **given_settings(options))
    except UsageError as error:
        # The message names the setting; on a command line, it is known by its option.
        setting, _, rest = str(error).partition(" ")
        options_of = {field: name for name, field in FIELDS.items()}
        raise UsageError(f"--{options_of[setting]} {rest}" if setting in options_of else str(error)) from None


def given_settings(options: RunOptions) -> dict[str, Any]:
    """Return the settings that options name, by their fields."""
    return {field: getattr(options, name) for name, field in FIELDS.items() if getattr(options, name) is not None}


def require_resamples(options: RunOptions) -> None:
    """Raise a usage error when settings are given and nothing asks for resamples."""
    idle = [name for name in FIELDS if getattr(options, name) is not None]
    if idle and options.bootstrap is None:
        raise UsageError(f"--{idle[0].replace('_', '-')} is of no use without --bootstrap N")


TABLE = "slices"


def read_slices(options: RunOptions) -> tuple[Slice, ...]:
    """Return the slices of the options, then those of the file; globs of one name in the options are one slice."""
    path = options.slices
    if path is None and not options.slice:
        return ()
    from jaccard_eval.metrics.slices import require_names
    from jaccard_eval.options import Slice

    named: dict[str, list[str]] = {}
    for name, glob in options.slice:
        named.setdefault(name, []).append(glob)
    tables = [named]
    if path is not None:
        content = parse_toml(path, read_settings(path))
        table = content.get(TABLE)
        if set(content) != {TABLE} or not isinstance(table, Mapping):
            raise UsageError(f'{path}: expected one table [{TABLE}] with lines such as night = ["img/night/**"]')
        wrong = [
            f"{path}: {TABLE}.{name}: expected a list of names and globs, got {shown_json(globs)}"
            for name, globs in table.items()
            if not (isinstance(globs, list) and globs and all(isinstance(glob, str) for glob in globs))
        ]
        if wrong:
            raise UsageError("\n".join(wrong))
        tables.append(dict(table))
    slices = tuple(Slice(name=name, patterns=tuple(globs)) for table in tables for name, globs in table.items())
    # A name in the options and in the file would be two rows that nobody can tell apart.
    require_names(slices)
    return slices


def _named_globs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [(name.strip(), glob.strip()) for name, _, glob in (text.partition("=") for text in texts)]
    for text, pair in zip(texts, pairs, strict=True):
        if not all(pair):
            raise click.BadParameter(
                f"expected NAME=GLOB, such as night='img/night/**'; got {quoted_value(text)}", ctx, param
            )
    return tuple(pairs)


_slice = section("Slices")
SLICE_OPTIONS: list[click.Parameter] = [
    _slice(
        "--slice",
        metavar="NAME=GLOB",
        multiple=True,
        callback=_named_globs,
        help="Also measure the images whose names match, in a row of their own; * also stands for slashes. Repeatable.",
    ),
    _slice(
        "--slices", type=InputPath(), metavar="FILE", help='Such slices: TOML, [slices] with night = ["img/night/**"].'
    ),
]


def rule_arguments(options: RunOptions) -> dict[str, Any]:
    """Return the rules as the verbs of `api` take them; area ranges only where some are given."""
    rules = {name: getattr(options, name) for name in ("protocol", "iou", "max_dets", "class_agnostic", "difficult")}
    if options.areas is None:
        return rules
    from jaccard_eval.data.protocol import get_protocol

    # Headline metrics use the first range: that of the protocol, unless one of its name is given.
    everything = get_protocol(options.protocol).areas[0]
    own = [area for area in options.areas if area.name == everything.name] or [everything]
    return rules | {"areas": (*own, *(area for area in options.areas if area.name != everything.name))}
