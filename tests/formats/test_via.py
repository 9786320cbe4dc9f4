"""Exports of the VGG Image Annotator: JSON, project and CSV, the class among attributes, and what can be wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, load

HEADER = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes\n"


def region(*sides: Any, name: str = "rect", **attributes: Any) -> dict[str, Any]:
    shape = {"name": name, **dict(zip(("x", "y", "width", "height"), sides, strict=False))}
    return {"shape_attributes": shape, "region_attributes": attributes}


def files(**regions: Any) -> dict[str, Any]:
    return {f"{name}.jpg9": {"filename": f"{name}.jpg", "size": 9, "regions": regions[name]} for name in regions}


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_the_only_attribute_is_the_class_and_files_without_regions_are_listed(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "via.json", files(a=[region(10, 20, 30, 40, fruit="apple")], b=[])))
    assert (dataset.format, dataset.images.keys, dataset.images.listed) == ("via", ("a.jpg", "b.jpg"), True)
    assert (dataset.labels.names, dataset.boxes.xywh.tolist()) == (("apple",), [[10, 20, 30, 40]])


def test_projects_and_regions_of_version_1_and_check_boxes_are_read(tmp_path: Path) -> None:
    checked = region(1, 2, 3, 4, fruit={"apple": True, "pear": False})
    project = {"_via_settings": {}, "_via_img_metadata": files(a={"0": checked})}
    dataset = load(write(tmp_path / "via.json", project))
    assert (dataset.format, dataset.labels.names) == ("via", ("apple",))


def test_of_several_attributes_the_one_called_class_counts_and_others_stop_the_run(tmp_path: Path) -> None:
    path = write(tmp_path / "via.json", files(a=[region(1, 2, 3, 4, colour="red", Class="dog")]))
    assert load(path).labels.names == ("dog",)
    write(path, files(a=[region(1, 2, 3, 4, colour="red", kind="dog")]))
    with pytest.raises(DataError, match="any of the attributes 'colour', 'kind'"):
        load(path)


def test_the_table_gives_what_the_json_gives(tmp_path: Path) -> None:
    row = '"{""name"":""rect"",""x"":10,""y"":20,""width"":30,""height"":40}","{""fruit"":""apple""}"\n'
    circle = '"{""name"":""circle"",""cx"":1,""cy"":2,""r"":3}","{""fruit"":""apple""}"\n'
    table = HEADER + f'a.jpg,9,"{{}}",2,0,{row}a.jpg,9,"{{}}",2,1,{circle}b.jpg,9,"{{}}",0,0,"{{}}","{{}}"\n'
    dataset = load(write(tmp_path / "via.csv", table))
    assert (dataset.format, dataset.images.keys) == ("via", ("a.jpg", "b.jpg"))
    assert (dataset.labels.names, dataset.boxes.xywh.tolist()) == (("apple",), [[10, 20, 30, 40]])
    assert dataset.ignored == {"shape": 1}


def test_every_problem_is_told_with_its_place(tmp_path: Path) -> None:
    both = region(1, 2, 3, 4, fruit={"apple": True, "pear": True})
    path = write(tmp_path / "via.json", files(a=[region(1, "2", 3, fruit="apple"), both, region(1, 2, 3, 4)]))
    with pytest.raises(DataError) as caught:
        load(path)
    for told in (
        "a.jpg9.regions[0].shape_attributes.y: is '2' (a string), not a number",
        "a.jpg9.regions[0].shape_attributes.height: is missing",
        "a.jpg9.regions[1].region_attributes.fruit: has 2 options set to true; a box has one class",
        "a.jpg9.regions[2].region_attributes.fruit: is missing",
    ):
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('a.jpg,9,"{}",1,0,"{""name"":","{}"\n', "via.csv:2: region_shape_attributes: not valid JSON"),
        ('a.jpg,9,"{}",1,0,"{""name', "via.csv:2: not readable as CSV: unexpected end of data"),
    ],
)
def test_a_table_that_was_cut_off_is_an_error_with_its_line(row: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / "via.csv", HEADER + row))
    assert told in str(caught.value)


def project_of_three(path: Path, *regions: list[Any], value: str = "0", options: dict[str, str] | None = None) -> Path:
    """A project of version 3 with two files, whose regions are of the first."""
    attribute = {"aname": "fruit", "anchor_id": "FILE1_Z0_XY1", "type": 4, "options": options or {"0": "apple"}}
    metadata = {
        f"1_{at}": {"vid": "1", "flg": 0, "z": [], "xy": xy, "av": {"1": value}} for at, xy in enumerate(regions)
    }
    document = {
        "project": {"pid": "p", "data_format_version": "3.1.1"},
        "config": {},
        "attribute": {"1": attribute},
        "file": {"1": {"fid": "1", "fname": "a.jpg", "type": 2}, "2": {"fid": "2", "fname": "b.jpg", "type": 2}},
        "metadata": metadata,
        "view": {"1": {"fid_list": ["1"]}, "2": {"fid_list": ["2"]}},
    }
    path.write_text(json.dumps(document))
    return path


def test_projects_of_version_three_have_regions_beside_the_files(tmp_path: Path) -> None:
    path = project_of_three(tmp_path / "p.json", [2, 10, 20, 30, 40], [7, 1, 2, 3, 4, 5, 6], [])
    dataset = load(path)
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("via", ("a.jpg", "b.jpg"), ("apple",))
    assert dataset.boxes.xywh.tolist() == [[10, 20, 30, 40], [1, 2, 4, 4]]  # the latter around a polygon
    assert load(project_of_three(tmp_path / "t.json", [2, 1, 2, 3, 4], value="pear")).labels.names == ("pear",)


def test_problems_of_a_project_of_version_three_are_told_with_their_region(tmp_path: Path) -> None:
    path = project_of_three(tmp_path / "p.json", [2, 10, 20, 30], [2, 1, "2", 3, 4])
    text = path.read_text()
    with pytest.raises(DataError) as caught:
        load(path)
    assert "metadata.1_0.xy: has 4 values; expected 2 and 4 numbers" in str(caught.value)
    assert "metadata.1_1.shape_attributes.y: is '2' (a string), not a number" in str(caught.value)
    path.write_text(text.replace('"fid_list": ["1"]', '"fid_list": ["9"]'))
    with pytest.raises(DataError, match=r"metadata\.1_0\.vid: does not lead to a file"):
        load(path)


def test_regions_without_attributes_are_of_one_class(tmp_path: Path) -> None:
    path = write(tmp_path / "via.json", files(a=[region(10, 20, 30, 40)], b=[]))
    dataset = load(path)
    assert (dataset.labels.names, [one.code for one in dataset.findings]) == (("0",), ["csv-one-class"])
    assert load(path, options=ReadOptions(names=("balloon",))).labels.names == ("balloon",)
