"""The options that commands share, in the groups that the help shows, and what they mean to the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jaccard_eval.cli import HelpContext, streams
from jaccard_eval.cli.ci import SYSTEMS, announce_failure
from jaccard_eval.cli.config import apply_config, configured
from jaccard_eval.cli.parse import (
    IMAGES,
    LABELS,
    SORT_KEYS,
    AnyPath,
    InputPath,
    InputText,
    OneOf,
    OutputPath,
    RunOptions,
    WholeNumber,
    is_map_file,
    parse_areas,
    parse_class_map,
    parse_iou,
    parse_max_dets,
    parse_names,
    parse_number,
    parse_order,
    parse_score,
    parse_sigmas,
    parse_sort,
    parse_toml,
    parse_whole,
    parsed_by,
    read_settings,
    refuse_results,
)
from jaccard_eval.cli.progress import CHOICES, shown_progress
from jaccard_eval.cli.streams import choose_color
from jaccard_eval.codes import CODES
from jaccard_eval.data.known_protocols import IOU_TYPES, RULES
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.extensions import SIMILARITIES
from jaccard_eval.findings import FindingLog
from jaccard_eval.options import (
    AIMS,
    BEST_F1,
    BY_FOLDER,
    Bootstrap,
    EngineOptions,
    ReadOptions,
    SideOptions,
    Slice,
    exempting,
)
from jaccard_eval.text import did_you_mean, quoted_value, shown_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jaccard_eval.features.gates import Gates
    from jaccard_eval.options import Bootstrap, Slice
    from jaccard_eval.report.write import Output


PATH = AnyPath()
ROLES = ("gt", "pred")
WHOLE: dict[str, Any] = {"metavar": "N", "callback": parsed_by(parse_whole)}
NUMBER: dict[str, Any] = {"metavar": "NUMBER", "callback": parsed_by(parse_number)}


def _is_names_file(text: str) -> bool:
    from jaccard_eval.reading.names import is_file  # only where names are given

    return is_file(text)


NAMES: dict[str, Any] = {"metavar": "FILE|A,B,...", "type": InputText(_is_names_file)}


HELP = "Messages and help ('jaccard-eval help CODE' explains a finding)"
SHOWS_ALL = "jaccard_eval.help_all"  # in the context


class SectionOption(click.Option):
    """An option that the help lists below the title of its section: `--help` if it is basic, else `--help-all`."""

    def __init__(
        self, *args: Any, section: str, basic: bool = False, names: Callable[[], Iterable[str]] = tuple, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section, self.basic = section, basic
        self._names = names  # of all values, for `--help-all`

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help, with the names of all values where all is wanted."""
        record = super().get_help_record(ctx)
        if record is None or SHOWS_ALL not in ctx.meta or not (names := ", ".join(self._names())):
            return record
        return record[0], f"{record[1]} All of them: {names}."

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return what a text means; an empty one, as of a variable that is not set, means nothing in any option."""
        if value == "" or (isinstance(value, tuple | list) and "" in value):
            raise click.BadParameter(
                f"expected a {'path' if isinstance(self.type, AnyPath) else 'value'}, got an empty text", ctx, self
            )
        return super().type_cast_value(ctx, value)

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        """Return what the help adds, without the range: "[x>=1]" means nothing to a reader of N."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[SHOWS_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


