"""CSV: columns by name, plain numbers only, and a line number in every message."""

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jaccard_eval import evaluate
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.findings import DataError
from jaccard_eval.formats import csv_, detect_format, read_dataset
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.peek import Peek

Load = Callable[..., Dataset]
HEADER = "image,class,xmin,ymin,xmax,ymax\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_read(text: str | bytes, role: str = "gt", **options: object) -> Dataset:
        path = tmp_path / f"{role}.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_dataset(path, ReadOptions(role=role, **options), "csv")  # type: ignore[arg-type]

    return write_and_read


@pytest.fixture
def refuse(load: Load) -> Callable[..., str]:
    def read_and_fail(text: str | bytes, role: str = "gt", **options: object) -> str:
        with pytest.raises(DataError) as caught:
            load(text, role, **options)
        return str(caught.value)

    return read_and_fail


Refuse = Callable[..., str]


def xywh(data: Dataset) -> list[list[float]]:
    boxes: list[list[float]] = data.boxes.xywh.tolist()
    return boxes


def classes(data: Dataset) -> list[str]:
    return [data.labels.names[row] for row in data.boxes.label]


def images(data: Dataset) -> list[object]:
    return [data.images.keys[row] for row in data.boxes.image]


def codes(data: Dataset) -> list[str]:
    return [finding.code for finding in data.findings]


# Corners 10, 20, 40, 60: left 10, top 20, width 40 - 10 = 30, height 60 - 20 = 40; centre 25, 40.
@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        ("xmin,ymin,xmax,ymax", "10,20,40,60"),
        ("XMin,XMax,YMin,YMax", "10,40,20,60"),
        ("x_min,y_min,x_max,y_max", "10,20,40,60"),
        ("x1,y1,x2,y2", "10,20,40,60"),
        ("left,top,right,bottom", "10,20,40,60"),
        ("xtl,ytl,xbr,ybr", "10,20,40,60"),
        ("x,y,w,h", "10,20,30,40"),
        ("x,y,width,height", "10,20,30,40"),
        ("left,top,width,height", "10,20,30,40"),
        ("bbox_x,bbox_y,bbox_w,bbox_h", "10,20,30,40"),
        ("cx,cy,w,h", "25,40,30,40"),
        ("x_center,y_center,width,height", "25,40,30,40"),
        ("xc,yc,w,h", "25,40,30,40"),
        ("bbox", '"[10, 20, 30, 40]"'),
        ("bbox", '"(10,20,30,40)"'),
        ("bbox", "10 20 30 40"),
        ("bbox", "[10. 20. 30. 40.]"),
    ],
)
def test_every_spelling_of_a_box_gives_the_same_box(load: Load, names: str, numbers: str) -> None:
    data = load(f"image,class,{names}\na.png,dog,{numbers}\n")
    assert xywh(data) == [[10.0, 20.0, 30.0, 40.0]]
    assert (images(data), classes(data), data.units) == (["a.png"], ["dog"], "px")


@pytest.mark.parametrize(
    "image",
    [
        "image",
        "image_id",
        "ImageID",
        "img",
        "File Name",
        "filename",
        "path",
        "file",
        "frame_number",
        "patientId",
        "source-ref",
    ],
)
@pytest.mark.parametrize("label", ["class", "LabelName", "category_id", "cls", "name", "target"])
def test_image_and_class_columns_go_by_many_names(load: Load, image: str, label: str) -> None:
    data = load(f"{label},{image},x1,y1,x2,y2\ndog,a.png,10,20,40,60\n")
    assert (images(data), classes(data)) == (["a.png"], ["dog"])


def test_class_names_count_before_class_numbers_and_paths_before_ids(load: Load) -> None:
    data = load("class_id,class_name,image_id,path,x,y,w,h\n3,dog,17,a/b.png,1,2,3,4\n")
    assert (images(data), classes(data)) == (["a/b.png"], ["dog"])
    assert data.labels.keys == (3,)
    assert "columns ignored: 'image_id'" in str(data.findings[0])


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_delimiters_line_ends_and_byte_order_marks_are_recognised(load: Load, mark: str, end: str, bom: bytes) -> None:
    text = end.join(["image,class,xmin,ymin,xmax,ymax", "a.png,dog,10,20,40,60", "b.png,,,,,", ""])
    data = load(bom + text.replace(",", mark).encode())
    assert xywh(data) == [[10.0, 20.0, 30.0, 40.0]]
    assert data.images.keys == ("a.png", "b.png")


