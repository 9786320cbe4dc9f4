"""Image folders of Hugging Face: where the rows of each split are."""

from __future__ import annotations

from pathlib import Path

METADATA = "metadata.jsonl"
ALIASES = {"train": "train", "validation": "val", "val": "val", "valid": "val", "test": "test"}  # folder: split


def find_metadata(folder: Path) -> dict[str, Path]:
    """Return the files of rows in an image folder by split, "" where it has one for all."""
    if (folder / METADATA).is_file():
        return {"": folder / METADATA}
    return {split: folder / name / METADATA for name, split in ALIASES.items() if (folder / name / METADATA).is_file()}
