"""The page of suspected labels: a tab for each kind, whose images are those of its suspects, the surest first."""

from pathlib import Path

import pytest

from jaccard_eval import labels
from jaccard_eval.features.labels import SUSPICIONS, LabelsResult
from jaccard_eval.features.labels.report import page_sections
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.model import Gallery
from jaccard_eval.report.outputs.html import render

SAMPLE = Path(__file__).parents[3] / "sample_data" / "yolo"


@pytest.fixture(scope="module")
def result() -> LabelsResult:
    return labels(SAMPLE / "data.yaml", SAMPLE / "worse")


def gallery_of(result: LabelsResult, n: int | None = None) -> Gallery:
    [section] = page_sections(result, ReportOptions(gallery=n))
    return next(block for block in section.blocks if isinstance(block, Gallery))


def test_every_kind_is_a_choice_of_its_images(result: LabelsResult) -> None:
    gallery, found = gallery_of(result), {kind: [] for kind in SUSPICIONS}  # type: ignore[var-annotated]
    for suspect in result.suspects:  # the surest first
        if suspect.image not in found[suspect.kind]:
            found[suspect.kind].append(suspect.image)
    tabs = [[gallery.images[row].name for row in tab.rows] for tab in gallery.tabs]
    assert tabs[1:] == [images for images in found.values() if images]
    assert sorted(tabs[0]) == sorted({suspect.image for suspect in result.suspects})


def test_every_suspect_has_its_box_and_its_kind_in_words(result: LabelsResult) -> None:
    boxes = {image.name: image.boxes for image in gallery_of(result).images}
    for suspect in result.suspects:
        sides = suspect.xmin, suspect.ymin, suspect.xmax - suspect.xmin, suspect.ymax - suspect.ymin
        assert any(
            box.label.startswith(f"{suspect.kind}: {suspect.class_name}") and box.xywh == pytest.approx(sides)
            for box in boxes[suspect.image]
        )
    assert sum(map(len, boxes.values())) == len(result.suspects)


def test_the_page_has_pictures_of_as_many_images_as_asked_for(result: LabelsResult) -> None:
    assert len(gallery_of(result, 3).images) == 3
    assert page_sections(result, ReportOptions(gallery=0)) == []
    page = render(result, ReportOptions(gallery=2))
    assert page.count("data:image/jpeg") == 2
    assert "were found next to the labels" not in page
