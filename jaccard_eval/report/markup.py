"""What a page draws itself, without looks, which its style sheet has: charts and images as SVG, rows of tables as HTML.

Coordinates are rounded to a tenth of a unit, and those of the many faint lines to a unit: nobody sees a quarter of a
percent, and a page may have hundreds of curves. A box that does not show at the score of the page is there as well, for
the script that follows the score. Rows are written here and not in a template, for a page may have 50,000 cells.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TypeVar

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.frozen import dataclass
from jaccard_eval.report.model import (
    CHANGE_TITLES,
    STATE_TITLES,
    TEXT_KINDS,
    Axis,
    Cell,
    Chart,
    Column,
    Drawn,
    DrawnShape,
    Gallery,
    GalleryBox,
    GalleryImage,
    Linked,
    Series,
    Table,
    cell_text,
    look_of,
)
from jaccard_eval.report.numbers import metric_text, threshold_text
from jaccard_eval.text import printable

WIDTH, HEIGHT = 400, 240  # of the area of a plot, so that a hundredth is four units wide
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 42  # around it
LETTER = 6.3  # average width of a character at the size of the labels
BAR, GAP = 18, 8  # thickness of a lying bar, and the room below it
LONGEST = 26  # characters of a name next to a bar or a matrix
CELL, SMALL_CELL = 30, 16  # of a matrix with its numbers, and without
FEW_NUMBERS = 14  # rows of a matrix up to which its cells have numbers
FEW_NAMES = 40  # rows up to which they are named
CELL_SIZE = 96, 16  # of a drawing in a table
FADES = 3  # steps of opacity that the style sheet has
COLOURS = 6  # that the style sheet has
STEPS = (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10)  # between ticks, times a power of ten


Number = TypeVar("Number", float, FloatArray)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to units along an axis."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: Number) -> Number:
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Return about five round values."""
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / 5))
        step = next(power * step for step in STEPS if (self.high - self.low) / (power * step) <= 5.5)
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 12) + 0.0 for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def draw(chart: Chart) -> str:
    """Return a chart as an SVG element; its title and what it has on its axes are read aloud."""
    if chart.kind == "matrix":
        return _matrix(chart)
    if chart.kind == "bar" and chart.y.names:
        return _lying_bars(chart)
    return _plot(chart)


def legend(chart: Chart) -> list[tuple[str, str]]:
    """Return the class and name of each series that has a name of its own to look up; none of a single one."""
    entries = [(look, series.name) for look, series in _looks(chart) if series.name and series.look != "faint"]
    faint = any(series.look == "faint" for series in chart.series)
    entries += [("faint", "each class")] if faint else []
    return entries if len(entries) > 1 and chart.kind != "matrix" else []


def draw_cell(cell: Drawn) -> str:
    """Return a value as a bar or a dot, with its interval as a line; the numbers stand next to it."""
    if math.isnan(cell.value):
        return ""
    width, height = CELL_SIZE
    low, high = cell.interval or (math.nan, math.nan)
    scale = _Scale(*cell.ends, 4, width - 4)
    start, stop = sorted((scale(0), scale(cell.value)))
    parts = [
        f'<svg class="{cell.look}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
    ]
    parts.append(f'<path class="track" d="M4 8H{width - 4}"/>')
    if cell.ends[0] < 0:
        parts.append(f'<path class="zero" d="M{_n(scale(0))} 2V14"/>')
    if cell.look == "bar":
        parts.append(f'<path class="fill" d="M{_n(start)} 8H{_n(stop)}"/>')
    if not math.isnan(low):
        left, right = _n(scale(low)), _n(scale(high))
        parts.append(f'<path class="range" d="M{left} 4v8M{left} 8H{right}M{right} 4v8"/>')
    if cell.look == "dot":
        parts.append(f'<circle cx="{_n(scale(cell.value))}" cy="8" r="3.5"/>')
    return "".join([*parts, "</svg>"])


