"""XML of images and what is drawn on them: tables of cTDaR, words of CTW1500, ships of HRSC2016, regions of Aperio.

Each carrier is a row of `CARRIERS`: what its outermost element is called, and where it has its images, their objects,
and what these draw. Of several with one name, the first whose objects are there reads a file.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.data.imagekeys import without_suffix
from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.reading.xml import local_name, mention_unused, parse_xml
from jaccard_eval.text import is_numeral, quoted_value

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FORMAT = Format(
    name="shapexml",
    summary="XML of images and what is drawn on them: cTDaR, CTW1500, PAGE, ALTO, hOCR, HRSC2016, dlib, Aperio, ASAP",
    source="https://github.com/cndplab-founder/ICDAR2019_cTDaR and https://github.com/Yuliang-Liu/Curve-Text-Detector",
    example="""<document filename="page.jpg">
  <table id="1"><Coords points="10,20 10,220 110,220 110,20"/></table>
</document>
""",
    carries=("images", "sizes", "scores", "crowd"),
    suffixes=(".xml",),
    member=".xml",
    reads={
        "bbox": "sides, or bounds of what is drawn",
        "obb": "four corners in Coords of tables, mbox_cx ... mbox_ang of HRSC2016",
        "segm": "Coords of tables, segs of words, Vertices of Aperio, Coordinates of ASAP",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Where a tool has what: paths of elements, those of attributes behind an @.

    Parameters
    ----------
    root : str
        The outermost element.
    images : str
        Elements of images; empty where the document is one.
    objects : str
        Elements of the objects of an image.
    name, size : str
        Of an image.
    label, classes : str
        The class of all objects, or where that of each is named.
    ring, vertices, box, turned : str
        What an object draws: points in one text, an element for each with X and Y, four sides, or centre, sizes and
        angle.
    title : str
        A text in which "bbox" is followed by four sides, and "x_wconf" by the score.
    score : str
    most : float
        The highest score.
    mark : str
        What stands in the text as well.
    is_sized : bool
        Whether sides are left, top, width and height.
    word, finer : str
        What is written there, and a class within the class.
    kinds : tuple of str
        What there is to compare.
    protocol : str
        Of the benchmark whose files these are.
    """

    root: str
    images: str = ""
    objects: str
    name: str = ""
    size: tuple[str, str] = ("", "")
    label: str = "text"
    classes: str = ""
    ring: str = ""
    vertices: str = ""
    box: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()
    is_sized: bool = False
    word: str = ""
    title: str = ""
    score: str = "score"
    most: float = 1.0
    mark: str = ""
    finer: str = ""
    kinds: tuple[str, ...] = ("bbox",)
    protocol: str = ""


