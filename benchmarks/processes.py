"""Measure whole processes: their processor time, wall time and peak memory. Imports nothing big, see `measure`."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

PEERS = Path(__file__).parent / "peers"
METRICS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")
SIZES = {"s": "_small", "m": "_medium", "l": "_large"}  # this project's suffixes for pycocotools' letters
COMPILED = ("faster-coco-eval", "ultrafast-pycocotools", "hotcoco", "hotcoco command", "vernier")


@dataclass(frozen=True)
class Contender:
    """A tool that can be timed: the package it needs, the command, and where its output has the twelve numbers."""

    name: str
    package: str
    python: Path
    argv: tuple[str, ...]
    read_stats: Callable[[str], list[float]]


@dataclass(frozen=True)
class Usage:
    """What one process took: seconds of user and system time together, seconds on the clock, megabytes at most."""

    cpu: float
    wall: float
    peak_mb: float


@dataclass
class Record:
    """All rounds of one contender and the numbers it printed."""

    name: str
    version: str
    usages: list[Usage]
    stats: list[float]

    def median(self, field: str) -> float:
        values: list[float] = [getattr(usage, field) for usage in self.usages]
        return median(values)


SCRIPTS = {
    "pycocotools": "with_pycocotools.py",
    "faster-coco-eval": "with_faster_coco_eval.py",
    "ultrafast-pycocotools": "with_ultrafast_pycocotools.py",
    "hotcoco": "with_hotcoco.py",
    "vernier": "with_vernier.py",
}


def ours(*, cap: int | None = None) -> list[Contender]:
    """This project's command and library; `cap` on detections per image and class instead of COCO's hundred."""
    python = Path(sys.executable)
    command = [str(python.with_name("jaccard-eval")), "evaluate", "{gt}", "{dt}", "--json", *_cap("--max-dets", cap)]
    return [
        Contender("jaccard-eval command", "jaccard-eval", python, tuple(command), _our_stats),
        _scripted("jaccard-eval library", "jaccard-eval", python, "with_jaccard_eval.py", cap),
    ]


def peers(python: Path, *, cap: int | None = None) -> list[Contender]:
    """The other tools, installed or not; hotcoco's command knows no cap."""
    scripted = [_scripted(name, name, python, script, cap) for name, script in SCRIPTS.items()]
    hotcoco = (str(python.with_name("coco")), "eval", "--gt", "{gt}", "--dt", "{dt}", "--json")
    command = Contender("hotcoco command", "hotcoco", python, hotcoco, _hotcoco_stats)
    return scripted if cap else [*scripted, command]


def installed(candidates: Sequence[Contender]) -> list[tuple[Contender, str]]:
    """Keep those that are installed, with their version; say which are not."""
    present = []
    for one in candidates:
        version = _version(one)
        if version is None:
            print(f"skipped: {one.name} is not installed for {one.python}", file=sys.stderr)
        else:
            present.append((one, version))
    return present


def run_rounds(present: Sequence[tuple[Contender, str]], gt: Path, dt: Path, rounds: int) -> list[Record]:
    """Run all contenders in turn, `rounds` times, after one turn that is not counted."""
    records = [Record(one.name, version, [], []) for one, version in present]
    for turn in range(rounds + 1):
        for (one, _), record in zip(present, records, strict=True):
            usage, output = measure([part.format(gt=gt, dt=dt) for part in one.argv])
            record.stats = one.read_stats(output)
            if turn:
                record.usages.append(usage)
        print(f"round {turn} of {rounds} done" if turn else "warmed up", file=sys.stderr)
    return records


def measure(argv: Sequence[str]) -> tuple[Usage, str]:
    """Run a command to its end; return what it took and what it printed.

    A process starts with the memory peak of the one that started it, so the caller must be small: numpy and the scene
    stay out of this process.

    Raises
    ------
    subprocess.CalledProcessError
        When the command fails.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        start = time.perf_counter()
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(argv))
        output.seek(0)
        return Usage(used.ru_utime + used.ru_stime, wall, _megabytes(used)), output.read()


def markdown(records: Sequence[Record]) -> str:
    """Format medians and their ratios to the fastest compiled peer as a Markdown table."""
    compiled = [record for record in records if record.name in COMPILED] or list(records)
    fastest = {field: min(record.median(field) for record in compiled) for field in ("cpu", "wall")}
    lines = ["| tool | version | CPU s | wall s | peak MB | CPU ratio | wall ratio |", "|---|---|--:|--:|--:|--:|--:|"]
    for record in records:
        cpu, wall, peak = (record.median(field) for field in ("cpu", "wall", "peak_mb"))
        ratios = f"{cpu / fastest['cpu']:.2f} | {wall / fastest['wall']:.2f}"
        lines.append(f"| {record.name} | {record.version} | {cpu:.2f} | {wall:.2f} | {peak:.0f} | {ratios} |")
    return "\n".join(lines)


def agreement(records: Sequence[Record], *, only: int | None = None) -> str:
    """Say whether all contenders printed the same numbers (or the same number in place `only`), or how they differ."""
    chosen = slice(None) if only is None else slice(only, only + 1)
    first = records[0]
    others = [(one.name, _largest_difference(first.stats[chosen], one.stats[chosen])) for one in records[1:]]
    different = [f"{name} by up to {by:.3g}" for name, by in others if by]
    what = f"{len(first.stats)} numbers" if only is None else METRICS[only]
    if different:
        return f"Not the same {what} as {first.name}: {', '.join(different)}."
    return (
        f"All {len(records)} print the same {what}, to the last bit; {METRICS[only or 0]} {first.stats[only or 0]:.4f}."
    )


def raw(records: Sequence[Record]) -> str:
    """Everything measured, as JSON."""
    return json.dumps([asdict(record) for record in records], indent=2)


def make_scene(folder: Path, *arguments: str) -> tuple[Path, Path]:
    """Write a scene in another process, so that this one stays small; return the two paths."""
    scenes = Path(__file__).with_name("scenes.py")
    subprocess.run([sys.executable, str(scenes), str(folder), *arguments], check=True)
    return folder / "gt.json", folder / "dt.json"


def _scripted(name: str, package: str, python: Path, script: str, cap: int | None) -> Contender:
    argv = (str(python), str(PEERS / script), "{gt}", "{dt}", *_cap("", cap))
    return Contender(name, package, python, argv, _last_line_stats)


def _cap(option: str, cap: int | None) -> list[str]:
    return [part for part in (option, str(cap)) if part] if cap else []


def _version(contender: Contender) -> str | None:
    question = f"from importlib.metadata import version; print(version({contender.package!r}))"
    answer = subprocess.run(
        [str(contender.python), "-c", question], capture_output=True, text=True, check=False, cwd=PEERS
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def _last_line_stats(output: str) -> list[float]:
    stats: list[float] = json.loads(output.strip().splitlines()[-1])
    return stats


def _our_stats(output: str) -> list[float]:
    metrics = json.loads(output)["metrics"]
    values = (metrics.get(name[:2] + SIZES.get(name[2:], name[2:])) for name in METRICS)
    return [-1.0 if value is None else value for value in values]  # the peers write -1 where there is no value


def _hotcoco_stats(output: str) -> list[float]:
    metrics: dict[str, Any] = json.loads(output)["metrics"]
    return [metrics[name] for name in METRICS]


def _largest_difference(left: Sequence[float], right: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(left, right, strict=True))


def _megabytes(used: resource.struct_rusage) -> float:
    per_megabyte = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes there, in kilobytes here
    return used.ru_maxrss / per_megabyte
