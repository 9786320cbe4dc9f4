"""Time intervals on a scene of COCO's size: 5,000 images, 80 classes, about 250,000 detections.

``python benchmarks/bootstrap.py`` times ``evaluate --bootstrap 1000`` as a process, on all processors and on one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import processes


def main() -> None:
    """Make the scene and print what each run took, reading and matching included."""
    options = _parse()
    gt, dt = processes.make_scene(options.dir, "--images", str(options.images))
    argv = [sys.executable, "-m", "jaccard_eval", "evaluate", str(gt), str(dt), "--json"]
    argv += ["--bootstrap", str(options.resamples)]
    print("| processors | CPU s | wall s | peak MB |\n|--:|--:|--:|--:|")
    for name, prefix in _placements():
        used, _ = processes.measure([*prefix, *argv])
        print(f"| {name} | {used.cpu:.1f} | {used.wall:.1f} | {used.peak_mb:.0f} |", flush=True)


def _placements() -> list[tuple[str, Sequence[str]]]:
    """Return where to run: everywhere, and on one processor where that can be asked for."""
    everywhere: list[tuple[str, Sequence[str]]] = [(str(os.cpu_count()), [])]
    return [*everywhere, *([("1", ["taskset", "-c", "0"])] if shutil.which("taskset") else [])]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
