"""Inputs and outputs behind URLs, in the store of fsspec that lies in this process."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, write_pair

from jaccard_eval import DataError, EvaluationResult, convert, evaluate, load, storage
from jaccard_eval.engine import path_of, session
from jaccard_eval.errors import MachineError, UsageError
from jaccard_eval.storage import admit
from jaccard_eval.text import public

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("pyarrow")

SECRET = "wJalrXUtnFEMI"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """The store, empty; copies of its files go to a folder of this test."""
    system = fsspec.filesystem("memory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    assert not [*tmp_path.glob("jaccard-eval-scratch-*")], "copies were left behind"


def upload(folder: Path, store: Any, root: str) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            store.pipe_file(f"{root}/{file.relative_to(folder).as_posix()}", file.read_bytes())


def seen(result: EvaluationResult, root: str) -> str:
    """The document of a result, whose paths begin at a folder or a URL; a digest is of these paths, too."""
    return re.sub(r'"digest": "[^"]*"', "", json.dumps(result.to_dict(), sort_keys=True)).replace(root, "ROOT")


@pytest.mark.parametrize(
    ("gt", "pred"),
    [
        ("coco/gt.json", "coco/better.json"),
        ("yolo/data.yaml", "yolo/better"),
        ("yolo/labels", "csv/better.csv"),
        ("voc/gt", "voc/better"),
        ("npz/gt.npz", "retinaface/gt.txt"),
    ],
)
def test_a_url_is_read_as_the_same_file_or_folder_here(store: Any, sample_data: Path, gt: str, pred: str) -> None:
    for part in {gt.partition("/")[0], pred.partition("/")[0]}:
        upload(sample_data / part, store, f"/bucket/{part}")
    try:
        here = seen(evaluate(sample_data / gt, sample_data / pred), str(sample_data))
    except DataError as error:
        with pytest.raises(DataError) as there:
            evaluate(f"memory://bucket/{gt}", f"memory://bucket/{pred}")
        assert str(there.value).replace("memory://bucket", str(sample_data)) == str(error)
        return
    assert seen(evaluate(f"memory://bucket/{gt}", f"memory://bucket/{pred}"), "memory://bucket") == here


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_parquet_is_read_where_it_lies(store: Any, sample_data: Path, tmp_path: Path, engine: str) -> None:
    pred = tmp_path / "pred.parquet"
    convert(sample_data / "coco/better.json", pred, to="parquet", gt=sample_data / "coco/gt.json")
    store.pipe_file("/bucket/pred/part-0.parquet", pred.read_bytes())
    result = evaluate(sample_data / "coco/gt.json", "memory://bucket/pred", engine=engine)
    local = evaluate(sample_data / "coco/gt.json", pred, engine=engine)
    assert (result.metrics, result.signature) == (local.metrics, local.signature)


def test_only_what_a_format_reads_is_brought(store: Any, sample_data: Path) -> None:
    upload(sample_data / "yolo", store, "/bucket/yolo")
    store.pipe_file("/bucket/yolo/labels/weights.pt", b"not to be read")
    opened: list[str] = []

    class Watched(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "watched"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(path.replace("watched://", "memory://")))

        def _open(self, path: str, *args: Any, **kwargs: Any) -> Any:
            opened.append(path)
            return super()._open(path, *args, **kwargs)

    fsspec.register_implementation("watched", Watched, clobber=True)
    side = load("watched://bucket/yolo/labels")
    assert len(side.boxes)
    assert {name.rpartition("/")[0] for name in opened} >= {"/bucket/yolo/labels/val", "/bucket/yolo/images/val"}
    assert not any(name.endswith(".pt") for name in opened)


def test_outputs_are_uploaded_and_read_again(store: Any, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    names = ["result.json", "report.html", "table.csv"]
    outputs = [word for name in names for word in ("-o", f"memory://bucket/out/{name}")]
    done = run_here("evaluate", gt, pred, *outputs)
    assert done.returncode == 0
    run_here("evaluate", gt, pred, "-o", tmp_path / "result.json")
    assert store.cat_file("/bucket/out/result.json") == (tmp_path / "result.json").read_bytes()
    assert store.cat_file("/bucket/out/report.html").startswith(b"<!")
    gated = run_here("gate", "memory://bucket/out/result.json", "--fail-under", "AP=0.9")
    assert gated.returncode == 1
    convert(gt, "memory://bucket/voc", to="voc")
    assert load("memory://bucket/voc").images.keys == ("a", "b")


def test_no_output_lies_on_what_is_read(store: Any, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    store.pipe_file("/bucket/gt.json", gt.read_bytes())
    done = run_here("evaluate", "memory://bucket/gt.json", pred, "-o", "memory://bucket/gt.json")
    assert (done.returncode, store.cat_file("/bucket/gt.json")) == (2, gt.read_bytes())
    assert "would overwrite the input 'memory://bucket/gt.json'" in done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://bucket/none.json", "there is no object and no folder of this name"),
        ("memory://bucket/zip.json", "holds a zip archive (or an Office document)"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_url(store: Any, url: str, said: str) -> None:
    store.pipe_file("/bucket/zip.json", b"PK\x03\x04")
    done = run_here("inspect", url)
    assert done.returncode == 3
    assert f"{url}: {said}" in done.stderr
    assert tempfile.gettempdir() not in done.stderr


def test_an_unknown_scheme_is_a_mistake_of_the_call(tmp_path: Path) -> None:
    gt, _ = write_pair(tmp_path)
    done = run_here("evaluate", gt, "s4://bucket/pred.json")
    assert done.returncode == 2
    assert "unknown scheme 's4'" in done.stderr


def test_scratch_of_the_disk_engine_is_a_folder_here(tmp_path: Path) -> None:
    done = run_here("evaluate", *write_pair(tmp_path), "--engine", "disk", "--scratch", "memory://bucket/tmp")
    assert done.returncode == 2
    assert (
        "memory://bucket/tmp: files of the disk engine need a folder of this machine. Pass --scratch DIR" in done.stderr
    )


def test_what_is_missing_for_a_scheme_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MachineError, match=r"fsspec is not installed. .*pip install '.*\[cloud\]'"):
        load("memory://bucket/gt.json")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (f"s3://key:{SECRET}@bucket/gt.json", "s3://bucket/gt.json"),
        (f"https://host/gt.json?X-Amz-Signature={SECRET}", "https://host/gt.json"),
        (f"https://{SECRET}@host/gt.json", "https://host/gt.json"),
        ("abfs://box@account.dfs.core.windows.net/gt.json", "abfs://box@account.dfs.core.windows.net/gt.json"),
        ("gs://bucket/a b.json", "gs://bucket/a b.json"),
    ],
)
def test_no_url_is_shown_with_what_is_secret(given: str, shown: str) -> None:
    assert (public(given), admit(given), str(path_of(given))) == (shown, shown, shown)


def test_a_signed_url_appears_nowhere(tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    page = tmp_path / "r.json"
    done = run_here("evaluate", gt, f"http://user:{SECRET}@127.0.0.1:9/pred.json?sig={SECRET}", "-o", page)
    assert done.returncode == 4
    assert SECRET not in done.stdout + done.stderr
    assert "http://127.0.0.1:9/pred.json: the store cannot be reached" in done.stderr
    with pytest.raises(UsageError) as unknown:
        load(f"s3://key:{SECRET}@bucket/gt.json?regoin={SECRET}")
    assert SECRET not in str(unknown.value)
    stored = f"s3://key:{SECRET}@bucket/names.json?region=x"
    for option in ("--names", "--class-map", "--group-by", "--gt", "--images", "--slices", "--baseline", "--config"):
        said = run_here("evaluate", gt, pred, option, stored.replace("s3://", "s4://"))
        assert SECRET not in said.stdout + said.stderr


def test_a_page_shows_its_command_without_what_is_secret(store: Any, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    store.pipe_file("/bucket/pred.json", pred.read_bytes())
    page = tmp_path / "r.html"
    done = run_here("evaluate", gt, f"--pred=memory://user:{SECRET}@bucket/pred.json?token={SECRET}", "-o", page)
    assert done.returncode == 0
    assert SECRET not in page.read_text()
    assert "memory://bucket/pred.json" in page.read_text()


def test_a_path_keeps_its_url_and_opens_a_copy(store: Any) -> None:
    store.pipe_file("/bucket/set/names.txt", b"dog\n")
    path = path_of("memory://bucket/set")
    with session():
        assert str((path / "names.txt").parent / "../x") == "memory://bucket/set/../x"
        assert (path / "names.txt").read_text() == "dog\n"
        assert not (path / "../../../etc/hostname").exists()
        assert not (path / "/etc").exists()  # of the machine that wrote it


def partitioned(sample_data: Path, *options: str) -> Any:
    coco = sample_data / "coco"
    return run_here("partition", coco / "gt.json", coco / "better.json", "-o", "memory://bucket/parts", *options)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_partitions_behind_a_url_give_the_same_bytes(
    store: Any, sample_data: Path, tmp_path: Path, engine: str
) -> None:
    assert partitioned(sample_data, "--partitions", "3").returncode == 0
    inputs = [sample_data / "coco/gt.json", sample_data / "coco/better.json"], ["memory://bucket/parts"]
    for name, given in zip(("files", "parts"), inputs, strict=True):
        options = ["--no-errors", "--engine", engine, "-q", "-o", tmp_path / f"{name}.json"]
        assert run_here("evaluate", *given, *options).returncode == 0
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "files.json").read_bytes()


def test_partitions_behind_a_url_are_replaced_as_a_whole(store: Any, sample_data: Path) -> None:
    assert partitioned(sample_data, "--partitions", "3").returncode == 0
    refused = partitioned(sample_data)
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    assert partitioned(sample_data, "--partitions", "2", "--force").returncode == 0
    assert sum("/part-" in name for name in store.store) == 4
    assert run_here("evaluate", "memory://bucket/parts").returncode == 0
    # What an upload left that was killed is not taken for partitions, and can be replaced.
    store.rm("/bucket/parts/manifest.json")
    assert run_here("evaluate", "memory://bucket/parts").returncode == 2
    assert partitioned(sample_data, "--force").returncode == 0
    store.pipe_file("/bucket/parts/notes.txt", b"mine")
    assert partitioned(sample_data, "--force").returncode == 2


@pytest.mark.parametrize("failing", ["gt/part-00001.parquet", "manifest.json"])
def test_partitions_that_cannot_be_written_leave_nothing(
    store: Any, sample_data: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    write, written = storage.write, []

    def fail(url: str, data: Any) -> None:
        if url.endswith(failing):
            raise MachineError(f"cannot write '{url}': no room")
        written.append(url.rpartition("/")[2])
        write(url, data)

    monkeypatch.setattr(storage, "write", fail)
    done = partitioned(sample_data, "--partitions", "3")
    assert (done.returncode, "no room" in done.stderr) == (4, True)
    assert written
    assert "manifest.json" not in written
    assert not store.store

    def keep(*_: object, **__: object) -> None:
        raise PermissionError("of another user")

    monkeypatch.setattr(type(store), "rm", keep)
    done = partitioned(sample_data, "--partitions", "3")
    assert "Remove what is left of it: memory://bucket/parts: access denied: of another user" in done.stderr
    assert store.store


def test_a_part_behind_a_url_that_is_not_what_it_was_is_named(store: Any, sample_data: Path) -> None:
    assert partitioned(sample_data, "--partitions", "2").returncode == 0
    name = "/bucket/parts/pred/part-00001.parquet"
    whole = store.cat_file(name)
    for change in (whole[:-100], None):
        store.pipe_file(name, change) if change else store.rm(name)
        done = run_here("evaluate", "memory://bucket/parts")
        assert (done.returncode, "part-00001.parquet" in done.stderr) == (3, True)
        assert "memory://bucket/parts/pred" in done.stderr


def test_a_file_url_is_the_path_that_the_system_makes_it_of(tmp_path: Path) -> None:
    assert path_of((tmp_path / "gt.json").as_uri()) == tmp_path / "gt.json"
