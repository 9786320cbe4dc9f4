import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import evaluate, load
from jaccard_eval.data.boxtable import BoxTable
from jaccard_eval.data.protocol import COCO, PROTOCOLS, RULES_OF, VOC2012, AreaRange, ClassRule, Limit, Protocol, Subset
from jaccard_eval.data.signature import fingerprint, quoted, short_signature, signature, signature_fields

NAMES = {"image_names": ("a.png", "b.png"), "class_names": ("cat", "dog"), "units": "px"}

CHANGES = {
    "name": "mine",
    "iou_thresholds": (0.5,),
    "areas": (AreaRange("all", 0.0, 5e9), *COCO.areas[1:]),
    "max_dets": (1, 10, 300),
    "assignment": "best_any",
    "iou_ties": "first",
    "score_ties": "file",
    "pixel_offset": 1.0,
    "crowd_overlap": "iou",
    "ignored_flags": ("crowd", "ignore"),
    "reusable_flags": (),
    "interpolation": "area",
    "recall_points": 11,
    "precision_epsilon": 0.0,
    "class_agnostic": True,
    "iou_type": "segm",
    "above_threshold": True,
    "dilation_ratio": 0.005,
    "sigmas": (0.1,) * 17,
    "oks_box_share": 0.53,
    "max_dets_per": "image",
    "drop_empty": True,
    "judging": "federated",
    "frequencies": ("r", "c", "f"),
    "dropped_flags": ("crowd",),
    "single_precision": True,
    "union_epsilon": 1e-7,
    "metrics": ("P", "R"),
    "clipped": True,
    "miss_rate_at": (0.01, 1.0),
    "miss_rate_reading": "first reaching",
    "overlap": "centre",
    "region_flags": ("crowd", "ignore"),
    "counts_ignored": True,
    "subsets_alone": True,
    "least_area": 100.0,
    "spares_covered": True,
    "drops_ties": True,
    "reach": 8.0,
    "class_rules": (ClassRule("Car", 0.7),),
    "subsets": (Subset("near", (Limit("height", low=20),)),),
}


def _table(**columns: object) -> BoxTable:
    given_columns: dict[str, object] = {
        "image": [0, 1, 1],
        "label": [0, 1, 1],
        "boxes": [[0, 0, 10, 10], [1, 2, 3, 4], [5, 5, 5, 5]],
        "score": [0.5, 0.25, 0.125],
        "encoding": "xywh",
    }
    return BoxTable.from_arrays(**(given_columns | columns))  # type: ignore[arg-type]


def _print(table: BoxTable, **names: object) -> str:
    named: dict[str, Any] = NAMES | names
    names = named["image_names"], named["class_names"]
    return fingerprint(table, names, "gt" if table.score is None else "pred", named["units"])[1]


def _sign(protocol: Protocol, selection: tuple[str, ...] = (), gt: str = "g", pred: str = "p") -> str:
    return signature(protocol, selection=selection, gt=gt, pred=pred, version="1")


def test_the_signature_of_coco_can_be_read() -> None:
    assert _sign(COCO) == (
        "coco|iou=0.5:0.95:0.05|ap=101|max_dets=1,10,100|"
        "areas=all[0:1e+10],small[0:1024],medium[1024:9216],large[9216:1e+10]|match=best_free|iou_ties=last|score_ties=image|"
        "ignored=crowd|reusable=crowd|crowd=ioa|pixel=0|epsilon=2.220446049250313e-16|gt=g|pred=p|v=1"
    )


def test_the_signature_of_voc_can_be_read() -> None:
    assert _sign(VOC2012) == (
        "voc2012|iou=0.5|ap=area|max_dets=none|areas=all[-inf:inf]|match=best_any|iou_ties=first|score_ties=file|"
        "ignored=difficult+crowd+ignore|reusable=difficult+crowd+ignore|crowd=iou|pixel=1|epsilon=0|gt=g|pred=p|v=1"
    )


def test_every_rule_of_a_protocol_is_tried_here() -> None:
    assert set(CHANGES) == {field.name for field in fields(Protocol)} - {"sources"}


def _rules_for(field: str) -> Protocol:
    """COCO's rules, so that a field can be changed alone: of an image there is one cap."""
    rules = COCO.comparing(RULES_OF.get(field, COCO.iou_type))
    return rules.with_options(max_dets=(100,)) if field == "max_dets_per" else rules


