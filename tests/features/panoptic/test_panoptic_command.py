"""The command: documents, gates, intervals, slices, differences, pages; and what it says about files that are wrong."""

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from overruled import overruled
from PIL import Image

from jaccard_eval import DataError, Gates, Rule, Slice, UsageError, compare, gate, load_result, log_metrics, panoptic
from jaccard_eval.cli import run as _run

SAMPLE = Path(__file__).parents[3] / "sample_data" / "panoptic"
GT, BETTER, WORSE = (str(SAMPLE / f"{name}.json") for name in ("gt", "better", "worse"))
WRONG = 42  # entries of the malformed inputs that are of segments


def run(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 0) -> tuple[str, str]:
    assert _run.run(["panoptic", *map(str, argv)]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_the_document_has_the_envelope_of_schema_1_and_counts_by_class(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, GT, BETTER, "--json")[0])
    assert (document["schema"], document["kind"], document["gates"]) == (1, "panoptic", [])
    assert list(document["metrics"])[:3] == ["PQ", "PQ_stuff", "PQ_things"]  # sorted, as all keys are
    rows = {row["class"]: row for row in document["per_class"]}
    # One of four persons is found in the wrong place: 22 of 48 + 44 - 22 pixels are shared.
    assert [rows["person"][name] for name in ("gt", "pred", "TP", "FP", "FN", "isthing")] == [4, 4, 3, 1, 1, True]
    # 11 of 12 rows of 4 pixels; 13 of 14; and 4 x 13 of 4 x 13 + 13 pixels.
    assert rows["person"]["SQ"] == pytest.approx((11 / 12 + 13 / 14 + 4 / 5) / 3, abs=1e-15)
    assert rows["person"]["RQ"] == 3 / 4
    assert document["metrics"]["PQ_things"] == (rows["person"]["PQ"] + rows["car"]["PQ"]) / 2
    assert document["inputs"]["pred"]["ignored"] == {"segments-on-void-or-crowd": 1}
    assert document["inputs"]["gt"]["crowds"] == 1


def test_the_result_is_the_same_by_any_number_of_threads_and_in_any_order(tmp_path: Path) -> None:
    one, several = (panoptic(GT, WORSE, workers=workers).to_dict() for workers in (1, 3))
    assert one == several
    documents = [json.loads(Path(path).read_text()) for path in (GT, WORSE)]
    for document in documents:
        document["annotations"].reverse()
        for record in document["annotations"]:
            record["segments_info"].reverse()
    turned = panoptic(*documents, gt_masks=SAMPLE / "gt", pred_masks=SAMPLE / "worse").to_dict()
    assert (turned["metrics"], turned["signature"]) == (one["metrics"], one["signature"])


def test_predictions_may_number_their_categories_as_they_like(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    expected = panoptic(GT, WORSE)
    document, truth = (json.loads(Path(path).read_text()) for path in (WORSE, GT))
    names = {category["id"]: category["name"] for category in truth["categories"]}
    own = {key: 900 + row for row, key in enumerate(sorted(names))}
    for record in document["annotations"]:
        for segment in record["segments_info"]:
            segment["category_id"] = own[segment["category_id"]]
    (tmp_path / "pred.json").write_text(json.dumps(document))
    given = (GT, tmp_path / "pred.json", "--pred-masks", SAMPLE / "worse")
    assert "map yours with --class-map" in run(capsys, *given, code=3)[1]
    pairs = ",".join(f"{own[key]}={names[key] if key % 2 else key}" for key in names)
    (tmp_path / "map.json").write_text(json.dumps({str(own[key]): key for key in names}))
    for class_map in (pairs, tmp_path / "map.json"):
        mapped = json.loads(run(capsys, *given, "--class-map", class_map, "--json")[0])
        assert mapped["metrics"] == expected.to_dict()["metrics"]
    assert f"|class_map=900={min(names)}," in mapped["signature"]


def test_gates_judge_any_value_and_a_baseline_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    run(capsys, GT, BETTER, "-q", "-o", base)
    assert "passed 2 gates" in run(capsys, GT, BETTER, "--fail-under", "PQ=0.8", "--fail-over", "FP[class=person]=1")[0]
    out, _ = run(capsys, GT, WORSE, "--fail-drop", "PQ_things=0.1", "--baseline", base, code=1)
    assert "FAILED  PQ_things dropped by" in out
    assert _run.run(["gate", str(base), "--fail-under", "RQ[class=person]=0.76"]) == 1
    assert "unknown metric 'AP50' for segments" in run(capsys, GT, BETTER, "--fail-under", "AP50=0.5", code=2)[1]
    assert "unknown class 'dog'" in run(capsys, GT, BETTER, "--fail-under", "PQ[class=dog]=0.5", code=2)[1]


def copied(folder: Path, name: str, times: int = 6) -> Path:
    """Write one side of the sample with each of its images several times."""
    document = json.loads((SAMPLE / f"{name}.json").read_text())
    (folder / name).mkdir()
    annotations, images = [], []
    for k in range(times):
        for record in document["annotations"]:
            shutil.copy(SAMPLE / name / record["file_name"], folder / name / f"{k}_{record['file_name']}")
            more = {"image_id": record["image_id"] + 1_000 * k, "file_name": f"{k}_{record['file_name']}"}
            annotations.append({**record, **more})
        images += [
            {**image, "id": image["id"] + 1_000 * k, "file_name": f"{k}_{image['file_name']}"}
            for image in document.get("images", ())
        ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**document, "annotations": annotations, **({"images": images} if images else {})}))
    return path


