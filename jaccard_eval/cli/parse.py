"""What a command line means: texts as thresholds, areas, lists and mappings, and the options that commands share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, SettingsError, Where, as_settings
from jaccard_eval.options import BEST_F1, SideOptions
from jaccard_eval.text import did_you_mean, is_numeral, quoted_value, shown_json

if TYPE_CHECKING:
    from jaccard_eval.data.protocol import AreaRange
    from jaccard_eval.features.gates.rules import Rule

SORT_KEYS = ("name", "gt", "pred")
MAX_THRESHOLDS = 1001  # a step of 0.001 over the whole range; a finer one is a slip
_SQUARE = re.compile(r"(?P<root>.+?)(²|\^2|\*\*2)")
_AREA_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_MAP_FIX = "Map each prediction class to one ground-truth class, both as text."
_MAP_SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)  # methods of 70 fields cost start-up time
class RunOptions(SideOptions):
    """The options that commands share, by the names of their parameters; a command that lacks one has its default."""

    gt: tuple[Path, ...] = ()
    pred: tuple[Path, ...] = ()

    names: str | None = None
    images: Path | None = None
    split: str = "val"
    assume_score: float | None = None
    gt_box: str | None = None
    gt_units: str | None = None
    gt_origin: str | None = None
    gt_names: str | None = None
    gt_images: Path | None = None
    gt_columns: str | None = None
    pred_box: str | None = None
    pred_units: str | None = None
    pred_origin: str | None = None
    pred_names: str | None = None
    pred_images: Path | None = None
    pred_columns: str | None = None

    protocol: str = "coco"
    iou: tuple[float, ...] | None = None
    max_dets: tuple[int, ...] | None = None
    areas: tuple[AreaRange, ...] | None = None
    class_agnostic: bool = False
    score: float | str | None = None

    bootstrap: int | None = None
    confidence: float | None = None
    seed: int | None = None
    group_by: str | None = None
    slice: tuple[tuple[str, str], ...] = ()
    slices: Path | None = None

    fail_under: tuple[Rule, ...] = ()
    fail_over: tuple[Rule, ...] = ()
    fail_drop: tuple[Rule, ...] = ()
    fail_significant_drop: tuple[Rule, ...] = ()
    fail_inferior: tuple[Rule, ...] = ()
    config: Path | None = None
    isolated: bool = False
    baseline: Path | None = None
    allow_missing_baseline: bool = False
    update_baseline: bool = False
    metric: tuple[tuple[str, float], ...] = ()
    metrics_file: Path | None = None
    exit_zero: bool = False

    per_class: bool = False
    sort: str | None = None
    output: tuple[Path, ...] = ()
    as_json: bool = False
    color: str = "auto"
    ci: str = "off"

    strict: bool = False
    allow: tuple[str, ...] = ()
    quiet: bool = False


def parsed_by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return a click callback that parses an option's text; a UsageError then names the option."""

    def callback(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return parse(text)
        except SettingsError:  # names its file
            raise
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


class OneOf(click.Choice[str]):
    """A choice that suggests the word that was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice."""
        if value not in self.choices:
            known = ", ".join(self.choices)
            self.fail(
                f"{quoted_value(value)} is not one of {known}.{did_you_mean(str(value), self.choices)}", param, ctx
            )
        return str(value)


def parse_number(text: str) -> float:
    """Return a finite decimal number.

    Raises
    ------
    UsageError
        When the text is not one; other scripts' digits, underscores, ``nan`` and ``inf`` are refused.
    """
    text = text.strip()
    number = float(text) if is_numeral(text) else math.nan
    if not math.isfinite(number):
        raise UsageError(f"{quoted_value(text)} is not a number")
    return number


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return numbers from ``1,2.5``; ``none`` is an empty tuple."""
    return () if text.strip().lower() == "none" else tuple(parse_number(part) for part in text.split(","))


def parse_whole(text: str) -> int:
    """Return a whole number from 0 on."""
    if not re.fullmatch(r"\d{1,18}", text.strip(), re.ASCII):
        raise UsageError(f"{quoted_value(text)} is not a whole number")
    return int(text)


def parse_iou(text: str) -> tuple[float, ...]:
    """Return IoU thresholds from ``0.5``, ``0.5,0.75`` or ``start:stop:step``, the stop included.

    The values of a range are those of ``numpy.linspace``, so that ``0.5:0.95:0.05`` equals COCO's to the last bit.

    Raises
    ------
    UsageError
        When a number is none, or the step does not lead from start to stop.
    """
    if ":" not in text:
        return tuple(parse_number(part) for part in text.split(","))
    parts = [parse_number(part) for part in text.split(":")]
    if len(parts) != 3:
        raise UsageError(f"a range of thresholds is start:stop:step, such as 0.5:0.95:0.05; got {quoted_value(text)}")
    return _linspace(*parts)


def _linspace(start: float, stop: float, step: float) -> tuple[float, ...]:
    import numpy as np

    if not (step > 0 and stop >= start):
        raise UsageError(f"a range of thresholds ascends with a step above 0; got {start:g}:{stop:g}:{step:g}")
    intervals = (stop - start) / step
    if intervals >= MAX_THRESHOLDS:
        raise UsageError(f"{start:g}:{stop:g}:{step:g} has more than {MAX_THRESHOLDS:,} thresholds; take a wider step")
    if abs(intervals - round(intervals)) > 1e-6:
        last = start + math.floor(intervals) * step
        raise UsageError(f"steps of {step:g} from {start:g} do not meet {stop:g}; stop at {last:g} instead?")
    return tuple(np.linspace(start, stop, round(intervals) + 1).tolist())


def parse_max_dets(text: str) -> tuple[int, ...]:
    """Return caps on detections from ``100`` or ``1,10,100``; ``none`` is no cap, an empty tuple."""
    if text.strip().lower() == "none":
        return ()
    caps = [parse_number(part) for part in text.split(",")]
    broken = [cap for cap in caps if cap != int(cap) or cap < 1]
    if broken:
        raise UsageError(f"caps on detections are whole numbers from 1 on, or 'none'; got {quoted_value(text)}")
    return tuple(map(int, caps))


def parse_areas(text: str) -> tuple[AreaRange, ...]:
    """Return area ranges from ``small=0:32²,large=32²:inf``; a square is written ``32²``, ``32^2`` or ``32**2``."""
    from jaccard_eval.data.protocol import AreaRange

    return tuple(AreaRange(*_area(item.strip())) for item in text.split(","))


def _area(item: str) -> tuple[str, float, float]:
    name, _, bounds = item.partition("=")
    low, colon, high = bounds.partition(":")
    if not _AREA_NAME.fullmatch(name) or not colon:
        raise UsageError(
            f"an area range is name=low:high in square pixels, such as small=0:32²; got {quoted_value(item)}"
        )
    return name, _square_pixels(low), _square_pixels(high)


def _square_pixels(text: str) -> float:
    if text.strip().lower() == "inf":
        return math.inf
    square = _SQUARE.fullmatch(text.strip())
    return parse_number(square["root"]) ** 2 if square else parse_number(text)


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list; a name with a comma stands in double quotes."""
    import csv

    try:
        names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True, strict=True)))
    except (csv.Error, StopIteration):
        names = ()
    if not names or not all(names):
        raise UsageError(f"expected names separated by commas, got {quoted_value(text)}")
    return names


