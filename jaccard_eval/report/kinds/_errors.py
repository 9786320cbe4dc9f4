"""What reports say about the kinds of errors of an evaluation."""

from __future__ import annotations

import json
import math

import numpy as np

from jaccard_eval.data.errorreport import BACKGROUND, ClassErrors, ConfusionMatrix, ErrorReport, ErrorType
from jaccard_eval.report._numbers import UNDEFINED, threshold_text
from jaccard_eval.report.model import Cell, Column, Drawing, Note, Section, Table

FEW_CLASSES = 10  # up to this many, the whole confusion matrix and the map of scores are shown
N_CONFUSIONS = 10  # pairs of classes that are listed of a larger matrix
ALL_CLASSES = "all"
SCORE_COLUMNS = ("best score", "best F1", "ECE", "MCE", "oLRP")
LRP_COLUMNS = ("localisation", "FP", "FN")


def errors_sections(errors: ErrorReport | None, *, per_class: bool) -> list[Section]:
    """Return what is said about errors; nothing when they were not asked for."""
    if errors is None:
        return []
    return [
        _types(errors),
        _confusion(errors.confusion),
        _scores(errors, per_class=per_class),
        *_thresholds(errors, per_class=per_class),
    ]


def error_columns(errors: ErrorReport | None) -> tuple[str, ...]:
    """Return the columns that errors add to the table for machines."""
    return () if errors is None else (*(f"{one.name} errors" for one in errors.types), *SCORE_COLUMNS)


def error_cells(errors: ErrorReport | None, name: str | None) -> tuple[Cell, ...]:
    """Return the cells of `error_columns` of a class, or (None) of all pooled."""
    if errors is None:
        return ()
    if name is None:
        return (*(one.count for one in errors.types), *_score_cells(errors.pooled))
    k = errors.confusion.names.index(name)
    return (*(one.by_class[k] for one in errors.types), *_score_cells(errors.classes[k]))


def _types(errors: ErrorReport) -> Section:
    columns = (Column("type", free_text=True), Column("count"), Column("AP given back"))
    rows = [_type_row(one) for one in (*errors.types, errors.false_positives, errors.false_negatives)]
    ious = f"IoU {threshold_text(errors.iou)}, background below {threshold_text(errors.background_iou)}"
    note = Note(f"{ious}, AP {_text(errors.ap)}; each type is repaired alone, so that gains do not add up")
    return Section("Errors", (Table(columns, tuple(rows)), note))


def _type_row(one: ErrorType) -> tuple[Cell, ...]:
    return one.name, one.count, UNDEFINED if math.isnan(one.gain) else f"{one.gain:+.4f}"


def _confusion(matrix: ConfusionMatrix) -> Section:
    title = f"Confusion (score >= {threshold_text(matrix.score)}, IoU >= {threshold_text(matrix.iou)})"
    names = (*matrix.names, BACKGROUND)
    if len(matrix.names) > FEW_CLASSES:
        return Section(title, (_most_confused(matrix), Note("the JSON report has the whole matrix")))
    columns = (Column("ground truth", free_text=True), *map(Column, names))
    counts: list[list[int]] = matrix.counts.tolist()
    rows: list[tuple[Cell, ...]] = [(name, *row) for name, row in zip(names, counts, strict=True)]
    return Section(title, (Table(columns, tuple(rows)), Note("rows are ground truth, columns are predictions")))


def _most_confused(matrix: ConfusionMatrix) -> Table:
    """List the pairs of different classes that are confused most; the background is no class."""
    counts = matrix.counts[:-1, :-1].copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:N_CONFUSIONS]
    pairs = ((i, j) for i, j in zip(*np.unravel_index(order, counts.shape), strict=True) if counts[i, j])
    columns = (Column("ground truth", free_text=True), Column("taken for", free_text=True), Column("count"))
    return Table(columns, tuple((matrix.names[i], matrix.names[j], int(counts[i, j])) for i, j in pairs))


def _scores(errors: ErrorReport, *, per_class: bool) -> Section:
    titles = (*SCORE_COLUMNS, *LRP_COLUMNS)
    shown = (errors.pooled, *(errors.classes if per_class else ()))
    rows = tuple((one.name or ALL_CLASSES, *_score_texts(one), *_lrp_cells(one)) for one in shown)
    reasons = {one.calibration.reason for one in shown if one.calibration.reason}
    note = "best score: that of the highest F1; oLRP and its parts: the mean of the classes, 0 at best"
    notes = [Note(note), *(Note(f"{UNDEFINED}: ECE, MCE: {reason}") for reason in sorted(reasons))]
    return Section("Scores", (Table((Column("class", free_text=True), *map(Column, titles)), rows), *notes))


def _score_cells(one: ClassErrors) -> tuple[float, ...]:
    return one.best_score, one.best_f1, one.calibration.ece, one.calibration.mce, one.lrp.olrp


def _score_texts(one: ClassErrors) -> tuple[Cell, ...]:
    """Return the cells for people: a score is no metric, and need not lie in [0, 1]."""
    _, *metrics = _score_cells(one)
    return _text(one.best_score), *metrics


def _lrp_cells(one: ClassErrors) -> tuple[float, ...]:
    return one.lrp.localisation, one.lrp.false_positive, one.lrp.false_negative


def _thresholds(errors: ErrorReport, *, per_class: bool) -> list[Section]:
    """Return the scores with the best F1 as a JSON map, to be pasted; the Unicode of names is escaped."""
    if not errors.thresholds or not (per_class or len(errors.classes) <= FEW_CLASSES):
        return []
    lines = tuple(json.dumps(errors.thresholds, indent=2).splitlines())
    return [Section("Best score by class", (Drawing(lines, lines),))]


def _text(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4f}"
