"""From a command line to the rules of a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaccard_eval.data.protocol import AreaRange

RULES = ("protocol", "iou", "max_dets", "class_agnostic")


def rule_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the rules as `api.evaluate` and its like take them; with area ranges where the command knows any."""
    rules = {name: options[name] for name in RULES}
    return rules | ({"areas": _areas(options["areas"], options["protocol"])} if "areas" in options else {})


def _areas(ranges: tuple[AreaRange, ...] | None, protocol: str) -> tuple[AreaRange, ...] | None:
    """Put the range that headline metrics use first, the protocol's own when none is given."""
    if ranges is None:
        return None
    from jaccard_eval.data.protocol import get_protocol

    everything = get_protocol(protocol).areas[0]
    own = [area for area in ranges if area.name == everything.name] or [everything]
    return (*own, *(area for area in ranges if area.name != everything.name))
