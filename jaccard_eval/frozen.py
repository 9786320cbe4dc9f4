"""Frozen dataclasses that are quick to make; in use they are those of the standard library.

The standard library writes and compiles the text of each method of each class. Here ``__init__`` alone is compiled, for
classes of which many objects are made: it counts where a command makes a hundred classes before it begins, objects of
most of them, and many of few.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool = False, **options: bool) -> Callable[[type[Any]], type[Any]]:
        """Return what makes a class a dataclass, with the options of `dataclasses.dataclass`."""
        return (lambda cls: _freeze(cls, options)) if frozen else dataclasses.dataclass(**options)


def _freeze(cls: type[Any], options: dict[str, bool]) -> type[Any]:
    methods: dict[str, Any] = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if options.get("slots"):  # without them, values are restored into `__dict__`, which asks nobody
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    if options.get("repr", True):
        methods["__repr__"] = _repr
    cls.__doc__ = cls.__doc__ or cls.__name__  # else one is made of the signature, which takes as long as the rest
    # What is written as text is searched for `ClassVar` and the like by expressions, three times a field.
    types = cls.__annotations__
    cls.__annotations__ = {
        name: text if "Var" in str(text) or "KW_ONLY" in str(text) else object for name, text in types.items()
    }
    made: type[Any] = dataclasses.dataclass(**options | {"init": False, "repr": False, "eq": False})(cls)
    made.__annotations__ = types
    for name in types.keys() & made.__dataclass_fields__.keys():  # markers are not fields
        made.__dataclass_fields__[name].type = types[name]
    if options.get("eq", True):
        compared = [field.name for field in dataclasses.fields(made) if field.compare]
        methods["__eq__"], methods["__hash__"] = _comparison(compared)
    methods["__init__"] = _Init(made)
    for name, method in methods.items():
        if vars(made).get(name) is None:  # also where a class with an ``__eq__`` of its own has no hash yet
            setattr(made, name, method)
    return made


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(names: list[str]) -> tuple[Callable[..., bool], Callable[..., int]]:
    """Return ``__eq__`` and ``__hash__`` of some fields."""

    def each(self: Any) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names)

    values = attrgetter(*names) if len(names) > 1 else each  # of one name it returns the value, not a tuple

    def equal(self: Any, other: Any) -> bool:
        return bool(values(self) == values(other)) if other.__class__ is self.__class__ else NotImplemented

    return equal, lambda self: hash(values(self))


class _Factory:
    """Stands in a signature for a value that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


FEW = 8  # objects take less time than compiling, if their fields are filled one by one


class _Init:
    """Stands in the place of the ``__init__`` of a class until that is wanted, or many objects are made."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls
        self._n_made = 0

    def __get__(self, made: object, kind: type[Any]) -> Any:
        self._n_made += 1
        if made is not None and self._n_made <= FEW:
            return partial(self._fill, made)
        init = _init(self._cls)
        if vars(self._cls).get("__init__") is self:  # else a decorator has put its own in this one's place
            self._cls.__init__ = init
        return init.__get__(made, kind)

    def _fill(self, made: Any, *values: Any, **named: Any) -> None:
        """Do what the compiled one does; what is wrong with the arguments that one reports."""
        fields = dataclasses.fields(self._cls)
        given = dict(zip([field.name for field in fields if field.init and not field.kw_only], values, strict=False))
        is_right = len(given) == len(values) and given.keys().isdisjoint(named)
        given |= named
        for field in fields:
            if field.init and field.name in given:
                value = given.pop(field.name)
            elif field.default_factory is not dataclasses.MISSING:
                value = field.default_factory()
            else:
                value = field.default
                is_right = is_right and value is not dataclasses.MISSING
            object.__setattr__(made, field.name, value)
        if given or not is_right:
            _init(self._cls)(made, *values, **named)
        elif hasattr(made, "__post_init__"):
            made.__post_init__()


def _init(cls: type[Any]) -> Callable[..., None]:
    """Compile ``__init__``, which assigns past the refusal."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _Factory()}
    is_slotted = "__slots__" in vars(cls)  # a slot assigns in two thirds of the time
    parameters: dict[bool, list[str]] = {False: ["self"], True: ["*"]}  # by position or name, and by name alone
    lines = []
    for field in dataclasses.fields(cls):
        name, value, default = field.name, field.name, ""
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"], default = field.default, f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"], default = field.default_factory, "=_FACTORY"
            value = f"_make_{name}() if {name} is _FACTORY else {name}" if field.init else f"_make_{name}()"
        if field.init:
            parameters[bool(field.kw_only)].append(name + default)
        known[f"_set_{name}"] = getattr(cls, name).__set__ if is_slotted else None
        lines.append(f" _set_{name}(self, {value})\n" if is_slotted else f" _set(self, {name!r}, {value})\n")
    by_name = parameters[True] if len(parameters[True]) > 1 else []
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()\n")
    # No text of anybody else is in this: the names are those that a class gives its fields.
    exec(f"def __init__({', '.join(parameters[False] + by_name)}):\n{''.join(lines) or ' pass'}", known)  # noqa: S102
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls)} | {"return": None}
    return init
