"""Fixes: what would help, as data, and the words for it where it is shown: flags, keywords, or keys of a configuration.

A fix is one of two kinds. A *reading* reads differently what was read (other units, a map of classes): it was measured,
and has the value of a metric as given and with the fix. *Missing* is what only the user has: a file, scores, what
columns mean, a correction of the data; it claims no number. Standard library only.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import field
from functools import partial
from typing import Any
from typing import Protocol as TypingProtocol

from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.text import is_numeral

READING, MISSING = "reading", "missing"
# The value of an option; several, one of which is right; None, which only the user can give; "" to omit it.
Value = str | tuple[str, ...] | None
ON = "true"  # the value of a switch
COMMAND = "command"  # means a whole command line, as in "evaluate GT PRED -o run.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What would help: options by their names (``pred_box``), and a sentence with places for them.

    In the sentence, ``{pred_box}`` means the option with its value, ``{pred_box:xyxy}`` for it with this value,
    ``{options}`` for all of them, and ``{changes}`` for "with" those that are given and "without" those that are not.
    """

    kind: str
    options: Mapping[str, Value]
    words: str
    metric: str = ""
    before: float | None = None
    after: float | None = None
    allow: str = ""  # the code by which a run that stopped goes on without the fix

    def __post_init__(self) -> None:
        if self.kind == READING:
            if self.before is None or self.after is None or not self.after > self.before:
                raise ValueError(f"a reading is advised when it was measured to be better: {self}")
        elif self.kind != MISSING or not (self.before is self.after is None):
            raise ValueError(f"a fix is a reading that was measured, or what is missing, which has no number: {self}")
        if not self.words or {*self.options} - _named(self.words, self.options):
            raise ValueError(f"the sentence of a fix names all of its options: {self}")

    @classmethod
    def reading(
        cls, options: Mapping[str, Value], *, metric: str, before: float, after: float, words: str = "Rerun {changes}."
    ) -> Fix:
        """Advise another reading of what was read, which was measured."""
        values = float(before), float(after)
        return cls(kind=READING, options=options, words=words, metric=metric, before=values[0], after=values[1])

    @classmethod
    def choice(cls, options: Mapping[str, Value], *, metric: str, before: float, after: float, words: str) -> Fix:
        """Name another reading that was measured: one that is no better is left to who means it, without a number."""
        if after > before:
            return cls.reading(options, metric=metric, before=before, after=after, words=words)
        return cls.missing(words, **options)

    @classmethod
    def missing(cls, words: str, /, **options: Value) -> Fix:
        """Report what is missing and what for, or what is to be corrected."""
        return cls(kind=MISSING, options=options, words=words)

    @classmethod
    def of_side(cls, role: str, words: str, /, **options: Value) -> Fix:
        """Report what is missing to read one side: ``{box}`` is its own option, ``{pred_box}``."""
        named = {f"{role}_{name}": value for name, value in options.items()}
        return cls.missing(_PLACE.sub(partial(_prefixed, role=role, names={*options}), words), **named)

    def __hash__(self) -> int:
        return hash((self.kind, self.words, *self.options.items(), self.before, self.after, self.allow))

    def __str__(self) -> str:
        return self.worded(FLAGS)

    def worded(self, wording: Wording) -> str:
        """Return the sentence."""

        def replaced(found: re.Match[str]) -> str:
            name, value = found[1], found[2]
            if name in self.options:
                return wording.phrase({name: self.options[name] if value is None else value})
            if name == "changes" and self.options:
                out = {option: None for option, given in self.options.items() if given == ""}
                given = {option: value for option, value in self.options.items() if value != ""}
                return " and ".join(
                    f"{word} {wording.phrase(part)}" for word, part in (("without", out), ("with", given)) if part
                )
            return wording.phrase(self.options) if name == "options" and self.options else found[0]

        def either(found: re.Match[str]) -> str:
            first, second = (_PLACE.sub(replaced, place) for place in found.groups())
            return first if first == second else f"{first} or {second}"

        # Where one side alone is read, both places are the same keyword.
        text = _PLACE.sub(replaced, _EITHER.sub(either, self.words))
        return f"{text} To go on as it is, add {wording.phrase({'allow': self.allow})}." if self.allow else text


_PLACE = pattern(r"\{([a-z_]+)(?::([^{}]*))?\}")
_EITHER = pattern(r"(\{[a-z_]+\}) or (\{[a-z_]+\})")


