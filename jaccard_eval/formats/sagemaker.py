"""SageMaker Ground Truth and Rekognition: a manifest of JSON lines, one per picture, boxes under the job's name."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

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


def sniff(path: Path) -> bool:
    """Whether the first line names its picture as a manifest does."""
    return not files.is_folder(path) and looks_like(path, lambda outer, _inner, _head: _IMAGE in outer)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of a manifest to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its lines are among the draft's findings.
    """
    from jaccard_eval.formats._sagemaker.reader import read_manifest  # not needed to look for a format

    read_manifest(path, draft, options)
