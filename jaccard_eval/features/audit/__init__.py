"""What is wrong with an input: checks that name a mistake, its evidence and its fix.

Here is what they look at: a bounded sample of both sides, and how well predictions lie on objects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.alignment import Alignment, place
from jaccard_eval.data.boxtable import BoolArray, Boxes, BoxTable, FloatArray, RowArray, Words
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import match_by
from jaccard_eval.data.metricref import MetricRef
from jaccard_eval.data.protocol import COCO, Protocol
from jaccard_eval.findings import DataError, FindingLog
from jaccard_eval.fixes import Fix, Value
from jaccard_eval.frozen import dataclass
from jaccard_eval.matching import Blocks, lengths_of_runs, stable_order, starts_of_runs
from jaccard_eval.matching.matchtable import candidate_pairs
from jaccard_eval.metrics.detection import DetectionMetrics
from jaccard_eval.options import SideOptions

IntArray = npt.NDArray[np.int64]

SAMPLE_BOXES = 20_000  # predictions looked at, at most about
SAMPLE_PAIRS = 1_000_000  # pairs of boxes compared, at most about: one crowded image can have a billion
SAME_PLACE = 0.5  # IoU from which two boxes are taken to mean the same object, whatever their classes


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Boxes of a sample of the common images, and which of them lie in the same place."""

    # With the rows of images and classes of the tables that they come from.
    gt: BoxTable
    pred: BoxTable
    # Pairs of rows (p,) of one image that overlap by at least `SAME_PLACE`, whatever their classes; and their IoU.
    pred_row: IntArray
    gt_row: IntArray
    overlap: FloatArray
    share: float  # of the images that was sampled

    def located(self) -> tuple[int, int]:
        """Count the ground-truth boxes that share their place with some prediction, and all that could.

        Crowds, and images on which only one side has boxes, are not counted.
        """
        most = int(max(self.pred.image.max(initial=-1), self.gt.image.max(initial=-1)))
        has_predictions = np.zeros(most + 1, dtype=np.bool_)
        has_predictions[self.pred.image] = True
        could = ~self.gt.crowd & has_predictions[self.gt.image]
        found = np.zeros(len(self.gt), dtype=np.bool_)
        found[self.gt_row] = True
        return int(np.count_nonzero(found & could)), int(np.count_nonzero(could))

    def objects(self) -> tuple[IntArray, IntArray]:
        """Return one pair of rows (prediction, ground truth) for each object that predictions agree with by place.

        Each prediction is paired with the object that it overlaps most, and of those paired with one object only the
        prediction with the highest score counts: surplus and doubtful predictions are weak evidence. No crowds.
        """
        single = np.flatnonzero(~self.gt.crowd[self.gt_row])
        by_overlap = single[np.lexsort((-self.overlap[single], self.pred_row[single]))]
        best = by_overlap[starts_of_runs(self.pred_row[by_overlap])]
        score = np.zeros(len(self.pred)) if self.pred.score is None else self.pred.score
        by_score = best[np.lexsort((-score[self.pred_row[best]], self.gt_row[best]))]
        top = by_score[starts_of_runs(self.gt_row[by_score])]
        return self.pred_row[top], self.gt_row[top]


