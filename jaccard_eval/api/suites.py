"""Many models on many sets: found by patterns, evaluated in processes, and not again where nothing has changed.

Saved evaluations are also followed from run to run.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import pickle
import queue
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, fields, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from jaccard_eval.api.boxes import evaluate
from jaccard_eval.api.library import for_programs
from jaccard_eval.api.results import with_parts
from jaccard_eval.atomic import replace_file
from jaccard_eval.data.document import DIGEST, document_digest
from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.data.metricref import EXTERNAL, MetricRef
from jaccard_eval.data.result import EvaluationResult, GateVerdict
from jaccard_eval.engine import path_of, session
from jaccard_eval.engine.threads import map_in_order
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.features.compare.comparison import AUTO
from jaccard_eval.features.gates import Gates, parse_rule
from jaccard_eval.features.gates.judging import judge
from jaccard_eval.features.history import HistoryResult
from jaccard_eval.features.history.following import GIVEN, history_of, in_order
from jaccard_eval.features.suite import DONE, FAILED, MISSING, SuiteCell, SuiteResult
from jaccard_eval.features.suite.compute import gate_names, gate_values, group_means, standings_of
from jaccard_eval.findings import DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.formats import Opened, format_module, leads_to
from jaccard_eval.frozen import dataclass
from jaccard_eval.meanwhile import usable_processors
from jaccard_eval.options import Bootstrap, EngineOptions, PathText, exempting
from jaccard_eval.progress import Stage, tracked
from jaccard_eval.reading.files import open_regular
from jaccard_eval.report import ReportOptions
from jaccard_eval.runs import invalid_document, load_result, run_beside, saved_run_of
from jaccard_eval.text import did_you_mean, distinct_ends, example_keys, quoted_value
from jaccard_eval.version import __version__

CACHE = ".jaccard-eval-suite"
MODEL, SET = "model", "set"
_FIELD = re.compile(r"\{([a-z_]+)\}")
_WORKER = "from jaccard_eval.api.suites import serve; serve()"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What is evaluated: where ground truth and predictions are, and how they are read.

    Parameters
    ----------
    gt, pred : str
        Patterns of paths: ``{set}`` and ``{model}`` are names, ``*`` is anything. Further names in braces are
        dimensions; ``{seed}``, ``{corruption}`` and ``{severity}`` have a meaning. A file's suffix need not be given.
    models, sets : sequence of str
        Those to take, in this order; all that are found if empty. Others are tested against the first model.
    metric : str
    groups : mapping of str to sequence of str
        Names of groups, each with names or globs of the sets in it.
    options : mapping
        Keywords of `evaluate`, for all sets.
    set : mapping of str to mapping
        The same for one set, with ``gt``, the path of its ground truth, and ``pred``, the pattern of its predictions,
        if those of the plan do not lead there.
    gates : sequence of str
        Rules such as ``mean[model=yolo]>=0.5``, ``rank[model=yolo]<=2`` and ``cell[model=yolo,set=dogs]>=0.4``.
    """

    gt: str = ""
    pred: str = ""
    models: Sequence[str] = ()
    sets: Sequence[str] = ()
    metric: str = "AP"
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: Sequence[str] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SuitePlan:
        """Take a mapping as a plan; a UsageError has all that is wrong with it."""
        known = {item.name: str(item.type).partition("[")[0] for item in fields(cls)}
        kinds: dict[str, type | tuple[type, ...]] = {"str": str, "Mapping": Mapping, "Sequence": (list, tuple)}
        problems = [
            f"unknown key {quoted_value(key)}.{did_you_mean(str(key), known)}" for key in given if key not in known
        ]
        problems += [
            f"{name}: expected {kind.lower()}, got {quoted_value(type(given[name]).__name__)}"
            for name, kind in known.items()
            if name in given and not isinstance(given[name], kinds[kind])
        ]
        problems += [f"{name} is missing: a pattern of paths" for name in ("gt", "pred") if not given.get(name)]
        if problems:
            raise UsageError("; ".join(problems))
        plan = cls(**given)
        named = {"pred": set(_FIELD.findall(plan.pred)), "gt": set(_FIELD.findall(plan.gt))}
        if MODEL not in named["pred"]:
            problems.append(f"pred: {quoted_value(plan.pred)} names no {{model}}")
        if lost := sorted(named["gt"] - named["pred"]):
            problems.append(f"pred: {quoted_value(plan.pred)} has no {{{lost[0]}}}, which gt has")
        if problems:
            raise UsageError("; ".join(problems))
        return plan


