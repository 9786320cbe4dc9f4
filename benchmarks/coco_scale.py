"""Time whole evaluations: by default of a scene of COCO's size, 5,000 images, 80 classes, about 250,000 detections.

``python benchmarks/coco_scale.py --peers-python PATH`` times this project beside the peers that PATH can import.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import processes

SCENES = {
    "12-images": ("--images", "12"),
    "250k": ("--images", "5000"),
    "1M": ("--images", "20000"),
    "2M": ("--images", "40000"),
    "100k-images": ("--images", "100000", "--objects", "1.5", "--duplicates", "1.6", "--clutter", "1"),
}


def main() -> None:
    """Make each scene, run all contenders in turn and print medians."""
    options = _parse()
    candidates = [*processes.ours(), *processes.peers(options.peers_python)]
    wanted = [one for one in candidates if one.name not in options.leave_out]
    present = processes.installed([one for one in wanted if not options.only or one.name in options.only])
    slow: set[str] = set()
    measured = {}
    for name in options.scene or ["250k"]:
        present = [(one, version) for one, version in present if one.name not in slow]
        gt, dt = processes.make_scene(options.dir / name, *SCENES[name])
        records = processes.run_rounds(present, gt, dt, options.rounds, patience=options.patience)
        slow = {record.name for record in records if len(record.usages) < options.rounds}
        if options.json:
            measured[name] = records
            continue
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the end"
        print(f"## {name}\n\nGround truth {_size(gt)}, detections {_size(dt)}; {options.rounds} rounds, {load}.\n")
        print(f"{processes.markdown(records)}\n\n{processes.agreement(records)}\n", flush=True)
        if slow:
            print(f"Timed once, and not in scenes that follow: {', '.join(sorted(slow))}.\n", flush=True)
    if options.json:
        print(processes.raw(measured))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--scene", action="append", choices=SCENES, help="how much to evaluate (repeatable)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--patience",
        type=float,
        default=5.0,
        metavar="TIMES",
        help="what takes more than so many times the first contender's processor time is timed once, and left out of"
        " the scenes that follow (default: %(default)s)",
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="time this contender only (repeatable)")
    parser.add_argument("--leave-out", action="append", default=[], metavar="NAME", help="do not time this one")
    parser.add_argument("--json", action="store_true", help="print everything measured as JSON, by scene")
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
