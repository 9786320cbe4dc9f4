"""NumPy archives: boxes as arrays, raw grid outputs, and everything that can be wrong with them."""

import io
import math
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, decode_grid, evaluate, load
from jaccard_eval.formats import detect_format, npz
from jaccard_eval.reading.peek import Peek

BOXES: dict[str, Any] = {
    "boxes": [[10, 20, 40, 60], [0, 0, 5, 5]],
    "scores": [0.9, 0.8],
    "labels": ["dog", "cat"],
    "image": ["b.jpg", "a.jpg"],
}
Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def write(**arrays: Any) -> Path:
        path = tmp_path / "pred.npz"
        np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
        return path

    return write


def error(path: Path, role: str = "pred") -> str:
    with pytest.raises(DataError) as caught:
        load(path, role=role)
    return str(caught.value)


def raw_output(n_images: int = 1, classes: int = 2) -> np.ndarray:
    """One anchor on a grid of 2 rows and 3 columns, all background: objectness s(-20)."""
    raw = np.zeros((n_images, 1, 2, 3, 5 + classes), dtype=np.float32)
    raw[..., 4] = -20
    return raw


def test_arrays_of_boxes_are_read(save: Save) -> None:
    side = load(save(**BOXES), role="pred")
    assert (side.format, side.images.keys, side.labels.names) == ("npz", ("a.jpg", "b.jpg"), ("cat", "dog"))
    assert side.boxes.xywh.tolist() == [[10, 20, 30, 40], [0, 0, 5, 5]]
    assert side.boxes.score is not None
    assert side.boxes.score.tolist() == [0.9, 0.8]
    assert (side.boxes.image.tolist(), side.boxes.label.tolist()) == ([1, 0], [1, 0])


def test_numbers_index_the_listed_images_and_names(save: Save) -> None:
    listed = {"images": ["z.jpg", "a.jpg", "empty.jpg"], "names": ["cat", "dog"], "sizes": [[64, 48]] * 3}
    side = load(save(**{**BOXES, "image": [0, 1], "labels": [1, 0]}, **listed), role="pred")
    assert side.images.keys == ("a.jpg", "empty.jpg", "z.jpg")
    assert side.images.listed
    assert side.images.sizes.tolist() == [[64, 48]] * 3
    assert (side.boxes.image.tolist(), side.boxes.label.tolist()) == ([2, 0], [1, 0])
    assert side.labels.names == ("cat", "dog")


def test_the_encoding_is_the_one_that_is_named(save: Save) -> None:
    listed = {"images": ["a.jpg", "b.jpg"], "sizes": [[100, 50]] * 2, "encoding": "cxcywh_norm"}
    side = load(save(**{**BOXES, "boxes": [[0.5, 0.5, 0.2, 0.4]] * 2}, **listed), role="pred")
    assert side.boxes.xywh == pytest.approx(np.array([[40, 15, 20, 20]] * 2))


def test_scores_of_ground_truth_are_counted_and_not_used(save: Save) -> None:
    side = load(save(**BOXES), role="gt")
    assert side.boxes.score is None
    assert side.ignored == {"score": 2}


def test_arrays_that_are_not_read_are_named(save: Save) -> None:
    side = load(save(**BOXES, anchors=[1]), role="pred")
    assert [str(one) for one in side.findings] == [f"note[npz-unused]: {side.path}: arrays ignored: 'anchors'"]


def test_raw_output_is_decoded_and_background_is_counted(save: Save) -> None:
    raw = raw_output(2)
    raw[1, 0, 1, 2] = [0, 0, 0, 0, 20, 20, -20]  # centre (2.5, 1.5) cells of 8: (20, 12); anchor 10 x 4; class 0
    side = load(save(raw=raw, anchors=[[10, 4]], stride=8, images=["a", "b"], names=["cat", "dog"]), role="pred")
    assert side.boxes.xywh.tolist() == [[15, 10, 10, 4]]
    assert [side.images.name(row) for row in side.boxes.image] == ["b"]
    assert [side.labels.names[row] for row in side.boxes.label] == ["cat"]
    assert side.boxes.score == pytest.approx(np.array([1.0]))
    assert side.ignored == {"npz-score-low": 11}  # 2 images of 6 cells, less the one


def test_several_heads_add_up(save: Save) -> None:
    heads = {}
    for head, stride in (("_0", 8), ("_1", 16)):
        raw = raw_output()
        raw[0, 0, 0, 0, 4:] = [20, -20, 20]
        heads |= {f"raw{head}": raw, f"anchors{head}": [[stride, stride]], f"stride{head}": stride}
    side = load(save(**heads, images=["a"]), role="pred")
    assert side.boxes.xywh.tolist() == [[0, 0, 8, 8], [0, 0, 16, 16]]
    assert side.boxes.label.tolist() == [0, 0]
    assert side.labels.keys == (1,)


