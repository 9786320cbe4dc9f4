"""Conversion: an input of any format, written in another; what the target cannot carry is never lost unasked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.evaluation import Input, read_alone
from jaccard_eval.findings import Finding
from jaccard_eval.formats import format_for_path, format_writer, write_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.text import shown

if TYPE_CHECKING:
    import os

    from jaccard_eval.evaluation import Source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conversion:
    """What was written.

    Parameters
    ----------
    dataset : Dataset
        As it was read.
    path : Path
    format : str
        Name of the target's format.
    findings : tuple of Finding
        What the target does not carry, and what else is to be known about it.
    """

    dataset: Dataset
    path: Path
    format: str
    findings: tuple[Finding, ...]


def convert(
    source: Source,
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    role: str | None = None,
    source_format: str | None = None,
    options: ReadOptions | None = None,
    lossy: bool = False,
    replace: bool = False,
) -> Conversion:
    """Read ground truth or predictions of any format and write them in another.

    Parameters
    ----------
    source : path, Dataset or BoxTable
    target : path
        File to write, or folder where the format is one of folders.
    to : str, optional
        Name of the target's format; by the suffix of `target` when left out.
    role : {"gt", "pred"}, optional
        What `source` is; found by looking for scores when left out.
    source_format : str, optional
        Name of its format; found by looking when left out.
    options : ReadOptions, optional
        Encoding, units, class names, images.
    lossy : bool
        Whether the target may be written though it does not carry all that belongs to the boxes, crowd flags say.
    replace : bool
        Whether what exists may be replaced.

    Returns
    -------
    Conversion

    Raises
    ------
    DataError
        When the input cannot be used, or the target cannot carry what it holds.
    UsageError
        When the target's format cannot be told or written, or its place is not free.
    MachineError
        When the target cannot be written.

    Examples
    --------
    >>> from jaccard_eval import BoxTable, convert
    >>> boxes = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]], crowd=[True])
    >>> convert(boxes, "labels", to="yolo")
    Traceback (most recent call last):
    jaccard_eval.findings.DataError: error[write-loss]: labels: crowd: boxes with crowd set: 1; ...
    """
    path = Path(target)
    name = target_format(path, to)
    dataset = read_alone(Input(source, source_format, options), role)
    return convert_input(dataset, path, name, lossy=lossy, replace=replace)


def target_format(path: Path, name: str | None = None) -> str:
    """Return the name of the format to write: as given, else by the suffix of the path.

    Raises
    ------
    UsageError
        When the format cannot be written, or the suffix does not tell it.
    """
    name = name or format_for_path(path)
    if name is None:
        raise UsageError(f"the suffix of {shown(str(path))} does not tell the format to write; name it with --to")
    format_writer(name)
    return name


def convert_input(dataset: Dataset, path: Path, name: str, *, lossy: bool = False, replace: bool = False) -> Conversion:
    """Write a data set that was read; see `convert` for the errors."""
    source = Path(dataset.path)
    inputs = [source] if os.path.lexists(source) else []
    written = write_dataset(dataset, path, format_name=name, inputs=inputs, replace=replace, lossy=lossy)
    return Conversion(dataset=dataset, path=path, format=name, findings=written)
