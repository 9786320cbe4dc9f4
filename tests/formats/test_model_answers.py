"""Answers of vision-language models: every way to write a box, where texts lie, and what is cut off or not known."""

import json
from pathlib import Path

import pytest

from jaccard_eval import DataError, Dataset, ReadOptions, load

ASSUMED = ReadOptions(role="pred", assume_score=1.0)
DOG = '{"bbox_2d": [10, 20, 110, 220], "label": "dog"}'
GEMINI = '{"box_2d": [100, 50, 500, 250], "label": "dog"}'  # y first


def read(path: Path, text: str, options: ReadOptions = ASSUMED) -> Dataset:
    path.write_text(text, encoding="utf-8")
    dataset = load(path, role="pred", options=options)
    assert dataset.format == "vlm"
    return dataset


# left, top, width and height in fractions, by hand
FORMS = {
    GEMINI: [[0.05, 0.1, 0.2, 0.4]],
    f"Here it is:\n```json\n[{GEMINI}]\n```": [[0.05, 0.1, 0.2, 0.4]],
    '[{"box_2d": [[100, 50, 500, 250], [0, 0, 500, 500]], "label": "dog"}]': [[0.05, 0.1, 0.2, 0.4], [0, 0, 0.5, 0.5]],
    "<loc0256><loc0512><loc0768><loc0640> dog": [[0.5, 0.25, 0.125, 0.5]],
    "<loc0256><loc0512><loc0768><loc0640><seg001> dog ;<loc0000><loc0000><loc0512><loc0512> dog": [
        [0.5, 0.25, 0.125, 0.5],
        [0, 0, 0.5, 0.5],
    ],
    "</s><s>dog<loc_52><loc_332><loc_932><loc_774><loc_0><loc_0><loc_500><loc_500></s>": [
        [0.0525, 0.3325, 0.88, 0.442],
        [0.0005, 0.0005, 0.5, 0.5],
    ],
    "A <ref>dog</ref><box>(100,200),(300,600)</box>.": [[0.1, 0.2, 0.2, 0.4]],
    "<ref>dog</ref><box>(100,200),(300,600)</box><box>(0,0),(500,500)</box>": [[0.1, 0.2, 0.2, 0.4], [0, 0, 0.5, 0.5]],
    '{"box_2d": [0.1, 0.05, 0.5, 0.25], "at": {"x": 1}, "label": "dog"}': [[0.05, 0.1, 0.2, 0.4]],
    "<ref>dog</ref><box>[[100, 200, 300, 600]]</box>": [[0.1, 0.2, 0.2, 0.4]],
    "<|object_ref_start|>dog<|object_ref_end|><|box_start|>(100,200),(300,600)<|box_end|>": [[0.1, 0.2, 0.2, 0.4]],
    "<|ref|>dog<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>": [[0, 0, 1, 1]],
}


@pytest.mark.parametrize("text", FORMS)
def test_boxes_are_read_in_every_form(text: str, tmp_path: Path) -> None:
    dataset = read(tmp_path / "street.txt", text)
    assert (dataset.units, dataset.images.keys, dataset.labels.names) == ("norm", ("street",), ("dog",))
    assert dataset.boxes.xywh.tolist() == [pytest.approx(box, abs=1e-15) for box in FORMS[text]]


