"""Files that are not what their name says, of every format and on both sides: refused by what they are, or read."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import random
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from valid_inputs import write_example

from jaccard_eval.cli import run
from jaccard_eval.findings import DataError
from jaccard_eval.formats import format_module, format_names, read_dataset
from jaccard_eval.options import ReadOptions

posix_only = pytest.mark.skipif(os.name == "nt", reason="POSIX files")

TEXT_FORMATS = [name for name in format_names() if not hasattr(format_module(name), "write_example")]
ENCODING = "UTF-16|UTF-8|NUL"


def zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data", data)
    return stream.getvalue()


def tarred(data: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("data")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def noise(_: bytes) -> bytes:
    return random.Random(0).randbytes(500)


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "UTF-16 with a mark": (lambda data: data.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (lambda data: data.decode().encode("utf-16-be"), ENCODING),
    "UTF-16 of the other order": (lambda data: data.decode().encode("utf-16-le"), ENCODING),
    "UTF-32": (lambda data: data.decode().encode("utf-32"), "UTF-32"),
    "Latin-1": (lambda data: data + "Stra\xdfe".encode("latin-1"), "0xDF .*UTF-8"),
    "an invalid byte": (lambda data: data[:20] + b"\xff" + data[20:], "0xFF .*UTF-8"),
    "a surrogate": (lambda data: data + b"\xed\xa0\x80", "0xED .*UTF-8"),
    "a NUL": (lambda data: data[:20] + b"\0" + data[20:], "NUL"),
    "padding with NUL": (lambda data: data + bytes(512), "NUL"),
    "zip": (zipped, "zip"),
    "tar": (tarred, "NUL|archive"),
    "bzip2": (bz2.compress, "bzip2"),
    "xz": (lzma.compress, "xz"),
    "gzip twice": (lambda data: gzip.compress(gzip.compress(data)), "gzip"),
    "gzip cut off": (lambda data: gzip.compress(data)[:-9], "gzip"),
    "gzip of HTML": (lambda _: gzip.compress(b"<html>"), "HTML"),
    "HTML": (lambda _: b"\n<!doctype HTML>\n<p>404", "HTML"),
    "Git LFS": (lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "pickle": (pickle.dumps, "pickle"),
    "PNG": (lambda data: b"\x89PNG\r\n\x1a\n" + data, "PNG"),
    "JPEG": (lambda data: b"\xff\xd8\xff\xe0" + data, "JPEG"),
    "Parquet": (lambda data: b"PAR1" + data + b"PAR1", "Parquet"),
    "noise": (noise, "UTF-8|NUL"),
}
UTF16_WITHOUT_MARK = ("UTF-16 without a mark", "UTF-16 of the other order")
READ: dict[str, Callable[[bytes], bytes]] = {
    "a byte-order mark": lambda data: b"\xef\xbb\xbf" + data,
    "gzip": gzip.compress,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "no final newline": lambda data: data.rstrip(),
    "blank lines at the end": lambda data: data + b"\n\n",
}


def place_example(folder: Path, name: str) -> tuple[Path, Path]:
    """Write the example of a format as it is usual for it; return the input, and the file in it."""
    file, inner = write_example(folder, name)
    return (file, file) if format_module(name).FORMAT.suffixes else (inner, next(inner.iterdir()))


def refusal(path: Path, role: str, name: str) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(path, ReadOptions(role=role, assume_score=1.0), name)
    return str(caught.value)


@pytest.mark.parametrize("role", ["gt", "pred"])
@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_text_of_its_format_is_called_by_what_it_is(kind: str, name: str, role: str, tmp_path: Path) -> None:
    path, file = place_example(tmp_path, name)
    if kind in UTF16_WITHOUT_MARK and file.suffix == ".xml":
        pytest.skip("a parser of XML recognises UTF-16 by its first character")
    change, mention = REFUSED[kind]
    file.write_bytes(change(file.read_bytes()))
    message = refusal(path, role, name)
    assert file.name in message
    assert re.search(mention, message), message


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("kind", READ)
def test_what_is_text_of_its_format_is_read_however_it_was_saved(kind: str, name: str, tmp_path: Path) -> None:
    path, file = place_example(tmp_path, name)
    whole = read_dataset(path, ReadOptions(), name).boxes.xywh.tolist()
    file.write_bytes(READ[kind](file.read_bytes()))
    assert read_dataset(path, ReadOptions(), name).boxes.xywh.tolist() == whole


LAUGHS = "".join(f'<!ENTITY x{i} "{f"&x{i - 1};" * 10}">' for i in range(1, 10))
TRICKS = {
    "billion laughs": f'<!DOCTYPE a [<!ENTITY x0 "ha">{LAUGHS}<!ENTITY x "&x9;">]>',
    "one long entity many times": f'<!DOCTYPE a [<!ENTITY x0 "{"ha" * 50_000}"><!ENTITY x "{"&x0;" * 1_000}">]>',
    "external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    "parameter entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY x "">]>',
    "external definition": '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd">',
}
XML_FORMATS = [
    name for name in TEXT_FORMATS if ".xml" in (*format_module(name).FORMAT.suffixes, format_module(name).FORMAT.member)
]


@pytest.mark.parametrize("name", XML_FORMATS)
@pytest.mark.parametrize("trick", TRICKS)
def test_xml_may_define_nothing(trick: str, name: str, tmp_path: Path) -> None:
    path, file = place_example(tmp_path, name)
    text = file.read_text(encoding="utf-8")
    head, mark, rest = text.rpartition("</")
    declaration = text[: text.index("?>") + 2] if text.startswith("<?xml") else ""
    body = f"{head}&x;{mark}{rest}".removeprefix(declaration)
    file.write_text(f"{declaration}{TRICKS[trick]}{body}", encoding="utf-8")
    message = refusal(path, "gt", name)
    assert re.search("DTD|DOCTYPE|entit", message), message
    assert len(message) < 2_000


def make_missing(file: Path) -> None:
    file.unlink()


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere")


def make_loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def make_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def make_unreadable(file: Path) -> None:
    file.chmod(0)


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (make_missing, r"no such file|no \.\w+ (label )?files"),
    "folder": (make_folder, r"directory|no \.\w+ (label )?files"),
    "pipe": (make_pipe, "pipe"),
    "dangling link": (make_dangling, "dangling|does not exist"),
    "link loop": (make_loop, "loop"),
    "device": (make_device, "device"),
    "unreadable": (make_unreadable, "permission"),
}


@posix_only
@pytest.mark.parametrize("name", format_names())
@pytest.mark.parametrize("kind", SPOILT)
def test_what_is_no_file_is_refused_at_once(kind: str, name: str, tmp_path: Path) -> None:
    if kind == "unreadable" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    path, file = place_example(tmp_path, name)
    spoil, mention = SPOILT[kind]
    spoil(file)
    message = refusal(path, "gt", name)
    assert re.search(mention, message), message


@posix_only
@pytest.mark.parametrize(
    "odd",
    ["my file", "-x", "\x1b[31mx", "x\ny", "%s%n{0}", "$(touch pwned);`id`", "e\u0301", "\u00e9", "x" * 240, "\u202ex"],
)
@pytest.mark.parametrize("name", format_names())
def test_a_name_of_any_kind_is_a_name(name: str, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = place_example(tmp_path, name)
    file.rename(file.with_name(f"{odd}{file.suffix}"))
    sides = [path.parent / f"{odd}{file.suffix}"] * 2 if path == file else [path] * 2
    code = run.run(["evaluate", "--gt", str(sides[0]), "--pred", str(sides[1]), "--assume-score", "1", "--json"])
    shown = capsys.readouterr()
    # A COCO file of ground truth is no list of results: refused on the side of predictions, by its name.
    assert code in (0, 3)
    assert "\x1b" not in shown.out + shown.err
    assert not (tmp_path / "pwned").exists()
