"""Panoptic quality: by hand, by the algorithm of panopticapi written out, by generated cases."""

import json
import math
import tarfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from segment_maps import counts, judged, side

from jaccard_eval import PanopticResult, panoptic
from jaccard_eval.similarity.boundary import boundary_width, map_boundaries

SHARED = Path(__file__).parents[4] / "shared"
GOLDEN = SHARED / "oracle" / "golden_ext"
BY_COUNTS = "panoptic_13"  # the area that its JSON lists is wrong, and pixels count here
QUALITIES = ("pq", "sq", "rq")

Map = npt.NDArray[np.int64]


def test_a_match_has_its_iou_in_the_sum_and_what_is_unmatched_counts_half() -> None:
    # Cat 1: 3 shared of 4 + 3 - 3 = 4 pixels, matched with IoU 3/4. Cat 2 is missed, cat 3 predicted where sky is.
    result = judged("11112255", "11105533")
    assert counts(result) == (1, 1, 1)
    assert result["PQ[class=cat]"] == (3 / 4) / (1 + 1 / 2 + 1 / 2)
    assert (result["SQ[class=cat]"], result["RQ[class=cat]"]) == (3 / 4, 1 / 2)


def test_half_is_no_match_and_a_pixel_more_is_one() -> None:
    # 2 shared of 3 + 3 - 2 = 4, then 3 of 4 + 4 - 3 = 5.
    assert counts(judged("1115555", "5111555")) == (0, 1, 1)
    assert counts(judged("11115555", "51111555")) == (1, 0, 0)


def test_void_is_in_no_union() -> None:
    # 2 shared; the prediction has 3 more pixels on void: IoU 2/2, not 2/5.
    result = judged("1100055", "1111155")
    assert (counts(result), result["SQ[class=cat]"]) == ((1, 0, 0), 1.0)


def test_a_prediction_with_more_than_half_on_void_is_ignored_and_with_half_is_false() -> None:
    assert counts(judged("00055555", "11155555")) == (0, 0, 0)
    assert counts(judged("00555555", "11115555")) == (0, 1, 0)
    assert counts(judged("00055555", "11111555")) == (0, 0, 0)
    assert judged("00055555", "11155555").pred.ignored == {"segments-on-void-or-crowd": 1}


def test_a_crowd_is_never_missed_and_takes_predictions_of_its_class_alone() -> None:
    assert counts(judged("11115555", "22205555", crowds=(1,))) == (0, 0, 0)
    result = judged("11115555", "66605555", crowds=(1,))
    assert (counts(result), counts(result, "sky")) == ((0, 0, 0), (1, 1, 0))


def test_of_several_crowds_the_last_one_listed_counts_as_in_panopticapi() -> None:
    result = judged("11225555", "33005555", crowds=(1, 2))
    assert counts(result) == (0, 1, 0)
    assert [finding.code for finding in result.findings if finding.severity == "warning"] == ["crowd-several"]
    assert counts(judged("11225555", "00335555", crowds=(1, 2))) == (0, 0, 0)


def test_a_class_without_segments_is_undefined_and_in_no_mean() -> None:
    result = judged("5555", "5555")
    assert math.isnan(result["PQ[class=cat]"])
    assert (result["PQ"], result["PQ_stuff"]) == (1.0, 1.0)
    assert math.isnan(result["PQ_things"])
    assert result.metrics["PQ_things"].reason == "no segments"
    assert math.isnan(judged("00", "00")["PQ"])


def test_boundaries_can_only_lower_an_iou() -> None:
    block = " / ".join(["555555555", *["511111115"] * 7, "555555555"])
    moved = " / ".join(["555555555", *["555111111"] * 7, "555555555"])
    by_segments, by_boundaries = judged(block, moved), judged(block, moved, iou_type="boundary", dilation_ratio=0.05)
    # Boundaries are a pixel wide. 35 of 49 + 42 - 35 = 56 pixels are shared. Rings: the moved segment touches the right
    # edge of the image, which is an edge as well; its ring is 22 pixels of 6 x 7, that of the block 24 of 7 x 7. Both
    # have the top and the bottom row from column 3 to 7: 10 pixels, IoU 10/36.
    assert by_segments["SQ[class=cat]"] == 35 / 56
    assert counts(by_boundaries) == (0, 1, 1)


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 3)),
    st.sampled_from([0.02, 0.1, 0.2]),
)
def test_the_boundary_of_a_map_is_that_of_each_segment_by_itself(values: Map, ratio: float) -> None:
    assert (
        map_boundaries(values, ratio).tolist() == slow_boundary(values, boundary_width(*values.shape, ratio)).tolist()
    )


