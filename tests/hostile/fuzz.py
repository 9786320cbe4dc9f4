"""Fuzz the whole command line, each case in a process of its own: `make fuzz SECONDS=600`.

    python tests/hostile/fuzz.py --seed 7 --seconds 60 --jobs 2
    python tests/hostile/fuzz.py --seed 7 --case 123       one case again

A failing case is shrunk and kept in build/fuzz: its inputs, its command, and what was wrong. The exit code is 0 if
nothing was wrong, else 1.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

resource = pytest.importorskip("resource", reason="needs limits of POSIX")

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

from command_line import environment  # noqa: E402
from fuzz_cases import Case, Stock  # noqa: E402
from inertness import active_characters  # noqa: E402

PROGRAM = (sys.executable, "-m", "jaccard_eval")
KEPT = ROOT / "build/fuzz"
CPU_SECONDS = 20  # of one run, for inputs of at most some hundred kilobytes
WALL_SECONDS = 120  # the machine may be busy
ADDRESS_SPACE = 4 << 20  # KB
RESIDENT = 600 << 20  # what libraries and a small input take is below 250 MB
FILE_SIZE = 64 << 10  # KB
LIMITS = f'ulimit -v {ADDRESS_SPACE} -f {FILE_SIZE} -c 0 -t "$0" && exec "$@"'
MAX_SAID = 20_000  # characters on standard error
DOCUMENTED = (0, 1, 2, 3, 4)
SHOWS_WHAT_IT_COULD_READ = ("inspect", "suite", "verify")  # before they end with 3
SHRINK_RUNS = 40
CODES_OF_NO_RESULT = range(2, 5)
COLORS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Run:
    """How a process ended, and what it left."""

    code: int
    out: str
    err: str
    resident: int
    before: dict[str, str]
    after: dict[str, str]

    @property
    def changed(self) -> set[str]:
        return {name for name, content in self.before.items() if self.after.get(name) != content}

    @property
    def added(self) -> set[str]:
        return set(self.after) - set(self.before)


def execute(words: list[str], folder: Path, env: dict[str, str], program: tuple[str, ...] = PROGRAM) -> Run:
    """Run a command line in a folder, within limits."""

    before = snapshot(folder)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            ["bash", "-c", LIMITS, str(CPU_SECONDS), *program, *words],
            cwd=folder,
            env=environment({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        deadline = time.monotonic() + WALL_SECONDS
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        while not done and time.monotonic() < deadline:
            time.sleep(0.005)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if not done:
            os.killpg(process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8", "replace"))
    after = snapshot(folder)
    # A child begins with the peak of the process that started it: what is not above that is not seen.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resident = usage.ru_maxrss * 1024 if usage.ru_maxrss > own else 0
    return Run(process.returncode, said[0], said[1], resident, before, after)


def snapshot(folder: Path) -> dict[str, str]:
    """What every path below a folder is: the digest of a file, the target of a link."""
    content = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            content[name] = f"link to {path.readlink()}"
        elif path.is_file():
            content[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content[name] = "folder" if path.is_dir() else "special"
    return content


def faults(words: list[str], run: Run, folder: Path) -> list[str]:
    """Return what is wrong with a run, each as a short sentence that is the same for the same fault."""
    return [*_faults_of_end(run), *_faults_of_message(words, run), *_faults_of_files(words, run, folder)]


def _faults_of_end(run: Run) -> Iterator[str]:
    if run.code in (-signal.SIGXCPU, -signal.SIGKILL):  # by the limit of its time, or when nobody waits any longer
        yield f"took more than {CPU_SECONDS} s"
    elif run.code not in DOCUMENTED:
        yield f"ended with {run.code}"
    if run.resident > RESIDENT:
        yield f"took more than {RESIDENT >> 20} MB"
    if "out of memory" in run.err:
        yield "ran out of memory"


def _faults_of_message(words: list[str], run: Run) -> Iterator[str]:
    err = COLORS.sub("", run.err)
    if "Traceback (most" in run.err or "internal error" in run.err:
        yield f"internal error: {_last_line(run.err)}"
    if re.search(r"^\S+\.py:\d+: \w*Warning", run.err, re.MULTILINE):
        yield f"a library's warning: {_last_line(run.err)}"
    if len(run.err) > MAX_SAID:
        yield f"more than {MAX_SAID} characters on standard error"
    if active_characters(err):
        yield "active characters on standard error"
    if run.code in CODES_OF_NO_RESULT:
        if not re.search(r"^error[\[:]", err, re.MULTILINE):
            yield "no error message"
        if run.out and words[0] not in SHOWS_WHAT_IT_COULD_READ:
            yield "standard output without a result"
    if run.code == 1 and not any(word.startswith(("--fail", "--config", "gate")) for word in words):
        yield "a failed gate where none was asked for"
    if run.code in (0, 1) and "--json" in words and run.out.startswith(("{", "[")):
        yield from _faults_of_json(run.out, "standard output")


def _faults_of_json(text: str, name: str) -> Iterator[str]:
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        yield f"{name}: invalid JSON: {error}"


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _faults_of_files(words: list[str], run: Run, folder: Path) -> Iterator[str]:
    may_write = run.code in (0, 1) or (run.code == 3 and words[0] in SHOWS_WHAT_IT_COULD_READ)
    outputs = {os.path.normpath(word) for flag, word in pairwise(words) if flag in ("-o", "--output")}
    outputs |= {os.path.normpath(words[2])} if words[0] == "convert" and len(words) > 2 else set()
    for name in sorted(run.changed):
        if not (may_write and (name in outputs or name == "out/old.json")) and not _is_baseline(name, words, may_write):
            yield f"changed {name}"
    for name in sorted(run.added):
        if words[0] == "suite" and ".jaccard-eval-suite" in name.split("/")[-2:]:
            continue  # what it keeps for the next run
        if ".jaccard-eval-" in name:
            yield "left a temporary file"
        elif name == "gl-code-quality-report.json" and "--ci" in words:  # which lists errors, too
            continue
        elif not may_write:
            yield f"left {name} without a result"
        # What was asked for, what lies in it, and the folders above it where it was written.
        elif not any(
            name == output or name.startswith(f"{output}/") or (output in run.added and output.startswith(f"{name}/"))
            for output in outputs
        ):
            yield f"left {name}, which was not asked for"
        # The format is that of --to or of what was read, whatever the name is.
        elif (folder / name).is_file() and words[0] not in ("convert", "nms"):
            yield from _faults_of_output(folder / name)


def _is_baseline(name: str, words: list[str], may_write: bool) -> bool:
    return may_write and name.startswith("saved/") and "--update-baseline" in words


def _faults_of_output(path: Path) -> Iterator[str]:
    if path.suffix == ".json":
        yield from _faults_of_json(path.read_text(encoding="utf-8"), path.name)
    elif path.suffix in (".xml", ".svg"):
        try:
            ElementTree.fromstring(path.read_bytes())
        except ElementTree.ParseError as error:
            yield f"{path.name}: invalid XML: {error}"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:200]


def shrink(case: Case, found: list[str], judge: Callable[[Case], list[str]]) -> Case:
    """Return the case without the parts that its first fault does not need."""
    kind = _kind(found[0])
    runs = 0
    waiting = case.smaller()
    while waiting and runs < SHRINK_RUNS:
        runs += 1
        smaller = waiting.pop(0)
        if any(_kind(fault) == kind for fault in judge(smaller)):
            case, waiting = smaller, smaller.smaller()
    return case


def _kind(fault: str) -> str:
    return re.sub(r"[\d'\"].*", "", fault)


class Fuzzer:
    """Runs cases of one seed; keeps those that fail."""

    def __init__(self, seed: int, scratch: Path, kept: Path = KEPT, program: tuple[str, ...] = PROGRAM) -> None:
        """Make the inputs in `scratch`."""
        self.seed, self.scratch, self.kept, self.program = seed, scratch, kept, program
        self.stock = Stock(ROOT / "sample_data", scratch / "stock")
        # Bytecode and fonts are cached as on any machine, but not among the files that are looked at.
        self.home = {"HOME": str(scratch), "MPLCONFIGDIR": str(scratch / "fonts"), "XDG_CACHE_HOME": str(scratch)}
        self.home |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
        self.codes: collections.Counter[tuple[str, int]] = collections.Counter()

    def judge(self, case: Case) -> list[str]:
        """Run a case and return its faults."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            self.stock.prepare(case, Path(folder))
            run = execute(case.words, Path(folder), self.home | dict(case.environment), self.program)
            self.codes[case.head[0], run.code] += 1
            return faults(case.words, run, Path(folder))

    def check(self, number: int) -> list[str]:
        """Draw and judge a case; one that fails is shrunk, kept and printed."""
        case = self.stock.draw(self.seed, number)
        found = self.judge(case)
        if found:
            case = shrink(case, found, self.judge)
            print(self._keep(case, found), flush=True)
        return found

    def _keep(self, case: Case, found: list[str]) -> str:
        folder = self.kept / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.stock.prepare(case, folder / "inputs")
        env = [f"{key}={value}" for key, value in case.environment]
        command = shlex.join(["env", "-C", str(folder / "inputs"), *env, *self.program, *case.words])
        again = f"python tests/hostile/fuzz.py --seed {self.seed} --case {case.name.split('-')[-1]}"
        report = "\n".join([f"FAILED {case.name}", *(f"  {fault}" for fault in found), f"  {command}", f"  {again}"])
        text = ascii(report).replace("\\n", "\n")[1:-1]
        (folder / "report.txt").write_text(text + "\n")
        return text


