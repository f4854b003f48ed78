"""Draws, estimates and truth of a study equal plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from fastece.study import preset
from fastece.study.candidates import candidates_of
from fastece.study.estimation import run_distribution
from fastece.study.simulated import Distribution
from helpers import study_cases as cases
from helpers.study_cases import FIFTEEN, SINGLE, SIXTEEN, Replay

# Three classes, whose scores have ties where the model is a forest.
SMALL = replace(
    SINGLE, models=("naive_bayes", "random_forest"), draws=3, n_sizes=2, smallest=25, largest=45
)
FOREST = Distribution(3, 2, 0, "random_forest", 0)
BAYES = Distribution(3, 2, 0, "naive_bayes", 0)


def tolerance(name):
    """Densities are within 1e-3 of the integral, and 1e-6 for each problem."""
    if "kde" in name:
        return {"rel": 1e-3, "abs": 1e-6}
    return {"rel": 0, "abs": 1e-12, "nan_ok": True}


def assert_values(estimates, replay, size, draws, *, points=12):
    """The paper's fifteen estimators in all settings, on selected draws of one size."""
    design = replay.design
    value = cases.published if design.convention == "published" else cases.corrected
    rows = replay.rows(size)
    i = design.sizes.index(size)
    for s, setting in enumerate(design.settings):
        for j in draws:
            problems = replay.problems(rows[j], setting)
            for e, name in enumerate(FIFTEEN):
                expected = pytest.approx(value(name, problems, points), **tolerance(name))
                assert estimates[s, e, i, j] == expected, (setting, name, size, j)


@pytest.mark.slow
def test_a_distribution_of_the_paper_equals_plain_loops():
    distribution = Distribution(2, 2, 0, "naive_bayes", 0)
    n_draws = 12  # of the paper's 200: each costs as much as the one before
    design = replace(preset("paper"), draws=n_draws)
    assert distribution in design.distributions
    estimates, _, seconds = run_distribution(design, distribution)
    assert [candidate.name for candidate in candidates_of(design)] == [*SIXTEEN, "zero"]
    assert estimates.shape == (2, 17, 20, n_draws)
    assert np.isfinite(estimates).all()
    assert (estimates[:, -1] == 0).all()
    assert (estimates[:, :-1] > 0).all()
    assert list(seconds) == ["scores", "estimation", "truth"]
    replay = Replay(design, distribution)
    for i, size in enumerate(design.sizes):
        assert_values(estimates, replay, size, [i % n_draws, n_draws - 1 - i % n_draws])


@pytest.mark.slow
@pytest.mark.parametrize("convention", ["corrected", "published"])
def test_scores_with_ties_equal_plain_loops(convention):
    design = replace(SMALL, convention=convention)
    replay = Replay(design, FOREST)
    estimates, _, _ = run_distribution(design, FOREST)
    assert len(np.unique(replay.prob[:, 0].round(9))) < 102
    names = SIXTEEN if convention == "corrected" else FIFTEEN
    assert [candidate.name for candidate in candidates_of(design)] == [*names, "zero"]
    for size in design.sizes:
        assert_values(estimates, replay, size, [0])
    # 25 rows are fewer than 30 bins.
    has_no_value = np.isnan(estimates[:, FIFTEEN.index("ece_a_30"), 0]).all()
    assert has_no_value == (convention == "published")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "convention"), [(FOREST, "corrected"), (BAYES, "published")]
)
def test_all_draws_equal_plain_loops(distribution, convention):
    design = replace(SMALL, convention=convention, draws=5, n_sizes=3)
    estimates, _, _ = run_distribution(design, distribution)
    replay = Replay(design, distribution)
    for size in design.sizes:
        assert_values(estimates, replay, size, range(design.draws), points=20)


def test_both_conventions_see_the_same_draws():
    design = replace(SMALL, draws=2, n_sizes=1, estimators=("fastece:Binned",))
    corrected, truths, _ = run_distribution(design, BAYES)
    published, truths_of_published, _ = run_distribution(
        replace(design, convention="published"), BAYES
    )
    n_paper = len(FIFTEEN)
    # The corrected convention has the Bayesian curve before the user's estimator.
    of_user = corrected[:, n_paper + 1]
    assert np.array_equal(of_user, published[:, n_paper])
    assert not np.array_equal(corrected[:, :n_paper], published[:, :n_paper])
    assert truths == truths_of_published


def test_values_do_not_depend_on_the_other_parts_of_a_design():
    """With fewer draws they are the first ones; densities of other draws share their sums."""
    design = replace(
        SINGLE, classes=(2, 3), models=("random_forest", "naive_bayes"), n_sizes=1,
        settings=("classwise",),
    )  # fmt: skip
    expected, expected_truths, _ = run_distribution(SINGLE, BAYES)
    estimates, truths, _ = run_distribution(design, BAYES)
    assert np.array_equal(estimates[0, :, 0], expected[1, :, 0])
    assert truths[0] == expected_truths[1]
    fewer_draws, _, _ = run_distribution(replace(design, draws=3), BAYES)
    first = fewer_draws[0, :, 0]
    assert np.array_equal(first[:12], expected[1, :12, 0, :3])
    assert first == pytest.approx(expected[1, :, 0, :3], rel=1e-11)
