"""The one door to scale-out: what lies behind a URL, and boxes on the disk of this machine or of a cluster.

A run without any of it passes what stands here and in `places`, and nothing behind it. No task is defined here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from os.path import getsize, isfile
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.engine import places
from jaccard_eval.engine.places import (
    IMAGES,
    MANIFEST,
    Place,
    absolute,
    is_partitioned,
    list_names,
    normal,
    remembered,
    session,
)
from jaccard_eval.findings import is_address

if TYPE_CHECKING:
    from jaccard_eval.engine.disk import DiskEngine
    from jaccard_eval.options import EngineOptions

__all__ = [
    "IMAGES",
    "MANIFEST",
    "Place",
    "absolute",
    "at_work",
    "bring",
    "is_copy",
    "is_partitioned",
    "list_names",
    "normal",
    "path_of",
    "remembered",
    "session",
    "takes_disk",
]


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return a path as it was given; of a URL, one that opens what lies there.

    A UsageError means that nothing is known of its scheme, a MachineError that a package is missing for it.
    """
    if isinstance(given, Place):
        return given
    text = os.fspath(given)
    if text.startswith("file:///"):
        return Path(text.removeprefix("file:///" if os.name == "nt" else "file://"))  # file:///C:/gt.json
    if "://" not in text or not is_address(text):
        return Path(text)
    from jaccard_eval.engine.remote import place_of

    return place_of(text)


def bring(paths: Iterable[Path]) -> None:
    """Bring the contents of files that are not here yet, many at once; what does not exist is left to whoever opens."""
    away = [str(path) for path in paths if isinstance(path, Place)]
    if away:
        from jaccard_eval.engine.remote import bring_all

        bring_all(away)


def is_copy(name: str) -> bool:
    """Whether a file of this machine is a copy, whose name means nothing to the user."""
    from jaccard_eval.engine.remote import holds

    return holds(name)


def takes_disk(gt: object, pred: object, options: EngineOptions, iou_type: str) -> bool:
    """Whether boxes go to the disk, that of this machine or of a cluster; of tables in memory it is not needed."""
    if not options.is_automatic:
        return options.engine != "memory"
    paths = [side for side in (gt, pred) if isinstance(side, str | os.PathLike)]
    # No module of its own is loaded for what most are: two small files.
    if not isinstance(pred, str | os.PathLike) or (
        all(map(isfile, paths)) and sum(map(getsize, paths)) <= places.SMALL
    ):
        return False
    from jaccard_eval.engine.choice import exceed_memory

    return exceed_memory({*map(path_of, paths)}, options, iou_type)


@contextlib.contextmanager
def at_work(
    gt: object, pred: object, options: EngineOptions | None, iou_type: str, lacking: Sequence[str]
) -> Iterator[DiskEngine | None]:
    """Open where boxes of two inputs go that are not kept in memory; None where they are, as most are.

    What is asked for and `lacking` on the disk is a UsageError where that is asked for, and else keeps them in memory.
    """
    if options is None or not takes_disk(gt, pred, options, iou_type):
        yield None
        return
    from jaccard_eval.engine.choice import open_engine
    from jaccard_eval.engine.scratch import explained

    paths = {path_of(side) for side in (gt, pred) if isinstance(side, str | os.PathLike)}
    store = open_engine(paths, options, iou_type, lacking)
    if store is None:
        yield None
        return
    try:
        with explained(store.scratch):
            yield store
    except BaseException:
        store.close()
        raise