def slow_boundary(values: Map, width: int) -> npt.NDArray[np.bool_]:
    """Look at every square: outside the image is no segment."""
    padded = np.pad(values, width, constant_values=-1)
    squares = np.lib.stride_tricks.sliding_window_view(padded, (2 * width + 1, 2 * width + 1))
    alike: npt.NDArray[np.bool_] = (squares == values[..., None, None]).all(axis=(2, 3))
    return ~alike


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Map, Map]:
    """Two maps of blocks, most of which overlap; void is 0."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    gt = draw(arrays.arrays(np.int64, shape, elements=st.integers(0, 8)))
    pred = gt.copy()
    for place in draw(st.lists(st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1)), max_size=5)):
        pred[place] = draw(st.integers(0, 8))
    return gt.repeat(3, axis=0).repeat(2, axis=1), np.roll(pred.repeat(3, axis=0).repeat(2, axis=1), 1, axis=1)


@given(pairs(), st.sets(st.integers(1, 8), max_size=4), st.sampled_from([None, 0.02, 0.1]))
def test_counts_and_sums_are_those_of_the_algorithm_of_panopticapi(
    maps: tuple[Map, Map], crowds: set[int], ratio: float | None
) -> None:
    named = tuple({"a.png": values} for values in maps)
    gt, pred = side(named[0], crowds=tuple(crowds), gt=True), side(named[1])
    rules = {} if ratio is None else {"iou_type": "boundary", "dilation_ratio": ratio}
    result = panoptic_quietly(gt, pred, named, rules)
    expected = slow_counts(*maps, gt["annotations"][0], pred["annotations"][0], ratio)
    for row, key in zip(result.per_class, (1, 2), strict=True):
        assert [row.tp, row.fp, row.fn] == expected[key][:3]
        whole = row.tp + Fraction(row.fp + row.fn, 2)
        if whole:
            assert row.values["PQ"].value == pytest.approx(float(sum(expected[key][3:]) / whole), abs=1e-12)


@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def panoptic_quietly(gt: Any, pred: Any, maps: Any, rules: Any) -> PanopticResult:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several crowds of a class
        return panoptic(gt, pred, gt_masks=maps[0], pred_masks=maps[1], **rules)


def slow_counts(gt: Map, pred: Map, gt_record: Any, pred_record: Any, ratio: float | None) -> dict[int, list[Any]]:
    """TP, FP, FN and the IoU of each match by class: panopticapi, and boundary-iou-api, in fractions."""
    gt_segments = {one["id"]: one for one in gt_record["segments_info"]}
    pred_segments = {one["id"]: one for one in pred_record["segments_info"]}
    found: dict[int, list[Any]] = defaultdict(lambda: [0, 0, 0])
    edges = [np.ones(gt.shape, np.bool_)] * 2
    if ratio is not None:
        edges = [slow_boundary(values, boundary_width(*gt.shape, ratio)) for values in (gt, pred)]
    matched: tuple[set[int], set[int]] = (set(), set())
    for i, one in gt_segments.items():
        for j, other in pred_segments.items():
            if one["iscrowd"] or one["category_id"] != other["category_id"]:
                continue
            ious = []
            for in_gt, in_pred in (((gt == i), (pred == j)), ((gt == i) & edges[0], (pred == j) & edges[1])):
                shared = int((in_gt & in_pred).sum())
                ious.append(Fraction(shared, int(in_gt.sum() + in_pred.sum() - shared - (in_pred & (gt == 0)).sum())))
            if min(ious) > Fraction(1, 2):
                found[one["category_id"]][0] += 1
                found[one["category_id"]].append(min(ious))
                matched[0].add(i)
                matched[1].add(j)
    crowd = {}
    for i, one in gt_segments.items():
        if one["iscrowd"]:
            crowd[one["category_id"]] = i
        elif i not in matched[0]:
            found[one["category_id"]][2] += 1
    for j, other in pred_segments.items():
        on = (pred == j) & ((gt == 0) | (gt == crowd.get(other["category_id"], 0)))
        if j not in matched[1] and not 2 * on.sum() > (pred == j).sum():
            found[other["category_id"]][1] += 1
    return found


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("panoptic_*.json")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_golden_cases_agree(path: Path) -> None:
    case = json.loads(path.read_text())
    maps = [
        {
            name: np.repeat([value for _, value in one["runs"]], [count for count, _ in one["runs"]]).reshape(
                one["shape"]
            )
            for name, one in case["maps"][role].items()
        }
        for role in ("gt", "dt")
    ]
    result = panoptic(case["gt"], case["dt"], gt_masks=maps[0], pred_masks=maps[1])
    if path.stem.startswith(BY_COUNTS):
        assert result["PQ"] == 1.0  # 400 of 400 pixels
        return
    assert differences(result, case["gt"], case["oracle"]) == []
    keys = {str(one["id"]): one["name"] for one in case["gt"]["categories"]}
    for name, value in case["expect"].items():
        subject, _, what = name.partition(".")
        end = {"All": "", "Things": "_things", "Stuff": "_stuff"}.get(subject)
        ref = f"{what.upper()}[class={keys[subject]}]" if end is None else f"{what.upper()}{end}"
        if what in (*QUALITIES, "tp", "fp", "fn"):
            assert result[ref] == pytest.approx(float(Fraction(value)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaccard_eval.JaccardEvalWarning")
def test_generated_cases_of_panopticapi_agree(shared_oracle: Path, tmp_path: Path) -> None:
    with tarfile.open(shared_oracle / "cases_ext.tar.xz") as archive:
        members = [one for one in archive if one.name.startswith("cases_ext/panoptic/")]
        archive.extractall(tmp_path, members, filter="data")
    folders = [path.parent for path in sorted(tmp_path.glob("cases_ext/panoptic/*/expected.json"))]
    assert len(folders) == 40
    wrong = {}
    for folder in folders:
        gt, expected = (json.loads((folder / name).read_bytes()) for name in ("gt.json", "expected.json"))
        result = panoptic(folder / "gt.json", folder / "dt.json", workers=1)
        wrong[folder.name] = differences(result, gt, expected)
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.slow
def test_real_ground_truth_against_itself_is_perfect(shared_data: Path) -> None:
    (folder,) = shared_data.glob("panopticapi/sample_data")
    result = panoptic(folder / "panoptic_examples.json", folder / "panoptic_examples.json", iou_type="boundary")
    assert {name: metric.value for name, metric in result.metrics.items()} == dict.fromkeys(result.metrics, 1.0)
    assert sum(row.fp + row.fn for row in result.per_class) == 0
    assert result.gt.segments == sum(row.tp for row in result.per_class) + result.gt.crowds > 10


def differences(result: PanopticResult, gt: Any, expected: Any) -> list[str]:
    """Return what differs from a result of panopticapi by more than 1e-12."""
    found: dict[str, float] = {}
    for subject, end in (("All", ""), ("Things", "_things"), ("Stuff", "_stuff")):
        found |= {f"{subject}.{name}": result[f"{name.upper()}{end}"] for name in QUALITIES}
    for row, category in zip(result.per_class, gt["categories"], strict=True):
        start = f"per_class.{category['id']}"
        found |= {f"{start}.{name}": row.values[name.upper()].value for name in QUALITIES}
        found |= {f"{start}.{name}": getattr(row, name) for name in ("tp", "fp", "fn")}
    wrong = []
    for name, value in found.items():
        want = expected
        for key in name.split("."):
            want = want.get(key, {}) if isinstance(want, dict) else want
        if want == {} or (math.isnan(value) and want in (None, 0.0)):  # absent classes are 0 there
            continue
        if want is None or not abs(value - want) <= 1e-12:
            wrong.append(f"{name}: {value} for {want}")
    return wrong
