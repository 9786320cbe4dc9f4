"""Averages and operating points ask a source of curves, whatever it is: here one that merges parts of the images."""

from dataclasses import replace

import numpy as np
import pytest
from partitioned import MergedParts
from resampled import as_drawn, draw_scene

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.errors import UsageError
from jaccard_eval.matching.matchtable import MatchTable, Ranking
from jaccard_eval.metrics.detection import Averages, DetectionMetrics, class_refs, point_of, summary_refs

N_IMAGES = 6


def part(table: MatchTable, images: np.ndarray) -> Ranking:
    """The ranking of some images, which keep their rows."""
    alone = table.restrict(images)
    return Ranking.of(replace(alone, image=images[alone.image], gt_image=images[alone.gt_image]), N_IMAGES)


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("seed", range(8))
def test_merged_parts_of_the_images_give_the_metrics_of_the_whole_bit_for_bit(seed: int, protocol: str) -> None:
    metrics = as_drawn(draw_scene(seed), protocol=protocol).measured
    merged = MergedParts([part(metrics.table, images) for images in (np.array([0, 3, 4]), np.array([1, 2, 5]))])
    averages, whole = Averages(merged, metrics.axes), Averages(metrics.curves, metrics.axes)
    for ref in summary_refs(metrics.protocol):
        assert np.array_equal(averages.mean(ref), whole.mean(ref), equal_nan=True), str(ref)
    for ref in class_refs(metrics.protocol):
        assert averages.class_means(ref).tobytes() == whole.class_means(ref).tobytes(), str(ref)
    for text in (
        "F1[iou=0.5,score=0.4]",
        "recall[iou=0.5,score=0,class=cat]",
        "precision[iou=0.5,score=best-f1,class=dog]",
    ):
        ref = MetricRef.parse(text)
        assert repr(point_of(merged, metrics.axes, ref)) == repr(point_of(metrics.curves, metrics.axes, ref))


@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_metrics_of_another_source_are_those_of_the_match_table_in_slices_too(protocol: str) -> None:
    whole = as_drawn(draw_scene(5), protocol=protocol).measured
    source = MergedParts([part(whole.table, images) for images in (np.array([0, 3, 4]), np.array([1, 2, 5]))])
    merged = DetectionMetrics(source, whole.class_names, whole.image_names)
    for ref in (*summary_refs(whole.protocol), MetricRef.parse("FPPI[iou=0.5,score=0.3]")):
        assert repr(merged.value(ref)) == repr(whole.value(ref)), str(ref)
        assert repr(merged.restrict([1, 3, 4]).value(ref)) == repr(whole.restrict([1, 3, 4]).value(ref)), str(ref)
    assert repr(merged.per_class()) == repr(whole.per_class())
    assert repr(merged.operating_points("best-f1")) == repr(whole.operating_points("best-f1"))


def test_a_ranking_is_restricted_to_images_as_its_table_is() -> None:
    whole = as_drawn(draw_scene(3)).measured
    curves = whole.curves.restrict(np.array([0, 2, 5]))
    assert curves.precision.tobytes() == whole.restrict([0, 2, 5]).curves.precision.tobytes()


def test_what_needs_the_match_table_names_the_engine_that_keeps_it() -> None:
    whole = as_drawn(draw_scene(5)).measured
    source = MergedParts([part(whole.table, np.arange(N_IMAGES))])
    with pytest.raises(UsageError, match='engine="memory"'):
        DetectionMetrics(source, whole.class_names, whole.image_names).matches  # noqa: B018
