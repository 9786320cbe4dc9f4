import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaccard_eval import load
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError
from jaccard_eval.formats import Opened, detect_format, format_module, format_names, read_dataset
from jaccard_eval.formats._listed import NEVER_JSON, USUAL_JSON
from jaccard_eval.formats.coco import IN_FRONT, OWN_NAMES, is_plain
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.peek import Likeness, Peek

COCO = {"images": [{"id": 1}], "annotations": [], "categories": [{"id": 1, "name": "dog"}]}

VOC = """<annotation><filename>a.jpg</filename><object><name>dog</name>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>"""
LABELME = '{"version": "5.4.1", "flags": {}, "shapes": [], "imagePath": "a.jpg"}'


def _error(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        detect_format(path)
    return str(caught.value)


def _write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _example(name: str, folder: Path) -> Path:
    """Write the example of a format; where files are no text its module does so."""
    module = format_module(name)
    suffixes = module.FORMAT.suffixes
    file = folder / f"example{suffixes[0] if suffixes else module.FORMAT.member}"
    if hasattr(module, "write_example"):
        folder.mkdir(parents=True)
        module.write_example(file)
    else:
        _write(file, module.FORMAT.example)
    return file if suffixes else folder


def test_every_format_describes_itself() -> None:
    assert {"coco", "csv", "yolo"} <= set(format_names())
    for name in format_names():
        about = format_module(name).FORMAT
        assert about.name == name
        assert about.summary
        assert about.source
        assert about.example
        assert set(about.carries) <= {
            "images", "sizes", "names", "scores", "crowd", "difficult", "group_of", "ignore", "area",
            "image_labels",
        }  # fmt: skip


@pytest.mark.parametrize("name", format_names())
def test_every_format_recognises_its_own_example_and_reads_it(name: str, tmp_path: Path) -> None:
    path = _example(name, tmp_path / "data")
    assert detect_format(path) == name
    assert len(read_dataset(path, ReadOptions()).boxes) > 0


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        ("gt.json", json.dumps(COCO), "coco"),
        ("annotations.JSON", json.dumps(COCO), "coco"),
        ("annotations", json.dumps(COCO), "coco"),
        ("gt.json.gz", gzip.compress(json.dumps(COCO).encode(), mtime=0), "coco"),
        ("results.json", "[]", "coco"),
        ("results.json", '[{"image_id": 1, "label": "cat", "box": [1, 2, 3, 4], "confidence": 0.5}]', "coco"),
        ("results.jsonl", '{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}\n', "coco"),
        ("boxes.csv", "image,class,xmin,ymin,xmax,ymax\na,dog,1,2,3,4\n", "csv"),
        ("boxes.txt", "filename;label;x1;y1;x2;y2\na;dog;1;2;3;4\n", "csv"),
        ("bom.csv", b"\xef\xbb\xbfimage,class,xmin,ymin,xmax,ymax\r\n", "csv"),
        ("keras.csv", "a.png,1,2,3,4,dog\nb.png,,,,,\n", "csv"),
        ("labels/a.txt", "0 0.5 0.5 0.2 0.2\n", "yolo"),
        ("labels/a.txt", "dog .9 10 20 30 40\n", "yolo"),
        # Of two that fit, the format that prescribes what stands there is surer than one that would take it.
        ("gt.jsonl", '{"image_id": 1, "objects": {"bbox": [[1, 2, 3, 4]], "category": [0]}}\n', "hf"),
        ("pred.json", '[{"image_id": 1, "x_min": 1, "y_min": 2, "x_max": 3, "y_max": 4}]', "supervision"),
        ("gt.csv", "ImageID,LabelName,XMin,XMax,YMin,YMax\na,/m/0,0,1,0,1\n", "openimages"),
        ("gt.csv", "filename,region_count,region_id,region_shape_attributes,region_attributes\n", "via"),
        ("gt.json", "image,class,xmin,ymin,xmax,ymax\na,dog,1,2,3,4\n", "csv"),
        ("comp4_det_test_car.txt", "000004 0.7 10 20 30 40\n", "voc"),
        ("Task1_plane.txt", "1 0.9 10 20 50 20 50 60 10 60\n", "dota"),
        ("a.json", '{"boxes": [[1, 2, 3, 4]], "labels": [1]}', "torchvision"),
    ],
)
def test_formats_are_found_by_looking(file: str, content: str | bytes, name: str, tmp_path: Path) -> None:
    path = _write(tmp_path / file, content)
    assert detect_format(path.parent if path.suffix == ".txt" and name != "csv" else path) == name


