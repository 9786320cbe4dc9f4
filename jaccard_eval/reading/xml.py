"""Reading XML: the root by a look at the head, and whole documents that are refused where they could do harm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jaccard_eval.findings import DataError, FindingLog, Where
from jaccard_eval.fixes import Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.reading import files
from jaccard_eval.text import is_numeral, quoted_value

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DECLARED_ENCODING = b"encoding="
_DECLARATION_BYTES = 128
_ROOT = pattern(rb"<([A-Za-z_][\w.:-]*)")
_COMMENT = pattern(rb"<!--.*?(-->|$)", re.DOTALL)


def parse_xml(path: Path, *roots: str) -> Element:
    """Return the tree of a file whose outermost element must be one of `roots`; a DataError explains what is wrong."""
    from xml.etree.ElementTree import ParseError, fromstring  # not needed to look for a format

    data = files.read_bytes(path)
    try:
        # Where these bytes are missing there is no document type, in any encoding but those that write NULs.
        if b"<!DOCTYPE" in data or b"\0" in data:
            _check(path, data)
        element = fromstring(data)  # noqa: S314 - what is dangerous was refused
    except (ParseError, LookupError, ValueError) as error:
        _check(path, data)  # knows best what is wrong
        raise _unreadable(path, error) from None
    if local_name(element.tag) in roots and "}" in element.tag:  # in the namespace of a format
        for inner in element.iter():
            inner.tag = local_name(inner.tag)
    if element.tag not in roots:
        expected = " or ".join(map(quoted_value, roots))
        detail = f"the outermost element is {quoted_value(element.tag)}, expected {expected}"
        fix = Fix.missing(
            "Pass annotations of this format, or name the format with {gt_format} or {pred_format}.",
            gt_format=None,
            pred_format=None,
        )
        raise DataError.single("xml-root", Where(str(path)), detail, fix=fix)
    return element


def local_name(name: str) -> str:
    """Return the name of an element without its namespace, as ``{address}name`` or ``prefix:name``."""
    return name.rpartition("}")[2].rpartition(":")[2]


def _check(path: Path, data: bytes) -> None:
    """Raise a DataError where the text is not XML, or declares what could do harm."""
    from xml.parsers import expat

    parser = expat.ParserCreate()

    def refuse_document_type(*_: object) -> None:
        # Before anything of it is acted on: entities can grow without bound or name other files.
        raise DataError.single(
            "xml-dtd",
            Where(str(path), line=parser.CurrentLineNumber),
            "declares a document type (DTD), which is not allowed: its entities can hide a bomb or other files",
            fix="Remove the <!DOCTYPE ...>.",
        )

    # Of itself expat would expand entities, a billion laughs among them, before a tree is there to look at. The tree's
    # own parser has no way to refuse.
    parser.StartDoctypeDeclHandler = refuse_document_type
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        if _DECLARED_ENCODING not in data[:_DECLARATION_BYTES].lower():
            files.decode(path, data)  # an error about the text is more helpful than where the parser stumbled
        place = Where(str(path), line=error.lineno)
        detail = f"not well-formed XML: {expat.ErrorString(error.code)}, column {error.offset + 1}"
        raise DataError.single("xml-syntax", place, detail, fix="Export the file again.") from None
    except (LookupError, ValueError) as error:  # of the encoding that the file declares
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    detail = f"not readable XML: {error}"
    return DataError.single("xml-syntax", Where(str(path)), detail, fix="Save it with UTF-8 encoding.")


def text_of(element: Element, path: str) -> str:
    """Return the stripped text of the element at a path below `element`, empty where there is none."""
    return (element.findtext(path) or "").strip()


def number_in(element: Element, path: str) -> float:
    """Return the number at a path below `element`; NaN where there is no plain one."""
    text = text_of(element, path)
    return float(text) if is_numeral(text) else math.nan


def mention_unused(counts: Iterable[tuple[str, int]], where: Where, findings: FindingLog) -> None:
    """Report which properties of boxes were read and are not used, and how many boxes have each."""
    used = [f"{name} ({count:,})" for name, count in counts if count]
    if used:
        detail = f"ignored properties that do not affect metrics: {', '.join(used)}"
        findings.note("fields-unused", where, detail)


def root_of(head: bytes) -> str:
    """Return the name of the outermost element by the first bytes of a file, empty if they are not XML."""
    start = head.lstrip()
    found = _ROOT.search(_COMMENT.sub(b"", start)) if start.startswith(b"<") else None
    return "" if found is None else found[1].decode("ascii", "replace")