def test_intervals_come_from_halves_of_the_images_and_slices_from_some_of_them(tmp_path: Path) -> None:
    gt, worse = (str(copied(tmp_path, name)) for name in ("gt", "worse"))
    many = panoptic(gt, worse, bootstrap=50)
    low, high = many.metrics["PQ"].interval or (np.nan, np.nan)
    assert low < many["PQ"] < high
    assert many["PQ"] == pytest.approx(panoptic(GT, WORSE)["PQ"], abs=1e-12)
    assert any(row.values["PQ"].interval is not None for row in many.per_class)
    first = Slice(name="first", patterns=("street_01.jpg",))
    result = panoptic(GT, WORSE, bootstrap=50, slices=[first])
    assert result.metrics["PQ"].refused == "4 images; an interval needs 20"
    # The estimate of the resampling, each image once, is the result itself.
    drawn = result.bootstrap
    assert drawn is not None
    values = [result[ref] for ref in drawn.refs]
    np.testing.assert_allclose(drawn.estimate, values, rtol=0, atol=1e-15)
    (row,) = result.slices
    alone = [json.loads(Path(path).read_text()) for path in (GT, WORSE)]
    for document in alone:
        document["annotations"] = document["annotations"][:1]
    expected = panoptic(*alone, gt_masks=SAMPLE / "gt", pred_masks=SAMPLE / "worse")
    assert (row.images, row.values["PQ"].value) == (1, expected["PQ"])
    result.save(tmp_path / "r.json")
    again = load_result(tmp_path / "r.json")
    assert again.to_dict() == result.to_dict()


