"""The verbs as programs call them: what may change a number is a Python warning, and advice names keywords."""

from __future__ import annotations

import functools
import inspect as signatures
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jaccard_eval import inputs
from jaccard_eval.api import boxes, files, suppression
from jaccard_eval.errors import JaccardEvalError
from jaccard_eval.findings import issue_warnings
from jaccard_eval.fixes import Keywords

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def for_programs(verb: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Return a verb that issues the warnings among the findings of what it returns, in the name of its caller.

    The texts of warnings and errors name its keywords; their findings stay as documents have them.
    """
    wording = Keywords(frozenset(signatures.signature(verb).parameters))

    @functools.wraps(verb)
    def called(*args: Parameters.args, **keywords: Parameters.kwargs) -> Returned:
        try:
            returned = verb(*args, **keywords)
        except JaccardEvalError as error:
            error.args = (error.told(wording),)
            raise
        issue_warnings(getattr(returned, "findings", ()), wording=wording)
        return returned

    called.__module__ = __name__  # by which it is pickled
    return called


# The command line calls those below, and prints findings itself.
compare = for_programs(boxes.compare)
convert = for_programs(files.convert)
evaluate = for_programs(boxes.evaluate)
explain = for_programs(boxes.explain)
gate = for_programs(files.gate)
inspect = for_programs(boxes.inspect)
load = for_programs(inputs.load)
nms = for_programs(suppression.nms)
panoptic = for_programs(files.panoptic)
pixels = for_programs(files.pixels)
sensitivity = for_programs(boxes.sensitivity)
verify = for_programs(files.verify)
