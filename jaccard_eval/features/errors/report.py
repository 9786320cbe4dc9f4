"""What reports say about the kinds of errors of an evaluation, and its tables for machines."""

from __future__ import annotations

import math

import numpy as np

from jaccard_eval.features.errors.result import (
    ALL_CLASSES,
    BACKGROUND,
    ClassErrors,
    ConfidenceCurve,
    ConfusionMatrix,
    ErrorReport,
    ErrorType,
)
from jaccard_eval.metrics.calibration import Calibration
from jaccard_eval.report.model import Cell, Column, Drawing, Note, Section, Table
from jaccard_eval.report.numbers import UNDEFINED, delta_text, metric_text, threshold_text
from jaccard_eval.report.outputs.thresholds import map_text

FEW_CLASSES = 10  # up to this many, the whole confusion matrix and the map of scores are shown
MATRIX_WIDTH = 50  # characters of class names beyond which the columns of a confusion matrix are numbered
N_CONFUSIONS = 10  # pairs of classes that are listed of a larger matrix
EVERY = 10  # of the points of a curve, those that a table shows
SHORT_TYPES = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")  # TIDE's names, in the order of the types
SCORE_COLUMNS = ("best score", "best F1", "ECE", "MCE", "oLRP")
LRP_COLUMNS = ("localisation", "FP", "FN")

Rows = tuple[tuple[Cell, ...], ...]


def errors_sections(errors: ErrorReport, *, per_class: bool) -> list[Section]:
    """Return what is said about errors."""
    shown = (errors.pooled, *(errors.classes if per_class else ()))
    return [
        _types(errors),
        *_types_by_class(errors, per_class=per_class),
        _confusion(errors.confusion),
        _scores(shown),
        _lrp(shown),
        *_curve(errors.pooled.curve),
        *_calibration(errors.pooled.calibration),
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
    notes = [Note(f"{ious}, AP {metric_text(errors.ap)}; each type is repaired alone, so that gains do not add up")]
    if math.isnan(errors.false_negatives.gain) and not math.isnan(errors.ap):
        notes.append(Note(f"{UNDEFINED}: without these boxes there is no ground truth left"))
    return Section("Errors", (Table(columns, tuple(rows)), *notes))


def _type_row(one: ErrorType) -> tuple[Cell, ...]:
    return one.name, one.count, delta_text(one.gain)


def _types_by_class(errors: ErrorReport, *, per_class: bool) -> list[Section]:
    if not per_class:
        return []
    columns = (Column("class", free_text=True), *map(Column, SHORT_TYPES))
    rows = zip(errors.confusion.names, *(one.by_class for one in errors.types), strict=True)
    note = Note("the types above, in their order; of the class of the detection, or of the box that is missed")
    return [Section("Errors by class", (Table(columns, tuple(rows)), note))]


def _confusion(matrix: ConfusionMatrix) -> Section:
    title = f"Confusion (score >= {threshold_text(matrix.score)}, IoU >= {threshold_text(matrix.iou)})"
    if len(matrix.names) > FEW_CLASSES:
        table = _most_confused(matrix)
        note = Note("the JSON report has the whole matrix, and -o confusion.csv writes it")
        return Section(title, (table if table.rows else Note("no class is taken for another"), note))
    return Section(title, (_matrix_table(matrix), Note("rows are ground truth, columns are predictions")))


def _matrix_table(matrix: ConfusionMatrix) -> Table:
    """Return the whole matrix; its columns are numbers where names would make it too wide."""
    titles = [*matrix.names, BACKGROUND]
    names = titles
    if sum(map(len, titles)) > MATRIX_WIDTH:
        names = [f"{i} {name}" for i, name in enumerate(titles, start=1)]
        titles = [str(i) for i in range(1, len(titles) + 1)]
    columns = (Column("ground truth", free_text=True), *map(Column, titles))
    counts: list[list[int]] = matrix.counts.tolist()
    return Table(columns, tuple((name, *row) for name, row in zip(names, counts, strict=True)))


def _most_confused(matrix: ConfusionMatrix) -> Table:
    """List the pairs of different classes that are confused most; the background is no class."""
    counts = matrix.counts[:-1, :-1].copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:N_CONFUSIONS]
    pairs = ((i, j) for i, j in zip(*np.unravel_index(order, counts.shape), strict=True) if counts[i, j])
    columns = (Column("ground truth", free_text=True), Column("taken for", free_text=True), Column("count"))
    return Table(columns, tuple((matrix.names[i], matrix.names[j], int(counts[i, j])) for i, j in pairs))


