"""Reports of the kinds of errors of an evaluation, and its tables for machines."""

from __future__ import annotations

import math

import numpy as np

from jaccard_eval.features.errors import ALL_CLASSES, BACKGROUND, ClassErrors, ConfusionMatrix, ErrorReport
from jaccard_eval.metrics.detection import Calibration
from jaccard_eval.report.model import (
    Axis,
    Chart,
    Column,
    DataCell,
    Note,
    Rows,
    Section,
    Series,
    Table,
    columns,
)
from jaccard_eval.report.numbers import UNDEFINED, metric_text, threshold_text

# Results of a large data set must still fit into a comment of a pull request: what is bounded here, JSON and CSV have
# in full.
FEW_CLASSES = 10  # up to this many, the whole confusion matrix and the best score of each are shown
MATRIX_WIDTH = 50  # characters of class names beyond which the columns of a confusion matrix are numbered
N_CONFUSIONS = 10  # pairs of classes that are listed of a larger matrix
EVERY = 10  # of the points of a curve, those that a table shows
MOST_CONFUSED = 28  # classes of a chart of a larger matrix: with the others and the background they have names
MIN_GAIN, MARGIN = 0.01, 1.05  # of the axis of gains: its end at least, and the room beyond the longest bar
SHORT_TYPES = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")  # TIDE's names, in the order of the types
SCORE_COLUMNS = ("best score", "best F1", "mean IoU", "ECE", "MCE")
LRP_COLUMNS = ("localisation", "FP", "FN")
LRP_NAMES = ("oLRP", "oLRP_Loc", "oLRP_FP", "oLRP_FN")
SHARE = Axis(ends=(0, 1.02))


def errors_sections(errors: ErrorReport, measure: str, *, per_class: bool) -> list[Section]:
    """Return the sections on errors."""
    shown = (errors.pooled, *(errors.classes if per_class else ()))
    sections = [types_section(errors, measure), *([_types_by_class(errors)] if per_class else [])]
    # The best scores of a few classes are wanted by whoever deploys the model.
    scored = shown if per_class or len(errors.classes) > FEW_CLASSES else (errors.pooled, *errors.classes)
    sections += [
        confusion_section(errors.confusion, measure),
        _scores(scored, measure),
        _lrp(shown),
        _curve(errors.pooled),
    ]
    return [*sections, *_calibration(errors.pooled.calibration)]


def detail_sections(errors: ErrorReport, measure: str) -> dict[str, Section]:
    """Return, for media with room, what goes beyond types, confusion and curves, of all classes and by key."""
    shown = (errors.pooled, *errors.classes)
    found = {"types": _types_by_class(errors), "scores": _scores(shown, measure), "olrp": _lrp(shown)}
    return found | dict(zip(["calibration"], _calibration(errors.pooled.calibration), strict=False))


def error_columns(errors: ErrorReport | None) -> tuple[str, ...]:
    """Return the columns that errors add to the table for machines."""
    return (
        ()
        if errors is None
        else (
            *(f"{error_type.name} errors" for error_type in errors.types),
            *SCORE_COLUMNS,
            *LRP_NAMES,
        )
    )


def error_cells(errors: ErrorReport | None, name: str | None) -> tuple[DataCell, ...]:
    """Return the cells of `error_columns` of a class, or (None) of all pooled."""
    if errors is None:
        return ()
    if name is None:
        return (
            *(error_type.count for error_type in errors.types),
            *_score_cells(errors.pooled),
            *_lrp_cells(errors.pooled),
        )
    k = errors.confusion.names.index(name)
    row = errors.classes[k]
    return (*(error_type.by_class[k] for error_type in errors.types), *_score_cells(row), *_lrp_cells(row))


def _types_by_class(errors: ErrorReport) -> Section:
    heads = (Column("class"), *columns("count", *SHORT_TYPES))
    counts = zip(*(error_type.by_class for error_type in errors.types), strict=True)
    rows = tuple((name, *of_class) for name, of_class in zip(errors.confusion.names, counts, strict=True))
    note = Note("columns are the types above; counted by the class of the detection, or of the missed box")
    return Section("Errors by class", (Table(heads, rows), note))