@pytest.mark.parametrize(
    ("files", "name", "image"),
    [
        # Cartucho's converters move the annotations that they read to a folder "backup" beside what they write.
        ({"a.txt": "dog 1 2 30 40\n", "backup/a.xml": VOC}, "yolo", "a"),
        ({"a.txt": "dog 1 2 30 40\n", "backup/a.txt": "0 0.5 0.5 0.2 0.2\n"}, "yolo", "a"),
        ({"a.xml": VOC, "backup/b.xml": VOC}, "voc", "a"),
        ({"a.txt": "dog 1 2 30 40\n", "old/a.json": LABELME, "old/b.txt~": ""}, "yolo", "a"),
        # A list of what to install says nothing against the annotations below.
        ({"requirements.txt": "numpy\n", "sets/a.xml": VOC}, "voc", "sets/a"),
        # Nothing else there: the folder is only called so.
        ({"backup/a.xml": VOC}, "voc", "backup/a"),
    ],
)
def test_files_at_the_top_of_a_folder_decide(files: dict[str, str], name: str, image: str, tmp_path: Path) -> None:
    for place, content in files.items():
        _write(tmp_path / place, content)
    dataset = read_dataset(tmp_path, ReadOptions())
    assert (dataset.format, dataset.images.keys) == (name, (image,))
    deeper = [str(tmp_path / place) for place in files if place.startswith(("backup", "old")) and len(files) > 1]
    noted = [note for note in dataset.findings if note.code == "other-files"]
    assert [note.count for note in noted] == ([1] if deeper else [])


@pytest.mark.parametrize(
    ("files", "names"),
    [
        # A folder that holds the files of two formats in equal shares, whichever order they have.
        ({"a.txt": "0 0.5 0.5 0.2 0.2\n", "b.xml": "<annotation></annotation>"}, "voc and like yolo"),
        # Results among more label files than there are results: neither can be meant for certain.
        (
            {"comp4_det_test_car.txt": "a 0.7 1 2 3 4\n", "a.txt": "0 0.5 0.5 0.2 0.2\n", "b.txt": ""},
            "voc and like yolo",
        ),
        # Image ids beside outputs of a pipeline, or of a model, which know of no image.
        (
            {"a.json": '[{"image_id": 1, "name": "a", "class": 0, "confidence": 1, "box": {"x1": 1}}]'},
            "coco and like ultralytics",
        ),
    ],
)
def test_what_could_be_either_of_two_is_not_guessed(files: dict[str, str], names: str, tmp_path: Path) -> None:
    for name, content in files.items():
        _write(tmp_path / name, content)
    path = tmp_path / "a.json" if "a.json" in files else tmp_path
    message = _error(path)
    assert "error[format-ambiguous]" in message
    assert f"looks like {names}. Name it with --gt-format or --pred-format." in message


def test_a_known_format_needs_no_looking(tmp_path: Path) -> None:
    path = _write(tmp_path / "gt.dat", json.dumps(COCO))
    assert read_dataset(path, ReadOptions(), "coco").format == "coco"


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UsageError,
        match=r"unknown format 'coca'; choose from arrow, bdd100k, cloud, coco.*Did you mean 'coco'",
    ):
        format_module("coca")


