"""Arrow files, streams and Feather (version 2): the same tables as in Parquet files.

Columns are identified by name, as in delimited text, and have any type that holds what they mean. Rows without a box
name images without objects. The schema of a file written here has its units, classes and ids, so it reads back
as it was. A folder of files is one table; of one that has splits, one is read. Needs the extra ``parquet``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.tabular import ARROW_SUFFIXES, holds_only, is_arrow

FORMAT = Format(
    name="arrow",
    summary="Arrow or Feather: the same tables as Parquet, as file or stream, also from Hugging Face's save_to_disk",
    source="https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc",
    example="""pandas.DataFrame(
    {"image": ["a.jpg"], "class": ["dog"], "xmin": [10], "ymin": [20], "xmax": [40], "ymax": [60]}
).to_feather("gt.arrow")
""",
    carries=("images", "sizes", "names", "scores", "crowd", "difficult", "group_of", "ignore", "area"),
    suffixes=ARROW_SUFFIXES,
)
READS_SPLITS = True


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a file by its first bytes, and a folder by the names of the files in it."""
    if peek.is_folder:
        return Likeness.STRUCTURE if holds_only(peek.path, ARROW_SUFFIXES) else None
    return Likeness.NAMED if is_arrow(peek.head) else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the boxes of a file, or of the files of a folder, to the draft; a MachineError where pyarrow is missing."""
    from jaccard_eval.reading.tabular.arrow_files import read_tables  # not needed to look for a format

    read_tables(path, ARROW_SUFFIXES, draft)


def read_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield drafts of about so many rows each."""
    from jaccard_eval.reading.tabular.arrow_files import read_tables_in_parts

    return read_tables_in_parts(path, ARROW_SUFFIXES, draft, rows)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an Arrow file, or a stream for the suffix ``.arrows``."""
    from jaccard_eval.reading.tabular.writer import write_arrow

    write_arrow(dataset, path, findings)


def write_example(path: Path) -> None:
    """Write the example, which is code here and not a text to be read."""
    import pandas as pd

    corners = {"xmin": [10], "ymin": [20], "xmax": [40], "ymax": [60]}
    pd.DataFrame({"image": ["a.jpg"], "class": ["dog"], **corners}).to_feather(path)
