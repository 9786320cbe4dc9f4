"""Time one picture of 5,000 objects and 20,000 detections of one class, without a cap, then ten times the detections.

Tools that compare every pair need memory and time in proportion to objects times detections: only this project runs the
larger scene. pycocotools' loops in Python would take hours; it is left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import processes

AP50 = processes.METRICS.index("AP50")  # the peers compute AP at a cap of 100 only, AP50 at the largest


def main() -> None:
    """Make both scenes, run the contenders in turn and print medians."""
    options = _parse()
    objects, detections = options.objects, options.detections
    for factor in (1, 10):
        n = factor * detections
        folder = options.dir / f"dense-{objects}-{n}"
        gt, dt = processes.make_scene(folder, "--dense", str(objects), str(n))
        candidates = processes.ours(cap=n)
        if factor == 1:
            candidates += [one for one in processes.peers(options.peers_python, cap=n) if one.name != "pycocotools"]
        records = processes.run_rounds(processes.installed(candidates), gt, dt, options.rounds)
        print(f"{objects:,} objects, {n:,} detections; medians of {options.rounds} rounds.\n")
        print(processes.markdown(records))
        print(f"\n{processes.agreement(records, only=AP50)}\n")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scenes are kept (default: %(default)s)")
    parser.add_argument("--objects", type=int, default=5_000)
    parser.add_argument("--detections", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-python", type=Path, default=Path(sys.executable), metavar="PATH")
    return parser.parse_args()


if __name__ == "__main__":
    main()
