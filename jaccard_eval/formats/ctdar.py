"""cTDaR, the competition on tables in documents: an XML file for each page with the outlines of its tables."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.reading.xml import parse_xml
from jaccard_eval.text import is_numeral, quoted_value

FORMAT = Format(
    name="ctdar",
    summary="cTDaR XML: a file per page, tables as Coords with points",
    source="https://github.com/cndplab-founder/ICDAR2019_cTDaR",
    example="""<document filename="page.jpg">
  <table id="1"><Coords points="10,20 10,220 110,220 110,20"/></table>
</document>
""",
    carries=("images",),
    suffixes=(".xml",),
    member=".xml",
    reads={"bbox": "bounds of Coords", "segm": "Coords of tables and cells"},
)

_CLASS, _COORDS, _POINTS = "table", "Coords", "points"
_FIX = 'Write points="x,y x,y x,y x,y".'


def looks_like(peek: Peek) -> Likeness | None:
    """Rate XML by its elements; a folder by its first files."""
    if not peek.is_folder:
        is_page = peek.root == "document" and (b"<Coords" in peek.head or b"<table" not in peek.head)
        return Likeness.STRUCTURE if is_page else None
    found = peek.first_files(lambda name: name.lower().endswith(".xml"))
    rated = [document for document in found if document.root == "document"]
    return Likeness.STRUCTURE if rated and len(rated) * 2 > len(found) else None


def iou_types(_: Peek) -> set[str]:
    """Return what there is: outlines, which are rectangles as a rule."""
    return {"bbox", "segm"}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the pages and tables of files to the draft."""
    side = RecordCollector(draft)
    found = files.members(path, FORMAT.suffixes, draft.findings)
    for stem, file, document in files.read_each(found, lambda file: parse_xml(file, "document"), draft.findings):
        name = document.get("filename") or None
        side.add_image(stem, file_name=name)
        for number, table in enumerate(document.iter(_CLASS), start=1):
            where = Where(str(file), record=f"{_CLASS} {table.get('id') or number}", field=_COORDS)
            try:
                side.add_polygons(stem, _CLASS, [_ring(table.find(_COORDS), where)], where)
            except DataError as error:
                draft.findings.extend(error.findings)
    draft.findings.raise_errors()
    side.to_draft(encoding="xywh", listed=True, classes=[_CLASS])


def _ring(coords: object, where: Where) -> list[float]:
    text = getattr(coords, "attrib", {}).get(_POINTS, "")
    numbers = [number.strip() for point in text.split() for number in point.split(",")]
    if len(numbers) < 6 or len(numbers) % 2 or not all(map(is_numeral, numbers)):
        detail = f"has the points {quoted_value(text)}; expected 3 corners x,y or more"
        raise DataError.single("segmentation-invalid", where, detail, fix=_FIX)
    return [*map(float, numbers)]
