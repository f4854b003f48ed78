"""Sums over bins for 32 replicates, and of drawn rows, against loops over the rows."""

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from math import fsum, inf

import numpy as np
import pytest
import reference
import strategies as cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_forms import PLAIN, forms
from samples import BINNED, R, draws, repeated, runs_of, sample_of

from fastece import Binned
from fastece.binned.edges import uniform_layout
from fastece.binned.replicates import (
    TILE,
    cells_of,
    order_rows,
    place_rows,
    shared_terms,
    tile_rows,
)
from fastece.kernels import replicates as blocks
from fastece.kernels import subsets

VARIANTS = {
    **BINNED,
    "norm 2, quantiles, convex": Binned(n_bins=6, edges="quantile", mapping="convex", norm=2),
    "mce, quantiles, convex": Binned(n_bins=6, edges="quantile", mapping="convex", norm=inf),
    "one quantile, convex": Binned(n_bins=1, edges="quantile", mapping="convex"),
    "range, quantiles, convex": Binned(
        n_bins=4, edges="quantile", mapping="convex", score_range=(0.25, 0.6), threshold=0.1
    ),
    "threshold on a score": Binned(n_bins=5, threshold=0.3, edges="quantile", norm=2),
}


def near(value):
    return pytest.approx(value, abs=1e-12, nan_ok=True)


def counts(n, seed=0, rate=1.0, replicates=R):
    """Multiplicities (n, 32), a column without any, and one of the last row alone."""
    c = np.random.default_rng(seed).poisson(rate, (n, replicates)).astype(np.uint8)
    c[:, 5] = c[:, 6] = 0
    c[-1, 6] = 7
    return c


def score_sets():
    """name -> scores in increasing order, with ties of every kind."""
    rng = np.random.default_rng(0)
    return {
        "one": np.array([0.4]),
        "two": np.array([0.2, 0.7]),
        "zeros": np.sort(np.where(rng.random(40) < 0.8, 0.0, rng.random(40))),
        "hundredths": np.sort(rng.random(70).round(2)),
        "constant": np.full(9, 0.3),
        "spread": np.sort(rng.random(50)),
        "not a multiple of 16": np.sort(rng.random(blocks.FEW_ROWS + 1)).round(2),
        "many": np.sort(rng.random(blocks.FEW_ROWS + 21)),
        "many, ends of groups": np.sort(rng.random(blocks.FEW_ROWS + 32).round(1)),
    }


SETS = score_sets()
WEIGHTS = ["none", "integers", "random", "dynamic"]


def weights_of(kind, n, seed=1):
    """None, or n positive weights; integers, so that bins hold exactly their share."""
    rng = np.random.default_rng(seed)
    if kind == "none":
        return None
    if kind == "integers":
        return rng.integers(1, 4, n).astype(np.float64)
    return rng.random(n) + 0.01 if kind == "random" else 10 ** rng.uniform(-8, 8, n)


def weights_drawn(c, v, r):
    """Weight of each row in one replicate."""
    return (c[:, r] * (np.ones(len(c)) if v is None else v)).tolist()


# -- sums over rows --------------------------------------------------------------------------------


def test_rows_are_added_one_after_the_other():
    # In this order and with no other rounding: the same bits.
    rng = np.random.default_rng(1)
    c = counts(40)
    order = rng.permutation(40).astype(np.int32)
    x, y = rng.normal(size=(2, 60)) * 10 ** rng.uniform(-3, 3, (2, 60))
    s, ends, start = rng.random(40), rng.random((2, R)), rng.random((2, R))
    for first, last in ((0, 0), (0, 1), (2, 5), (1, 5), (0, 40), (7, 33), (3, 21)):
        expected = start.copy()
        for i in range(first, last):
            expected[0] += x[i] * c[order[i]]
            expected[1] += y[i] * c[order[i]]
        for kernel in forms(blocks.add_rows):
            sums = start[0].copy()
            kernel(c, order, x, first, last, sums)
            assert sums.tolist() == expected[0].tolist()
        for kernel in forms(blocks.add_twice):
            sums, others = start.copy()
            kernel(c, order, x, y, first, last, sums, others)
            assert [sums.tolist(), others.tolist()] == expected.tolist()
        shares = np.concatenate([start, ends[:1]])
        expected = shares.copy()
        for i in range(first, last):
            amount = x[i] * c[i]
            expected += [amount, amount * (ends[1] - s[i]), amount * (s[i] - ends[0])]
        for kernel in forms(blocks.add_shares):
            sums = shares.copy()
            kernel(c, x, s, first, last, ends, sums)
            assert sums.tolist() == expected.tolist()


