"""Conversion: an input of any format, written in another; what the target cannot carry is never lost unasked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import Finding
from jaccard_eval.formats import format_for_path, format_writer, write_dataset
from jaccard_eval.text import quoted_value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conversion:
    """What was written."""

    # As it was read
    dataset: Dataset
    path: Path
    format: str  # name of the target's format
    findings: tuple[Finding, ...]  # what the target does not carry, and what else is to be known about it


def target_format(path: Path, name: str | None = None) -> str:
    """Return the name of the format to write: as given, else by the suffix of the path."""
    name = name or format_for_path(path)
    if name is None:
        raise UsageError(
            f"the suffix of {quoted_value(str(path))} does not tell the format to write; name it with --to"
        )
    format_writer(name)
    return name


def convert_input(dataset: Dataset, path: Path, name: str, *, lossy: bool = False, replace: bool = False) -> Conversion:
    """Write a data set that was read; see `convert` for the errors."""
    source = Path(dataset.path)
    inputs = [source] if os.path.lexists(source) else []
    written = write_dataset(dataset, path, format_name=name, inputs=inputs, replace=replace, lossy=lossy)
    return Conversion(dataset=dataset, path=path, format=name, findings=written)
