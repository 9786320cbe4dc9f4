"""Predictions that are kept on the disk while they are read, so that memory holds one part of them at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, FloatArray
from jaccard_eval.data.dataset import Dataset, ImageTable, Key, LabelMap, key_order
from jaccard_eval.data.signature import HashSum, RowHasher
from jaccard_eval.engine.memory import ENOUGH, release_memory
from jaccard_eval.engine.stored import Store, StoredBoxes, as_table, store_boxes
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import MAX_EXAMPLES, DataError, Finding, FindingLog, Severity, Where
from jaccard_eval.progress import staged
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import MOST_INVERTED


@staged("storing")
def keep_on_disk(pred: Dataset, store: Store) -> Dataset:
    """Return predictions whose boxes lie on the disk; those that have none stay as they are."""
    if pred.boxes.shapes is not None:
        raise UsageError(f"{pred.path}: the disk engine compares boxes only. Pass --engine memory.")
    if not len(pred.boxes):
        return pred
    return replace(pred, boxes=as_table(StoredBoxes(store_boxes([pred.boxes], store), store)))


@staged("fingerprinting")
def hash_sum(boxes: BoxTable, image_names: Sequence[str], class_names: Sequence[str]) -> HashSum:
    """Add up the hashes of boxes table by table; see `row_hashes`."""
    hasher = RowHasher.of(image_names, class_names)
    return sum((HashSum.of(hasher(table)) for table in boxes.tables()), HashSum())


def read_parts(drafts: Iterable[Draft], whole: Draft, store: Store) -> Dataset:
    """Build predictions that a format reads in parts, each part on its own, and keep them on the disk.

    What is the same in all parts is that of the first; a part that is read in another way is a DataError. `whole` has
    what the format found before it read any part.
    """
    release_memory(ENOUGH)  # what reading the other side took
    parts = _Parts(whole)
    files = store_boxes((parts.stored(draft) for draft in drafts), store)
    dataset = parts.dataset()
    if not parts.n_boxes:
        return dataset
    images, labels = parts.images.rows(), parts.labels.rows()

    def renumbered(table: BoxTable) -> BoxTable:
        return replace(table, image=images[table.image], label=labels[table.label])

    return replace(dataset, boxes=StoredBoxes(files, store).mapped(renumbered))


class _MergedLog(FindingLog):
    """Findings of all parts of one input."""

    def merge(self, part: FindingLog) -> None:
        """Take over what was found in another part of one input: counts add up, what is about all of it stays one."""
        for key, (first, examples) in part._groups.items():
            is_of_rows = any(example.where.record or example.where.line for example in examples)
            # Rows are one finding whichever file they are in: where it is read whole, the first row names the file.
            alike = (known for known in self._groups if is_of_rows and (*known[:2], known[3]) == (*key[:2], key[3]))
            group = next(alike, key)
            if group not in self._groups:
                self._groups[group] = first, []
            elif not is_of_rows:
                continue
            kept = self._groups[group][1]
            kept.extend(examples[: MAX_EXAMPLES - len(kept)])
            self._counts[group] = self._counts.get(group, 0) + part._counts[key]
            if key in part._summaries:
                self._summaries[group] = part._summaries[key]

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, with what their summaries count in all parts."""
        for group, summary in self._summaries.items():
            first, examples = self._groups[group]
            self._groups[group] = replace(first, summary=summary(self._counts[group])), examples
        return super().findings()


class _Keys:
    """Keys in the order in which parts first have them."""

    def __init__(self) -> None:
        self.places: dict[Key, int] = {}

    def add(self, keys: Sequence[Key]) -> np.ndarray:
        """Return the place of each key, new ones behind the others."""
        places = self.places
        return np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int32)

    def in_order(self) -> list[Key]:
        """Return the keys as tables have them."""
        return sorted(self.places, key=key_order)

    def rows(self) -> np.ndarray:
        """Return the row of each place among the sorted keys."""
        rows = np.empty(len(self.places), dtype=np.int32)
        rows[[self.places[key] for key in self.in_order()]] = np.arange(len(rows))
        return rows


class _Parts:
    """Puts datasets of parts together."""

    def __init__(self, whole: Draft) -> None:
        self._whole = whole
        self._findings = _MergedLog()
        self._findings.merge(whole.findings)
        self._ignored: Counter[str] = Counter(whole.ignored)
        self._first: Dataset | None = None
        self._names: dict[Key, tuple[str | None, FloatArray]] = {}
        self._class_names: dict[Key, str] = {}
        self._n_rows = 0
        self._listed = True
        self.images, self.labels = _Keys(), _Keys()
        self.n_boxes = 0

    def stored(self, draft: Draft) -> BoxTable:
        """Build a part, and return its boxes with the places of their images and classes."""
        part = draft.build()
        boxes = part.boxes
        self._findings.merge(draft.findings)
        self._ignored.update(draft.ignored)
        if len(boxes):
            self._require_alike(part, draft)
        self._listed = self._listed and part.images.listed
        for row, key in enumerate(part.images.keys):
            name, size = part.images.file_names[row], part.images.sizes[row]
            known = self._names.get(key)
            if known is None or (np.isnan(known[1]).any() and not np.isnan(size).any()):
                self._names[key] = (name, size)
        for key, name in zip(part.labels.keys, part.labels.names, strict=True):
            self._class_names.setdefault(key, name)
        release_memory(len(boxes))
        images, labels = self.images.add(part.images.keys), self.labels.add(part.labels.keys)
        source = boxes.source + self._n_rows
        self._n_rows += int(boxes.source.max(initial=-1)) + 1
        self.n_boxes += len(boxes)
        return replace(boxes, image=images[boxes.image], label=labels[boxes.label], source=source)

    def _require_alike(self, part: Dataset, draft: Draft) -> None:
        if self._first is None:
            self._first = part
            return
        first = self._first
        for what, given, other, option in (
            ("boxes", first.reading.encoding, part.reading.encoding, "box"),
            ("units", first.reading.units, part.reading.units, "units"),
            ("units", first.units, part.units, "images"),
            ("class names", first.labels.named, part.labels.named, "names"),
        ):
            if given != other:
                raise DataError.single(
                    "parts-differ",
                    Where(draft.path),
                    f"{what} of one part are read as {given}, those of another as {other}",
                    fix=f"Pass --pred-{option}, or read it whole with --engine memory.",
                )

    def dataset(self) -> Dataset:
        """Return everything but the boxes."""
        if self._first is None:
            return self._whole.build()
        first, keys = self._first, self.images.in_order()
        labels = self.labels.in_order()
        findings = [finding for finding in self._findings.findings() if finding.code != "pred-empty"]
        for finding in findings:
            # The share of all boxes decides what a negative size is, not that of a part.
            if finding.code == "box-negative" and finding.count > MOST_INVERTED * self.n_boxes:
                fix = finding.fix.partition(" Rerun")[0]
                raise DataError([replace(finding, severity=Severity.ERROR, summary="", fix=fix)])
        return replace(
            first,
            images=ImageTable(
                tuple(keys),
                tuple(self._names[key][0] for key in keys),
                np.array([self._names[key][1] for key in keys]).reshape(-1, 2),
                self._listed,
            ),
            labels=LabelMap(tuple(labels), tuple(self._class_names[key] for key in labels), first.labels.named),
            ignored=dict(sorted(self._ignored.items())),
            findings=tuple(findings),
        )
