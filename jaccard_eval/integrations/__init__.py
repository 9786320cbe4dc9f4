"""Attach an evaluation to a framework's own loop, one module a framework; each imports its framework when called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jaccard_eval.api.streaming import Evaluator
from jaccard_eval.frozen import dataclass

if TYPE_CHECKING:
    from jaccard_eval.data.result import EvaluationResult

Then = Callable[["EvaluationResult"], object]


@dataclass(slots=True, eq=False)
class Attached:
    """What `attach` leaves behind: the result of the last validation, None before the first one."""

    then: Then | None = None
    result: EvaluationResult | None = None

    def give(self, result: EvaluationResult) -> EvaluationResult:
        """Keep a result, and hand it on."""
        self.result = result
        if self.then is not None:
            self.then(result)
        return result

    def give_merged(self, states: Sequence[bytes]) -> EvaluationResult:
        """Keep the result of the states of all ranks."""
        first, *others = map(Evaluator.from_state, states)
        return self.give(first.merge(*others).compute())
