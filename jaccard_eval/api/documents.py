"""Saved results as JSON documents: how they are read, by what judges them and by what runs them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from jaccard_eval.errors import DataError, Where
from jaccard_eval.formats._files import read_bytes


def read_document(path: Path) -> Any:
    """Return what a JSON file holds; of a saved run, the document within it.

    Raises
    ------
    DataError
        When it cannot be read or is no JSON.
    """
    if path.suffix.lower() == ".npz":
        from jaccard_eval.api.savedruns import is_saved_run, saved_document

        if is_saved_run(path):
            return saved_document(path)
    data = read_bytes(path)
    try:  # the standard library reads lone surrogates, which a class may have in its name; msgspec refuses them
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise invalid_document(path, f"is not valid JSON: {error}") from None


def invalid_document(path: Path, detail: str) -> DataError:
    """Return the error of a file that is no result to go on with."""
    fix = "Write it with 'jaccard-eval evaluate ... -o result.json'."
    return DataError.single("result-invalid", Where(str(path)), detail, fix=fix)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
