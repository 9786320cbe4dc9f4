"""A real cluster gives the same bytes, whichever worker dies; what it cannot do ends with a line that says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine.test_disk_engine import OPTIONS, document, write_scene, write_shapes
from judged_scenes import write_lvis, write_open_images
from shaped import KINDS, shape_options

from jaccard_eval import evaluate, suite
from jaccard_eval.cli.run import run
from jaccard_eval.engine import dask_
from jaccard_eval.errors import MachineError, UsageError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
# Warnings of the library about itself, such as ports in use.
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore::DeprecationWarning")]

LOCAL = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        distributed.LocalCluster(n_workers=2, **LOCAL) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(autouse=True)
def small_portions(small_parts: Callable[..., None]) -> None:
    small_parts(100, 100)


def dying(kind: str, folder: Path) -> Callable[[str, Any], Any]:
    """Return a task that kills its worker the first time that one of a kind comes by."""

    def run(path: str, item: Any) -> Any:
        from pathlib import Path

        from jaccard_eval.engine.worker import run_task

        if kind in path:
            try:
                (Path(folder) / kind).touch(exist_ok=False)
            except FileExistsError:
                return run_task(path, item)
            os.kill(os.getpid(), signal.SIGKILL)
        return run_task(path, item)

    return run


@pytest.mark.parametrize("kind", ["MatchPart", "ReduceCurves", "SplitByScore", "BestOfScores"])
def test_a_worker_that_dies_changes_no_byte(
    kind: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gt, pred = write_scene(tmp_path, 2, 300, 1)
    options = OPTIONS["voc2012" if "Score" in kind else "slices"]
    memory = evaluate(gt, pred, engine="memory", **options)
    monkeypatch.setattr(dask_, "run_task", dying(kind, tmp_path))
    monkeypatch.setattr(dask_, "WATCH", 0.0)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert document(evaluate(gt, pred, client=client, scratch=scratch, **options)) == document(memory)
    assert (tmp_path / kind).exists()
    assert "is gone; its tasks are repeated elsewhere" in caplog.text


@pytest.mark.parametrize("protocol", ["lvis", "openimages-challenge"])
def test_classes_are_judged_by_image_on_a_cluster_as_well(protocol: str, client: Any, tmp_path: Path) -> None:
    write = write_lvis if protocol == "lvis" else write_open_images
    gt, pred = write(tmp_path, 3, 300, 1)
    memory = evaluate(gt, pred, engine="memory", protocol=protocol, confusion=True)
    found = evaluate(gt, pred, client=client, scratch=tmp_path, protocol=protocol, confusion=True)
    assert document(found) == document(memory)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_compared_on_a_cluster_as_well(kind: str, client: Any, tmp_path: Path) -> None:
    sides = write_shapes(tmp_path, kind, 3, 120, 1)
    options = {"confusion": True, **shape_options(kind)}
    memory = evaluate(*sides, engine="memory", **options)
    assert memory["AP50"] > 0  # some are found
    assert document(evaluate(*sides, client=client, scratch=tmp_path, **options)) == document(memory)


def test_a_folder_that_workers_do_not_share_is_named_before_the_first_task(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)

    def elsewhere(probe: str, name: str) -> Any:
        from jaccard_eval.engine.worker import look_around

        # The place of the same name on another machine.
        return look_around(probe if name.endswith("here") else f"/not-mounted{probe}", name)

    monkeypatch.setattr(dask_, "look_around", elsewhere)
    with pytest.raises(MachineError, match=r"cannot use it: No such file.*Pass scratch with a folder"):
        evaluate(gt, pred, client=client, scratch=tmp_path)
    assert not list(tmp_path.glob("jaccard-eval-scratch-*"))


def test_a_worker_over_its_memory_names_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)

    def hungry(path: str, item: Any) -> None:
        held = bytearray(700_000_000)
        held[:: 2**12] = b"x" * len(held[:: 2**12])
        time.sleep(30)

    monkeypatch.setattr(dask_, "run_task", hungry)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=1, memory_limit="500MiB", silence_logs="CRITICAL", **LOCAL) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(MachineError, match=r"workers died of part 1 of 1, with 61 predictions.*more memory"),
    ):
        evaluate(gt, pred, client=client, scratch=tmp_path)
    assert not list(tmp_path.glob("jaccard-eval-scratch-*"))


def test_nothing_is_started_unasked(tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    with pytest.raises(UsageError, match="needs a cluster"):
        evaluate(gt, pred, engine="dask")
    with pytest.raises(UsageError, match=r'scheduler: .*Pass engine="dask"'):
        evaluate(gt, pred, scheduler="tcp://127.0.0.1:1")


# A scheduler of its own process, and the command line.

SLEEPY = """
import sys, time
from jaccard_eval.engine import dask_
def run_task(path, item):
    time.sleep(60)
