"""Measure how the package is built: sizes, helpers, comments, imports and the path of one evaluation. Judges nothing.

    python benchmarks/house.py [--repo CHECKOUT]

The same script measures any checkout, so that two of them can be compared; what it runs uses the packages of the
interpreter that runs it. What the figures mean:

statements              nodes of `ast.stmt`, docstrings not counted
lines per statement     physical lines of all .py files, with blanks, comments and docstrings, over statements; then
                        the same of the lines that are not blank
functions               every `def`, methods and nested ones included; a body goes from the first statement after the
                        docstring to the end of the last
once-used helpers       functions of modules and methods with one underscore in front and at most three body lines,
                        whose name the package reads once (`name` or `x.name`, an import is not a use); then those
                        whose own module reads it once and nobody imports, which two helpers of one name cannot hide
full-line comments      lines with a comment alone; no shebangs, no comments for tools (noqa, type:, fmt:, pragma:)
positional parameters   those that a caller can pass by position, without self and cls
circles                 sets of modules that import each other: by any import, those in functions and under
                        TYPE_CHECKING included, and by those that run when the module is loaded
arrows against floors   pairs of modules whose import goes up, or across packages of one floor, by the contracts of
                        type `layers` in pyproject.toml, whose ignored imports are not excused
foreign underscores     pairs of modules: one imports an underscore module of a package that it does not live in or
                        below, or an underscore name of such a module
main path               `jaccard-eval gt.json dt.json` on the sample with all threads profiled: code objects of the
                        package that ran and have a name (functions and class bodies; no lambdas, comprehensions,
                        bodies of modules), the modules that hold them, all modules loaded, and the longest stack of
                        frames of the package, of any kind
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = "jaccard_eval"
SMALL_BODY = 3
LONG_BODY = 60
LONG_MODULE = 600
MANY_PARAMETERS = 6
FOR_TOOLS = re.compile(r"#(!|\s*(noqa|type:|fmt:|pragma:))")
SHOWN = 12  # entries of a list that are printed without --all

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Run in a process of its own, with the checkout first on the path: the profiler must see the first import.
PROFILER = """
import json, sys, threading
root, *arguments = sys.argv[1:]
entered, deepest = set(), 0

def profile(frame, event, argument):
    global deepest
    if event != "call" or not frame.f_code.co_filename.startswith(root):
        return
    entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))
    depth = 0
    while frame is not None:
        depth += frame.f_code.co_filename.startswith(root)
        frame = frame.f_back
    deepest = max(deepest, depth)

sys.argv = ["jaccard-eval", *arguments]
threading.setprofile(profile)
sys.setprofile(profile)
try:
    from jaccard_eval.__main__ import main
    main()
except SystemExit as end:
    code = end.code
sys.setprofile(None)
named = [(file, name) for file, name in entered if not name.split(".")[-1].startswith("<")]
loaded = [name for name in sys.modules if name.split(".")[0] == "jaccard_eval"]
print()
print(json.dumps({"functions and class bodies": len(named), "modules entered": len({file for file, _ in named}),
                  "modules loaded": len(loaded), "deepest stack": deepest}))
sys.exit(code)
"""


@dataclass(frozen=True)
class Module:
    """A file of the package, parsed."""

    name: str
    path: Path
    text: str
    tree: ast.Module = field(repr=False)

    @property
    def package(self) -> str:
        """The package that the module lives in; a package lives in itself."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """One name that a module imports: the module that it comes from, and the name taken from it, if any."""

    importer: Module
    target: str
    name: str | None
    at_load: bool


def main() -> None:
    options = _parsed()
    repo = options.repo.resolve()
    modules = read_package(repo / PACKAGE)
    show = None if options.all else SHOWN
    _print_sizes(modules, show)
    _print_imports(modules, repo, show)
    for what, figure in main_path(repo).items():
        print(f"main path: {what:37}{figure:>8,}")


def read_package(folder: Path) -> dict[str, Module]:
    """Parse every module of a package, by name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, path, text, ast.parse(text))
    return modules


