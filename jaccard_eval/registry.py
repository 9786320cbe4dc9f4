"""What lies above provides to what lies below: the package fills this in, and nothing below names what is above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LOADERS: dict[str, Callable[[], Any]] = {}


def provide(name: str, load: Callable[[], Any]) -> None:
    """Name what is loaded when it is first asked for."""
    _LOADERS[name] = load


def provided(name: str) -> Any:
    """Load what was provided under a name."""
    return _LOADERS[name]()
