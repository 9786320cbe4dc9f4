"""MOT Challenge: gt.txt, det.txt and results of trackers: frame, identity, left, top, width, height, confidence ...

A file of one sequence, the folder of a sequence (gt/gt.txt or det/det.txt, with seqinfo.ini), or a folder of several.
In ground truth only pedestrians with a confidence of 1 count. Pedestrians with 0, and what the benchmark calls
distractors, are read as crowds, so that predictions of them are not mistakes; objects of other classes with 0 are
ignored, as in TrackEval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.findings import DataError, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.lines import MAX_CLASS, TextBoxes, split_files
from jaccard_eval.reading.peek import FIRST, Likeness, Peek, Row, most, read_rows
from jaccard_eval.text import is_numeral, printable

FORMAT = Format(
    name="mot",
    summary="MOT Challenge text: frame,id,left,top,width,height,confidence,class; a sequence, or a folder of them",
    source="https://motchallenge.net/instructions and trackeval/datasets of https://github.com/JonathonLuiten/TrackEval",
    example="1,1,10,20,100,200,1,1,1\n",
    carries=("images", "sizes", "scores", "crowd"),
    suffixes=(".txt",),
)

# In the order of their numbers, from 1.
NAMES = (
    *("pedestrian", "person on vehicle", "car", "bicycle", "motorbike", "non motorised vehicle", "static person"),
    *("distractor", "occluder", "occluder on the ground", "occluder full", "reflection", "crowd"),
)
PEDESTRIAN = 1
# A prediction on one of these is not a mistake: person on vehicle, static person, distractor, reflection.
_DISTRACTORS = (2, 7, 8, 12)
_NUMBERS = ("frame", "id", "left", "top", "width", "height", "confidence", "class")
_FRAME, _BOX, _CONFIDENCE, _CLASS = 0, slice(2, 6), 6, 7
_COUNTS = range(7, 11)  # the class, the visibility or three world coordinates may be missing
_FOLDERS = ("gt", "det")  # of a sequence, which hold a file of the same name
_INFO = "seqinfo.ini"
_MAX_FRAMES = 10_000_000
_FIX = "Write frame,id,left,top,width,height,confidence and perhaps class and visibility."


def looks_like(peek: Peek) -> Likeness | None:
    """Rate the first lines of a file, or of the first sequences in a folder."""
    sequences = _sequences(peek, "gt", peek.first_folders(), _lists) if peek.is_folder else {"": ""}
    # One sequence among folders of other things does not make sequences of them.
    n_inner = sum(name in peek.folders for name in sequences)
    if 0 < n_inner * 2 < len(peek.first_folders()):
        return None
    found = [peek.at(peek.path / file) for file in islice(sequences.values(), FIRST)]
    lines = [file.lines[0] for file in found if file.lines]
    if not lines or not all(map(_is_row, lines)):
        return None
    # The files of a sequence are called so: detectors have scores of any size, and cameras see objects in any order.
    unnamed = [file for file in found if file.path.stem not in _FOLDERS]
    if unnamed and not all(_are_tracks(read_rows(file.lines, _split)) for file in unnamed if file.lines):
        return None
    # Eight numbers in each of many files may be anything; so few other formats have this many and no name among them.
    is_common = peek.is_folder and found[0].path.stem not in _FOLDERS and len(_split(lines[0])) == len(_NUMBERS)
    return Likeness.CONTENT if is_common else Likeness.STRUCTURE


def _is_row(line: str) -> bool:
    fields = _split(line)
    if len(fields) not in _COUNTS or not all(map(is_numeral, fields)):
        return False
    frame, identity = map(float, fields[:2])
    # Frames count from 1; detectors write -1 for the identity, which they do not know.
    return frame >= 1 and frame.is_integer() and identity >= -1 and identity.is_integer()


def _are_tracks(rows: Sequence[Row]) -> bool:
    """Whether numbers are those of tracks: confidences, classes and visibilities in their ranges, frames that rise."""
    # A file goes on from frame to frame, or from one identity to the next; a line may have been cut off.
    whole = [row for row in rows if len(row) in _COUNTS]
    steps = [[later[_FRAME] - row[_FRAME], later[1] - row[1]] for row, later in pairwise(whole)]
    return most(rows, _is_plausible) and (not steps or most(steps, lambda step: step[0] >= 0 or step[1] > 0))


def _is_plausible(row: Row) -> bool:
    if len(row) not in _COUNTS:
        return False
    width, height, confidence, *rest = row[_BOX.stop - 2 :]
    if len(row) == max(_COUNTS):
        # World coordinates, -1 where there are none; VisDrone's videos have class, truncation and occlusion there.
        is_known = rest == [-1.0] * 3 or not all(value >= 0 and value.is_integer() for value in rest)
    else:
        is_known = all(value >= -1 and value.is_integer() for value in rest[:1]) and all(
            value == -1 or 0 <= value <= 1 for value in rest[1:]
        )
    return is_known and width > 0 and height > 0 and (-1 <= confidence <= 1 or rest == [-1.0] * 3)


def _split(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")] if line.strip() else []


def _lists(folder: Peek, name: str) -> bool:
    """Whether a folder of a sequence lists its file; what cannot be looked into lists nothing."""
    return f"{name}.txt" in folder.at(folder.path / name).files


def _holds(folder: Peek, name: str) -> bool:
    """Whether a folder of a sequence has its file; an error if that cannot be determined."""
    return files.is_there(folder.path / name / f"{name}.txt")


def _sequences(peek: Peek, role: str, folders: Sequence[Peek], has_file: Callable[[Peek, str], bool]) -> dict[str, str]:
    """Return the file of each sequence by name, in a folder and `folders`: of the role where a sequence has both.

    Files are named as from the folder.
    """
    wanted = _FOLDERS if role == "gt" else _FOLDERS[::-1]
    found: dict[str, str] = {}
    for folder in (peek, *folders):
        for name in wanted:
            if name in folder.folders and has_file(folder, name):
                inner = "" if folder is peek else f"{folder.path.name}/"
                found.setdefault(folder.path.name, f"{inner}{name}/{name}.txt")
    texts = [name for name in peek.files if name.lower().endswith(".txt")]
    return found or {name.rpartition(".")[0]: name for name in texts}


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the frames, classes and boxes of sequences to the draft."""
    found = {path.stem: path}
    if files.is_folder(path):
        peek = Peek(path)
        named = _sequences(peek, options.role, [peek.at(path / name) for name in peek.folders], _holds)
        found = {sequence: path / file for sequence, file in named.items()}
        if not found:
            raise DataError.single(
                "labels-missing", Where(str(path)), "no .txt files of sequences", fix="Pass their folder."
            )
    several = len(found) > 1
    lines = TextBoxes(_NUMBERS)
    for sequence, place, fields in split_files(found, draft.findings, _split):
        if len(fields) in _COUNTS:
            # Ten columns end in world coordinates, which stand where eight and nine have the class.
            label = fields[_CLASS] if len(fields) in (8, 9) else ""
            lines.add(place, sequence, "", [*fields[:_CLASS], label])
        else:
            lines.refuse(place, f"expected 7 to 10 columns, got {len(fields)}")
    table = lines.read(draft.findings, fix=_FIX)
    frames = table[:, _FRAME]
    counted = range(1, _MAX_FRAMES + 1)
    lines.require_whole("frame", frames, counted, draft.findings, expected="frames are counted from 1", fix=_FIX)
    draft.findings.raise_errors()

    def key(sequence: str, frame: int) -> str:
        # As the benchmark calls its images; one sequence needs no name, so that its other side may have any.
        return f"{sequence}/{frame:06d}" if several else f"{frame:06d}"

    images = [key(sequence, int(frame)) for sequence, frame in zip(lines.images, frames, strict=True)]
    sizes = dict.fromkeys(images, (np.nan, np.nan))
    lengths = []
    for sequence, file in found.items():
        length, size = _read_info(file, draft)
        lengths.append(length)
        sizes |= {key(sequence, frame): size for frame in range(1, length + 1)}
    table_of_sizes = np.array([*sizes.values()], dtype=np.float64).reshape(-1, 2)
    draft.set_images(list(sizes), sizes=table_of_sizes, listed=all(lengths))
    _add_boxes(lines, table, images, draft)


