"""A cluster whose workers share no folder but a store: the same bytes, read where they lie, and nothing left there."""

from __future__ import annotations

import csv
import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.test_cluster import SLEEPY, wait_for
from engine.test_disk_engine import OPTIONS, document, write_scene, write_shapes
from s3_server import serve_s3
from shaped import shape_options

from jaccard_eval import convert, evaluate, storage
from jaccard_eval.cli.run import run
from jaccard_eval.engine import dask_, stored
from jaccard_eval.engine.tasks import MatchPart
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.findings import DataError

distributed = pytest.importorskip("distributed")
fs = pytest.importorskip("pyarrow.fs")
pytest.importorskip("moto.server")
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore::DeprecationWarning")]

SCRATCH = "s3://shared/tmp"


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """A bucket, which this process and its workers reach."""
    with serve_s3() as endpoint:
        system = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
        system.create_dir("shared")
        yield system


@pytest.fixture(scope="module")
def cluster(store: Any) -> Iterator[Any]:
    settings = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=2, **settings) as found:
        yield found


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture(autouse=True)
def small_portions(small_parts: Callable[..., None]) -> None:
    small_parts(100, 200)


def left(store: Any) -> list[str]:
    """What lies below the scratch folder, empty folders too: each is an object."""
    found = store.get_file_info(fs.FileSelector("shared/tmp", recursive=True, allow_not_found=True))
    return [info.path for info in found]


@pytest.mark.parametrize("name", ["voc2012", "confusion at a score"])
def test_scratch_in_a_store_gives_the_same_bytes_and_is_removed(
    store: Any, client: Any, tmp_path: Path, name: str
) -> None:
    gt, pred = write_scene(tmp_path, 2, 120, 1)
    expected = document(evaluate(gt, pred, engine="memory", **OPTIONS[name]))
    result = evaluate(gt, pred, client=client, scratch=SCRATCH, **OPTIONS[name])
    assert document(result) == expected
    assert any("/run-" in path for path in left(store))
    del result
    gc.collect()
    assert not left(store)