class ListedCommand(click.Command):
    """A command that the help of the program lists in a group, and whose own help groups the options by section."""

    context_class = HelpContext

    def __init__(
        self,
        name: str,
        *,
        group: str,
        params: Sequence[click.Parameter | str],
        without: Collection[str] = (),
        **settings: Any,
    ) -> None:
        self.group = group  # one of `cli.GROUPS`
        # Options that commands share are named by their group, `without` those that this one lacks or has itself.
        own = [
            option
            for given in params
            for option in (options_of(given, without=without) if isinstance(given, str) else [given])
        ]
        help_all = SectionOption(
            ["--help-all"],
            section=HELP,
            basic=True,
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show all options.",
        )
        super().__init__(name, params=[*own, help_all], **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; of an option that there is not, those that are near are named, without regard to dashes."""
        try:
            return super().parse_args(ctx, list(args))  # which the parser empties
        except click.NoSuchOption as error:
            known = {name.lstrip("-"): name for name in _visible_names(self.get_params(ctx))}
            meant = did_you_mean(error.option_name.lstrip("-"), known, show=known.__getitem__)
            meant = meant or _where(ctx, error.option_name)
            raise click.UsageError(f"No such option {quoted_value(error.option_name)}.{meant}", ctx) from None
        except click.MissingParameter:
            refuse_results(args)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options per section, in the order of declaration; the basic ones unless all are wanted."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            is_shown = SHOWS_ALL in ctx.meta or getattr(param, "basic", True)
            if record is not None and is_shown and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "section", HELP), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _visible_names(params: Iterable[click.Parameter]) -> Iterator[str]:
    for param in params:
        if isinstance(param, click.Option) and not param.hidden:
            yield from (*param.opts, *param.secondary_opts)


class SectionedCommand(ListedCommand):
    """A command with the shared options, which a configuration may set; its failures are reported to the CI system."""

    def __init__(self, name: str, *, params: Sequence[click.Parameter | str], **settings: Any) -> None:
        super().__init__(name, params=[*params, *CONFIG_OPTIONS], options_metavar="[OPTIONS]", **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, with the options of the configuration behind them."""
        if not ctx.resilient_parsing:
            apply_config(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command: parameters that its function names are its own, all others are shared options."""
        function: Callable[..., Any] = self.callback or (lambda _: None)
        named = inspect.signature(function).parameters
        own = {name: value for name, value in ctx.params.items() if name in named}
        options = RunOptions(
            **{name: value for name, value in ctx.params.items() if name not in named and value is not None}
        )
        for note in configured(ctx):  # also with --quiet: they decide what is evaluated
            streams.say(str(note))
        sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
        # A configuration holds its options for all runs.
        held = [name for name, source in sources.items() if source is ParameterSource.DEFAULT_MAP]
        try:
            with shown_progress(options), exempting(held):
                return ctx.invoke(function, options, **own)
        except JaccardEvalError as error:
            announce_failure(error, options)
            raise


def _where(ctx: click.Context, name: str) -> str:
    """Return which other commands have an option; nothing where none has."""
    table = ctx.find_root().command
    if not isinstance(table, click.Group):
        return ""
    commands = ((word, table.get_command(ctx, word)) for word in table.list_commands(ctx))
    having = [word for word, command in commands if command and name in _visible_names(command.params)]
    return f" It is an option of {', '.join(having)}." if having else ""


def section(title: str) -> Callable[..., SectionOption]:
    """Return what makes options of a section."""

    def option(*names: str, help: str, **settings: Any) -> SectionOption:  # noqa: A002 - click's own word
        return SectionOption(names, section=title, help=help, **settings)

    return option


CONFIG_OPTIONS: list[click.Parameter] = [
    SectionOption(
        ["--config"],
        section="Configuration",
        type=InputPath(),
        metavar="FILE",
        help="TOML or YAML file of options and gates. Default: jaccard-eval.toml, .yaml, or pyproject.toml with"
        " [tool.jaccard-eval], in the nearest folder upward.",
    ),
    SectionOption(["--isolated"], section="Configuration", is_flag=True, help="Ignore configuration files."),
]


def refused_option(name: str, because: str) -> click.Option:
    """Return an option that is none here, but is known from elsewhere: its message names what to use instead."""

    def refuse(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
        if given is not None and not ctx.resilient_parsing:
            raise click.UsageError(f"{name} {because}", ctx)

    # Eager: reported before what else is wrong, such as an input that it read as its value.
    return click.Option(
        [name], is_flag=False, flag_value="", is_eager=True, hidden=True, expose_value=False, callback=refuse
    )


def known_formats() -> tuple[str, ...]:
    """Return the names of all formats, as a shell completes them."""
    from jaccard_eval.formats import format_names  # lists a folder, and what other packages add

    return tuple(format_names())


def _format_name(name: str) -> str:
    known = known_formats()
    if name not in known:
        raise UsageError(
            f"unknown format {quoted_value(name)}; choose from {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return name


def _resized(text: str) -> str:
    from jaccard_eval.data.resizing import Resizing  # brings NumPy along, only where it is asked for

    return str(Resizing.parse(text))


def _known_codes(_: click.Context, __: click.Parameter, codes: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes:
        if code not in CODES:
            hint = did_you_mean(code, CODES) or " 'jaccard-eval help findings' lists all."
            raise click.BadParameter(f"{quoted_value(code)} is not the code of a finding.{hint}")
    return codes


def metric_names() -> tuple[str, ...]:
    """Return the metrics of the summary, as a shell completes them."""
    from jaccard_eval.data.metricref import COCO_SUMMARY  # of use to a few options

    return COCO_SUMMARY


def completed_from(
    known: Callable[[], Iterable[str]], *, or_files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes a word for a shell; what is known is looked up when a word is to be completed."""

    def complete(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # brings the scripts of three shells along

        files = [CompletionItem(start, type="file")] if or_files else []
        return [*(CompletionItem(name) for name in known() if name.startswith(start)), *files]

    return complete


PROTOCOL: dict[str, Any] = {"metavar": "NAME", "shell_complete": completed_from(lambda: RULES)}
FORMAT_NAME: dict[str, Any] = {
    "metavar": "FORMAT",
    "callback": parsed_by(_format_name),
    "shell_complete": completed_from(known_formats),
}
SCORE: dict[str, Any] = {
    "metavar": "SCORE",
    "callback": parsed_by(parse_score),
    "shell_complete": completed_from(lambda: [BEST_F1, *(f"{aim}=" for aim in AIMS)]),
}


INPUT = "Input (detected if not given)"
_input = section(INPUT)
_rule = section("Protocol")
_show = section("Output")
_find = section(HELP)


PATH_OPTIONS: list[click.Parameter] = [
    _input("--gt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Ground truth, instead of GT."),
    _input(
        "--pred", "--dt", type=InputPath(LABELS), multiple=True, metavar="PATH", help="Predictions, instead of PRED."
    ),
]

# How a text is read, where the type of a field does not.
_BY_TYPE: dict[str, dict[str, Any]] = {
    # Not False: what reads one input takes any option of a side that is given for a word on which side it is.
    "bool": {"is_flag": True, "default": None},
    "int": WHOLE,
    "int | None": WHOLE,
    "float": NUMBER,
    "float | None": NUMBER,
    "PathText | None": {"type": InputPath(), "metavar": "FILE"},
    "Sequence[str]": {"metavar": "A,B,...", "callback": parsed_by(parse_names)},
}
_BY_NAME: dict[str, dict[str, Any]] = {
    "gt_format": FORMAT_NAME,
    "pred_format": FORMAT_NAME,
    "box": {"metavar": "ENCODING"},
    "names": NAMES,
    "images": {"type": InputPath(IMAGES), "metavar": "DIR"},
    "columns": {"metavar": "LAYOUT"},
    "split": {"metavar": "NAME", "default": "val", "show_default": True},
    "origin": {"metavar": None},
    "resized": {"metavar": "HOW", "callback": parsed_by(_resized)},
    "angle": {"metavar": "ANGLE"},
    "keypoint_order": {"metavar": "N,...", "callback": parsed_by(parse_order)},
    "mask_axes": {"metavar": "AXES"},
    "match_images": {"metavar": "HOW"},
    "extra_images": {"default": "error"},
    "class_map": {
        "type": InputText(is_map_file),
        "metavar": "MAP",
        "shell_complete": completed_from(lambda: ["auto"], or_files=True),
        "callback": parsed_by(parse_class_map),
    },
    "gt_class_map": {
        "type": InputText(is_map_file),
        "metavar": "MAP",
        "callback": parsed_by(partial(parse_class_map, rules=())),
    },
    "engine": {"default": "auto"},
    "memory_limit": {"metavar": "SIZE"},
    "scratch": {"type": AnyPath(), "metavar": "DIR|URL"},
    "scheduler": {"type": None, "metavar": "ADDRESS|FILE"},
    "no_worker_timeout": {"metavar": "SECONDS"},
}


def declared(kind: type, group: str, option: Callable[..., SectionOption], *, side: str = "") -> list[click.Parameter]:
    """Make the options of a group that the fields of a dataclass declare."""
    return [
        option(
            f"--{side}{known.name}".replace("_", "-"),
            help=helps[group],
            # Of one that is given for both sides or for one, the former is the usual one.
            basic=known.metadata.get("basic", False) and next(iter(helps)) == group,
            **_BY_TYPE.get(str(known.type), {})
            | ({"type": OneOf(choices)} if (choices := known.metadata.get("choices")) else {})
            | _BY_NAME.get(known.name, {}),
        )
        for known in fields(kind)
        if group in (helps := known.metadata.get("help", {}))
    ]


_BOTH = declared(ReadOptions, "both", _input)
_GT, _PRED = (
    [*declared(SideOptions, side, _input), *declared(ReadOptions, "side", _input, side=f"{side}_")] for side in ROLES
)
PAIR_OPTIONS = declared(SideOptions, "pairing", _input)

CONF = refused_option(
    "--conf",
    "means several things; use --score for precision, recall and F1 at a threshold, --score-min to filter predictions.",
)

_FEW: dict[str, Any] = {"type": WholeNumber(min=1), "metavar": "N"}
# Of commands that list classes.
CHOSEN_CLASSES: list[click.Parameter] = [
    _show("--top", basic=True, **_FEW, help="List the N best classes."),
    _show("--worst", basic=True, **_FEW, help="List the N worst classes; with --top, both."),
]
LISTED_CLASSES: list[click.Parameter] = [
    _show("--per-class", is_flag=True, basic=True, help="List every class."),
    *CHOSEN_CLASSES,
]
CLASS_OPTIONS: list[click.Parameter] = [
    *LISTED_CLASSES,
    _show(
        "--sort",
        metavar="COLUMN",
        basic=True,
        callback=parsed_by(parse_sort),
        shell_complete=completed_from(lambda: (*SORT_KEYS, *metric_names())),
        help="Sort classes by name, gt, pred or a metric.",
    ),
]


def class_table_options(columns: Sequence[str]) -> list[click.Parameter]:
    """Make the options of commands that list a few classes unasked, in the order of a column of their table."""
    return [
        _show("--per-class", is_flag=True, basic=True, help="List every class (default: up to 30)."),
        *CHOSEN_CLASSES,
        _show(
            "--sort", type=OneOf(columns), metavar="COLUMN", basic=True, help="Sort classes by a column of the table."
        ),
    ]


QUIET = _show("-q", "--quiet", is_flag=True, basic=True, help="Print only the last line; hide notes.")
PROGRESS = _show(
    "--progress",
    type=OneOf(CHOICES),
    default="auto",
    help="Show progress on standard error. auto: on a terminal, after half a second; elsewhere stages of over 10 s.",
)

OUTPUT_OPTIONS: list[click.Parameter] = [
    _show(
        "-o",
        "--output",
        type=OutputPath(),
        multiple=True,
        metavar="PATH",
        basic=True,
        help="Also write a file: see 'jaccard-eval help outputs'.",
    ),
    _show("--json", "as_json", is_flag=True, basic=True, help="Print only the JSON document."),
    _show(
        "--color",
        type=OneOf(("auto", "always", "never")),
        default="auto",
        is_eager=True,  # errors in other options are coloured, too
        callback=lambda _, __, choice: choose_color(choice),
        help="Colour the report and messages.",
    ),
    _show(
        "--ci",
        type=OneOf(SYSTEMS),
        default="auto",
        help="Report to the CI system: GitHub annotations, summary and outputs, or a GitLab code quality report."
        " auto: detect it.",
    ),
    _show("-v", "--verbose", is_flag=True, basic=True, help="Print details and the full signature."),
    QUIET,
    PROGRESS,
]

FINDING_OPTIONS: list[click.Parameter] = [
    _find("--strict", is_flag=True, basic=True, help="Treat warnings as errors (exit code 3)."),
    _find(
        "--allow",
        multiple=True,
        metavar="CODE",
        basic=True,
        callback=_known_codes,
        shell_complete=completed_from(lambda: sorted(CODES)),
        help="Continue despite a finding with this code. Repeatable.",
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


_noise = section("Intervals and slices")

BOOTSTRAP_OPTIONS: list[click.Parameter] = [
    _noise(
        "--bootstrap",
        **WHOLE,
        basic=True,
        help="Confidence intervals from N resamples of the images.",
    ),
    _noise("--confidence", **NUMBER, help="Confidence level (default 0.95)."),
    _noise("--seed", **WHOLE, help="Seed of the resamples (default 0)."),
    _noise(
        "--group-by",
        type=InputText(is_group_file),
        metavar="folder|FILE",
        shell_complete=completed_from(lambda: [BY_FOLDER], or_files=True),
        help="Resample groups of images, such as the frames of a video: by folder, or by a CSV file of rows"
        " image,group.",
    ),
]


def read_bootstrap(options: RunOptions) -> Bootstrap | None:
    """Return how to resample for intervals; None where they were not asked for."""
    if options.bootstrap is None:
        return None
    return adjusted(Bootstrap(), options)


def adjusted(drawn: Bootstrap, options: RunOptions) -> Bootstrap:
    """Return settings with what options change; a UsageError where that is out of range."""
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
        raise UsageError(f"--{idle[0].replace('_', '-')} needs --bootstrap N")


def _named_globs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [(name.strip(), glob.strip()) for name, _, glob in (text.partition("=") for text in texts)]
    for text, pair in zip(texts, pairs, strict=True):
        if not all(pair):
            raise click.BadParameter(
                f"expected NAME=GLOB, such as night='img/night/**'; got {quoted_value(text)}", ctx, param
            )
    return tuple(pairs)


SLICE_OPTIONS: list[click.Parameter] = [
    _noise(
        "--slice",
        metavar="NAME=GLOB",
        multiple=True,
        basic=True,
        callback=_named_globs,
        help="Also evaluate the images with matching names. Repeatable.",
    ),
    _noise(
        "--slices",
        type=InputPath(),
        metavar="FILE",
        help='TOML file of slices: [slices] with night = ["img/night/**"].',
    ),
]

GALLERY = _show(
    "--gallery",
    type=WholeNumber(0, 200),
    metavar="N",
    help="Show the N worst images with their boxes on the page of -o report.html (default 24, at most 200; 0: none).",
)
TITLE = _show(
    "--title", metavar="TEXT", help="First line of the page of -o report.html (default: names of model and data set)."
)
THUMBNAILS = _show(
    "--thumbnails",
    is_flag=True,
    default=None,
    help="Put small copies of all images into the folder of -o report/, which may travel then.",
)

SUSPECTS = _show(
    "--suspects",
    type=InputPath(),
    metavar="FILE",
    help="labels.csv of 'jaccard-eval labels': show its suspects on the page (report.html, report/) with their boxes.",
)


PROTOCOL_OPTIONS: list[click.Parameter] = [
    _rule(
        "--protocol",
        **PROTOCOL,
        basic=True,
        names=lambda: RULES,
        help="Rules: coco, voc2012, ... (default: of a benchmark's own"
        " file its own, else coco; 'jaccard-eval help protocols').",
    ),
    _rule(
        "--iou",
        metavar="IOU",
        basic=True,
        callback=parsed_by(parse_iou),
        help="IoU thresholds: 0.5 or 0.5,0.75 or 0.5:0.95:0.05.",
    ),
    _rule(
        "--max-dets",
        metavar="N,...|none",
        callback=parsed_by(parse_max_dets),
        help="Detections kept per image and class.",
    ),
    _rule(
        "--areas",
        metavar="NAME=LOW:HIGH,...",
        callback=parsed_by(parse_areas),
        help="Area ranges in square pixels, such as small=0:32^2,large=32^2:inf.",
    ),
    _rule("--class-agnostic", is_flag=True, help="Treat all classes as one."),
    _rule(
        "--difficult",
        type=OneOf(("count", "ignore")),
        help="Count objects marked difficult, or ignore them and those marked ignore. Default: as the protocol does.",
    ),
    *declared(SideOptions, "rules", _rule),
    _rule(
        "--score",
        **SCORE,
        basic=True,
        help="Also precision, recall and F1 at a score: 0.4, best-f1, precision=0.9, recall=0.8 or fppi=1.",
    ),
]

SHAPE_OPTIONS: list[click.Parameter] = [
    _rule(
        "--iou-type",
        type=OneOf(IOU_TYPES, SIMILARITIES),
        metavar="KIND",
        basic=True,
        help="By bbox, segm, boundary, keypoints, obb or probiou.",
    ),
    _rule(
        "--sigmas",
        metavar="S,...|NAME",
        callback=parsed_by(parse_sigmas),
        help="Sigma of each keypoint, where they are not COCO's 17: numbers, one for all, or a name: aic,"
        " animalpose, ap10k, atrw, crowdpose, halpe, halpe26, humanart, jhmdb, mhp, posetrack18, wholebody.",
    ),
    _rule(
        "--dilation-ratio",
        type=float,
        metavar="SHARE",
        help="Width of boundaries, as a share of the image diagonal. Default: 0.02.",
    ),
]


ENGINE_OPTIONS = declared(EngineOptions, "engine", section("Large inputs"))

GROUPS: dict[str, Sequence[click.Parameter]] = {
    "paths": PATH_OPTIONS,
    "input": [*_BOTH, *_GT, *_PRED],
    "input-of-pred": [*_BOTH, *_PRED],
    "pairing": PAIR_OPTIONS,
    "rules": PROTOCOL_OPTIONS,
    "shapes": SHAPE_OPTIONS,
    "bootstrap": BOOTSTRAP_OPTIONS,
    "slices": SLICE_OPTIONS,
    "engine": ENGINE_OPTIONS,
    "listed-classes": LISTED_CLASSES,
    "classes": CLASS_OPTIONS,
    "output": OUTPUT_OPTIONS,
    "findings": FINDING_OPTIONS,
    "gallery": [GALLERY, TITLE],
    "suspects": [SUSPECTS],
    "quiet": [QUIET, PROGRESS],
}


def options_of(group: str, *, without: Collection[str] = ()) -> list[click.Parameter]:
    """Return the options of a group, without some."""
    return [option for option in GROUPS[group] if option.name not in without]


def rule_arguments(options: RunOptions) -> dict[str, Any]:
    """Return the rules as the verbs of `api` take them; area ranges only where some are given."""
    rules = {name: getattr(options, name) for name in ("iou", "max_dets", "class_agnostic", "difficult")}
    shapes = {name: getattr(options, name) for name in ("protocol", "iou_type", "sigmas", "dilation_ratio")}
    # Not every command has those of shapes, and a verb knows what no protocol means.
    rules |= {name: value for name, value in shapes.items() if value is not None}
    if options.areas is None:
        return rules
    from jaccard_eval.data.protocol import get_protocol

    # Headline metrics use the first range: that of the protocol, unless one of its name is given.
    everything = get_protocol(options.protocol or "coco").areas[0]
    own = [area for area in options.areas if area.name == everything.name] or [everything]
    return rules | {"areas": (*own, *(area for area in options.areas if area.name != everything.name))}


_TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def two_sides(paths: Sequence[Path], options: RunOptions) -> tuple[Path, Path]:
    """Take ground truth and predictions each from its option, else from the next path."""
    context, rest = click.get_current_context(), list(paths)
    if len(rest) == 1 and not (options.gt or options.pred):
        from jaccard_eval.formats import in_parts

        rest *= 1 + in_parts(rest[0])  # which has both sides
    sides = []
    for name, given in (("GT", options.gt), ("PRED", options.pred)):
        if len(given) > 1:
            raise click.UsageError(f"{name} is given {len(given)} times. {_ONE_EACH}", context)
        if not given and not rest:
            refuse_results(paths)
            raise click.UsageError(f"Missing argument '{name}'.", context)
        sides.append(given[0] if given else rest.pop(0))
    if rest:
        raise click.UsageError(f"Got unexpected extra argument ({rest[0]}). {_ONE_EACH}", context)
    return sides[0], sides[1]


_ONE_EACH = (
    "GT and PRED are one path each: compare several models with 'jaccard-eval compare GT PRED PRED ...', and join the"
    " parts of one run to one file first"
)


def typed_options(*groups: str, without: Collection[str] = ()) -> list[str]:
    """Return what was typed, or set by a variable; asked of click, as an option given at its default counts too."""
    source = click.get_current_context().get_parameter_source
    shared = (option for group in groups for option in options_of(group, without=without))
    return [option.opts[0] for option in shared if source(option.name or "") in _TYPED]


def refuse_options_of_sides() -> None:
    """Raise a usage error when saved results come with rules, or ways to read, that they have themselves."""
    # Where images lie changes no number of a saved result: it only shows them. A score means another thing here.
    if given := typed_options("rules", "shapes", "input", "pairing", without=("images", "score")):
        raise click.UsageError(
            f"{', '.join(given)}: a saved result has rules and options of its own; name ground truth and predictions"
            " instead",
            click.get_current_context(),
        )


def run_on_sides(verb: Callable[..., Any], *sides: Path, options: RunOptions, **settings: Any) -> Any:
    """Run a verb of `api` on both sides as the options read them; its result also has what is odd about class names."""
    log = FindingLog()
    return with_findings(log, verb(*sides, **settings, **side_arguments(options, log)))


def with_findings(log: FindingLog, result: Any) -> Any:
    """Return a result with what was found on the way to it before its own findings."""
    return replace(result, findings=(*log.findings(), *result.findings))


def side_arguments(options: RunOptions, log: FindingLog) -> dict[str, Any]:
    """Return how the verbs of `api` read both sides, choose from them and bring them together."""
    gt_options, pred_options = read_options(options, log)
    given = {field.name: getattr(options, field.name) for field in fields(SideOptions)}
    return given | {"gt_options": gt_options, "pred_options": pred_options}


def read_options(options: RunOptions, log: FindingLog) -> tuple[ReadOptions, ReadOptions]:
    """Return how to read ground truth and predictions; what is odd about a list of names goes to `log`."""
    names = {role: vars(options).get(f"{role}_names") or options.names for role in ROLES}
    folders = {role: vars(options).get(f"{role}_images") or options.images for role in ROLES}
    # Most often both sides have one list of names and one folder: what is odd about them is to be reported once.
    loaded: dict[str | None, Any] = {None: None}
    for spec in filter(None, dict.fromkeys(names.values())):
        from jaccard_eval.reading.names import load_names

        loaded[spec] = load_names(spec, log)
    indexed: dict[Path | None, Any] = {None: None}
    for folder in filter(None, dict.fromkeys(folders.values())):
        from jaccard_eval.reading.images import ImageFolder

        indexed[folder] = ImageFolder(folder)
    given = vars(options)
    # Ground truth with an assumed score would be read as predictions; these have nothing of such files but names.
    not_of = {"gt": ("assume_score",), "pred": ("hierarchy", "image_labels")}
    gt, pred = (
        ReadOptions(
            **{
                known.name: value
                for known in fields(ReadOptions)
                for value in (given.get(f"{role}_{known.name}", given.get(known.name)),)
                if value is not None and known.metadata and known.name not in not_of[role]
            }
            | {"role": role, "names": loaded[names[role]], "images": indexed[folders[role]]}
        )
        for role in ROLES
    )
    return gt, pred


ARCHIVE = ".npz"  # of saved runs, which list every detection


def choose_engine(gt: Path, pred: Path, options: RunOptions, lacking: Callable[[], list[str]]) -> dict[str, Any]:
    """Return the engine that evaluates two inputs, and its options, as `evaluate` takes them.

    What is `lacking` on the disk keeps in memory what nobody sends there.
    """
    from jaccard_eval.data.protocol import BOXES
    from jaccard_eval.engine import path_of, takes_disk

    names = {field.name for field in fields(EngineOptions)} - {"engine", "client"}
    given = {name: value for name in sorted(names) if (value := vars(options).get(name)) is not None}
    engine = EngineOptions(engine=options.engine, **given)
    iou_type = options.iou_type or BOXES  # another one may be found in the files
    on_disk = takes_disk(gt, pred, engine, iou_type)
    if on_disk and engine.is_automatic and (asked := lacking()):
        on_disk = False
        if not options.quiet:
            from jaccard_eval.engine.choice import in_spite_of_memory

            note = in_spite_of_memory({path_of(gt), path_of(pred)}, engine, asked, iou_type)
            streams.say(f"{streams.tagged('note[engine]', 'plain')}: {note}")
    if options.engine == "dask":
        _report_cluster()
    if on_disk:
        from jaccard_eval.engine.scratch import KEPT, left_behind

        def report_kept() -> None:
            for folder in KEPT:
                streams.say(f"{streams.tagged('note[scratch-kept]', 'plain')}: {folder}")

        if not options.quiet:
            click.get_current_context().call_on_close(report_kept)  # after a failure, too

        left = left_behind(options.scratch)
        if left and not options.quiet:
            streams.say(f"{streams.tagged('note[scratch-left]', 'plain')}: {left}")
    found = "disk" if on_disk else "memory"
    return {"engine": "dask" if options.engine == "dask" else found, **given}


def _report_cluster() -> None:
    """Print what happens to a cluster, a line each."""
    import logging  # slow to load

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            streams.say(f"{streams.tagged('note[cluster]', 'plain')}: {record.getMessage()}")

    logging.getLogger("jaccard_eval").addHandler(Lines())


def refuse_outputs(outputs: Sequence[Output], *, scratch: object, errors: bool = True) -> None:
    """Raise a UsageError for files that need the match of every detection."""
    from jaccard_eval.engine.choice import not_on_disk

    if refused := files_of_matches(outputs, errors=errors):
        raise not_on_disk(refused, scratch)


def files_of_matches(outputs: Sequence[Output], *, errors: bool = True) -> list[str]:
    """Return the names of those files that need the match of every detection; pages can do without `errors`."""
    return [str(output.path) for output in outputs if _needs_matches(output, errors=errors)]


def _needs_matches(output: Output, *, errors: bool) -> bool:
    reporter = output.reporter
    # Tables of confusions need no more than these.
    is_of_errors = reporter.errors and (errors or bool(reporter.names)) and not reporter.confusion
    return reporter.images or is_of_errors or output.path.suffix.lower() == ARCHIVE


def refuse_gates(gates: Gates | None) -> None:
    """Raise a UsageError for rules that resample the images."""
    if names := rules_of_matches(gates):
        detail = f"{', '.join(names)}: significance is not available with the disk engine"
        raise UsageError(f"{detail}. Pass --engine memory, or gate on the drop alone: --fail-drop.")


def rules_of_matches(gates: Gates | None) -> list[str]:
    """Return the rules that resample the images."""
    return [rule.id for rule in gates.rules if rule.significance] if gates is not None else []


TABLE = "slices"


def read_slices(options: RunOptions) -> tuple[Slice, ...]:
    """Return the slices of the options, then those of the file; globs of one name in the options are one slice."""
    path = options.slices
    if path is None and not options.slice:
        return ()
    from jaccard_eval.metrics.detection import require_names

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
    # A name in the options and in the file would be two rows that nobody can distinguish.
    require_names(slices)
    return slices