def test_differences_from_other_predictions_are_paired(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = panoptic(GT, BETTER, against=WORSE)
    found = result.against
    assert found is not None
    assert found.versus.summary[0].delta == result["PQ"] - panoptic(GT, WORSE)["PQ"]
    # Four images: with t of three degrees of freedom, a difference of this size may be chance.
    assert found.versus.verdict in ("better", "no different")
    assert [delta.delta for delta in panoptic(GT, BETTER, against=BETTER).against.versus.deltas] == [0.0] * 24  # type: ignore[union-attr]
    result.save(tmp_path / "r.json")
    assert load_result(tmp_path / "r.json").to_dict() == result.to_dict()
    out, _ = run(capsys, GT, BETTER, "--against", WORSE, "--strict")
    assert out.splitlines()[-1].startswith("better.json is ")


def test_files_of_one_name_are_called_by_the_folders_that_tell_them_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, source in (("old", WORSE), ("new", BETTER)):
        target = tmp_path / "runs" / folder / "val"
        target.mkdir(parents=True)
        shutil.copy(source, target / "pred.json")
        shutil.copytree(source.removesuffix(".json"), target / "pred")
    old, new = (tmp_path / "runs" / folder / "val/pred.json" for folder in ("old", "new"))
    out, _ = run(capsys, GT, new, "--against", old, "-q")
    assert re.match(
        r"new/val/pred.json is (better than|not significantly different from) old/val/pred.json: PQ \+", out
    )


def test_differences_of_slices_are_those_of_their_images(capsys: pytest.CaptureFixture[str]) -> None:
    slices = [Slice(name="first", patterns=("street_01.jpg",)), Slice(name="rest", patterns=("street_0[234].jpg",))]
    found = panoptic(GT, BETTER, against=WORSE, slices=slices).against
    assert found is not None
    rows = {row.name: {delta.metric: delta for delta in row.deltas} for row in found.versus.slices}
    values = [{row.name: row.values for row in panoptic(GT, side, slices=slices).slices} for side in (WORSE, BETTER)]
    for name, metric in [(name, metric) for name in rows for metric in ("PQ", "SQ", "RQ")]:
        delta = rows[name][metric]
        assert (delta.baseline, delta.value) == tuple(of_side[name][metric].value for of_side in values)
        assert (delta.interval is None) == (name == "first")  # of one image nothing can be drawn
    out, _ = run(capsys, GT, BETTER, "--against", WORSE, "--slice", "first=*1.jpg", "--slice", "rest=*0[234].jpg")
    assert re.search(r"Difference by slice\n.*\n.*\n  first +PQ +0\.7859 +0\.9525 +\+0\.1666 +n/a +6 +1\n", out)


def test_gates_take_other_predictions_for_a_baseline(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = run(capsys, GT, WORSE, "--against", BETTER, "--fail-significant-drop", "PQ=0.1", code=2)[1]
    assert "PQ has no interval: 4 images; an interval needs 20" in few
    gt, better, worse = (str(copied(tmp_path, name)) for name in ("gt", "better", "worse"))
    against = ("--against", better)
    out, _ = run(capsys, gt, worse, *against, "--fail-significant-drop", "PQ=0.1", code=1)
    assert "FAILED  PQ dropped by 0.1937, more than 0.1" in out
    assert "FAILED" in run(capsys, gt, worse, *against, "--fail-drop", "PQ_stuff=0.05", code=1)[0]
    # A baseline that is named goes first, and need not have been compared with anything.
    run(capsys, gt, worse, "-o", tmp_path / "base.json")
    assert "passed" in run(capsys, gt, worse, *against, "--fail-drop=PQ=0", "--baseline", tmp_path / "base.json")[0]
    # The library judges results in memory alike.
    rules = Gates(rules=(Rule(metric="PQ", max_drop=0.1, significance="significant-drop"),))
    (verdict,) = gate(panoptic(gt, worse), rules, baseline=panoptic(gt, better))
    paired = panoptic(gt, worse, against=better).against
    assert paired is not None
    assert verdict.failed
    assert verdict.spread is not None
    assert verdict.spread.interval == paired.versus.summary[0].interval


def test_a_page_shows_the_worst_images_and_what_became_of_their_segments(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (48, 32), (0, 200, 0)).save(photos / "street_02.jpg")
    page = tmp_path / "r.html"
    _, err = run(capsys, GT, WORSE, "--images", photos, "-o", page)
    assert "image-file-missing" in err  # three of four
    text = page.read_text()
    assert text.count("data:image/png") == 4
    assert re.search(r"PQ 0\.\d+: \d found, \d missed, \d false", text)
    assert "missed (FN)" in text
    run(capsys, GT, WORSE, "--gallery", "0", "-o", page)
    assert "data:image/png" not in page.read_text()


def test_panels_colour_classes_over_the_image_and_states_by_segment(tmp_path: Path) -> None:
    from jaccard_eval.features.panoptic.report import FALSE, FOUND, IGNORED, MISSED
    from jaccard_eval.report.panels import GAP

    record = {"image_id": 1, "file_name": "a.png"}
    categories = [{"id": 1, "name": "a", "isthing": 1}, {"id": 2, "name": "b", "isthing": 1, "color": [10, 20, 30]}]
    gt = {
        "annotations": [record | {"segments_info": [{"id": at, "category_id": 2} for at in (1, 2)]}],
        "categories": categories,
    }
    pred = {"annotations": [record | {"segments_info": [{"id": at, "category_id": at} for at in (1, 2)]}]}
    maps = np.zeros((8, 40), np.int64), np.zeros((8, 40), np.int64)
    maps[0][:, :10], maps[0][:, 10:20] = 1, 2  # two of b
    maps[1][:, 10:20], maps[1][:, 22:40] = 2, 1  # the second is found; one of a lies on void
    maps[0][:, 30:] = 1
    result = panoptic(gt, pred, gt_masks={"a.png": maps[0]}, pred_masks={"a.png": maps[1]})
    gallery = result.images.gallery(1)
    image = np.asarray(Image.open(_stream(gallery.images[0].thumbnail)))
    panels = [image[4, at * (40 + GAP) : at * (40 + GAP) + 40] for at in range(3)]
    assert panels[0][5].tolist() == panels[1][15].tolist() == [10, 20, 30]
    assert [tuple(panels[2][x].tolist()) for x in (5, 15, 21, 25, 35)] == [MISSED, FOUND, IGNORED, FALSE, FALSE]


def _stream(data: bytes) -> Any:
    import io

    return io.BytesIO(data)


def test_malformed_inputs_are_named_with_file_and_record(
    shared_oracle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(shared_oracle / "bad_ext.tar.xz") as archive:
        members = [one for one in archive if "/panoptic" in one.name or one.name.endswith("manifest.json")]
        archive.extractall(tmp_path, members, filter="data")
    (corpus,) = tmp_path.iterdir()
    entries = overruled(json.loads((corpus / "manifest.json").read_text())["entries"])
    entries = [entry for entry in entries if entry["loader"] == "panoptic"]
    assert len(entries) == WRONG
    wrong = []
    for entry in entries:
        files = {role: corpus / path for role, path in entry["files"].items()}
        masks = ("--gt-masks", files["gt_masks"], "--pred-masks", files["pred_masks"])
        code = _run.run(["panoptic", *map(str, (files["gt"], files["pred"], *masks))])
        text = "".join(capsys.readouterr())
        missing = [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)]
        leaked = [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)]
        if code != entry["exit_code"] or missing or leaked or "Traceback" in text:
            wrong.append((entry["id"], code, missing, leaked))
    assert wrong == []


def test_all_problems_are_found_in_one_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLE, tmp_path / "p")
    pred = json.loads((tmp_path / "p" / "better.json").read_text())
    pred["annotations"][0]["segments_info"][0]["category_id"] = 99
    pred["annotations"][1]["segments_info"].append({"id": 77, "category_id": 7})
    del pred["annotations"][1]["segments_info"][0]
    (tmp_path / "p" / "better.json").write_text(json.dumps(pred))
    (tmp_path / "p" / "better" / "street_03.png").unlink()
    Image.new("L", (48, 32)).save(tmp_path / "p" / "better" / "street_04.png")
    Image.new("RGB", (40, 32)).save(tmp_path / "p" / "better" / "street_01.png")
    _, err = run(capsys, tmp_path / "p" / "gt.json", tmp_path / "p" / "better.json", "-o", tmp_path / "r.json", code=3)
    codes = set(re.findall(r"error\[([a-z-]+)\]", err))
    assert codes == {"class-unknown", "segment-absent", "segment-unlisted", "file-missing", "map-mode", "map-size"}
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--dilation-ratio", "0.1"], "boundary"),
        (["--iou-type", "boundary", "--dilation-ratio", "0"], "above 0"),
        (["--against-masks", "."], "against"),
        (["--sort", "AP"], "AP"),
    ],
)
def test_rules_that_cannot_be_end_with_2(capsys: pytest.CaptureFixture[str], argv: list[str], words: str) -> None:
    assert words in run(capsys, GT, BETTER, *argv, code=2)[1]


