"""The compiled core under the sanitizers of its compiler: nothing leads to an access beyond what is given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaccard_eval import native

SOURCES = sorted(native.LIBRARY.parent.glob("*.cpp"))
COMPILER = shutil.which("g++")
# Damages results lists and ground truth in every place, then ranks and pairs boxes of every awkward kind and number,
# and finds hits, then counts maps of any size and writes rows of any numbers, in a process whose allocations the
# sanitizer knows.
PROGRAM = """
import io, random, sys
from pathlib import Path
import numpy as np
from jaccard_eval import native
from jaccard_eval.native import calls
from jaccard_eval.native.calls import scan_results, scan_truth

native.LIBRARY = Path(sys.argv[1])
assert native.load_core() is not None
rng = random.Random(7)

def scan(text):
    # A piece ends where the text does, as does the buffer: bytes have a 0 behind them.
    if text[:1] == b"[":
        return scan_results(io.BytesIO(text), len(text))
    calls.PIECE = rng.choice((7, 64, 1 << 20))
    return scan_truth(text)

def draw(text):
    role = "pred" if text[:1] == b"[" else "gt"
    for poses, read in ((False, calls.read_outlines), (True, calls.read_poses)):
        scanned = calls.scan_shapes(text, poses=poses, role=role)
        calls.PIECE = rng.choice((7, 64, 1 << 20))
        calls.scan_shape_list(io.BytesIO(text), len(text), poses=poses)
        calls.PIECE = 1 << 20
        found = None if scanned is None else read(text, scanned)
        if found is None or poses:
            continue
        sizes = np.where(found.has_polygons[:, None], [[90, 7]], found.sizes)
        edges, offsets = calls.fill_polygons(
            found.corners, found.rings, found.parts, sizes, (found.edges, found.offsets)
        )
        calls.measure_masks(edges, offsets, sizes)
        rows = np.arange(len(sizes))
        calls.gather(edges, offsets, rows[::-1], len(edges))
        calls.intersect((edges, offsets), (edges, offsets), rows, rows[::-1].copy())

SHAPES = [
    b'[{"image_id":1,"category_id":1,"score":1,"segmentation":{"size":[3,4],"counts":"06<0"}},'
    b'{"segmentation":[[1,2,30.5,4,5,60],[-9,-9,1e8,2,3,70]],"image_id":1,"category_id":1,"score":1}]',
    b'{"annotations":[{"segmentation":{"counts":[1,5,0,6],"size":[3,4]}},{"segmentation":[[1,2,3,4,5,6]]}]}',
    b'[{"image_id":1,"category_id":1,"score":1,"keypoints":[1,2,2,3.5,4,0]}]',
]
texts = [Path(path).read_bytes() for path in sys.argv[2:]]
for text in SHAPES:
    for end in range(len(text) + 1):
        draw(text[:end])
    for _ in range(1500):
        place, n = rng.randrange(len(text)), rng.choice((0, 1, 1, 9))
        filler = bytes(rng.choices(b'"{}[],:.-+eE019oP \\\\', k=rng.choice((0, 1, 1, 9))))
        draw(text[:place] + filler + text[place + n :])
for start in (b"[", b"{"):
    assert any(scan(text) is not None for text in texts if text.startswith(start))
for text in texts:
    for end in range(min(len(text), 600)):
        scan(text[:end])
    for _ in range(400):
        place, n = rng.randrange(len(text)), rng.choice((0, 1, 1, 30))
        filler = bytes(rng.choices(b'"{}[],:.-+eE019 \\n\\\\\\0\\x80', k=rng.choice((0, 1, 1, 40))))
        scan(text[:place] + filler + text[place + n :])

