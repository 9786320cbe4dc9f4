"""Names of columns: rarer ones than usual, what they never change, and what is said where no name is known."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_here

from jaccard_eval import evaluate
from jaccard_eval.data.dataset import Dataset
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError
from jaccard_eval.formats import read_dataset
from jaccard_eval.options import ReadOptions

Load = Callable[..., Dataset]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_read(text: str, role: str = "gt", **options: object) -> Dataset:
        path = tmp_path / f"{role}.csv"
        path.write_text(text)
        return read_dataset(path, ReadOptions(role=role, **options))  # type: ignore[arg-type]

    return write_and_read


def values(data: Dataset) -> tuple[list[object], list[str], list[list[float]]]:
    names = [data.labels.names[row] for row in data.boxes.label]
    return [data.images.keys[row] for row in data.boxes.image], names, data.boxes.xywh.tolist()


def message(data: Dataset, code: str) -> str:
    return next(finding.message for finding in data.findings if finding.code == code)


# Corners 10, 20, 40, 60: left 10, top 20, width 40 - 10 = 30, height 60 - 20 = 40; centre 25, 40.
@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        ("x0,y0,x1,y1", "10,20,40,60"),
        ("xmin,ymin,width,height", "10,20,30,40"),
        ("x1,y1,w,h", "10,20,30,40"),
        ("center_x,center_y,width,height", "25,40,30,40"),
        ("bbox_x1,bbox_y1,bbox_x2,bbox_y2", "10,20,40,60"),
        ("bbox_xmin,bbox_ymin,bbox_xmax,bbox_ymax", "10,20,40,60"),
        ("box_x1,box_y1,box_x2,box_y2", "10,20,40,60"),
        ("box_x0,box_y0,box_x1,box_y1", "10,20,40,60"),
        ("bb_left,bb_top,bb_width,bb_height", "10,20,30,40"),
        ("bbox_left,bbox_top,bbox_width,bbox_height", "10,20,30,40"),
        ("bbox_x,bbox_y,bbox_width,bbox_height", "10,20,30,40"),
        ("box_cx,box_cy,box_w,box_h", "25,40,30,40"),
    ],
)
def test_rarer_names_of_a_box_give_the_same_box(load: Load, names: str, numbers: str) -> None:
    assert values(load(f"image,class,{names}\na.png,dog,{numbers}\n")) == (["a.png"], ["dog"], [[10, 20, 30, 40]])


@pytest.mark.parametrize("image", ["image_file", "image_filename", "img_name", "img_path", "frame_id", "fname"])
@pytest.mark.parametrize("label", ["class_label", "cls_id", "label_idx", "object", "object_class", "species", "labels"])
def test_rarer_names_of_images_and_classes_are_known(load: Load, image: str, label: str) -> None:
    data = load(f"{label},{image},x1,y1,x2,y2\ndog,a.png,10,20,40,60\n")
    assert values(data) == (["a.png"], ["dog"], [[10, 20, 30, 40]])


@pytest.mark.parametrize(
    "column",
    [
        *("confidence_score", "conf_score", "det_score", "detection_score", "det_confidence", "detection_confidence"),
        *("box_score", "class_score", "pred_score", "bbox_score", "certainty", "Confidence Score"),
    ],
)
def test_rarer_names_of_scores_are_known(load: Load, column: str) -> None:
    data = load(f"image,class,{column},x1,y1,x2,y2\na.png,dog,0.25,10,20,40,60\n", "pred")
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.25]


@pytest.mark.parametrize(
    ("usual", "rare"),
    [
        ("image=a.png", "img_name=b.png"),
        ("image_id=7", "image_filename=b.png"),
        ("class=dog", "species=cat"),
        ("category_id=3", "class_label=cat"),
        ("score=0.5", "confidence_score=0.9"),
        ("xmin=10,ymin=20,xmax=40,ymax=60", "x0=1,y0=2,x1=3,y1=4"),
        ("xmin=10,ymin=20,xmax=40,ymax=60", "width=100,height=90"),
        ("bbox=10 20 30 40", "bbox_x1=1,bbox_y1=2,bbox_x2=3,bbox_y2=4"),
    ],
)
def test_a_rarer_name_changes_nothing_where_a_usual_one_is_there(load: Load, usual: str, rare: str) -> None:
    def table(columns: dict[str, str]) -> str:
        return f"{','.join(columns)}\n{','.join(columns.values())}\n"

    base = {"image": "a.png", "class": "dog", "score": "0.5", "xmin": "10", "ymin": "20", "xmax": "40", "ymax": "60"}
    own = dict(pair.split("=") for pair in usual.split(","))
    if "bbox" in own:
        base = {"image": "a.png", "class": "dog", "score": "0.5"}
    if "image_id" in own:
        del base["image"]
    if "category_id" in own:
        del base["class"]
    added = dict(pair.split("=") for pair in rare.split(","))
    alone, beside = load(table(base | own), "pred"), load(table(added | base | own), "pred")
    assert values(beside) == values(alone)
    assert beside.labels.keys == alone.labels.keys
    assert beside.boxes.score is not None
    assert beside.boxes.score.tolist() == [0.5]


def test_a_rarer_name_is_the_class_of_packed_boxes_and_none_of_strings(load: Load) -> None:
    assert values(load("image_id,bbox,species\n7,10 20 30 40,cat\n"))[1] == ["cat"]
    data = load("image_id,PredictionString,species\n7,0.5 10 20 30 40,cat\n", "pred")
    assert values(data)[1] == ["0"]
    assert "all boxes are of class 0" in message(data, "csv-one-class")


@pytest.mark.parametrize("asked", ["xywh", "xyxy"])
def test_sizes_of_images_beside_corners_are_no_box_that_was_asked_for(load: Load, asked: str) -> None:
    text = "image,class,width,height,xmin,ymin,xmax,ymax\na.png,dog,100,90,10,20,40,60\n"
    assert load(text, box=asked).images.sizes.tolist() == [[100, 90]]


def test_a_far_corner_that_is_misspelt_is_not_made_up_for_by_the_size_of_the_image(load: Load) -> None:
    with pytest.raises(DataError, match="no column for ymax among"):
        load("image,class,width,height,xmin,ymin,xmax,y_mx\na.png,dog,100,90,10,20,40,60\n")


def test_duplicates_of_a_name_that_does_not_count_are_no_error(load: Load) -> None:
    data = load("image,class,species,species,xmin,ymin,xmax,ymax\na.png,dog,x,y,10,20,40,60\n")
    assert values(data)[1] == ["dog"]


def test_a_missing_score_names_the_columns_that_were_not_used_and_assumes_none_where_one_may_be(load: Load) -> None:
    head = "image,class,xmin,ymin,xmax,ymax"
    text = f"{head},sureness,occluded\na.png,dog,1,2,3,4,0.25,0\nb.png,dog,1,2,3,4,0.5,1\n"
    with pytest.raises(DataError) as caught:
        load(text, "pred")
    told = str(caught.value)
    assert "columns not used: 'sureness', 'occluded'" in told
    assert "Pass --pred-columns score=sureness: every box has a number within 0..1 there" in told
    assert "--assume-score" not in told
    # Flags and percentages leave it open that there is no score.
    with pytest.raises(DataError) as caught:
        load(f"{head},sureness,occluded\na.png,dog,1,2,3,4,25,0\nb.png,dog,1,2,3,4,50.5,1\n", "pred")
    assert "columns not used: 'sureness', 'occluded'" in str(caught.value)
    assert "--assume-score 1.0" in str(caught.value)
    assert load(text, "pred", assume_score=1.0).boxes.score is not None


def test_scores_under_a_rarer_name_tell_that_a_lone_file_is_predictions(load: Load) -> None:
    data = load("image,class,det_score,xmin,ymin,xmax,ymax\na.png,dog,0.25,1,2,3,4\n")
    assert data.ignored["score"] == 1
    assert "scores of ground truth are ignored" in message(data, "gt-scores")


def test_parquet_files_of_one_folder_may_differ_in_a_name_that_does_not_count(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    row = {"image": ["a.png"], "class": ["dog"], "xmin": [10], "ymin": [20], "xmax": [40], "ymax": [60]}
    pandas.DataFrame(row | {"species": ["x"]}).to_parquet(tmp_path / "one.parquet")
    pandas.DataFrame(row | {"image": ["b.png"]}).to_parquet(tmp_path / "two.parquet")
    data = read_dataset(tmp_path, ReadOptions(role="gt"))
    assert values(data)[1] == ["dog", "dog"]


PALMS = "image,x1,y1,x2,y2,det_sure,palm_class,palm_sure,env_class\na.png,10,20,40,60,0.25,oil,0.5,dry\n"


def test_a_naming_says_which_column_is_what(load: Load) -> None:
    data = load(PALMS, "pred", columns="image=image,class=palm_class,score=det_sure")
    assert values(data) == (["a.png"], ["oil"], [[10, 20, 30, 40]])
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.25]
    assert "class from palm_class" in data.details
    assert values(load(PALMS, columns="class=env_class"))[1] == ["dry"]
    assert "columns ignored: 'palm_class', 'palm_sure'" in message(
        load(PALMS, "pred", columns="class=env_class,score=det_sure"), "csv-columns-unused"
    )


def test_a_naming_goes_before_the_names_that_are_there(load: Load) -> None:
    text = "image,photo,class,class_id,kind,score,p,xmin,ymin,xmax,ymax,l,t,r,b\n"
    text += "a.png,b.png,dog,3,cat,0.5,0.75,10,20,40,60,1,2,5,8\n"
    naming = "image=photo,class=kind,score=p,left=l,top=t,right=r,bottom=b"
    data = load(text, "pred", columns=naming)
    # Left 1, top 2, width 5 - 1 = 4, height 8 - 2 = 6.
    assert values(data) == (["b.png"], ["cat"], [[1, 2, 4, 6]])
    assert data.labels.keys == ("cat",)
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.75]


def test_some_columns_of_a_box_may_have_their_usual_names(load: Load) -> None:
    text = "image,class,xmin,ymin,xmax,right_px,ymax,width,height\na.png,dog,10,20,99,40,60,640,480\n"
    data = load(text, columns="xmax=right_px")
    assert values(data)[2] == [[10, 20, 30, 40]]
    assert data.images.sizes.tolist() == [[640, 480]]


def test_a_packed_box_can_be_named(load: Load) -> None:
    text = 'image,class,rect,x,y,w,h\na.png,dog,"10 20 40 60",1,2,3,4\n'
    assert values(load(text, columns="box=rect", box="xyxy"))[2] == [[10, 20, 30, 40]]


@pytest.mark.parametrize("column", ['"my, class"', "MY  class", "my_class"])
def test_names_are_found_as_written_or_as_names_are_compared(load: Load, column: str) -> None:
    title = '"my, class"' if "," in column else "my class"
    naming = '"class=my, class"' if "," in column else f"class={column}"
    assert values(load(f"image,{title},x,y,w,h\na.png,dog,10,20,30,40\n", columns=naming))[1] == ["dog"]


def test_a_table_without_any_known_name_is_read_by_its_naming(load: Load) -> None:
    text = "a;b;c;d;e;f\na.png;dog;10;20;40;60\n"
    assert values(load(text, columns="image=a,class=b,xmin=c,ymin=d,xmax=e,ymax=f"))[2] == [[10, 20, 30, 40]]


def test_cells_are_told_by_the_title_of_their_column(load: Load) -> None:
    with pytest.raises(DataError, match=r"pred\.csv:2: det_sure: 'high'"):
        load(PALMS.replace("0.25", "high"), "pred", columns="class=palm_class,score=det_sure")


def test_a_column_that_is_not_there_is_an_error_with_the_nearest_name(load: Load) -> None:
    with pytest.raises(DataError) as caught:
        load(PALMS.replace("palm_class", "class"), "pred", columns="class=clas_palm,score=det_shure")
    assert "no column 'clas_palm', named as class, among 'image'" in str(caught.value)
    assert "no column 'det_shure', named as score" in str(caught.value)
    assert "did you mean 'det_sure'" in str(caught.value).lower()


@pytest.mark.parametrize(
    ("naming", "told"),
    [
        ("colour=hue", "'colour' is not a column meaning"),
        ("class=a,label", "expected MEANING=COLUMN, got 'label'"),
        ("class=", "expected MEANING=COLUMN"),
        ("class=a,class=b", "repeats a meaning or a column"),
        ("class=a,image=a", "repeats a meaning or a column"),
        ("class=\r,score=b", "expected MEANING=COLUMN on one line"),
    ],
)
def test_a_naming_that_says_nothing_is_a_usage_error(load: Load, naming: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        load(PALMS, columns=naming)


def test_missing_columns_are_answered_with_an_option_ready_to_paste(load: Load) -> None:
    with pytest.raises(DataError) as caught:
        load(PALMS)
    told = str(caught.value)
    assert "Pass --gt-columns class=palm_class or --gt-columns class=env_class." in told
    # Several that lack go into one option, as a second one would take the place of the first.
    with pytest.raises(DataError) as caught:
        load("photo no,tree type,x,y,w,h\na.png,oil,1,2,3,4\n", "pred")
    assert "Pass --pred-columns 'image=photo no,class=tree type'." in str(caught.value)
    with pytest.raises(DataError) as caught:
        load("image,class,xmin,ymin,xmax,far_y\na.png,oil,1,2,3,4\n")
    assert "Pass --gt-columns ymax=COLUMN." in str(caught.value)
    with pytest.raises(DataError) as caught:
        load(PALMS, "pred", columns="class=palm_class")
    assert (
        "Pass --pred-columns class=palm_class,score=det_sure or --pred-columns class=palm_class,score=palm_sure:"
        in str(caught.value)
    )


def test_a_naming_is_for_tables_and_a_layout_for_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    with pytest.raises(UsageError, match=r"column names \('class=a'\) work only for tables"):
        read_dataset(tmp_path, ReadOptions(columns="class=a"), "yolo")


def test_strings_of_boxes_can_be_named(load: Load) -> None:
    text = "a,b,c\nx.png,0.5 10 20 30 40,0\n"
    data = load(text, "pred", columns="image=a,string=b")
    assert values(data) == (["x.png"], ["0"], [[10, 20, 30, 40]])


def test_columns_of_typed_tables_are_named_alike(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    flat = {"image": ["a.png"], "x1": [10], "y1": [20], "x2": [40], "y2": [60], "palm_class": ["oil"], "sure": [0.25]}
    pandas.DataFrame(flat).to_parquet(tmp_path / "flat.parquet")
    options = ReadOptions(role="pred", columns="class=palm_class,score=sure")
    data = read_dataset(tmp_path / "flat.parquet", options)
    assert values(data) == (["a.png"], ["oil"], [[10, 20, 30, 40]])
    assert data.boxes.score is not None
    assert data.boxes.score.tolist() == [0.25]
    objects = [{"bbox": [[10, 20, 30, 40]], "palm_class": ["oil"]}]
    pandas.DataFrame({"image_id": [7], "objects": objects}).to_parquet(tmp_path / "nested.parquet")
    data = read_dataset(tmp_path / "nested.parquet", ReadOptions(columns="class=palm_class"))
    assert values(data) == ([7], ["oil"], [[10, 20, 30, 40]])


@pytest.mark.parametrize("header", ["image,class,xmin,ymin,xmax,ymax", "img_name,species,x0,y0,x1,y1"])
def test_a_table_that_is_called_txt_is_read_by_its_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "boxes.txt"
    path.write_text(f"{header}\n" + "a.png,3,10,20,40,60\n" * 3)
    data = read_dataset(path, ReadOptions())
    assert (data.format, values(data)[2][0]) == ("csv", [10, 20, 30, 40])


def test_what_the_message_proposes_can_be_pasted(tmp_path: Path) -> None:
    gt, pred = tmp_path / "gt.csv", tmp_path / "pred.csv"
    gt.write_text('photo no,"tree, type",x,y,w,h\n1.png,oil,10,20,30,40\n')
    pred.write_text('photo no,"tree, type",p %,x,y,w,h\n1.png,oil,0.25,10,20,30,40\n')
    argv = ["evaluate", str(gt), str(pred)]
    for _ in range(2):  # first images and classes, then the scores
        done = run_here(*argv)
        assert done.returncode == 3
        for option in re.findall(r"Pass (--(?:gt|pred)-columns '.+')[.:]", done.stderr):
            argv += shlex.split(option)  # of an option that is given twice the last one counts
    done = run_here(*argv, "--json")
    assert done.returncode == 0
    # The one object is found: precision 1 at every recall.
    assert re.search(r'"AP50": (1\.0|0\.9999999)', done.stdout)


ONE_CLASS = (
    "image,xmin,ymin,xmax,ymax\na.png,10,10,50,50\n",
    "image,xmin,ymin,xmax,ymax,score\na.png,10,10,50,51,0.9\n",
)


@pytest.mark.parametrize("names", [{}, {"gt": "car"}, {"pred": "car"}, {"gt": "car", "pred": "car"}])
def test_tables_of_one_class_need_no_column_for_it_on_either_side(names: dict[str, str], tmp_path: Path) -> None:
    for name, text in zip(("gt.csv", "pred.csv"), ONE_CLASS, strict=True):
        (tmp_path / name).write_text(text)
    options = {f"{side}_options": ReadOptions(role=side, names=(name,)) for side, name in names.items()}
    result = evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv", **options)  # type: ignore[arg-type]
    assert result["AP"] == pytest.approx(1.0, abs=1e-15)  # IoU 1600 / 1640 is above .95
    assert [row.name for row in result.per_class] == [names.get("gt", "0")]
    assert "csv-one-class" in {finding.code for finding in result.findings}


def test_ground_truth_without_a_class_has_the_only_one_of_the_predictions(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text(ONE_CLASS[0])
    rows = ["image,class,xmin,ymin,xmax,ymax,score", "a.png,car,10,10,50,51,0.9", "a.png,dog,10,10,50,51,0.9"]
    (tmp_path / "pred.csv").write_text("\n".join(rows[:2]))
    assert evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")["AP"] == pytest.approx(1.0, abs=1e-15)
    (tmp_path / "pred.csv").write_text("\n".join(rows))
    with pytest.raises(DataError, match="class-none"):  # which of both it is cannot be known
        evaluate(tmp_path / "gt.csv", tmp_path / "pred.csv")


def test_a_column_of_ground_truth_that_may_be_the_class_is_asked_for_unless_one_class_is_named(load: Load) -> None:
    table = "image,xmin,ymin,xmax,ymax,phylum\na.png,10,10,50,50,insect\n"
    with pytest.raises(DataError, match=r"no column for the class.*--gt-names if all are of one class"):
        load(table)
    assert load(table, names=("insect",)).labels.names == ("insect",)


def test_a_row_for_each_keypoint_is_no_object_that_is_a_point(load: Load) -> None:
    text = "image,class,keypoint,x,y,v\na.jpg,person,nose,10,20,2\na.jpg,person,eye,12,18,2\n"
    with pytest.raises(DataError, match=r"columns-ambiguous.*--gt-columns x=x,y=y"):
        load(text)
    assert load(text, columns="x=x,y=y").boxes.xywh.tolist() == [[10, 20, 0, 0], [12, 18, 0, 0]]


@pytest.mark.parametrize(
    "header", ["image,class,x1,y1,v1,x2,y2,v2", "image,class,x1,y1,x2,y2,x3,y3", "image,class,x1,y1,x2,y2,v1,v2"]
)
def test_points_of_a_pose_are_not_the_corners_of_a_box_unless_they_are_named_so(load: Load, header: str) -> None:
    # Of 10, 20 and 40, 60 only the columns that are named count: width 40 - 10 = 30, height 60 - 20 = 40.
    values = {"image": "a.jpg", "class": "dog", "x1": "10", "y1": "20", "x2": "40", "y2": "60"}
    text = f"{header}\n{','.join(values.get(name, '2') for name in header.split(','))}\n"
    with pytest.raises(DataError, match=r"columns-ambiguous.*name what is meant: --gt-columns xmin=x1") as raised:
        load(text)
    (found,) = raised.value.findings
    assert found.fix is not None
    named = load(text, columns=str(found.fix.options["gt_columns"]))
    assert named.boxes.xywh.tolist() == [[10, 20, 30, 40]]