def test_what_no_format_recognises_is_an_error_that_names_the_flag(tmp_path: Path) -> None:
    message = _error(_write(tmp_path / "notes.md", "# Notes\nnothing to see\n"))
    assert "notes.md: not recognised as any known format; it starts with '# Notes'. Name it with --gt-format" in message
    assert message.endswith("'jaccard-eval formats' lists what can be read.")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"PK\x05\x06" + bytes(18), "an empty zip archive"),
        (bz2.compress(b"0 1"), "bzip2-compressed data"),
        (lzma.compress(b"0 1"), "xz-compressed data"),
        (gzip.compress(gzip.compress(b"0 1", mtime=0), mtime=0), "data that gzip compressed twice"),
        (b"\x28\xb5\x2f\xfdrest", "Zstandard-compressed data"),
        (b"GIF89a", "a GIF image"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
        (b"\x80\x04\x95rest", "a Python pickle"),
        ("<!DOCTYPE html><html>", "an HTML page"),
        ("image".encode("utf-16"), "UTF-16 text"),
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"abc\xff\n", "not valid UTF-8"),
        (b"abc\x00\n", "NUL bytes"),
    ],
)
def test_foreign_contents_are_called_by_their_name(content: str | bytes, what: str, tmp_path: Path) -> None:
    assert what in _error(_write(tmp_path / "input", content))


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "no such file or directory" in _error(tmp_path / "gt.json")


def test_an_empty_folder_is_no_format(tmp_path: Path) -> None:
    assert "not recognised as any known format" in _error(tmp_path)
    assert "the folder is empty" in _error(tmp_path)


def test_a_folder_is_described_by_what_lies_in_it(tmp_path: Path) -> None:
    for name in ("a.png", "b.PNG", "notes.md", "READ_ME", "train/a.png", "val\x1b[2J/a.png"):
        _write(tmp_path / name, "hello\n")
    message = _error(tmp_path)
    assert "it holds files (2 .png, 1 without suffix, 1 .md) and folders ('train', 'val\\x1b[2J')" in message
    assert "Pass the file or folder that holds the boxes" in message


def test_what_a_folder_holds_of_known_formats_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "_annotations.coco.json", json.dumps(COCO))
    _write(tmp_path / "README.txt", "hello\n")
    _write(tmp_path / "found here/a.txt", "0 0.5 0.5 0.2 0.2\n")
    _write(tmp_path / "pictures/a.png", "hello\n")
    message = _error(tmp_path)
    paths = f"{tmp_path}/_annotations.coco.json (coco), '{tmp_path}/found here' (yolo)"
    assert message.endswith(f"Pass the one with the boxes: {paths}.")


def test_a_folder_of_files_that_are_read_one_by_one_names_the_first(tmp_path: Path) -> None:
    for name in "abcdefg":
        _write(tmp_path / f"{name}.csv", "image,class,xmin,ymin,xmax,ymax\na,dog,1,2,3,4\n")
    first_five = ", ".join(f"{tmp_path}/{name}.csv (csv)" for name in "abcde")
    assert f"{first_five} and 2 more." in _error(tmp_path)


@pytest.mark.parametrize("name", [name for name in format_names() if format_module(name).FORMAT.suffixes])
def test_the_only_input_in_a_folder_is_read_and_a_note_says_which(name: str, tmp_path: Path) -> None:
    file = _example(name, tmp_path / "data")
    _write(tmp_path / "data/README.md", "# Notes\n")
    _write(tmp_path / "data/a.png", "hello\n")
    dataset = read_dataset(tmp_path / "data", ReadOptions())
    assert (dataset.format, len(dataset.boxes) > 0) == (name, True)
    if dataset.path != str(tmp_path / "data"):  # some formats read a folder of such files
        (note,) = (finding for finding in dataset.findings if finding.code == "input-found")
        assert note.message == f"{tmp_path}/data: read {file} ({name}), the only file with boxes in the folder"


def test_folders_that_an_archive_was_unpacked_to_are_gone_into(tmp_path: Path) -> None:
    _write(tmp_path / "set/set/gt.json", json.dumps({**COCO, "annotations": []}))
    _write(tmp_path / "set/.DS_Store", "")
    _write(tmp_path / "__MACOSX/set/._gt.json", "")
    assert Opened(tmp_path).found == (tmp_path / "set/set/gt.json", "coco")
    _write(tmp_path / "set/set/dt.json", "[]")
    place = tmp_path / "set/set"
    assert f"Pass the one with the boxes: {place}/dt.json (coco), {place}/gt.json (coco)." in _error(tmp_path)


