"""What running an evaluation again gives: the saved and the new value of everything that is not the same."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from jaccard_eval.data.document import Also, written_as
from jaccard_eval.data.result import Result
from jaccard_eval.data.signature import other_signatures
from jaccard_eval.findings import Finding
from jaccard_eval.frozen import dataclass
from jaccard_eval.text import pluralise

Value = str | float | None
VERSION_FIELD = "signature.v"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same; None where it is undefined or only the other side has it."""

    name: str  # its place in the document: ``metrics.AP``, ``signature.gt``, ``per_class.dog.AP50``
    saved: Value
    again: Value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Verification(Result):
    r"""A saved result and a run of the same evaluation.

    Parameters
    ----------
    path : str
        The saved result, as the user named it.
    saved_kind : str
        What it is a result of, such as "evaluation" and "gate".
    gt, pred : str
        The inputs, as the user named them; of verdicts, what was judged and its baseline, empty without one.
    signature, saved_signature : str
        Of the new run, and of the saved one.
    compared : int
        How many values were compared.
    differences : tuple of Difference
        Empty when everything is equal, to the last bit. The version of the tool is a difference as well, but does not
        make a result unequal.
    findings : tuple of Finding
        What differs, as an error; another version, as a warning.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from jaccard_eval import evaluate, verify
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     gt, pred, saved = folder / "gt.csv", folder / "pred.csv", folder / "result.json"
    ...     _ = gt.write_text("image,class,xmin,ymin,xmax,ymax\na,dog,0,0,10,10\n")
    ...     _ = pred.write_text("image,class,xmin,ymin,xmax,ymax,score\na,dog,0,0,10,10,0.9\n")
    ...     evaluate(gt, pred).save(saved)
    ...     found = verify(saved, gt, pred)
    >>> found.equal, found.differences
    (True, ())
    """

    path: str = field(metadata=written_as("result"))
    saved_kind: str
    gt: str = field(metadata=written_as("inputs.gt.path"))
    pred: str = field(metadata=written_as("inputs.pred.path"))
    version: str
    signature: str
    saved_signature: str
    compared: int
    differences: tuple[Difference, ...]
    findings: tuple[Finding, ...]

    kind: ClassVar[str] = "verification"
    reported_by: ClassVar[str] = "verify.report"
    also: ClassVar[Also] = (other_signatures, lambda result: {"equal": result.equal})

    def _summary(self) -> str:
        differing = f"{len(self.differences):,} of {pluralise(self.compared, 'value')} differ"
        return f"{self.path}: {'equal' if self.equal else 'not equal'}, {differing}"

    @property
    def equal(self) -> bool:
        """Whether inputs, rules and numbers are the same; another version of the tool may have made them."""
        return all(difference.name == VERSION_FIELD for difference in self.differences)
