"""The sample as benchmarks with files and classes of their own have it; what they have no class for is left out.

CrowdHuman, MOT Challenge and WIDER FACE know one class, which the persons of the scene stand for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from streets import CATEGORIES, Box, Picture
from tool_exports import Files, Pictures

VISDRONE = {"person": 1, "bicycle": 3, "car": 4}
REGION, OTHERS = 0, 11  # of VisDrone's classes: nobody labelled it, nobody judges it


def benchmark_files(stem: str, pictures: Pictures, *, scored: bool = False) -> Files:
    """Return the files of one side of every benchmark."""
    frames = json.dumps([_frame(p, scored=scored) for p in pictures], indent=1)
    folder = "det" if scored else "gt"
    faces = {p.stem: _faces(p, scored=scored) for p in pictures}
    wider = {"widerface/gt.txt": "".join(faces.values()), "retinaface/gt.txt": "".join(map(_landmarked, pictures))}
    if scored:
        wider = {f"widerface/{stem}/{key}.txt": text for key, text in faces.items()}
        wider[f"megadetector/{stem}.json"] = json.dumps(_megadetector(pictures), indent=1) + "\n"
    files = {
        f"bdd100k/{stem}.json": f"{frames}\n",
        f"createml/{stem}.json": json.dumps([_createml(p, scored=scored) for p in pictures], indent=1) + "\n",
        f"crowdhuman/{stem}.odgt": "".join(json.dumps(_crowdhuman(p, scored=scored)) + "\n" for p in pictures),
        f"kerasyolo/{stem}.txt": "".join(_keras_line(p, scored=scored) for p in pictures),
        f"text/{stem}.txt": "".join(_text_lines(p, scored=scored) for p in pictures),
        f"mot/{folder}/{folder}.txt": "".join(_mot_lines(pictures, scored=scored)),
        **{f"visdrone/{stem}/{p.stem}.txt": "".join(_visdrone_lines(p, scored=scored)) for p in pictures},
        **wider,
    }
    return {path: text.encode() for path, text in files.items()}


def _text_lines(p: Picture, *, scored: bool) -> str:
    """Return a line per box as a script would print it: the image, the class, the score, the corners."""
    lines = ""
    for b in p.boxes:
        score = [str(b.score)] if scored else []
        corners = map(str, (b.left, b.top, b.left + b.width, b.top + b.height))
        lines += "" if b.crowd else " ".join((p.file_name, b.name, *score, *corners)) + "\n"
    return lines


def _frame(p: Picture, *, scored: bool) -> dict[str, object]:
    """Return a frame; the last pixel of a box lies in it, and is one less than its right and bottom edge."""
    labels = []
    for at, b in enumerate(p.boxes):
        corners = {"x1": b.left, "y1": b.top, "x2": b.left + b.width - 1, "y2": b.top + b.height - 1}
        label = {"id": str(at), "category": b.name, "attributes": {"crowd": b.crowd}, "box2d": corners}
        labels.append({**label, "score": b.score} if scored else label)
    return {"name": p.file_name, "size": {"width": p.width, "height": p.height}, "labels": labels or None}


def _createml(p: Picture, *, scored: bool) -> dict[str, object]:
    annotations = []
    for b in _without_crowd(p):
        center = {"x": b.left + b.width / 2, "y": b.top + b.height / 2, "width": b.width, "height": b.height}
        annotation = {"label": b.name, "coordinates": center}
        annotations.append({**annotation, "confidence": b.score} if scored else annotation)
    return {"image": p.file_name, "annotations": annotations}


def _crowdhuman(p: Picture, *, scored: bool) -> dict[str, object]:
    persons = [(b, [b.left, b.top, b.width, b.height]) for b in p.boxes if b.name == "person"]
    size = {"ID": p.stem, "width": p.width, "height": p.height}
    if scored:
        return {**size, "dtboxes": [{"box": box, "score": b.score, "tag": 1} for b, box in persons]}
    return {
        **size,
        "gtboxes": [
            {
                "tag": "mask" if b.crowd else "person",
                "fbox": box,
                "vbox": box,
                # As the devkit loads it: a third of the width, and a sixth of the height at the top.
                "hbox": [round(n, 2) for n in (b.left + b.width / 3, b.top, b.width / 3, b.height / 6)],
                "extra": {"ignore": int(b.crowd)},
                "head_attr": {"ignore": int(b.crowd)},
            }
            for b, box in persons
        ],
    }


def _keras_line(p: Picture, *, scored: bool) -> str:
    boxes = []
    for b in _without_crowd(p):
        numbers = [b.left, b.top, b.left + b.width, b.top + b.height, list(CATEGORIES).index(b.name)]
        boxes.append(",".join(f"{number:.10g}" for number in [*numbers, *([b.score] if scored else [])]))
    return " ".join([f"JPEGImages/{p.file_name}", *boxes]) + "\n"


def _mot_lines(pictures: Pictures, *, scored: bool) -> Iterable[str]:
    for frame, p in enumerate(pictures, start=1):
        persons = [b for b in _without_crowd(p) if b.name == "person"]
        for identity, b in enumerate(persons, start=1):
            head = f"{frame},{-1 if scored else identity},{_xywh(b)}"
            yield f"{head},{b.score:.10g}\n" if scored else f"{head},1,1,1\n"


def _visdrone_lines(p: Picture, *, scored: bool) -> Iterable[str]:
    for b in p.boxes:
        if b.crowd:
            yield f"{_xywh(b)},0,{REGION},0,0\n"
        elif scored:
            yield f"{_xywh(b)},{b.score:.10g},{VISDRONE.get(b.name, OTHERS)},-1,-1\n"
        else:
            yield f"{_xywh(b)},1,{VISDRONE.get(b.name, OTHERS)},0,0\n"


def _faces(p: Picture, *, scored: bool) -> str:
    persons = [b for b in _without_crowd(p) if b.name == "person"]
    rows = [f"{_xywh(b).replace(',', ' ')} {f'{b.score:.10g}' if scored else '0 0 0 0 0 0'}\n" for b in persons]
    if not scored and not rows:
        rows = ["0 0 0 0 0 0 0 0 0 0\n"]
    return f"{p.stem if scored else p.file_name}\n{len(persons)}\n{''.join(rows)}"


def _landmarked(p: Picture) -> str:
    """Return the faces of an image as RetinaFace's label.txt has them, their landmarks unknown."""
    persons = [b for b in _without_crowd(p) if b.name == "person"]
    return f"# {p.file_name}\n" + "".join(f"{_xywh(b).replace(',', ' ')}{' -1.0' * 15} 0.5\n" for b in persons)


def _megadetector(pictures: Pictures) -> dict[str, object]:
    """Return results with the images first, as the detector's own script writes them; boxes are fractions."""
    images = []
    for p in pictures:
        detections = [
            {
                "category": str(CATEGORIES[b.name]),
                "conf": b.score,
                "bbox": [b.left / p.width, b.top / p.height, b.width / p.width, b.height / p.height],
            }
            for b in p.boxes
        ]
        images.append({"file": p.file_name, "detections": detections})
    categories = {str(number): name for name, number in CATEGORIES.items()}
    return {"images": images, "detection_categories": categories, "info": {"format_version": "1.4"}}


def _xywh(box: Box) -> str:
    return ",".join(f"{number:.10g}" for number in (box.left, box.top, box.width, box.height))


def _without_crowd(p: Picture) -> Sequence[Box]:
    return [box for box in p.boxes if not box.crowd]
