"""What runs in the process of a worker: a look around before any task, and tasks that are read from a file."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypedDict

MMAP_THRESHOLD = -3, 32 * 2**20  # of mallopt: what is smaller stays with the process between two tasks


class Surroundings(TypedDict):
    """What a process has, and whether it can use the scratch folder."""

    versions: dict[str, str]
    problem: str
    wrote: str


def look_around(probe: str, name: str) -> Surroundings:
    """Return versions, read a file of the scratch folder, and write one next to it.

    It may run where this package is missing: it uses nothing of its module but plain values.
    """
    import importlib
    import os
    import platform
    import socket
    from pathlib import Path

    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package, module in (("numpy", "numpy"), ("jaccard-eval", "jaccard_eval.version")):
        try:
            versions[package] = str(importlib.import_module(module).__version__)
        except Exception as error:
            versions[package] = "missing" if isinstance(error, ImportError) else f"broken: {error}"
    wrote, problem = f"probe-{name}-{socket.gethostname()}-{os.getpid()}", ""
    try:
        if "://" in probe:
            storage: Any = importlib.import_module("jaccard_eval.storage")
            url = storage.admit(probe)
            with storage.open_file(url) as file:
                text = file.read().decode("ascii")
            storage.write(f"{url.rpartition('/')[0]}/{wrote}", text.encode("ascii"))
        else:
            text = Path(probe).read_text(encoding="ascii")
            Path(probe).with_name(wrote).write_text(text, encoding="ascii")
    except Exception as error:
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return {"versions": versions, "problem": problem, "wrote": wrote}


def digest_of(path: Any) -> str:
    """Return the SHA-256 of a file, or why it cannot be read; it may lie behind a URL."""
    import hashlib

    from jaccard_eval import storage

    try:
        if not isinstance(path, str):
            return hashlib.sha256(path.read_bytes()).hexdigest()
        with storage.open_file(storage.admit(path)) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except Exception as error:
        return getattr(error, "strerror", None) or str(error) or type(error).__name__


def run_task(path: str, item: Any) -> Any:
    """Return what the task in a file makes of an item."""
    from jaccard_eval.engine.memory import ENOUGH, release_memory

    _keep_pages()
    answer = _task(path)(item)
    release_memory(ENOUGH)
    return answer


@lru_cache(maxsize=2)
def _task(path: str) -> Any:
    import pickle  # reads what cloudpickle writes

    from jaccard_eval.engine.scratch import place_of, read_bytes

    return pickle.loads(read_bytes(place_of(path)))  # noqa: S301 - of this run: Dask's messages are pickles as well


@lru_cache(maxsize=1)
def _keep_pages() -> None:
    """Undo what Dask's nanny asks of the allocator: giving back every page costs more than half of the time."""
    import ctypes
    import sys

    if sys.platform.startswith("linux"):
        try:
            ctypes.CDLL(None).mallopt(*MMAP_THRESHOLD)
        except (OSError, AttributeError):  # musl has none
            return
