"""The options that commands share, in the groups that the help shows, and what they mean to the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from jaccard_eval.cli import HelpContext, streams
from jaccard_eval.cli.ci import SYSTEMS, announce_failure
from jaccard_eval.cli.config import apply_config, configured
from jaccard_eval.cli.inputs import IMAGES, LABELS, AnyPath, InputPath, InputText, OutputPath, refuse_results
from jaccard_eval.cli.parse import (
    SORT_KEYS,
    OneOf,
    RunOptions,
    WholeNumber,
    is_map_file,
    parse_class_map,
    parse_number,
    parse_order,
    parse_score,
    parse_sort,
    parse_whole,
    parsed_by,
)
from jaccard_eval.cli.progress import CHOICES, shown_progress
from jaccard_eval.cli.streams import choose_color
from jaccard_eval.codes import CODES
from jaccard_eval.data.known_protocols import RULES
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.options import AIMS, ANGLES, BEST_F1, BY_FOLDER, MASK_AXES, exempting
from jaccard_eval.text import did_you_mean, quoted_value

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jaccard_eval.options import Bootstrap

PATH = AnyPath()
BOX_ENCODINGS = ("xywh", "xyxy", "cxcywh", "xxyy", "yxyx")
UNITS = ("px", "norm")
ORIGINS = ("0", "1")
IMAGE_WAYS = ("id", "name", "path", "basename", "stem", "case", "decorated", "number", "affix", "id+1", "id-1")
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

    def __init__(self, *args: Any, section: str, basic: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section, self.basic = section, basic

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

    def __init__(self, name: str, *, group: str, params: Sequence[click.Parameter], **settings: Any) -> None:
        self.group = group  # one of `cli.GROUPS`
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
        super().__init__(name, params=[*params, help_all], **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; of an option that there is not, those that are near are named, without regard to dashes."""
        try:
            return super().parse_args(ctx, list(args))  # which the parser empties
        except click.NoSuchOption as error:
            known = {name.lstrip("-"): name for name in _visible_names(self.get_params(ctx))}
            meant = did_you_mean(error.option_name.lstrip("-"), known, show=known.__getitem__)
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

    def __init__(self, name: str, *, params: Sequence[click.Parameter], **settings: Any) -> None:
        super().__init__(name, params=[*params, *CONFIG_OPTIONS], **settings)

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
        for note in () if options.quiet else configured(ctx):
            streams.say(str(note))
        if options.verbose and options.quiet:
            raise click.UsageError("--verbose and --quiet exclude each other; give one of them", ctx)
        sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
        # A configuration holds its options for all runs.
        held = [name for name, source in sources.items() if source is ParameterSource.DEFAULT_MAP]
        try:
            with shown_progress(options), exempting(held):
                return ctx.invoke(function, options, **own)
        except JaccardEvalError as error:
            announce_failure(error, options)
            raise


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


