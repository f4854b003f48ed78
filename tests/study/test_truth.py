"""The truth of a distribution of scores equals plain loops."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from fastece.data.samples import Sample
from fastece.study.design import Population
from fastece.study.truth import debiased_error, truth_of
from helpers import study_cases as cases


def truth_from_posterior(s, q):
    value, _ = debiased_error(s, q, 200)
    return value


@pytest.mark.parametrize("n", [1000, 1001, 20_000])
def test_calibrated_scores_have_no_error_at_all(n):
    s = np.random.default_rng(0).random(n)
    assert truth_from_posterior(s, s) == 0
    s = s.round(2)
    assert truth_from_posterior(s, s) == 0


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(1, 1000), st.sampled_from([None, 1, 2]), st.integers(0, 1000))
def test_the_debiased_error_equals_plain_loops(n, digits, seed):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    if digits is not None:
        s = s.round(digits)
    q = np.clip(s**1.2 + 0.1 * rng.standard_normal(n), 0, 1)
    expected_value, expected_influence = cases.truth(s.tolist(), q.tolist())
    value, influence = debiased_error(s, q, 200)
    assert value == pytest.approx(expected_value, rel=1e-11, abs=1e-14)
    assert influence == pytest.approx(expected_influence, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1 / 3, 1.0)])
def test_the_truth_from_labels_has_2000_bins(low, high):
    rng = np.random.default_rng(0)
    for digits in (17, 2):
        s = (low + (high - low) * rng.random(150)).round(digits).clip(low, high)
        y = (rng.random(150) < s**1.3).astype(np.uint8)
        expected = reference.error((s.tolist(), y.tolist(), 0.0, 1.0), n_bins=2000, closed="left")
        sample = Sample(s, y, None, low, high, np.arange(150))
        population = Population("binary", [sample], [sample.y * 1.0], 40)
        assert truth_of(population).from_labels == pytest.approx(expected, abs=1e-12)
