"""Colours of Cityscapes and VOC by name: hand arithmetic, and the colours that their own tools give."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jaccard_eval import DataError, pixels
from jaccard_eval.findings import Example, Where
from jaccard_eval.reading.labelmaps import named_color_table


def save(path: Path, shift: int, colors: tuple[tuple[int, int, int], ...], void: tuple[int, int, int] | None) -> Path:
    """Draw an object of 15 x 10 pixels on 40 x 30, and 50 pixels of void."""
    values = np.empty((30, 40, 3), dtype=np.uint8)
    values[:], values[5:15, 5 + shift : 20 + shift] = colors
    if void is not None:
        values[20:, :5] = void
    Image.fromarray(values).save(path)
    return path


@pytest.mark.parametrize(
    ("name", "colors", "void"),
    [("cityscapes", ((128, 64, 128), (0, 0, 142)), (81, 0, 81)), ("voc", ((0, 0, 0), (128, 0, 0)), (224, 224, 192))],
)
def test_colors_of_known_data_sets_need_no_file(
    name: str, colors: tuple[tuple[int, int, int], ...], void: tuple[int, int, int], tmp_path: Path
) -> None:
    gt, pred = save(tmp_path / "gt.png", 0, colors, void), save(tmp_path / "pred.png", 3, colors, None)
    found, result = pixels(gt, pred), pixels(gt, pred, colors=name)
    # The object: 120 of 180 pixels; what is behind it: 970 of 1,030, as 50 are void.
    assert result.metrics["mIoU"].value == pytest.approx((120 / 180 + 970 / 1030) / 2)
    assert found.signature == result.signature
    assert [(one.code, f"'{name}'" in one.message) for one in found.findings] == [("names-found", True)]


def test_two_colours_are_no_data_set(tmp_path: Path) -> None:
    # Cityscapes has red for riders, and black for what does not count: half of such a mask would be ignored.
    gt, pred = (save(tmp_path / f"{name}.png", 0, ((0, 0, 0), (255, 0, 0)), None) for name in ("gt", "pred"))
    with pytest.raises(DataError, match="not class numbers: 0 0 0, 255 0 0"):
        pixels(gt, pred)


def test_values_are_not_colours_of_no_class(tmp_path: Path) -> None:
    # Colours that Cityscapes does not evaluate come behind its 19 classes, where labelIds have persons and cars.
    values = np.repeat([7, 8, 24, 26], 300).reshape(30, 40).astype(np.uint8)
    colors = np.array([(128, 64, 128), (244, 35, 232), (220, 20, 60), (0, 0, 142)], dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "gt.png")
    Image.fromarray(colors[np.searchsorted([7, 8, 24, 26], values)]).save(tmp_path / "pred.png")
    with pytest.raises(DataError, match="value 24 is not a class") as caught:
        pixels(tmp_path / "gt.png", tmp_path / "pred.png")
    fix = caught.value.findings[0].fix
    assert fix is not None and fix.options == {"gt_class_map": "labelIds-trainIds", "ignore": "255"}
    assert pixels(tmp_path / "gt.png", tmp_path / "pred.png", gt_class_map="labelIds-trainIds")["mIoU"] == 1.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labelmap.txt", "# label:color_rgb:parts:actions\nroad:9,0,0::\ncar:0,7,0::\n"),
        ("class_dict.csv", "name,r,g,b\nroad,9,0,0\ncar,0,7,0\n"),
        (
            "dataset_meta.json",
            '{"label_map": {"0": "road", "1": "car"}, "segmentation_colors": [[9, 0, 0], [0, 7, 0]]}',
        ),
        ("dataset_meta.json", '{"label_map": {"0": "road"}, "segmentation_colors": [[9, 0, "x"], 3]}'),
        ("labelmap.txt", "road:9,0,0::\n"),  # lacks a colour
        ("labelmap.txt", "nothing"),
    ],
)
def test_a_table_beside_or_above_the_maps_is_read_if_it_has_all_colours(name: str, text: str, tmp_path: Path) -> None:
    for folder in ("gt", "gt/SegmentationClass", "pred"):
        (tmp_path / folder).mkdir()
    table = tmp_path / "gt" / name
    table.write_text(text)
    gt = save(tmp_path / "gt/SegmentationClass/a.png", 0, ((9, 0, 0), (0, 7, 0)), None)
    pred = save(tmp_path / "pred/a.png", 0, ((9, 0, 0), (0, 7, 0)), None)
    if "car" in text:
        result = pixels(gt, pred)
        assert (result["IoU[class=car]"], result.signature) == (1.0, pixels(gt, pred, colors=table).signature)
        return
    with pytest.raises(DataError, match="not class numbers: 9 0 0, 0 7 0") as caught:
        pixels(gt, pred)
    assert str(table) not in str(caught.value.findings[0].fix)


def test_the_colors_of_voc_are_those_of_its_own_tool() -> None:
    table = named_color_table("voc")
    assert table is not None
    named = dict(zip(table.names, table.codes.tolist(), strict=False))
    assert named["aeroplane"] == 128  # red
    assert named["tvmonitor"] == 0 | 64 << 8 | 128 << 16
    assert named["person"] == 192 | 128 << 8 | 128 << 16


def test_further_examples_do_not_repeat_a_long_folder() -> None:
    folder = "/data/" + "very long/" * 12
    first, other = (Example(Where(f"{folder}{name}", line=3), "is odd") for name in ("a.csv", "b.csv"))
    assert other.behind(first) == ".../b.csv:3: is odd"
    assert Example(Where("/data/b.csv"), "is odd").behind(Example(Where("/data/a.csv"), "")) == "/data/b.csv: is odd"
