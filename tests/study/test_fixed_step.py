"""The paper's density on a grid of a fixed step."""

import numpy as np
import pytest

import fastece
from fastece.study.candidates import import_estimator
from fastece.study.fixed_step import FixedStepDensity
from helpers.kde_helpers import smooth


@pytest.mark.parametrize("h", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_step_of_the_paper_is_fine_enough_for_wide_kernels(h, weighted):
    y, s = smooth(800)
    w = np.random.default_rng(1).random(800) if weighted else None
    value = fastece.ece(y, s, estimator=FixedStepDensity(h), sample_weight=w)
    fitted = fastece.KDE(h, "triweight")
    assert value == pytest.approx(fastece.ece(y, s, estimator=fitted, sample_weight=w), rel=2e-3)


def test_scores_at_the_ends_stay_in_the_range():
    value = fastece.ece([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], estimator=FixedStepDensity(0.1))
    assert value == pytest.approx(0.1 * 3 * 35 / 128, rel=1e-3)


def test_a_study_takes_it_as_a_candidate():
    candidate = import_estimator("fastece.study.fixed_step:FixedStepDensity")
    y, s = smooth(100)
    value = fastece.ece(y, s, estimator=candidate.estimator)
    assert value == fastece.ece(y, s, estimator=FixedStepDensity())
