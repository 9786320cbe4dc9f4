"""The label maps that differ most, drawn for a page."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import pixels
from jaccard_eval.cli import run
from jaccard_eval.features.pixels.report import WorstMaps
from jaccard_eval.report.model import Gallery
from jaccard_eval.report.panels import GAP, RIGHT, VOID, WRONG, voc_colour


def save(folder: Path, name: str, values: list[list[int]] | np.ndarray, palette: list[int] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    image = Image.fromarray(np.asarray(values, dtype=np.uint8))
    if palette is not None:
        image.putpalette(palette)
    image.save(folder / name)


@pytest.fixture
def maps(tmp_path: Path) -> tuple[Path, Path]:
    gt, pred = tmp_path / "gt", tmp_path / "pred"
    for name, wrong in (("a.png", 1), ("b.png", 3), ("c.png", 0)):
        truth = np.zeros((2, 4), dtype=np.uint8)
        truth[:, 2:] = 1
        found = truth.copy()
        found[0, :wrong] = 2
        save(gt, name, truth)
        save(pred, name, found)
    return gt, pred


def gallery_of(worst: WorstMaps, names: list[str]) -> Gallery:
    gallery = worst.gallery(24, names, [*range(len(names))])
    assert gallery is not None
    return gallery


def panels(data: bytes) -> list[np.ndarray]:
    whole = np.asarray(Image.open(io.BytesIO(data)))
    width = (whole.shape[1] - 2 * GAP) // 3
    return [whole[:, start : start + width] for start in (0, width + GAP, 2 * (width + GAP))]


def test_the_maps_that_differ_most_come_first_and_equal_ones_not_at_all(maps: tuple[Path, Path]) -> None:
    gallery = gallery_of(pixels(*maps).images, ["0", "1", "2"])
    assert [(image.name, image.caption) for image in gallery.images] == [
        ("b.png", "37.5 % of 8 pixels differ"),
        ("a.png", "12.5 % of 8 pixels differ"),
    ]


def test_panels_are_both_maps_in_their_colours_and_where_they_differ(maps: tuple[Path, Path]) -> None:
    gallery = gallery_of(pixels(*maps).images, ["0", "1", "2"])
    truth, found, difference = panels(gallery.images[1].thumbnail)
    assert truth[0].tolist() == [[0, 0, 0], [0, 0, 0], [128, 0, 0], [128, 0, 0]]
    assert found[0].tolist() == [[0, 128, 0], [0, 0, 0], [128, 0, 0], [128, 0, 0]]
    assert difference[0].tolist() == [[*WRONG], [*RIGHT], [*RIGHT], [*RIGHT]]
    assert gallery.legend == (("0", "#000000"), ("1", "#800000"), ("2", "#008000"))


def test_ignored_pixels_are_void_and_do_not_differ(maps: tuple[Path, Path]) -> None:
    gt, pred = maps
    save(gt, "a.png", [[255, 0, 1, 1], [0, 0, 1, 1]])
    result = pixels(gt, pred, classes=["road", "car", "sky"], ignore=(255,))
    gallery = gallery_of(result.images, ["road", "car", "sky"])
    assert [image.name for image in gallery.images] == ["b.png"]
    save(pred, "a.png", [[2, 1, 1, 1], [0, 0, 1, 1]])
    gallery = gallery_of(pixels(gt, pred, classes=["road", "car", "sky"], ignore=(255,)).images, ["road", "car", "sky"])
    [image] = [image for image in gallery.images if image.name == "a.png"]
    assert image.caption == "14.3 % of 7 pixels differ"
    truth, _, difference = panels(image.thumbnail)
    assert truth[0, 0].tolist() == [*VOID]
    assert difference[0].tolist() == [[*RIGHT], [*WRONG], [*RIGHT], [*RIGHT]]


def test_shares_add_up_to_the_pixel_accuracy_under_any_rules(maps: tuple[Path, Path]) -> None:
    for rules in ({}, {"background": 0, "drop_background": "gt"}, {"reduce_zero": "both"}):
        result = pixels(*maps, classes=["a", "b", "c"], **rules)  # type: ignore[arg-type]
        wrong, counted = (sum(getattr(pair, name) for pair in result.images.pairs) for name in ("wrong", "pixels"))
        assert 1 - wrong / counted == pytest.approx(result["pixel_accuracy"])


def test_no_difference_gets_lost_in_a_large_map(tmp_path: Path) -> None:
    truth = np.zeros((2000, 3000), dtype=np.uint8)
    found = truth.copy()
    found[1234, 2345] = 1
    save(tmp_path / "gt", "a.png", truth)
    save(tmp_path / "pred", "a.png", found)
    [image] = gallery_of(pixels(tmp_path / "gt", tmp_path / "pred").images, ["0", "1"]).images
    _, _, difference = panels(image.thumbnail)
    rows, columns = np.nonzero((difference != RIGHT).any(axis=2))
    assert (rows.tolist(), columns.tolist()) == ([1234 * 160 // 2000], [2345 * 240 // 3000])
    assert difference.shape == (160, 240, 3)


def test_a_palette_gives_the_colours(tmp_path: Path) -> None:
    palette = [10, 20, 30, 200, 100, 50]
    save(tmp_path / "gt", "a.png", [[0, 1]], palette)
    save(tmp_path / "pred", "a.png", [[1, 1]], palette)
    [image] = gallery_of(pixels(tmp_path / "gt", tmp_path / "pred").images, ["0", "1"]).images
    assert panels(image.thumbnail)[0][0].tolist() == [[10, 20, 30], [200, 100, 50]]


def test_the_colour_map_is_that_of_pascal_voc() -> None:
    # Aeroplane, bicycle, person and the last, as the development kit of VOC2012 lists them.
    assert [voc_colour(number) for number in (0, 1, 2, 15, 20)] == [
        (0, 0, 0),
        (128, 0, 0),
        (0, 128, 0),
        (192, 128, 128),
        (0, 64, 128),
    ]
    assert len({voc_colour(number) for number in range(256)}) == 256


def test_a_file_that_is_gone_is_a_note(maps: tuple[Path, Path]) -> None:
    result = pixels(*maps)
    (maps[0] / "b.png").unlink()
    gallery = gallery_of(result.images, ["0", "1", "2"])
    assert [bool(image.thumbnail) for image in gallery.images] == [False, True]
    assert [str(finding.severity) for finding in result.images.findings.findings()] == ["note"]


def test_the_page_shows_them(maps: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    args = ["pixels", *map(str, maps), "-q", "-o", str(page)]
    assert run.run(args) == 0
    text = page.read_text()
    found = re.findall(r'href="data:image/png;base64,([^"]+)"', text)
    assert len(found) == 2
    assert panels(base64.b64decode(found[0]))[2].shape == (2, 4, 3)
    assert "37.5 % of 8 pixels differ" in text
    assert run.run([*args, "--gallery", "0"]) == 0
    assert "data:image/png" not in page.read_text()
