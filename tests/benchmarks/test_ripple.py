"""The recipes of `benchmarks/ripple.py` fit the code, and what they add works; what that costs is not judged here."""

import pytest
import ripple

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("addition", [one for one in ripple.ADDITIONS if one.proofs], ids=lambda one: one.name)
def test_every_addition_does_what_its_recipe_promises(addition: ripple.Addition, pytestconfig: pytest.Config) -> None:
    touched, proved = ripple.cost(addition, pytestconfig.rootpath)
    assert touched
    assert len(proved) == len(addition.proofs or {})


def test_a_recipe_that_misses_its_text_says_which(pytestconfig: pytest.Config) -> None:
    addition = ripple.Addition("stale", target=1, edits=(("no such text", ""),), proofs={"nothing": None})
    with pytest.raises(ripple.BrokenError, match="0 times, not 1: 'no such text'"):
        ripple.cost(addition, pytestconfig.rootpath)
