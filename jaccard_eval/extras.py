"""Optional libraries: imported where they are used, through one function that says how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from jaccard_eval.errors import MachineError


def require(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional library.

    Raises
    ------
    MachineError
        When it is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        name = module.partition(".")[0]
        raise MachineError(f"{name} is not installed; install it: pip install 'jaccard-eval[{extra}]'") from None
