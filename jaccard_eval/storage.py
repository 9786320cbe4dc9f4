"""Object storage: from a URL to what lies there. Credentials are the file systems' business, and no URL shows any.

pyarrow reads S3, Google Cloud Storage and Azure; whatever else has a scheme is left to fsspec.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from jaccard_eval.errors import JaccardEvalError, MachineError, UsageError, require
from jaccard_eval.findings import DataError, Where
from jaccard_eval.frozen import dataclass
from jaccard_eval.patterns import pattern
from jaccard_eval.progress import BYTES, Stage
from jaccard_eval.text import URL, did_you_mean, public, quoted_value

Item = TypeVar("Item")
Made = TypeVar("Made")

EXTRA = "cloud"
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0  # without an answer
ATTEMPTS = 3
PARALLEL = 16  # requests at once: most of the time of a small one is waiting
PIECE_BYTES = 8 << 20  # of a large object that one request asks for

WRITTEN = "written"
REASON_LENGTH = 160  # of what a library reports, which may be a page
S3, GS, AZURE, WEB = ("s3",), ("gs", "gcs"), ("abfs", "abfss"), ("http", "https")
S3_SETTINGS = ("anonymous", "endpoint_override", "region", "scheme")

_SLASHES = pattern(r"(?<!:)/{2,}")  # paths have none
# Of what libraries report, these are the parts that may hold a signature or a key.
_SECRETS = pattern(r"(?<=://)[^/@\s'\"]*:[^/@\s'\"]*@|\?[^\s'\")]*")
_AWS_ERROR = pattern(r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))?[^:]*: (?P<text>.*)", re.DOTALL)
_DENIED = pattern(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|TOKEN|CREDENTIAL|\b40[13]\b|[Uu]nauth|[Ff]orbidden|[Dd]enied"
    r"|OAuth2|[Aa]uthentication|Credential"
)
_AWAY = pattern(r"NETWORK_CONNECTION|REQUEST_TIMEOUT|[Cc]ould ?n.t|[Tt]imed? ?out|[Cc]onnect|[Rr]esolve|UNAVAILABLE")
_ADVICE = {
    S3: (
        "Check the credentials (AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) and what they may do.",
        "Check the network, and AWS_ENDPOINT_URL for a store of another provider.",
    ),
    GS: (
        "Check the credentials (GOOGLE_APPLICATION_CREDENTIALS) and what they may do.",
        "Check the network.",
    ),
}
_ANY_ADVICE = ("Check the credentials and what they may do.", "Check the URL and the network.")

# What it takes to reach a URL or a store, where that is not to be shown: by the URL as it is shown, or its beginning.
_PRIVATE: dict[str, str] = {}
_SYSTEMS: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies at a URL: a file of a size in bytes, changed at a time in nanoseconds, or a folder without either."""

    url: str
    size: int | None
    changed: int = 0

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.size is None


def admit(text: str) -> str:
    """Return a URL as it is shown, and remember what it takes to reach it; a UsageError for one of no known scheme."""
    shown = _SLASHES.sub("/", public(text))
    if shown != text:
        _PRIVATE[shown] = text
        _PRIVATE[_root(shown)] = text
        _SYSTEMS.pop(_root(shown), None)
    scheme = shown.partition("://")[0].lower()
    if scheme not in (*S3, *GS, *AZURE):
        _class_of(scheme)
    return shown


def portable(url: str) -> str:
    """Return a URL as other machines reach it: with the settings of a store, and without user and password."""
    query = _PRIVATE.get(_root(url), "").partition("?")[2] if _scheme(url) in S3 else ""
    return f"{url}?{query}" if query else url


def forget_connections() -> None:
    """Connect anew from here on: credentials and endpoints may have changed."""
    _SYSTEMS.clear()


def look_up(url: str) -> Entry | None:
    """Return what lies at a URL, None where nothing does."""
    with explained(url):
        if _scheme(url) in WEB:
            return _look_up_page(url)
        system, key = _reach(url)
        return _entry(system.get_file_info(key), url)


def list_below(url: str, *, recursive: bool = True) -> list[Entry]:
    """Return what lies in a folder, and below it; nothing where there is no such folder."""
    if _scheme(url) in WEB:
        return []
    with explained(url):
        system, key = _reach(url)
        selector = _arrow_fs().FileSelector(key, recursive=recursive, allow_not_found=True)
        found = system.get_file_info(selector)
    start, before = url.rstrip("/"), len(key.rstrip("/"))
    entries = [_entry(info, start + info.path.rstrip("/")[before:]) for info in found]
    return [entry for entry in entries if entry is not None and entry.url != start]


