"""Masks in another order, planted into a real set: what is said, and that the option named gives the true numbers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, write_json
from PIL import Image
from planting import suggested_flags
from pycocotools import mask as reference
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from jaccard_eval import DataError, JaccardEvalWarning, ReadOptions, UsageError, evaluate

# Of pycocotools, when it makes pixels of runs.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

Record = dict[str, Any]
AXES = ("yx", "transposed", "row-major", "wh")
SUMMARY = (
    *("AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large"),
    *("AR1", "AR10", "AR100", "AR_small", "AR_medium", "AR_large"),
)


def flipped(mask: Any) -> Any:
    """Polygons with y before x; crowds are runs, and stay."""
    if not isinstance(mask, list):
        return mask
    return [[value for at in range(0, len(ring), 2) for value in (ring[at + 1], ring[at])] for ring in mask]


def encoded(pixels: Any) -> Record:
    runs = reference.encode(np.asfortranarray(pixels))
    return {"size": [int(side) for side in runs["size"]], "counts": runs["counts"].decode()}


def transposed(mask: Record) -> Record:
    return encoded(reference.decode(mask).T)


def row_major(mask: Record) -> Record:
    return {"size": mask["size"], "counts": transposed(mask)["counts"]}


def width_first(mask: Record) -> Record:
    return {"size": mask["size"][::-1], "counts": mask["counts"]}


PLANTS: dict[str, Callable[[Any], Any]] = dict(zip(AXES, (flipped, transposed, row_major, width_first), strict=True))


@pytest.fixture(scope="module")
def sides(shared_data: Path) -> tuple[Record, list[Record]]:
    """Masks of a real set: polygons and crowds, and runs found by a detector."""
    folder = shared_data / "faster-coco-eval/tests/dataset/cocoapi"
    names = "instances_val2014_100.json", "instances_val2014_fakesegm100_results.json"
    gt, pred = (json.loads((folder / name).read_text()) for name in names)
    return gt, pred


@pytest.fixture(scope="module")
def true(sides: tuple[Record, list[Record]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What pycocotools measures of the masks in their right order."""
    gt, pred = (write_json(tmp_path_factory.mktemp("right") / "file.json", side) for side in sides)
    truth = COCO(str(gt))
    found = COCOeval(truth, truth.loadRes(str(pred)), "segm")
    found.evaluate()
    found.accumulate()
    found.summarize()
    return dict(zip(SUMMARY, found.stats.tolist(), strict=True))


def planted(axes: str, sides: tuple[Record, list[Record]], folder: Path) -> tuple[Path, Path]:
    """Write both sides, of which one has its masks in another order: polygons are the ground truth's."""
    gt, pred = sides
    wrong = [
        {**record, "segmentation": PLANTS[axes](record["segmentation"])}
        for record in (gt["annotations"] if axes == "yx" else pred)
    ]
    gt, pred = ({**gt, "annotations": wrong}, pred) if axes == "yx" else (gt, wrong)
    return write_json(folder / "gt.json", gt), write_json(folder / "pred.json", pred)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def flag_of(axes: str) -> str:
    return "--gt-mask-axes" if axes == "yx" else "--pred-mask-axes"


