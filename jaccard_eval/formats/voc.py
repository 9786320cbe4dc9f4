"""Pascal VOC: a folder of XML files, one per image; results as text files, one per class (comp4_det_test_dog.txt).

Boxes are corners in pixels, read as they are written: the specification counts pixels from 1, most tools from 0. The
turned boxes of roLabelImg, the polygons of LabelMe's and Roboflow's XML and the points of FAIR1M are read as well.
Objects in XML have a ``score`` or ``confidence`` if they are predictions. From the development kit's folder
(Annotations next to ImageSets) the images of a split are read.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import MAX_IMAGE_SIDE, Dataset, unknown_sizes
from jaccard_eval.data.imagekeys import is_image_name, without_case, without_suffix
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.drawn import Drawn, add_shapes, kinds_in
from jaccard_eval.reading.files import (
    choose_split,
    files_by_class,
    first_line,
    inner_folder,
    is_folder,
    list_folder,
    list_tree,
    read_each,
    read_lines,
    scan_folder,
    without_backups,
)
from jaccard_eval.reading.lines import Layout, TextBoxes, mention_other_files, read_class_files
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.tabular.columns import parse_numbers
from jaccard_eval.reading.writing import (
    Column,
    below_shared_place,
    exact_coords,
    first_rows,
    is_safe,
    report_losses,
    report_rounded,
    require_file_names,
    require_names,
    require_pixels,
    rows_by_owner,
)
from jaccard_eval.reading.xml import mention_unused, number_in, parse_xml, text_of
from jaccard_eval.text import is_numeral, quoted_value

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
_ROOT = "annotation"  # the outermost element of an annotation file
_SUFFIX = ".xml"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_SIDES = ("width", "height")
_NUMBERS = (*(f"bndbox.{corner}" for corner in _CORNERS), "score")
_RESULT_NAME = pattern(r"comp\d_det_[^_]+_(?P<label>.+)\.txt", re.IGNORECASE)
_WRITTEN_RESULT = "comp4_det_test_{}.txt"  # competition 4: detection, trained on any data

_SCORES = ("score", "confidence")  # the kit has none in XML; converters of predictions write either
_ONCE = ("name", "bndbox", *_CORNERS, *_SCORES)  # in an object
_CORNER = pattern(r"[xy]_?(?:[0-4]|(?:left|right)_(?:top|bottom))")  # one of eight numbers of an oriented box
_SHAPES = ("robndbox", "rotated_bndbox", "polygon", "points")  # besides bndbox, or in place of it
_SNIFFED = 20  # files, and folders in a folder, that are looked at
_ANNOTATIONS = "Annotations"  # where the development kit has them, next to JPEGImages and ImageSets
_IMAGES = "JPEGImages"
_MAIN = "ImageSets/Main"
_JUDGEMENTS = frozenset({"-1", "0", "1"})  # of an image in the list of a class: without, difficult only, with


def looks_like(peek: Peek) -> Likeness | None:
    """Rate annotation files by their outermost element, and a folder of results by the names of its files."""
    if not peek.is_folder and peek.suffix != ".txt":
        return Likeness.STRUCTURE if peek.root == _ROOT else None
    if not peek.is_folder:
        return Likeness.NAMED if _RESULT_NAME.fullmatch(peek.path.name) else None
    if results := peek.rate_class_files(_RESULT_NAME):
        return results
    kit = _kit_folder(peek.path)
    found = _first_xml_files(kit)
    roots = [root for file in found if (root := peek.at(file).root)]
    # Half are enough: the reader names the files that are something else.
    if not roots or roots.count(_ROOT) * 2 < len(roots):
        return None
    # In a folder called Annotations they are where they belong.
    is_placed = kit != peek.path or found[0].parent in (kit, kit / _ANNOTATIONS)
    return Likeness.STRUCTURE if is_placed else peek.rate_below(found)


def iou_types(peek: Peek) -> set[str]:
    """Return what the first files have: boxes, the turned ones of roLabelImg, the polygons of LabelMe, or several."""
    found = _first_xml_files(_kit_folder(peek.path)) if peek.is_folder else [peek.path]
    return kinds_in(map(peek.at, found), _KINDS)


def reads_name(name: str) -> bool:
    """Whether a file of this name is one of annotations, of results, or a list of images."""
    return name.lower().endswith((".xml", ".txt"))


def _kit_folder(path: Path) -> Path:
    """Return the folder that holds Annotations: a folder itself, else the only one in it, as VOCdevkit has VOC2007.

    Never raises; a folder without any is returned as it is.
    """
    if is_folder(path / _ANNOTATIONS):
        return path
    kits: list[Path] = []
    with contextlib.suppress(OSError):
        folders = (path / name for name in list_folder(path)[0])
        kits = [folder for folder in folders if is_folder(folder / _ANNOTATIONS)]
    return kits[0] if len(kits) == 1 else path


def _first_xml_files(folder: Path) -> list[Path]:
    """Return a few XML files of a folder, else of the folders in it. Never raises."""
    found, folders = scan_folder(folder, _is_annotation_name, _SNIFFED)
    for inner in folders:
        if found:
            break
        found, _ = scan_folder(inner, _is_annotation_name, _SNIFFED)
    return found


def _is_annotation_name(name: str) -> bool:
    return name.lower().endswith(_SUFFIX) and not name.rpartition("/")[2].startswith(".")


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a folder of annotation files, of one such file, or of result files."""
    results = files_by_class(path, _RESULT_NAME)  # of a path that is no folder there are none
    alone = None if results or is_folder(path) else _RESULT_NAME.fullmatch(path.name)
    if alone is not None:
        label = alone["label"]
        detail = f"results of class {quoted_value(label)} only; objects of other classes count as missed"
        words = "Evaluate only this class with {classes}, or pass the folder with all classes."
        fix = Fix.missing(words, classes=label)
        draft.findings.note("class-alone", Where(str(path)), detail, fix=fix)
        results = {label: [path]}
    if results:
        _read_results(path, results, draft)
    else:
        _read_annotations(path, draft)