def removed_option(name: str, instead: str) -> click.Option:
    """Return an option that was removed, with a value or without: its message names what to use instead."""

    def refuse(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
        if given is not None and not ctx.resilient_parsing:
            raise click.UsageError(f"{name} was removed; {instead}", ctx)

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
SCORE: dict[str, Any] = {
    "metavar": "SCORE",
    "callback": parsed_by(parse_score),
    "shell_complete": completed_from(lambda: [BEST_F1, *(f"{aim}=" for aim in AIMS)]),
}


def _side_options(side: str, what: str) -> list[click.Parameter]:
    """Return how one side is read, where looking at it does not settle it."""
    return [
        _input(
            f"--{side}-format",
            metavar="FORMAT",
            basic=True,
            callback=parsed_by(_format_name),
            shell_complete=completed_from(known_formats),
            help=f"Format of the {what} ('jaccard-eval formats').",
        ),
        _input(
            f"--{side}-box",
            type=OneOf(BOX_ENCODINGS),
            metavar="ENCODING",
            basic=True,
            help="Box encoding: " + ", ".join(BOX_ENCODINGS) + ".",
        ),
        _input(f"--{side}-units", type=OneOf(UNITS), help="Pixels, or fractions of the image size."),
        _input(f"--{side}-origin", type=OneOf(ORIGINS), help="Index of the first pixel: 0, or 1 as in VOC."),
        _input(
            f"--{side}-resized",
            metavar="HOW",
            callback=parsed_by(_resized),
            help="Map boxes back from resized images: stretch:640x512 (width x height), letterbox:640, pad:640,"
            " short:800,1333, scale:0.5, offset:-20,0, rect:640, mirror, rot90; join with +.",
        ),
        # Not False: what reads one input takes any option of a side that is given for a word on which side it is.
        _input(
            f"--{side}-drop-inverted", is_flag=True, default=None, help="Ignore boxes with negative width or height."
        ),
        _input(f"--{side}-names", **NAMES, help="Like --names, for this side only."),
        _input(f"--{side}-images", type=InputPath(IMAGES), metavar="DIR", help="Like --images, for this side only."),
        _input(
            f"--{side}-columns",
            metavar="LAYOUT",
            help="Columns: a layout of text files (box-conf), or names of a table's columns (class=a,score=b).",
        ),
        _input(
            f"--{side}-angle",
            type=OneOf(ANGLES),
            metavar="ANGLE",
            help="Angles of oriented boxes: " + ", ".join(ANGLES) + ".",
        ),
        _input(
            f"--{side}-keypoint-order",
            metavar="N,...",
            callback=parsed_by(parse_order),
            help="Which point of the file each keypoint is, from 0: 0,2,1 exchanges the last two of three.",
        ),
        _input(
            f"--{side}-mask-axes",
            type=OneOf(tuple(MASK_AXES)),
            metavar="AXES",
            help="What masks exchange: yx (polygons); of pixels transposed, row-major, or wh (size of RLE).",
        ),
    ]


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

INPUT_OPTIONS: list[click.Parameter] = [
    _input("--names", **NAMES, basic=True, help="Class names by index."),
    _input(
        "--images",
        type=InputPath(IMAGES),
        metavar="DIR",
        basic=True,
        help="Image folder, for the list of images, their sizes, and to show them.",
    ),
    _input(
        "--split", metavar="NAME", default="val", show_default=True, help="Split to read, if the data set has splits."
    ),
    _input(
        "--skip-invalid",
        is_flag=True,
        help="Skip records and lines that cannot be used, and count them.",
    ),
    _input(
        "--hierarchy",
        type=InputPath(),
        metavar="FILE",
        help="Open Images: hierarchy of classes (JSON), if it is not next to GT.",
    ),
    _input(
        "--image-labels",
        type=InputPath(),
        metavar="FILE",
        help="Open Images: verified image-level labels (CSV), if not next to GT.",
    ),
    _input(
        "--class-descriptions",
        type=InputPath(),
        metavar="FILE",
        help="Open Images: names of classes (CSV), if not next to the tables.",
    ),
    _input("--assume-score", **NUMBER, help="Score of predictions without one."),
    *_side_options("gt", "ground truth"),
    *_side_options("pred", "predictions"),
]

PAIR_OPTIONS: list[click.Parameter] = [
    _input(
        "--match-images",
        type=OneOf(IMAGE_WAYS),
        metavar="HOW",
        help=f"How to pair images: by {', '.join(IMAGE_WAYS)} (the prediction's id plus or minus 1).",
    ),
    _input(
        "--extra-images",
        type=OneOf(("error", "ignore", "empty")),
        default="error",
        help="Images that only the predictions name: stop (error), ignore them, or count them as images without"
        " objects (empty). Default: error if the ground truth lists its images, else empty.",
    ),
    _input(
        "--images-in-common",
        is_flag=True,
        help="Evaluate only images that both sides list; a warning counts the others.",
    ),
    _input(
        "--class-map",
        type=InputText(is_map_file),
        metavar="MAP",
        basic=True,
        shell_complete=completed_from(lambda: ["auto"], or_files=True),
        callback=parsed_by(parse_class_map),
        help="Map prediction classes: pred=gt,..., a .json or .yaml file, id+1, or auto (by overlap).",
    ),
    _input(
        "--gt-class-map",
        type=InputText(is_map_file),
        metavar="MAP",
        callback=parsed_by(partial(parse_class_map, rules=())),
        help="Merge or rename classes of the ground truth: car=vehicle,truck=vehicle, or a .json or .yaml file.",
    ),
]


REMOVED_CONF = removed_option(
    "--conf", "use --score for precision, recall and F1 at a threshold, --score-min to filter predictions."
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
    from jaccard_eval.options import Bootstrap

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
