"""A folder of images: which there are, which one a key means, and how large each is. Pixels are never decoded."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import unknown_sizes
from jaccard_eval.data.imagekeys import is_image_name, last_part, without_case, without_suffix
from jaccard_eval.engine import Place, path_of
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.progress import tracked
from jaccard_eval.reading import files
from jaccard_eval.reading.files import list_tree, require_folder

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 2**34  # an image that claims more (131,072 x 131,072) has a damaged or hostile header

_ORIENTATION = 0x0112  # EXIF tag; 5 to 8 turn the image by a quarter, so width and height change places
_QUARTER_TURNS = frozenset({5, 6, 7, 8})

# Pillow has a reader for each of some 40 formats, and what they raise for a damaged header is theirs to choose.
DECODING_FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error),
)


class ImageFolder:
    """The images in a folder and below it; of the folders in it those `within`, all when there are none.

    Listing happens on first use; headers are read only for the images that are asked for.
    """

    def __init__(self, root: str | os.PathLike[str], *, within: Collection[str] = ()) -> None:
        self.root = root if isinstance(root, Path) else path_of(root)
        self.within = within
        self.findings = FindingLog()
        self._by_tier: dict[Callable[[str], str], dict[str, list[str]]] = {}
        require_folder(self.root, "the folder of images")

    def __fspath__(self) -> str:
        return str(self.root)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Relative POSIX paths of all images, sorted."""
        names = (name for name in list_tree(self.root, self.findings) if is_image_name(name))
        return tuple(name for name in names if not self.within or name.partition("/")[0] in self.within)

    def find(self, key: str) -> tuple[str, ...]:
        """Return the images that a key can mean: the first tier that has any, more than one when it is ambiguous.

        The tiers: relative path; path without suffix, as written and then without regard to case and Unicode
        composition; base name, the same way.
        """
        wanted = key.replace("\\", "/")
        return next((tuple(found) for tier in _TIERS if (found := self._index(tier).get(tier(wanted)))), ())

    def match(self, keys: Sequence[str]) -> list[str | None]:
        """Return the image of each key, or None; one found by its base name only is given to one key.

        A relative path is a surer sign than a base name: with labels ``a`` and ``train/a`` and one image ``a.png``,
        it belongs to ``a``.
        """
        found = [self.find(key) for key in keys]
        paths = [_folded_path(key.replace("\\", "/")) for key in keys]
        sure = [bool(names) and _folded_path(names[0]) == path for path, names in zip(paths, found, strict=True)]
        taken = {names[0] for names, is_sure in zip(found, sure, strict=True) if is_sure}
        claims = Counter(names[0] for names in found if names)
        # Found by its base name, an image must be the only one of that name, and its key the only one that claims it.
        sole = [len(names) == 1 and claims[names[0]] == 1 and names[0] not in taken for names in found]
        return [
            names[0] if is_sure or is_sole else None for names, is_sure, is_sole in zip(found, sure, sole, strict=True)
        ]

    def size(self, name: str) -> tuple[int, int]:
        """Return width and height in pixels of an image of this folder, as it is shown (EXIF orientation applied).

        Links that lie in the folder are followed, for the user put them there; a `name` that leads out is not.
        """
        with silent_pillow():
            return self._size(name)

    def _size(self, name: str) -> tuple[int, int]:
        path = self.root / name
        where = Where(str(path))
        parts = PurePath(name)
        if parts.is_absolute() or ".." in parts.parts:
            fix = "Pass the folder that holds the images."
            raise DataError.single("image-outside", where, "is outside the folder of images; not opened", fix=fix)
        with files.open_in_place(path) as opened:
            # Where each request takes its time, one brings the whole header.
            file = io.BufferedReader(opened, files.SNIFF_BYTES) if files.is_in_place(opened) else opened
            width, height = _read_header(file, where)
        if width * height > MAX_PIXELS:
            claim = f"its header claims a size of {width} x {height} pixels"
            raise DataError.single("image-too-large", where, claim, fix="Replace the image.")
        return width, height

    def read_sizes(
        self, names: Sequence[str | None], findings: FindingLog, *, severity: Severity = Severity.ERROR
    ) -> FloatArray:
        """Return sizes (n, 2) of images, NaN where there is none or it cannot be read; the latter are findings."""
        sizes = unknown_sizes(len(names))
        failures: list[DataError] = []

        def measure(row: int) -> tuple[int, int] | DataError:
            try:
                return self._size(names[row] or "")
            except DataError as error:
                return error

        rows = [row for row, name in enumerate(names) if name is not None]
        with silent_pillow():  # once for all of them: a tenth of the time, image by image
            measured = self.root.mapped(measure, rows) if isinstance(self.root, Place) else map(measure, rows)
            for row, size in zip(tracked(rows, "image sizes"), measured, strict=True):
                if isinstance(size, DataError):
                    failures.append(size)
                else:
                    sizes[row] = size
        files.record_failures(failures, findings, severity=severity)
        return sizes

    def fill_sizes(self, sizes: FloatArray, names: Sequence[str], findings: FindingLog) -> None:
        """Set the sizes (n, 2) that are not known (NaN) from the images of these names."""
        unknown = np.flatnonzero(np.isnan(sizes).any(axis=1))
        sizes[unknown] = self.read_sizes(self.match([names[row] for row in unknown.tolist()]), findings)

    def _index(self, tier: Callable[[str], str]) -> dict[str, list[str]]:
        """Index the images by their spelling in a tier, on first use: most keys are found in the first two."""
        if tier not in self._by_tier:
            index: dict[str, list[str]] = {}
            for name in self.names:
                index.setdefault(tier(name), []).append(name)
            self._by_tier[tier] = index
        return self._by_tier[tier]


