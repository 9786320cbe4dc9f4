"""Instance masks as images: a map per image whose values are objects, or a file per object.

Eight layouts: Cityscapes' maps (``*_instanceIds.png``: 1,000 times the class plus a number; below 1,000 a group that
nobody separated), Pascal VOC's (``SegmentationObject``, with the classes in ``SegmentationClass`` next to it), any
other map or folder of maps (PNG, TIFF, ``.npy``), with classes and scores in ``instances.csv`` or of one class, in
numbers or with a colour for each object on black, arrays of the maps of many images (``reading/labelmaps.py``),
BDD100K's bitmasks (red is the class, blue and alpha the object), Cityscapes' results (text files of
``mask.png class score``, the class by its number), the folders of the Data Science Bowl (``image/masks/*.png``, a file
per object), and files of MATLAB (``inst_map``, with types in ``inst_type`` or ``class``, as HoVer-Net and Lizard have).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.atomic import replace_folder
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import MAP_SUFFIXES, is_image_name, without_suffix
from jaccard_eval.data.known_protocols import VOID
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.fixes import IMAGE_FOLDER, Fix
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import tracked
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import is_number
from jaccard_eval.reading.labelmaps import (
    CATEGORIES,
    VOC,
    EncodedImage,
    add_stacks,
    color_text,
    count_pieces,
    is_stack,
    object_pixels,
    one_channel,
)
from jaccard_eval.reading.matlab import read_variables
from jaccard_eval.reading.peek import FIRST, Likeness, Peek
from jaccard_eval.reading.records import RecordCollector, listed_records
from jaccard_eval.similarity.runs import runs_of_labels, runs_of_pixels
from jaccard_eval.text import example_keys, is_numeral, pluralise, quoted_value

if TYPE_CHECKING:
    import numpy.typing as npt

    from jaccard_eval.reading.labelmaps import EncodedImage
    from jaccard_eval.similarity.runs import IntArray

FORMAT = Format(
    name="instances",
    summary="instance masks as PNG, TIFF or .npy: maps with a value or colour per object, or a file per object",
    source="https://github.com/mcordts/cityscapesScripts/blob/master/cityscapesscripts/evaluation"
    "/evalInstanceLevelSemanticLabeling.py",
    example="""Image.fromarray(ids).save("masks/street.png")  # 0 where there is no object; ids.dtype is uint8 or uint16
""",
    carries=("images", "sizes", "scores", "crowd"),
    member=".png",
    shapes=("segm",),
    reads={
        "bbox": "bounds of the masks",
        "segm": "a map with a value or colour per object, a file per object, arrays of maps, inst_map of MATLAB",
    },
)

_MATLAB, _MAP = ".mat", "inst_map"
TABLE = "instances.csv"  # with these columns, of which the last two may be missing
COLUMNS = ("image", "id", "class", "score")
ONE_CLASS = 0
_CITYSCAPES, _DECORATION = "_instanceIds.png", "_gtFine"
# Ids of Cityscapes that are not evaluated: unlabeled to ground, parking, rail track, ... Source: its labels.py.
_NOT_JUDGED = (*range(7), 9, 10, 14, 15, 16, 18, 29, 30)
_OBJECTS, _CLASSES = "SegmentationObject", "SegmentationClass"
_VOID = 255  # of VOC: borders of objects, and what nobody looked at
_ENDINGS = (
    "_cp_masks",
    "_mask",
    "_masks",
    "_instances",
    "_instance",
    "_labels",
    "_label",
    "_seg",
)  # of the names of maps, behind that of the image
_PHOTO = pattern(r"_(?:rgb|img|image|raw)$", re.IGNORECASE)  # of the names of images, next to such maps
_RESULT = pattern(r"\S+\.png[ \t]+\d+(\.0*)?[ \t]+\S+", re.ASCII | re.IGNORECASE)
_OF_OBJECTS, _OF_IMAGE = "masks", "images"  # folders in that of an image, in the Data Science Bowl of 2018
_BDD100K = ("pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")  # from 1
_CROWD, _IGNORED = 2, 1  # bits of their flags
_PNG, _COLOR_TYPE = b"\x89PNG\r\n\x1a\n", 25  # first bytes, and the place of the kind of pixels
_ONE_CHANNEL = (b"\0", b"\3")  # grey, and indices of a palette
_COLORED = ("RGB", "RGBA")
_RGB, _RGBA = b"\2", b"\6"
_NPY, _TIFF = b"\x93NUMPY", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_LOOKED_INTO, _LOOKED_ROWS = 3, 200  # images of a folder, and rows of each, spread evenly
# Pixels that differ from the one on their left: up to 1 in 3 in photos of 16 colours, 4 in 5 in photos of 256 greys.
_MOST_CHANGES = 0.3
# Of so many values, the share of neighbours that differ by so little: 1 in photos of slopes, and less than half in maps
# of objects that touch and are numbered row by row.
SHADES, STEP, SMOOTH = 16, 2, 0.8
_MOST_COLORS = 1024  # of the objects of an image
_MOST_RUNS = 3.0  # of one value in a row; an object is in one piece, or few, and a grey of a scan is anywhere


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the names that Cityscapes and VOC give, a folder of maps by their pixels."""
    return _rate_names(peek) or _rate_maps(peek) or _rate_matlab(peek)


