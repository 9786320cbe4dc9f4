"""LUNA16: tables of nodules and of marks in scans, by centre in mm; nodules have a diameter, marks a probability.

Next to ``annotations.csv``, ``annotations_excluded.csv`` has what is ignored, and ``seriesuids.csv`` lists all scans,
those without a nodule as well. A name may have more in front or behind: ``newannotations.csv`` goes with
``newseriesuids.csv``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import TextBoxes
from jaccard_eval.reading.peek import Likeness, Peek

FORMAT = Format(
    name="luna16",
    summary="LUNA16 tables: scan, centre in mm, and diameter of nodules or probability of marks",
    source="https://luna16.grand-challenge.org/Evaluation/",
    example="seriesuid,coordX,coordY,coordZ,diameter_mm\n1.3.6.1,-128.6,-175.3,-298.3,5.65\n",
    carries=("images", "scores", "ignore"),
    suffixes=(".csv",),
    reads={"bbox": "squares around spheres, seen along z", "spheres": "coordX, coordY, coordZ, diameter_mm"},
)

NODULE = "nodule"
_COLUMNS = ("seriesuid", "coordX", "coordY", "coordZ")
_NODULES, _SCANS = "annotations", "seriesuids"
_UNKNOWN_DIAMETER = 10.0  # mm, of a nodule whose diameter is below 0, as in LUNA16's script


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a table by its header, and a folder by its annotations."""
    table = peek.at(peek.path / f"{_NODULES}.csv") if peek.is_folder else peek
    return Likeness.NAMED if table.lines and {*_COLUMNS} <= {*_cells(table.lines[0])} else None


def iou_types(_: Peek) -> set[str]:
    """Return what there is: what spheres look like along z is compared only where it is asked for."""
    return {"spheres"}


def benchmark(_: Peek) -> str:
    """Return the protocol of these tables."""
    return "froc"


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split("\t" if "\t" in line else ",")]


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the scans and nodules of a table and of those next to it, or the marks of one, to the draft."""
    from jaccard_eval.similarity.spheres import Spheres

    table = path / f"{_NODULES}.csv" if files.is_folder(path) else path
    is_gt = options.role == "gt"
    lines = TextBoxes((*_COLUMNS[1:], "diameter_mm" if is_gt else "score"))
    fix = f"Write {', '.join(_COLUMNS)} and {'diameter_mm' if is_gt else 'probability'} in every row."
    beside = table.with_name(f"{table.stem}_excluded.csv")
    others = [beside] if is_gt and files.is_there(beside) else []
    for file in (table, *others):
        header, *rows = files.read_lines(file)
        names = _cells(header)
        wanted = (*_COLUMNS, "diameter_mm" if is_gt else "probability")
        # Without probabilities marks may have a score that is assumed of all.
        if lacking := [name for name in (wanted if is_gt else _COLUMNS) if name not in names]:
            detail = f"no column {', '.join(lacking)} among {', '.join(names)}"
            draft.findings.error("csv-column-missing", Where(str(file), line=1), detail, fix=fix)
            continue
        for number, line in enumerate(rows, start=2):
            cells = dict(zip(names, found := _cells(line), strict=False))
            if len(found) == len(names):
                lines.add((str(file), number), cells["seriesuid"], NODULE, [cells.get(name, "") for name in wanted[1:]])
            elif line.strip():
                lines.refuse((str(file), number), f"expected {len(names)} cells, got {len(found)}")
    numbers = lines.read(draft.findings, needed=3 + is_gt, fix=fix)
    scores = None if is_gt else lines.scores(numbers, draft, detail="has no probability", fix=fix, code="score-missing")
    draft.findings.raise_errors()
    listing = table.with_name(f"{table.stem.replace(_NODULES, _SCANS)}.csv")
    is_listed = is_gt and listing != table and files.is_there(listing)
    scans = [cell for line in files.read_lines(listing) if (cell := _cells(line)[0])] if is_listed else lines.images
    if len({*scans}) < len(scans) and is_listed:
        detail = "lists a scan twice"
        raise DataError.single("image-duplicate", Where(str(listing)), detail, fix="List every scan once.")
    draft.set_images([*dict.fromkeys(scans)], listed=is_listed)
    draft.set_classes([NODULE], [NODULE])
    draft.usual_protocol = "froc"
    excluded = np.array([place != str(table) for place, _ in lines.places], dtype=np.bool_)
    draft.mention_uncounted({"excluded": int(excluded.sum())})
    diameter = np.where(numbers[:, 3:] < 0, _UNKNOWN_DIAMETER, numbers[:, 3:]) if is_gt else np.zeros((len(lines), 1))
    spheres = Spheres(np.concatenate((numbers[:, :3], diameter), axis=1))
    shapes = spheres if options.iou_type == "spheres" else None
    columns = {"ignore": excluded} if is_gt else {"score": scores}
    lines.add_to(draft, spheres.bounds(), encoding="xywh", shapes=shapes, **columns)
