"""Time the page and the folder next to `evaluate` and `evaluate --errors`, as processes in turn.

``python benchmarks/page.py`` draws a scene of COCO's size and prints processor time, the least of all rounds, its ratio
to ``evaluate``, and the size of the page without images and with 24, drawn on a plain canvas, as the scene has no
files, and of the folder.
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
    "evaluate -o report/": ["-o", "report/"],
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
                words = [*flags[:-1], f"{folder}/{flags[-1]}"] if "-o" in flags else flags
                used, _ = processes.measure([sys.executable, "-m", "jaccard_eval", "evaluate", *sides, *words])
                if turn:
                    times[name].append(used.cpu)
        sizes = {name: _size(Path(folder, flags[-1])) for name, flags in CASES.items() if "-o" in flags}
    print("| command | CPU s | ratio | kB |\n|---|--:|--:|--:|")
    for name, seconds in times.items():
        size = f"{sizes[name] / 1000:.0f}" if name in sizes else ""
        print(f"| {name} | {min(seconds):.2f} | {min(seconds) / min(times['evaluate']):.2f} | {size} |")


def _size(path: Path) -> int:
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
