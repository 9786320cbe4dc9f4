"""Image folders of Hugging Face: where the rows of each split are."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.reading.splits import SPLIT_NAMES, split_of

METADATA = "metadata.jsonl"


def find_metadata(folder: Path) -> dict[str, Path]:
    """Return the files of rows in an image folder by split, "" where it has one for all."""
    if (folder / METADATA).is_file():
        return {"": folder / METADATA}
    files = {name: folder / name / METADATA for name in SPLIT_NAMES}
    return {split_of(name): file for name, file in files.items() if file.is_file()}
