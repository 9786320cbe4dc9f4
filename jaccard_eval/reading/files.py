"""Opening what users name: files, folders and their splits; errors explain what cannot be read."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shlex
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from jaccard_eval.data.document import RUN_ENTRY
from jaccard_eval.engine import Place, bring, is_copy, list_names
from jaccard_eval.findings import DataError, Example, FindingLog, Severity, Where, as_given, is_address, reason_of
from jaccard_eval.fixes import Fix
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import Stage, tracked
from jaccard_eval.text import did_you_mean, printable, quoted_value

Contents = TypeVar("Contents")

SNIFF_BYTES = 65536
_BLOCK_BYTES = 1 << 20  # unpacked at a time

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})  # open files, memory, disk

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# How the JSON documents of results begin: their keys are sorted.
_RESULT_START = pattern(
    rb'\s*{\s*"(?:against|areas|baseline|bootstrap|compared|confusion|contents|correspondence|digest)"'
)
_ZIP = b"PK\x03\x04"
# First bytes of what people pass by mistake, and what to recommend.
_UNPACK = "Unpack it and pass the file inside."
_NO_PICTURE = "Pass the annotations, not the image."
_NO_MAP = Fix.missing(f"{_NO_PICTURE} Of label maps, compare the pixels with {{command}}.", command="pixels GT PRED")
_PAGES = (
    f"{_NO_PICTURE} Of several pages that are maps, save each by Pillow, and pass the folder: "
    "for at, page in enumerate(ImageSequence.Iterator(Image.open(path))): page.save(f'maps/{at}.tif')."
)
_EXPORT = "Export it as CSV or COCO JSON."
_NO_PICKLE = "Pickles are never loaded; export JSON, CSV or NumPy (.npz)."
_EXPORT_ARRAYS = "Export JSON, CSV or NumPy (.npz)."
_FOREIGN_MAGIC: tuple[tuple[bytes, str, str | Fix], ...] = (
    (_ZIP, "a zip archive (or an Office document)", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", _UNPACK),
    (b"BZh", "bzip2-compressed data", _UNPACK),
    (b"\xfd7zXZ\0", "xz-compressed data", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (GZIP_MAGIC, "data that gzip compressed twice", "Unpack it once and pass the result."),
    (b"\x89PNG", "a PNG image", _NO_MAP),
    (b"\xff\xd8\xff", "a JPEG image", _NO_PICTURE),
    (b"GIF8", "a GIF image", _NO_PICTURE),
    (b"II*\0", "a TIFF image", _PAGES),
    (b"MM\0*", "a TIFF image", _PAGES),
    (b"RIFF", "a WebP image, a sound or a video", _NO_PICTURE),
    (b"%PDF-", "a PDF document", _EXPORT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", _EXPORT),
    (b"PAR1", "a Parquet file", "Remove the format option, or name parquet."),
    (b"ARROW1", "an Arrow file", "Remove the format option, or name arrow."),
    (b"\x89HDF", "an HDF5 file", _EXPORT),
    (b"SQLite format 3\0", "an SQLite database", _EXPORT),
    (b"\x93NUMPY", "a NumPy array", _NO_MAP),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "Fetch the file with 'git lfs pull'."),
    (b"\xfe\xff", "UTF-16 text", "Save it with UTF-8 encoding."),
    (b"\xff\xfe\0\0", "UTF-32 text", "Save it with UTF-8 encoding."),
    (b"\xff\xfe", "UTF-16 text", "Save it with UTF-8 encoding."),
    *((bytes((0x80, version)), "a Python pickle", _NO_PICKLE) for version in range(2, 6)),
)
_FOREIGN_STARTS = tuple(magic for magic, _, _ in _FOREIGN_MAGIC)
# Some binary files are recognised only by their names: PyTorch saves a zip archive, MATLAB an HDF5 file.
_FOREIGN_SUFFIXES = {
    **dict.fromkeys((".pt", ".pth"), ("a PyTorch file, which is a pickle", _NO_PICKLE)),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), ("a Python pickle", _NO_PICKLE)),
    **dict.fromkeys((".tfrecord", ".tfrecords"), ("TensorFlow records", _EXPORT_ARRAYS)),
    ".mat": ("a MATLAB file", _EXPORT_ARRAYS),
}
_PICKLED_AS_TEXT = (b"(lp", b"(dp", b"ccopy_reg", b"cnumpy")  # by protocol 0, which Python 2 used

_MORE = 1 << 15  # bytes that are asked for where a file should have ended: little, as room is made for them

UNPACKED_FLOOR = 64 * 1024 * 1024  # bytes that any compressed file may unpack to
UNPACKED_RATIO = 32  # beyond that, so many times its size: annotations compress 5 to 15 times, a bomb 1,000 times


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; false if the system cannot look it up, because its name is too long, for example."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for such names


def is_there(path: Path) -> bool:
    """Whether anything exists at a path, a dead link included; a DataError if the system does not know."""
    with refusals_explained(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError, ValueError):  # the last for a NUL in the path
            return False
    return True


def require_readable(path: Path) -> None:
    """Raise a DataError unless `path` is a folder that can be listed and searched, or a regular file to be opened."""
    if isinstance(path, Place) and is_there(path):
        list_names(path)  # a file is read later, perhaps where it lies
        return
    if not is_folder(path):
        os.close(_open(path)[0])
        return
    with refusals_explained(path):
        os.scandir(path).close()
        # Listing needs the right to read, opening what is listed that to search, which this asks for.
        (path / os.pardir).stat()


@contextlib.contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading, never blocking on a pipe or device; a DataError explains what is in the way."""
    with refusals_explained(path), os.fdopen(_open(path)[0], "rb") as file:
        yield file


