"""From one protocol to another, one rule after another: each step is a protocol with one more rule changed."""

from __future__ import annotations

from collections.abc import Iterator

from jaccard_eval.data.protocol import Protocol

RULES = (  # the order of the steps, and the fields that only make sense together
    ("crowd and ignored boxes", ("ignored_flags", "reusable_flags", "crowd_overlap")),
    ("caps on detections", ("max_dets",)),
    ("area ranges", ("areas",)),
    ("pixels added to sides", ("pixel_offset",)),
    ("assignment", ("assignment", "iou_ties")),
    ("order of equal scores", ("score_ties",)),
    ("interpolation", ("interpolation", "recall_points", "precision_epsilon")),
    ("IoU thresholds", ("iou_thresholds",)),
)


def protocol_steps(start: Protocol, end: Protocol) -> Iterator[tuple[str, str, Protocol]]:
    """Yield each rule that differs, what changes, and the protocol after it; the last one has all rules of `end`.

    Classes without ground truth are undefined under every protocol, so that they are no step.
    """
    now = start
    for rule, names in RULES:
        changes = {name: getattr(end, name) for name in names if getattr(end, name) != getattr(now, name)}
        if changes:
            text = ", ".join(f"{name}: {_text(getattr(now, name))} -> {_text(new)}" for name, new in changes.items())
            now = now.with_options(**changes)
            yield rule, text, now


def _text(value: object) -> str:
    if isinstance(value, tuple):
        shown = [getattr(one, "name", None) or _text(one) for one in value]
        return "+".join(shown if len(shown) <= 4 else [shown[0], "...", shown[-1]]) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
