"""The document of an evaluation is the same bytes whichever engine made it, findings included."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaccard_eval import ReadOptions, Slice, evaluate
from jaccard_eval.engine import disk
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError

N_IMAGES = 12
NAMES = ["cat", "dog", "fox"]


def document(result: Any) -> str:
    return json.dumps(result.to_dict(), sort_keys=True)


def write_scene(folder: Path, seed: int, n: int, decimals: int) -> tuple[Path, Path]:
    """COCO files with crowds, small and large objects, repeated rows, and predictions near objects or anywhere."""
    rng = np.random.default_rng(seed)
    m = n // 3 + 2
    images = [{"id": i + 1, "file_name": f"{i:03}.jpg", "width": 320, "height": 240} for i in range(N_IMAGES)]
    boxes = np.concatenate((rng.integers(0, 120, (m, 2)), rng.choice([8, 30, 110], (m, 2))), axis=1).tolist()
    annotations = [
        {
            "id": int(i if seed % 2 else i + 1),
            "image_id": int(rng.integers(1, N_IMAGES)),
            "category_id": int(rng.integers(1, 4)),
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": int(rng.random() < 0.1),
        }
        for i, box in enumerate(boxes)
    ]
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)]
    results = []
    for _ in range(n):
        near = annotations[int(rng.integers(0, m))]
        shift = rng.integers(-5, 6, 4)
        box = [float(value) for value in np.maximum(np.array(near["bbox"]) + shift, 1)]
        results.append(
            {
                "image_id": near["image_id"] if rng.random() < 0.8 else int(rng.integers(1, N_IMAGES + 1)),
                "category_id": near["category_id"] if rng.random() < 0.9 else int(rng.integers(1, 4)),
                "bbox": box,
                "score": float(np.round(rng.random(), decimals)),
            }
        )
    results += results[: seed % 3]
    gt, pred = folder / "gt.json", folder / "pred.json"
    gt.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    pred.write_text(json.dumps(results))
    return gt, pred


OPTIONS: dict[str, dict[str, Any]] = {
    "coco": {},
    "voc2007": {"protocol": "voc2007"},
    "voc2012": {"protocol": "voc2012", "score": "best-f1"},
    "caps": {"max_dets": (1, 2, 5), "score": 0.5},
    "no cap": {"max_dets": (), "score": "best-f1"},
    "agnostic": {"class_agnostic": True},
    "slices": {"slices": [Slice(name="few", patterns=("000.jpg", "00[4-9].jpg"))]},
    "classes": {"classes": ["dog", "cat"], "score_min": 0.3},
    "duplicates and nms": {"drop_duplicates": True, "nms": 0.6},
    "thresholds": {"iou": (0.3, 0.5, 0.75), "class_map": "auto"},
}


@pytest.mark.parametrize("name", OPTIONS)
@settings(deadline=None, max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([3, 60, 300]),
    decimals=st.sampled_from([4, 1, 0]),
    parts=st.sampled_from([1, 3, 17]),
    bucket_rows=st.sampled_from([10, 100, 10**4]),
)
def test_the_document_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    seed: int,
    n: int,
    decimals: int,
    parts: int,
    bucket_rows: int,
) -> None:
    gt, pred = write_scene(tmp_path_factory.mktemp("scene"), seed, n, decimals)
    memory = evaluate(gt, pred, engine="memory", **OPTIONS[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "PART_ROWS", max(1, n // parts))
        patch.setattr(disk, "BUCKET_ROWS", bucket_rows)
        patch.setattr(disk, "LEAST_PART_ROWS", 1)
        on_disk = evaluate(gt, pred, engine="disk", workers=1 + seed % 2, **OPTIONS[name])
    assert document(on_disk) == document(memory)
    for ref in ("AP[max_dets=1]",) if name == "coco" else ():
        assert on_disk[ref] == memory[ref]
    for ref in ("recall[iou=0.5,score=0.37]", "F1[iou=0.5,class=dog]") if name in ("coco", "voc2012") else ():
        assert repr(on_disk[ref]) == repr(memory[ref])


def test_scratch_is_removed_with_the_result_and_after_a_failure(tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = evaluate(gt, pred, engine="disk", scratch=scratch)
    assert len(list(scratch.iterdir())) == 1
    assert repr(result["AP50"])
    del result
    gc.collect()
    assert not list(scratch.iterdir())
    with pytest.raises(UsageError):
        evaluate(gt, pred, engine="disk", scratch=scratch, classes=["cow"])
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    "options", [{"bootstrap": 10}, {"errors": True}, {"worst_images": 3}], ids=lambda options: next(iter(options))
)
def test_what_needs_all_matches_is_refused_with_a_way_that_works(tmp_path: Path, options: dict[str, Any]) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    with pytest.raises(UsageError, match='Pass engine="memory"'):
        evaluate(gt, pred, engine="disk", **options)
    assert evaluate(gt, pred, engine="memory", **options).metrics


@pytest.mark.parametrize("attribute", ["matches", "missed"])
def test_matches_are_refused_with_a_way_that_works(tmp_path: Path, attribute: str) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    result = evaluate(gt, pred, engine="disk")
    with pytest.raises(UsageError, match="Pass --engine memory"):
        getattr(result, attribute)
    assert len(getattr(evaluate(gt, pred, engine="memory"), attribute)["image"])


@pytest.mark.parametrize(
    ("limit", "ending"),
    [("100MiB", "at least 256MiB"), (1000, "at least 256MiB"), ("much", "512MiB or 2GiB"), ("1e9", "512MiB or 2GiB")],
)
def test_a_memory_limit_that_cannot_be_kept_is_refused(limit: Any, ending: str) -> None:
    with pytest.raises(UsageError, match=ending):
        evaluate("gt.json", "pred.json", memory_limit=limit)


def write_parquet(folder: Path, seed: int, n: int) -> tuple[Path, Path]:
    """The scene of the COCO files as tables: predictions in a folder of uneven files, images in any order."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    gt, pred = write_scene(folder, seed, n, 2)
    rng = np.random.default_rng(seed)
    preds = folder / "preds"
    preds.mkdir()
    rows = [json.loads(pred.read_text())[i] for i in rng.permutation(n)]
    for place, part in enumerate(np.array_split(np.arange(n), 3)):
        columns = {name: [rows[i][name] for i in part] for name in ("image_id", "category_id", "score")}
        columns |= dict(zip(("x", "y", "width", "height"), np.array([rows[i]["bbox"] for i in part]).T, strict=True))
        # A box of no height is a warning with a count.
        columns["height"][:: 7 + place] = 0
        parquet.write_table(arrow.table(columns), preds / f"{place}.parquet", row_group_size=20)
    return gt, preds


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [9, 1000])
def test_tables_that_are_read_in_parts_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, rows: int
) -> None:
    gt, preds = write_parquet(tmp_path, seed, 90)
    memory = evaluate(gt, preds, engine="memory")
    monkeypatch.setattr(disk, "PART_ROWS", rows)
    monkeypatch.setattr(disk, "LEAST_PART_ROWS", 1)
    assert document(evaluate(gt, preds, engine="disk")) == document(memory)
    assert "box-empty" in {finding.code for finding in memory.findings}