@contextlib.contextmanager
def refusals_explained(path: Path) -> Iterator[None]:
    """Raise a DataError for what the system refuses while `path` is read; it names the file that was refused.

    Shortages of the machine itself are not the fault of the file, and errors of libraries, without a number, pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno in _SHORTAGES:
            raise
        refused = path
        if isinstance(error.filename, str | bytes) and not is_copy(os.fsdecode(error.filename)):
            refused = Path(os.fsdecode(error.filename))
        raise _open_error(refused, error) from None


@contextlib.contextmanager
def open_in_place(path: Path) -> Iterator[Any]:
    """Open a file of which parts are read: one in an object store lies there, and is not copied to this machine.

    It is a file of Python's, or one of pyarrow's; a DataError when it is written to meanwhile.
    """
    with refusals_explained(path), contextlib.ExitStack() as opened:
        there = opened.enter_context(path.in_place()) if isinstance(path, Place) else None
        if there is not None:
            yield there.native
            there.require_unchanged()
            return
        file = opened.enter_context(open_regular(path))
        with unchanging(path, file):
            yield file


def size_of(file: Any) -> int:
    """Return how many bytes a file has that was opened here."""
    return int(file.size()) if is_in_place(file) else os.fstat(file.fileno()).st_size


def is_in_place(file: Any) -> bool:
    """Whether an open file is one of pyarrow's, each read of which is a request."""
    return hasattr(file, "read_at")


def head(path: Path) -> bytes:
    """Return the first 64 KB of a file, unpacked if gzip; empty when it cannot be read. Never raises."""
    try:
        return first_bytes(path)
    except (DataError, OSError):
        return b""


def first_bytes(path: Path) -> bytes:
    """Return what `head` does; a DataError explains why a file cannot be opened."""
    is_large = isinstance(path, Place) and not path.is_small
    with open_in_place(path) if is_large else open_regular(path) as file:
        try:
            start: bytes = file.read(SNIFF_BYTES)
            if start.startswith(GZIP_MAGIC):
                # The cut-off end is not an error to a decompressor object, and a bomb gives no more than is asked for.
                start = zlib.decompressobj(wbits=31).decompress(start, SNIFF_BYTES)
        except (OSError, zlib.error):
            return b""
    return start.removeprefix(BYTE_ORDER_MARK)


def first_line(path: Path) -> str:
    """Return the first line of a file that is not blank; empty when there is none. Never raises."""
    return head(path).decode("utf-8", "replace").strip().partition("\n")[0]