def test_quoted_names_keep_commas_newlines_and_quotes(load: Load) -> None:
    data = load(HEADER + '"a,1.png","cat\ndog",1,2,3,4\nb.png,"the ""big"" cat",1,2,3,4\n')
    assert images(data) == ["a,1.png", "b.png"]
    assert classes(data) == ["cat\ndog", 'the "big" cat']


def test_blanks_after_a_delimiter_belong_to_no_name(load: Load) -> None:
    data = load('image, class, xmin, ymin, xmax, ymax\na.png, "dog", 10, 20, 40, 60\n')
    assert (classes(data), xywh(data)) == (["dog"], [[10.0, 20.0, 30.0, 40.0]])


def test_names_that_mean_missing_elsewhere_are_names(load: Load) -> None:
    data = load(HEADER + "".join(f"{name},{name},1,2,3,4\n" for name in ("NA", "null", "nan", "None", "-")))
    assert classes(data) == images(data) == ["NA", "null", "nan", "None", "-"]


def test_numbers_are_read_to_the_last_bit(load: Load) -> None:
    written = ["0.1", "123456789.123456789", "5e-324", "1.7976931348623157e107"]
    data = load(f"image,class,x,y,w,h\na,dog,{','.join(written)}\n", units="px")
    assert xywh(data) == [[float(number) for number in written]]


FULLWIDTH_12, MINUS_SIGN_5 = "\uff11\uff12", "\u22125"
NO_NUMBERS = ["1_000", FULLWIDTH_12, MINUS_SIGN_5, "true", "[1]", "12px", "$200", "1'000", "0x10", "1 2", "abc"]


@pytest.mark.parametrize("cell", [*NO_NUMBERS, "nan", "inf", "-inf", "1e400"])
def test_a_cell_that_is_no_plain_number_is_named_by_line_column_and_value(refuse: Refuse, cell: str) -> None:
    text = refuse(HEADER + f"a.png,dog,10,20,40,60\na.png,dog,{cell},20,40,60\n")
    assert f"gt.csv:3: xmin: {cell!r} is not" in text


@pytest.mark.parametrize("cell", ['"12.5"', " 12.5", '" 12.5 "', "+12.5", "1.25e1", "12.50"])
def test_quotes_signs_exponents_and_blanks_are_plain(load: Load, cell: str) -> None:
    assert xywh(load(HEADER + f"a.png,dog,{cell},20,40,60\n")) == [[12.5, 20.0, 27.5, 40.0]]


def test_all_problems_of_a_file_are_reported_in_one_pass(refuse: Refuse) -> None:
    rows = [
        "a.png,dog,10,20,40,60,0.9",
        ",dog,10,20,40,60,0.9",
        "a.png,,10,20,40,60,0.9",
        "a.png,dog,10,,40,60,0.9",
        "a.png,dog,x,20,y,60,0.9",
        "a.png,dog,10,20,40,60,high",
        "a.png,dog,10,20,40,60,",
    ]
    text = refuse("image,class,xmin,ymin,xmax,ymax,score\n" + "\n".join(rows), role="pred")
    assert "pred.csv:3: image: the row has no image" in text
    assert "pred.csv:4: class: the box has no class" in text
    assert "pred.csv:5: ymin: the box is incomplete: ymin empty" in text
    assert "pred.csv:6: xmin: 'x' is not a plain finite number" in text
    assert "pred.csv:6: xmax: 'y' is not" in text
    assert "pred.csv:7: score: 'high' is not" in text
    assert "pred.csv:8: score: the cell is empty" in text


