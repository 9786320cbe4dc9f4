"""What any command saved is reported again as it was: commands are found by listing, every output is compared."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_here, write_pair
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_headlines import PLAN, RUNS, SEGMENTS

import jaccard_eval
from jaccard_eval import DataError, load_result
from jaccard_eval.data.document import DIGEST, document_digest
from jaccard_eval.report import ReportOptions, reporter_for

MORE = {
    "everything": "evaluate gt.json pred.json --errors --score best-f1 --bootstrap 20 --slice a=a* --worst-images 1"
    " --fail-under AP50=0.1 --metric ms=3 --fail-over external.ms=5 --per-class",
    "against a baseline": "evaluate gt.json pred.json --bootstrap 20 --baseline result.json --fail-drop AP=0.1",
    "warned": "evaluate warned/gt.json warned/pred.json",
    "undefined": "evaluate gt.json nothing.json --protocol voc2012 --errors --score 0.5",
    "unreadable": "inspect gt.json nothing.txt",
    "matrix": "overlap a.txt b.txt",
    "to another protocol": "explain gt.json pred.json AP50 --against voc2012",
    "gated pixels": "pixels maps maps --fail-under mIoU=0.5",
    "all of segments": "panoptic segments/gt.json segments/better.json --against segments/worse.json --bootstrap 20"
    " --slice a=*1.jpg --fail-under PQ=0.5 --iou-type boundary --per-class",
    "history": "report result.json result.json",
    "slices": "compare gt.json pred.json nothing.json --slice a=a* --bootstrap 0",
}
SAVED = RUNS | MORE
MEDIA = ("x.json", "x.md", "x.csv", "x.txt", "junit.xml", "x.prom")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    write_pair(folder)
    (folder / "warned").mkdir()
    write_pair(folder / "warned", warned=True)
    (folder / "nothing.json").write_text("[]")
    (folder / "nothing.txt").write_text("what is this?")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("0 0 2 2\n1 0 3 2\n")
    (folder / "suite.toml").write_text(PLAN)
    shutil.copytree(SEGMENTS, folder / "segments")
    (folder / "maps").mkdir()
    Image.fromarray(np.array([[0, 1], [1, 2]], np.uint8)).save(folder / "maps" / "a.png")
    done = run_here("evaluate", "gt.json", "pred.json", "-q", "-o", "result.json", "-o", "result.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def save(folder: Path, name: str) -> list[Path]:
    """Run a command in all media, once; return what it wrote."""
    files = [Path("out", name.replace(" ", "-"), medium) for medium in MEDIA]
    if not (folder / files[0]).exists():
        (folder / files[0]).parent.mkdir(parents=True, exist_ok=True)
        outputs = [word for file in files for word in ("-o", str(file))]
        done = run_here(*SAVED[name].split(), *([] if name == "nms" else outputs), cwd=folder)
        if name == "nms":  # there -o is what it makes
            (folder / files[0]).with_suffix(".txt").write_text(done.stdout)
            (folder / files[0]).write_text(run_here(*SAVED[name].split(), "--json", cwd=folder).stdout)
        assert (folder / files[0]).exists(), done.stderr
    return [file for file in files if (folder / file).exists()]


@pytest.mark.parametrize("name", SAVED)
def test_what_a_command_saved_is_reported_again_as_it_was(name: str, folder: Path) -> None:
    document, *others = save(folder, name)
    shape = ["--per-class"] if "--per-class" in SAVED[name] else []
    for file in (document, *others):
        again = folder / "again" / file.name
        again.parent.mkdir(exist_ok=True)
        done = run_here("report", document, "-o", again, *shape, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert again.read_bytes() == (folder / file).read_bytes(), file


def test_a_saved_run_gives_what_its_evaluation_wrote_and_answers_any_metric(folder: Path) -> None:
    document, *others = save(folder, "everything")
    run = folder / "run.npz"
    assert run_here(*SAVED["everything"].split(), "-o", run, cwd=folder).returncode == 0
    for file in (document, *others, Path("run.npz"), Path("images.csv")):
        if not (folder / file).exists():
            assert run_here(*SAVED["everything"].split(), "-o", file, cwd=folder).returncode == 0
        again = folder / "again" / file.name
        again.parent.mkdir(exist_ok=True)
        assert run_here("report", run, "-o", again, "--per-class", cwd=folder).returncode == 0
        assert again.read_bytes() == (folder / file).read_bytes(), file
    # The dog's one detection has an IoU of 1.
    assert load_result(run)["AP[iou=0.95,class=dog]"] == load_result(run)["AP50[class=dog]"]
    with pytest.raises(jaccard_eval.UsageError, match=r"has no AP95\[class=dog\]"):
        load_result(folder / document)["AP[iou=0.95,class=dog]"]
    with pytest.raises(jaccard_eval.UsageError, match=r"has no match table\. Use the saved run"):
        _ = load_result(folder / document).curves  # type: ignore[attr-defined]


def changed(value: Any, place: int, new: Any) -> tuple[Any, int]:
    """Return a document with its leaf at a place replaced, and how many leaves there were before it."""
    if isinstance(value, dict) and value:
        found = {}
        for key, item in value.items():
            found[key], place = changed(item, place, new)
        return found, place
    if isinstance(value, list) and value:
        items = []
        for item in value:
            after, place = changed(item, place, new)
            items.append(after)
        return items, place
    return (new if place == 0 else value), place - 1


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(SAVED)),
    place=st.integers(0, 2000),
    new=st.sampled_from([None, True, -1, 0, 1e300, "x", "", [], {}, [[]], [1, 2], {"a": 1}, "NaN"]),
)
def test_a_forged_document_is_reported_or_refused_with_its_field(name: str, place: int, new: Any, folder: Path) -> None:
    document, *_ = save(folder, name)
    content = json.loads((folder / document).read_text())
    _, left = changed(content, -1, None)
    content, _ = changed(content, place % -(left + 1), new)
    content[DIGEST] = document_digest(content)
    forged = folder / "forged.json"
    forged.write_text(json.dumps(content))
    try:
        result = load_result(forged)
    except DataError as error:
        assert "forged.json" in str(error)
        return
    for medium in ("x.md", "x.csv", "x.json"):
        assert reporter_for(medium).render(result, ReportOptions(per_class=True))


@pytest.mark.parametrize(("setting", "value"), [("confidence_level", 0.0), ("n_resamples", 1)])
def test_settings_that_no_resampling_can_have_are_refused(folder: Path, setting: str, value: float) -> None:
    document, *_ = save(folder, "against a baseline")
    content = json.loads((folder / document).read_text())
    content["bootstrap"][setting] = value
    content[DIGEST] = document_digest(content)
    forged = folder / "settings.json"
    forged.write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"settings\.json.*{setting} must be"):
        load_result(forged)


def test_a_verdict_without_its_resampling_is_refused_with_its_field(folder: Path) -> None:
    """Whatever the kind of the result: gates judge many, and texts quote how images were resampled."""
    document, *_ = save(folder, "gate")
    content = json.loads((folder / document).read_text())
    content["gates"][0]["spread"] = {}
    content[DIGEST] = document_digest(content)
    forged = folder / "without.json"
    forged.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"spread\.confidence_level"):
        load_result(forged)
