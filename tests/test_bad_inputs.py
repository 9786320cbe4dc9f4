"""The corpus of malformed and hostile inputs through the public call, with both sides compared."""

import json
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jaccard_eval import DataError, ReadOptions, evaluate
from jaccard_eval.formats._images import ImageFolder
from jaccard_eval.formats._names import load_names

ARCHIVE = Path(__file__).parents[1] / "../shared/oracle/bad_inputs.tar.xz"
FORMATS = {"coco_json": "coco", "csv": "csv", "yolo": "yolo"}
MACHINE = {"root": getattr(os, "geteuid", lambda: 1)() == 0, "windows": os.name == "nt", "unavailable": True}


def _entries() -> list[dict[str, Any]]:
    if not ARCHIVE.is_file():
        return []
    with tarfile.open(ARCHIVE) as archive:
        manifest = archive.extractfile("bad_pub/manifest.json")
        assert manifest is not None
        return [entry for entry in json.load(manifest)["entries"] if entry["loader"] in FORMATS]


ENTRIES = _entries()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad_inputs")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")
    return folder / "bad_pub"


@pytest.mark.skipif(not ENTRIES, reason="needs the folder shared/oracle beside the checkout")
def test_the_corpus_has_every_format() -> None:
    assert {entry["loader"] for entry in ENTRIES} == set(FORMATS)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_bad_input_meets_its_expectation(entry: dict[str, Any], corpus: Path) -> None:
    if any(MACHINE[reason] for reason in entry["skip_if"]):
        pytest.skip(f"not on this machine: {entry['skip_if']}")
    outcome, text = _evaluate(corpus, entry["files"], FORMATS[entry["loader"]])
    accepted = {entry["expectation"], *entry["also_ok"]}
    assert outcome in accepted or (outcome == "warning" and "ok" in accepted), text
    if outcome == entry["expectation"]:
        assert [pattern for pattern in entry["must_mention"] if not re.search(pattern, text, re.IGNORECASE)] == []
    assert [pattern for pattern in entry["must_not_mention"] if re.search(pattern, text)] == []


def _evaluate(corpus: Path, files: Mapping[str, str], format_name: str) -> tuple[str, str]:
    """Return "error", "warning" or "ok", and everything that was said."""
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
        )
    except DataError as error:
        return "error", str(error)
    warned = any(finding.severity == "warning" for finding in result.findings)
    return "warning" if warned else "ok", "\n".join(map(str, result.findings))