def _plot(chart: Chart) -> str:
    """Draw lines, steps, points and standing bars between two axes with numbers."""
    standing = _stacks(chart)
    y_values = [top for _, _, _, top in standing] + [0.0] * bool(standing)
    x = _Scale(*_ends(chart.x, [_places(series) for series in chart.series]), LEFT, LEFT + WIDTH)
    y = _Scale(*_ends(chart.y, [y_values, *(list(series.y) for series in chart.series)]), TOP + HEIGHT, TOP)
    body = [*_grid(chart, x, y)]
    for look, place, base, top in standing:
        width = 0.8 * abs(x(1) - x(0)) * _spacing(chart)
        low, high = sorted((y(base), y(top)))
        body.append(
            f'<rect class="area {look}" x="{_n(x(place) - width / 2)}" y="{_n(low)}" width="{_n(width)}"'
            f' height="{_n(high - low)}"/>'
        )
    body += [_series(chart, series, look, x, y) for look, series in _looks(chart) if series.look or chart.kind != "bar"]
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    return _element(chart, width, height, body)


def _series(chart: Chart, series: Series, look: str, x: _Scale, y: _Scale) -> str:
    values, places = np.asarray(series.y, dtype=np.float64), np.asarray(_places(series), dtype=np.float64)
    known = ~np.isnan(values)
    across, up = x(places[known]), y(values[known])
    key = f' data-key="{_safe(series.key)}"' if series.key else ""
    if series.look == "points" or chart.kind == "scatter":
        points = zip(across.tolist(), up.tolist(), strict=True)
        dots = "".join(f'<circle cx="{_n(a)}" cy="{_n(b)}" r="3"/>' for a, b in points)
        return f'<g class="dots {look}"{key}>{dots}</g>'
    name = f"<title>{_safe(series.name)}</title>" if series.look == "faint" and series.name else ""
    end = f">{name}</path>" if name else "/>"
    # Steps that are finer than a hundredth of the axis are seen as a ragged line: drawn as a plain one they are not.
    coarse = bool((np.diff(across) > 1.01 * WIDTH / 100).any())
    drawn = _path(across, up, steps=series.look == "steps" and coarse, digits=0 if series.look == "faint" else 1)
    return f'<path class="line {look}"{key} d="{drawn}"{end}'


def _path(across: FloatArray, up: FloatArray, *, steps: bool, digits: int) -> str:
    """Return the path through some points, relative and merged where it runs on: half the text of a plain one."""
    if not len(across):
        return ""
    x, y = np.round(across, digits), np.round(up, digits)
    if steps:  # between two places the value is that of the right one
        x, y = np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
    # Where the height changes; between these it runs on.
    turns = np.flatnonzero(y[1:] != y[:-1]) + 1
    before, after = np.append(0, turns), np.append(turns - 1, len(x) - 1)
    runs, over, lift = x[after] - x[before], x[turns] - x[turns - 1], y[turns] - y[turns - 1]
    parts = [f"M{_n(float(x[0]))} {_n(float(y[0]))}", f"h{_n(float(runs[0]))}" if runs[0] else ""]
    kind = np.float64 if digits else np.int64  # whole numbers are written in a fifth of the time
    steps_of = (step.astype(kind).tolist() for step in (over, lift, runs[1:]))
    for a, b, run in zip(*steps_of, strict=True):
        parts.append((f"l{_n(a)} {_n(b)}" if a else f"v{_n(b)}") + (f"h{_n(run)}" if run else ""))
    return "".join(parts)