def _rate_names(peek: Peek) -> Likeness | None:
    if not peek.is_folder:
        return None
    level = [peek]
    for _ in range(2):  # as Cityscapes has a folder for each city
        if any(name.endswith(_CITYSCAPES) for folder in level for name in folder.files):
            return Likeness.NAMED
        texts = [file for folder in level for file in folder.first_files(lambda name: name.lower().endswith(".txt"))]
        lines = [file.lines[0] for file in texts if file.lines]
        if lines and all(map(_RESULT.fullmatch, map(str.strip, lines))):
            return Likeness.NAMED
        level = [inner for folder in level for inner in folder.first_folders()]
    if peek.path.name == _OBJECTS or TABLE in peek.files:
        return Likeness.NAMED
    if _OBJECTS in peek.folders:
        return Likeness.CONTENT  # the same folder may have boxes, which most ask for
    return Likeness.NAMED if not peek.files and _holds_objects(peek) else None


def _rate_maps(peek: Peek) -> Likeness | None:
    """Rate a map by its pixels, or a folder of them, or of folders of them, as for each video."""
    if not peek.is_folder:
        return Likeness.SUFFIX if peek.suffix in MAP_SUFFIXES and _are_maps([peek]) else None
    peek = _with_maps(peek)
    folders = peek.first_folders() if peek.folders and not peek.files else [peek]
    if not folders or any(folder.folders or not folder.files or not _are_map_names(folder.files) for folder in folders):
        return None
    names = {folder.path: _maps_of(folder.files) for folder in folders}
    images = [image for folder in folders for image in folder.first_files(names[folder.path].__contains__)]
    return Likeness.SUFFIX if _are_maps(images[:FIRST]) else None


def _rate_matlab(peek: Peek) -> Likeness | None:
    """Rate files of MATLAB by the map that they hold, as HoVer-Net and Lizard have it."""
    found = peek.first_files(lambda name: name.endswith(_MATLAB)) if peek.is_folder else [peek]
    try:
        are_maps = all(file.suffix == _MATLAB and _MAP in read_variables(file.path) for file in found[:1])
    except (DataError, OSError):
        return None
    return Likeness.STRUCTURE if found and are_maps else None


# Folders of a root, and the one of them with the maps: the Cell Tracking Challenge marks cells in TRA.
_NEXT_TO = {frozenset((_OF_OBJECTS, _OF_IMAGE)): _OF_OBJECTS, frozenset(("SEG", "TRA")): "SEG"}


def _with_maps(peek: Peek) -> Peek:
    """Return the folder of maps that lies next to one of images or marks, else the folder itself."""
    return (
        peek.at(peek.path / _NEXT_TO[key]) if not peek.files and (key := frozenset(peek.folders)) in _NEXT_TO else peek
    )


# Next to the maps: of the Cell Tracking Challenge, CoNIC and PanNuke.
_BESIDE = frozenset({"res_track.txt", "counts.csv", "patch_info.csv", "images.npy", "types.npy"})


def _are_map_names(names: Sequence[str]) -> bool:
    """Whether files are maps by their suffix; the images that maps are named after may lie next to them."""
    maps = [name for name in names if name.lower().endswith(MAP_SUFFIXES) and name not in _BESIDE]
    others = [_stem(name) for name in names if name not in maps and not name.startswith(".") and is_image_name(name)]
    n_hidden = sum(name.startswith(".") or name in _BESIDE for name in names)
    images = {form for name in maps for form in (_stem(name), _without_ending(_stem(name)))}
    return bool(maps) and images.issuperset(others) and len(maps) + len(others) + n_hidden == len(names)


def _maps_of(names: Sequence[str]) -> list[str]:
    """Return the maps among files: those with an ending where the images lie next to them, else all."""
    maps = [name for name in names if name.lower().endswith(MAP_SUFFIXES) and name not in _BESIDE]
    marked = [name for name in maps if _stem(name).endswith(_ENDINGS)]
    plain = {_PHOTO.sub("", _stem(name)) for name in maps if not _stem(name).endswith(_ENDINGS)}
    lie_next = plain and all(_without_ending(_stem(name)) in plain for name in marked)
    if marked and lie_next:
        # Cellpose has several files for an image; those that are arrays are pickled.
        return [name for name in marked if not name.endswith(".npy")] or marked
    return maps


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _without_ending(stem: str) -> str:
    return next((stem.removesuffix(ending) for ending in _ENDINGS if stem.endswith(ending)), stem)


def _holds_objects(peek: Peek) -> bool:
    """Whether the folders in a folder are those of an image each, with a file for each object."""
    folders = peek.first_folders()
    inner = [
        folder
        for folder in folders
        if _OF_OBJECTS in folder.folders and set(folder.folders) <= {_OF_OBJECTS, _OF_IMAGE}
    ]
    n_images = [len(folder.at(folder.path / _OF_IMAGE).files) for folder in inner]
    # A part of a data set has as many images as maps.
    return (
        bool(inner) and len(inner) * 2 > len(folders) and max(n_images) <= 1 and (sum(n_images) > 0 or len(inner) > 1)
    )


