"""SageMaker Ground Truth and Rekognition: a manifest of JSON lines, one per image, boxes under the job's name."""

from __future__ import annotations

import math
from pathlib import Path

from jaccard_eval.findings import Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Likeness, Peek
from jaccard_eval.reading.records import UNKNOWN_SIZE, Record, RecordCollector, line_records
from jaccard_eval.text import quoted_value

FORMAT = Format(
    name="sagemaker",
    summary="SageMaker Ground Truth or Rekognition manifest: JSON lines with source-ref and the boxes of a job",
    source="https://docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html#sms-output-box",
    example='{"source-ref": "s3://bucket/street.jpg", "bounding-box": {"image_size": [{"width": 640, "height": 480, '
    '"depth": 3}], "annotations": [{"class_id": 0, "left": 10, "top": 20, "width": 100, "height": 200}]}, '
    '"bounding-box-metadata": {"objects": [{"confidence": 0.9}], "class-map": {"0": "dog"}, '
    '"type": "groundtruth/object-detection"}}\n',
    carries=("images", "sizes", "names", "scores"),
    suffixes=(".manifest", ".jsonl"),
)

_IMAGE = "source-ref"
_METADATA = "-metadata"
_TYPE = "groundtruth/object-detection"
_SIDES = ("left", "top", "width", "height")


def looks_like(peek: Peek) -> Likeness | None:
    """Rate JSON lines by the key that names the image."""
    return Likeness.NAMED if _IMAGE in peek.top_keys else None


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a manifest to the draft."""
    collector = RecordCollector(draft)
    unlabelled: list[Where] = []
    for line in line_records(path, files.read_text(path), draft):
        # The job's name is that of its field with boxes; its metadata has the kind of the job.
        about = {name: line.values.get(f"{name}{_METADATA}") for name in line.values}
        jobs = [name for name, kind in about.items() if isinstance(kind, dict) and kind.get("type") == _TYPE]
        if len(jobs) > 1:
            detail = f"boxes of several jobs: {' and '.join(map(quoted_value, jobs))}"
            line.error("layout", jobs[1], detail, "Keep those of one job in the manifest.")
        if jobs:
            _add_boxes(collector, line, jobs[0])
        else:
            collector.add_image(line.text(_IMAGE))
            unlabelled.append(line.where)
    collector.to_draft(encoding="xywh", listed=True)
    draft.findings.add_rows(
        Severity.WARNING,
        "image-without-label",
        range(len(unlabelled)),
        lambda row: (unlabelled[row], "has no boxes of a job"),
        fix="Drop the lines of images that were not labelled, or for which the job failed.",
        summary=f"{len(unlabelled):,} images without boxes of a job are counted as images without objects",
    )


def _add_boxes(collector: RecordCollector, line: Record, job: str) -> None:
    image = line.text(_IMAGE)
    boxes, metadata = line.record(job), line.record(f"{job}{_METADATA}")
    sizes = list(boxes.records("image_size")) if boxes.has("image_size") else []
    size = (sizes[0].side("width"), sizes[0].side("height")) if sizes else UNKNOWN_SIZE
    collector.add_image(image, size=size)
    # Objects of the metadata and annotations go together by position; people's boxes may have none.
    objects = list(metadata.records("objects")) if metadata.has("objects") else []
    for at, box in enumerate(boxes.records("annotations")):
        label = _class_name(box, metadata)
        coords = [box.number(side) for side in _SIDES]
        score = objects[at].optional("confidence") if at < len(objects) else math.nan
        collector.add_box(image, label, coords, box.where, score=score)


def _class_name(box: Record, metadata: Record) -> str:
    """Return the name of a box's class; its number where the map has no name for it."""
    number = box.number("class_id")
    if math.isnan(number):
        return ""
    key = f"{number:g}"
    names = metadata.record("class-map") if metadata.has("class-map") else None
    return key if names is None or not names.has(key) else names.text(key)
