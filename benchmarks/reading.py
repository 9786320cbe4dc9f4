"""Time reading 200,000 boxes of 5,000 images as CSV, YOLO labels and Pascal VOC, beside the least code that reads them.

The rivals return columns of numbers and check nothing: pandas for CSV, a loop over lines as trainers have it for YOLO,
ElementTree for VOC. With ``--label-files N`` also folders of N / 10 and N label files are read, each in a process of
its own, whose start counts: time per file tells whether reading is linear.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from jaccard_eval import BoxTable, ReadOptions, load
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.formats import write_dataset

IMAGES, BOXES, CLASSES = 5_000, 200_000, 20
WIDTH, HEIGHT = 1280.0, 720.0
MEGABYTE = 1 << 20
PEAK_UNITS = 1 if sys.platform == "darwin" else 1024  # bytes that ru_maxrss counts in

Reader = Callable[[Path], object]


def main() -> None:
    """Make the files, read each by both in turn, and print medians."""
    options = _parse()
    with tempfile.TemporaryDirectory() as scratch:
        scene = make_scene(IMAGES, BOXES)
        print(f"{BOXES:,} boxes, {IMAGES:,} images; medians of {options.rounds} rounds, files in the system's cache.\n")
        print("| input | jaccard-eval | the rival | | times |\n|---|---:|---:|---|---:|")
        for name, file, rival, reader in CONTENDERS:
            path = Path(scratch) / file
            write_dataset(scene, path, format_name=name)
            ours, theirs = race(lambda path: load(path, options=ReadOptions()), reader, path, options.rounds)
            print(f"| {name} | {ours:.2f} s | {theirs:.2f} s | {rival} | {ours / theirs:.2f} |")
        if options.label_files:
            print_folders(Path(scratch), options.label_files)


def make_scene(n_images: int, n_boxes: int) -> Dataset:
    """Return ground truth of random boxes with two decimals, each within its image."""
    rng = np.random.default_rng(7)
    size = rng.uniform(8, 200, (n_boxes, 2)).round(2)
    corner = (rng.uniform(0, 1, (n_boxes, 2)) * (np.array([WIDTH, HEIGHT]) - size)).round(2)
    boxes = BoxTable.from_arrays(
        np.sort(rng.integers(0, n_images, n_boxes)),
        rng.integers(0, CLASSES, n_boxes),
        np.concatenate((corner, size), axis=1),
        encoding="xywh",
    )
    keys = tuple(f"image_{row:06}.jpg" for row in range(n_images))
    images = ImageTable(keys, (None,) * n_images, np.tile([WIDTH, HEIGHT], (n_images, 1)), listed=True)
    names = tuple(f"class {row:02}" for row in range(CLASSES))
    return Dataset("scene", "arrays", "gt", images, LabelMap(names, names, named=True), boxes)


def race(ours: Reader, theirs: Reader, path: Path, rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, run in turn so that a busy machine is busy for both."""
    times = [(seconds(ours, path), seconds(theirs, path)) for _ in range(rounds)]
    first, second = zip(*times, strict=True)
    return statistics.median(first), statistics.median(second)


def seconds(reader: Reader, path: Path) -> float:
    start = time.perf_counter()
    reader(path)
    return time.perf_counter() - start


def read_with_pandas(path: Path) -> object:
    """Columns by their header; pandas finds the types."""
    return pd.read_csv(path)


def read_lines(folder: Path) -> object:
    """One array per file, as trainers read labels."""
    files = sorted(one for one in folder.glob("*.txt") if one.name != "classes.txt")
    return [np.array([line.split() for line in one.read_text().splitlines()], dtype=np.float64) for one in files]


def read_with_elementtree(folder: Path) -> object:
    """Class name and corners of each object."""
    corners = ("xmin", "ymin", "xmax", "ymax")
    return [
        (one.findtext("name"), [float(one.findtext(f"bndbox/{corner}") or "nan") for corner in corners])
        for file in sorted(folder.glob("*.xml"))
        for one in ET.parse(file).getroot().iter("object")
    ]


def print_folders(scratch: Path, n_files: int) -> None:
    """Read folders of label files in processes of their own, and print time per file and peak memory."""
    print("\n| label files | seconds | µs per file | peak memory, at most |\n|---:|---:|---:|---:|")
    for n in (n_files // 10, n_files):
        folder = scratch / f"labels-{n}"
        write_dataset(make_scene(n, 4 * n), folder, format_name="yolo")
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", _LOAD, str(folder)], check=True)
        spent = time.perf_counter() - start
        # A process counts what its parent held when it was forked as its own: this is an upper bound.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * PEAK_UNITS / MEGABYTE
        print(f"| {n:,} | {spent:.2f} | {spent / n * 1e6:.0f} | {peak:.0f} MB |")


_LOAD = "import sys; from jaccard_eval import load; load(sys.argv[1], format_name='yolo')"

CONTENDERS: tuple[tuple[str, str, str, Reader], ...] = (
    ("csv", "gt.csv", f"pandas {pd.__version__}", read_with_pandas),
    ("yolo", "labels", "a loop over lines", read_lines),
    ("voc", "Annotations", "xml.etree.ElementTree", read_with_elementtree),
)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--label-files", type=int, default=0, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    main()
