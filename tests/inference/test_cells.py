"""Gaps of cells, and what chance does to them, against the definitions."""

import numpy as np
import pytest
import reference

import fastece
from fastece import KDE, Binned
from fastece.data.samples import Sample
from helpers.answer_cases import cells_for, tiny_data
from helpers.samples import BINNED, FIELDS
from helpers.strategies import as_lists, labels_for, weights_for

VALUES = {"norm", "min_count", "bin_weights", "debias"}
# The correction of debiased errors is no gap of a cell.
PLAIN = [name for name, estimator in BINNED.items() if not estimator.debias]


def data(n, seed=0):
    p = np.random.default_rng(seed).random(n).round(2)
    return labels_for(p, seed), p


@pytest.mark.parametrize("weights", ["none", "random", "huge"])
@pytest.mark.parametrize("name", PLAIN)
def test_cells_of_bins_follow_the_definition(name, weights):
    estimator = BINNED[name]
    y, p = data(60)
    w = weights_for(weights, 60)
    cells = cells_for(y, p, estimator, 3, sample_weight=w)
    fields = {f: getattr(estimator, f) for f in FIELDS if f not in VALUES}
    rows = [*as_lists(p, y), 0.0, 1.0]
    weight = None if w is None else (w / w.max()).tolist()
    if not any(s > fields["threshold"] for s in p) if fields["threshold"] is not None else False:
        assert not cells.share.any()
        return
    expected = np.array(reference.gap_noise(rows, weight, **fields)).T
    unit = np.divide(
        cells.max_gap, cells.share, out=np.zeros_like(cells.max_gap), where=cells.share > 0
    )
    counts = unit[0] > 0
    for values, power, defined in (
        (cells.gap, 1, expected[0]),
        (cells.variance, 2, expected[1]),
        (cells.per_row, 1, expected[2]),
    ):
        assert values[0, counts] == pytest.approx(
            (defined * unit[0] ** power)[counts], rel=1e-9, abs=1e-15
        )
    assert cells.share[0] == pytest.approx(expected[3], abs=1e-14)


@pytest.mark.parametrize("name", PLAIN)
def test_the_error_is_the_norm_of_the_gaps(name):
    estimator = BINNED[name]
    for seed in range(5):
        y, p = data(40, seed)
        value = fastece.ece(y, p, estimator=estimator)
        if np.isfinite(value):
            cells = cells_for(y, p, estimator, 3)
            assert cells.error(cells.gap[None])[0] == pytest.approx(value, rel=1e-12)


def test_errors_under_hypotheses_equal_plain_loops():
    rng = np.random.default_rng(0)
    for seed in range(30):
        y, p = tiny_data(rng)
        cells = cells_for(y, p, Binned(n_bins=4, norm=[1, 2, np.inf][seed % 3]), 9)
        gap = rng.normal(size=cells.gap.shape) * cells.deviation
        gap = np.clip(gap, -cells.expected, cells.max_gap - cells.expected)
        v = cells.variance_at(gap)
        base = cells.variance
        law = cells.binomial_laws(gap[None], v[None])
        orders = cells.rare.orders[cells.rare.line]
        noise = np.sqrt(np.divide(v, base, out=np.ones_like(v), where=base > 0))
        rare = {
            cell: reference.binomial_noise(
                gap[cell],
                law.step[0][cell],
                int(law.rows[0][cell]),
                law.chance[0][cell],
                orders[cell],
            )
            for cell in zip(*np.nonzero(law.rows[0]), strict=True)
        }
        expected = reference.replicate_errors(gap, noise, cells.null, rare, cells.norm)
        assert cells.errors(gap[None])[0] == pytest.approx(expected, abs=1e-12)


def test_variance_of_a_gap_is_the_variance_of_flipped_outcomes():
    rng = np.random.default_rng(3)
    for _ in range(30):
        y, p = tiny_data(rng)
        cells = cells_for(y, p, Binned(n_bins=1), 9)
        for t in (-1.0, -0.4, 0.0, 0.3, 1.0):
            q = p + t * (p if t < 0 else 1 - p)
            gap = (q - p).mean()
            want = (q * (1 - q) + (q - p) ** 2 - gap**2).mean() / p.size
            rows = [(s, 1 / p.size) for s in p]
            assert reference.flip_variance(gap, rows, p.size) == pytest.approx(want, abs=1e-12)
            variance = cells.variance_at(np.full_like(cells.gap, gap))
            assert variance[0, 0] == pytest.approx(want, abs=1e-12)


def brought(kde, s):
    """The amount that an outcome 1 of each row adds to each point (n, G)."""
    rows = np.arange(s.size)
    plans = [
        kde.plan(Sample(s, (rows == i).astype(np.uint8), None, 0.0, 1.0, rows), s.size, 1.0)
        for i in rows
    ]
    return np.array([plan.density()[1][0, 1, :, 0] * plan.grid.width for plan in plans])


@pytest.mark.parametrize("kde", [KDE(), KDE(bandwidth=0.3), KDE(kernel="triweight")])
def test_cells_of_a_density_have_the_noise_of_their_rows(kde):
    y, p = data(25, 3)
    cells = cells_for(y, p, kde, 32)
    a = brought(kde, p)
    assert a.sum(1) == pytest.approx(np.full(25, 1 / 25), rel=1e-4)
    none = cells_for(np.zeros(25, int), p, kde, 1)
    assert none.gap[0] == pytest.approx(-p @ a, abs=1e-5)
    assert cells.gap[0] == pytest.approx((y - p) @ a, abs=1e-5)
    assert cells.share[0] == pytest.approx(a.sum(0), abs=1e-5)
    scale = cells.variance.max()
    assert cells.variance[0] == pytest.approx((p * (1 - p)) @ a**2, abs=0.01 * scale)
    row = (a**2).sum(0) / a.sum(0)
    assert cells.per_row[0] == pytest.approx(row, abs=0.01 * row.max())


def test_gap_of_a_density_is_0_if_frequencies_equal_scores():
    # The value itself is not: the density times the score is not the smoothed score.
    p = np.repeat([0.25, 0.5, 0.75], 4)
    y = np.concatenate([np.arange(4) < k for k in (1, 2, 3)])
    cells = cells_for(y, p, KDE(bandwidth=0.2), 3)
    assert cells.error(cells.gap[None])[0] == pytest.approx(0, abs=1e-12)
    assert fastece.ece(y, p, estimator="ece_kde", bandwidth=0.2) > 0.01