def _grid(chart: Chart, x: _Scale, y: _Scale) -> Iterator[str]:
    """Yield the grid, its numbers or names, and the titles of the axes."""
    left, right, top, bottom = LEFT, LEFT + WIDTH, TOP, TOP + HEIGHT
    y_ticks = y.ticks()
    yield f'<path class="grid" d="{"".join(f"M{left} {_n(y(tick))}H{right}" for tick in y_ticks)}"/>'
    for tick in y_ticks:
        yield _text(left - 6, y(tick) + 4, _tick(tick, y_ticks), "end")
    if chart.x.names:
        every = math.ceil(len(chart.x.names) * LETTER * max(map(len, chart.x.names)) / WIDTH)
        for i, name in list(enumerate(chart.x.names))[::every]:
            yield _text(x(i), bottom + 16, _short(name), "middle")
    else:
        x_ticks = x.ticks()
        yield f'<path class="grid" d="{"".join(f"M{_n(x(tick))} {top}V{bottom}" for tick in x_ticks)}"/>'
        for tick in x_ticks:
            yield _text(x(tick), bottom + 16, _tick(tick, x_ticks), "middle")
    yield f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>'
    if chart.x.title:
        yield _text((left + right) / 2, bottom + 34, chart.x.title, "middle", "name")
    if chart.y.title:
        yield _upward(11, (top + bottom) / 2, chart.y.title, ' class="name" text-anchor="middle"')


def _lying_bars(chart: Chart) -> str:
    """Draw bars next to their names, each with its number."""
    names = [_short(name) for name in chart.y.names]
    left = 12 + LETTER * max(map(len, names))
    totals = [0.0] * len(names)
    for series in chart.series:
        for i, value in enumerate(series.y):
            totals[i] += 0.0 if math.isnan(value) else float(value)
    low, high = _ends(Axis(ends=chart.x.ends), [[0.0, *totals]])
    x = _Scale(low, high, left, left + WIDTH - 60)
    bottom = TOP + len(names) * (BAR + GAP)
    body = [f'<path class="axis" d="M{_n(x(0))} {TOP - 4}V{bottom}"/>']
    base = [0.0] * len(names)
    for look, series in _looks(chart):
        for i, value in enumerate(series.y):
            length = 0.0 if math.isnan(value) else float(value)
            start, stop = sorted((x(base[i]), x(base[i] + length)))
            body.append(
                f'<rect class="area {look}" x="{_n(start)}" y="{_n(TOP + i * (BAR + GAP))}" width="{_n(stop - start)}"'
                f' height="{BAR}"/>'
            )
            base[i] += length
    for i, name in enumerate(names):
        middle = TOP + i * (BAR + GAP) + BAR / 2 + 4
        body.append(_text(left - 8, middle, name, "end", title=chart.y.names[i]))
        body.append(_text(max(x(totals[i]), x(0)) + 6, middle, _total(totals[i]), "start", "value"))
    height = bottom + (26 if chart.x.title else 4)
    body += [_text(x((low + high) / 2), bottom + 18, chart.x.title, "middle", "name")] if chart.x.title else []
    return _element(chart, left + WIDTH, height, body)