def count_statements(tree: ast.AST) -> int:
    """Count statements without docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(isinstance(node, documented) and _has_docstring(node) for node in ast.walk(tree))
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - docstrings


def functions(tree: ast.AST) -> list[Function]:
    """Return all functions, methods and nested ones included."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def body_lines(function: Function) -> int:
    """Count the lines of a body without its docstring."""
    body = function.body[1:] if _has_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def positional_parameters(function: Function) -> int:
    """Count the parameters that can be passed by position, without self and cls."""
    names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def once_used_helpers(modules: Mapping[str, Module]) -> tuple[list[str], list[str]]:
    """Name small private functions whose name is read once: in the package, and in their module alone."""
    reads = {module.name: Counter(_names_read(module.tree)) for module in modules.values()}
    everywhere = sum(reads.values(), Counter())
    imported = {one.name for one in imports(modules)}
    small = [
        (module.name, function.name, f"{module.name}:{function.lineno} {function.name}")
        for module in modules.values()
        for function in _of_modules_and_classes(module.tree)
        if _private(function.name) and body_lines(function) <= SMALL_BODY
    ]
    in_package = [place for _, name, place in small if everywhere[name] == 1]
    in_module = [place for home, name, place in small if reads[home][name] == 1 and name not in imported]
    return in_package, in_module


