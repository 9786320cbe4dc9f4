"""The document of an evaluation is the same bytes whichever engine made it, findings included."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_boxes import drawn_pedestrians
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shaped import KINDS, give_shapes, shape_options

from jaccard_eval import ReadOptions, Slice, evaluate
from jaccard_eval.codes import STOPS
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
    "duplicates of voc": {"protocol": "voc2007", "drop_duplicates": True},
    "free response": {"protocol": "froc"},
    "confusion": {"confusion": True},
    "confusion at a score": {"confusion": True, "score": 0.5, "max_dets": (1, 2, 5)},
    "confusion of voc": {"confusion": True, "protocol": "voc2007", "nms": 0.9},
    "confusion of one class": {"confusion": True, "class_agnostic": True, "score": "best-f1"},
}


@pytest.mark.slow
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
    small_parts: Callable[..., None],
    name: str,
    seed: int,
    n: int,
    decimals: int,
    parts: int,
    bucket_rows: int,
) -> None:
    gt, pred = write_scene(tmp_path_factory.mktemp("scene"), seed, n, decimals)
    memory = evaluate(gt, pred, engine="memory", **OPTIONS[name])
    small_parts(max(1, n // parts), bucket_rows)
    on_disk = evaluate(gt, pred, engine="disk", workers=1 + seed % 2, **OPTIONS[name])
    assert document(on_disk) == document(memory)
    for ref in ("AP[max_dets=1]",) if name == "coco" else ():
        assert on_disk[ref] == memory[ref]
    # Miss rates are read off the hits, which curves at 101 recalls do not keep: another pass finds them.
    for ref in ("LAMR", "CPM", "LAMR[class=dog]") if name in ("coco", "caps", "voc2012", "free response") else ():
        assert repr(on_disk[ref]) == repr(memory[ref])
    for ref in ("recall[iou=0.5,score=0.37]", "F1[iou=0.5,score=0.5,class=dog]") if name in ("coco", "voc2012") else ():
        assert repr(on_disk[ref]) == repr(memory[ref])


@pytest.mark.parametrize("protocol", ["citypersons", "caltech"])
def test_miss_rates_of_subsets_are_the_same_bytes(
    tmp_path: Path, small_parts: Callable[..., None], protocol: str
) -> None:
    gt, pred = drawn_pedestrians(3)
    sides = tmp_path / "gt.json", tmp_path / "pred.json"
    for path, content in zip(sides, (gt, pred), strict=True):
        path.write_text(json.dumps(content))
    small_parts(40, 50)
    memory = on_disk_as_in_memory(sides, protocol=protocol)
    assert memory["LAMR[subset=all]"] > 0


def write_shapes(folder: Path, kind: str, seed: int, n: int, decimals: int) -> tuple[Path, Path]:
    """The scene with shapes on both sides, as COCO has them."""
    return give_shapes(write_scene(folder, seed, n, decimals), kind, seed)


def on_disk_as_in_memory(sides: tuple[Path, Path], **options: Any) -> Any:
    """Return the document of the memory, which that of the disk is equal to."""
    memory, on_disk = (evaluate(*sides, engine=engine, workers=2, **options) for engine in ("memory", "disk"))
    assert document(on_disk) == document(memory)
    return memory


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([3, 60, 200]),
    decimals=st.sampled_from([4, 1]),
    parts=st.sampled_from([1, 3, 17]),
    nms=st.sampled_from([None, 0.6]),
)
def test_the_document_of_shapes_is_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    small_parts: Callable[..., None],
    kind: str,
    seed: int,
    n: int,
    decimals: int,
    parts: int,
    nms: float | None,
) -> None:
    sides = write_shapes(tmp_path_factory.mktemp("shapes"), kind, seed, n, decimals)
    options = {"confusion": True, "drop_duplicates": seed % 2 == 0, "nms": nms, **shape_options(kind)}
    small_parts(max(1, n // parts) * disk.SHAPE_ROWS)
    memory = on_disk_as_in_memory(sides, **options)
    assert n < 60 or memory["AP50"] > 0  # some are found


@pytest.mark.parametrize(
    ("kind", "gt", "pred", "published"),
    [
        ("segm", "instances_val2014_100.json", "instances_val2014_fakesegm100_results.json", 0.3195452758576433),
        ("keypoints", "gt_dataset.json", "dt_dataset.json", 0.5048844884488449),
    ],
)
def test_real_shapes_are_the_same_bytes_on_the_disk(
    kind: str, gt: str, pred: str, published: float, shared_data: Path, small_parts: Callable[..., None]
) -> None:
    where = "dataset/cocoapi" if kind == "segm" else "keypoints_dataset"
    folder = shared_data / "faster-coco-eval/tests" / where
    small_parts(50 * disk.SHAPE_ROWS)
    memory = on_disk_as_in_memory((folder / gt, folder / pred), iou_type=kind)
    assert memory["AP"] == pytest.approx(published, abs=1e-12)


def test_findings_about_masks_are_the_same_on_the_disk(tmp_path: Path, small_parts: Callable[..., None]) -> None:
    small_parts(9 * disk.SHAPE_ROWS)
    gt, pred = write_shapes(tmp_path, "segm", 3, 60, 4)
    found = json.loads(pred.read_text())
    changes: dict[str, Callable[[list[float]], list[float]]] = {
        "fractions": lambda ring: [value / 400 for value in ring],
        "sizes": lambda ring: ring,
        "axes": lambda ring: [value for at in range(0, len(ring), 2) for value in (ring[at + 1], ring[at] + 120)],
        "elsewhere": lambda ring: [value - 900 for value in ring],
    }
    codes = []
    for name, change in changes.items():
        for record in found:
            mask = record["segmentation"]
            mask = {**mask, "size": [320, 240]} if name == "sizes" and isinstance(mask, dict) else mask
            record["changed"] = [change(mask[0])] if isinstance(mask, list) else mask
        pred.write_text(json.dumps([{**record, "segmentation": record.pop("changed")} for record in found]))
        said = []
        for engine in ("memory", "disk"):
            try:
                said.append(evaluate(gt, pred, iou_type="segm", engine=engine).findings)
            except DataError as error:
                said.append(error.findings)
        assert said[0] == said[1]
        codes += [finding.code for finding in said[0] if finding.code.startswith("mask")]
    assert {"mask-units", "mask-size", "mask-axes", "mask-empty"} <= {*codes}


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
    with pytest.raises(UsageError, match='Evaluate with engine="memory"'):
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
    """The scene of the COCO files as tables: folders of uneven files, images in any order, some without boxes."""
    gt, pred = write_scene(folder, seed, n, 2)
    rng = np.random.default_rng(seed)
    truth = json.loads(gt.read_text())["annotations"]
    sides = []
    for name, rows in (("gts", truth), ("preds", json.loads(pred.read_text())[:n])):
        sides.append(folder / name)
        sides[-1].mkdir()
        names = ["image_id", "category_id", "area" if name == "gts" else "score"]
        columns = {column: [row[column] for row in rows] for column in names}
        columns |= dict(zip(("x", "y", "width", "height"), np.array([row["bbox"] for row in rows]).T, strict=True))
        columns |= {"iscrowd": [row["iscrowd"] for row in rows]} if name == "gts" else {}
        write_shards(sides[-1], columns, rng.permutation(len(rows)))
    return sides[0], sides[1]


def write_shards(folder: Path, columns: dict[str, Any], order: Any) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for place, part in enumerate(np.array_split(order, 3)):
        shard = {name: np.array(values, dtype=object)[part].tolist() for name, values in columns.items()}
        # A box of no height is a warning with a count.
        shard["height"][:: 7 + place] = [0.0] * len(shard["height"][:: 7 + place])
        if folder.name == "gts":
            # A row may name an image only.
            for name in ("category_id", "area", "x", "y", "width", "height", "iscrowd"):
                shard[name][:: 9 + place] = [None] * len(shard[name][:: 9 + place])
        parquet.write_table(arrow.table(shard), folder / f"{place}.parquet", row_group_size=20)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [9, 1000])
def test_tables_that_are_read_in_parts_give_the_same_bytes(
    tmp_path: Path, small_parts: Callable[..., None], seed: int, rows: int
) -> None:
    gt, preds = write_parquet(tmp_path, seed, 90)
    slices = {"slices": [Slice(name="odd", patterns=("[13579]",))]}
    memory = evaluate(gt, preds, engine="memory", **slices)
    small_parts(rows)
    assert document(evaluate(gt, preds, engine="disk", **slices)) == document(memory)
    assert {"box-empty", "csv-row-no-box"} <= {finding.code for finding in memory.findings}


def faulty_truth(n: int) -> dict[str, Any]:
    """Objects in whole pixels with one of each fault that checks look for, far apart in the file."""
    rng = np.random.default_rng(7)
    box = np.concatenate((rng.integers(0, 150, (n, 2)), rng.choice([8, 20, 60], (n, 2))), axis=1).astype(float)
    image = np.arange(n) % N_IMAGES
    size = np.tile([320.0, 240.0], (n, 1))
    label = rng.integers(0, 3, n)
    box[5], box[n // 2] = (300, 100, 60, 30), (-90, 10, 60, 30)  # one leaves its image, one lies outside
    box[7], image[7], label[7] = box[n - 3], image[n - 3], label[n - 3]  # a repeated row
    box[11], image[11], label[11] = box[n - 8] + [0, 0, 0, 0.005], image[n - 8], label[n - 8]  # nearly one
    box[13, 2] = 0
    box[20] = (-10, -10, 500, 400)
    size[image == 4], box[image == 4, :2] = (240, 320), (250, 20)  # transposed
    names = np.array(NAMES)[label].tolist()
    columns = {"image_id": image.tolist(), "category": names, "difficult": (rng.random(n) < 0.1).tolist()}
    columns |= dict(zip(("image_width", "image_height"), size.T.tolist(), strict=True))
    return columns | dict(zip(("x", "y", "width", "height"), box.T.tolist(), strict=True))


def predictions_of(truth: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    n = len(truth["x"])
    boxes = {
        name: (np.array(truth[name]) + rng.uniform(0.1, 1.1, n)).tolist() for name in ("x", "y", "width", "height")
    }
    known = {name: truth[name] for name in ("image_id", "category")}
    return known | boxes | {"score": rng.random(n).round(2).tolist()}


def with_zeros(columns: dict[str, Any]) -> dict[str, Any]:
    last = {"image_id": 99, **dict.fromkeys(("x", "y", "width", "height"), 0.0)}
    return {name: [*values[:-1], last.get(name, values[-1])] for name, values in columns.items()}


FAULTS = {
    "none": lambda columns: columns,
    # What a part cannot decide alone: whether an image has boxes, and which of two sizes comes first.
    "zeros": with_zeros,
    "sizes": lambda columns: columns | {"image_width": [*columns["image_width"][:-1], 999.0]},
    "spelling": lambda columns: (
        columns | {"image_id": [f"0{row}" if row == 3 else str(row) for row in columns["image_id"][:-1]] + ["3"]}
    ),
}


@pytest.mark.parametrize("side", ["gt", "pred", "both"])
def test_a_side_without_boxes_is_the_same_bytes(tmp_path: Path, side: str) -> None:
    gt, pred = write_scene(tmp_path, 2, 60, 4)
    if side != "pred":
        gt.write_text(json.dumps(json.loads(gt.read_text()) | {"annotations": []}))
    if side != "gt":
        pred.write_text("[]")
    memory, on_disk = (evaluate(gt, pred, engine=name, score="best-f1") for name in ("memory", "disk"))
    assert document(on_disk) == document(memory)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("rows", [17, 1000])
def test_findings_about_ground_truth_are_the_same_bytes(
    tmp_path: Path, small_parts: Callable[..., None], fault: str, rows: int
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sound = faulty_truth(120)
    truth = FAULTS[fault](sound)
    pred = predictions_of(sound) | ({"image_id": list(map(str, sound["image_id"]))} if fault == "spelling" else {})
    paths = tmp_path / "gt.parquet", tmp_path / "pred.parquet"
    for path, columns in zip(paths, (truth, pred), strict=True):
        parquet.write_table(arrow.table(columns), path, row_group_size=30)
    options = {"extra_images": "empty", "allow": STOPS}
    memory = evaluate(*paths, engine="memory", **options)
    small_parts(rows)
    assert document(evaluate(*paths, engine="disk", **options)) == document(memory)
    codes = {finding.code for finding in memory.findings}
    expected = {
        "none": {"gt-duplicate", "gt-near-duplicate", "gt-unmatchable", "box-outside", "box-gigantic", "box-empty"}
        | {"difficult-counted", "image-size-transposed", "box-rounded"},
        "zeros": {"csv-row-zero"},
        "sizes": {"image-size-conflict"},
        "spelling": {"image-names-alike"},
    }
    assert expected[fault] <= codes


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


def test_parts_in_other_units_are_read_as_the_whole_or_refused_with_the_option(
    tmp_path: Path, small_parts: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    gt, preds = write_parquet(tmp_path, 1, 60)
    table = parquet.read_table(preds / "2.parquet").to_pydict()
    for name in ("x", "y", "width", "height"):
        table[name] = [value / 1000 + 0.001 for value in table[name]]
    parquet.write_table(arrow.table(table), preds / "2.parquet")
    small_parts(20)
    assert document(evaluate(gt, preds, engine="disk")) == document(evaluate(gt, preds, engine="memory"))
    monkeypatch.setattr(disk, "usable_memory", lambda: 0)
    with pytest.raises(DataError, match="units of one part are read as"):
        evaluate(gt, preds, engine="disk")
    options = ReadOptions(role="pred", units="px")
    memory, on_disk = (evaluate(gt, preds, engine=name, pred_options=options) for name in ("memory", "disk"))
    assert document(on_disk) == document(memory)
