"""What a report contains, before any medium: sections of tables, facts, notes and charts.

Cells, charts and texts hold values as they are. A reporter formats cells by the kind of their column, escapes users'
strings for its medium, and draws charts or omits them. The report of a result is put together by the module
of `features` that the result names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Literal

from jaccard_eval.data.document import DataTable
from jaccard_eval.errors import UsageError
from jaccard_eval.frozen import dataclass
from jaccard_eval.registry import provided
from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.numbers import EXACT, UNDEFINED, delta_text, metric_text, size_text, threshold_text
from jaccard_eval.text import broken, columns_of, encodable, printable

Interval = tuple[float, float]
Look = Literal["plain", "good", "bad", "warn", "dim"]  # what a medium with colours shows in one of its own
Kind = Literal[
    "text", "name", "path", "word", "count", "metric", "ratio", "delta", "interval", "size", "threshold", "drawn"
]
TEXT_KINDS = ("text", "name", "path", "word")  # aligned left, all others right


@dataclass(frozen=True, slots=True)
class Marked:
    """A cell with a look of its own, whatever the kind of its column."""

    cell: str | int | float | Interval
    look: Look


@dataclass(frozen=True, slots=True)
class Drawn:
    """A cell of a page that shows a value between two ends, and its interval, next to the number.

    A bar begins at 0; a dot stands on a line.
    """

    value: float
    interval: Interval | None = None
    ends: Interval = (0.0, 1.0)
    look: Literal["bar", "dot"] = "bar"


@dataclass(frozen=True, slots=True)
class Linked:
    """A text of a page that leads to another, by where that lies; empty where there is none."""

    text: str
    place: str


DataCell = str | int | float  # a float is NaN where undefined
Cell = DataCell | Interval | Marked | Drawn | Linked  # a text stands as it is in a column of any kind
Rows = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column and the kind of its cells, which decides how they read.

    text : may wrap where there is little room; in the first column of a table, a name
    name : of a class or slice: wraps last
    path : of a file or image: may lose its first folders
    word : stays whole, as numbers of all kinds do
    count : a whole number, thousands parted
    metric : four decimals, 0 and 1 only when exact
    ratio : three decimals, 0 and 1 only when exact
    delta : a difference of metrics, with its sign; more is better
    interval : the bounds of such a difference
    size : px, one decimal
    threshold : an IoU or score, two decimals where these suffice
    drawn : what a page draws of the number before it

    On a page, cells of a column with a key follow the slider.
    """

    title: str
    kind: Kind = "text"
    key: str = ""


