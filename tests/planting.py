"""Good pairs of COCO files to plant mistakes into, and the command line that is to name and mend them."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.cli.run import run

SETS = {  # ground truth, predictions
    "sample": ("coco/gt.json", "coco/better.json"),
    "cocoapi": (
        "faster-coco-eval/tests/dataset/cocoapi/instances_val2014_100.json",
        "cocoapi/results/instances_val2014_fakebbox100_results.json",
    ),
    "medwaste": ("d2-medwaste/data/test/_annotations.coco.json", "d2-medwaste/output/coco_instances_results.json"),
}


@dataclass
class Pair:
    """One pair of COCO files as objects, written into a folder to be evaluated."""

    gt: dict[str, Any]
    pred: list[dict[str, Any]]
    folder: Path
    capture: pytest.CaptureFixture[str] = field(repr=False)
    name: str

    def as_it_came(self) -> "Outcome":
        """Evaluate what nothing was planted into yet; of a set with a name once, for all tests of a process."""
        if self.name not in AS_IT_CAME:
            AS_IT_CAME[self.name] = self.evaluate()
        return AS_IT_CAME[self.name]

    def evaluate(self, *flags: str) -> "Outcome":
        """Write both and run the command line on them."""
        paths = [self.folder / "gt.json", self.folder / "pred.json"]
        for path, content in zip(paths, (self.gt, self.pred), strict=True):
            path.write_text(json.dumps(content))
        return run_evaluate(self.capture, *map(str, paths), *flags)

    def change_boxes(self, side: str, change: Callable[[list[float], tuple[float, float]], list[float]]) -> None:
        """Change the boxes of one side; `change` is given a box and the size of its image."""
        sizes = {image["id"]: (image["width"], image["height"]) for image in self.gt["images"]}
        for record in self.gt["annotations"] if side == "gt" else self.pred:
            record["bbox"] = change(record["bbox"], sizes[record["image_id"]])

    def change_classes(self, change: Callable[[int], int]) -> None:
        """Change the category ids of the predictions."""
        for record in self.pred:
            record["category_id"] = change(record["category_id"])


@dataclass(frozen=True)
class Outcome:
    """What one run of the command line said."""

    code: int
    result: dict[str, Any]
    said: str

    @property
    def ap(self) -> float:
        return float(self.result["metrics"]["AP"])

    @property
    def errors(self) -> dict[str, str]:
        """What the run stopped with: messages by code."""
        return dict(re.findall(r"^error\[(.+?)\]: (.*)$", self.said, re.MULTILINE))

    def warnings(self, *codes: str) -> list[dict[str, Any]]:
        """Warnings of these codes, of any where none is named."""
        found = (one for one in self.result["warnings"] if one["severity"] == "warning")
        return [one for one in found if not codes or one["code"] in codes]


AS_IT_CAME: dict[str, Outcome] = {}  # by the name of a set


def suggested_flags(*messages: str) -> list[str]:
    """Return the flags that messages ask to rerun with, or to pass, as a shell would pass them on."""
    asked = re.compile(r"(?:Rerun with|If they are, pass) (--.+?)\.(?:\s|$)")
    return [flag for text in messages for flag in shlex.split(asked.findall(text)[-1])]


def run_evaluate(capture: pytest.CaptureFixture[str], *argv: str) -> Outcome:
    """Run ``evaluate --json`` in this process."""
    capture.readouterr()
    code = run(["evaluate", *argv, "--json"])
    shown = capture.readouterr()
    return Outcome(code, json.loads(shown.out) if shown.out else {}, shown.err)
