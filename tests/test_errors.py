import pytest

from jaccard_eval.findings import Example, Finding, FindingLog, Severity, Where
from jaccard_eval.text import (
    aligned,
    columns_of,
    did_you_mean,
    example_keys,
    is_numeric,
    pluralise,
    quoted_value,
    shown_json,
)

MAPS = (("map", "agreement", "flag"), ("as given", ".012", "--class-map a=b"), ("one up", ".9", "--class-map a=c"))


def the_finding(**settings) -> Finding:
    log = FindingLog()
    log.warning("class-order", Where("p.json"), "classes disagree", fix="Map them.", **settings)
    return log.findings()[0]


def test_a_table_stands_aligned_below_the_message_numbers_to_the_right():
    assert str(the_finding(table=MAPS)).split("\n") == [
        "warning[class-order]: p.json: classes disagree. Map them.",
        "  map       agreement  flag",
        "  as given       .012  --class-map a=b",
        "  one up           .9  --class-map a=c",
    ]


def test_a_finding_without_a_table_stays_in_one_line():
    assert the_finding().table == ()
    assert "\n" not in str(the_finding())


def test_findings_taken_over_keep_their_table():
    log = FindingLog()
    log.extend([the_finding(table=MAPS)])
    assert log.findings() == (the_finding(table=MAPS),)
    assert log.findings()[0].severity is Severity.WARNING


def test_cells_cannot_act_on_the_terminal_and_wide_characters_count_twice():
    assert aligned((("class", "boxes"), ("猫", "1"), ("a\x1b[2J", "10"))) == [
        "class     boxes",
        "猫            1",
        "a\\x1b[2J     10",
    ]
    assert columns_of("猫e\u0301") == 3  # two for the ideograph, one for the letter, none for its accent


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["1,204", ".742", "12.5 %", "-3", "n/a", ""], True),
        (["--class-map"], False),
        (["0.5", "as given"], False),
    ],
)
def test_columns_of_numbers_align_right(cells, numeric):
    assert is_numeric(cells) is numeric


def test_problems_of_one_kind_are_grouped_by_file_and_field():
    findings = FindingLog()
    for row, field in enumerate(["bbox[0]", "bbox[3]", "score"]):
        findings.warning("text-type", Where("p.json", record=f"[{row}]", field=field), "is a text")
    assert [(one.count, str(one.examples[0].where)) for one in findings.findings()] == [
        (2, "p.json: [0].bbox[0]"),
        (1, "p.json: [2].score"),
    ]


def many_rows(severity: Severity, summary: str = "") -> str:
    findings = FindingLog()
    findings.add_rows(
        severity, "box-empty", range(7), lambda row: (Where("p.json", line=row), "no width"), summary=summary
    )
    return str(findings.findings()[0])


def test_errors_show_five_examples_and_count_the_rest():
    assert many_rows(Severity.ERROR).split("\n")[1:] == [
        *(f"  p.json:{row}: no width" for row in range(1, 5)),
        "  and 2 more",  # 7 - 5
    ]


def test_notes_and_counted_warnings_keep_to_their_first_example():
    assert "\n" not in many_rows(Severity.NOTE)
    assert many_rows(Severity.WARNING, "7 boxes") == "warning[box-empty]: p.json: 7 boxes; first: p.json:0: no width"
    assert len(many_rows(Severity.WARNING).split("\n")) == 6


def test_messages_show_the_first_three_keys_quoted():
    assert example_keys(["a", "b\x1b", 3, 4]) == r"'a', 'b\x1b', 3"


def test_counts_agree_with_their_noun():
    assert pluralise(1, "image") == "1 image"
    assert pluralise(1200, "image") == "1,200 images"
    assert pluralise(2, "class", "classes") == "2 classes"


def test_a_word_that_is_known_twice_is_proposed_once() -> None:
    assert did_you_mean("APP", ["AP", "recall", "AP"]) == " Did you mean 'AP'?"


def test_a_word_in_other_letters_is_proposed_after_those_that_are_spelled_alike() -> None:
    assert did_you_mean("VOC2007", ["coco", "voc2007"]) == " Did you mean 'voc2007'?"
    assert did_you_mean("Dog", ["dog", "DOGS", "Dogs"]) == " Did you mean 'Dogs' or 'dog'?"


@pytest.mark.parametrize("show", [quoted_value, shown_json])
def test_a_value_nested_deeper_than_python_prints_is_named_by_its_kind(show) -> None:
    value: list = []
    for _ in range(100_000):  # deeper than any version of Python descends
        value = [value]
    assert show(value) == "a list, nested too deeply to be shown"


def test_an_example_that_is_a_place_alone_ends_without_a_colon() -> None:
    first, second = (Example(Where("gt.json", record=f"annotations[{row}]"), "") for row in (0, 1))
    assert second.behind(first) == "gt.json: annotations[1]"
