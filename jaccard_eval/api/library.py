"""The verbs as programs call them: what may change a number is a Python warning, and advice names keywords."""

from __future__ import annotations

import functools
import inspect as signatures
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from jaccard_eval import inputs
from jaccard_eval.api import boxes, files
from jaccard_eval.errors import JaccardEvalError, UsageError
from jaccard_eval.findings import issue_warnings
from jaccard_eval.fixes import Keywords
from jaccard_eval.text import quoted_value

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def for_programs(verb: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Return a verb that issues the warnings among the findings of what it returns, in the name of its caller.

    The texts of warnings and errors name its keywords; their findings stay as documents have them.
    """
    signature = signatures.signature(verb)
    wording = Keywords(frozenset(signature.parameters))

    @functools.wraps(verb)
    def called(*args: Parameters.args, **keywords: Parameters.kwargs) -> Returned:
        try:
            returned = verb(*args, **keywords)
        except JaccardEvalError as error:
            error.args = (error.told(wording),)
            raise
        except (AttributeError, OverflowError, TypeError, ValueError):
            refuse_wrong_types(signature.bind(*args, **keywords).arguments, signature.parameters)
            raise
        # Last, as what a verb reports itself is more exact; a wrong value may have had no effect at all.
        refuse_wrong_types(signature.bind(*args, **keywords).arguments, signature.parameters)
        issue_warnings(getattr(returned, "findings", ()), wording=wording)
        return returned

    called.__module__ = __name__  # by which it is pickled
    return called


LARGEST_FLOAT = 2**1023
NAMED = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "True or False"}
# By their names, as most are imported by nobody who does not use them.
CLASSES = ("AreaRange", "Bootstrap", "CompareOptions", "Protocol", "ReadOptions", "Slice")
NAMED |= {name: f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in CLASSES} | {"Mapping[str, str]": "a dict"}
PLAIN: dict[str, Callable[[Any], bool]] = {
    **{name: functools.partial(lambda name, value: name in _class_names(value), name) for name in CLASSES},
    "Mapping[str, str]": lambda value: isinstance(value, Mapping),
    "None": lambda value: value is None,
    "bool": lambda value: type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1)),
    "int": lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, Real) and (not isinstance(value, int) or abs(value) < LARGEST_FLOAT),
    "str": lambda value: isinstance(value, str),
    "os.PathLike[str]": lambda value: isinstance(value, os.PathLike),
}


def refuse_wrong_types(values: Mapping[str, Any], parameters: Mapping[str, signatures.Parameter]) -> None:
    """Raise a UsageError that names the arguments whose types are not those of the signature, as far as it is plain."""
    wrong: list[str] = []
    for name, given in values.items():
        is_each = parameters[name].kind is signatures.Parameter.VAR_POSITIONAL
        for value in given if is_each else (given,):
            wrong += _wrong_types(name, value, str(parameters[name].annotation))
    if wrong:
        raise UsageError("; ".join(wrong)) from None


def _wrong_types(name: str, value: Any, annotation: str) -> Iterator[str]:
    """Yield what is wrong with an argument, and with the fields of options."""
    parts = annotation.split(" | ")
    if is_dataclass(value):
        for item in fields(value):
            yield from _wrong_types(f"{name}: {item.name}", getattr(value, item.name), str(item.type))
    elif all(part in PLAIN or _item_of(part) in PLAIN for part in parts) and not any(
        _is_a(value, part) for part in parts
    ):
        items = [f"a list of {NAMED[_item_of(part)].partition(' ')[2]}s" for part in parts if _item_of(part)]
        names = [NAMED[part] for part in parts if part in NAMED] + items
        names += ["a path"] * ("os.PathLike[str]" in parts) + ["None"] * ("None" in parts)
        yield f"{name} must be {' or '.join(names)}, got {quoted_value(value)}"


def _class_names(value: Any) -> list[str]:
    return [kind.__name__ for kind in type(value).__mro__]


def _item_of(part: str) -> str:
    """Return what a sequence is of, "" for anything else."""
    return part.removeprefix("Sequence[").removesuffix("]") if part.startswith("Sequence[") else ""


def _is_a(value: Any, part: str) -> bool:
    if not _item_of(part):
        return PLAIN[part](value)
    # What can be read once has been read.
    if value is None:  # none are chosen
        return True
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return is_list and (not isinstance(value, Collection) or all(map(PLAIN[_item_of(part)], value)))


# The command line calls those below, and prints findings itself.
compare = for_programs(boxes.compare)
convert = for_programs(files.convert)
evaluate = for_programs(boxes.evaluate)
explain = for_programs(boxes.explain)
gate = for_programs(files.gate)
inspect = for_programs(boxes.inspect)
labels = for_programs(boxes.labels)
load = for_programs(inputs.load)
nms = for_programs(boxes.nms)
panoptic = for_programs(files.panoptic)
pixels = for_programs(files.pixels)
sensitivity = for_programs(boxes.sensitivity)
verify = for_programs(files.verify)
