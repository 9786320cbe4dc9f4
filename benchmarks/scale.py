"""Compare the engines on generated Parquet: processor time, peak memory, and whether results are the same bytes.

100 detections and 7.3 objects an image of 80 classes; three in ten detections lie near an object. The folder is removed
afterwards. ``python benchmarks/scale.py --detections 4000000 10000000 --engines memory disk dask``
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLASSES = 80
DETECTIONS, OBJECTS = 100, 7.3  # of an image
SHARD_IMAGES = 10_000
MB = 1e6


def main() -> None:
    """Make each scene, evaluate it by each engine in turn and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detections", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--engines", nargs="+", default=["memory", "disk"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_scene(options.make, options.detections[0] // DETECTIONS)
        return
    print("| detections | engine | CPU s | wall s | peak MB | digest |\n|---:|---|---:|---:|---:|---|")
    for n in options.detections:
        with tempfile.TemporaryDirectory(prefix="scale-", dir=options.dir) as name:
            folder = Path(name)
            # In a process of its own: the peak of a child counts what its parent holds when it starts.
            subprocess.run([sys.executable, __file__, "--make", str(folder), "--detections", str(n)], check=True)
            with cluster(folder, 2) if "dask" in options.engines else contextlib.nullcontext():
                for _ in range(options.rounds):
                    for engine in options.engines:
                        print(f"| {n:,} | {engine} | {measure(folder, engine, options.workers)} |", flush=True)


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[None]:
    """Run a Dask scheduler and workers of this machine, whose processor time is not that of the command."""
    file = str(folder / "scheduler.json")
    scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = ["dask_worker", "--nthreads", "1", "--no-dashboard"]
    modules = [scheduler, *[worker] * workers]
    commands = [[sys.executable, "-m", f"distributed.cli.{name}", *rest] for name, *rest in modules]
    started = [subprocess.Popen([*one, "--scheduler-file", file], stderr=subprocess.DEVNULL) for one in commands]
    try:
        yield
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def make_scene(folder: Path, n_images: int) -> None:
    """Write ``gt.parquet`` and a folder of predictions, shard by shard."""
    import numpy as np
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    (folder / "pred").mkdir()
    truth = []
    for shard, first in enumerate(range(0, n_images, SHARD_IMAGES)):
        rng = np.random.default_rng(shard)
        images = min(SHARD_IMAGES, n_images - first)
        m, n = int(images * OBJECTS), images * DETECTIONS
        image, label = np.sort(rng.integers(0, images, m)), rng.integers(0, CLASSES, m)
        boxes = np.concatenate((rng.uniform(0, 400, (m, 2)), np.exp(rng.uniform(2, 5.5, (m, 2)))), axis=1)
        truth.append(_table(image + first, label, boxes))
        near = rng.integers(0, m, n)
        is_near = rng.random(n) < 0.3
        pred_boxes = np.where(
            is_near[:, None],
            boxes[near] + rng.normal(0, 4, (n, 4)),
            np.concatenate((rng.uniform(0, 400, (n, 2)), np.exp(rng.uniform(2, 5.5, (n, 2)))), axis=1),
        )
        pred_boxes[:, 2:] = np.maximum(pred_boxes[:, 2:], 1)
        pred_image = np.where(is_near, image[near], rng.integers(0, images, n))
        pred_label = np.where(is_near, label[near], rng.integers(0, CLASSES, n))
        order = np.argsort(pred_image, kind="stable")
        score = np.where(is_near, rng.beta(3, 2, n), rng.beta(1, 6, n)).round(5)
        columns = _table(pred_image[order] + first, pred_label[order], pred_boxes[order]) | {"score": score[order]}
        parquet.write_table(arrow.table(columns), folder / "pred" / f"{shard:05}.parquet", row_group_size=500_000)
    whole = {name: np.concatenate([part[name] for part in truth]) for name in truth[0]}
    parquet.write_table(arrow.table(whole), folder / "gt.parquet")


def _table(image: Any, label: Any, boxes: Any) -> dict[str, Any]:
    named = {"image_id": image, "category_id": label + 1}
    return named | dict(zip(("x", "y", "width", "height"), boxes.T, strict=True))


def measure(folder: Path, engine: str, workers: str) -> str:
    """Return processor seconds, wall seconds, peak megabytes and a digest of the document of one run."""
    output = folder / f"{engine}.json"
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    options = ["--no-errors", "--allow", "image-mismatch", "-q", "-o", str(output)]
    options += ["--scratch", str(scratch)] if engine != "memory" else []
    command = [sys.executable, "-m", "jaccard_eval", "gt.parquet", "pred", "--engine", engine, "--workers", workers]
    command += ["--scheduler", "scheduler.json"] if engine == "dask" else []
    start = time.perf_counter()
    process = subprocess.Popen([*command, *options], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{engine}: exit code {os.waitstatus_to_exitcode(status)}")
    digest = hashlib.sha256(output.read_bytes()).hexdigest()[:12]
    cpu = usage.ru_utime + usage.ru_stime
    return f"{cpu:.1f} | {wall:.1f} | {usage.ru_maxrss * 1024 / MB:,.0f} | {digest}"


if __name__ == "__main__":
    main()