def test_an_output_never_lies_among_the_maps(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "p")
    pair = (tmp_path / "p" / "gt.json", tmp_path / "p" / "better.json")
    run(capsys, *pair, "-o", tmp_path / "p" / "better" / "street_01.png", code=2)
    run(capsys, *pair, "-o", pair[1], code=2)


def test_a_program_passes_documents_and_arrays_and_gets_plain_errors() -> None:
    with pytest.raises(UsageError, match="gt_masks is missing"):
        panoptic({"annotations": []}, BETTER)
    with pytest.raises(UsageError, match="cannot read a set"):
        panoptic(set(), BETTER)  # type: ignore[arg-type]
    record = {"image_id": 1, "file_name": "a.png", "segments_info": []}
    with pytest.raises(DataError, match=r"there is no map 'a\.png'"):
        panoptic({"annotations": [record], "categories": []}, {"annotations": [record]}, gt_masks={}, pred_masks={})
    logged = log_metrics(panoptic(GT, BETTER))
    assert logged["val/PQ"] == panoptic(GT, BETTER)["PQ"]
    assert "val/RQ/person" in logged


def test_a_comparison_of_boxes_and_an_evaluation_name_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run.run(["evaluate", GT, BETTER]) == 3
    assert "jaccard-eval panoptic" in capsys.readouterr().err
    with pytest.raises(DataError):
        compare(GT, BETTER, WORSE)


