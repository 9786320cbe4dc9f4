"""The engine of an existing Dask cluster: tasks go to its workers, boxes and runs lie in a folder that all share."""

from __future__ import annotations

import contextlib
import logging
import secrets
import sys
import time
import weakref
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jaccard_eval import storage
from jaccard_eval.data.protocol import BOXES
from jaccard_eval.engine.disk import DiskEngine, portions
from jaccard_eval.engine.memory import usable_memory
from jaccard_eval.engine.scratch import (
    ScratchPlace,
    StorePlace,
    is_there,
    make_scratch,
    make_store_scratch,
    portable,
    remove_scratch,
    write_whole,
)
from jaccard_eval.engine.stored import Found, Item, Piece, Tables
from jaccard_eval.engine.worker import digest_of, look_around, run_task
from jaccard_eval.errors import MachineError, UsageError, require
from jaccard_eval.findings import is_address
from jaccard_eval.fixes import Fix
from jaccard_eval.frozen import dataclass
from jaccard_eval.options import EngineOptions
from jaccard_eval.progress import Stage
from jaccard_eval.text import pluralise, public

if TYPE_CHECKING:
    from jaccard_eval.options import PathText

POLL = 0.5  # seconds between two looks at a cluster that has no answer yet
WATCH = 2.0  # seconds between two looks at its workers
CONNECT = 30.0  # seconds for the scheduler to answer
HOME = ("127.0.0.1", "localhost", "::1")  # hosts of schedulers whose workers see the temporary files of this machine

_log = logging.getLogger("jaccard_eval.dask")