CARRIERS = (
    Carrier(
        root="document", objects=".//table", name="@filename", label="table", ring="Coords@points",
        kinds=("bbox", "segm", "obb"), protocol="ctdar",
    ),
    Carrier(  # of ImageScope, as MoNuSeg has them
        root="Annotations", objects="Annotation/Regions/Region", label="region", vertices="Vertices/Vertex",
        kinds=("segm",),
    ),
    Carrier(
        root="Annotations", images="image", objects="box", name="@file", ring="segs", word="label", kinds=("segm",),
    ),
    Carrier(
        root="ASAP_Annotations", objects="Annotations/Annotation", label="region", classes="@PartOfGroup",
        vertices="Coordinates/Coordinate", kinds=("segm",),
    ),
    Carrier(
        root="tagset", images="image", objects="taggedRectangles/taggedRectangle", name="imageName",
        box=("@x", "@y", "@width", "@height"), is_sized=True, word="tag",
    ),
    Carrier(
        root="dataset", images="images/image", objects="box", name="@file",
        box=("@left", "@top", "@width", "@height"), is_sized=True, label="object", classes="label",
    ),
    Carrier(
        root="sequence", images="frame", objects="target_list/target", name="@num", is_sized=True, label="vehicle",
        box=("box@left", "box@top", "box@width", "box@height"), classes="attribute@vehicle_type",
    ),
    Carrier(  # PAGE, of transcriptions: words where there are any, else lines
        root="PcGts", images="Page", objects=".//Word", name="@imageFilename", size=("@imageWidth", "@imageHeight"),
        ring="Coords@points", score="Coords@conf", kinds=("segm",),
    ),
    Carrier(
        root="PcGts", images="Page", objects=".//TextLine", label="line", name="@imageFilename",
        size=("@imageWidth", "@imageHeight"),
        ring="Coords@points", score="Coords@conf", kinds=("segm",),
    ),
    Carrier(
        root="alto", objects=".//String", name="Description/sourceImageInformation/fileName", is_sized=True,
        size=("Layout/Page@WIDTH", "Layout/Page@HEIGHT"), box=("@HPOS", "@VPOS", "@WIDTH", "@HEIGHT"), score="@WC",
    ),
    Carrier(  # hOCR
        root="html", objects=".//*[@class='ocrx_word']", title="@title", most=100.0, mark="ocr_page",
    ),
    Carrier(
        root="HRSC_Image", objects="HRSC_Objects/HRSC_Object", name="Img_FileName",
        size=("Img_SizeWidth", "Img_SizeHeight"), label="ship", box=("box_xmin", "box_ymin", "box_xmax", "box_ymax"),
        turned=("mbox_cx", "mbox_cy", "mbox_w", "mbox_h", "mbox_ang"), finer="Class_ID", kinds=("bbox", "obb"),
    ),
)  # fmt: skip
_BY_ROOT = {carrier.root: carrier for carrier in reversed(CARRIERS)}
_SUFFIXES = (".xml", ".hocr")
_TITLE = pattern(r"\bbbox\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)(?:.*\bx_wconf\s+(\d+))?")
_UNREADABLE = "###"
_FIX = "Write x,y for each corner, and plain decimal numbers."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate XML by its elements; a folder by its first files."""
    if not peek.is_folder:
        return Likeness.STRUCTURE if _carrier_of(local_name(peek.root), peek.text) is not None else None
    found = peek.first_files(lambda name: name.lower().endswith(_SUFFIXES))
    rated = [document for document in found if looks_like(document)]
    return Likeness.STRUCTURE if rated and len(rated) * 2 > len(found) else None


def _carrier_of(root: str, text: str) -> Carrier | None:
    """Return the carrier whose objects stand in a text and draw as they should; of none, the first without objects."""
    named = [carrier for carrier in CARRIERS if carrier.root == root and carrier.mark in text]
    filled = [carrier for carrier in named if f"<{carrier.objects.rpartition('/')[2]}" in text]
    drawn = [one for one in filled if f"<{(one.vertices or one.ring).rpartition('/')[2].partition('@')[0]}" in text]
    return next(iter(drawn if filled else named), None)


def iou_types(peek: Peek) -> set[str]:
    """Return what there is, by the first file."""
    found = peek.first_files(lambda name: name.lower().endswith(_SUFFIXES)) if peek.is_folder else [peek]
    carriers = [_carrier_of(local_name(file.root), file.text) for file in found[:1]]
    return {kind for carrier in carriers if carrier is not None for kind in carrier.kinds}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images and objects of files to the draft."""
    side, n_finer = RecordCollector(draft, usual_angle="rad-cw"), 0
    found = files.members(path, _SUFFIXES, draft.findings)
    for stem, file, document in files.read_each(found, lambda file: parse_xml(file, *_BY_ROOT), draft.findings):
        carrier = next(filter(partial(_is_filled, document), CARRIERS), None) or _BY_ROOT[document.tag]
        draft.usual_protocol = draft.usual_protocol or carrier.protocol
        for image in document.iterfind(carrier.images) if carrier.images else [document]:
            name = _text(image, carrier.name)
            key = without_suffix(name.rpartition("/")[2]) if carrier.images else stem
            width, height = (_number(image, side) for side in carrier.size)
            side.add_image(key, file_name=name or None, size=(width, height))
            for number, element in enumerate(image.iterfind(carrier.objects), start=1):
                where = Where(str(file), record=f"{element.tag} {element.get('id') or number}")
                drawn = _drawn(element, carrier)
                if drawn is None:
                    draft.findings.error("segmentation-invalid", where, _problem(element, carrier), fix=_FIX)
                    continue
                n_finer += bool(carrier.finer and _text(element, carrier.finer))
                side.add_drawn(
                    key,
                    (carrier.classes and _text(element, carrier.classes)) or carrier.label,
                    drawn,
                    where,
                    score=_score(element, carrier),
                    crowd=carrier.word != "" and _text(element, carrier.word) == _UNREADABLE,
                    difficult=_text(element, "difficult") == "1",
                )
    draft.findings.raise_errors()
    mention_unused([("Class_ID", n_finer)], Where(draft.path), draft.findings)
    side.to_draft(encoding="xyxy", listed=True)


def _is_filled(document: Element, carrier: Carrier) -> bool:
    path = f"{carrier.images}/{carrier.objects}".strip("/")
    return document.tag == carrier.root and document.find(path) is not None


def _text(element: Element, path: str) -> str:
    """Return the text at a path, of an attribute behind an @; empty where there is none."""
    inner, _, attribute = path.partition("@")
    found = element.find(inner) if inner else element
    text = None if found is None else found.get(attribute) if attribute else found.text
    return (text or "").strip()


def _number(element: Element, path: str) -> float:
    text = _text(element, path)
    return float(text) if is_numeral(text) else math.nan


def _score(element: Element, carrier: Carrier) -> float:
    told = _TITLE.search(_text(element, carrier.title)) if carrier.title else None
    return (_number(element, carrier.score) if told is None else float(told[5] or "nan")) / carrier.most


def _drawn(element: Element, carrier: Carrier) -> Drawn | None:
    """Return what an object draws; None where its numbers are none."""
    if carrier.title:
        told = _TITLE.search(_text(element, carrier.title))
        return None if told is None else Drawn(box=[*map(float, told.groups()[:4])], kind="box")
    if carrier.ring or carrier.vertices:
        numbers = re.split(r"[\s,]+", _text(element, carrier.ring)) if carrier.ring else _vertices(element, carrier)
        is_ring = len(numbers) >= 6 and len(numbers) % 2 == 0 and all(map(is_numeral, numbers))
        return Drawn(rings=[[*map(float, numbers)]], kind="outline") if is_ring else None
    box, turned = ([_number(element, path) for path in paths] for paths in (carrier.box, carrier.turned))
    if carrier.is_sized:
        box = [*box[:2], box[0] + box[2], box[1] + box[3]]
    if any(map(math.isnan, (*box, *turned))):
        return None
    return Drawn(box=box, turned=turned or None, kind="box")


def _vertices(element: Element, carrier: Carrier) -> list[str]:
    return [point.get(side, "") for point in element.iterfind(carrier.vertices) for side in ("X", "Y")]


def _problem(element: Element, carrier: Carrier) -> str:
    if carrier.ring or carrier.vertices:
        points = _text(element, carrier.ring) if carrier.ring else " ".join(_vertices(element, carrier))
        return f"has the points {quoted_value(points)}; expected 3 corners x,y or more"
    if carrier.title:
        return f"has the title {quoted_value(_text(element, carrier.title))}; expected bbox and four whole numbers"
    fields = ", ".join(path for path in (*carrier.box, *carrier.turned) if math.isnan(_number(element, path)))
    return f"has no plain number as {fields}"
