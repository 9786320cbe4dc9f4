"""Seeded damage to the bytes of a file: what a bad disk, a bad script or a bad person does to an input."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_EDITS = 3

_NUMBERS = (
    "NaN nan Infinity -inf 1e400 -1e400 1e308 1.7e308 -1.7e308 1e200 5e-324 0 -0 -0.0 -1 1.5 7 0x1F 1_000 +1 1,5 12px"
    " 9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551616 9007199254740993.0"
)
_WORDS = (
    "true false null None NA id image_id category_id bbox score area iscrowd images annotations names path val ignore"
)
_MARKS = (
    '" "" \' \\ \\u0000 \\ud800 \\" { } [ ] {} [] [[[[[[ : , ,,,, < > </ <!-- & &lt; &a; | ; = * %s%n{0} !!x &x <?xml'
)
_ODD = (
    *("\t", " ", "\n", "\r\n", "\r", "\n\n", "\v", "\f", "\0", "\x1b[2J", "\x07", "\x7f", "\x85", "\ufeff", "\u202e"),
    *(
        "\u2028",
        "\u0663",
        "\uff11\uff12",
        "\u22125",
        "\u00b2",
        "<!DOCTYPE x [",
        "<!ENTITY a 'b'>",
        "9" * 400,
        "z" * 5000,
    ),
    *("../../../etc/passwd", "/dev/zero", "a/b", "\\\\host\\share", "http://localhost/x.png"),
)
_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xff\xfe", b"\x1f\x8b", b"PK\x03\x04", b"\x80\x04")
TOKENS = (*(text.encode() for text in (*f"{_NUMBERS} {_WORDS} {_MARKS}".split(), *_ODD)), *_BYTES)
_WORD_BYTES = frozenset(bytes([code]) for code in b"0123456789.+-_abcdefghijklmnopqrstuvwxyz")

Edit = Callable[[bytes, random.Random], bytes]


@contextlib.contextmanager
def damaged(file: Path, rng: random.Random, edits: tuple[Edit, ...] = ()) -> Iterator[None]:
    """Damage a file for a while; a failure is told what the file held."""
    whole = file.read_bytes()
    broken = damage(whole, rng, edits or EDITS)
    file.write_bytes(broken)
    try:
        yield
    except Exception as error:
        error.add_note(f"{file.name} held {broken!r}")
        raise
    finally:
        file.write_bytes(whole)


def damage(data: bytes, rng: random.Random, edits: tuple[Edit, ...]) -> bytes:
    """Return `data` after one to three edits."""
    for _ in range(rng.randint(1, MAX_EDITS)):
        data = rng.choice(edits)(data, rng)
    return data


def flip(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def delete(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.randint(1, 3) + data[end:]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def replace_word(data: bytes, rng: random.Random) -> bytes:
    """Put a token in the place of a number or a word."""
    start = end = _place(data, rng)
    while start and data[start - 1 : start] in _WORD_BYTES:
        start -= 1
    while data[end : end + 1] in _WORD_BYTES:
        end += 1
    return data[:start] + rng.choice(TOKENS) + data[end:]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def pad(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice((b"\0", b" ", b"\n", b"\xff", data)) * rng.choice((1, 2, 64))


def swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def mix_line_ends(data: bytes, rng: random.Random) -> bytes:
    return b"".join(line + rng.choice((b"\n", b"\r\n", b"\r", b"\n\n")) for line in data.split(b"\n"))


def recode(data: bytes, rng: random.Random) -> bytes:
    encoding = rng.choice(("utf-8-sig", "utf-16", "utf-16-be", "utf-32"))
    return data.decode("latin-1").encode(encoding)


EDITS: tuple[Edit, ...] = (
    *(flip, delete, repeat, insert, truncate, swap_lines) * 2,
    *(replace_word,) * 6,  # what stays readable gets furthest
    *(pad, mix_line_ends, recode),
)


def _place(data: bytes, rng: random.Random) -> int:
    return rng.randint(0, len(data))


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = _place(data, rng)
    return start, min(len(data), start + rng.choice((1, 2, 8, 40, 200)))
