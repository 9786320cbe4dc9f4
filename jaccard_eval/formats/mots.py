"""MOTS and KITTI MOTS: masks of tracked objects, a text of a sequence, or an image of each of its frames.

A line of the text is a frame, an identity, a class, the height and width of the image, and the mask as pycocotools
writes it; an image has the identity of each pixel, 1,000 times the class plus a number. Class 10 is a region in which
nothing is judged: it absorbs predictions of both classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import FIRST, Likeness, Peek
from jaccard_eval.reading.records import RecordCollector
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    import numpy.typing as npt

    from jaccard_eval.reading.labelmaps import EncodedImage

FORMAT = Format(
    name="mots",
    summary="MOTS and KITTI MOTS: masks of tracked objects, a text or a folder of PNG for each sequence",
    source="https://www.vision.rwth-aachen.de/page/mots",
    example="1 2001 2 20 30 c29;00000e=\n",
    carries=("images", "sizes", "crowd"),
    suffixes=(".txt",),
    reads={"bbox": "bounds of the masks", "segm": "RLE; PNG with 1,000 times the class plus a number"},
)

NAMES = {1: "car", 2: "pedestrian"}
IGNORED, PER_CLASS = 10, 1000
_LINE = pattern(r"(\d{1,8}) (-?\d{1,9}) (\d{1,3}) (\d{1,5}) (\d{1,5}) ([0-o]+)", re.ASCII)
_DEEP_GREY = b"\x10\0"  # depth and colour type of a PNG image
_HEAD = slice(24, 26)  # where they stand
_LOOKED_INTO = 3
_OF_SEQUENCE = "gt"  # a folder in that of a sequence, with a text of the same name
_FIX = "Write frame, id, class, height, width and the RLE string of pycocotools, with blanks between them."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate first lines, whose masks must fill their images; images by their values."""
    members = [peek]
    if peek.is_folder:
        wanted = (".txt", ".png")
        folders = [peek] if peek.files else peek.first_folders()
        folders += [folder.at(folder.path / _OF_SEQUENCE) for folder in folders if _OF_SEQUENCE in folder.folders]
        members = [
            file for folder in folders for file in folder.first_files(lambda name: name.lower().endswith(wanted))
        ][:FIRST]
    texts = [member for member in members if member.suffix == ".txt"]
    if texts:
        lines = [member.lines[0] for member in texts if member.lines]
        return Likeness.NAMED if lines and all(map(_is_mask, lines)) else None
    images = [member for member in members if member.head[_HEAD] == _DEEP_GREY]
    is_sequence = peek.is_folder and images and len(images) == len(members)
    return Likeness.CONTENT if is_sequence and _hold_identities(images) else None


def _is_mask(line: str) -> bool:
    from jaccard_eval.similarity.runs import decode_strings

    found = _LINE.fullmatch(line.strip())
    if found is None:
        return False
    counts, _, wrong = decode_strings([found[6].encode()])
    return not wrong.any() and int(counts.sum()) == int(found[4]) * int(found[5])