def test_results_lists_of_one_run_in_a_folder_are_joined_by_the_command_that_is_named(tmp_path: Path) -> None:
    rows = [{"image_id": at, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.1 + at} for at in range(4)]
    _write(tmp_path / "the parts/a.json", json.dumps(rows[:3]))
    _write(tmp_path / "the parts/b.json", json.dumps(rows[3:]))
    _, named, command = _error(tmp_path / "the parts").partition("If they are parts of one run, join them: python ")
    assert named
    subprocess.run(f"{sys.executable} {command}", shell=True, cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "joined.json").read_text()) == rows
    _write(tmp_path / "the parts/gt.json", json.dumps(COCO))
    assert "parts of one run" not in _error(tmp_path / "the parts")


def test_the_only_data_set_in_a_folder_may_be_a_folder(tmp_path: Path) -> None:
    _write(tmp_path / "found/a.txt", "0 0.5 0.5 0.2 0.2\n")
    dataset = read_dataset(tmp_path, ReadOptions())
    assert (dataset.path, dataset.format, len(dataset.boxes)) == (str(tmp_path / "found"), "yolo", 1)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"package.json": "{}"}, "package.json"),  # only its name speaks for it
        ({"0.json": json.dumps(COCO), **{f"{n}.log": "hello\n" for n in range(20)}}, "0.json"),  # not all looked at
    ],
)
def test_an_input_in_a_folder_that_is_not_certain_is_named_and_not_read(
    files: dict[str, str], named: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        _write(tmp_path / name, content)
    assert f"Pass the one with the boxes: {tmp_path}/{named} (coco)." in _error(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64\0\0", "a MATLAB file. Export JSON, CSV or NumPy (.npz)."),
        ("b.mat", b"\x89HDF\r\n\x1a\n\0\0", "a MATLAB file. Export JSON, CSV or NumPy (.npz)."),
        ("val.tfrecord", b"\x10\0\0\0\0\0\0\0abcd", "TensorFlow records. Export JSON, CSV or NumPy (.npz)."),
        ("a.pt", b"PK\x03\x04\0\0a/data.pkl", "a PyTorch file, which is a pickle. Pickles are never loaded; export"),
        ("a.pth", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\0", "a PyTorch file, which is a pickle. Pickles are never loaded"),
        ("a.pkl", b"(lp0\nI1\na.", "a Python pickle. Pickles are never loaded; export JSON, CSV or NumPy (.npz)."),
        ("a.pkl", b"\x80\x04\x95\0\0", "a Python pickle. Pickles are never loaded; export JSON, CSV or NumPy (.npz)."),
    ],
)
def test_files_of_other_tools_come_with_advice_what_to_export(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    path = _write(tmp_path / name, content)
    assert f"{name}: holds {message}" in _error(path)
    assert f"{name}: holds {message}" in _error(tmp_path)  # the folder, too


def test_a_folder_of_foreign_files_is_called_by_what_they_are(tmp_path: Path) -> None:
    for name in "abc":
        _write(tmp_path / f"{name}.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    message = _error(tmp_path)
    assert "a.txt: holds a Git LFS pointer" in message
    assert message.count("error[") == 1


def test_one_damaged_label_file_does_not_hide_what_a_folder_is(tmp_path: Path) -> None:
    for name in "bc":
        _write(tmp_path / f"{name}.txt", "0 0.5 0.5 0.2 0.2\n")
    _write(tmp_path / "a.txt", "version https://git-lfs.github.com/spec/v1\n")
    assert detect_format(tmp_path) == "yolo"


@pytest.mark.parametrize(
    ("name", "content", "seen", "nearest"),
    [
        (
            "a.xml",
            "<notes><object><name>dog</name></object></notes>",
            "fields are 'notes', 'object', 'name'",
            "voc (lacks ",
        ),
        ("a.txt", "a.jpg 1 2 3\n", "it starts with 'a.jpg 1 2 3'", "text (lacks 1 word, 1 number), "),
        ("a.json", '[{"coordinates": 1}]', "fields are 'coordinates'", "createml (lacks image, annotations, label), "),
        ("a.json", '[{"foo": 1}]', "fields are 'foo'", ""),
        ("a.txt", "# A title without numbers\n", "it starts with '# A title without numbers'", ""),
    ],
)
def test_what_nobody_knows_is_shown_with_the_nearest_formats(
    name: str, content: str, seen: str, nearest: str, tmp_path: Path
) -> None:
    message = _error(_write(tmp_path / name, content))
    assert seen in message
    assert nearest in message
    assert message.count("(lacks ") <= 3
    assert ("Nearest formats: " in message) is bool(nearest)
    if name == "a.json":  # of a folder, its first document
        _write(tmp_path / "b.json", content)
        assert f"fields of '{name}' {seen.partition(' ')[2]}" in _error(tmp_path)


def test_label_lines_in_a_single_file_are_asked_for_as_a_folder(tmp_path: Path) -> None:
    assert "pass their folder" in _error(_write(tmp_path / "a.txt", "0 0.5 0.5 0.2 0.2\n"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in _error(tmp_path / "pipe")


@pytest.fixture
def greedy_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Install a package of someone else's with two formats that recognise everything a little."""
    site = tmp_path / "site"
    points = "[jaccard_eval.formats]\ngreedy = greedy_format\nhungry = greedy_format\n"
    _write(site / "greedy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greedy\nVersion: 1.0\n")
    _write(site / "greedy-1.0.dist-info/entry_points.txt", points)
    _write(
        site / "greedy_format.py",
        "from jaccard_eval.plugins import Likeness\n\n"
        "def looks_like(peek):\n    return Likeness.CONTENT\n\ndef read(path, draft, options):\n    pass\n",
    )
    monkeypatch.syspath_prepend(str(site))
    yield "greedy", "hungry"
    sys.modules.pop("greedy_format", None)


def test_formats_of_other_packages_are_found_and_used(greedy_formats: tuple[str, str], tmp_path: Path) -> None:
    assert set(greedy_formats) < set(format_names())
    dataset = read_dataset(_write(tmp_path / "notes.md", "# Notes\n"), ReadOptions(), "greedy")
    assert (dataset.format, len(dataset.boxes)) == ("greedy", 0)


def test_a_format_of_ours_is_believed_before_those_of_other_packages(
    greedy_formats: tuple[str, str], tmp_path: Path
) -> None:
    assert set(greedy_formats) < set(format_names())
    assert detect_format(_write(tmp_path / "gt.json", json.dumps(COCO))) == "coco"


def test_a_format_of_another_package_that_knows_more_goes_first(
    greedy_formats: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "newer"
    _write(site / "newer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: newer\nVersion: 1.0\n")
    _write(site / "newer-1.0.dist-info/entry_points.txt", "[jaccard_eval.formats]\nnewer = newer_format\n")
    _write(
        site / "newer_format.py",
        "from jaccard_eval.plugins import Likeness\n\n"
        "def looks_like(peek):\n    return Likeness.STRUCTURE if peek.lines == ['# Notes'] else None\n",
    )
    monkeypatch.syspath_prepend(str(site))
    assert detect_format(_write(tmp_path / "notes.md", "# Notes\n")) == "newer"
    assert f"looks like {' and like '.join(greedy_formats)}" in _error(_write(tmp_path / "others.md", "# Others\n"))
    sys.modules.pop("newer_format")


def test_what_two_formats_recognise_is_left_to_the_user(greedy_formats: tuple[str, str], tmp_path: Path) -> None:
    message = _error(_write(tmp_path / "notes.md", "# Notes\n"))
    assert "error[format-ambiguous]" in message
    assert f"looks like {' and like '.join(greedy_formats)}" in message
    assert "--gt-format or --pred-format" in message


@pytest.mark.parametrize(
    ("name", "line", "advised"),
    [
        ("dets.txt", "a.jpg 1:2:30:40 dog 0.5", "image,class,score,xmin,ymin,xmax,ymax\na.jpg,dog,0.5,1,2,30,40\n"),
        ("dets/a.txt", "1.5 2 30 40 0.5 7 0.25", "dog 0.5 1 2 30 40\ncat 0.25 5 60 70 80\n"),
    ],
)
def test_text_that_nobody_writes_is_shown_with_what_to_write(
    name: str, line: str, advised: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{line}\n")
    source = file if "/" not in name else file.parent
    with pytest.raises(DataError, match="format-unknown") as caught:
        load(source, role="pred")
    columns = advised.splitlines()[0] if "," in advised else "'class score x1 y1 x2 y2'"
    assert f"starts with '{line}'" in str(caught.value)
    assert columns in str(caught.value)
    file.write_text(advised)
    data = load(source, role="pred", options=ReadOptions(box="xyxy"))
    assert data.boxes.xywh[0].tolist() == [1, 2, 29, 38]


def test_a_folder_of_tables_without_images_is_told_to_join_them(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.csv").write_text("xmin,ymin,xmax,ymax,confidence,class,name\n1,2,3,4,0.5,0,dog\n")
    with pytest.raises(
        DataError, match="join them to a table that starts with the line image,class,score,xmin"
    ) as caught:
        load(tmp_path, role="pred")
    assert "'0.csv' starts with 'xmin,ymin" in str(caught.value)


def test_formats_that_are_not_asked_about_json_would_not_know_it(sample_data: Path, tmp_path: Path) -> None:
    contents = [
        "[]",
        "{}",
        "[[1, 2, 3, 4]]",
        '{"a.jpg 1 2 3 4": 1}\n',
        "[1 2 3 4 5\n0 1 2 3 4]",
        "{\n1,2,3,4\n}",
        json.dumps(COCO),
    ]
    contents += [format_module(name).FORMAT.example for name in format_names()]
    files = [_write(tmp_path / f"{at}.json", content) for at, content in enumerate(contents)]
    samples = [path for path in sample_data.rglob("*.json") if path.is_file()]
    peeks = [peek for path in (*files, *samples) if (peek := Peek(path)).is_json]
    assert len(peeks) > 30
    assert {*format_names()} >= NEVER_JSON
    for name in NEVER_JSON:
        known = [peek.path for peek in peeks if format_module(name).looks_like(peek)]
        assert not known, name


TRUTH = {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1}], "categories": [{"id": 1}]}
RESULTS = [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]


def test_no_other_format_claims_what_has_coco_names_alone(sample_data: Path, tmp_path: Path) -> None:
    every = dict.fromkeys(sorted(name.decode() for name in OWN_NAMES), 1)
    contents = [TRUTH, RESULTS, TRUTH | {"info": every, "licenses": [every]}, [every | RESULTS[0]]]
    contents += [TRUTH | {section: [every | {"segmentation": [[1, 2, 3, 4, 5, 6]]}]} for section in TRUTH]
    images = [{name: n for name in every if name.encode() in IN_FRONT} for n in range(1000)]
    contents += [{"images": images, "annotations": TRUTH["annotations"]}, {"info": every, "images": images}]
    contents += [TRUTH | {"annotations": [every | {"segmentation": {"size": [1, 2], "counts": "12"}}]}]
    files = [_write(tmp_path / f"{at}.json", json.dumps(content)) for at, content in enumerate(contents)]
    plain = [peek for path in (*files, *sample_data.rglob("*.json")) if is_plain(peek := Peek(path))]
    usual, large = format_module(USUAL_JSON), files[len(contents) - 3]
    assert len(plain) > len(files) - 1  # all but one, where names of boxes stand among those of images
    assert usual.looks_like(Peek(large)) is Likeness.CONTENT
    for name in {*format_names()} - NEVER_JSON - {USUAL_JSON}:
        for peek in plain:
            assert (format_module(name).looks_like(peek) or 0) < (usual.looks_like(peek) or 0), (name, peek.path)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(RESULTS).replace("score", "confidence"),
        json.dumps(RESULTS).replace("score", r"sc\\u006fre"),
        json.dumps(TRUTH).replace('"id"', '"file"'),
        json.dumps({"images": [], "score": 1}),
        json.dumps({"images": [], "annotations": []}).replace("annotations", "detections"),
        "[]",
    ],
)
def test_what_has_other_names_is_rated_by_all_formats(tmp_path: Path, content: str) -> None:
    assert not is_plain(Peek(_write(tmp_path / "a.json", content)))
