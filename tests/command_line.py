"""Two small sides as COCO JSON, and the command line: as a process, or in this one where that proves as much."""

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from jaccard_eval.cli import COMMAND_TABLE, run
from jaccard_eval.cli.options import OUTPUT_OPTIONS

TABLE = click.Context(COMMAND_TABLE)
COMMANDS: dict[str, Any] = {name: COMMAND_TABLE.get_command(TABLE, name) for name in COMMAND_TABLE.list_commands(TABLE)}
# Those that write a report with -o, pages among them.
REPORTING = [name for name, one in COMMANDS.items() if OUTPUT_OPTIONS[0] in one.params]


def write_pair(folder: Path, *, warned: bool = False) -> tuple[Path, Path]:
    """Two dogs and a cat: one dog is found at its place, the cat 4 pixels off; `warned` adds an empty prediction.

    The overlap of the cat is 6 x 10 of 14 x 10, an IoU of 3/7, which matches at no threshold.
    """
    annotations = [box(1, 1, [0, 0, 10, 10]), box(1, 1, [50, 50, 10, 10]), box(2, 2, [20, 20, 10, 10])]
    gt = {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "annotations": [{"id": i + 1, "area": 100, "iscrowd": 0, **one} for i, one in enumerate(annotations)],
        "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}],
    }
    pred = [box(1, 1, [0, 0, 10, 10], score=0.9), box(2, 2, [24, 20, 10, 10], score=0.8)]
    pred += [box(2, 2, [1, 1, 0, 5], score=0.1)] if warned else []
    return write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)


def box(image: int, category: int, xywh: list[float], **more: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": xywh, **more}


def write_json(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def run_process(
    *argv: str | Path, env: Mapping[str, str] | None = None, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a process of its own, outside of any terminal."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60} | settings
    return subprocess.run(command(*argv), env=environment(env), text=True, check=False, **settings)


def run_here(
    *argv: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, with what `run_process` gives and takes, in a tenth of the time."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    wanted = environment(env)
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name not in wanted:
                patch.delenv(name)
        for name, value in wanted.items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        code = run.run([*map(str, argv)])
    said = [stream.buffer.getvalue().decode() for stream in streams]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess([*argv], code, *said)


def run_together(*argv: str, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, both streams in one file, as `2>&1` has them."""
    with tempfile.TemporaryFile() as both, pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        streams = [io.TextIOWrapper(both, encoding="utf-8", newline="", write_through=True) for _ in range(2)]
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        code = run.run([*argv])
        both.seek(0)
        said = both.read().decode()
        for stream in streams:
            stream.detach()
    return subprocess.CompletedProcess([*argv], code, said)


def command(*argv: str | Path) -> list[str]:
    return [sys.executable, "-m", "jaccard_eval", *map(str, argv)]


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what colours, measures or completes."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "JACCARD_EVAL_TRACEBACK")
    return {key: value for key, value in os.environ.items() if key not in dropped} | dict(changes or {})


def repeat_images(gt: Path, pred: Path, *, times: int) -> None:
    """Put copies of all images, with their objects and detections, into both files of a pair."""
    document, rows = json.loads(gt.read_text()), json.loads(pred.read_text())
    images, annotations, detections = list(document["images"]), list(document["annotations"]), list(rows)
    for copy in range(1, times):
        shift = 10_000 * copy
        document["images"] += [
            {**image, "id": image["id"] + shift, "file_name": f"{copy}/{image['file_name']}"} for image in images
        ]
        document["annotations"] += [
            {**ann, "id": ann["id"] + shift, "image_id": ann["image_id"] + shift} for ann in annotations
        ]
        rows += [{**row, "image_id": row["image_id"] + shift} for row in detections]
    gt.write_text(json.dumps(document))
    pred.write_text(json.dumps(rows))
