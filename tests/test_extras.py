import json
import re
import sys
from pathlib import Path

import pytest

from jaccard_eval import errors
from jaccard_eval.errors import MachineError, require

ROOT = Path(__file__).parents[1]


def test_what_is_installed_is_imported() -> None:
    assert require("json", extra="report") is json


@pytest.mark.parametrize(("folder", "place"), [(ROOT, "."), (ROOT / "tests", str(ROOT))])
def test_what_is_missing_is_installed_from_the_checkout_where_there_is_one(
    folder: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    advice = re.escape(f"nowhere is not installed. Install it: pip install '{place}[plot]'")
    with pytest.raises(MachineError, match=f"^{advice}$"):
        require("nowhere.to_be.found", extra="plot")


def test_what_is_missing_beside_a_wheel_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "__file__", str(Path("nowhere/site-packages/jaccard_eval/errors.py").absolute()))
    with pytest.raises(MachineError, match=r"Install it: pip install 'matplotlib>=3\.8'$"):
        require("nowhere", extra="plot")


def test_a_library_that_misses_another_one_says_which(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("library")
    (folder / "needs_another.py").write_text("import not_there_at_all\n")
    sys.path.insert(0, str(folder))
    try:
        with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
            require("needs_another", extra="report")
    finally:
        sys.path.remove(str(folder))