@pytest.mark.parametrize("axes", AXES)
def test_masks_in_another_order_are_named_with_the_option_that_restores_them(
    axes: str, sides: tuple[Record, list[Record]], true: dict[str, float], tmp_path: Path
) -> None:
    files = planted(axes, sides, tmp_path)
    given = run_here(*files, "--iou-type", "segm", "-o", "result.json", cwd=tmp_path)
    said = dict(re.findall(r"^(?:warning|error)\[(mask-axes|mask-size)\]: (.*)$", given.stderr, re.MULTILINE))
    (message,) = said.values()
    if axes in ("yx", "row-major"):
        run_here(*files, "--iou-type", "segm", "--allow", "mask-axes", "-o", "result.json", cwd=tmp_path)
        wrong = json.loads((tmp_path / "result.json").read_text())["metrics"]
        words = {"yx": "with x and y exchanged", "row-major": "with runs along the rows"}[axes]
        assert (given.returncode, [*said]) == (3, ["mask-axes"])
        assert f"AP50 {wrong['AP50']:.3f} as given, {true['AP50']:.3f} {words}. Rerun" in message
    else:
        assert (given.returncode, [*said]) == (3, ["mask-size"])
        assert "height and width are swapped; predictions overlap 87% of the objects they could find" in message
    flags = suggested_flags(message.partition(" To go on")[0])
    assert flags == [flag_of(axes), axes]
    fixed = run_here(*files, "--iou-type", "segm", *flags, "-o", "fixed.json", cwd=tmp_path)
    assert fixed.returncode == 0
    assert "mask-" not in fixed.stderr
    document = json.loads((tmp_path / "fixed.json").read_text())
    assert {name: document["metrics"][name] for name in SUMMARY} == true
    assert document["options"][f"{flags[0][2:].partition('-')[0]}_options"] == {"mask_axes": axes}


