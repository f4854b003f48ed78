"""A call on small data shows which kernels are needed, before any of them is compiled."""

import numpy as np
import pytest

from fastece import kernels
from fastece.data import rehearsal
from fastece.data.rehearsal import compile_backwards, from_the_end, rehearse

SCORES = np.linspace(0.1, 0.9, 9)

pytestmark = pytest.mark.skipif(
    not hasattr(kernels.arithmetic.sigmoid, "py_func"), reason="kernels are not compiled"
)


def names_of(needed):
    """Names of kernels, in their order."""
    return [each.kernel.__name__ for each in needed]


def use_two_kernels():
    """Call a kernel, then one that calls others, and the first one again."""
    out = np.empty(9)
    kernels.arithmetic.zero(out)
    kernels.arithmetic.sigmoid(SCORES, out)
    kernels.arithmetic.zero(np.empty(9))
    return out


def test_kernels_called_from_python_are_listed_once_in_their_order():
    assert names_of(rehearse(use_two_kernels)) == ["zero", "sigmoid"]


def test_kernels_for_other_types_are_listed_by_themselves():
    def use_two_types():
        kernels.reading.are_hits(np.zeros(3, np.uint8))
        kernels.reading.are_hits(np.zeros(3, np.int64))

    needed = rehearse(use_two_types)
    assert names_of(needed) == ["are_hits", "are_hits"]
    assert needed[0].types != needed[1].types


def test_a_rehearsal_computes_the_same_values_and_compiles_nothing():
    values = []
    sigmoid = kernels.arithmetic.sigmoid
    n_signatures = len(sigmoid.signatures)
    rehearse(lambda: values.append(use_two_kernels()))
    assert len(sigmoid.signatures) == n_signatures
    assert kernels.arithmetic.sigmoid is sigmoid
    np.testing.assert_allclose(values[0], 1 / (1 + np.exp(-SCORES)))


@pytest.mark.parametrize("error", [ValueError, TypeError])
def test_a_call_that_is_refused_needs_the_kernels_before(error):
    def refuse():
        use_two_kernels()
        raise error

    assert names_of(rehearse(refuse)) == ["zero", "sigmoid"]


def test_a_rehearsal_that_takes_too_long_ends(monkeypatch):
    monkeypatch.setattr(rehearsal, "MAX_SECONDS", 0.0)
    assert rehearse(use_two_kernels) == []


def test_kernels_are_in_place_again_after_an_error():
    sigmoid = kernels.arithmetic.sigmoid

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rehearse(interrupt)
    assert kernels.arithmetic.sigmoid is sigmoid


def test_the_second_half_comes_first_and_its_largest_kernels_before_others():
    needed = rehearse(use_two_kernels)
    zero, sigmoid = needed
    assert from_the_end(needed) == [sigmoid, zero]
    assert from_the_end([]) == []
    # Code that an earlier kernel has compiled is not counted again.
    assert from_the_end([sigmoid, zero]) == [zero, sigmoid]


def test_compiling_backwards_compiles_what_the_call_needs():
    compile_backwards(use_two_kernels)
    for each in rehearse(use_two_kernels):
        assert each.types in each.kernel.overloads
