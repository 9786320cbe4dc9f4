"""Time panoptic quality: 500 images of 640 x 480 pixels with about twelve segments each, next to panopticapi.

``python benchmarks/panoptic.py --peer-python PATH`` times whole processes, this project's with one thread and with all
processors, and panopticapi's in one process, as far as PATH can import it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import processes

WIDTH, HEIGHT = 640, 480
N_THINGS, N_STUFF = 80, 53
PEER = Path(__file__).parent / "peers" / "with_panopticapi.py"
OURS = """
import json, sys, jaccard_eval
result = jaccard_eval.panoptic(sys.argv[1], sys.argv[2], workers=int(sys.argv[3]) or None)
print(json.dumps([metric.value for metric in result.metrics.values()]))
"""


def main() -> None:
    """Draw the scene, run every contender in turn, and print medians and the largest difference of a number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", type=Path, default=Path(sys.executable), help="Python that has panopticapi")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="only draw the scene")
    options = parser.parse_args()
    if options.draw is not None:
        draw(options.draw, options.images)
        return
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: a process starts with the memory peak of the one that started it.
        subprocess.run([sys.executable, __file__, "--draw", folder, "--images", str(options.images)], check=True)
        gt, pred = (Path(folder) / f"{side}.json" for side in ("gt", "pred"))
        contenders = {
            "jaccard-eval, 1 thread": [sys.executable, "-c", OURS, str(gt), str(pred), "1"],
            "jaccard-eval, all processors": [sys.executable, "-c", OURS, str(gt), str(pred), "0"],
        }
        peer = processes.Contender("panopticapi", "panopticapi", options.peer_python, (), lambda _: [])
        if processes.installed([peer]):
            contenders["panopticapi, 1 process"] = [str(options.peer_python), str(PEER), str(gt), str(pred)]
        used: dict[str, list[processes.Usage]] = {name: [] for name in contenders}
        found: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, argv in contenders.items():
                usage, output = processes.measure(argv)
                used[name].append(usage)
                found[name] = json.loads(output.splitlines()[-1])
    print("| program | seconds | of the processor | MB |\n|---|---:|---:|---:|")
    for name, usages in used.items():
        wall, cpu, peak = (
            statistics.median(getattr(usage, what) for usage in usages) for what in ("wall", "cpu", "peak_mb")
        )
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {peak:.0f} |")
    first, *others = found.values()
    worst = max((abs(a - b) for other in others for a, b in zip(first, other, strict=True)), default=0.0)
    print(f"\nPQ {first[0]:.4f}; the largest difference of a number is {worst:.1e}.")


def draw(folder: Path, n_images: int) -> None:
    """Write both sides: stuff in bands, things as ellipses over it, void between; predictions move and miss some."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(n_images)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    records: dict[str, list[dict[str, Any]]] = {"gt": [], "pred": []}
    for side in records:
        (folder / side).mkdir()
    for number in range(n_images):
        maps = {side: np.zeros((HEIGHT, WIDTH), np.int64) for side in records}
        classes: dict[int, tuple[int, int]] = {}
        edges = np.sort(rng.integers(40, HEIGHT - 40, 3))
        wave = (20 * np.sin(columns / 60 + rng.random() * 6)).astype(int)
        for at in range(4):
            key = int(rng.integers(1, 2**24))
            classes[key] = (int(rng.integers(N_THINGS, N_THINGS + N_STUFF)), 0)
            top, bottom = (0, *edges)[at], (*edges, HEIGHT + 40)[at]
            for side, shift in (("gt", 0), ("pred", int(rng.integers(-6, 7)))):
                maps[side][(rows + wave + shift >= top) & (rows + wave + shift < bottom - 3)] = key
        for _ in range(int(rng.integers(4, 13))):
            key = int(rng.integers(1, 2**24))
            classes[key] = (int(rng.integers(N_THINGS)), int(rng.random() < 0.05))
            x, y, w, h = rng.integers((0, 0, 12, 12), (WIDTH, HEIGHT, 132, 132))
            for side, moved in (("gt", 0.0), ("pred", 0.15)):
                if side == "pred" and rng.random() < 0.15:
                    continue
                dx, dy = rng.normal(0, 1, 2) * moved * (w, h)
                maps[side][((columns - x - dx) / w) ** 2 + ((rows - y - dy) / h) ** 2 < 1] = key
        for side, values in maps.items():
            ids, areas = np.unique(values[values > 0], return_counts=True)
            segments = [
                {"id": key, "category_id": classes[key][0], "iscrowd": classes[key][1], "area": area}
                for key, area in zip(ids.tolist(), areas.tolist(), strict=True)
            ]
            name = f"{number:06}.png"
            pixels = np.stack([values & 255, values >> 8 & 255, values >> 16], axis=-1).astype(np.uint8)
            Image.fromarray(pixels).save(folder / side / name)
            records[side].append({"image_id": number, "file_name": name, "segments_info": segments})
    categories = [{"id": at, "name": f"class {at}", "isthing": int(at < N_THINGS)} for at in range(N_THINGS + N_STUFF)]
    images = [{"id": at, "file_name": f"{at:06}.jpg", "width": WIDTH, "height": HEIGHT} for at in range(n_images)]
    documents = {"gt": {"images": images, "categories": categories}, "pred": {}}
    for side, document in documents.items():
        (folder / f"{side}.json").write_text(json.dumps(document | {"annotations": records[side]}))


if __name__ == "__main__":
    main()