def _read_results(folder: Path, files: Mapping[str, Sequence[Path]], draft: Draft) -> None:
    """Add the images, classes and boxes of the result files in a folder to the draft."""
    layout = Layout(
        columns=("score", "left", "top", "right", "bottom"),
        all_columns="image score left top right bottom",
        fix="Write image, score, left, top, right and bottom, separated by spaces.",
    )
    lines, numbers = read_class_files(folder, files, layout, draft)
    # The development kit lets boxes of a negative size match nothing.
    lines.add_to(draft, numbers[:, 1:], score=numbers[:, 0], negative_size=Severity.WARNING)


def _read_annotations(path: Path, draft: Draft) -> None:
    """Add the images, classes and boxes of annotation files to the draft."""
    kit = _kit_folder(path)
    images = (kit.parent if kit.name == _ANNOTATIONS else kit) / _IMAGES
    if draft.image_folder is None and is_folder(images):
        draft.image_folder = images
    paths = _annotation_files(kit, draft)
    split = _files_of_split(kit, paths, draft)
    files = _Files()
    for key, file, tree in read_each(
        paths if split is None else split, lambda file: parse_xml(file, _ROOT), draft.findings
    ):
        files.add(key, file, tree)
    sizes = _sizes(files, draft)
    draft.fill_sizes(sizes, files.keys)
    draft.set_images(files.keys, file_names=_file_names(files, draft), sizes=sizes, listed=split is not None)
    objects, findings = files.objects, draft.findings
    findings.add_rows(
        Severity.ERROR,
        "field-missing",
        [row for row, name in enumerate(objects.labels) if not name],
        lambda row: (objects.where(row, "name"), "is missing or empty"),
        fix="Give every object its class.",
    )
    findings.add_rows(
        Severity.ERROR,
        "element-repeated",
        range(len(files.repeated)),
        lambda at: (objects.where(files.repeated[at][0]), "has {2:,} elements <{1}>".format(*files.repeated[at])),
        fix="Give each box its own object.",
    )
    table = objects.read(findings, needed=4, fix="Give every object a bndbox of xmin, ymin, xmax and ymax.")
    difficult, truncated = (objects.flags(name, _plain(texts), findings) for name, texts in files.flags.items())
    scores = _scores(objects, table, draft)
    if files.drawn:
        add_shapes(objects, table[:, :4], files.drawn, draft, usual_angle="rad-cw", score=scores, difficult=difficult)
    else:
        objects.add_to(draft, table[:, :4], score=scores, difficult=difficult)
    counts = (("truncated", int(truncated.sum())), ("part", files.n_parts), ("deleted", files.n_deleted))
    mention_unused(counts, Where(draft.path), findings)


