"""Edits that break one rule of the evaluation each; a proof of exactness must notice every one of them.

Rules are numbered as in the reference: R5-R6 overlap, R7-R9 flags and orders, R10-R12 matching, R13-R20 accumulation,
R21-R23 summary and axes; VOC is the development kit's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jaccard_eval

PACKAGE = Path(jaccard_eval.__file__).parent

BOX = "geometry/box.py"
ORDER = "matching/order.py"
GREEDY = "matching/greedy.py"
TABLE = "matching/matchtable.py"
CURVES = "metrics/curves.py"
AVERAGES = "metrics/averages.py"
AXES = "metrics/axes.py"
PROTOCOL = "data/protocol.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file, and the rule that it breaks."""

    rule: str
    what: str
    file: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.rule} {self.what}"

    @property
    def module(self) -> str:
        """Name of the module that is edited."""
        return ".".join((PACKAGE.name, *Path(self.file).with_suffix("").parts))

    def edited(self) -> str:
        """Return the text of the module with the edit made."""
        source = (PACKAGE / self.file).read_text(encoding="utf-8")
        assert source.count(self.old) == 1, f"{self.file}: {source.count(self.old)} times {self.old!r}"
        return source.replace(self.old, self.new)


MUTANTS = (
    Mutant(
        "R5",
        "a pixel is added",
        BOX,
        "        if pixel_offset:",
        "        pixel_offset = 1.0\n        if pixel_offset:",
    ),
    Mutant("R5", "areas from corners", BOX, "area=w * h)", "area=((w + x) - x) * ((h + y) - y))"),
    Mutant(
        "R5",
        "the union in another order",
        BOX,
        "(first.area[i] + second.area[j]) - intersection",
        "first.area[i] + (second.area[j] - intersection)",
    ),
    Mutant(
        "R5",
        "an epsilon in the union",
        BOX,
        "overlap = intersection / whole",
        "overlap = intersection / (whole + 1e-9)",
    ),
    Mutant("R5", "the candidate threshold exclusive", BOX, "overlap >= threshold)", "overlap > threshold)"),
    Mutant("R6", "the union without the crowd rule", BOX, "np.where(crowd[j], first.area[i], union)", "union"),
    Mutant("R6", "over the crowd's area", BOX, "np.where(crowd[j], first.area[i]", "np.where(crowd[j], second.area[j]"),
    Mutant("R7", "the lower size limit open", TABLE, "(gt.area < one.low)", "(gt.area <= one.low)"),
    Mutant("R7", "the upper size limit open", TABLE, "(gt.area > one.high)", "(gt.area >= one.high)"),
    Mutant(
        "R7",
        "the area of the box, not of the file",
        TABLE,
        "(gt.area < one.low) | (gt.area > one.high)",
        "(gt.xywh[:, 2] * gt.xywh[:, 3] < one.low) | (gt.xywh[:, 2] * gt.xywh[:, 3] > one.high)",
    ),
    Mutant("R7", "ignore is honoured", PROTOCOL, 'ignored_flags=("crowd",),', 'ignored_flags=("crowd", "ignore"),'),
    Mutant("R7", "crowds count", PROTOCOL, 'ignored_flags=("crowd",),', "ignored_flags=(),"),
    Mutant("R8", "the cap one too high", TABLE, "kept = rank < protocol", "kept = rank <= protocol"),
    Mutant(
        "R8",
        "the cap one too low",
        TABLE,
        "kept = rank < protocol.max_dets[-1]",
        "kept = rank < protocol.max_dets[-1] - 1",
    ),
    Mutant(
        "R8",
        "the cap per image",
        TABLE,
        "rank = group_ranks(key)",
        "rank = group_ranks(pred.image[order].astype(np.int64))",
    ),
    Mutant(
        "R8",
        "equal scores by the last in the file",
        ORDER,
        "    packed = np.sort(run * n + order)\n    return packed % n",
        "    packed = np.sort(run * n + (n - 1 - order))\n    return n - 1 - packed % n",
    ),
    Mutant("R8", "ascending scores", ORDER, "np.argsort(-scores)", "np.argsort(scores)"),
    Mutant(
        "R9",
        "ground truth from the end of the file",
        ORDER,
        "    return stable_order(key)\n",
        "    return np.lexsort((-np.arange(len(key)), key))\n",
    ),
    Mutant(
        "R9",
        "ignored boxes not scanned last",
        GREEDY,
        "np.where(contest.ignored[:, gt], 0, bonus)",
        "0 * contest.ignored[:, gt]",
    ),
    Mutant(
        "R10",
        "thresholds exclusive for lone pairs",
        GREEDY,
        "overlap[pair] >= contest.thresholds[:, None]  # (T, p)\n    first",
        "overlap[pair] > contest.thresholds[:, None]  # (T, p)\n    first",
    ),
    Mutant(
        "R10",
        "thresholds exclusive in contests",
        GREEDY,
        "within = contest.pairs.overlap[pair] >=",
        "within = contest.pairs.overlap[pair] >",
    ),
    Mutant(
        "R10",
        "the first of equal overlaps",
        GREEDY,
        "(gt if contest.last_wins else -gt, overlap, det)",
        "(-gt, overlap, det)",
    ),
    Mutant(
        "R10", "a copy must reach a threshold of 1", GREEDY, "LARGEST_THRESHOLD = 1 - 1e-10", "LARGEST_THRESHOLD = 1.0"
    ),
    Mutant(
        "R10",
        "boxes are never taken",
        GREEDY,
        "usable = within & ~taken[:, :, gt]",
        "usable = within & (taken[:, :, gt] | True)",
    ),
    Mutant("R10", "the best box only", PROTOCOL, 'assignment="best_free"', 'assignment="best_any"'),
    Mutant(
        "R10",
        "a crowd is taken once in contests",
        GREEDY,
        "taken[a, t, won] = ~contest.reusable[won]",
        "taken[a, t, won] = True",
    ),
    Mutant("R10", "a crowd is taken once alone", GREEDY, "== place) | contest.reusable[gt])", "== place))"),
    Mutant("R10", "a crowd is not reusable", PROTOCOL, 'reusable_flags=("crowd",),', "reusable_flags=(),"),
    Mutant(
        "R10",
        "a box of another size absorbs again and again",
        GREEDY,
        "taken[a, t, won] = ~contest.reusable[won]",
        "taken[a, t, won] = ~contest.ignored[a, won]",
    ),
    Mutant("R10", "the last in line is served first", GREEDY, "first[gt[::-1]] = det[::-1]", "first[gt] = det"),
    Mutant(
        "R10",
        "lone candidates are served before others",
        GREEDY,
        "single & ~wanted_by_others[",
        "single & (True | wanted_by_others)[",
    ),
    Mutant(
        "R10",
        "only pairs above the highest threshold",
        TABLE,
        "float(_thresholds(protocol)[0])",
        "float(_thresholds(protocol)[-1])",
    ),
    Mutant(
        "R11",
        "a match with an ignored box counts",
        CURVES,
        "np.where(matched, ~table.ignored_match(area), in_range[table.candidate])",
        "matched | in_range[table.candidate]",
    ),
    Mutant("R12", "the lower size limit open for detections", TABLE, "self.area >= one.low", "self.area > one.low"),
    Mutant("R12", "the upper size limit open for detections", TABLE, "self.area <= one.high", "self.area < one.high"),
    Mutant(
        "R12",
        "detections of another size count",
        CURVES,
        "in_range = table.in_range(area)",
        "in_range = table.area == table.area",
    ),
    Mutant(
        "R12",
        "matched detections of another size do not count",
        CURVES,
        "~table.ignored_match(area), in_range[table.candidate])",
        "~table.ignored_match(area) & in_range[table.candidate], in_range[table.candidate])",
    ),
    Mutant(
        "R13",
        "images without ground truth are skipped",
        CURVES,
        "in_range = table.in_range(area)",
        "in_range = table.in_range(area) & np.isin(table.image, table.gt_image)",
    ),
    Mutant(
        "R14",
        "ignored boxes are positives",
        TABLE,
        "np.bincount(self.gt_label[~ignored],",
        "np.bincount(self.gt_label,",
    ),
    Mutant("R15", "equal scores in the order of the file", PROTOCOL, 'score_ties="image"', 'score_ties="file"'),
    Mutant(
        "R15",
        "equal scores by image from the last",
        ORDER,
        "    return table.image.astype",
        "    return -table.image.astype",
    ),
    Mutant("R16", "the epsilon dropped", PROTOCOL, "precision_epsilon=float(np.spacing(1.0))", "precision_epsilon=0.0"),
    Mutant("R16", "the epsilon doubled", PROTOCOL, "float(np.spacing(1.0))", "2 * float(np.spacing(1.0))"),
    Mutant(
        "R16",
        "ignored matches are false positives",
        CURVES,
        "outcome.counts.astype(np.int8) - outcome.unmatched[table.candidate]",
        "0 * outcome.counts.astype(np.int8)",
    ),
    Mutant(
        "R16",
        "hits count from zero",
        CURVES,
        "np.repeat(np.cumsum(count) - count.ravel(), count.ravel()) + 1",
        "np.repeat(np.cumsum(count) - count.ravel(), count.ravel())",
    ),
    Mutant("R17", "recall within one more than the cap", CURVES, "self.table.rank < limit", "self.table.rank <= limit"),
    Mutant(
        "R17",
        "recall without ground truth is defined",
        CURVES,
        "positives[positives == 0] = np.nan",
        "positives[positives == 0] = 1.0",
    ),
    Mutant(
        "R18",
        "no envelope",
        CURVES,
        "np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]",
        "until_next",
    ),
    Mutant(
        "R18",
        "the envelope from the left",
        CURVES,
        "np.maximum.accumulate(until_next[:, :, ::-1], axis=2)[:, :, ::-1]",
        "np.maximum.accumulate(until_next, axis=2)",
    ),
    Mutant(
        "R18",
        "hits between recall values are skipped",
        CURVES,
        "highest_from(np.maximum.reduceat(values, at.ravel())",
        "highest_from(values[at.ravel()]",
    ),
    Mutant("R19", "the search from the right", CURVES, "hits += hits / n < grid", "hits += hits / n <= grid"),
    Mutant(
        "R19", "recalls one ulp short are reached", CURVES, "hits += hits / n < grid", "hits += hits / n < grid - 1e-15"
    ),
    Mutant(
        "R19", "recalls reached by rounding are not", CURVES, "    hits -= (hits > 0) & ((hits - 1) / n >= grid)\n", ""
    ),
    Mutant(
        "R19",
        "the grid without linspace",
        PROTOCOL,
        "np.linspace(0.0, 1.0, self.recall_points)",
        "np.arange(self.recall_points) / max(self.recall_points - 1, 1)",
    ),
    Mutant("R19", "precision 1 beyond the end", CURVES, "padded = np.zeros(", "padded = np.ones("),
    Mutant(
        "R19",
        "the score of the first hit at recall 0",
        CURVES,
        "        scores[:, :, self.recall_grid == 0] = self._first_scores()[:, None]\n",
        "",
    ),
    Mutant(
        "R20",
        "classes without ground truth are 0",
        CURVES,
        "values[..., self.positives[area] == 0] = np.nan",
        "values[..., self.positives[area] == 0] = 0.0",
    ),
    Mutant(
        "R20",
        "classes without detections are undefined",
        CURVES,
        "= np.nan\n        return values",
        "= np.nan\n        unseen = ~np.isin(np.arange(values.shape[-1]), self.table.label)\n"
        "        values[..., unseen] = np.nan\n        return values",
    ),
    Mutant(
        "R21",
        "undefined cells are averaged as 0",
        AVERAGES,
        "defined = chosen[~np.isnan(chosen)]",
        "defined = np.nan_to_num(chosen).ravel()",
    ),
    Mutant(
        "R21",
        "the mean of the means of classes",
        AVERAGES,
        "return float(np.mean(defined)) if",
        "return float(np.nanmean(np.nanmean(values.reshape(-1, values.shape[-1]), axis=0))) if",
    ),
    Mutant("R22", "the smallest cap by default", AXES, "return max(len(caps) - 1, 0)", "return 0"),
    Mutant(
        "R23",
        "thresholds rounded",
        PROTOCOL,
        "tuple(np.linspace(0.5, 0.95, 10).tolist())",
        "tuple(np.linspace(0.5, 0.95, 10).round(2).tolist())",
    ),
    Mutant(
        "R23",
        "pooled detections in the order of the file",
        ORDER,
        "    if not protocol.class_agnostic:\n",
        "    if table.score is not None:\n",
    ),
    Mutant(
        "R23",
        "pooled ground truth in the order of the file",
        ORDER,
        "    if protocol.class_agnostic:\n",
        "    if False:\n",
    ),
    Mutant("VOC", "no pixel is added", PROTOCOL, "pixel_offset=1.0", "pixel_offset=0.0"),
    Mutant("VOC", "the best free box", PROTOCOL, 'assignment="best_any"', 'assignment="best_free"'),
    Mutant("VOC", "the last of equal overlaps", PROTOCOL, 'iou_ties="first"', 'iou_ties="last"'),
    Mutant("VOC", "equal scores by image", PROTOCOL, 'score_ties="file"', 'score_ties="image"'),
    Mutant(
        "VOC",
        "difficult boxes count",
        PROTOCOL,
        'ignored_flags=("difficult", "crowd", "ignore")',
        'ignored_flags=("crowd", "ignore")',
    ),
    Mutant(
        "VOC",
        "difficult boxes absorb once",
        GREEDY,
        "wins = ignored[gt[claims]] | _first_of_each(gt[claims])",
        "wins = _first_of_each(gt[claims])",
    ),
    Mutant(
        "VOC",
        "the last claim wins",
        GREEDY,
        "first[np.unique(values, return_index=True)[1]] = True",
        "first[len(values) - 1 - np.unique(values[::-1], return_index=True)[1]] = True",
    ),
    Mutant(
        "VOC",
        "the threshold exclusive",
        GREEDY,
        "contest.pairs.overlap[best] >= contest",
        "contest.pairs.overlap[best] > contest",
    ),
    Mutant("VOC", "no envelope", CURVES, "np.maximum.accumulate(precision[::-1])[::-1]", "precision"),
    Mutant("VOC", "eleven points are a hundred and one", PROTOCOL, "recall_points=11,", "recall_points=101,"),
    Mutant("VOC", "eleven points for all years", PROTOCOL, 'interpolation="area"', 'interpolation="grid"'),
    Mutant("VOC", "a cap of 100", PROTOCOL, "max_dets=(),", "max_dets=(100,),"),
)
