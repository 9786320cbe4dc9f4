"""The quick and the thorough reader of COCO JSON read alike whatever the quick one takes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.findings import FindingLog
from jaccard_eval.formats._coco.strict import (
    Content,
    decode_results,
    decode_truth,
    result_columns,
    truth_columns,
)
from jaccard_eval.formats._coco.tolerant import read_results, read_truth
from jaccard_eval.native.calls import RecordColumns
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6)
NAMES = st.none() | st.text(max_size=5).filter(str.isprintable)
IDS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["1", "a.jpg"])
FLAGS = st.sampled_from([0, 1, False, True])
BOXES = st.fixed_dictionaries({"image_id": IDS, "category_id": IDS, "bbox": st.lists(NUMBERS, min_size=4, max_size=4)})
EXTRAS = st.fixed_dictionaries({}, optional={"segmentation": st.just([[1.5, 2]]), "attributes": st.just({"area": "x"})})
IMAGES = st.lists(st.fixed_dictionaries({"id": IDS}, optional={"file_name": NAMES, "width": NUMBERS}), max_size=3)
CATEGORIES = st.lists(st.fixed_dictionaries({"id": IDS}, optional={"name": NAMES}), max_size=3)


def records(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[list[dict[str, Any]]]:
    fields = st.fixed_dictionaries(required, optional=optional)
    return st.lists(st.builds(lambda *parts: parts[0] | parts[1] | parts[2], EXTRAS, BOXES, fields), max_size=4)


@given(IMAGES, CATEGORIES, records({}, area=NUMBERS, iscrowd=FLAGS, ignore=FLAGS, id=IDS))
def test_both_readers_agree_on_ground_truth(images: Any, categories: Any, annotations: Any) -> None:
    text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
    thorough = read_truth(Path("gt.json"), text, FindingLog())
    for core in ("1", "0"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(native.VARIABLE, core)
            quick = decode_truth(text.encode())
        if quick is not None:
            require_same(quick, (thorough, truth_columns(thorough.boxes)))


@given(records({"score": NUMBERS}, file_name=NAMES, category_name=NAMES))
def test_both_readers_agree_on_results(results: Any) -> None:
    for text in (json.dumps(results), json.dumps({"annotations": results}), "\n".join(map(json.dumps, results))):
        quick = decode_results(text.encode(), scores_optional=False)
        if quick is not None and text:
            thorough = read_results(
                Path("pred.json"), text, Draft("pred.json", "coco", ReadOptions()), scores_optional=False
            )
            require_same(quick, (thorough, result_columns(thorough.boxes)))


def test_plain_files_are_left_to_the_quick_reader() -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}
    truth = {"images": [{"id": 1}], "annotations": [box | {"id": 1}], "categories": [{"id": 1, "name": "cat"}]}
    licensed = truth | {"info": {"id": 3}, "licenses": [{"id": 1, "name": "by"}]}
    assert decode_truth(json.dumps(truth).encode()) is not None
    assert decode_truth(json.dumps(licensed).encode()) is not None
    results = [box | {"score": 0.5, "id": 1, "area": 3, "file_name": "a.jpg", "category_name": "cat"}]
    assert decode_results(json.dumps(results).encode(), scores_optional=False) is not None
    assert decode_results(json.dumps(truth | {"annotations": results}).encode(), scores_optional=False) is not None


Decoded = tuple[Content[Any], RecordColumns]


def require_same(quick: Decoded, thorough: Decoded) -> None:
    (content, columns), (other, others) = quick, thorough
    assert (content.layout, list(content.lines)) == (other.layout, list(other.lines))
    for name in ("images", "categories"):
        assert (getattr(content, name) or []) == (getattr(other, name) or [])
    for name in type(columns).__slots__:  # type: ignore[attr-defined]
        np.testing.assert_array_equal(getattr(columns, name), getattr(others, name), err_msg=name)
