"""The advice of messages in the words of Python: ``--pred-box xyxy`` is ``pred_options=ReadOptions(box="xyxy")``.

Findings name the options of the command line, whose documents must not depend on who reads them; a program that calls
the library sees their texts through here.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from jaccard_eval.data.protocol import ProtocolOptions
from jaccard_eval.options import EvaluateOptions, ReadOptions
from jaccard_eval.text import is_numeral

READING = frozenset(field.name for field in fields(ReadOptions))
KEYWORDS = {field.name for option in (EvaluateOptions, ProtocolOptions) for field in fields(option)}
SWITCHES = frozenset(
    {"class_agnostic", "confusion", "drop_duplicates", "drop_inverted", "images_in_common", "lossy", "replace"}
)
LISTS = frozenset({"allow", "classes", "exclude_classes", "names"})
NUMBER_LISTS = frozenset({"ignore", "keypoint_order", "max_dets"})
NUMBERS = frozenset({"assume_score", "background", "bootstrap", "nms", "origin", "score", "score_min"})
# What `compare` takes in its own options.
RESAMPLING = frozenset({"bootstrap"})
# Options that the library has by another name.
RENAMED = {"force": "replace", "list": "list_file"}
# What the command line does with files, the library does with results.
CALLS: tuple[tuple[str, str], ...] = (
    (r"'?(?:jaccard-eval )?evaluate GT PRED -o ([^\s']+) -o ([^\s';]+)'?", r'result.save("\1") and result.save("\2")'),
    (r"'jaccard-eval evaluate GT PRED -o ([^\s']+)'", r'evaluate(gt, pred).save("\1")'),
    (
        r"'jaccard-eval panoptic GT PRED --against OLD_PRED' instead of --baseline",
        "gate(panoptic(gt, pred), gates, baseline=panoptic(gt, old_pred))",
    ),
    (r" \(--fail-drop\)", ""),
    (r"(?<=with )-o (\S+?)(?=[.;]?(?:\s|$))", r'result.save("\1")'),
    (r"(?<=with )--update-baseline", "result.save(baseline)"),
    (r"--allow-missing-baseline", 'Gates(..., missing_baseline="pass")'),
    (r"--baseline FILE", "baseline=..."),
    (r"--metric (\S+)=VALUE", r'metrics={"\1": ...}'),
)
# Words that follow an option in a sentence; whatever else does is its value.
_WORDS = "and|are|be|count|counts|file|folder|for|if|is|leave|lists|must|needs|or|should|to|too|where|with"
_VALUE = rf"(?: (?!(?:{_WORDS})\b|--)('[^']*'|\d+(?:,\d+)+|[^\s,;()]*[^\s,;().:?]))?"
_OPTION = rf"(?<![\w-])--([a-z][a-z-]*[a-z]){_VALUE}"
_RUN = re.compile(rf"{_OPTION}(?: {_OPTION})*")
_ONE = re.compile(_OPTION)


def in_python(text: str, keywords: Collection[str] = frozenset(KEYWORDS)) -> str:
    """Return a message with keywords in place of options; `keywords` are those of the function that was called.

    Examples
    --------
    >>> in_python("Rerun with --pred-box xyxy --pred-units norm.")
    'Rerun with pred_options=ReadOptions(box="xyxy", units="norm").'
    >>> in_python("Choose with --split.", ["role", "options"])
    'Choose with options=ReadOptions(split=...).'
    """
    if "-" not in text:
        return text
    for pattern, call in CALLS:
        text = re.sub(pattern, call, text)
    # What stays of commands is for a terminal.
    parts = re.split(r"('jaccard-eval partition [^']*')", text)
    parts[::2] = [_RUN.sub(lambda run: _arguments(run[0], keywords), part) for part in parts[::2]]
    return "".join(parts)


def _arguments(run: str, keywords: Collection[str]) -> str:
    """Return options that follow each other as arguments; those of one side together."""
    arguments: dict[str, dict[str, str]] = {}
    for name, value in _ONE.findall(run):
        keyword, option = _place_of(name.replace("-", "_"), keywords)
        arguments.setdefault(keyword, {})[option] = _literal(option or keyword, value)
    texts = []
    for keyword, options in arguments.items():
        given = ", ".join(f"{option}={value or '...'}" for option, value in options.items() if option)
        kind = "CompareOptions" if options.keys() & RESAMPLING else "ReadOptions"
        # Without a value, a sentence is about the keyword.
        plain = f"{keyword}={options['']}" if options.get("") else keyword
        texts.append(f"{keyword}={kind}({given})" if given else plain)
    return ", ".join(texts)


def _place_of(name: str, keywords: Collection[str]) -> tuple[str, str]:
    """Return the keyword of an option, and its name in the `ReadOptions` there; empty where it is none of these."""
    if name == "iou_type" and name in keywords:
        return name, ""
    side, _, rest = name.partition("_")
    if side in ("gt", "pred") and rest in (*READING, "format"):
        name = rest
    else:
        # What both sides share is usually missing at the ground truth; only predictions have scores.
        side = "pred" if name == "assume_score" else "gt"
    if name == "format":
        own = "source_format" if "source_format" in keywords else "format_name"
        return (f"{side}_format" if f"{side}_format" in keywords and own not in keywords else own), ""
    if name in RESAMPLING - {*keywords} and "options" in keywords:
        return "options", name
    if name in READING:
        is_own = f"{side}_options" not in keywords and "options" in keywords
        return ("options" if is_own else f"{side}_options"), name
    return RENAMED.get(name, name), ""


def _literal(name: str, value: str) -> str:
    """Return a value as Python writes it; empty where the message names none."""
    if name in SWITCHES:
        return "True"
    text = "".join(shlex.split(value)) if value.startswith("'") else value
    if not text or text.isupper() or "|" in text:  # FILE, DIR, NAME; or a choice
        return ""
    if name == "class_map" and "=" in text:
        return _quoted(dict(pair.split("=", 1) for pair in text.split(",")))
    if name == "iou":
        return _thresholds(text)
    if name in LISTS | NUMBER_LISTS:
        parts = [] if text == "none" else text.split(",")
        return f"[{', '.join(part if name in NUMBER_LISTS else _quoted(part) for part in parts)}]"
    return text if name in NUMBERS and is_numeral(text) else _quoted(text)


def _thresholds(text: str) -> str:
    if ":" not in text:
        return f"[{text}]"
    start, stop, step = map(float, text.split(":"))
    return str([round(start + i * step, 6) for i in range(round((stop - start) / step) + 1)])


def _quoted(value: str | Mapping[str, Any]) -> str:
    """Return a text, or a mapping of texts, in double quotes."""
    if isinstance(value, str):
        inner = ast.unparse(ast.Constant(value))[1:-1]
        return f'"{inner}"' if '"' not in inner else repr(value)
    return "{" + ", ".join(f"{_quoted(key)}: {_quoted(item)}" for key, item in value.items()) + "}"