@pytest.mark.parametrize("field", CHANGES)
def test_any_other_rule_gives_another_signature(field: str) -> None:
    rules = _rules_for(field)
    assert _sign(rules.with_options(**{field: CHANGES[field]})) != _sign(rules)
    if field in RULES_OF:  # of another kind of similarity it decides nothing
        assert _sign(COCO.with_options(**{field: CHANGES[field]})) == _sign(COCO)


@pytest.mark.parametrize(
    "change",
    [
        {"iou_thresholds": tuple(np.arange(0.5, 0.99, 0.05).tolist())},  # 0.6500000000000001 for 0.65 and the like
        {"iou_thresholds": (*COCO.iou_thresholds[:-1], np.nextafter(0.95, 1).item())},
        {"areas": (*COCO.areas[:1], AreaRange("small", 0.0, np.nextafter(1024.0, 0).item()), *COCO.areas[2:])},
        {"pixel_offset": 5e-324},
    ],
)
def test_the_last_bit_of_a_rule_shows_in_the_signature(change: dict[str, object]) -> None:
    assert _sign(COCO.with_options(**change)) != _sign(COCO)


def test_the_sources_of_rules_are_no_part_of_the_signature() -> None:
    assert _sign(COCO.with_options(sources=())) == _sign(COCO)


def test_selection_inputs_and_version_are_part_of_the_signature() -> None:
    base = _sign(COCO)
    assert _sign(COCO, selection=("classes=dog",)) != base
    assert _sign(COCO, gt="other") != base
    assert _sign(COCO, pred="other") != base
    assert signature(COCO, selection=(), gt="g", pred="p", version="2") != base


def test_signatures_of_the_known_protocols_differ() -> None:
    assert len({_sign(protocol.with_options(name="x")) for protocol in PROTOCOLS.values()}) == len(PROTOCOLS)


@pytest.mark.parametrize(
    "columns",
    [
        {"image": [0, 0, 1]},
        {"label": [0, 1, 0]},
        {"boxes": [[0, 0, 10, 10], [1, 2, 3, 4.000000000000001], [5, 5, 5, 5]]},
        {"boxes": [[0, 0, 10, 10], [2, 1, 3, 4], [5, 5, 5, 5]]},
        {"score": [0.5, 0.25, 0.1250000001]},
        {"score": [0.25, 0.5, 0.125]},
        {"area": [100, 12, 26]},
        {"crowd": [False, False, True]},
        {"difficult": [False, False, True]},
        {"group_of": [False, False, True]},
        {"ignore": [False, False, True]},
    ],
    ids=str,
)
def test_any_change_of_a_box_gives_another_fingerprint(columns: dict[str, object]) -> None:
    assert _print(_table(**columns)) != _print(_table())


def test_names_units_and_repeated_boxes_are_part_of_the_fingerprint() -> None:
    table = _table()
    prints = {
        _print(table),
        _print(table, image_names=("a.png", "c.png")),
        _print(table, class_names=("cat", "dot")),
        _print(table, class_names=("dog", "cat")),
        _print(table, units="norm"),
        _print(table.take(np.array([0, 1, 2, 2]))),
        _print(table.take(np.array([0, 1, 2, 2, 2]))),
        _print(table.take(np.array([0, 1]))),
        _print(table.take(np.array([], dtype=np.int64))),
    }
    assert len(prints) == 9


def test_a_fingerprint_is_128_bits_of_sha_256() -> None:
    assert re.fullmatch("sha-256-128:[0-9a-f]{32}", _print(_table()))
    assert re.fullmatch("sha-256-128:[0-9a-f]{32}", _print(_table().take(np.array([], dtype=np.int64))))


