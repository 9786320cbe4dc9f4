"""Masks, boundaries, keypoints and oriented boxes go through every part of the tool, or are refused with a way out."""

import json
import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_json

from jaccard_eval import UsageError, convert, get_protocol, sensitivity

KINDS = ("segm", "boundary", "keypoints", "obb")
WHAT = {"segm": "masks", "boundary": "masks", "keypoints": "keypoints", "obb": "oriented boxes"}


def shape(kind: str, x: float, y: float, side: float, angle: float) -> dict[str, Any]:
    """A star, a grid of joints, or a turned square of one side length, whose box is not needed to compare it."""
    if kind == "keypoints":
        return {"keypoints": [value for at in range(17) for value in (x + side * (at % 4) / 4, y + 4 * (at // 4), 2)]}
    half = side / math.sqrt(2)
    corners = [
        value
        for turn in range(4)
        for value in (
            x + half * math.cos(angle + turn * math.pi / 2),
            y + half * math.sin(angle + turn * math.pi / 2),
        )
    ]
    return {"bbox": corners} if kind == "obb" else {"segmentation": [[*corners, x, y]]}


@pytest.fixture(scope="module", params=KINDS)
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Ground truth and two sets of predictions, which have shapes and no boxes, of four images."""
    kind, folder, rng = request.param, tmp_path_factory.mktemp(request.param), random.Random(0)
    objects = [
        (
            {"image_id": image, "category_id": label},
            [100 * label, 60 + rng.uniform(0, 40), 50 - 5 * image, rng.random()],
        )
        for image in range(1, 5)
        for label in (1, 2)
    ]
    records = [
        {"id": row, "iscrowd": 0, "area": place[2] ** 2, **ids, **shape(kind, *place)}
        for row, (ids, place) in enumerate(objects, start=1)
    ]
    images = [{"id": row, "file_name": f"{row}.jpg", "width": 320, "height": 200} for row in range(1, 5)]
    categories = [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]
    write_json(folder / "gt.json", {"images": images, "annotations": records, "categories": categories})
    for name, noise in (("a", 1.5), ("b", 5.0)):
        moved = [(ids, [value + rng.gauss(0, noise) for value in place[:3]] + place[3:]) for ids, place in objects * 2]
        found = [{**ids, "score": rng.random(), **shape(kind, *place)} for ids, place in moved]
        write_json(folder / f"{name}.json", found)
    return kind, folder


def run(folder: Path, *argv: str, code: int = 0) -> str:
    """Run the command line in a folder; return what it prints to both streams."""
    done = run_here(*argv, cwd=folder)
    assert done.returncode == code, done.stderr
    assert "internal error" not in done.stderr
    return done.stdout + done.stderr


def saved(folder: Path, name: str, argv: tuple[str, ...]) -> Mapping[str, Any]:
    run(folder, *argv, "-o", name)
    document: Mapping[str, Any] = json.loads((folder / name).read_text())
    return document


@pytest.mark.slow
def test_an_evaluation_with_everything_is_saved_and_read_again(data: tuple[str, Path]) -> None:
    kind, folder = data
    names = ("a.npz", "a.html", "curves.csv", "more.json")
    plain = saved(folder, "plain.json", ("gt.json", "a.json", "--iou-type", kind, "--areas", "low=0:900"))
    assert "AP_low" in plain["metrics"]
    assert (plain["protocol"]["iou_type"], 0 < plain["metrics"]["AP"] < 1) == (kind, True)
    files = [part for name in names for part in ("-o", name)]
    more = "--per-class --score best-f1 --bootstrap 5 --errors --confusion --slice first=[12].jpg"
    printed = run(folder, "gt.json", "a.json", "--iou-type", kind, *more.split(), "--fail-under", "AP50=0.01", *files)
    assert "dog" in printed and "first" in printed
    whole = json.loads((folder / "more.json").read_text())
    assert whole["metrics"]["AP"] == plain["metrics"]["AP"]
    assert all((folder / name).stat().st_size for name in names)
    # Of the recalls, that over all thresholds heads the page: keypoints have others besides.
    page = (folder / "a.html").read_text("utf-8")
    tiles = re.findall(r"<dt>([^<]*)</dt><dd>", page[page.index('class="tiles"') :].partition("</dl>")[0])
    recall = "AR" if kind == "keypoints" else "AR100"
    assert [tile for tile in tiles if "AR" in tile] == [recall]
    # The run holds the match table: what reads it gets the same numbers, without the shapes.
    assert f"iou_type={kind}" in run(folder, "report", "a.npz", "-o", "again.html")
    run(folder, "gt.json", "b.json", "--iou-type", kind, "-o", "b.npz")
    run(folder, "gate", "a.npz", "--fail-under", "AP=0.999", code=1)
    by_runs = saved(folder, "by_runs.json", ("compare", "a.npz", "b.npz", "--bootstrap", "5"))
    by_files = saved(
        folder, "by_files.json", ("compare", "gt.json", "a.json", "b.json", "--iou-type", kind, "--bootstrap", "5")
    )
    assert by_runs["comparisons"] == by_files["comparisons"]


def test_explain_finds_what_costs_most(data: tuple[str, Path]) -> None:
    kind, folder = data
    document = saved(folder, "explained.json", ("explain", "gt.json", "b.json", "AP50", "--iou-type", kind))
    assert f"|iou_type={kind}|" in document["signature"]
    assert document["metric"]


def test_suppression_is_of_the_boxes_around_shapes(data: tuple[str, Path]) -> None:
    """Each object was found twice, a few pixels apart: half of the predictions stay."""
    kind, folder = data
    document = saved(folder, "nms.json", ("gt.json", "a.json", "--iou-type", kind, "--nms", "0.3"))
    assert document["inputs"]["pred"]["boxes"] == 8
    assert f"iou_type={kind}" in document["signature"] and "nms=0.3" in document["signature"]


def test_what_suppression_writes_has_the_shapes_that_it_kept(data: tuple[str, Path]) -> None:
    kind, folder = data
    run(folder, "nms", "a.json", "-o", "kept.json", "--iou", "0.3", "--force")
    rules = ("--iou-type", kind)
    written = saved(folder, "written.json", ("gt.json", "kept.json", *rules))
    at_once = saved(folder, "at_once.json", ("gt.json", "a.json", *rules, "--nms", "0.3"))
    assert written["inputs"]["pred"]["boxes"] == 8
    assert written["metrics"] == at_once["metrics"]


@pytest.mark.parametrize(
    "argv",
    [
        "inspect gt.json a.json --iou-type bbox",
        "inspect a.json --iou-type bbox",
        "sensitivity gt.json a.json",
        "convert a.json out.csv",
        "convert a.json out.csv --gt gt.json",
        "partition gt.json a.json -o parts --iou-type bbox",
    ],
)
def test_what_needs_boxes_refuses_shapes_alone_and_names_what_takes_them(data: tuple[str, Path], argv: str) -> None:
    kind, folder = data
    if argv.startswith("partition"):
        pytest.importorskip("pyarrow")
    refused = run(folder, *argv.split(), code=2)
    assert f"json only has {WHAT[kind]}. Use evaluate, compare or explain with --iou-type " in refused
    assert f"--iou-type {kind}" in refused
    assert not {"out.json", "out.csv", "parts"} & {path.name for path in folder.iterdir()}


def test_the_disk_gives_the_same_bytes(data: tuple[str, Path]) -> None:
    kind, folder = data
    for engine in ("memory", "disk"):
        run(folder, "gt.json", "a.json", "--iou-type", kind, "--engine", engine, "--no-errors", "-o", f"{engine}.json")
    assert (folder / "memory.json").read_bytes() == (folder / "disk.json").read_bytes()


@pytest.fixture
def boxed(tmp_path: Path) -> Path:
    """Masks and keypoints with boxes, as COCO has them."""
    full = {"bbox": [80, 80, 40, 40], **shape("segm", 100, 100, 40, 0.2), **shape("keypoints", 80, 80, 40, 0)}
    record = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 1600, "num_keypoints": 17, **full}
    images = [{"id": 1, "file_name": "1.jpg", "width": 320, "height": 200}]
    truth = {"images": images, "annotations": [record], "categories": [{"id": 1, "name": "dog"}]}
    write_json(tmp_path / "gt.json", truth)
    write_json(tmp_path / "pred.json", [{"image_id": 1, "category_id": 1, "score": 0.5, **full}])
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "lost"),
    [
        ("convert gt.json out.csv", "masks, keypoints and oriented boxes of"),
        ("nms pred.json -o out.json", "keypoints and oriented boxes of"),
    ],
)
def test_shapes_that_are_not_written_are_a_warning(boxed: Path, argv: str, lost: str) -> None:
    assert "warning[write-shapes]: out." in run(boxed, *argv.split())
    (out,) = boxed.glob("out.*")
    out.unlink()
    assert f": {lost}" in run(boxed, *argv.split(), "--strict", code=3)
    assert not out.exists()
    for kind in ("segm", "boundary", "keypoints"):
        run(boxed, "gt.json", "pred.json", "--iou-type", kind)


def test_oriented_labels_that_become_boxes_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5\n")
    done = convert(tmp_path / "labels", tmp_path / "gt.csv", options=None)
    assert [finding.code for finding in done.findings][:1] == ["write-shapes"]
    truth = json.loads('{"images":[{"id":1}],"categories":[{"id":1,"name":"a"}],"annotations":[]}')
    truth["annotations"] = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "keypoints": [1, 2, 2]}]
    assert "write-shapes" in {finding.code for finding in convert(truth, tmp_path / "out.csv").findings}


@pytest.mark.parametrize("protocol", ["crowdpose", "dota"])
def test_sensitivity_is_of_boxes_and_the_way_out_works(boxed: Path, protocol: str) -> None:
    assert "Pass a protocol of boxes, such as coco." in run(
        boxed, "sensitivity", "gt.json", "pred.json", "--protocol", protocol, code=2
    )
    run(boxed, "sensitivity", "gt.json", "pred.json", "--protocol", "coco")
    with pytest.raises(UsageError, match="edges of boxes"):
        sensitivity(boxed / "gt.json", boxed / "pred.json", protocol=get_protocol(protocol))


def test_normal_distributions_need_pixels_and_shared_areas_do_not(tmp_path: Path) -> None:
    for side, score in (("gt", ""), ("pred", " 0.9")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text(f"0 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5{score}\n")
    assert "Pass the image folder with --images DIR." in run(tmp_path, "gt", "pred", "--iou-type", "probiou", code=3)
    run(tmp_path, "gt", "pred", "--iou-type", "obb")


def test_parts_hold_what_evaluate_compares_and_say_what_they_lack(boxed: Path) -> None:
    pytest.importorskip("pyarrow")
    printed = run(boxed, "partition", "gt.json", "pred.json", "-o", "parts")
    assert printed.count("warning[write-shapes]") == 2
    assert printed.count("To write them, pass --iou-type segm or --iou-type keypoints or --iou-type obb.") == 2
    refused = run(boxed, "parts", "--iou-type", "boundary", code=2)
    assert "was written for bbox, not boundary." in refused
    assert "'jaccard-eval partition GT PRED -o DIR --iou-type segm'" in refused
    bare = run(boxed, "partition", "gt.json", "pred.json", "-o", "parts", "--force", "--iou-type", "bbox")
    assert "write-shapes" not in bare
    run(boxed, "partition", "gt.json", "pred.json", "-o", "parts", "--force", "--iou-type", "boundary")
    run(boxed, "parts", "--iou-type", "boundary")
    run(boxed, "inspect", "parts")
    for argv in (("parts", "--iou-type", "bbox"), ("sensitivity", "parts"), ("parts", "--iou-type", "keypoints")):
        assert "Evaluate, compare or explain it with --iou-type segm, or" in run(boxed, *argv, code=2)


def test_where_several_shapes_could_be_compared_the_advice_of_partition_works(boxed: Path) -> None:
    pytest.importorskip("pyarrow")
    truth = json.loads((boxed / "gt.json").read_text())
    del truth["annotations"][0]["bbox"]
    write_json(boxed / "gt.json", truth)
    write_json(boxed / "pred.json", [{**truth["annotations"][0], "score": 0.5}])
    refused = run(boxed, "partition", "gt.json", "pred.json", "-o", "parts", code=2)
    assert "Pass --iou-type segm or --iou-type boundary or --iou-type keypoints." in refused
    for kind in ("segm", "boundary", "keypoints"):
        run(boxed, "partition", "gt.json", "pred.json", "-o", "parts", "--force", "--iou-type", kind)
        run(boxed, "parts", "--iou-type", kind)
