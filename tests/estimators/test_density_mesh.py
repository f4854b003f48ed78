"""Grids of densities: cells mirrored at the ends, and points of beta kernels."""

import numpy as np
import pytest

from fastece import KDE, reliability_curve
from fastece.data.samples import Sample
from fastece.estimators.density.beta import (
    LEVELS_PER_OCTAVE,
    even_beta_mesh,
    fitted_beta_mesh,
    log_score,
)
from fastece.estimators.density.mesh import SHAPES, Mesh
from fastece.estimators.density.plan import smooth_sums
from fastece.kernels import density
from helpers.kde_helpers import kde, smooth
from helpers.kernel_forms import PLAIN
from oracles import reference_kde as oracle

RANGES = [(0.0, 1.0), (0.25, 0.9)]
# The least number of cells, an odd and an even one.
COUNTS = [1, 2, 7]


def near(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-12)


def fresh(*shape):
    """An array of nan, which shows where it is not overwritten."""
    return np.full(shape, np.nan)


MESHES = [
    *((count, width) for count in COUNTS for width in (0.01, 0.3, 2.0, 1000.0)),
    (40, 0.05),
    (24, 3.0),
]


@pytest.mark.representative
@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize(("count", "width"), MESHES)
def test_cosine_transforms_are_the_direct_sums(count, width, kernel):
    # Plain Python takes its time, so there is one lane of it.
    rng = np.random.default_rng(9)
    for low, high in RANGES:
        mesh = Mesh(SHAPES[kernel], low, high, count, True)
        lanes = 1 if PLAIN else 3
        h = width * (high - low) * rng.uniform(0.5, 1.0, (2, lanes))
        taps = mesh.taps(h)
        cells = rng.random((2, 2, mesh.n_nodes, lanes))
        assert taps[:, 0] + 2 * taps[:, 1:].sum(1) == near(np.ones((2, lanes)))
        direct = fresh(2, 2, count, lanes)
        density.smooth(cells, taps, direct)
        within_range = cells[:, :, density.GHOSTS : -density.GHOSTS]
        assert mesh.transformed(cells, h) == pytest.approx(direct, rel=1e-12, abs=1e-12)
        assert direct.sum(2) == near(within_range.sum(2))


BANDWIDTHS = [0.02, 0.1, 0.7, 3.0]
SETS = {
    "spread": smooth(300, 1)[1],
    "at the ends": np.array([0.0, 0.2, 0.2 + 1e-14, 0.2 + 1e-9, 0.5, 0.9 - 1e-10, 0.9, 1.0]),
    "in one place": np.full(5, 0.43),
}


def densities_of(kde, s, y, h, low=0.2, high=0.9):
    """Mesh and densities (2, G) of all rows with bandwidth h."""
    rows = np.arange(s.size)
    sample = Sample(s, y.astype(np.uint8), None, low, high, rows).sorted()
    plan = kde.prepare(sample, s.size)
    mesh = plan.mesh_of_bandwidth(h)
    return mesh, smooth_sums(mesh, plan.sums_in_cells(mesh), h).values[0, :, :, 0]


@pytest.mark.parametrize("h", [0.003, 0.05, 1.0])
def test_positions_are_the_inverse_of_points(h):
    mesh = fitted_beta_mesh(0.0, 1.0, h, 1.0)
    u = np.linspace(0.0, np.pi / 4 / h + 8.0, 999)
    for sign in (-1, 1):  # scores are exact near 0, and their distances from 1 near 1
        x = np.exp(log_score(sign * u, h))
        one_minus_x = np.exp(log_score(-sign * u, h))
        assert mesh.positions(x, one_minus_x) == pytest.approx(sign * u, abs=2e-4)
    ends = mesh.positions(np.array([0.0, 5e-324, 1.0]), np.array([1.0, 1.0, 0.0]))
    assert ends[[0, 2]].tolist() == [-np.inf, np.inf]
    assert -mesh.half_of_nodes / 8 + 0.5 < ends[1] < -np.pi / 4 / h


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("h", BANDWIDTHS)
def test_densities_are_those_of_brute_force_up_to_the_ends(h, name):
    s = SETS[name]
    y = np.arange(s.size) % 2
    for fields in ({}, {"grid_step": 0.002}, {"norm": np.inf}):
        mesh, densities = densities_of(KDE(h, "beta", score_range=(0.2, 0.9), **fields), s, y, h)
        within_range = (mesh.x > 1e-12) & (
            mesh.one_minus_x > 1e-12
        )  # the score itself is not exact beyond
        f, g = oracle.densities(mesh.score[within_range], s, y, None, h, "beta", 0.2, 0.9)
        slack = 5e-4 * f.max()
        assert densities[0, within_range] == pytest.approx(f, abs=slack)
        assert densities[1, within_range] == pytest.approx(g, abs=slack)


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.99])
def test_bandwidths_between_two_tables_are_interpolated(part):
    y, s = smooth(200)
    h = 0.0003 * 2 ** ((160 + part) / LEVELS_PER_OCTAVE)
    mesh, densities = densities_of(KDE(kernel="beta"), s, y, h, 0.0, 1.0)
    f, g = oracle.densities(mesh.score, s, y, None, h, "beta", 0.0, 1.0)
    # Where the shape of the kernel changes from one formula to the other, it bends.
    for got, exact in zip(densities, (f, g), strict=True):
        assert got == pytest.approx(exact, abs=2e-3 * exact.max())
        assert np.average(np.abs(got - exact), weights=mesh.width) < 4e-4 * exact.max()


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_widths_of_points_add_up_to_the_range(h):
    mesh = fitted_beta_mesh(0.2, 0.9, h, 1.0)
    assert mesh.width.sum() == pytest.approx(0.7, rel=1e-6)
    assert (np.diff(mesh.x[mesh.x < 0.5]) > 0).all()
    even = even_beta_mesh(0.2, 0.9, h, 7)
    assert even.score == pytest.approx(np.arange(0.25, 0.9, 0.1))
    assert even.width == pytest.approx(0.1)


def test_a_step_is_a_fraction_of_the_range():
    y, s = smooth(60)
    curve = reliability_curve(
        y, s, estimator="ece_kde", kernel="beta", bandwidth=0.1, grid_step=0.01
    )
    assert curve.score.size == 100


def test_a_bandwidth_that_needs_too_many_points_is_refused():
    with pytest.raises(ValueError, match=r"bandwidth: needs a grid of more than .*, got 1e-09"):
        kde([0, 1], [0.2, 0.6], kernel="beta", bandwidth=1e-9)