@given(st.permutations(range(3)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    assert _print(_table().take(np.array(order))) == _print(_table())


def test_the_numbers_of_images_and_classes_do_not_matter() -> None:
    renumbered = _table(image=[1, 0, 0], label=[1, 0, 0])
    swapped = {"image_names": ("b.png", "a.png"), "class_names": ("dog", "cat")}
    assert _print(renumbered, **swapped) == _print(_table())


def test_classes_and_images_without_boxes_do_not_matter() -> None:
    more = {"image_names": ("a.png", "b.png", "c.png"), "class_names": ("cat", "dog", "emu")}
    assert _print(_table(), **more) == _print(_table())


@pytest.mark.parametrize("names", [("val/a.png", "val/b.png"), ("a", "b"), (r"x\a.JPG", "./b.jpeg")], ids=str)
def test_folders_and_suffixes_do_not_matter_where_stems_tell_the_images_apart(names: tuple[str, str]) -> None:
    assert _print(_table(), image_names=names) == _print(_table())


def test_folders_matter_where_they_tell_the_images_apart() -> None:
    left_first, right_first = ("left/1.png", "right/1.png"), ("right/1.png", "left/1.png")
    assert _print(_table(), image_names=left_first) != _print(_table(), image_names=right_first)
    assert _print(_table(), image_names=left_first) == _print(_table(), image_names=("left/1", "right/1"))


def test_minus_zero_is_zero() -> None:
    assert _print(_table(boxes=[[-0.0, 0, 10, 10], [1, 2, 3, 4], [5, 5, 5, 5]])) == _print(_table())


def test_ground_truth_and_predictions_of_equal_boxes_differ() -> None:
    assert _print(_table(score=None)) != _print(_table())


def test_one_scene_has_one_fingerprint_in_every_format_that_keeps_its_digits(sample_data: Path) -> None:
    coco = evaluate(sample_data / "coco/gt.json", sample_data / "coco/better.json")
    csv = evaluate(sample_data / "csv/gt.csv", sample_data / "csv/better.csv")
    mixed = evaluate(sample_data / "coco/gt.json", sample_data / "csv/better.csv")
    assert csv.gt.fingerprint == mixed.gt.fingerprint == coco.gt.fingerprint
    assert mixed.pred.fingerprint == coco.pred.fingerprint
    assert mixed.signature == coco.signature


def test_the_order_of_a_file_does_not_change_the_signature(sample_data: Path) -> None:
    gt, pred = (
        load(sample_data / path, role=role) for path, role in (("coco/gt.json", "gt"), ("coco/better.json", "pred"))
    )
    turned = replace(gt, boxes=gt.boxes.take(np.arange(len(gt.boxes))[::-1]))
    assert evaluate(turned, pred).signature == evaluate(gt, pred).signature


def test_the_fields_of_a_signature_are_its_parts_by_name() -> None:
    fields_of = signature_fields(_sign(COCO.with_options(class_agnostic=True), selection=("score_min=0.1",)))
    assert " ".join(fields_of) == (
        "protocol iou ap max_dets areas match iou_ties score_ties ignored reusable crowd pixel epsilon class_agnostic"
        " score_min gt pred v"
    )
    assert (fields_of["protocol"], fields_of["iou"], fields_of["score_min"]) == ("coco", "0.5:0.95:0.05", "0.1")


def test_a_short_signature_shows_the_inputs_and_differs_where_the_long_one_does() -> None:
    assert re.fullmatch(r"coco\|gt=g\|pred=p\|v=1\|rules=[0-9a-f]{8}", short_signature(_sign(COCO)))
    rules = {field: _rules_for(field) for field in CHANGES}
    changed = [rules[field].with_options(**{field: value}) for field, value in CHANGES.items()]
    assert len({short_signature(_sign(one)) for one in (COCO, *changed)}) == len(CHANGES) + 1
    assert short_signature(_sign(COCO, selection=("classes=dog",))) != short_signature(_sign(COCO))


def test_names_cannot_pass_for_other_parts_of_a_signature() -> None:
    # "%7C" is a bar, "%2C" a comma, "%0A" a line feed, as in URLs.
    assert quoted("a|gt=1,b\n50%") == "a%7Cgt=1%2Cb%0A50%25"
    assert quoted("日本 cat") == "日本 cat"
    odd = COCO.with_options(name="x|v=2", areas=(AreaRange("all|v=3", 0.0, 1.0),))
    assert signature_fields(_sign(odd))["v"] == "1"


def test_a_selection_of_classes_is_signed_in_any_order_and_each_name_by_itself(sample_data: Path) -> None:
    paths = sample_data / "coco/gt.json", sample_data / "coco/better.json"
    first, *others = (evaluate(*paths, classes=names).signature for names in (["dog", "car"], ["car", "dog", "dog"]))
    assert "|classes=car,dog|" in first
    assert others == [first]


def test_operating_point_and_number_of_images_are_signed(sample_data: Path) -> None:
    # The sample has 12 images.
    paths = sample_data / "coco/gt.json", sample_data / "coco/better.json"
    assert "|images=12|" in evaluate(*paths).signature
    assert evaluate(*paths, score=1).signature == evaluate(*paths, score=1.0).signature
    assert "|score=best-f1|" in evaluate(*paths, score="best-f1").signature
