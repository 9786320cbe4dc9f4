"""What packages of third parties may rely on, as docs/extending.md shows; every other path may move in any release."""

from jaccard_eval.data.boxtable import BoxTable, Shapes
from jaccard_eval.data.metricref import BOXES, Metric
from jaccard_eval.data.protocol import AreaRange, ClassRule, Limit, Protocol, Subset, get_protocol
from jaccard_eval.data.result import OperatingPoint
from jaccard_eval.errors import UsageError
from jaccard_eval.findings import DataError, FindingLog, Severity, Where
from jaccard_eval.formats import Format
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.files import head, read_lines, read_text
from jaccard_eval.reading.lines import TextBoxes
from jaccard_eval.reading.peek import Kind, Likeness, Peek
from jaccard_eval.reading.rawboxes import CodedKeys, RawBoxes
from jaccard_eval.report import Reportable, Reporter, ReportOptions
from jaccard_eval.report.model import (
    Column,
    Headline,
    KeyValues,
    Note,
    Report,
    Section,
    Table,
    build_report,
    cell_text,
)
from jaccard_eval.similarity import Pairing, Similarity

__all__ = [
    "BOXES",
    "AreaRange",
    "BoxTable",
    "ClassRule",
    "CodedKeys",
    "Column",
    "DataError",
    "Draft",
    "FindingLog",
    "Format",
    "Headline",
    "KeyValues",
    "Kind",
    "Likeness",
    "Limit",
    "Metric",
    "Note",
    "OperatingPoint",
    "Pairing",
    "Peek",
    "Protocol",
    "RawBoxes",
    "ReadOptions",
    "Report",
    "ReportOptions",
    "Reportable",
    "Reporter",
    "Section",
    "Severity",
    "Shapes",
    "Similarity",
    "Subset",
    "Table",
    "TextBoxes",
    "UsageError",
    "Where",
    "build_report",
    "cell_text",
    "get_protocol",
    "head",
    "read_lines",
    "read_text",
]