def test_folders_of_cityscapes_are_read_with_groups_as_crowds_and_without_other_classes(tmp_path: Path) -> None:
    gt = np.full((4, 12), 7, np.uint16)  # road
    gt[:2, :4], gt[:2, 4:8], gt[:2, 8:] = 26_001, 26, 9  # a car, a group of cars, and parking, which is not evaluated
    pred = gt.copy()
    pred[:2, 4:8], pred[:2, 8:] = 26_002, 24_000  # predictions on the group, and on void
    for name, values in (("gt", gt), ("pred", pred)):
        folder = tmp_path / name / "aachen"
        folder.mkdir(parents=True)
        ending = "_gtFine_instanceIds.png" if name == "gt" else "_instanceIds.png"
        Image.fromarray(values).save(folder / f"aachen_000000_000019{ending}")
        (folder / "aachen_000000_000019_gtFine_color.png").write_bytes(b"not read")
    result = panoptic(tmp_path / "gt", tmp_path / "pred")
    rows = {row.name: (row.tp, row.fp, row.fn) for row in result.per_class}
    assert len(rows) == 19
    assert (rows["road"], rows["car"], rows["person"]) == ((1, 0, 0), (1, 0, 0), (0, 0, 0))
    assert (result.gt.crowds, result.pred.ignored) == (1, {"segments-on-void-or-crowd": 2})
    assert result.gt.format == "cityscapes"


def test_cityscapes_as_its_converter_writes_it_gives_the_same(tmp_path: Path) -> None:
    # Ids are names, segments are class and instance, as createPanopticImgs.py has them.
    values = np.full((4, 12), 7, np.int64)
    values[:2, :4] = 26_001
    found = values.copy()
    found[0, :4] = 7
    categories = [{"id": 7, "name": "road", "isthing": 0}, {"id": 26, "name": "car", "isthing": 1}]
    segments = [{"id": 7, "category_id": 7}, {"id": 26_001, "category_id": 26}]
    record = {"image_id": "aachen_000000_000019", "file_name": "a.png", "segments_info": segments}
    document = {"annotations": [record], "categories": categories}
    by_json = panoptic(document, {"annotations": [record]}, gt_masks={"a.png": values}, pred_masks={"a.png": found})
    for name, one in (("gt", values), ("pred", found)):
        (tmp_path / name).mkdir()
        Image.fromarray(one.astype(np.uint16)).save(tmp_path / name / "aachen_000000_000019_gtFine_instanceIds.png")
    by_folder = panoptic(tmp_path / "gt", tmp_path / "pred")
    assert {name: metric.value for name, metric in by_folder.metrics.items()} == {
        name: metric.value for name, metric in by_json.metrics.items()
    }
    with pytest.raises(DataError, match=r"_gtFine_instanceIds\.png: is of image aachen_000000_000019, as is "):
        panoptic(tmp_path / "gt", tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"there is no map \(\*_instanceIds.png\)"):
        panoptic(tmp_path / "gt", tmp_path / "none")


def test_maps_are_found_where_tools_leave_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    expected = panoptic(GT, WORSE)["PQ"]
    for name, folder in (("own", "."), ("beside", "panoptic_png")):
        shutil.copytree(SAMPLE / "worse", tmp_path / name / folder)
        shutil.copy(WORSE, tmp_path / name / "predictions.json")
        assert panoptic(GT, tmp_path / name / "predictions.json")["PQ"] == expected
        assert panoptic(GT, tmp_path / name)["PQ"] == expected  # whose one JSON file lists segments
    # Those beside may be of another file beside.
    (tmp_path / "beside" / "gt.json").write_text("{}")
    assert (
        "Pass the folder of the PNG files with --pred-masks"
        in run(capsys, GT, tmp_path / "beside" / "predictions.json", code=3)[1]
    )
    shutil.copy(WORSE, tmp_path / "own" / "again.json")
    assert "holds 2 JSON files with segments_info" in run(capsys, GT, tmp_path / "own", code=3)[1]