def _read_info(file: Path, draft: Draft) -> tuple[int, tuple[float, float]]:
    """Return the number of frames of a sequence and their width and height; 0 and NaN if unknown."""
    unknown = 0, (np.nan, np.nan)
    info = file.parent.parent / _INFO if file.stem in _FOLDERS else file.with_name(_INFO)
    if not files.is_there(info):
        return unknown
    import configparser  # not needed to look for a format

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(files.read_text(info))
        section = parser["Sequence"]
        length, width, height = (int(section[name]) for name in ("seqLength", "imWidth", "imHeight"))
    except (configparser.Error, KeyError, ValueError) as error:
        detail = (
            f"has no section [Sequence] with whole numbers seqLength, imWidth and imHeight: {printable(str(error))}"
        )
        draft.findings.error("layout", Where(str(info)), detail, fix="Download it again, or remove it.")
        return unknown
    if not (0 < length <= _MAX_FRAMES and width > 0 and height > 0):
        detail = f"seqLength {length}, imWidth {width}, imHeight {height}: at most {_MAX_FRAMES:,} frames, none below 1"
        draft.findings.error("layout", Where(str(info)), detail, fix="Write the true numbers, or remove the file.")
        return unknown
    return length, (float(width), float(height))


def _add_boxes(lines: TextBoxes, table: FloatArray, images: list[str], draft: Draft) -> None:
    confidence = table[:, _CONFIDENCE]
    # Detectors write -1 or nothing: the benchmark has one class.
    number = np.where(np.isnan(table[:, _CLASS]) | (table[:, _CLASS] == -1), PEDESTRIAN, table[:, _CLASS])
    expected = "expected a whole number, or -1 for none"
    lines.require_whole("class", number, range(MAX_CLASS + 1), draft.findings, expected=expected, fix=_FIX)
    draft.findings.raise_errors()
    number = number.astype(np.int64)
    is_gt = draft.options.role == "gt"
    unmarked = (confidence == 0) & is_gt
    crowd = unmarked & np.isin(number, (PEDESTRIAN, *_DISTRACTORS))
    number[crowd] = PEDESTRIAN
    rows = np.flatnonzero(~unmarked | crowd)
    left_out = Counter(NAMES[at - 1] if 0 < at <= len(NAMES) else str(at) for at in number[unmarked & ~crowd].tolist())
    if left_out:
        draft.ignored["unjudged_class"] += left_out.total()
    kinds = {f"of class {name}": count for name, count in sorted(left_out.items())}
    draft.mention_uncounted({"with confidence 0 or distracting": int(np.count_nonzero(crowd)), **kinds})
    keys = sorted(set(number[rows].tolist()))
    is_benchmark = keys in ([], [PEDESTRIAN])
    # Sequences of others have classes of their own, whose names are in no file.
    names = [NAMES[PEDESTRIAN - 1]] if is_benchmark else [str(key) for key in keys]
    draft.set_classes([PEDESTRIAN] if is_benchmark else keys, names, named=is_benchmark)
    columns = {"image": images, "label": number, "crowd": crowd, "score": None if is_gt else confidence}
    lines.add_to(draft, table[:, _BOX], rows=rows, encoding="xywh", **columns)
