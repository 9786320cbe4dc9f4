"""How the images of two inputs can correspond: by id, by the spelling of names, by number."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import RowArray
from jaccard_eval.data.dataset import ImageTable, IntegerKeys, Key
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import IMAGE_WAYS
from jaccard_eval.patterns import pattern

_COMMON_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_RARE_SUFFIXES = (".avif", ".dib", ".dng", ".heic", ".heif", ".jp2", ".mpo", ".pgm")
MAP_SUFFIXES = (".png", ".npy", ".tif", ".tiff")  # of images whose pixels are classes or objects
LABEL_SUFFIXES = (*MAP_SUFFIXES, ".bmp", ".gif")  # of those whose pixels are classes
PICTURE_SUFFIXES = frozenset({*_COMMON_SUFFIXES, *_RARE_SUFFIXES})

# Roboflow exports photo.jpg as photo_jpg.rf.<hash>.jpg; the hash is another in every version of a data set.
_ROBOFLOW = pattern(r"(?:_(?:bmp|gif|jpe?g|jp2|png|ppm|tiff?|webp))?\.rf\.[0-9a-z]{8,}$")
# Label Studio puts eight hexadecimal digits and a dash before the name of an uploaded image.
_LABEL_STUDIO = pattern(r"^[0-9a-f]{8}_(?=.)")

# What names of a side's files have besides the image, folded: gt_img_1 and res_img_1, 00mask and 00pred, Cityscapes.
_ROLES = (
    "ground_?truth|gt|label|lbl|mask|anno|annotation|target|seg|segmentation|instance|trimap|manual[12]?"
    "|pred|predict|predicted|prediction|res|result|det|detection|output|out"
)
_CITYSCAPES = "labelids|labeltrainids|instanceids|instancetrainids|gtfine_polygons|(?:gtfine_)?color|leftimg8bit|gtfine"
_CELLS = "man_seg|man_track"  # of the Cell Tracking Challenge, whose results are mask000
_BEFORE = pattern(rf"^(?:(?:{_ROLES})s?|{_CELLS})(?:_+(?=.)|(?=\d+$))")
_FEW = "cp_masks|img|l|test|training|1stho|2ndho|rgb"  # of Cellpose, CamVid, DRIVE, CHASE, Potsdam
_BEHIND = pattern(rf"(?<=.)(?:_+|(?:\.(?:jpe?g|png))?\.|(?<=\d))(?:(?:{_ROLES})s?|{_FEW}|{_CITYSCAPES})$")


def posix(name: str) -> str:
    """Return a path with forward slashes and without a leading ``./``."""
    return name.replace("\\", "/").removeprefix("./")


def last_part(path: str) -> str:
    """Return a path without its folders."""
    return path.rpartition("/")[2]


def is_image_name(path: str) -> bool:
    """Whether a file name has the suffix of an image."""
    _, dot, suffix = path.rpartition(".")
    return bool(dot) and f".{suffix.lower()}" in PICTURE_SUFFIXES


def without_suffix(path: str) -> str:
    """Drop the suffix of an image; a dot elsewhere belongs to the name."""
    stem, dot, suffix = path.rpartition(".")
    return stem if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES else path


def shared_suffix(names: Sequence[str]) -> str:
    """Return the suffix that all names end with, its dot included; empty where there is none."""
    _, dot, suffix = names[0].rpartition(".") if names else ("", "", "")
    return dot + suffix if dot and all(map(str.endswith, names, repeat(dot + suffix))) else ""


def stem_of(name: str) -> str:
    """Return a name without folders and image suffix."""
    return last_part(without_suffix(posix(name)))


def path_ends(path: str) -> list[str]:
    """Return the path and its ends, longest first: a/b/c, b/c, c."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def without_case(path: str) -> str:
    """Spell a path without regard to case and Unicode composition (NFC or NFD), as some file systems do."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def folded(path: str) -> str:
    """Spell a path without regard to case, Unicode composition (NFC or NFD), or space, dash and underscore."""
    return without_case(path).replace(" ", "_").replace("-", "_")


def undecorated_forms(path: str) -> list[str]:
    """Return what a folded path without suffix may be called elsewhere, the fullest form first.

    What Roboflow adds is always dropped. Each end of the path follows with its folders joined by underscores, as
    Ultralytics names label files, and without the prefix of Label Studio.

    Examples
    --------
    >>> undecorated_forms("a/1_jpg.rf.0123456789abcdef")
    ['a_1', '1']
    >>> undecorated_forms("ab12cd34_left")
    ['ab12cd34_left', 'left']
    """
    flat = [end.replace("/", "_") for end in path_ends(_ROBOFLOW.sub("", path))]
    return [form for end in flat for form in dict.fromkeys((end, _LABEL_STUDIO.sub("", end)))]


def without_affixes(path: str) -> str:
    """Return a folded path without suffix, and without what names its side before or behind the name of the image.

    What Roboflow adds to the name goes, too: its masks are image_jpg.rf.hash_mask.png.

    Examples
    --------
    >>> without_affixes("val/res_img_1"), without_affixes("00mask"), without_affixes("man_seg007")
    ('val/img_1', '00', '007')
    """
    folder, slash, name = path.rpartition("/")
    before = ""
    while before != name:
        before, name = name, _ROBOFLOW.sub("", _BEHIND.sub("", _BEFORE.sub("", name)))
    return f"{folder}{slash}{name}"


def number_text(name: str) -> str | None:
    """Return the whole number that a stem writes, without leading zeros; None for any other name.

    Examples
    --------
    >>> number_text("val/000000000042.jpg")
    '42'
    """
    stem = stem_of(name)
    return (stem.lstrip("0") or "0") if stem.isascii() and stem.isdecimal() else None


NOWHERE = -1
MAX_ID_DIGITS = 18  # of a text that is read as an id: it fits 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class ImageMatch:
    """How the prediction images map to ground-truth images under one strategy."""

    strategy: str
    rows: RowArray  # ground-truth row of each prediction image, -1 for none
    one_to_one: bool  # no ground-truth image is claimed twice, and no claim was ambiguous


Matcher = Callable[[ImageTable, ImageTable], "tuple[RowArray, bool]"]


def match_by(strategy: str, gt: ImageTable, pred: ImageTable) -> ImageMatch:
    """Match images by one of `STRATEGIES`."""
    # Numbers without file names are alike in every way where they are equal: there may be millions.
    as_ids = strategy in AUTOMATIC and _are_numbers(gt) and _are_numbers(pred)
    rows, clear = STRATEGIES["id" if as_ids else strategy](gt, pred)
    claimed = rows[rows >= 0]
    return ImageMatch(strategy, rows, clear and bool(np.bincount(claimed).max(initial=0) <= 1))


def _are_numbers(images: ImageTable) -> bool:
    """Whether all images have whole numbers as keys, none of them negative, and no file names."""
    if not len(images):
        return True
    first, last = images.keys[0], images.keys[-1]  # integers ascend, and texts come behind them
    return isinstance(first, int) and first >= 0 and isinstance(last, int) and not any(images.file_names)


def _by_id(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    """Match equal keys of equal type; where both sides also have file names, their stems must agree."""
    if isinstance(gt.keys, IntegerKeys) and isinstance(pred.keys, IntegerKeys):
        rows = _rows_of_integers(gt.keys.values, pred.keys.values)
    else:
        at = {key: row for row, key in enumerate(gt.keys)}
        rows = _rows(at.get(key, NOWHERE) for key in pred.keys)
    agree = not any(pred.file_names) or all(
        stem_of(gt.file_names[row] or "") == stem_of(name)
        for row, name in zip(rows, pred.file_names, strict=True)
        if row >= 0 and name and gt.file_names[row]
    )
    return rows, agree


def _rows_of_integers(gt: npt.NDArray[np.int64], pred: npt.NDArray[np.int64]) -> RowArray:
    """Return the row of each of the prediction's keys among those of the ground truth, both ascending."""
    if not len(gt):
        return np.full(len(pred), NOWHERE, dtype=np.int32)
    rows = np.searchsorted(gt, pred).astype(np.int32)
    rows[rows == len(gt)] = 0
    rows[gt[rows] != pred] = NOWHERE
    return rows


