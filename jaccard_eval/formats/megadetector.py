"""MegaDetector, of camera traps, and the tools around it: JSON of images with detections, boxes as fractions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from jaccard_eval.findings import Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json import parse_json
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import Record, RecordCollector
from jaccard_eval.text import pluralise, quoted_value

FORMAT = Format(
    name="megadetector",
    summary="MegaDetector JSON (AddaxAI, Timelapse): images with detections, boxes as left, top and size in fractions",
    source="https://lila.science/megadetector-output-format",
    example="""{
  "info": {"format_version": "1.4", "detector": "md_v5a.0.0.pt"},
  "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
  "images": [
    {"file": "north/0001.jpg", "detections": [{"category": "1", "conf": 0.92, "bbox": [0.1, 0.25, 0.2, 0.3]}]},
    {"file": "north/0002.jpg", "detections": []}
  ]
}
""",
    carries=("images", "names", "scores"),
    suffixes=(".json",),
)

_CATEGORIES = "detection_categories"


def looks_like(peek: Peek) -> Likeness | None:
    """Return how sure it is that a file holds images with a file and detections."""
    if "images" not in peek.top_keys:
        return None
    # The categories stand behind the images in what its own script writes, out of sight of the first kilobytes.
    has_entries = b'"file"' in peek.head and b'"detections"' in peek.head
    return Likeness.NAMED if _CATEGORIES in peek.top_keys or has_entries else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a file of results to the draft."""
    collector = RecordCollector(draft)
    document = Record.of(parse_json(path, files.read_text(path)), Where(str(path)), draft.findings)
    categories = document.record(_CATEGORIES)
    unlisted: Counter[str] = Counter()
    failed: list[str] = []
    for entry in document.records("images"):
        image = entry.text("file").replace("\\", "/")
        collector.add_image(image)
        if entry.values.get("failure") is not None:
            failed.append(image)
            continue
        for box in entry.records("detections"):
            if box.has("frame_number"):
                fix = "Run the detector on the frames as images."
                box.error("layout", "frame_number", "detections in video frames cannot be read", fix=fix)
                continue
            category = box.text("category")
            if category and not categories.has(category):
                unlisted[category] += 1
            elif category:
                coords = box.numbers("bbox", 4)
                collector.add_box(image, categories.text(category), coords, box.where, score=box.number("conf"))
    if unlisted:
        draft.ignored["class-unlisted"] += unlisted.total()
        counts = ", ".join(f"{count:,} of {quoted_value(category)}" for category, count in sorted(unlisted.items()))
        detail = f"ignored detections of categories that are not listed, as the format defines: {counts}"
        draft.findings.warning("class-unlisted", Where(str(path), record=_CATEGORIES), detail)
    if failed:
        detail = f"the detector failed on {pluralise(len(failed), 'image')}, counted as images without detections"
        fix = "Run the detector on them again."
        draft.findings.warning("image-failed", Where(str(path)), f"{detail}; first: {quoted_value(failed[0])}", fix=fix)
    collector.to_draft(encoding="xywh", units="norm", listed=True)
