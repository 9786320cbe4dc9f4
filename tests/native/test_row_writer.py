"""The compiled core writes rows of texts and numbers as Python does, or leaves them to it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaccard_eval import native
from jaccard_eval.native.calls import read_numbers
from jaccard_eval.reading.writing import Column, rows_by_owner, rows_of

pytestmark = pytest.mark.skipif(native.load_core() is None, reason="no compiled core, or it is turned off")

SEEDS = st.integers(0, 2**32 - 1)
EDGES = (1e-4, 1e-5, 1e-6, 1e9, 1e15, 1e16, 1e17, 2.0**53, 0.1, 0.3, 5e-324, 1.7976931348623157e308, 999999999.9999999)
AROUND = [step for edge in EDGES for step in (np.nextafter(edge, 0), edge, np.nextafter(edge, 1e308))]


def numbers(seed: int, n: int) -> np.ndarray:
    """Return n finite numbers of every size, of few digits and of all, and some on either side of every threshold."""
    rng = np.random.default_rng(seed)
    kinds = (
        np.frombuffer(rng.bytes(8 * n), np.float64),
        10 ** rng.uniform(-9, 20, n),
        rng.uniform(-700, 700, n).round(int(rng.integers(0, 8))),
        rng.integers(-(10**17), 10**17, n).astype(np.float64),
        rng.choice([0.0, -0.0, *AROUND], n),
    )
    drawn = np.choose(rng.integers(0, len(kinds), n), kinds)
    return np.where(np.isfinite(drawn), drawn, 0.5)


def without_core(columns: list[Column], n: int, **options: bool) -> tuple[bytes, list[int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(native.VARIABLE, "0")
        rows, stops = rows_of(columns, n, **options)
    return rows, stops.tolist()


@given(SEEDS)
def test_numbers_are_spelled_as_python_and_json_spell_them(seed: int) -> None:
    values = numbers(seed, 200)
    columns: list[Column] = [values[:, None], "\n"]
    rows, _ = rows_of(columns, len(values))
    assert rows.decode().split() == [*map(repr, values.tolist())]
    rows, _ = rows_of(columns, len(values), with_point=False)
    assert rows.decode().split() == [repr(value).removesuffix(".0") for value in values.tolist()]
    rows, stops = rows_of(columns, len(values), json=True)
    assert (rows, stops.tolist()) == without_core(columns, len(values), json=True)
    assert [json.loads(row) for row in rows.split()] == values.tolist()


@given(SEEDS)
def test_numbers_are_read_as_python_reads_them(seed: int) -> None:
    values = numbers(seed, 50)
    text = np.frombuffer(f" [ {' , '.join(map(repr, values.tolist()))}]".encode(), np.uint8)
    found = read_numbers(text, len(values))
    # The text of a float has a point or an exponent: none of it is out of the ordinary, if its exponent is not.
    assert found is None or found.tobytes() == values.tobytes()
    assert found is not None or any(abs(value) < 1e-300 for value in values.tolist())


@pytest.mark.parametrize(
    "text", ["[1,2,3]", "[1]", "[1,.5]", "[1,2.]", "[01,2]", "[1,-0]", "[1,nan]", "[1,2", "[1 2]", "[1,1e999]"]
)
def test_other_lists_than_of_so_many_numbers_are_left_to_python(text: str) -> None:
    assert read_numbers(np.frombuffer(text.encode(), np.uint8), 2) is None


@given(SEEDS)
def test_rows_are_those_of_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, texts = int(rng.integers(0, 9)), ["", "a", "straße", "half \udc80", "long " * 9]
    table, codes = numbers(seed, 12 * n).reshape(n, 12), rng.integers(0, len(texts), n).astype(np.int32)
    columns: list[Column] = [
        "<",
        (texts, codes),
        table[:, 2:5],
        ">",
        (("no", "yes"), rng.random(n) < 0.5),
        table[:, ::-6],
    ]
    for with_point in (True, False):
        rows, stops = rows_of(columns, n, with_point=with_point)
        assert (rows, stops.tolist()) == without_core(columns, n, with_point=with_point)


def test_numbers_that_are_none_are_left_to_python() -> None:
    columns: list[Column] = [np.array([[1.5, np.inf], [np.nan, 2.0]]), "\n"]
    rows, stops = rows_of(columns, 2, json=True)
    assert (rows, stops.tolist()) == without_core(columns, 2, json=True) == (b"1.5,null\nnull,2.0\n", [9, 18])


def test_rows_come_to_their_owners_in_their_order() -> None:
    columns: list[Column] = [(("cat", "dog"), np.array([1, 0, 1, 1])), np.array([[1.0], [0.25], [3.5], [-2.0]]), ";"]
    found = rows_by_owner(columns, np.array([2, 0, 2, 0]), 4, with_point=False)
    assert found == [b"cat0.25;dog-2;", b"", b"dog1;dog3.5;", b""]