def test_sums_are_set_and_added():
    for kernel in forms(blocks.zero):
        sums = np.full(5, np.nan)
        kernel(sums)
        assert sums.tolist() == [0.0] * 5
    for kernel in forms(blocks.add):
        sums = np.arange(3.0)
        kernel(np.array([1.0, 0.5, -2.0]), sums)
        assert sums.tolist() == [1.0, 1.5, 0.0]


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("step", [0, 1])
def test_tiles_are_added_run_by_run(convex, step):
    rng = np.random.default_rng(2)
    n, cells, moments = 50, np.array([0, 2, 1, 2, 0], np.int32), 2
    starts = np.array([0, 3, 10, 10, 31, 50], np.int32)
    order = rng.permutation(n).astype(np.int32)
    terms = rng.normal(size=(moments * (2 if convex else 1), n))
    c = np.array([counts(n, 0), counts(n, 1), counts(n, 2, 30.0)])
    expected = np.zeros((moments, 4, 3 * R))
    for g in range(3):
        for j, cell in enumerate(cells):
            part = np.zeros((len(terms), R))
            for i in range(starts[j], starts[j + 1]):
                part += terms[:, i, None] * c[g, order[i]]
            # the upper cell first, which only matters where they are the same
            if convex:
                expected[:, cell + step, g * R : (g + 1) * R] += part[moments:]
            expected[:, cell, g * R : (g + 1) * R] += part[:moments]
    for kernel in forms(blocks.tile_sums):
        out = np.full(expected.shape, np.nan)
        kernel(terms, order, starts, cells, step, c, out)
        assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 150])