def open_file(url: str) -> Any:
    """Open a file for reading at any place, as a file of pyarrow."""
    with explained(url):
        system, key = _reach(url)
        return system.open_input_file(key)


def download(entries: Sequence[tuple[Entry, Path]], name: str) -> None:
    """Copy files to local ones, many at once and large ones in pieces, as a stage that counts bytes."""
    sizes = [entry.size or 0 for entry, _ in entries]
    pieces = [
        (entry, target, first, min(PIECE_BYTES, size - first))
        for (entry, target), size in zip(entries, sizes, strict=True)
        for first in ([0] if _scheme(entry.url) in WEB else range(0, max(size, 1), PIECE_BYTES))
    ]
    with Stage(name, sum(sizes), unit=BYTES) as stage:

        def copy(piece: tuple[Entry, Path, int, int]) -> None:
            entry, target, first, n = piece
            data = _read_page(entry) if _scheme(entry.url) in WEB else _read_piece(entry, first, n)
            with target.open("r+b") as file:
                file.seek(first)
                file.write(data)
            stage.advance(len(data))

        deque(mapped(copy, pieces), maxlen=0)
    # Pieces of one size may be of two files.
    for entry in {entry.url: entry for entry, _, first, _ in pieces if first}.values():
        require_unchanged(entry)


def mapped(work: Callable[[Item], Made], items: Sequence[Item], *, finishing: bool = False) -> Iterator[Made]:
    """Do some work for each item, many at once, and yield what comes of it in order; the first error ends all.

    What is under way then is not waited for, unless it is `finishing` work: what it writes is to be removed.
    """
    from concurrent.futures import ThreadPoolExecutor  # slow to load, as is logging, which it needs

    pool = ThreadPoolExecutor(min(PARALLEL, max(len(items), 1)))
    try:
        yield from pool.map(work, items)
    except BaseException:
        pool.shutdown(wait=finishing, cancel_futures=True)
        raise
    pool.shutdown()


def write(url: str, data: bytes | Path) -> None:
    """Write a file from bytes, or from a local file: whole, or not at all."""
    arrow = require("pyarrow", extra=EXTRA)
    with explained(url, WRITTEN):
        system, key = _reach(url)
        import mimetypes

        kind = mimetypes.guess_type(key)[0]  # browsers show a page only as such
        content = arrow.py_buffer(data) if isinstance(data, bytes) else arrow.memory_map(str(data)).read_buffer()
        # In one call: what is closed before all is written would be stored as it is.
        stream = system.open_output_stream(key, metadata={"Content-Type": kind} if kind else None)
        stream.write(content)
        stream.close()


@contextlib.contextmanager
def output(url: str) -> Iterator[Any]:
    """Open a file to write it piece by piece; after an error, an unfinished one may be there."""
    with explained(url, WRITTEN):
        system, key = _reach(url)
        with system.open_output_stream(key) as stream:
            yield stream


def write_folder(url: str, files: Mapping[str, bytes]) -> None:
    """Write the files of a folder, by relative path, many at once; where one fails, none is left that was not there."""
    start = url.rstrip("/")
    there = {entry.url for entry in list_below(url) if not entry.is_folder}
    urls = {f"{start}/{name}": data for name, data in files.items()}
    try:
        with Stage(f"uploading {url}", len(urls)) as stage:

            def upload(target: str) -> None:
                write(target, urls[target])
                stage.advance()

            deque(mapped(upload, list(urls), finishing=True), maxlen=0)
    except BaseException:
        with contextlib.suppress(MachineError):
            deque(mapped(remove, [target for target in urls if target not in there]), maxlen=0)
        raise


def write_marked(url: str, files: Mapping[str, Path], mark: str) -> None:
    """Write the files of a folder, by relative path, which is one by a file that is written last, its `mark`.

    All else that lies there is removed, the mark of an earlier one before anything. After an error nothing is left, or
    the MachineError has what is.
    """
    start = url.rstrip("/")
    urls = {f"{start}/{name}": path for name, path in files.items()}
    last = f"{start}/{mark}"
    try:
        remove(last)
        with Stage(f"uploading {url}", len(urls)) as stage:

            def upload(target: str) -> None:
                write(target, urls[target])
                stage.advance()

            deque(mapped(upload, [target for target in urls if target != last], finishing=True), maxlen=0)
            for entry in list_below(start):
                if not entry.is_folder and entry.url not in urls:
                    remove(entry.url)
            upload(last)
    except BaseException as error:
        try:
            remove_folder(start)
        except MachineError as left:
            raise MachineError(f"{error or 'interrupted'}\nRemove what is left of it: {left}") from None
        raise