def columns(kind: Kind, *titles: str) -> tuple[Column, ...]:
    """Return columns of one kind."""
    return tuple(Column(title, kind) for title in titles)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below their columns; one that is foldable may stand on a screen in two halves side by side.

    A page finds a row again by its key, where rows have any. A screen draws the column that `bars` names, of values
    from 0 to 1, as bars as well.
    """

    columns: tuple[Column, ...]
    rows: Rows
    foldable: bool = False
    bars: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Facts, each a term and its text; the look is that of the terms."""

    pairs: tuple[tuple[str, str], ...]
    look: Look = "plain"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about what stands above it."""

    text: str
    look: Look = "dim"


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines of characters that make a drawing, and the same in ASCII for streams that hold no more."""

    lines: tuple[str, ...]
    ascii_lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction of a chart; with `names`, the places 0, 1, ... bear them in place of numbers."""

    title: str = ""
    ends: tuple[float, float] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Values (n,) at places (n,); of a matrix, a row of counts `y` at the places 0 to n - 1.

    A series looks as the chart's kind does, or else as `look` does: "guide" is a line to read others by, "curve" one
    without marks, "faint" one of many behind what matters. Those of one `group` share a colour, from faint to full. A
    page finds a series again by its `key`, since names need not be unique.
    """

    name: str
    y: Collection[float]
    x: Collection[float] = ()
    look: Literal["", "steps", "points", "dashes", "guide", "faint", "curve"] = ""
    group: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A chart, for media that can draw; the tables next to it have its numbers.

    Bars of several series stand on each other, and lie where the y axis has names. In a matrix the series are rows,
    from top to bottom, and a cell is as dark as its share of its row.
    """

    kind: Literal["line", "bar", "matrix", "scatter"]
    title: str
    series: tuple[Series, ...]
    x: Axis
    y: Axis


SHOWN_BARS = 20  # of a chart by names


def bars_by_name(title: str, axis: str, bars: Sequence[tuple[str, float]]) -> Chart:
    """Return lying bars, the first on top; no more than can be read."""
    shown = bars[:SHOWN_BARS]
    title = title if len(shown) == len(bars) else f"{title} (first {len(shown)} of {len(bars):,})"
    names = tuple(name for name, _ in shown)
    return Chart("bar", title, (Series("", tuple(value for _, value in shown)),), x=Axis(axis), y=Axis(names=names))


BoxState = Literal["found", "false", "missed", "ignored"]


STATE_TITLES: Mapping[BoxState, str] = {
    "found": "found",
    "false": "false positive",
    "missed": "missed",
    "ignored": "ignored",
}


CHANGE_TITLES = {"lost": "lost", "found": "newly found", "suspect": "suspect"}


Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class DrawnShape:
    """What is drawn in place of an upright box, in px: closed outlines, or points of a pose and lines between some."""

    rings: tuple[Points, ...] = ()
    is_box: bool = False  # whether the outline is that of an oriented box
    points: Points = ()
    lines: tuple[Points, ...] = ()  # of two points each


@dataclass(frozen=True, slots=True)
class GalleryBox:
    """A box (left, top, width, height in px) with its class, and what it is once it shows.

    A detection is found, false or ignored and shows from its score down. An object is missed above the `score` of the
    detection that finds it, which is NaN where none does, or it is ignored at any score.
    """

    state: BoxState
    label: str
    xywh: tuple[float, float, float, float]
    score: float = math.nan
    iou: float = math.nan  # with its partner
    is_object: bool = False
    side: str = ""  # of a comparison: whose it is, by name
    second: bool = False  # and whether that is the second side
    # What became of an object from the first side to the other; or that it is a suspected label
    change: Literal["", "lost", "found", "suspect"] = ""
    drawing: DrawnShape | None = field(default=None, repr=False)
    place: int = -1  # among the boxes that a page has as columns; of a suspect, in their list

    def shows_at(self, score: float) -> bool:
        """Whether it is there at a score threshold; at NaN all are."""
        if math.isnan(score):
            return True
        return self.state == "ignored" or not self.score >= score if self.is_object else self.score >= score


@dataclass(frozen=True, slots=True)
class GalleryImage:
    """An image of a gallery: its name, width and height in px that the boxes are of, and its boxes.

    The thumbnail is a JPEG of any size that shows all of the image; empty where there is no file to show.
    """

    name: str
    size: tuple[int, int]
    boxes: tuple[GalleryBox, ...]
    thumbnail: bytes = field(default=b"", repr=False)
    row: int = -1  # of the image in the result
    caption: str = ""  # in place of the counts of its boxes
    file: str = ""  # next to the page, in place of the thumbnail

    def counts_at(self, score: float) -> dict[BoxState, int]:
        """Count the boxes that show at a score by their state."""
        return dict(Counter(box.state for box in self.boxes if box.shows_at(score)))


@dataclass(frozen=True, slots=True)
class GalleryTab:
    """Some of a gallery's images, by their rows, in an order of their own."""

    title: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gallery:
    """Images with boxes; those of a comparison, which has no one score, show all boxes that they have."""

    images: tuple[GalleryImage, ...]
    tabs: tuple[GalleryTab, ...] = ()
    score: float = math.nan  # that boxes show at first
    iou: float = math.nan  # that they are judged at
    measure: str = "IoU"  # what is called so
    made_with: str = ""  # the library that thumbnails depend on, and its version
    notes: tuple[str, ...] = ()  # on images that could not be shown
    legend: tuple[tuple[str, str], ...] = ()  # of label maps: classes and their colours

    @property
    def toggles(self) -> tuple[tuple[str, str], ...]:
        """The kinds of boxes that can be hidden, each with its title."""
        boxes = [box for image in self.images for box in image.boxes]
        there = {box.state for box in boxes}
        states = tuple((state, title) for state, title in STATE_TITLES.items() if state != "ignored" or state in there)
        changes = {box.change for box in boxes}
        if changes == {"suspect"}:  # which all of them are
            return ()
        changed = tuple((f"was-{change}", title) for change, title in CHANGE_TITLES.items() if change in changes)
        return (*states, *changed, *self.sides) if boxes else ()

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Of a comparison, the first and the second side by their names."""
        boxes = (box for image in self.images for box in image.boxes if box.side)
        return tuple(sorted({("second" if box.second else "first", box.side) for box in boxes}))

    def count_text(self, counts: Mapping[BoxState, int]) -> str:
        """Return counts in one line, what is wrong first."""
        return ", ".join(f"{counts.get(state, 0):,} {state}" for state in ("missed", "false", "found"))

    @property
    def names(self) -> tuple[str, ...]:
        """The classes of its boxes, in the order in which they first occur."""
        return tuple(dict.fromkeys(box.label for image in self.images for box in image.boxes))

    def counted(self) -> KeyValues:
        """Return how many boxes of each state the images have, for media without figures."""
        counts = ((image.name, image.counts_at(self.score)) for image in self.images)
        return KeyValues(
            tuple((name, ", ".join(f"{n:,} {state}" for state, n in found.items())) for name, found in counts)
        )


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding: its code, what was found and where, how to fix it, and the table of its evidence."""

    code: str
    lines: tuple[str, ...]
    fix: str = ""
    table: Table | None = None
    look: Look = "plain"


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """Data that the script of a page reads, plain types all the way down; media without scripts have no use for it."""

    key: str
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Album:
    """Images to draw at full size, at a score and IoU; `open` returns the pixels of one, None where there are none."""

    images: tuple[GalleryImage, ...]
    open: Callable[[GalleryImage], Any]
    score: float
    iou: float
    measure: str = "IoU"  # what is called so