def test_scratch_in_a_store_is_removed_after_a_failure_and_kept_where_asked(
    store: Any, client: Any, cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    with pytest.raises(UsageError):
        evaluate(gt, pred, client=client, scratch=SCRATCH, classes=["cow"])
    assert not left(store)
    words = [str(gt), str(pred), "--engine", "dask", "--scheduler", cluster.scheduler_address, "--scratch", SCRATCH]
    assert run([*words, "--keep-scratch", "--retries", "1"]) == 0
    (folder,) = {path.split("/")[2] for path in left(store)}
    assert f"note[scratch-kept]: {SCRATCH}/{folder}\n" in capfd.readouterr().err
    store.delete_dir("shared/tmp")
    assert run(["evaluate", str(gt), str(pred), "--engine", "disk", "--scratch", SCRATCH]) == 2


def test_a_task_that_outlives_its_run_leaves_nothing(store: Any, client: Any, tmp_path: Path) -> None:
    from jaccard_eval.engine.scratch import make_store_scratch, remove_scratch, write_whole

    folder = make_store_scratch(SCRATCH)
    write_whole(folder / "run", [b"rows"])
    remove_scratch(folder)
    assert not left(store)
    with pytest.raises(MachineError, match="was removed"):
        write_whole(folder / "run", [b"rows"])
    assert not left(store)


@pytest.mark.parametrize("place", ["a folder", "a store", "a folder that workers do not see"])
def test_parts_are_read_where_they_lie(
    store: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    gt, pred = write_scene(tmp_path, 3, 90, 1)
    parts = "s3://shared/parts" if place == "a store" else "parts"
    monkeypatch.chdir(tmp_path)  # workers have another one
    assert run(["partition", str(gt), str(pred), "-o", parts, "--partitions", "3", "-q", "--force"]) == 0
    expected = document(evaluate(gt, pred, engine="memory"))

    def refuse(*_: object) -> None:
        raise AssertionError("written again")

    if place.endswith("not see"):
        monkeypatch.setattr(dask_, "digest_of", lambda path: f"of {os.getpid()}")
    else:
        monkeypatch.setattr(stored, "write_boxes", refuse)
    assert document(evaluate(parts, client=client, scratch=SCRATCH)) == expected
    assert document(evaluate(parts, engine="memory")) == expected


@pytest.mark.parametrize("place", ["s3://shared", "memory://parts"])
@pytest.mark.parametrize("kind", ["segm", "keypoints", "obb"])
def test_parts_with_shapes_are_read_from_a_store(
    store: Any, client: Any, tmp_path: Path, kind: str, place: str
) -> None:
    sides, parts = write_shapes(tmp_path, kind, 3, 120, 1), f"{place}/{kind}"
    angles = ["--gt-angle", "rad-cw", "--pred-angle", "rad-cw"] if kind == "obb" else []
    command = ["partition", *map(str, sides), "-o", parts, "--partitions", "3", "-q", "--iou-type", kind]
    assert run([*command, *angles]) == 0
    expected = document(evaluate(*sides, engine="memory", **shape_options(kind)))
    # The memory of this process is a store that its workers do not see: boxes go to the scratch folder.
    for where in ({"engine": "memory"}, {"engine": "disk"}, {"client": client, "scratch": SCRATCH}):
        assert document(evaluate(parts, iou_type=kind, **where)) == expected


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_inputs_with_shapes_are_read_from_a_store(store: Any, client: Any, tmp_path: Path, kind: str) -> None:
    sides = write_shapes(tmp_path, kind, 3, 120, 1)
    urls = [f"s3://shared/{kind}-{path.name}" for path in sides]
    for path, url in zip(sides, urls, strict=True):
        storage.write(url, path)
    here, there = (
        document(evaluate(*urls, iou_type=kind, **where))
        for where in ({"engine": "memory"}, {"client": client, "scratch": SCRATCH})
    )
    assert here == there


def test_a_bucket_outlives_the_parts_that_could_not_be_written(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_dir("brittle")
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    write = storage.write

    def cut_off(url: str, data: Any) -> None:
        if url.endswith("manifest.json"):
            raise MachineError("the connection is gone")
        write(url, data)

    monkeypatch.setattr(storage, "write", cut_off)
    assert run(["partition", str(gt), str(pred), "-o", "s3://brittle", "--partitions", "3", "-q"]) == 4
    assert not store.get_file_info(fs.FileSelector("brittle", recursive=True))


def task_sizes(gt: Path, pred: Path, parts: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of the tasks that match a folder of parts on the disk."""
    assert run(["partition", str(gt), str(pred), "-o", str(parts), "--partitions", "2", "-q"]) == 0
    sizes, make = [], MatchPart.__init__

    def weighed(self: MatchPart, **values: Any) -> None:
        make(self, **values)
        sizes.append(len(pickle.dumps(self)))

    monkeypatch.setattr(MatchPart, "__init__", weighed)
    evaluate(parts, engine="disk", score_min=0.01, nms=0.9)
    monkeypatch.setattr(MatchPart, "__init__", make)
    return sizes


def test_tasks_hold_places_and_not_boxes(
    tmp_path: Path, small_parts: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_parts(10**6)
    found = []
    for n in (100, 3000):
        folder = tmp_path / str(n)
        folder.mkdir()
        found.append(max(task_sizes(*write_scene(folder, 2, n, 4), folder / "parts", monkeypatch)))
    # Thirty times the boxes, of 65 bytes each.
    assert found[1] < found[0] + 500 < 10_000


def test_boxes_read_in_another_way_reach_the_workers(client: Any, tmp_path: Path) -> None:
    """The evidence that boxes are of another encoding is measured on the workers as well."""
    gt, pred = write_scene(tmp_path, 1, 90, 4)
    table = tmp_path / "pred.csv"
    convert(pred, table, gt=gt)
    with table.open() as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
        row |= {"left": str(left + width / 2), "top": str(top + height / 2)}
    with table.open("w") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)

    def codes(**engine: Any) -> Any:
        try:
            return document(evaluate(gt, table, **engine))
        except DataError as error:
            return str(error)

    here = codes(engine="disk")
    assert "box-encoding" in here
    assert codes(client=client, scratch=tmp_path) == here


def test_an_interrupt_empties_the_store(store: Any, cluster: Any, tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    words = [str(gt), str(pred), "--engine", "dask", "--scheduler", cluster.scheduler_address, "--scratch", SCRATCH]
    with subprocess.Popen([sys.executable, "-c", SLEEPY, *words], stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: any("MatchPart" in path for path in left(store)))
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1].endswith("interrupted\n")
    assert process.returncode == 130
    assert not left(store)


def test_a_store_that_workers_cannot_reach_is_named_before_the_first_task(
    store: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)

    def elsewhere(probe: str, name: str) -> Any:
        from jaccard_eval.engine.worker import look_around

        return look_around(probe if name.endswith("here") else probe.replace("shared", "not-there"), name)

    monkeypatch.setattr(dask_, "look_around", elsewhere)
    with pytest.raises(MachineError, match=r"worker tcp://\S+ cannot use it: .*a URL that all can reach"):
        evaluate(gt, pred, client=client, scratch=SCRATCH)
    assert not left(store)


def test_a_bucket_that_is_not_there_is_named(store: Any, client: Any, tmp_path: Path) -> None:
    gt, pred = write_scene(tmp_path, 1, 60, 4)
    with pytest.raises(MachineError, match="there is no bucket 'no-such-bucket'"):
        evaluate(gt, pred, client=client, scratch="s3://no-such-bucket/tmp")
