"""Images decoded to be shown: upright, in RGB, small where that will do, and never more than memory allows."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, FindingLog, Severity, Where, is_address
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.text import example_keys, pluralise

if TYPE_CHECKING:
    from PIL import Image

MAX_DECODED = 10**8  # pixels; RGB takes three bytes of each, and a few copies are made on the way
NOT_SHOWN = "its boxes are drawn on a plain canvas"
PAPER = (255, 255, 255)  # behind what is transparent


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small JPEG, and the size in pixels, as it is to be seen, of the image that it is of."""

    data: bytes
    size: tuple[int, int]


class ImageFiles:
    """The files of an evaluation's images, looked for and opened when they are to be shown.

    What cannot be shown is a note in `findings`, never an error: the numbers do not depend on it.
    """

    def __init__(self, folders: Sequence[str | PathLike[str]], names: Sequence[str], sizes: FloatArray) -> None:
        self._folders = tuple(folders)
        self._names = tuple(names)
        self.sizes = sizes
        self.findings = FindingLog()

    @cached_property
    def _paths(self) -> tuple[Path | None, ...]:
        """The file of each image: that of the first folder that has one of its name."""
        from jaccard_eval.reading.images import ImageFolder  # most evaluations show no image

        paths: list[Path | None] = [None] * len(self._names)
        for given in self._folders:
            try:
                folder = given if isinstance(given, ImageFolder) else ImageFolder(given)
                found = folder.match(self._names)
            except DataError as error:
                files.record_failures([error], self.findings, severity=Severity.NOTE)
                continue
            known = zip(paths, found, strict=True)
            paths = [folder.root / name if path is None and name else path for path, name in known]
        return tuple(paths)

    @property
    def given(self) -> bool:
        """Whether there is any folder to look in."""
        return bool(self._folders)

    def mention_missing(self, rows: Sequence[int]) -> None:
        """Note how many of some images have no file, or several that their name could mean, where there are folders."""
        missing = [self._names[row] for row in rows if self._paths[row] is None] if self.given else []
        if missing:
            where = Where(str(Path(self._folders[0])))
            what = f"{pluralise(len(missing), 'image')} of {len(rows):,} to show have no file here, or several that fit"
            detail = f"{what}: {example_keys(missing)}; drawn on a plain canvas"
            self.findings.note(
                "image-file-missing", where, detail, fix=Fix.missing("Pass their folder with {images}.", images=None)
            )

    def addresses(self, start: Path) -> list[str]:
        """Return the file of each image as a page in a folder calls it, quoted; empty where there is none on disk."""
        roots = [Path(folder) for folder in self._folders if not is_address(os.fspath(folder))]
        seen = {f"{root.absolute()}{os.sep}": _from_folder(root.absolute(), start) for root in roots}
        found = []
        for path in self._paths:
            text = "" if path is None else str(path.absolute())
            root = next((root for root in seen if text.startswith(root)), None)
            found.append("" if root is None else seen[root] + quote(text[len(root) :].replace(os.sep, "/")))
        return found

    def upright(self, row: int, *, side: int | None = None) -> tuple[Image.Image, tuple[int, int]] | None:
        """Return an image in RGB as it is to be seen, its longer side at most `side`, and its own size.

        None where it cannot be shown, with a note.

        Where the size that the boxes are of is that of the pixels as stored, and not that of the image turned by its
        EXIF orientation, the boxes were drawn on the former: it is not turned.
        """
        path = self._paths[row]
        if path is None:
            return None
        try:
            return self._decoded(path, row, side)
        except DataError as error:
            files.record_failures([error], self.findings, severity=Severity.NOTE)
        return None

    def thumbnail(self, row: int, *, side: int, quality: int) -> Thumbnail | None:
        """Return an image as a small JPEG: the same bytes for the same file, by one version of Pillow."""
        found = self.upright(row, side=side)
        if found is None:
            return None
        file, (image, size) = io.BytesIO(), found
        image.save(file, format="JPEG", quality=quality, optimize=True, progressive=False)
        return Thumbnail(file.getvalue(), size)

    def _decoded(self, path: Path, row: int, side: int | None) -> tuple[Image.Image, tuple[int, int]]:
        from PIL import Image

        from jaccard_eval.reading.images import DECODING_FAILURES, orientation_of, silent_pillow

        where = Where(str(path))
        with silent_pillow(), files.open_regular(path) as file:
            try:
                with Image.open(file) as image:
                    turn = _TURNS.get(orientation_of(image) or 1)
                    stored: tuple[int, int] = image.size
                    # Boxes of an image whose size is known as it is stored were drawn on what is stored;
                    # of a square, either is possible.
                    if stored[0] != stored[1] and stored == tuple(self.sizes[row].tolist()):
                        turn = None
                    if side is not None:
                        image.draft(None, (2 * side, 2 * side))  # of JPEG alone: decodes an eighth of a large one
                    width, height = image.size
                    if width * height > MAX_DECODED:
                        claim = f"has {width:,} x {height:,} pixels, too many to show; {NOT_SHOWN}"
                        raise DataError.single("image-too-large", where, claim, fix="Pass smaller copies.")
                    image.load()
                    shown = _to_rgb(image)
            except DECODING_FAILURES as error:
                what = f"cannot be decoded ({' '.join(str(error).split()) or type(error).__name__}); {NOT_SHOWN}"
                raise DataError.single("image-unreadable", where, what, fix="Replace the image.") from None
            if side is not None:
                shown.thumbnail((side, side), Image.Resampling.LANCZOS)
            shown = shown if turn is None else shown.transpose(Image.Transpose(turn))
            shown.info = {}  # comments and the like do not belong to what is shown
            return shown, stored[::-1] if turn in _QUARTERS else stored


# EXIF orientation to `PIL.Image.Transpose`: mirrored, by 180 degrees, upside down, transposed, by 270, transverse, 90.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
_QUARTERS = frozenset({2, 4, 5, 6})  # width and height change places


def _to_rgb(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        # 12 bits in 16 would be black by a fixed scale: the darkest and the lightest value become black and white.
        values = np.asarray(image, dtype=np.float64)
        finite = np.where(np.isfinite(values), values, 0.0)
        low, high = float(finite.min()), float(finite.max())
        scaled = (finite - low) * (255.0 / (high - low)) if high > low else np.zeros_like(finite)
        return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGB", image.size, PAPER)
        paper.paste(layer, mask=layer.getchannel("A"))
        return paper
    return image.convert("RGB")


def _from_folder(root: Path, start: Path) -> str:
    """Return a folder as a page in another one calls it, with a slash at its end."""
    try:
        return f"./{quote(os.path.relpath(root, start).replace(os.sep, '/'))}/"
    except ValueError:  # on another drive
        return f"{root.as_uri()}/"
