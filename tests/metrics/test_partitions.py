"""Averages and operating points ask a source of curves, whatever it is: here one that merges parts of the images."""

from dataclasses import replace

import numpy as np
import pytest
from partitioned import MergedParts
from resampled import as_drawn, draw_scene

from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.matching.matchtable import MatchTable
from jaccard_eval.matching.ranking import Ranking
from jaccard_eval.metrics.averages import Averages
from jaccard_eval.metrics.counts import point_of
from jaccard_eval.metrics.detection import class_refs, summary_refs

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
    for text in ("F1[iou=0.5,score=0.4]", "recall[iou=0.5,class=cat]", "precision[iou=0.5,score=best-f1,class=dog]"):
        ref = MetricRef.parse(text)
        assert repr(point_of(merged, metrics.axes, ref)) == repr(point_of(metrics.curves, metrics.axes, ref))
