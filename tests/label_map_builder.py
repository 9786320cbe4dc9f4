"""Label maps that read as pictures: one digit per pixel, rows divided by slashes."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image


def label_map(picture: str) -> npt.NDArray[np.uint8]:
    """Return the map of a picture such as ``"112 / 102"``; ``x`` is 255."""
    rows = [row.strip() for row in picture.split("/")]
    return np.array([[255 if pixel == "x" else int(pixel) for pixel in row] for row in rows], dtype=np.uint8)


def write_png(path: Path, picture: str | npt.NDArray[Any], *, palette: list[int] | None = None) -> Path:
    """Write a map, or an array of any kind that Pillow takes; with a palette of red, green, blue, ... if given."""
    image = Image.fromarray(label_map(picture) if isinstance(picture, str) else picture)
    if palette is not None:
        image = image.convert("L")
        image.putpalette(palette)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, "PNG")
    return path


def write_npy(path: Path, values: npt.NDArray[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values)
    return path
