"""Time the commands that explain an evaluation next to `evaluate`, on a scene of COCO's size, as processes in turn.

``python benchmarks/explaining.py`` prints processor time, the least of all rounds, and its ratio to ``evaluate``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import processes

CASES = {
    "evaluate": ["evaluate"],
    "inspect": ["inspect"],
    "evaluate --errors": ["evaluate", "--errors"],
    "explain": ["explain"],
}


def main() -> None:
    """Make the scene, run all cases in turn, after one turn that is not counted, and print the table."""
    options = _parse()
    sides = [str(path) for path in processes.make_scene(options.dir, "--images", str(options.images))]
    # Without bytecode, compiling the modules takes a third of the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for turn in range(options.rounds + 1):
        for name, (verb, *flags) in CASES.items():
            used, _ = processes.measure([sys.executable, "-m", "jaccard_eval", verb, *sides, *flags])
            if turn:
                times[name].append(used.cpu)
    print("| command | CPU s | ratio |\n|---|--:|--:|")
    for name, seconds in times.items():
        print(f"| {name} | {min(seconds):.2f} | {min(seconds) / min(times['evaluate']):.2f} |")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
