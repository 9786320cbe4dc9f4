"""Lines of text labels: numbers by file, and what their columns are, found over the whole set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from jaccard_eval.data.boxtable import BoolArray, FloatArray
from jaccard_eval.engine import bring
from jaccard_eval.findings import DataError, FindingLog
from jaccard_eval.formats._yolo.sources import SEPARATED_LINE
from jaccard_eval.frozen import dataclass
from jaccard_eval.progress import tracked
from jaccard_eval.reading.files import decode, read_bytes, record_failures

IntArray = npt.NDArray[np.int64]

_COUNT_DIGITS = 8  # at most, of a line that counts the others
BATCH_BYTES = 16 * 1024 * 1024  # text that is split at once; bounds the memory that its tokens take

_LINES_LOOKED_AT = 1_000  # for what separates fields
_BLANKS = b" \t\n\r\x0b\x0c"
_IS_BLANK = np.zeros(256, dtype=np.bool_)
_IS_BLANK[list(_BLANKS)] = True
_PLAIN_TEXT = b"0123456789.-eE" + _BLANKS  # text of these characters alone is tried as a whole
_NUMBER_LIST = msgspec.json.Decoder(list[float])
# What float() takes beyond this is refused: 1_000, +1, nan, infinity. Bytes exclude digits of other scripts.
_NUMBER = re.compile(rb"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLines:
    """All lines of a set of label files that are not blank, in flat arrays: a set may have millions."""

    values: FloatArray  # every field of every line; NaN where it is not a number
    first: IntArray  # (n_lines,), where the fields of a line start in `values`
    count: IntArray  # (n_lines,), how many it has
    file: IntArray  # (n_lines,), row of its file
    number: IntArray  # (n_lines,), its number in the file, from 1
    text: dict[int, str]  # the fields of each line that has a word, separated by single blanks

    def __len__(self) -> int:
        return len(self.first)

    def trailing_numbers(self) -> IntArray:
        """Return how many numbers each line ends with."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        position = np.arange(len(self.values))
        last_word = np.maximum.reduceat(np.where(np.isnan(self.values), position, -1), self.first)
        return np.where(last_word < 0, self.count, self.first + self.count - 1 - last_word)


_DIFFICULT = " difficult"  # what ends a line of an object that Cartucho's evaluator ignores


def take_difficult(lines: LabelLines) -> tuple[LabelLines, BoolArray]:
    """Return the lines without the word that may end them, and which of them had it."""
    flagged = np.zeros(len(lines), dtype=np.bool_)
    flagged[[line for line, text in lines.text.items() if text.endswith(_DIFFICULT)]] = True
    if not flagged.any():
        return lines, flagged
    kept = np.ones(len(lines.values), dtype=np.bool_)
    kept[(lines.first + lines.count - 1)[flagged]] = False
    count = lines.count - flagged
    text = {line: text.removesuffix(_DIFFICULT) for line, text in lines.text.items()}
    return replace(lines, values=lines.values[kept], first=np.cumsum(count) - count, count=count, text=text), flagged


def separator_of(paths: Sequence[Path]) -> bytes:
    """Return what stands between the fields of a set, where that is not a blank."""
    return _separator(next(_batches(paths, [])))


def read_label_files(paths: Sequence[Path], findings: FindingLog, mark: bytes = b"") -> LabelLines:
    """Read and split label files; a file that cannot be read is an error in `findings` and has no lines."""
    failures: list[DataError] = []
    parts: list[LabelLines] = []
    for batch in map(_uncounted, _batches(paths, failures)):
        mark = mark or (b"" if parts else _separator(batch))  # of a set, like everything that is detected
        parts.append(_split([(row, data.replace(mark, b" ") if mark else data) for row, data in batch]))
    record_failures(failures, findings)
    return _concatenate(parts)


def split_lines(texts: Sequence[str], files: IntArray) -> LabelLines:
    """Split the lines of one text; those that are not blank belong to `files`."""
    return replace(_split([(0, "\n".join(texts).encode())]), file=files)