def test_rows_are_brought_into_tiles_and_runs(n, tile):
    lower = np.random.default_rng(n).integers(0, 9, n).astype(np.int32)
    expected = sorted(range(n), key=lambda i: (i // tile, lower[i], i))
    kinds = [(i // tile, lower[i]) for i in expected]
    first = [i for i in range(n) if i == 0 or kinds[i] != kinds[i - 1]]
    for kernel in forms(blocks.arrange_tiles):
        order, starts, runs = (np.full(n + k, -1, np.int32) for k in (0, 1, 0))
        count = kernel(lower, 9, tile, order, starts, runs)
        assert order.tolist() == expected
        assert starts[: count + 1].tolist() == [*first, n]
        assert runs[:count].tolist() == [kinds[i][1] for i in first]


@pytest.mark.parametrize("n_bins", [1, 2, 15, 100])
@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("n", [1, 2, 50, TILE, TILE + 1, 2 * TILE + 3])
def test_each_row_is_in_one_tile_with_the_others_of_its_cell(n, convex, n_bins):
    rng = np.random.default_rng(n)
    s = rng.random(n).round(2)
    sample = sample_of(s, rng.random(n) < s, rng.random(n))
    sample = sample.where(rng.permutation(n))
    layout = uniform_layout(n_bins, 0.0, 1.0, True, convex)
    tiles, placed = (f(sample, layout, 0.1, 2) for f in (tile_rows, place_rows))
    assert sorted(tiles.order) == list(range(n))
    assert (tiles.order // TILE == np.arange(n) // TILE).all()
    assert (tiles.starts[0], tiles.starts[-1]) == (0, n)
    assert (np.diff(tiles.starts) > 0).all()
    exists = sample.s > 0.1
    assert placed.records.shape == (n, 5 if convex else 3)
    lower, *parts = placed.records.T
    terms = np.array(parts[:2]) + (np.array(parts[2:]) if convex else 0.0)
    assert terms[0] == pytest.approx(np.where(exists, sample.v * (sample.y - sample.s), 0))
    assert terms[1] == pytest.approx(np.where(exists, sample.v, 0))
    for (first, last), cell in zip(pairwise(tiles.starts), tiles.cells, strict=True):
        rows = tiles.order[first:last]
        assert (lower[rows] == cell).all()
        assert len(set(rows // TILE)) == 1
    if convex:
        found = reference.centres(layout.edges.tolist())
        for i in np.flatnonzero(exists)[:200]:
            for b, part in reference.convex_shares(sample.s[i], found):
                got = {int(lower[i]) + k: parts[1 + 2 * k][i] for k in range(2)}
                assert got.get(b, 0) == pytest.approx(part * sample.v[i], abs=1e-13)
    assert tiles.terms.tolist() == np.array(parts)[:, tiles.order].tolist()


# -- cumulative weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("group", blocks.GROUPS)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 40, 130])
def test_weights_before_each_group_are_kept(n, group):
    c, order = counts(n, n, 20.0), np.arange(n, dtype=np.int32)
    groups = -(-n // group)
    power = 2 ** groups.bit_length()
    for kernel in forms(blocks.power_of_two):
        assert kernel(groups) == power > groups >= power // 2
    for kind in WEIGHTS:
        v = weights_of(kind, n)
        for kernel in forms(blocks.weights_below):
            below = np.full((power, R), np.nan)
            kernel(c, order, v, group, below)
            for r in range(R):
                w = weights_drawn(c, v, r)
                expected = [fsum(w[: group * q]) for q in range(groups + 1)]
                slack = 0 if kind in ("none", "integers") else 1e-15 + 1e-16 * group
                assert below[: groups + 1, r] == pytest.approx(expected, rel=slack, abs=0)
                assert (below[groups + 1 :, r] == inf).all()
        for i in {0, n // 2, n - 1, n}:
            for kernel in forms(blocks.weight_before):
                for r in (0, 6, 31):
                    expected = fsum(weights_drawn(c, v, r)[:i])
                    got = kernel(c, v, group, below, i, r)
                    assert got == pytest.approx(expected, rel=1e-14, abs=0)
        for kernel in forms(blocks.weight_of):
            assert kernel(c, v, n - 1, 3) == weights_drawn(c, v, 3)[-1]
    for kernel in forms(blocks.counts_below):
        below = np.zeros((groups + 1, R))
        kernel(np.full((n, R), 255, np.uint8), group, below)
        assert below[:, 7].tolist() == [255 * min(group * q, n) for q in range(groups + 1)]


def test_what_is_rounded_off_is_kept():
    n = 3000
    v = np.concatenate([[1.0], np.full(n - 1, 1e-16)])
    c = np.ones((n, R), np.uint8)
    for group in blocks.GROUPS:
        for kernel in forms(blocks.weights_below)[: None if group > 1 else 1]:
            below = np.empty((2 ** (-(-n // group)).bit_length(), R))
            kernel(c, np.arange(n, dtype=np.int32), v, group, below)
            # of the rows of one group, nothing is kept: 15 or 63 of 2999 small ones
            slack = 0 if group == 1 else 1e-15 + 1e-16 * group
            assert below[-(-n // group), 0] == pytest.approx(fsum(v), rel=slack, abs=0)


def below_of(c, v, group):
    """`weights_below` as the kernel gives them."""
    below = np.empty((2 ** (-(-len(c) // group)).bit_length(), R))
    blocks.weights_below(c, np.arange(len(c), dtype=np.int32), v, group, below)
    return below


@pytest.mark.parametrize("group", blocks.GROUPS)
@pytest.mark.parametrize("n", [1, 2, 16, 17, 33, 64, 100, 150])
def test_the_row_that_reaches_a_weight_is_the_first(n, group):
    for kind in ("none", "integers"):
        for seed, rate in enumerate((0.3, 1.0, 5.0)):
            c, v = counts(n, seed, rate), weights_of(kind, n)
            below = below_of(c, v, group)
            total = below[-(-n // group)]
            for part in (1e-6, 0.25, 0.5, 0.999, 1.0):
                target = part * total
                for kernel in forms(blocks.rows_reaching):
                    row, weight = np.full(R, -1), np.full(R, np.nan)
                    kernel(c, v, group, below, target, row, weight)
                    for r in range(R):
                        cumulated = list(accumulate(weights_drawn(c, v, r)))
                        i = bisect_left(cumulated, target[r])
                        assert (row[r], weight[r]) == (i, cumulated[i])


# -- cuts ------------------------------------------------------------------------------------------


def expected_cuts(u, w, n_bins, low, high, right):
    """Edges, and the rows at which bins begin, of one replicate."""
    closed = "right" if right else "left"
    edges = reference.quantile_edges(u, w, n_bins, low, high, None)
    cuts = reference.quantile_edges(u, w, n_bins, low, high, closed)
    find = bisect_right if right else bisect_left
    # A score outside the range is at its nearest end, and that in the bin it is closed to.
    return edges, [find(u, e) for e in cuts[1:-1]]


def cuts_with(kernel, c, v, u, n_bins, right, low, high, group):
    run, first = runs_of(u)
    edges, cuts = np.full((n_bins + 1, R), np.nan), np.full((n_bins + 1, R), -1, np.int32)
    edges[0], edges[-1] = low, high
    kernel(c, v, u, run, first, group, below_of(c, v, group), right, edges, cuts)
    return edges, cuts


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_cuts_are_where_the_definition_says(name, right):
    u = SETS[name]
    n = len(u)
    group = blocks.GROUPS[n > blocks.FEW_ROWS]
    for kind in ("none", "integers", "random"):
        c, v = counts(n, 3), weights_of(kind, n)
        for n_bins in (1, 2, 5, 10) if n < 100 else (7,):
            for kernel in forms(blocks.cuts_of)[: None if n < 100 else 1]:
                edges, cuts = cuts_with(kernel, c, v, u, n_bins, right, 0.0, 1.0, group)
                assert (cuts[0] == 0).all()
                assert (cuts[-1] == n).all()
                for r in range(R) if n < 100 else (0, 1, 6, 31):
                    w = weights_drawn(c, v, r)
                    if not any(w):
                        assert (np.diff(cuts[:, r]) >= 0).all()
                        continue
                    cut_edges, rows = expected_cuts(u.tolist(), w, n_bins, 0.0, 1.0, right)
                    assert edges[:, r].tolist() == cut_edges
                    drawn = np.cumsum(c[:, r] > 0)
                    passed = np.append(0, drawn)  # rows that are not drawn may be on either side
                    assert passed[cuts[1:-1, r]].tolist() == passed[rows].tolist()


def test_a_row_that_is_not_drawn_does_not_move_an_edge():
    u = np.array([0.1, 0.3, 0.6, 0.8])
    c = np.zeros((4, R), np.uint8)
    c[[0, 3]] = 1
    c[1, 1] = 1
    for right in (True, False):
        for kernel in forms(blocks.cuts_of):
            edges, cuts = cuts_with(kernel, c, None, u, 2, right, 0.0, 1.0, 1)
            assert edges[1, 0] == (0.1 + 0.8) / 2
            assert cuts[1, 0] == 1
            assert edges[1, 1] == 0.3
            assert cuts[1, 1] == (2 if right else 1)


def random_cuts(n, n_bins, seed=0):
    """(B + 1, 32) rows at which bins begin, some of them empty."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, n + 1, (n_bins + 1, R)), axis=0)
    cuts[0], cuts[-1] = 0, n
    return cuts.astype(np.int32)


def test_cuts_are_chained_at_their_rows():
    cuts = random_cuts(9, 5)[1:]
    for kernel in forms(blocks.chain):
        head, following = np.full(10, -1, np.int32), np.full(5 * R, -9, np.int32)
        kernel(cuts, head, following)
        seen = []
        for row, first in enumerate(head):
            e, last = int(first), 5 * R
            while e >= 0:
                assert cuts.ravel()[e] == row
                assert e < last  # the last cut of a replicate comes first
                seen.append(e)
                last, e = e, int(following[e])
        assert sorted(seen) == list(range(5 * R))


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("n_bins", [1, 2, 9])
def test_sums_between_cuts_are_of_their_rows(n, n_bins):
    rng = np.random.default_rng(n)
    cuts, c, terms = random_cuts(n, n_bins), counts(n), rng.normal(size=(2, n))
    expected = np.zeros((2, n_bins, R))
    for r in range(R):
        for b in range(n_bins):
            for i in range(cuts[b, r], cuts[b + 1, r]):
                expected[:, b, r] += terms[:, i] * c[i, r]
    for kernel in forms(blocks.cut_sums):
        out = np.full((2, n_bins, 3 * R), np.nan)
        head, following = np.full(n + 1, -1, np.int32), np.empty(n_bins * R, np.int32)
        kernel(c, np.arange(n, dtype=np.int32), terms, cuts, head, following, R, out)
        assert out[..., R : 2 * R].tolist() == expected.tolist()  # the same bits
        assert np.isnan(out[..., :R]).all()
        assert np.isnan(out[..., 2 * R :]).all()
        assert (head == -1).all()


def padded_bits(s):
    """Scores as integers, and infinite ones up to a power of two."""
    padded = np.full(2 ** len(s).bit_length(), inf)
    padded[: len(s)] = s
    return padded.view(np.int64)


@pytest.mark.parametrize("name", SETS)
def test_scores_below_a_value_are_counted(name):
    s = SETS[name]
    values = np.resize(np.concatenate([s, s - 1e-3, s + 1e-3, [0.0, 1.0]]).clip(0, 1), (20, R))
    for kernel in forms(blocks.scores_below):
        for value in values:
            count = np.full(R, -1)
            kernel(padded_bits(s), value, count)
            assert count.tolist() == [bisect_left(s.tolist(), x) for x in value]


def some_edges(n_bins, low, high, seed=0):
    """(B + 1, 32) edges in increasing order, with ties."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.random((n_bins + 1, R)).round(1), axis=0).clip(low, high)
    edges[:, 3] = edges[:, 4] = low  # a single centre, and one besides
    edges[0], edges[-1] = low, high
    return edges


def centres_with(kernel, s, edges):
    n_bins = len(edges) - 1
    centre = np.full((n_bins, R), np.nan)
    place, bins = np.full((2, n_bins, R), -1, np.int32)
    count = np.full(R, -1, np.int32)
    kernel(padded_bits(s), len(s), edges, centre, place, bins, count)
    return centre, place, bins, count


@pytest.mark.parametrize("name", ["one", "zeros", "hundredths", "constant", "spread"])
@pytest.mark.parametrize("n_bins", [1, 2, 8])
def test_distinct_centres_are_found_with_their_bins_and_rows(name, n_bins):
    s, edges = SETS[name], some_edges(n_bins, 0.1, 0.7)
    for kernel in forms(blocks.centres_of):
        centre, place, bins, count = centres_with(kernel, s, edges)
        for r in range(R):
            found = reference.centres(edges[:, r].tolist())
            assert count[r] == len(found)
            assert centre[: count[r], r].tolist() == [c for c, _ in found]
            assert bins[: count[r], r].tolist() == [b for _, b in found]
            expected = [bisect_left(s.tolist(), c) for c, _ in found]
            assert place[:, r].tolist() == expected + [len(s)] * (n_bins - len(found))
    for kernel in forms(subsets.distinct_centres):
        for r in range(R):
            centres, bins = np.empty(n_bins), np.empty(n_bins, np.int32)
            found = reference.centres(edges[:, r].tolist())
            k = kernel(np.ascontiguousarray(edges[:, r]), centres, bins)
            assert list(zip(centres[:k], bins[:k], strict=True)) == found


@pytest.mark.parametrize("name", ["one", "zeros", "hundredths", "constant", "spread"])
@pytest.mark.parametrize("n_bins", [1, 2, 8])
def test_rows_are_shared_by_the_centres_around_them(name, n_bins):
    s, edges = SETS[name], some_edges(n_bins, 0.1, 0.7)
    n, rng = len(s), np.random.default_rng(5)
    c, terms = counts(n, 8), rng.normal(size=(2, n))
    expected = np.zeros((2, n_bins, R))
    for r in range(R):
        found = reference.centres(edges[:, r].tolist())
        for i in range(n):
            for b, a in reference.convex_shares(s[i], found):
                expected[:, b, r] += a * terms[:, i] * c[i, r]
    centres = centres_with(blocks.centres_of, s, edges)
    for kernel in forms(blocks.cut_shares):
        out = np.full((2, n_bins, 2 * R), np.nan)
        head, following = np.full(n + 1, -1, np.int32), np.empty(n_bins * R, np.int32)
        kernel(c, s, terms, *centres, head, following, R, out)
        assert out[..., R:] == pytest.approx(expected, abs=1e-13)
        assert np.isnan(out[..., :R]).all()
        assert (head == -1).all()


def expected_sums(sample, w, fields):
    """W, and sums (2, B) of w (y - s) and w over the bins of the definition."""
    rows = sample.s.tolist(), sample.y.tolist(), sample.low, sample.high
    found = reference.cells(rows, w, **fields)[1]
    return fsum(cell[0] for cell in found), [[d for _, d, _, _ in found], [x for x, *_ in found]]


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_are_those_of_each_replicate(name, right, convex):
    s, rng = SETS[name], np.random.default_rng(6)
    n = len(s)
    for kind in WEIGHTS if n < 100 else WEIGHTS[:2]:
        sample = sample_of(s, rng.random(n) < s, weights_of(kind, n))
        v = np.ones(n) if sample.v is None else sample.v
        c = np.array([counts(n, 1), counts(n, 2, 0.3)])
        for n_bins, low, high, threshold in (
            (4, 0.0, 1.0, -inf), (1, 0.0, 1.0, -inf), (9, 0.25, 0.6, 0.2), (2, 0.0, 1.0, 0.3),
            (3, 0.0, 1.0, 1.0),
        ):  # fmt: skip
            fields = {
                "n_bins": n_bins, "edges": "quantile", "score_range": (low, high),
                "mapping": "convex" if convex else "hard", "threshold": threshold,
                "closed": "right" if right else "left",
            }  # fmt: skip
            rows = order_rows(sample, low, high, threshold, 2)
            assert rows.skip == np.count_nonzero(s <= threshold)
            for kernel in forms(blocks.equal_mass_sums)[: None if n < 60 else 1]:
                total, out = np.full(2 * R, np.nan), np.full((2, n_bins, 2 * R), np.nan)
                kernel(*rows, right, convex, c, total, out)
                for at in range(2 * R) if n < 60 else (0, 5, 6, 40):
                    w = (c[at // R, :, at % R] * v).tolist()
                    weight, sums = expected_sums(sample, w, fields)
                    slack = 1e-12 * max(1.0, v.max())
                    assert total[at] == pytest.approx(weight, rel=1e-14)
                    assert out[..., at] == pytest.approx(np.array(sums), abs=slack)


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("name", SETS)
def test_bins_of_equal_weight_are_those_of_the_drawn_rows(name, right, convex):
    s, rng = SETS[name], np.random.default_rng(7)
    n = len(s)
    for kind in WEIGHTS:
        sample = sample_of(s, rng.random(n) < s, weights_of(kind, n))
        v = np.ones(n) if sample.v is None else sample.v
        for size in (1, 2, 13, 2 * n if n < 100 else 40):
            rows = np.sort(rng.integers(0, n, (3, size)), axis=1).astype(np.int32)
            ranges = ((4, 0, 1, -inf), (9, 0.25, 0.6, 0.2), (3, 0, 1, 1))
            for n_bins, low, high, threshold in ranges:
                fields = {
                    "n_bins": n_bins, "edges": "quantile", "score_range": (low, high),
                    "mapping": "convex" if convex else "hard", "threshold": threshold,
                    "closed": "right" if right else "left",
                }  # fmt: skip
                for kernel in forms(subsets.drawn_equal_mass_sums):
                    total, out = np.full(3, np.nan), np.full((2, n_bins, 3), np.nan)
                    kernel(
                        sample.s, sample.y, sample.v, threshold, float(low), float(high), right,
                        convex, rows, total, out,
                    )  # fmt: skip
                    for r in range(3):
                        w = (np.bincount(rows[r], minlength=n) * v).tolist()
                        weight, sums = expected_sums(sample, w, fields)
                        slack = 1e-12 * max(1.0, v.max())
                        assert total[r] == pytest.approx(weight, rel=1e-14)
                        assert out[..., r] == pytest.approx(np.array(sums), abs=slack)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_scores_in_order_pass_knots_in_order(name, right):
    s = SETS[name]
    find = bisect_left if right else bisect_right
    for knots in ([], [0.0], [0.3, 0.3, 0.5], sorted(s.tolist()[:5]), [0.2, inf, inf]):
        for kernel in forms(subsets.cells_in_order):
            cell = np.full(len(s), -1, np.int32)
            kernel(s, np.array(knots, float), right, cell)
            assert cell.tolist() == [find(knots, x) for x in s]


def test_drawn_rows_are_copied_that_exist():
    s, v = np.array([0.1, 0.2, 0.2, 0.7]), np.array([4.0, 3.0, 2.0, 1.0])
    y = np.array([1, 0, 1, 0], np.uint8)
    rows = np.array([0, 0, 2, 3], np.int32)
    for kernel in forms(subsets.drawn_rows):
        for threshold, skip in ((-inf, 0), (0.1, 2), (0.2, 3), (1.0, 4)):
            for weight in (None, v):
                found = np.full((2, 4), np.nan)
                hit = np.full(4, 9, np.uint8)
                count = kernel(s, y, weight, threshold, rows, found[0], hit, found[1])
                assert count == 4 - skip
                assert found[0, :count].tolist() == s[rows[skip:]].tolist()
                assert hit[:count].tolist() == y[rows[skip:]].tolist()
                if weight is not None:
                    assert found[1, :count].tolist() == v[rows[skip:]].tolist()


def test_the_lower_one_of_the_centres_around_a_score():
    for kernel in forms(subsets.lower_cells):
        for last, lower in ((0, [0, 0, 0, 0]), (1, [0, 0, 1, 1]), (2, [0, 0, 1, 2])):
            cell = np.array([0, 1, 2, 3], np.int32)
            kernel(cell, last)
            assert cell.tolist() == lower


@pytest.mark.parametrize("fields", [{}, {"mapping": "convex"}, {"threshold": 0.3}, {"norm": 2}])
def test_records_have_the_cell_and_the_terms_of_each_row(fields):
    rng = np.random.default_rng(9)
    for n in (1, 12, subsets.BLOCK + 5):
        s = np.sort(rng.random(n))
        for v in (None, rng.random(n)):
            binned = Binned(n_bins=5, **fields)
            plan = binned.prepare(sample_of(s, rng.random(n) < s, v), n)
            sample, (layout, threshold, moments) = plan.sample, plan._uniform
            cell, share = cells_of(sample, layout)
            terms = shared_terms(sample, layout, share, threshold, moments)
            for kernel in forms(subsets.fill_records)[: None if n < 60 else 1]:
                records = np.full((n, 1 + len(terms)), np.nan)
                kernel(sample.s, sample.y, sample.v, *layout.grid, threshold, records)
                assert records[:, 0].tolist() == cell.tolist()
                assert records[:, 1:].T.tolist() == terms.tolist()


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("cells", [1, 4])
def test_drawn_rows_are_added_one_after_the_other(convex, cells):
    rng = np.random.default_rng(8)
    n = 30
    last = max(cells - 2, 0) if convex else cells - 1
    cell, share = rng.integers(0, last + 1, n), rng.random(n) if convex else np.ones(n)
    terms = rng.normal(size=(2, n))
    parts = [*(terms * share), *(terms * (1 - share))] if convex else terms
    records = np.column_stack([cell, *parts])
    rows = rng.integers(0, n, (5, 12)).astype(np.int32)
    expected = np.zeros((2, cells, 5))
    for q in range(2):
        for r in range(5):
            for i in rows[r]:
                part = terms[q, i] * share[i]
                expected[q, cell[i], r] += part
                if convex:
                    expected[q, cell[i] + min(cells - 1, 1), r] += terms[q, i] - part
    for kernel in forms(subsets.drawn_sums):
        out = np.full(expected.shape, np.nan)
        kernel(records, min(cells - 1, 1), rows, out)
        assert out == pytest.approx(expected, abs=1e-13)


# -- values ----------------------------------------------------------------------------------------


def all_values(estimator, sample, c):
    """Values of the columns of `c` (n, 32), of one size, by every method."""
    size = int(c[:, 0].sum())
    plan = estimator.prepare(sample, size)
    alone = [estimator.evaluate(plan, np.ascontiguousarray(column)) for column in c.T]
    rows = np.array([np.repeat(np.arange(sample.n), column) for column in c.T])
    shuffled = np.random.default_rng(0).permuted(rows, axis=1)
    twice = np.stack([c, c[:, ::-1]])
    values = {
        "block": estimator.block(plan, c),
        "blocks": estimator.blocks(plan, twice)[:R],
        "blocks, second": estimator.blocks(plan, twice)[R:][::-1],
        "subsets": estimator.subsets(plan, shuffled),
    }
    return alone, {name: np.asarray(found) for name, found in values.items()}


def check_values(estimator, sample, c, columns):
    alone, values = all_values(estimator, sample, c)
    for name, found in values.items():
        assert found.shape == (R,)
        assert found == near(alone), (name, estimator)
    assert values["blocks"].tolist() == near(values["block"].tolist())
    for r in columns:
        assert alone[r] == near(repeated(sample, c[:, r], estimator)), estimator


def given_weights(kind, n):
    rng = np.random.default_rng(n)
    if kind == "integers":
        return rng.integers(1, 4, n)
    if kind == "dynamic":
        return 10 ** rng.uniform(-8, 8, n)
    return None if kind == "none" else rng.random(n) * 1e200 + 1e190


@pytest.mark.parametrize("kind", ["none", "integers", "dynamic", "huge"])
@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_and_lists_have_the_values_of_the_repeated_rows(name, kind):
    for seed, scores in enumerate(cases.score_sets().values()):
        if PLAIN and seed % 8:
            continue
        n = len(scores)
        scores = scores.astype(np.float64)
        sample = sample_of(scores, cases.labels_for(scores), given_weights(kind, n), low=1 / 3)
        sizes = {n} if PLAIN else {n, max(1, n // 3)}
        for size in sizes:
            c = draws(n, size, seed=seed)[0]
            check_values(VARIANTS[name], sample, c, [seed % R])


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("n", [blocks.FEW_ROWS, blocks.FEW_ROWS + 1, blocks.FEW_ROWS + 100])
def test_values_of_more_rows_than_are_kept_one_by_one(name, n):
    if PLAIN and (n != blocks.FEW_ROWS + 1 or name not in ("ece_a", "ece_ac", "ece_c")):
        pytest.skip("too slow as plain Python")
    rng = np.random.default_rng(n)
    scores = rng.random(n).round(3)
    for weight in (None, rng.integers(1, 3, n)):
        sample = sample_of(scores, cases.labels_for(scores), weight)
        check_values(VARIANTS[name], sample, draws(n, n)[0], [0, 9])


@st.composite
def problem(draw):
    """A sample, multiplicities (n, 32) of one size, and an estimator."""
    true, prob = draw(cases.binary(max_size=30))
    n = len(prob)
    positive = st.sampled_from([1e-8, 0.1, 0.25, 1 / 3, 1.0, 2.0, 3.0, 1e8])
    weight = draw(st.none() | st.lists(positive, min_size=n, max_size=n))
    low = draw(st.sampled_from([0.0, 1 / 3]))
    size = draw(st.integers(1, 2 * n))
    c = draws(n, size, seed=draw(st.integers(0, 10**6)))[0]
    return sample_of(prob, true, weight, low=low), c, draw(st.sampled_from(list(VARIANTS)))


@settings(max_examples=5 if PLAIN else 400)
@given(problem())
@example((sample_of([0.3], [1]), np.full((1, R), 3, np.uint8), "ece_ac"))
def test_every_method_has_the_value_of_the_repeated_rows(given):
    sample, c, name = given
    check_values(VARIANTS[name], sample, c, [0, 17])


def test_negative_zero_is_zero():
    # As integers, the two are far from each other.
    for share in (0.2, 0.5, 0.8):
        rng = np.random.default_rng(4)
        zeros = rng.random(40) < share
        scores, true = np.where(zeros, 0.0, rng.random(40)), rng.random(40) < 0.4
        c = draws(40, 40)[0]
        for name in ("ece", "ece_a", "ece_c", "ece_ac"):
            plain = sample_of(scores, true)
            signed = sample_of(np.where(zeros, -0.0, scores), true)
            expected = all_values(VARIANTS[name], plain, c)[0]
            alone, values = all_values(VARIANTS[name], signed, c)
            assert alone == near(expected)
            for found in values.values():
                assert found == near(expected), name


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_have_the_same_bits_in_any_company(name):
    estimator, n = VARIANTS[name], 90
    rng = np.random.default_rng(9)
    scores = rng.random(n)
    for weight in (None, rng.random(n)):
        sample = sample_of(scores, rng.random(n) < scores, weight)
        plan = estimator.prepare(sample, n)
        c = draws(n, n, 4)
        whole = estimator.blocks(plan, c)
        alone = np.concatenate([estimator.block(plan, block) for block in c])
        assert np.array_equal(whole, alone, equal_nan=True)
        rows = rng.integers(0, n, (7, 5))
        plan = estimator.prepare(sample, 5)
        alone = np.concatenate([estimator.subsets(plan, row[None]) for row in rows])
        assert np.array_equal(estimator.subsets(plan, rows), alone, equal_nan=True)
