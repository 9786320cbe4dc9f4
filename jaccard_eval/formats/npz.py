"""NumPy archives: arrays of boxes, or the raw output of a network's grid, as Python programs have them in memory.

Boxes: ``boxes`` (n, 4), ``labels`` (n,) and ``image`` (n,), with ``scores`` (n,) for predictions. Labels and images
are texts or whole numbers. ``names`` (k,) names numbered classes; ``images`` (m,) lists all images, texts that
``image`` repeats or counts from 0; ``sizes`` (m, 2) has their width and height; ``encoding`` is "xyxy" by
default.

Masks: ``masks`` (n, height, width) of booleans, or 0 and 1, which are read one by one; or (n,) compressed strings as
pycocotools has them in ``counts``, with ``mask_sizes`` (n, 2) or (2,), height and width. Boxes may be missing then.

Maps: ``y`` or another of `reading.npz.STACKS`, (n, height, width) or with channels, whose values are objects.

Raw output: ``raw`` (m, anchors, rows, columns, 4 + 1 + classes), ``anchors``, ``stride`` and perhaps ``formula``, as
`jaccard_eval.decode_grid` takes them, with ``images`` (m,). Several heads are ``raw_0``, ``anchors_0``, ``stride_0``
and so on. Boxes are pixels of the network's input; each has its best class.
"""

from __future__ import annotations

import io
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jaccard_eval.atomic import replace_file
from jaccard_eval.data.boxtable import FloatArray
from jaccard_eval.data.dataset import Dataset, Key
from jaccard_eval.data.known_protocols import MASKS
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import FindingLog, Severity, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.formats import Format
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import ReadOptions
from jaccard_eval.patterns import pattern
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.rawboxes import Keys, RawBoxes
from jaccard_eval.text import quoted_value

if TYPE_CHECKING:
    from jaccard_eval.reading.npz import Archive
    from jaccard_eval.similarity.masks import Masks

FORMAT = Format(
    name="npz",
    summary="NumPy archive: arrays of boxes, masks (pixels or RLE), or raw grid outputs of a YOLO head",
    source="https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
    example="""numpy.savez("pred.npz", boxes=[[10, 20, 40, 60]], scores=[0.9], labels=["dog"], image=["a.jpg"])
""",
    carries=("images", "sizes", "names", "scores"),
    suffixes=(".npz",),
    shapes=("segm",),
    reads={"bbox": "boxes", "segm": "masks: pixels or RLE; y: maps with a value per object"},
)

_RLE = "Save counts as pycocotools.mask.encode gives them, and mask_sizes as height and width."
RAW_SCORE_MIN = 0.001  # below which Ultralytics sets decoded boxes aside when it validates

_HEAD = pattern(r"raw(_\w+)?")
_MASKS, _MASK_SIZES = "masks", "mask_sizes"
_BOX_ARRAYS = {_MASK_SIZES, "boxes", "scores", "labels", "image", "images", "sizes", "names", "encoding"}
_RAW_ARRAYS = ("raw", "anchors", "stride", "formula")
_ZIP_MAGIC = b"PK\x03\x04"
_NAME_LENGTH, _NAME = slice(26, 28), 30  # of the first entry, by the header of a zip archive