def _annotation_files(path: Path, draft: Draft) -> dict[str, Path]:
    """Return the XML files of an input by their relative path without suffix, sorted."""
    if not is_folder(path):
        return {path.stem: path}
    findings = draft.findings
    root = inner_folder(path, _ANNOTATIONS)
    files: dict[str, Path] = {}
    names, backups = without_backups([*filter(_is_annotation_name, list_tree(root, findings))])
    mention_other_files(root, backups, draft)
    for name in names:
        key = name[: -len(_SUFFIX)]
        if key in files:
            findings.error(
                "label-twice", Where(str(root / name)), f"{quoted_value(key)} has two label files", fix="Keep one."
            )
        files[key] = root / name
    if not files:
        raise DataError.single("labels-missing", Where(str(root)), "no .xml files", fix="Pass the folder of them.")
    return files


def _files_of_split(kit: Path, files: dict[str, Path], draft: Draft) -> dict[str, Path] | None:
    """Return the annotation files of the split that is asked for; None where the kit has no image sets."""
    names: list[str] = []
    with contextlib.suppress(OSError):
        folders, files_there = list_folder(kit / _MAIN)
        names = sorted(name for name in (*folders, *files_there) if name.endswith(".txt"))
    lists = {name.removesuffix(".txt"): kit / _MAIN / name for name in names}
    for name, path in list(lists.items()):
        # A list of one class, such as dog_val.txt, judges each image, and is not a split; a split may have such a name.
        fields = first_line(path).split() if "_" in name else []
        if len(fields) > 1 and fields[-1] in _JUDGEMENTS:
            del lists[name]
    if not lists:
        return None
    draft.has_splits = True
    name = choose_split(draft.options.split, lists, Where(str(kit / _MAIN)), draft.findings)
    listed = [line.strip() for line in read_lines(lists[name], empty_ok=True) if line.strip()]
    distinct = list(dict.fromkeys(listed))
    if len(distinct) < len(listed):
        detail = f"{len(listed) - len(distinct):,} images are listed twice; read once"
        draft.findings.warning("image-listed-twice", Where(str(lists[name])), detail)
    missing = [key for key in distinct if key not in files]
    draft.findings.add_rows(
        Severity.ERROR,
        "split-unannotated",
        range(len(missing)),
        lambda row: (
            Where(str(lists[name])),
            f"{quoted_value(missing[row])} has no file {_ANNOTATIONS}/{missing[row]}.xml",
        ),
        fix="Add the files, or remove the images from the list. To read all files, pass the folder Annotations.",
    )
    chosen = {key: files[key] for key in distinct if key in files}
    draft.details.append(f"split {name}: {len(chosen):,} of {len(files):,} annotation files")
    return chosen


