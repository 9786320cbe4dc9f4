import numpy as np
import pytest

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, unknown_sizes
from jaccard_eval.features.audit import (
    Agreement,
    Sample,
    advised,
    chance_agreement,
    is_better,
    pair_by_place,
    place_agreement,
    ways_to_match,
)
from jaccard_eval.fixes import Fix


def _boxes(*lefts: tuple[int, float], score: bool = False, **flags: list[bool]) -> BoxTable:
    """Squares of 10 x 10 on one line, as (image, left)."""
    return BoxTable.from_arrays(
        [image for image, _ in lefts],
        [0] * len(lefts),
        [[left, 0, 10, 10] for _, left in lefts],
        encoding="xywh",
        score=[0.5] * len(lefts) if score else None,
        **flags,
    )


def _sample(gt: BoxTable, *pred: tuple[int, float]) -> Sample:
    return pair_by_place(gt, _boxes(*pred, score=True))


def _side(role: str, keys: tuple[Key, ...], boxes: BoxTable) -> Dataset:
    images = ImageTable(keys, (None,) * len(keys), unknown_sizes(len(keys)), listed=True)
    return Dataset(f"{role}.json", "test", role, images, LabelMap((0,), ("dog",), True), boxes)


def test_an_image_can_agree_on_no_more_objects_than_it_has_predictions() -> None:
    # Image 0: 1 of 3 objects found by 1 prediction; image 1: 1 object, 2 predictions elsewhere; image 2: no prediction.
    sample = _sample(_boxes((0, 0), (0, 50), (0, 90), (1, 0), (2, 0)), (0, 1), (1, 70), (1, 80))
    agreement = place_agreement(sample)
    assert agreement == Agreement(found=1, possible=2, images=2)
    assert agreement.share == 0.5


def test_objects_that_do_not_count_are_left_out() -> None:
    gt = _boxes((0, 0), (0, 50), (0, 90), crowd=[True, False, False], difficult=[False, True, False])
    assert place_agreement(_sample(gt, (0, 0), (0, 50), (0, 90))) == Agreement(found=1, possible=1, images=1)


def test_nothing_to_agree_on_is_a_share_of_0() -> None:
    assert place_agreement(_sample(_boxes())).share == 0.0
    assert chance_agreement(_sample(_boxes())) == Agreement(found=0, possible=0, images=0)


def test_chance_moves_predictions_to_every_distance_once() -> None:
    # Four images with one object each, at 0, 0, 100 and 200, all found. Moved on by 1, the prediction of image 0 comes
    # to image 1, where it is right again; by 2, none is; by 3, that of image 1 is right on image 0.
    lefts = [(0, 0), (1, 0), (2, 100), (3, 200)]
    assert chance_agreement(_sample(_boxes(*lefts), *lefts)) == Agreement(found=2, possible=12, images=4)


def test_one_image_leaves_no_other_to_move_to() -> None:
    assert chance_agreement(_sample(_boxes((0, 0)), (0, 0))) == Agreement(found=0, possible=0, images=1)


@pytest.mark.parametrize(
    ("found", "present", "better"),
    [(90, 5, True), (29, 0, False), (30, 0, True), (50, 31, False), (60, 30, True), (70, 36, False)],
)
def test_another_way_must_be_better_beyond_doubt(found: int, present: int, better: bool) -> None:
    assert is_better(Agreement(found, 100, 10), Agreement(present, 100, 10)) == better


def test_ways_tell_how_many_images_and_objects_they_match() -> None:
    gt = _side("gt", (1, 2, 3), _boxes((0, 0), (1, 50), (2, 100)))
    pred = _side("pred", (0, 1, 7), _boxes((0, 0), (1, 50), (2, 0), score=True))
    ways = {way.name: way for way in ways_to_match(gt, pred, ("id", "id+1", "id-1"))}
    assert ways.keys() == {"id", "id+1"}  # of -1, 0 and 6 the ground truth has none
    assert (ways["id"].matched, ways["id"].agreement) == (1, Agreement(found=0, possible=1, images=1))
    assert (ways["id+1"].matched, ways["id+1"].agreement) == (2, Agreement(found=2, possible=2, images=2))
    assert ways["id+1"].options == {"match_images": "id+1", "extra_images": "ignore"}


def _pairs(scale: float, offset: float, noise: float) -> Sample:
    """Sixty objects of 40 px at random places, one to an image, and predictions that lie where these were moved to."""
    rng = np.random.default_rng(3)
    xywh = np.column_stack((rng.uniform(0, 400, (60, 2)), np.full((60, 2), 40.0)))
    moved = np.column_stack((xywh[:, :2] * scale + offset + rng.normal(0, noise, (60, 2)), xywh[:, 2:]))
    gt, pred = (
        BoxTable.from_arrays(range(60), [0] * 60, boxes, score=score, encoding="xywh")
        for boxes, score in ((xywh, None), (moved, [0.9] * 60))
    )
    return pair_by_place(gt, pred)


READING = Fix.reading({"pred_box": "xyxy"}, metric="AP50", before=0.0, after=0.9)


@pytest.mark.parametrize(
    ("scale", "offset", "noise", "is_advised"),
    [
        (1.0, 0.0, 1.0, True),
        (1.0, 0.0, 6.0, True),  # a poor detector: few pairs overlap well, and none is moved in one way
        (1.0, 1.0, 1.0, True),  # a pixel of 40: IoU stays above .75
        (1.04, 0.0, 1.0, False),  # up to 16 px at the far side
        (0.96, 0.0, 1.0, False),
        (1.0, 6.0, 1.0, False),
    ],
)
def test_a_reading_that_leaves_boxes_scaled_or_moved_is_not_advised(
    scale: float, offset: float, noise: float, is_advised: bool
) -> None:
    found = advised(READING, _pairs(scale, offset, noise))
    assert found == READING if is_advised else (found.kind, found.options) == ("missing", {})
