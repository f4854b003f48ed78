"""Plain arrays are read as any other data are, to the last bit, and refused in the same words."""

import numpy as np
import pytest

import fastece
from fastece import kernels
from fastece.data.options import ReadingOptions
from fastece.data.plain import are_plain, plain_problems
from fastece.data.reading import read_problems
from helpers.kernel_forms import PLAIN
from helpers.layouts import frozen, strided
from helpers.outcomes import outcome_of

SETTINGS = {None: ["auto", "confidence", "classwise", 0], 3: ["auto", "classwise", 1]}
LAYOUTS = {
    "as they are": np.array,
    "read-only": frozen,
    "strided": strided,
    "column order": np.asfortranarray,
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
}


def class_vectors(n, n_classes, seed=0):
    """Labels and class vectors, some of them with tied maxima; or scores for None."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes or 2, 0.3), n)
    prob[::5] = 1 / (n_classes or 2)
    return rng.integers(0, n_classes or 2, n), prob if n_classes else prob[:, 1].copy()


@pytest.mark.parametrize("n_classes", SETTINGS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_plain_arrays_have_the_problems_of_the_general_way(layout, dtype, n_classes):
    lay = LAYOUTS[layout]
    y, p = class_vectors(60, n_classes)
    prob = lay(p.astype(dtype))
    for weight in (None, np.arange(1.0, 61)):
        for label in (y, y.astype("u1"), y.astype("i2"), y.astype("u8"), y > 0):
            assert are_plain(label, prob)
            for setting in SETTINGS[n_classes]:
                one = plain_problems(lay(label), prob, setting, weight, True, map)
                general = read_problems(
                    lay(label),
                    prob,
                    ReadingOptions(setting=setting, sample_weight=weight),
                    vectors=True,
                )
                if setting == "confidence" and not n_classes and label.dtype.kind == "b":
                    assert one is None  # scores may be confidences of answers that were wrong
                    continue
                assert one is not None
                assert one.prob.tolist() == general.prob.tolist()
                assert one.label.tolist() == general.label.tolist()
                assert (one.v is None) == (weight is None)
                names = ("setting", "low", "high", "n_classes", "labels", "names", "votes")
                for name in names:
                    assert getattr(one, name) == getattr(general, name), name
                assert one.has_vectors == general.has_vectors
                for array in (one.prob, one.label):
                    assert array.flags.carray
                    assert array.dtype.char in "dfBl"


def changed(array, value):
    """A copy with another last entry."""
    array = array.copy()
    array[(-1,) * array.ndim] = value
    return array


@pytest.mark.parametrize("n_classes", SETTINGS)
def test_bad_plain_arrays_are_refused_as_lists_are(n_classes):
    y, p = class_vectors(4, n_classes)
    calls = [(y, changed(p, bad)) for bad in (np.nan, np.inf, -1e-9, 1 + 5e-7, 1.5, -0.5)]
    calls += [(changed(y, bad), p) for bad in (2, 3, 255, -1, 2**62)]
    calls += [(y, p * 1.01), (y, p * 0.5), (y[:2], p), (y, p[:2])]
    n_errors = 0
    for label, prob in calls:
        outcome = outcome_of(lambda y=label, p=prob: fastece.ece(y, p))
        assert outcome == outcome_of(lambda y=label, p=prob: fastece.ece(y.tolist(), p.tolist()))
        n_errors += isinstance(outcome[0], tuple)
    assert n_errors > 9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, -np.inf])
def test_bad_weights_of_plain_arrays_are_named(bad):
    y, p = class_vectors(9, None)
    weight = changed(np.ones(9), bad)
    with pytest.raises(ValueError, match=r"sample_weight\[8\] is"):
        fastece.ece(y, p, sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight: must not all be 0"):
        fastece.ece(y, p, sample_weight=np.zeros(9))


def test_other_settings_are_refused_for_plain_arrays_as_for_lists():
    for n_classes in SETTINGS:
        y, p = class_vectors(9, n_classes)
        for setting in ("binary", "confidence", 0, 2, -1, True, None, "top", 1.0, ["auto"]):
            outcome = outcome_of(lambda y=y, p=p, s=setting: fastece.ece(y, p, setting=s))
            assert outcome == outcome_of(
                lambda y=y, p=p, s=setting: fastece.ece(y.tolist(), p.tolist(), setting=s)
            )


class Own:
    """An array of one's own."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("n_classes", SETTINGS)
def test_arrays_of_other_kinds_have_the_same_value_and_compile_nothing(n_classes):
    y, p = class_vectors(50, n_classes)
    reading = kernels.reading
    for label in (y, y.astype("u1")):
        for dtype in ("f8", "f4"):
            fastece.ece(label, p.astype(dtype))
    used = [reading.read_binary, reading.read_top_label]
    n_compiled = [] if PLAIN else [len(kernel.signatures) for kernel in used]
    value = fastece.ece(y, p)
    shifted = np.frombuffer(b" " + p.tobytes(), np.uint8)[1:].view(p.dtype).reshape(p.shape)
    for same in (
        frozen(p), strided(p), p[::-1][::-1], np.asfortranarray(p), shifted, p.astype(">f8"),
        p.astype("g"), p.tolist(), Own(p),
    ):  # fmt: skip
        for label in (y, frozen(y), strided(y), y.astype(">i8"), y.tolist()):
            assert fastece.ece(label, same) == value
    for dtype in ("i1", "i2", "i4", "u2", "u4", "u8", "q", "f4", "f8"):
        assert fastece.ece(y.astype(dtype), p) == value
    if not PLAIN:
        assert [len(kernel.signatures) for kernel in used] == n_compiled


def test_masked_arrays_are_no_plain_arrays():
    y, p = class_vectors(4, None)
    masked = np.ma.masked_array(p, mask=[True, False, False, False])
    assert not are_plain(y, masked)
    with pytest.raises(TypeError, match="masked"):
        fastece.ece(y, masked)