def test_a_part_that_is_cut_off_is_an_error_with_its_name(tmp_path: Path) -> None:
    gt, preds = write_parquet(tmp_path, 1, 60)
    whole = (preds / "1.parquet").read_bytes()
    (preds / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"1\.parquet: cannot be read"):
        evaluate(gt, preds, engine="disk", scratch=tmp_path)
    assert not list(tmp_path.glob("jaccard-eval-scratch-*"))


def test_parts_of_unequal_columns_are_an_error_with_the_name_of_one(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    gt, preds = write_parquet(tmp_path, 1, 60)
    table = parquet.read_table(preds / "2.parquet").drop_columns(["score"])
    parquet.write_table(arrow.table(table), preds / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet: no column 'score'"):
        evaluate(gt, preds, engine="disk")


def test_parts_in_other_units_are_an_error_that_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    gt, preds = write_parquet(tmp_path, 1, 60)
    table = parquet.read_table(preds / "2.parquet").to_pydict()
    for name in ("x", "y", "width", "height"):
        table[name] = [value / 1000 + 0.001 for value in table[name]]
    parquet.write_table(arrow.table(table), preds / "2.parquet")
    monkeypatch.setattr(disk, "PART_ROWS", 20)
    monkeypatch.setattr(disk, "LEAST_PART_ROWS", 1)
    with pytest.raises(DataError, match="units of one part are read as"):
        evaluate(gt, preds, engine="disk")
    options = ReadOptions(role="pred", units="px")
    memory, on_disk = (evaluate(gt, preds, engine=name, pred_options=options) for name in ("memory", "disk"))
    assert document(on_disk) == document(memory)
