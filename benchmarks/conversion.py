"""Time `convert` beside `evaluate`: COCO results of 5,000 images and about 250,000 detections, in every written format.

``python benchmarks/conversion.py --out /dev/shm`` prints medians of rounds in turn, each a process of its own, and the
ratio to the evaluation of the same round. Thousands of small files take as long as the file system takes for them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

import processes

# Format, name of the output and whether its names come from the ground truth, which it cannot do without.
CASES = (
    ("csv", "out.csv", False),
    ("csv", "out.csv", True),
    ("coco", "out.json", False),
    ("coco", "out.json", True),
    ("parquet", "out.parquet", False),
    ("openimages", "out.csv", True),
    ("voc", "out", True),
    ("yolo", "out", True),
)


def main() -> None:
    """Make the scene, then evaluate it and convert its detections in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=None, help="where outputs are written (default: as others)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    # Users have bytecode; without it every start compiles the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    gt, dt = processes.make_scene(options.dir, "--images", str(options.images))
    command = str(Path(sys.executable).with_name("jaccard-eval"))
    spent: dict[str, list[tuple[float, float]]] = {}  # seconds of the processor, and times those of the evaluation
    for turn in range(options.rounds + 1):
        whole, _ = processes.measure([command, "evaluate", str(gt), str(dt)])
        usages = {"evaluate": whole.cpu}
        for name, output, aligned in CASES:
            with tempfile.TemporaryDirectory(dir=options.out) as folder:
                argv = [command, "convert", str(dt), f"{folder}/{output}", "--to", name]
                usage, _ = processes.measure([*argv, "--gt", str(gt), "--lossy"] if aligned else argv)
            usages[f"{name}, with `--gt`" if aligned else name] = usage.cpu
        for case, seconds in usages.items() if turn else ():  # the first turn warms up
            spent.setdefault(case, []).append((seconds, seconds / whole.cpu))
    print("| written | seconds | times an evaluation |\n|---|---:|---:|")
    for case, measured in spent.items():
        print(f"| {case} | {median(cpu for cpu, _ in measured):.2f} | {median(ratio for _, ratio in measured):.2f} |")


if __name__ == "__main__":
    main()