@for_programs
@session()
def suite(
    plan: Mapping[str, Any],
    *,
    folder: PathText = ".",
    bootstrap: Bootstrap | int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    cache: bool = True,
) -> SuiteResult:
    """Evaluate many models on many sets, each pair as `evaluate` does it.

    A pair that cannot be evaluated has its problem in its cell and among the findings, and does not end the others.

    Parameters
    ----------
    plan : mapping
        Where everything is: the fields of `SuitePlan`, as in the file of ``jaccard-eval suite``.
    folder : path
        What its paths start from.
    bootstrap : Bootstrap or int, optional
        Resamples of the images of each set, for intervals of means; without it sets alone are resampled.
    workers : int, optional
        Processes; as many as there are processors if None.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers evaluate and see the same paths.
    cache : bool
        Keep results in ``.jaccard-eval-suite`` in the folder, and take those whose inputs and options are the same.

    Raises
    ------
    UsageError
        When the plan is wrong, or a name in it is not there.
    DataError
        When its patterns lead nowhere.

    Examples
    --------
    >>> from jaccard_eval import suite
    >>> plan = {"gt": "sample_data/coco/gt.json", "pred": "sample_data/coco/{model}.json"}
    >>> result = suite({**plan, "models": ["better", "worse"]}, cache=False)
    >>> [(row.model, round(row.mean, 4)) for row in result.standings]
    [('better', 0.6616), ('worse', 0.3463)]
    """
    drawn = Bootstrap(n_resamples=bootstrap) if isinstance(bootstrap, int) and bootstrap else bootstrap or None
    return run_suite(SuitePlan.of(plan), Path(folder), drawn, workers=workers, scheduler=scheduler, cache=cache)


def run_suite(
    plan: SuitePlan,
    folder: Path,
    bootstrap: Bootstrap | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    cache: bool = True,
    pages: bool = False,
) -> SuiteResult:
    """Evaluate what a plan finds; cells have a page where `pages` are asked for."""
    ref = str(MetricRef.parse(plan.metric))
    rules = [parse_rule(f"{EXTERNAL}{text.strip()}") for text in plan.gates]
    findings = FindingLog()
    cells = find_cells(plan, folder, findings)
    findings.raise_errors()
    models = _order(plan.models, [cell.model for cell in cells])
    sets = _order(plan.sets, [cell.set_name for cell in cells])
    groups = {
        group: [name for name in sets if any(fnmatchcase(name, pattern) for pattern in globs)]
        for group, globs in plan.groups.items()
    }
    if empty := [group for group, chosen in groups.items() if not chosen]:
        raise UsageError(
            f"groups: no set matches {', '.join(map(quoted_value, empty))}; there are {example_keys(sets)}"
        )
    known = gate_names(models, sets)
    for rule in rules:
        if (name := rule.metric.removeprefix(EXTERNAL)) not in known:
            raise UsageError(f"gates: a suite has no {quoted_value(name)}.{did_you_mean(name, known)}")
    jobs = [_job(plan, folder, cell, ref, bootstrap, pages=pages) for cell in cells if cell.state == DONE]
    store = folder / CACHE if cache else None
    records = _evaluated(jobs, store, workers=workers, scheduler=scheduler)
    # What the plan asks for wrongly is not the fault of a pair.
    if wrong := dict.fromkeys(record["problem"] for record in records if record.get("is_usage")):
        raise UsageError("\n".join(wrong))
    found = dict(zip((id(cell) for cell in cells if cell.state == DONE), records, strict=True))
    shown = [found.get(id(cell)) for cell in cells]
    done = [cell if record is None else _filled(cell, record) for cell, record in zip(cells, shown, strict=True)]
    for cell in done:
        if cell.state == FAILED:
            findings.warning("suite-failed", Where(cell.pred, record=cell.spelled), f"not evaluated: {cell.problem}")
    measured = list(dict.fromkeys(name for cell in done for name in cell.metrics))
    if measured and ref not in measured:
        raise UsageError(f"unknown metric {quoted_value(plan.metric)} for a suite.{did_you_mean(ref, measured)}")
    level = bootstrap.confidence_level if bootstrap else 0.95
    rows = standings_of(models, sets, done, ref, level=level)
    result = SuiteResult(
        version=__version__,
        signature=_signature(done, ref, bootstrap),
        metric=ref,
        models=models,
        sets=sets,
        cells=tuple(done),
        standings=rows,
        groups=group_means(groups, models, done, ref),
        resampled="sets and images" if bootstrap and all(cell.draws for cell in done if cell.state == DONE) else "sets",
        confidence_level=level,
        reused=sum(bool(record and record.get("reused")) for record in shown),
        findings=findings.findings(),
    )
    gates = tuple(_judged(Gates(rules=tuple(rules)), gate_values(rows, models, result.values))) if rules else ()
    return replace(result, gates=gates)


