"""Saved results: JSON documents and the runs beside them, how they are known and read."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any, NoReturn

from jaccard_eval.errors import DataError, FindingLog, Where
from jaccard_eval.formats._files import head, read_bytes
from jaccard_eval.formats._npz.arrays import load_archive
from jaccard_eval.report.npz import DOCUMENT, SUFFIXES

_FIRST_KEY = re.compile(rb'\s*{\s*"(bootstrap|correspondence)"')


def read_document(path: Path) -> Any:
    """Return what a JSON file holds; of a saved run, the document within it.

    Raises
    ------
    DataError
        When it cannot be read or is no JSON.
    """
    if is_saved_run(path):
        return saved_document(path)
    data = read_bytes(path)
    try:  # the standard library reads lone surrogates, which a class may have in its name; msgspec refuses them
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise invalid_document(path, f"is not valid JSON: {error}") from None


def is_saved_run(source: object) -> bool:
    """Whether a source is the path of a saved run; predictions may be archives as well."""
    path = Path(source) if isinstance(source, str | Path) else None
    if path is None or path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{DOCUMENT}.npy" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def run_beside(path: Path) -> Path:
    """Return where the saved run of a JSON document stands, whether it is there or not; of a saved run, itself."""
    return path if path.suffix.lower() in SUFFIXES else path.with_suffix(SUFFIXES[0])


def saved_run_of(source: object) -> Path | None:
    """Return the saved run that a source stands for: itself, or that beside its JSON document; None for anything else.

    Raises
    ------
    DataError
        When the document of an evaluation has no run beside it, or that of another evaluation.
    """
    if is_saved_run(source):
        return Path(source)  # type: ignore[arg-type]
    path = Path(source) if isinstance(source, str | Path) else None
    if path is None or not _is_evaluation(path):
        return None
    beside = run_beside(path)
    if not is_saved_run(beside):
        raise _without_run(path, f"holds no match table, and there is no {beside.name} beside it")
    if saved_document(beside)["signature"] != read_document(path).get("signature"):
        raise _without_run(path, f"is of another evaluation than {beside.name} beside it")
    return beside


def saved_document(path: Path) -> dict[str, Any]:
    """Return the JSON document within a saved run.

    Raises
    ------
    DataError
        When it cannot be read back.
    """
    try:
        run = json.loads(load_archive(path, FindingLog()).arrays[DOCUMENT].tobytes())
        document: dict[str, Any] = {**run["result"]}
        return document | {"signature": str(document["signature"])}
    except (KeyError, TypeError, ValueError) as error:
        raise invalid_run(path, f"cannot be read back: {type(error).__name__}: {error}") from None


def _is_evaluation(path: Path) -> bool:
    """Whether a file begins as the JSON document of an evaluation does, the keys of which are sorted."""
    return path.suffix.lower() == ".json" and _FIRST_KEY.match(head(path)) is not None


def invalid_document(path: Path, detail: str) -> DataError:
    """Return the error of a file that is no result to go on with."""
    fix = "Write it with 'jaccard-eval evaluate GT PRED -o result.json'."
    return DataError.single("result-invalid", Where(str(path)), detail, fix=fix)


def invalid_run(path: Path, detail: str) -> DataError:
    """Return the error of a saved run that cannot be read back."""
    fix = "Write it with 'jaccard-eval evaluate GT PRED -o run.npz'."
    return DataError.single("result-invalid", Where(str(path)), detail, fix=fix)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _without_run(path: Path, detail: str) -> DataError:
    fix = "Write both: 'jaccard-eval evaluate GT PRED -o run.json -o run.npz'; or name ground truth and predictions."
    return DataError.single("result-invalid", Where(str(path)), detail, fix=fix)
