"""Names of the files that a folder of labels is written to, one per image: safe, and told apart by any file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import FindingLog, Severity, Where, shown

RESERVED = frozenset('<>:"|?*\\\0')  # in no file name of Windows


def require_file_names(
    dataset: Dataset, names: Sequence[str], findings: FindingLog, *, is_usable: Callable[[str], bool] = bool
) -> None:
    """Record errors for images whose label file, `names` without suffix, leads elsewhere, cannot be, or is another's.

    Parameters
    ----------
    dataset : Dataset
    names : sequence of str
        Relative POSIX path of each image's file, without suffix.
    findings : FindingLog
    is_usable : callable
        Whether the format reads a file of this name.
    """
    _refuse_unsafe(dataset, names, findings, is_usable)
    images = dataset.images
    first = first_rows([name.casefold() for name in names])
    shared = [row for row, earlier in enumerate(first) if earlier != row]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        shared,
        lambda row: (
            Where(dataset.path, field="image"),
            f"images {shown(images.name(first[row]))} and {shown(images.name(row))} share a label file",
        ),
        fix="Give the images different names.",
    )


def first_rows(names: Sequence[str]) -> list[int]:
    """Return for each name the row of the first one that equals it."""
    first: dict[str, int] = {}
    return [first.setdefault(name, row) for row, name in enumerate(names)]


def is_safe(name: str) -> bool:
    """Whether a relative POSIX path can be that of a file, on any system, and does not lead out of its folder."""
    path = PurePosixPath(name)
    whole = name.isprintable() and not RESERVED & set(name) and not path.is_absolute()
    return whole and str(path) == name and ".." not in path.parts


def _refuse_unsafe(
    dataset: Dataset, names: Sequence[str], findings: FindingLog, is_usable: Callable[[str], bool]
) -> None:
    bad = [row for row, name in enumerate(names) if not (is_safe(name) and is_usable(name))]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (Where(dataset.path, field="image"), f"{shown(names[row])} cannot be the name of a label file"),
        fix="Rename the image: relative, without control characters, and none of classes, readme, license.",
    )
