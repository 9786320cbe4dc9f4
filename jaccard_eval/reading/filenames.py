"""Names of the files that a folder of labels is written to, one per image: safe, and told apart by any file system."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagenames import without_case
from jaccard_eval.errors import FindingLog, Severity, Where, shown

RESERVED = frozenset('<>:"|?*\\\0')  # in no file name of Windows

# Windows opens the device whatever follows a dot, and drops dots and blanks at the end of a name.
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_ELSEWHERE = re.compile(r"/|\.\./|[A-Za-z][A-Za-z0-9+.-]*:/")  # absolute, above, on a drive, or an address (s3://)


def below_shared_place(names: Sequence[str], path: Path, findings: FindingLog) -> list[str]:
    """Return POSIX paths of images without the folder that all share, where none of them can lie in the output.

    Parameters
    ----------
    names : sequence of str
    path : Path
        The output.
    findings : FindingLog
        Takes a note of the folder.
    """
    if not names or not all(map(_ELSEWHERE.match, names)):
        return list(names)
    folders = [name.split("/")[:-1] for name in names]
    pairs = zip(min(folders), max(folders), strict=False)  # what these two share, all between them do
    shared = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    if shared:
        detail = f"images are named by their paths below {shown('/'.join(shared) + '/')}, where all of them lie"
        findings.note("write-loss", Where(str(path), field="image"), detail)
    return ["/".join(name.split("/")[len(shared) :]) for name in names]


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
    first = first_rows([without_case(name) for name in names])
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
    whole = name.isprintable() and not RESERVED & set(name) and not path.is_absolute() and str(path) == name
    return whole and not any(part.endswith((".", " ")) or _DEVICE.match(part) for part in path.parts)


def _refuse_unsafe(
    dataset: Dataset, names: Sequence[str], findings: FindingLog, is_usable: Callable[[str], bool]
) -> None:
    bad = [row for row, name in enumerate(names) if not (is_safe(name) and is_usable(name))]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (Where(dataset.path, field="image"), f"{shown(names[row])} cannot be the name of a label file"),
        fix="Rename the image: relative, no control characters, no dot or blank at its end, not classes, readme, nul.",
    )
