"""Which room may look into which, where the import contracts of pyproject.toml cannot say it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jaccard_eval

PACKAGE = Path(jaccard_eval.__file__).parent
# Features that stand on others; everything else of a feature is its own business.
FEATURES_BELOW = {
    "gates": {"bootstrap"},
    "history": {"bootstrap", "compare"},
    "compare": {"bootstrap", "evaluate", "images"},  # a side of a folder is what an evaluation shows
    "images": {"errors", "operating"},  # what a box is wrong by, and from which score on
    "labels": {"images"},  # drawn in the same gallery
    "suite": {"bootstrap"},
    "explain": {"audit", "errors", "images", "nms"},  # repeated rows and NMS are causes
    "panoptic": {"bootstrap", "compare", "images"},  # regions are what a folder has of boxes
    "pixels": {"bootstrap", "images"},
    "inspect": {"audit"},
    "verify": {"gates"},  # judges verdicts again, by the arithmetic that made them
    "evaluate": {"audit", "bootstrap", "errors", "gates", "images", "labels", "operating"},
}


def test_commands_and_outputs_are_found_by_listing_and_imported_by_nobody_below_them() -> None:
    found = {
        f"{importer} -> {imported}"
        for importer, imported in _imports()
        for folder in ("cli.commands.", "report.outputs.")
        if imported.startswith(folder) and not importer.startswith((folder, "cli.", "features.", "runs", "api"))
    }
    assert not found


def test_features_lean_on_few_other_features() -> None:
    found = {
        f"{importer} -> {imported}"
        for importer, imported in _imports()
        if importer.startswith("features.") and imported.startswith("features.") and imported.count(".") > 1
        if (user := importer.split(".")[1]) != (used := imported.split(".")[1])
        if used not in FEATURES_BELOW.get(user, set())
    }
    assert not found


def test_no_module_imports_an_underscore_module_of_another_package() -> None:
    found = {
        f"{importer} -> {imported}"
        for importer, imported in _imports()
        for package, dot, _ in [imported.partition("._")]
        if dot and not importer.startswith(package)
    }
    assert not found


def test_no_module_names_one_above_it_in_a_text() -> None:
    """What is imported by its name is no import to the contracts, and would close a circle that they cannot see."""
    contracts = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers")
    floors = {room: -at for at, layer in enumerate(layers) for room in re.findall(r"jaccard_eval\.(\w+)", layer)}
    found = {
        f"{importer} -> {room}"
        for importer, tree in _trees().items()
        for text in _texts(tree)
        for room in re.findall(r"^jaccard_eval\.(\w+)(?:\.|$)", text)
        if room in floors and floors[room] > floors.get(importer.split(".")[0], 0)
    }
    assert not found


def test_a_text_that_names_a_module_above_is_found() -> None:
    source = 'def build(name: str) -> None:\n    """jaccard_eval.api"""\n    load(f"jaccard_eval.features.{name}")\n'
    assert [*_texts(ast.parse(source))] == ["jaccard_eval.features."]


def test_the_last_two_parts_of_a_path_name_one_module() -> None:
    paths = [".".join(name.split(".")[-2:]) for name in _modules()]
    assert sorted(path for path in set(paths) if paths.count(path) > 1) == []


def test_no_module_of_the_package_itself_shadows_a_verb() -> None:
    assert not {name for name in _modules() if "." not in name} & set(jaccard_eval.__all__)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Texts of a module other than its docstrings; of one that is put together, what is written out."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _modules() -> dict[str, Path]:
    """Modules by their names below the package; the package itself is left out."""
    named = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in named.items() if name}


@cache
def _trees() -> dict[str, ast.Module]:
    """Modules by their names, parsed once for all tests."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in _modules().items()}


@cache
def _imports() -> list[tuple[str, str]]:
    """Pairs of importer and imported module, wherever in the importer the import stands."""
    trees, found = _trees(), []
    for importer, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaccard_eval."):
                source = str(node.module).removeprefix("jaccard_eval.")
                members = [f"{source}.{name.name}" for name in node.names]
                found += [(importer, member if member in trees else source) for member in members]
    return found