def looks_like(peek: Peek) -> Likeness | None:
    """Rate a zip archive by its first entry, which is an array."""
    length = int.from_bytes(peek.head[_NAME_LENGTH], "little")
    is_array = peek.head[_NAME : _NAME + length].endswith(b".npy")
    return Likeness.NAMED if peek.head.startswith(_ZIP_MAGIC) and is_array else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the boxes of a NumPy archive to the draft; arrays of Python objects, which are pickles, are never loaded."""
    from jaccard_eval.reading.npz import load_archive  # not needed to look for a format

    # Masks are large, and read one by one where they are asked for.
    archive = load_archive(path, draft.findings, besides=_MASKS)
    if archive.stack:
        from jaccard_eval.reading.labelmaps import add_stacks

        add_stacks([(path, archive.stack, "")], draft)
        _note_unused(archive.names - {archive.stack}, draft)
        return
    heads = [found[1] or "" for name in archive.arrays if (found := _HEAD.fullmatch(name))]
    if heads and "boxes" not in archive.arrays:
        _add_raw(archive, sorted(heads), draft, options)
        used = {"images", "sizes", "names", *(f"{name}{head}" for name in _RAW_ARRAYS for head in heads)}
    else:
        _add_boxes(archive, draft, options, path if options.iou_type in MASKS else None)
        used = _BOX_ARRAYS
    _note_unused(archive.arrays.keys() - used, draft)


def _note_unused(names: Set[str], draft: Draft) -> None:
    if names:
        detail = f"arrays ignored: {', '.join(map(quoted_value, sorted(names)))}"
        draft.findings.note("npz-unused", Where(draft.path), detail)


def iou_types(peek: Peek) -> set[str]:
    """Return what there are arrays of."""
    from jaccard_eval.reading.npz import array_names, stack_in

    names = array_names(peek.path)
    if stack_in(names):
        return {"segm"}
    found = {kind for name, kind in (("boxes", "bbox"), (_MASKS, "segm")) if name in names}
    return found or {"bbox"}


def write(dataset: Dataset, path: Path, findings: FindingLog) -> None:
    """Write arrays of boxes, and of masks as compressed strings."""
    from jaccard_eval.reading import writing
    from jaccard_eval.similarity.runs import strings_of_runs

    boxes, images, labels = dataset.table, dataset.images, dataset.labels
    sized = bool(np.isfinite(images.sizes).all())
    carried = ("shapes", "images", "names", *(("sizes",) if sized else ()))
    writing.report_losses(dataset, path, findings, carried)
    names = [images.name(row) for row in range(len(images))]
    writing.report_escaped([*names, *labels.names], path, findings)
    masks = None if boxes.shapes is None else writing.masks_in_images(dataset, path, "npz", findings)
    findings.raise_errors()
    listed = np.array([writing.encodable(name) for name in names], dtype=np.str_)
    classes = np.array([writing.encodable(name) for name in labels.names], dtype=np.str_)
    # As texts, classes come back in the order of their names, and only those that boxes have.
    are_texts = len(np.unique(boxes.label)) == len(classes) and sorted(labels.keys, key=str) == classes.tolist()
    arrays: dict[str, Any] = {
        "boxes": boxes.xywh,
        "encoding": np.array("xywh" if dataset.units == "px" else "xywh_norm"),
        "image": listed[boxes.image] if len(listed) else listed,
        "labels": classes[boxes.label] if are_texts else boxes.label.astype(np.int64),
        **({} if are_texts else {"names": classes}),
        **({} if boxes.score is None else {"scores": boxes.score}),
        **({"images": listed} if images.listed or sized else {}),
        **({"sizes": images.sizes} if sized else {}),
    }
    if masks is not None:
        texts = strings_of_runs(masks.runs, masks.sizes.prod(axis=1))
        arrays |= {_MASKS: np.array([text.decode("ascii") for text in texts], dtype=np.str_), _MASK_SIZES: masks.sizes}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    replace_file(path, buffer.getvalue())


def write_example(path: Path) -> None:
    """Write the example, which is code here and not a text to be read."""
    np.savez(path, boxes=[[10, 20, 40, 60]], scores=[0.9], labels=["dog"], image=["a.jpg"])


def _add_boxes(archive: Archive, draft: Draft, options: ReadOptions, masks: Path | None) -> None:
    """Add boxes, with the masks of the file where they are asked for."""
    from jaccard_eval.similarity.encoding import BOX_ENCODINGS, NORM_SUFFIX, encode
    from jaccard_eval.similarity.masks import Outlines

    encoding = archive.text("encoding", "xyxy", BOX_ENCODINGS)
    shapes = None if masks is None else _read_masks(masks, archive)
    if shapes is not None and "boxes" not in archive.arrays:
        encoding = "xyxy"
        x, y, width, height = shapes.bounds().T
        coords: FloatArray | None = encode(x, y, x + width, y + height, encoding).astype(np.float64)
    else:
        coords = archive.numbers("boxes", (None, 4))
    n = None if coords is None else len(coords)
    if shapes is not None and len(shapes) != n and n is not None:
        archive.fault(_MASKS, f"has {len(shapes)} masks, and there are {n} boxes", "Save one mask per box.")
    labels = archive.keys("labels", n)
    images = _image_column(archive, n)
    score = archive.numbers("scores", (n,)) if "scores" in archive.arrays else None
    _add_images(archive, draft)
    _add_classes(archive, draft, options)
    draft.findings.raise_errors()
    if coords is None or labels is None or images is None:
        return
    if options.role == "gt" and score is not None:
        draft.mention_scores(len(score), archive.where("scores"))
    draft.details.append(f"boxes {encoding}" if "boxes" in archive.arrays else "boxes around masks")
    draft.add_boxes(
        RawBoxes(
            image=images,
            label=labels,
            coords=coords,
            encoding=encoding.removesuffix(NORM_SUFFIX),
            units="norm" if encoding.endswith(NORM_SUFFIX) else "px",
            score=score,
            shapes=None if shapes is None else Outlines.of_masks(shapes, np.ones(len(shapes), dtype=np.bool_)),
            place=lambda row: archive.where("boxes", row),
        )
    )


def _read_masks(path: Path, archive: Archive) -> Masks | None:
    """Return the masks of an archive; None where they cannot be used."""
    from jaccard_eval.reading.npz import array_names, opened_entries
    from jaccard_eval.similarity.masks import Masks
    from jaccard_eval.similarity.runs import runs_of_pixels

    if _MASKS not in array_names(path):
        fix = Fix.missing("Save masks (n, height, width), or compare boxes with {iou_type}.", iou_type="bbox")
        archive.fault(_MASKS, "the array is missing", fix)
        return None
    with opened_entries(path, _MASKS) as (shape, dtype, entries):
        if dtype.kind in "US" and len(shape) == 1:
            texts: list[Any] = list(entries)
            return _decoded([text.encode() if isinstance(text, str) else text for text in texts], archive)
        if dtype.kind not in "biuf" or len(shape) != 3:
            expected = "(n, height, width) of booleans, or (n,) compressed strings of RLE"
            archive.fault(_MASKS, f"holds {dtype} of shape {shape}; expected {expected}", "Save one mask per box.")
            return None
        rows: list[int] = []  # of masks that hold other values
        runs = runs_of_pixels((_plain(mask, row, rows), 0, 0, shape[1]) for row, mask in enumerate(entries))
    if rows:
        detail = f"holds other values than 0 and 1 in {len(rows):,} of {shape[0]:,} masks, first in {_MASKS}[{rows[0]}]"
        archive.fault(_MASKS, detail, "Threshold the masks first, as in masks > 0.5.")
        return None
    return Masks(runs, np.full((shape[0], 2), shape[1:]))


def _plain(mask: npt.NDArray[np.generic], row: int, wrong: list[int]) -> npt.NDArray[np.bool_]:
    pixels: npt.NDArray[np.bool_] = mask != 0
    if mask.dtype != np.bool_ and not np.array_equal(mask, pixels):
        wrong.append(row)
    return pixels


def _decoded(strings: list[bytes], archive: Archive) -> Masks | None:
    """Return the masks of compressed strings."""
    from jaccard_eval.reading.outlines import OutlineDraft

    n = len(strings)
    one = archive.arrays[_MASK_SIZES].ndim == 1 if _MASK_SIZES in archive.arrays else False
    sizes = archive.numbers(_MASK_SIZES, (2,) if one else (n, 2))
    if sizes is None:
        return None
    masks = OutlineDraft()
    for row, (text, size) in enumerate(zip(strings, np.broadcast_to(sizes, (n, 2)).tolist(), strict=True)):
        problem = masks.add({"size": [int(side) if side == side // 1 else side for side in size], "counts": text})
        if problem:
            masks.add_polygons([])
            archive.findings.error("npz-array", archive.where(_MASKS, row), problem, fix=_RLE)
    outlines, problems = masks.build()
    for row, problem in problems:
        archive.findings.error("npz-array", archive.where(_MASKS, row), problem, fix=_RLE)
    return outlines.masks


def _image_column(archive: Archive, n: int | None) -> Keys | None:
    """Return the image of each box; whole numbers count the images that are listed as texts."""
    # A column of texts names images by itself; numbers may be ids, or positions where images are listed as texts.
    column = archive.keys("image", n)
    if not isinstance(column, np.ndarray) or "images" not in archive.arrays:
        return column
    listed = archive.keys("images")
    if listed is None or isinstance(listed, np.ndarray):
        return column
    outside = np.flatnonzero((column < 0) | (column >= len(listed)))
    archive.findings.add_rows(
        Severity.ERROR,
        "npz-array",
        outside,
        lambda row: (archive.where("image", row), f"is {column[row]}, but {len(listed)} images are listed"),
        fix="Count them from 0.",
    )
    return None if len(outside) else [listed[row] for row in column]


def _add_images(archive: Archive, draft: Draft) -> None:
    if "images" not in archive.arrays:
        return
    listed = archive.keys("images")
    sizes = None
    if "sizes" in archive.arrays and listed is not None:
        sizes = archive.numbers("sizes", (len(listed), 2))
    if listed is not None:
        draft.set_images(_key_list(listed), sizes=sizes)


def _add_classes(archive: Archive, draft: Draft, options: ReadOptions) -> None:
    """Name numbered classes: by the user's list, else by that of the archive."""
    labels = archive.arrays.get("labels")
    if labels is not None and labels.dtype.kind == "U":
        names = sorted(set(labels.ravel().tolist()))
        draft.set_classes(names, names)
    elif options.names is not None or "names" in archive.arrays:
        given = options.names or archive.keys("names")
        if given is not None:
            draft.set_classes(range(len(given)), [str(name) for name in given])


