"""Grids of densities: cells mirrored at the ends, and points of beta kernels."""

import numpy as np
import pytest

from fastece import KDE
from fastece.data.samples import Sample
from fastece.estimators.density.beta import (
    LEVELS_PER_OCTAVE,
    even_beta_grid,
    fitted_beta_grid,
    log_score,
)
from fastece.estimators.density.even import KINDS, EvenGrid, add_images, fold_taps
from fastece.estimators.density.plan import smooth_sums
from fastece.kernels import density
from helpers.kde_helpers import kde, smooth
from helpers.kernel_forms import PLAIN
from oracles import reference_kde as oracle

RANGES = [(0.0, 1.0), (0.25, 0.9)]
# The least number of cells, an odd and an even one.
COUNTS = [2, 3, 7]


def near(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-12)


def fresh(*shape):
    """An array of nan, which shows where it is not overwritten."""
    return np.full(shape, np.nan)


GRIDS = [
    *((count, width) for count in COUNTS for width in (0.01, 0.3, 2.0, 1000.0)),
    (40, 0.05),
    (24, 3.0),
]


@pytest.mark.parametrize("kernel", KINDS)
def test_cosine_transforms_are_the_direct_sums(kernel):
    for count, width in GRIDS:
        check_transforms(count, width, kernel)


def check_transforms(count, width, kernel):
    # Plain Python takes its time, so there is one lane of it.
    rng = np.random.default_rng(9)
    for low, high in RANGES:
        grid = EvenGrid(KINDS[kernel], low, high, count)
        lanes = 1 if PLAIN else 3
        h = width * (high - low) * rng.uniform(0.5, 1.0, (2, lanes))
        taps = grid.taps(h)
        cells = rng.random((2, 2, grid.n_nodes, lanes))
        assert taps[:, 0] + 2 * taps[:, 1:].sum(1) == near(np.ones((2, lanes)))
        direct = fresh(2, 2, count, lanes)
        density.smooth(cells, taps, direct)
        within_range = cells[:, :, density.GHOSTS : -density.GHOSTS]
        assert grid.transformed(cells, taps) == pytest.approx(direct, rel=1e-12, abs=1e-12)
        assert direct.sum(2) == near(within_range.sum(2))


@pytest.mark.parametrize("count", COUNTS)
def test_ghosts_are_added_to_their_images(count):
    cells = np.random.default_rng(4).random((2, 2, count + 2 * density.GHOSTS, 3))
    expected = np.zeros((2, 2, count, 3))
    for q in range(count + 2 * density.GHOSTS):
        place = (q - density.GHOSTS) % (2 * count)
        expected[:, :, min(place, 2 * count - 1 - place)] += cells[:, :, q]
    add_images(cells)
    assert cells[:, :, density.GHOSTS : -density.GHOSTS] == near(expected)


@pytest.mark.parametrize("count", COUNTS)
def test_folded_taps_are_taps_and_their_images(count):
    for n_taps in (1, 2, 3, 8, 30):
        taps = np.random.default_rng(5).random((2, n_taps, 3))
        plain = np.zeros((2, 2 * count, 3))
        for m in range(n_taps):
            for place in {m, -m}:
                plain[:, place % (2 * count)] += taps[:, m]
        assert fold_taps(taps, count) == near(plain[:, : count + 1])


BANDWIDTHS = [0.02, 0.1, 0.7, 3.0]
SETS = {
    "spread": smooth(300, 1)[1],
    "at the ends": np.array([0.0, 0.2, 0.2 + 1e-14, 0.2 + 1e-9, 0.5, 0.9 - 1e-10, 0.9, 1.0]),
    "in one place": np.full(5, 0.43),
}


def densities_of(kde, s, y, h, low=0.2, high=0.9):
    """Grid and densities (2, G) of all rows with bandwidth h."""
    rows = np.arange(s.size)
    sample = Sample(s, y.astype(np.uint8), None, low, high, rows).sorted()
    plan = kde.prepare(sample, s.size)
    grid = plan.grid_for(h)
    return grid, smooth_sums(grid, plan.sums_in_cells(grid), h)[0, :, :, 0]


@pytest.mark.parametrize("h", [0.003, 0.05, 1.0])
def test_positions_are_the_inverse_of_points(h):
    grid = fitted_beta_grid(0.0, 1.0, h, 1.0)
    u = np.linspace(0.0, np.pi / 4 / h + 8.0, 999)
    for sign in (-1, 1):  # scores are exact near 0, and their distances from 1 near 1
        x = np.exp(log_score(sign * u, h))
        one_minus_x = np.exp(log_score(-sign * u, h))
        assert grid.positions(x, one_minus_x) == pytest.approx(sign * u, abs=2e-4)
    ends = grid.positions(np.array([0.0, 5e-324, 1.0]), np.array([1.0, 1.0, 0.0]))
    assert ends[[0, 2]].tolist() == [-np.inf, np.inf]
    assert -grid.half_of_nodes / 8 + 0.5 < ends[1] < -np.pi / 4 / h


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("h", BANDWIDTHS)
def test_densities_are_those_of_brute_force_up_to_the_ends(h, name):
    s = SETS[name]
    y = np.arange(s.size) % 2
    for fields in ({}, {"norm": np.inf}):
        grid, densities = densities_of(KDE(h, "beta", score_range=(0.2, 0.9), **fields), s, y, h)
        within_range = (grid.x > 1e-12) & (
            grid.one_minus_x > 1e-12
        )  # the score itself is not exact beyond
        f, g = oracle.densities(grid.score[within_range], s, y, None, h, "beta", 0.2, 0.9)
        slack = 5e-4 * f.max()
        assert densities[0, within_range] == pytest.approx(f, abs=slack)
        assert densities[1, within_range] == pytest.approx(g, abs=slack)


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.99])
def test_bandwidths_between_two_tables_are_interpolated(part):
    y, s = smooth(200)
    h = 0.0003 * 2 ** ((160 + part) / LEVELS_PER_OCTAVE)
    grid, densities = densities_of(KDE(kernel="beta"), s, y, h, 0.0, 1.0)
    f, g = oracle.densities(grid.score, s, y, None, h, "beta", 0.0, 1.0)
    # Where the shape of the kernel changes from one formula to the other, it bends.
    for got, exact in zip(densities, (f, g), strict=True):
        assert got == pytest.approx(exact, abs=2e-3 * exact.max())
        assert np.average(np.abs(got - exact), weights=grid.width) < 4e-4 * exact.max()


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_widths_of_points_add_up_to_the_range(h):
    grid = fitted_beta_grid(0.2, 0.9, h, 1.0)
    assert grid.width.sum() == pytest.approx(0.7, rel=1e-6)
    assert (np.diff(grid.x[grid.x < 0.5]) > 0).all()
    even = even_beta_grid(0.2, 0.9, h, 7)
    assert even.score == pytest.approx(np.arange(0.25, 0.9, 0.1))
    assert even.width == pytest.approx(0.1)


def test_a_bandwidth_that_needs_too_many_points_is_refused():
    with pytest.raises(ValueError, match=r"bandwidth: needs a grid of more than .*, got 1e-09"):
        kde([0, 1], [0.2, 0.6], kernel="beta", bandwidth=1e-9)
