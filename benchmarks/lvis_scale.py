"""Time evaluations by LVIS' rules: by default a scene of LVIS val's size, 20,000 images and 3 million detections.

``python benchmarks/lvis_scale.py --peers-python PATH`` times this project beside the peers that PATH can import:
lvis (lvis-api), hotcoco and faster-coco-eval. ``--images N`` draws fewer images, with as much on each; of several
sizes, what takes more than ``--patience`` times the first is left out of those that follow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import processes
from processes import Contender

CLASSES = 1_203
OBJECTS, DETECTIONS = 12.2, 150  # of an image, on average: 244,000 and 3 million of 20,000 images
DUPLICATES = 3  # detections near each object
NEGATIVES, NOT_EXHAUSTIVE = 12, 1  # classes of an image
SIZE = 640, 480
FREQUENT, COMMON = 100, 10  # images of a class above which it is frequent, or common
CHUNK = 1_000  # images that are written at once
PEERS = {"lvis": "with_lvis.py", "hotcoco": "with_hotcoco_lvis.py", "faster-coco-eval": "with_faster_coco_eval_lvis.py"}


def main() -> None:
    """Make each scene, run all contenders in turn and print medians."""
    options = _parse()
    slow: set[str] = set()
    for images in options.images:
        slow |= time_scene(options, images, slow)


def time_scene(options: argparse.Namespace, images: int, slow: Collection[str]) -> set[str]:
    """Time a scene of so many images, without the slow; return who was slow."""
    folder = options.dir / f"lvis-{images}"
    if options.make:
        write_scene(folder, images)
        return set()
    if not (folder / "dt.json").is_file():  # in a process of its own, so that this one stays small
        subprocess.run([sys.executable, __file__, "--make", f"--images={images}", f"--dir={options.dir}"], check=True)
    present = processes.installed(
        [one for one in contenders(options.peers_python) if one.name not in (*options.leave_out, *slow)]
    )
    records = processes.run_rounds(
        present, folder / "gt.json", folder / "dt.json", options.rounds, patience=options.patience
    )
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"## {images:,} images\n\n{options.rounds} rounds, {load} at the end.\n")
    print(f"{processes.markdown(records)}\n\n{processes.agreement(records)}\n")
    first = records[0]
    for other in records[1:]:
        print(f"* {first.name} takes {first.ratio(other, 'cpu'):.3f} times the processor time of {other.name}.")
    print(flush=True)
    return {record.name for record in records if len(record.usages) < options.rounds}


def contenders(python: Path) -> list[Contender]:
    """Return this project's library, with the compiled core and without, and the peers."""
    own = Contender(
        "jaccard-eval",
        "jaccard-eval",
        Path(sys.executable),
        _script(Path(sys.executable), "with_jaccard_eval_lvis.py"),
        _stats,
    )
    pure = Contender(
        "jaccard-eval, pure Python", own.package, own.python, own.argv, _stats, (("JACCARD_EVAL_NATIVE", "0"),)
    )
    return [
        own,
        pure,
        *(Contender(name, name, python, _script(python, script), _stats) for name, script in PEERS.items()),
    ]


def _script(python: Path, name: str) -> tuple[str, ...]:
    return str(python), str(processes.PEERS / name), "{gt}", "{dt}"


def _stats(output: str) -> list[float]:
    """Return the thirteen numbers of a script's last line."""
    stats: list[float] = json.loads(output.strip().splitlines()[-1])
    return stats


def write_scene(folder: Path, n_images: int, seed: int = 22) -> None:
    """Write ``gt.json`` and ``dt.json``: seeded boxes, few classes frequent and most of them rare."""
    import numpy as np

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    share = 1.0 / np.arange(1, CLASSES + 1) ** 1.1
    share = rng.permutation(share / share.sum())
    n_objects = rng.poisson(OBJECTS, n_images)
    image = np.repeat(np.arange(n_images), n_objects)
    label = rng.choice(CLASSES, len(image), p=share)
    side = np.exp(rng.normal(3.8, 0.9, (len(image), 2))).clip(4, 400)
    corner = rng.random((len(image), 2)) * np.maximum(np.array(SIZE) - side, 1)
    boxes = np.round(np.concatenate((corner, side), axis=1), 2)
    images = [
        {
            "id": row + 1,
            "width": SIZE[0],
            "height": SIZE[1],
            "neg_category_ids": (np.unique(rng.integers(CLASSES, size=NEGATIVES)) + 1).tolist(),
            "not_exhaustive_category_ids": (rng.integers(CLASSES, size=rng.poisson(NOT_EXHAUSTIVE)) + 1).tolist(),
        }
        for row in range(n_images)
    ]
    of_class = np.bincount(np.unique(np.stack((image, label)), axis=1)[1], minlength=CLASSES)
    groups = ["f" if n > FREQUENT else "c" if n > COMMON else "r" for n in of_class.tolist()]
    categories = [{"id": k + 1, "name": f"class {k + 1}", "frequency": group} for k, group in enumerate(groups)]
    annotations = [
        {"id": row + 1, "image_id": i + 1, "category_id": k + 1, "bbox": box, "area": box[2] * box[3]}
        for row, (i, k, box) in enumerate(zip(image.tolist(), label.tolist(), boxes.tolist(), strict=True))
    ]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "gt.json").write_text(json.dumps(truth, separators=(",", ":")), encoding="utf-8")
    ends = np.append(0, np.cumsum(n_objects))
    unfinished = folder / "dt.json.part"
    with unfinished.open("w", encoding="utf-8") as file:
        for start in range(0, n_images, CHUNK):
            stop = min(start + CHUNK, n_images)
            own = np.repeat(np.arange(ends[start], ends[stop]), DUPLICATES)
            near = boxes[own] * (1 + rng.normal(0, 0.06, (len(own), 4)))
            n_clutter = max((stop - start) * DETECTIONS - len(own), 0)
            at = rng.random((n_clutter, 2)) * (np.array(SIZE) - 40)
            clutter = np.concatenate((at, np.exp(rng.normal(3.8, 0.9, (n_clutter, 2))).clip(4, 400)), axis=1)
            rows = np.round(np.concatenate((near, clutter)), 2)
            score = np.round(np.concatenate((rng.beta(3, 2, len(own)), rng.beta(1, 4, n_clutter))), 5)
            images_of = np.concatenate((image[own], rng.integers(start, stop, n_clutter)))
            labels = np.concatenate((label[own], rng.choice(CLASSES, n_clutter, p=share)))
            order = np.argsort(images_of, kind="stable")
            columns = (images_of[order] + 1, labels[order] + 1, rows[order], score[order])
            lines = [
                f'{{"image_id":{i},"category_id":{k},"bbox":{box},"score":{s}}}'
                for i, k, box, s in zip(*(column.tolist() for column in columns), strict=True)
            ]
            file.write(("[" if start == 0 else ",\n") + ",\n".join(lines))
        file.write("]\n")
    unfinished.replace(folder / "dt.json")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-benchmark"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scene is kept (default: %(default)s)")
    parser.add_argument("--images", type=int, nargs="+", default=[20_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--patience", type=float, default=5.0, metavar="TIMES", help="what takes longer is timed once")
    parser.add_argument("--leave-out", action="append", default=[], metavar="NAME")
    parser.add_argument("--peers-python", type=Path, default=Path(sys.executable))
    parser.add_argument("--make", action="store_true", help="write the scene and do nothing else")
    return parser.parse_args()


if __name__ == "__main__":
    main()
