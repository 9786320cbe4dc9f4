"""Boxes in pixels of resized images, planted into good data: what is said, and that the flag it names restores AP."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from planting import SETS, Pair, run_evaluate, suggested_flags
from resized_scenes import put

from jaccard_eval import DataError, ReadOptions, UsageError, evaluate, load
from jaccard_eval.cli.run import run
from jaccard_eval.data.boxtable import from_xywh
from jaccard_eval.data.resizing import Resizing

Box = list[float]
Size = tuple[float, float]
Change = Callable[[Box, Size], Box]
Loader = Callable[[str], Pair]

CODES = ("box-resized", "box-encoding", "box-units", "box-axes", "image-mismatch", "class-mapping")


def letterbox(width: float, height: float) -> Change:
    """As YOLO puts an image into its input: r = min(width / w, height / h), what is left over halved at both ends."""

    def change(box: Box, size: Size) -> Box:
        r = min(width / size[0], height / size[1])
        x, y, w, h = box
        return [x * r + (width - r * size[0]) / 2, y * r + (height - r * size[1]) / 2, w * r, h * r]

    return change


def stretch(width: float, height: float) -> Change:
    def change(box: Box, size: Size) -> Box:
        x, y, w, h = box
        return [x * width / size[0], y * height / size[1], w * width / size[0], h * height / size[1]]

    return change


def scale(factor: float) -> Change:
    return lambda box, _: [value * factor for value in box]


PLANTED = {  # what the images were resized to: what is planted, and the option
    "letterbox 640": (letterbox(640, 640), "letterbox:640"),
    "letterbox 320": (letterbox(320, 320), "letterbox:320"),
    "letterbox 1280": (letterbox(1280, 1280), "letterbox:1280"),
    "letterbox 416 x 320": (letterbox(416, 320), "letterbox:416x320"),
    "stretch 416": (stretch(416, 416), "stretch:416"),
    "stretch 512 x 288": (stretch(512, 288), "stretch:512x288"),
    "half": (scale(0.5), "scale:1/2"),
    "a third": (scale(1 / 3), "scale:1/3"),
    "double": (scale(2), "scale:2"),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("planted", PLANTED)
def test_boxes_of_resized_images_are_named_and_the_flag_maps_them_back(
    planted: str, name: str, good_pair: Loader
) -> None:
    pair = good_pair(name)
    true = pair.as_it_came()
    change, option = PLANTED[planted]
    if all(change(box, size) == pytest.approx(box) for box, size in _boxes_in(pair)):
        pytest.skip("images have the size that they are resized to")
    pair.change_boxes("pred", change)
    stopped = pair.evaluate()
    assert (stopped.code, stopped.result, list(stopped.errors)) == (3, {}, ["box-resized"])
    wrong = pair.evaluate("--allow", "box-resized")
    assert wrong.ap < 0.1 * true.ap
    (warning,) = wrong.warnings(*CODES)
    given, right = wrong.result["metrics"]["AP50"], true.result["metrics"]["AP50"]
    # Of few and weak detections the numbers cannot be told from their neighbours.
    if name != "cocoapi" and "else with the exact numbers" in warning["message"]:
        return
    assert f"AP50 {given:.3f} as given, {right:.3f} mapped back from " in warning["message"]
    flags = suggested_flags(warning["message"])
    # All images of medwaste are 640 x 640, where half the size, 320 x 320 and its letterbox are one.
    if name != "medwaste":
        assert f"mapped back from {option}" in warning["message"]
        assert flags == ["--pred-resized", option]
    mended = pair.evaluate(*flags)
    # Pixels do not come back to the last bit: an IoU that lies on a threshold falls to either side.
    assert mended.ap == pytest.approx(true.ap, rel=0, abs=5e-4)
    assert mended.warnings(*CODES) == []
    assert f"|pred_resized={flags[1]}|" in mended.result["signature"]


WAYS = [
    *("stretch:1000", "stretch:640x480", "stretch:333", "stretch:100", "letterbox:600", "letterbox:640x384"),
    *("letterbox:1", "pad:640", "pad:1000x600", "short:800,1333", "short:600,1000", "short:480,640", "scale:0.35"),
    *("scale:1/2x1/3", "offset:-40,25", "rect:640", "rect:1280", "mirror", "flip", "rot90", "rot180", "anti"),
    *("mirror+letterbox:640", "rot90+stretch:512", "rot270+pad:640", "swap+short:800,1333"),
]


ENCODINGS = ("xywh", "xyxy", "cxcywh")


# Ways of one kind stand together, and meet every encoding in turn.
@pytest.mark.parametrize(("way", "encoding"), [(way, ENCODINGS[i % 3]) for i, way in enumerate(WAYS)])
def test_every_way_on_real_detections_is_named_and_the_flags_end_it(way: str, encoding: str, good_pair: Loader) -> None:
    pair = good_pair("cocoapi")
    true = pair.as_it_came()
    turn, _, form = way.partition("+") if ":" not in way.split("+", maxsplit=1)[0] else ("", "", way)

    def change(box: Box, size: Size) -> Box:
        placed = put(np.array([box]), np.array([size], dtype=np.float64), form, turn)
        return [float(number) for number in from_xywh(placed, encoding)[0]]

    pair.change_boxes("pred", change)
    wrong = pair.evaluate()
    message = wrong.errors.get("box-resized") or wrong.warnings("box-resized")[0]["message"]
    flags = suggested_flags(message)
    if "yxyx" not in flags:  # what is exchanged may be x and y, or the sides of the image
        assert flags[flags.index("--pred-resized") + 1] == str(Resizing.parse(way))
        assert flags[:-2] == ([] if encoding == "xywh" else ["--pred-box", encoding])
    mended = pair.evaluate(*flags)
    for name in ("AP", "AP50", "AP75"):
        assert mended.result["metrics"][name] == pytest.approx(true.result["metrics"][name], rel=0, abs=1e-3)
    assert mended.warnings(*CODES) == []


def _boxes_in(pair: Pair) -> list[tuple[Box, Size]]:
    return [([0, 0, *size], size) for size in ((image["width"], image["height"]) for image in pair.gt["images"])]


def test_both_precisions_and_the_share_of_objects_are_the_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = _scene(tmp_path, [(1280, 720)] * 5 + [(480, 600)] * 5, letterbox(640, 640))
    message = run_evaluate(capsys, *paths).errors["box-resized"]
    assert message == (
        f"{paths[1]}: box: boxes look like coordinates of resized images: AP50 0.000 as given, 1.000 mapped back from"
        " letterbox:640; AP75 0.000 and 1.000 (fits 40 of 40 sampled objects). Rerun with --pred-resized letterbox:640."
        " To go on as it is, add --allow box-resized."
    )


def test_the_example_of_the_documentation_is_what_is_printed(good_pair: Loader) -> None:
    pair, change = good_pair("sample"), letterbox(640, 640)
    pair.change_boxes("pred", lambda box, size: [round(value, 2) for value in change(box, size)])
    page = (Path(__file__).parents[3] / "jaccard_eval" / "explained" / "box-resized.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"error\[box-resized\]: pred\.json: (.*)", page)
    assert pair.evaluate().errors["box-resized"].endswith(f"pred.json: {example}")


@pytest.mark.parametrize("encoding", ["xyxy", "cxcywh"])
def test_raw_numbers_of_a_network_are_named_with_both_flags(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put = letterbox(640, 640)

    def change(box: Box, size: Size) -> Box:
        x, y, w, h = put(box, size)
        return [x, y, x + w, y + h] if encoding == "xyxy" else [x + w / 2, y + h / 2, w, h]

    paths = _scene(tmp_path, [(1280, 720)] * 5 + [(480, 600)] * 5, change)
    flags = suggested_flags(run_evaluate(capsys, *paths).errors["box-resized"])
    assert flags == ["--pred-box", encoding, "--pred-resized", "letterbox:640"]
    assert run_evaluate(capsys, *paths, *flags).ap == 1.0


def test_a_flag_that_does_not_hold_is_doubted_and_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = _scene(tmp_path, [(1280, 720)] * 10, lambda box, _: box)
    wrong = run_evaluate(capsys, *paths, "--pred-resized", "letterbox:640")
    assert wrong.code == 0
    (warning,) = wrong.warnings("box-resized")
    assert warning["message"].endswith("1.000 read without it. Rerun without --pred-resized.")


def test_ground_truth_is_mapped_back_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = _scene(tmp_path, [(1280, 720)] * 5 + [(480, 600)] * 5, letterbox(640, 640), side="gt")
    mended = run_evaluate(capsys, *paths, "--gt-resized", "letterbox:640")
    assert mended.ap == 1.0
    # 60 x 80 in pixels of the image, whatever it was in those of the input: 4800, a medium object.
    assert mended.result["metrics"]["AP_medium"] == 1.0
    assert mended.result["metrics"]["AP_small"] is None


def test_unknown_sizes_are_an_error_that_a_factor_does_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gt, pred = tmp_path / "gt.csv", tmp_path / "pred.csv"
    gt.write_text("filename,class,xmin,ymin,xmax,ymax\na.jpg,dog,100,100,300,300\n")
    pred.write_text("filename,class,score,xmin,ymin,xmax,ymax\na.jpg,dog,0.9,50,50,150,150\n")
    outcome = run_evaluate(capsys, str(gt), str(pred), "--pred-resized", "stretch:640")
    assert outcome.code == 3
    assert re.search(
        r"image sizes to be mapped back, but .* of 1 image are not known: 'a.jpg'",
        outcome.errors["size-unknown"],
    )
    assert outcome.errors["size-unknown"].endswith("Pass the image folder with --pred-images DIR.")
    assert run_evaluate(capsys, str(gt), str(pred), "--pred-resized", "scale:0.5").ap == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(DataError, match="size-unknown"):
        evaluate(gt, pred, pred_options=ReadOptions(resized="letterbox:640"))


@pytest.mark.parametrize("way", ["", "letterbox:640", "stretch:640", "pad:800", "mirror", "scale:0.5"])
def test_boxes_without_sizes_ask_for_the_images_unless_one_factor_explains_them(
    way: str, tmp_path: Path, good_pair: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, images, paths = good_pair("cocoapi"), {}, []
    for image in pair.gt["images"]:
        images[image["id"]] = image["file_name"], np.array([[image["width"], image["height"]]], dtype=np.float64)
    for name, records, head in (("gt", pair.gt["annotations"], ""), ("pred", pair.pred, ",score")):
        lines = ["filename,class,xmin,ymin,xmax,ymax" + head]
        for record in records:
            file, size = images[record["image_id"]]
            box = np.array([record["bbox"]], dtype=np.float64)
            if name == "pred":
                box = put(box, size, *(("", way) if way == "mirror" else (way, "")))
            cells = [file, record["category_id"], *from_xywh(box, "xyxy")[0], *([record["score"]] if head else [])]
            lines.append(",".join(map(str, cells)))
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(lines))
    outcome = run_evaluate(capsys, *map(str, paths))
    if way.startswith("scale"):  # of 640 x 480 and 500 x 375 alike
        assert suggested_flags(outcome.errors["box-resized"]) == ["--pred-resized", "scale:1/2"]
        return
    said = [one["message"] for one in outcome.warnings(*CODES)]
    if not way:
        assert said == []
        return
    (message,) = said
    assert "a scale and an offset of its own for each image" in message
    assert message.endswith("Pass the image folder with --pred-images DIR.")


@pytest.mark.parametrize(
    "text", ["640", "letterbox", "letterbox:0", "letterbox:6.5", "stretch:640x", "scale:0", "scale:1e9"]
)
def test_other_texts_are_refused_with_those_that_are_known(
    text: str, sample_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(sample_data / "coco" / name) for name in ("gt.json", "better.json")]
    assert run(["evaluate", *paths, "--pred-resized", text]) == 2
    assert "expected stretch:640x480" in capsys.readouterr().err
    with pytest.raises(UsageError, match="expected stretch:640x480"):
        load(paths[1], role="pred", options=ReadOptions(resized=text))


def test_fractions_are_of_no_resized_image(sample_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(sample_data / name) for name in ("yolo/data.yaml", "yolo/better")]
    assert run(["evaluate", *paths, "--pred-resized", "letterbox:640"]) == 2
    assert "--pred-resized letterbox:640 is for boxes in pixels" in capsys.readouterr().err


def test_one_side_alone_is_mapped_back_by_its_own_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gt, pred = _scene(tmp_path, [(1280, 720)] * 2, stretch(640, 640), side="gt")
    out = tmp_path / "out.json"
    assert run(["convert", gt, str(out), "--gt-resized", "stretch:640"]) == 0
    expected = [record["bbox"] for record in json.loads(Path(pred).read_text())]
    written = [record["bbox"] for record in json.loads(out.read_text())["annotations"]]
    assert written == [pytest.approx(box) for box in expected]
    # Results of COCO know no sizes.
    assert run(["nms", pred, "-o", str(tmp_path / "kept.json"), "--pred-resized", "stretch:640"]) == 3
    assert "size-unknown" in capsys.readouterr().err


@pytest.mark.parametrize("name", SETS)
def test_nothing_is_said_of_boxes_of_the_images_themselves(name: str, good_pair: Loader) -> None:
    assert good_pair(name).evaluate().warnings("box-resized") == []


def _places(image: int) -> list[tuple[float, float]]:
    """Return four places of an image, others than those of the next ones."""
    return [((37.0 * image + 97 * row) % 400, (53.0 * image + 131 * row) % 500) for row in range(4)]


def _scene(folder: Path, sizes: list[Size], change: Change, *, side: str = "pred") -> list[str]:
    """Write objects of 60 x 80 at four places of each image, and predictions of all; one side is changed."""
    put = {"gt": lambda box, _: box, "pred": lambda box, _: box, side: change}
    boxes = [(image, [*place, 60.0, 80.0], size) for image, size in enumerate(sizes) for place in _places(image)]
    gt = {
        "images": [{"id": image, "width": size[0], "height": size[1]} for image, size in enumerate(sizes)],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": row, "image_id": image, "category_id": 1, "bbox": put["gt"](box, size), "iscrowd": 0}
            for row, (image, box, size) in enumerate(boxes, 1)
        ],
    }
    pred = [
        {"image_id": image, "category_id": 1, "bbox": put["pred"](box, size), "score": 0.9 - row / 1000}
        for row, (image, box, size) in enumerate(boxes)
    ]
    paths = [folder / "gt.json", folder / "pred.json"]
    for path, content in zip(paths, (gt, pred), strict=True):
        path.write_text(json.dumps(content))
    return list(map(str, paths))


def _loose_scene(folder: Path, change: Change, *, loose: float, sized: bool) -> tuple[float, tuple[str, str]]:
    """Four objects on each of six images, found loosely; return the AP and both files, predictions changed."""
    rng = np.random.default_rng(5)
    sizes = [(640, 480), (1280, 720), (500, 375)] * 2
    gt = []
    for image, (width, height) in enumerate(sizes):
        gt += [
            (image, (np.array([x, y, 0.25, 0.3]) * rng.uniform(0.6, 1.1, 4) * np.tile([width, height], 2)).tolist())
            for x, y in ((0.1, 0.15), (0.6, 0.2), (0.2, 0.6), (0.65, 0.55))
        ]
    found = [(image, (np.array(box) + rng.normal(0, loose, 4) * np.tile(box[2:], 2)).tolist()) for image, box in gt]
    results = [
        {"image_id": image, "category_id": 1, "bbox": box, "score": 1 - row / 100}
        for row, (image, box) in enumerate(found)
    ]
    images = [
        {"id": at, "file_name": f"{at}.jpg"} | ({"width": w, "height": h} if sized else {})
        for at, (w, h) in enumerate(sizes)
    ]
    truth = {
        "images": images,
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": row + 1, "image_id": image, "category_id": 1, "bbox": box, "iscrowd": 0, "area": box[2] * box[3]}
            for row, (image, box) in enumerate(gt)
        ],
    }
    paths = folder / "gt.json", folder / "pred.json"
    paths[0].write_text(json.dumps(truth))
    paths[1].write_text(json.dumps(results))
    true = evaluate(*paths)["AP"]
    paths[1].write_text(json.dumps([one | {"bbox": change(one["bbox"], sizes[one["image_id"]])} for one in results]))
    return true, (str(paths[0]), str(paths[1]))


def test_of_few_loose_boxes_the_more_probable_number_is_named_with_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    true, paths = _loose_scene(tmp_path, stretch(300, 300), loose=0.05, sized=True)
    said = run_evaluate(capsys, *paths, "--allow", "box-resized").warnings("box-resized")[0]["message"]
    assert "too few or too loose to choose between stretch:300 and " in said
    assert "If that is what was done, rerun with --pred-resized stretch:300, else with the exact numbers." in said
    # What rounding leaves is far below the last digit that is printed.
    assert run_evaluate(capsys, *paths, "--pred-resized", "stretch:300").ap == pytest.approx(true, abs=5e-4)


def test_fractions_among_pixels_of_unknown_images_are_no_resizing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, paths = _loose_scene(tmp_path, stretch(1, 1), loose=0.02, sized=False)
    ran = run_evaluate(capsys, *paths)
    assert [ran.warnings("box-resized"), len(ran.warnings("box-units"))] == [[], 1]
    assert suggested_flags(ran.warnings("box-units")[0]["message"]) == ["--pred-units", "norm"]
    assert list(run_evaluate(capsys, *paths, "--pred-units", "norm").errors) == ["size-unknown"]
