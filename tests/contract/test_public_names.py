"""The names of the library: one list, with types, and each documented with an example that runs."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jaccard_eval

SOURCE = Path(jaccard_eval.__file__)
# What programs, pages and tests of others count on.
PROMISED = {
    *(
        "evaluate",
        "compare",
        "inspect",
        "panoptic",
        "pixels",
        "nms",
        "sensitivity",
        "explain",
        "gate",
        "verify",
        "load",
    ),
    *("to_frame", "log_metrics", "Evaluator", "MeanAveragePrecision", "BoxTable", "JaccardEvalWarning"),
}


def typed_names() -> dict[str, str]:
    """The names that type checkers see, and the modules that they are from."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {name.asname or name.name: str(node.module) for node in imports for name in node.names}


def test_the_list_of_names_is_that_of_types_and_of_modules() -> None:
    homes = {name: f"jaccard_eval.{home}" for name, home in jaccard_eval._HOMES.items()}
    assert typed_names() == homes
    assert sorted(jaccard_eval.__all__) == sorted(homes.keys() - {"__version__"})
    assert jaccard_eval.__all__ == sorted(jaccard_eval.__all__)
    assert set(jaccard_eval.__all__) >= PROMISED


@pytest.mark.parametrize("name", jaccard_eval.__all__)
def test_a_public_name_is_documented_with_an_example(name: str) -> None:
    # Examples are run where they stand, as doctests of the module.
    text = inspect.getdoc(getattr(jaccard_eval, name)) or ""
    assert text.partition("\n")[0].endswith((".", ":"))
    assert "\n>>> " in text.partition("\nExamples\n--------\n")[2] or "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize("name", jaccard_eval.__all__)
def test_a_public_name_is_typed(name: str) -> None:
    subject = getattr(jaccard_eval, name)
    if inspect.isfunction(subject):
        parameters = inspect.signature(subject).parameters.values()
        assert all(parameter.annotation is not parameter.empty for parameter in parameters)
        assert "return" in inspect.unwrap(subject).__annotations__


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evaluat'"):
        _ = jaccard_eval.evaluat  # type: ignore[attr-defined]
    assert set(dir(jaccard_eval)) == {*jaccard_eval.__all__, "__version__"}


def test_importing_the_package_and_its_list_loads_no_numpy() -> None:
    check = "import sys, jaccard_eval; jaccard_eval.__all__; dir(jaccard_eval); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