def _key_list(keys: Keys) -> list[Key]:
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


@dataclass(frozen=True, slots=True)
class _Head:
    """Boxes (k, 4) of one head, with image, class and score of each (k,), and how many were ignored."""

    image: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    score: FloatArray
    coords: FloatArray
    dropped: int


def _add_raw(archive: Archive, heads: list[str], draft: Draft, options: ReadOptions) -> None:
    if options.role == "gt":
        archive.fault(f"raw{heads[0]}", "is the raw output of a network, not ground truth", "Swap the two sides?")
    images = archive.keys("images")
    decoded = [_decode(archive, head, None if images is None else len(images)) for head in heads]
    _add_images(archive, draft)
    _add_classes(archive, draft, options)
    draft.findings.raise_errors()
    found = [head for head in decoded if head is not None]
    if images is None or not found:
        return
    image = np.concatenate([head.image for head in found])
    dropped = sum(head.dropped for head in found)
    if dropped:
        draft.ignored["npz-score-low"] += dropped
        detail = f"ignored {dropped:,} boxes with a score below {RAW_SCORE_MIN:g}"
        draft.findings.note("npz-score-low", archive.where(f"raw{heads[0]}"), detail)
    draft.details.append(f"raw output of {len(heads)} heads, decoded; pixels of the network's input")
    listed = _key_list(images)
    draft.add_boxes(
        RawBoxes(
            image=[listed[row] for row in image.tolist()],
            label=np.concatenate([head.label for head in found]),
            coords=np.concatenate([head.coords for head in found]),
            encoding="xyxy",
            units="px",
            score=np.concatenate([head.score for head in found]),
            place=lambda row: archive.where("raw", int(image[row])),
        )
    )


def _decode(archive: Archive, head: str, n_images: int | None) -> _Head | None:
    """Decode one head: the best class of every box whose score is worth keeping."""
    from jaccard_eval.similarity.encoding import GRID_FORMULAS, decode_grid

    names = [f"{name}{head}" for name in _RAW_ARRAYS]
    raw = archive.numbers(names[0], (n_images, None, None, None, None))
    anchors, stride = archive.numbers(names[1], (None, 2)), archive.numbers(names[2], ())
    formula = archive.text(names[3], GRID_FORMULAS[0], GRID_FORMULAS)
    if raw is None or anchors is None or stride is None:
        return None
    try:
        boxes, scores = decode_grid(raw, anchors, float(stride), formula=formula)
    except UsageError as error:
        archive.fault(names[0], f"cannot be decoded: {error}", "Save the output of the network unchanged.")
        return None
    label, score = scores.argmax(axis=-1), scores.max(axis=-1, initial=0.0)  # (m, cells)
    image, cell = np.nonzero(score >= RAW_SCORE_MIN)
    return _Head(
        image=image,
        label=label[image, cell],
        score=score[image, cell].astype(np.float64),
        coords=boxes[image, cell].astype(np.float64),
        dropped=score.size - len(image),
    )