@dataclass(frozen=True, slots=True, kw_only=True)
class Explorer:
    """All images of one model, or of two on the same objects, for a folder that a browser opens."""

    title: str
    models: Mapping[str, Mapping[str, Any]]  # what the script reads of each: columns of all boxes, and numbers
    images: Any  # where the files are; None where nobody knows
    numbers: Report  # the page next to it
    pictures: Sequence[str] | None = None  # of each image, where they are files of the folder
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # these
    note: str = ""  # on images that are not drawn


TextBlock = Table | KeyValues | Note | Drawing
Block = TextBlock | Chart | Gallery | Remark | Live


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a report.

    On a page, its key is its anchor, and names the template that draws it if there is one; one that is folded opens
    when asked to.
    """

    title: str
    blocks: tuple[Block, ...]
    key: str = ""
    folded: bool = False

    def in_text(self, *, verbose: bool = True) -> Iterator[TextBlock]:
        """Yield what media without figures show: charts have their numbers in the tables next to them.

        Columns in which nothing is defined are details.
        """
        for block in self.blocks:
            if isinstance(block, Gallery):
                yield block.counted()
            elif isinstance(block, Remark):
                texts = (*block.lines, *([block.fix] if block.fix else []))
                yield KeyValues(tuple((block.code, text) for text in texts), block.look)
                if block.table is not None:
                    yield block.table
            elif isinstance(block, Table) and not verbose:
                yield _without_undefined(block)
            elif not isinstance(block, Chart | Live):
                yield block


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a line, and how it looks."""

    text: str
    look: Look = "plain"