def _prefixed(place: re.Match[str], role: str, names: Collection[str]) -> str:
    return f"{{{role}_{place[0][1:]}" if place[1] in names else place[0]


def _named(words: str, options: Mapping[str, Value]) -> set[str]:
    found = {name for name, _ in _PLACE.findall(words)}
    return {*options} if found & {"options", "changes"} else found


class Wording(TypingProtocol):
    """How options are written where a fix is shown."""

    def phrase(self, options: Mapping[str, Value]) -> str:
        """Write options with their values, or alone where the value is None."""


_METAVARS = {
    "against": "PRED",
    "baseline": "FILE",
    "colors": "FILE",
    "hierarchy": "FILE",
    "image_labels": "FILE",
    "gt_images": "DIR",
    "images": "DIR",
    "pred_images": "DIR",
    "list": "FILE",
    "scheduler": "ADDRESS",
    "scratch": "DIR",
}
_MOST_SPELLED = 3  # alternatives that are written in full


class Flags:
    """The command line: ``--pred-box xyxy``."""

    def phrase(self, options: Mapping[str, Value]) -> str:
        """Write options as a shell takes them."""
        return " ".join(self._one(name, value) for name, value in options.items())

    def _one(self, name: str, value: Value) -> str:
        if name == COMMAND:
            return f"'jaccard-eval {value}'"
        flag = "-o" if name == "output" else f"--{name.replace('_', '-')}"
        if isinstance(value, tuple):
            if len(value) > _MOST_SPELLED:
                return f"{flag} {'|'.join(value)}"
            return " or ".join(f"{flag} {shlex.quote(item)}" for item in value)
        text = _METAVARS.get(name, "") if value is None else "" if value == ON else shlex.quote(value)
        return f"{flag} {text}".rstrip()


FLAGS = Flags()


@dataclass(frozen=True, slots=True)
class Keys:
    """A configuration: ``pred-box = "xyxy" (table evaluate of jaccard-eval.toml)``."""

    path: str
    table: str
    is_yaml: bool = False

    def phrase(self, options: Mapping[str, Value]) -> str:
        """Write options as keys of the table of a command."""
        if COMMAND in options:
            return FLAGS.phrase(options)
        keys = ", ".join(self._one(name.replace("_", "-"), value) for name, value in options.items())
        return f"{keys} ({self.table} in {self.path})"

    def _one(self, key: str, value: Value) -> str:
        if value is None:
            return key
        values = value if isinstance(value, tuple) else (value,)
        mark = ": " if self.is_yaml else " = "
        return " or ".join(f"{key}{mark}{item if item == ON else _quoted(item)}" for item in values)


@dataclass(frozen=True, slots=True)
class Keywords:
    """Python: ``pred_options=ReadOptions(box="xyxy")``, in a call of a verb that has these parameters."""

    parameters: Collection[str]
    # What the verb calls otherwise, and what a caller can do about options that it does not have.
    renamed: Mapping[str, str] = field(default_factory=dict)
    by_hand: Mapping[str, str] = field(default_factory=dict)

    def phrase(self, options: Mapping[str, Value]) -> str:
        """Write options as arguments; those of one side together."""
        arguments: dict[str, dict[str, Value]] = {}
        for name, value in options.items():
            keyword, option = self._place_of(name)
            arguments.setdefault(keyword, {})[option] = value
        texts = []
        for keyword, inner in arguments.items():
            given = ", ".join(_argument(option, value) for option, value in inner.items() if option)
            if "" in inner:
                texts.append(self._plain(keyword, inner[""]))
            else:
                kind = "CompareOptions" if inner.keys() & _RESAMPLING else "ReadOptions"
                texts.append(f"{keyword}={kind}({given})")
        return ", ".join(texts)

    def _plain(self, keyword: str, value: Value) -> str:
        if keyword == COMMAND:
            return _call(str(value))
        if keyword in _AS_CALLS:
            return _AS_CALLS[keyword].format("..." if value is None else _quoted(str(value)))
        text = keyword if value is None else _argument(keyword, value)
        if not self.parameters or keyword in self.parameters:
            return text
        hand = self.by_hand.get(keyword)
        # What this verb does not take, the main one may.
        return f"evaluate(..., {text})" if hand is None else hand.format(_value(keyword, value))

    def _place_of(self, name: str) -> tuple[str, str]:
        """Return the keyword of an option, and its name in the `ReadOptions` there; empty where it is none of these."""
        name = self.renamed.get(name, name)
        if name in self.parameters or name in self.by_hand:
            return name, ""
        side, _, rest = name.partition("_")
        if side in ("gt", "pred") and rest in (*_OF_READING, "format"):
            name = self.renamed.get(rest, rest)
            if name in self.by_hand:
                return name, ""
        else:
            # What both sides share is usually missing at the ground truth; only predictions have scores.
            side = "pred" if name == "assume_score" else "gt"
        if name == "format":
            own = "source_format" if "source_format" in self.parameters else "format_name"
            return (f"{side}_format" if f"{side}_format" in self.parameters else own), ""
        if name in _RESAMPLING and "options" in self.parameters:
            return "options", name
        if name in _OF_READING:
            is_own = f"{side}_options" not in self.parameters and "options" in self.parameters
            return ("options" if is_own else f"{side}_options"), name
        return _RENAMED.get(name, name), ""


