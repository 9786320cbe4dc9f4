"""`--images-in-common` through the commands: what follows from the images that are left, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json

IMAGES = "abcdefgh"
CATEGORIES = [{"id": 1, "name": "dog"}]


def _record(image: int, left: float, **more: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": 1, "bbox": [left, 0, 10, 10], "area": 100, "iscrowd": 0, **more}


def _side(path: Path, images: str, records: list[dict[str, Any]]) -> Path:
    named = [{"id": IMAGES.index(name), "file_name": f"{name}.jpg", "width": 99, "height": 99} for name in images]
    kept = [{**one, "id": i + 1} for i, one in enumerate(records) if IMAGES[one["image_id"]] in images]
    return write_json(path, {"images": named, "annotations": kept, "categories": CATEGORIES})


# A dog on every image; found on every second one, at its place, with another dog where there is none on the others.
OBJECTS = [_record(i, 0) for i in range(8)]
FOUND = [_record(i, 40 * (i % 2), score=0.9 - i / 100) for i in range(8)]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    """The whole ground truth, predictions of all images but a and b, and of all but c; then what all have."""
    return {
        "gt": _side(tmp_path / "gt.json", "abcdefgh", OBJECTS),
        "pred": _side(tmp_path / "pred.json", "cdefgh", FOUND),
        "other": _side(tmp_path / "other.json", "abdefgh", FOUND),
        "common": _side(tmp_path / "common.json", "cdefgh", OBJECTS),
        "least": _side(tmp_path / "least.json", "defgh", OBJECTS),
        "least_pred": _side(tmp_path / "least_pred.json", "defgh", FOUND),
    }


def _document(*argv: str | Path) -> dict[str, Any]:
    done = run_here(*argv, "--isolated", "--json") if argv[0] == "evaluate" else run_here(*argv, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_every_number_is_that_of_files_cut_to_these_images(paths: dict[str, Path]) -> None:
    asked = ["--bootstrap", "20", "--slice", "few=[cd]*", "--score", "0.5", "--errors"]
    cut = _document("evaluate", paths["common"], paths["pred"], *asked)
    ours = _document("evaluate", paths["gt"], paths["pred"], *asked, "--images-in-common")
    for part in ("metrics", "per_class", "slices", "bootstrap", "operating_points", "errors"):
        assert ours[part] == cut[part], part
    # 3 of 6 dogs are found, each before a false one: precision 1, 2/3, 3/5 at recall 1/6, 2/6, 3/6 of 101 points.
    points = [1.0] * 17 + [2 / 3] * 17 + [3 / 5] * 17
    assert ours["metrics"]["AP50"] == pytest.approx(sum(points) / 101)
    assert ours["options"] == {**cut["options"], "images_in_common": True}
    assert set(ours["signature_fields"]) - set(cut["signature_fields"]) == {"images_in_common"}
    (warning,) = (one for one in ours["warnings"] if one["code"] == "images-in-common")
    assert "2 images of" in warning["message"]
    assert "with 2 objects ('a.jpg', 'b.jpg')" in warning["message"]


def test_a_saved_run_knows_these_images_alone(paths: dict[str, Path], tmp_path: Path) -> None:
    saved = [tmp_path / "run.npz", tmp_path / "run.json"]
    outputs = [word for path in saved for word in ("-o", path)]
    done = run_here("evaluate", paths["gt"], paths["pred"], "--images-in-common", "--isolated", *outputs)
    assert done.returncode == 0, done.stderr
    again = run_here("verify", saved[1], "--gt", paths["gt"], "--pred", paths["pred"])
    assert again.returncode == 0, again.stderr
    same = run_here("gate", saved[1], "--isolated", "--baseline", saved[1], "--fail-drop", "AP=0.01")
    assert same.returncode == 0, same.stderr


def test_a_baseline_on_other_images_is_refused(paths: dict[str, Path], tmp_path: Path) -> None:
    before, gate = tmp_path / "before.json", ["--fail-drop", "AP=0.5", "--isolated"]
    assert run_here("evaluate", paths["gt"], paths["other"], "--images-in-common", "-o", before).returncode == 0
    done = run_here("evaluate", paths["gt"], paths["pred"], "--images-in-common", "--baseline", before, *gate)
    assert done.returncode == 2
    assert "images_in_common" in done.stderr


def test_a_comparison_is_on_the_images_that_all_predictions_list(paths: dict[str, Path]) -> None:
    ours = _document("compare", paths["gt"], paths["pred"], paths["other"], "--images-in-common", "--bootstrap", "20")
    cut = _document("compare", paths["least"], paths["least_pred"], paths["least_pred"], "--bootstrap", "20")
    assert ours["comparisons"][0]["metrics"] == cut["comparisons"][0]["metrics"]
    assert ours["signature_fields"]["images"] == "5"
    said = [one["message"] for one in ours["warnings"] if one["code"] == "images-in-common"]
    assert any("with 3 objects ('a.jpg', 'b.jpg', 'c.jpg')" in message for message in said)


@pytest.mark.parametrize("command", ["evaluate", "compare", "explain", "sensitivity", "inspect"])
def test_a_side_that_lists_only_images_with_boxes_is_refused(
    command: str, paths: dict[str, Path], tmp_path: Path
) -> None:
    results = write_json(tmp_path / "results.json", FOUND[2:])
    done = run_here(command, paths["gt"], results, *([results] if command == "compare" else []), "--images-in-common")
    assert done.returncode == 2
    assert "results.json: images in common need all images" in done.stderr


def test_the_advice_for_label_files_is_followed(paths: dict[str, Path], tmp_path: Path) -> None:
    """Nothing was found on g.jpg, and the model wrote no file for it: it is evaluated, and its dog is missed."""
    labels, pictures = tmp_path / "labels", tmp_path / "pictures"
    for folder in (labels, pictures):
        folder.mkdir()
    from PIL import Image

    for name in "efg":
        Image.new("L", (99, 99)).save(pictures / f"{name}.jpg")
    for name in "ef":
        (labels / f"{name}.txt").write_text(f"0 {5 / 99} {5 / 99} {10 / 99} {10 / 99} 0.9\n")
    argv = ["evaluate", paths["gt"], labels, "--images-in-common", "--pred-names", "dog", "--isolated", "--json"]
    refused = run_here(*argv)
    assert refused.returncode == 2
    assert "YOLO labels with --pred-images DIR" in refused.stderr
    done = run_here(*argv, "--pred-images", pictures)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["signature_fields"]["images"] == "3"
    assert document["metrics"]["AP50"] == pytest.approx(67 / 101)  # 2 of 3 dogs: recall 0, .01, ... .66
