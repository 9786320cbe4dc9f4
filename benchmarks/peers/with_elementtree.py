"""The least that reads Pascal VOC: `FOLDER` gives class names and corners of all objects. Nothing is checked."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import numpy.typing as npt

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_voc(folder: Path) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Return the class and the corners of each object, shape (n, 4)."""
    names: list[str] = []
    corners: list[list[float]] = []
    for file in sorted(folder.glob("*.xml")):
        for item in ET.parse(file).iterfind("object"):
            names.append(item.findtext("name", ""))
            corners.append([float(item.findtext(f"bndbox/{corner}", "nan")) for corner in CORNERS])
    return names, np.array(corners)


if __name__ == "__main__":
    print(len(read_voc(Path(sys.argv[1]))[0]))
