"""Measure whole processes: their processor time, wall time and peak memory. Imports nothing big, see `measure`."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
    settings: tuple[tuple[str, str], ...] = ()  # variables of its environment


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

    def ratio(self, other: Record, field: str) -> float:
        """Return the median ratio to another contender's rounds, each to its own: a busy machine slows both."""
        pairs = zip(self.usages, other.usages, strict=False)  # one of the two may have been timed once
        ratios: list[float] = [getattr(usage, field) / getattr(its, field) for usage, its in pairs]
        return median(ratios)


SCRIPTS = {
    "pycocotools": "with_pycocotools.py",
    "faster-coco-eval": "with_faster_coco_eval.py",
    "ultrafast-pycocotools": "with_ultrafast_pycocotools.py",
    "hotcoco": "with_hotcoco.py",
    "vernier": "with_vernier.py",
}


def ours(*, cap: int | None = None) -> list[Contender]:
    """This project's command and library, with the compiled core and without.

    `cap` on detections per image and class instead of COCO's hundred.
    """
    python = Path(sys.executable)
    command = [str(python.with_name("jaccard-eval")), "evaluate", "{gt}", "{dt}", "--json", *_cap("--max-dets", cap)]
    both = [
        Contender("jaccard-eval command", "jaccard-eval", python, tuple(command), _our_stats),
        _scripted("jaccard-eval library", "jaccard-eval", python, "with_jaccard_eval.py", cap),
    ]
    pure = (("JACCARD_EVAL_NATIVE", "0"),)
    return [*both, *(replace(one, name=f"{one.name}, pure Python", settings=pure) for one in both)]


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


def run_rounds(
    present: Sequence[tuple[Contender, str]], gt: Path, dt: Path, rounds: int, *, patience: float = math.inf
) -> list[Record]:
    """Run all contenders in turn, `rounds` times, after one turn that is not counted.

    Of those that take more processor time in that turn than `patience` times the first contender, it is all.
    """
    records = [Record(one.name, version, [], []) for one, version in present]
    longest = math.inf
    once: set[str] = set()
    for turn in range(rounds + 1):
        for (one, _), record in zip(present, records, strict=True):
            if one.name in once:
                continue
            usage, output = measure([part.format(gt=gt, dt=dt) for part in one.argv], dict(one.settings))
            record.stats = one.read_stats(output)
            if record is records[0] and not turn:
                longest = patience * usage.cpu
            if turn or usage.cpu > longest:
                record.usages.append(usage)
            if not turn and usage.cpu > longest:
                once.add(one.name)
        print(f"round {turn} of {rounds} done" if turn else "warmed up", file=sys.stderr)
    return records


def measure(argv: Sequence[str], settings: Mapping[str, str] | None = None) -> tuple[Usage, str]:
    """Run a command to its end; return what it took and what it printed. Bytecode is kept, as for users.

    A process starts with the memory peak of the one that started it, so the caller must be small: numpy and the scene
    stay out of this process.

    Raises
    ------
    subprocess.CalledProcessError
        When the command fails.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= settings or {}
        start = time.perf_counter()
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.DEVNULL, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(argv))
        output.seek(0)
        return Usage(used.ru_utime + used.ru_stime, wall, _megabytes(used)), output.read()


def markdown(records: Sequence[Record]) -> str:
    """Format medians as a Markdown table, with the ratios, in pairs, to the compiled peer of the least CPU time."""
    compiled = [record for record in records if record.name in COMPILED] or list(records)
    fastest = min(compiled, key=lambda record: record.median("cpu"))
    lines = ["| tool | version | CPU s | wall s | peak MB | CPU ratio | wall ratio |", "|---|---|--:|--:|--:|--:|--:|"]
    for record in sorted(records, key=lambda record: record.median("cpu")):
        cpu, wall, peak = (record.median(field) for field in ("cpu", "wall", "peak_mb"))
        ratios = f"{record.ratio(fastest, 'cpu'):.2f} | {record.ratio(fastest, 'wall'):.2f}"
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


def raw(measured: Mapping[str, Sequence[Record]]) -> str:
    """Everything measured of each scene, as JSON."""
    return json.dumps({name: [asdict(record) for record in records] for name, records in measured.items()}, indent=2)


def from_raw(text: str) -> dict[str, list[Record]]:
    """Read what `raw` wrote."""
    return {
        name: [Record(**one | {"usages": [Usage(**usage) for usage in one["usages"]]}) for one in records]
        for name, records in json.loads(text).items()
    }


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