def parse_score(text: str) -> float | str:
    """Return the score of an operating point: a number, or ``best-f1``."""
    if text == BEST_F1:
        return text
    if is_numeral(text.strip()):
        return parse_number(text)
    raise UsageError(f"expected a number or {BEST_F1}, got {quoted_value(text)}.{did_you_mean(text, [BEST_F1])}")


def parse_sort(text: str) -> str:
    """Return the column that classes are sorted by: "name", "gt", "pred" or a metric."""
    from jaccard_eval.data.metricref import MetricRef

    if text not in SORT_KEYS:
        MetricRef.parse(text)
    return text


def parse_class_map(text: str) -> dict[str, str] | str:
    """Return prediction class -> ground-truth class, from ``cat=kitty,dog=hound`` or a JSON or YAML file, or a rule.

    A rule is a name such as ``id+1`` or ``auto``, and is returned as it is.

    Raises
    ------
    UsageError
        When an item is no pair and no rule is called so, or a class is mapped twice.
    SettingsError
        When the file cannot be read, or is no mapping of texts.
    """
    if is_map_file(text):
        return _class_map_of_file(Path(text))
    if "=" not in text:
        return _named_rule(text.strip())
    pairs = [_pair(item) for item in parse_names(text)]
    repeated = _repeated(pairs)
    if repeated:
        raise UsageError(f"classes mapped more than once: {repeated}")
    return dict(pairs)


def is_map_file(text: str) -> bool:
    """Whether a mapping of classes is the path of a file."""
    return Path(text).suffix.lower() in _MAP_SUFFIXES and "=" not in text


def _named_rule(name: str) -> str:
    from jaccard_eval.data.classmaps import class_map_names

    known = class_map_names()
    if name not in known:
        raise UsageError(
            f"expected pairs such as cat=kitty, a .json or .yaml file, or one of {', '.join(known)}; "
            f"got {quoted_value(name)}.{did_you_mean(name, known)}"
        )
    return name


def _pair(item: str) -> tuple[str, str]:
    pred, equals, gt = (part.strip() for part in item.partition("="))
    if not (pred and equals and gt):
        raise UsageError(f"expected prediction=ground-truth pairs such as cat=kitty, got {quoted_value(item)}")
    return pred, gt


def _repeated(pairs: Iterable[tuple[str, Any]]) -> str:
    counts = Counter(name for name, _ in pairs)
    return ", ".join(quoted_value(name) for name, count in counts.items() if count > 1)


@as_settings()
def _class_map_of_file(path: Path) -> dict[str, str]:
    from jaccard_eval.reading.yaml import read_yaml_mapping

    mapping = _read_json_object(path) if path.suffix.lower() == ".json" else read_yaml_mapping(path)
    odd = [name for name, gt in mapping.items() if not isinstance(gt, str)]
    if odd:
        detail = f"expected a ground-truth class as text, got {shown_json(mapping[odd[0]])}"
        raise DataError.single("class-map", Where(str(path), field=odd[0]), detail, fix=_MAP_FIX)
    return mapping


def _read_json_object(path: Path) -> dict[str, Any]:
    from jaccard_eval.reading.files import read_text
    from jaccard_eval.reading.json import RepeatedKeys, parse_json

    content = parse_json(path, read_text(path))
    if isinstance(content, RepeatedKeys):
        problem = f"classes mapped more than once: {', '.join(map(quoted_value, content.repeated))}"
    elif isinstance(content, dict):
        return content
    else:
        problem = f"expected one JSON object, got {shown_json(content)}"
    raise DataError.single("class-map", Where(str(path)), problem, fix=_MAP_FIX)
