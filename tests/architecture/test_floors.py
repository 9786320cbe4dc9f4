"""Which room may look into which, where the import contracts of pyproject.toml cannot say it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import jaccard_eval

PACKAGE = Path(jaccard_eval.__file__).parent
# Features that stand on others; everything else of a feature is its own business.
FEATURES_BELOW = {
    "gates": {"bootstrap"},
    "compare": {"bootstrap", "images"},
    "explain": {"errors", "images"},
    "panoptic": {"bootstrap", "compare"},
    "pixels": {"bootstrap"},
    "inspect": {"audit"},
    "evaluate": {"audit", "bootstrap", "errors", "gates", "images", "operating"},
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


def test_the_last_two_parts_of_a_path_name_one_module() -> None:
    paths = [".".join(name.split(".")[-2:]) for name in _modules()]
    assert sorted(path for path in set(paths) if paths.count(path) > 1) == []


def test_no_module_of_the_package_itself_shadows_a_verb() -> None:
    assert not {name for name in _modules() if "." not in name} & set(jaccard_eval.__all__)


def _modules() -> dict[str, Path]:
    """Modules by their names below the package; the package itself is left out."""
    named = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in named.items() if name}


def _imports() -> Iterator[tuple[str, str]]:
    """Pairs of importer and imported module, wherever in the importer the import stands."""
    modules = _modules()
    for importer, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaccard_eval."):
                source = str(node.module).removeprefix("jaccard_eval.")
                for name in node.names:
                    member = f"{source}.{name.name}"
                    yield importer, member if member in modules else source