@pytest.mark.parametrize("axes", ["transposed", "wh"])
def test_masks_of_both_sides_in_other_orders_are_named_together(
    axes: str, sides: tuple[Record, list[Record]], true: dict[str, float], tmp_path: Path
) -> None:
    gt, _ = planted("yx", sides, made(tmp_path / "polygons"))
    _, pred = planted(axes, sides, made(tmp_path / "runs"))
    given = run_here(gt, pred, "--iou-type", "segm", cwd=tmp_path)
    (message,) = re.findall(r"^error\[mask-size\]: (.*)$", given.stderr, re.MULTILINE)
    flags = suggested_flags(message)
    assert (given.returncode, flags) == (3, ["--gt-mask-axes", "yx", "--pred-mask-axes", axes])
    assert run_here(gt, pred, "--iou-type", "segm", *flags, "-o", "fixed.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "fixed.json").read_text())["metrics"]["AP"] == true["AP"]


def test_the_right_order_is_not_doubted(sides: tuple[Record, list[Record]], tmp_path: Path) -> None:
    gt, pred = (write_json(tmp_path / name, side) for name, side in zip(("gt.json", "pred.json"), sides, strict=True))
    found = evaluate(gt, pred, iou_type="segm", iou=[0.9])  # of which so strict a threshold says little
    assert not any(finding.code.startswith("mask-axes") for finding in found.findings)


def test_an_option_that_is_wrong_is_named_to_be_left_out(
    sides: tuple[Record, list[Record]], true: dict[str, float], tmp_path: Path
) -> None:
    gt, pred = (write_json(tmp_path / name, side) for name, side in zip(("gt.json", "pred.json"), sides, strict=True))
    found = evaluate(gt, pred, iou_type="segm", gt_options=ReadOptions(mask_axes="yx"))
    (finding,) = [finding for finding in found.findings if finding.code == "mask-axes"]
    assert str(finding.fix) == "Rerun without --gt-mask-axes."
    assert f"{true['AP50']:.3f} as written" in finding.message


@pytest.mark.parametrize("has_boxes", [True, False])
@pytest.mark.parametrize("axes", AXES)
def test_masks_read_in_their_order_leave_no_trace_of_the_other_one(
    axes: str, has_boxes: bool, sides: tuple[Record, list[Record]], tmp_path: Path
) -> None:
    """Boxes around masks follow them, so that fingerprints are those of the right file."""
    gt, pred = sides
    if not has_boxes:
        gt = {**gt, "annotations": [{**record, "bbox": None} for record in gt["annotations"]]}
        for records in (gt["annotations"], pred := [dict(record) for record in pred]):
            for record in records:
                record.pop("bbox", None)
    (tmp_path / "right").mkdir()
    right = [write_json(tmp_path / "right" / name, side) for name, side in (("gt.json", gt), ("pred.json", pred))]
    expected = evaluate(*right, iou_type="segm")
    files = planted(axes, (gt, pred), tmp_path)
    options = {f"{'gt' if axes == 'yx' else 'pred'}_options": ReadOptions(mask_axes=axes)}
    for engine in ("memory", "disk"):
        found = evaluate(*files, iou_type="segm", engine=engine, **options)
        assert found.metrics == expected.metrics
        assert found.signature == expected.signature


@pytest.mark.parametrize("axes", AXES)
def test_parts_have_the_masks_as_they_were_read(
    axes: str, sides: tuple[Record, list[Record]], true: dict[str, float], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    gt, pred = planted(axes, sides, tmp_path)
    options = ("--iou-type", "segm", flag_of(axes), axes)
    done = run_here("partition", gt, pred, *options, "-o", "parts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for engine in ("memory", "disk"):
        found = evaluate(tmp_path / "parts", iou_type="segm", engine=engine)
        assert {name: found[name] for name in SUMMARY} == true


@pytest.mark.parametrize("axes", AXES)
def test_converted_files_have_the_masks_as_they_were_read(
    axes: str, sides: tuple[Record, list[Record]], true: dict[str, float], tmp_path: Path
) -> None:
    gt, pred = planted(axes, sides, tmp_path)
    flag, segm = (flag_of(axes), axes), ("--iou-type", "segm")
    wrong, given = (gt, ()) if axes == "yx" else (pred, ("--gt", gt))
    done = run_here("convert", wrong, "right.json", "--to", "coco", *segm, *given, *flag, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = (tmp_path / "right.json", pred) if axes == "yx" else (gt, tmp_path / "right.json")
    found = evaluate(*files, iou_type="segm")
    assert {name: found[name] for name in SUMMARY} == true


def test_a_prediction_without_a_mask_keeps_its_box(tmp_path: Path) -> None:
    image = {"id": 1, "file_name": "a.jpg", "width": 60, "height": 40}
    ring = [30, 2, 50, 2, 50, 10, 30, 10]
    truth = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [30, 2, 20, 8], "iscrowd": 0, "segmentation": [ring]}
    classes = [{"id": 1, "name": "dog"}]
    gt = write_json(tmp_path / "gt.json", {"images": [image], "categories": classes, "annotations": [truth]})
    bare = {"image_id": 1, "category_id": 1, "bbox": truth["bbox"], "score": 0.9}
    drawn = {**bare, "bbox": [4, 20, 8, 9], "segmentation": [[20, 4, 29, 4, 29, 12, 20, 12]], "score": 0.1}
    pred = write_json(tmp_path / "pred.json", [bare, drawn])
    found = evaluate(gt, pred, iou_type="segm", pred_options=ReadOptions(mask_axes="yx"))
    assert found["AP"] == pytest.approx(1.0)


def test_values_that_are_none_are_refused_with_those_that_are(
    sides: tuple[Record, list[Record]], tmp_path: Path
) -> None:
    gt, pred = (write_json(tmp_path / name, side) for name, side in zip(("gt.json", "pred.json"), sides, strict=True))
    refused = run_here(gt, pred, "--iou-type", "segm", "--pred-mask-axes", "rows")
    assert refused.returncode == 2
    assert all(axes in refused.stderr for axes in AXES)
    with pytest.raises(UsageError, match="unknown mask axes 'xyz'; choose from xy, yx, transposed, row-major, wh"):
        evaluate(gt, pred, iou_type="segm", gt_options=ReadOptions(mask_axes="xyz"))


@pytest.mark.parametrize(
    ("iou_type", "axes", "fix"),
    [
        ("bbox", "yx", "Compare masks with --iou-type segm, or remove --pred-mask-axes."),
        ("segm", "yx", "Remove --pred-mask-axes."),
    ],
)
def test_an_option_that_changes_nothing_is_reported(
    iou_type: str, axes: str, fix: str, sides: tuple[Record, list[Record]], tmp_path: Path
) -> None:
    gt, pred = sides[0], [{**record, "bbox": [0, 0, 1, 1]} for record in sides[1]]
    files = write_json(tmp_path / "gt.json", gt), write_json(tmp_path / "pred.json", pred)
    found = evaluate(*files, iou_type=iou_type, pred_options=ReadOptions(mask_axes=axes))
    (finding,) = [finding for finding in found.findings if finding.code == "mask-axes-unused"]
    assert str(finding.fix) == fix


def test_runs_that_no_memory_holds_transposed_are_refused(tmp_path: Path) -> None:
    side = 1_000_000
    runs = [side] * 1000  # columns, by turns
    mask = {"size": [side, side], "counts": [*runs, side * side - sum(runs)]}
    image = {"id": 1, "file_name": "a.jpg", "width": side, "height": side}
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "segmentation": mask}
    truth = {
        "images": [image],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [{**box, "id": 1, "iscrowd": 0}],
    }
    gt, pred = write_json(tmp_path / "gt.json", truth), write_json(tmp_path / "pred.json", [{**box, "score": 1}])
    with pytest.raises(
        (UsageError, DataError), match="masks cannot be transposed: they would have 1,000,000,000 edges"
    ):
        evaluate(gt, pred, iou_type="segm", pred_options=ReadOptions(mask_axes="transposed"))


def test_a_program_is_told_the_keyword(sides: tuple[Record, list[Record]], tmp_path: Path) -> None:
    files = planted("row-major", sides, tmp_path)
    advice = r'pred_options=ReadOptions\(mask_axes="row-major"\)'
    with pytest.raises(DataError, match=advice):
        evaluate(*files, iou_type="segm")
    gt, pred = (json.loads(file.read_text()) for file in files)
    with pytest.warns(JaccardEvalWarning, match=advice):  # what is in memory never stops
        evaluate(gt, pred, iou_type="segm")
    with pytest.warns(JaccardEvalWarning, match=advice):
        evaluate(*files, iou_type="segm", allow=["mask-axes"])


TWICE = {  # what is done to polygons, and to the ids of images, and the options that undo it
    "y first, images one too low": (lambda ring: np.reshape(ring, (-1, 2))[:, ::-1].ravel(), 1, {"mask_axes": "yx"}),
    "fractions, images one too low": (lambda ring: np.reshape(ring, (-1, 2)) / [160, 120], 1, {"units": "norm"}),
    "resized": (lambda ring: np.multiply(ring, 2), 0, {"resized": "scale:2"}),
}


@pytest.mark.parametrize("name", TWICE)
def test_polygons_that_are_wrong_in_two_ways_are_named_in_one_stop(name: str, tmp_path: Path) -> None:
    change, shift, reading = TWICE[name]
    gt, pred = two_sides(n_images=24)
    right = evaluate(gt, pred, iou_type="segm")["AP"]
    for row in pred:
        row |= {
            "image_id": row["image_id"] - shift,
            "segmentation": [np.ravel(change(row["segmentation"][0])).tolist()],
        }
    files = [write_json(tmp_path / f"{role}.json", side) for role, side in (("gt", gt), ("pred", pred))]
    with pytest.raises(DataError) as caught:
        evaluate(*files, iou_type="segm")
    (fix,) = (finding.fix for finding in caught.value.findings if finding.severity == "error")
    assert fix is not None
    ways = {"match_images": "id+1"} if shift else {}
    # Few boxes may leave open which of two forms of a resize was used: then it has no number.
    exact = "resized" not in reading or fix.options["pred_resized"] is not None
    assert fix.options == ways | {f"pred_{option}": value if exact else None for option, value in reading.items()}
    found = evaluate(*files, iou_type="segm", pred_options=ReadOptions(**reading), **ways)
    assert found["AP"] == pytest.approx(right, abs=1e-3)


def two_sides(n_images: int) -> tuple[Record, list[Record]]:
    """Triangles in two cells of each image of 160 x 120 px, each found a pixel away."""
    rng, annotations, found = np.random.default_rng(3), [], []
    images = [{"id": at, "file_name": f"{at}.jpg", "width": 160, "height": 120} for at in range(10, 10 + n_images)]
    for image in images:
        for cell in (0, 80):
            x, y = cell + rng.integers(1, 30), rng.integers(1, 60)
            ring = np.array([x, y, x + rng.integers(20, 45), y + 8, x + 5, y + rng.integers(25, 55)], dtype=float)
            own = {"image_id": image["id"], "category_id": 1}
            box = [*ring[:2].tolist(), ring[2] - x, ring[5] - y]
            area = {"id": len(annotations) + 1, "area": 400, "iscrowd": 0, "bbox": box}
            annotations.append({**own, **area, "segmentation": [ring.tolist()]})
            ring += rng.normal(0, 0.05, 6)
            found.append({**own, "score": float(rng.random()), "segmentation": [ring.tolist()]})
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "leaf"}]}, found


