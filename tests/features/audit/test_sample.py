"""Pairs by place alone: which boxes are located, and which prediction stands for an object."""

import numpy as np

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.features.audit import Sample, pair_by_place, take_sample

HERE, THERE = [0.0, 0.0, 10.0, 10.0], [50.0, 50.0, 10.0, 10.0]
NEAR = [0.0, 0.0, 10.0, 8.0]  # IoU with HERE is 80 / 100


def _boxes(*rows: tuple[int, int, list[float]], score: list[float] | None = None, crowd: bool = False) -> BoxTable:
    image, label, xywh = zip(*rows, strict=True) if rows else ((), (), np.zeros((0, 4)))
    flags = [crowd] * len(rows)
    return BoxTable.from_arrays(image, label, xywh, score=score, encoding="xywh", crowd=flags)


def _objects(sample: Sample) -> list[tuple[int, int]]:
    return [(int(pred), int(gt)) for pred, gt in zip(*sample.objects(), strict=True)]


def test_boxes_of_different_classes_in_one_place_are_paired() -> None:
    sample = pair_by_place(_boxes((0, 3, HERE)), _boxes((0, 7, NEAR), score=[0.9]))
    assert _objects(sample) == [(0, 0)]
    assert sample.overlap.tolist() == [0.8]
    assert sample.located() == (1, 1)


def test_boxes_of_different_images_are_not_paired() -> None:
    sample = pair_by_place(_boxes((0, 0, HERE)), _boxes((1, 0, HERE), score=[0.9]))
    assert _objects(sample) == []


def test_only_images_with_boxes_on_both_sides_count_as_possible_to_locate() -> None:
    gt = _boxes((0, 0, HERE), (0, 0, THERE), (1, 0, HERE))
    assert pair_by_place(gt, _boxes((0, 0, HERE), score=[0.9])).located() == (1, 2)


def test_the_best_ranked_prediction_stands_for_an_object() -> None:
    pred = _boxes((0, 1, HERE), (0, 2, NEAR), score=[0.3, 0.6])
    assert _objects(pair_by_place(_boxes((0, 0, HERE)), pred)) == [(1, 0)]


def test_a_prediction_stands_for_the_object_that_it_overlaps_most() -> None:
    # The prediction overlaps both objects, by 1.0 and by 0.8.
    sample = pair_by_place(_boxes((0, 0, NEAR), (0, 1, HERE)), _boxes((0, 1, HERE), score=[0.9]))
    assert _objects(sample) == [(0, 1)]


def test_crowds_are_neither_located_nor_objects() -> None:
    sample = pair_by_place(_boxes((0, 0, HERE), crowd=True), _boxes((0, 0, HERE), score=[0.9]))
    assert _objects(sample) == []
    assert sample.located() == (0, 0)


def test_a_sample_takes_images_evenly_until_its_boxes_are_few_enough() -> None:
    rows = [(image, 0, HERE) for image in range(100) for _ in range(2)]
    sample = take_sample(_boxes(*rows), _boxes(*rows, score=[0.5] * 200), 100, limit=50)
    assert sorted(set(sample.pred.image.tolist())) == list(range(0, 100, 4))  # 200 boxes, 50 wanted: every 4th image
    assert sample.share == 0.25


def test_of_a_crowded_image_evenly_spread_objects_are_compared_with_every_prediction() -> None:
    gt = _boxes(*((0, 0, [20.0 * place, 0.0, 10.0, 10.0]) for place in range(2000)))
    pred = _boxes(*((0, 0, [20.0 * place, 0.0, 10.0, 10.0]) for place in range(1500)), score=[0.5] * 1500)
    sample = take_sample(gt, pred, 1)
    assert (len(sample.gt), len(sample.pred)) == (667, 1500)  # 3 million pairs, 1 million wanted: every third object
    assert sample.located() == (500, 667)
    assert [int(sample.gt.source[row]) for row in sample.objects()[1][:3]] == [0, 3, 6]


def test_nothing_pairs_with_nothing() -> None:
    for gt, pred in ((_boxes(), _boxes(score=[])), (_boxes((0, 0, HERE)), _boxes(score=[]))):
        sample = take_sample(gt, pred, 1)
        assert (_objects(sample), sample.located()) == ([], (0, 0))
