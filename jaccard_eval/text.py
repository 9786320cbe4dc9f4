"""Text for people: users' values made inert, numbers with their nouns, aligned columns, near words, plain numerals."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from jaccard_eval.patterns import pattern

SHOWN_VALUE_LENGTH = 80  # characters of a user's value repeated in a message
SHOWN_PATH_LENGTH = 400  # of a path, which is there to be found
Rows = tuple[tuple[str, ...], ...]  # of text, the first one the header


def printable(text: str) -> str:
    r"""Return `text` with every character that could act on a terminal or reorder a line escaped.

    Control characters (C0, C1, DEL), bidirectional marks, line and paragraph separators and lone surrogates become
    backslash escapes; everything else, in any script, stays as it is.

    Examples
    --------
    >>> print(printable("cat\x1b[2J"))
    cat\x1b[2J
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) if unicodedata.category(c) in _INERT_CATEGORIES else c for c in text)


_INERT_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


LOOKS = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1"}  # ECMA-48, SGR


def painted(text: str, look: str) -> str:
    """Return text in a look, for streams that show colours; as it is in a look that has none."""
    return f"\x1b[{LOOKS[look]}m{text}\x1b[0m" if text and look in LOOKS else text


PLAIN = "jaccard_eval.plain"  # an error handler of encodings: signs become words of ASCII, all else is escaped
_WORDS = {
    **{"\u2265": ">=", "\u2264": "<=", "\u0394": "delta ", "\u00b1": "+-", "\u00d7": "x", "\u00b2": "^2"},
    **{"\u2026": "...", "\u2500": "-", "\u2013": "-", "\u2014": "-"},
}


def _in_words(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_WORDS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in missing), error.end


codecs.register_error(PLAIN, _in_words)


def encodable(text: str, encoding: str) -> str:
    """Return text in the characters that an encoding has.

    Examples
    --------
    >>> encodable("IoU ≥ 0.5", "ascii")
    'IoU >= 0.5'
    """
    return text.encode(encoding, PLAIN).decode(encoding)


def quoted_value(value: object) -> str:
    """Return a user's value for a message: quoted if text, escaped, at most 80 characters."""
    return _shortened(value, repr if isinstance(value, str) else str)


def shown_json(value: object) -> str:
    """Return a value of a file for a message, as JSON writes it; texts as Python writes them."""
    import json

    return (
        quoted_value(value)
        if isinstance(value, str)
        else _shortened(value, partial(json.dumps, ensure_ascii=False, default=str))
    )


def _shortened(value: object, write: Callable[[Any], str]) -> str:
    try:
        text = printable(write(value))
    except RecursionError:
        text = f"a {type(value).__name__}, nested too deeply to be shown"
    is_path = isinstance(value, str) and value.startswith(("/", "./", "../"))
    if len(text) <= (SHOWN_PATH_LENGTH if is_path else SHOWN_VALUE_LENGTH):
        return text
    # Of a path, the end shows which file it is.
    if is_path:
        return f"{text[0]}…{text[2 - SHOWN_PATH_LENGTH :]}"
    return f"{text[: SHOWN_VALUE_LENGTH - 1]}…"


def example_keys(keys: Iterable[object], limit: int = 3) -> str:
    """Return the first few keys for a message."""
    return ", ".join(quoted_value(key) for key in islice(keys, limit))


def distinct_ends(*paths: str) -> tuple[str, ...]:
    """Return what paths are called where they stand together: their ends, with as many folders as differ.

    >>> distinct_ends("a/1/pred.json", "a/2/pred.json")
    ('1/pred.json', '2/pred.json')
    """
    parts = [path.rstrip("/").split("/") for path in paths]
    for size in range(1, max(map(len, parts)) + 1):
        names = tuple("/".join(part[-size:]) for part in parts)
        if len(set(names)) == len(names):
            return names
    return paths


