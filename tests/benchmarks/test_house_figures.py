"""The figures of `benchmarks/house.py` on a package small enough to count by hand."""

from pathlib import Path

import house
import pytest

FILES = {
    "__init__.py": '"""The package."""\n',
    "low/__init__.py": "",
    "low/_inner.py": '''"""Low."""

import sys  # not a line of its own

# Why this stands here.
# noqa: E501
LIMIT = 3


def public(n):
    """Return the limit, for two reasons."""
    # Another reason.
    def nested():
        return _once(n) + _twice(n)
    return nested() + _twice(n)


def _once(n):
    """Return it."""

    return n


def _twice(n):
    return n if n else _long(n)


def _long(n):
    a = n
    b = a
    c = b
    return c
''',
    "low/near.py": "from . import _inner\nfrom ._inner import _once\n",
    "high/__init__.py": "",
    "high/user.py": '''"""High."""

from typing import TYPE_CHECKING

from house_sample.low._inner import public

if TYPE_CHECKING:
    from house_sample.high.other import Other


class User:
    def use(self, a, b, c, d, e, f, g, *, h):
        return public(self._take(a))

    def _take(self, a):
        return a
''',
    "high/other.py": "def Other():\n    import house_sample.high.user\n",
    "low/climber.py": "from ..high.user import User\n",
}
PYPROJECT = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["house_sample.high", "house_sample.low.near | (house_sample.low._inner)", "house_sample.low"]
"""


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, house.Module]:
    for name, text in FILES.items():
        path = tmp_path / "house_sample" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return house.read_package(tmp_path / "house_sample")


def test_statements_are_counted_without_docstrings(modules: dict[str, house.Module]) -> None:
    # import, LIMIT; public, nested and their two returns; _once and its return; _twice, too; _long and its four
    assert house.count_statements(modules["house_sample.low._inner"].tree) == 2 + 4 + 2 + 2 + 5
    assert house.count_statements(modules["house_sample"].tree) == 0


def test_bodies_are_measured_without_docstrings(modules: dict[str, house.Module]) -> None:
    inner = {
        function.name: house.body_lines(function)
        for function in house.functions(modules["house_sample.low._inner"].tree)
    }
    assert inner == {"public": 3, "nested": 1, "_once": 1, "_twice": 1, "_long": 4}


def test_parameters_by_position_are_counted_without_self(modules: dict[str, house.Module]) -> None:
    use, _ = house.functions(modules["house_sample.high.user"].tree)
    assert house.positional_parameters(use) == 7


def test_a_helper_is_used_once_when_its_name_is_read_once(modules: dict[str, house.Module]) -> None:
    in_package, in_module = house.once_used_helpers(modules)
    assert [place.split()[1] for place in in_package] == ["_take", "_once"]
    assert [place.split()[1] for place in in_module] == ["_take"]  # low/near.py imports _once


def test_comments_count_that_stand_alone_and_speak_to_people(modules: dict[str, house.Module]) -> None:
    assert house.full_line_comments(FILES["low/_inner.py"]) == 2


def test_circles_are_found_in_all_imports_and_in_those_at_load(modules: dict[str, house.Module]) -> None:
    found = house.imports(modules)
    arrows = {(one.importer.name, one.target) for one in found}
    at_load = {(one.importer.name, one.target) for one in found if one.at_load}
    assert house.circles(arrows) == [["house_sample.high.other", "house_sample.high.user"]]
    assert house.circles(at_load) == []


def test_imports_that_go_up_or_across_a_floor_are_named(modules: dict[str, house.Module], tmp_path: Path) -> None:
    arrows = {(one.importer.name, one.target) for one in house.imports(modules)}
    (contract,) = house.floors(tmp_path)
    assert house.against_floors(arrows, contract) == [
        "house_sample.low.climber -> house_sample.high.user",
        "house_sample.low.near -> house_sample.low._inner",
    ]


def test_underscores_of_another_package_are_foreign(modules: dict[str, house.Module]) -> None:
    assert house.foreign_underscores(house.imports(modules), modules) == [
        "house_sample.high.user -> house_sample.low._inner"
    ]


def test_the_main_path_of_this_package_is_entered(pytestconfig: pytest.Config) -> None:
    path = house.main_path(pytestconfig.rootpath)
    assert path["functions and class bodies"] > path["modules entered"] > path["deepest stack"] > 0
    assert path["modules loaded"] >= path["modules entered"]
