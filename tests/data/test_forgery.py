"""Whoever chooses rows as he likes gets no other inputs with the same fingerprint, and no order of rows is needed."""

import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import evaluate
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.signature import RowHasher, _canonical_order, fingerprint

ROOT = Path(__file__).parents[2]
FORGE = ROOT.parent / "shared/cases/reliability/forge.py"
NAMES = (("a", "b"), ("cat", "dog"))


@pytest.mark.skipif(not FORGE.exists(), reason="needs the folder `shared` next to the checkout")
def test_rows_with_chosen_hashes_give_other_fingerprints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The script gives other rows the hashes of given ones, which a sum of hashes cannot tell apart.
    shutil.copytree(ROOT / "sample_data/coco", tmp_path / "sample_data/coco")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, str(FORGE)], check=True, capture_output=True)
    given = evaluate("sample_data/coco/gt.json", "sample_data/coco/worse.json")
    pred = evaluate("sample_data/coco/gt.json", "forged_pred.json")
    gt = evaluate("forged_gt.json", "sample_data/coco/worse.json")
    assert pred["AP"] != given["AP"] != gt["AP"]
    assert len({result.pred.fingerprint for result in (given, pred)}) == 2
    assert len({result.gt.fingerprint for result in (given, gt)}) == 2


def scene(x: list[float]) -> BoxTable:
    n = len(x)
    boxes = [[value, 0, 10, 10] for value in x]
    return BoxTable.from_arrays([0] * n, [0] * n, boxes, score=[0.5] * n, encoding="xywh")


def test_rows_whose_hashes_have_a_given_sum_are_told_apart() -> None:
    """A k-tree finds rows that hit a chosen sum; here with 2 lists of 2,048 rows and a sum of 20 bits, by the same way.

    Each list has one row for its half of the table, so that any pair is a valid table: 2^22 pairs hit 2^20 sums about
    four times each. More lists hit wider sums: 2,048 rows one of 128 bits.
    """
    hasher, rng = RowHasher.of(*NAMES), np.random.default_rng(5)
    lists = [np.unique(rng.uniform(low, low + 100, 2048)) for low in (0.0, 1000.0)]
    left, right = (hasher(scene(values.tolist())) & np.uint64(0xFFFFF) for values in lists)
    target = (left[0] + right[0]) & np.uint64(0xFFFFF)
    at = {int(value): row for row, value in enumerate(right.tolist())}
    pairs = [(i, at[j]) for i, value in enumerate(left.tolist()) if (j := int(int(target) - value) % 2**20) in at]
    assert len(pairs) > 1  # forged by the sum
    prints = {fingerprint(scene([float(lists[0][i]), float(lists[1][j])]), NAMES, "pred", "px")[1] for i, j in pairs}
    assert len(prints) == len(pairs)


def test_rows_with_one_hash_stand_in_an_order_of_their_content() -> None:
    words = np.array([[3, 1], [1, 2], [1, 1], [3, 1]], dtype=np.uint64)
    image, hashes = np.zeros(4, dtype=np.int32), np.full(4, 7, dtype=np.uint64)
    found = set()
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        shuffled = words[order]
        rows, alike = _canonical_order(image, hashes, lambda rows, shuffled=shuffled: shuffled[rows])
        assert alike
        found.add(shuffled[rows].tobytes())
    assert len(found) == 1


def test_blocks_of_images_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    names = tuple(f"{i}.jpg" for i in range(50)), ("cat", "dog")
    image, label = rng.integers(0, 50, 300), rng.integers(0, 2, 300)
    table = BoxTable.from_arrays(image, label, rng.integers(0, 9, (300, 4)), score=rng.random(300), encoding="xywh")
    prints = set()
    for rows, core in product((1, 7, 1 << 14), ("1", "0")):
        monkeypatch.setattr("jaccard_eval.data.signature.BLOCK_ROWS", rows)
        monkeypatch.setenv("JACCARD_EVAL_NATIVE", core)
        prints.add(fingerprint(table.take(rng.permutation(300)), names, "pred", "px")[1])
    assert len(prints) == 1