ODD = (0.0, -0.0, 1.0, 2.5, -3.0, 1e308, 5e-324, np.inf, -np.inf, np.nan)
draw = np.random.default_rng(7)
n_pairs = 0
for turn in range(2000):
    n, m, n_images, n_labels = (int(draw.integers(low, 9)) for low in (0, 0, 1, 1))
    image, label = draw.integers(0, n_images, n, np.int32), draw.integers(0, n_labels, n)
    turns, cap = draw.permutation(n), int(draw.integers(0, n + 2))
    order, key, rank = calls.rank(draw.choice(ODD, n), label, image, turns, n_images=n_images, cap=cap)
    assert len(order) <= n and set(order.tolist()) <= set(range(n)) and (rank < max(cap, 1)).all()
    start = draw.integers(0, m + 1, len(order))
    blocks = start, np.minimum(start + draw.integers(0, 4, len(order)), m)
    calls.CHUNK_PAIRS = int(draw.integers(0, 5))  # less than there is to find, or nothing
    values = ODD if turn % 2 else ODD[2:4]
    crowd = draw.random(m) < 0.3 if turn % 3 else None
    detections, truth = draw.choice(values, (n, 4)), draw.choice(values, (m, 4))
    box, other, overlap = calls.pair_boxes(detections, order, truth, blocks, crowd, threshold=0.1, offset=turn % 2)
    assert all(blocks[0][i] <= j < blocks[1][i] for i, j in zip(box.tolist(), other.tolist()))
    n_pairs += len(box)
    at_all = draw.random(m) < 0.3
    wins = calls.first_come(draw.permutation(len(box)), other, overlap, np.array([0.1, 0.5]), at_all)
    assert wins.shape == (2, len(box)) and wins[0].sum() >= len(set(other.tolist()))
    calls.pack_rows(order, detections, None, detections[:, 0], np.empty((len(order), 8), np.uint64))
    ends = np.append(0, np.cumsum(draw.integers(0, 12, n)))
    digests = calls.digest_rows(turns[:, None], [(draw.choice(ODD, ends[-1]), ends), (turns, np.arange(n + 1))], 16)
    assert digests is None or len(digests) == 16 * n
    labels, rows = np.sort(label), np.flatnonzero(draw.random(n) < 0.7)
    hit, counts = draw.random((2, 3, len(rows))) < 0.5
    bounds = np.append(np.flatnonzero(draw.random(n) < 0.5), n)
    ties = (np.unique(np.append(0, bounds)).astype(np.int32), turn % 2) if turn % 3 and n else None
    of_all, of_rows = (labels, draw.integers(0, 9, n), draw.random(n) < 0.5), (rows, hit, counts)
    found, before, count = calls.find_hits(of_all, of_rows, n_labels=n_labels, cap=cap, ties=ties)
    assert set(found.tolist()) <= set(rows.tolist()) and count.sum() == len(found) == len(before) <= hit.sum()
    ends, reached = np.cumsum(count).reshape(count.shape), np.sort(draw.integers(1, 5, (n_labels, 4)))
    narrow, wide = (
        calls.interpolate(total, before.astype(total.dtype), (ends - count, ends), reached, epsilon=2.0**-52)
        for total in (np.arange(len(found) + 1, dtype=kind) for kind in (np.int32, np.int64))
    )
    assert narrow.shape == (3, 4, n_labels) and (narrow == wide).all()
    stop, weights = ends, draw.integers(0, 4 + 9 * (turn % 2), n_images)
    base, change = (draw.integers(0, n_images, int(draw.integers(0, 9))) for _ in range(2))
    places = (draw.integers(0, len(one) + 1, size) for size in (len(found), count.shape) for one in (base, change))
    sign = draw.choice([-1, 1], len(change))
    lists = calls.HitLists(base, change, sign, image[found], *places, stop - count, stop)
    kept = np.flatnonzero(draw.random(n_labels) < 0.7)
    needed = np.sort(draw.integers(1, 5, (len(kept), 4)))
    precision, weighed = calls.weigh_curves(weights, lists, kept, needed, epsilon=2.0**-52)
    assert precision.shape == (3, 4, len(kept)) and weighed.sum() == weights[image[found]].sum()
assert n_pairs > 100

for turn in range(2000):
    height, width = (int(draw.integers(1, top)) for top in (5, 30))
    kinds, top = draw.choice([np.uint8, np.uint16, np.uint32], 2), int(draw.choice([2, 200, 2**8]))
    calls.FIRST_CAPACITY = int(draw.choice([1, 2, 1024]))
    sides = [draw.integers(0, top, (height, width)).astype(kind) for kind in kinds]
    assert calls.count_pairs(*sides)[2].sum() == height * width

for turn in range(2000):
    n, width = (int(draw.integers(low, 6)) for low in (0, 1))
    finite = [*ODD[:7], *1 / draw.integers(1, 10**9, 9), -1e-5, 1e15 + 0.5]
    values = draw.choice(ODD if turn % 2 else finite, (n, width))
    pieces = [b"", bytes(turn % 40), b"ab"], draw.integers(0, 3, n)
    how = {"json": bool(turn % 3), "with_point": bool(turn % 5)}
    written = calls.write_rows([pieces, values, ([b";"], None)], n, mark=",", **how)
    assert np.isfinite(values).all() == (written is not None)
    listed = np.frombuffer(f"[{','.join(map(str, values.ravel().tolist()))}]".encode(), np.uint8)
    for end in (len(listed), int(draw.integers(1, len(listed) + 1))):
        calls.read_numbers(listed[:end].copy(), max(values.size - int(draw.integers(0, 2)), 0))
print("done", len(texts))
"""


def runtime(name: str) -> str:
    """Return the path of a library of the compiler."""
    return subprocess.run(
        [str(COMPILER), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs g++ on Linux")
def test_damaged_texts_and_odd_boxes_lead_to_no_fault(tmp_path: Path) -> None:
    library = tmp_path / "core.so"
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC"]
    subprocess.run([str(COMPILER), *flags, *map(str, SOURCES), "-o", str(library)], check=True)
    root = Path(__file__).parents[2]
    corpus = sorted((root / "sample_data").rglob("*.json")) + sorted((root.parent / "shared" / "data").rglob("*.json"))
    small = [str(path) for path in corpus if path.stat().st_size < 50_000]
    preloaded = os.pathsep.join(map(runtime, ("libasan.so", "libubsan.so", "libstdc++.so")))
    environment = {
        "LD_PRELOAD": preloaded,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees little at its end
        "PYTHONMALLOC": "malloc",  # or the sanitizer would not know where a text ends
        native.VARIABLE: "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library), *small],
        check=False,
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("done")
