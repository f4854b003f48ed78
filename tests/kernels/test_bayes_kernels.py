"""The Bayesian curve's loops, against dense matrices."""

from math import inf, log

import numpy as np
import pytest

from fastece.estimators.bayes.process import arrange_priors
from fastece.kernels import NO_WEIGHTS, bayes
from oracles import reference_bayes as reference

FAMILIES = [(4.0, 4), (12.0, 2), (1.5, 4), (2.0, 2)]
HYPERPARAMETERS = [(tau, *family) for tau in (0.1, 0.5, 1.0, 3.0) for family in FAMILIES]


def cells_of(weight, hits, score):
    return np.array([weight, hits, score], np.float64)


def example(n_cells=7, seed=0, heavy=1.0):
    """Cells, two of them empty, their cut logits, and the distances of these from the mean."""
    rng = np.random.default_rng(seed)
    weight = heavy * rng.integers(0, 9, n_cells).astype(float)
    weight[[1, -2]] = 0.0
    weight[3] = 5.5 * heavy
    score = np.where(weight > 0, np.sort(rng.random(n_cells)), 0.0)
    hits = (weight * rng.random(n_cells)).round(1)
    cells = cells_of(weight, hits, score)
    x, t = (np.array(part) for part in reference.logits(list(zip(*cells, strict=True)), -4.0, 4.0))
    return cells, x, t


def fits_of(fit, find_evidence, cells, x, t):
    """The fits of sixteen hyperparameters, and their log evidence."""
    bands, precision, half = arrange_priors(x.size, HYPERPARAMETERS)
    fits = fit(cells, x, t, bands, precision)
    return fits, find_evidence(cells, bands, precision, half, *fits)


