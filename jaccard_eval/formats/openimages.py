"""Open Images CSV: fractions in the order XMin, XMax, YMin, YMax, classes by MID or by name, groups of objects.

The challenge's submissions are read as well: all boxes of an image in a PredictionString, its classes MIDs.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import FindingLog
from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft

FORMAT = Format(
    name="openimages",
    summary="Open Images CSV: fractions as XMin, XMax, YMin, YMax; class-descriptions*.csv beside it names the classes",
    source="https://storage.googleapis.com/openimages/web/download_v7.html",
    example="ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\nstreet,,dog,1,0.1,0.3,0.2,0.5,0\n",
    carries=("scores", "group_of"),
    suffixes=(".csv",),
)


def sniff(path: Path) -> bool:
    """Whether the first line has the columns of Open Images."""
    head = files.head(path)
    if not head or files.looks_structured(head):
        return False
    from jaccard_eval.formats._openimages.columns import is_table
    from jaccard_eval.reading.tabular.rows import first_line, split_first_line  # only where a table is possible

    text = head.decode("utf-8", errors="replace")
    _, line = first_line(text)
    return bool(line) and is_table(split_first_line(line)[1], text)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an Open Images table to the draft.

    Raises
    ------
    DataError
        When the file cannot be read as a table; problems of its columns and cells are among the draft's findings.
    """
    from jaccard_eval.formats._openimages.reader import read_table  # not needed to look for a format

    read_table(path, draft, options)


def leads_to(path: Path, _: str) -> list[Path]:
    """Return the files beside a table that name its classes."""
    from jaccard_eval.formats._openimages.reader import DESCRIPTIONS

    return [] if files.is_folder(path) else sorted(path.parent.glob(DESCRIPTIONS))


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an Open Images table.

    Raises
    ------
    DataError
        When boxes are in pixels and the size of an image is unknown.
    MachineError
        When the file cannot be written.
    """
    from jaccard_eval.formats._openimages.writer import write_file

    write_file(dataset, path, findings)
