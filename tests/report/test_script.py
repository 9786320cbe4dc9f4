"""The script of pages: small, and squeezed without a change of what it says."""

import pytest

from jaccard_eval.report.outputs.html import _assets, squeeze

MOST_BYTES = 40_000


def test_the_script_is_small_and_can_neither_evaluate_text_nor_write_markup() -> None:
    script = _assets(".js")
    assert len(script.encode()) <= MOST_BYTES
    for word in ("eval(", "Function(", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "http"):
        assert word not in script


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
