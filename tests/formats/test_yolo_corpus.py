"""The corpus of malformed and hostile text labels, both sides read as the command does before it compares them."""

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.errors import DataError, Finding, FindingLog, Severity
from jaccard_eval.formats import ReadOptions, read_dataset
from jaccard_eval.formats._images import ImageFolder
from jaccard_eval.formats._names import load_names

ARCHIVE = Path(__file__).parents[2] / "../shared/oracle/bad_inputs.tar.xz"
N_ENTRIES = 99
NOT_OF_THE_LOADER: set[str] = set()
MACHINE = {"root": getattr(os, "geteuid", lambda: 1)() == 0, "windows": os.name == "nt"}


def read_entries() -> list[dict[str, Any]]:
    if not ARCHIVE.is_file():
        return []
    with tarfile.open(ARCHIVE) as archive:
        manifest = archive.extractfile("bad_pub/manifest.json")
        assert manifest is not None
        return [entry for entry in json.load(manifest)["entries"] if entry["loader"] == "yolo"]


ENTRIES = read_entries()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if member.name.startswith("bad_pub/yolo/")]
        archive.extractall(folder, members, filter="fully_trusted")
    return folder / "bad_pub"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_set_of_the_corpus_meets_its_expectation(entry: dict[str, Any], corpus: Path) -> None:
    if entry["id"] in NOT_OF_THE_LOADER:
        pytest.skip("decided after loading")
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    outcome, text = read_both_sides({name: corpus / path for name, path in entry["files"].items()})
    assert outcome in {entry["expectation"], *entry["also_ok"]}, text
    if outcome == entry["expectation"]:
        assert [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)] == []
    assert [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)] == []


@pytest.mark.skipif(not ENTRIES, reason="needs the folder shared/oracle beside the checkout")
def test_the_corpus_is_complete_and_only_what_loaders_cannot_see_is_left_out() -> None:
    assert len(ENTRIES) == N_ENTRIES
    assert {entry["id"] for entry in ENTRIES} >= NOT_OF_THE_LOADER


def read_both_sides(files: dict[str, Path]) -> tuple[str, str]:
    """Return "error", "warning" or "ok", and everything that was said."""
    log = FindingLog()
    said: list[Finding] = []
    try:
        names = load_names(files["names"], log) if "names" in files else None
        images = ImageFolder(files["images"]) if "images" in files else None
        for role in ("gt", "pred"):
            said += read_dataset(files[role], ReadOptions(role=role, names=names, images=images), "yolo").findings
    except DataError as error:
        said += error.findings
    said += log.findings()
    severities = {finding.severity for finding in said}
    outcome = next((str(one) for one in (Severity.ERROR, Severity.WARNING) if one in severities), "ok")
    return outcome, "\n".join(map(str, said))
