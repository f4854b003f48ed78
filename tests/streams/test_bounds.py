"""Values of an accumulator that are not exact, and bounds of their errors."""

import numpy as np
import pytest

import fastece
from helpers.strategies import as_lists
from helpers.stream_cases import binary_data, class_data, digits, state_of, weights_of
from oracles.reference_streams import (
    N_CELLS,
    cell_of,
    moved_by_uniform_edges,
    rank_errors,
    shares_of_cells,
)

KINDS = ["spread", "sharp", "bimodal"]
SIZES = [1, 5, 1000]


def number_of_bins(n_bins, n):
    return max(1, int(np.sqrt(n))) if n_bins == "sqrt" else n_bins


@pytest.mark.parametrize(
    ("n_bins", "kind", "weights"),
    [(1, "spread", "random"), (7, "sharp", "none"), (11, "bimodal", "random"),
     (13, "spread", "none"), (22, "sharp", "random"), ("sqrt", "bimodal", "none")],
)  # fmt: skip
def test_other_uniform_bins_move_the_rows_in_the_cells_of_their_edges(n_bins, kind, weights):
    for n in SIZES:
        y, p = binary_data(kind, n, seed=n)
        weight = weights_of(weights, n)
        state = state_of(y, p, weight)
        options = {"n_bins": n_bins, "sample_weight": weight}
        bins = number_of_bins(n_bins, n)
        lists = as_lists(p, weight)
        bound = moved_by_uniform_edges(lists[0], bins, lists[1]) + 1 / N_CELLS
        assert abs(fastece.ece(state, n_bins=n_bins) - fastece.ece(y, p, **options)) <= bound
        # Shares of rows in the cells of the centres change by a cell over a bin at most.
        value = fastece.ece(state, estimator="ece_c", n_bins=n_bins)
        difference = abs(value - fastece.ece(y, p, estimator="ece_c", **options))
        assert difference <= 2 * bins / N_CELLS + 1 / N_CELLS
        count = fastece.reliability_diagram(state, n_bins=n_bins).count
        total = n if weight is None else weight.sum()
        moved = np.abs(count - fastece.reliability_diagram(y, p, **options).count).sum()
        assert moved / total <= bound


def test_bins_of_the_support_move_the_rows_in_the_cells_of_their_edges():
    y, p = class_data(2000, 3, sharp=1.0)
    state = state_of(y, p, n_classes=3)
    for n_bins in (10, 15):
        options = {"n_bins": n_bins, "score_range": "support"}
        top = p.max(1).tolist()
        edges = [1 / 3 + 2 / 3 * j / n_bins for j in range(1, n_bins)]
        shares = shares_of_cells(top)
        # An edge of a bin may equal the edge of a cell up to its last digit. Then the cells on both
        # sides of it may go to the other bin.
        moved = sum(shares[cell_of(e)] + shares[cell_of(e) + 1] for e in edges)
        difference = fastece.ece(state, **options) - fastece.ece(y, p, **options)
        assert abs(difference) <= 2 * moved + 1 / N_CELLS


def quantile_cases():
    for kind, weights in zip(KINDS, ("none", "random", "integers"), strict=True):
        for n in (1, 2, 5, 40, 1500):
            y, p = binary_data(kind, n, seed=n)
            yield y, p, weights_of(weights, n)
    y, p = binary_data("sharp", 2000)
    yield y, p.round(2), None  # ties
    yield y, (1 - (1 - p) ** 4), None  # nearly all at 1
    yield y, np.full(2000, 0.3), None
    yield y, np.where(p > 0.9, 1.0, p), weights_of("random", 2000)
    y, p = digits()
    yield y == p.argmax(1), p.max(1), None
    yield y == 3, p[:, 3], None


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "n_bins"), [("ece_a", 4), ("ece_ac", 15), ("ece_a", 60)])
def test_edges_of_equal_weight_have_nearly_their_rank(estimator, n_bins):
    for y, p, weight in quantile_cases():
        state = state_of(y, p, weight)
        diagram = fastece.reliability_diagram(state, estimator=estimator, n_bins=n_bins)
        edges = diagram.edges.tolist()
        assert (len(edges), edges[0], edges[-1]) == (n_bins + 1, 0.0, 1.0)
        assert np.all(np.diff(edges) >= 0)
        p, weight = as_lists(p, weight)
        shares = shares_of_cells(p, weight)
        for edge, error in zip(edges[1:-1], rank_errors(p, edges, weight), strict=True):
            assert error <= 1e-4 + shares[cell_of(edge)] + 1e-12, edge


@pytest.mark.parametrize(
    ("kind", "bandwidth", "kernel"),
    [("spread", "silverman", "gaussian"), ("sharp", 0.05, "triweight"),
     ("bimodal", "silverman", "triweight"), ("sharp", "silverman", "gaussian")],
)  # fmt: skip
def test_density_based_errors_are_near_the_data_in_memory(kind, bandwidth, kernel):
    for n, weights in ((5, "none"), (200, "random"), (4000, "none"), (4000, "eighths")):
        y, p = binary_data(kind, n, seed=n)
        weight = weights_of(weights, n)
        state = state_of(y, p, weight)
        for norm in (1.0, 2.0):
            options = {"bandwidth": bandwidth, "kernel": kernel, "norm": norm}
            expected = fastece.ece(y, p, estimator="ece_kde", sample_weight=weight, **options)
            seen = fastece.ece(state, estimator="ece_kde", **options)
            assert abs(seen - expected) <= 2e-3 * expected + 1e-6, (n, weights, norm)


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_bandwidths_are_right_where_most_scores_are_at_an_end(end):
    # Silverman's rule ignores quartiles that are equal, but not quartiles within one cell.
    rng = np.random.default_rng(0)
    others = rng.random(1000)
    for scores_at_end in (np.full(4000, end), abs(end - 1e-7 * rng.random(4000))):
        p = np.concatenate([scores_at_end, others])
        y = (rng.random(5000) < 0.1 + 0.7 * p).astype(int)
        expected = fastece.reliability_curve(y, p, estimator="ece_kde").bandwidth
        assert fastece.reliability_curve(
            state_of(y, p), estimator="ece_kde"
        ).bandwidth == pytest.approx(expected, rel=0.01)