def test_a_line_number_counts_lines_within_quotes_and_blank_lines(refuse: Refuse) -> None:
    # Header on line 2, a row on lines 3 and 4, a blank line 5, the bad row on line 6.
    assert "gt.csv:6: xmin" in refuse(f'\n{HEADER}a.png,"cat\ndog",1,2,3,4\n\nb.png,dog,bad,2,3,4\n')


def test_rows_with_other_numbers_of_fields_are_all_named(refuse: Refuse) -> None:
    text = refuse(HEADER + "a.png,dog,1,2,3,4\na.png,dog,1,2,3,4,5\na.png,dog,1,2,3\n")
    assert "gt.csv:3: expected 6 fields, got 7" in text
    assert "gt.csv:4: expected 6 fields, got 5" in text


def test_lines_that_start_with_a_hash_and_are_no_rows_are_comments(load: Load, refuse: Refuse) -> None:
    data = load("# made by hand\n# image, class\n" + HEADER + "a.png,dog,1,2,3,4\n#end\n#1.png,cat,1,2,3,4\n")
    assert (images(data), codes(data)) == (["a.png", "#1.png"], ["csv-comment"])
    assert "ignored 3 lines starting with # (comments); first: " in str(data.findings[0])
    assert "gt.csv:4: xmin" in refuse("#1\n#2\n" + HEADER + "a.png,dog,bad,2,3,4\n")
    assert classes(load(HEADER + 'a.png,"b\n# c",1,2,3,4\n')) == ["b\n# c"]


def test_short_rows_are_found_although_quoted_cells_hold_delimiters(refuse: Refuse) -> None:
    # As many commas as six fields need, but two of them are inside a name.
    assert "gt.csv:2: expected 6 fields, got 4" in refuse(HEADER + '"a,b,c.png",dog,1,2\n')


def test_an_open_quote_is_named_by_the_line_that_opens_it(refuse: Refuse) -> None:
    assert "gt.csv:3: a quoted field opens" in refuse(HEADER + 'a.png,dog,1,2,3,4\n"b.png,dog,1,2,3,4\na,dog,1,2,3,4\n')


def test_a_file_without_header_is_told_so(refuse: Refuse) -> None:
    text = refuse("\n\na.png,cat,10,10,110,110\n")
    assert "gt.csv:3: no header row" in text
    assert "'cat', '10'" in text


def test_missing_columns_are_named_with_what_was_found_and_what_is_accepted(refuse: Refuse) -> None:
    text = refuse("document,kind,xmin,ymin,ymax\na,b,1,2,3\n")
    assert "no column for the image among 'document', 'kind', 'xmin', 'ymin', 'ymax'; name it one of image," in text
    assert "no column for the class" in text
    assert "no column for xmax among" in text


def test_points_are_boxes_without_a_size(load: Load) -> None:
    data = load("image_path,x,y,label\na,1,2,Tree\n")
    assert data.boxes.xywh.tolist() == [[1, 2, 0, 0]]
    assert (data.facts.usual_protocol, data.details) == ("points", ("box from x, y",))


def test_half_of_a_box_is_no_point_and_polygons_have_no_box_columns(refuse: Refuse) -> None:
    for side in ("w", "height"):
        assert "a box needs all of x, y, " in refuse(f"image_path,x,y,{side},label\na,1,2,3,Tree\n")
    assert "no column for the box among" in refuse("image_path,label,geometry\na,Tree,POINT (1 2)\n")


def test_two_columns_of_one_name_are_refused(refuse: Refuse) -> None:
    assert "duplicate columns 'xmin' and 'X_Min'" in refuse("image,class,xmin,ymin,xmax,ymax,X_Min\na,b,1,2,3,4,5\n")


def test_columns_that_are_passed_over_are_named(load: Load) -> None:
    data = load(",image,class,xmin,ymin,xmax,ymax,comment\n0,a.png,dog,1,2,3,4,blurred\n")
    assert "columns ignored: '(unnamed)', 'comment'" in str(data.findings[0])


