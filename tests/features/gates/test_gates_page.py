"""docs/gates.md: its configuration is one, it names every key, and its Python runs."""

import re
from pathlib import Path

import pytest

from jaccard_eval.cli.config import read_config
from jaccard_eval.cli.gating import load_gates
from jaccard_eval.features.gates import GATES_KEYS, RULE_KEYS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_configuration_on_the_page_is_read_as_it_is_explained(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    gates = load_gates(read_config(path))
    assert gates is not None
    assert [rule.id for rule in gates.rules][:2] == ["floor", "AP50 max-drop+max-drop-relative"]
    assert [one.check for one in gates.rules[1].limits] == ["max-drop", "max-drop-relative"]


@pytest.mark.parametrize("key", [*RULE_KEYS, *GATES_KEYS])
def test_every_key_is_on_the_page(key: str) -> None:
    assert re.search(rf"`{key}\b|^{key}\b", PAGE, flags=re.MULTILINE) or f".{key}]]" in PAGE


def test_the_python_on_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = blocks("python")
    exec(code, {})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("pass AP50 0.3")
    assert len(shown) == 3
