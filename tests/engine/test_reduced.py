"""Curves of run files are those of the match table bit for bit, however rows are divided into parts and buckets."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import PROTOCOLS, Protocol
from jaccard_eval.engine.disk import DiskEngine
from jaccard_eval.engine.stored import StoredBoxes, write_boxes
from jaccard_eval.matching.matchtable import match_boxes
from jaccard_eval.metrics.detection import DetectionMetrics, TieBounds, class_refs, summary_refs

N_IMAGES, N_LABELS = 23, 3
AIMED = ("recall[precision=0.6]", "precision[recall=0.3]", "score[fppi=0.5]", "score[score=best-f1]")
POINTS = ("FPPI[iou=0.5,score=0.3]", "F1[iou=0.5]", *AIMED)
RULES = {
    "coco": PROTOCOLS["coco"],
    "voc2007": PROTOCOLS["voc2007"],
    "voc2012": PROTOCOLS["voc2012"],
    "caps": PROTOCOLS["coco"].with_options(max_dets=(1, 2, 3)),
    "agnostic": PROTOCOLS["coco"].with_options(class_agnostic=True),
    "voc agnostic": PROTOCOLS["voc2012"].with_options(class_agnostic=True, iou_thresholds=(0.5, 0.75)),
}


def draw_boxes(seed: int, n: int, decimals: int) -> tuple[BoxTable, BoxTable]:
    """Objects, and predictions near them or anywhere, in no order; images and classes are uneven."""
    rng = np.random.default_rng(seed)
    m = n // 3 + 1
    image, label = rng.integers(0, N_IMAGES - 2, m), rng.integers(0, N_LABELS, m) // rng.integers(1, 3, m)
    corner, size = rng.integers(0, 100, (m, 2)), rng.choice([10, 30, 90, 200], (m, 2))
    gt = np.concatenate((corner, size), axis=1).astype(float)
    flags = {name: rng.random(m) < 0.15 for name in ("crowd", "difficult")}
    near = rng.integers(0, m, n)
    pred = gt[near] + rng.integers(-6, 7, (n, 4))
    truth = BoxTable.from_arrays(image, label, gt, encoding="xywh", **flags)
    stray = rng.random(n) < 0.3
    boxes = BoxTable.from_arrays(
        np.where(stray, rng.integers(0, N_IMAGES, n), image[near]),
        np.where(stray, rng.integers(0, N_LABELS, n), label[near]),
        np.maximum(pred, 0.5),
        score=rng.random(n).round(decimals),
        encoding="xywh",
    )
    return truth, boxes


def measured_on_disk(
    gt: BoxTable, pred: BoxTable, rules: Protocol, folder: Path, *, parts: int, bucket_rows: int, workers: int = 1
) -> DetectionMetrics:
    engine = DiskEngine(scratch=folder, part_rows=max(1, len(pred) // parts), bucket_rows=bucket_rows, workers=workers)
    sides = []
    for boxes in (gt, pred):
        spool = folder / f"spool-{len(sides)}"
        with spool.open("wb") as file:
            for rows in np.array_split(np.arange(len(boxes)), 4):
                write_boxes(file, boxes.take(rows))
        sides.append(StoredBoxes((spool,), engine, scored=boxes is pred))
    truth, stored = sides[0].arranged(N_IMAGES, sides[1]), sides[1].arranged(N_IMAGES, sides[0])
    curves = engine.measure(truth, stored, rules, n_labels=N_LABELS)
    return DetectionMetrics(curves, names(rules), [f"i{row:02}" for row in range(N_IMAGES)])


def names(rules: Protocol) -> tuple[str, ...]:
    return ("all classes",) if rules.class_agnostic else ("cat", "dog", "fox")


def assert_equal_metrics(disk: DetectionMetrics, memory: DetectionMetrics) -> None:
    rules = memory.protocol
    refs = [*summary_refs(rules), *map(MetricRef.parse, POINTS)]
    assert [repr(disk.value(ref)) for ref in refs] == [repr(memory.value(ref)) for ref in refs]
    for ref in class_refs(rules):
        assert repr(disk.class_values(ref)) == repr(memory.class_values(ref)), str(ref)
    assert repr(disk.per_class()) == repr(memory.per_class())


@pytest.mark.parametrize("kind", RULES)
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 40, 400]),
    decimals=st.sampled_from([4, 1, 0]),
    parts=st.sampled_from([1, 3, 17]),
    bucket_rows=st.sampled_from([7, 100, 10**4]),
)
def test_parts_buckets_and_ties_change_no_bit(
    kind: str, seed: int, n: int, decimals: int, parts: int, bucket_rows: int
) -> None:
    gt, pred = draw_boxes(seed, n, decimals)
    rules = RULES[kind]
    table = match_boxes(gt, pred, rules, n_images=N_IMAGES, n_labels=N_LABELS)
    memory = DetectionMetrics(table, names(rules), [f"i{row:02}" for row in range(N_IMAGES)])
    with TemporaryDirectory() as folder:
        disk = measured_on_disk(gt, pred, rules, Path(folder), parts=parts, bucket_rows=bucket_rows)
        assert_equal_metrics(disk, memory)
        for score in (0.5, "best-f1"):
            assert repr(disk.operating_points(score)) == repr(memory.operating_points(score))
        for name in ("precision", "recall", "scores"):
            assert getattr(disk.curves, name).tobytes() == getattr(memory.curves, name).tobytes(), name
        bounds = [TieBounds(metrics.curves, metrics.axes).interval(MetricRef(name="AP")) for metrics in (disk, memory)]
        assert repr(bounds[0]) == repr(bounds[1])
        assert disk.curves.n_tied == memory.curves.n_tied
        assert disk.curves.tie_orders == memory.curves.tie_orders
        assert np.array_equal(disk.curves.detection_counts(), memory.curves.detection_counts())
        some = [0, 3, 4, 11, 20, 22]
        assert_equal_metrics(disk.restrict(some), memory.restrict(some))


def test_threads_change_no_bit(tmp_path: Path) -> None:
    gt, pred = draw_boxes(1, 500, 1)
    found = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        metrics = measured_on_disk(gt, pred, RULES["coco"], folder, parts=17, bucket_rows=50, workers=workers)
        found.append(metrics.curves.precision.tobytes())
    assert found[0] == found[1]