@dataclass(frozen=True, kw_only=True, eq=False)
class DaskEngine(DiskEngine):
    """The disk engine, whose tasks run elsewhere."""

    cluster: Cluster
    store: StorePlace | None = None  # where workers read and write, unless that is the scratch folder itself
    _uploaded: dict[Path, ScratchPlace] = field(init=False, default_factory=dict)
    _removals: list[Any] = field(init=False, default_factory=list)

    @classmethod
    def open(cls, options: EngineOptions, iou_type: str = BOXES) -> DaskEngine:
        """Connect to a cluster, and make a scratch folder that all of its workers can use."""
        cluster = Cluster(options)
        store: StorePlace | None = None
        try:
            parent, kept = cluster.scratch_parent(options), options.keep_scratch
            if parent is not None and is_address(str(parent)):
                # What this process alone reads stays here.
                store, parent, kept = make_store_scratch(str(parent), kept=kept), None, False
            scratch = make_scratch(parent, kept=kept)
        except BaseException:
            cluster.close()
            if store is not None and not options.keep_scratch:
                remove_scratch(store)
            raise
        # The memory limit is that of one task, and of this process where an input is read whole.
        room = options.bytes or usable_memory()
        parts = portions(options, 1, iou_type)
        engine = cls(scratch=scratch, **parts, kept=kept, room=room, cluster=cluster, store=store)
        weakref.finalize(engine, cluster.close)
        engine.remove_at_end()
        if store is not None and not options.keep_scratch:
            engine._removals.append(weakref.finalize(engine, remove_scratch, store))
        try:
            cluster.wait_for_worker()
            cluster.check_workers(store or scratch)
        except BaseException:
            engine.close()
            raise
        return engine

    def close(self) -> None:
        """Leave the cluster, too."""
        self.cluster.close()
        super().close()
        for remove in self._removals:
            remove()

    def shared_folder(self) -> ScratchPlace:
        """Make a new folder for what tasks write; in an object store there is nothing to make."""
        return self.folder() if self.store is None else self.store / f"{next(self._numbers):03}"

    def shared(self, boxes: Tables) -> Tables:
        """Return boxes as tasks read them: in the scratch folder of the workers, or where they lie."""
        if self.store is not None:
            self._upload([file for file in boxes.files if isinstance(file, Path) and file not in self._uploaded])

        def shared(file: ScratchPlace | Piece) -> ScratchPlace | Piece:
            if isinstance(file, Path):
                return self._uploaded.get(file, file)
            return file if isinstance(file, StorePlace) else file.absolute()

        return replace(boxes, files=tuple(map(shared, boxes.files)))

    def _upload(self, files: list[Path]) -> None:
        if not files:
            return
        folder = self.shared_folder()
        with Stage("uploading", len(files)) as stage:

            def upload(file: Path) -> None:
                self._uploaded[file] = folder / file.name
                storage.write(str(folder / file.name), file)
                stage.advance()

            deque(storage.mapped(upload, files, finishing=True), maxlen=0)

    def shows(self, path: Path) -> bool:
        """Whether all workers can read a file where it lies, and find there what this process does."""
        return self.cluster.shows(storage.portable(str(path)) if is_address(path) else path.absolute())

    def map(self, task: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        """Yield what a task makes of each item, in their order."""
        pickle = require("cloudpickle", extra="dask")
        # What is the same for all items is written once: the scheduler passes on no more than its place.
        path = self.shared_folder() / f"{type(task).__name__}-{secrets.token_hex(4)}"
        write_whole(path, [pickle.dumps(task)])
        describe = getattr(task, "describe", None)
        call = partial(run_task, portable(path))
        return self.cluster.map(call, path.name, items, describe or (lambda _: f"a task of {type(task).__name__}"))


def connected(options: EngineOptions) -> Any:
    """Return a client of the scheduler that is named by address or file, or that Dask's configuration names."""
    config = require("dask", extra="dask").config
    address = options.scheduler or config.get("scheduler-address", None)
    file = config.get("scheduler-file", None) if address is None else None
    # A client without an address would start a cluster of its own.
    if address is None and file is None:
        fix = Fix.missing("Pass {scheduler}, or set DASK_SCHEDULER_ADDRESS.", scheduler=None)
        raise UsageError("engine dask needs a cluster.", fix=fix)
    if address is not None and "://" not in str(address):
        address, file = None, str(address)
    if file is not None and not Path(file).is_file():
        raise UsageError(f"{file}: no such scheduler file. Pass tcp://HOST:PORT, tls://HOST:PORT or its path.")
    distributed: Any = require("distributed", extra="dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is reported once, by this module
    given = {
        "tls_ca_file": options.tls_ca,
        "tls_client_cert": options.tls_cert,
        "tls_client_key": options.tls_key,
    }
    tls = {name: str(path) for name, path in given.items() if path is not None}
    where = {"address": address} if address is not None else {"scheduler_file": file}
    try:
        # Without any of these, Dask's own configuration has the certificates.
        security = {"security": distributed.Security(require_encryption=True, **tls)} if tls else {}
        return distributed.Client(**where, **security, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MachineError(f"{address or file}: cannot reach the scheduler: {reason}") from None


class Cluster:
    """A client of a scheduler, which watches the workers."""

    def __init__(self, options: EngineOptions) -> None:
        self._owned = options.client is None
        self._client: Any = connected(options) if self._owned else options.client
        if getattr(self._client, "asynchronous", False):
            raise UsageError("client must be synchronous: distributed.Client(..., asynchronous=False)")
        self._retries, self._patience = options.retries, options.no_worker_timeout
        self._scratch: ScratchPlace | None = None
        self._shown: list[str | Path] = []  # what all workers must be able to read
        self._known: dict[str, int] = {}  # threads of each worker
        self._last_seen = self._last_look = time.monotonic()

    def scratch_parent(self, options: EngineOptions) -> PathText | None:
        """Return the folder that is given, which a scheduler of another machine needs."""
        address = urlsplit(self._client.scheduler.address)
        if options.scratch is None and address.scheme != "inproc" and address.hostname not in HOME:
            fix = Fix.missing("Pass {scratch}, which may be a URL.", scratch=None)
            raise UsageError("engine dask: workers on other machines need a shared folder.", fix=fix)
        return options.scratch

    def close(self) -> None:
        """Leave the cluster, unless the client is the caller's."""
        if self._owned:
            self._client.close(timeout=1)

    def wait_for_worker(self) -> None:
        """Return once there is a worker."""
        while not (workers := self._look()):
            time.sleep(POLL)
        self._known = workers

    def _look(self) -> dict[str, int]:
        """Return the threads of each worker; raise a MachineError when there is no cluster any more."""
        workers: dict[str, int] | None = None
        if self._client.status == "running":
            with contextlib.suppress(OSError, ValueError):  # what a connection that breaks off raises
                workers = self._client.sync(self._client.scheduler.ncores)
        if workers is None:
            raise MachineError("the Dask scheduler is gone. Start the cluster again, and rerun.")
        self._last_look = time.monotonic()
        if workers:
            self._last_seen = self._last_look
        elif self._last_look - self._last_seen > self._patience:
            fix = Fix.missing("Start workers, or wait longer with {no_worker_timeout}.", no_worker_timeout=None)
            raise MachineError(f"no worker for {self._patience:g} s.", fix=fix)
        return workers

    def _watch(self) -> None:
        """Report workers that are gone, and check those that are new."""
        if self._client.status == "running" and time.monotonic() - self._last_look < WATCH:
            return
        workers = self._look()
        for address in sorted(self._known.keys() - workers.keys()):
            left = pluralise(len(workers), "worker")
            _log.log(logging.WARNING, "worker %s is gone; its tasks are repeated elsewhere (%s left)", address, left)
        new = workers.keys() - self._known.keys()
        self._known = workers
        if new and self._scratch is not None:
            self.check_workers(self._scratch, sorted(new))

    def shows(self, path: str | Path) -> bool:
        """Whether all workers can read a file, and find in it what this process does."""
        found = self._client.run(digest_of, path, on_error="return", nanny=False)
        if not found or set(found.values()) != {digest_of(path)}:
            return False
        self._shown.append(path)
        return True

    def check_workers(self, scratch: ScratchPlace, workers: list[str] | None = None) -> None:
        """Raise a MachineError unless workers have our versions, and read and write the scratch folder."""
        self._scratch, self._known = scratch, self._look()
        pickle = require("cloudpickle", extra="dask")
        token = secrets.token_hex(8)
        probe = scratch / f"probe-{token}"
        write_whole(probe, [token.encode("ascii")])
        ours = look_around(portable(probe), f"{token}-here")
        # A worker without this package knows none of its functions: this one travels with its code.
        module = sys.modules[look_around.__module__]
        pickle.register_pickle_by_value(module)
        try:
            found = self._client.run(
                look_around, portable(probe), f"{token}-worker", workers=workers, on_error="return", nanny=False
            )
        finally:
            pickle.unregister_pickle_by_value(module)
        unlike = {}
        for address, theirs in found.items():
            if isinstance(theirs, BaseException):
                if address in self._look():
                    raise MachineError(f"worker {address} cannot be asked: {theirs}")
                continue
            if theirs["versions"] != ours["versions"]:
                unlike[address] = theirs["versions"]
            elif theirs["problem"] or not is_there(scratch / theirs["wrote"]):
                problem = theirs["problem"] or "what it writes there is not visible here"
                words = "Pass {scratch} with a folder that all machines share, or a URL that all can reach."
                detail = f"{scratch.parent}: worker {address} cannot use it: {problem.rstrip('.')}."
                raise MachineError(detail, fix=Fix.missing(words, scratch=None))
        if unlike:
            raise MachineError(_versions_text(ours["versions"], unlike))
        for path in self._shown:
            seen = self._client.run(digest_of, path, workers=workers, on_error="return", nanny=False)
            for address, digest in seen.items():
                if digest != digest_of(path):
                    shown = public(str(path))
                    raise MachineError(f"{shown}: worker {address} reads a different file: {digest}")

    def map(
        self, call: Callable[[Any], Any], name: str, items: Iterable[Item], describe: Callable[[Any], str]
    ) -> Iterator[Any]:
        """Yield what a function makes of each item, in their order; keys begin with a `name` of its own."""
        waiting = iter(items)
        under_way: deque[tuple[Any, Any]] = deque()
        try:
            while True:
                # One in work and one that waits for each thread; answers that nobody has taken do not pile up.
                room = 2 * max(1, sum(self._known.values())) - len(under_way)
                under_way.extend((item, self._submit(call, name, item)) for item in islice(waiting, max(room, 0)))
                if not under_way:
                    return
                item, future = under_way.popleft()
                try:
                    answer = self._answer(future, partial(describe, item))
                except BaseException:
                    under_way.append((item, future))  # to be cancelled as well
                    raise
                future.release()
                yield answer
        finally:
            if under_way and self._client.status == "running":
                self._client.cancel([future for _, future in under_way], force=True)

    def _submit(self, call: Callable[[Any], Any], name: str, item: Any) -> Any:
        key = f"{name}-{secrets.token_hex(8)}"
        return self._client.submit(call, item, key=key, pure=False, retries=self._retries)

    def _answer(self, future: Any, describe: Callable[[], str]) -> Any:
        """Wait for an answer, and turn what the cluster reports into an error that names what to do."""
        cancelled = CancelledError, futures.CancelledError
        self._watch()
        while not future.done():
            with contextlib.suppress(TimeoutError, *cancelled):
                future.exception(timeout=POLL)
            self._watch()
        try:
            return future.result()
        except require("distributed", extra="dask").KilledWorker:
            raise MachineError(
                f"workers died of {describe()}, most often because they ran out of memory. "
                "Start workers with more memory each, such as: dask worker --nthreads 1 --memory-limit 4GiB"
            ) from None
        except cancelled:
            self._look()
            raise MachineError("the Dask scheduler cancelled a task. Rerun, with a cluster of its own.") from None


def _versions_text(ours: dict[str, str], unlike: dict[str, dict[str, str]]) -> str:
    """Return a table of what differs, and how to fix it."""
    rows = [("", *ours), ("here", *ours.values())]
    rows += [(address, *versions.values()) for address, versions in sorted(unlike.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    wanted = f"jaccard-eval {ours['jaccard-eval']} with its extra dask, and numpy {ours['numpy']}"
    what = pluralise(len(unlike), "worker has", "workers have")
    return "\n  ".join([f"{what} other versions than this process:", *lines, f"On the workers, install {wanted}."])