def test_raw_output_can_be_evaluated(save: Save, tmp_path: Path) -> None:
    raw = raw_output()
    raw[0, 0, 1, 2, 4:] = [20, 20, -20]
    pred = save(raw=raw, anchors=[[10, 4]], stride=8, images=["a"], names=["cat", "dog"])
    boxes, scores = decode_grid(raw[0], [[10, 4]], 8)
    gt = tmp_path / "gt.npz"
    np.savez(gt, boxes=boxes[scores.max(axis=1) > 0.5], labels=["cat"], image=["a"])
    assert evaluate(gt, pred, nms=0.6)["AP50"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"boxes": None}, ["boxes: the array is missing; the archive has: 'scores', 'labels', 'image'"]),
        ({"boxes": [1, 2, 3, 4]}, ["boxes: has shape (4,), expected (n, 4)"]),
        ({"boxes": [["1"] * 4] * 2}, ["boxes: holds <U1, expected numbers"]),
        ({"boxes": [[0, 0, math.nan, 1]] * 2}, ["boxes[0].bbox", "nan"]),
        ({"scores": [0.9]}, ["scores: has shape (1,), expected (2)"]),
        ({"scores": [0.9, math.inf]}, ["boxes[1].score: is inf"]),
        ({"scores": None}, ["predictions have no score"]),
        ({"labels": [0.0, 1.0]}, ["labels: holds float64, expected whole numbers or strings"]),
        ({"labels": None, "image": None}, ["labels: the array is missing", "image: the array is missing"]),
        ({"image": [1, 2, 3]}, ["image: has shape (3,), expected (2,), one per box"]),
        ({"image": [0, 2], "images": ["a", "b"]}, ["image[1]: is 2, but 2 images are listed"]),
        ({"images": ["a", "a"]}, ["duplicate image id 'a'"]),
        ({"images": ["a.jpg", "b.jpg"], "sizes": [[1, 2]]}, ["sizes: has shape (1, 2), expected (2, 2)"]),
        ({"labels": np.array([0, 2**63], dtype=np.uint64)}, ["labels: holds 9223372036854775808"]),
        ({"encoding": "xyhw"}, ["encoding: is 'xyhw'; choose from xyxy"]),
        ({"boxes": [[5, 0, 1, 1]] * 2}, ["width -4"]),
    ],
)
def test_arrays_that_do_not_fit_are_named_in_one_pass(changes: dict[str, Any], messages: list[str], save: Save) -> None:
    text = error(save(**{**BOXES, **changes}))
    assert [message for message in messages if message not in text] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"raw": raw_output()[0]}, "raw: has shape (1, 2, 3, 7)"),
        ({"raw": np.full_like(raw_output(), np.nan)}, "raw: cannot be decoded: raw[0, 0, 0, 0, 0] is nan"),
        ({"anchors": [[1, 1], [2, 2]]}, "raw: cannot be decoded: anchors have shape (2, 2)"),
        ({"anchors": None}, "anchors: the array is missing"),
        ({"stride": [8]}, "stride: has shape (1,), expected ()"),
        ({"images": ["a", "b"]}, "raw: has shape (1, 1, 2, 3, 7), expected (2, n, n, n, n)"),
        ({"formula": "yolov4"}, "formula: is 'yolov4'; choose from yolov3, yolov5"),
    ],
)
def test_raw_output_that_does_not_fit_is_named(changes: dict[str, Any], message: str, save: Save) -> None:
    arrays = {"raw": raw_output(), "anchors": [[10, 4]], "stride": 8, "images": ["a"]}
    assert message in error(save(**{**arrays, **changes}))


def test_raw_output_is_no_ground_truth(save: Save) -> None:
    path = save(raw=raw_output(), anchors=[[10, 4]], stride=8, images=["a"])
    assert "not ground truth" in error(path, role="gt")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "pred.npz"
    np.savez(path, **{**BOXES, "labels": np.array([Trap(), Trap()], dtype=object)})
    assert "labels: cannot be read" in error(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("boxes.npy", pickle.dumps(Trap()))
    assert "boxes: cannot be read" in error(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_an_archive_that_was_cut_off_is_refused(kept: float, save: Save) -> None:
    path = save(**BOXES)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    assert "npz-damaged" in error(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pred.npz"
    np.savez_compressed(path, boxes=np.zeros((3_000_000, 4)))
    assert "claims to unpack to 96,000,128 bytes" in error(path)


def test_an_archive_of_other_things_is_not_taken_for_arrays(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("readme.txt", "text")
    path = tmp_path / "things.zip"
    path.write_bytes(content.getvalue())
    assert not npz.looks_like(Peek(path))
    assert not npz.looks_like(Peek(tmp_path))
    with pytest.raises(DataError, match="a zip archive"):
        detect_format(path)


def test_given_names_go_before_those_of_the_archive(save: Save) -> None:
    path = save(**{**BOXES, "labels": [1, 0]}, names=["a", "b"])
    assert load(path, role="pred", options=ReadOptions(names=("cat", "dog"))).labels.names == ("cat", "dog")
