"""Boxes that are kept on the disk while they are read, so that memory holds one part of them at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from jaccard_eval.data.boxtable import BoxTable, RowArray
from jaccard_eval.data.dataset import Dataset, ImageTable, IntegerKeys, Key, LabelMap, key_order, unknown_sizes
from jaccard_eval.engine.memory import ENOUGH, release_memory
from jaccard_eval.engine.stored import Store, StoredBoxes, added_counts, store_boxes
from jaccard_eval.findings import MAX_EXAMPLES, Finding, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.progress import staged
from jaccard_eval.reading.blocks import needs_whole
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.rawboxes import MOST_INVERTED
from jaccard_eval.reading.tabular.table import warn_alike_images
from jaccard_eval.text import quoted_value


@staged("storing")
def keep_on_disk(side: Dataset, store: Store) -> Dataset:
    """Return one side with its boxes on the disk."""
    files = store_boxes([side.table], store)
    return replace(side, boxes=StoredBoxes(files, store, scored=side.table.score is not None))


def read_parts(drafts: Iterable[Draft], whole: Draft, store: Store) -> Dataset:
    """Build a side that a format reads in parts, each part on its own, and keep its boxes on the disk.

    They are what reading the whole would give; where only that can decide, it is a DataError. `whole` has what the
    format finds before it reads any part.
    """
    release_memory(ENOUGH)  # what reading the other side took
    parts = _Parts(whole)
    files = store_boxes((parts.stored(draft) for draft in drafts), store)
    dataset = parts.dataset()
    images, labels = parts.images.rows(), parts.labels.rows()
    counts = {"image": parts.counts_by_row("image", images), "label": parts.counts_by_row("label", labels)}

    is_pred = whole.options.role == "pred"
    renumbered = partial(_renumbered, images=images, labels=labels)
    boxes = StoredBoxes(files, store, scored=is_pred, changes=(renumbered,), counts=counts)
    return replace(dataset, boxes=boxes)


def _renumbered(table: BoxTable, *, images: RowArray, labels: RowArray) -> BoxTable:
    return replace(table, image=images[table.image], label=labels[table.label])


LARGEST = np.iinfo(np.int64).max


# What parts find as a whole would, in the order in which it is found. All else can depend on other rows.
_MERGED = (
    *("csv-comment", "csv-row-blank", "csv-one-class", "gt-scores", "image-size-conflict", "csv-row-no-box"),
    *("csv-normalised", "csv-names-unused", "coordinate-range", "track-ids", "image-names-alike", "csv-decimal-commas"),
    *("csv-columns-unused", "origin-unused", "mask-axes-unused", "box-negative", "box-empty", "area-negative"),
)
_NAMING = {True: "names", False: "numbers"}
_OF_THE_WHOLE = ("gt-empty", "pred-empty", "image-names-alike")  # found anew where all parts are known


class _MergedLog(FindingLog):
    """Findings of all parts of one input: those about rows add up, those about the input are the same in each."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: set[Finding] | None = None  # about the input

    def merge(self, part: FindingLog, *, has_boxes: bool) -> bool:
        """Take over what was found in another part; false where only the whole shows what would be found."""
        notes = set()
        for key, (first, examples) in part._groups.items():
            if key[1] in _OF_THE_WHOLE:
                continue
            if key[1] not in _MERGED or (first.summary and key not in part._summaries):
                return False
            is_of_rows = any(example.where.record or example.where.line for example in examples)
            if not is_of_rows:
                if not has_boxes:  # which the input is described by
                    continue
                notes.add(replace(first, examples=tuple(examples)))
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
        if not has_boxes:
            return True
        self._notes = notes if self._notes is None else self._notes
        return notes == self._notes

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings in the order of the whole, with what their summaries count in all parts."""
        for group, summary in self._summaries.items():
            first, examples = self._groups[group]
            self._groups[group] = replace(first, summary=summary(self._counts[group])), examples
        return tuple(sorted(super().findings(), key=lambda finding: _MERGED.index(finding.code)))


class _Keys:
    """Keys by the place at which parts first have them; integers take a few bytes each, as there may be millions."""

    def __init__(self) -> None:
        # Ascending, with the place of each.
        self._integers, self._integer_places = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        self._texts: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._integers) + len(self._texts)

    def add(self, keys: Sequence[Key]) -> RowArray:
        """Return the place of each key of a table, new ones behind the others."""
        # Integers stand in front of texts in a table, and ascend.
        n = next((row for row, key in enumerate(keys) if isinstance(key, str) or key > LARGEST), len(keys))
        integers = np.array(keys[:n], dtype=np.int64)
        at = np.searchsorted(self._integers, integers)
        known = at < len(self._integers)
        known[known] = self._integers[at[known]] == integers[known]
        new = at[~known]
        self._integer_places = np.insert(self._integer_places, new, len(self) + np.arange(len(new)))
        self._integers = np.insert(self._integers, new, integers[~known])
        places = self._integer_places[np.searchsorted(self._integers, integers)]
        texts = [self._texts.setdefault(key, len(self)) for key in keys[n:]]
        return np.append(places, np.array(texts, dtype=np.int32))

    def in_order(self) -> Sequence[Key]:
        """Return the keys as tables have them."""
        integers = IntegerKeys(self._integers)
        return (*integers, *sorted(self._texts, key=key_order)) if self._texts else integers

    def rows(self) -> RowArray:
        """Return the row of each place among the sorted keys."""
        places = [self._texts[key] for key in sorted(self._texts, key=key_order)]
        rows = np.empty(len(self), dtype=np.int32)
        rows[np.append(self._integer_places, np.array(places, dtype=np.int32))] = np.arange(len(rows))
        return rows


class _Parts:
    """Puts datasets of parts together."""

    def __init__(self, whole: Draft) -> None:
        self._whole = whole
        self._findings = _MergedLog()
        self._ignored: Counter[str] = Counter()
        self._first: Dataset | None = None
        self._n_parts = 0
        self._doubt = ""  # why only the whole can decide, if there is more than one part
        self._sizes = unknown_sizes(0)  # of images by place
        self._file_names: dict[int, str] = {}  # of those that have one
        self._class_names: dict[Key, str] = {}
        self._spelled: dict[str, None] = {}
        self._are_mostly_inverted: set[bool] = set()
        self._n_rows = 0
        self._listed = True
        self.images, self.labels = _Keys(), _Keys()
        self.n_boxes = 0
        self._counts = {name: np.zeros(0, dtype=np.int32) for name in ("image", "label")}  # of boxes by place

    def stored(self, draft: Draft) -> BoxTable:
        """Build a part, and return its boxes with the places of their images and classes."""
        part = draft.build()
        boxes = part.table
        self._n_parts += 1
        self._ignored.update(draft.ignored)
        self._require_alike(part, draft)
        self._listed = self._listed and part.images.listed
        self._spelled.update(dict.fromkeys(draft.image_names))
        images, labels = self.images.add(part.images.keys), self.labels.add(part.labels.keys)
        self._add_images(part.images, images)
        for key, name in zip(part.labels.keys, part.labels.names, strict=True):
            if self._class_names.setdefault(key, name) != name:
                names = " and ".join(map(quoted_value, (self._class_names[key], name)))
                self._doubt = f"class {quoted_value(key)} is called {names}"
        if self._doubt and self._n_parts > 1:
            raise needs_whole(draft.path, self._doubt)
        release_memory(len(boxes))
        source = boxes.source + self._n_rows
        self._n_rows += int(boxes.source.max(initial=-1)) + 1
        self.n_boxes += len(boxes)
        table = replace(boxes, image=images[boxes.image], label=labels[boxes.label], source=source)
        self._counts = {name: added_counts(before, table.counts(name, 0)) for name, before in self._counts.items()}
        return table

    def counts_by_row(self, column: str, rows: RowArray) -> RowArray:
        """Return how many boxes each image or class has, in the order of the tables."""
        counts = np.zeros(len(rows), dtype=np.int32)
        of_places = self._counts[column]
        counts[rows[: len(of_places)]] = of_places
        return counts

    def _require_alike(self, part: Dataset, draft: Draft) -> None:
        """Note what keeps a part from being merged: it is read in another way than the others, or depends on them."""
        # How boxes are read means nothing where there are none.
        if self._first is None or not self.n_boxes:
            self._first = replace(part, boxes=part.table.take(np.arange(0)))
        first = self._first
        if not self._findings.merge(draft.findings, has_boxes=len(part.boxes) > 0):
            codes = ", ".join(sorted({finding.code for finding in part.findings}))
            self._doubt = f"what was found in one part depends on the others ({codes})"
        if not len(part.boxes):
            return
        for what, given, other, option in (
            ("boxes", first.reading.encoding, part.reading.encoding, "box"),
            ("units", first.reading.units, part.reading.units, "units"),
            ("units", first.units, part.units, "images"),
            ("classes", _NAMING[first.labels.named], _NAMING[part.labels.named], "names"),
        ):
            if given != other:
                detail = f"{what} of one part are read as {given}, those of another as {other}"
                named = f"{part.role}_{option}"
                words = f"Pass {{{named}}}, or read it whole with {{engine}}."
                fix = Fix.missing(words, engine="memory", **{named: None})
                raise needs_whole(draft.path, detail, fix)
        if first.details != part.details or first.has_no_class != part.has_no_class:
            self._doubt = f"one part is read as {', '.join(first.details)}, another as {', '.join(part.details)}"
        if any(_kinds(getattr(first, side).keys) != _kinds(getattr(part, side).keys) for side in ("images", "labels")):
            self._doubt = "images or classes are numbers in one part and strings in another"
        negative = [finding.count for finding in part.findings if finding.code == "box-negative"]
        if negative:
            self._are_mostly_inverted.add(sum(negative) > MOST_INVERTED * len(part.boxes))

    def _add_images(self, images: ImageTable, places: RowArray) -> None:
        """Take over the names and sizes of images, the first ones that are given."""
        if len(self.images) > len(self._sizes):
            self._sizes = np.concatenate((self._sizes, unknown_sizes(len(self.images) - len(self._sizes))))
        known = self._sizes[places]
        is_new = np.isnan(known).any(axis=1)
        if (~is_new & (known != images.sizes).any(axis=1) & ~np.isnan(images.sizes).any(axis=1)).any():
            self._doubt = "images have several sizes"
        self._sizes[places[is_new]] = images.sizes[is_new]
        for place, name in zip(places.tolist(), images.file_names, strict=True):
            if name is not None and self._file_names.setdefault(place, name) != name:
                names = " and ".join(map(quoted_value, (self._file_names[place], name)))
                self._doubt = f"one image is called {names}"

    def _doubt_of_all(self, first: Dataset, findings: Sequence[Finding]) -> str:
        """Return why only the whole can decide, where that shows behind the last part alone; else nothing."""
        if not self.n_boxes:
            return "no part has boxes"
        texts = set(self._class_names.values())
        if len(set(self._file_names.values())) < len(self._file_names) or len(texts) < len(self._class_names):
            return "images or classes share a name"
        if any(len(text) > 2 and text[0] == text[-1] and text[0] in "'\"" and text[1:-1] in texts for text in texts):
            return "names of classes differ by quotes"
        if first.units == "norm" and not np.isnan(self._sizes).all():
            return "some images have a size"
        negative = [finding.count for finding in findings if finding.code == "box-negative"]
        if self._are_mostly_inverted - {sum(negative) > MOST_INVERTED * self.n_boxes}:
            return "the share of boxes with negative sizes differs between parts"
        return ""

    def _merged_findings(self, first: Dataset) -> tuple[Finding, ...]:
        """Return what was found in all parts, as the whole would have it."""
        if self._n_parts == 1:
            return first.findings
        warn_alike_images(self._spelled, Where(first.path), self._findings)
        merged = self._findings.findings()
        doubt = self._doubt_of_all(first, merged)
        if doubt:
            raise needs_whole(first.path, doubt)
        return merged

    def dataset(self) -> Dataset:
        """Return everything but the boxes."""
        self._whole.findings.raise_errors()
        if self._first is None:
            raise needs_whole(self._whole.path, "it has no parts")
        findings = FindingLog()
        findings.extend((*self._whole.findings.findings(), *self._merged_findings(self._first)))
        labels, order = self.labels.in_order(), np.argsort(self.images.rows())
        keys, sizes = self.images.in_order(), self._sizes[order]
        names = tuple(map(self._file_names.get, order.tolist())) if self._file_names else (None,) * len(keys)
        return replace(
            self._first,
            images=ImageTable(keys, names, sizes, self._listed),
            labels=LabelMap(tuple(labels), tuple(self._class_names[key] for key in labels), self._first.labels.named),
            ignored=dict(sorted((self._ignored + self._whole.ignored).items())),
            findings=findings.findings(),
        )


def _kinds(keys: Sequence[Key]) -> set[type]:
    return {type(key) for key in keys}