def types_section(errors: ErrorReport, measure: str) -> Section:
    """Return the types of errors with what each costs."""
    heads = (Column("type"), Column("count", "count"), Column("ΔAP if fixed", "delta"))
    shown = (*errors.types, errors.false_positives, errors.false_negatives)
    table = Table(heads, tuple((error_type.name, error_type.count, error_type.gain) for error_type in shown))
    ious = f"{measure} {threshold_text(errors.iou)}, background below {threshold_text(errors.background_iou)}"
    notes = [Note(f"{ious}, AP {metric_text(errors.ap)}; each type is fixed on its own, so the gains do not add up")]
    gains = [0.0 if math.isnan(error_type.gain) else error_type.gain for error_type in errors.types]
    chart = Chart(
        "bar",
        f"ΔAP if fixed (AP {metric_text(errors.ap)} at {measure} {threshold_text(errors.iou)})",
        (Series("", gains),),
        x=Axis(ends=(min(0.0, *gains) * MARGIN, max(MIN_GAIN, *gains) * MARGIN)),
        y=Axis(names=tuple(f"{error_type.name} ({error_type.count:,})" for error_type in errors.types)),
    )
    return Section("Errors", (table, *notes, chart))


def confusion_section(matrix: ConfusionMatrix, measure: str) -> Section:
    """Return the confusion matrix, or of a large one the pairs that are confused most."""
    at = f"score >= {threshold_text(matrix.score)}, {measure} >= {threshold_text(matrix.iou)}"
    chart = confusion_chart(matrix, measure)
    if len(matrix.names) > FEW_CLASSES:
        table = _most_confused(matrix)
        note = Note("for the full matrix, use -o confusion.csv or --json")
        shown = table if table.rows else Note("no confusions between classes")
    else:
        shown, note = _matrix_table(matrix), Note("rows are ground truth, columns are predictions")
    return Section(f"Confusion ({at})", (shown, note, chart))


def confusion_chart(matrix: ConfusionMatrix, measure: str) -> Chart:
    """Return the matrix; of many classes those that are confused most, and the others as one."""
    names, counts = [*matrix.names, BACKGROUND], matrix.counts
    title = f"Confusion at score >= {threshold_text(matrix.score)}, {measure} >= {threshold_text(matrix.iou)}"
    n = len(matrix.names)
    if n > MOST_CONFUSED:
        wrong = counts[:-1, :-1].copy()
        np.fill_diagonal(wrong, 0)
        # Among classes first; what is missed or is not there only decides between those that are never confused.
        beyond = counts[:-1, -1] + counts[-1, :-1]
        order = np.lexsort((-beyond, -(wrong.sum(axis=0) + wrong.sum(axis=1))))
        chosen = np.sort(order[:MOST_CONFUSED])
        place = np.full(n + 1, MOST_CONFUSED)
        place[chosen] = np.arange(MOST_CONFUSED)
        place[n] = MOST_CONFUSED + 1
        merged = np.zeros((MOST_CONFUSED + 2, MOST_CONFUSED + 2), dtype=np.int64)
        np.add.at(merged, (place[:, None], place[None, :]), counts)
        names = [*(matrix.names[k] for k in chosen), f"{n - MOST_CONFUSED:,} others", BACKGROUND]
        counts, title = merged, f"{title} ({MOST_CONFUSED} of {n:,} classes)"
    rows = tuple(Series(name, row.tolist()) for name, row in zip(names, counts, strict=True))
    return Chart("matrix", title, rows, x=Axis("predictions", names=tuple(names)), y=Axis("ground truth"))


def error_charts(errors: ErrorReport, measure: str) -> list[Chart]:
    """Return the charts of a figure: curves by score, confusion, what errors cost, calibration."""
    charts = [confidence_chart(errors.pooled), confusion_chart(errors.confusion, measure)]
    sections = (types_section(errors, measure), *_calibration(errors.pooled.calibration))
    return charts + [block for section in sections for block in section.blocks if isinstance(block, Chart)]


def _matrix_table(matrix: ConfusionMatrix) -> Table:
    """Return the whole matrix; its columns are numbered where names would make it too wide."""
    titles = [*matrix.names, BACKGROUND]
    names = titles
    if sum(map(len, titles)) > MATRIX_WIDTH:
        names = [f"{i} {name}" for i, name in enumerate(titles, start=1)]
        titles = [str(i) for i in range(1, len(titles) + 1)]
    counts: list[list[int]] = matrix.counts.tolist()
    rows: Rows = tuple((name, *row) for name, row in zip(names, counts, strict=True))
    return Table((Column("ground truth"), *columns("count", *titles)), rows)


def _most_confused(matrix: ConfusionMatrix) -> Table:
    """List the pairs of different classes that are confused most; the background is not a class."""
    counts = matrix.counts[:-1, :-1].copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:N_CONFUSIONS]
    pairs = ((i, j) for i, j in zip(*np.unravel_index(order, counts.shape), strict=True) if counts[i, j])
    heads = (Column("ground truth"), Column("predicted as"), Column("count", "count"))
    return Table(heads, tuple((matrix.names[i], matrix.names[j], int(counts[i, j])) for i, j in pairs))


