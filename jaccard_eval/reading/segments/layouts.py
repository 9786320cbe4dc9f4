"""Which layout a side of a panoptic segmentation has, and reading it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from jaccard_eval.engine import path_of
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog
from jaccard_eval.fixes import Fix
from jaccard_eval.reading.files import is_folder
from jaccard_eval.reading.labelmaps.arrays import ArrayMaps
from jaccard_eval.reading.segments import cityscapes, panoptic_json
from jaccard_eval.reading.segments.sides import SegmentedSide


def open_pair(
    gt: tuple[object, object],
    pred: tuple[object, object],
    class_map: Iterable[tuple[str, str]],
    findings: FindingLog,
) -> tuple[SegmentedSide, SegmentedSide]:
    """Return both sides, each given with its maps; a DataError names what is wrong with either.

    The class map has categories of predictions with those of the ground truth that they mean, by id or name.
    """
    sides = open_side("gt", *gt, findings), open_side("pred", *pred, findings)
    if sides[0] is None or sides[1] is None:
        findings.raise_errors()
        raise AssertionError
    keys = {category.name: category.key for category in sides[0].categories}
    keys |= {category.key: category.key for category in sides[0].categories}
    meaning = {category: keys.get(goal, goal) for category, goal in class_map}
    return sides[0], sides[1].renamed(meaning) if meaning else sides[1]


def open_side(role: str, source: object, masks: object, findings: FindingLog) -> SegmentedSide | None:
    """Return a side from a JSON file or its contents with maps next to it, or a folder as Cityscapes has it.

    None where `findings` has why there is none.
    """
    given = _masks_of(role, masks)
    if isinstance(source, Mapping):
        if given is None:
            raise UsageError(f"{role}_masks is missing: a document has no folder of its own. Pass its maps.")
        return panoptic_json.read_document(role, source, f"<{role}>", given, findings)
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise UsageError(
            f"panoptic() cannot read {'an' if kind[0] in 'aeiou' else 'a'} {kind}. Pass a path, or what a JSON file"
            " holds, with its maps."
        )
    path = path_of(source)
    # Of the two layouts, one is a folder.
    if is_folder(path):
        if given is not None:
            words = "{masks} belongs to a JSON file. Remove it."
            raise UsageError(f"{path} is a folder of maps.", fix=Fix.of_side(role, words, masks=None))
        return cityscapes.read_folder(path, findings)
    return panoptic_json.read_file(role, path, given, findings)


def _masks_of(role: str, masks: object) -> Path | ArrayMaps | None:
    if masks is None:
        return None
    if isinstance(masks, str | os.PathLike):
        return path_of(masks)
    if isinstance(masks, Mapping):
        return ArrayMaps({str(key): values for key, values in masks.items()})
    raise UsageError(
        f"{role}_masks must be a folder, or arrays (height, width) of ids by file name; got {type(masks).__name__}"
    )