def remove_folder(url: str) -> None:
    """Remove a folder and all that lies below it; a bucket stays."""
    with explained(url, "removed"), contextlib.suppress(FileNotFoundError):
        system, key = _reach(url)
        # Not file by file: S3 would get an empty object in the place of each folder.
        if url.rstrip("/") == _root(url):
            system.delete_dir_contents(key)
        else:
            system.delete_dir(key)


def remove(url: str) -> None:
    """Remove a file; one that is not there is none to remove."""
    with explained(url, "removed"), contextlib.suppress(FileNotFoundError):
        system, key = _reach(url)
        system.delete_file(key)


def require_place(url: str) -> None:
    """Raise a MachineError where a file cannot be written because there is no such bucket, or it cannot be reached."""
    root, problem = _root(url), ""
    if _scheme(url) in (*S3, *GS, *AZURE) and look_up(root) is None:
        problem = f"there is no bucket {quoted_value(root.partition('://')[2])}. Create it, or check the URL."
    elif _scheme(url) in WEB:
        problem = "web servers take no files. Write to an object store (s3://, gs://, abfs://)."
    if problem:
        raise MachineError(f"cannot write {quoted_value(url)}: {problem}")


def missing(url: str) -> DataError:
    """Return the error of a URL where nothing lies; it names the bucket where that is not there either."""
    root, what = _root(url), "there is no object and no folder of this name"
    fix = "Check the URL; names are case-sensitive."
    if _scheme(url) in WEB:
        what, fix = "the server has no such file", "Check the URL."
    elif _scheme(url) in (*S3, *GS, *AZURE) and look_up(root) is None:
        what = f"there is no bucket {quoted_value(root.partition('://')[2])}"
        is_s3 = _scheme(url) in S3
        fix = f"Check the URL{', and AWS_ENDPOINT_URL for a store of another provider' if is_s3 else ''}."
    return DataError.single("file-missing", Where(url), what, fix=fix)


@contextlib.contextmanager
def explained(url: str, done: str = "read") -> Iterator[None]:
    """Turn what a file system reports into one message that names the URL, and how to fix it."""
    try:
        yield
    except (FileNotFoundError, JaccardEvalError):
        raise
    except Exception as error:  # what libraries of stores raise is theirs to choose
        raise _failure(url, error, done) from None


def _failure(url: str, error: BaseException, done: str) -> MachineError:
    said = " ".join(_SECRETS.sub("", str(error) or type(error).__name__).split())
    reason = said
    if aws := _AWS_ERROR.search(said):
        reason = f"{aws['text'].partition(' (Request ID')[0].rpartition('Details: ')[2].rstrip('.')} ({aws['code']})"
    denied, away = next((advice for schemes, advice in _ADVICE.items() if _scheme(url) in schemes), _ANY_ADVICE)
    reason = shorten(reason, REASON_LENGTH)
    start = f"cannot write {quoted_value(url)}" if done == WRITTEN else url
    if isinstance(error, PermissionError) or _DENIED.search(said):
        return MachineError(f"{start}: access denied: {reason}. {denied}")
    if isinstance(error, TimeoutError) or _AWAY.search(said):
        return MachineError(f"{start}: the store cannot be reached: {reason}. {away}")
    return MachineError(f"{start}: {reason}" if done == WRITTEN else f"{start}: cannot be {done}: {reason}")


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _root(url: str) -> str:
    """Return the beginning of a URL, up to the bucket."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _arrow_fs() -> Any:
    return require("pyarrow.fs", extra=EXTRA)


def _reach(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and what it calls the place."""
    root, scheme = _root(url), _scheme(url)
    if root not in _SYSTEMS:
        _SYSTEMS[root] = _connect(root, scheme)
    system, before = _SYSTEMS[root]
    if scheme in WEB:
        return system, _PRIVATE.get(url, url)
    return system, f"{before}{url[len(root) :]}".rstrip("/")


