"""From the options of a command line to how each side is read; what both sides share is loaded once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaccard_eval.errors import FindingLog

if TYPE_CHECKING:
    from jaccard_eval.formats import ReadOptions
    from jaccard_eval.formats._images import ImageFolder

ROLES = ("gt", "pred")


def read_options(options: dict[str, Any], log: FindingLog) -> tuple[ReadOptions, ReadOptions]:
    """Return how to read ground truth and predictions; what is odd about a list of names goes to `log`."""
    from jaccard_eval.formats import ReadOptions

    names = {role: options[f"{role}_names"] or options["names"] for role in ROLES}
    folders = {role: options[f"{role}_images"] or options["images"] for role in ROLES}
    loaded = {spec: _load_names(spec, log) for spec in names.values()}
    indexed = {folder: _index_images(folder) for folder in folders.values()}
    gt, pred = (
        ReadOptions(
            role=role,
            box=options[f"{role}_box"],
            units=options[f"{role}_units"],
            names=loaded[names[role]],
            images=indexed[folders[role]],
            columns=options[f"{role}_columns"],
            split=options["split"],
            assume_score=options["assume_score"] if role == "pred" else None,
        )
        for role in ROLES
    )
    return gt, pred


def _load_names(spec: str | None, log: FindingLog) -> tuple[str, ...] | None:
    if spec is None:
        return None
    from jaccard_eval.formats._names import load_names

    return load_names(spec, log)


def _index_images(folder: Path | None) -> ImageFolder | None:
    if folder is None:
        return None
    from jaccard_eval.formats._images import ImageFolder

    return ImageFolder(folder)