def _batches(paths: Sequence[Path], failures: list[DataError]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield rows and contents of the files in batches of limited size."""
    batch: list[tuple[int, bytes]] = []
    n_bytes = 0
    bring(paths)
    for row, path in enumerate(tracked(paths, "files")):
        try:
            data = read_bytes(path, empty_ok=True)
            # Nearly all labels are ASCII, which needs no decoding to be known for UTF-8.
            if not data.isascii() or b"\0" in data:
                decode(path, data)  # for its error about text that is not UTF-8
        except DataError as error:
            failures.append(error)
            continue
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        batch.append((row, data))
        n_bytes += len(data)
        if n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    yield batch


def _uncounted(batch: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return label files without their first lines where these count the others, in every file that has any lines."""
    rests: list[tuple[int, bytes]] = []
    counts: list[int] = []
    for row, data in batch:
        head = data[:_COUNT_DIGITS].partition(b"\n")[0]
        rests.append((row, data[len(head) :]))
        if head.strip().isdigit():
            counts.append(int(head))
        elif data.strip():
            return batch
    filled = [rest for _, rest in rests if rest]
    n_lines = [sum(map(bool, map(bytes.strip, rest.split(b"\n")))) for rest in filled]
    return rests if any(counts) and [count for count in counts if count] == [n for n in n_lines if n] else batch


def _separator(batch: list[tuple[int, bytes]]) -> bytes:
    """Return the comma or semicolon that stands between the fields of most lines; empty where blanks do."""
    texts = (data.decode("utf-8", "replace").split("\n") for _, data in batch)
    lines = list(islice((line for lines in texts for line in lines if line.strip()), _LINES_LOOKED_AT))
    found = Counter(match["mark"] for line in lines if (match := SEPARATED_LINE.fullmatch(line)))
    mark, count = found.most_common(1)[0] if found else ("", 0)
    return mark.encode() if count * 2 > len(lines) else b""


def _split(files: list[tuple[int, bytes]]) -> LabelLines:
    """Split a batch of files into lines and fields, in whole-array steps."""
    joined = b"\n" + b"".join(data + b"\n" for _, data in files)
    buffer = np.frombuffer(joined, dtype=np.uint8)
    is_plain = not joined.translate(None, _PLAIN_TEXT)
    blank = buffer <= ord(" ") if is_plain else _IS_BLANK[buffer]
    # A field starts behind a blank; the text begins with a line feed, so no start is missed.
    token_at = np.flatnonzero(blank[:-1] > blank[1:]) + 1
    feed_at = np.flatnonzero(buffer == ord("\n"))
    count = np.diff(np.searchsorted(token_at, feed_at), prepend=0)  # of the tokens before each feed
    used = np.flatnonzero(count)
    count = count[used]
    first = np.cumsum(count) - count
    starts = np.cumsum([1, *(len(data) + 1 for _, data in files[:-1])])  # of the files in the text
    file = np.searchsorted(starts, token_at[first], side="right") - 1
    tokens: list[bytes] = []
    values = _parse_plain(joined, token_at) if is_plain else None
    if values is None:
        tokens = joined.split()
        numbers = (float(token) if _NUMBER.fullmatch(token) else np.nan for token in tokens)
        values = np.fromiter(numbers, dtype=np.float64, count=len(tokens))
    # Lines with a word are kept as text: a class name, or what is to be shown of a fault.
    with_word = np.unique(np.searchsorted(first, np.flatnonzero(np.isnan(values)), side="right") - 1)
    spans = zip(with_word.tolist(), first[with_word].tolist(), count[with_word].tolist(), strict=True)
    return LabelLines(
        values=values,
        first=first,
        count=count,
        file=np.array([row for row, _ in files], dtype=np.int64)[file],
        number=used - np.searchsorted(feed_at, starts)[file] + 1,
        text={line: b" ".join(tokens[start : start + length]).decode() for line, start, length in spans},
    )


def _parse_plain(text: bytes, token_at: IntArray) -> FloatArray | None:
    """Return the numbers of plain text, read as one array of JSON; None where a token is no number of JSON.

    Such are .5, 1., 007, what overflows, and words. Negative zero is one, but loses its sign when written whole.
    """
    if not len(token_at):
        return np.empty(0)
    document = bytearray(text)
    at = np.frombuffer(document, dtype=np.uint8)
    at[token_at - 1] = ord(",")  # the blank before each token
    at[token_at[0] - 1], at[-1] = ord("["), ord("]")  # the text ends with a line feed
    try:
        numbers = _NUMBER_LIST.decode(document)
    except msgspec.MsgspecError:
        return None
    values = np.fromiter(numbers, dtype=np.float64, count=len(numbers))
    return None if (values == 0).any() and b"-0" in text else values


def _concatenate(parts: list[LabelLines]) -> LabelLines:
    n_tokens = np.cumsum([0, *(len(part.values) for part in parts)])
    n_lines = np.cumsum([0, *map(len, parts)]).tolist()
    pairs = list(zip(parts, n_tokens.tolist(), n_lines, strict=False))  # with what stands before each part
    return LabelLines(
        values=np.concatenate([part.values for part in parts]),
        first=np.concatenate([part.first + tokens for part, tokens, _ in pairs]),
        count=np.concatenate([part.count for part in parts]),
        file=np.concatenate([part.file for part in parts]),
        number=np.concatenate([part.number for part in parts]),
        text={line + before: text for part, _, before in pairs for line, text in part.text.items()},
    )