def _are_maps(images: Sequence[Peek]) -> bool:
    """Whether files are maps of one channel, or BDD100K's, by the first of them."""
    kinds = {file.head[_COLOR_TYPE : _COLOR_TYPE + 1] for file in images if file.head.startswith(_PNG)}
    if kinds == {_RGB}:
        # COCO's segments are such maps, of stuff as well: a JSON file that is called like their folder lists them.
        lists = files.head(Path(f"{images[0].path.parent}.json"))
        return not lists and all(_may_be_colored(file.path) for file in images[:_LOOKED_INTO])
    if not images or not all(file.head.startswith((_PNG, _NPY, *_TIFF)) for file in images):
        return False
    if kinds == {_RGBA}:
        looked = [file.path for file in images[:_LOOKED_INTO]]
        return all(_bdd100k(file) is not None for file in looked) or all(map(_may_be_colored, looked))
    return kinds <= {*_ONE_CHANNEL} and all(_may_be_map(file.path) for file in images[:_LOOKED_INTO])


def _bdd100k(file: Path) -> tuple[EncodedImage, npt.NDArray[np.uint8]] | None:
    """Return a bitmask with its four channels: class, flags, and the object in two bytes; None of another image."""
    try:
        image = EncodedImage(file)
        channels = image.decode_channels()
    except (DataError, OSError):
        return None
    label, flags, high, low = (channels[..., at] for at in range(4))
    is_object = (high > 0) | (low > 0)
    is_one = bool(label.max() <= len(_BDD100K) and flags.max() < 16 and ((label > 0) == is_object).all())
    return (image, channels) if is_one else None


def _may_be_colored(file: Path) -> bool:
    """Whether an image has a colour for each object, in one piece, on black; a photo has many, in grains."""
    try:
        values = _numbers(file)[1]
    except (DataError, OSError):
        return False
    n = len(np.unique(values)) - 1  # without black
    return n > 0 and count_pieces(values) < COMPONENTS * n


