"""Everything about matching holds with the compiled core and without it."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def core(with_core: bool) -> bool:
    """Run a module twice."""
    return with_core
