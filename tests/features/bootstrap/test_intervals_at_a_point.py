"""Intervals of what is counted at one operating point: words, tables, and detections that have no scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_tables, drawn_words

from jaccard_eval import Bootstrap, EvaluationResult, evaluate, load_result
from jaccard_eval.features.bootstrap import half_weights

DRAWN = Bootstrap(n_resamples=8, rng=3)
KINDS: dict[str, tuple[Any, tuple[str, str], tuple[str, ...]]] = {
    "icdar": (drawn_words, ("gt_img_{}.txt", "res_img_{}.txt"), ("recall", "precision", "F1")),
    "ctdar": (
        drawn_tables,
        ("page_{}.xml", "page_{}.xml"),
        ("wF1", "F1[iou=0.6]", "F1[iou=0.9]", "precision", "recall", "F1", "mean_IoU"),
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")


def evaluated(folder: Path, kind: str, chosen: Any = None, **asked: Any) -> EvaluationResult:
    """Evaluate drawn images, or those of some names alone."""
    draw, names, _ = KINDS[kind]
    images = [image for seed in range(8) for image in draw(seed)][:24]
    for side, name, at in zip(("gt", "pred"), names, (0, 1), strict=True):
        (folder / side).mkdir(parents=True)
        for n, image in enumerate(images, 1):
            if chosen is None or n in chosen:
                (folder / side / name.format(n)).write_text(f"{image[at]}\n", encoding="utf-8")
    return evaluate(folder / "gt", folder / "pred", protocol=kind, **asked)


@pytest.mark.parametrize("kind", KINDS)
def test_every_half_is_an_evaluation_of_its_images(tmp_path: Path, kind: str) -> None:
    result = evaluated(tmp_path / "all", kind, bootstrap=DRAWN)
    drawn = result.bootstrap
    assert drawn is not None
    assert len(drawn.values) == 8
    names = list(result.measured.image_names)  # type: ignore[union-attr]
    place = np.arange(len(names))
    for row in range(8):
        weights = half_weights(place, len(names), (3, row // 2))[row % 2]
        chosen = {int("".join(filter(str.isdigit, names[at]))) for at in np.flatnonzero(weights)}
        # Whatever has been chosen of all images, such as the least score, is chosen again: all detections count.
        half = evaluated(tmp_path / f"half-{row}", kind, chosen)
        for metric in KINDS[kind][2]:
            assert drawn.values[row, drawn.refs.index(metric)] == pytest.approx(half[metric], abs=1e-12), metric


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_and_the_document_have_the_interval(tmp_path: Path, kind: str) -> None:
    result = evaluated(tmp_path, kind, bootstrap=Bootstrap(n_resamples=60))
    for metric in KINDS[kind][2]:
        value = result.metrics[metric]
        assert value.interval is not None
        assert value.interval[0] < value.value < value.interval[1]
    result.save(tmp_path / "result.json")
    saved = load_result(tmp_path / "result.json").metrics
    assert {name: saved[name].interval for name in KINDS[kind][2]} == {
        name: result.metrics[name].interval for name in KINDS[kind][2]
    }
