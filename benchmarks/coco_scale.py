"""Time whole evaluations of a scene of COCO's size: 5,000 images, 80 classes, about 250,000 detections.

``python benchmarks/coco_scale.py --peers-python PATH`` times this project beside the peers that PATH can import.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import processes


def main() -> None:
    """Make the scene, run all contenders in turn and print medians."""
    options = _parse()
    gt, dt = processes.make_scene(options.dir, "--images", str(options.images))
    candidates = [*processes.ours(), *processes.peers(options.peers_python)]
    present = processes.installed([one for one in candidates if not options.only or one.name in options.only])
    records = processes.run_rounds(present, gt, dt, options.rounds)
    if options.json:
        print(processes.raw(records))
        return
    print(f"Ground truth {_size(gt)}, detections {_size(dt)}; medians of {options.rounds} rounds.\n")
    print(processes.markdown(records))
    print(f"\n{processes.agreement(records)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="NAME", help="time this contender only (repeatable)")
    parser.add_argument("--json", action="store_true", help="print everything measured as JSON")
    parser.add_argument(
        "--peers-python",
        type=Path,
        default=Path(sys.executable),
        metavar="PATH",
        help="interpreter that has the peers (default: this one)",
    )
    return parser.parse_args()


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
