"""Weighted curves: images that count several times, against the same images repeated as copies."""

import numpy as np
import pytest
from pictures import curves, det, gt
from resampled import as_drawn, draw_scene, repeat_images

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import VOC2012
from jaccard_eval.metrics import curves as of_curves
from jaccard_eval.metrics.detection import Averages, class_refs, summary_refs

PROTOCOLS = ("coco", "voc2007", "voc2012")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(12))
def test_weights_equal_images_repeated_as_copies(seed: int, protocol: str) -> None:
    scene = draw_scene(seed)
    metrics = as_drawn(scene, protocol=protocol).measured
    for weights in np.random.default_rng([seed, 1]).integers(0, 4, (5, 6)):
        weights[weights.argmax()] = max(weights.max(), 1)
        copied = repeat_images(scene, weights, protocol=protocol)
        averages = Averages(metrics.curves.weighted(weights), metrics.axes)
        for ref in summary_refs(metrics.protocol):
            assert averages.mean(ref) == pytest.approx(copied[str(ref)], abs=1e-12, nan_ok=True), (str(ref), weights)
        for ref in class_refs(metrics.protocol):
            expected = [row.values[str(ref)].value for row in copied.per_class]
            assert averages.class_means(ref) == pytest.approx(expected, abs=1e-12, nan_ok=True), (str(ref), weights)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(6))
def test_weights_of_one_give_the_plain_metric_bit_for_bit(seed: int, protocol: str) -> None:
    result = as_drawn(draw_scene(seed), protocol=protocol)
    metrics = result.measured
    averages = Averages(metrics.curves.weighted(np.ones(6, dtype=np.int64)), metrics.axes)
    for name, one in result.metrics.items():
        np.testing.assert_array_equal(averages.mean(MetricRef.parse(name)), one.value)


def test_a_weighted_precision_by_hand() -> None:
    # Ranking: hit in a (weight 1), false positive in b (weight 3), hit in b (weight 3); 1 + 3 positives.
    # Recall 1/4 at precision 1, recall 1 at precision 4 / 7: area 1/4 * 1 + 3/4 * 4/7.
    truth = [gt("cat 0 0 10 10", "a"), gt("cat 0 0 10 10", "b")]
    ranking = [det("cat 0 0 10 10", 0.9, "a"), det("cat 50 50 10 10", 0.8, "b"), det("cat 0 0 10 10", 0.7, "b")]
    weighted = curves(truth, ranking, VOC2012).weighted(np.array([1, 3]))
    assert weighted.area_under_curve(0, 0)[0, 0] == pytest.approx(1 / 4 + 3 / 4 * 4 / 7, abs=1e-12)
    assert weighted.final_recall(0, 0)[0, 0] == 1.0


def test_a_class_whose_images_have_no_weight_is_undefined() -> None:
    weighted = curves([gt("cat 0 0 10 10", "a"), gt("cat 0 0 9 9", "b")], []).weighted(np.array([0, 0]))
    assert np.isnan(weighted.interpolated_precision(0, 0)).all()
    assert np.isnan(weighted.final_recall(0, 0)).all()


def test_numbers_of_objects_beyond_those_that_are_kept_need_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = draw_scene(3)
    weights, found = np.array([5, 0, 7, 1, 1, 2]), []
    for most in (of_curves.MOST_NEEDED, 1):
        monkeypatch.setattr(of_curves, "MOST_NEEDED", most)
        found.append(as_drawn(scene, protocol="coco").measured.curves.weighted(weights).defined_precision(0, 2))
    assert len(found[0][1]) and all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True))