def find_cells(plan: SuitePlan, folder: Path, findings: FindingLog) -> list[SuiteCell]:
    """Return the cells that patterns find, by model and set; what has no other side, or two, is among the findings."""
    keys = [name for name in dict.fromkeys(_FIELD.findall(plan.pred)) if name not in (MODEL, SET)]
    shared = [name for name in dict.fromkeys(_FIELD.findall(plan.gt)) if name != SET]
    chosen = {SET: plan.sets, MODEL: plan.models}
    truths = _places(plan.gt, folder, [SET, *shared], findings, chosen=chosen)
    for name, own in plan.set.items():
        if "gt" in own:
            truths[name,] = str(own["gt"])
    sets = _order(plan.sets, [name for name, *_ in truths])
    known = {} if SET in _FIELD.findall(plan.pred) else {SET: sets[0] if sets else ""}
    preds = _places(plan.pred, folder, [MODEL, SET, *keys], findings, chosen=chosen, known=known)
    for name, own in plan.set.items():
        for names, path in _matches(str(own["pred"]), folder) if "pred" in own else ():
            preds[names.get(MODEL, ""), name, *(names.get(key, "") for key in keys)] = path
    models = _order(plan.models, [place[0] for place in preds])
    _require_known(MODEL, plan.models, {place[0] for place in preds})
    _require_known(SET, plan.sets, {name for name, *_ in truths})
    where = Where(str(folder))
    for pattern, found in ((plan.gt, truths), (plan.pred, preds)):
        if not found:
            fix = "Name the folder that its paths start from, or change it."
            findings.error("suite-missing", where, f"nothing matches the pattern {quoted_value(pattern)}", fix=fix)
    strangers = sorted({place[1] for place in preds} - {name for name, *_ in truths})
    if strangers and truths and not plan.sets:
        findings.warning("suite-missing", where, f"no ground truth for the sets {example_keys(strangers)}: ignored")
    cells = []
    for model, name, rest in product(models, sets, dict.fromkeys(place[2:] for place in preds)):
        at = dict(zip(keys, rest, strict=True))
        gt = truths.get((name, *(at.get(key, model) for key in shared)), truths.get((name,), ""))
        pred = preds.get((model, name, *rest), "")
        cells.append(
            SuiteCell(model=model, set_name=name, at=at, gt=gt, pred=pred, state=DONE if gt and pred else MISSING)
        )
    lacking = [cell.spelled for cell in cells if cell.state == MISSING]
    if lacking:
        detail = f"no predictions: {example_keys(lacking)}; means are over the sets that all models have"
        findings.warning("suite-missing", where, detail)
    return cells


