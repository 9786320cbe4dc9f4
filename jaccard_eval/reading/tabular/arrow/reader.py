"""From Parquet and Arrow files to a draft: the batches of all files as one table, and what their schemas say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jaccard_eval.errors import DataError, Where, shown
from jaccard_eval.extras import require
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.tabular.arrow.columns import EXTRA, ArrowColumn
from jaccard_eval.reading.tabular.arrow.files import Content, read_content
from jaccard_eval.reading.tabular.arrow.flatten import Batch
from jaccard_eval.reading.tabular.arrow.folders import Part, find_parts
from jaccard_eval.reading.tabular.arrow.metadata import Remarks, read_remarks
from jaccard_eval.reading.tabular.objects.adding import add_table
from jaccard_eval.reading.tabular.objects.columns import Column, ValueColumn
from jaccard_eval.reading.tabular.objects.rows import OBJECTS
from jaccard_eval.reading.tabular.objects.table import Table


def read_tables(path: Path, suffixes: Collection[str], draft: Draft) -> None:
    """Add the boxes of a file, or of all files of a folder, to the draft.

    Raises
    ------
    DataError
        When a file cannot be read, or files of a folder do not go together.
    MachineError
        When pyarrow is not installed.
    """
    parts = find_parts(path, suffixes, draft)
    contents = [_read_part(part, draft) for part in parts]
    draft.findings.raise_errors()
    table = _merged(parts, contents, draft)
    draft.findings.raise_errors()
    if table is not None:
        add_table(table, draft)


def _read_part(part: Part, draft: Draft) -> Content:
    """Read a file, and give it the columns that its path says."""
    try:
        content = read_content(part.path, draft.findings)
    except DataError as error:
        draft.findings.extend(error.findings)
        return Content()
    content.batches = [_with_constants(batch, part.columns) for batch in content.batches]
    return content


def _with_constants(batch: Batch, constants: Mapping[str, str | None]) -> Batch:
    arrow = require("pyarrow", extra=EXTRA)
    given = {name: value for name, value in constants.items() if name not in batch.columns}
    columns = {name: _constant(arrow, value, len(batch.rows)) for name, value in given.items()}
    return replace(batch, columns={**batch.columns, **columns})


def _constant(arrow: Any, value: str | None, n: int) -> Any:
    """Return a column of one value: a whole number where the text is one."""
    typed = None if value is None else int(value) if value.isdecimal() and len(value) <= 18 else value
    return arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(n, dtype=np.int32)), arrow.array([typed]))


def _merged(parts: list[Part], contents: list[Content], draft: Draft) -> Table | None:
    """Return one table of all batches."""
    arrow = require("pyarrow", extra=EXTRA)
    batches = [batch for content in contents for batch in content.batches]
    _check_alike(parts, contents, draft)
    try:
        tables = [
            arrow.table({name: _mergeable(arrow, one) for name, one in batch.columns.items()}) for batch in batches
        ]
        merged = arrow.concat_tables(tables, promote_options="permissive")
    except (arrow.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        fix = "Write all files with the same types."
        draft.findings.error("arrow-damaged", Where(draft.path), f"its parts do not go together: {reason}", fix=fix)
        return None
    inner = frozenset(name for batch in batches for name in batch.inner)
    rows = np.concatenate([batch.rows for batch in batches])
    positions = np.concatenate([batch.positions for batch in batches])
    sizes = [sum(len(batch.rows) for batch in content.batches) for content in contents]
    file_of_row = np.repeat(np.arange(len(parts)), sizes)

    def place(row: int, column: str | None) -> Where:
        where = Where(str(parts[file_of_row[row]].path), record=f"row {rows[row]}", field=column)
        return replace(where, field=f"{OBJECTS}[{positions[row]}].{column}") if column in inner else where

    cells: dict[str, Column] = {name: ArrowColumn(merged.column(name)) for name in merged.column_names}
    unread = (name for content in contents for name in content.unread if name not in cells)
    remarks = read_remarks(contents[0].metadata) if len(parts) == 1 else _shared_remarks(contents)
    return Table(
        cells={**cells, **{name: ValueColumn(()) for name in unread}},
        n_rows=len(rows),
        place=place,
        findings=draft.findings,
        listed=remarks.listed or bool(inner),
        units=remarks.units,
        class_names=remarks.class_names,
        named=remarks.named,
        keyed=remarks.own,
        bare=np.concatenate([batch.bare for batch in batches]) if inner else None,
    )


def _shared_remarks(contents: list[Content]) -> Remarks:
    """Return what all files of a folder say alike."""
    remarks = [read_remarks(content.metadata) for content in contents]
    return remarks[0] if all(one == remarks[0] for one in remarks) else Remarks()


def _check_alike(parts: list[Part], contents: list[Content], draft: Draft) -> None:
    """Report files that lack a column that another one has: its rows would be read without a word."""
    names = [{name for batch in content.batches for name in batch.columns} for content in contents]
    every = set().union(*names)
    for part, own in zip(parts, names, strict=True):
        missing = ", ".join(map(shown, sorted(every - own)))
        if missing:
            detail = f"no column {missing}, which other files of the folder have"
            draft.findings.error("csv-column-missing", Where(str(part.path)), detail, fix="Write all files alike.")


def _mergeable(arrow: Any, values: Any) -> Any:
    """Return texts of every type as indices of a dictionary, so that files that differ in it go together."""
    kind, coded = values.type, arrow.dictionary(arrow.int32(), arrow.string())
    types = arrow.types
    texts = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(texts) or types.is_large_string(texts) or types.is_string_view(texts)
    if not is_text:
        return values.dictionary_decode() if types.is_dictionary(kind) else values
    if kind == coded:
        values.dictionary.validate(full=True)  # which the validation of the whole leaves out
        return values
    plain = values.cast(texts) if types.is_dictionary(kind) else values
    return plain.cast(arrow.string()).dictionary_encode()
