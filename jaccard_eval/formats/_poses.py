"""Tables of poses with a row for each image or frame: DeepLabCut's, of several lines of header, and SLEAP's.

Points without numbers are not labelled. DeepLabCut calls images by their path, or by the number of the frame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from jaccard_eval.data.imagekeys import posix
from jaccard_eval.findings import DataError, Where
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.text import is_numeral, quoted_value

_HEADER = ("scorer", "individuals", "bodyparts", "coords")  # what DeepLabCut's lines of header begin with
_SEEN = 2.0
# A row of DeepLabCut begins with a path, in one cell or in three.
_BEGINNING = pattern(r'\ufeff?"?scorer"?,[^\n]*\n(?:"?individuals"?,[^\n]*\n)?"?bodyparts"?,')
# A face in each file, of 300W and others: how many points, and x and y of each.
POINTS_SUFFIX = ".pts"
_FACE = pattern(r"\ufeff?\s*(?:version:\s*\S+\s+)?n_points:\s*(\d+)\s*\{([^{}]*)(\})?")
# A column of SLEAP, or of a script: a point, and x, y, how sure a network is, or how well the point is seen.
_COLUMN = pattern(r"(.+?)[._](x|y|score|conf|confidence|likelihood|prob|v|vis|visibility|visible)", re.IGNORECASE)
_THIRD = {"v": "seen", "vis": "seen", "visibility": "seen", "visible": "seen"}
_IMAGES = ("frame_idx", "image", "image_name", "image_path", "img_name", "file_name", "filename", "frame", "image_id")
_SCORES = ("score", "confidence", "pose_score", "person_score")
_LEAST = 5  # points of a table that shows by nothing else that it has poses


def is_table(text: str) -> bool:
    """Whether a text begins as one of these tables does."""
    if _BEGINNING.match(text) is not None:
        return True
    header = _fields(text.partition("\n")[0])
    names = {point for _, _, point, _ in _columns_of_points(header)}
    return _place(header, _IMAGES) is not None and len(names) >= (1 if header[0] == "track" else _LEAST)


def _fields(line: str) -> list[str]:
    return [field.strip(' \r"').lstrip("\ufeff") for field in line.split(",")]


def _place(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def read_table(path: Path, draft: Draft) -> None:
    """Add the poses of a table to the draft."""
    import csv  # looks for formats do without tables

    from jaccard_eval.reading.tabular.boxes import note_no_class

    lines = [row for row in csv.reader(files.read_text(path).splitlines()) if row]
    is_deeplabcut = lines[0][0] == _HEADER[0]
    n_header = next((at for at, row in enumerate(lines) if row[0] not in _HEADER), len(lines)) if is_deeplabcut else 1
    lines[0] = [field.strip().lstrip("\ufeff") for field in lines[0]]
    columns = [*_columns(lines[:n_header])] if is_deeplabcut else [*_columns_of_points(lines[0])]
    image_at, score_at = (None if is_deeplabcut else _place(lines[0], names) for names in (_IMAGES, _SCORES))
    if not columns:
        fix = "Export the table again."
        raise DataError.single("csv-header", Where(str(path)), "has no columns of x and y below its points", fix=fix)
    collector = RecordCollector(draft)
    is_gt = draft.options.role == "gt"
    names, seen = [*dict.fromkeys(point for _, _, point, _ in columns)], set[str]()
    label = draft.options.names[0] if draft.options.names else 0
    note_no_class(draft)
    for number, row in enumerate(lines[n_header:], start=n_header + 1):
        where = Where(str(path), line=number)
        if len(row) != len(lines[0]):
            detail = f"has {len(row)} cells; the header has {len(lines[0])}"
            draft.findings.error("columns", where, detail, fix="Give every row as many cells as the header.")
            continue
        image = _image_of(row[: columns[0][0]] if image_at is None else row[image_at : image_at + 1])
        if image not in seen:
            seen.add(image)
            collector.add_image(image, file_name=image)
        poses: dict[str, dict[str, dict[str, float]]] = {}
        for at, owner, point, coordinate in columns:
            cell = row[at].strip()
            if cell.lower() in ("", "nan"):
                continue
            if not is_numeral(cell):
                detail = f"{coordinate} of {quoted_value(point)} is {quoted_value(cell)}, not a number"
                draft.findings.error("csv-number", where, detail, fix="Export the table again.")
                continue
            poses.setdefault(owner, {}).setdefault(point, {})[coordinate] = float(cell)
        for pose in poses.values():
            placed = {point: one for point, one in pose.items() if {"x", "y"} <= one.keys()}
            if not placed:
                continue
            found = [one["likelihood"] for one in placed.values() if "likelihood" in one and not is_gt]
            points = dict.fromkeys(names, (0.0, 0.0, 0.0))
            for point, one in placed.items():
                points[point] = one["x"], one["y"], one.get("seen", _SEEN) if is_gt else one.get("likelihood", 1.0)
            score = math.fsum(found) / len(found) if found else math.nan
            if score_at is not None and is_numeral(row[score_at].strip()):
                score = float(row[score_at])
            collector.add_drawn(image, label, Drawn(points=points, kind="pose"), where, score=score)
    draft.findings.raise_errors()
    collector.to_draft(encoding="xyxy", listed=True)


def read_points(path: Path, draft: Draft) -> None:
    """Add the faces of texts to the draft, one in each."""
    from jaccard_eval.reading.tabular.boxes import note_no_class

    collector, is_gt = RecordCollector(draft), draft.options.role == "gt"
    label = draft.options.names[0] if draft.options.names else 0
    note_no_class(draft)
    for key, file, text in files.read_each(
        files.members(path, (POINTS_SUFFIX,), draft.findings), files.read_text, draft.findings
    ):
        found, where = _FACE.match(text), Where(str(file))
        collector.add_image(key, file_name=key)
        numbers = found[2].split() if found is not None else []
        if found is None or not found[3] or len(numbers) != 2 * int(found[1]) or not all(map(is_numeral, numbers)):
            told = "no n_points" if found is None else f"{len(numbers)} words for {found[1]} points"
            fix = "Write n_points: N, and x and y of each point on a line of its own, between { and }."
            draft.findings.error("keypoints-invalid", where, f"has {told}", fix=fix)
            continue
        xy = [*map(float, numbers)]
        points = {at: (*pair, _SEEN if is_gt else 1.0) for at, pair in enumerate(zip(xy[::2], xy[1::2], strict=True))}
        collector.add_drawn(key, label, Drawn(points=points, kind="face"), where)
    draft.findings.raise_errors()
    collector.to_draft(encoding="xyxy", listed=True)


def _columns(header: Sequence[Sequence[str]]) -> Iterator[tuple[int, str, str, str]]:
    """Yield place, animal, point and coordinate of each column with numbers."""
    rows = {row[0]: row for row in header}
    coordinates = rows.get("coords", [])
    for at, coordinate in enumerate(coordinates):
        if coordinate in ("x", "y", "likelihood"):
            yield (
                at,
                rows.get("individuals", coordinates)[at] if "individuals" in rows else "",
                rows["bodyparts"][at],
                coordinate,
            )


def _columns_of_points(header: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """Yield the columns of points that have x and y, likewise."""
    matches = {at: match for at, name in enumerate(header) if (match := _COLUMN.fullmatch(name)) is not None}
    axes = {(match[1], match[2].lower()) for match in matches.values()}
    for at, match in matches.items():
        point, name = match[1], match[2].lower()
        if {(point, "x"), (point, "y")} <= axes:
            yield at, "", point, name if name in ("x", "y") else _THIRD.get(name, "likelihood")


def _image_of(cells: Sequence[str]) -> str:
    """Return the name of an image, which is the last part of a path; the number of a frame stays one."""
    return PurePosixPath(posix("/".join(cells))).name