def main() -> int:
    """Fuzz for some seconds, or run one case."""
    parser = argparse.ArgumentParser(description="Fuzz the whole command line; see the head of this file.")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", type=int, help="run this case only")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    print(f"fuzz: seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        fuzzer = Fuzzer(options.seed, Path(scratch))
        if options.case is not None:
            case = fuzzer.stock.draw(options.seed, options.case)
            print(ascii(case.words), *(damage.file for damage in case.damages), sep="\n")
            return int(bool(fuzzer.check(options.case)))
        failed = run_for(fuzzer, options.seconds, options.jobs, options.first)
    return int(failed > 0)


def run_for(fuzzer: Fuzzer, seconds: float, jobs: int, first: int = 0) -> int:
    """Judge cases in order until the time is over; print a summary and return how many failed."""
    end = time.monotonic() + seconds
    numbers = iter(range(first, sys.maxsize))

    def work() -> list[bool]:
        done = []
        while time.monotonic() < end:
            done.append(bool(fuzzer.check(next(numbers))))
        return done

    with ThreadPoolExecutor(jobs) as pool:
        results = [failed for done in [pool.submit(work) for _ in range(jobs)] for failed in done.result()]
    ends: collections.Counter[int] = collections.Counter()
    for (_, code), n in fuzzer.codes.items():
        ends[code] += n
    counts = ", ".join(f"{code}: {n}" for code, n in sorted(ends.items()))
    print(f"fuzz: seed {fuzzer.seed}, {len(results)} cases, {sum(results)} failed; runs by exit code: {counts}")
    return sum(results)


if __name__ == "__main__":
    sys.exit(main())
