"""Pascal VOC: annotation files and result files, what can be wrong with them, and what is refused of XML."""

from pathlib import Path

import numpy as np
import pytest

from jaccard_eval import DataError, ReadOptions, evaluate, load
from jaccard_eval.formats import detect_format, write_dataset
from jaccard_eval.reading.xml import parse_xml


def annotation(*objects: str, size: str = "100 50", filename: str = "") -> str:
    """Return a file's text; objects as "dog 10 20 30 40", an asterisk marking a difficult one."""
    width, height = size.split()
    named = f"<filename>{filename}</filename>" if filename else ""
    inner = "".join(map(_object, objects))
    return f"<annotation>{named}<size><width>{width}</width><height>{height}</height></size>{inner}</annotation>"


def _object(text: str) -> str:
    name, *corners = text.split()
    sides = "".join(
        f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=False)
    )
    flag = int(name.startswith("*"))
    return f"<object><name>{name.lstrip('*')}</name><difficult>{flag}</difficult><bndbox>{sides}</bndbox></object>"


def folder(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.xml").write_text(text, encoding="utf-8")
    return root


def error(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load(path, format_name="voc")
    return str(caught.value)


def test_a_folder_has_an_image_per_file_and_a_box_per_object(tmp_path: Path) -> None:
    path = folder(tmp_path, b=annotation("dog 10 20 30 45", "*cat 1.5 2 3 4"), a=annotation())
    dataset = load(path)
    assert (dataset.format, dataset.images.keys, dataset.labels.names) == ("voc", ("a", "b"), ("cat", "dog"))
    assert dataset.images.sizes.tolist() == [[100, 50]] * 2
    assert dataset.boxes.xywh.tolist() == [[10, 20, 20, 25], [1.5, 2, 1.5, 2]]
    assert dataset.boxes.difficult.tolist() == [False, True]


def test_pixels_counted_from_one_are_read_as_written_unless_told(tmp_path: Path) -> None:
    path = folder(tmp_path, a=annotation("dog 1 1 30 45"))
    assert load(path).boxes.xywh.tolist() == [[1, 1, 29, 44]]
    assert load(path, options=ReadOptions(origin=1)).boxes.xywh.tolist() == [[0, 0, 29, 44]]


def test_one_file_is_an_input_and_the_kits_folder_too(tmp_path: Path) -> None:
    folder(tmp_path / "VOC2012/Annotations", a=annotation("dog 1 2 3 4"))
    (tmp_path / "VOC2012/ImageSets/Main").mkdir(parents=True)
    (tmp_path / "VOC2012/ImageSets/Main/val.txt").write_text("a\n")
    for path in (tmp_path / "VOC2012", tmp_path / "VOC2012/Annotations/a.xml"):
        assert detect_format(path) == "voc"
        assert load(path).images.keys == ("a",)


def kit(root: Path, *images: str, **sets: str) -> Path:
    """Write a development kit with a dog in each image, and its image sets."""
    folder(root / "Annotations", **dict.fromkeys(images, annotation("dog 1 2 3 4")))
    (root / "ImageSets/Main").mkdir(parents=True)
    for name, text in sets.items():
        (root / f"ImageSets/Main/{name}.txt").write_text(text)
    return root


def test_of_a_kit_the_images_of_the_split_are_read(tmp_path: Path) -> None:
    path = kit(tmp_path / "VOC2007", "a", "b", "c", train="a\n", val="b\r\nc\r\nb\n", dog_val="b  1\nc -1\n")
    dataset = load(path)
    assert (dataset.images.keys, dataset.images.listed) == (("b", "c"), True)
    assert "split val: 2 of 3 annotation files" in dataset.details
    assert [one.code for one in dataset.findings] == ["image-listed-twice"]
    assert load(path, options=ReadOptions(split="train")).images.keys == ("a",)
    assert load(path / "Annotations").images.keys == ("a", "b", "c")
    assert (detect_format(tmp_path), load(tmp_path).images.keys) == ("voc", ("b", "c"))  # VOCdevkit


def test_the_only_split_is_read_unless_another_is_asked_for(tmp_path: Path) -> None:
    path = kit(tmp_path, "a", "b", default="b\n")  # as CVAT writes it
    (note,) = load(path).findings
    assert (load(path).images.keys, note.code) == (("b",), "split-train")
    with pytest.raises(DataError, match="there is no split 'defautl'; there are: default") as caught:
        load(path, options=ReadOptions(split="defautl"))
    assert "Did you mean 'default'?" in str(caught.value)


def test_a_list_of_one_class_is_no_split(tmp_path: Path) -> None:
    path = kit(tmp_path, "a", trainval="a\n", test="a\n", dog_val="a 1\n", my_test="a\n")
    with pytest.raises(DataError, match="there is no split 'val'; there are: my_test, test, trainval"):
        load(path)


def test_images_of_a_split_without_annotation_are_all_named(tmp_path: Path) -> None:
    message = error(kit(tmp_path, "a", val="a\nb\nc\n"))
    assert "split-unannotated" in message
    assert "val.txt: 'b' has no file Annotations/b.xml" in message
    assert "val.txt: 'c' has no file Annotations/c.xml" in message


def test_the_name_of_the_file_goes_before_the_filename_inside(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        a=annotation("dog 1 2 3 4", filename="a.jpg"),
        b=annotation("dog 1 2 3 4", filename="a.jpg"),  # copied and not renamed
        c=annotation("dog 1 2 3 4", filename="photo.jpg"),
    )
    dataset = load(path)
    assert dataset.images.keys == ("a", "b", "c")
    assert dataset.images.file_names == ("a.jpg", None, "photo.jpg")
    (note,) = dataset.findings
    assert (note.code, note.count) == ("voc-filename", 2)


def test_a_size_of_zero_is_no_size(tmp_path: Path) -> None:
    assert np.isnan(load(folder(tmp_path, a=annotation("dog 1 2 3 4", size="0 0"))).images.sizes).all()


def test_parts_are_no_objects_and_truncated_is_said_not_to_count(tmp_path: Path) -> None:
    text = annotation("person 1 2 30 40").replace(
        "</difficult>",
        "</difficult><truncated>1</truncated><part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>",
    )
    dataset = load(folder(tmp_path, a=text))
    assert dataset.labels.names == ("person",)
    assert ["truncated (1), part (1)" in one.message for one in dataset.findings] == [True]


def test_every_problem_of_a_folder_is_told_with_its_file_and_object(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        a=annotation("dog 1 2 3 4", "dog 1 2 3"),
        b=annotation("dog 1 2 3 x").replace("<name>dog</name>", ""),
        c="<annotation><object>",
        d=annotation(size="many 50"),
        e=annotation("dog 1 2 3 4").replace("<difficult>0", "<difficult>maybe"),
        f="<annotations/>",
    )
    message = error(path)
    for told in (
        "a.xml: object[1].bndbox.ymax: is missing",
        "b.xml: object[0].bndbox.ymax: 'x' is not a plain finite number",
        "b.xml: object[0].name: is missing",
        "c.xml:1: not well-formed XML: no element found, column 21",
        "d.xml: size.width: is 'many'",
        "e.xml: object[0].difficult: is 'maybe', expected 0 or 1",
        "f.xml: the outermost element is 'annotations', expected 'annotation'",
    ):
        assert told in message


BOMB = """<?xml version="1.0"?>
<!DOCTYPE annotation [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>
<annotation><object><name>&b;</name></object></annotation>"""
OUTSIDE = """<!DOCTYPE annotation [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<annotation><object><name>&a;</name></object></annotation>"""
FETCHED = '<!DOCTYPE annotation SYSTEM "http://localhost/voc.dtd"><annotation/>'


@pytest.mark.parametrize("text", [BOMB, OUTSIDE, FETCHED])
def test_document_types_are_refused_before_anything_of_them_is_read(text: str, tmp_path: Path) -> None:
    message = error(folder(tmp_path, a=text))
    assert "error[xml-dtd]" in message
    assert f"a.xml:{text[: text.index('<!DOCTYPE')].count(chr(10)) + 1}: declares a document type" in message


def test_a_document_type_is_refused_in_every_encoding_and_allowed_in_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes("<!DOCTYPE annotation><annotation/>".encode("utf-16-le"))  # no byte-order mark; expat knows it
    with pytest.raises(DataError, match="declares a document type"):
        parse_xml(path, "annotation")
    path.write_text("<!-- no <!DOCTYPE here --><annotation/>")
    assert parse_xml(path, "annotation").tag == "annotation"


def test_entities_that_nobody_declared_are_no_xml(tmp_path: Path) -> None:
    text = annotation("dog 1 2 3 4").replace("dog", "&evil;")
    assert "not well-formed XML: undefined entity" in error(folder(tmp_path, a=text))


def test_the_encoding_that_a_file_declares_is_used(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="iso-8859-1"?>' + annotation("bär 1 2 3 4")
    (tmp_path / "a.xml").write_bytes(text.encode("latin-1"))
    assert load(tmp_path).labels.names == ("bär",)
    (tmp_path / "a.xml").write_text(text.replace("iso-8859-1", "klingon"), encoding="utf-8")
    assert "a.xml" in error(tmp_path)


def results(root: Path, **files: str) -> Path:
    root.mkdir()
    for name, text in files.items():
        (root / f"comp4_det_test_{name}.txt").write_text(text)
    return root


def test_result_files_are_predictions_of_the_class_in_their_name(tmp_path: Path) -> None:
    path = results(tmp_path / "results", dog="a .5 1 2 3 4\nb 1 2 3 4 5\n", sports_ball="")
    dataset = load(path, role="pred")
    assert (dataset.format, dataset.labels.names) == ("voc", ("dog", "sports_ball"))
    assert dataset.images.keys == ("a", "b")
    assert dataset.boxes.xywh.tolist() == [[1, 2, 2, 2], [2, 3, 2, 2]]
    assert dataset.boxes.score is not None and dataset.boxes.score.tolist() == [0.5, 1]


def test_broken_lines_of_result_files_are_told_with_their_number(tmp_path: Path) -> None:
    message = error(results(tmp_path / "results", dog="a .5 1 2 3\n\na high 1 2 3 4\n"))
    assert "comp4_det_test_dog.txt:1: expected 6 columns (image score left top right bottom), got 5" in message
    assert "comp4_det_test_dog.txt:3: score: 'high' is not a plain finite number" in message


def test_results_of_two_runs_are_refused_instead_of_one_of_them_left_out(tmp_path: Path) -> None:
    path = results(tmp_path / "results", dog="a .5 1 2 3 4\n")
    (path / "comp4_det_val_dog.txt").write_text("b .5 1 2 3 4\n")
    assert "comp4_det_val_dog.txt: 'dog' has 2 result files. Pass the folder of one run." in error(path)


def test_files_beside_the_results_are_counted_and_named(tmp_path: Path) -> None:
    path = results(tmp_path / "results", dog="a .5 1 2 3 4\n")
    (path / "comp1_cls_test_dog.txt").write_text("a .5\n")
    dataset = load(path, role="pred")
    assert dataset.ignored == {"other_file": 1}
    (note,) = dataset.findings
    assert (note.code, str(note.examples[0].where)) == ("other-files", str(path / "comp1_cls_test_dog.txt"))


@pytest.mark.parametrize("name", ["a/b", "x\ny", " x", ""])
def test_classes_that_cannot_name_a_result_file_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "pred.json").write_text('[{"image_id": 1, "category_id": 0, "bbox": [1, 2, 3, 4], "score": 0.5}]')
    dataset = load(tmp_path / "pred.json", role="pred", options=ReadOptions(names=(name,)))
    with pytest.raises(DataError, match="cannot be a class name in this format"):
        write_dataset(dataset, tmp_path / "out", format_name="voc")
    assert not (tmp_path / "out").exists()


def test_names_with_markup_survive_writing(tmp_path: Path) -> None:
    dataset = load(folder(tmp_path / "in", a=annotation("&lt;b&gt;&amp; 1 2 3.25 4")))
    write_dataset(dataset, tmp_path / "out")
    again = load(tmp_path / "out")
    assert again.labels.names == ("<b>&",)
    assert again.boxes.xywh.tolist() == dataset.boxes.xywh.tolist()


def test_identical_annotations_and_results_are_perfect(tmp_path: Path) -> None:
    gt = folder(tmp_path / "gt", a=annotation("dog 1 2 30 40"))
    pred = results(tmp_path / "results", dog="a .5 1 2 30 40\n")
    assert evaluate(gt, pred, protocol="voc2012")["AP"] == 1.0


def test_one_result_file_is_that_of_its_class_and_the_advice_measures_it_alone(tmp_path: Path) -> None:
    (tmp_path / "gt").mkdir()
    box = "<bndbox><xmin>{}</xmin><ymin>10</ymin><xmax>{}</xmax><ymax>60</ymax></bndbox>"
    objects = "".join(
        f"<object><name>{name}</name>{box.format(x, x + 40)}</object>" for name, x in (("car", 10), ("dog", 100))
    )
    (tmp_path / "gt/a.xml").write_text(f"<annotation>{objects}</annotation>")
    results = tmp_path / "comp4_det_test_car.txt"
    results.write_text("a 0.9 10 10 50 60\n")
    assert detect_format(results) == "voc"
    data = load(results, role="pred")
    assert (data.labels.names, len(data.boxes)) == (("car",), 1)
    assert "--classes car" in str(data.findings[0])
    # The car is found, the dog missed: the mean is 1/2, of the car alone 1.
    assert evaluate(tmp_path / "gt", results)["AP50"] == pytest.approx(0.5, abs=1e-12)
    assert evaluate(tmp_path / "gt", results, classes=["car"])["AP50"] == pytest.approx(1, abs=1e-12)


def scored(element: str, *scores: str) -> str:
    """Write an annotation with a dog for each score, which may be blank for none."""
    text = annotation(*["dog 10 20 30 45"] * len(scores))
    for score in scores:
        text = text.replace(
            "<object><name>", "<object>" + (f"<{element}>{score}</{element}>" if score else "") + "<name >", 1
        )
    return text.replace("<name >", "<name>")


@pytest.mark.parametrize("element", ["score", "confidence"])
def test_annotations_of_predictions_have_their_scores(element: str, tmp_path: Path) -> None:
    path = folder(tmp_path, a=scored(element, "0.25", " 9e-1 "))
    dataset = load(path, role="pred")
    assert dataset.boxes.score is not None
    assert dataset.boxes.score.tolist() == [0.25, 0.9]
    truth = load(path)
    assert (truth.boxes.score, truth.ignored) == (None, {"score": 2})
    assert [finding.code for finding in truth.findings] == ["gt-scores"]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (("0.5", ""), "a.xml: object[1].score: is missing, but other objects have one"),
        (("", ""), "score-missing"),
        (("0.5", "high"), "a.xml: object[1].score: 'high' is not a plain finite number"),
    ],
)
def test_scores_of_annotations_are_all_there_or_an_error(scores: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(folder(tmp_path, a=scored("score", *scores)), role="pred")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</bndbox>", "</bndbox><bndbox><xmin>1</xmin></bndbox>", "object[1]: has 2 elements <bndbox>"),
        ("<name>cat", "<name>dog</name><name>cat", "object[1]: has 2 elements <name>"),
        ("<xmin>5", "<xmin>4</xmin><xmin>5", "object[1]: has 2 elements <xmin>"),
    ],
)
def test_two_objects_in_one_are_an_error(old: str, new: str, message: str, tmp_path: Path) -> None:
    first, last = annotation("dog 1 2 3 4", "cat 5 6 7 8").rsplit("<object>", 1)
    text = error(folder(tmp_path, a=f"{first}<object>{last.replace(old, new)}"))
    assert f"{message}. Give each box its own object." in text
