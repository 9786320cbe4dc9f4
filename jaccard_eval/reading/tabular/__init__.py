"""What tables share: rows, cells, columns and boxes; here how those of Arrow and Parquet are recognised."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.reading.files import scan_folder

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".arrows")
ARROW_MAGIC = b"ARROW1"
# Files next to the data: of Spark and of Hugging Face's save_to_disk.
_DESCRIPTIONS = ("dataset_info.json", "dataset_dict.json", "state.json", "readme.md")
_BESIDES = frozenset({"_success", "_metadata", "_common_metadata", *_DESCRIPTIONS})
_CONTINUATION = b"\xff\xff\xff\xff"  # of an Arrow stream, before the length of its first message
_MAX_SCHEMA_BYTES = 1 << 24  # more than the schema of any table takes
_SNIFFED_FILES = 20
_SNIFFED_LEVELS = 3


def is_parquet(start: bytes) -> bool:
    """Whether a file that starts so is a Parquet file."""
    return start.startswith(b"PAR1")


def is_arrow(start: bytes) -> bool:
    """Whether a file that starts so is an Arrow file or stream."""
    if start.startswith(ARROW_MAGIC):
        return True
    # A stream has no name in its first bytes: its lengths must fit, or any file of 0xff would be one.
    length = int.from_bytes(start[4:8], "little")
    root = int.from_bytes(start[8:12], "little")  # of the flatbuffer, from its start
    is_schema = 0 < length <= _MAX_SCHEMA_BYTES and length % 8 == 0 and 4 <= root < length
    return start.startswith(_CONTINUATION) and is_schema


def is_besides(name: str) -> bool:
    """Whether a file or folder in a folder of tables is none of them: hidden, a description, an image."""
    return name.startswith(".") or name.lower() in _BESIDES or is_image_name(name)


def holds_only(folder: Path, suffixes: Collection[str]) -> bool:
    """Whether the first files in a folder, or else in the folders in it, are tables by their suffix, and no others."""

    def is_file_of_data(name: str) -> bool:
        return "." in name.strip(".") and "=" not in name and not is_besides(name)

    # Level by level: the tables nearest to the folder decide, and nothing below them is listed.
    level = [folder]
    for _ in range(_SNIFFED_LEVELS):
        scanned = [scan_folder(place, is_file_of_data, _SNIFFED_FILES) for place in level]
        found = [file for files, _ in scanned for file in files]
        if found:
            return all(file.suffix.lower() in suffixes for file in found)
        inner = [place for _, folders in scanned for place in folders]
        level = [place for place in inner if not place.name.startswith(".")][:_SNIFFED_FILES]
    return False
