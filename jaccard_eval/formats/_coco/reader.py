"""From a COCO JSON file to a draft: the quick reader where it can, the tolerant one where it must."""

from __future__ import annotations

from pathlib import Path

from jaccard_eval.formats import ReadOptions
from jaccard_eval.formats._coco.columns import result_columns, truth_columns
from jaccard_eval.formats._coco.dataset import add_results, add_truth
from jaccard_eval.formats._coco.records import Content, Layout
from jaccard_eval.formats._coco.strict import decode_plain_results, decode_results, decode_truth
from jaccard_eval.reading import files
from jaccard_eval.reading.draft import Draft


def read_file(path: Path, draft: Draft, options: ReadOptions) -> None:
    """Add the images, categories and boxes of a COCO JSON file.

    Raises
    ------
    DataError
        With every fault of the file.
    """
    data = files.read_bytes(path)
    if not data.isascii() or b"\0" in data:
        files.decode(path, data)  # the typed decoder looks at the encoding of the texts it keeps, and at no others
    if options.role == "gt":
        _read_truth(path, data, draft)
    else:
        _read_results(path, data, draft)


def _read_truth(path: Path, data: bytes, draft: Draft) -> None:
    decoded = decode_truth(data)
    if decoded is None:
        from jaccard_eval.formats._coco.tolerant import read_truth

        content = read_truth(path, files.decode(path, data), draft.findings)
        decoded = content, truth_columns(content.boxes)
    add_truth(draft, *decoded)


def _read_results(path: Path, data: bytes, draft: Draft) -> None:
    plain = decode_plain_results(data)
    if plain is not None:
        add_results(draft, Content(layout=Layout.ARRAY, boxes=[]), plain)
        return
    scores_optional = draft.options.assume_score is not None
    decoded = decode_results(data, scores_optional=scores_optional)
    if decoded is None:
        from jaccard_eval.formats._coco.tolerant import read_results

        content = read_results(path, files.decode(path, data), draft.findings, scores_optional=scores_optional)
        decoded = content, result_columns(content.boxes)
    add_results(draft, *decoded)
