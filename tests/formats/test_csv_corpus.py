"""The corpus of malformed and hostile CSV files, at the level of the loader."""

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.errors import DataError, Finding, Severity
from jaccard_eval.formats import ReadOptions, read_dataset

ARCHIVE = Path(__file__).parents[2] / "../shared/oracle/bad_inputs.tar.xz"
N_ENTRIES = 99

# Decided only when both sides are compared.
BOTH_SIDES = {
    "csv.pred_image_path_prefix",
    "csv.pred_image_no_ext",
    "csv.pred_image_windows_path",
    "csv.pred_class_unknown",
    "csv.pred_class_case",
}
MACHINE = {"root": getattr(os, "geteuid", lambda: 1)() == 0, "windows": os.name == "nt"}


def read_entries() -> list[dict[str, Any]]:
    if not ARCHIVE.is_file():
        return []
    with tarfile.open(ARCHIVE) as archive:
        manifest = archive.extractfile("bad_pub/manifest.json")
        assert manifest is not None
        return [entry for entry in json.load(manifest)["entries"] if entry["loader"] == "csv"]


ENTRIES = read_entries()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if member.name.startswith("bad_pub/csv/")]
        archive.extractall(folder, members, filter="tar")
    return folder / "bad_pub"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_file_of_the_corpus_meets_its_expectation(entry: dict[str, Any], corpus: Path) -> None:
    if entry["id"] in BOTH_SIDES:
        pytest.skip("decided when both sides are compared")
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    outcome, text = read_both_sides(corpus, entry["files"])
    assert outcome in {entry["expectation"], *entry["also_ok"]}, text
    if outcome == entry["expectation"]:
        assert [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)] == []
    assert [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)] == []


@pytest.mark.skipif(not ENTRIES, reason="needs the folder shared/oracle beside the checkout")
def test_the_corpus_is_complete_and_only_comparisons_are_left_out() -> None:
    assert len(ENTRIES) == N_ENTRIES
    assert {entry["id"] for entry in ENTRIES} >= BOTH_SIDES


def read_both_sides(corpus: Path, files: dict[str, str]) -> tuple[str, str]:
    """Return "error", "warning" or "ok", and everything that was said."""
    said: list[Finding] = []
    for role in ("gt", "pred"):
        try:
            said += read_dataset(corpus / files[role], ReadOptions(role=role), "csv").findings
        except DataError as error:
            said += error.findings
    severities = {finding.severity for finding in said}
    outcome = next((str(one) for one in (Severity.ERROR, Severity.WARNING) if one in severities), "ok")
    return outcome, "\n".join(map(str, said))