def pixels_of(seed: int, n: int) -> list[Any]:
    """Rectangles in images of 40 x 60 px (height x width)."""
    rng, masks = np.random.default_rng(seed), []
    for _ in range(n):
        mask = np.zeros((40, 60), dtype=np.bool_)
        top, left = rng.integers(0, 25), rng.integers(0, 40)
        mask[top : top + rng.integers(3, 15), left : left + rng.integers(3, 20)] = True
        masks.append(mask)
    return masks


def as_npz(masks: list[Any], path: Path) -> Path:
    names, scores = [f"{at // 3}.jpg" for at in range(len(masks))], np.linspace(1, 0.1, len(masks))
    np.savez(path, masks=np.array(masks), scores=scores, labels=["dog"] * len(masks), image=names)
    return path


def as_instances(masks: list[Any], folder: Path) -> Path:
    """A map of each image, whose values are numbers of the objects."""
    folder.mkdir()
    for image in range(len(masks) // 3):
        values = np.zeros(masks[0].shape, dtype=np.uint8)
        for number, mask in enumerate(masks[3 * image : 3 * image + 3], start=1):
            values[mask] = number
        Image.fromarray(values).save(folder / f"{image}.png")
    rows = [f"{at // 3}.png,{at % 3 + 1},dog,{1 - at / 100}" for at in range(len(masks))]
    (folder / "instances.csv").write_text("\n".join(["image,id,class,score", *rows]) + "\n")
    return folder


def as_dicts(masks: list[Any], path: Path) -> Any:
    return [
        {"image_id": f"{at}.jpg", "masks": masks[3 * at : 3 * at + 3], "labels": ["dog"] * 3, "scores": [0.9, 0.5, 0.2]}
        for at in range(len(masks) // 3)
    ]


@pytest.mark.parametrize("written", [as_npz, as_instances, as_dicts])
def test_transposed_pixels_of_other_formats_are_read_with_the_size_of_their_images(
    written: Callable[[list[Any], Path], Any], tmp_path: Path
) -> None:
    truth, found = pixels_of(1, 12), [np.roll(mask, 1, axis=1) for mask in pixels_of(1, 12)]
    expected = evaluate(written(truth, tmp_path / "gt.npz"), written(found, tmp_path / "pred.npz"), iou_type="segm")
    assert 0.1 < expected["AP"] < 0.99
    wrong = [
        written([mask.T for mask in masks], tmp_path / name) for masks, name in ((truth, "a.npz"), (found, "b.npz"))
    ]
    options = {f"{role}_options": ReadOptions(mask_axes="transposed") for role in ("gt", "pred")}
    turned = evaluate(*wrong, iou_type="segm", **options)
    assert turned.metrics == expected.metrics
    assert turned.signature == expected.signature


@pytest.mark.parametrize("axes", ["row-major", "wh"])
def test_inspect_checks_the_masks_that_an_option_names_or_that_alone_are_there(
    axes: str, sides: tuple[Record, list[Record]], tmp_path: Path
) -> None:
    gt, pred = sides
    bare = [{name: value for name, value in record.items() if name != "bbox"} for record in pred]
    boxed = [{**record, "bbox": reference.toBbox(record["segmentation"]).tolist()} for record in pred]
    planted(axes, (gt, boxed), tmp_path)
    planted(axes, (gt, bare), bare_folder := made(tmp_path / "bare"))
    advice, code = f"Rerun with --pred-mask-axes {axes}.", 3 if axes == "wh" else 0
    for argv, folder, told, expected in (
        (["--iou-type", "segm"], tmp_path, True, code),
        ([], tmp_path, False, 0),
        (["--iou-type", "segm", "--pred-mask-axes", axes], tmp_path, False, 0),
        ([], bare_folder, True, code),
        (["--iou-type", "bbox"], bare_folder, False, 2),
    ):
        done = run_here("inspect", "gt.json", "pred.json", *argv, cwd=folder)
        assert done.returncode == expected, done.stderr
        assert (advice in done.stdout + done.stderr) == told
    assert "segm" not in run_here("inspect", "pred.json", cwd=bare_folder).stderr


@pytest.mark.parametrize(
    ("size", "words"),
    [([240, 320], None), ([120, 160], "pred_resized='stretch:160x120'"), ([320, 240], "size as [height, width]")],
)
def test_masks_that_contradict_their_images_are_evidence_where_boxes_are_compared(
    size: list[int], words: str | None, tmp_path: Path
) -> None:
    images = [{"id": 7, "width": 320, "height": 240}]
    truth = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 10, 40, 30], "area": 1200, "iscrowd": 0}
    found = {"image_id": 7, "category_id": 1, "bbox": [11, 10, 40, 30], "score": 0.5}
    gt = write_json(
        tmp_path / "gt.json", {"images": images, "annotations": [truth], "categories": [{"id": 1, "name": "a"}]}
    )
    pred = write_json(tmp_path / "pred.json", [{**found, "segmentation": {"size": size, "counts": "0"}}])
    warned = [finding for finding in evaluate(gt, pred).findings if finding.code == "mask-size"]
    assert len(warned) == (words is not None)
    if words is not None:
        assert words.replace("'", "") in str(warned[0].fix).replace("--pred-resized ", "pred_resized=").replace("'", "")
        assert f"{size[1]} x {size[0]} pixels" in warned[0].message
    resized = evaluate(gt, pred, pred_options=ReadOptions(role="pred", resized="stretch:320x240"))
    assert "mask-size" not in {finding.code for finding in resized.findings}