def _scores(shown: tuple[ClassErrors, ...]) -> Section:
    columns = (Column("class", free_text=True), *map(Column, SCORE_COLUMNS[:-1]))
    rows: Rows = tuple((_name(one), _score_text(one.best_score), *_score_cells(one)[1:-1]) for one in shown)
    reasons = sorted({one.calibration.reason for one in shown if one.calibration.reason})
    notes = [Note("best score: that of the highest F1; detections with at least that score are meant")]
    notes += [Note(f"{UNDEFINED}: ECE, MCE: {reason}") for reason in reasons]
    return Section("Scores", (Table(columns, rows), *notes))


def _lrp(shown: tuple[ClassErrors, ...]) -> Section:
    columns = (Column("class", free_text=True), *map(Column, ("oLRP", *LRP_COLUMNS, "score")))
    rows: Rows = tuple((_name(one), one.lrp.olrp, *_lrp_cells(one), _score_text(one.lrp.score)) for one in shown)
    note = Note("0 at best; its parts are those at the score it is reached at; all: the mean of the classes")
    return Section("Localisation, recall and precision in one (oLRP)", (Table(columns, rows), note))


def _curve(curve: ConfidenceCurve) -> list[Section]:
    columns = tuple(map(Column, ("score >=", "precision", "recall", "F1")))
    values = zip(curve.score, curve.precision, curve.recall, curve.f1, strict=True)
    rows: Rows = tuple((threshold_text(score), *map(float, rest)) for score, *rest in list(values)[::EVERY])
    note = Note("all classes pooled; -o curves.csv writes those of every class")
    return [Section("Confidence curves", (Table(columns, rows), note))]


def _calibration(one: Calibration) -> list[Section]:
    if one.reason:
        return []
    n = len(one.count)
    columns = tuple(map(Column, ("score", "detections", "mean score", "precision")))
    rows = tuple(
        (f"{threshold_text(i / n)} to {threshold_text((i + 1) / n)}", int(count), float(score), float(precision))
        for i, (count, score, precision) in enumerate(zip(one.count, one.score, one.precision, strict=True))
    )
    note = Note("all classes pooled; -o calibration.csv writes those of every class")
    return [Section("Calibration", (Table(columns, rows), note))]


def _name(one: ClassErrors) -> str:
    return ALL_CLASSES if one.name is None else one.name


def _score_cells(one: ClassErrors) -> tuple[float, ...]:
    return one.best_score, one.best_f1, one.calibration.ece, one.calibration.mce, one.lrp.olrp


def _lrp_cells(one: ClassErrors) -> tuple[float, ...]:
    return one.lrp.localisation, one.lrp.false_positive, one.lrp.false_negative


def _thresholds(errors: ErrorReport, *, per_class: bool) -> list[Section]:
    """Return the scores with the best F1 as a map to be pasted, which is JSON and YAML."""
    if not errors.thresholds or not (per_class or len(errors.classes) <= FEW_CLASSES):
        return []
    lines = tuple(map_text(errors.thresholds).splitlines())
    note = Note("-o thresholds.json or -o thresholds.yaml writes it")
    return [Section("Best score by class", (Drawing(lines, lines), note))]


def _score_text(value: float) -> str:
    """Return a score for people: it is no metric, and need not lie in [0, 1]."""
    return UNDEFINED if math.isnan(value) else threshold_text(value)
