"""From a source of text labels to a draft: names, lines, images and boxes in one pass."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import DataError, FindingLog, Where
from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._yolo.boxes import KnownNames, add_boxes
from jaccard_eval.formats._yolo.checks import LineReporter
from jaccard_eval.formats._yolo.columns import uses_names
from jaccard_eval.formats._yolo.images import list_images, mention_other_files
from jaccard_eval.formats._yolo.lines import read_label_files
from jaccard_eval.formats._yolo.sources import (
    LabelSource,
    find_description,
    labels_of_folder,
    require_labels,
)
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.names import find_names, read_names, warn_repeated


def read_labels(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft.

    Raises
    ------
    DataError
        When there are no labels to read; problems of their lines are among the draft's findings.
    """
    source = _find_source(path, draft, options)
    paths = list(source.files.values())
    reporter = LineReporter(read_label_files(paths, draft.findings), paths, options.role, draft.findings)
    images = list_images(source, options, draft.findings)
    draft.set_images(images.keys, file_names=images.file_names, sizes=images.sizes, listed=images.is_complete)
    known = _known_names(source, draft, options, search=not uses_names(reporter.lines))
    if len(reporter.lines):
        add_boxes(draft, reporter, list(source.files), images.sizes_of(list(source.files)), known)
    elif known.names is not None:
        draft.set_classes(range(len(known.names)), known.names)
    mention_other_files(source.root, source.other_files, draft)


def _find_source(path: Path, draft: Draft, options: ReadOptions) -> LabelSource:
    """Find the labels; what was said before the search failed is said with the error."""
    try:
        source = _source(path, options.split, draft.findings)
        require_labels(source, options.role, draft.findings)
    except DataError as error:
        draft.findings.extend(error.findings)
        raise DataError(draft.findings.findings()) from None
    return source


def _source(path: Path, split: str, findings: FindingLog) -> LabelSource:
    """Return what `path` means: a folder, or the split of a data.yaml or a darknet obj.data."""
    description = find_description(path)
    if description is None:
        return labels_of_folder(path, split, findings)
    from jaccard_eval.formats._yolo.splits import read_description

    return read_description(description, split, findings)


def _known_names(source: LabelSource, draft: Draft, options: ReadOptions, *, search: bool) -> KnownNames:
    """Return the names given by the user, else by the data set, else (`search`) by a names file near the labels."""
    if options.names is not None:
        warn_repeated(options.names, Where(draft.path, field="names"), draft.findings)
        return KnownNames(names=options.names, origin="the given list of names")
    if source.names is not None:
        return KnownNames(names=source.names, origin=source.names_from)
    found = find_names(source.root) if search else None
    if found is None:
        return KnownNames(names=None, origin="")
    try:
        return KnownNames(names=read_names(found, draft.findings), origin=str(found))
    except DataError as error:
        first = error.findings[0].examples[0]
        draft.findings.warning("names-unusable", first.where, f"{first.detail}; it is not used")
        return KnownNames(names=None, origin="")
