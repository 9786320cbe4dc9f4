"""Regular expressions that are compiled when they are first used.

Each format knows a few, and an input is looked at by all formats: compiling what none of them comes to use took a tenth
of the time of a small evaluation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:  # noqa: N801 - in use it is what `re.compile` returns
        """What `re.compile` returns, for all that is asked of an object."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> Any:
            """Compile, and keep what was asked for: the next time it is found without this."""
            if name.startswith("__"):  # of copying and pickling, which take what is given
                raise AttributeError(name)
            found = getattr(re.compile(*self._given), name)
            setattr(self, name, found)
            return found

        def __repr__(self) -> str:
            return repr(re.compile(*self._given))