@dataclass(frozen=True, slots=True)
class Headline:
    """The result in one line, such as ``FAILED  AP50 0.6915 < 0.80``: the last line of a report in text.

    It is all that ``--quiet`` leaves of a report. Its spans are joined as they are, blanks are their own.
    """

    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report; the signature, where there is one, holds all that can change a number.

    A marker is hidden in media that can hide it: a program finds the comment again that it is to replace. Screens do
    without the usual parts of the signature. The name is that of what was evaluated, for the first line of a page.
    """

    title: str
    sections: tuple[Section, ...]
    signature: str = ""
    marker: str = ""
    headline: Headline | None = None
    usual: tuple[str, ...] = ()
    name: str = ""


def build_report(result: Reportable, options: ReportOptions) -> Report:
    """Return the report of `result` for people."""
    report: Report = feature_of(result).build_report(result, options)
    return report


def feature_of(result: Reportable) -> Any:
    """Return the module that reports a result, which lies above this one."""
    return provided("features").report_of(result.reported_by)


def build_charts(result: Reportable) -> Sequence[Chart]:
    """Return the charts of a figure of `result`: by the function of its feature, else those of the report."""
    feature = feature_of(result)
    if hasattr(feature, "build_charts"):
        charts: Sequence[Chart] = feature.build_charts(result)
        return charts
    report = build_report(result, ReportOptions())
    return [block for section in report.sections for block in section.blocks if isinstance(block, Chart)]


def build_folder(result: Reportable, options: ReportOptions) -> Mapping[str, bytes] | None:
    """Return the files of a folder of `result` by their paths; None where its feature makes no pages of its own."""
    page = provided("features").page_of(result.reported_by)
    files: Mapping[str, bytes] | None = page.build_folder(result, options) if hasattr(page, "build_folder") else None
    return files


def build_album(result: Reportable, options: ReportOptions) -> Album:
    """Return the images that a folder of `result` holds."""
    feature = feature_of(result)
    if not hasattr(feature, "build_album"):
        raise UsageError(f"a folder of images shows boxes of evaluate or explain, which this {result.kind} has none of")
    album: Album = feature.build_album(result, options)
    return album


def has_folder(result: Reportable) -> bool:
    """Whether the feature of `result` makes pages or an album for a folder."""
    page = provided("features").page_of(result.reported_by)
    return hasattr(page, "build_folder") or hasattr(feature_of(result), "build_album")


def build_explorer(result: Reportable, options: ReportOptions) -> Explorer | None:
    """Return all images of `result` for a folder; None where its feature shows none."""
    page = provided("features").page_of(result.reported_by)
    explorer: Explorer | None = page.build_explorer(result, options) if hasattr(page, "build_explorer") else None
    return explorer


def build_data(result: Reportable, options: ReportOptions) -> DataTable:
    """Return the one table of `result` for machines."""
    table: DataTable = feature_of(result).build_data(result, options)
    return table


def _without_undefined(table: Table) -> Table:
    columns = [[row[i] for row in table.rows] for i in range(len(table.columns))]
    kept = [not cells or not all(isinstance(cell, float) and math.isnan(cell) for cell in cells) for cells in columns]
    if all(kept):
        return table
    return replace(
        table,
        columns=tuple(compress(table.columns, kept)),
        rows=tuple(tuple(compress(row, kept)) for row in table.rows),
    )


def cell_text(cell: Cell, kind: Kind = "metric") -> str:
    """Return a cell as people read it, a text as it is."""
    if isinstance(cell, Marked):
        cell = cell.cell
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Drawn):
        return ""
    if isinstance(cell, Linked):
        return cell.text
    if isinstance(cell, tuple):
        return UNDEFINED if math.isnan(cell[0]) else " to ".join(map(delta_text, cell))
    # A whole number stays one in any column: a metric that is a count, such as TP, has no decimals.
    return _FORMATS.get(kind, metric_text)(cell) if isinstance(cell, float) else f"{cell:,}"


def look_of(cell: Cell, kind: Kind) -> Look:
    """Return how a cell looks: what is undefined is dim, a difference shows which way it goes."""
    if isinstance(cell, Marked):
        return cell.look
    if isinstance(cell, str | Drawn | Linked):  # a text that happens to read as what is undefined is the feature's own
        return "plain"
    low, high = cell if isinstance(cell, tuple) else (cell, cell)
    if math.isnan(low):
        return "dim"
    return delta_look(low if low > 0 else min(high, 0)) if kind in ("delta", "interval") else "plain"


def delta_look(change: float, *, higher_is_better: bool = True) -> Look:
    """Return how a difference looks; one that is a rounding error is none."""
    if abs(change) <= EXACT or math.isnan(change):
        return "plain"
    return "good" if (change > 0) == higher_is_better else "bad"


_FORMATS: Mapping[Kind, Callable[[float], str]] = {
    "ratio": lambda value: metric_text(value, 3),
    "delta": delta_text,
    "size": size_text,
    "threshold": threshold_text,
}


INDENT = GAP = 2
LEAST = 12  # columns that are left of texts and paths where a terminal is narrow
GIVING = ("text", "name", "path")  # kinds of columns that a terminal may make narrower
SIGNATURE = "signature  "


def signature_lines(report: Report, options: ReportOptions, width: int) -> list[str]:
    """Return a signature in lines that end behind a part of it: without blanks they are the signature again."""
    text = report.signature
    if text and not (options.verbose or options.is_file):
        from jaccard_eval.data.signature import abridged_signature  # brings NumPy along, and not every report has one

        text = abridged_signature(text, report.usual)
    room = max(width - len(SIGNATURE), LEAST)
    # A part may be a list of many names.
    parts = broken(inert(text, options.encoding), room, "|") if text else []
    lines = [line for part in parts for line in broken(part, room, ",")]
    return [f"{'' if i else SIGNATURE:{len(SIGNATURE)}}{line}" for i, line in enumerate(lines)]


def inert(text: str, encoding: str) -> str:
    """Return text that cannot act on a terminal, in the characters that an encoding has."""
    return encodable(printable(text), encoding)


def is_unicode(encoding: str) -> bool:
    """Whether an encoding has all characters."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