class _Files:
    """The content of the files, as text: a row per file, and a row per object."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.keys: list[str] = []
        self.file_names: list[str] = []
        self.sizes: list[str] = []  # width and height of each file
        self.objects = TextBoxes(_NUMBERS)
        self.flags: dict[str, list[str]] = {"difficult": [], "truncated": []}
        self.repeated: list[tuple[int, str, int]] = []  # object, element, how often
        self.n_parts = self.n_deleted = 0
        self.drawn: dict[int, Drawn] = {}  # objects that have another shape, with a box or without

    def add(self, key: str, path: Path, root: Element) -> None:
        """Add a file."""
        self.paths.append(path)
        self.keys.append(key)
        self.file_names.append(text_of(root, "filename") or text_of(root, "source/filename"))
        file = str(path)
        size, sides = (root.find("size"), _SIDES)
        if size is None:
            size, sides = (root.find("imagesize"), ("ncols", "nrows"))
        self.sizes += ["", ""] if size is None else [text_of(size, side) for side in sides]
        # FAIR1M has its objects one level deeper, with the class and the score in what may be found there.
        for number, element in enumerate(root.iterfind("object" if root.find("objects") is None else "objects/object")):
            box = element.find("bndbox")
            inner = [] if box is None else box[::-1]
            # Of several elements of a name the first counts.
            texts = {child.tag: child.text or "" for child in element[::-1]}
            corners = {child.tag: child.text or "" for child in inner}
            if texts.get("deleted", "").strip() == "1":
                self.n_deleted += 1  # LabelMe keeps what was removed
                continue
            drawn = None
            if not texts.keys().isdisjoint(_SHAPES) or (corners and "xmin" not in corners):
                drawn = _drawn(element)
            if drawn is not None:
                self.drawn[len(self.objects)] = drawn
            if len(texts) + len(corners) < len(element) + len(inner) or not texts.keys().isdisjoint(corners):
                # Two objects whose border was lost by hand or in a merge would be read as the first of them.
                counts = Counter(child.tag for child in (*element, *inner))
                row = len(self.objects)
                self.repeated += [(row, name, counts[name]) for name in _ONCE if counts[name] > 1]
            guess = element.find("possibleresult") if "possibleresult" in texts else None
            if guess is not None:
                texts |= {"name": text_of(guess, "name"), "score": text_of(guess, "probability")}
            score, other = map(texts.get, _SCORES)
            cells = [corners.get(corner, "" if drawn is None else "0") for corner in _CORNERS]
            if drawn is not None and box is not None and corners.keys() >= {*_CORNERS}:
                drawn.box = cells[:4]  # type: ignore[assignment]  # numbers that are checked with all others
            cells.append((other or "" if score is None else score).strip())
            self.objects.add((file, f"object[{number}]"), key, texts.get("name", "").strip(), cells)
            for name, flags in self.flags.items():
                flags.append(texts.get(name, ""))
            if "part" in texts:
                self.n_parts += len(element.findall("part"))


def _drawn(element: Element) -> Drawn | None:
    """Return what an object draws besides a box: the turned box of roLabelImg, or the polygon of LabelMe."""
    turned, polygon = element.find("robndbox"), element.find("polygon")
    # DIOR-R has the corners there; SSDD and others have them elsewhere.
    for outer in (turned, element.find("rotated_bndbox"), element.find("bndbox")):
        corners = [] if outer is None else [child for child in outer if _CORNER.fullmatch(child.tag)]
        if outer is not None and len(corners) == 8:
            return Drawn(rings=[[number_in(outer, child.tag) for child in corners]], kind=outer.tag)
    if turned is not None:
        names = ("cx", "cy", "w", "h", "angle")
        return Drawn(turned=[number_in(turned, name) for name in names], kind="robndbox")
    ring = [side for point in element.iterfind("points/point") for side in _point(point.text or "")]
    if ring:
        return Drawn(rings=[ring], kind="points")
    if polygon is None or len(polygon) == 0:
        return None
    points = [(number_in(point, "x"), number_in(point, "y")) for point in polygon.iterfind("pt")]
    if not points:  # as Roboflow exports them: x1, y1, x2, y2, ...
        numbers = {child.tag: number_in(polygon, child.tag) for child in polygon}
        ends = range(1, len(numbers) // 2 + 1)
        points = [(numbers[f"x{end}"], numbers[f"y{end}"]) for end in ends if {f"x{end}", f"y{end}"} <= {*numbers}]
    ring = [side for point in points for side in point]
    return Drawn(rings=[ring] if len(points) > 2 else [], kind="polygon")


def _point(text: str) -> tuple[float, float]:
    """Return x and y that are one text, NaN where they are not."""
    x, _, y = text.partition(",")
    return (float(x), float(y)) if is_numeral(x.strip()) and is_numeral(y.strip()) else (math.nan, math.nan)


def _plain(flags: Sequence[str]) -> list[str]:
    """Return flags without blanks; some tools write "Unspecified" for one that nobody set."""
    plain = {text: "" if text.strip().lower() == "unspecified" else text.strip() for text in set(flags)}
    return [plain[text] for text in flags]


def _file_names(files: _Files, draft: Draft) -> list[str | None]:
    """Return what the files call their image; if that is not their own name, only if no other file has it."""
    own = [_stem(key) == _stem(name) for key, name in zip(files.keys, files.file_names, strict=True)]
    strange = [row for row, name in enumerate(files.file_names) if name and not own[row]]
    draft.findings.add_rows(
        Severity.NOTE,
        "voc-filename",
        strange,
        lambda row: (Where(str(files.paths[row]), field="filename"), f"is {quoted_value(files.file_names[row])}"),
        summary=f"filename is not the name of the XML file in {len(strange):,} files: the name of the XML file is used",
    )
    claims = Counter(map(_stem, (*files.keys, *(files.file_names[row] for row in strange))))
    return [
        name if name and (own[row] or claims[_stem(name)] == 1) else None for row, name in enumerate(files.file_names)
    ]


def _stem(name: str) -> str:
    return without_suffix(name.replace("\\", "/").rpartition("/")[2])


def _sizes(files: _Files, draft: Draft) -> FloatArray:
    """Return width and height of each image (n, 2), NaN where the file gives none, or zero as some tools do."""
    if not files.sizes:
        return unknown_sizes(0)
    given = np.array([text or "0" for text in files.sizes], dtype=np.object_)
    numbers, bad = parse_numbers(given)
    is_strange = (numbers < 0) | (numbers > MAX_IMAGE_SIDE)
    is_strange[bad] = True
    strange = np.flatnonzero(is_strange)

    def describe(index: int) -> tuple[Where, str]:
        place = Where(str(files.paths[index // 2]), record="size", field=_SIDES[index % 2])
        return place, f"is {quoted_value(files.sizes[index])}, expected a number of pixels"

    draft.findings.add_rows(Severity.ERROR, "number-invalid", strange, describe, fix="Write the size of the image.")
    sizes = numbers.reshape(-1, 2)
    return np.where((sizes > 0).all(axis=1, keepdims=True), sizes, np.nan)


def _scores(objects: TextBoxes, table: FloatArray, draft: Draft) -> FloatArray | None:
    """Return the score of each object; None where no object has one."""
    n_scored = sum(map(bool, objects.numbers[4 :: len(_NUMBERS)]))
    if draft.options.role == "gt" and n_scored:
        draft.mention_scores(n_scored)
    if draft.options.role == "gt" or not n_scored:
        return None
    detail = "is missing, but other objects have one"
    return objects.scores(table, draft, detail=detail, fix="Give every object its score.", code="field-missing")


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a folder: ground truth as an XML file per image, predictions as a text file per class."""
    _write_annotations(dataset, path, findings) if dataset.role == "gt" else _write_results(dataset, path, findings)


