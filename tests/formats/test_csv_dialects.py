"""Tables as tools and competitions write them, each by a literal example."""

from pathlib import Path

import pytest

from jaccard_eval import load

BOX = [10.0, 20.0, 30.0, 40.0]  # corners 10, 20, 40 and 60
TABLES = {  # header and rows; the classes of the boxes; all images
    "TensorFlow Object Detection": (
        "filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,640,480,dog,10,20,40,60\n", ["dog"], ["a.jpg"]),
    "panlabel, the same header in fractions": (
        "filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,80,80,dog,0.125,0.25,0.5,0.75\n", ["dog"], ["a.jpg"]),
    "VoTT": ('"image","xmin","ymin","xmax","ymax","label"\n"a.jpg",10,20,40,60,"dog"\n', ["dog"], ["a.jpg"]),
    "SSD-Keras, both x first": ("frame,xmin,xmax,ymin,ymax,class_id\na.jpg,10,40,20,60,1\n", ["1"], ["a.jpg"]),
    "keras-retinanet, no header": (
        "i/a.jpg,10,20,40,60,cow\ni/b.jpg,,,,,\ni/c.jpg,,,,\n", ["cow"], ["i/a.jpg", "i/b.jpg", "i/c.jpg"]),
    "Global Wheat": (
        'image_id,width,height,bbox,source\nb6ab77fd7,1024,1024,"[10.0, 20.0, 30.0, 40.0]",usask_1\n',
        ["0"], ["b6ab77fd7"]),
    "VinBigData": (
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max\n"
        "50a4,No finding,14,R11,,,,\n21a1,Cardiomegaly,3,R9,10,20,40,60\n", ["Cardiomegaly"], ["21a1", "50a4"]),
    "supervision's sink, frames of a video": (
        "x_min,y_min,x_max,y_max,class_id,confidence,tracker_id,class_name,frame_number\n"
        "10,20,40,60,16,0.9,,dog,7\n", ["dog"], ["7"]),
    "Roboflow, centres said by their names": (
        "image,cx,cy,w,h,label,score\na.jpg,25,40,30,40,dog,0.9\n", ["dog"], ["a.jpg"]),
}  # fmt: skip


@pytest.mark.parametrize("tool", TABLES)
def test_a_table_of_a_tool_is_read_as_it_is(tool: str, tmp_path: Path) -> None:
    text, classes, images = TABLES[tool]
    path = tmp_path / "table.csv"
    path.write_text(text)
    dataset = load(path)
    assert dataset.boxes.xywh.tolist() == [BOX]
    assert [dataset.labels.names[row] for row in dataset.boxes.label] == classes
    assert list(dataset.images.keys) == images
    assert [one for one in dataset.findings if one.severity == "error"] == []


def test_the_units_of_one_header_are_told_by_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLES["panlabel, the same header in fractions"][0])
    dataset = load(path)  # 0.125 and 0.25 of 80 pixels are 10 and 20
    assert (dataset.reading.units, dataset.units) == ("norm", "px")
