"""An S3 store on this machine: what is read, what is written, and what is said when something is in the way."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here, run_process, write_pair
from s3_server import serve_s3

from jaccard_eval import convert, evaluate, load
from jaccard_eval.errors import MachineError

fs = pytest.importorskip("pyarrow.fs")
pytest.importorskip("moto.server")

pytestmark = pytest.mark.cluster
Put = Callable[[str, bytes], None]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serve_s3() as address:
        yield address


@pytest.fixture(scope="module")
def system(endpoint: str) -> Any:
    system = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
    system.create_dir("data")
    return system


@pytest.fixture(scope="module")
def put(system: Any) -> Put:
    def write(key: str, data: bytes) -> None:
        with system.open_output_stream(key) as file:
            file.write(data)

    return write


def document(folder: Path, *argv: str | Path) -> str:
    done = run_here("evaluate", *argv, "--quiet", "-o", folder / "result.json")
    assert done.returncode == 0, done.stderr
    return re.sub(r'"digest": "[^"]*"', "", (folder / "result.json").read_text())


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    ("gt", "pred"), [("coco/gt.json", "coco/better.json"), ("yolo/data.yaml", "csv/better.csv"), ("gt.parquet", "pred")]
)
def test_documents_have_the_same_bytes_but_for_the_path(
    put: Put, sample_data: Path, tmp_path: Path, gt: str, pred: str, engine: str
) -> None:
    if gt.endswith("parquet"):
        convert(sample_data / "coco/gt.json", tmp_path / "gt.parquet")
        (tmp_path / "pred").mkdir()
        convert(sample_data / "coco/better.json", tmp_path / "pred/0.parquet", gt=sample_data / "coco/gt.json")
    root = tmp_path if gt.endswith("parquet") else sample_data
    for part in {gt.partition("/")[0], pred.partition("/")[0]}:
        files = [root / part] if (root / part).is_file() else [*(root / part).rglob("*")]
        for file in filter(Path.is_file, files):
            put(f"data/{engine}/{file.relative_to(root).as_posix()}", file.read_bytes())
    there = document(tmp_path, f"s3://data/{engine}/{gt}", f"s3://data/{engine}/{pred}", "--engine", engine)
    here = document(tmp_path, root / gt, root / pred, "--engine", engine)
    assert there.replace(f"s3://data/{engine}", str(root)) == here


def test_outputs_are_there_and_read_back(system: Any, tmp_path: Path) -> None:
    gt, pred = write_pair(tmp_path)
    done = run_here("evaluate", gt, pred, "-o", "s3://data/out/run.json", "-o", "s3://data/out/run.html")
    assert done.returncode == 0
    assert run_here("verify", "s3://data/out/run.json", gt, pred).returncode == 0
    # Browsers show a page only when the store calls it one.
    assert system.open_input_stream("data/out/run.html").metadata()["Content-Type"] == b"text/html"
    convert(gt, "s3://data/out/yolo", to="voc")
    assert load("s3://data/out/yolo").images.keys == ("a", "b")


def test_an_object_that_is_a_folder_too_is_named_by_a_slash(put: Put) -> None:
    put("data/both", b"0 .5 .5 .1 .1")
    put("data/both/1.txt", b"0 .5 .5 .1 .1")
    done = run_here("inspect", "s3://data/both")
    assert done.returncode == 3
    assert "s3://data/both: is both an object and a folder of objects" in done.stderr
    assert len(load("s3://data/both/").boxes) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://no-such-bucket/gt.json", "there is no bucket 'no-such-bucket'"),
        ("s3://data/no-such.json", "there is no object and no folder of this name"),
        ("s3://data/empty/", "there is no object and no folder of this name"),
    ],
)
def test_what_is_missing_is_named(system: Any, url: str, said: str) -> None:
    done = run_here("inspect", url)
    assert done.returncode == 3
    assert said in done.stderr


def test_a_bucket_for_outputs_is_looked_for_first(system: Any, tmp_path: Path) -> None:
    gt, _ = write_pair(tmp_path)
    done = run_here("evaluate", gt, tmp_path / "none.json", "-o", "s3://no-such-bucket/r.json")
    assert done.returncode == 4
    assert "cannot write 's3://no-such-bucket/r.json': there is no bucket 'no-such-bucket'" in done.stderr


def test_a_store_that_cannot_be_reached_is_not_waited_for(system: Any) -> None:
    began = time.monotonic()
    # A process of its own: the library keeps the address that it found first.
    done = run_process("inspect", "s3://data/gt.json", env={"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert done.returncode == 4
    assert "s3://data/gt.json: the store cannot be reached: " in done.stderr
    assert "AWS_ENDPOINT_URL" in done.stderr
    assert time.monotonic() - began < 40


def test_the_endpoint_may_stand_behind_the_url(
    put: Put, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt, pred = write_pair(tmp_path)
    put("data/pred.json", pred.read_bytes())
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(MachineError):
        evaluate(gt, "s3://data/pred.json")
    place = endpoint.partition("://")[2]
    result = evaluate(gt, f"s3://key:s3cret@data/pred.json?endpoint_override={place}&scheme=http")
    assert result.pred.path == "s3://data/pred.json"
    assert "s3cret" not in json.dumps(result.to_dict())