def _connect(root: str, scheme: str) -> tuple[Any, str]:
    """Return the file system of a bucket, and what it calls the bucket."""
    from urllib.parse import parse_qsl, unquote  # loads more than a plain run has a use for

    arrow, bucket = _arrow_fs(), root.partition("://")[2]
    given = re.match(URL, _PRIVATE.get(root, root))
    user, _, password = (given["user"] or "").partition(":") if given else ("", "", "")
    query = _PRIVATE.get(root, "").partition("?")[2]
    if scheme in S3:
        return _connect_s3(arrow, bucket, unquote(user), unquote(password), dict(parse_qsl(query))), bucket
    if scheme in GS:
        return arrow.GcsFileSystem(retry_time_limit=timedelta(seconds=ATTEMPTS * CONNECT_SECONDS)), bucket
    if scheme in AZURE and hasattr(arrow, "AzureFileSystem"):
        system, before = arrow.FileSystem.from_uri(_PRIVATE.get(root, root).partition("?")[0])
        return system, before
    options: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
    if scheme in WEB:
        aiohttp = require("aiohttp", extra=EXTRA)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=REQUEST_SECONDS)
        options["client_kwargs"] = {"timeout": timeout}
    system = _class_of(scheme)(**options)
    return arrow.PyFileSystem(arrow.FSSpecHandler(system)), system._strip_protocol(root)


def _connect_s3(arrow: Any, bucket: str, user: str, password: str, settings: Mapping[str, str]) -> Any:
    unknown = sorted(set(settings) - {*S3_SETTINGS})
    if unknown:
        known = f"choose from {', '.join(S3_SETTINGS)}.{did_you_mean(unknown[0], S3_SETTINGS)}"
        raise UsageError(f"s3://{bucket}: unknown setting {quoted_value(unknown[0])} in the URL; {known}")
    options: dict[str, Any] = {name: settings[name] for name in ("region", "scheme") if name in settings}
    # pyarrow looks at these only when it is given a whole URL, and then has no limits of time.
    variables = (os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = settings.get("endpoint_override") or next(filter(None, variables), None)
    if endpoint:
        options["endpoint_override"] = endpoint
    elif "region" not in options:
        options["region"] = arrow.resolve_s3_region(bucket)
    if user:
        options |= {"access_key": user, "secret_key": password}
    if settings.get("anonymous", "").lower() in ("1", "true", "yes"):
        options["anonymous"] = True
    return arrow.S3FileSystem(
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=arrow.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        **options,
    )


def _class_of(scheme: str) -> Any:
    """Return fsspec's file system of a scheme; a UsageError where there is none."""
    fsspec = require("fsspec", extra=EXTRA)
    try:
        return fsspec.get_filesystem_class(scheme)
    except ValueError:
        known = sorted({*S3, *GS, *AZURE, *fsspec.available_protocols()})
        raise UsageError(
            f"unknown scheme {quoted_value(scheme)} of a URL; s3, gs, abfs and https are known, and what fsspec knows."
            f"{did_you_mean(scheme, known)}"
        ) from None
    except ImportError as error:
        raise MachineError(f"{scheme}:// needs another package: {' '.join(str(error).split())}") from None


def _entry(info: Any, url: str) -> Entry | None:
    kinds = _arrow_fs().FileType
    if info.type == kinds.NotFound:
        return None
    if info.type == kinds.Directory:
        return Entry(url, None)
    return Entry(url, info.size or 0, info.mtime_ns or 0)


def _read_piece(entry: Entry, first: int, n: int) -> bytes:
    with explained(entry.url):
        system, key = _reach(entry.url)
        try:
            with system.open_input_file(key) as file:
                size = file.size()
                data: bytes = file.read_at(n, first)
        except FileNotFoundError:
            size, data = -1, b""
    if size != entry.size or len(data) != n:
        raise _changed(entry, size)
    return data


def require_unchanged(entry: Entry) -> None:
    """Raise a DataError when a file was replaced after it was looked up."""
    after = look_up(entry.url)
    if after != entry:
        raise _changed(entry, -1 if after is None else after.size or 0)


def _changed(entry: Entry, size: int) -> DataError:
    after = "gone after" if size < 0 else f"{size:,} after"
    detail = f"changed while it was read: {entry.size or 0:,} bytes before, {after}"
    return DataError.single("input-changed", Where(entry.url), detail, fix="Wait until it is completely written.")


def _look_up_page(url: str) -> Entry | None:
    system, key = _reach(url)
    try:
        about = system.handler.fs.info(key)
    except FileNotFoundError as error:
        # fsspec calls missing whatever it did not get.
        cause = error.__cause__
        if cause is None or getattr(cause, "status", None) in (404, 410):
            return None
        raise OSError(str(cause) or type(cause).__name__) from None
    return Entry(url, about.get("size") or 0)


def _read_page(entry: Entry) -> bytes:
    """Return a file of a web server whole, as it need not know its size, nor give a part of it."""
    system, key = _reach(entry.url)
    with explained(entry.url):
        data: bytes = system.handler.fs.cat_file(key)
        return data