def test_flags_area_and_score_have_columns(load: Load) -> None:
    header = "image,class,x,y,w,h,iscrowd,difficult,IsGroupOf,ignore,area,score\n"
    rows = ["a,dog,1,2,3,4,1,0,false,,7,0.5", "a,dog,1,2,3,5,0,TRUE,true,1,,0.25"]
    boxes = load(header + "\n".join(rows), role="pred").boxes
    assert (boxes.crowd.tolist(), boxes.difficult.tolist()) == ([True, False], [False, True])
    assert (boxes.group_of.tolist(), boxes.ignore.tolist()) == ([False, True], [False, True])
    assert boxes.area.tolist() == [7.0, 15.0]  # the second is not given: 3 * 5
    assert boxes.score is not None
    assert boxes.score.tolist() == [0.5, 0.25]


def test_a_flag_is_0_or_1(refuse: Refuse) -> None:
    assert "gt.csv:2: iscrowd: '2' is neither 0 nor 1" in refuse("image,class,x,y,w,h,iscrowd\na,b,1,2,3,4,2\n")


@pytest.mark.parametrize("column", ["score", "scores", "conf", "Confidence", "prob", "probability", "objectness"])
def test_scores_go_by_many_names(load: Load, column: str) -> None:
    data = load(f"image,class,{column},x,y,w,h\na,dog,0.5,1,2,3,4\n", role="pred")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.5]


@pytest.mark.parametrize("text", [HEADER + "a,dog,1,2,3,4\n", "image,class,score,x,y,w,h\na,dog,,1,2,3,4\n"])
def test_predictions_without_scores_need_an_assumed_one(load: Load, refuse: Refuse, text: str) -> None:
    assert "predictions have no score" in refuse(text, role="pred")
    data = load(text, role="pred", assume_score=1.0)
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [1.0]


def test_classes_that_are_all_integers_are_ids_and_take_given_names(load: Load) -> None:
    text = HEADER + "a,1,1,2,3,4\na,0,1,2,3,5\n"
    unnamed = load(text)
    assert (unnamed.labels.keys, unnamed.labels.named) == ((0, 1), False)
    named = load(text, names=("cat", "dog", "bird"))
    assert (named.labels.names, named.labels.named) == (("cat", "dog", "bird"), True)
    assert classes(named) == ["dog", "cat"]


@pytest.mark.parametrize("other", ["cat", "01", "1.0", "+1", "9" * 30])
def test_classes_are_names_when_one_is_no_integer(load: Load, other: str) -> None:
    data = load(HEADER + f"a,1,1,2,3,4\na,{other},1,2,3,5\n")
    assert (classes(data), data.labels.named) == (["1", other], True)


def test_image_names_stay_as_written_and_alike_numbers_are_a_warning(load: Load) -> None:
    data = load(HEADER + "1,cat,1,1,9,9\n001,cat,1,1,9,9\n1.0,cat,1,1,9,9\n2,cat,1,1,9,9\n")
    assert set(data.images.keys) == {"1", "001", "1.0", "2"}
    assert "image names '1', '001', '1.0' are different images" in str(data.findings[0])


def test_rows_without_a_box_are_images_without_boxes(load: Load) -> None:
    data = load(HEADER + "a.png,,,,,\nb.png,dog,1,2,3,4\nc.png,dog,,,,\n")
    assert data.images.keys == ("a.png", "b.png", "c.png")
    assert not data.images.listed
    assert len(data.boxes) == 1
    assert "2 rows name an image but have no box; counted as images without objects" in str(data.findings[0])
    alone = load(HEADER + "a.png,,,,,\n")
    assert "1 row names an image but has no box; counted as an image" in str(alone.findings[-1])


def test_rows_of_delimiters_only_are_set_aside_and_counted(load: Load) -> None:
    data = load(HEADER + "a.png,dog,1,2,3,4\n,,,,,\n,,,,,\n")
    assert data.ignored == {"csv-row-blank": 2}
    assert "2 empty rows" in str(data.findings[0])
    assert "gt.csv:3" in str(data.findings[0])
    assert data.images.keys == ("a.png",)


def test_a_ground_truth_row_of_zeros_is_an_image_without_boxes(load: Load) -> None:
    data = load(HEADER + "a.png,Tree,0,0,0,0\nb.png,Tree,1,2,3,4\n")
    assert (len(data.boxes), data.images.keys) == (1, ("a.png", "b.png"))
    assert data.ignored == {"csv-row-zero": 1}
    assert "gt.csv:2: 0, 0, 0, 0" in str(data.findings[0])


