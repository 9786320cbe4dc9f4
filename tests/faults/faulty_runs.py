"""Runs of the command line under the faults of a machine, and what must stand afterwards."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import command, environment, write_json

OLD = '{"old": true}'
TEMPORARY = ".jaccard-eval-*"
SIGTERM_CAUGHT = 1 << (15 - 1)  # bit of signal 15 in the masks of /proc/PID/status


def run_limited(limit: str, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    """Run below a limit of the shell, such as "ulimit -n 24"."""
    script = f'{limit} && exec "$@"'
    # Where files may not grow, bytecode would be cut off without an error, and break every later run.
    alone = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        ["bash", "-c", script, "bash", *command(*argv)],
        env=environment(alone),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def start_group(*argv: str | Path, start: Sequence[str] = (), **settings: Any) -> subprocess.Popen[str]:
    """Start a run as the leader of a process group, as a shell does, and wait until it handles signals."""
    process = subprocess.Popen(
        [*start, *argv] if start else command(*argv),
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )
    while process.poll() is None and not _caught_signals(process.pid) & SIGTERM_CAUGHT:
        pass
    return process


def _caught_signals(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("SigCgt", "0"), 16)


def group_is_empty(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def temporary_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(TEMPORARY))


def is_whole(path: Path) -> bool:
    """Whether a file holds the old content or a whole document, and nothing in between."""
    text = path.read_text()
    return text == OLD or (text.endswith("}\n") and json.loads(text)["schema"] == 1)


def write_many(folder: Path, n: int) -> tuple[Path, Path]:
    """Make `n` images with one object each, all found at their place."""
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in range(n)]
    boxes = [{"image_id": i, "category_id": 1, "bbox": [i % 600, i % 440, 20, 30]} for i in range(n)]
    truth = [one | {"id": i + 1, "area": 600, "iscrowd": 0} for i, one in enumerate(boxes)]
    gt = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "dog"}]}
    pred = [one | {"score": (i + 1) / n} for i, one in enumerate(boxes)]
    return write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)


def write_labels(folder: Path, n: int) -> tuple[Path, Path]:
    """Make `n` label files on either side, each with one box, the predictions with a score."""
    labels, pred = folder / "labels", folder / "pred"
    labels.mkdir()
    pred.mkdir()
    for i in range(n):
        (labels / f"{i:05}.txt").write_text("0 0.8 0.8 0.25 0.25\n")
        (pred / f"{i:05}.txt").write_text(f"0 0.8 0.8 0.25 0.24 {(i + 1) / n}\n")
    return labels, pred


def write_label_maps(folder: Path, n: int) -> tuple[Path, Path]:
    """Make `n` label maps on either side, all of the same three classes in stripes."""
    stripes = np.repeat(np.arange(3, dtype=np.uint8), 200)[:, None] * np.ones(800, dtype=np.uint8)
    sides = folder / "truth", folder / "found"
    for side in sides:
        side.mkdir()
        for i in range(n):
            np.save(side / f"{i}.npy", stripes)
    return sides


def run_unprivileged(*argv: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run as somebody whom permissions stop; root, whom they do not, gives that right up."""
    argv = tuple(command(*argv))
    if os.geteuid() == 0:
        argv = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *argv)
    return subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False, timeout=60, **settings)
