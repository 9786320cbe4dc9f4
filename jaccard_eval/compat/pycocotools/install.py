"""Put the drop-in where programs that import pycocotools find it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from jaccard_eval.compat.pycocotools import coco, cocoeval, mask
from jaccard_eval.errors import UsageError

PACKAGE = "pycocotools"
REPLACED = {"coco": coco, "cocoeval": cocoeval}
MASK = "mask"  # replaced where nobody has it yet: who has the installed one goes on with the same numbers


def init_as_pycocotools() -> None:
    """Let ``import pycocotools.coco``, ``.cocoeval`` and ``.mask`` find the drop-in, in this process.

    Call it before anything imports these modules; pycocotools need not be installed. A second call changes nothing.

    Raises
    ------
    UsageError
        When pycocotools' own classes are loaded already; names the modules that hold them.
    """
    if any(sys.modules.get(f"{PACKAGE}.{name}") not in (None, module) for name, module in REPLACED.items()):
        require_free(PACKAGE, tuple(REPLACED), "init_as_pycocotools")
    package = sys.modules.get(PACKAGE)
    if package is None:
        # A package without code, in whose folder the rest of what is installed is found as ever.
        spec = importlib.util.find_spec(PACKAGE)
        package = ModuleType(PACKAGE)
        package.__spec__ = spec or ModuleSpec(PACKAGE, None, is_package=True)
        package.__path__ = list(spec.submodule_search_locations or ()) if spec is not None else []
        package.__file__ = __file__
        sys.modules[PACKAGE] = package
    free = {MASK: mask} if f"{PACKAGE}.{MASK}" not in sys.modules else {}
    for name, module in {**REPLACED, **free}.items():
        sys.modules[f"{PACKAGE}.{name}"] = module
        setattr(package, name, module)


def install_modules(contents: Mapping[str, Mapping[str, Any]]) -> None:
    """Put modules with some contents, parents first, where imports find them; the rest of an installed package too."""
    for name, content in contents.items():
        module = ModuleType(name)
        module.__file__ = __file__
        # Without a spec, whoever asks whether the package is installed gets an error for an answer.
        installed = None if "." in name else importlib.util.find_spec(name)
        module.__spec__ = installed or ModuleSpec(name, None, is_package=True)
        module.__path__ = list(module.__spec__.submodule_search_locations or ())
        vars(module).update(content)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def require_free(package: str, names: Sequence[str], call: str) -> None:
    """Raise a UsageError where modules of an installed package are loaded, which would be used on."""
    homes = {f"{package}.{name}" for name in names}
    loaded = sorted(homes & sys.modules.keys())
    if loaded:
        holders = ", ".join(_holders(package, homes)) or "a function or a module that is gone"
        raise UsageError(
            f"{loaded[0]} was already imported by {holders}, which would keep using it. "
            f"Call {call}() before that import."
        )


def _holders(package: str, homes: set[str]) -> list[str]:
    """Name the modules outside a package that hold modules of it, or something defined in them."""
    originals = [sys.modules[home] for home in homes if home in sys.modules]
    holders = []
    for name, module in list(sys.modules.items()):
        # Copied, as looking at lazy modules may load others; `vars` alone, so that none is made to load anything.
        values = list(getattr(module, "__dict__", {}).values())
        if name.partition(".")[0] == package:
            continue
        modules = [value for value in values if isinstance(value, ModuleType)]
        classes = [value for value in values if isinstance(value, type)]
        if any(value in originals for value in modules) or any(value.__module__ in homes for value in classes):
            holders.append(name)
    return holders
