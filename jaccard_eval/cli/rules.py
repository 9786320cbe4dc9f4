"""The options of the rules: a protocol, what is changed of it, and what is compared."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from jaccard_eval.cli.options import NUMBER, PROTOCOL, SCORE, section
from jaccard_eval.cli.parse import (
    OneOf,
    RunOptions,
    parse_areas,
    parse_iou,
    parse_max_dets,
    parse_names,
    parse_sigmas,
    parsed_by,
)
from jaccard_eval.data.known_protocols import IOU_TYPES
from jaccard_eval.extensions import SIMILARITIES
from jaccard_eval.options import SideOptions

_rule = section("Protocol")

# Of the options that the fields of a dataclass declare, the type decides how a text is read.
_BY_TYPE: dict[str, dict[str, Any]] = {
    "bool": {"is_flag": True},
    "float | None": NUMBER,
    "Sequence[str]": {"metavar": "A,B,...", "callback": parsed_by(parse_names)},
}

PROTOCOL_OPTIONS: list[click.Parameter] = [
    _rule(
        "--protocol",
        **PROTOCOL,
        default="coco",
        basic=True,
        help="Rules (default coco): 'jaccard-eval help protocols'.",
    ),
    _rule(
        "--iou",
        metavar="IOU",
        basic=True,
        callback=parsed_by(parse_iou),
        help="IoU thresholds: 0.5 or 0.5,0.75 or 0.5:0.95:0.05.",
    ),
    _rule(
        "--max-dets",
        metavar="N,...|none",
        callback=parsed_by(parse_max_dets),
        help="Detections kept per image and class.",
    ),
    _rule(
        "--areas",
        metavar="NAME=LOW:HIGH,...",
        callback=parsed_by(parse_areas),
        help="Area ranges in square pixels, such as small=0:32^2,large=32^2:inf.",
    ),
    _rule("--class-agnostic", is_flag=True, help="Treat all classes as one."),
    _rule(
        "--difficult",
        type=OneOf(("count", "ignore")),
        help="Count objects marked difficult, or ignore them and those marked ignore. Default: as the protocol does.",
    ),
    *(
        _rule(
            f"--{field.name.replace('_', '-')}",
            help=field.metadata["help"],
            basic=field.metadata.get("basic", False),
            **_BY_TYPE[str(field.type)],
        )
        for field in fields(SideOptions)
        if field.metadata
    ),
    _rule(
        "--score",
        **SCORE,
        basic=True,
        help="Also precision, recall and F1 at a score: 0.4, best-f1, precision=0.9, recall=0.8 or fppi=1.",
    ),
]

SHAPE_OPTIONS: list[click.Parameter] = [
    _rule(
        "--iou-type",
        type=OneOf(IOU_TYPES, SIMILARITIES),
        metavar="KIND",
        basic=True,
        help="By bbox, segm, boundary, keypoints, obb or probiou.",
    ),
    _rule(
        "--sigmas",
        metavar="S,...|NAME",
        callback=parsed_by(parse_sigmas),
        help="Sigma of each keypoint, where they are not COCO's 17: numbers, one for all, or ap10k, crowdpose,"
        " humanart, wholebody.",
    ),
    _rule(
        "--dilation-ratio",
        type=float,
        metavar="SHARE",
        help="Width of boundaries, as a share of the image diagonal. Default: 0.02.",
    ),
]


def rule_arguments(options: RunOptions) -> dict[str, Any]:
    """Return the rules as the verbs of `api` take them; area ranges only where some are given."""
    rules = {name: getattr(options, name) for name in ("protocol", "iou", "max_dets", "class_agnostic", "difficult")}
    shapes = {name: getattr(options, name) for name in ("iou_type", "sigmas", "dilation_ratio")}
    # Not every command has those of shapes.
    rules |= {name: value for name, value in shapes.items() if value is not None}
    if options.areas is None:
        return rules
    from jaccard_eval.data.protocol import get_protocol

    # Headline metrics use the first range: that of the protocol, unless one of its name is given.
    everything = get_protocol(options.protocol).areas[0]
    own = [area for area in options.areas if area.name == everything.name] or [everything]
    return rules | {"areas": (*own, *(area for area in options.areas if area.name != everything.name))}
