import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jaccard_eval.features.audit.boxes import medians_of

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=NUMBERS))
def test_medians_are_those_of_numpy(columns: npt.NDArray[np.float64]) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(medians_of(columns), np.median(columns, axis=0))


def test_of_nothing_there_is_no_median() -> None:
    assert np.isnan(medians_of(np.zeros((0, 2)))).tolist() == [True, True]
