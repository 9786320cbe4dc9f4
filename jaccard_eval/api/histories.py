"""Saved evaluations followed from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jaccard_eval.api.library import for_programs
from jaccard_eval.api.results import with_parts
from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.engine import path_of, session
from jaccard_eval.errors import UsageError
from jaccard_eval.features.compare.comparison import AUTO
from jaccard_eval.features.history import HistoryResult
from jaccard_eval.features.history.following import GIVEN, history_of, in_order
from jaccard_eval.findings import DataError, Finding
from jaccard_eval.options import Bootstrap, PathText
from jaccard_eval.progress import tracked
from jaccard_eval.report import ReportOptions
from jaccard_eval.runs import invalid_document, load_result, run_beside, saved_run_of
from jaccard_eval.text import distinct_ends, quoted_value
from jaccard_eval.version import __version__


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