def _hold_identities(images: Sequence[Peek]) -> bool:
    """Whether all values of the first maps with objects are those of a class and a number."""
    found: set[int] = set()
    for image in images:
        try:
            found |= {*np.unique(_values(image.path)[1]).tolist()} - {0}
        except (DataError, OSError):
            return False
        if len(found) >= _LOOKED_INTO:
            break
    return bool(found) and all(value // PER_CLASS in (*NAMES, IGNORED) for value in found)


def _values(file: Path) -> tuple[EncodedImage, npt.NDArray[np.generic]]:
    from jaccard_eval.reading.labelmaps import EncodedImage, one_channel

    image = EncodedImage(file)
    return image, one_channel(image, "numbers of objects", "Save the ids as grey of 16 bits.")


def iou_types(_: Peek) -> set[str]:
    """Return what there is: boxes around masks are compared only where they are asked for."""
    return {"segm"}


def holds_no_scores(*_: Peek | Path | None) -> bool:
    """Whether there is no place for scores: always; lines and values are of a class and an object."""
    return True


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the frames, classes and masks of sequences to the draft."""
    side = RecordCollector(draft)
    found = files.members(path, (".txt", ".png"), draft.findings)
    texts = {stem: file for stem, file in found.items() if file.suffix.lower() == ".txt"}
    if texts:
        _read_texts(texts, side, draft)
    else:
        _read_images(found, side, draft)
    draft.findings.raise_errors()
    draft.mention_uncounted({"in regions that are not judged": draft.ignored["unjudged_class"]})
    side.to_draft(encoding="xywh", listed=not texts)


def _labels(label: int, where: Where, draft: Draft) -> Iterator[tuple[str, bool]]:
    """Yield the classes that a mask counts for, and whether it absorbs predictions."""
    if label in NAMES:
        yield NAMES[label], False
    elif label != IGNORED:
        expected = ", ".join(f"{key} ({name})" for key, name in NAMES.items())
        detail = f"is of class {label}; expected {expected} or {IGNORED} (not judged)"
        draft.findings.error("map-value", where, detail, fix="Number classes as MOTS does.")
    elif draft.options.role == "gt":
        yield from ((name, True) for name in NAMES.values())
    else:
        draft.ignored["unjudged_class"] += 1


def _read_texts(found: Mapping[str, Path], side: RecordCollector, draft: Draft) -> None:
    from jaccard_eval.similarity.runs import decode_strings, runs_of_counts

    sizes: dict[str, tuple[int, int]] = {}
    masks: list[tuple[str, int, Where]] = []
    strings: list[bytes] = []
    for name, file in found.items():
        for number, line in enumerate(files.read_lines(file, empty_ok=True), start=1):
            where, match = Where(str(file), line=number), _LINE.fullmatch(line.strip())
            if match is None:
                if line.strip():
                    detail = f"is {quoted_value(line.strip())}; expected frame, id, class, height, width and RLE"
                    draft.findings.error("segment-fields", where, detail, fix=_FIX)
                continue
            frame, _, label, height, width = map(int, match.groups()[:5])
            key = f"{_sequence(name)}/{frame:06d}" if len(found) > 1 else f"{frame:06d}"
            if sizes.setdefault(key, (height, width)) != (height, width):
                detail = f"is {height} x {width} (height x width), its frame before {sizes[key][0]} x {sizes[key][1]}"
                draft.findings.error("map-size", where, detail, fix="Write the size of the image.")
            strings.append(match[6].encode())
            masks.append((key, label, where))
    counts, offsets, wrong = decode_strings(strings)
    runs, pixels = runs_of_counts(counts, offsets)
    for key, (height, width) in sizes.items():
        side.add_image(key, size=(width or math.nan, height or math.nan))
    for at, (key, label, where) in enumerate(masks):
        height, width = sizes[key]
        if wrong[at] or pixels[at] != height * width:
            detail = f"its RLE has {pixels[at]:,} pixels, but {height} x {width} are {height * width:,}"
            draft.findings.error("segmentation-invalid", where, detail, fix=_FIX)
            continue
        for text, crowd in _labels(label, where, draft):
            edges = runs.edges[runs.offsets[at] : runs.offsets[at + 1]]
            side.add_pixels(key, text, edges, (height, width), where, crowd=crowd)


def _sequence(name: str) -> str:
    """Return the name of a sequence by that of its text, which may lie in a folder in its own."""
    path = PurePosixPath(name)
    folders = path.parent.parts
    return folders[-2] if path.name == _OF_SEQUENCE and folders[-1:] == (_OF_SEQUENCE,) and folders[1:] else path.name


def _read_images(found: Mapping[str, Path], side: RecordCollector, draft: Draft) -> None:
    from jaccard_eval.similarity.runs import runs_of_labels

    several = len({name.rpartition("/")[0] for name in found}) > 1
    for name, file, (image, values) in files.read_each(found, _values, draft.findings):
        key = name if several else name.rpartition("/")[2]
        ids, masks = runs_of_labels(values)
        side.add_image(key, size=(image.shape[1], image.shape[0]))
        for at, value in enumerate(ids.tolist()):
            where = Where(str(file), record=f"instance {value}")
            for text, crowd in _labels(value // PER_CLASS, where, draft):
                edges = masks.edges[masks.offsets[at] : masks.offsets[at + 1]]
                side.add_pixels(key, text, edges, image.shape, where, crowd=crowd)
