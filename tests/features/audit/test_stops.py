"""What was beyond doubt read wrongly stops the run, with the flag that mends it; nothing else does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from planting import Outcome, Pair, run_evaluate, suggested_flags

from jaccard_eval import BoxTable, DataError, compare, evaluate, explain, inspect, load, sensitivity, verify
from jaccard_eval.cli.run import run
from jaccard_eval.data.document import document_digest

Box = list[float]
Loader = Callable[[str], Pair]

# Corners (x, y, x + w, y + h) taken for a size give IoU w h / ((x + w) (y + h)): below 0.17 at all of these places.
PLACES = [(200.0, 150.0), (100.0, 300.0), (400.0, 100.0), (300.0, 250.0), (500.0, 380.0), (150.0, 60.0)]
SIZE = (60.0, 80.0)


def _scene(folder: Path, *, n_images: int = 6, n_boxes: int = 6, change: Callable[[Box], Box] = list) -> list[str]:
    """Write objects, and predictions of all of them whose boxes are changed; return the paths."""
    boxes = [(image, [*place, *SIZE]) for image in range(1, n_images + 1) for place in PLACES[:n_boxes]]
    gt = {
        "images": [{"id": image, "width": 640, "height": 480} for image in range(1, n_images + 1)],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": row, "image_id": image, "category_id": 1, "bbox": box, "area": 4800, "iscrowd": 0}
            for row, (image, box) in enumerate(boxes, 1)
        ],
    }
    pred = [
        {"image_id": image, "category_id": 1, "bbox": change(box), "score": round(0.9 - row / 1000, 3)}
        for row, (image, box) in enumerate(boxes)
    ]
    return _write(folder, gt, pred)


def _write(folder: Path, gt: Any, pred: Any) -> list[str]:
    paths = [folder / "gt.json", folder / "pred.json"]
    for path, content in zip(paths, (gt, pred), strict=True):
        path.write_text(json.dumps(content))
    return list(map(str, paths))


def _corners(box: Box) -> Box:
    x, y, w, h = box
    return [x, y, x + w, y + h]


def _run(capture: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capture.readouterr()
    code = run(list(argv))
    shown = capture.readouterr()
    return code, shown.out, shown.err


def test_a_stop_ends_with_3_evidence_and_flag_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, out = _scene(tmp_path, change=_corners), tmp_path / "result.json"
    code, shown, said = _run(capsys, "evaluate", *paths, "-o", str(out))
    assert (code, shown, out.exists()) == (3, "", False)
    assert said == (
        f"error[box-encoding]: {paths[1]}: box: boxes look like xyxy: AP50 0.000 as given, 1.000 as xyxy. "
        "Rerun with --pred-box xyxy. To go on as it is, add --allow box-encoding.\n"
    )
    assert _run(capsys, "evaluate", *paths, "--pred-box", "xyxy", "-o", str(out))[0] == 0
    assert json.loads(out.read_text())["metrics"]["AP"] == 1.0


def test_a_gate_stops_with_3_and_never_fails_over_a_misread_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = _scene(tmp_path, change=_corners)
    assert _run(capsys, "evaluate", *paths, "--fail-under", "AP=0.5")[0] == 3
    assert _run(capsys, "evaluate", *paths, "--fail-under", "AP=0.5", "--pred-box", "xyxy")[0] == 0
    assert _run(capsys, "evaluate", *paths, "--fail-under", "AP=0.5", "--allow", "box-encoding")[0] == 1


@pytest.mark.parametrize("flags", [("--allow", "box-encoding"), ("--pred-box", "xywh")])
def test_what_is_allowed_or_named_is_scored_with_a_warning(
    flags: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_evaluate(capsys, *_scene(tmp_path, change=_corners), *flags)
    assert (outcome.code, outcome.ap) == (0, 0.0)
    (warning,) = outcome.warnings("box-encoding")
    assert warning["message"].endswith("Rerun with --pred-box xyxy.")


def test_another_code_that_is_allowed_does_not_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_evaluate(capsys, *_scene(tmp_path, change=_corners), "--allow", "box-units").code == 3


def test_units_that_were_named_are_not_doubted_and_the_encoding_still_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = _scene(tmp_path, change=_corners)
    assert list(run_evaluate(capsys, *paths, "--pred-units", "px").errors) == ["box-encoding"]


@pytest.mark.parametrize(
    ("n_images", "n_boxes", "code"), [(50, 6, 3), (4, 6, 3), (1, 6, 3), (1, 4, 3), (10, 3, 3), (40, 1, 0), (1, 3, 0)]
)
def test_a_stop_takes_what_chance_could_not_do_whatever_the_number_of_boxes(
    n_images: int, n_boxes: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Exact boxes: each place is worth -log(.0002 n) = 8.5 - log(n) nats, of which 14 are needed. One place on 40 images
    # is one thing that a constant box may have hit; three objects are too few to try another reading.
    paths = _scene(tmp_path, n_images=n_images, n_boxes=n_boxes, change=_corners)
    assert run_evaluate(capsys, *paths).code == code


@pytest.mark.parametrize(("n_places", "code"), [(4, 0), (6, 3)])
def test_poorer_boxes_need_more_places(
    n_places: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Boxes 60 px wide that are 15 px beside have IoU 45 / 75 = .6. Of four, each is worth -log(.02 * 4) nats at IoU .5:
    # 10.1 together. Of six, three are exact: a half, where chance has .0002 * 6; 6 * (.5 log(.5 / .0012) +
    # .5 log(.5 / .9988)) = 16.0 nats.
    turn = iter(range(10**6))

    def change(box: Box) -> Box:
        x, y, w, h = box
        return _corners([x + (15 if n_places == 4 or next(turn) % 2 else 0), y, w, h])

    assert run_evaluate(capsys, *_scene(tmp_path, n_images=1, n_boxes=n_places, change=change)).code == code


def _mixed(share: float) -> Callable[[Box], Box]:
    """Return what turns all boxes into corners but one in so many."""
    count = iter(range(10**6))
    return lambda box: list(box) if next(count) % round(1 / share) == 0 else _corners(box)


@pytest.mark.parametrize(("share", "code"), [(0.01, 3), (0.02, 0), (0.2, 0)])
def test_more_than_one_prediction_in_a_hundred_that_matches_as_given_prevents_a_stop(
    share: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 50 images with 4 objects: 200 predictions, of which 2, 4 or 40 are as they should be.
    paths = _scene(tmp_path, n_images=50, n_boxes=4, change=_mixed(share))
    assert run_evaluate(capsys, *paths).code == code


@pytest.mark.parametrize(("found", "code"), [(3, 3), (2, 0)])
def test_another_reading_must_find_half_of_the_objects(
    found: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of 6 objects in each of 20 images, 3 are found under the other reading: exactly one half, or 2: a third.
    count = iter(range(10**6))

    def change(box: Box) -> Box:
        return _corners(box) if next(count) % 6 < found else [600.0, 440.0, 604.0, 444.0]

    assert run_evaluate(capsys, *_scene(tmp_path, n_images=20, change=change)).code == code


def test_boxes_that_are_alike_in_both_readings_speak_for_neither(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # At 0, 0 the corners of a box are its width and height: every sixth prediction matches, whatever is right.
    def at_origin(folder: Path, change: Callable[[Box], Box]) -> Outcome:
        paths = _scene(folder, change=list)
        gt, pred = (json.loads(Path(path).read_text()) for path in paths)
        for records in (gt["annotations"], pred):
            for row, record in enumerate(records):
                record["bbox"] = [0.0, 0.0, *SIZE] if row % 6 == 0 else record["bbox"]
        for record in pred:
            record["bbox"] = change(record["bbox"])
        return run_evaluate(capsys, *_write(folder, gt, pred))

    assert at_origin(tmp_path, list).code == 0
    assert list(at_origin(tmp_path, _corners).errors) == ["box-encoding"]


def test_full_frames_never_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Every object fills its image, and every prediction the lower right quarter: no reading finds them.
    paths = _scene(tmp_path, n_images=40, n_boxes=1)
    gt, pred = (json.loads(Path(path).read_text()) for path in paths)
    for record in gt["annotations"]:
        record["bbox"] = [0, 0, 640, 480]
    for record in pred:
        record["bbox"] = [0, 0, 640, 480]
    assert run_evaluate(capsys, *_write(tmp_path, gt, pred)).ap == 1.0
    for record in pred:
        record["bbox"] = [320, 240, 320, 240]
    assert run_evaluate(capsys, *_write(tmp_path, gt, pred)).code == 0


@pytest.mark.parametrize("step", [1, -1])
def test_image_ids_off_by_one_stop_and_the_flag_restores_ap(
    step: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 3 objects in each of 12 images, none of which has its place in another image; images 0 and 13 have none. Shifted
    # predictions have 11 images in common with objects: 33 could match, and none does.
    rows = [(image, [50.0 * image, 150.0 * row, 40.0, 80.0]) for image in range(1, 13) for row in range(3)]
    gt = {
        "images": [{"id": image, "width": 800, "height": 480} for image in range(14)],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": row, "image_id": image, "category_id": 1, "bbox": box, "area": 3200, "iscrowd": 0}
            for row, (image, box) in enumerate(rows, 1)
        ],
    }
    pred = [{"image_id": image + step, "category_id": 1, "bbox": box, "score": 0.5} for image, box in rows]
    paths = _write(tmp_path, gt, pred)
    errors = run_evaluate(capsys, *paths).errors
    assert list(errors) == ["image-shifted"]
    flags = suggested_flags(errors["image-shifted"])
    assert flags == ["--match-images", f"id{-step:+d}"]
    assert run_evaluate(capsys, *paths, *flags).ap == 1.0
    assert run_evaluate(capsys, *paths, "--match-images", "id").ap == 0.0


def test_the_library_raises_for_paths_and_warns_for_loaded_data_and_arrays(tmp_path: Path) -> None:
    gt, pred = _scene(tmp_path, change=_corners)
    with pytest.raises(DataError, match=r"^error\[box-encoding\]"):
        evaluate(gt, pred)
    assert evaluate(gt, pred, allow=["box-encoding"])["AP"] == 0
    assert evaluate(gt, load(pred, role="pred"))["AP"] == 0
    rows = list(range(40))
    boxes = [[*PLACES[row % 6], *SIZE] for row in rows]
    corners = [_corners(box) for box in boxes]
    objects = BoxTable.from_arrays(rows, [0] * 40, boxes, encoding="xywh")
    found = BoxTable.from_arrays(rows, [0] * 40, corners, encoding="xywh", score=[0.5] * 40)
    result = evaluate(objects, found)
    assert (result["AP"], "box-encoding" in {one.code for one in result.findings}) == (0, True)


def test_every_verb_that_measures_two_files_stops_and_goes_on_when_allowed(tmp_path: Path) -> None:
    gt, pred = _scene(tmp_path, change=_corners)
    good = tmp_path / "good.json"
    good.write_text(json.dumps([record | {"bbox": [5, 5, 9, 9]} for record in json.loads(Path(pred).read_text())]))
    for verb in (explain, sensitivity):
        with pytest.raises(DataError, match=r"^error\[box-encoding\].* Rerun with .*\(box=.xyxy.\)\."):
            verb(gt, pred)
        verb(gt, pred, allow=["box-encoding"])
    with pytest.raises(DataError, match=r"^error\[box-encoding\]"):
        compare(gt, good, pred)
    compare(gt, good, pred, allow=["box-encoding"])


@pytest.mark.parametrize(("command", "code"), [("compare", 3), ("explain", 3), ("sensitivity", 3), ("inspect", 0)])
def test_commands_stop_but_inspect_which_tells_everything(
    command: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = _scene(tmp_path, change=_corners)
    sides = [gt, pred, pred] if command == "compare" else [gt, pred]
    out = tmp_path / "out.json"
    assert _run(capsys, command, *sides, "-o", str(out))[0] == code
    assert out.exists() == (code == 0)
    assert _run(capsys, command, *sides, "--allow", "box-encoding")[0] == 0
    assert "box-encoding" in {one.code for one in inspect(gt, pred).findings}


def test_what_was_allowed_once_is_verified_and_explained_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = _scene(tmp_path, change=_corners)
    result = str(tmp_path / "result.json")
    assert _run(capsys, "evaluate", gt, pred, "--allow", "box-encoding", "-o", result)[0] == 0
    document = json.loads(Path(result).read_text())
    assert document["options"] == {"allow": ["box-encoding"]}
    assert "allow" not in document["signature"]
    assert _run(capsys, "explain", result)[0] == 0
    # As a version that never stopped wrote it.
    plain = document | {"options": {}}
    Path(result).write_text(json.dumps(plain | {"digest": document_digest(plain)}))
    assert verify(result, gt, pred).differences == ()
    assert _run(capsys, "explain", result)[0] == 3
    assert _run(capsys, "explain", result, "--allow", "box-encoding")[0] == 0


def _csv(folder: Path, name: str, rows: list[str], header: str) -> str:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


GT_HEADER, PRED_HEADER = "filename,class,xmin,ymin,xmax,ymax", "filename,class,score,xmin,ymin,xmax,ymax"


@pytest.mark.parametrize(("known", "code"), [(2, 3), (3, 0)])
def test_images_of_which_nearly_all_are_unknown_stop(
    known: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 2 of 40 prediction images are known: 95 % are not; 3 of 40: 92.5 %. A CSV does not list images without objects.
    gt = _csv(tmp_path, "gt.csv", [f"{row}.jpg,dog,100,100,160,180" for row in range(known)], GT_HEADER)
    rows = [f"{row}.jpg,dog,0.{99 - row},300,300,360,380" for row in range(40)]
    pred = _csv(tmp_path, "pred.csv", rows, PRED_HEADER)
    outcome = run_evaluate(capsys, gt, pred)
    assert outcome.code == code
    if code:
        message = outcome.errors["image-extra"]
        assert f"{40 - known} of 40 prediction images are not in the ground truth {gt}" in message
        assert message.endswith(
            "predictions overlap 0 of the 2 objects of the others. Check that both are of the same split. "
            "If so, rerun with --extra-images empty."
        )
        assert "image-extra" not in outcome.said.replace("error[image-extra]", "")
        for flags in (["--extra-images", "empty"], ["--extra-images", "ignore"], ["--allow", "image-extra"]):
            assert run_evaluate(capsys, gt, pred, *flags).code == 0


def test_rare_objects_that_are_found_say_that_the_other_images_are_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt = _csv(tmp_path, "gt.csv", [f"{row}.jpg,dog,100,100,160,180" for row in range(3)], GT_HEADER)
    rows = [f"{row}.jpg,dog,0.{999 - row},100,100,160,180" for row in range(90)]
    outcome = run_evaluate(capsys, gt, _csv(tmp_path, "pred.csv", rows, PRED_HEADER))
    assert outcome.code == 0
    assert [one["code"] for one in outcome.warnings("image-extra")] == ["image-extra"]


def test_frames_and_lists_of_dicts_are_the_callers_own_statement(tmp_path: Path) -> None:
    paths = _scene(tmp_path, change=_corners)
    gt, pred = (json.loads(Path(path).read_text()) for path in paths)
    rows = [dict(zip(("x", "y", "w", "h"), record["bbox"], strict=True)) | record for record in pred]
    frame = pd.DataFrame(rows).drop(columns="bbox")
    for given in (frame, pred):
        result = evaluate(paths[0], given)
        assert (result["AP"], "box-encoding" in {finding.code for finding in result.findings}) == (0.0, True)
    assert evaluate(gt, paths[1])["AP"] == 0.0
