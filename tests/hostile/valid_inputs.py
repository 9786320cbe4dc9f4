"""Valid inputs of every format, found by looking: the example of each format, and the sample data."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from jaccard_eval.findings import DataError
from jaccard_eval.formats import detect_format, format_module, format_names

PICTURES = (".png", ".jpg")
DESCRIPTIONS = (".yaml", ".data")  # of a data set: what they mean lies beside them


@dataclass(frozen=True)
class Input:
    """A path that can be read, and the files behind it that hold annotations."""

    format_name: str
    path: Path
    files: tuple[Path, ...]


def copy_inputs(sample_data: Path, folder: Path) -> list[Input]:
    """Copy all valid inputs into `folder`: the examples, as a file and as the file of an image, and the sample data."""
    shutil.copytree(sample_data, folder / "sample", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    candidates = [path for name in format_names() for path in write_example(folder / "examples", name)]
    candidates += sorted(path for path in (folder / "sample").rglob("*") if path.suffix not in (*PICTURES, ".txt"))
    found = ((path, _format_of(path)) for path in candidates)
    return [Input(name, path, _files_behind(path)) for path, name in found if name is not None]


def write_example(folder: Path, name: str) -> tuple[Path, Path]:
    """Write the example of a format as a file, and as the only file of a folder; return both."""
    module = format_module(name)
    suffix = module.FORMAT.suffixes[0] if module.FORMAT.suffixes else module.FORMAT.member
    file, inner = folder / f"{name}{suffix}", folder / name / f"a{suffix}"
    inner.parent.mkdir(parents=True, exist_ok=True)
    for path in (file, inner):
        if hasattr(module, "write_example"):
            module.write_example(path)
        else:
            path.write_text(module.FORMAT.example, encoding="utf-8")
    return file, inner.parent


def _format_of(path: Path) -> str | None:
    try:
        return detect_format(path)
    except DataError:
        return None


def _files_behind(path: Path) -> tuple[Path, ...]:
    if path.is_file() and path.suffix not in DESCRIPTIONS:
        return (path,)
    root = path if path.is_dir() else path.parent
    found = sorted(file for file in root.rglob("*") if file.is_file())
    # Pictures next to labels are looked at only for their size; where there is nothing else, they are what is read.
    return tuple(file for file in found if file.suffix not in PICTURES) or tuple(found)
