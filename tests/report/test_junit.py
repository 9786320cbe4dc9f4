import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import xmlschema
from judged import CLOSE, DROP, FEW, FLOOR, MISSING, VERDICTS, finding, judged, verdict

from jaccard_eval.data.result import EvaluationResult, GateResult, Status
from jaccard_eval.findings import Severity
from jaccard_eval.report import ReportOptions
from jaccard_eval.report.outputs.ci import render_junit as render

SCHEMA = xmlschema.XMLSchema10(Path(__file__).with_name("junit.xsd"))


def document(result: EvaluationResult | GateResult) -> ET.Element:
    text = render(result, ReportOptions())
    SCHEMA.validate(text)
    return ET.fromstring(text)


def cases(root: ET.Element) -> dict[str, ET.Element]:
    return {one.attrib["name"]: one for one in root.iter("testcase")}


def test_every_status_is_valid_against_the_schema_of_jenkins() -> None:
    root = document(judged(*VERDICTS, findings=(finding("class-unknown"), finding("box-empty", Severity.NOTE))))
    assert [suite.attrib["name"] for suite in root] == ["evaluation", "gates", "findings"]
    # 6 verdicts, 1 warning (notes are decisions), and the case of the result itself
    assert root.attrib == {"name": "jaccard-eval", "tests": "8", "failures": "2", "errors": "0"}
    assert root[1].attrib == {"name": "gates", "tests": "6", "failures": "2", "errors": "0", "skipped": "1"}


def test_a_failed_rule_is_a_failure_with_value_limit_margin_and_support() -> None:
    (failure,) = cases(document(judged(FLOOR)))["map-floor: AP50 min"]
    assert failure.attrib["type"] == "GateFailed"
    assert failure.attrib["message"] == "map-floor: AP50 = 0.4312, required >= 0.45; margin -0.0188; n 1,200"


def test_passing_and_warning_rules_pass_and_say_what_was_measured() -> None:
    found = cases(document(judged(DROP, CLOSE)))
    (passed,) = found["drop: AP50 max-drop"]
    assert (passed.tag, passed.text) == (
        "system-out",
        "drop: AP50 = 0.5000, required drop <= 0.01; margin +0.0050; baseline 0.5050; n 1,200",
    )
    (warned,) = found["close: AP min on night"]
    assert warned.tag == "system-out"
    assert (warned.text or "").startswith("warn: close: AP = 0.4700, required >= 0.48")


def test_a_rule_without_support_is_skipped_with_the_reason() -> None:
    (skipped,) = cases(document(judged(FEW)))["rare: AP50[class=dog] min"]
    assert skipped.tag == "skipped"
    assert skipped.attrib["message"].endswith("12 of at least 30 objects")


def test_an_undefined_value_is_not_a_number_of_zero() -> None:
    (failure,) = cases(document(judged(MISSING)))["undefined: AP_small min"]
    assert failure.attrib["message"].startswith("undefined: AP_small = n/a, required")


def test_a_result_without_gates_and_findings_still_has_a_case() -> None:
    (only,) = cases(document(judged())).values()
    assert (only.attrib["name"], "AP 0.5000" in (only[0].text or "")) == ("evaluation", True)


def test_verdicts_on_a_saved_result_are_reported_alike() -> None:
    result = GateResult(version="0.1.0", path="result.json", signature="coco|v=1", baseline=None, gates=(FLOOR,))
    assert "map-floor: AP50 min" in cases(document(result))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("x\x00y", r"x\x00y"),
        ('<&">', '<&">'),
        ("\udcff", r"\udcff"),
        ("\uffff", r"\uffff"),
    ],
)
def test_what_xml_forbids_is_spelt_out_and_the_rest_is_escaped(name: str, shown: str) -> None:
    root = document(judged(verdict(name, Status.FAIL), path=name))
    assert f"{shown}: AP50 min" in cases(root)
