"""Label maps whose confusion matrix and scores are published with them."""

from pathlib import Path

import pytest

from jaccard_eval import PixelsResult, pixels


@pytest.fixture(scope="module")
def result(shared_data: Path) -> PixelsResult:
    folder = shared_data / "semseg-unet-zplayerez"
    voc = folder / "VOCdevkit" / "VOC2007"
    split = voc / "ImageSets" / "Segmentation" / "val.txt"
    return pixels(voc / "SegmentationClass", folder / "miou_out" / "detection-results", list_file=split)


def test_the_confusion_matrix_is_the_published_one(result: PixelsResult, shared_data: Path) -> None:
    published = shared_data / "semseg-unet-zplayerez" / "miou_out" / "confusion_matrix.csv"
    rows = [line.split(",")[1:] for line in published.read_text().splitlines()[1:]]
    counts = {(gt, pred): pixels for gt, pred, pixels in result.confusion}
    assert [[int(cell) for cell in row] for row in rows] == [[counts[g, p] for p in ("0", "1")] for g in ("0", "1")]
    assert counts == {("0", "0"): 9862220, ("0", "1"): 3060, ("1", "0"): 2840, ("1", "1"): 2518184}


def test_the_scores_are_the_published_ones(result: PixelsResult) -> None:
    assert [round(result[f"IoU[class={name}]"], 6) for name in ("0", "1")] == [0.999402, 0.997663]
    assert (round(result["mIoU"], 6), round(result["pixel_accuracy"], 6)) == (0.998532, 0.999524)
    assert (result.gt.images, result.findings) == (189, ())