def theta_of(state, b, g):
    """f, b_0 and b_1 of one fit."""
    lines = state.reshape(-1, int(bayes.LINE // bayes.LANES), int(bayes.LANES))
    curve = lines[2:-2, int(bayes.F // bayes.LANES), g]
    return np.append(curve, b.reshape(-1, bayes.LANES)[:2, g])


@pytest.mark.parametrize("weighted", [False, True])
def test_sum_cells_takes_equal_scores_to_the_cell_of_their_mid_rank(weighted):
    rng = np.random.default_rng(1)
    for s in (rng.random(40), rng.random(60).round(1), np.full(5, 0.3), np.array([0.0, 1.0])):
        s = np.sort(s)
        y = (rng.random(s.size) < s).astype(np.uint8)
        w = rng.integers(1, 4, s.size).astype(np.float64) if weighted else NO_WEIGHTS
        rows = list(zip(s.tolist(), y.tolist(), w if weighted else [1.0] * s.size, strict=True))
        for n_cells in (1, 3, 8, 64):
            cells, cell = bayes.sum_cells(s, y, w, 12.5, n_cells)
            expected = reference.cells(rows, n_cells, 12.5)
            assert np.transpose(cells) == pytest.approx(np.array(expected))
            assert sorted(set(cell)) == np.flatnonzero(cells[0]).tolist()
            assert (np.diff(cell) >= 0).all()


@pytest.mark.parametrize("limits", [(0.0, 1.0), (0.25, 1.0), (0.1, 0.4), (0.5, 0.9), (0.6, 0.61)])
def test_fine_cells_increase_with_the_score_and_are_narrow(limits):
    low, high = limits
    s = np.sort(np.concatenate([np.random.default_rng(0).beta(0.1, 0.1, 400), [0, 1e-300, 0.5, 1]]))
    kernel = bayes.find_fine_cells
    fine = np.empty(s.size, np.int32)
    kernel(s, low, high, fine)
    assert (np.diff(fine) >= 0).all()
    assert fine.min() >= 0
    assert fine.max() < bayes.FINE_CELLS
    moved = s.clip(low, high)
    again = np.empty_like(fine)
    kernel(moved, 0.0, 1.0, again)
    assert fine.tolist() == again.tolist()
    distance = np.minimum(moved, 1 - moved)
    pairs = (np.diff(fine) == 0) & (distance[1:] > 1e-15)
    assert (np.diff(moved)[pairs] <= np.maximum(distance[1:], distance[:-1])[pairs] / 100).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_fine_cells_are_joined_to_the_cells_of_sorted_rows(weighted):
    """Where the rows of a fine cell have one score, they are the same cells."""
    rng = np.random.default_rng(3)
    s = rng.random(900).round(2)
    y = (rng.random(900) < s).astype(np.uint8)
    w = rng.random(900) if weighted else NO_WEIGHTS
    order = s.argsort(kind="stable")
    w_in_order = w[order] if weighted else w
    expected, expected_cell = bayes.sum_cells(s[order], y[order], w_in_order, 700.0, 48)
    sums = np.zeros((bayes.FINE_CELLS, 3))
    for part in (slice(0, 1), slice(1, 700), slice(700, None)):
        bayes.sum_fine_cells(s[part], y[part], w[part], 0.0, 1.0, sums)
    cells, cell_of_fine_cell = bayes.join_fine_cells(sums, 700.0, 48)
    assert cells == pytest.approx(expected, rel=1e-12)
    fine = np.empty(900, np.int32)
    bayes.find_fine_cells(s[order], 0.0, 1.0, fine)
    assert cell_of_fine_cell[fine].tolist() == expected_cell.tolist()


def test_logarithms_of_one_plus_x_are_right_to_rounding():
    x = np.concatenate([[0.0, 1e-300, 1e-17, 1.0], np.random.default_rng(2).random(300)])
    out = np.array([bayes.log_one_plus(number) for number in x.tolist()])
    assert out == pytest.approx(np.log1p(x), rel=1e-14, abs=0)


def test_logits_are_cut_and_empty_cells_take_the_logits_of_others():
    cells = cells_of([0, 2, 0, 1, 3], [0, 1, 0, 1, 0], [0, 0, 0, 0.4, 1])
    x, t, low, high, _ = bayes.cut_logits(cells, 5.0, 6.0)
    assert (low, high) == (-5.0, 5.0)  # half of them hit at 0, and none at 1
    assert x == pytest.approx([-5, -5, -5, log(0.4 / 0.6), 5])
    assert t == pytest.approx(x - (2 * x[1] + x[3] + 3 * x[4]) / 6)
    right = cells_of([40, 2, 40], [0, 1, 40], [0, 0.5, 1])
    x, _, *cuts, _ = bayes.cut_logits(right, 5.0, 6.0)
    assert cuts == [-6.0, 6.0]
    assert x.tolist() == [-6.0, 0.0, 6.0]


def test_the_likelihood_of_logits_counts_the_cells_that_are_not_empty():
    cells, x, _ = example()
    rows_of_cells = list(zip(*cells, strict=True))
    filled, _, low, high, value = bayes.cut_logits(cells, 4.0, 4.0)
    assert (low, high) == (-4.0, 4.0)
    assert filled == pytest.approx(x)
    uncut, _ = reference.logits(rows_of_cells, -700.0, 700.0)
    assert value == pytest.approx(reference.log_likelihood(rows_of_cells, uncut))
    never = cells_of([2, 0], [0, 0], [0, 0])
    *_, certain = bayes.cut_logits(never, 4.0, 5.0)
    assert certain == pytest.approx(0.0, abs=1e-300)


def test_fits_equal_the_reference_for_any_rows():
    """Separated rows and heavy cells too, where whole steps of Newton's method go too far."""
    sets = [example(6, seed=5), example(6, seed=6, heavy=1e4)]
    sets += [example(6, seed, heavy) for seed in (0, 1) for heavy in (0.5, 30.0)]
    score = np.linspace(0.01, 0.99, 6)
    heavy_hits = np.where(score < 0.5, 300.0, 0.0)
    for weight, hits in ((np.ones(6), np.zeros(6)), (np.full(6, 300.0), heavy_hits)):
        cells = cells_of(weight, hits, score)
        x, t = (np.array(z) for z in reference.logits(list(zip(*cells, strict=True)), -9.0, 9.0))
        sets.append((cells, x, t))
    for cells, x, t in sets:
        (state, b, *_), log_evidence = fits_of(
            bayes.fit_process, bayes.process_evidence, cells, x, t
        )
        rows_of_cells = list(zip(*cells, strict=True))
        for g in (0, 7, 13):
            prior = reference.prior_precision(6, *HYPERPARAMETERS[g])
            theta, _, evidence = reference.laplace(rows_of_cells, x.tolist(), t.tolist(), prior)
            assert theta_of(state, b, g) == pytest.approx(theta, abs=1e-8)
            assert log_evidence[g] == pytest.approx(evidence, rel=1e-9, abs=1e-5)


def test_draws_equal_the_dense_posterior():
    cells, x, t = example()
    n = x.size
    rng = np.random.default_rng(8)
    fits, _ = fits_of(bayes.fit_process, bayes.process_evidence, cells, x, t)
    share = rng.dirichlet(np.ones(bayes.LANES))
    normals = rng.normal(size=(n + 2, 40))
    rows_of_cells = list(zip(*cells, strict=True))
    fit_of_draw = np.searchsorted(np.cumsum(share), (np.arange(40) + 0.5) / 40)
    logit = bayes.draw_process(x, t, *fits[:2], np.log(share), normals)
    for q in range(0, 40, 3):
        g = fit_of_draw[q]
        prior = reference.prior_precision(n, *HYPERPARAMETERS[g])
        theta, factor, _ = reference.laplace(rows_of_cells, x.tolist(), t.tolist(), prior)
        drawn = np.add(theta, reference.solve_up(factor, normals[:, q].tolist()))
        assert logit[:, q] == pytest.approx(reference.curve(x, t, drawn), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.5, inf])
def test_curve_errors_leave_out_empty_cells(norm):
    cells, *_ = example()
    p = np.random.default_rng(4).random((7, 5))
    rows_of_cells = list(zip(*cells, strict=True))
    expected = [reference.norm_of_gaps(rows_of_cells, p[:, q], norm) for q in range(5)]
    assert bayes.curve_errors(cells, p, 0.0, norm) == pytest.approx(expected)