def _places(
    pattern: str,
    folder: Path,
    keys: Sequence[str],
    findings: FindingLog,
    *,
    chosen: Mapping[str, Sequence[str]],
    known: Mapping[str, str] | None = None,
) -> dict[tuple[str, ...], str]:
    """Return the paths that a pattern finds by the names in it; two for the same names are an error.

    Of models and sets of which some are `chosen`, the others are none of the plan.
    """
    where = Where(str(folder))
    found: dict[tuple[str, ...], list[str]] = {}
    for names, path in _matches(pattern, folder):
        named = {SET: Path(path).name.partition(".")[0], **(known or {}), **names}
        found.setdefault(tuple(named[key] for key in keys), []).append(path)
    wanted = {
        place: paths
        for place, paths in found.items()
        if all(not chosen.get(key) or name in chosen[key] for key, name in zip(keys, place, strict=True))
    }
    for place, paths in wanted.items():
        if len(paths) > 1:
            detail = f"{len(paths)} inputs for {', '.join(place)}: {example_keys(paths)}"
            findings.error("suite-ambiguous", where, detail, fix="Name one of them in the pattern.")
    for key, of_key in zip(keys, zip(*wanted, strict=True), strict=False):
        spelled: dict[str, str] = {}
        for name in sorted(set(of_key)):
            if spelled.setdefault(name.casefold(), name) != name:
                detail = f"{key} {quoted_value(spelled[name.casefold()])} and {quoted_value(name)} differ in case alone"
                findings.warning("suite-ambiguous", where, detail)
    return {place: paths[0] for place, paths in found.items()}


def _require_known(what: str, asked: Sequence[str], there: Set[str]) -> None:
    for name in asked:
        if there and name not in there:
            raise UsageError(f"there is no {what} {quoted_value(name)}.{did_you_mean(name, there)}")


def _matches(pattern: str, folder: Path) -> Iterator[tuple[dict[str, str], str]]:
    """Yield what a pattern finds, sorted: the names at its braces, and the path, relative as it was written."""
    seen: set[str] = set()
    text, place = "", 0
    for found in _FIELD.finditer(pattern):
        name, before = found[1], pattern[place : found.start()]
        text += _literal(before) + (f"(?P={name})" if name in seen else f"(?P<{name}>[^/]+)")
        place, seen = found.end(), seen | {name}
    ends = place == len(pattern) and bool(seen)  # the suffix of a file belongs to no name
    whole = re.compile(text + _literal(pattern[place:]))
    wanted = re.sub(r"\[", "[[]", _FIELD.sub("*", pattern))
    for path in sorted(glob.glob(wanted, root_dir=folder)):  # noqa: PTH207 - paths stay as the pattern has them
        match = whole.fullmatch(Path(path).as_posix())
        if match is None:
            continue
        names = match.groupdict()
        if ends and (folder / path).is_file():
            last = _FIELD.findall(pattern)[-1]
            names[last] = names[last].rpartition(".")[0] or names[last]
        yield names, path


def _literal(text: str) -> str:
    return re.escape(text).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


