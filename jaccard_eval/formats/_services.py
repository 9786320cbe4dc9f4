"""What services draw in ways of their own: shares of the sides, images in base64, tracks over the frames of a video."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaccard_eval.data.dataset import MAX_IMAGE_SIDE
from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.reading.drawn import turned_corners
from jaccard_eval.reading.json import is_finite_number
from jaccard_eval.reading.labelmaps import EncodedImage, edges_of_rows
from jaccard_eval.reading.outlines import OutlineDraft, filled_ring
from jaccard_eval.reading.records import Record
from jaccard_eval.similarity.runs import IntArray, Runs, decode_strings, runs_of_pixels, without_empty_runs

Pixels = tuple[IntArray, tuple[int, int]]  # edges of the runs of a mask, height and width of the image
PIXELS = "pixels"  # the field in which an object then has them
_SHAPES = {"bounding_box": "boundingBox", "polygon": "polygon", "bitmask": "bitmask"}
_ROTATED = "rotatableBoundingBox"
_FIX = "Export it again."


def of_encord(entry: Record, size: tuple[float, float]) -> Record:
    """Return an object with its shape in pixels: Encord writes shares, and bitmasks row by row."""
    values = dict(entry.values)
    if not all(map(math.isfinite, size)):
        shape = str(values.get("shape"))
        entry.error("size-unknown", _SHAPES.get(shape, shape), "is a share of an image whose size is not written", _FIX)
        return entry
    width, height = size
    box: Any = values.get("boundingBox") or values.get(_ROTATED)
    sides: list[Any] = [box.get(name) for name in "xywh"] if isinstance(box, dict) else []
    if sides and all(map(is_finite_number, sides)):
        scaled = [share * side for share, side in zip(sides, (width, height) * 2, strict=True)]
        turn = box.get("theta")
        if is_finite_number(turn) and turn % 360:
            values["polygon"] = turned_corners(scaled, turn)
        else:
            values["bbox"] = scaled
    rings = _rings(values.get("polygons"), values.get("polygon"))
    if rings and "bbox" not in values and isinstance(values.get("polygon"), dict | None):
        values["polygon"], values["polygons"] = [_scaled(ring, size) for ring in rings], None
    mask = values.get("bitmask")
    if isinstance(mask, dict):
        crop = [mask.get(name) for name in ("left", "top", "width", "height")]
        counts, _, wrong = decode_strings([str(mask.get("rleString")).encode("utf-8", "surrogatepass")])
        found: IntArray | str = "has no rleString with left, top, width and height in whole numbers"
        if all(isinstance(side, int) for side in crop) and not wrong.any():
            found = edges_of_rows(counts.tolist(), crop, (int(height), int(width)))  # type: ignore[arg-type]
        if isinstance(found, str):
            entry.error("segmentation-invalid", "bitmask", found, _FIX)
        else:
            values[PIXELS] = (found, (int(height), int(width)))
    return replace(entry, values=values)


def _rings(nested: Any, by_number: Any) -> list[list[float]]:
    """Return the outlines of polygons, each with its holes behind it, or the one whose points have numbers."""
    if isinstance(nested, list) and all(isinstance(rings, list) and rings for rings in nested):
        return [_filled(rings) for rings in nested if isinstance(rings[0], list)]
    points = [*by_number.values()] if isinstance(by_number, dict) else []
    return [[number for point in points for number in (point.get("x"), point.get("y"))]] if points else []


def _filled(rings: list[Any]) -> list[Any]:
    """Return an outline with its holes cut out; what is none stays as it is, for the reader of polygons to refuse."""
    are_rings = all(
        isinstance(ring, list) and len(ring) % 2 == 0 and all(map(is_finite_number, ring)) for ring in rings
    )
    return filled_ring([[*zip(ring[::2], ring[1::2], strict=True)] for ring in rings])[0] if are_rings else rings[0]


def _scaled(ring: Sequence[Any], size: tuple[float, float]) -> list[Any]:
    return [value * size[at % 2] if is_finite_number(value) else value for at, value in enumerate(ring)]


def of_dataloop(entry: Record, size: tuple[float, float]) -> Record:
    """Return an object with a field for the shape that ``coordinates`` are of: two corners, or a PNG image."""
    coordinates, kind = entry.values.get("coordinates"), entry.values.get("type")
    values = {**entry.values, "type": None, "kind": kind}
    if kind == "binary":
        text = coordinates.get("data") if isinstance(coordinates, dict) else coordinates
        values["coordinates"] = None
        try:
            data = base64.b64decode(str(text).rpartition(",")[2], validate=True)
            pixels = EncodedImage((data, entry.where)).decode_channels()[..., 3] > 127  # as its own library does
        except (binascii.Error, ValueError, DataError):
            entry.error("segmentation-invalid", "coordinates", "is not a PNG image in base64", _FIX)
        else:
            height, width = pixels.shape
            values[PIXELS] = (runs_of_pixels([(pixels, 0, 0, height)]).edges, (height, width))
    elif kind == "box" and isinstance(coordinates, list) and len(coordinates) == 2:
        ends: list[list[Any]] = [[end.get(axis) for end in coordinates if isinstance(end, dict)] for axis in "xy"]
        if all(len(axis) == 2 and all(map(is_finite_number, axis)) for axis in ends):
            (left, right), (top, bottom) = map(sorted, ends)
            values |= {"coordinates": None, "bbox": [left, top, right - left, bottom - top]}
    elif kind != "segment":
        values["coordinates"] = None
    return replace(entry, values=values)


def videos(document: Any, where: Where, findings: FindingLog) -> Iterator[tuple[str, Record]]:
    """Yield each video as an image whose frames lie side by side, with its tracks: of ground truth, or of results.

    The pixels of a track are then those of all of its frames, and the IoU of two tracks is that of YouTube-VIS: what
    they share in all frames, by what either has in any.
    """
    given: list[Record] = []
    if isinstance(document, dict):
        outer = Record(document, where, findings)
        given, listed = [*outer.records("videos")], [*outer.records("annotations")]
    else:
        listed = [*Record.list_of(document, where, findings)]
    by_video: dict[str, list[Record]] = {str(video.values.get("id")): [] for video in given}
    for track in listed:
        by_video.setdefault(str(track.values.get("video_id")), []).append(track)
    sizes = {str(video.values.get("id")): (video.values.get("height"), video.values.get("width")) for video in given}
    for key, tracks in by_video.items():
        found, wide = [], 0.0
        for track in tracks:
            one, size = _track(track, sizes.get(key))
            found.append({**track.values, PIXELS: one, "segmentation": None, "segmentations": None})
            wide, high = size[1], size[0]
        values = {"found": found, **({"width": wide, "height": high} if found else {})}
        yield key, Record(values, replace(where, record=f"video {key}"), findings)


def _track(track: Record, size: tuple[Any, Any] | None) -> tuple[Pixels | None, tuple[int, int]]:
    """Return the pixels of a track in the frames side by side, and their height and width; none where it is damaged."""
    frames = track.values.get("segmentations")
    frames = frames if isinstance(frames, list) else []
    masks, at = OutlineDraft(), [row for row, mask in enumerate(frames) if mask is not None]
    problems = [problem for row in at if (problem := masks.add(frames[row]))]
    sides = next((frames[row].get("size") for row in at if isinstance(frames[row], dict)), None) or size
    if not problems and not (isinstance(sides, list | tuple) and len(sides) == 2 and all(map(_is_side, sides))):
        problems.append("polygons need the height and width of the video")
    if not problems:
        height, width = sides  # type: ignore[misc]
        outlines, wrong = masks.build()
        problems += [problem for _, problem in wrong]
        sized = outlines.in_images(np.full((len(at), 2), (height, width)))
        if (sized.sizes != (height, width)).any():
            problems.append("masks of its frames have several sizes")
    if problems:
        track.error("segmentation-invalid", "segmentations", problems[0], _FIX)
        return None, (1, 1)
    start = np.array(at, dtype=np.int64) * height * width  # columns come first
    edges = sized.runs.edges + start[sized.runs.owners()]
    joined = without_empty_runs(Runs(edges, np.array([0, len(edges)])))
    return (joined.edges, (height, width * len(frames))), (height, width * len(frames))


def _is_side(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_IMAGE_SIDE
