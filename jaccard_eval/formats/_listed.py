"""The list of formats: the modules of this folder, by their names, and those of installed packages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jaccard_eval.errors import UsageError
from jaccard_eval.extensions import FORMATS, broken_extension, extension_names, load_extension
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.text import did_you_mean, quoted_value

# The names of formats are completed in a shell: what needs NumPy is loaded where an input is looked at.
if TYPE_CHECKING:
    from jaccard_eval.reading.draft import Draft
    from jaccard_eval.reading.peek import Likeness, Peek


# The format that most JSON files are of: where it finds one plain, which its `is_plain` does, no other is asked.
USUAL_JSON = "coco"
# Formats that no JSON file is of, whatever is in it. They are not asked about one: importing them takes longer than
# reading a small file. A format that is missing here is asked in vain.
NEVER_JSON = frozenset(
    {
        "arrow",
        "csv",
        "cvat",
        "dota",
        "icdar",
        "instances",
        "kerasyolo",
        "kitti",
        "luna16",
        "masktable",
        "mot",
        "mots",
        "npz",
        "nwpu",
        "openimages",
        "parquet",
        "retinaface",
        "shapetext",
        "shapexml",
        "text",
        "visdrone",
        "voc",
        "yolo",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What a format is, for ``jaccard-eval formats`` and the documentation.

    Parameters
    ----------
    name : str
        The key: the module's name without a trailing underscore.
    summary : str
        One line.
    source : str
        Where the format is specified.
    example : str
        A small valid input, as text. For binary files, the code that makes one; the module then has
        ``write_example(path)``, which does that.
    carries : tuple of str
        Among "images", "sizes", "names", "scores", "crowd", "difficult", "group_of", "ignore", "area", "image_labels".
    suffixes : tuple of str
        File suffixes it usually has; empty for folders.
    shapes : tuple of str
        What it is written with besides boxes, among "segm", "keypoints" and "obb".
    written_if_named : bool
        Whether it is written only where it is named, as files of its suffix are usually of another format.
    shapes_if_asked : tuple of str
        The same, where the file then holds them in place of boxes.
    member : str
        Where the format is a folder of files: the suffix of these.
    reads : mapping of str to str
        What it is read with, among `SHAPES`: where the shapes stand; empty for what the summary describes.
    """

    name: str
    summary: str
    source: str
    example: str
    carries: tuple[str, ...]
    suffixes: tuple[str, ...] = ()
    member: str = ".txt"
    shapes: tuple[str, ...] = ()
    shapes_if_asked: tuple[str, ...] = ()
    written_if_named: bool = False
    reads: Mapping[str, str] = field(default_factory=lambda: {"bbox": ""})


class FormatModule(Protocol):
    """What a format module offers."""

    FORMAT: Format

    def looks_like(self, peek: Peek) -> Likeness | None:
        """Return how surely the input is of this format, None where it is not; cheap, and never raises."""

    def read(self, path: Path, draft: Draft, options: ReadOptions) -> None:
        """Add images, classes and boxes to the draft."""


def format_names() -> list[str]:
    """Names of all formats, those of installed packages included, without importing them."""
    return sorted({*own_modules(), *extension_names(FORMATS)})


def format_module(name: str) -> FormatModule:
    """Import the module of a format; a UsageError names all formats where there is none of this name."""
    own = own_modules()
    if name in own:
        return importlib.import_module(f"{__package__}.{own[name]}")
    foreign: FormatModule | None = load_extension(FORMATS, name)
    if foreign is not None:
        if not hasattr(foreign, "looks_like"):
            raise broken_extension(FORMATS, name, "is not a module with FORMAT, looks_like and read")
        return foreign
    known = format_names()
    raise UsageError(f"unknown format {quoted_value(name)}; choose from {', '.join(known)}.{did_you_mean(name, known)}")


def reads_name(module: FormatModule, name: str) -> bool:
    """Whether a format reads a file of this name in a folder that is its input; what it is not sure of it reads."""
    if hasattr(module, "reads_name"):
        return bool(module.reads_name(name))
    about = module.FORMAT
    return name.lower().endswith(about.suffixes or (about.member,))


def leads_to(module: FormatModule, path: Path, split: str) -> list[Path]:
    """Return the files and folders outside of an input that a format reads with it, or would if they were there."""
    return list(module.leads_to(path, split)) if hasattr(module, "leads_to") else []


@cache
def own_modules() -> dict[str, str]:
    """Return the modules of this folder by the names of their formats."""
    found = (info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {name.rstrip("_"): name for name in found if not name.startswith("_")}
