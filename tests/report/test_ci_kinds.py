"""The reports for CI systems take results of any kind, whatever numbers and findings these have."""

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

import jaccard_eval
from jaccard_eval.features.nms import ClassCounts, SuppressionResult
from jaccard_eval.report import Reportable, ReportOptions, reporter_for
from jaccard_eval.report.numbers import measures_of
from jaccard_eval.report.outputs.ci import job_summary, output_lines


@pytest.fixture(params=["inspection", "pixels", "sensitivity", "evaluation", "comparison", "suppression"])
def result(request: pytest.FixtureRequest, sample_data: Path, tmp_path: Path) -> Reportable:
    gt, pred = sample_data / "coco/gt.json", sample_data / "coco/worse.json"
    for side in ("gt", "pred"):
        np.save(tmp_path / f"{side}.npy", np.array([[0, 1], [1, 1]], dtype=np.uint8))
    makers: dict[str, Callable[[], Reportable]] = {
        "inspection": lambda: jaccard_eval.inspect(gt, pred),
        "pixels": lambda: jaccard_eval.pixels(tmp_path / "gt.npy", tmp_path / "pred.npy"),
        "sensitivity": lambda: jaccard_eval.sensitivity(gt, pred),
        "evaluation": lambda: jaccard_eval.evaluate(gt, pred),
        "comparison": lambda: jaccard_eval.compare(gt, pred, sample_data / "coco/better.json"),
        "suppression": lambda: SuppressionResult(
            version="0",
            path="p",
            output="o",
            format="coco",
            rule={"by": "iou", "iou": 0.5, "class_agnostic": False},
            classes=(ClassCounts(name="dog", before=3, after=1, below=1),),
        ),
    }
    return makers[request.param]()


def render(name: str, result: Reportable) -> str:
    text = reporter_for(name).render(result, ReportOptions())
    assert isinstance(text, str)
    return text


def test_every_report_is_what_its_reader_expects(result: Reportable) -> None:
    assert ET.fromstring(render("junit.xml", result))[0].attrib["name"] == result.kind
    assert "jaccard_eval" in {family.name for family in parse(render("metrics.txt", result))}
    assert set(json.loads(render("badge.json", result))) == {"schemaVersion", "label", "message", "color"}
    assert isinstance(json.loads(render("gl-code-quality-report.json", result)), list)
    assert job_summary(result).startswith(f"## jaccard-eval, {result.kind}\n")
    assert "verdict=none" in output_lines(result)


@pytest.mark.parametrize("result", ["pixels"], indirect=True)
def test_label_maps_have_their_own_headline(result: Reportable) -> None:
    assert json.loads(render("badge.json", result))["label"] == "mIoU"
    assert 'jaccard_eval_class_IoU{class="1"} 1.0000' in render("metrics.txt", result).splitlines()


def test_the_numbers_of_reports_are_those_of_the_document(result: Reportable) -> None:
    measures, document = measures_of(result), result.to_dict()
    assert (measures.version, measures.signature) == (document["tool"]["version"], document.get("signature", ""))
    assert {name: nullable(value) for name, value in measures.overall.items()} == document.get("metrics", {})
    rows = [{"class": name} | {key: nullable(value) for key, value in row.items()} for name, row in measures.per_class]
    # Sizes of a class are in CSV and JSON alone.
    assert rows == [
        {key: value for key, value in row.items() if key != "sizes"} for row in document.get("per_class", [])
    ]


def nullable(number: float) -> float | None:
    return None if math.isnan(number) else number
