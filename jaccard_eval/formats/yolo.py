"""YOLO and other text labels: one file per image, one box a line, the class first.

A folder of label files (read with its subfolders), Ultralytics' data.yaml, or darknet's obj.data. Boxes are centre-size
fractions as YOLO has them, or pixels as corners or left-top-size, with class indices or class names; what a set uses is
detected from all of it. The layouts that ``columns`` names: ``box``, ``box-conf``, ``conf-box``, ``box-track``,
``track-box``, ``box-conf-track``, ``polygon``, ``polygon-conf``, ``polygon-conf-track``, ``obb``, ``obb-conf``,
``obb-conf-track``, ``xywhr``, ``xywhr-conf``, ``difficult-xywhr``, ``difficult-xywhr-conf``. Polygons and
oriented boxes are read as the boxes around them unless they are what is compared, polygons among boxes too. The word
``difficult`` may end an object of ground truth, as in Cartucho's evaluator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from jaccard_eval.data.dataset import Dataset
from jaccard_eval.data.imagekeys import is_image_name
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import FIRST, IMAGE_FACTS, LEVELS, Likeness, Peek

FORMAT = Format(
    name="yolo",
    summary="text files, one per image: class cx cy w h [conf], normalised; corners or x y w h in pixels; polygons",
    source="Ultralytics, Darknet, CVAT, Label Studio, Roboflow; text labels of Padilla's and Cartucho's evaluators",
    example="0 0.512500 0.430000 0.102300 0.200000\n",
    shapes_if_asked=("segm", "keypoints", "obb"),
    carries=("images", "sizes", "names", "scores"),  # the word difficult is read, not written: YOLO has none
    reads={
        "bbox": "",
        "obb": "class and four corners, in fractions; class cx cy w h angle",
        "segm": "class and the corners of a polygon, in fractions",
        "keypoints": "class, box and the points that kpt_shape in data.yaml counts",
    },
)
READS_SPLITS = True

BOX_NUMBERS = 4
_BOX_COLUMNS = 7  # at most: class, box, score and track id; polygons that matter have more

_DESCRIPTION_SUFFIXES = (".yaml", ".yml", ".data")
_SPLIT_FOLDERS = ("train", "val", "valid", "test")
_YAML_NAMES = pattern(rb"""^names\s*:|["']names["']\s*:""", re.MULTILINE)  # JSON is YAML as well
_DARKNET_NAMES = pattern(rb"^\s*names\s*=", re.MULTILINE)
_NUMBER = pattern(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a folder by the first lines of its label files, and a data.yaml or an obj.data by the names it gives."""
    if not peek.is_folder and peek.suffix not in _DESCRIPTION_SUFFIXES:
        return None
    from jaccard_eval.formats._yolo.sources import find_description  # only where labels are possible
    from jaccard_eval.reading.names import NAMES_FILES

    path = peek.path
    description = find_description(path)
    if description is not None:
        pattern = _DARKNET_NAMES if description.suffix.lower() == ".data" else _YAML_NAMES
        return Likeness.STRUCTURE if pattern.search(peek.at(description).head) else None
    # Here, in "labels", or in the splits of either.
    roots = [peek, peek.at(path / "labels")]
    found = _label_files_in([*roots, *(root.at(root.path / split) for root in roots for split in _SPLIT_FOLDERS)])
    if not found:
        # Folders of any name count only below "labels" or with a file of class names: a project has other folders.
        is_set = path.name == "labels" or any((path / name).is_file() for name in NAMES_FILES)
        found = _label_files_below(peek if is_set else roots[1])
    # The first line may count the others.
    texts = ([line for line in file.lines if not line.lower().startswith(IMAGE_FACTS)] for file in found)
    written = [lines[len(lines) > 1 and lines[0].strip().isdigit()] for lines in texts if lines]
    n_labels = sum(map(_is_label_line, written))
    # Half are enough: the reader names a file that is damaged, or something else. Empty files have no objects.
    if not found or n_labels * 2 < len(written):
        return None
    # The other half may be the rule, and numbers alone the damage: who knows the other half is surer. Corners in pixels
    # behind a class are rare, and what looks so may begin with a corner.
    is_odd = n_labels * 2 == len(written) or sum(map(_is_long_in_pixels, written)) * 2 > len(written)
    return Likeness.CONTENT if written and is_odd else Likeness.STRUCTURE


_TURNED_COLUMNS = 6  # the class, centre, sizes and angle
_OBB_COLUMNS = (9, 10, 11)  # the class and four corners; with a score; with a track id as well


def iou_types(peek: Peek) -> set[str]:
    """Return what labels have: keypoints by the description, masks where most lines are longer than those of boxes."""
    from jaccard_eval.formats._yolo.sources import find_description, find_kpt_shape, labels_of_folder, read_description

    description, log = find_description(peek.path), FindingLog()
    split = ReadOptions().split
    source = read_description(description, split, log) if description else labels_of_folder(peek.path, split, log)
    if source.kpt_shape or find_kpt_shape(source.root):
        return {"bbox", "keypoints"}
    files_read = [peek.at(file) for file in [*source.files.values()][:FIRST]]
    # An outline may have four corners too, all do not.
    every = [line.split() for file in files_read for line in file.lines]
    if every and all(len(fields) in _OBB_COLUMNS for fields in every):
        return {"obb"}
    written = [line.split() for file in files_read for line in file.lines[:1]]
    if written and all(map(_is_turned, written)) and any(not 0 <= float(fields[5]) <= 1 for fields in written):
        return {"obb"}
    n_long = sum(len(fields) > _BOX_COLUMNS for fields in written)
    return {"bbox", "segm"} if n_long * 2 > len(written) else {"bbox"}


def _is_turned(fields: list[str]) -> bool:
    """Whether a line can be centre, sizes and angle, and perhaps a score, in pixels."""
    if len(fields) not in (_TURNED_COLUMNS, _TURNED_COLUMNS + 1) or not all(map(_NUMBER.fullmatch, fields[1:])):
        return False
    x, y, width, height, angle, *score = map(float, fields[1:])
    return max(x, y) > 1 and min(width, height) > 0 and abs(angle) <= 360 and all(0 <= one <= 1 for one in score)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of text labels to the draft."""
    from jaccard_eval.formats._yolo.reader import read_labels  # not needed to look for a format

    read_labels(path, draft, options)


def read_parts(path: Path, draft: Draft, options: ReadOptions, rows: int) -> Iterator[Draft]:
    """Yield drafts of about so many predictions each, of whole files; of ground truth one."""
    from jaccard_eval.formats._yolo.reader import read_labels_in_parts

    return read_labels_in_parts(path, draft, options, rows)


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write a folder of label files, one per image, and ``data.yaml``."""
    from jaccard_eval.formats._yolo.writer import write_folder

    write_folder(dataset, path, findings)


def write_as_read(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write what `write` does, but boxes in pixels where labels with such were read."""
    from jaccard_eval.formats._yolo.writer import write_folder

    write_folder(dataset, path, findings, as_read=True)


def reads_name(name: str) -> bool:
    """Whether a file of this name in a folder holds labels, or describes them."""
    if files.is_label_name(name):
        return True
    from jaccard_eval.formats._yolo.sources import DESCRIPTIONS
    from jaccard_eval.reading.names import NAMES_FILES

    return name.lower() in (*NAMES_FILES, *DESCRIPTIONS)


def leads_to(path: Path, split: str) -> list[Path]:
    """Return what a description leads to; of a folder of labels, where names of the classes are looked for."""
    from jaccard_eval.formats._yolo.sources import described_paths, find_description, image_places
    from jaccard_eval.reading.names import names_files

    description = find_description(path)
    if description is not None:
        return described_paths(description, split)
    if not files.is_folder(path):
        return []
    places = [place for root in (path, path / "labels") for place in image_places(root) if files.is_folder(place)]
    return [*names_files(path), *places]


def _label_files_in(folders: list[Peek]) -> list[Peek]:
    return [file for folder in folders for file in folder.first_files(files.is_label_name)]


def _label_files_below(folder: Peek) -> list[Peek]:
    """Return a few label files of the first level of folders that has any."""
    level = [folder]
    for _ in range(LEVELS):
        level = [inner for outer in level for inner in outer.first_folders()][:FIRST]
        if found := _label_files_in(level):
            return found
    return []


def _is_long_in_pixels(line: str) -> bool:
    """Whether a line has more numbers than a box needs, and these are not fractions."""
    from jaccard_eval.formats._yolo.reader import PIXEL_LOOK

    fields = line.split()[1:]
    return len(fields) >= _BOX_COLUMNS and all(map(_NUMBER.fullmatch, fields)) and max(map(float, fields)) > PIXEL_LOOK


def _is_label_line(line: str) -> bool:
    """Whether a line is a class index with at least four numbers, or a class name with four or five."""
    from jaccard_eval.formats._yolo.sources import SEPARATED_LINE

    separated = SEPARATED_LINE.fullmatch(line)
    fields = [field.strip() for field in line.split(separated["mark"])] if separated else line.split()
    if any(map(is_image_name, (fields[0], line.split(maxsplit=1)[0]))):
        return False  # one text for all images has them in front
    n_numbers = len(list(takewhile(_NUMBER.fullmatch, reversed(fields))))
    if n_numbers == len(fields):
        return n_numbers > BOX_NUMBERS and float(fields[0]).is_integer()
    return n_numbers in (BOX_NUMBERS, BOX_NUMBERS + 1) or (n_numbers == len(fields) - 1 and _is_turned(fields))