def test_what_bbox_2d_counts_is_shown_by_large_numbers_the_model_or_the_user(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(DataError, match=r"numbers up to 220: pixels, as Qwen2.5-VL.*thousandths.*units"):
        read(path, f"[{DOG}]")
    assert read(path, f"[{DOG}]", ReadOptions(assume_score=1.0, units="px")).boxes.xywh.tolist() == [[10, 20, 100, 200]]
    norm = read(path, f"[{DOG}]", ReadOptions(assume_score=1.0, units="norm"))
    assert norm.boxes.xywh.tolist() == [pytest.approx([0.01, 0.02, 0.1, 0.2], abs=1e-15)]
    large = read(path, f'[{DOG}, {{"bbox_2d": [10, 20, 1110, 220], "label": "cat"}}]')
    assert (large.units, large.boxes.xywh[1].tolist()) == ("px", [10, 20, 1100, 200])
    with pytest.raises(DataError, match=r"box_2d has numbers up to 1500, above the thousandths.*units"):
        read(path, '[{"box_2d": [100, 50, 1500, 250], "label": "dog"}]')
    for model, units in (("Qwen/Qwen2.5-VL-7B-Instruct", "px"), ("qwen3-vl-8b", "norm")):
        record = {"image": "a.jpg", "model": model, "response": f"```json\n[{DOG}]\n```"}
        assert (
            read(tmp_path / "a.jsonl", f"{json.dumps(record)}\n{json.dumps(record | {'image': 'b.jpg'})}").units
            == units
        )


@pytest.mark.parametrize("shape", ["lines", "list", "by name", "folder"])
def test_texts_lie_in_records_by_name_or_in_files(shape: str, tmp_path: Path) -> None:
    texts = {"a.jpg": f"```json\n[{GEMINI}]\n```", "b.jpg": "There is no dog.", "c.jpg": "[]"}
    # What was asked has an example, which is no answer.
    records = [{"image": name, "prompt": f"Write [{GEMINI}]", "response": text} for name, text in texts.items()]
    path = tmp_path / "answers.json"
    if shape == "folder":
        (folder := tmp_path / "answers").mkdir()
        for name, text in texts.items():
            (folder / f"{name[0]}.txt").write_text(text if name != "b.jpg" else f"[{GEMINI}]")
        dataset = load(folder, role="pred", options=ASSUMED)
        assert (dataset.format, dataset.images.keys, len(dataset.boxes)) == ("vlm", ("a", "b", "c"), 2)
        return
    written = {"lines": "\n".join(map(json.dumps, records)), "list": json.dumps(records), "by name": json.dumps(texts)}
    dataset = read(path, written[shape])
    assert (dataset.images.keys, len(dataset.boxes)) == (tuple(texts), 1)
    notes = [finding for finding in dataset.findings if finding.code == "record-skipped"]
    assert ["'b.jpg' has no box" in finding.examples[0].detail for finding in notes] == [True]


def test_of_an_answer_that_is_cut_off_whole_objects_are_read(tmp_path: Path) -> None:
    dataset = read(tmp_path / "a.txt", f'```json\n[{GEMINI}, {{"box_2d": [1, 2, 3')
    (warning,) = (finding for finding in dataset.findings if finding.code == "record-skipped")
    assert len(dataset.boxes) == 1
    assert warning.examples[0].detail.endswith("'{\"box_2d\": [1, 2, 3'; read before it: 1 box")


@pytest.mark.parametrize("length", [230, 250, 256, 270, 2040, 2048, 5000])
def test_objects_are_read_however_long_they_are(length: int, tmp_path: Path) -> None:
    said = json.dumps({"box_2d": [100, 50, 500, 250], "why": "\N{GRINNING FACE}\\" * (length // 14), "label": "dog"})
    boxes = read(tmp_path / "a.txt", f"[{said}, {said}] and no more").boxes
    assert boxes.xywh.tolist() == [pytest.approx([0.05, 0.1, 0.2, 0.4], abs=1e-15)] * 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[{"box_2d": [1, 2, 3], "label": "dog"}]', "3 values"),
        ('[{"box_2d": [1, 2, 3, "x"], "label": "dog"}]', "not a number"),
        ('[{"box_2d": [1, 2, 3, 4]}]', "label: is missing"),
        ('[{"box_2d": [1, 2, 3, 4], label: "dog"}]', "not an object in JSON"),
        ("<|ref|>dog<|/ref|><|det|>[[0, 0, 999]]<|/det|>", "has 3 numbers"),
        (f"{GEMINI} <loc0256><loc0512><loc0768><loc0640> dog", "Pass the answers of one model"),
    ],
)
def test_what_is_wrong_is_named(text: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=named.replace("(", r"\(")):
        read(tmp_path / "a.txt", text)
