import math
from pathlib import Path

import pytest
from judged import VERDICTS, finding, judged
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

from jaccard_eval.report import Reportable, ReportOptions
from jaccard_eval.report.outputs.openmetrics import render


def samples(result: Reportable) -> dict[tuple[str, str], float]:
    """Values by name and labels, as the reference parser of the specification reads them."""
    return {
        (one.name, " ".join(f"{key}={value}" for key, value in sorted(one.labels.items()))): one.value
        for family in parse(render(result, ReportOptions()))
        for one in family.samples
    }


def test_overall_and_class_values_are_gauges() -> None:
    found = samples(judged())
    assert found["jaccard_eval_AP", ""] == 0.5
    assert found["jaccard_eval_class_AP50", "class=dog"] == 1.0
    assert found["jaccard_eval_class_gt", "class=cat"] == 10
    assert math.isnan(found["jaccard_eval_AP_small", ""])


def test_the_document_ends_as_the_specification_asks() -> None:
    assert render(judged(), ReportOptions()).endswith("\n# EOF\n")


def test_metrics_have_four_decimals_so_that_equal_values_are_equal_texts() -> None:
    lines = render(judged(metrics={"AP": 0.1 + 0.2, "AP50": 0.3, "AP75": 1.0}), ReportOptions()).splitlines()
    assert {"jaccard_eval_AP 0.3000", "jaccard_eval_AP50 0.3000", "jaccard_eval_AP75 1.0000"} <= set(lines)


def test_the_signature_stands_in_a_help_text_which_is_not_compared() -> None:
    text = render(judged(), ReportOptions())
    (line,) = [line for line in text.splitlines() if "protocol:coco" in line]
    assert line.startswith("# HELP jaccard_eval Signature: ")


def test_gates_are_counted_by_status_and_findings_by_code() -> None:
    found = samples(judged(*VERDICTS, findings=(finding("class-unknown"), finding("class-unknown"))))
    assert found["jaccard_eval_gates", "status=fail"] == 2
    assert found["jaccard_eval_gates", "status=skip"] == 1
    assert found["jaccard_eval_findings", "code=class-unknown"] == 2


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\", 'x"} 1 # {', "日本", "{}", ",="])
def test_any_class_name_survives_in_a_label(name: str) -> None:
    assert samples(judged(classes={name: {"AP": 0.25}}))["jaccard_eval_class_AP", f"class={name}"] == 0.25


def test_control_characters_are_spelt_out() -> None:
    found = samples(judged(classes={"a\nb": {"AP": 0.25}}))
    assert found["jaccard_eval_class_AP", r"class=a\nb"] == 0.25


def test_metrics_whose_names_must_be_respelt_are_told_apart_by_a_label() -> None:
    found = samples(judged(metrics={"AP_größe": 0.25, "AP_gr__e": 0.5}))
    assert found["jaccard_eval_AP_gr__e", "metric=AP_größe"] == 0.25
    assert found["jaccard_eval_AP_gr__e", ""] == 0.5


def test_the_sample_is_read_by_the_reference_parser(sample_data: Path) -> None:
    import jaccard_eval

    result = jaccard_eval.evaluate(sample_data / "coco/gt.json", sample_data / "coco/worse.json")
    found = samples(result)
    assert found["jaccard_eval_AP", ""] == round(result["AP"], 4)
    assert math.isnan(found["jaccard_eval_class_AP", "class=cat"])
