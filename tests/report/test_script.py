"""The script of pages: small, and squeezed without a change of what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaccard_eval.report.outputs import explorer
from jaccard_eval.report.outputs.html import ASSETS, _assets, squeeze

ROOT = Path(__file__).parents[2]
OXLINT = Path(sys.executable).parent / "oxlint"

MOST_BYTES = 40_000


PAGE = sorted(ASSETS.glob("*.js"), key=lambda path: (path.stem != "page", path.stem))
FOLDER = [*(ASSETS / name for name in explorer.SHARED), *(ASSETS / "explorer" / name for name in explorer.VIEWS)]


def test_scripts_are_small_and_can_neither_evaluate_text_nor_write_markup() -> None:
    of_folder = squeeze("".join(path.read_text(encoding="utf-8") for path in FOLDER))
    assert len(_assets(".js").encode()) <= MOST_BYTES
    assert sum(len(path.read_bytes()) for path in FOLDER) <= 60_000
    # The name of SVG is no address.
    script = _assets(".js") + of_folder.replace("http://www.w3.org/2000/svg", "")
    for word in ("eval(", "Function(", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "http"):
        assert word not in script


@pytest.mark.skipif(not OXLINT.exists(), reason="needs oxlint")
@pytest.mark.parametrize("files", [PAGE, FOLDER], ids=["page", "folder"])
def test_the_script_is_linted_as_one(files: list[Path], tmp_path: Path) -> None:
    """Files know each other's names, so that they are looked at in the order in which a page has them."""
    whole = tmp_path / "page.js"
    whole.write_text("".join(path.read_text(encoding="utf-8") for path in files), encoding="utf-8")
    done = subprocess.run([OXLINT, "-c", ROOT / ".oxlintrc.json", whole], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    whole.write_text("const a = b;\n", encoding="utf-8")  # nobody knows b
    assert subprocess.run([OXLINT, "-c", ROOT / ".oxlintrc.json", whole], capture_output=True, check=False).returncode


@pytest.mark.parametrize("path", sorted(ASSETS.rglob("*.js")), ids=lambda path: path.stem)
def test_no_template_stands_in_another_which_squeezing_would_not_see(path: Path) -> None:
    assert not re.search(r"`[^`\n]*\$\{[^}`\n]*`", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("script", "squeezed"),
    [
        ('const a = "x = [1, 2]";', 'const a="x = [1, 2]";'),
        ('say("a \\" , b" , c);', 'say("a \\" , b",c);'),
        ("const b = `${a} , ${b}`;", "const b=`${a} , ${b}`;"),
        ("const c = text.replace(/a , b/g, c);", "const c=text.replace(/a , b/g,c);"),
        ("const d = a / b * c / e;", "const d=a / b*c / e;"),
        ("const e = a - --b + ++c;", "const e=a - --b + ++c;"),
        ("  // a note\n  return x;\n\n", "return x;"),
        ("const f = () => {\n  g(\n    1,\n    `a;\nb`);\n}\nh();", "const f=()=>{g(1,`a;\nb`);}\nh();"),
    ],
)
def test_texts_and_doubled_signs_stay_as_they_are(script: str, squeezed: str) -> None:
    assert squeeze(script) == squeezed
