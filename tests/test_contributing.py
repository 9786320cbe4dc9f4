"""The example of a format in docs/adding-a-format.md works as it stands, from one file."""

import importlib
import re
from pathlib import Path

import pytest

from jaccard_eval import DataError
from jaccard_eval.formats import FormatModule
from jaccard_eval.options import ReadOptions
from jaccard_eval.reading.draft import Draft
from jaccard_eval.reading.peek import Peek

ROOT = Path(__file__).parents[1]
PAGE = "docs/adding-a-format.md"


@pytest.fixture
def boxlist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FormatModule:
    found = re.search(r"^```python\n(.*?)^```$", (ROOT / PAGE).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "boxlist_of_the_guide.py").write_text(found[1])
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("boxlist_of_the_guide")


def test_the_format_of_the_guide_reads_its_own_example(boxlist: FormatModule, tmp_path: Path) -> None:
    path = tmp_path / "pred.boxlist"
    path.write_text(boxlist.FORMAT.example)
    draft = Draft(str(path), boxlist.FORMAT.name, ReadOptions(role="pred"))
    assert boxlist.looks_like(Peek(path))
    boxlist.read(path, draft, ReadOptions(role="pred"))
    dataset = draft.build()
    assert (dataset.images.keys, dataset.labels.keys) == (("a.jpg",), ("dog",))
    assert dataset.boxes.xywh.tolist() == [[10.0, 20.0, 30.0, 40.0]]
    assert dataset.boxes.score is not None and dataset.boxes.score.tolist() == [0.9]


def test_the_format_of_the_guide_tells_all_malformed_lines_with_their_places(
    boxlist: FormatModule, tmp_path: Path
) -> None:
    path = tmp_path / "pred.boxlist"
    path.write_text("a.jpg dog 0.9 10\na.jpg dog 0.9 10 20 30 40\na.jpg dog high 10 20 30 4o\n")
    draft = Draft(str(path), boxlist.FORMAT.name, ReadOptions(role="pred"))
    boxlist.read(path, draft, ReadOptions(role="pred"))
    with pytest.raises(DataError) as caught:
        draft.build()
    told = str(caught.value)
    assert f"{path}:1: expected 7 columns, got 4" in told
    assert f"{path}:3: score: 'high' is not a plain finite number" in told
    assert f"{path}:3: height: '4o' is not a plain finite number" in told
