"""Edits that break one rule of the evaluation each; a proof of exactness must notice every one of them.

Rules are numbered as in the reference: R5-R6 overlap, R7-R9 flags and orders, R10-R12 matching, R13-R20 accumulation,
R21-R23 summary and axes; VOC is the development kit's text.

An edit names a definition and quotes code in it, both compared as syntax trees: where the definition lives and how it
is laid out do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jaccard_eval

PACKAGE = Path(jaccard_eval.__file__).parent
UNSAID = ("ctx", "kind", "type_comment")  # fields of nodes that quoted code does not say

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one definition, and the rule that it breaks.

    Parameters
    ----------
    rule, what : str
    place : str
        Name of a function, a method (`Class.method`) or a constant, wherever the package defines it.
    old : str
        An expression, a statement, or `name=...` for the argument of that name, or the value of that key in the
        outermost dictionary that has it; found once in all definitions of that name. A single capital stands for any
        expression, the same one each time; alone, for the value of the constant.
    new : str
        What takes its place, with the same capitals; nothing deletes a statement.
    """

    rule: str
    what: str
    place: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.rule} {self.what}"

    def edit(self) -> tuple[str, str]:
        """Return the name of the module that is edited, and its text with the edit made."""
        found = [
            (module, slot, new)
            for module, definition in _definitions(self.place)
            for slot in _slots(definition)
            if len(self.old) > 1 or (slot.parent, slot.field) == (definition, "value")
            if (new := self._replacement(slot)) is not None
        ]
        if self.old.endswith("=..."):
            del found[1:]  # the sources of the rules have the same keys, further inside
        assert len(found) == 1, f"{self}: {len(found)} times {self.old!r} in {self.place}"
        module, slot, new = found[0]
        slot.fill(new)
        text = ast.unparse(_parsed(module))
        slot.fill(slot.node)
        return _name(module), text

    def _replacement(self, slot: _Slot) -> ast.AST | None:
        """Return what takes the place of a node; None for a node that is not the quoted one."""
        if self.old.endswith("=..."):
            name = self.old.removesuffix("=...")
            if isinstance(slot.node, ast.keyword) and slot.node.arg == name:
                return ast.keyword(name, _quoted(self.new))
            return _quoted(self.new) if slot.key == name else None
        bound: dict[str, ast.AST] = {}
        if not _agree(_quoted(self.old), slot.node, bound):
            return None
        filled: ast.AST = _Filled(bound).visit(deepcopy(_quoted(self.new or "pass")))
        return filled


