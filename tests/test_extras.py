import json
import sys

import pytest

from jaccard_eval.errors import MachineError, require


def test_what_is_installed_is_imported() -> None:
    assert require("json", extra="report") is json


def test_what_is_missing_says_how_to_install_it() -> None:
    with pytest.raises(MachineError, match=r"^nowhere is not installed; .*pip install 'jaccard-eval\[report\]'$"):
        require("nowhere.to_be.found", extra="report")


def test_a_library_that_misses_another_one_says_which(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("library")
    (folder / "needs_another.py").write_text("import not_there_at_all\n")
    sys.path.insert(0, str(folder))
    try:
        with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
            require("needs_another", extra="report")
    finally:
        sys.path.remove(str(folder))
