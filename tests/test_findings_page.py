"""Messages of docs/findings.md against what the command line prints: the same words, with other numbers."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.cli.run import run

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"
EXAMPLES = dict(
    re.findall(r"^## (\S+)\n.*?^```\n(?=\w+\[)(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
)
# Numbers, and what follows a number: these are of the data.
NUMBER = re.compile(r"(?<![\w.])[-+±]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\b")


def coco(**sections: Any) -> dict[str, Any]:
    """Return ground truth of two images with a dog and a cat, with sections replaced."""
    images = [{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}]
    images += [{"id": 2, "file_name": "b.jpg", "width": 640, "height": 480}]
    annotations = [truth(1, 1, 1), truth(2, 2, 2)]
    return {"images": images, "annotations": annotations, "categories": CATEGORIES} | sections


CATEGORIES = [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]


def truth(key: int, image: int, category: int, **fields: Any) -> dict[str, Any]:
    box = {"id": key, "image_id": image, "category_id": category, "bbox": [10 * key, 20, 100, 50.5], "area": 5050}
    return box | {"iscrowd": 0} | fields


def found(image: int, category: int, **fields: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": [10 * image, 20, 100, 50.5], "score": 0.5} | fields


@dataclass(frozen=True)
class Case:
    """Files by name, and the command that meets them."""

    files: dict[str, Any]
    command: str = "evaluate gt.json pred.json"


def pair(gt: Any = None, pred: Any = None, command: str = "evaluate gt.json pred.json") -> Case:
    truths = coco() if gt is None else gt
    return Case({"gt.json": truths, "pred.json": [found(1, 1), found(2, 2)] if pred is None else pred}, command)


def broken(place: int, **fields: Any) -> Case:
    """Predictions of which one has other fields; None removes a field."""
    records = [found(1, 1, score=score / 10) for score in range(1, 6)]
    changed = records[place] | fields
    records[place] = {name: value for name, value in changed.items() if value is not ...}
    return pair(pred=records)


def table(*rows: str, name: str = "gt.csv", command: str = "inspect gt.csv") -> Case:
    return Case({name: "".join(f"{row}\n" for row in rows)}, command)


LABEL = "0 0.5 0.5 0.1 0.1\n"
HEAD, ROW = "image,class,xmin,ymin,xmax,ymax", "a.jpg,dog,1,2,30,40"

CASES: dict[str, Case] = {
    "annotation-id-duplicate": pair(coco(annotations=[truth(1, 1, 1), truth(1, 2, 2), truth(1, 1, 2)])),
    "area-missing": pair(coco(annotations=[truth(1, 1, 1, area=...), truth(2, 2, 2)])),
    "bbox-length": broken(3, bbox=[1, 2, 3, 4, 0.9]),
    "bbox-type": broken(3, bbox="none"),
    "bootstrap-few": pair(command="evaluate gt.json pred.json --bootstrap 100"),
    "box-empty": pair(coco(annotations=[truth(key, 1, 1, bbox=[key, 1, 0, 5]) for key in (1, 2, 3)])),
    "box-negative": table("image,class,x,y,width,height", *["a.jpg,dog,1,2,3,4"] * 5, "a.jpg,dog,9,9,-4,10"),
    "box-too-large": broken(0, bbox=[0, 0, 1e200, 1e200]),
    "category-name-duplicate": pair(
        coco(
            annotations=[truth(1, 1, 3), truth(2, 2, 8)],
            categories=[{"id": 3, "name": "car"}, {"id": 8, "name": "car"}],
        ),
        [found(1, 3), found(2, 8)],
    ),
    "category-unnamed": pair(coco(categories=[*CATEGORIES, {"id": 5}])),
    "class-duplicate": pair(coco(categories=[{"id": 3, "name": "car"}, {"id": 3, "name": "bus"}])),
    "class-none": pair(
        coco(categories=[{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]), [found(1, 7), found(2, 9)]
    ),
    "class-unknown": Case(
        {
            "gt.json": coco(),
            "pred.json": coco(
                annotations=[truth(1, 1, 1, score=0.5), truth(2, 2, 3, score=0.4), truth(3, 2, 3, score=0.3)],
                categories=[*CATEGORIES, {"id": 3, "name": "tree"}],
            ),
        }
    ),
    "class-unlisted": pair(coco(annotations=[truth(1, 1, 1), truth(2, 2, 2), truth(3, 1, 9), truth(4, 1, 9)])),
    "csv-bbox": table("image,class,bbox", *['a.jpg,dog,"[1, 2, 3, 4]"'] * 2, 'a.jpg,dog,"[1, 2, 3]"'),
    "csv-box-partial": table(HEAD, ROW, ROW, "a.jpg,dog,1,2,30,"),
    "csv-cell-empty": table(HEAD, ROW, ROW, "a.jpg,,1,2,30,40"),
    "csv-column-duplicate": table("image,class,xmin,xmin,ymin,xmax,ymax", "a.jpg,dog,1,1,2,30,40"),
    "csv-columns-unused": table(f"{HEAD},occluded,truncated", f"{ROW},0,1"),
    "csv-comment": table("# made by hand", HEAD, "# another", ROW),
    "csv-decimal-commas": table(HEAD.replace(",", ";"), "a.jpg;dog;1,5;2,5;30,5;40,5"),
    "csv-fields": table(HEAD, ROW, f"{ROW},9"),
    "csv-flag": table(f"{HEAD},iscrowd", f"{ROW},maybe"),
    "csv-header": table("a,b", "1,2"),
    "csv-normalised": table(HEAD, "a.jpg,dog,0.1,0.2,0.3,0.4"),
    "csv-number": table(HEAD, "a.jpg,dog,12px,2,30,40"),
    "csv-quote": table(HEAD, ROW, '"a.jpg,dog,1,2,30,40'),
    "csv-row-blank": table(HEAD, ROW, ",,,,,", ",,,,,"),
    "csv-row-no-box": table(HEAD, ROW, "b.jpg,,,,,", "c.jpg,,,,,"),
    "csv-row-zero": table(HEAD, ROW, "b.jpg,dog,0,0,0,0", "c.jpg,dog,0,0,0,0"),
    "encoding": Case({"labels.txt": b"a\nb\nc\xe9", "gt.json": coco()}, "inspect gt.json --gt-names labels.txt"),
    "field-missing": broken(3, image_id=..., image=1),
    "file-empty": Case({"gt.json": coco(), "pred.json": b""}),
    "file-missing": Case({"gt.json": coco()}),
    "file-name-duplicate": pair(coco(images=[{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "a.jpg"}])),
    "flag-value": pair(coco(annotations=[*(truth(key, 1, 1) for key in (1, 2, 3)), truth(4, 2, 2, iscrowd=2)])),
    "flag-null": pair(coco(annotations=[*(truth(key, 1, 1) for key in (1, 2, 3)), truth(4, 2, 2, iscrowd=None)])),
    "gt-duplicate": pair(coco(annotations=[truth(1, 1, 1), truth(2, 2, 2), truth(1, 1, 1) | {"id": 3}])),
    "gt-empty": pair(coco(annotations=[])),
    "gt-scores": pair(coco(annotations=[truth(1, 1, 1, score=0.5), truth(2, 2, 2, score=0.4)])),
    "gzip": Case({"gt.json.gz": b"\x1f\x8b\x08\x00broken", "pred.json": []}, "inspect gt.json.gz"),
    "id-type": broken(3, image_id=None),
    "image-duplicate": pair(coco(images=[{"id": 3, "file_name": "a.jpg"}, {"id": 3, "file_name": "b.jpg"}])),
    "image-unlisted": pair(coco(annotations=[truth(1, 1, 1), truth(2, 9, 2), truth(3, 9, 2)])),
    "json-syntax": Case({"gt.json": b'{"images": [', "pred.json": []}),
    "key-duplicate": Case(
        {"gt.json": b'{"images": [{"id": 1, "id": 2}], "annotations": [], "categories": []}'}, "inspect gt.json"
    ),
    "layout": Case({"gt.json": [1, 2, 3], "pred.json": []}, "evaluate gt.json pred.json --gt-format coco"),
    "max-dets": pair(
        pred=[found(image, 1, score=1 / row) for row, image in enumerate((1, 2, 1, 2), start=1)],
        command="evaluate gt.json pred.json --max-dets 1",
    ),
    "not-a-file": Case({"gt.json/a.txt": b"", "pred.json": []}, "evaluate gt.json pred.json --gt-format coco"),
    "number-not-finite": Case(
        {"gt.json": coco(), "pred.json": b'[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": NaN}]'}
    ),
    "number-type": broken(3, score="0.5"),
    "pred-duplicate": pair(pred=[found(1, 1), found(2, 2)] * 2),
    "pred-empty": pair(pred=[]),
    "record-type": pair(pred=[found(1, 1), found(2, 2), found(1, 2), 7]),
    "score-missing": broken(0, score=...),
    "score-range": pair(pred=[found(1, 1, score=-0.5), found(2, 2, score=0.5), found(2, 1, score=57)]),
    "section-empty": pair(coco(images=[])),
    "section-missing": Case({"gt.json": {"images": [], "annotations": []}, "pred.json": []}),
    "section-type": pair(coco(images={})),
    "wrong-content": Case({"gt.json": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "pred.json": []}),
    "xml-dtd": Case({"a.xml": b"<?xml version='1.0'?>\n<!DOCTYPE annotation>\n<annotation/>"}, "inspect a.xml"),
    "xml-syntax": Case({"a.xml": b"<annotation>\n<object>"}, "inspect a.xml"),
    "text-type": pair(coco(images=[{"id": 1, "file_name": 7}, {"id": 2, "file_name": "b.jpg"}])),
    "image-size": pair(
        coco(images=[{"id": 1, "file_name": "a.jpg", "width": -1, "height": 4}, {"id": 2, "file_name": "b.jpg"}])
    ),
    "number-invalid": Case({"labels/7.txt": "0 0,5 0.5 0.1 0.1\n"}, "inspect labels --gt-format yolo"),
    "class-invalid": Case({"labels/7.txt": "1.5 0.5 0.5 0.1 0.1\n"}, "inspect labels --gt-format yolo"),
    "columns": Case({"labels/7.txt": "0 0.5 0.5 0.1\n"}, "inspect labels --gt-format yolo"),
    "names-comment": Case(
        {"labels/7.txt": LABEL, "classes.txt": "# my classes\ndog\n"}, "inspect labels --gt-names classes.txt"
    ),
    "names-duplicate": Case(
        {"labels/7.txt": LABEL, "classes.txt": "car\ndog\ncar\n"}, "inspect labels --gt-names classes.txt"
    ),
    "yaml-key": Case(
        {"labels/7.txt": LABEL, "data.yaml": "names: [a]\nnames: [b]\n"}, "inspect labels --gt-names data.yaml"
    ),
    "yaml-syntax": Case(
        {"labels/7.txt": LABEL, "data.yaml": "nc: 1\n\tnames: [a]\n"}, "inspect labels --gt-names data.yaml"
    ),
    "yaml-unsafe": Case(
        {"labels/7.txt": LABEL, "data.yaml": "names: !!python/object:os.system {}\n"},
        "inspect labels --gt-names data.yaml",
    ),
    "names-missing": Case({"labels/7.txt": LABEL, "data.yaml": "nc: 1\n"}, "inspect labels --gt-names data.yaml"),
    "group-missing": Case(
        {"gt.json": coco(), "pred.json": [found(1, 1)], "groups.csv": "image,group\na.jpg,x\n"},
        "evaluate gt.json pred.json --bootstrap 100 --group-by groups.csv",
    ),
    "sides-swapped": Case({"gt.json": [found(1, 1), found(2, 2)], "pred.json": coco()}, "evaluate gt.json pred.json"),
}


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes | str):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            path.write_text(json.dumps(without_holes(content)))


def without_holes(value: Any) -> Any:
    """Return a document without the fields that are an ellipsis."""
    if isinstance(value, dict):
        return {key: without_holes(item) for key, item in value.items() if item is not ...}
    return [without_holes(item) for item in value] if isinstance(value, list) else value


def words(message: str) -> str:
    """Return a message without its numbers."""
    return NUMBER.sub("#", message)


@pytest.mark.parametrize("code", CASES)
def test_the_message_of_the_page_is_the_one_that_is_printed(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, CASES[code].files)
    run(CASES[code].command.split())
    printed = "".join(capsys.readouterr())
    # In full by `evaluate`; `inspect` lists codes and texts below a heading for their severity.
    pattern = rf"^(?:\w+\[{code}\]: | +{code} {{2,}})(.*(?:\n {{10,}}\S.*)*)"
    messages = [re.sub(r"\n +", " ", message) for message in re.findall(pattern, printed, re.MULTILINE)]
    assert messages, printed
    assert words(EXAMPLES[code].partition("]: ")[2]) == words(messages[0])


def test_every_code_of_the_page_has_one_example() -> None:
    assert len(EXAMPLES) == len(re.findall(r"^## ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
