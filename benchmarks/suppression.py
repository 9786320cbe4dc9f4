"""Time suppression beside reading: a scene of COCO's size, 5,000 images and about 250,000 detections.

``python benchmarks/suppression.py`` prints the best of some rounds, within one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import processes

from jaccard_eval import load
from jaccard_eval.features.nms import METHODS, Suppression, suppress


def main() -> None:
    """Make the scene, then time reading and every method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    _, path = processes.make_scene(options.dir, "--images", str(options.images))
    boxes = load(path, role="pred").table
    reading = best(options.rounds, lambda: load(path, role="pred"))
    print(f"{len(boxes):,} detections; best of {options.rounds} rounds.\n\nreading           {reading:6.3f} s")
    for agnostic in (False, True):
        for method in METHODS:
            rule = Suppression(iou=0.6, method=method)
            spent = best(options.rounds, lambda: suppress(boxes, rule, class_agnostic=agnostic))  # noqa: B023
            scope = "all classes" if agnostic else "per class"
            print(f"{method:8} {scope:12} {spent:6.3f} s, {spent / reading:4.2f} times reading")


def best(rounds: int, call: Callable[[], object]) -> float:
    """Return the least seconds that a call took."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