def _by_number(gt: ImageTable, pred: ImageTable) -> tuple[RowArray, bool]:
    """Match names that are one number, however padded; only where every prediction image is called by a number."""
    pred_numbers = [number_text(name) for name in _names(pred)]
    if None in pred_numbers:
        return np.full(len(pred_numbers), NOWHERE, dtype=np.int32), True
    return _match_texts([number_text(name) for name in _names(gt)], pred_numbers)


STRATEGIES: dict[str, Matcher] = {
    "id": _by_id,
    "name": lambda gt, pred: _match_texts(_names(gt), _names(pred)),
    "path": lambda gt, pred: _match_forms(*([path_ends(name) for name in _names(side)] for side in (gt, pred))),
    "basename": lambda gt, pred: _match_texts(*([last_part(name) for name in _names(side)] for side in (gt, pred))),
    "stem": lambda gt, pred: _match_spellings(_bare_paths(gt), _bare_paths(pred), path_ends),
    "case": lambda gt, pred: _match_spellings(_folded_paths(gt), _folded_paths(pred), path_ends),
    "decorated": lambda gt, pred: _match_spellings(_folded_paths(gt), _folded_paths(pred), undecorated_forms),
    "number": _by_number,
    "affix": lambda gt, pred: _match_spellings(_plain_paths(gt), _plain_paths(pred), path_ends),
    "id-text": lambda gt, pred: _match_texts([str(key) for key in gt.keys], [str(key) for key in pred.keys]),
    "id+1": lambda gt, pred: _match_shifted_ids(gt, pred, 1),
    "id-1": lambda gt, pred: _match_shifted_ids(gt, pred, -1),
}
AUTOMATIC = tuple(way for way in IMAGE_WAYS if way not in ("id+1", "id-1"))  # in the order of trial
# What the last strategies ignore; a note reports it when one is used.
OVERLOOKED = {
    "case": "case, Unicode composition, and space, dash or underscore in names",
    "decorated": "what Roboflow, Label Studio or Ultralytics add to names",
    "number": "leading zeros, folders and suffixes of numbers",
    "affix": "what names the side of a file, such as gt_ or _mask",
}