def _write_annotations(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write an XML file per image, those without boxes included."""
    require_pixels(dataset, "Pascal VOC")
    report_losses(dataset, path, findings, ("sizes", "images", "difficult"))
    stems = below_shared_place(_stems(dataset), path, findings)
    require_file_names(dataset, stems, findings)
    _refuse_class_names(dataset, findings)
    findings.raise_errors()
    objects = _objects(dataset, _corners(dataset, path, findings))
    replace_folder(path, {f"{stem}{_SUFFIX}": _document(dataset, row, objects[row]) for row, stem in enumerate(stems)})


def _write_results(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a text file per class, those without boxes included."""
    require_pixels(dataset, "Pascal VOC")
    report_losses(dataset, path, findings, ("names",))
    require_names(dataset, "Pascal VOC", findings)
    _refuse_class_names(dataset, findings, as_file=True)
    stems = _stems(dataset)
    first = first_rows(stems)  # names must come back from a line
    bad = [row for row, stem in enumerate(stems) if not stem or stem != " ".join(stem.split()) or first[row] != row]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (
            Where(dataset.path, field="image"),
            f"{quoted_value(stems[row])} cannot be an image name in a results line",
        ),
        fix="Rename the image: not empty, unique, no double spaces.",
    )
    findings.raise_errors()
    boxes = dataset.table
    corners = _corners(dataset, path, findings)
    scored = corners if boxes.score is None else np.column_stack((boxes.score, corners))
    columns = (stems, boxes.image), " ", scored, "\n"
    texts = rows_by_owner(columns, boxes.label, len(dataset.labels), with_point=False)
    replace_folder(path, dict(zip(map(_WRITTEN_RESULT.format, dataset.labels.names), texts, strict=True)))