@dataclass(frozen=True)
class TextColumn:
    """A column of a table, its cells as texts that are inert."""

    title: str
    kind: Kind
    texts: list[str]
    looks: list[Look]

    @cached_property
    def width(self) -> int:
        """Columns of the screen that the widest text takes."""
        return max(map(columns_of, (self.title, *self.texts)))

    @property
    def least(self) -> int:
        """Columns of the screen below which something would be cut that must not be."""
        return min(self.width, LEAST) if self.kind in GIVING else self.width


def text_columns(table: Table, encoding: str) -> list[TextColumn]:
    """Return the columns of a table with the characters that an encoding has."""
    columns = []
    for i, column in enumerate(table.columns):
        values = [row[i] for row in table.rows]
        texts = [inert(cell_text(value, column.kind), encoding) for value in values]
        looks = [look_of(value, column.kind) for value in values]
        columns.append(TextColumn(inert(column.title, encoding), column.kind, texts, looks))
    return columns


def parts(columns: Sequence[TextColumn], room: int) -> list[list[TextColumn]]:
    """Divide columns into tables that fit when their texts give way; each begins with the first column."""
    first, *rest = columns
    divided, used = [[first]], first.least
    for column in rest:
        used += GAP + column.least
        if used > room and len(divided[-1]) > 1:
            divided.append([first])
            used = first.least + GAP + column.least
        divided[-1].append(column)
    return divided