def pluralise(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def aligned(table: Rows) -> list[str]:
    r"""Return the rows of a table as escaped lines with aligned columns: numbers to the right, all else to the left.

    Examples
    --------
    >>> print(*aligned((("map", "agreement"), ("as given", ".012"))), sep="\n")
    map       agreement
    as given       .012
    """
    rows = [[printable(cell) for cell in row] for row in table]
    columns = []
    for column in zip(*rows, strict=True):
        widths = list(map(columns_of, column))
        blanks = [" " * (max(widths) - width) for width in widths]
        pairs = zip(blanks, column, strict=True)
        # The head of a column goes where its cells go, and is no number itself.
        numeric = is_numeric(column[1:])
        columns.append([blank + cell if numeric else cell + blank for blank, cell in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def is_numeric(cells: Iterable[str]) -> bool:
    """Return whether every cell is a number, such as "1,204", ".742" or "12.5 %"; a column of them aligns right."""
    return all(_NUMBER.fullmatch(cell) for cell in cells)


_NUMBER = pattern(r"[+-]?[\d.,]+ ?%?|n/a|", re.ASCII)


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: two per wide character, none per combining one."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else unicodedata.category(c) not in _MARKS for c in text)


_MARKS = frozenset({"Mn", "Me"})  # combining marks, variation selectors of emoji among them


def broken(text: str, room: int, mark: str) -> list[str]:
    """Break a text behind marks into lines of at most `room` columns; a piece that is longer stays whole.

    Examples
    --------
    >>> broken("coco|iou=0.5|max_dets=100", 14, "|")
    ['coco|iou=0.5|', 'max_dets=100']
    """
    first, *pieces = text.split(mark)
    lines, used = [first], columns_of(first)
    for piece in pieces:
        lines[-1] += mark
        wanted = columns_of(piece) + len(mark)
        if used + wanted + len(mark.strip()) <= room:  # a blank at the end of a line is not there
            lines[-1] += piece
            used += wanted
        else:
            lines.append(piece)
            used = wanted - len(mark)
    return [line.rstrip(" ") for line in lines]


NEAR = 0.65  # share of letters in the same order: "dgo" and "dog" have 0.67, "bogus" and "boxes" 0.6

LEAST_BEGINNING = 3  # letters that show which longer word was meant


# What other tools call a format, a kind of shape, an option or a suffix.
ALSO_CALLED: dict[str, str | tuple[str, ...]] = {
    **dict.fromkeys(("pascal", "pascalvoc", "pascal-voc"), ("voc", "voc2007", "voc2012")),
    **dict.fromkeys(("mask", "masks", "segmentation", "instance"), "segm"),
    **dict.fromkeys(("box", "boxes", "detection"), "bbox"),
    **dict.fromkeys(("pose", "kpt", "kpts", "keypoint"), "keypoints"),
    **dict.fromkeys(("rotated", "oriented", "rbox"), "obb"),
    **dict.fromkeys(("iou-thres", "iou-thresh", "iou-threshold", "iou-thresholds", "iou-thrs"), "iou"),
    **dict.fromkeys(("conf-thres", "conf-threshold", "score-thr", "score-threshold"), "score-min"),
    **dict.fromkeys(("xls", "xlsm", "ods"), ".xlsx"),
    "tsv": ".csv",
}


def did_you_mean(word: str, known: Iterable[str], *, show: Callable[[str], str] = quoted_value) -> str:
    """Return " Did you mean 'x'?" when a known word is close to `word` or begins with it, else an empty text."""
    import difflib

    words = list(dict.fromkeys(known))
    meant = ALSO_CALLED.get(word.casefold().lstrip(".").replace("_", "-"), ())
    close = [name for name in ((meant,) if isinstance(meant, str) else meant) if name in words]
    close = close or difflib.get_close_matches(word, words, n=3, cutoff=NEAR)
    if not close:  # in other letters: VOC2007
        plain = {known_word.casefold(): known_word for known_word in words}
        close = [plain[match] for match in difflib.get_close_matches(word.casefold(), plain, n=3, cutoff=NEAR)]
    if not close and len(word) >= LEAST_BEGINNING:
        close = [known_word for known_word in words if known_word.startswith(word) or word.startswith(known_word)][:3]
    return f" Did you mean {' or '.join(map(show, close))}?" if close else ""


_NUMERAL = pattern(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def is_numeral(text: str) -> bool:
    """Return whether the whole of a text is one number."""
    return _NUMERAL.fullmatch(text) is not None


# What a spreadsheet takes for a formula (OWASP, CSV injection); the last four are full-width signs.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
SPREADSHEET_MARKS = ",;\t"  # which of them separates the cells of a .csv depends on the country of the spreadsheet


def quoted(cell: str, delimiter: str = ",") -> str:
    """Quote by RFC 4180, blanks at an end, and any mark that a spreadsheet could separate cells by.

    The csv module leaves a lone carriage return bare.
    """
    special = (delimiter, *SPREADSHEET_MARKS, '"', "\r", "\n")
    if not any(character in cell for character in special) and cell == cell.strip():
        return cell
    return '"' + cell.replace('"', '""') + '"'


def inert(text: str) -> str:
    """Keep a spreadsheet from running a text."""
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet reads a text as a formula."""
    return text.startswith(FORMULA_STARTS)


# Compiled where there is one: few runs have any.
URL = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?:(?P<user>[^/@?]*)@)?(?P<place>[^/?]*)(?P<path>[^?]*)"


def public(text: str) -> str:
    """Return a URL without user, password and query: what is shown of it.

    Examples
    --------
    >>> public("s3://key:secret@bucket/gt.json?region=eu-west-1")
    's3://bucket/gt.json'
    >>> public("abfs://container@account.dfs.core.windows.net/gt.json")
    'abfs://container@account.dfs.core.windows.net/gt.json'
    """
    found = re.match(URL, text)
    if found is None:
        return text
    # Azure's container stands where others have a user.
    shown = found["user"] and ":" not in found["user"] and found["scheme"] not in ("s3", "http", "https")
    user = found["user"] if shown else ""
    return f"{found['scheme']}://{user}{'@' if user else ''}{found['place']}{found['path']}"


def without_secrets(argument: str) -> str:
    """Return an argument as it is shown, which may have an option in front of a URL."""
    found = re.search(URL, argument) if "://" in argument else None
    return argument if found is None else argument[: found.start()] + public(argument[found.start() :])