def _stems(dataset: Dataset) -> list[str]:
    """Return what the format calls each image: its key here, elsewhere its path without suffix."""
    images = dataset.images
    if dataset.key_format == "voc":
        return list(map(str, images.keys))
    paths = [key if isinstance(key, str) else images.name(row) for row, key in enumerate(images.keys)]
    return [without_suffix(path.replace("\\", "/")) for path in paths]


def _corners(dataset: Dataset, path: Path, findings: FindingLog) -> FloatArray:
    coords, exact = exact_coords(dataset.table.xywh, "xyxy")
    report_rounded(exact, path, findings)
    return coords


def _objects(dataset: Dataset, corners: FloatArray) -> list[bytes]:
    """Return the elements of the objects of each image."""
    boxes, names = dataset.table, [escape(name, quote=False) for name in dataset.labels.names]
    columns: list[Column] = ["  <object>\n    <name>", (names, boxes.label)]
    columns += ["</name>\n    <difficult>", (("0", "1"), boxes.difficult), "</difficult>\n    <bndbox>"]
    for k, corner in enumerate(_CORNERS):
        columns += [f"<{corner}>", corners[:, k, None], f"</{corner}>"]
    columns += ["</bndbox>\n  </object>\n"]
    return rows_by_owner(columns, boxes.image, len(dataset.images), with_point=False)


def _document(dataset: Dataset, row: int, objects: bytes) -> bytes:
    """Return the text of a file; unknown properties of an image are omitted."""
    key, name = dataset.images.keys[row], dataset.images.file_names[row]
    named = name or (key if isinstance(key, str) and is_image_name(key) else "")
    file_name = f"  <filename>{escape(named, quote=False)}</filename>\n" if named else ""
    width, height = dataset.images.sizes[row].tolist()
    known = math.isfinite(width) and math.isfinite(height)
    size = f"<width>{_number(width)}</width><height>{_number(height)}</height><depth>3</depth>" if known else ""
    size_line = f"  <size>{size}</size>\n" if size else ""
    return b"<annotation>\n%b%b</annotation>\n" % (f"{file_name}{size_line}".encode(), objects)


def _number(value: float) -> str:
    """Write a number at full precision, whole ones without a point."""
    return repr(value).removesuffix(".0")


def _refuse_class_names(dataset: Dataset, findings: FindingLog, *, as_file: bool = False) -> None:
    """Refuse names that do not come back from an XML file or, `as_file`, cannot be part of the name of a file."""
    names = dataset.labels.names
    first = first_rows([without_case(name) if as_file else name for name in names])
    bad = [
        row
        for row, name in enumerate(names)
        if not (name and name.isprintable() and name == name.strip())
        or first[row] != row
        or (as_file and ("/" in name or not is_safe(_WRITTEN_RESULT.format(name))))
    ]
    findings.add_rows(
        Severity.ERROR,
        "write-name",
        bad,
        lambda row: (
            Where(dataset.path, field="class"),
            f"{quoted_value(names[row])} cannot be a class name in this format",
        ),
        fix="Rename the class: not empty, unique, no spaces at the ends, no control characters or slashes.",
    )
