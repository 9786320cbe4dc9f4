"""What a page shows of the operating point, and what its script is given."""

import json
from dataclasses import replace

import numpy as np
from pictures import det, evaluate, gt
from test_packing import unpack

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.features.evaluate.page import build_page
from jaccard_eval.features.operating.page import MOST_CONFUSED, MOST_LIVE, live_data, steps_of, with_steps
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Note, Section, Table


def sections(result: EvaluationResult) -> dict[str, Section]:
    return {section.key: section for section in build_page(result, ReportOptions(per_class=True, gallery=0)).sections}


def many_classes(n: int) -> EvaluationResult:
    """One object of each class, found at .8, .3 or never by turns; that of each tenth class is taken for the next."""
    truth = [gt(f"c{k:03} {30 * k} 0 10 10") for k in range(n)]
    found = [det(f"c{(k + (k % 10 == 0)):03} {30 * k} 0 10 10", (0.8, 0.3)[k % 3]) for k in range(n - 1) if k % 3 < 2]
    return evaluate(truth, found, errors=True, score=0.5)


def test_of_many_classes_a_hundred_are_live_and_the_page_says_so() -> None:
    result = many_classes(150)
    steps = steps_of(with_steps(result))
    data = live_data(steps)
    assert len(data["keys"]) == MOST_LIVE
    # Those that are confused at the start, which the matrix shows, are among them: each tenth class of score .8.
    confused = [k for k in range(149) if k % 10 == 0 and k % 3 == 0]
    assert set(confused) < set(data["keys"])
    # All classes pooled count all: 50 at .8 and, from .3 down, 50 more, less those that are confused.
    wrong = np.array([k % 10 == 0 for k in range(149) if k % 3 == 0]).sum()
    lost = unpack(data["tp"], (MOST_LIVE + 1) * len(data["scores"]))
    pooled = np.array(lost[: len(data["scores"])])[::-1].cumsum()[::-1]
    assert pooled[50] == 50 - wrong
    page = sections(result)
    notes = [block.text for block in page["classes"].blocks if isinstance(block, Note)]
    assert notes[-1].startswith(f"Precision to FN of {MOST_LIVE} classes")
    matrix = page["confusion"].blocks[0]
    assert len(matrix.series) == MOST_CONFUSED + 1
    assert {series.key for series in matrix.series} > {str(k) for k in confused}


def test_rows_of_a_cut_matrix_add_up_to_their_objects() -> None:
    steps = steps_of(with_steps(many_classes(150)))
    data, n_steps = live_data(steps), len(steps.scores)
    size = len(data["shown"]) + 2
    lost = np.array(unpack(data["cells"], size * size * n_steps)).reshape(size, size, n_steps)
    counts = lost[..., ::-1].cumsum(axis=-1)[..., ::-1]
    whole = steps.confusion(steps.start)
    # Background last, all classes without a row before it: what is found is found somewhere in the row.
    assert counts[-1, :, steps.start].sum() == whole[-1].sum()
    assert counts[:-2, :, steps.start].sum(axis=1).max() <= 1
    assert counts[:, :, steps.start].sum() == whole[:, :-1].sum()


def test_the_page_stands_at_the_start() -> None:
    result = many_classes(3)
    page = sections(result)
    bar = page["score"].blocks[0]
    assert isinstance(bar, Table)
    pooled = result.operating_points[0]
    assert bar.rows[0] == ("0.50", pooled.precision, pooled.recall, pooled.f1, pooled.tp, pooled.fp, pooled.fn)
    assert bar.keys == ("0.5",)


def test_without_errors_or_a_match_table_no_section_needs_the_score() -> None:
    truth, found = [gt("dog 0 0 10 10")], [det("dog 0 0 10 10", 0.9)]
    page = sections(evaluate(truth, found))
    assert "score" not in page
    (table,) = (block for block in page["classes"].blocks if isinstance(block, Table))
    assert table.columns[-1].title == "pred"


def test_an_analysis_without_its_matches_counts_the_same() -> None:
    result = many_classes(12)
    again = result.with_part(replace(result.errors, any_class=None))
    assert live_data(steps_of(with_steps(again))) == live_data(steps_of(with_steps(result)))


def test_nothing_to_count_is_no_error() -> None:
    page = sections(evaluate([], [], names=["dog"], errors=True))
    assert page["score"].blocks[0].rows[0][4:] == (0, 0, 0)
    data = live_data(steps_of(with_steps(evaluate([], [], names=["dog"], errors=True))))
    assert (data["tp"], data["fp"], data["cells"]) == ("", "", "")
    json.dumps(data, allow_nan=False)