def read_bytes(path: Path, *, empty_ok: bool = False) -> bytes:
    """Return the contents of a regular file, unpacked if gzip, without a UTF-8 byte-order mark.

    `empty_ok` where a file of 0 bytes has a meaning, as a label file without boxes has. A file that cannot be read, is
    written to while it is read, or holds something else by its first bytes is a DataError.
    """
    data = _contents(path)
    if data.startswith(GZIP_MAGIC):
        data = _unpack(path, data)
    data = data.removeprefix(BYTE_ORDER_MARK)
    if data or not empty_ok:
        check_content(path, data)
    return data


def _contents(path: Path) -> bytes:
    """Return the bytes of a regular file; a DataError when it is written to while it is read."""
    # Without a file of Python's around it: where each image has a file of labels, making one takes as long as reading.
    with refusals_explained(path):
        descriptor, before = _open(path)
        try:
            parts = [os.read(descriptor, before.st_size + 1)]
            while parts[-1]:  # a file may grow, and a system gives no more than it likes
                parts.append(os.read(descriptor, _MORE))
            _require_unchanged(path, before, os.fstat(descriptor))
        finally:
            os.close(descriptor)
    return parts[0] if len(parts) <= 2 else b"".join(parts)


def check_content(path: Path, data: bytes) -> None:
    """Raise a DataError where a file holds nothing, or something else by its first bytes."""
    if not data:
        raise DataError.single("file-empty", Where(str(path)), "the file is empty (0 bytes)", fix="Export it again.")
    if b"\0" in data[:SNIFF_BYTES] or data.startswith(_PICKLED_AS_TEXT):
        named = _FOREIGN_SUFFIXES.get(path.suffix.lower())
        if named is not None:
            raise DataError.single("wrong-content", Where(str(path)), f"holds {named[0]}", fix=named[1])
    # One test of all starts first: nearly every file is none of these.
    if data.startswith(_FOREIGN_STARTS):
        what, fix = next((what, fix) for magic, what, fix in _FOREIGN_MAGIC if data.startswith(magic))
        raise DataError.single("wrong-content", Where(str(path)), f"holds {what}", fix=fix)
    if data[:256].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        what, fix = "an HTML page (an error page saved under this name?)", "Download it again."
        raise DataError.single("wrong-content", Where(str(path)), f"holds {what}", fix=fix)


def require_input(path: Path) -> bytes:
    """Return the first bytes of an input, none of a folder; a DataError where it cannot be opened, or is a result."""
    if is_folder(path) or isinstance(path, Place):
        require_readable(path)
    start = b"" if is_folder(path) else first_bytes(path)
    refuse_result(path, start)
    return start


def refuse_result(path: Path, start: bytes) -> None:
    """Raise a DataError where a file, by its first bytes, is a saved result, not ground truth or predictions."""
    if start.startswith(_ZIP):
        # Its directory stands at the end, which is here already of a small one.
        is_result = f"{RUN_ENTRY}.npy".encode() in start or (len(start) == SNIFF_BYTES and holds_run(path))
    else:
        is_result = bool(_RESULT_START.match(start)) and b'"name": "jaccard-eval"' in read_bytes(path)
    if not is_result:
        return
    detail = "is a saved result of jaccard-eval, not ground truth or predictions"
    words = "Show it with {command}, or pass the files that it was made of."
    fix = Fix.missing(words, command=f"report {shlex.quote(str(path))}")
    raise DataError.single("wrong-content", Where(str(path)), detail, fix=fix)


def holds_run(path: Path) -> bool:
    """Whether an archive is a saved run, in whatever order its members lie."""
    import zipfile  # few inputs are archives

    try:
        with open_in_place(path) as file:
            file.read(1)  # zipfile takes a refusal of the system for another format
            with zipfile.ZipFile(file) as archive:
                return f"{RUN_ENTRY}.npy" in archive.namelist()
    except zipfile.BadZipFile:
        return False


@contextlib.contextmanager
def unchanging(path: Path, file: BinaryIO) -> Iterator[None]:
    """Raise a DataError when a file is written to while it is read: half of it would be old, half new."""
    # Of the open file, not of the path: a file that was replaced meanwhile is still read whole.
    before = os.fstat(file.fileno())
    try:
        yield
    except DataError:
        # What is wrong may be no more than that half of it was read.
        _require_unchanged(path, before, os.fstat(file.fileno()))
        raise
    _require_unchanged(path, before, os.fstat(file.fileno()))


