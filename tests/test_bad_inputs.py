"""The corpus of malformed and hostile inputs through the public call, with both sides compared."""

import gc
import json
import os
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from overruled import OF_SHAPES, OVERRULED, overruled

from jaccard_eval import DataError, ReadOptions, evaluate
from jaccard_eval.errors import ExitCode
from jaccard_eval.findings import Finding, Severity
from jaccard_eval.formats import coco
from jaccard_eval.reading.images import ImageFolder
from jaccard_eval.reading.names import load_names
from jaccard_eval.reading.peek import Peek

ARCHIVE = Path(__file__).parents[1] / "../shared/oracle/bad_inputs.tar.xz"
FORMATS = {"coco_json": "coco", "csv": "csv", "yolo": "yolo"}
N_ENTRIES = {"coco_json": 170, "csv": 99, "yolo": 99}
SHARE = 12  # one entry in so many is also evaluated on the disk by the fast tests
UNNAMED = {"coco_json.gt_dev_zero"}  # its file has no name that tells of JSON
MACHINE = {"root": getattr(os, "geteuid", lambda: 1)() == 0, "windows": os.name == "nt", "unavailable": True}


def _entries() -> list[dict[str, Any]]:
    if not ARCHIVE.is_file():
        return []
    with tarfile.open(ARCHIVE) as archive:
        manifest = archive.extractfile("bad_pub/manifest.json")
        assert manifest is not None
        return [entry for entry in overruled(json.load(manifest)["entries"]) if entry["loader"] in FORMATS]


ENTRIES = _entries()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad_inputs")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")
    return folder / "bad_pub"


@pytest.mark.skipif(not ENTRIES, reason="needs the folder shared/oracle beside the checkout")
def test_the_corpus_is_complete() -> None:
    assert Counter(entry["loader"] for entry in ENTRIES) == N_ENTRIES
    of_shapes = {name for name in OVERRULED if name.partition(".")[0] in {*OF_SHAPES, "panoptic"}}  # of another corpus
    assert OVERRULED.keys() - of_shapes <= {entry["id"] for entry in ENTRIES}
    assert all(case.get("reason") for case in OVERRULED.values())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_bad_input_meets_its_expectation(entry: dict[str, Any], corpus: Path) -> None:
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    said, code = _evaluate(corpus, entry["files"], FORMATS[entry["loader"]])
    accepted = {entry["expectation"], *entry["also_ok"]}
    severities = {one.severity for one in said if "warning" in accepted or not _is_beside(one)}
    outcome = next((str(one) for one in (Severity.ERROR, Severity.WARNING) if one in severities), "ok")
    text = "\n".join(map(str, said))
    assert outcome in accepted, text
    if outcome == "error":
        assert code == (entry["exit_code"] or ExitCode.DATA)  # also where the corpus would let a warning pass
    if outcome != "ok":
        assert [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)] == []
    assert [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)] == []


def _sampled(entry: dict[str, Any]) -> Any:
    marks = [] if zlib.crc32(entry["id"].encode()) % SHARE == 0 else [pytest.mark.slow]
    return pytest.param(entry, id=entry["id"], marks=marks)


@pytest.mark.parametrize("entry", [_sampled(entry) for entry in ENTRIES])
def test_the_disk_engine_says_what_memory_says_and_leaves_nothing(
    entry: dict[str, Any], corpus: Path, tmp_path: Path, small_parts: Callable[..., None]
) -> None:
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    small_parts(12)
    given = corpus, entry["files"], FORMATS[entry["loader"]]
    on_disk = _evaluate(*given, engine="disk", scratch=tmp_path)
    assert on_disk == _evaluate(*given, engine="memory")
    if any(tmp_path.iterdir()):
        gc.collect()  # what cycles still hold; of thousands of tests this takes five times as long as both engines
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "entry", [one for one in ENTRIES if one["loader"] == "coco_json"], ids=lambda entry: entry["id"]
)
def test_coco_claims_its_damaged_files(entry: dict[str, Any], corpus: Path) -> None:
    assert coco.looks_like(Peek(corpus / entry["files"][entry["role"]])) or entry["id"] in UNNAMED


def _is_beside(finding: Finding) -> bool:
    """Whether it is said of the intact file beside the one that is tested, which need not know its names."""
    return finding.severity is Severity.WARNING and finding.code in {"image-extra", "class-unknown"}


def _evaluate(corpus: Path, files: Mapping[str, str], format_name: str, **where: Any) -> tuple[Sequence[Finding], int]:
    """Return everything that was said, and the exit code."""
    try:
        options = ReadOptions(
            names=load_names(corpus / files["names"]) if "names" in files else None,
            images=ImageFolder(corpus / files["images"]) if "images" in files else None,
        )
        result = evaluate(
            corpus / files["gt"],
            corpus / files["pred"],
            gt_format=format_name,
            pred_format=format_name,
            gt_options=options,
            pred_options=options,
            **where,
        )
    except DataError as error:
        return error.findings, error.exit_code
    return result.findings, ExitCode.OK
