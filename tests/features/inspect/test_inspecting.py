"""Inspections through the public interface: what two sides hold, in one another's units, and why they do not fit."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import write_json
from pictures import det, gt, inspect
from test_inputs import RESULTS, TRUTH

import jaccard_eval
from jaccard_eval import BoxTable, DataError
from jaccard_eval.findings import Severity


def test_objects_in_one_place_and_classes_that_agree_are_counted() -> None:
    truth = [gt("dog 0 0 10 10"), gt("cat 50 50 10 10"), gt("dog 80 80 10 10")]
    found = inspect(truth, [det("dog 0 0 10 10", 0.9), det("dog 50 50 10 9", 0.8), det("dog 200 200 5 5", 0.7)])
    assert found.pairing is not None
    pairing = found.pairing
    assert (pairing.objects, pairing.located, pairing.compared, pairing.same_class) == (3, 2, 2, 1)
    assert (pairing.cap, pairing.beyond_cap, pairing.sampled) == (100, 0, 1.0)


def test_detections_beyond_the_cap_are_counted_per_image_and_class() -> None:
    crowd = [det(f"dog {i} 0 10 10", 0.5, image="a") for i in range(103)]
    spread_out = [det(f"{'cat' if i % 2 else 'dog'} {i} 0 10 10", 0.5, image="b") for i in range(120)]
    pairing = inspect([gt("dog 0 0 10 10", "a"), gt("cat 0 0 10 10", "b")], crowd + spread_out).pairing
    assert pairing is not None
    assert (pairing.beyond_cap, pairing.images_beyond_cap) == (3, 1)  # 103 dogs on a; 60 and 60 on b


def test_nothing_is_evaluated() -> None:
    document = inspect([gt("dog 0 0 10 10")], [det("dog 0 0 10 10", 0.9)]).to_dict()
    assert document["kind"] == "inspection"
    assert "metrics" not in document
    assert "AP" not in json.dumps(document)


def test_the_document_has_both_sides_and_plain_values(tmp_path: Path) -> None:
    document = jaccard_eval.inspect(
        write_json(tmp_path / "gt.json", TRUTH), write_json(tmp_path / "p.json", RESULTS)
    ).to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["schema"], sorted(document["inputs"])) == (1, ["gt", "pred"])
    assert document["contents"]["gt"]["classes"] == [{"name": "dog", "key": "1", "boxes": 1, "images": 1}]
    assert document["contents"]["gt"]["scores"] is None
    assert document["pairing"]["correspondence"]["image_strategy"] == "id"


def test_fractions_are_described_in_pixels_where_the_other_side_knows_the_sizes(tmp_path: Path) -> None:
    sized = {**TRUTH, "images": [{"id": 1, "file_name": "a.jpg", "width": 200, "height": 100}]}
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "a.txt").write_text("dog 0.5 0.5 0.1 0.2 0.9\n")
    found = jaccard_eval.inspect(write_json(tmp_path / "gt.json", sized), tmp_path / "found")
    assert found.pred is not None
    boxes = found.pred.boxes
    assert (boxes.units, boxes.file_units, boxes.encoding, boxes.decimals) == ("px", "norm", "cxcywh", 1)
    assert (boxes.width.max, boxes.height.max, boxes.buckets["small"]) == (20, 20, 1)  # .1 x 200 and .2 x 100


def test_sides_that_do_not_correspond_are_still_described(tmp_path: Path) -> None:
    elsewhere = [{**RESULTS[0], "image_id": 99}]
    found = jaccard_eval.inspect(write_json(tmp_path / "gt.json", TRUTH), write_json(tmp_path / "pred.json", elsewhere))
    assert found.pairing is None
    assert [side.boxes.total for side in found.sides] == [1, 1]
    assert (found.findings[0].severity, found.findings[0].code) == (Severity.ERROR, "image-unknown")


def test_a_side_that_cannot_be_read_leaves_the_other(tmp_path: Path) -> None:
    found = jaccard_eval.inspect(write_json(tmp_path / "gt.json", TRUTH), tmp_path / "no.json")
    assert (found.pred, [side.role for side in found.sides]) == (None, ["gt"])
    assert [one.code for one in found.findings] == ["file-missing"]


def test_swapped_sides_are_shown_as_what_they_are(tmp_path: Path) -> None:
    found = jaccard_eval.inspect(write_json(tmp_path / "pred.json", RESULTS), write_json(tmp_path / "gt.json", TRUTH))
    assert found.gt is not None and found.pred is not None and found.pairing is not None
    assert (Path(found.gt.summary.path).name, Path(found.pred.summary.path).name) == ("gt.json", "pred.json")
    assert found.findings[0].code == "sides-swapped"


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        jaccard_eval.inspect(tmp_path / "no.json")
    with pytest.raises(DataError, match=r"(?s)no such file.*no such file"):
        jaccard_eval.inspect(tmp_path / "no.json", tmp_path / "nothing.json")


def test_arrays_are_described_as_they_are() -> None:
    table = BoxTable.from_arrays([0, 1], [0, 0], [[0, 0, 10, 10], [5, 5, 25, 10]], score=[0.5, 0.25])
    found = jaccard_eval.inspect(table)
    assert found.pred is not None and found.gt is None
    assert found.pred.boxes.area.max == 100
    assert found.pred.scores is not None and found.pred.scores.distinct == 2


def test_inputs_stay_as_they_were() -> None:
    table = BoxTable.from_arrays([0], [0], [[0, 0, 10, 10]])
    before = replace(table, xywh=table.xywh.copy())
    jaccard_eval.inspect(table)
    assert np.array_equal(before.xywh, table.xywh)
