"""What a dataset that left a loader must be, and what an error must be: the oracle of the fuzzers."""

import time
from dataclasses import fields
from pathlib import Path

import numpy as np
from inertness import active_characters

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, Severity
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions

SECONDS_EACH = 8.0  # of processor time, for an input of a few kilobytes


def require_sound_or_refused(path: Path, options: ReadOptions, format_name: str | None) -> Dataset | None:
    """Read an input: the dataset is consistent, or the error names a place; quickly, and nothing else is raised."""
    start = time.process_time()
    try:
        dataset = read_dataset(path, options, format_name)
    except UsageError as error:
        assert str(error)
        dataset = None
    except DataError as error:
        require_telling(error)
        dataset = None
    else:
        require_sound(dataset)
    assert time.process_time() - start < SECONDS_EACH
    return dataset


def require_telling(error: DataError) -> None:
    """Every finding has a place; nothing in the message acts on a terminal."""
    assert any(one.severity is Severity.ERROR for one in error.findings)
    assert all(one.count > 0 and one.examples and one.examples[0].where.path for one in error.findings)
    assert not active_characters(str(error))


def require_sound(dataset: Dataset) -> None:
    """Columns are finite, of one length, read-only, and their rows exist."""
    boxes, n = dataset.boxes, len(dataset.boxes)
    for column in fields(boxes):
        values = getattr(boxes, column.name)
        if values is not None:
            assert len(values) == n
        if isinstance(values, np.ndarray):  # all but shapes
            assert not values.flags.writeable
            assert np.isfinite(values).all()
    assert (boxes.score is None) == (dataset.role == "gt")
    assert ((boxes.image >= 0) & (boxes.image < len(dataset.images))).all()
    assert ((boxes.label >= 0) & (boxes.label < len(dataset.labels))).all()
    require_sound_tables(dataset)
    assert not any(one.severity is Severity.ERROR for one in dataset.findings)


def require_sound_tables(dataset: Dataset) -> None:
    """Keys are unique and have what belongs to them; sizes are positive where known."""
    images, labels = dataset.images, dataset.labels
    assert len(set(images.keys)) == len(images.keys) == len(images.file_names) == len(images.sizes)
    assert len(set(labels.keys)) == len(labels.keys) == len(labels.names)
    known = images.sizes[~np.isnan(images.sizes)]
    assert (np.isfinite(known) & (known > 0)).all()
