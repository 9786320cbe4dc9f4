"""The rules of the house, held by machine: sizes, names, import contracts, lazy start, nothing of one machine."""

import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import house
import pytest

import jaccard_eval
from jaccard_eval.cli.run import run

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaccard_eval"
MODULES = sorted(PACKAGE.rglob("*.py"))

GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc"}
# Absolute paths that mean something on one machine only; "someone" is nobody.
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/" + r"(?:work|tmp|root|mnt|(?:home|Users)/(?!someone/)\w+)/\w")


def test_no_module_is_a_grab_bag() -> None:
    assert not [_name(path) for path in MODULES if path.stem.strip("_") in GRAB_BAGS]


def test_import_contracts_are_kept() -> None:
    done = _run([str(Path(sys.executable).with_name("lint-imports")), "--no-cache"])
    assert done.returncode == 0, done.stdout


def test_no_two_modules_import_each_other_not_even_inside_functions() -> None:
    modules = house.read_package(PACKAGE)
    assert house.circles({(found.importer.name, found.target) for found in house.imports(modules)}) == []


def test_all_names_what_each_module_defines_and_nothing_else() -> None:
    for path in MODULES:
        if "__all__" in _source(path):
            _require_complete(importlib.import_module(_name(path)))


def test_public_names_of_the_package_are_all_listed_by_dir() -> None:
    submodules = {info.name for info in pkgutil.iter_modules(jaccard_eval.__path__)}
    listed = {name for name in dir(jaccard_eval) if not name.startswith("_")} - submodules - {"annotations"}
    assert listed - set(jaccard_eval.__all__) == set()


def test_importing_the_package_loads_no_heavy_library() -> None:
    assert _heavy_after("import jaccard_eval") == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["evaluate", "--help"], ["inspect", "--help"]], ids=" ".join
)
def test_help_and_version_load_no_heavy_library(arguments: list[str]) -> None:
    run = f"from jaccard_eval.cli.run import run_process\nrun_process({arguments!r}, print)"
    code = f"import jaccard_eval.__main__\n{run}"
    assert _heavy_after(code) == []


def test_an_evaluation_loads_only_what_it_uses() -> None:
    arguments = ["evaluate", *(str(ROOT / "sample_data" / "coco" / name) for name in ("gt.json", "better.json"))]
    unused = ["pandas", "PIL", "rich", "yaml", "shutil", "tempfile", "jaccard_eval.similarity.masks"]
    code = f"from jaccard_eval.cli.run import run_process\nrun_process({arguments!r}, print)"
    assert _loaded_after(code, unused) == []


@pytest.mark.needs("pyarrow")
def test_reading_parts_loads_no_pandas(tmp_path: Path) -> None:
    sides = [str(ROOT / "sample_data" / "coco" / name) for name in ("gt.json", "better.json")]
    assert run(["partition", *sides, "-o", str(tmp_path / "parts"), "-q"]) == 0
    assert _loaded_after(f"import jaccard_eval\njaccard_eval.evaluate({str(tmp_path / 'parts')!r})", ["pandas"]) == []


def test_choosing_how_a_file_is_written_loads_no_way_to_draw() -> None:
    loaded = _heavy_after("from jaccard_eval.report import reporter_for\nreporter_for('result.json')")
    assert {"PIL", "pandas", "rich"}.isdisjoint(loaded)


def test_no_committed_text_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _committed_texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATHS.search(line)
    ]
    assert not found


def _require_complete(loaded: ModuleType) -> None:
    public = set(loaded.__all__)
    missing = sorted(name for name in public if not hasattr(loaded, name))
    unlisted = sorted(_defined_in(loaded) - public)
    assert (loaded.__name__, missing, unlisted) == (loaded.__name__, [], [])


def _defined_in(module: ModuleType) -> set[str]:
    """Public functions and classes whose home is this module."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == module.__name__
    }


def _heavy_after(code: str) -> list[str]:
    return _loaded_after(code, ["msgspec", "numpy", "pandas", "PIL", "rich", "yaml"])


def _loaded_after(code: str, modules: list[str]) -> list[str]:
    report = f"print('loaded:', *[name for name in {modules!r} if name in sys.modules])"
    done = _run([sys.executable, "-c", f"import sys\n{code}\n{report}"])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].removeprefix("loaded:").split()


def _committed_texts() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    names = _run(["git", "ls-files", "-z"]).stdout.split("\0")
    files = [ROOT / name for name in names if name and (ROOT / name).is_file()]
    return [path for path in files if b"\0" not in path.read_bytes()]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")
