"""Time whole evaluations of shapes, a scene of each kind: 5,000 images, about 36,000 objects and 180,000 detections.

``python benchmarks/shapes.py --peers-python PATH`` times this project, with its compiled core and without, beside the
peers that PATH can import. Objects are outlined by polygons, crowds by runs, detected masks are compressed strings. No
peer evaluates oriented boxes: shapely reads them and computes their overlaps, and no more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import processes

# NumPy and the scenes are imported where they are drawn, in another process: see `processes.measure`.
PEERS = ("pycocotools", "faster-coco-eval", "ultrafast-pycocotools", "hotcoco")
SHAPELY = "shapely"
PURE = (("JACCARD_EVAL_NATIVE", "0"),)
N_POINTS = 17
# This project's names of the numbers that pycocotools gives in this order.
METRICS = {
    "segm": (
        *("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large"),
        *("AR1", "AR10", "AR100", "AR_small", "AR_medium", "AR_large"),
    ),
    "keypoints": (
        *("AP", "AP50", "AP75", "AP_medium", "AP_large"),
        *("AR", "AR[iou=0.5]", "AR[iou=0.75]", "AR_medium", "AR_large"),
    ),
}
METRICS["obb"] = METRICS["segm"]
Scene = tuple[dict[str, Any], list[dict[str, Any]]]


def draw_masks(n_images: int) -> Scene:
    """Draw objects and detections, each detection the outline of another one in its box, as runs of pixels."""
    import numpy as np

    from jaccard_eval.similarity.runs import counts_of_runs, encode_counts, offsets_of, runs_of_polygons

    document, detections = _boxes(n_images, n_classes=80)
    rng = np.random.default_rng(n_images)
    side = {image["id"]: (image["height"], image["width"]) for image in document["images"]}
    sizes = np.array([side[record["image_id"]] for record in detections])
    xywh = np.array([record.pop("bbox") for record in detections])  # with boxes, areas would be those of boxes
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    radius = 0.44 + 0.02 * rng.normal(size=(len(xywh), 40)) + 0.03 * np.cos(3 * angle + rng.random((len(xywh), 1)) * 6)
    way = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=2)
    corners = xywh[:, None, :2] + xywh[:, None, 2:] * (0.5 + way)
    rings = offsets_of([len(angle)] * len(xywh))
    masks = runs_of_polygons(corners.reshape(-1, 2), rings, np.arange(len(rings)), sizes)
    texts = encode_counts(*counts_of_runs(masks, sizes.prod(axis=1)))
    for record, size, text in zip(detections, sizes.tolist(), texts, strict=True):
        record["segmentation"] = {"size": size, "counts": text.decode("ascii")}
    return document, detections


def draw_poses(n_images: int) -> Scene:
    """Draw people with keypoints, some of which are not labelled, and detections whose points are near theirs."""
    import numpy as np

    document, detections = _boxes(n_images, n_classes=1)
    rng = np.random.default_rng(n_images)
    places = rng.random((N_POINTS, 2))  # of the points, in the box
    for record in document["annotations"]:
        box = np.array(record["bbox"])
        seen = rng.choice([0, 1, 2], N_POINTS, p=[0.3, 0.1, 0.6])
        points = (box[:2] + box[2:] * places).round() * (seen > 0)[:, None]
        record["keypoints"] = np.column_stack((points, seen)).astype(int).ravel().tolist()
        record["num_keypoints"] = int(np.count_nonzero(seen))
    for record in detections:
        box = np.array(record.pop("bbox"))
        points = box[:2] + box[2:] * (places + rng.normal(0, 0.03, (N_POINTS, 2)))
        record["keypoints"] = np.column_stack((points.round(3), np.ones(N_POINTS))).ravel().tolist()
    return document, detections


def draw_oriented(n_images: int) -> Scene:
    """Turn boxes about their centres, those of an image by much the same angle, and write their corners."""
    import numpy as np

    document, detections = _boxes(n_images, n_classes=15)
    rng = np.random.default_rng(n_images)
    angle_of = {image["id"]: rng.uniform(0, np.pi / 2) for image in document["images"]}
    for record in (*document["annotations"], *detections):
        record.pop("segmentation", None)
        left, top, width, height = record["bbox"]
        angle = angle_of[record["image_id"]] + rng.normal(0, 0.05)
        turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        half = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
        corners = half @ turned.T + (left + width / 2, top + height / 2)
        record["bbox"] = corners.round(3).ravel().tolist()
    return document, detections


def _boxes(n_images: int, *, n_classes: int) -> Scene:
    import scenes

    scale = scenes.Scale(images=n_images, classes=n_classes, objects=7.2, duplicates=9.0, clutter=22.0)
    return scenes.make_coco_scene(scale)


KINDS: dict[str, Callable[[int], Scene]] = {"segm": draw_masks, "keypoints": draw_poses, "obb": draw_oriented}


def contenders(kind: str, peers_python: Path) -> list[processes.Contender]:
    """Return this project with its compiled core and without, and those that read the same files."""
    python = Path(sys.executable)
    command = (str(python.with_name("jaccard-eval")), "{gt}", "{dt}", "--iou-type", kind, "--json")
    by_kind = str(processes.PEERS / "by_kind.py")
    stats = partial(_our_stats, kind)
    ours = [
        processes.Contender("jaccard-eval", "jaccard-eval", python, command, stats),
        processes.Contender("jaccard-eval, pure Python", "jaccard-eval", python, command, stats, PURE),
    ]
    if kind == "obb":
        script = (str(peers_python), str(processes.PEERS / "with_shapely.py"), "{gt}", "{dt}")
        return [*ours, processes.Contender(SHAPELY, SHAPELY, peers_python, script, _last)]
    peers = [
        processes.Contender(name, name, peers_python, (str(peers_python), by_kind, name, kind, "{gt}", "{dt}"), _last)
        for name in PEERS
    ]
    return ours + peers


def _our_stats(kind: str, output: str) -> list[float]:
    metrics = json.loads(output)["metrics"]
    values = [metrics[name] for name in METRICS[kind]]
    return [-1.0 if value is None else value for value in values]  # the peers write -1 where there is none


def _last(output: str) -> list[float]:
    stats: list[float] = json.loads(output.strip().splitlines()[-1])
    return stats


def main() -> None:
    """Make the scenes, run all contenders in turn and print medians and ratios."""
    options = _parse()
    if options.draw:
        document, detections = KINDS[options.draw](options.images)
        options.dir.mkdir(parents=True, exist_ok=True)
        (options.dir / "gt.json").write_text(json.dumps(document), encoding="utf-8")
        (options.dir / "dt.json").write_text(json.dumps(detections), encoding="utf-8")
        return
    for kind in options.kind or KINDS:
        folder = options.dir / f"{kind}-{options.images}"
        gt, dt = folder / "gt.json", folder / "dt.json"
        if not dt.exists():
            words = ("--draw", kind, "--images", str(options.images), "--dir", str(folder))
            subprocess.run([sys.executable, __file__, *words], check=True)
        wanted = [one for one in contenders(kind, options.peers_python) if one.name not in options.leave_out]
        records = processes.run_rounds(processes.installed(wanted), gt, dt, options.rounds, patience=options.patience)
        sizes = [f"{path.stat().st_size / 1e6:.0f} MB" for path in (gt, dt)]
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the end"
        print(f"## {kind}\n\nGround truth {sizes[0]}, detections {sizes[1]}; {options.rounds} rounds, {load}.\n")
        print(f"{processes.markdown(records)}\n\n{_ratios(records)}\n\n{_differences(records)}\n", flush=True)


def _ratios(records: list[processes.Record]) -> str:
    others = [record for record in records if record.name in ("pycocotools", SHAPELY)]
    lines = [
        f"* {record.name}: {record.ratio(other, 'cpu'):.3f} of the CPU time of {other.name},"
        f" {record.ratio(other, 'wall'):.3f} of its wall time"
        for other in others
        for record in records
        if record is not other
    ]
    return "\n".join(lines)


def _differences(records: list[processes.Record]) -> str:
    first, *others = (record for record in records if record.name != SHAPELY)
    far = [max(abs(a - b) for a, b in zip(first.stats, one.stats, strict=True)) for one in others]
    told = ", ".join(f"{one.name} {by:.3g}" for one, by in zip(others, far, strict=True))
    return f"AP {first.stats[0]:.4f}; largest difference of {len(first.stats)} numbers to {first.name}: {told}."


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(tempfile.gettempdir()) / "jaccard-eval-shapes"
    parser.add_argument("--dir", type=Path, default=cache, help="where the scenes are kept (default: %(default)s)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="what to time (repeatable; default: all)")
    parser.add_argument("--images", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--patience", type=float, default=math.inf, metavar="TIMES", help="what takes longer is timed once"
    )
    parser.add_argument("--leave-out", action="append", default=[], metavar="NAME", help="do not time this one")
    parser.add_argument("--draw", choices=KINDS, help="only write the scene of a kind, into --dir")
    parser.add_argument("--peers-python", type=Path, default=Path(sys.executable), metavar="PATH")
    return parser.parse_args()


if __name__ == "__main__":
    main()
