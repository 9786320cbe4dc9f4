"""How often inputs and the configuration are opened: a look that is handed on, and the reading."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_here, write_pair

from jaccard_eval import evaluate
from jaccard_eval.native import load_core

SAMPLE = Path(__file__).parents[2] / "sample_data"
LOOK_AND_READING = 2
# Those that are read in two ways: an archive by what it holds first, and records that decide which of two layouts.
READ_TWICE = frozenset({"hf", "npz", "openimages", "records", "ultralytics"})
LOOKED_THROUGH = frozenset({"kitti", "visdrone"})  # all ground truth, for the classes of the benchmark
CONFIGURED = (
    '[tool.jaccard-eval.evaluate]\nerrors = true\n\n[[tool.jaccard-eval.gates.rules]]\nmetric = "AP"\nmin = 0.1\n'
)

_opened: list[str] = []
_listeners: list[None] = []  # there is no way to remove a hook


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if _listeners and event == "open" and isinstance(arguments[0], str | os.PathLike):
        _opened.append(str(Path(arguments[0]).absolute()))


sys.addaudithook(_listen)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Return the files that are opened from here on."""
    _opened.clear()
    _listeners.append(None)
    yield _opened
    _listeners.clear()


def pairs() -> Iterator[tuple[Path, Path]]:
    """Yield the ground truth and predictions of each format of the sample that has both."""
    for folder in sorted(SAMPLE.iterdir()):
        gt, pred = (next(folder.glob(f"{name}*"), None) for name in ("gt", "better"))
        if pred is not None and folder.name != "panoptic":
            yield gt or SAMPLE / "coco/gt.json", pred


def most(opened: list[str], path: Path) -> int:
    return max(Counter(name for name in opened if Path(name).is_relative_to(path)).values())


@pytest.mark.parametrize(("gt", "pred"), [pytest.param(*pair, id=pair[1].parent.name) for pair in pairs()])
@pytest.mark.filterwarnings("ignore")
def test_an_input_is_looked_at_once_and_read(gt: Path, pred: Path, opened: list[str]) -> None:
    evaluate(gt, pred)
    for side in (gt, pred):
        # COCO JSON is opened to be read in pieces, and again to be read whole where there is no core.
        again = pred.parent.name in READ_TWICE or (side.parent.name == "coco" and load_core() is None)
        again |= side == gt and gt.parent.name in LOOKED_THROUGH
        count, allowed = most(opened, side), LOOK_AND_READING + again
        assert count == allowed if side == pred else count <= allowed


def test_a_configuration_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]) -> None:
    gt, pred = write_pair(tmp_path)
    (tmp_path / "pyproject.toml").write_text(CONFIGURED)
    monkeypatch.chdir(tmp_path)
    opened.clear()
    assert run_here("evaluate", gt, pred).returncode == 0
    assert most(opened, tmp_path / "pyproject.toml") == 2  # whether it has a table of this tool, and the reading


@pytest.mark.parametrize("described", ["yolo", "yolo/data.yaml"])
def test_a_description_is_read_once_by_all_who_ask_it(described: str, opened: list[str]) -> None:
    evaluate(SAMPLE / described, SAMPLE / "yolo/better")
    assert opened.count(str(SAMPLE / "yolo/data.yaml")) == LOOK_AND_READING
