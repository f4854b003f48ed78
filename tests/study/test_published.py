"""The published code, point by point."""

from dataclasses import replace

import numpy as np
import pytest

from fastece import ece
from fastece.data.sample import Sample
from fastece.estimators.base import Rows
from fastece.study.candidates import PublishedBinned
from fastece.study.candidates import published as published_contestants
from helpers import study_cases as cases


def sample_of(s, y, low=0.0, high=1.0):
    s = np.asarray(s, float)
    return Sample(s, np.asarray(y, np.uint8), None, low, high, np.arange(s.size)).sorted()


def test_hard_bins_in_the_confidence_setting_are_those_of_the_unit_interval():
    named = {candidate.name: candidate for candidate in published_contestants()}
    sample = sample_of([0.55, 0.58, 0.62, 0.95], [1, 0, 1, 0], 0.5, 1.0)
    drawn = Rows(np.arange(4, dtype=np.int32)[None], sample)
    # [0.5, 0.6), [0.6, 0.7), [0.9, 1]; on [0.5, 1] the first two rows would be apart.
    want = (abs(1 - 0.55 - 0.58) + 0.38 + 0.95) / 4
    assert named["ece_10"].values([drawn])[0] == pytest.approx(want)
    want = (0.45 + 0.58 + 0.38 + 0.95) / 4
    assert named["ece_c_10"].values([drawn])[0] != pytest.approx(want, abs=1e-3)


def test_every_class_has_the_bandwidth_of_the_first():
    rng = np.random.default_rng(0)
    spread = [rng.random(60), 0.5 + 0.1 * rng.random(60)]
    samples = [sample_of(s, rng.random(60) < s) for s in spread]
    rows = np.arange(60, dtype=np.int32)[None]
    named = {candidate.name: candidate for candidate in published_contestants()}
    for order in (samples, samples[::-1]):
        problems = [(m.s.tolist(), m.y.tolist(), 0.0, 1.0) for m in order]
        found = named["ece_kde_silverman"].values([Rows(rows, m) for m in order])[0]
        assert found == pytest.approx(cases.published("ece_kde_silverman", problems), rel=1e-3)
        own = cases.reference_kde.kde_error(problems[1], kernel="triweight")
        first = cases.reference_kde.kde_error(problems[0], kernel="triweight")
        assert abs(found - (first + own) / 2) > 0.01 * found


def test_the_published_kernel_is_a_triweight_and_its_grid_makes_no_difference():
    rng = np.random.default_rng(3)
    s = rng.beta(3, 1, 400)
    y = rng.random(400) < s**2
    for candidate in published_contestants()[-3:]:
        kde = candidate.estimator
        assert kde.kernel == "triweight"
        published = replace(kde, grid_step=6 / 2**14)
        found = ece(y, s, estimator=kde)
        assert found == pytest.approx(ece(y, s, estimator=published), rel=2e-4)


@pytest.mark.parametrize("mapping", ["hard", "convex"])
@pytest.mark.parametrize("n_bins", [1, 3, 10, "sqrt"])
def test_published_bins_are_those_of_plain_loops(mapping, n_bins):
    rng = np.random.default_rng(1)
    s = rng.integers(0, 21, 40) / 20
    sample = sample_of(s, rng.random(40) < s)
    for edges in ("uniform", "quantile"):
        estimator = PublishedBinned(n_bins, edges, mapping)
        plan = estimator.prepare(sample, 25)
        rows = rng.integers(0, 40, (6, 25)).astype(np.int32)
        found = estimator.values(plan, Rows(rows))
        for row, value in zip(rows, found, strict=True):
            drawn = np.sort(row)
            problem = sample.s[drawn].tolist(), sample.y[drawn].tolist(), 0.0, 1.0
            loops = {
                ("uniform", "hard"): cases.unit_bins,
                ("quantile", "hard"): cases.counted_bins,
                ("uniform", "convex"): cases.swapped_uniform,
                ("quantile", "convex"): cases.swapped_counted,
            }[edges, mapping]
            assert value == pytest.approx(loops(problem, n_bins), abs=1e-14)
