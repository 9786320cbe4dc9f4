"""The corpus of malformed and hostile COCO JSON files, at the level of the loader."""

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval.errors import DataError, Severity
from jaccard_eval.formats import ReadOptions, coco, read_dataset

ARCHIVE = Path(__file__).parents[2] / "../shared/oracle/bad_inputs.tar.xz"
N_ENTRIES = 170

# Decided only when both sides are compared, or when the boxes and scores of a side are looked at as a whole.
NOT_OF_THE_LOADER = {
    "coco_json.pred_image_id_unknown_image",
    "coco_json.pred_category_id_unknown_category",
    "coco_json.pred_all_ids_strings",
    "coco_json.pred_zero_based_categories",
    "coco_json.gt_boxes_xyxy",
    "coco_json.gt_boxes_normalised",
    "coco_json.pred_score_percent",
    "coco_json.pred_score_negative",
    "coco_json.pred_score_constant",
}
MACHINE = {"root": getattr(os, "geteuid", lambda: 1)() == 0, "windows": os.name == "nt"}
UNNAMED = {"coco_json.gt_dev_zero"}  # its file has no name that tells of JSON


def read_entries() -> list[dict[str, Any]]:
    if not ARCHIVE.is_file():
        return []
    with tarfile.open(ARCHIVE) as archive:
        manifest = archive.extractfile("bad_pub/manifest.json")
        assert manifest is not None
        return [entry for entry in json.load(manifest)["entries"] if entry["loader"] == "coco_json"]


ENTRIES = read_entries()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if member.name.startswith("bad_pub/coco_json/")]
        archive.extractall(folder, members, filter="fully_trusted")
    return folder / "bad_pub"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_file_of_the_corpus_meets_its_expectation(entry: dict[str, Any], corpus: Path) -> None:
    if entry["id"] in NOT_OF_THE_LOADER:
        pytest.skip("decided after loading")
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    outcome, text = read_one_side(corpus / entry["files"][entry["role"]], entry["role"])
    assert outcome in {entry["expectation"], *entry["also_ok"]}, text
    if outcome != "ok":
        assert [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)] == []
    assert [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_file_of_the_corpus_is_claimed(entry: dict[str, Any], corpus: Path) -> None:
    assert coco.sniff(corpus / entry["files"][entry["role"]]) or entry["id"] in UNNAMED


@pytest.mark.skipif(not ENTRIES, reason="needs the folder shared/oracle beside the checkout")
def test_the_corpus_is_complete_and_only_what_loaders_cannot_see_is_left_out() -> None:
    assert len(ENTRIES) == N_ENTRIES
    assert {entry["id"] for entry in ENTRIES} >= NOT_OF_THE_LOADER


def read_one_side(path: Path, role: str) -> tuple[str, str]:
    """Return "error", "warning" or "ok", and everything that was said."""
    try:
        said = read_dataset(path, ReadOptions(role=role), "coco").findings
    except DataError as error:
        said = error.findings
    severities = {finding.severity for finding in said}
    outcome = next((str(one) for one in (Severity.ERROR, Severity.WARNING) if one in severities), "ok")
    return outcome, "\n".join(map(str, said))
