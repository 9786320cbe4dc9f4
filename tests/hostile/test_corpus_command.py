"""The corpus of malformed and hostile inputs through the command line, one process each: exit code, message, limits."""

import json
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import pytest
from overruled import overruled

pytestmark = pytest.mark.slow

SHARE = 5  # one entry in so many; all of them go through the public call in test_bad_inputs
EVALUATE = [sys.executable, "-m", "jaccard_eval", "evaluate", "--gt", "{gt}", "--pred", "{pred}"]
YOLO = ["--images", "{images}", "--names", "{names}"]
COMMANDS = {
    "coco_json": EVALUATE,
    "csv": EVALUATE,
    "yolo": [*EVALUATE, "--gt-format", "yolo", "--pred-format", "yolo", *YOLO],
}
ALWAYS = {"yolo.gt_is_file", "yolo.bytes_lfs_pointer"}  # what the format is must be found in spite of the damage


@pytest.fixture(scope="module")
def corpus(shared_oracle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(shared_oracle / "bad_inputs.tar.xz") as archive:
        archive.extractall(folder, filter="tar")
    manifest = folder / "bad_pub/manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"entries": overruled(content["entries"])}))
    return manifest.parent


def drive(driver: Path, corpus: Path, commands: dict[str, list[str]]) -> subprocess.CompletedProcess[str]:
    """Run the share of the corpus that `commands` can read, two processes at a time."""
    entries = json.loads((corpus / "manifest.json").read_text())["entries"]
    chosen = [one["id"] for one in entries if one["id"] in ALWAYS or zlib.crc32(one["id"].encode()) % SHARE == 0]
    config = corpus / "commands.json"
    config.write_text(json.dumps(commands))
    argv = [sys.executable, driver, "--corpus", corpus, "--config", config, "--only", ",".join(chosen), "--jobs", "2"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)


def test_every_entry_ends_with_its_exit_code_and_message_within_its_limits(shared_oracle: Path, corpus: Path) -> None:
    done = drive(shared_oracle / "run_bad_inputs.py", corpus, COMMANDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_label_folders_meet_the_same_expectations_when_their_format_is_found_by_looking(
    shared_oracle: Path, corpus: Path
) -> None:
    done = drive(shared_oracle / "run_bad_inputs.py", corpus, {"yolo": [*EVALUATE, *YOLO]})
    assert done.returncode == 0, done.stdout + done.stderr