class _Filled(ast.NodeTransformer):
    """Quoted code with what its capitals stand for."""

    def __init__(self, bound: Mapping[str, ast.AST]) -> None:
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.bound.get(node.id, node)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a node stands below another: in a field, or at a place of a list that the field holds."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    @property
    def key(self) -> str:
        """The text that the value of a dictionary stands behind."""
        if self.index is None or not isinstance(self.parent, ast.Dict) or self.field != "values":
            return ""
        key = self.parent.keys[self.index]
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""

    def fill(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def module_as_it_is() -> tuple[str, str]:
    """Return a module that mutants edit, written in the same way without any edit."""
    module, _ = next(_definitions(MUTANTS[0].place))
    return _name(module), ast.unparse(_parsed(module))


def _definitions(place: str) -> Iterator[tuple[Path, Definition]]:
    for module, text in _sources().items():
        if all(name in text for name in place.split(".")):
            yield from ((module, node) for name, node in _named(_parsed(module)) if name == place)


def _named(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Return the functions, methods and constants of a module by name."""
    for child in getattr(node, "body", ()):
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            yield prefix + child.targets[0].id, child
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            yield prefix + child.target.id, child
        elif isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            yield from _named(child, f"{prefix}{child.name}.")


def _slots(top: ast.AST) -> Iterator[_Slot]:
    """Return the places of all nodes below one."""
    for parent in ast.walk(top):
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.AST):
                    yield _Slot(parent, field, index, node)


def _agree(quoted: Any, found: Any, bound: dict[str, ast.AST]) -> bool:
    """Whether code is the quoted one; notes what capitals stand for."""
    if isinstance(quoted, ast.Name) and len(quoted.id) == 1 and quoted.id.isupper():
        known = bound.setdefault(quoted.id, found)
        return isinstance(found, ast.expr) and ast.unparse(known) == ast.unparse(found)
    if type(quoted) is not type(found):
        return False
    if isinstance(quoted, list):
        return len(quoted) == len(found) and all(_agree(*pair, bound) for pair in zip(quoted, found, strict=True))
    if isinstance(quoted, ast.AST):
        names = [name for name in quoted._fields if name not in UNSAID]
        return all(_agree(getattr(quoted, name, None), getattr(found, name, None), bound) for name in names)
    return bool(quoted == found)


@cache
def _quoted(text: str) -> ast.AST:
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


@cache
def _sources() -> dict[Path, str]:
    return {module: module.read_text(encoding="utf-8") for module in sorted(PACKAGE.rglob("*.py"))}


@cache
def _parsed(module: Path) -> ast.Module:
    return ast.parse(_sources()[module])


def _name(module: Path) -> str:
    parts = (PACKAGE.name, *module.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MUTANTS = (
    Mutant(
        "R5",
        "a pixel is added",
        "Corners.of",
        "np.ascontiguousarray(A.T)",
        "np.ascontiguousarray((A + [0, 0, 1, 1]).T)",
    ),
    Mutant("R5", "areas from corners", "Corners.of", "A * B", "((A + x) - x) * ((B + y) - y)"),
    Mutant("R5", "the union in another order", "overlapping_pairs", "A + B - C", "A + (B - C)"),
    Mutant("R5", "an epsilon in the union", "_reaching", "A / B", "A / (B + 1e-9)"),
    Mutant("R5", "the candidate threshold exclusive", "_reaching", "A >= threshold", "A > threshold"),
    Mutant("R6", "the union without the crowd rule", "overlapping_pairs", "np.where(crowd[A], B, C)", "C"),
    Mutant(
        "R6",
        "over the crowd's area",
        "overlapping_pairs",
        "np.where(crowd[A], B, C)",
        "np.where(crowd[A], second.area[A], C)",
    ),
    Mutant("R7", "the lower size limit open", "out_of_range", "A < B.low", "A <= B.low"),
    Mutant("R7", "the upper size limit open", "out_of_range", "A > B.high", "A >= B.high"),
    Mutant(
        "R7",
        "the area of the box, not of the file",
        "out_of_range",
        "A.object_areas(B)",
        "B.xywh[:, 2] * B.xywh[:, 3]",
    ),
    Mutant("R7", "ignore is honoured", "_COCO", "ignored_flags=...", "('crowd', 'ignore')"),
    Mutant("R7", "crowds count", "_COCO", "ignored_flags=...", "()"),
    Mutant("R8", "the cap one too high", "_ranked", "rank < A", "rank <= A"),
    Mutant("R8", "the cap one too low", "_ranked", "rank < A", "rank < A - 1"),
    Mutant("R8", "the cap per image", "rank_detections", "A.max_dets_per == 'image'", "True"),
    Mutant(
        "R8",
        "equal scores by the last in the file",
        "_ranked",
        "by_image[class_and_score_order(A[by_image], B[by_image])]",
        "by_image[::-1][class_and_score_order(A[by_image[::-1]], B[by_image[::-1]])]",
    ),
    Mutant("R8", "ascending scores", "class_and_score_order", "0.0 - A", "0.0 + A"),
    Mutant(
        "R9",
        "ground truth from the end of the file",
        "ground_truth_order",
        "stable_order(key)",
        "np.lexsort((-np.arange(len(key)), key))",
    ),
    Mutant("R9", "ignored boxes not scanned last", "_choose", "np.where(A.ignored[:, B], 0, C)", "0 * A.ignored[:, B]"),
    Mutant("R10", "thresholds exclusive for lone pairs", "_first_come", "A.overlap[B] >= C", "A.overlap[B] > C"),
    Mutant("R10", "thresholds exclusive in problems", "_choose", "A.overlap[B] >= C", "A.overlap[B] > C"),
    Mutant("R10", "the first of equal overlaps", "_by_preference", "A if B.last_wins else C", "C"),
    Mutant(
        "R10",
        "a copy must reach a threshold of 1",
        "LARGEST_THRESHOLD",
        "1 - A",
        "1.0",
    ),
    Mutant("R10", "boxes are never taken", "_choose", "A & ~taken[:, :, B]", "A & (taken[:, :, B] | True)"),
    Mutant("R10", "the best box only", "_COCO", "assignment=...", "'best_any'"),
    Mutant("R10", "a crowd is taken once in problems", "_choose", "~A.reusable[B]", "True"),
    Mutant("R10", "a crowd is taken once alone", "_first_come", "(A == B) | C.reusable[D]", "A == B"),
    Mutant("R10", "a crowd is not reusable", "_COCO", "reusable_flags=...", "()"),
    Mutant("R10", "a box of another size absorbs again and again", "_choose", "~A.reusable[B]", "~A.ignored[a, B]"),
    Mutant("R10", "the last in line is served first", "_ready", "A[B[::-1]] = C[::-1]", "A[B] = C"),
    Mutant(
        "R10",
        "lone candidates are served before others",
        "assign_best_free",
        "A & ~B[C]",
        "A & (True | B)[C]",
    ),
    Mutant("R10", "only pairs above the highest threshold", "match_boxes", "thresholds[0]", "thresholds[-1]"),
    Mutant(
        "R11",
        "a match with an ignored box counts",
        "Ranking.of",
        "counts[a] |= A",
        "counts[a] |= choice != NO_PLACE",
    ),
    Mutant("R12", "the lower size limit open for detections", "Ranking.of", "A >= B.low", "A > B.low"),
    Mutant("R12", "the upper size limit open for detections", "Ranking.of", "A <= B.high", "A < B.high"),
    Mutant("R12", "detections of another size count", "Ranking.of", "(A >= B.low) & C", "A == A"),
    Mutant(
        "R12",
        "matched detections of another size do not count",
        "Ranking.of",
        "counts[a] |= A",
        "counts[a] |= A & in_range[a][table.candidate]",
    ),
    Mutant(
        "R13",
        "images without ground truth are skipped",
        "Ranking.of",
        "(A >= B.low) & C",
        "(A >= B.low) & C & np.isin(table.image, table.gt_image)",
    ),
    Mutant("R14", "ignored boxes are positives", "Ranking.of", "gt_counts=...", "table.gt_ignored | True"),
    Mutant("R15", "equal scores in the order of the file", "_COCO", "score_ties=...", "'file'"),
    Mutant(
        "R15",
        "equal scores by image from the last",
        "_image_major",
        "A.image.astype(B) * C + D",
        "-A.image.astype(B) * C + D",
    ),
    Mutant("R16", "the epsilon dropped", "_COCO", "precision_epsilon=...", "0.0"),
    Mutant("R16", "the epsilon doubled", "_COCO", "precision_epsilon=...", "2.0**-51"),
    Mutant(
        "R16",
        "ignored matches are false positives",
        "Hits._changed",
        "A != B",
        "A & False",
    ),
    Mutant("R16", "hits count from zero", "Steps.precision", "A.total[1:] - B", "A.total[:-1] - B"),
    Mutant("R17", "recall within one more than the cap", "Hits._capped", "A < self._cap", "A <= self._cap"),
    Mutant(
        "R17",
        "recall without ground truth is defined",
        "Curves.final_recall",
        "A[A == 0] = np.nan",
        "A[A == 0] = 1.0",
    ),
    Mutant(
        "R18",
        "no envelope",
        "Steps.interpolated_precision",
        "np.maximum.accumulate(A[:, :, ::-1], axis=2)[:, :, ::-1]",
        "A",
    ),
    Mutant(
        "R18",
        "the envelope from the left",
        "Steps.interpolated_precision",
        "np.maximum.accumulate(A[:, :, ::-1], axis=2)[:, :, ::-1]",
        "np.maximum.accumulate(A, axis=2)",
    ),
    Mutant(
        "R18",
        "hits between recall values are skipped",
        "Steps.interpolated_precision",
        "np.maximum.reduceat(A, B)",
        "A[B]",
    ),
    Mutant("R19", "the search from the right", "required_hits", "A / B < C", "A / B <= C"),
    Mutant("R19", "recalls one ulp short are reached", "required_hits", "A / B < C", "A / B < C - 1e-15"),
    Mutant("R19", "recalls reached by rounding are not", "required_hits", "hits -= A", ""),
    Mutant(
        "R19",
        "the grid without linspace",
        "Protocol.recall_grid",
        "np.linspace(0.0, 1.0, A)",
        "np.arange(A) / max(A - 1, 1)",
    ),
    Mutant("R19", "precision 1 beyond the end", "Steps.interpolated_precision", "A[B == C] = 0", "A[B == C] = 1"),
    Mutant("R19", "the score of the first hit at recall 0", "Curves.recall_scores", "A[:, :, B == 0] = C", ""),
    Mutant(
        "R20",
        "classes without ground truth are 0",
        "Steps.undefined_without_truth",
        "A[..., B == 0] = np.nan",
        "A[..., B == 0] = 0.0",
    ),
    Mutant(
        "R20",
        "classes without detections are undefined",
        "Steps.undefined_without_truth",
        "return A",
        "return np.where((self.stop > self.start).any(axis=0), A, np.nan)",
    ),
    Mutant(
        "R21",
        "undefined cells are averaged as 0",
        "Averages.mean",
        "np.mean(A)",
        "np.sum(A) / max(len(A) * len(self._objects) // max(len(kept), 1), 1)",
    ),
    Mutant(
        "R21",
        "the mean of the means of classes",
        "Averages.mean",
        "np.mean(A)",
        "np.nanmean(np.nanmean(values.reshape(-1, values.shape[-1]), axis=0))",
    ),
    Mutant("R22", "the smallest cap by default", "Axes.cap", "max(A, 0)", "0"),
    Mutant(
        "R23",
        "thresholds rounded",
        "_COCO",
        "iou_thresholds=...",
        "(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)",
    ),
    Mutant(
        "R23",
        "pooled detections in the order of the file",
        "_image_major",
        "not A.class_agnostic",
        "table.score is not None",
    ),
    Mutant("R23", "pooled ground truth in the order of the file", "ground_truth_order", "A.class_agnostic", "False"),
    Mutant("VOC", "no pixel is added", "_VOC2012", "pixel_offset=...", "0.0"),
    Mutant("VOC", "the best free box", "_VOC2012", "assignment=...", "'best_free'"),
    Mutant("VOC", "the last of equal overlaps", "_VOC2012", "iou_ties=...", "'last'"),
    Mutant("VOC", "equal scores by image", "_VOC2012", "score_ties=...", "'image'"),
    Mutant("VOC", "difficult boxes count", "_VOC2012", "ignored_flags=...", "('crowd', 'ignore')"),
    Mutant("VOC", "difficult boxes absorb once", "_claim", "A | _first_of_each(B)", "_first_of_each(B)"),
    Mutant(
        "VOC",
        "the last claim wins",
        "_first_of_each",
        "np.minimum.at(A, B, C)",
        "A.__setitem__(B, C)",
    ),
    Mutant("VOC", "the threshold exclusive", "_claim", "A.overlap[B] >= C", "A.overlap[B] > C"),
    Mutant("VOC", "no envelope", "Steps.area_under_envelope", "np.maximum.accumulate(A[::-1])[::-1]", "A"),
    Mutant("VOC", "eleven points are a hundred and one", "_VOC2007", "recall_points=...", "101"),
    Mutant("VOC", "recall values for all years", "Averages._values", "A.interpolation != 'grid'", "False"),
    Mutant("VOC", "a cap of 100", "_VOC2012", "max_dets=...", "(100,)"),
)
