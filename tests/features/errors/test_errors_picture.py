import numpy as np
import pytest
from pictures import det, evaluate, gt

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.errors import UsageError
from jaccard_eval.report import ReportOptions, reporter_for
from jaccard_eval.report.model import Chart, build_report
from jaccard_eval.report.outputs.figure import draw

figures = pytest.importorskip("matplotlib.figure")


def drawn(result: EvaluationResult) -> list:
    """Return the panels: what errors cost, confusion, confidence curves, calibration."""
    figure = figures.Figure()
    sections = build_report(result, ReportOptions()).sections
    draw(figure, [block for section in sections for block in section.blocks if isinstance(block, Chart)])
    return figure.axes


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    truth = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10")]
    return evaluate(
        truth, [det("cat 0 0 10 10", 0.9), det("cat 50 0 10 10", 0.8), det("dog 0 50 10 10", 0.7)], errors=True
    )


def test_the_picture_has_what_each_error_costs_as_bars(result: EvaluationResult) -> None:
    types, *_ = drawn(result)
    assert [one.get_text() for one in types.get_yticklabels()][:2] == ["classification (1)", "localisation (0)"]
    # Repaired, the dogs are found first and second instead of first of two alone: 51/101 to 1, half of it in the mean.
    assert types.patches[0].get_width() == pytest.approx((1 - 51 / 101) / 2)


def test_the_picture_has_curves_up_to_the_last_score(result: EvaluationResult) -> None:
    _, _, confidence, _ = drawn(result)
    precision, recall, f1, best = confidence.lines
    assert [line.get_label() for line in (precision, recall, f1, best)] == [
        "Precision",
        "Recall",
        "F1",
        "best F1 at 0.7",
    ]
    assert recall.get_ydata()[[0, 75, 85, 95]] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0])
    assert np.isnan(precision.get_ydata()[95])


def test_the_matrix_has_its_counts_and_names(result: EvaluationResult) -> None:
    _, confusion, *_ = drawn(result)
    assert [one.get_text() for one in confusion.get_xticklabels()] == ["cat", "dog", "background"]
    assert [one.get_text() for one in confusion.texts] == list("100110000")


def test_a_picture_is_drawn_whatever_the_names_and_the_same_every_time() -> None:
    names = ["$x_1$", "日本語", "\x1b[2J", "a" * 100, "$", "\u202eabc", "😀"]
    truth = [gt(f"x {20 * i} 0 10 10") for i in range(len(names))]
    found = evaluate(truth, [det("x 0 0 10 10", 0.5)], names=names, errors=True)
    pictures = [reporter_for("out.svg").render(found, ReportOptions()) for _ in range(2)]
    assert pictures[0] == pictures[1]


def test_without_errors_there_is_no_picture() -> None:
    with pytest.raises(UsageError, match="remove --no-errors"):
        reporter_for("out.png").render(evaluate([gt("dog 0 0 9 9")], []), ReportOptions())


def test_a_set_without_detections_is_drawn_without_its_calibration() -> None:
    titles = [axes.get_title() for axes in drawn(evaluate([gt("dog 0 0 9 9")], [], errors=True))]
    assert titles[1:] == ["Confusion at score >= 0.00, IoU >= 0.50", "Precision, recall and F1 by confidence threshold"]
