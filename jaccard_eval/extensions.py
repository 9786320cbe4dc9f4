"""What installed packages add, by entry points: looked up only for names that are unknown here, as it takes a while."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from jaccard_eval.errors import MachineError
from jaccard_eval.text import example_keys, quoted_value

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# The groups of entry points, and what an entry of each is called in messages.
FORMATS, SIMILARITIES, METRICS, REPORTERS, PROTOCOLS = (
    f"jaccard_eval.{kind}" for kind in ("formats", "similarities", "metrics", "reporters", "protocols")
)
GROUPS = {
    FORMATS: "format",
    SIMILARITIES: "similarity",
    METRICS: "metric",
    REPORTERS: "reporter",
    PROTOCOLS: "protocol",
}


def extension_names(group: str) -> list[str]:
    """Names of what packages add to a group, none of which is imported."""
    return sorted(_points(group, tuple(sys.path)))


def extension_packages(group: str) -> list[tuple[str, str]]:
    """Names of what packages add to a group, each with the package that adds it; none is imported."""
    points = _points(group, tuple(sys.path))
    return [(name, ", ".join(sorted(map(_package, points[name])))) for name in sorted(points)]


def load_extension(group: str, name: str) -> Any:
    """Import what a package adds under a name, None where there is none.

    A MachineError names the package that cannot be imported, or the packages that add the same name.
    """
    points = _points(group, tuple(sys.path)).get(name, ())
    if len(points) > 1:
        packages = example_keys(sorted(map(_package, points)))
        raise MachineError(
            f"{GROUPS[group]} {quoted_value(name)} is in {len(points)} installed packages: {packages}. Uninstall all"
            " but one."
        )
    for point in points:
        try:
            return point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise broken_extension(group, name, f"cannot be imported: {type(error).__name__}: {error}") from error
    return None


def broken_extension(group: str, name: str, fault: str) -> MachineError:
    """Return the error about something that a package adds."""
    packages = example_keys(_package(point) for point in _points(group, tuple(sys.path)).get(name, ()))
    return MachineError(
        f"{GROUPS[group]} {quoted_value(name)} of the installed package {packages} {fault}. Update or uninstall it."
    )


# Packages that are installed while a process runs are seen when its path changes.
@cache
def _points(group: str, _path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; one name may be that of several packages."""
    from importlib.metadata import entry_points  # takes 15 ms

    points = list(entry_points(group=group))
    return {name: tuple(point for point in points if point.name == name) for name in {point.name for point in points}}


def _package(point: EntryPoint) -> str:
    return "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"
