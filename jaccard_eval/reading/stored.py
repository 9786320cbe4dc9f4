"""Predictions that are kept on the disk while they are read, so that memory holds one part of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.signature import HashSum, RowHasher
from jaccard_eval.engine.stored import Store, StoredBoxes, as_table, write_boxes
from jaccard_eval.errors import UsageError
from jaccard_eval.progress import staged


@staged("storing")
def keep_on_disk(pred: Dataset, store: Store) -> Dataset:
    """Return predictions whose boxes lie on the disk; those that have none stay as they are."""
    if pred.boxes.shapes is not None:
        raise UsageError(f"{pred.path}: the disk engine compares boxes only. Pass --engine memory.")
    if not len(pred.boxes):
        return pred
    path = store.folder() / "boxes"
    with path.open("wb") as file:
        write_boxes(file, pred.boxes)
    return replace(pred, boxes=as_table(StoredBoxes((path,), store)))


@staged("fingerprinting")
def hash_sum(boxes: BoxTable, image_names: Sequence[str], class_names: Sequence[str]) -> HashSum:
    """Add up the hashes of boxes table by table; see `row_hashes`."""
    hasher = RowHasher.of(image_names, class_names)
    return sum((HashSum.of(hasher(table)) for table in boxes.tables()), HashSum())