def full_line_comments(text: str) -> int:
    """Count lines that hold a comment alone and speak to people."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type == tokenize.COMMENT
        and not token.line[: token.start[1]].strip()
        and FOR_TOOLS.match(token.string) is None
        for token in tokens
    )


def imports(modules: Mapping[str, Module]) -> list[Import]:
    """Return what modules of the package import of it, a name each."""
    found = []
    for module in modules.values():
        at_load = set(map(id, _run_at_load(module.tree)))
        for node in ast.walk(module.tree):
            found += [
                Import(module, target, name, id(node) in at_load) for target, name in _imported(node, module, modules)
            ]
    return found


def circles(arrows: Set[tuple[str, str]]) -> list[list[str]]:
    """Return the sets of modules that reach each other."""
    onward: dict[str, set[str]] = {}
    for start, end in arrows:
        onward.setdefault(start, set()).add(end)
    reached = {start: _reachable(onward, start) for start in onward}
    sets = {frozenset(end for end in ends if start in reached.get(end, ())) for start, ends in reached.items()}
    return sorted(sorted(names) for names in sets if len(names) > 1)


def floors(repo: Path) -> list[list[tuple[frozenset[str], bool]]]:
    """Return the `layers` contracts of a checkout, highest floor first: packages, and whether they are apart."""
    document = tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = document.get("tool", {}).get("importlinter", {}).get("contracts", ())
    return [
        _floors_of(contract, container)
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract.get("containers", [""])
    ]


def against_floors(arrows: Set[tuple[str, str]], contract: Sequence[tuple[frozenset[str], bool]]) -> list[str]:
    """Name the imports that a contract forbids."""
    forbidden = []
    for start, end in sorted(arrows):
        here, there = _floor(start, contract), _floor(end, contract)
        if here is None or there is None or here[1] == there[1]:
            continue
        if there[0] < here[0] or (there[0] == here[0] and contract[here[0]][1]):
            forbidden.append(f"{start} -> {end}")
    return forbidden


def foreign_underscores(found: Sequence[Import], modules: Mapping[str, Module]) -> list[str]:
    """Name the imports of what another package keeps to itself."""
    foreign = set()
    for one in found:
        parts = one.target.split(".")
        owners = [".".join(parts[:i]) for i, part in enumerate(parts) if _private(part)]
        if one.name is not None and _private(one.name):
            owners.append(modules[one.target].package)
        if any(not f"{one.importer.package}.".startswith(f"{owner}.") for owner in owners):
            foreign.add(f"{one.importer.name} -> {one.target}")
    return sorted(foreign)


def main_path(repo: Path) -> dict[str, int]:
    """Run the main command on the sample and count what it entered."""
    sample = repo / "sample_data" / "coco"
    files = [str(sample / name) for name in ("gt.json", "better.json")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROFILER, f"{repo / PACKAGE}{os.sep}", *files],
        env=os.environ | {"PYTHONPATH": str(repo)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"The main command failed:\n{done.stderr}")
    counted: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counted


def _print_sizes(modules: Mapping[str, Module], shown: int | None) -> None:
    texts = [module.text for module in modules.values()]
    statements = sum(count_statements(module.tree) for module in modules.values())
    lines = [line for text in texts for line in text.splitlines()]
    full = sum(bool(line.strip()) for line in lines)
    all_functions = {
        f"{module.name}:{function.lineno} {function.name}": function
        for module in modules.values()
        for function in functions(module.tree)
    }
    folders = Counter(module.package for module in modules.values())
    _figure("modules", len(modules))
    _figure("functions", len(all_functions))
    _figure("statements", statements)
    _figure("physical lines", len(lines))
    _figure("lines per statement", f"{len(lines) / statements:.2f}")
    _figure("lines per statement, without blank lines", f"{full / statements:.2f}")
    _figure("full-line comments", sum(map(full_line_comments, texts)))
    in_package, in_module = once_used_helpers(modules)
    _listed(f"once-used helpers of at most {SMALL_BODY} lines", in_package, shown)
    _listed("once-used helpers, each in its module", in_module, shown)
    _listed("folders", [f"{count:4} {name}" for name, count in folders.most_common()], shown)
    _listed(
        f"functions of more than {LONG_BODY} body lines",
        [name for name, function in all_functions.items() if body_lines(function) > LONG_BODY],
        shown,
    )
    _listed(
        f"modules of more than {LONG_MODULE} lines",
        [name for name, module in modules.items() if len(module.text.splitlines()) > LONG_MODULE],
        shown,
    )
    _listed(
        f"functions of more than {MANY_PARAMETERS} positional parameters",
        [name for name, function in all_functions.items() if positional_parameters(function) > MANY_PARAMETERS],
        shown,
    )


def _print_imports(modules: Mapping[str, Module], repo: Path, shown: int | None) -> None:
    found = imports(modules)
    arrows = {(one.importer.name, one.target) for one in found if one.importer.name != one.target}
    at_load = {(one.importer.name, one.target) for one in found if one.at_load and one.importer.name != one.target}
    _figure("imports between modules", len(arrows))
    _listed("circles of imports", [" ".join(circle) for circle in circles(arrows)], shown)
    _listed("circles of imports at load", [" ".join(circle) for circle in circles(at_load)], shown)
    for contract in floors(repo):
        _listed("arrows against the floors", against_floors(arrows, contract), shown)
        homeless = [name for name in modules if _floor(name, contract) is None]
        _listed("modules on no floor", homeless, shown)
    _listed("foreign underscore imports", foreign_underscores(found, modules), shown)


def _figure(name: str, value: int | str) -> None:
    print(f"{name:48}{value if isinstance(value, str) else format(value, ','):>8}")


def _listed(name: str, entries: Sequence[str], shown: int | None) -> None:
    """Print how many there are, and the first of them."""
    _figure(name, len(entries))
    for entry in entries[:shown]:
        print(f"    {entry}")
    if entries[len(entries[:shown]) :]:
        print("    ...")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--repo", type=Path, default=here, help="checkout to measure (default: this one)")
    parser.add_argument("--all", action="store_true", help="print every entry of each list")
    return parser.parse_args()


def _has_docstring(node: ast.AST) -> bool:
    first = next(iter(getattr(node, "body", ())), None)
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _of_modules_and_classes(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from (child for child in node.body if isinstance(child, Function))


def _names_read(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _run_at_load(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a module without what runs later or never: bodies of functions, and `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        if not isinstance(child, Function | ast.Lambda):
            yield from _run_at_load(child)


def _imported(node: ast.AST, module: Module, modules: Mapping[str, Module]) -> Iterator[tuple[str, str | None]]:
    """Return the modules of the package that a statement imports, and the names it takes from them."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, None) for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom):
        above = module.package.split(".")
        base = above[: len(above) + 1 - node.level] if node.level else []
        source = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            if f"{source}.{alias.name}" in modules:
                yield f"{source}.{alias.name}", None
            elif source in modules:
                yield source, alias.name


def _reachable(onward: Mapping[str, Set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = onward.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def _floors_of(contract: Mapping[str, Any], container: str) -> list[tuple[frozenset[str], bool]]:
    """Read the layers of one contract; `a | b` are apart, `a : b` may import each other, parentheses mean optional."""
    prefix = f"{container}." if container else ""
    result = []
    for layer in contract["layers"]:
        names = frozenset(prefix + name.strip(" ()") for name in re.split(r"[|:]", layer))
        result.append((names, ":" not in layer))
    return result


def _floor(name: str, contract: Sequence[tuple[frozenset[str], bool]]) -> tuple[int, str] | None:
    """Return the floor that a module stands on, counted from the highest, and the package of it."""
    homes = [(i, home) for i, (names, _) in enumerate(contract) for home in names if f"{name}.".startswith(f"{home}.")]
    return max(homes, key=lambda home: len(home[1]), default=None)


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


if __name__ == "__main__":
    main()
