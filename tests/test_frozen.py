"""Frozen dataclasses that are quick to make behave as those of the standard library, which are the oracle."""

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import pytest

from jaccard_eval import frozen

Decorator = Callable[..., Any]
OPTIONS = [
    {},
    {"slots": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "eq": False},
    {"kw_only": True, "repr": False},
]


def point(dataclass: Decorator, options: dict[str, bool]) -> Any:
    """A class with all that fields are given in this project, made by one of the two decorators."""

    @dataclass(frozen=True, **options)
    class Point:
        x: float
        label: str = "none"
        note: str = dataclasses.field(default="", compare=False, repr=False)
        tags: list[str] = dataclasses.field(default_factory=list)
        total: list[int] = dataclasses.field(init=False, default_factory=lambda: [7])

        def __post_init__(self) -> None:
            if self.x < 0:
                object.__setattr__(self, "x", 0.0)

    return Point


@pytest.fixture(params=[0, 8], ids=["compiled", "filled"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "FEW", request.param)


@pytest.fixture(params=OPTIONS, ids=str)
def both(request: pytest.FixtureRequest, few: None) -> tuple[Any, Any]:
    return point(frozen.dataclass, request.param), point(dataclasses.dataclass, request.param)


def seen(kind: Any) -> list[object]:
    """What its users see of a class."""
    first, second, third = kind(x=1.5, note="a"), kind(x=1.5, note="b"), kind(x=-1, label="dog", tags=["a"])
    replaced = dataclasses.replace(third, label="cat")
    return [
        repr(third).partition(" object at ")[0],
        first == second,
        first == third,
        first != "1.5",
        first.__eq__("1.5") is NotImplemented,
        dataclasses.asdict(replaced),
        kind.__doc__ is not None,
        getattr(kind, "__slots__", None),
        kind.__match_args__,
        str(inspect.signature(kind)),
        seen_fields(kind),
        vars(first) if not hasattr(kind, "__slots__") else None,
    ]


def message(kind: Any, act: Callable[[Any], object]) -> tuple[type[Exception], str]:
    with pytest.raises((TypeError, AttributeError)) as caught:
        act(kind)
    return caught.type, str(caught.value)


def test_what_is_seen_is_that_of_the_standard_library(both: tuple[Any, Any]) -> None:
    mine, standard = both
    assert seen(mine) == seen(standard)


@pytest.mark.parametrize(
    "act",
    [
        lambda kind: kind(),
        lambda kind: kind(x=1, y=2),
        lambda kind: kind(*range(9)),
        lambda kind: kind(1, x=2),
        lambda kind: kind(x=1, total=[1]),
        lambda kind: setattr(kind(x=1), "x", 2),
        lambda kind: delattr(kind(x=1), "x"),
        lambda kind: dataclasses.replace(kind(x=1), y=2),
        lambda kind: hash(kind(x=1)) if kind.__eq__ is not object.__eq__ else kind(),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(both: tuple[Any, Any], act: Callable[[Any], object]) -> None:
    mine, standard = both
    assert message(mine, act) == message(standard, act)


@frozen.dataclass(frozen=True, slots=True)
class Base:
    """A value that others extend."""

    a: int


@frozen.dataclass(frozen=True, slots=True)
class Derived(Base):  # noqa: PLW1641 - the decorator gives it a hash
    """A value with another one, and an order of its own."""

    b: str = "b"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived) and self.b == other.b


@frozen.dataclass(frozen=True, slots=True)
class Nothing:
    """A value without fields."""


def test_objects_are_alike_before_and_after_the_method_is_compiled() -> None:
    made = [point(frozen.dataclass, {"slots": True})(n, tags=[str(n)]) for n in range(3)]
    kind = point(frozen.dataclass, {"slots": True})
    assert [kind(n % 3, tags=[str(n % 3)]).tags for n in range(3 * frozen.FEW)] == [
        one.tags for one in made
    ] * frozen.FEW
    assert len({repr(kind(1)) for _ in range(3 * frozen.FEW)}) == 1
    first, second = kind(1), kind(1)
    assert first.tags is not second.tags


def test_markers_and_values_of_the_class_are_no_fields() -> None:
    def marked(dataclass: Decorator) -> Any:
        @dataclass(frozen=True, slots=True)
        class Marked:
            a: "int"
            kind: "ClassVar[str]" = "k"
            _: "KW_ONLY"
            b: "int" = 2

        return Marked

    mine, standard = marked(frozen.dataclass), marked(dataclasses.dataclass)
    assert seen_fields(mine) == seen_fields(standard)
    assert str(inspect.signature(mine)) == str(inspect.signature(standard))
    assert mine.__annotations__ == standard.__annotations__


def seen_fields(kind: Any) -> list[tuple[object, ...]]:
    return [(field.name, field.type, field.kw_only, field.init) for field in dataclasses.fields(kind)]


def test_fields_are_inherited_and_methods_of_the_class_stay() -> None:
    assert Derived(1, "x") == Derived(2, "x")
    assert hash(Derived(1, "x")) != hash(Derived(2, "x"))
    assert repr(Derived(1)) == "Derived(a=1, b='b')"
    assert Base(1) != Derived(1)
    assert {Base(1), Base(1), Base(2)} == {Base(2), Base(1)}
    assert Nothing() == Nothing()


def test_values_are_pickled_with_and_without_slots() -> None:
    derived = pickle.loads(pickle.dumps(Derived(3, "x")))
    assert (derived.a, derived.b) == (3, "x")
    assert pickle.loads(pickle.dumps(Nothing())) == Nothing()


def test_what_is_not_frozen_is_left_to_the_standard_library() -> None:
    @frozen.dataclass(slots=True)
    class Counter:
        n: int = 0

    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)
