import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from pictures import det, evaluate, gt

from jaccard_eval.data.result import EvaluationResult
from jaccard_eval.report import ReportOptions, reporter_for, terminal
from jaccard_eval.report.outputs.json_ import render as render_json
from jaccard_eval.report.outputs.tables import render_csv, yaml_text
from jaccard_eval.report.outputs.text import render_text

OPTIONS = ReportOptions(per_class=True)


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    truth = [gt("cat 0 0 10 10"), gt("dog 50 0 10 10"), gt("dog 0 50 10 10")]
    found = [det("cat 0 0 10 10", 0.9), det("cat 50 0 10 10", 0.8), det("dog 0 50 10 10", 0.7)]
    return evaluate(truth, found, errors=True)


def test_text_shows_types_with_what_they_cost(result: EvaluationResult) -> None:
    rows = [line.split() for line in render_text(result, OPTIONS).splitlines()]
    # Repaired, the dogs are found first and second instead of first of two alone: 51/101 to 1, half of it in the mean.
    assert ["classification", "1", "+0.2475"] in rows
    assert ["background", "0", "0.0000"] in rows


def test_text_shows_the_confusion_matrix_with_background_last(result: EvaluationResult) -> None:
    rows = [line.split() for line in render_text(result, OPTIONS).splitlines()]
    start = rows.index(["ground", "truth", "cat", "dog", "background"])
    assert next(row for row in rows[start + 1 :] if row[:1] == ["dog"]) == ["dog", "1", "1", "0"]


def test_the_best_scores_of_a_few_classes_stand_in_the_text_without_being_asked_for(result: EvaluationResult) -> None:
    text = render_text(result, replace(OPTIONS, per_class=False))
    rows = [line.split()[:3] for line in text.partition("\nScores\n")[2].partition("\n\n")[0].splitlines()]
    # The dogs' F1 at 0.7 is that of one found of two: 2/3. Each cat is found first.
    assert rows[3:5] == [["cat", "0.90", "1.0000"], ["dog", "0.70", "0.6667"]]
    assert "{" not in text


def test_json_has_all_of_it(result: EvaluationResult) -> None:
    errors = json.loads(render_json(result, OPTIONS))["errors"]
    assert errors["thresholds"] == {"cat": 0.9, "dog": 0.7}
    assert errors["confusion"]["classes"] == ["cat", "dog", "background"]
    assert errors["confusion"]["counts"] == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert [one["type"] for one in errors["types"]][:2] == ["classification", "localisation"]
    assert [one["class"] for one in errors["per_class"]] == ["cat", "dog"]
    assert len(errors["all"]["curve"]["f1"]) == 101


def test_csv_has_a_column_for_each_type(result: EvaluationResult) -> None:
    everything, cat, dog = csv.DictReader(io.StringIO(str(render_csv(result, OPTIONS))))
    assert [row["classification errors"] for row in (everything, cat, dog)] == ["1", "1", "0"]
    assert dog["best score"] == "0.7"


def test_text_shows_curves_and_calibration_of_all_classes(result: EvaluationResult) -> None:
    rows = [line.split() for line in render_text(result, OPTIONS).splitlines()]
    # Of the detections with .9, .8 and .7 the first and the last are right, and there are three boxes.
    assert ["0.70", "0.6667", "0.6667", "0.6667"] in rows
    assert ["0.90", "1.0000", "0.3333", "0.5000"] in rows
    assert ["0.80", "to", "0.90", "1", "0.8000", "0.0000"] in rows


def test_each_part_for_machines_is_a_file_by_its_name(result: EvaluationResult) -> None:
    def table(name: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(str(reporter_for(name).render(result, OPTIONS)))))

    assert table("confusion.csv") == [
        ["ground truth", "cat", "dog", "background"],
        ["cat", "1", "0", "0"],
        ["dog", "1", "1", "0"],
        ["background", "0", "0", "0"],
    ]
    curves = table("curves.csv")
    assert curves[0] == ["class", "score", "precision", "recall", "F1", "iou"]
    assert (len(curves), curves[1 + 101 + 75]) == (1 + 2 * 3 * 101, ["cat", "0.75", "0.5", "1.0", repr(2 / 3), "0.5"])
    assert table("calibration.csv")[1 + 8] == ["all", "0.8", "0.9", "1", "0.8", "0.0"]


