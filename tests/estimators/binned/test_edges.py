"""Layouts: the grid that kernels read, with its edges and the bin of each cell."""

import numpy as np
import pytest
import reference

from fastece.estimators.binned import edges
from fastece.kernels import binning
from helpers.kernel_cases import RANGES, awkward_scores

TIED = np.array([0.1, 0.15, 0.15, 0.3, 0.31, 0.6, 0.8, 0.9])


def cells_of(layout, s):
    """The cell of each score, and its share."""
    cell, share = np.empty(s.size, np.int32), np.ones(s.size)
    binning.place(s, layout.grid, cell, np.empty(s.size), share)
    return cell, share


@pytest.mark.parametrize("limits", RANGES)
@pytest.mark.parametrize("n_bins", [1, 2, 10, 49, edges.MAX_KEPT_BINS + 1])
def test_uniform_edges_are_those_of_the_definition(n_bins, limits):
    expected = reference.uniform_edges(n_bins, *limits)
    for right in (True, False):
        layout = edges.uniform_layout(n_bins, *limits, right, False)
        assert layout.edges.tolist() == expected
        assert layout.cells == n_bins
        assert layout.grid.spacing == binning.EVEN
        assert (layout.grid.low, layout.grid.high, layout.grid.right) == (*limits, right)
    convex = edges.uniform_layout(n_bins, *limits, True, True)
    assert convex.edges.tolist() == expected
    assert convex.grid.knots.tolist() == [c for c, _ in reference.centres(expected)]
    assert convex.grid.spacing == (binning.EVEN if n_bins > 1 else binning.ANY)


def test_small_uniform_layouts_are_kept():
    arguments = (15, 0.0, 1.0, True, False)
    assert edges.uniform_layout(*arguments) is edges.uniform_layout(*arguments)
    arguments = (edges.MAX_KEPT_BINS + 1, 0.0, 1.0, True, False)
    assert edges.uniform_layout(*arguments) is not edges.uniform_layout(*arguments)


def test_bins_as_narrow_as_the_spacing_of_floats_are_searched():
    assert edges.is_even(15, 0.0, 1.0)
    assert edges.is_even(2**24, 0.0, 1.0)
    low, high = 0.3, 0.3 + 9 * np.spacing(0.3)
    assert not edges.is_even(2, low, high)
    assert edges.uniform_layout(2, low, high, True, False).grid.spacing == binning.ANY


@pytest.mark.parametrize("right", [True, False])
def test_scores_beyond_the_range_stay_with_its_end(right):
    # Cuts that are an end of the range, as those of scores that were moved there.
    ends = np.array([0.3, 0.3, 0.5, 0.6, 0.6])
    layout = edges.hard_layout(ends, ends[1:-1], right)
    s = np.array([0.0, 0.3, 0.4, 0.6, 1.0])
    cell, _ = cells_of(layout, s)
    assert cell[0] == cell[1]
    assert cell[-1] == cell[-2]
    closed = "right" if right else "left"
    assert cell.tolist() == [reference.which_bin(x, layout.edges.tolist(), closed) for x in s]


@pytest.mark.parametrize("bin_edges", [TIED, np.array([0.5, 0.5, 0.5]), np.array([0.0, 1.0])])
def test_a_centre_of_several_bins_belongs_to_the_first(bin_edges):
    layout = edges.convex_layout(bin_edges)
    found = reference.centres(bin_edges.tolist())
    assert layout.grid.knots.tolist() == [c for c, _ in found]
    assert layout.bins.tolist() == [b for _, b in found]
    assert layout.cells == len(found)
    s = awkward_scores(bin_edges)
    cell, share = cells_of(layout, s)
    for x, j, a in zip(s, cell, share, strict=True):
        values = np.zeros(layout.cells + 1)
        values[j : j + 2] += a, 1 - a
        expected = np.zeros(bin_edges.size - 1)
        for b, part in reference.convex_shares(x, found):
            expected[b] = part
        assert values[-1] == 0  # nothing beyond the last centre
        assert layout.spread(values[:-1]) == pytest.approx(expected, abs=1e-15)


def test_values_of_cells_are_spread_to_their_bins():
    layout = edges.convex_layout(TIED)
    cells = np.arange(2.0 * layout.cells).reshape(2, layout.cells)
    spread = layout.spread(cells)
    assert spread.shape == (2, TIED.size - 1)
    assert spread[:, layout.bins].tolist() == cells.tolist()
    assert spread.sum() == cells.sum()
    hard = edges.hard_layout(TIED, TIED[1:-1], True)
    assert hard.spread(cells) is cells


def test_the_float_grid_has_a_score_of_each_cell():
    layout = edges.float_layout(0.1, 0.9)
    scores = edges.float_scores()
    assert layout.cells == scores.size == binning.FLOAT_CELLS
    assert layout.edges.tolist() == [*scores, 1.0]
    half = scores.size // 2
    below, above = scores[:half], scores[half:]
    used = np.concatenate([below[below < 0.5], above[above >= 0.5]])  # the others never get a score
    assert (np.diff(used) >= 0).all()
    assert 0 < used[0] < 1e-16
    assert used[-1] == 1
    assert (layout.grid.low, layout.grid.high, layout.grid.spacing) == (0.1, 0.9, binning.FLOAT)