def _order(asked: Sequence[str], found: Iterable[str]) -> tuple[str, ...]:
    """Return the names that were asked for, else all that were found, sorted."""
    return tuple(asked) or tuple(sorted(set(found)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One pair to evaluate: nothing but this goes to another process."""

    gt: str
    pred: str
    options: Mapping[str, Any]
    shared: tuple[str, ...]  # options of all pairs, which need not have an effect in each
    metric: str
    pages: bool


def _job(
    plan: SuitePlan, folder: Path, cell: SuiteCell, metric: str, bootstrap: Bootstrap | None, *, pages: bool
) -> Job:
    own = {name: value for name, value in plan.set.get(cell.set_name, {}).items() if name not in ("gt", "pred")}
    options = {**plan.options, **own, "bootstrap": bootstrap, "errors": pages}
    shared = tuple(name for name in plan.options if name not in own)
    where = {"gt": str(folder / cell.gt), "pred": str(folder / cell.pred)}
    return Job(options=options, shared=shared, metric=metric, pages=pages, **where)


def evaluate_job(job: Job) -> dict[str, Any]:
    """Evaluate a pair; return what a cell shows of it, plain types all the way down."""
    try:
        with exempting(job.shared):
            result = evaluate(job.gt, job.pred, **job.options)
    except JaccardEvalError as error:
        first = error.findings[0].statement if isinstance(error, DataError) else str(error)
        return {"state": FAILED, "problem": first.partition("\n")[0], "is_usage": isinstance(error, UsageError)}
    draws = result.bootstrap
    column = draws.refs.index(job.metric) if draws is not None and job.metric in draws.refs else None
    page = ""
    if job.pages:
        from jaccard_eval.report.outputs.html import render

        page = render(result, ReportOptions(gallery=0))
    return {
        "state": DONE,
        "images": result.gt.images,
        "objects": result.gt.boxes,
        "detections": result.pred.boxes,
        "metrics": {name: metric.value for name, metric in result.metrics.items()},
        "warnings": [finding.code for finding in result.findings if finding.severity is Severity.WARNING],
        "signature": result.signature,
        "draws": [] if draws is None or column is None else draws.values[:, column].tolist(),
        "page": page,
        "beside": _beside(job.gt, job.pred),
    }


def _filled(cell: SuiteCell, record: Mapping[str, Any]) -> SuiteCell:
    known = {name: record[name] for name in record if name not in ("reused", "beside", "is_usage")}
    for name in ("warnings", "draws"):
        known[name] = tuple(known.get(name, ()))
    return replace(cell, **known)


def _evaluated(
    jobs: Sequence[Job], store: Path | None, *, workers: int | None, scheduler: str | None
) -> list[dict[str, Any]]:
    """Return the record of each job: that of an earlier run where nothing has changed, else a new one, to be kept."""
    digest = cache(digest_of)  # ground truth is that of many jobs
    keys = [*map(partial(_key, digest=digest), jobs)] if store is not None else [""] * len(jobs)
    records = [None if store is None else _kept(store, key, job, digest) for key, job in zip(keys, jobs, strict=True)]
    open_jobs = [row for row, record in enumerate(records) if record is None]
    new = _computed([jobs[row] for row in open_jobs], workers, scheduler)
    with Stage("evaluating", len(open_jobs)) as stage:
        for row, record in zip(open_jobs, new, strict=True):
            records[row] = record
            if store is not None and record["state"] == DONE:
                _keep(store, keys[row], record)
            stage.advance(1)
    return [record for record in records if record is not None]


def _computed(jobs: Sequence[Job], workers: int | None, scheduler: str | None) -> Iterator[dict[str, Any]]:
    if scheduler is not None:
        from jaccard_eval.engine.dask_ import Cluster

        with contextlib.closing(Cluster(EngineOptions(engine="dask", scheduler=scheduler))) as cluster:
            cluster.wait_for_worker()
            yield from cluster.map(evaluate_job, "suite", jobs, lambda job: job.pred)
        return
    count = min(usable_processors() if workers is None else workers, len(jobs) // 2)
    if count <= 1:
        yield from map(evaluate_job, jobs)
        return
    # Processes of their own, not copies of this one: a program that calls this needs no guard, whatever it has open.
    with _Processes(count) as processes:
        yield from map_in_order(processes.evaluate, jobs, workers=count)


class _Processes:
    """Python processes that evaluate what they are sent."""

    def __init__(self, count: int) -> None:
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._all = [self._started() for _ in range(count)]
        for process in self._all:
            self._idle.put(process)

    def _started(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _WORKER]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all:
            process.kill()
            process.communicate()

    def evaluate(self, job: Job) -> dict[str, Any]:
        """Have a process that is idle evaluate a pair; one that ends takes no other pair with it."""
        process = self._idle.get()
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            record: dict[str, Any] = pickle.load(process.stdout)  # noqa: S301 - of our own process
        except (EOFError, OSError, pickle.UnpicklingError):
            code = process.wait()
            record = {"state": FAILED, "problem": f"the process ended with {code}; with less work at once it may not"}
            process = self._started()
            self._all.append(process)
        self._idle.put(process)
        return record


def serve() -> None:
    """Evaluate pairs as they come on the standard input, until it ends; what is printed goes to the standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            pickle.dump(evaluate_job(pickle.load(sys.stdin.buffer)), answers)  # noqa: S301 - of the process that began it
            answers.flush()


def digest_of(path: str) -> str:
    """Return the SHA-256 of what lies at a path, which may be a folder, or nothing."""
    if not Path(path).is_dir():
        return _digest_of_file(path)
    total = hashlib.sha256()
    for folder, names, files in os.walk(path):
        names.sort()
        for name in sorted(files):
            full = f"{folder}/{name}"
            total.update(f"{os.path.relpath(full, path)}\0{_digest_of_file(full)}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _digest_of_file(path: str) -> str:
    try:
        if is_image_name(path):  # only width and height are read: size and time are taken instead of the bytes
            found = Path(path).stat()
            return f"{found.st_size}:{found.st_mtime_ns}"
        with open_regular(Path(path)) as file:  # a pipe would be waited for
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (DataError, OSError):
        return "-"


def _key(job: Job, *, digest: Callable[[str], str]) -> str:
    """Return what decides about the record of a job: bytes of all that is read, options, and the version."""
    given = [job.options[name] for name in sorted(job.options)]
    named = [part for part in re.split(r"['\"]", repr(given)) if part and Path(part).is_file()]
    contents = [(path, digest(path)) for path in dict.fromkeys((job.gt, job.pred, *named))]
    text = repr((__version__, job.metric, sorted(job.options), given, contents))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _beside(*paths: str) -> dict[str, str]:
    """Return digests of what lies next to inputs and is read with them, or would be if it were there."""
    found: dict[str, str] = {}
    for path in paths:
        place, name = Opened(Path(path)).found
        found |= {str(beside): digest_of(str(beside)) for beside in leads_to(format_module(name), place, "")}
    return found


def _kept(store: Path, key: str, job: Job, digest: Callable[[str], str]) -> dict[str, Any] | None:
    """Return what an earlier run kept; None where there is nothing, or it is not as it was written."""
    try:
        record: dict[str, Any] = json.loads((store / f"{key}.json").read_text(encoding="utf-8"))
        if record.pop(DIGEST, None) != document_digest(record):
            return None
        if any(digest(path) != known for path, known in record.pop("beside").items()):
            return None
        page = (store / f"{key}.html").read_text(encoding="utf-8") if job.pages else ""
    except (OSError, ValueError, KeyError):
        return None
    metrics = {name: float("nan") if value is None else value for name, value in record["metrics"].items()}
    return record | {"metrics": metrics, "page": page, "reused": True}


def _keep(store: Path, key: str, record: Mapping[str, Any]) -> None:
    metrics = {name: None if value != value else value for name, value in record["metrics"].items()}  # noqa: PLR0124 - NaN
    kept = {name: value for name, value in record.items() if name != "page"} | {"metrics": metrics}
    text = json.dumps(kept | {DIGEST: document_digest(kept)}, sort_keys=True)
    replace_file(store / f"{key}.json", text.encode())
    if record["page"]:
        replace_file(store / f"{key}.html", record["page"].encode("utf-8", "backslashreplace"))


def _signature(cells: Sequence[SuiteCell], metric: str, bootstrap: Bootstrap | None) -> str:
    """Return what all numbers of a suite rest on: a digest of the signatures of its cells."""
    text = "\n".join(f"{cell.spelled}\t{cell.signature}" for cell in cells)
    cells_of = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    drawn = "" if bootstrap is None else f"|bootstrap={bootstrap.n_resamples},{bootstrap.rng}"
    return f"suite|metric={metric}|cells={cells_of}{drawn}|version={__version__}"


def _judged(gates: Gates, values: Mapping[str, float]) -> Iterator[GateVerdict]:
    """Yield verdicts on values of the suite, without what marks them as measured elsewhere."""
    nothing: Any = None  # of a value that is handed in, no result is asked
    for verdict in judge(gates, nothing, external=values):
        yield replace(verdict, metric=verdict.metric.removeprefix(EXTERNAL), rule=verdict.rule.removeprefix(EXTERNAL))


@for_programs
@session()
def history(*runs: PathText | EvaluationResult, bootstrap: Bootstrap | int | str | None = AUTO) -> HistoryResult:
    """Follow saved evaluations from run to run: their metric, its differences, and the classes that moved.

    Runs of different ground truth or rules stand in parts, and are not compared across these; a warning has what
    differs.

    Parameters
    ----------
    *runs : path or EvaluationResult
        Saved runs (.npz), documents (.json), or results. Paths in the order of letters are put in that of the numbers
        in them, epoch2 before epoch10; any other order stays. A document whose saved run is given as well is not
        counted.
    bootstrap : Bootstrap, int or "auto", optional
        How to resample the images of runs that have matches, for intervals and tests of differences, or how often.
        "auto" takes a few seconds at most, as in `compare`. None or 0: none.

    Raises
    ------
    DataError
        When one is not a saved evaluation, or was changed after it was written.
    UsageError
        When there is no run, or the settings do not fit.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, evaluate, history
    >>> gt = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    >>> preds = (BoxTable.from_arrays([0], [0], [[0, 0, 10, y]], score=[0.9]) for y in (8, 9))
    >>> result = history(*(evaluate(gt, pred) for pred in preds))
    >>> [round(run.metrics["AP"], 4) for run in result.runs], round(result.runs[1].delta, 4)
    ([0.7, 0.9], 0.2)
    """
    return follow(runs, bootstrap)


def follow(
    given: tuple[PathText | EvaluationResult, ...], bootstrap: Bootstrap | int | str | None, *, pages: bool = False
) -> HistoryResult:
    """Follow runs as `history` does; each has its page where `pages` are asked for."""
    if not given:
        raise UsageError("a history needs runs: pass saved runs (.npz) or documents (.json)")
    if isinstance(bootstrap, str) and bootstrap != AUTO:
        raise UsageError(f"bootstrap must be a number of resamples or {AUTO!r}, got {quoted_value(bootstrap)}")
    if isinstance(bootstrap, int):
        bootstrap = Bootstrap(n_resamples=bootstrap) if bootstrap else None
    runs, order = _ordered(given)
    paths = [run.pred.path if isinstance(run, EvaluationResult) else str(run) for run in runs]

    def loaded() -> Iterator[tuple[str, str, EvaluationResult, str]]:
        problems: list[Finding] = []
        for name, path, run in tracked([*zip(_names(paths), paths, runs, strict=True)], "runs"):
            try:
                result = run if isinstance(run, EvaluationResult) else load_result(run)
                if not isinstance(result, EvaluationResult):
                    raise invalid_document(Path(path), f"is a result of kind {result.kind!r}; expected 'evaluation'")
            except DataError as error:
                problems += error.findings
                continue
            if not problems:
                yield name, path, result, _page(result) if pages else ""
        if problems:
            raise DataError(problems)

    return history_of(loaded(), len(runs), version=__version__, order=order, bootstrap=bootstrap)


def _ordered(given: Sequence[PathText | EvaluationResult]) -> tuple[list[Path | EvaluationResult], str]:
    """Return the runs in their order, and what that is called."""
    runs = [run if isinstance(run, EvaluationResult) else path_of(run) for run in given]
    paths = {str(run): run for run in runs if not isinstance(run, EvaluationResult)}
    if len(paths) < len(runs):  # results are in memory, or a path is given twice: as they are
        return runs, GIVEN
    # A document whose saved run is there too would be the same run twice.
    doubled = [path for path in paths.values() if run_beside(path) != path and str(run_beside(path)) in paths]
    kept = [path for path in paths.values() if path not in [path for path in doubled if saved_run_of(path)]]
    rows, order = in_order([*map(str, kept)])
    return [kept[row] for row in rows], order


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    """Return what runs are called: without a suffix, unless that is what distinguishes two."""
    bare = [path.removesuffix(".json").removesuffix(".npz") for path in paths]
    return distinct_ends(*(bare if len(set(bare)) == len(paths) else paths))


def _page(result: EvaluationResult) -> str:
    from jaccard_eval.report.outputs.html import render

    return render(with_parts(result, errors=True), ReportOptions(gallery=0))