def take_sample(gt: Boxes, pred: Boxes, n_images: int, limit: int = SAMPLE_BOXES, protocol: Protocol = COCO) -> Sample:
    """Pair the boxes of evenly spread images by place alone, of either side at most about `limit`.

    If images are so crowded that too many pairs remain, evenly spread objects are sampled: each is still compared
    with every prediction of its image. Classes may be rows of different maps.
    """
    step = max(1, -(-len(pred) // limit), -(-len(gt) // limit))
    if step > 1:
        gt, pred = (boxes.mapped(lambda table: table.take(table.image % step == 0)) for boxes in (gt, pred))
    gt, pred = gt.whole(), pred.whole()
    # Every box is compared with every box of the other side of its image: crowded images cost more than many.
    most = 1 + int(max(gt.image.max(initial=-1), pred.image.max(initial=-1)))
    n_pairs = int(np.bincount(gt.image, minlength=most) @ np.bincount(pred.image, minlength=most))
    crowding = -(-n_pairs // SAMPLE_PAIRS)
    if crowding > 1:
        gt = gt.take(np.arange(0, len(gt), crowding))
    return pair_by_place(gt, pred, 1 / step if n_images else 1.0, protocol)


def pair_by_place(gt: Boxes, pred: Boxes, share: float = 1.0, protocol: Protocol = COCO) -> Sample:
    """Pair all boxes by place alone; `share` is of the images that they were taken from.

    What a `protocol` compares of them is compared, boxes unless it is given.
    """
    gt, pred = gt.whole(), pred.whole()
    order = stable_order(gt.image)
    blocks = Blocks.of(gt.image[order].astype(np.int64), pred.image.astype(np.int64))
    pairs = candidate_pairs(pred, gt.take(order), blocks, protocol, threshold=SAME_PLACE)
    return Sample(gt, pred, pairs.det, order[pairs.gt], pairs.overlap, share)


LOW_AGREEMENT = 0.3  # below this, images or boxes may be wrong; sound predictions of the public sets reach .63 and more
BETTER_AGREEMENT = 0.2  # by which another way to match images must be better, and twice as good
ROTATIONS = 3  # times that predictions are moved to other images to see what chance gives


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many objects share their place (IoU >= 0.5) with some prediction."""

    found: int  # objects in the place of a prediction
    possible: int  # objects that could be: at most as many as an image has predictions
    images: int  # on which both sides have boxes

    @property
    def share(self) -> float:
        """Share of the possible objects that is found; 0 where none is possible."""
        return self.found / self.possible if self.possible else 0.0


OVERLAPPED = "objects that predictions overlap"  # the share of them, as the metric of a fix


@dataclass(frozen=True, slots=True, eq=False)
class ImageMatchTrial:
    """One way to match images, and what it achieves."""

    name: str  # one of `options.IMAGE_WAYS`
    rows: RowArray  # ground-truth row of each prediction image, -1 for none
    # Prediction images with boxes that are matched, and all of them.
    matched: int
    total: int
    agreement: Agreement  # of the boxes on matched images
    extra: str  # what becomes of the others: a ground truth that lists no images omits those without objects

    @property
    def options(self) -> Mapping[str, Value]:
        """The options that choose this way."""
        return {"match_images": self.name} | ({"extra_images": self.extra} if self.matched < self.total else {})


def place_agreement(sample: Sample) -> Agreement:
    """Measure how well predictions overlap the objects of their own images; objects that do not count are skipped."""
    counted = unflagged(sample.gt)
    found = np.zeros(len(sample.gt), dtype=np.bool_)
    found[sample.gt_row] = True
    n = 1 + int(max(sample.gt.image.max(initial=-1), sample.pred.image.max(initial=-1)))
    n_found, n_objects, n_pred = (
        np.bincount(images, minlength=n)
        for images in (sample.gt.image[found & counted], sample.gt.image[counted], sample.pred.image)
    )
    possible = np.minimum(n_objects, n_pred)  # (n images,)
    return Agreement(
        found=int(np.minimum(n_found, possible).sum()),
        possible=int(possible.sum()),
        images=int(np.count_nonzero(possible)),
    )


def chance_agreement(sample: Sample) -> Agreement:
    """Measure predictions that are moved to other images, a few times over; counts are sums."""
    both = _images_of_both(sample)
    trials = [place_agreement(_moved_on(sample, both, step)) for step in _steps(len(both))]
    return Agreement(
        found=sum(trial.found for trial in trials), possible=sum(trial.possible for trial in trials), images=len(both)
    )


STOP_GIVEN = 0.01  # share of the matchable predictions that match as given, up to which a run may stop
STOP_OTHER = 0.5  # share of the possible objects that another reading must find then
STOP_SURPRISE = 14.0  # nats: another reading finds as much by chance in one of a million data sets
# IoU, and how often a box that has nothing to do with an object of its image reaches it, at most.
BY_CHANCE = ((0.5, 0.02), (0.75, 0.002), (0.9, 0.0002))
FAULT_PAIRS = 20  # pairs from which a scale or an offset is distinguished from noise,
FAULT_SHARE = 0.05  # of the side of an object, by which they then move boxes at least,
FAULT_ERRORS = 8.0  # and of standard errors
STRICT_PLACE = 0.75  # IoU that most pairs of a right reading reach
DISTINCT_OBJECTS = 200  # objects of which those in one place are distinguished, at most


def is_decisive(given: Sample, other: Sample, *, fitted: int = 0) -> bool:
    """Whether boxes as given match next to nothing, and another reading or pairing of the same boxes matches well.

    A match under both readings is evidence for neither: a box at 0, 0 has the same numbers as corners and as a size.
    Nor are as many objects as the reading was `fitted` to.
    """
    counted = unflagged(given.gt)
    n_images = 1 + int(max(given.gt.image.max(initial=-1), given.pred.image.max(initial=-1)))
    objects = np.bincount(given.gt.image[counted], minlength=n_images)
    # As many predictions of an image can match as it has objects. Only those with the best scores are used: of hundreds
    # with low scores a few lie on any object by chance.
    score = np.zeros(len(given.pred)) if given.pred.score is None else given.pred.score
    order = np.lexsort((-score, given.pred.image))
    first, length = lengths_of_runs(starts_of_runs(given.pred.image[order]))
    rank = np.arange(len(order)) - np.repeat(first, length)
    matchable = order[rank < objects[given.pred.image[order]]]
    if not len(matchable):
        return False
    matched, matched_otherwise = (
        sample.pred.source[sample.pred_row[unflagged(sample.gt)[sample.gt_row]]] for sample in (given, other)
    )
    only_given = np.setdiff1d(matched, matched_otherwise)
    if np.count_nonzero(np.isin(given.pred.source[matchable], only_given)) > STOP_GIVEN * len(matchable):
        return False
    new = ~np.isin(other.gt.source[other.gt_row], given.gt.source[given.gt_row])
    if place_agreement(_only(other, new)).share < STOP_OTHER:
        return False
    used = new & np.isin(other.pred.source[other.pred_row], given.pred.source[matchable])
    return surprise(_only(other, used), fitted) >= STOP_SURPRISE


def surprise(sample: Sample, fitted: int = 0) -> float:
    """Measure how unlikely so many objects are found by chance, in nats: -log of an upper bound of the probability.

    Objects in one place, on any image, count once: a constant box that lies on one of them lies on all.
    """
    possible, most = place_agreement(sample).possible, 0.0
    for least, chance in BY_CHANCE:
        rows = np.unique(sample.gt_row[(sample.overlap >= least) & unflagged(sample.gt)[sample.gt_row]])
        if not len(rows):
            continue
        step = -(-len(rows) // DISTINCT_OBJECTS)
        places = _distinct_places(sample.gt.take(rows[::step]), least)
        # Each object of an image may be found by each of its predictions.
        images = len(np.unique(sample.pred.image))
        p = min(1.0, chance * possible / images)
        share = min(1.0, len(rows) / possible)
        n = max(0.0, places - fitted) / share
        most = max(most, n * divergence(share, p)) if share > p else most
    return most


def advised(fix: Fix, other: Sample) -> Fix:
    """Return the fix of another reading, unless boxes that are paired by it leave a certain fault."""
    words = "Correct the export: of all readings this one fits best, but boxes are still scaled or moved by it."
    return Fix.missing(words) if leaves_fault(other) else fix


def leaves_fault(sample: Sample) -> bool:
    """Whether boxes of one object have places that differ by a scale or an offset, so that few overlap well."""
    pred_row, gt_row = sample.objects()
    pairs = sample.overlap[np.isin(sample.pred_row, pred_row) & np.isin(sample.gt_row, gt_row)]
    if len(pred_row) < FAULT_PAIRS or np.median(pairs) >= STRICT_PLACE:
        return False
    pred, gt = sample.pred.xywh[pred_row], sample.gt.xywh[gt_row]
    side = float(np.median(np.sqrt(np.prod(gt[:, 2:], axis=1))))
    for axis in (0, 1):
        at = gt[:, axis] + gt[:, axis + 2] / 2
        off = pred[:, axis] + pred[:, axis + 2] / 2 - at
        at = at - at.mean()
        slope = float(at @ off / max(float(at @ at), np.finfo(np.float64).tiny))
        noise = float(np.std(off - off.mean() - slope * at)) / np.sqrt(len(at))
        # How far the scale moves boxes at the usual distance from the centre, and the offset all of them.
        for moved in (abs(slope) * float(np.std(at)), abs(float(off.mean()))):
            if moved > FAULT_SHARE * side and moved > FAULT_ERRORS * noise:
                return True
    return False


def _distinct_places(boxes: BoxTable, least: float) -> int:
    """Count boxes that overlap no one counted before by `least`, whatever their images."""
    alone = replace(boxes, image=np.zeros_like(boxes.image))
    pairs = candidate_pairs(
        alone, alone, Blocks.of(alone.image.astype(np.int64), alone.image.astype(np.int64)), COCO, threshold=least
    )
    near: dict[int, list[int]] = {}
    for row, other in zip(pairs.det.tolist(), pairs.gt.tolist(), strict=True):
        near.setdefault(row, []).append(other)
    kept: set[int] = set()
    for row in range(len(boxes)):
        if kept.isdisjoint(near.get(row, ())):
            kept.add(row)
    return len(kept)


def divergence(share: float, chance: float) -> float:
    """Relative entropy of two probabilities in nats: n times this bounds -log of the tail of a binomial (Chernoff)."""
    hit = share * math.log(share / chance)
    return hit if share == 1.0 else hit + (1 - share) * math.log((1 - share) / (1 - chance))


def _only(sample: Sample, pairs: BoolArray) -> Sample:
    return replace(sample, pred_row=sample.pred_row[pairs], gt_row=sample.gt_row[pairs], overlap=sample.overlap[pairs])


def ways_to_match(gt: Dataset, pred: Dataset, names: Iterable[str]) -> list[ImageMatchTrial]:
    """Try ways to match images; skip those that are not one to one, or match nothing."""
    used = pred.boxes.counts("image", len(pred.images)) > 0
    ways = [_try_way(gt, pred, name, used) for name in names]
    return [way for way in ways if way is not None]


def is_better(agreement: Agreement, present: Agreement) -> bool:
    """Whether the boxes clearly support a different correspondence than the present one."""
    return agreement.share >= max(LOW_AGREEMENT, present.share + BETTER_AGREEMENT, 2 * present.share)


def unflagged(gt: BoxTable) -> BoolArray:
    """Mark the ground truth that counts whatever the protocol, shape (n,)."""
    return ~(gt.crowd | gt.difficult | gt.group_of | gt.ignore)


def _try_way(gt: Dataset, pred: Dataset, name: str, used: BoolArray) -> ImageMatchTrial | None:
    match = match_by("id-text" if name == "id" else name, gt.images, pred.images)
    matched = int(np.count_nonzero(match.rows[used] >= 0))
    if not matched or not match.one_to_one:
        return None
    options = SideOptions(match_images=name, extra_images="ignore")
    try:
        placed = place(gt, pred, options, FindingLog())
    except DataError:  # units that cannot be brought together leave nothing to compare
        agreement = Agreement(0, 0, 0)
    else:
        agreement = place_agreement(take_sample(placed.gt, placed.pred, len(placed.images.table)))
    extra = "ignore" if gt.images.listed else "empty"
    return ImageMatchTrial(name, match.rows, matched, int(np.count_nonzero(used)), agreement, extra)


def _images_of_both(sample: Sample) -> IntArray:
    gt_image, pred_image = sample.gt.image[unflagged(sample.gt)], sample.pred.image
    n_images = 1 + int(max(gt_image.max(initial=-1), pred_image.max(initial=-1)))
    in_gt, in_pred = (np.bincount(image, minlength=n_images) for image in (gt_image, pred_image))
    return np.flatnonzero(np.minimum(in_gt, in_pred))


def _steps(n_images: int) -> list[int]:
    """Return how many images further predictions are moved: far, as neighbours in a video look alike."""
    return sorted({n_images * turn // (ROTATIONS + 1) for turn in range(1, ROTATIONS + 1)} - {0})


def _moved_on(sample: Sample, images: IntArray, step: int) -> Sample:
    """Put the predictions of each image on another one."""
    target = np.full(1 + int(sample.pred.image.max(initial=-1)), -1, dtype=np.int32)
    target[images] = np.roll(images, step)
    moved = target[sample.pred.image]
    pred = replace(sample.pred, image=moved).take(moved >= 0)
    return pair_by_place(sample.gt, pred)


FEWEST_MATCHED = 8  # objects that a resizing has to explain: of fewer boxes none is estimated
Measure = Callable[..., DetectionMetrics]  # (gt, pred, protocol, *, change of the match table, or one of them capped)
MISREAD = (
    "box-encoding",
    "box-units",
    "box-axes",
    "box-resized",
    "keypoints-mirrored",
    "mask-axes",
)  # codes of boxes read wrongly, after which all other evidence is worthless


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AuditContext:
    """What the checks look at."""

    gt: Dataset
    pred: Dataset
    aligned: Alignment
    metrics: DetectionMetrics
    sample: Sample  # boxes of some images, paired by place alone, each side with its own classes
    # Of the rows of the aligned tables: equal rows have equal hashes. Of stored boxes there are none.
    gt_hashes: Words | None
    pred_hashes: Words | None
    # Matches boxes in the rows of the alignment by other rules; the first two arguments may be changed boxes.
    measure: Measure
    # What the caller named and allows, where files may stop the run; None where everything is a warning at most.
    options: SideOptions | None = None

    def stops(self, code: str, *, named: bool) -> bool:
        """Whether a finding beyond doubt ends the run: not where the caller named what is doubted, or allows it."""
        return self.options is not None and not named and code not in self.options.allow


def average_precision(context: AuditContext, gt: Boxes, pred: Boxes, *, iou: float, pooled: bool = False) -> float:
    """Match boxes, in the rows of the alignment, again at one threshold and return AP; NaN without ground truth.

    Where they are `pooled`, boxes of different classes may match.
    """
    rules = context.metrics.protocol
    rules = rules.with_options(
        iou_thresholds=(iou,),
        areas=rules.areas[:1],
        max_dets=rules.max_dets[-1:],
        class_agnostic=pooled or rules.class_agnostic,
    )
    return context.measure(gt, pred, rules).value(MetricRef(name="AP")).value