def _may_be_map(file: Path) -> bool:
    """Whether the values of an image lie side by side, as those of objects do, and not in grains, as those of photos.

    What cannot be decoded is for the reader to explain.
    """
    try:
        image, values = _ids(file)
    except (DataError, OSError):
        return not file.name.lower().endswith((".tif", ".tiff"))  # which are photos as a rule
    palette = image.decode(by_color=False).palette
    if palette is not None and palette[0].any() and len(np.unique(values)) > 2:
        return False  # what is drawn in few colours: those of maps begin with black, where there is no object
    changes = np.concatenate([np.diff(values.astype(np.int64), axis=axis).ravel() for axis in (0, 1)])
    changes = np.abs(changes[changes != 0])
    if len(np.unique(values)) >= SHADES and (changes <= STEP).mean() >= SMOOTH:
        return False
    rows = values[:: max(len(values) // _LOOKED_ROWS, 1)]
    begins = np.ones(rows.shape, dtype=np.bool_)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    at, column = np.nonzero(begins & (rows != 0))
    found = np.unique(rows)
    n_of_rows = len(np.unique(at * len(found) + np.searchsorted(found, rows[at, column])))
    is_grain = begins[:, 1:].sum() > _MOST_CHANGES * begins[:, 1:].size
    return not is_grain and (len(found) <= 2 or len(at) <= _MOST_RUNS * n_of_rows)


MOST_CLASSES = 40  # values other than 0 and 255 of maps of classes
SHARED = 0.5  # of these that both sides have
COMPONENTS = 1.3  # of a value, from which it is a class: an object is in one piece, unless something hides a part


def hold_classes(gt: Path, pred: Path) -> bool:
    """Whether maps hold classes and not objects: both sides have the same few values, in pieces or with void."""
    values, n_pieces, n_values, has_void = [], 0, 0, False
    for root in (gt, pred):
        side, found = _listed(root, FindingLog())
        names = [name for name in found if name.lower().endswith(MAP_SUFFIXES)]
        seen: set[int] = set()
        for name in names[:_LOOKED_INTO]:
            try:
                _, ids = _numbers(side / name)
            except (DataError, OSError):
                return False
            if set(np.unique(ids).tolist()) == {0, _VOID}:  # how images store 0 and 1
                ids = ids != 0
            given = set(np.unique(ids).tolist()) - {0, _VOID}
            has_void |= root == gt and bool(given) and bool((ids == _VOID).any())
            seen |= given
            if root == gt:
                n_values += len(given)
                n_pieces += count_pieces(np.where(ids == _VOID, 0, ids))
        values.append(seen)
    used = values[0] | values[1]
    are_shared = len(values[0] & values[1]) >= max(SHARED * len(used), 1) and len(used) <= MOST_CLASSES
    return are_shared and (has_void or n_pieces >= COMPONENTS * n_values)


def holds_no_scores(peek: Peek, gt: Path | None) -> bool:
    """Whether maps are those of several objects, and nothing next to them may have scores.

    A file per object is one by its place. Others might be maps of classes, by the pieces of ground truth or their own.
    """
    peek = _with_maps(peek)
    if _holds_objects(peek):
        return True
    root = peek if peek.is_folder else peek.at(peek.path.parent)
    if any(name.endswith(_MATLAB) for name in root.files):
        return True
    texts = root.first_files(lambda name: name.lower().endswith(".txt"))
    has_scores = TABLE in root.files or files.is_there(peek.path.with_name(f"{peek.path.name}.json"))
    if has_scores or any(text.lines and _RESULT.fullmatch(text.lines[0].strip()) for text in texts):
        return False
    maps = root.first_files(lambda name: name.lower().endswith(".png")) if peek.is_folder else [peek]
    if maps and maps[0].head[_COLOR_TYPE : _COLOR_TYPE + 1] == _RGBA and _bdd100k(maps[0].path) is not None:
        return True
    truth = gt or peek.path
    return any(map(_has_several, (peek.path, truth))) and not hold_classes(truth, peek.path)


def _has_several(path: Path) -> bool:
    """Whether an array is of many maps, or one of the first maps has several values besides 0 and void."""
    root, found = _listed(path, FindingLog())
    for name in [name for name in found if name.lower().endswith(MAP_SUFFIXES)][:_LOOKED_INTO]:
        if name.endswith(".npy") and is_stack(root / name):
            return True
        if len({*np.unique(_numbers(root / name)[1]).tolist()} - {0, _VOID}) > 1:
            return True
    return False


def iou_types(_: Peek) -> set[str]:
    """Return what there is: boxes around masks are compared only where they are asked for."""
    return {"segm"}


def write_example(path: Path) -> None:
    """Write the example, which is code here and not a text to be read."""
    from PIL import Image

    ids = np.zeros((48, 64), dtype=np.uint8)
    ids[10:30, 5:25], ids[20:40, 40:60] = 1, 2
    Image.fromarray(ids).save(path)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a map per image whose values are its objects, and their classes and scores in a table next to the maps.

    Where masks share pixels, these go to the smallest: a warning counts what loses any.
    """
    from jaccard_eval.reading import writing

    boxes, images = dataset.table, dataset.images
    writing.report_losses(dataset, path, findings, ("shapes", "images", "sizes"))
    writing.require_names(dataset, "instances", findings)
    masks = writing.masks_in_images(dataset, path, "instances", findings)
    stems = [without_suffix(images.name(row)).replace("\\", "/") for row in range(len(images))]
    stems = writing.below_shared_place(stems, path, findings)
    writing.require_file_names(dataset, stems, findings)
    writing.require_sizes(dataset, "instances", findings)
    unsized = [stems[row] for row in np.flatnonzero(np.isnan(images.sizes).any(axis=1)).tolist()]
    if unsized:
        detail = f"a map has the size of its image, and that of {pluralise(len(unsized), 'image')} is unknown"
        findings.error("size-unknown", Where(dataset.path), f"{detail}: {example_keys(unsized)}", fix=IMAGE_FOLDER)
    findings.raise_errors()
    areas = np.zeros(0) if masks is None else masks.areas()  # without masks there are no boxes
    lines, contents = [",".join(COLUMNS)], dict[str, bytes]()
    covered, empty = list[int](), np.flatnonzero(areas == 0).tolist()
    for image, stem in enumerate(stems):
        width, height = images.sizes[image].astype(np.int64).tolist()
        rows = np.flatnonzero(boxes.image == image)
        ids = np.zeros((height, width), dtype=np.uint8 if len(rows) <= _VOID else np.uint16)
        number_of = dict(zip(rows.tolist(), range(1, len(rows) + 1), strict=True))
        for row in rows[np.argsort(-areas[rows], kind="stable")].tolist():
            if masks is not None:
                ids[writing.pixels_of(masks, row)] = number_of[row]
        left = np.bincount(ids.ravel(), minlength=len(rows) + 1)
        for row, number in number_of.items():
            if left[number] != areas[row]:
                covered.append(row)
            if left[number]:
                score = "" if boxes.score is None else repr(float(boxes.score[row]))
                label = "" if dataset.has_no_class else dataset.labels.names[boxes.label[row]]
                lines.append(",".join(map(_cell, (stem, str(number), label, score))))
        contents[f"{stem}.png"] = writing.grey_png(ids)

    def place(row: int) -> tuple[Where, str]:
        return Where(str(path), record=f"box {boxes.source[row]}", field="segmentation"), ""

    summary = f"{len(covered):,} masks share pixels with smaller ones, which keep them; a map has one object a pixel"
    fix = writing.LOSSLESS_FIX
    findings.add_rows(Severity.WARNING, "write-loss", covered, place, summary=summary, fix=fix)
    findings.add_rows(Severity.WARNING, "write-loss", empty, place, summary=f"{len(empty):,} masks without pixels")
    findings.raise_errors()
    if not dataset.has_no_class or boxes.score is not None:
        contents[TABLE] = ("\n".join(lines) + "\n").encode()
    replace_folder(path, contents)


def _cell(text: str) -> str:
    return f'"{text.replace(chr(34), 2 * chr(34))}"' if re.search(r'[,"\s]', text) else text


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and masks of a folder to the draft, with the boxes around them."""
    side = RecordCollector(draft)
    path, found = _listed(_with_maps(Peek(path)).path, draft.findings)
    maps = [name for name in found if name.endswith(_CITYSCAPES)]
    texts = [name for name in found if name.lower().endswith(".txt")]
    images = _maps_of(found)
    matlab = [name for name in found if name.endswith(_MATLAB)]
    if not images and not texts and not matlab:
        detail = f"no {MAP_SUFFIXES[0]} files, nor {', '.join(MAP_SUFFIXES[1:])}"
        raise DataError.single("labels-missing", Where(str(path)), detail, fix="Pass the folder of the maps.")
    if maps:
        _read_cityscapes(path, maps, side, draft)
    elif matlab and not images:
        _read_matlab(path, matlab, side, draft)
    elif path.name == _OBJECTS or any(name.startswith(f"{_OBJECTS}/") for name in found):
        _read_voc(path if path.name == _OBJECTS else path / _OBJECTS, side, draft)
    elif texts and any(_RESULT.fullmatch(files.first_line(path / name).strip()) for name in texts):
        _read_results(path, texts, side, draft)
    elif _holds_objects(Peek(path)):
        _read_objects(path, found, side, draft)
    elif any(name.endswith(".npy") for name in images) and _read_stacks(path, images, draft):
        return
    elif images[0].lower().endswith(".png") and _bdd100k(path / images[0]) is not None:
        _read_bdd100k(path, images, side, draft)
    else:
        _read_maps(path, images, side, draft)
    draft.findings.raise_errors()
    side.to_draft(encoding="xywh", listed=True)


def _read_stacks(path: Path, names: Sequence[str], draft: Draft) -> bool:
    """Add the objects of arrays of many maps, where there are any; return whether there are."""
    stacks = [name for name in names if name.endswith(".npy") and is_stack(path / name)]
    if stacks:
        add_stacks([(path / name, "", "" if len(stacks) == 1 else f"{_stem(name)}/") for name in stacks], draft)
    return bool(stacks)


def _listed(path: Path, findings: FindingLog) -> tuple[Path, list[str]]:
    """Return a folder with the names of all files below it; of a file its folder, and its name alone."""
    if files.is_folder(path):
        return path, files.list_tree(path, findings)
    files.require_readable(path)
    return path.parent, [path.name]


def _read_objects(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    """Add the objects of images that are folders, each of the pixels of a file that are not 0."""
    by_image: dict[str, list[str]] = {}
    for name in names:
        image, kind, *_ = (*PurePosixPath(name).parts, "", "")
        own = by_image.setdefault(image, [])
        if kind == _OF_OBJECTS and name.lower().endswith(MAP_SUFFIXES):
            own.append(name)
    _note_one_class(path, draft)

    def read_one(key: str) -> None:
        size = (0, 0)
        found: list[tuple[Where, IntArray]] = []
        for name in sorted(by_image[key]):
            image = EncodedImage(path / name)
            pixels = object_pixels(image)
            if found and image.shape != size:
                (h, w), (height, width) = image.shape, size
                detail = f"has {w} x {h} pixels, masks before it {width} x {height} (width x height)"
                draft.findings.error("map-size", image.where, detail, fix="Export masks at the size of the image.")
                continue
            size = image.shape
            found.append((image.where, runs_of_pixels([(pixels, 0, 0, size[0])]).edges))
        side.add_image(key, size=(size[1] or math.nan, size[0] or math.nan))
        for where, edges in found:
            side.add_pixels(key, ONE_CLASS, edges, size, where)

    _read_each(sorted(by_image), read_one, draft)


def _read_bdd100k(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    """Add the objects of bitmasks, with their classes; a crowd absorbs predictions, and so does what is ignored."""
    scores = _scores_beside(path, draft)

    def read_one(name: str) -> None:
        found = _bdd100k(path / name)
        if found is None:
            detail = "differs from the BDD100K bitmasks next to it: red is the class, blue and alpha the object"
            raise DataError.single("map-mode", Where(str(path / name)), detail, fix="Export it again.")
        image, channels = found
        wide = channels.astype(np.int64)
        code = (wide[..., 0] << 24) | (wide[..., 1] << 16) | (wide[..., 2] << 8) | wide[..., 3]
        ids, masks = runs_of_labels(code)
        places = [Where(str(path / name), record=f"instance {key & 0xFFFF}") for key in ids.tolist()]
        labels = [_BDD100K[(key >> 24) - 1] for key in ids.tolist()]
        crowd = [bool((key >> 16) & (_CROWD | _IGNORED)) for key in ids.tolist()]
        own = scores.get(_stem(name).rpartition("/")[2], {})
        listed = [own.get(key & 0xFFFF, math.nan) for key in ids.tolist()]
        side.add_map(_stem(name), masks, image.shape, labels=labels, places=places, crowd=crowd, scores=listed)

    _read_each(names, read_one, draft)


def _read_matlab(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    """Add the objects of MATLAB's files: a map, and where types are known, that of each of its numbers, in their order.

    Lizard lists the numbers as well, as ``id``.
    """
    classed = []

    def read_one(name: str) -> None:
        where = Where(str(path / name))
        found = read_variables(path / name)
        values = found.get(_MAP)
        if not isinstance(values, np.ndarray) or values.ndim != 2 or not np.array_equal(values, np.floor(values)):
            detail = f"has no {_MAP} of whole numbers, (height, width)"
            raise DataError.single("map-shape", where, detail, fix="Save the map of the objects by that name.")
        ids, masks = runs_of_labels(values.astype(np.int64))
        types = np.ravel(next((found[key] for key in ("inst_type", "class") if key in found), []))
        numbers = np.ravel(found["id"]) if "id" in found else ids
        is_known = len(types) == len(numbers) and set(ids.tolist()) <= set(numbers.tolist())
        if len(types) and not is_known:
            detail = f"has {len(types):,} types of {len(ids):,} objects"
            raise DataError.single("map-value", where, detail, fix="Save a type for each number of the map, or none.")
        type_of = dict(zip(numbers.tolist(), types.astype(np.int64).tolist(), strict=True)) if len(types) else {}
        classed.append(bool(type_of) or not len(ids))
        places = [Where(str(path / name), record=f"instance {key}") for key in ids.tolist()]
        labels = [type_of.get(key, ONE_CLASS) for key in ids.tolist()]
        side.add_map(_stem(name), masks, (values.shape[0], values.shape[1]), labels=labels, places=places)

    _read_each(names, read_one, draft)
    if not all(classed):
        _note_one_class(path, draft)


def _scores_beside(path: Path, draft: Draft) -> dict[str, dict[int, float]]:
    """Return the scores that ``pred.json`` next to the folder ``pred`` has, by image and number of the object."""
    file = path.with_name(f"{path.name}.json")
    if draft.options.role != "pred" or not files.is_there(file) or b'"index"' not in files.head(file):
        return {}
    found: dict[str, dict[int, float]] = {}
    for record in listed_records(file, draft):
        own = found.setdefault(_stem(record.text("name")), {})
        for label in record.records("labels") if record.has("labels") else ():
            number, score = label.values.get("index"), label.values.get("score")
            if isinstance(number, int) and score is not None and is_number(score):
                own[number] = float(score)
    detail = f"scores are those of {file}, by the number of each object"
    draft.findings.note("names-found", Where(str(path)), detail)
    return found


def _note_one_class(path: Path, draft: Draft) -> None:
    """Report that maps hold no classes, unless one is named for all of them."""
    if draft.options.names:
        return
    draft.has_no_class = True
    detail = f"maps hold no classes, and there is no {TABLE} with {', '.join(COLUMNS)}: all objects are of one class"
    fix = Fix.of_side(draft.options.role, "Pass {names} to name it.", names=None)
    draft.findings.note("csv-one-class", Where(str(path)), detail, fix=fix)


def _read_each(names: Sequence[str], read_one: Callable[[str], None], draft: Draft) -> None:
    failures = []
    for name in tracked(names, "masks"):
        try:
            read_one(name)
        except DataError as error:
            failures.append(error)
    files.record_failures(failures, draft.findings)


def _ids(file: Path) -> tuple[EncodedImage, npt.NDArray[np.generic]]:
    """Return the values of a map; a DataError refuses colours."""
    image = EncodedImage(file)
    return image, one_channel(image, "numbers of objects", "Save the ids as one channel, grey of 8 or 16 bits.")


def _numbers(file: Path) -> tuple[EncodedImage, npt.NDArray[np.generic]]:
    """Return the values of a map, or of one in colours a number for each colour, 0 of black: as CVPPP and iSAID are."""
    image = EncodedImage(file)
    if image.kind not in _COLORED:
        return _ids(file)
    found = image.decode(by_color=True)
    values = found.rows(0, found.shape[0])
    colors = np.unique(values)
    # A photo has more; and without black, nothing shows where there is no object.
    return (image, values) if len(colors) <= _MOST_COLORS and not colors[0] else _ids(file)


def _read_cityscapes(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    from jaccard_eval.reading.segments import PER_CLASS

    things = {int(category.key): category.name for category in CATEGORIES if category.is_thing}
    claims: dict[str, str] = {}

    def read_one(name: str) -> None:
        key = name.rpartition("/")[2].removesuffix(_CITYSCAPES).removesuffix(_DECORATION)
        image, values = _ids(path / name)
        if claims.setdefault(key, name) != name:
            detail = f"is of image {key}, as is {path / claims[key]}"
            draft.findings.error("image-duplicate", image.where, detail, fix="Pass a folder with one map each.")
            return
        # 0 is a region, not an object.
        ids, masks = runs_of_labels(values.astype(np.int64) + 1 if draft.options.regions else values)
        ids = ids - draft.options.regions
        classes = np.where(ids < PER_CLASS, ids, ids // PER_CLASS)
        is_void = np.isin(ids, _NOT_JUDGED) & draft.options.regions
        (kept,) = np.nonzero(np.isin(classes, list(things)) | is_void)
        places = [Where(str(path / name), record=f"instance {key}") for key in ids[kept].tolist()]
        labels = [things.get(key, VOID) for key in classes[kept].tolist()]
        crowd = ((ids < PER_CLASS) & ~is_void)[kept].tolist()
        side.add_map(key, masks.take(kept), image.shape, labels=labels, places=places, crowd=crowd)

    draft.usual_protocol = "cityscapes"
    _read_each(names, read_one, draft)
    if names and not side.n_boxes:
        detail = "no map has an object: all ids are of classes without instances"
        words = "Pass maps with objects of classes such as car or person, or evaluate all classes with {command}."
        fix = Fix.missing(words, command="pixels GT PRED")
        draft.findings.error("content-lost", Where(str(path)), detail, fix=fix)


def _read_voc(path: Path, side: RecordCollector, draft: Draft) -> None:
    """Add objects with the class that most of their pixels have; void is neither."""

    def read_one(name: str) -> None:
        file = path.parent / _CLASSES / name
        image, values = _ids(path / name)
        if not files.is_there(file):
            fix = f"Put {_CLASSES} next to {_OBJECTS}: it has the classes of the objects."
            raise DataError.single("file-missing", image.where, f"there is no {file}", fix=fix)
        other, classes = _ids(file)
        if other.shape != image.shape:
            (h, w), (height, width) = other.shape, image.shape
            detail = f"has {w} x {h} pixels, {path / name} {width} x {height} (width x height)"
            raise DataError.single("map-size", other.where, detail, fix="Export both maps again.")
        ids, masks = runs_of_labels(np.where(values == _VOID, 0, values))
        labels = []
        places = [Where(str(path / name), record=f"instance {key}") for key in ids.tolist()]
        for key, where in zip(ids.tolist(), places, strict=True):
            counts = np.bincount(classes[values == key].astype(np.int64), minlength=_VOID + 1)
            counts[_VOID] = 0
            label = int(np.argmax(counts[1:])) + 1
            if counts[label] == 0 or label >= len(VOC):
                what = f"class {label}, and VOC has {len(VOC) - 1}" if counts[label] else "no class"
                detail = f"has {what} in {file}"
                draft.findings.error("map-value", where, detail, fix=f"Export {_CLASSES} again.")
            labels.append(VOC[min(label, len(VOC) - 1)])
        side.add_map(name.removesuffix(".png"), masks, image.shape, labels=labels, places=places)

    _read_each(sorted(name for name in files.list_folder(path)[1] if name.endswith(".png")), read_one, draft)


def _read_maps(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    """Add the objects of any maps: by a table, else all of one class."""
    stems = {name: _stem(name) for name in names}
    for ending in _ENDINGS:
        if stems and all(stem.endswith(ending) for stem in stems.values()):
            stems = {name: stem.removesuffix(ending) for name, stem in stems.items()}
    table = _Rows.read(path / TABLE, draft) if files.is_there(path / TABLE) else None
    if table is None:
        _note_one_class(path, draft)

    in_colors = table is None and bool(names) and EncodedImage(path / names[0]).kind in _COLORED
    colored: list[str] = []  # images of one colour that is not black

    def read_one(name: str) -> None:
        image, values = (_numbers if in_colors else _ids)(path / name)
        ids, masks = runs_of_labels(values)
        called = [f"colour {color_text(key)}" if image.kind in _COLORED else f"instance {key}" for key in ids.tolist()]
        places = [Where(str(path / name), record=text) for text in called]
        if not len(ids) and not side.n_boxes:
            palette = image.decode(by_color=False).palette
            if palette is not None and palette[:1].any():
                colored.append(name)
        if table is None:
            side.add_map(stems[name], masks, image.shape, labels=[ONE_CLASS] * len(ids), places=places)
            return
        rows = table.take(PurePosixPath(stems[name]), PurePosixPath(name))
        for key, where in zip(ids.tolist(), places, strict=True):
            if key not in rows:
                fix = f"Add a row for it, or set its pixels to 0. Rows of its image: {len(rows):,}."
                draft.findings.error("segment-unlisted", where, f"is not listed in {TABLE}", fix=fix)
        for key in sorted(rows.keys() - set(ids.tolist())):
            detail = f"id {key} has no pixel in {path / name}"
            draft.findings.error("segment-absent", rows[key].where, detail, fix="Remove the row, or fix the map.")
        if rows.keys() == set(ids.tolist()):
            own = [rows[key] for key in ids.tolist()]
            labels, scores = [row.label for row in own], [row.score for row in own]
            side.add_map(stems[name], masks, image.shape, labels=labels, places=places, scores=scores)

    _read_each(names, read_one, draft)
    if table is not None:
        table.report_unused(draft)
    if colored and not side.n_boxes:
        detail = "no map has an object: the palette has a colour for 0, which is not an object"
        advice = "Save the ids of objects as pixel values of at least 1, and 0 where there is none."
        draft.findings.error("content-lost", Where(str(path / colored[0])), detail, fix=advice)


@dataclass(frozen=True, slots=True)
class _Row:
    where: Where
    label: int | str
    score: float


class _Rows:
    """The rows of a table by the image, as it is spelled there, and the id."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, _Row]] = {}
        self._used: set[str] = set()

    @classmethod
    def read(cls, path: Path, draft: Draft) -> _Rows:
        """Read a table; what is wrong with it is among the findings."""
        import csv  # looks for formats do without it

        found = cls()
        lines = csv.reader(files.read_text(path).splitlines())
        header = [name.strip().lower() for name in next(lines, [])]
        lacking = [name for name in COLUMNS[:2] if name not in header]
        if lacking:
            detail = f"there is no column {' and no '.join(lacking)}; the header has {', '.join(header) or 'nothing'}"
            fix = f"Write the columns {', '.join(COLUMNS)}."
            raise DataError.single("csv-column-missing", Where(str(path), line=1), detail, fix=fix)
        for cells in lines:
            where = Where(str(path), line=lines.line_num)
            row = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
            if not cells:
                continue
            if len(cells) != len(header):
                detail = f"expected {len(header)} fields, got {len(cells)}"
                draft.findings.error("csv-fields", where, detail, fix="Export the table again.")
                continue
            key, score = row["id"], row.get("score", "")
            if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key)):
                detail = f"id {quoted_value(key)} is not a whole number of at least 1"
                draft.findings.error("segment-id", where, detail, fix="Write the value that the pixels have.")
            elif score and not is_numeral(score):
                detail = f"score {quoted_value(score)} is not a plain finite number"
                draft.findings.error("csv-number", where, detail, fix="Write numbers with a decimal point.")
            elif int(key) in found._rows.setdefault(row["image"], {}):
                detail = f"id {key} of image {quoted_value(row['image'])} has a row before this one"
                draft.findings.error("segment-duplicate", where, detail, fix="Keep one row for each id.")
            else:
                label: int | str = row.get("class", "") or ONE_CLASS
                label = int(label) if isinstance(label, str) and label.isascii() and label.isdigit() else label
                found._rows[row["image"]][int(key)] = _Row(where, label, float(score) if score else np.nan)
        return found

    def take(self, *names: PurePosixPath) -> dict[int, _Row]:
        """Return the rows of an image, which may be spelled with its suffix or its folder and without."""
        spelled = [text for name in names for text in (str(name), name.name, f"{name}.jpg", f"{name.name}.jpg")]
        for text in spelled:
            if text in self._rows:
                self._used.add(text)
                return self._rows[text]
        return {}

    def report_unused(self, draft: Draft) -> None:
        """Report images that have rows and no map."""
        unused = [rows for image, rows in self._rows.items() if image not in self._used]
        draft.findings.add_rows(
            Severity.ERROR,
            "file-missing",
            range(len(unused)),
            lambda at: (next(iter(unused[at].values())).where, "there is no map of this image"),
            summary=f"{pluralise(len(unused), 'image has', 'images have')} rows and no map",
            fix="Name the image as its map is called, or add the map.",
        )


def _read_results(path: Path, names: Sequence[str], side: RecordCollector, draft: Draft) -> None:
    """Add the masks that text files list, a text file for each image."""
    known = {int(category.key): category.name for category in CATEGORIES}

    def masks_of(name: str) -> Iterator[tuple[Where, Path, int, float]]:
        for number, line in enumerate(files.read_lines(path / name, empty_ok=True), start=1):
            words, where = line.split(), Where(str(path / name), line=number)
            if not words:
                continue
            label, score = words[1:] if len(words) == 3 else ("", "")
            file = PurePosixPath(words[0].replace("\\", "/"))
            problem = ""
            if not _RESULT.fullmatch(line.strip()) or not is_numeral(score):
                problem = f"is {quoted_value(line.strip())}; expected a PNG file, the number of a class, and a score"
            elif file.is_absolute() or not (path / name).parent.joinpath(file).resolve().is_relative_to(path.resolve()):
                problem = f"{quoted_value(words[0])} is outside of {path}"
            elif not files.is_there((path / name).parent / file):
                problem = f"there is no file {quoted_value(words[0])}"
            if problem:
                code = "file-missing" if problem.startswith("there") else "segment-fields"
                draft.findings.error(code, where, problem, fix="Write path/mask.png class score, as Cityscapes.")
            else:
                yield where, (path / name).parent / file, int(float(label)), float(score)

    def read_one(name: str) -> None:
        key = (
            name.rpartition("/")[2][: -len(".txt")].removesuffix("_leftImg8bit").removesuffix("pred").removesuffix("_")
        )
        size = (0, 0)
        found: list[tuple[IntArray, Where, int | str, float]] = []
        for where, file, label, score in masks_of(name):
            image = EncodedImage(file)
            pixels = object_pixels(image)
            if found and image.shape != size:
                (h, w), (height, width) = image.shape, size
                detail = f"has {w} x {h} pixels, masks before it {width} x {height} (width x height)"
                draft.findings.error("map-size", where, detail, fix="Export masks at the size of the image.")
                continue
            size = image.shape
            found.append((runs_of_pixels([(pixels, 0, 0, size[0])]).edges, where, known.get(label, label), score))
        side.add_image(key, size=(size[1] or math.nan, size[0] or math.nan))
        for edges, where, named, score in found:
            side.add_pixels(key, named, edges, size, where, score=score)

    _read_each(names, read_one, draft)
