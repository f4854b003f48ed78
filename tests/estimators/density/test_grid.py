"""Meshes: cells that are mirrored at the ends, and the two ways to smooth them."""

import numpy as np
import pytest

from fastece.estimators.density_grids import GHOSTS, MOST_TAPS, SHAPES, Mesh
from fastece.kernels import density
from helpers.kernel_forms import PLAIN

RANGES = [(0.0, 1.0), (0.25, 0.9)]
# The least number of cells, an odd and an even one.
COUNTS = [1, 2, 7]


def near(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-12)


def fresh(*shape):
    """An array that is overwritten: what it held is seen if it is not."""
    return np.full(shape, np.nan)


@pytest.mark.parametrize("count", COUNTS)
def test_cells_are_mirrored_at_both_ends_over_and_over(count):
    mesh = Mesh(SHAPES["gaussian"], 0.0, 1.0, count, True)
    ranges = [*range(count), *reversed(range(count))] * 13  # the seventh pair begins at 0
    for reach in (GHOSTS, 3, 6, 11):
        begin = 12 * count - reach
        found = mesh.folded(reach) - GHOSTS
        assert found.tolist() == ranges[begin : begin + count + 2 * reach]


MESHES = [
    *((count, width) for count in COUNTS for width in (0.01, 0.3, 2.0, 1000.0)),
    (40, 0.05),
    (24, 3.0),
]


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize(("count", "width"), MESHES)
def test_cosine_transforms_are_the_direct_sums(count, width, kernel):
    # Of plain Python only as much as takes no time.
    rng = np.random.default_rng(9)
    for low, high in RANGES:
        mesh = Mesh(SHAPES[kernel], low, high, count, True)
        lanes = 1 if PLAIN else 3
        h = width * (high - low) * rng.uniform(0.5, 1.0, (2, lanes))
        taps, cells = mesh.taps(h), rng.random((2, 2, mesh.n_nodes, lanes))
        reach = taps.shape[1] - 1
        assert taps[:, 0] + 2 * taps[:, 1:].sum(1) == near(np.ones((2, lanes)))
        direct = fresh(2, 2, count, lanes)
        density.smooth(cells, taps, mesh.folded(reach), direct)
        inside = cells[:, :, GHOSTS:-GHOSTS]
        assert mesh.transformed(cells, h) == pytest.approx(direct, rel=1e-12, abs=1e-12)
        assert direct.sum(2) == near(inside.sum(2))


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("count", [1, 7, 60])
def test_densities_of_a_mesh_have_mass_1(count, kernel):
    rng = np.random.default_rng(10)
    for low, high in RANGES:
        mesh = Mesh(SHAPES[kernel], low, high, count, True)
        reaches = set()
        for width in (0.02, 0.5, 50.0):
            h = np.full((2, 3), width * (high - low))
            cells, out = rng.random((2, 2, mesh.n_nodes, 3)), fresh(2, 2, count, 3)
            reaches.add(mesh.taps(h).shape[1] - 1 <= MOST_TAPS)
            mesh.densities(cells, h, out)
            assert mesh.step * out[:, 0].sum(1) == near(np.ones((2, 3)))
            assert (out[:, 1] <= out[:, 0]).all()
        assert reaches == ({True} if count == 1 else {True, False})