def _matrix(chart: Chart) -> str:
    """Draw a matrix of counts; a cell is as dark as its share of its row."""
    n_columns = max((len(series.y) for series in chart.series), default=0)
    named, numbered = len(chart.series) <= FEW_NAMES, len(chart.series) <= FEW_NUMBERS
    size = CELL if numbered else SMALL_CELL if named else max(2, WIDTH // max(n_columns, 1))
    rows = [_short(series.name) for series in chart.series] if named else []
    heads = [_short(name) for name in chart.x.names] if named else []
    left = 24 + (LETTER * max(map(len, rows), default=0) if named else 0)
    top = 24 + (LETTER * max(map(len, heads), default=0) if named else 0)
    body = []
    for i, series in enumerate(chart.series):
        counts = list(series.y)
        total = max(sum(counts), 1)
        for j, count in enumerate(counts):
            if not count:
                continue
            share = count / total
            body.append(
                f'<rect class="cell{" hit" if i == j else ""}" x="{_n(left + j * size)}" y="{_n(top + i * size)}"'
                f' width="{size - 1}" height="{size - 1}" fill-opacity="{_n(0.12 + 0.88 * share, 2)}"/>'
            )
            if numbered:
                dark = " dark" if share > 0.5 else ""
                body.append(
                    _text(left + (j + 0.5) * size, top + (i + 0.5) * size + 4, f"{count:,}", "middle", f"count{dark}")
                )
        if named:
            body.append(_text(left - 6, top + (i + 0.5) * size + 4, rows[i], "end", title=series.name))
    for j, name in enumerate(heads):
        body.append(_upward(left + (j + 0.5) * size + 4, top - 6, name))
    width, height = left + n_columns * size, top + len(chart.series) * size
    body.append(
        f'<rect class="frame" x="{_n(left)}" y="{_n(top)}" width="{_n(width - left)}" height="{_n(height - top)}"/>'
    )
    body.append(_text((left + width) / 2, 12, chart.x.title, "middle", "name"))
    body.append(_upward(11, (top + height) / 2, chart.y.title, ' class="name" text-anchor="middle"'))
    return _element(chart, width + 4, height + 4, body)


def _element(chart: Chart, width: float, height: float, body: Sequence[str]) -> str:
    axes = [axis.title for axis in (chart.x, chart.y) if axis.title]
    about = f"<desc>{_safe(' by '.join(axes[::-1]))}</desc>" if axes else ""
    return (
        f'<svg class="{chart.kind}" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}"'
        f' role="img" aria-label="{_safe(chart.title)}"><title>{_safe(chart.title)}</title>{about}{"".join(body)}</svg>'
    )


def _looks(chart: Chart) -> Iterator[tuple[str, Series]]:
    """Yield the class of each series: its colour, and dashes; those of one group share a colour, from faint to full."""
    groups: dict[str, list[Series]] = {}
    for series in chart.series:
        if series.look not in ("guide", "faint"):
            groups.setdefault(series.group or f"{series.name} {id(series)}", []).append(series)
    colours = {id(series): (place, group) for place, group in enumerate(groups.values()) for series in group}
    for series in chart.series:
        if id(series) not in colours:
            yield series.look, series
            continue
        place, group = colours[id(series)]
        look = f"c{place % COLOURS + 1}"
        look += " dashes" if series.look == "dashes" else ""
        # The last of a group is full, the others in four steps up to it.
        rank = len(group) - 1 - next(i for i, member in enumerate(group) if member is series)
        yield f"{look} f{min(rank, FADES)}" if rank else look, series


def _stacks(chart: Chart) -> list[tuple[str, float, float, float]]:
    """Return the class, place, base and top of each standing bar."""
    if chart.kind != "bar":
        return []
    found, base = [], dict[float, float]()
    for look, series in _looks(chart):
        if series.look:
            continue
        for place, value in zip(_places(series), series.y, strict=True):
            length = 0.0 if math.isnan(value) else float(value)
            start = base.get(place, 0.0)
            found.append((look, float(place), start, start + length))
            base[place] = start + length
    return found


def _spacing(chart: Chart) -> float:
    places = sorted({float(x) for series in chart.series if not series.look for x in _places(series)})
    return places[1] - places[0] if len(places) > 1 else 1.0


def _places(series: Series) -> list[float]:
    return list(series.x) if len(series.x) else [float(i) for i in range(len(series.y))]


def _ends(axis: Axis, values: Sequence[Sequence[float]]) -> tuple[float, float]:
    if axis.ends:
        low, high = axis.ends
    else:
        known = [float(value) for some in values for value in some if not math.isnan(value)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        half = 0.5 if axis.names else 0.0  # so that no name is cut off
        low, high = low - half, high + half
    return (low, high) if high > low else (low, low + 1.0)


def _tick(value: float, ticks: Sequence[float]) -> str:
    decimals = max(len(f"{tick:.10g}".partition(".")[2]) for tick in ticks)
    return f"{value:,.{decimals}f}"


def _total(value: float) -> str:
    if float(value).is_integer() and abs(value) >= 1:
        return f"{value:,.0f}"
    return metric_text(value) if 0 <= value <= 1 else threshold_text(value)


def _upward(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text{attributes} transform="translate({_n(x)} {_n(y)}) rotate(-90)">{_safe(text)}</text>'


def _text(x: float, y: float, text: str, anchor: str, look: str = "", *, title: str = "") -> str:
    shown = f"<title>{_safe(title)}</title>" if title and _safe(title) != _safe(text) else ""
    style = f' class="{look}"' if look else ""
    return f'<text{style} x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{_safe(text)}{shown}</text>'


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _safe(text: str) -> str:
    return escape(printable(text))


def _n(value: float, decimals: int = 1) -> str:
    """Return a coordinate without a trailing zero."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# Of one image, the surest of these are enough: others would be megabytes that nobody sees.
MOST_BOXES = 400
MOST_PATH_BYTES = 16_000  # of the shapes of one image; what is left is drawn as boxes


def draw_image(image: GalleryImage, gallery: Gallery, classes: Mapping[str, int]) -> str:
    """Return an image as an SVG element in the pixels that its boxes are of; `classes` numbers them."""
    width, height = image.size
    sides = f'width="{width}" height="{height}"'
    title = escape(printable(image.name))
    picture = ""
    if image.thumbnail:
        kind = "png" if image.thumbnail.startswith(b"\x89PNG") else "jpeg"
        data = base64.b64encode(image.thumbnail).decode()
        # Stretched where the file has another shape than the boxes are of: they fit all the same.
        picture = f'<image {sides} preserveAspectRatio="none" href="data:image/{kind};base64,{data}"/>'
    elif image.file:
        picture = f'<image {sides} preserveAspectRatio="none" href="{image.file}"/>'
    digits, paths = 1 if max(width, height) < 1000 else 0, _paths(image, gallery.score)
    boxes = "".join(_box(box, gallery, classes, digits, paths.get(id(box), "")) for box in drawn_boxes(image))
    paper = "" if picture else f'<rect class="paper" {sides}/>'
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{paper}{picture}{boxes}</svg>'


def drawn_boxes(image: GalleryImage) -> tuple[GalleryBox, ...]:
    """Return the boxes that are drawn: all objects, and the surest detections."""
    objects = [box for box in image.boxes if box.is_object]
    detections = [box for box in image.boxes if not box.is_object]  # the surest are last
    return (*objects, *detections[-MOST_BOXES:])


def hidden_boxes(image: GalleryImage) -> tuple[int, float]:
    """Return how many detections are not drawn, and the highest score of these."""
    detections = [box.score for box in image.boxes if not box.is_object][:-MOST_BOXES]
    return len(detections), max(detections, default=math.nan)


def box_text(box: GalleryBox) -> str:
    """Return a box in words, as a pointer that rests on it shows it."""
    score = "" if box.is_object else f" {metric_text(box.score, 2)}"
    side = f"{box.side}: " if box.side else ""
    measure = "OKS" if box.drawing is not None and box.drawing.points else "IoU"
    iou = f", {measure} {metric_text(box.iou, 2)}" if box.state == "found" and box.iou == box.iou else ""
    return f"{side}{printable(box.label)}{score}, {CHANGE_TITLES.get(box.change, STATE_TITLES[box.state])}{iou}"


def _paths(image: GalleryImage, score: float) -> dict[int, str]:
    """Return the path of each box that is drawn by its shape, by identity; those that show and the surest first."""
    boxes = [box for box in drawn_boxes(image) if box.drawing is not None]
    boxes.sort(
        key=lambda box: (not box.shows_at(score), not box.is_object, -box.score if box.score == box.score else 0)
    )
    side, left, paths = max(image.size), MOST_PATH_BYTES, {}
    for box in boxes:
        path = _outline_path(box.drawing, side) if box.drawing is not None else ""
        left -= len(path)
        if left < 0:
            break
        paths[id(box)] = path
    return paths


def _outline_path(drawing: DrawnShape, side: int) -> str:
    """Return the data of a path: outlines, or a disc for each point and lines; whole pixels, in tiny images tenths."""
    digits = 0 if side >= 200 else 1
    parts = []
    for ring in drawing.rings:
        # From corner to corner, which takes fewer digits than places in the image.
        places = [(round(x, digits), round(y, digits)) for x, y in ring]
        steps = [f"{_number(x - a, digits)} {_number(y - b, digits)}" for (a, b), (x, y) in pairwise(places)]
        parts.append(f"M{_number(places[0][0], digits)} {_number(places[0][1], digits)}l{' '.join(steps)}z")
    for (a, b), (x, y) in (line for line in drawing.lines):
        parts.append(f"M{_number(a, digits)} {_number(b, digits)}L{_number(x, digits)} {_number(y, digits)}")
    radius = _number(max(side / 220, 0.5), 1)
    across = _number(2 * float(radius), 1)
    for x, y in drawing.points:
        start = f"M{_number(x - float(radius), 1)} {_number(y, 1)}"
        parts.append(f"{start}a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0-{across} 0z")
    return "".join(parts)


def _box(box: GalleryBox, gallery: Gallery, classes: Mapping[str, int], digits: int, path: str) -> str:
    shows = box.shows_at(gallery.score)
    side = ("second" if box.second else "first") if box.side else ""
    shape = "" if not path or box.drawing is None else _shape_class(box.drawing)
    words = (shape, box.state, box.change and f"was-{box.change}", "object" * box.is_object, "off" * (not shows), side)
    kind = " ".join(filter(None, words))
    tag = "path" if path else "rect"
    sides = zip(("x", "y", "width", "height"), box.xywh, strict=True)
    place = f'd="{path}"' if path else " ".join(f'{name}="{_number(side, digits)}"' for name, side in sides)
    score = "" if box.score != box.score else f' data-s="{box.score!r}"'
    score += f' data-i="{box.place}"' if box.place >= 0 else ""
    title = f"<title>{escape(box_text(box))}</title>" if shows else ""
    end = f">{title}</{tag}>" if title else "/>"
    return f'<{tag} class="{kind}" data-c="{classes[box.label]}"{score} {place}{end}'


def _shape_class(drawing: DrawnShape) -> str:
    return "oriented" if drawing.is_box else "mask" if drawing.rings else "pose"


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rows(table: Table) -> str:
    """Return all rows, the first cell of each its heading."""
    keys = [f' data-key="{_safe(key)}"' for key in table.keys] or [""] * len(table.rows)
    return "\n".join(f"<tr{key}>{_cells(row, table)}</tr>" for key, row in zip(keys, table.rows, strict=True))


def _cells(row: tuple[Cell, ...], table: Table) -> str:
    first, *others = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
    return "".join([f'<th scope="row"{first}</th>', *(f"<td{cell}</td>" for cell in others)])


def _cell(cell: Cell, column: Column) -> str:
    """Return the attributes and the content of a cell. Numbers need no class: they are what the style is made for."""
    if isinstance(cell, Drawn):
        return f' class="drawn">{draw_cell(cell)}'
    kind = column.kind if column.kind in TEXT_KINDS else ""
    look = look_of(cell, column.kind)
    classes = f"{kind} {'' if look == 'plain' else look}".strip()
    attributes = f' class="{classes}"' if classes else ""
    attributes += f' data-live="{_safe(column.key)}"' if column.key else ""
    text = _safe(cell_text(cell, column.kind))
    if isinstance(cell, Linked) and cell.place:
        text = f'<a href="{_safe(cell.place)}">{text}</a>'
    return f"{attributes}>{text}"