def _require_unchanged(path: Path, before: os.stat_result, after: os.stat_result) -> None:
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise DataError.single(
            "input-changed",
            Where(str(path)),
            f"changed while it was read: {before.st_size:,} bytes before, {after.st_size:,} after",
            fix="Wait until it is completely written.",
        )


def decode(path: Path, data: bytes) -> str:
    """Decode UTF-8 strictly; the error names the line and the byte offset."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError.single(
            "encoding",
            Where(str(path), line=line),
            f"byte 0x{data[error.start]:02X} at offset {error.start} is not valid UTF-8",
            # Random bytes have a zero among the first ones; texts in other encodings have none.
            fix="It looks like binary data or UTF-16: pass the annotations, as UTF-8 text."
            if b"\0" in data[:SNIFF_BYTES]
            else "Save the file with UTF-8 encoding.",
        ) from None
    # NUL is valid UTF-8, and what most tables and labels would keep as part of a name.
    nul = text.find("\0")
    if nul >= 0:
        raise DataError.single(
            "encoding",
            Where(str(path), line=text.count("\n", 0, nul) + 1),
            "NUL bytes in the text: binary data, UTF-16 encoding, or a copy that was cut off; the file is invalid",
            fix="Export it again as UTF-8 text.",
        )
    return text


def read_text(path: Path, *, empty_ok: bool = False) -> str:
    """Return the contents of a UTF-8 text file; see `read_bytes` and `decode` for the errors."""
    return decode(path, read_bytes(path, empty_ok=empty_ok))


def read_lines(path: Path, *, empty_ok: bool = False) -> list[str]:
    """Return the lines of a UTF-8 text file, which end as on Unix, Windows or an old Mac; see `read_text`.

    Unlike `str.splitlines` this breaks no line at a form feed or a separator of Unicode, which names may have.
    """
    return read_text(path, empty_ok=empty_ok).replace("\r\n", "\n").replace("\r", "\n").split("\n")


def read_each(
    files: Mapping[str, Path], read: Callable[[Path], Contents], findings: FindingLog
) -> Iterator[tuple[str, Path, Contents]]:
    """Yield key, path and contents of each file; those that cannot be read are errors, all in one pass."""
    failures: list[DataError] = []
    bring(files.values())
    for key, path in tracked(files.items(), "files"):
        try:
            contents = read(path)
        except DataError as error:
            failures.append(error)
        else:
            yield key, path, contents
    record_failures(failures, findings)


def record_failures(errors: Iterable[DataError], findings: FindingLog, *, severity: Severity = Severity.ERROR) -> None:
    """Record that files of an input cannot be used: one finding for each kind of problem, however many files."""
    problems: dict[tuple[str, Fix | None], list[Example]] = {}
    for error in errors:
        first = error.findings[0]
        problems.setdefault((first.code, first.fix), []).append(first.examples[0])
    for (code, fix), examples in problems.items():
        places = [(example.where, example.detail) for example in examples]
        findings.add_rows(severity, code, range(len(places)), places.__getitem__, fix=fix)


def _open(path: Path) -> tuple[int, os.stat_result]:
    """Open a regular file without ever blocking on a pipe or device; return its descriptor, and what it is."""
    bring([path])
    # Without O_NONBLOCK opening a pipe waits for whoever writes to it. What was opened is looked at, not the path:
    # between two looks at a path it may be replaced.
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise
        raise _open_error(path, error) from None
    except ValueError:  # NUL, or a character that no name of a file can have
        raise DataError.single("file-missing", Where(str(path)), "is not a file path", fix="Check the path.") from None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return descriptor, found
    os.close(descriptor)
    where = Where(str(path))
    if stat.S_ISDIR(found.st_mode):
        raise DataError.single("not-a-file", where, "is a directory, not a file", fix="Pass the file inside it.")
    raise DataError.single(
        "not-a-file", where, "is not a regular file (a device, a pipe or a FIFO)", fix="Save the data to a file first."
    )


def _open_error(path: Path, error: OSError) -> DataError:
    where = Where(as_given(path))
    if isinstance(path, Place) and is_address(path) and error.errno in (errno.ENOENT, errno.ENOTDIR):
        return path.missing()
    if is_address(path) and not isinstance(path, Place):
        fix = "Download it, and pass the path of the copy."
        return DataError.single("file-missing", where, "is a URL; only local files and folders can be read", fix=fix)
    if error.errno == errno.ENOENT:
        what = (
            "is a dangling symbolic link: its target does not exist"
            if path.is_symlink()
            else "no such file or directory"
        )
        return DataError.single("file-missing", where, what, fix="Check the path.")
    if error.errno == errno.ELOOP:
        return DataError.single("file-missing", where, "is a symbolic link loop", fix="Check the path.")
    return DataError.single(
        "file-unreadable", where, f"cannot be read: {reason_of(error)}", fix="Check the path and its permissions."
    )


def _unpack(path: Path, data: bytes) -> bytes:
    import gzip  # few inputs are compressed

    limit = max(UNPACKED_FLOOR, UNPACKED_RATIO * len(data))
    unpacked = io.BytesIO()
    # In blocks, so that a bomb is found before it fills the memory.
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while unpacked.tell() <= limit and (block := file.read(_BLOCK_BYTES)):
                unpacked.write(block)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged_gzip(path, error) from None
    if unpacked.tell() <= limit:
        return unpacked.getvalue()
    raise too_large_unpacked(path, limit, len(data))


def damaged_gzip(path: Path, error: Exception) -> DataError:
    """Return the error about a file that cannot be unpacked."""
    detail = f"the gzip-compressed data is damaged: {error}"
    return DataError.single("gzip", Where(str(path)), detail, fix="Copy or compress the file again.")


def too_large_unpacked(path: Path, limit: int, n_bytes: int) -> DataError:
    """Return the error about a file that unpacks to more than a limit."""
    detail = f"the gzip-compressed data is too large: more than {limit:,} bytes from {n_bytes:,} (a bomb?)"
    fix = "If the size is right, unpack the file and pass the result."
    return DataError.single("gzip", Where(str(path)), detail, fix=fix)


MAX_ENTRIES = 10_000_000  # files and folders; the largest public sets have some two million images


def require_folder(path: Path, expected: str) -> None:
    """Raise a DataError unless `path` is a folder; it names what was `expected`."""
    require_readable(path)
    if not is_folder(path):
        fix = f"Pass {expected}, not one of its files."
        raise DataError.single("not-a-folder", Where(str(path)), "is a file, not a folder", fix=fix)


def members(path: Path, suffixes: tuple[str, ...], findings: FindingLog) -> dict[str, Path]:
    """Return a file by its stem, or those with some suffixes below a folder by their relative paths without suffix.

    A folder without any is a DataError.
    """
    if not is_folder(path):
        require_readable(path)
        return {path.stem: path}
    names = [name for name in list_tree(path, findings) if name.lower().endswith(suffixes)]
    if not names:
        detail = f"no {suffixes[0]} files"
        raise DataError.single("labels-missing", Where(str(path)), detail, fix="Pass the folder of them.")
    return {name.rpartition(".")[0]: path / name for name in names}


def list_tree(root: Path, findings: FindingLog) -> list[str]:
    """Return the relative POSIX paths of all files below `root`, sorted.

    A folder that was seen before (a link in a circle) is skipped; one that cannot be listed is an error. Too many
    files, as when the root of a disk is given, are a DataError.
    """
    list_names(root, recursive=True)
    # A slash too many in a script must not walk the whole disk.
    resolved = Path(os.path.realpath(root))
    if resolved == resolved.parent:
        raise _too_large(root, "is the root of the file system")
    files: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending = [""]
    with Stage("listing files") as stage:
        while pending:
            prefix = pending.pop()
            try:
                status = (root / prefix).stat()
                # By identity, not by path: links in a circle have ever new paths.
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                folders, names = list_folder(root / prefix)
            except OSError as error:
                findings.error("folder-unreadable", Where(str(root / prefix)), f"cannot be listed: {reason_of(error)}")
                continue
            pending += [f"{prefix}{name}/" for name in folders]
            files += [f"{prefix}{name}" for name in names]
            if len(files) + len(pending) > MAX_ENTRIES:
                raise _too_large(root, f"holds more than {MAX_ENTRIES:,} files and folders")
            stage.advance(len(names))
    return sorted(files)


def _too_large(root: Path, detail: str) -> DataError:
    return DataError.single(
        "folder-too-large", Where(str(root)), detail, fix="Pass the folder that holds the images or labels."
    )


def scan_folder(folder: Path, is_wanted: Callable[[str], bool], most: int) -> tuple[list[Path], list[Path]]:
    """Return the first files that are wanted by their names and the first folders in a folder, sorted. Never raises."""
    folders: list[str] = []
    names: list[str] = []
    with contextlib.suppress(OSError):
        folders, names = list_folder(folder)
    wanted = islice(filter(is_wanted, sorted(names)), most)
    return [folder / name for name in wanted], [folder / name for name in sorted(folders)[:most]]


def inner_folder(path: Path, name: str) -> Path:
    """Return a folder in a folder where it is there, else the outer one."""
    inner = path / name
    return inner if is_folder(inner) else path


def files_by_class(folder: Path, name: re.Pattern[str]) -> dict[str, list[Path]]:
    """Return the files of a folder whose names match, by the group ``label`` of the match, sorted. Never raises.

    A folder of such a name is among them: it is in the place of a file, as the error from reading it explains.
    """
    files: dict[str, list[Path]] = {}
    wanted, folders = scan_folder(folder, lambda text: name.fullmatch(text) is not None, MAX_ENTRIES)
    for path in sorted((*wanted, *folders)):
        if found := name.fullmatch(path.name):
            files.setdefault(found["label"], []).append(path)
    return files


def list_folder(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the folders and of the files in a folder."""
    folders: list[str] = []
    names: list[str] = []
    list_names(folder)
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                is_inner = entry.is_dir()
            except OSError:  # a link that leads nowhere or to itself is a file that cannot be opened
                is_inner = False
            (folders if is_inner else names).append(entry.name)
    return folders, names