def test_zeros_stay_a_box_beside_other_boxes_of_the_image_and_among_predictions(load: Load) -> None:
    data = load(HEADER + "a.png,Tree,0,0,0,0\na.png,Tree,1,2,3,4\n")
    assert (len(data.boxes), codes(data)) == (2, ["box-empty"])
    pred = load("image,class,score,x,y,w,h\na,Tree,0.5,0,0,0,0\n", role="pred")
    assert len(pred.boxes) == 1


def test_a_header_alone_is_no_boxes(load: Load) -> None:
    assert len(load(HEADER).boxes) == 0
    assert len(load(HEADER, role="pred").boxes) == 0


def test_width_and_height_beside_corners_are_the_size_of_the_image(load: Load) -> None:
    data = load("filename,width,height,class,xmin,ymin,xmax,ymax\na,640,480,dog,1,2,3,4\nb,,,dog,1,2,3,4\n")
    np.testing.assert_array_equal(data.images.sizes, [[640, 480], [np.nan, np.nan]])
    packed = load('image_id,width,height,bbox,class\na,640,480,"[1, 2, 3, 4]",dog\n')
    assert packed.images.sizes.tolist() == [[640, 480]]


def test_image_size_columns_stand_beside_the_width_of_a_box(load: Load) -> None:
    data = load("image,class,x,y,width,height,img_w,img_h\na,dog,1,2,3,4,640,480\n")
    assert (xywh(data), data.images.sizes.tolist()) == ([[1, 2, 3, 4]], [[640, 480]])


def test_sizes_that_differ_or_are_not_positive_are_reported(load: Load, refuse: Refuse) -> None:
    header = "image,class,x,y,w,h,img_w,img_h\na,dog,1,2,3,4,640,480\n"
    data = load(header + "a,cat,1,2,3,4,640,400\n")
    assert "gt.csv:3: width and height differ" in str(data.findings[0])
    assert data.images.sizes.tolist() == [[640, 480]]
    assert "gt.csv:3: the image's size is 0 x 480" in refuse(header + "b,dog,1,2,3,4,0,480\n")
    assert "gt.csv:3: the image's size is 1e+308 x 480" in refuse(header + "b,dog,1,2,3,4,1e308,480\n")


def test_fractions_up_to_one_are_normalised_and_scaled_by_known_sizes(load: Load) -> None:
    row = "dog,0.1,0.2,0.5,1.005\n"
    data = load(HEADER + f"a,{row}")
    assert (data.units, data.details) == ("norm", ("normalised", "box from xmin, ymin, xmax, ymax"))
    assert "normalised" in str(data.findings[0])
    # Width 640: left 0.1 * 640 = 64, width 0.4 * 640 = 256. Height 480: top 0.2 * 480 = 96, height 0.805 * 480 = 386.4.
    sized = load(f"image,width,height,class,xmin,ymin,xmax,ymax\na,640,480,{row}")
    assert sized.units == "px"
    assert sized.boxes.xywh[0] == pytest.approx([64, 96, 256, 386.4])


@pytest.mark.parametrize("numbers", ["0,0,1,1", "0.5,0.5,1.5,1.5"])
def test_whole_pixels_and_larger_numbers_are_pixels(load: Load, numbers: str) -> None:
    assert load(HEADER + f"a,dog,{numbers}\n").units == "px"


def test_asked_units_are_not_guessed(load: Load) -> None:
    data = load(HEADER + "a,dog,0.1,0.2,0.5,0.6\n", units="px")
    assert (data.units, data.findings) == ("px", ())