def test_boxes_that_show_how_they_were_resized_go_before_the_size_of_a_mask(tmp_path: Path) -> None:
    # Images of 640 x 480 in squares of 512: a factor of .8 and borders of 64 px, which a stretched mask would not have.
    rng = np.random.default_rng(3)
    objects = [
        (image, *rng.uniform((5, 5, 40, 30), (500, 350, 120, 100)).round(1)) for image in range(1, 9) for _ in range(4)
    ]
    images = [{"id": image, "file_name": f"{image}.jpg", "width": 640, "height": 480} for image in range(1, 9)]
    truths = [
        {"id": at, "image_id": image, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for at, (image, *box) in enumerate(objects)
    ]
    found = [
        {
            "image_id": image,
            "category_id": 1,
            "score": 0.5,
            "bbox": [0.8 * x, 0.8 * y + 64, 0.8 * w, 0.8 * h],
            "segmentation": {"size": [512, 512], "counts": "0"},
        }
        for image, x, y, w, h in objects
    ]
    gt = write_json(
        tmp_path / "gt.json", {"images": images, "annotations": truths, "categories": [{"id": 1, "name": "a"}]}
    )
    pred = write_json(tmp_path / "pred.json", found)
    with pytest.raises(DataError) as caught:
        evaluate(gt, pred, iou_type="bbox")
    assert [finding.code for finding in caught.value.findings if "resized" in str(finding.fix)] == ["box-resized"]
    assert "letterbox:512" in str(caught.value)
    right = evaluate(gt, pred, iou_type="bbox", pred_options=ReadOptions(role="pred", resized="letterbox:512"))
    assert right.metrics["AP"].value == pytest.approx(1)
