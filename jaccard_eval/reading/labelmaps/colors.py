"""Tables of colours: which colour means which class."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.signature import FINGERPRINT, FINGERPRINT_DIGITS
from jaccard_eval.findings import FindingLog, Where, as_settings
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.text import quoted_value

IntArray = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)  # class of a colour that is in no table
_NUMBERS = r"(?P<red>\d{1,3})[\s,]+(?P<green>\d{1,3})[\s,]+(?P<blue>\d{1,3})"
_LAYOUTS = (
    re.compile(rf"{_NUMBERS}(?:[\s,]+(?P<name>\S.*))?", re.ASCII),  # 128 64 128 road (CamVid)
    re.compile(rf"(?P<name>\S.*?)[\s,:]+{_NUMBERS}(?:::?.*)?", re.ASCII),  # road,128,64,128; road:128,64,128:: (CVAT)
)
_TWO_DIGITS = "[0-9a-f]{2}"
_HEX = re.compile(
    rf"#(?P<red>{_TWO_DIGITS})(?P<green>{_TWO_DIGITS})(?P<blue>{_TWO_DIGITS})(?:[\s,]+(?P<name>\S.*))?", re.IGNORECASE
)
_HEADER = re.compile(r"[a-z_ \t]+(?:,[a-z_ \t]+)+", re.IGNORECASE)  # name,r,g,b
_FIX = "Write one class per line, such as '128 64 128 road', 'road,128,64,128' or '#804080 road'."


@dataclass(frozen=True, slots=True, eq=False)
class ColorTable:
    """Classes by colour."""

    codes: IntArray  # (n,) red + 2**8 green + 2**16 blue
    names: tuple[str, ...]  # the colour where the table names none
    n_void: int = 0  # the last colours, which are of no class

    @property
    def void(self) -> range:
        """What pixels of no class have."""
        return range(len(self.names), len(self.codes))

    @property
    def digest(self) -> str:
        """Digest of the colours in their order."""
        state = hashlib.sha256(self.codes.astype("<i8").tobytes())
        return f"{FINGERPRINT}{state.hexdigest()[:FINGERPRINT_DIGITS]}"

    def classes_of(self, codes: IntArray) -> IntArray:
        """Return the class of each colour, `UNKNOWN` for those that the table lacks."""
        order = np.argsort(self.codes)
        place = np.searchsorted(self.codes, codes, sorter=order)
        candidate = order[np.minimum(place, len(order) - 1)]
        return np.where(self.codes[candidate] == codes, candidate, UNKNOWN)


VOC = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable",
    "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip


# Of Cityscapes: unlabeled, dynamic, ground, parking, rail track, guard rail, bridge, tunnel, caravan and trailer. Poles
# in groups and licence plates have the colours of poles and cars. Source: cityscapesScripts, labels.py.
_NOT_EVALUATED = (
    (0, 0, 0), (111, 74, 0), (81, 0, 81), (250, 170, 160), (230, 150, 140), (180, 165, 180), (150, 100, 100),
    (150, 120, 90), (0, 0, 90), (0, 0, 110),
)  # fmt: skip


def _voc_color(label: int) -> int:
    """Return the colour of a class of PASCAL VOC: its bits are spread over the channels, as in VOClabelcolormap."""
    channels = [0, 0, 0]
    for bit in range(8):
        for channel in range(3):
            channels[channel] |= (label >> (3 * bit + channel) & 1) << (7 - bit)
    return channels[0] | channels[1] << 8 | channels[2] << 16


def named_color_table(name: object) -> ColorTable | None:
    """Return the colours of a known data set, one of `options.COLOR_TABLES`; None where the name is another."""
    if name == "voc":
        codes = [*map(_voc_color, range(len(VOC))), 224 | 224 << 8 | 192 << 16]
        return ColorTable(np.array(codes, dtype=np.int64), VOC, n_void=1)
    if name == "cityscapes":
        from jaccard_eval.reading.segments.cityscapes import CATEGORIES

        known = [*(category.colour or (0, 0, 0) for category in CATEGORIES), *_NOT_EVALUATED]
        codes = [red | green << 8 | blue << 16 for red, green, blue in known]
        names = tuple(category.name for category in CATEGORIES)
        return ColorTable(np.array(codes, dtype=np.int64), names, n_void=len(_NOT_EVALUATED))
    return None


@as_settings()
def read_color_table(path: Path) -> ColorTable:
    """Read a table of colours: text with one class a line, in the order of the classes.

    A line has a name and a colour, as three numbers from 0 to 255 or as ``#rrggbb``; other lines that start with ``#``
    are comments. CamVid's ``label_colors.txt``, CVAT's ``labelmap.txt`` and a CSV file ``name,r,g,b`` are such tables.
    """
    findings = FindingLog()
    codes: dict[int, int] = {}
    names = []
    lines = [(number, line.strip()) for number, line in enumerate(files.read_lines(path), start=1)]
    lines = [(number, line) for number, line in lines if line and (not line.startswith("#") or _HEX.fullmatch(line))]
    if lines and _HEADER.fullmatch(lines[0][1]):
        del lines[0]
    for number, line in lines:
        where = Where(str(path), line=number)
        parsed = _parse(line)
        if parsed is None:
            findings.error("color-table", where, f"no colour in {quoted_value(line)}", fix=_FIX)
            continue
        code, name = parsed
        if codes.setdefault(code, number) != number:
            detail = f"the colour {color_text(code)} is already on line {codes[code]}"
            findings.error("color-table", where, detail, fix=_FIX)
        names.append(name)
    if not names:
        findings.error("color-table", Where(str(path)), "the table has no colours", fix=_FIX)
    findings.raise_errors()
    return ColorTable(np.array(list(codes), dtype=np.int64), tuple(names))


def color_text(color: int) -> str:
    """Return a colour as people write it."""
    return f"{color & 255} {color >> 8 & 255} {color >> 16 & 255}"


def _parse(line: str) -> tuple[int, str] | None:
    """Return the colour and the name of a line; None when it is none."""
    match = _HEX.fullmatch(line)
    base = 16 if match else 10
    for layout in _LAYOUTS:
        match = match or layout.fullmatch(line)
    if match is None:
        return None
    red, green, blue = (int(match[part], base) for part in ("red", "green", "blue"))
    if max(red, green, blue) > 255:
        return None
    code = red | green << 8 | blue << 16
    return code, (match["name"] or color_text(code)).strip()