def test_pictures_give_the_sizes_that_normalised_boxes_need(load: Load, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    Image.new("L", (200, 100)).save(tmp_path / "pictures" / "a.png")
    data = load(HEADER + "a.png,dog,0.25,0.5,0.5,1\n", images=ImageFolder(tmp_path / "pictures"))
    assert (data.units, xywh(data)) == ("px", [[50.0, 50.0, 50.0, 50.0]])


def test_an_asked_encoding_chooses_among_the_columns_of_a_header(load: Load) -> None:
    text = "image,class,xmin,ymin,xmax,ymax,cx,cy,w,h\na,dog,10,20,40,60,25,40,30,40\n"
    assert xywh(load(text)) == xywh(load(text, box="cxcywh")) == [[10, 20, 30, 40]]
    packed = "image,class,bbox\na,dog,10 20 40 60\n"
    assert xywh(load(packed, box="xyxy")) == [[10, 20, 30, 40]]


def test_x_and_y_are_centres_when_only_so_boxes_stay_in_the_image(load: Load) -> None:
    # As a corner 80 + 40 = 120 is outside a width of 100; as a centre the box spans 60 to 100.
    text = "image,class,x,y,width,height,image_width,image_height\na,dog,80,50,40,20,100,100\n"
    data = load(text)
    assert (xywh(data), codes(data)) == ([[60, 40, 40, 20]], ["csv-centres"])
    assert xywh(load(text, box="xywh")) == [[80, 50, 40, 20]]
    assert xywh(load(text.replace("x,y,", "left,top,"))) == [[80, 50, 40, 20]]


def test_decimal_commas_are_read_where_all_fractions_have_them(load: Load) -> None:
    data = load("image;class;xmin;ymin;xmax;ymax\na;dog;10,5;20;40;60,25\n")
    assert (xywh(data), codes(data)) == ([[10.5, 20, 29.5, 40.25]], ["csv-decimal-commas"])
    quoted = load(HEADER + 'a,dog,"10,5",20,40,"60,25"\n')
    assert xywh(quoted) == xywh(data)


def test_a_single_decimal_comma_is_refused_where_commas_separate_the_cells(refuse: Refuse) -> None:
    assert "xmin: '10,5' is not a plain finite number (a decimal comma?" in refuse(HEADER + 'a,dog,"10,5",20,40,60\n')


def test_commas_are_refused_beside_points_and_where_they_may_part_thousands(refuse: Refuse) -> None:
    semicolons = HEADER.replace(",", ";")
    assert "xmin: '10,5' is not" in refuse(semicolons + "a;dog;10,5;20.5;40;60\n")
    assert "xmin: '1,000' is not" in refuse(semicolons + "a;dog;1,000;20;4,000;60\n")


@pytest.mark.parametrize("empty", ["images/b.jpg,,,,,", "images/b.jpg,,,,"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_layout_of_keras_retinanet_has_no_header(load: Load, empty: str, end: str) -> None:
    data = load(end.join(["images/a.jpg,47,239,194,370,person", empty, "images/c.jpg,1,2,3,4,dog", ""]))
    assert xywh(data) == [[47, 239, 147, 131], [1, 2, 2, 2]]
    assert (classes(data), len(data.images)) == (["person", "dog"], 3)
    assert data.details == ("box from x1, y1, x2, y2 (no header: keras-retinanet)",)


def test_the_layout_of_keras_retinanet_takes_a_score_and_counts_lines_from_its_first_row(
    load: Load, refuse: Refuse
) -> None:
    data = load("a.jpg,1,2,3,4,dog,0.5\n", role="pred")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.5]
    assert "gt.csv:2: x2: 'bad' is not" in refuse("a.jpg,1,2,3,4,dog\na.jpg,1,2,bad,4,dog\n")


def test_duplicate_rows_are_kept(load: Load) -> None:
    data = load(HEADER + "a,dog,1,2,3,4\na,cat,1,2,3,4\na,dog,1.0,2,3,4\n")
    assert (len(data.boxes), codes(data)) == (3, [])


def test_a_negative_width_is_an_error_with_its_line(refuse: Refuse) -> None:
    assert "gt.csv:2: bbox has width -30" in refuse(HEADER + "a,dog,40,20,10,60\n")


CELL = st.text(alphabet="ab,;\"'\n\r\t é#|", max_size=4).map(str.strip)


@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[str, str]], end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([HEADER.strip().split(","), *[[f"i{image}", f"c{label}", 1, 2, 3, 4] for image, label in rows]])
    path = tmp_path_factory.mktemp("written") / "gt.csv"
    path.write_bytes(text.getvalue().encode())
    data = read_dataset(path, ReadOptions(), "csv")
    assert list(zip(images(data), classes(data), strict=True)) == [(f"i{image}", f"c{label}") for image, label in rows]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gt.csv", HEADER),
        ("gt.txt", HEADER),
        ("gt.txt", "filename\tlabel\tx\ty\tw\th\n"),
        ("gt.dat", "images/1.jpg,1,2,3,4,dog\n"),
        ("gt.dat", "images/1.jpg,,,,,\n"),
        ("classes.csv", "Tree,0\n"),
        ("gt.tsv", "nonsense"),
    ],
)
def test_csv_is_recognised_by_header_first_row_or_suffix(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert csv_.looks_like(Peek(tmp_path / name))


def test_a_class_that_ends_in_a_number_makes_no_list_of_images_with_boxes(tmp_path: Path) -> None:
    # Behind the blank stand five numbers with commas, as in a list of keras-yolo3.
    path = tmp_path / "gt.csv"
    path.write_text("image,class,xmin,ymin,xmax,ymax\na.jpg,class 13,10,20,40,60\n", encoding="utf-8")
    assert detect_format(path) == "csv"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"image": 1, "bbox": [1, 2, 3, 4]}'),
        ("a.csv", '[{"image_id": 1, "bbox": [1, 2, 3, 4]}]'),
        ("a.csv", "<html><body>not found</body></html>"),
        ("a.txt", "0 0.5 0.5 0.1 0.1\n"),
        ("a.txt", "0,0.5,0.5,0.1,0.1,0.9\n"),
        ("a.txt", "dog 0.9 10 20 30 40\n"),
        ("a.txt", "1,-1,794.2,47.5,71.2,174.8,67.5,-1,-1,-1\n"),
        ("a.txt", ""),
        ("a.csv", ""),
    ],
)
def test_other_files_are_not_taken_for_csv(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert not csv_.looks_like(Peek(tmp_path / name))


def test_looking_never_raises(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "bytes.txt").write_bytes(bytes(range(256)) * 300)
    assert not csv_.looks_like(Peek(tmp_path / "folder.csv"))
    assert not csv_.looks_like(Peek(tmp_path / "missing.csv"))
    assert not csv_.looks_like(Peek(tmp_path / "bytes.txt"))


def test_recognising_a_file_loads_no_pandas(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text(HEADER, encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from jaccard_eval.formats import csv_;"
        "from jaccard_eval.reading.peek import Peek;"
        "assert csv_.looks_like(Peek(Path(sys.argv[1]))); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "gt.csv")], check=True)


def test_the_example_of_the_format_is_a_file_of_the_format(load: Load) -> None:
    data = load(csv_.FORMAT.example)
    assert (images(data), classes(data), xywh(data)) == (["street.jpg"], ["dog"], [[10, 20, 100, 200]])


# Boxes and images counted with wc -l and cut | sort -u on the files themselves.
@pytest.mark.parametrize(
    ("name", "n_boxes", "n_images", "units"),
    [
        ("deepforest-csv/src/deepforest/data/2018_SJER_3_252000_4107000_image_477_truth.csv", 7, 1, "px"),
        ("deepforest-csv/src/deepforest/data/2019_BLAN_3_751000_4330000_image_crop_bbox.csv", 4, 1, "px"),
        ("deepforest-csv/src/deepforest/data/testfile_multi.csv", 37, 1, "px"),
        ("deepforest-csv/tests/data/blank_annotations.csv", 0, 1, "px"),
        ("deepforest-csv/tests/data/testfile_tfrecords.csv", 160, 9, "px"),
        ("keras-retinanet-test-data/csv/annotations.csv", 1, 1, "px"),
    ],
)
def test_published_files_are_recognised_and_read(
    shared_data: Path, name: str, n_boxes: int, n_images: int, units: str
) -> None:
    path = shared_data / name
    assert detect_format(path) == "csv"
    data = read_dataset(path, ReadOptions(), "csv")
    assert (len(data.boxes), len(data.images), data.units) == (n_boxes, n_images, units)


def test_published_truth_and_predictions_with_other_column_orders_overlap(shared_data: Path) -> None:
    folder = shared_data / "deepforest-csv/src/deepforest/data"
    stem = "2018_SJER_3_252000_4107000_image_477"
    truth = read_dataset(folder / f"{stem}_truth.csv", ReadOptions(), "csv")
    pred = read_dataset(folder / f"{stem}.csv", ReadOptions(role="pred"), "csv")
    # First truth row: xmin 1, xmax 82, ymin 103, ymax 235.
    assert xywh(truth)[0] == [1, 103, 81, 132]
    assert pred.boxes.score is not None
    assert (pred.boxes.score[0], pred.labels.keys) == (0.61497575, (0,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "deepforest-csv/src/deepforest/data/2019_BLAN_3_751000_4330000_image_crop_polygon.csv",
            "no column for the box",
        ),
        ("deepforest-csv/src/deepforest/data/classes.csv", "no header row"),
        ("keras-retinanet-test-data/csv/classes.csv", "no header row"),
    ],
)
def test_published_files_without_boxes_are_refused_for_that(shared_data: Path, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_dataset(shared_data / name, ReadOptions(), "csv")


def test_numbers_beside_the_names_of_classes_are_their_keys(load: Load) -> None:
    header = "image,class_name,class_id,xmin,ymin,xmax,ymax\n"
    data = load(f"{header}a,dog,7,1,2,3,4\na,cat,3,1,2,3,4\nb,bird,9,,,,\n", names=("bear",))
    assert (data.labels.keys, data.labels.names, classes(data)) == ((3, 7), ("cat", "dog"), ["dog", "cat"])
    assert codes(data) == ["csv-row-no-box", "csv-names-unused"]
    for numbers in (("7", "7"), ("7", ""), ("7", "x")):  # one number for two classes, none, no number
        text = header + "".join(f"a,{name},{number},1,2,3,4\n" for name, number in zip("cd", numbers, strict=True))
        assert load(text).labels.keys == ("c", "d")
        assert "columns ignored: 'class_id'" in str(load(text).findings[-1])


def test_predictions_by_number_find_the_classes_that_have_names_and_numbers(load: Load) -> None:
    gt = load("image,class_name,class_id,xmin,ymin,xmax,ymax\na,dog,7,1,2,30,40\na,cat,3,5,5,50,60\n")
    pred = load("image,class_id,xmin,ymin,xmax,ymax,score\na,7,1,2,30,40,.9\na,3,5,5,50,60,.8\n", "pred")
    assert evaluate(gt, pred)["AP"] == pytest.approx(1.0)


def test_scores_of_ground_truth_are_set_aside_so_that_a_lone_input_is_known_for_predictions(load: Load) -> None:
    header = "image,class,xmin,ymin,xmax,ymax,score\n"
    data = load(header + "a,dog,1,2,3,4,.5\na,dog,1,2,3,4,1\n")
    assert (data.ignored, data.boxes.score) == ({"score": 2}, None)
    assert "gt-scores" in codes(data)
    assert load(header + "a,dog,1,2,3,4,1\n").ignored == {}  # Open Images gives its ground truth a confidence of 1


def test_ids_that_became_decimals_are_whole_numbers_again(tmp_path: Path) -> None:
    table = tmp_path / "pred.csv"
    table.write_text("image_id,category_id,xmin,ymin,xmax,ymax,score\n1.0,3.0,0,0,9,9,0.5\n12.0,3.0,0,0,9,9,0.4\n")
    data = read_dataset(table, ReadOptions(role="pred"))
    assert (data.images.keys, data.labels.keys) == (("1", "12"), (3,))
    table.write_text("image_id,category_id,xmin,ymin,xmax,ymax,score\n1.0,3,0,0,9,9,0.5\n1.5,3,0,0,9,9,0.4\n")
    assert read_dataset(table, ReadOptions(role="pred")).images.keys == ("1.0", "1.5")
