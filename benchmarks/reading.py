"""Time reading 200,000 boxes of 5,000 images as CSV, Parquet, Arrow, YOLO labels and Pascal VOC, beside others.

The least code that reads each returns columns of numbers and checks nothing: pandas for CSV, pyarrow for Parquet and
Arrow, a loop over lines as trainers have it for YOLO, ElementTree for VOC. The libraries globox and supervision take
part where they are installed; they read YOLO labels with the pictures, for their sizes, and so does jaccard-eval beside
them.

With ``--label-files N`` also folders of N / 10 and N label files are read, each in a process of its own, whose start
counts: time per file tells whether reading is linear.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import resource
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from processes import PEERS

from jaccard_eval import BoxTable, ReadOptions, load, to_frame
from jaccard_eval.data.dataset import Dataset, ImageTable, LabelMap
from jaccard_eval.formats import write_dataset
from jaccard_eval.reading.images import ImageFolder

IMAGES, BOXES, CLASSES = 5_000, 200_000, 20
WIDTH, HEIGHT = 1280.0, 720.0
MEGABYTE = 1 << 20
PEAK_UNITS = 1 if sys.platform == "darwin" else 1024  # bytes that ru_maxrss counts in

FRAME = "frame.parquet"  # of pandas; what jaccard-eval writes has indices for texts, which take longer to write

Reader = Callable[[Path], object]
read_voc: Reader = runpy.run_path(str(PEERS / "with_elementtree.py"))["read_voc"]


@dataclass(frozen=True)
class Rival:
    """Someone who reads an input of a format, the package that must be installed, and whether pictures are read too."""

    format_name: str
    file: str
    name: str
    reader: Reader
    package: str = "jaccard_eval"
    pictures: bool = False


def main() -> None:
    """Make the files, read each by both in turn, and print medians."""
    options = _parse()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_inputs(folder)
        print(
            f"{BOXES:,} boxes, {IMAGES:,} images; processor time, medians of {options.rounds} rounds, files cached.\n"
        )
        print("| input | jaccard-eval | the rival | | times |\n|---|---:|---:|---|---:|")
        for rival in RIVALS:
            if importlib.util.find_spec(rival.package):
                print(row(rival, folder, options.rounds))
        if options.label_files:
            print_folders(folder, options.label_files)


def write_inputs(folder: Path) -> None:
    """Write the scene in every format that somebody reads, and the pictures."""
    scene = make_scene(IMAGES, BOXES)
    for name, file in {rival.format_name: rival.file for rival in RIVALS if rival.file != FRAME}.items():
        write_dataset(scene, folder / file, format_name=name)
    to_frame(scene).to_parquet(folder / FRAME)
    names = "".join(f"  {row}: {name}\n" for row, name in enumerate(scene.labels.names))
    (folder / "data.yaml").write_text(f"names:\n{names}")
    picture = io.BytesIO()
    Image.new("1", (int(WIDTH), int(HEIGHT))).save(picture, "PNG")
    (folder / "pictures").mkdir()  # not "images", which is read with the labels beside it
    for row in range(len(scene.images)):
        (folder / "pictures" / scene.images.name(row)).write_bytes(picture.getvalue())


def row(rival: Rival, folder: Path, rounds: int) -> str:
    """Race against one rival and return the row of the table."""

    def read(path: Path) -> object:
        return load(path, options=ReadOptions(images=ImageFolder(folder / "pictures") if rival.pictures else None))

    ours, theirs = race(read, rival.reader, folder / rival.file, rounds)
    what = f"{rival.format_name} with images" if rival.pictures else rival.format_name
    return f"| {what} | {ours:.2f} s | {theirs:.2f} s | {rival.name} | {ours / theirs:.2f} |"


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
    keys = tuple(f"image_{row:06}.png" for row in range(n_images))
    images = ImageTable(keys, (None,) * n_images, np.tile([WIDTH, HEIGHT], (n_images, 1)), listed=True)
    names = tuple(f"class {row:02}" for row in range(CLASSES))
    return Dataset("scene", "arrays", "gt", images, LabelMap(names, names, named=True), boxes)


def race(ours: Reader, theirs: Reader, path: Path, rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, run in turn so that the machine is the same for both."""
    times = [(seconds(ours, path), seconds(theirs, path)) for _ in range(rounds)]
    first, second = zip(*times, strict=True)
    return statistics.median(first), statistics.median(second)


def seconds(reader: Reader, path: Path) -> float:
    """Return the time of the processor, of all threads together: a busy machine changes it little."""
    start = time.process_time()
    reader(path)
    return time.process_time() - start


def read_with_pandas(path: Path) -> object:
    """Columns by their header; pandas finds the types."""
    return pd.read_csv(path)


def read_with_pyarrow(path: Path) -> object:
    """Columns as arrays, texts as objects."""
    from pyarrow import ipc, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()
    return [column.to_numpy() for column in table.columns]


def read_lines(folder: Path) -> object:
    """One array per file, as trainers read labels."""
    files = sorted(folder.glob("*.txt"))
    return [np.array([line.split() for line in one.read_text().splitlines()], dtype=np.float64) for one in files]


def read_yolo_with_globox(folder: Path) -> object:
    from globox import AnnotationSet

    return AnnotationSet.from_yolo_v5(folder, image_folder=folder.parent / "pictures", image_extension=".png")


def read_voc_with_globox(folder: Path) -> object:
    from globox import AnnotationSet

    return AnnotationSet.from_pascal_voc(folder)


def read_yolo_with_supervision(folder: Path) -> object:
    with warnings.catch_warnings(action="ignore"):  # that OpenCV is not installed
        import supervision

    pictures, description = str(folder.parent / "pictures"), str(folder.parent / "data.yaml")
    return supervision.DetectionDataset.from_yolo(pictures, str(folder), description)


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

RIVALS = (
    Rival("csv", "gt.csv", f"pandas {pd.__version__}", read_with_pandas),
    Rival("parquet", FRAME, "pyarrow, of a data frame", read_with_pyarrow, package="pyarrow"),
    Rival("parquet", "gt.parquet", "pyarrow", read_with_pyarrow, package="pyarrow"),
    Rival("arrow", "gt.arrow", "pyarrow", read_with_pyarrow, package="pyarrow"),
    Rival("yolo", "labels", "a loop over lines", read_lines),
    Rival("yolo", "labels", "globox", read_yolo_with_globox, package="globox", pictures=True),
    Rival("yolo", "labels", "supervision", read_yolo_with_supervision, package="supervision", pictures=True),
    Rival("voc", "Annotations", "xml.etree.ElementTree", read_voc),
    Rival("voc", "Annotations", "globox", read_voc_with_globox, package="globox"),
)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--label-files", type=int, default=0, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    main()
