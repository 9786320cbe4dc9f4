"""Run the benchmarks that measure time and memory, and write their tables to `README.md` and `benchmarks/README.md`.

``make benchmarks`` makes an environment with this project and the newest releases of its peers and runs this in it; the
machine should do nothing else. A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, under a line with
the day, the machine, the versions and what is not installed. A script that fails or does not end in time leaves its
table as it is. ``--small`` tries all scripts on tiny sets, and writes to copies of the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import processes

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "benchmarks/README.md")
COPIES = ROOT / "build" / "benchmarks-small"
MEMORY = Path("/dev/shm")  # no disk is timed where there is one like it
OWN = "jaccard-eval command"
RIVALS = ("ultrafast-pycocotools", "hotcoco")
NAMES = {  # of contenders in README.md, where others have their own and the version
    OWN: "jaccard-eval",
    f"{OWN}, pure Python": "jaccard-eval without the compiled core",
    "hotcoco": "hotcoco {version}, library",
    "hotcoco command": "hotcoco {version}, command",
}


def as_printed(output: str) -> str:
    """Return what a script printed, its headings in bold: a heading would have the page's own rank."""
    return re.sub(r"^#+ (.*)$", r"**\1**", output.strip(), flags=re.MULTILINE)


@dataclass(frozen=True)
class Table:
    """What a script measures, at full size and at a tiny one, the packages it meets and how its output is shown."""

    script: str
    full: str
    small: str
    packages: tuple[str, ...] = ()
    show: Callable[[str], str] = as_printed
    settings: tuple[tuple[str, str], ...] = ()  # of the environment, where sets are tiny


@dataclass(frozen=True)
class Machine:
    """What stands above a table: where and when it was measured."""

    day: str
    processor: str
    count: int
    system: str
    python: str


def one_scene(output: str) -> str:
    """Return medians of all contenders on the one scene of `coco_scale.py`, by processor time."""
    ((_, records),) = processes.from_raw(output).items()
    lines = ["| tool | CPU s | wall s | peak MB |", "|---|--:|--:|--:|"]
    # The library takes what the command takes.
    shown = [record for record in records if not record.name.startswith("jaccard-eval library")]
    for record in sorted(shown, key=lambda record: (not record.name.startswith("jaccard-eval"), record.median("cpu"))):
        name = NAMES.get(record.name, f"{record.name} {{version}}").format(version=record.version)
        cpu, wall, peak = (record.median(what) for what in ("cpu", "wall", "peak_mb"))
        lines.append(f"| {name} | {cpu:.2f} | {wall:.2f} | {peak:.0f} |")
    return "\n".join([*lines, "", processes.agreement(records)])


def all_scenes(output: str) -> str:
    """Return medians of this project by scene, each with its ratio to the compiled peers."""
    heads = " | ".join(f"CPU, wall, peak ÷ {name}" for name in RIVALS)
    lines = [f"| scene | CPU s | wall s | peak MB | {heads} |", f"|---|{'---:|' * (3 + len(RIVALS))}"]
    for scene, records in processes.from_raw(output).items():
        by_name = {record.name: record for record in records}
        own = by_name[OWN]
        cells = [f"{own.median('cpu'):.2f}", f"{own.median('wall'):.2f}", f"{own.median('peak_mb'):.0f}"]
        for name in RIVALS:
            ratios = [f"{own.ratio(by_name[name], what):.2f}" for what in ("cpu", "wall", "peak_mb") if name in by_name]
            cells.append(", ".join(ratios) or "not installed")
        lines.append(f"| {scene} | {' | '.join(cells)} |")
    return "\n".join(lines)


PYCOCOTOOLS = (*RIVALS, "faster-coco-eval", "pycocotools")
SCENES = " ".join(f"--scene {name}" for name in ("12-images", "250k", "1M", "2M", "100k-images"))
THREE = " ".join(f"--only {shlex.quote(name)}" for name in (OWN, *RIVALS))
# In the order in which they run: what is last may find no time.
TABLES = {
    "speed": Table(
        "coco_scale.py", "--json", "--json --scene 12-images --rounds 1", (*PYCOCOTOOLS, "vernier"), one_scene
    ),
    "sizes": Table(
        "coco_scale.py",
        f"--json {SCENES} {THREE}",
        f"--json --scene 12-images --rounds 1 {THREE}",
        RIVALS,
        all_scenes,
    ),
    "shapes": Table("shapes.py", "--patience 5", "--images 20 --rounds 1", (*PYCOCOTOOLS, "shapely")),
    "drop-in": Table("drop_in.py", "1", "1 --images 20", PYCOCOTOOLS[1:]),
    "explaining": Table("explaining.py", "", "--images 20 --rounds 1"),
    "page": Table("page.py", "", "--images 20 --rounds 1"),
    "conversion": Table("conversion.py", "", "--images 20 --rounds 1"),
    "label-maps": Table("label_maps.py", "--maps 60", "--maps 2 --size 256x128 --rounds 1", ("pillow",)),
    "panoptic": Table("panoptic.py", "", "--images 4 --rounds 1", ("pillow", "panopticapi")),
    "reading": Table(
        "reading.py",
        "--rounds 3 --label-files 100000",
        "--rounds 1 --label-files 100",
        ("pandas", "pyarrow", "globox", "supervision"),
    ),
    "training-loop": Table(
        "training_loop.py",
        "2",
        "1",
        ("torch", "torchmetrics", "hotcoco", "faster-coco-eval"),
        settings=(("IMAGES", "20"),),
    ),
    # lvis-api alone would take several minutes, pure Python one.
    "lvis": Table(
        "lvis_scale.py",
        "--images 5000 20000 --rounds 2 --leave-out lvis --leave-out 'jaccard-eval, pure Python'",
        "--images 20 40 --rounds 1 --leave-out lvis --leave-out 'jaccard-eval, pure Python'",
        ("hotcoco", "faster-coco-eval"),
    ),
    "scale": Table(
        "scale.py",
        "--detections 10000000 --engines memory disk dask",
        "--detections 20000 --engines memory disk dask",
        ("pyarrow", "distributed"),
    ),
}


