"""The export of docs/differs.md runs in a stand-in of FiftyOne; its files give numbers known by hand."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_scene import AP, AP50, CLASSES, SCENE, coco_document
from test_readme import FRAMEWORKS, ROOT, read_blocks

from jaccard_eval import evaluate

PAGE = "docs/differs.md"


class Dataset:
    """As much of a data set as the page uses; categories are numbered from 1, as FiftyOne does since 1.0.1."""

    def distinct(self, path: str) -> list[str]:
        assert path == "ground_truth.detections.label"
        return CLASSES

    def export(
        self, *, dataset_type: str, labels_path: str, label_field: str, classes: list[str], export_media: bool
    ) -> None:
        assert (dataset_type, export_media) == ("coco", False)
        document = coco_document([1 + place for place in range(len(classes))])
        if label_field == "predictions":
            found = [(image, *row) for image in SCENE for row in image.found]
            document["annotations"] = [
                {
                    "id": number,
                    "image_id": image.key,
                    "category_id": 1 + label,
                    "bbox": [left, top, right - left, bottom - top],
                    "score": score,
                }
                for number, (image, label, (left, top, right, bottom), score) in enumerate(found, start=1)
            ]
        Path(labels_path).write_text(json.dumps(document))


def test_the_files_of_an_export_are_evaluated_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (export,) = [block for block in read_blocks((ROOT / PAGE).read_text(), PAGE) if FRAMEWORKS.search(block.text)]
    types: Any = SimpleNamespace(COCODetectionDataset="coco")
    monkeypatch.setitem(sys.modules, "fiftyone", SimpleNamespace(types=types, load_dataset=lambda _: Dataset()))
    monkeypatch.chdir(tmp_path)
    exec(compile(export.text, PAGE, "exec"), {"__name__": "page"})
    result = evaluate("gt.json", "pred.json")
    assert (result["AP"], result["AP50"]) == (pytest.approx(AP), pytest.approx(AP50))
