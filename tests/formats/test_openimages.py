"""Open Images CSV: the order of its columns, names of its classes, groups, and what it cannot hold."""

from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, load
from jaccard_eval.formats import detect_format, write_dataset

HEADER = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n"
)


def table(folder: Path, *rows: str, name: str = "boxes.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


def test_both_x_stand_before_both_y(tmp_path: Path) -> None:
    dataset = load(table(tmp_path, "a,xclick,dog,1,0.25,0.75,0.5,0.625,0,0,1,0,0", "a,,cat,1,0,0.5,0,1,0,0,-1,0,0"))
    assert (dataset.format, dataset.units, dataset.images.keys) == ("openimages", "norm", ("a",))
    assert dataset.boxes.xywh.tolist() == [[0.25, 0.5, 0.5, 0.125], [0, 0, 0.5, 1]]
    assert dataset.boxes.group_of.tolist() == [True, False]
    assert "group-unknown" in {one.code for one in dataset.findings}


def test_boxes_on_whole_images_are_fractions_all_the_same(tmp_path: Path) -> None:
    assert load(table(tmp_path, "a,,dog,1,0,1,0,1,0,0,0,0,0")).units == "norm"  # no value is between 0 and 1


@pytest.mark.parametrize("header", ["", "LabelName,DisplayName\n"])
def test_the_descriptions_beside_the_table_name_its_classes(header: str, tmp_path: Path) -> None:
    descriptions = f'{header}/m/01g317,Person\n/m/0bt9lr,"Dog, domestic"\n'
    (tmp_path / "class-descriptions-boxable.csv").write_text(descriptions)
    dataset = load(table(tmp_path, "a,,/m/0bt9lr,1,0,1,0,.5,,,,,", "a,,/m/0new,1,0,1,0,.5,,,,,"))
    assert dataset.labels.keys == ("/m/0bt9lr", "/m/0new")
    assert dataset.labels.names == ("Dog, domestic", "/m/0new")
    write_dataset(dataset, tmp_path / "again.csv")
    assert load(tmp_path / "again.csv").labels == dataset.labels


def test_a_description_longer_than_the_csv_module_takes_names_its_class(tmp_path: Path) -> None:
    """Its limit is 131,072 characters a field."""
    name = "x" * 200_000
    (tmp_path / "class-descriptions-boxable.csv").write_text(f"/m/0bt9lr,{name}\n")
    assert load(table(tmp_path, "a,,/m/0bt9lr,1,0,1,0,.5,,,,,")).labels.names == (name,)


def test_a_table_in_pixels_is_refused_unless_that_is_said(tmp_path: Path) -> None:
    path = table(tmp_path, "a,,dog,1,10,40,20,60,,,,,")
    with pytest.raises(DataError, match="1 of 1 boxes have coordinates above 1"):
        load(path)
    assert load(path, options=ReadOptions(units="px")).boxes.xywh.tolist() == [[10, 20, 30, 40]]


def test_csv_steps_back_for_its_columns_and_keeps_all_others(tmp_path: Path) -> None:
    assert detect_format(table(tmp_path)) == "openimages"
    other = tmp_path / "other.csv"
    other.write_text("ImageID,Class,XMin,XMax,YMin,YMax\na,dog,1,2,3,4\n")
    assert detect_format(other) == "csv"


def test_pixels_are_written_as_fractions_of_known_sizes_only(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("image,image_width,image_height,class,xmin,ymin,xmax,ymax\na,100,50,dog,10,20,30,45\n")
    write_dataset(load(source), tmp_path / "out.csv", format_name="openimages")
    np.testing.assert_allclose(load(tmp_path / "out.csv").boxes.xywh, [[0.1, 0.4, 0.2, 0.5]], atol=1e-15)
    source.write_text("image,class,xmin,ymin,xmax,ymax\na,dog,10,20,30,45\n")
    with pytest.raises(DataError, match="Open Images holds fractions of the image, but the size of 1 image is unknown"):
        write_dataset(load(source), tmp_path / "none.csv", format_name="openimages")
    assert not (tmp_path / "none.csv").exists()