def _match_texts(gt_texts: Sequence[str | None], pred_texts: Sequence[str | None]) -> tuple[RowArray, bool]:
    """Match equal texts; None matches nothing."""
    at, ambiguous = _index((text, row) for row, text in enumerate(gt_texts) if text is not None)
    return _rows(NOWHERE if text is None else at.get(text, NOWHERE) for text in pred_texts), ambiguous.isdisjoint(
        pred_texts
    )


def _match_shifted_ids(gt: ImageTable, pred: ImageTable, step: int) -> tuple[RowArray, bool]:
    return _match_texts([_moved(key, 0) for key in gt.keys], [_moved(key, step) for key in pred.keys])


def _match_spellings(
    gt_paths: list[str], pred_paths: list[str], forms: Callable[[str], list[str]]
) -> tuple[RowArray, bool]:
    """Match paths of which one is a form of the other, else names without their folders."""
    rows, clear = _match_forms([forms(path) for path in gt_paths], [forms(path) for path in pred_paths])
    if clear and (rows >= 0).all():
        return rows, clear
    return _match_forms([forms(last_part(path)) for path in gt_paths], [forms(last_part(path)) for path in pred_paths])


def _match_forms(gt_forms: list[list[str]], pred_forms: list[list[str]]) -> tuple[RowArray, bool]:
    """Match names of which one, whole, is a form of the other; the forms of each start with the whole name."""
    whole, twice = _index((forms[0], row) for row, forms in enumerate(gt_forms))
    part, shared = _index((form, row) for row, forms in enumerate(gt_forms) for form in forms)
    rows, clear = [], True
    for forms in pred_forms:
        if forms[0] in part and forms[0] not in whole:
            rows.append(part[forms[0]])
            clear &= forms[0] not in shared
        else:
            form = next((form for form in forms if form in whole), "")
            rows.append(whole.get(form, NOWHERE))
            clear &= form not in twice
    return _rows(rows), clear


def _index(texts: Iterable[tuple[str, int]]) -> tuple[dict[str, int], set[str]]:
    """Return the first row of each text, and the texts that belong to several rows."""
    at: dict[str, int] = {}
    several: set[str] = set()
    for text, row in texts:
        if at.setdefault(text, row) != row:
            several.add(text)
    return at, several


def _names(images: ImageTable) -> list[str]:
    return [*map(posix, images.names())]


def _bare_paths(images: ImageTable) -> list[str]:
    return [without_suffix(name) for name in _names(images)]


def _folded_paths(images: ImageTable) -> list[str]:
    return [folded(path) for path in _bare_paths(images)]


def _plain_paths(images: ImageTable) -> list[str]:
    return [without_affixes(path) for path in _folded_paths(images)]


def _moved(key: Key, step: int) -> str | None:
    """Write the whole number that a key is, or writes, `step` further on; None for any other key."""
    if isinstance(key, int):
        return str(key + step)
    text = number_text(key)
    return str(int(text) + step) if text is not None and len(text) <= MAX_ID_DIGITS else None


def _rows(rows: Iterable[int]) -> RowArray:
    return np.array(list(rows), dtype=np.int32)


def bare_names(names: Sequence[str]) -> list[str]:
    """Return names without folder and image suffix; with their folders if only these distinguish images."""
    # One look at all of them: there are millions at times, and most are file names alone.
    text = "\0".join(names)
    suffix = shared_suffix(names)
    if "\\" in text or "./" in text:
        paths = [without_suffix(posix(name)) for name in names]
    elif is_image_name(suffix):
        paths = [name[: -len(suffix)] for name in names]
    else:
        paths = [*map(without_suffix, names)]
    stems = [last_part(path) for path in paths] if "/" in text or "\\" in text else paths
    return stems if len(set(stems)) == len(stems) else paths