def main() -> None:
    """Run the scripts one after the other and write each table as soon as it is there."""
    options = _parse()
    pages = COPIES if options.small else ROOT
    for page in PAGES if options.small else ():
        (pages / page).parent.mkdir(parents=True, exist_ok=True)
        (pages / page).write_text((ROOT / page).read_text(encoding="utf-8"), encoding="utf-8")
    deadline = time.monotonic() + 60 * options.minutes
    kept = []
    with tempfile.TemporaryDirectory(prefix="jaccard-eval-tables-") as scratch:
        for name in options.only or TABLES:
            table = TABLES[name]
            words = [table.script, *shlex.split(table.small if options.small else table.full)]
            words += ["--out", str(MEMORY)] if name == "conversion" and MEMORY.is_dir() else []
            settings = {"TMPDIR": scratch, **(dict(table.settings) if options.small else {})}
            print(f"{name}: python benchmarks/{shlex.join(words)}", file=sys.stderr, flush=True)
            before = os.getloadavg()[0]
            output = run(words, settings, deadline - time.monotonic())
            if output is None:
                kept.append(name)
                continue
            loads = (before, os.getloadavg()[0])
            body = f"{provenance(words, table.packages, machine(), loads)}\n\n{table.show(output)}"
            write(pages, name, body)
    print(f"Written to {', '.join(str(pages / page) for page in PAGES)}.", file=sys.stderr)
    if kept:
        sys.exit(f"Left as they were, as the script failed or there was no time: {', '.join(kept)}.")


def run(words: Sequence[str], settings: dict[str, str], seconds: float) -> str | None:
    """Return what a script of this folder prints, None where it fails; what takes longer is ended whole."""
    if seconds <= 0:
        return None
    # From this folder, and not that of the checkout, whose package would be imported in place of the installed one.
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=Path(__file__).parent,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output = ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return output if process.returncode == 0 and output.strip() else None


def provenance(words: Sequence[str], packages: Collection[str], where: Machine, loads: tuple[float, float]) -> str:
    """Return the paragraph above a table: how, when, where and with what it was measured, and what is missing."""
    versions = {name: _version(name) for name in ("jaccard-eval", "numpy", *packages)}
    present = [f"{name} {version}" for name, version in versions.items() if version]
    missing = [name for name, version in versions.items() if not version]
    text = (
        f"`python benchmarks/{shlex.join(words)}` on {where.day}: {where.processor}, {where.count} processors,"
        f" load {loads[0]:.1f} before and {loads[1]:.1f} after, {where.system}, Python {where.python};"
        f" {', '.join(present)}."
    )
    return f"{text} Could not be installed: {', '.join(missing)}." if missing else text


def machine() -> Machine:
    """Return this machine, today."""
    names = []
    with contextlib.suppress(OSError):
        names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    processor = names[0] if names else platform.processor() or platform.machine()
    system = f"{platform.system()} {platform.machine()}"
    today = datetime.date.today().isoformat()
    return Machine(today, processor, os.cpu_count() or 1, system, platform.python_version())


def write(pages: Path, name: str, body: str) -> None:
    """Write a table between its marks, on the one page that has them.

    Raises
    ------
    ValueError
        When no page has these marks, or more than one place has.
    """
    pattern = re.compile(rf"^(<!-- table: {re.escape(name)} -->\n)(?:(?!<!-- ).*\n)*?(<!-- end -->)$", re.MULTILINE)
    texts = {pages / page: (pages / page).read_text(encoding="utf-8") for page in PAGES}
    places = sum(len(pattern.findall(text)) for text in texts.values())
    if places != 1:
        raise ValueError(
            f"{places} places between <!-- table: {name} --> and <!-- end --> in {', '.join(PAGES)}: write 1"
        )
    for path, text in texts.items():
        if pattern.search(text):
            path.write_text(pattern.sub(lambda marks: f"{marks[1]}\n{body}\n\n{marks[2]}", text), encoding="utf-8")


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, metavar="NAME", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--minutes", type=float, default=18, help="for all scripts together (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help=f"tiny sets, written to {COPIES.relative_to(ROOT)}")
    return parser.parse_args()


if __name__ == "__main__":
    main()
