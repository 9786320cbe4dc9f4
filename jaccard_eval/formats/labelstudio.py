"""Label Studio: a list of tasks with annotations and predictions, in per cent of the picture; JSON and JSON-MIN."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import Format, ReadOptions
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.json.documents import looks_like

FORMAT = Format(
    name="labelstudio",
    summary="Label Studio JSON or JSON-MIN: the latest annotation of each task, or its latest prediction",
    source="https://labelstud.io/guide/export.html#Label-Studio-JSON-format-of-annotated-tasks",
    example="""[
  {
    "id": 1,
    "data": {"image": "/data/upload/1/ab12cd34-street.jpg"},
    "annotations": [
      {
        "was_cancelled": false,
        "result": [
          {
            "type": "rectanglelabels", "original_width": 640, "original_height": 480, "image_rotation": 0,
            "value": {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0, "rectanglelabels": ["dog"]}
          }
        ]
      }
    ],
    "predictions": []
  }
]
""",
    carries=("images", "sizes", "scores"),
    suffixes=(".json",),
)


def sniff(path: Path) -> bool:
    """Whether the file is a list of tasks."""
    return not files.is_folder(path) and looks_like(path, _is_task_list)


def read(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, classes and boxes of an export to the draft.

    Raises
    ------
    DataError
        When the file cannot be read; problems of its tasks are among the draft's findings.
    """
    from jaccard_eval.formats._labelstudio.reader import read_tasks  # not needed to look for a format

    read_tasks(path, draft, options)


def _is_task_list(_outer: set[str], inner: set[str], head: bytes) -> bool:
    is_labelled = b'"rectanglelabels"' in head or b'"labels"' in head
    is_min = is_labelled and b'"original_width"' in head
    return ("data" in inner and bool(inner & {"annotations", "predictions"})) or (bool(inner) and is_min)
