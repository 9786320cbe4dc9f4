"""Pascal VOC: a folder of XML files, one per image; results as text files, one per class (comp4_det_test_dog.txt).

Boxes are corners in pixels, read as they are written: the specification counts pixels from 1, most tools from 0. The
turned boxes of roLabelImg, the polygons of LabelMe's and Roboflow's XML and the points of FAIR1M are read as well.
Objects in XML have a ``score`` or ``confidence`` if they are predictions. From the development kit's folder
(Annotations next to ImageSets) the images of a split are read.
"""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import kinds_in
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.text import quoted_value

FORMAT = Format(
    name="voc",
    summary="Pascal VOC: XML files, one per image; predictions as text files, one per class (comp4_det_test_dog.txt)",
    source="http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc/devkit_doc.html",
    example="""<annotation>
  <filename>street.jpg</filename>
  <size><width>640</width><height>480</height><depth>3</depth></size>
  <object>
    <name>dog</name>
    <difficult>0</difficult>
    <bndbox><xmin>10</xmin><ymin>20</ymin><xmax>110</xmax><ymax>220</ymax></bndbox>
  </object>
</annotation>
""",
    carries=("images", "sizes", "scores", "difficult"),
    member=".xml",
    reads={"bbox": "bndbox", "obb": "robndbox, points of FAIR1M", "segm": "polygon"},
)

_KINDS = {
    "bbox": pattern(rb"<xmin>"),
    "obb": pattern(rb"<robndbox>|<[xy]_?(?:4|left_top)>|<x0>[^<]*</x0>|<points>\s*<point>"),
    "segm": pattern(rb"<polygon>\s*<(?:pt|x1|username)>"),
}
ROOT = "annotation"  # the outermost element of an annotation file


def looks_like(peek: Peek) -> Likeness | None:
    """Rate annotation files by their outermost element, and a folder of results by the names of its files."""
    if not peek.is_folder and peek.suffix != ".txt":
        return Likeness.STRUCTURE if peek.root == ROOT else None
    from jaccard_eval.formats._voc.annotations import ANNOTATIONS, RESULT_NAME, first_xml_files, kit_folder

    if not peek.is_folder:
        return Likeness.NAMED if RESULT_NAME.fullmatch(peek.path.name) else None
    if results := peek.rate_class_files(RESULT_NAME):
        return results
    kit = kit_folder(peek.path)
    found = first_xml_files(kit)
    roots = [root for file in found if (root := peek.at(file).root)]
    # Half are enough: the reader names the files that are something else.
    if not roots or roots.count(ROOT) * 2 < len(roots):
        return None
    # In a folder called Annotations they are where they belong.
    is_placed = kit != peek.path or found[0].parent in (kit, kit / ANNOTATIONS)
    return Likeness.STRUCTURE if is_placed else peek.rate_below(found)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of annotation files, of one such file, or of result files."""
    from jaccard_eval.formats._voc.annotations import RESULT_NAME, read_annotations, read_results

    results = files.files_by_class(path, RESULT_NAME)  # of a path that is no folder there are none
    alone = None if results or files.is_folder(path) else RESULT_NAME.fullmatch(path.name)
    if alone is not None:
        label = alone["label"]
        detail = f"results of class {quoted_value(label)} only; objects of other classes count as missed"
        words = "Evaluate only this class with {classes}, or pass the folder with all classes."
        fix = Fix.missing(words, classes=label)
        draft.findings.note("class-alone", Where(str(path)), detail, fix=fix)
        results = {label: [path]}
    if results:
        read_results(path, results, draft)
    else:
        read_annotations(path, ROOT, draft)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first files have: boxes, the turned ones of roLabelImg, the polygons of LabelMe, or several."""
    from jaccard_eval.formats._voc.annotations import first_xml_files, kit_folder

    found = first_xml_files(kit_folder(peek.path)) if peek.is_folder else [peek.path]
    return kinds_in(map(peek.at, found), _KINDS)


def reads_name(name: str) -> bool:
    """Whether a file of this name is one of annotations, of results, or a list of images."""
    return name.lower().endswith((".xml", ".txt"))


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a folder: ground truth as an XML file per image, predictions as a text file per class."""
    from jaccard_eval.formats._voc.writer import write_annotations, write_results

    write_annotations(dataset, path, findings) if dataset.role == "gt" else write_results(dataset, path, findings)