dask_.run_task = run_task
sys.argv = ["jaccard-eval", *sys.argv[1:]]
from jaccard_eval.__main__ import main
main()
"""


def ends(process: subprocess.Popen[str], seconds: float = 60) -> str:
    _, err = process.communicate(timeout=seconds)
    return err


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Processes:
    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, []
        self.file, self.scratch = folder / "scheduler.json", folder / "scratch"
        self.scratch.mkdir()
        self.gt, self.pred = write_scene(folder, 1, 60, 4)
        address = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self.start(
            "-m", "distributed.cli.dask_scheduler", *address, "--scheduler-file", str(self.file)
        )
        wait_for(self.file.exists)

    def start(self, *command: str, path: Path | None = None) -> subprocess.Popen[str]:
        env = {**os.environ} | ({} if path is None else {"PYTHONPATH": str(path)})
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def worker(self, path: Path | None = None) -> None:
        command = ("-m", "distributed.cli.dask_worker", "--scheduler-file", str(self.file), "--no-nanny")
        self.start(*command, "--nthreads", "1", "--no-dashboard", path=path)

    def run(self, *options: str, sleepy: bool = False) -> subprocess.Popen[str]:
        what = ("-c", SLEEPY) if sleepy else ("-m", "jaccard_eval")
        where = ("--engine", "dask", "--scheduler", str(self.file), "--scratch", str(self.scratch))
        return self.start(*what, str(self.gt), str(self.pred), *where, *options)

    def client(self) -> Any:
        return distributed.Client(scheduler_file=str(self.file), set_as_default=False)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    for process in found.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_the_command_on_a_cluster_writes_the_same_bytes_and_is_interrupted_clean(processes: Processes) -> None:
    alone = processes.run("--no-worker-timeout", "1")
    assert "no worker for 1 s" in ends(alone)
    assert alone.returncode == 4
    processes.worker()
    on_cluster = processes.run("--no-errors", "-o", "cluster.json")
    ends(on_cluster)
    assert on_cluster.returncode == 0
    in_memory = processes.start(
        "-m", "jaccard_eval", str(processes.gt), str(processes.pred), "--no-errors", "-o", "memory.json"
    )
    ends(in_memory)
    written = [(processes.folder / f"{name}.json").read_bytes() for name in ("cluster", "memory")]
    assert written[0] == written[1]
    assert not list(processes.scratch.iterdir())

    sleeping = processes.run(sleepy=True)
    with processes.client() as client:
        count = lambda dask_scheduler: len(dask_scheduler.tasks)  # noqa: E731 - sent by value
        wait_for(lambda: client.run_on_scheduler(count))
        sleeping.send_signal(signal.SIGINT)
        assert ends(sleeping).endswith("interrupted\n")
        assert sleeping.returncode == 130
        assert not list(processes.scratch.iterdir())
        wait_for(lambda: not client.run_on_scheduler(count))

    sleeping = processes.run(sleepy=True)
    wait_for(lambda: list(processes.scratch.glob("*/*/MatchPart-*")))
    processes.scheduler.kill()
    assert "the Dask scheduler is gone" in ends(sleeping)
    assert sleeping.returncode == 4
    assert not list(processes.scratch.iterdir())


def test_workers_of_other_versions_are_listed_with_what_to_do(processes: Processes) -> None:
    old, missing = processes.folder / "old" / "jaccard_eval", processes.folder / "missing" / "jaccard_eval"
    for package, init in ((old, ""), (missing, "raise ImportError('blocked')")):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(init)
        (package / "version.py").write_text("__version__ = '0.1.0'")
        processes.worker(package.parent)
    with processes.client() as client:
        wait_for(lambda: len(client.sync(client.scheduler.ncores)) == 2)
    refused = processes.run()
    message = ends(refused)
    assert refused.returncode == 4
    assert "2 workers have other versions than this process" in message
    assert {"0.1.0", "missing"} <= {line.split()[-1] for line in message.splitlines() if "tcp://" in line}
    assert "On the workers, install jaccard-eval" in message
    assert not list(processes.scratch.iterdir())


def failing_once(folder: Path) -> Callable[[str, Any], Any]:
    """Return a task that fails the first time that a worker runs it."""

    def run(path: str, item: Any) -> Any:
        from pathlib import Path

        from jaccard_eval.engine.worker import run_task

        try:
            (Path(folder) / "failed").touch(exist_ok=False)
        except FileExistsError:
            return run_task(path, item)
        raise OSError("the folder was away for a moment")

    return run


def test_tasks_that_fail_are_repeated_as_often_as_asked(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    monkeypatch.setattr(dask_, "run_task", failing_once(tmp_path))
    command = [str(gt), str(pred), "--engine", "dask", "--scheduler", client.scheduler.address, "-q"]
    assert run([*command, "--scratch", str(tmp_path), "--retries", "0"]) == 4
    assert "the folder was away for a moment" in capfd.readouterr().err
    (tmp_path / "failed").unlink()
    assert run([*command, "--scratch", str(tmp_path), "--retries", "1"]) == 0
    assert capfd.readouterr().out.startswith("AP ")


def test_a_cluster_behind_tls_is_reached_with_the_files_of_its_keys(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cryptography")
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    keys = distributed.Security.temporary()
    options = []
    for option, text in (("ca", keys.tls_ca_file), ("cert", keys.tls_client_cert), ("key", keys.tls_client_key)):
        (tmp_path / f"{option}.pem").write_text(text)
        options += [f"--tls-{option}", str(tmp_path / f"{option}.pem")]
    with distributed.LocalCluster(n_workers=1, security=keys, protocol="tls", **LOCAL) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        command = [str(gt), str(pred), "--engine", "dask", "--scheduler", address, "--scratch", str(tmp_path), "-q"]
        assert run([*command, *options]) == 0
        on_cluster = capfd.readouterr().out
        assert run([str(gt), str(pred), "-q"]) == 0
        assert capfd.readouterr().out == on_cluster
        assert run(command) == 4
        assert not list(tmp_path.glob("jaccard-eval-scratch-*"))


def test_a_suite_is_evaluated_on_the_cluster(client: Any, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "sample_data"
    plan = {"gt": "coco/gt.json", "pred": "coco/{model}.json", "models": ["worse", "better"]}
    here = suite(plan, folder=folder, cache=False, workers=1)
    there = suite(plan, folder=folder, cache=False, scheduler=client.scheduler_info()["address"])
    assert there.to_dict() == here.to_dict()
    assert [round(row.mean, 4) for row in there.standings] == [0.6616, 0.3463]