# What YAML 1.1 or 1.2 would take for a truth, a number, a key, an alias, a tag, a comment, a list or a date.
HOSTILE = (
    *("no", "Yes", "ON", "null", "~", "1e3", "0x1F", "012", "1_000", "1:30", ".5", "2024-01-01", "=", "<<", "", " "),
    *("a: b", "a #b", "*x", "&x", "!tag", "- x", "? x", "[x]", "{x}", "x: ", "'", '"', "%x", "@x", "`x", "|", ">"),
    *(
        "\u202ex",
        "a\nb",
        "\ttab",
        "\x85",
        "\u2028",
        "\U0001f600",
        "犬",
        "交通 信号灯",
        "\udcff",
        "x" * 2000,
        "*" * 2000,
    ),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_a_text_in_yaml_whatever_it_is(name: str) -> None:
    text = yaml_text({name: {"score": "0.5", "n": "21"}, "dog": {"score": "1.0e-05", "n": "3", "few": "true"}})
    expected = {name: {"score": 0.5, "n": 21}, "dog": {"score": 1e-05, "n": 3, "few": True}}
    assert yaml.safe_load(text) == expected
    assert yaml.safe_load(f"# the best\n{text}# at the end\n") == expected


def test_the_map_in_yaml_reads_as_people_write_it() -> None:
    scores = {name: {"score": "0.25", "n": "31"} for name in ("dog", "traffic light", "犬", "no", "a: b")}
    at = "{score: 0.25, n: 31}"
    written = f'dog: {at}\ntraffic light: {at}\n犬: {at}\n"no": {at}\n"a: b": {at}\n'
    assert (yaml_text(scores), yaml_text({})) == (written, "{}\n")


@pytest.mark.parametrize(("name", "load"), [("thresholds.json", json.loads), ("thresholds.yaml", yaml.safe_load)])
def test_the_map_of_scores_is_read_back_whatever_the_numbers(name: str, load: Callable[[str], object]) -> None:
    scores = {"yes": 1e-05, "3": 0.25, 'a"b: \u2028': 1234567.0, "dog": 2.5e-300}
    truth = [gt(f"{i} {20 * i} 0 10 10") for i in range(4)]
    found = [det(f"{i} {20 * i} 0 10 10", score) for i, score in enumerate(scores.values())]
    boxes = evaluate(truth, found, errors=True)
    names = iter(scores)
    assert boxes.errors is not None
    classes = tuple(replace(one, name=next(names)) for one in boxes.errors.classes)
    named = boxes.with_part(replace(boxes.errors, classes=classes))
    text = str(reporter_for(name).render(named, OPTIONS))
    # Few objects: every class has the score of all together.
    pooled = boxes.errors.pooled.best_score
    assert load(text) == {
        "all": {"score": pooled, "n": 4},
        **{name: {"score": pooled, "n": 1, "few": True} for name in scores},
    }


@pytest.mark.parametrize("n", [19, 20])
def test_a_class_with_few_objects_takes_the_score_of_all(n: int) -> None:
    # Every dog is found at .9; the one cat at .4, which all classes together need as well.
    truth = [gt(f"dog {20 * i} 0 10 10") for i in range(n)] + [gt("cat 0 50 10 10")]
    found = [det(f"dog {20 * i} 0 10 10", 0.9) for i in range(n)] + [det("cat 0 50 10 10", 0.4)]
    result = evaluate(truth, found, errors=True)
    entries = json.loads(str(reporter_for("thresholds.json").render(result, OPTIONS)))
    dog = {"score": 0.9, "n": 20} if n == 20 else {"score": 0.4, "n": 19, "few": True}
    assert entries == {
        "all": {"score": 0.4, "n": n + 1},
        "cat": {"score": 0.4, "n": 1, "few": True},
        "dog": dog,
    }
    # With another aim, these are the scores that reach it: 19 of 20 objects are found at .9.
    aimed = evaluate(truth, found, errors=True, score="recall=0.5")
    entries = json.loads(str(reporter_for("thresholds.json").render(aimed, OPTIONS)))
    assert entries["all"] == {"score": 0.9, "n": n + 1}


@pytest.mark.parametrize("n", [2, 10, 80])
def test_text_fits_into_80_columns_whatever_the_classes(n: int) -> None:
    names = [f"traffic light no. {i}" for i in range(n)]
    truth = [gt(f"x {20 * i} 0 10 10") for i in range(n)]
    truth = [replace(box, name=name) for box, name in zip(truth, names, strict=True)]
    found = [replace(box, name=names[i // 2], score=1 / (i + 3)) for i, box in enumerate(truth)]
    text = terminal.render(evaluate(truth, found, errors=True), ReportOptions(per_class=True, width=80))
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"traffic light no. {i}" in text for i in range(n))


def test_many_classes_show_the_pairs_that_are_confused_most() -> None:
    names = [f"class{i:02d}" for i in range(12)]
    truth = [gt(f"{name} {20 * i} 0 10 10") for i, name in enumerate(names)]
    found = [det(f"class05 {20 * i} 0 10 10", 0.5) for i in range(12)]
    result = evaluate(truth, found, errors=True)
    rows = [line.split() for line in render_text(result, OPTIONS).splitlines()]
    assert ["class00", "class05", "1"] in rows
    assert ["class05", "class05", "1"] not in rows


def test_what_is_not_there_is_said_in_words() -> None:
    truth = [gt(f"class{i:02d} {20 * i} 0 10 10") for i in range(12)]
    text = render_text(evaluate(truth, [], errors=True), ReportOptions())
    assert "no confusions between classes" in text
    # All are missed: found, they have 1. The second of both rows is that of all unmatched boxes.
    rows = [line.split() for line in text.splitlines()]
    assert ["missed", "12", "+1.0000"] in rows
    assert ["false", "negatives", "12", "+1.0000"] in rows


def test_nothing_is_said_when_it_was_not_asked_for() -> None:
    result = evaluate([gt("dog 0 0 9 9")], [det("dog 0 0 9 9", 0.5)])
    assert "errors" not in json.loads(render_json(result, OPTIONS))
    assert "Confusion" not in render_text(result, OPTIONS)
