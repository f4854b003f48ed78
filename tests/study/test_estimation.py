"""What a study measures: draws, estimates and truth, made again with plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from fastece.study import preset
from fastece.study.candidates import candidates_of
from fastece.study.estimation import run_distribution
from fastece.study.simulated import Distribution
from helpers import study_cases as cases
from helpers.study_cases import FIFTEEN, SINGLE, SIXTEEN, Replay


def close(name):
    """Densities are within 1e-3 of the integral, and 1e-6 for each problem."""
    if "kde" in name:
        return {"rel": 1e-3, "abs": 1e-6}
    return {"rel": 0, "abs": 1e-12, "nan_ok": True}


def corrected(name, problems):
    return cases.corrected(name, problems, points=20)


def quick_corrected(name, problems):
    return cases.corrected(name, problems, points=12)


def published(name, problems):
    return cases.published(name, problems, points=20)


def assert_values(outcome, again, size, draws, value):
    """The paper's fifteen in all settings on some draws of one size."""
    design = again.design
    rows, i = again.rows(size), design.sizes.index(size)
    for s, setting in enumerate(design.settings):
        for j in draws:
            problems = again.problems(rows[j], setting)
            for e, name in enumerate(FIFTEEN):
                want = pytest.approx(value(name, problems), **close(name))
                assert outcome.estimates[s, e, i, j] == want, (setting, name, size, j)


DRAWS = 40  # of the paper's 200: each costs as much as the one before


@pytest.fixture(scope="module")
def paper():
    which = Distribution(2, 2, 0, "naive_bayes", 0)
    design = replace(preset("paper"), draws=DRAWS)
    assert which in design.distributions
    return run_distribution(design, which), Replay(design, which)


def test_a_cell_has_its_shape(paper):
    outcome, again = paper
    names = [candidate.name for candidate in candidates_of(again.design)]
    assert names == [*SIXTEEN, "zero"]
    assert outcome.estimates.shape == (2, 17, 20, DRAWS)
    assert np.isfinite(outcome.estimates).all()
    assert (outcome.estimates[:, -1] == 0).all()
    assert (outcome.estimates[:, :-1] > 0).all()
    assert {"hold-out", "fitting", "prediction", "estimation", "truth"} <= set(outcome.seconds)


def test_some_draws_of_every_size_have_the_value_of_plain_loops(paper):
    for i, size in enumerate(paper[1].design.sizes):
        assert_values(*paper, size, [i, 20 - i, DRAWS - 1 - i], quick_corrected)


SMALL = replace(SINGLE, models=("naive_bayes", "random_forest"), draws=8, smallest=25, largest=45)


@pytest.fixture(scope="module", params=SMALL.models)
def small(request):
    which = Distribution(3, 2, 0, request.param, 0)
    return SMALL, which


def test_scores_with_ties_and_several_classes(small):
    design, which = small
    again = Replay(design, which)
    outcome = run_distribution(design, which)
    if which.model == "random_forest":
        assert len(np.unique(again.prob[:, 0].round(9))) < 102
    for size in design.sizes:
        assert_values(outcome, again, size, range(design.draws), corrected)


def test_a_cell_of_the_published_convention(small):
    design, which = replace(small[0], convention="published"), small[1]
    again = Replay(design, which)
    outcome = run_distribution(design, which)
    names = [candidate.name for candidate in candidates_of(design)]
    assert names == [*FIFTEEN, "zero"]
    assert 25 in design.sizes  # fewer rows than bins
    assert np.isnan(outcome.estimates[:, FIFTEEN.index("ece_a_30"), 0]).all()
    for size in design.sizes:
        assert_values(outcome, again, size, range(design.draws), published)


def test_both_conventions_see_the_same_draws(small):
    design, which = small
    design = replace(design, draws=2, n_sizes=1, estimators=("fastece:Binned",))
    both = [
        run_distribution(replace(design, convention=convention), which)
        for convention in ("corrected", "published")
    ]
    own = len(FIFTEEN)  # the Bayesian curve is of the corrected convention alone
    assert np.array_equal(both[0].estimates[:, own + 1], both[1].estimates[:, own])
    assert not np.array_equal(both[0].estimates[:, :own], both[1].estimates[:, :own])
    assert both[0].truths == both[1].truths


def test_a_part_of_a_design_has_the_values_of_the_whole():
    # Nothing depends on what else is in the design: only sizes that are drawn are the same.
    which = Distribution(3, 2, 0, "naive_bayes", 0)
    whole = run_distribution(SINGLE, which)
    part = replace(
        SINGLE, classes=(2, 3), models=("random_forest", "naive_bayes"), n_sizes=1,
        settings=("classwise",),
    )  # fmt: skip
    found = run_distribution(part, which)
    assert np.array_equal(found.estimates[0, :, 0], whole.estimates[1, :, 0])
    assert found.truths[0] == whole.truths[1]
    # With fewer draws they are the first of them; densities of other draws share their sums.
    found = run_distribution(replace(part, draws=3), which)
    assert np.array_equal(found.estimates[0, :12, 0], whole.estimates[1, :12, 0, :3])
    assert found.estimates[0, :, 0] == pytest.approx(whole.estimates[1, :, 0, :3], rel=1e-11)
