"""What Parquet and Arrow files start with, and which folders hold them. Loads no pyarrow and never raises."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from jaccard_eval.reading.folders import scan_folder

PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"  # of an Arrow stream, before the length of its first message

PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather", ".arrows")
# Files beside the data: of Spark and of Hugging Face's save_to_disk.
DESCRIPTIONS = ("dataset_info.json", "dataset_dict.json", "state.json", "readme.md")
BESIDES = frozenset({"_success", "_metadata", "_common_metadata", *DESCRIPTIONS})
MAX_SCHEMA_BYTES = 1 << 24  # more than the schema of any table takes
SNIFFED_FILES = 20
SNIFFED_LEVELS = 3


def is_parquet(start: bytes) -> bool:
    """Whether a file that starts so is a Parquet file."""
    return start.startswith(PARQUET_MAGIC)


def is_arrow(start: bytes) -> bool:
    """Whether a file that starts so is an Arrow file or stream."""
    if start.startswith(ARROW_MAGIC):
        return True
    length = int.from_bytes(start[4:8], "little")
    root = int.from_bytes(start[8:12], "little")  # of the flatbuffer, from its start
    return start.startswith(CONTINUATION) and 0 < length <= MAX_SCHEMA_BYTES and length % 8 == 0 and 4 <= root < length


def is_besides(name: str) -> bool:
    """Whether a file or folder in a folder of tables is none of them: hidden, a description, a picture."""
    from jaccard_eval.data.imagenames import is_image_name  # not needed to look at a file

    return name.startswith(".") or name.lower() in BESIDES or is_image_name(name)


def holds_only(folder: Path, suffixes: Collection[str]) -> bool:
    """Whether the first files in a folder, or else in the folders in it, are tables by their suffix, and no others."""
    level = [folder]
    for _ in range(SNIFFED_LEVELS):
        scanned = [scan_folder(one, _is_other_file, SNIFFED_FILES) for one in level]
        names = [file.name for files, _ in scanned for file in files]
        if names:
            return all(Path(name).suffix.lower() in suffixes for name in names)
        level = [one for _, folders in scanned for one in folders if not one.name.startswith(".")][:SNIFFED_FILES]
    return False


def _is_other_file(name: str) -> bool:
    return "." in name.strip(".") and "=" not in name and not is_besides(name)
