"""What packages of third parties may rely on to add a format; every path but this one may move in any release."""

from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import head, read_lines, read_text
from jaccard_eval.reading.lines import TextBoxes
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes

__all__ = [
    "CodedKeys",
    "DataError",
    "Draft",
    "FindingLog",
    "Format",
    "Kind",
    "Likeness",
    "Peek",
    "RawBoxes",
    "ReadOptions",
    "Severity",
    "TextBoxes",
    "UsageError",
    "Where",
    "head",
    "read_lines",
    "read_text",
]
