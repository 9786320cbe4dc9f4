"""Suspected labels: the pieces by hand, and planted errors found again among the first of each kind."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from command_line import run_here
from labels import DETECTORS, KINDS, Boxes, damage, detect, draw_truth, right_among, table

from jaccard_eval import BoxTable, Dataset, Gates, UsageError, evaluate, gate, labels, load, to_frame
from jaccard_eval.features.labels import LabelsResult
from jaccard_eval.features.labels.compute import Company, Truth, isotonic

N_CLASSES = 24
NAMES = [f"class {k}" for k in range(N_CLASSES)]
COLUMNS = ["kind", "image", "class", "suggested", "score", "xmin", "ymin", "xmax", "ymax", "reason", "object"]


def drawn(name: str, seed: int = 0) -> tuple[Boxes, Boxes, np.random.Generator]:
    rng = np.random.default_rng(seed)
    truth = draw_truth(rng, k=N_CLASSES)
    return truth, detect(truth, next(how for key, how in DETECTORS.items() if key[0] == name), rng, N_CLASSES), rng


def asked(truth: Boxes, *seen: Boxes) -> LabelsResult:
    return labels(table(truth, scored=False, names=NAMES), *(table(one, scored=True, names=NAMES) for one in seen))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        # Right among the first 100 of each kind; 150 are planted in 1,000 images, 100 of them doubled.
        ("A", {"missing": 85, "class": 90, "box": 68, "spurious": 48, "duplicate": 95}),
        ("B", {"missing": 85, "class": 90, "box": 68, "spurious": 48, "duplicate": 95}),
        ("E", {"missing": 45, "class": 60, "box": 36, "spurious": 20, "duplicate": 95}),
    ],
)
def test_planted_errors_are_among_the_first_suspects(name: str, least: dict[str, int]) -> None:
    truth, seen, rng = drawn(name)
    planted = damage(truth, 150, rng, N_CLASSES, 100)
    found = right_among(asked(planted.boxes, seen), planted, 100, NAMES, int)
    assert all(found[kind] >= least[kind] for kind in KINDS), found


def test_a_second_independent_model_raises_precision() -> None:
    truth, seen, rng = drawn("C")
    planted = damage(truth, 150, rng, N_CLASSES, 100)
    other = detect(truth, DETECTORS["C recall .6, many false"], rng, N_CLASSES)
    one, two = (
        right_among(asked(planted.boxes, *files), planted, 100, NAMES, int) for files in ([seen], [seen, other])
    )
    assert all(two[kind] > one[kind] for kind in ("missing", "class", "box", "spurious")), (one, two)


def test_the_same_file_twice_is_one_opinion() -> None:
    truth, seen, _ = drawn("A")
    once, twice = asked(truth, seen), asked(truth, seen, seen)
    assert [finding.code for finding in twice.findings] == ["predictions-alike"]
    assert twice.suspects == once.suspects


def test_spurious_objects_are_not_looked_for_where_low_scores_were_cut_off() -> None:
    truth, seen, _ = drawn("A")
    cut = asked(truth, seen.take(np.flatnonzero(seen.score >= 0.5)))
    assert list(cut.refused) == ["spurious"] and "kept no low scores: 0.50" in cut.refused["spurious"]
    assert not [suspect for suspect in cut.suspects if suspect.kind == "spurious"]
    assert not asked(truth, seen).refused


def test_isotonic_regression_pools_what_falls() -> None:
    # Hits 1, 0, 1, 1 by rising score: the first two are out of order and share their mean, 1/2.
    scores, share = isotonic(np.array([0.4, 0.1, 0.2, 0.3]), np.array([True, True, False, True]))
    assert (scores.tolist(), share.tolist()) == ([0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 1.0, 1.0])
    # Equal scores share one value: 1 of 2, then 0 of 1 below pools to 1 of 3.
    scores, share = isotonic(np.array([0.2, 0.2, 0.3]), np.array([True, False, False]))
    assert scores.tolist() == [0.2, 0.3] and share == pytest.approx([1 / 3, 1 / 3])


def test_company_knows_which_classes_belong_together() -> None:
    # 40 streets of cars and lorries, 40 farms of cows and sheep: a cow is improbable among cars.
    image = np.repeat(np.arange(80), 4)
    label = np.tile([0, 1, 0, 1] * 40 + [2, 3, 2, 3] * 40, 1)
    boxes = BoxTable.from_arrays(image, label, np.tile([0.0, 0, 10, 10], (320, 1)))
    company = Company(Truth.of(boxes, np.zeros(320, bool), units="px", n_images=80, n_labels=4))
    street = np.zeros(4, np.int64)
    chance = company.of(street, np.arange(4))
    assert chance.sum() == pytest.approx(1) and chance[0] > 5 * chance[2]


def test_an_annotation_has_one_suspicion_and_crowds_have_none() -> None:
    truth, seen, rng = drawn("A")
    planted = damage(truth, 150, rng, N_CLASSES, 100)
    result = asked(planted.boxes, seen)
    kinds = [suspect.object for suspect in result.suspects if suspect.kind in ("class", "spurious", "duplicate")]
    assert len(kinds) == len(set(kinds))
    gt = BoxTable.from_arrays([0, 0], ["a", "a"], [[0, 0, 10, 10], [0, 0, 10, 9]], crowd=[False, True])
    pred = BoxTable.from_arrays([0, 0], ["a", "a"], [[1, 0, 10, 10], [1, 1, 9, 9]], score=[0.9, 0.8])
    assert [(suspect.kind, suspect.object) for suspect in labels(gt, pred).suspects] == [("box", "0")]


def test_a_missing_object_is_the_detection_and_a_wrong_class_the_annotation(tmp_path: Path) -> None:
    gt = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "truck"}],
        "annotations": [
            {"id": 4711, "image_id": 7, "category_id": 1, "bbox": [0, 0, 20, 20], "area": 400, "iscrowd": 0}
        ],
    }
    pred = [
        {"image_id": 7, "category_id": 2, "bbox": [0, 0, 20, 20], "score": 0.9},
        {"image_id": 7, "category_id": 1, "bbox": [50, 50, 30, 40], "score": 0.8},
    ]
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    (tmp_path / "pred.json").write_text(json.dumps(pred))
    done = run_here("labels", "gt.json", "pred.json", "-o", "labels.csv", "-o", "labels.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["kind"]: row for row in csv.DictReader((tmp_path / "labels.csv").read_text().splitlines())}
    assert list(rows["class"]) == COLUMNS
    expected = {"image": "a.jpg", "class": "car", "suggested": "truck", "xmax": "20.0", "object": "4711"}
    assert expected.items() <= rows["class"].items()
    assert rows["class"]["reason"].startswith("labelled car, predicted as truck at 0.90")
    missing = {"class": "car", "suggested": "car", "xmin": "50.0", "ymax": "90.0", "object": ""}
    assert missing.items() <= rows["missing"].items()
    document = json.loads((tmp_path / "labels.json").read_text())
    assert document["kind"] == "labels" and {suspect["kind"] for suspect in document["suspects"]} == {*rows}
    frame = to_frame(labels(tmp_path / "gt.json", tmp_path / "pred.json"))
    assert list(frame.columns) == COLUMNS and len(frame) == len(rows)


def test_suspects_do_not_depend_on_the_order_of_files_rows() -> None:
    truth, seen, rng = drawn("A")
    planted = damage(truth, 150, rng, N_CLASSES, 100).boxes
    mixed = rng.permutation(len(seen.label))
    first, second = (to_frame(asked(planted, files)) for files in (seen, seen.take(mixed)))
    columns = ["kind", "image", "class", "suggested", "score"]
    assert first[columns].equals(second[columns])


def reviewed_pair(folder: Path) -> None:
    """Write ten images with a car each, on one of them called a truck; and one with a second car that has no label."""
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 100, "height": 100} for k in range(10)]
    box = [10, 10, 30, 30]
    annotations = [
        {"id": 100 + k, "image_id": k, "category_id": 2 if k == 3 else 1, "bbox": box, "area": 900, "iscrowd": 0}
        for k in range(10)
    ]
    annotations[0]["note"] = "kept as it is"
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "truck"}]
    pred = [{"image_id": k, "category_id": 1, "bbox": box, "score": 0.9} for k in range(10)]
    pred.append({"image_id": 5, "category_id": 1, "bbox": [60, 60, 20, 20], "score": 0.8})
    gt = {"images": images, "annotations": annotations, "categories": categories, "info": {"year": 2026}}
    (folder / "gt.json").write_text(json.dumps(gt))
    (folder / "pred.json").write_text(json.dumps(pred))


def review(folder: Path, verdicts: dict[str, str]) -> None:
    """Write the list of suspects with verdicts by kind."""
    assert run_here("labels", "gt.json", "pred.json", "-o", "labels.csv", cwd=folder).returncode == 0
    head, *rows = csv.reader((folder / "labels.csv").read_text().splitlines())
    with (folder / "reviewed.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*head, "verdict"], *([*row, verdicts.get(row[0], "")] for row in rows)])


def test_what_was_accepted_is_written_and_nothing_else(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    review(tmp_path, {"class": "accepted", "missing": "accepted", "box": "rejected"})
    done = run_here(
        *("labels", "gt.json", "pred.json", "--reviewed", "reviewed.csv", "--apply", "fixed.json", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    before, after = (json.loads((tmp_path / name).read_text()) for name in ("gt.json", "fixed.json"))
    before["annotations"][3]["category_id"] = 1
    added = {"id": 110, "image_id": 5, "category_id": 1, "bbox": [60, 60, 20, 20], "area": 400, "iscrowd": 0}
    before["annotations"].append(added)
    assert after == before
    document = json.loads(done.stdout)
    assert document["suspects"] == []
    # Before: 9 of 10 cars found, the tenth detection is of a truck and that at the end is false: all precisions up to
    # recall 1 are those of the ranking; afterwards every object is found and every detection right.
    assert document["gain"]["after"] == pytest.approx(1) and document["gain"]["before"] < 0.5
    assert document["gain"]["accepted"] == 2


def test_apply_needs_a_review_and_does_not_overwrite(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    alone = run_here("labels", "gt.json", "pred.json", "--apply", "fixed.json", cwd=tmp_path)
    assert alone.returncode == 2 and "pass --reviewed" in alone.stderr
    review(tmp_path, {"class": "accepted"})
    words = ["--reviewed", "reviewed.csv", "--apply", "gt.json"]
    onto = run_here("labels", "gt.json", "pred.json", *words, cwd=tmp_path)
    assert onto.returncode == 2, onto.stderr
    assert json.loads((tmp_path / "gt.json").read_text())["annotations"][3]["category_id"] == 2


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("maybe", "reviewed.csv:2: expected accepted or rejected, got 'maybe'"),
        ("", "no row is accepted or rejected"),
    ],
)
def test_a_review_that_cannot_be_read_is_refused(cell: str, message: str, tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    review(tmp_path, dict.fromkeys(KINDS, cell))
    done = run_here("labels", "gt.json", "pred.json", "--reviewed", "reviewed.csv", cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr


def test_an_object_that_the_ground_truth_lacks_is_refused(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    review(tmp_path, {"class": "accepted"})
    text = (tmp_path / "reviewed.csv").read_text().replace(",103,accepted", ",999,accepted")
    (tmp_path / "reviewed.csv").write_text(text)
    done = run_here("labels", "gt.json", "pred.json", "--reviewed", "reviewed.csv", cwd=tmp_path)
    assert done.returncode == 2 and "gt.json has no annotation '999' (class)" in done.stderr


@pytest.mark.parametrize("name", ["cvat=out.xml", "label-studio=out.json", "coco=out.json", "yolo=out/"])
def test_annotators_files_hold_all_objects_of_the_images_and_what_is_missing(name: str, tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    gt = json.loads((tmp_path / "gt.json").read_text())
    gt["annotations"][5]["bbox"] = [80, 10, 30, 30]  # reaches out of the image on the right
    gt["annotations"].append(gt["annotations"][5] | {"id": 200, "bbox": [150, 10, 30, 30]})  # outside of it
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    done = run_here("labels", "gt.json", "pred.json", "--annotate", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    form, path = name.split("=")
    if form == "label-studio":
        tasks = {task["data"]["image"]: task["predictions"][0] for task in json.loads((tmp_path / path).read_text())}
        # Of an image of 100 x 100 px, per cent are px; what reaches out of it ends at 100.
        first, *others = tasks["5.jpg"]["result"]
        place = {"x": 80, "y": 10, "width": 20, "height": 30, "rotation": 0, "rectanglelabels": ["car"]}
        assert first["value"] == place and len(others) == 2
        assert tasks["5.jpg"]["score"] == max(region.get("score", 0) for region in (first, *others))
        return
    read = load(tmp_path / path)
    names = [read.images.name(row).partition(".")[0] for row in read.boxes.image.tolist()]
    # Image 5 has its own object up to the edge, and two detections of cars that have no label.
    assert names.count("5") >= 3
    if form == "yolo":
        return
    right = read.boxes.xywh[:, 0] + read.boxes.xywh[:, 2]
    assert right.max() == pytest.approx(100 if read.units == "px" else 1, abs=0.01)
    assert "1 box outside of its image ignored" in done.stderr
    text = (tmp_path / path).read_text()
    assert "labelled truck, predicted as car at 0.90" in text and "missing: car at 0.80" in text


def test_annotators_files_need_sizes_and_a_known_format(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    odd = run_here("labels", "gt.json", "pred.json", "--annotate", "word=out", cwd=tmp_path)
    assert odd.returncode == 2 and "expected FORMAT=PATH with a format of cvat, label-studio, coco, yolo" in odd.stderr
    gt = json.loads((tmp_path / "gt.json").read_text())
    gt["images"] = [{"id": image["id"], "file_name": image["file_name"]} for image in gt["images"]]
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    unknown = run_here("labels", "gt.json", "pred.json", "--annotate", "cvat=out.xml", cwd=tmp_path)
    assert unknown.returncode == 2 and "need the sizes of images" in unknown.stderr
    assert not (tmp_path / "out.xml").exists()


def polygons(folder: Path) -> None:
    """Give each object and detection of the pair the polygon of its box."""
    gt, pred = (json.loads((folder / name).read_text()) for name in ("gt.json", "pred.json"))
    for one in (*gt["annotations"], *pred):
        left, top, width, height = one["bbox"]
        one["segmentation"] = [[left, top, left + width, top, left + width, top + height, left, top + height]]
    (folder / "gt.json").write_text(json.dumps(gt))
    (folder / "pred.json").write_text(json.dumps(pred))


@pytest.mark.parametrize(("kind", "code"), [("class", 0), ("missing", 2)])
def test_a_detection_tells_no_mask_of_a_correction(kind: str, code: int, tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    polygons(tmp_path)
    review(tmp_path, {kind: "accepted"})
    words = ["--iou-type", "segm", "--reviewed", "reviewed.csv", "--apply", "fixed.json"]
    done = run_here("labels", "gt.json", "pred.json", *words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "fixed.json").exists() == (code == 0)
    assert ("masks, keypoints and rotated boxes have to be drawn" in done.stderr) == (code == 2)


def test_annotators_files_say_that_masks_become_boxes(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    polygons(tmp_path)
    words = ["--iou-type", "segm", "--annotate", "cvat=out.xml"]
    done = run_here("labels", "gt.json", "pred.json", *words, cwd=tmp_path)
    assert done.returncode == 0 and "are written as their upright bounding boxes" in done.stderr


def test_names_that_no_file_can_hold_as_they_are_do_not_stop_it(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    gt = json.loads((tmp_path / "gt.json").read_text())
    gt["categories"][1]["name"] = "\ud800 \x1b &<\uffff"
    (tmp_path / "gt.json").write_text(json.dumps(gt))
    asked = ["cvat=out.xml", "label-studio=tasks.json", "coco=out.json"]
    words = [word for one in asked for word in ("--annotate", one)]
    done = run_here(*("labels", "gt.json", "pred.json", "-o", "labels.json", "-o", "labels.csv", *words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    named = [label.findtext("name") for label in ET.parse(tmp_path / "out.xml").iter("label")]
    assert named == ["car", "\ufffd \ufffd &<\ufffd"]
    read = json.loads((tmp_path / "out.json").read_text())["categories"]
    assert [one["name"] for one in read] == ["car", gt["categories"][1]["name"]]


def test_label_studios_tasks_are_predictions_until_somebody_accepts_them(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    done = run_here("labels", "gt.json", "pred.json", "--annotate", "label-studio=tasks.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "tasks.json"
    tasks = json.loads(path.read_text())
    n_regions = sum(len(task["predictions"][0]["result"]) for task in tasks)
    assert n_regions > len(tasks)
    unconfirmed = load(path)
    assert len(unconfirmed.boxes) == 0
    told = [finding.message for finding in unconfirmed.findings if finding.code == "annotations-unused"]
    assert len(told) == 1 and f"{len(tasks)} tasks have predictions and no annotation" in told[0]
    # What Label Studio exports once all are accepted: the regions stand among the annotations.
    path.write_text(json.dumps([task | {"annotations": task["predictions"]} for task in tasks]))
    accepted = load(path)
    assert len(accepted.boxes) == n_regions and accepted.units == "px"
    box = next(
        accepted.boxes.xywh[row].tolist()
        for row, image in enumerate(accepted.boxes.image.tolist())
        if accepted.images.name(image).startswith("3")
    )
    assert box == pytest.approx([10, 10, 30, 30])


def test_a_warning_names_the_file_that_it_is_about(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    pred = json.loads((tmp_path / "pred.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps([one | {"bbox": [40, 40, 20, 20]} for one in pred[:4]]))
    done = run_here("labels", "gt.json", "pred.json", "pred.json", "other.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "[labels-uncalibrated]" in line]
    assert [line.split()[1] for line in lines] == ["pred.json:", "other.json:"]


def test_a_limit_of_suspects_is_a_gate(tmp_path: Path) -> None:
    pair = [Path(__file__).parents[3] / "sample_data/coco" / name for name in ("gt.json", "better.json")]
    n = sum(labels(*pair).counts.values())
    assert n > 0
    for most, code, status in ((n, 0, "pass"), (n - 1, 1, "fail")):
        done = run_here("labels", *pair, "--fail-suspects", str(most), "-o", "l.json", cwd=tmp_path)
        (verdict,) = json.loads((tmp_path / "l.json").read_text())["gates"]
        assert (done.returncode, verdict["status"], verdict["value"]) == (code, status, n)
        assert ("FAILED  suspects" in done.stdout) is (code == 1)
        (again,) = labels(*pair, suspects=most).gates
        assert (again.status, again.margin) == (status, most - n)


@pytest.mark.parametrize("name", ["jaccard-eval.toml", "rules.yaml", "pyproject.toml"])
def test_a_limit_of_suspects_is_configured_as_gates_are(name: str, tmp_path: Path) -> None:
    pair = [Path(__file__).parents[3] / "sample_data/coco" / name for name in ("gt.json", "better.json")]
    n = sum(labels(*pair).counts.values())
    table = "tool.jaccard-eval.gates" if name == "pyproject.toml" else "gates"
    named = ("--config", name) if name == "rules.yaml" else ()
    for most, code in ((n, 0), (n - 1, 1)):
        text = f"gates:\n  suspects: {most}\n" if name == "rules.yaml" else f"[{table}]\nsuspects = {most}\n"
        (tmp_path / name).write_text(text)
        done = run_here("labels", *pair, *named, "-o", "l.json", cwd=tmp_path)
        (verdict,) = json.loads((tmp_path / "l.json").read_text())["gates"]
        assert (done.returncode, verdict["limit"], verdict["value"]) == (code, most, n), done.stderr
    # An option goes before the file, and other commands judge rules alone.
    assert run_here("labels", *pair, *named, "--fail-suspects", str(n), cwd=tmp_path).returncode == 0
    assert run_here("evaluate", *pair, *named, cwd=tmp_path).returncode == 0


def test_a_limit_of_suspects_is_no_rule_and_cannot_be_negative(tmp_path: Path) -> None:
    assert Gates(rules=(), suspects=20).suspects == 20
    with pytest.raises(UsageError, match="suspects cannot be negative; got -1"):
        Gates(rules=(), suspects=-1)
    result = evaluate(*(Path(__file__).parents[3] / "sample_data/coco" / name for name in ("gt.json", "better.json")))
    with pytest.raises(UsageError, match="a limit of suspects is for labels"):
        gate(result, Gates(rules=(), suspects=20))
    (tmp_path / "jaccard-eval.toml").write_text("[gates]\nsuspects = 1.5\n")
    done = run_here("labels", "gt.json", "pred.json", cwd=tmp_path)
    assert done.returncode == 2 and "suspects" in done.stderr


def test_two_reviewers_are_followed_where_they_agree(tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    for name, verdicts in {
        "anna.csv": {"class": "accepted", "missing": "accepted"},
        "ben.csv": {"class": "rejected", "missing": "accepted"},
    }.items():
        review(tmp_path, verdicts)
        (tmp_path / "reviewed.csv").rename(tmp_path / name)
    both = ("--reviewed", "anna.csv", "--reviewed", "ben.csv")
    done = run_here("labels", "gt.json", "pred.json", *both, "--apply", "fixed.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [suspect["kind"] for suspect in document["suspects"]] == ["class"]
    assert document["gain"]["accepted"] == 1
    before, after = (json.loads((tmp_path / name).read_text())["annotations"] for name in ("gt.json", "fixed.json"))
    assert after[:-1] == before and after[-1]["bbox"] == [60, 60, 20, 20]
    # Both rows are named by file and line, and what each says.
    rows = {name: list(csv.reader((tmp_path / name).read_text().splitlines())) for name in ("anna.csv", "ben.csv")}
    lines = {name: next(i for i, row in enumerate(of, 1) if row[0] == "class") for name, of in rows.items()}
    told = next(line for line in done.stderr.splitlines() if "[labels-disputed]" in line)
    assert f"anna.csv:{lines['anna.csv']}: class truck on '3.jpg' is accepted as car, and rejected in" in told
    assert f"ben.csv:{lines['ben.csv']}" in told
    # The library takes both as well, and one alone is followed.
    pair = [tmp_path / name for name in ("gt.json", "pred.json")]
    again = labels(*pair, reviewed=[tmp_path / "anna.csv", tmp_path / "ben.csv"])
    assert [suspect.kind for suspect in again.suspects] == ["class"]
    assert "labels-disputed" in {finding.code for finding in again.findings}
    assert labels(*pair, reviewed=tmp_path / "anna.csv").suspects == ()


@pytest.mark.parametrize("name", ["gt.csv", "Annotations"])
def test_what_was_accepted_is_written_in_the_format_of_the_ground_truth(name: str, tmp_path: Path) -> None:
    reviewed_pair(tmp_path)
    review(tmp_path, {"class": "accepted", "missing": "accepted", "box": "rejected"})
    to = () if name.endswith("csv") else ("--to", "voc")
    assert run_here("convert", "gt.json", name, *to, cwd=tmp_path).returncode == 0
    assert run_here("convert", "pred.json", "pred.csv", "--gt", "gt.json", cwd=tmp_path).returncode == 0
    assert run_here("labels", name, "pred.csv", "-o", "labels.csv", cwd=tmp_path).returncode == 0
    head, *rows = csv.reader((tmp_path / "labels.csv").read_text().splitlines())
    with (tmp_path / "reviewed.csv").open("w", newline="") as file:
        verdicts = {"class": "accepted", "missing": "accepted"}
        csv.writer(file).writerows([[*head, "verdict"], *([*row, verdicts.get(row[0], "")] for row in rows)])
    done = run_here(*("labels", name, "pred.csv", "--reviewed", "reviewed.csv", "--apply", f"new-{name}"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = load(tmp_path / name), load(tmp_path / f"new-{name}")

    def rows_in(side: Dataset) -> list[tuple[object, ...]]:
        boxes, images, names = side.boxes, side.images, side.labels.names
        keyed = zip(boxes.image.tolist(), boxes.label.tolist(), boxes.xywh.tolist(), strict=True)
        return sorted((Path(images.name(image)).stem, names[label], *box) for image, label, box in keyed)

    wanted = [("3", "car", *row[2:]) if row[0] == "3" else row for row in rows_in(before)]
    assert rows_in(after) == sorted([*wanted, ("5", "car", 60.0, 60.0, 20.0, 20.0)])


def test_a_labels_document_is_valid_by_its_schema(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    reviewed_pair(tmp_path)
    assert run_here("labels", "gt.json", "pred.json", "-o", "l.json", cwd=tmp_path).returncode == 0
    schema = json.loads((Path(__file__).parents[3] / "docs/schema/labels-1.json").read_text())
    assert not [*Draft202012Validator(schema).iter_errors(json.loads((tmp_path / "l.json").read_text()))]
