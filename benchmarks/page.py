"""Time the page next to `evaluate` and `evaluate --errors`, on a scene of COCO's size, as processes in turn.

``python benchmarks/page.py`` prints processor time, the least of all rounds, its ratio to ``evaluate``, and the size of
the page without images and with 24, which are drawn on a plain canvas, as the scene has no files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import processes

CASES = {
    "evaluate": [],
    "evaluate --errors": ["--errors"],
    "evaluate -o report.html --gallery 0": ["--gallery", "0", "-o", "0.html"],
    "evaluate -o report.html": ["--gallery", "24", "-o", "24.html"],
}


def main() -> None:
    """Make the scene, run all cases in turn, after one turn that is not counted, and print the table."""
    options = _parse()
    sides = [str(path) for path in processes.make_scene(options.dir, "--images", str(options.images))]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # to compile the modules takes a third of the time
    times: dict[str, list[float]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds + 1):
            for name, flags in CASES.items():
                words = [str(Path(folder, word)) if word.endswith(".html") else word for word in flags]
                used, _ = processes.measure([sys.executable, "-m", "jaccard_eval", "evaluate", *sides, *words])
                if turn:
                    times[name].append(used.cpu)
        sizes = {name: Path(folder, flags[-1]).stat().st_size for name, flags in CASES.items() if len(flags) > 1}
    print("| command | CPU s | ratio | kB |\n|---|--:|--:|--:|")
    for name, seconds in times.items():
        size = f"{sizes[name] / 1000:.0f}" if name in sizes else ""
        print(f"| {name} | {min(seconds):.2f} | {min(seconds) / min(times['evaluate']):.2f} | {size} |")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