def _scores(shown: tuple[ClassErrors, ...], measure: str) -> Section:
    mean = f"mean {measure}"  # of keypoints OKS
    names = (mean if name == "mean IoU" else name for name in SCORE_COLUMNS[1:])
    heads = (Column("class"), Column("best score", "threshold"), *columns("metric", *names))
    rows: Rows = tuple((_name(group), *_score_cells(group)) for group in shown)
    reasons = sorted({group.calibration.reason for group in shown if group.calibration.reason})
    text = f"best score: the confidence threshold with the highest F1; {mean}: of the matches, at --score if given"
    if len(shown) > 1:
        text += "; -o thresholds.yaml writes those of the classes"
    notes = [Note(text)]
    notes += [Note(f"{UNDEFINED}: ECE, MCE: {reason}") for reason in reasons]
    return Section("Scores", (Table(heads, rows), *notes))


def _lrp(shown: tuple[ClassErrors, ...]) -> Section:
    heads = (Column("class"), *columns("metric", "oLRP", *LRP_COLUMNS), Column("score", "threshold"))
    rows: Rows = tuple(
        (
            _name(group),
            *_lrp_cells(group),
            group.lrp.score,
        )
        for group in shown
    )
    note = Note("0 is best; the parts of a class are measured at its best score; all: mean over classes")
    return Section("Localisation, recall and precision in one (oLRP)", (Table(heads, rows), note))


def _curve(pooled: ClassErrors) -> Section:
    curve = pooled.curve
    heads = (Column("score >=", "threshold"), *columns("metric", "precision", "recall", "F1"))
    points = list(zip(curve.score, curve.precision, curve.recall, curve.f1, strict=True))
    rows: Rows = tuple(tuple(map(float, point)) for point in points[::EVERY])
    note = Note("all classes pooled; for each class, use -o curves.csv")
    return Section("Confidence curves", (Table(heads, rows), note, confidence_chart(pooled)))


def confidence_chart(pooled: ClassErrors) -> Chart:
    """Return precision, recall and F1 by score."""
    curve = pooled.curve
    named = (("Precision", curve.precision), ("Recall", curve.recall), ("F1", curve.f1))
    # Steps, not lines: between two scores that occur nothing changes.
    series = [Series(name, values, curve.score, "steps") for name, values in named]
    if not math.isnan(pooled.best_score):
        at = (pooled.best_score, pooled.best_score)
        series.append(Series(f"best F1 at {pooled.best_score:.4g}", (0, 1.02), at, "guide"))
    title = "Precision, recall and F1 by confidence threshold"
    return Chart("line", title, tuple(series), x=Axis("score", ends=(0, 1)), y=SHARE)


def _calibration(calibration: Calibration) -> list[Section]:
    if calibration.reason:
        return []
    n = len(calibration.count)
    heads = (
        Column("score", "threshold"),
        *columns("count", "detections"),
        *columns("metric", "mean score", "precision"),
    )
    rows: Rows = tuple(
        (f"{threshold_text(i / n)} to {threshold_text((i + 1) / n)}", int(count), float(score), float(precision))
        for i, (count, score, precision) in enumerate(
            zip(calibration.count, calibration.score, calibration.precision, strict=True)
        )
    )
    note = Note("all classes pooled; for each class, use -o calibration.csv")
    # A reliability diagram: bars at the diagonal are well calibrated, bars below it overconfident (Guo et al. 2017).
    middles = [(i + 0.5) / n for i in range(n)]
    series = (
        Series("perfect", (0, 1), (0, 1), "guide"),
        Series("precision", calibration.precision, middles),
        Series("mean score", calibration.precision, calibration.score, "points"),
    )
    title = f"Calibration: ECE {metric_text(calibration.ece)}"
    chart = Chart("bar", title, series, x=Axis("score", ends=(0, 1)), y=Axis("precision", ends=(0, 1.02)))
    return [Section("Calibration", (Table(heads, rows), note, chart))]


def _name(group: ClassErrors) -> str:
    return ALL_CLASSES if group.name is None else group.name


def _score_cells(group: ClassErrors) -> tuple[float, ...]:
    return group.best_score, group.best_f1, group.mean_iou, group.calibration.ece, group.calibration.mce


def _lrp_cells(group: ClassErrors) -> tuple[float, ...]:
    return group.lrp.olrp, group.lrp.localisation, group.lrp.false_positive, group.lrp.false_negative
