"""From rows of a Hugging Face data set written as JSON, with the objects of an image in lists, to the draft."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.errors import Where
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import is_folder, read_text
from jaccard_eval.reading.json.metadata import find_metadata
from jaccard_eval.reading.json.record import Record
from jaccard_eval.reading.json.values import looks_like_json_lines, parse_json, parse_json_lines
from jaccard_eval.reading.splits import choose_split
from jaccard_eval.reading.tabular.objects.rows import add_object_rows


def read_rows(path: Path, draft: Draft) -> None:
    """Add the images, classes and boxes of rows to the draft.

    Raises
    ------
    DataError
        When the file cannot be read, or there is no such split; problems of rows are among the draft's findings.
    """
    file = _file_of_split(path, draft) if is_folder(path) else path
    text = read_text(file)
    if file.suffix.lower() == ".jsonl" or looks_like_json_lines(text):
        lines = parse_json_lines(file, text, draft.findings)
        placed = [(value, Where(str(file), line=number)) for number, value in lines]
    else:
        document = parse_json(file, text)
        rows = document if isinstance(document, list) else [document]
        placed = [(value, Where(str(file), record=f"[{number}]")) for number, value in enumerate(rows)]
    records = [Record.of(value, where, draft.findings) for value, where in placed]
    draft.findings.raise_errors()
    add_object_rows([record.values for record in records], lambda row: records[row].where, draft)


def _file_of_split(folder: Path, draft: Draft) -> Path:
    files, asked = find_metadata(folder), draft.options.split
    if "" in files:
        return files[""]
    split = choose_split(asked, files, Where(str(folder)), draft.findings)
    draft.details.append(f"split {split}")
    return files[split]
