"""The page and the drawing of the architecture, from the code: rooms, their floors, and who imports whom.

Run as a script, it writes docs/architecture.md and docs/architecture.svg.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaccard_eval"
PAGE, DRAWING = ROOT / "docs/architecture.md", ROOT / "docs/architecture.svg"
# Above all floors, and not drawn: names that it passes on from rooms of every floor.
FACADES = ("plugins",)

INTRODUCTION = """\
# Architecture

For those who change the code. Drawn from it by `python docs/site/architecture_page.py`; a test compares.
[Contributing](../CONTRIBUTING.md#architecture) has the rules, and where a change goes.

Loaders read ground truth and predictions of any format into one table of boxes; a matcher pairs them once; every number
is computed from that one match table; reporters show it.

## From the command line to the AP

`jaccard-eval evaluate gt.json detections.json`, step by step:

1. **Command.** `__main__` calls `cli.run`; `cli/commands/evaluate.py` has the words as `RunOptions`, refuses what is
   wrong with them, and hands both paths to `api.boxes.evaluate`, which is the library's verb too, and that to
   `evaluation.evaluate_inputs`. `evaluation.py` is the plot: all that follows are its paragraphs.
2. **Open.** `formats.opened` makes an `Opened` of each path. Its `Peek` looks at it once (head, keys, first lines,
   names); every module of `formats/` rates that by `looks_like`, and the surest reads it.
3. **Read.** `inputs.read_both` calls the format's `read(path, draft, options)`. It adds images, classes and boxes to
   a `Draft` as the file has them; `Draft.build` converts, checks and counts them, and gives a `Dataset`: a `BoxTable`
   of arrays, images, labels, findings.
4. **Align.** `pairing.align_datasets` pairs images and classes of both sides and maps sizes: an `Alignment` with one
   list of each. `matching.judging.judge` ignores what the rules of the `Protocol` do not judge.
5. **Match.** `metrics.detection.match_sides` has `similarity` find pairs of boxes at or above the least threshold,
   and `matching` assign each detection its best free object, for all thresholds and sizes at once: the `MatchTable`.
   Nothing is matched again.
6. **Measure.** `metrics/` ranks detections of a class by score and reads precision off the curve at 101 recalls;
   their mean is the AP.
7. **Audit.** `features/audit` tries other readings of what was read; what the boxes refute beyond doubt stops the run
   here.
8. **Result.** An `EvaluationResult` holds values, findings, signature and what else was asked for (`features/`
   computes it).
9. **Show.** Its `reported_by` makes a `Report` of sections and tables; `report/outputs/` writes that by suffix,
   `report/terminal.py` draws it on a screen, `cli/delivery.py` sends each where it was asked to go, and the exit code
   is 1 if a gate failed.

With `--engine disk` or Dask, `engine/` gives steps 3 to 6 in portions; the bytes of the result are the same.

## Rooms

A room is a module or a package directly below `jaccard_eval`. Imports lead downwards only, from floor to floor;
import-linter holds that in every run of the checks.

![The rooms on their floors, with an arrow for each import that no other explains](architecture.svg)

An arrow leads from a room to one that it imports. Imports that follow from others are left to the table: where `cli`
imports `api` and `api` imports `data`, there is no arrow from `cli` to `data`. Dashed arrows are imports inside
functions, which cost nothing at the start.

| floor | room | what lives there | imports |
|---:|---|---|---|
"""


@dataclass(frozen=True)
class Room:
    """A part of the package: its floor (0 is the top), and what its docstring begins with."""

    name: str
    floor: int
    about: str


def floors() -> list[list[str]]:
    """Return the rooms of each floor, as the contract of imports has them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (contract["layers"] for contract in tool["contracts"] if contract["type"] == "layers")
    return [re.findall(r"jaccard_eval\.(\w+)", layer) for layer in layers]


@cache
def rooms() -> list[Room]:
    """Return all rooms, from the top; each has its floor in the contract."""
    placed = {name: number for number, names in enumerate(floors()) for name in names}
    found = {path.stem if path.suffix else path.name for path in PACKAGE.iterdir() if _is_room(path)}
    if homeless := found - set(placed) - set(FACADES):
        raise SystemExit(f"no floor in the contract of imports: {', '.join(sorted(homeless))}")
    return sorted(
        (Room(name, placed.get(name, -1), _about(name)) for name in found),
        key=lambda room: (room.floor, room.name),
    )


def _is_room(path: Path) -> bool:
    return (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()


def _sources(room: str) -> list[Path]:
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def _about(room: str) -> str:
    folder = PACKAGE / room
    home = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(home.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[a-z)`])\. |[;.]$", first)[0].replace("``", "`").replace("|", "\\|")


@cache
def imports() -> dict[tuple[str, str], Counter[str]]:
    """Return how often one room imports another: "loaded" at the start, or "needed" inside a function."""
    found: dict[tuple[str, str], Counter[str]] = {}
    names = {room.name for room in rooms()}
    for importer in sorted(names):
        for path in _sources(importer):
            for imported, when in _imports_of(ast.parse(path.read_text(encoding="utf-8")), "loaded"):
                parts = imported.split(".")
                if parts[0] == "jaccard_eval" and len(parts) > 1 and parts[1] in names - {importer}:
                    found.setdefault((importer, parts[1]), Counter())[when] += 1
    return found


def _imports_of(tree: ast.AST, when: str) -> Iterator[tuple[str, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, when) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "jaccard_eval":
            yield from ((f"jaccard_eval.{name.name}", when) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module), when
        # What only type checkers read counts as none.
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            inner = "needed" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else when
            yield from _imports_of(node, inner)


def reduced(graph: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Return the arrows that do not follow from others: no longer way leads from their start to their end."""

    def reached(start: str, without: str) -> set[str]:
        seen: set[str] = set()
        waiting = [name for name in graph.get(start, ()) if name != without]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph.get(name, ())
        return seen

    return {(start, end) for start, ends in graph.items() for end in ends if end not in reached(start, end)}


def page() -> str:
    """Return the text of the page."""
    arrows = imports()
    lines = [INTRODUCTION.rstrip("\n")]
    top = {room.floor: number for number, room in enumerate(rooms(), start=1)}
    heights = {floor: len(top) - i for i, floor in enumerate(sorted(top))}
    for room in rooms():
        used = sorted(end for start, end in arrows if start == room.name)
        listed = " ".join(f"`{name}`" for name in used) or "-"
        lines.append(f"| {heights[room.floor]} | `{room.name}` | {room.about} | {listed} |")
    return "\n".join(lines) + "\n"


WIDTH, ROW, BOX, LEFT = 760, 30, 190, 20


def drawing() -> str:
    """Return the drawing: a row per room from the top floor down, and arcs for the arrows at the right."""
    listed = [room for room in rooms() if room.name not in FACADES]
    arrows = {pair: counts for pair, counts in imports().items() if pair[0] not in FACADES}
    graph: dict[str, set[str]] = {}
    for start, end in arrows:
        graph.setdefault(start, set()).add(end)
    middle = {room.name: 20 + ROW * row + ROW // 2 - 3 for row, room in enumerate(listed)}
    height = 30 + ROW * len(listed)
    shapes = [_band(listed, number) for number in range(len({room.floor for room in listed}))]
    for room in listed:
        y = middle[room.name]
        shapes.append(f'<rect class="room" x="{LEFT}" y="{y - 11}" width="{BOX}" height="22" rx="4"/>')
        shapes.append(f'<text x="{LEFT + 10}" y="{y + 4}">{room.name}</text>')
    longest = max(abs(middle[start] - middle[end]) for start, end in reduced(graph))
    for start, end in sorted(reduced(graph), key=lambda pair: (middle[pair[0]], middle[pair[1]])):
        y1, y2, x = middle[start] + 4, middle[end] - 4, LEFT + BOX
        reach = x + 30 + (WIDTH - x - 60) * abs(y2 - y1) / longest
        kind = "loaded" if arrows[start, end]["loaded"] else "needed"
        path = f"M{x} {y1} C{reach:.0f} {y1} {reach:.0f} {y2} {x + 6} {y2}"
        shapes.append(f'<path class="{kind}" d="{path}" marker-end="url(#tip)"><title>{start} → {end}</title></path>')
    return "\n".join([HEAD.format(width=WIDTH, height=height), *shapes, "</svg>", ""])


def _band(listed: list[Room], number: int) -> str:
    """Return the background of every other floor, so that rooms of one floor are seen to be."""
    levels = sorted({room.floor for room in listed})
    rows = [row for row, room in enumerate(listed) if room.floor == levels[number]]
    y, height = 20 + ROW * rows[0] - 3, ROW * len(rows)
    return f'<rect class="floor{number % 2}" x="0" y="{y}" width="{WIDTH}" height="{height}"/>'


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>The rooms of jaccard-eval and their imports</title>
<style>
svg {{ background: #fff; font: 13px ui-monospace, monospace }}
.room {{ fill: #eef4fb; stroke: #35608f }}
.floor0 {{ fill: #f7f7f7 }} .floor1 {{ fill: #fff }}
path {{ fill: none; stroke: #35608f; stroke-opacity: .75; stroke-width: 1.3 }}
.needed {{ stroke-dasharray: 4 3 }}
#tip path {{ fill: #35608f; stroke: none }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z"/></marker></defs>"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    DRAWING.write_text(drawing(), encoding="utf-8")
