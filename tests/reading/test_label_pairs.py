from pathlib import Path

import pytest
from label_map_builder import label_map, write_npy, write_png

from jaccard_eval import DataError
from jaccard_eval.findings import FindingLog
from jaccard_eval.reading.labelmaps import Pairing, pair_maps


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write_maps(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        if name.endswith(".npy"):
            write_npy(path, label_map("0"))
        elif name.endswith(".png"):
            write_png(path, "0")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    return root


def pair(gt: Path, pred: Path, listed: str | None = None) -> Pairing:
    findings = FindingLog()
    list_file = None
    if listed is not None:
        list_file = gt.parent / "list.txt"
        list_file.write_text(listed)
    pairing = pair_maps(gt, pred, list_file, findings)
    findings.raise_errors()
    return pairing


def names(pairing: Pairing, gt: Path, pred: Path) -> list[tuple[str, str]]:
    return [(one.gt.relative_to(gt).as_posix(), one.pred.relative_to(pred).as_posix()) for one in pairing.pairs]


@pytest.mark.parametrize(
    ("gt_names", "pred_names", "strategy"),
    [
        (["a.png", "b.png"], ["a.png", "b.png"], "name"),
        (["val/a.png", "val/b.png"], ["a.png", "b.png"], "path"),
        (["x/a.png", "x/b.png"], ["y/a.png", "y/b.png"], "basename"),
        (["a.png", "b.png"], ["a.npy", "b.npy"], "stem"),
        (["x/a.png", "y/a.png"], ["x/a.png", "y/a.png"], "name"),
    ],
)
def test_maps_are_paired_by_the_first_strategy_that_pairs_them_all(
    folder: Path, gt_names: list[str], pred_names: list[str], strategy: str
) -> None:
    gt, pred = write_maps(folder / "gt", *gt_names), write_maps(folder / "pred", *pred_names)
    pairing = pair(gt, pred)
    assert pairing.strategy == strategy
    assert names(pairing, gt, pred) == list(zip(gt_names, pred_names, strict=True))


def test_two_files_are_a_pair_whatever_their_names(folder: Path) -> None:
    gt, pred = write_maps(folder, "truth.png") / "truth.png", write_maps(folder, "guess.npy") / "guess.npy"
    assert [(one.gt, one.pred) for one in pair(gt, pred).pairs] == [(gt, pred)]


def test_every_map_without_counterpart_is_named_on_both_sides(folder: Path) -> None:
    gt, pred = write_maps(folder / "gt", "a.png", "b.png", "c.png"), write_maps(folder / "pred", "b.png", "d.png")
    with pytest.raises(DataError) as caught:
        pair(gt, pred)
    examples = [str(example) for finding in caught.value.findings for example in finding.examples]
    assert examples == [
        f"{gt / 'a.png'}: there is no prediction of this name",
        f"{gt / 'c.png'}: there is no prediction of this name",
        f"{pred / 'd.png'}: there is no ground truth of this name",
    ]


def test_files_that_are_no_label_maps_are_counted(folder: Path) -> None:
    gt = write_maps(folder / "gt", "a.png", "a.jpg", "notes.txt")
    assert pair(gt, write_maps(folder / "pred", "a.png")).ignored == ({"other-files": 2}, {})


def test_a_folder_without_label_maps_is_an_error(folder: Path) -> None:
    with pytest.raises(DataError, match=r"there is no label map \(.png, .* or .npz\) among the 1 file of the folder"):
        pair(write_maps(folder / "gt", "a.txt"), write_maps(folder / "pred", "a.png"))


def test_of_the_root_of_voc_the_folder_of_classes_is_compared(folder: Path) -> None:
    kinds = ("SegmentationClass", "SegmentationObject")
    gt = write_maps(folder / "gt", *(f"VOC2012/{kind}/{n}.png" for kind in kinds for n in (1, 2)))
    pairing = pair(gt, write_maps(folder / "pred", "1.png", "2.png"))
    assert names(pairing, gt, folder / "pred") == [(f"VOC2012/SegmentationClass/{n}.png", f"{n}.png") for n in (1, 2)]
    assert pairing.ignored == ({"other-files": 2}, {})


def test_of_cityscapes_own_tree_the_labels_are_compared(folder: Path) -> None:
    layers = ("labelIds", "instanceIds", "labelTrainIds", "color")
    gt = write_maps(folder / "gt", *(f"val/ulm/ulm_0_{n}_gtFine_{layer}.png" for n in (1, 2) for layer in layers))
    for ending in ("_leftImg8bit_pred", "_pred", "_pred_labelTrainIds", ""):
        pairing = pair(gt, write_maps(folder / f"pred{ending}", *(f"ulm_0_{n}{ending}.png" for n in (1, 2))))
        assert [pair.name for pair in pairing.pairs] == [f"val/ulm/ulm_0_{n}_gtFine_labelIds.png" for n in (1, 2)]
        assert pairing.ignored[0] == {"other-files": 6}


@pytest.mark.parametrize("entry", ["a", "a.png", "a.jpg", "val/a", "images/val/a.jpg"])
def test_a_list_names_maps_by_any_end_of_their_path_with_or_without_suffix(folder: Path, entry: str) -> None:
    gt, pred = write_maps(folder / "gt", "val/a.png", "val/b.png"), write_maps(folder / "pred", "a.npy", "b.npy")
    pairing = pair(gt, pred, listed=f"{entry}\n\n")
    assert names(pairing, gt, pred) == [("val/a.png", "a.npy")]
    assert pairing.ignored == ({"unlisted": 1}, {"unlisted": 1})


@pytest.mark.parametrize("line", ["a.png\tout/1.png", "a.png, out/1.png", "a.png;out/1.png", "a.png out/1.png"])
def test_a_list_may_hold_pairs(folder: Path, line: str) -> None:
    gt, pred = write_maps(folder / "gt", "a.png"), write_maps(folder / "pred", "out/1.png")
    assert names(pair(gt, pred, listed=line), gt, pred) == [("a.png", "out/1.png")]


def test_a_listed_name_may_hold_blanks(folder: Path) -> None:
    gt, pred = write_maps(folder / "gt", "a b.png"), write_maps(folder / "pred", "a b.png")
    assert names(pair(gt, pred, listed="a b"), gt, pred) == [("a b.png", "a b.png")]


def test_the_order_is_that_of_the_list(folder: Path) -> None:
    gt, pred = (write_maps(folder / side, "a.png", "b.png") for side in ("gt", "pred"))
    assert names(pair(gt, pred, listed="b\na"), gt, pred) == [("b.png", "b.png"), ("a.png", "a.png")]


def test_everything_wrong_with_a_list_is_said_with_its_line(folder: Path) -> None:
    gt, pred = write_maps(folder / "gt", "a.png", "x/c.png", "y/c.png"), write_maps(folder / "pred", "a.png", "c.png")
    with pytest.raises(DataError) as caught:
        pair(gt, pred, listed="a\nmissing\na.png\nc\n../list.txt\n")
    (finding,) = caught.value.findings
    details = [(example.where.line, example.detail) for example in finding.examples]
    assert details == [
        (2, f"'missing' is not a label map in {gt}"),
        (2, f"'missing' is not a label map in {pred}"),
        (3, "'a.png' is already listed on line 1"),
        (4, f"'c' can mean 'x/c.png' and 'y/c.png' in {gt}"),
        (5, f"'../list.txt' is not a label map in {gt}"),
        (5, f"'../list.txt' is not a label map in {pred}"),
    ]


def test_an_empty_list_is_an_error(folder: Path) -> None:
    gt, pred = (write_maps(folder / side, "a.png") for side in ("gt", "pred"))
    with pytest.raises(DataError, match="the list is empty"):
        pair(gt, pred, listed=" \n")


def test_a_path_that_does_not_exist_is_an_error(folder: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        pair(folder / "nowhere", write_maps(folder / "pred", "a.png"))