def is_folder_entry(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link that leads nowhere or to itself is a file that cannot be opened."""
    try:
        return entry.is_dir()
    except OSError:
        return False


_NO_LABELS = frozenset({"classes.txt", "_classes.txt", "predefined_classes.txt"})
_READ_ME = pattern(r"(readme|licen[cs]e)(\.[a-z]+)*$")  # README.dataset.txt, but not license_plate_1.txt


def is_label_name(name: str) -> bool:
    """Whether a file can hold the labels of an image, or results, by its name."""
    base = name.rpartition("/")[2].lower()
    return base.endswith(".txt") and not base.startswith(".") and not is_beside_labels(base)


def without_backups(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the files of a tree from those in its folder "backup", to which tools move what they converted.

    Where there is nothing else, the folder is only called so.
    """
    backups = [name for name in names if name.partition("/")[0].lower() == "backup" and "/" in name]
    moved = {*backups}
    kept = [name for name in names if name not in moved]
    return (kept, backups) if kept else (backups, [])


def is_beside_labels(base: str) -> bool:
    """Whether a file name in lower case is one of those that tools write next to text labels."""
    return base in _NO_LABELS or (base.startswith(("readme", "licen")) and _READ_ME.match(base) is not None)


DEFAULT_SPLIT = "val"
SPLITS = ("train", "val", "test")
ALIASES = {"validation": "val", "valid": "val"}  # of Hugging Face and darknet, Roboflow and older Ultralytics
SPLIT_NAMES = (*SPLITS, *ALIASES)


def split_of(name: str) -> str:
    """Return the split that a name means; a name that is none comes back."""
    return ALIASES.get(name, name)


def choose_split(asked: str, given: Iterable[str], where: Where, findings: FindingLog) -> str:
    """Return the split that is asked for; the only one that is given, where none was asked for by name."""
    known = list(given)
    # As it is written goes first: a set may have both "valid" and "val".
    split = asked if asked in known else split_of(asked)
    if split in known:
        return split
    if asked == DEFAULT_SPLIT and len(known) == 1:
        findings.note(
            "split-train",
            where,
            f"there is no split {quoted_value(asked)}; {quoted_value(known[0])}, the only one, is read instead",
        )
        return known[0]
    detail = f"there is no split {quoted_value(asked)}; there are: {', '.join(map(printable, known)) or 'none'}"
    raise DataError.single(
        "split-missing",
        where,
        detail,
        fix=Fix.missing(f"Name one with {{split}}.{did_you_mean(asked, known)}", split=None),
    )