def _base_stem(name: str) -> str:
    return without_suffix(last_part(name))


def _folded_path(name: str) -> str:
    return without_case(without_suffix(name))


_TIERS: tuple[Callable[[str], str], ...] = (
    str,  # as written
    without_suffix,
    _folded_path,
    last_part,
    _base_stem,
    lambda name: without_case(_base_stem(name)),
)


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of the image in a file, as it is shown; a DataError where it cannot be read."""
    with path.open("rb") as file:
        return _read_header(file, Where(str(path)))


def _read_header(file: BinaryIO, where: Where) -> tuple[int, int]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            width, height = image.size
            return (height, width) if orientation_of(image) in _QUARTER_TURNS else (width, height)
    except UnidentifiedImageError:
        # Pillow's message is the same for an empty file and for any other content.
        file.seek(0)
        what = "is not a readable image" if file.read(1) else "is empty (0 bytes)"
    except DECODING_FAILURES as error:
        what = f"its header cannot be read: {error or type(error).__name__}"
    raise DataError.single("image-unreadable", where, what, fix="Replace the image.")


def orientation_of(image: Image.Image) -> int | None:
    """Return the EXIF orientation of an opened image, 1 to 8; None where there is none."""
    # Only a block at hand is read: a PNG would decode for it.
    if "exif" in image.info:
        with contextlib.suppress(*DECODING_FAILURES):
            orientation = image.getexif().get(_ORIENTATION)
            return orientation if isinstance(orientation, int) else None
    return None


@contextlib.contextmanager
def silent_pillow() -> Iterator[None]:
    """Let Pillow open images of any size, in silence: a satellite image is not an attack, and whoever decodes looks."""
    # The limit is a global of Pillow's: other users of Pillow in this process must find it as it was.
    import logging  # slow to load, and most evaluations open no image

    from PIL import Image

    limit, silence, logger = Image.MAX_IMAGE_PIXELS, logging.NullHandler(), logging.getLogger("PIL")
    Image.MAX_IMAGE_PIXELS = None
    logger.addHandler(silence)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged EXIF, for example: the size does not depend on it
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit
        logger.removeHandler(silence)
