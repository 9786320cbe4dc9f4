"""Time `jaccard-eval pixels` beside the least that does the same: Pillow and a bincount, without any check.

    python benchmarks/label_maps.py [--dir DIR] [--maps 200] [--size 2048x1024] [--rounds 3]

Makes seeded label maps of the size and number of classes of Cityscapes, a ground truth and a prediction each, unless
they are in DIR already. Decoding is Pillow alone, one file after the other; ours decodes, counts and reports.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from processes import PEERS, Usage, measure

SIZE, CLASSES = "2048x1024", 19  # of Cityscapes
SIDES = ("gt", "pred")


def make_maps(folder: Path, count: int, size: str = SIZE, seed: int = 20) -> None:
    """Write `count` pairs of maps: warped blocks of classes; predictions are shifted, and noisy at places."""
    import numpy as np
    from PIL import Image

    for side in SIDES:
        (folder / side).mkdir(parents=True, exist_ok=True)
    if len(list((folder / "pred").glob("*.png"))) == count:
        return
    width, height = map(int, size.split("x"))
    rng = np.random.default_rng(seed)
    for i in range(count):
        blocks = rng.integers(0, CLASSES, (height // 32, width // 32), dtype=np.uint8)
        waves = 20 * np.sin(np.arange(height) / rng.uniform(10, 40)) + rng.normal(0, 1, height)
        gt = np.repeat(np.repeat(blocks, 32, axis=0), 32, axis=1)
        gt = np.stack([np.roll(row, shift) for row, shift in zip(gt, waves.astype(int), strict=True)])
        pred = np.roll(gt, 3, axis=1)
        wrong = rng.integers(0, height * width, height * width // 50)
        pred.reshape(-1)[wrong] = rng.integers(0, CLASSES, len(wrong), dtype=np.uint8)
        for side, values in zip(SIDES, (gt, pred), strict=True):
            Image.fromarray(values).save(folder / side / f"{i:04d}.png")


def decode(folder: Path) -> None:
    """Decode all files with Pillow, and do nothing else."""
    from PIL import Image

    for side in SIDES:
        for path in sorted((folder / side).glob("*.png")):
            with Image.open(path) as image:
                image.load()


def run_rounds(folder: Path, rounds: int) -> dict[str, list[Usage]]:
    """Run both in turn, after one turn that is not counted."""
    command = str(Path(sys.executable).with_name("jaccard-eval"))
    sides = [str(folder / side) for side in SIDES]
    commands = {
        "Pillow and bincount": [sys.executable, str(PEERS / "with_pillow.py"), *sides],
        "Pillow, decoding only": [sys.executable, __file__, "--dir", str(folder), "--decode"],
        "jaccard-eval pixels": [command, "pixels", *sides, "--json"],
        "its start, with one pair": [command, "pixels", *(f"{side}/0000.png" for side in sides), "--json"],
    }
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, argv in commands.items():
            usage, _ = measure(argv)
            if turn:
                usages[name].append(usage)
    return usages


def markdown(usages: dict[str, list[Usage]]) -> str:
    """Format medians, and their ratios to the first, of each round, as a Markdown table."""
    lines = ["| | CPU s | wall s | peak MB | CPU ratio | wall ratio |", "|---|--:|--:|--:|--:|--:|"]
    base = next(iter(usages.values()))
    for name, rows in usages.items():
        cpu, wall, peak = (median(getattr(one, field) for one in rows) for field in ("cpu", "wall", "peak_mb"))
        cpu_ratio = median(one.cpu / least.cpu for one, least in zip(rows, base, strict=True))
        wall_ratio = median(one.wall / least.wall for one, least in zip(rows, base, strict=True))
        lines.append(f"| {name} | {cpu:.2f} | {wall:.2f} | {peak:.0f} | {cpu_ratio:.2f} | {wall_ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Make the maps, run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "jaccard-eval-label-maps")
    parser.add_argument("--maps", type=int, default=200)
    parser.add_argument("--size", default=SIZE, help="of the maps that are made (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--decode", action="store_true", help="only decode the files of DIR")
    parser.add_argument("--make", action="store_true", help="only make the files of DIR")
    chosen = parser.parse_args()
    if chosen.decode:
        decode(chosen.dir)
    elif chosen.make:
        make_maps(chosen.dir, chosen.maps, chosen.size)
    else:
        # In a process of its own, so that this one stays small: a process starts with the memory peak of its maker.
        made = ["--dir", str(chosen.dir), "--maps", str(chosen.maps), "--size", chosen.size, "--make"]
        measure([sys.executable, __file__, *made])
        print(markdown(run_rounds(chosen.dir, chosen.rounds)))


if __name__ == "__main__":
    main()
