"""Image-level labels: which classes were verified on an image, to be there or not to be there."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.dataset import Key
from jaccard_eval.data.imagelabels import ABSENT, PRESENT
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.reading import files
from jaccard_eval.reading.rawboxes import CodedKeys
from jaccard_eval.text import is_numeral, pluralise, quoted_value

IMAGE, CLASS, CONFIDENCE = COLUMNS = ("ImageID", "LabelName", "Confidence")
_FACTS = {0.0: ABSENT, 1.0: PRESENT}
_SPELLED = {"0": ABSENT, "1": PRESENT}  # as nearly all cells are, and in a third of the time
_FIX = f"Pass labels as Open Images has them: columns {', '.join(COLUMNS)}, with 1 or 0 for verified labels."


@dataclass(frozen=True, slots=True, eq=False)
class LabelFile:
    """Verified labels of a file, a row each: the image, the class, whether it is there, and the line."""

    path: str
    images: CodedKeys
    classes: CodedKeys
    facts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.facts)


def is_label_file(first_line: str) -> bool:
    """Whether a table holds labels of images, by its first line: those columns, and none of boxes."""
    header = {name.strip().strip('"').lower() for name in first_line.split(",")}
    return {name.lower() for name in COLUMNS} <= header and "xmin" not in header


def read_image_labels(path: Path, findings: FindingLog) -> LabelFile:
    """Return the verified labels of a file; those that a program gave are skipped, with a warning."""
    from jaccard_eval.reading.tabular.rows import fields_up_to

    text = files.read_text(path)
    images: dict[Key, int] = {}
    classes: dict[Key, int] = {}
    rows: list[tuple[int, int, int, int]] = []  # image, class, fact, line
    guessed: list[int] = []
    with fields_up_to(len(text)):
        import csv  # looks for formats do without it

        table = csv.reader(io.StringIO(text, newline=""))
        header = [name.strip().lower() for name in next(table, [])]
        lacks = [name for name in COLUMNS if name.lower() not in header]
        if lacks:
            detail = f"the header has no {' and no '.join(lacks)}: it has {', '.join(header) or 'no columns'}"
            findings.error("image-labels-invalid", Where(str(path), line=1), detail, fix=_FIX)
        at = [header.index(name.lower()) for name in COLUMNS if not lacks]
        for cells in table if at else ():
            if not cells:
                continue
            if len(cells) <= max(at):
                where, detail = (
                    Where(str(path), line=table.line_num),
                    f"expected {len(header)} fields, got {len(cells)}",
                )
                findings.error("image-labels-invalid", where, detail, fix=_FIX)
                continue
            image, label, value = cells[at[0]].strip(), cells[at[1]].strip(), cells[at[2]].strip()
            fact = _SPELLED.get(value)
            if fact is None and is_numeral(value):
                fact = _FACTS.get(float(value))
            if not image or not label:
                where = Where(str(path), line=table.line_num, field=CLASS if image else IMAGE)
                findings.error("image-labels-invalid", where, "the cell is empty", fix=_FIX)
            elif fact is not None:
                known = images.setdefault(image, len(images)), classes.setdefault(label, len(classes))
                rows.append((*known, fact, table.line_num))
            elif is_numeral(value) and 0 < float(value) < 1:
                guessed.append(table.line_num)
            else:
                where = Where(str(path), line=table.line_num, field=CONFIDENCE)
                findings.error("image-labels-invalid", where, f"{quoted_value(value)} is not 0 or 1", fix=_FIX)
    findings.add_rows(
        Severity.WARNING,
        "image-labels-unverified",
        guessed,
        lambda line: (Where(str(path), line=line, field=CONFIDENCE), "between 0 and 1"),
        summary=f"ignored {pluralise(len(guessed), 'label')} that a program gave: nobody verified them",
        fix="Pass the labels that people verified, such as validation-annotations-human-imagelabels-boxable.csv.",
    )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return LabelFile(
        path=str(path),
        images=CodedKeys(list(images), columns[0]),
        classes=CodedKeys(list(classes), columns[1]),
        facts=columns[2],
        lines=columns[3],
    )