# Fields of `options.ReadOptions`, and what `compare` takes in its own options: a test compares both.
_OF_READING = frozenset(
    {"box", "units", "names", "images", "columns", "split", "assume_score", "origin", "resized", "drop_inverted"}
    | {
        "skip_invalid",
        "angle",
        "keypoint_order",
        "mask_axes",
        "hierarchy",
        "image_labels",
        "class_descriptions",
        "iou_type",
    }
)
_RESAMPLING = frozenset({"bootstrap"})
# What the command line does with files, the library does with results and rules.
_AS_CALLS = {
    "allow_missing_baseline": 'Gates(..., missing_baseline="pass")',
    "fail_drop": "max_drop",
    "metric": "metrics={{{}: ...}}",
    "output": "result.save({})",
    "update_baseline": "result.save(baseline)",
}
_RENAMED = {"force": "replace", "list": "list_file"}  # what the library calls otherwise everywhere
_LISTS = frozenset({"allow", "classes", "exclude_classes", "names"})
_NUMBER_LISTS = frozenset({"ignore", "keypoint_order", "max_dets"})
_NUMBERS = frozenset({"assume_score", "background", "bootstrap", "nms", "origin", "score", "score_min"})


def _call(command: str) -> str:
    """Return a command line as a call: what it writes is saved, and its options are arguments."""
    words = shlex.split(command)
    places, options, saved = [], [], ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-o":
            saved += f".save({_quoted(next(rest))})"
        elif word.startswith("--"):
            value = next(rest)
            options.append(f"{word[2:].replace('-', '_')}={value.lower() if value.isupper() else _quoted(value)}")
        else:
            places.append(word.lower() if word.isupper() else _quoted(word))
    return f"{words[0]}({', '.join([*places, *options])}){saved}"


def _argument(name: str, value: Value) -> str:
    if isinstance(value, tuple) and len(value) <= _MOST_SPELLED:
        return " or ".join(f"{name}={_value(name, item)}" for item in value)
    return f"{name}={_value(name, value)}"


def _value(name: str, value: Value) -> str:
    """Return a value as Python writes it."""
    if value is None or isinstance(value, tuple):
        return "..." if value is None else "|".join(_value(name, item) for item in value)
    if value == ON:
        return "True"
    if name.endswith("class_map") and "=" in value:
        return _quoted(dict(pair.split("=", 1) for pair in value.split(",")))
    if name == "iou":
        return _thresholds(value)
    if name in _LISTS | _NUMBER_LISTS:
        parts = [] if value == "none" else value.split(",")
        return f"[{', '.join(part if name in _NUMBER_LISTS else _quoted(part) for part in parts)}]"
    return value if name in _NUMBERS and is_numeral(value) else _quoted(value)


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


# What several readers ask for.
IMAGE_FOLDER = Fix.missing("Pass the image folder with {images}.", images=None)
IMAGES_OF = {role: Fix.of_side(role, IMAGE_FOLDER.words, images=None) for role in ("gt", "pred")}
SIZE_OR_FOLDER = Fix.missing("Write the true size, or remove it and pass {images}.", images=None)
NO_MASK_SCORES = Fix.missing(
    "Export the scores, or pass {protocol}, which needs none, or {assume_score} to rank all equally.",
    protocol="cells",
    assume_score="1.0",
)
NO_SCORES = Fix.missing("Export the scores, or pass {assume_score} to rank all equally.", assume_score="1.0")
