"""`fastece.compat.sklearn` computes what scikit-learn does."""

import numpy as np
import pytest

from fastece.compat import sklearn as compat
from helpers.compat_cases import (
    ONLY_QUICK,
    RANDOM_LABELS,
    SEEDS,
    binary_case,
    library,
    near,
    quietly,
)
from oracles import reference_compat as reference

pytestmark = RANDOM_LABELS

# Names of the two labels, and the one that is positive.
LABELS = [((0, 1), None), ((-1, 1), None), (("no", "yes"), "yes"), ((0, 1), 0), ((3, 7), 7)]


@pytest.fixture
def peer():
    return library("sklearn.calibration").calibration_curve


def arguments(seed):
    """`(y_true, y_prob, options, kind)`."""
    rng, y_prob, hits, n_bins, kind = binary_case(seed)
    names, pos_label = LABELS[rng.integers(0, len(LABELS))]
    strategy = str(rng.choice(["uniform", "quantile"]))
    y_true = np.array(names)[hits]
    if y_true.dtype.kind == "U" and rng.random() < 0.5:
        y_true = y_true.astype(object)
    return y_true, y_prob, {"pos_label": pos_label, "n_bins": n_bins, "strategy": strategy}, kind


def compare(got, want, seed):
    """Both arrays agree; the message has the seed."""
    for array, expected in zip(got, want, strict=True):
        near(array, expected, 1e-12, seed)


@ONLY_QUICK
def test_curves_equal_the_reference(seeds):
    for seed in seeds:
        y_true, y_prob, options, kind = arguments(seed)
        got = compat.calibration_curve(y_true, y_prob, **options)
        assert isinstance(got, tuple)
        assert all(a.dtype == np.float64 for a in got)
        lists = {"y_true": y_true.tolist(), "y_prob": y_prob.tolist()}
        want = reference.calibration_curve(**lists, **options, kind=kind)
        compare(got, want, seed)


@SEEDS
def test_curves_equal_the_library(peer, seeds):
    for seed in seeds:
        y_true, y_prob, options, _kind = arguments(seed)
        got = compat.calibration_curve(y_true, y_prob, **options)
        compare(got, quietly(peer, y_true, y_prob, **options), seed)


def test_defaults_and_lists():
    y = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    p = [0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0]
    true, pred = compat.calibration_curve(y, p, n_bins=3)
    np.testing.assert_allclose(true, [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(pred, [0.2, 0.525, 0.85], atol=1e-12)
    five = compat.calibration_curve(y, p, n_bins=5, strategy="uniform", pos_label=1)
    compare(compat.calibration_curve(y, p), five, 0)
    column = compat.calibration_curve(np.array(y)[:, None], np.array(p)[:, None])
    compare(column, five, 0)


def test_labels_are_taken_and_refused_like_by_the_library(peer):
    p = [0.2, 0.6, 0.9]
    for y in ([1, 1, 1], [0, 0, 0], [-1, -1, -1], [True, False, True], [0.0, 1.0, 1.0]):
        compare(compat.calibration_curve(y, p), peer(y, p), 0)
    for y, options in (
        (["a", "b", "b"], {}),
        ([1, 2, 2], {}),
        ([0, 1, 2], {}),
        ([0, 1, 2], {"pos_label": 1}),
        ([0.5, 1, 1], {}),
    ):
        for function in (peer, compat.calibration_curve):
            with pytest.raises(ValueError, match=r"y_true|binary|label"):
                function(y, p, **options)
