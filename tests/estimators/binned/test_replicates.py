"""Sums over bins for many replicates: rows arranged for each way, and sums of the definition."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest
import reference

from fastece.estimators.bin_sums import TILE, Ordered, Records, Tiles, drawn_equal_mass_sums
from fastece.estimators.layouts import uniform_layout
from fastece.kernels import MOMENTS
from helpers.kernel_cases import counts, expected_sums, quantile_fields
from helpers.samples import R, runs_of, sample_of


def fields_of(n_bins, convex):
    """Uniform bins, as the reference takes them."""
    return {"n_bins": n_bins, "mapping": "convex" if convex else "hard", "threshold": 0.1}


def some_sample(n, weighted=True):
    """A sample with ties."""
    rng = np.random.default_rng(n)
    s = rng.random(n).round(2)
    return sample_of(s, rng.random(n) < s, rng.random(n) if weighted else None)


@pytest.mark.parametrize("n_bins", [1, 2, 15, 100])
@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("n", [1, 50, TILE, TILE + 1, 2 * TILE + 3])
def test_each_row_is_in_one_tile_with_the_others_of_its_cell(n, convex, n_bins):
    sample = some_sample(n)
    sample = sample.where(np.random.default_rng(1).permutation(n))
    layout = uniform_layout(n_bins, 0.0, 1.0, True, convex)
    tiles, records = (kind.of(sample, layout, 0.1, MOMENTS[:2]) for kind in (Tiles, Records))
    assert sorted(tiles.order) == list(range(n))
    assert (tiles.order // TILE == np.arange(n) // TILE).all()
    assert (tiles.starts[0], tiles.starts[-1]) == (0, n)
    assert (np.diff(tiles.starts) > 0).all()
    exists = sample.s > 0.1
    assert records.records.shape == (n, 5 if convex else 3)
    lower, *parts = records.records.T
    terms = np.array(parts[:2]) + (np.array(parts[2:]) if convex else 0.0)
    assert terms[0] == pytest.approx(np.where(exists, sample.v * (sample.y - sample.s), 0))
    assert terms[1] == pytest.approx(np.where(exists, sample.v, 0))
    for (first, last), cell in zip(pairwise(tiles.starts), tiles.cells, strict=True):
        rows = tiles.order[first:last]
        assert (lower[rows] == cell).all()
        assert len(set(rows // TILE)) == 1
    if convex:
        found = reference.centres(layout.edges.tolist())
        for i in np.flatnonzero(exists)[:50]:
            for b, part in reference.convex_shares(sample.s[i], found):
                got = {int(lower[i]) + k: parts[1 + 2 * k][i] for k in range(2)}
                assert got.get(b, 0) == pytest.approx(part * sample.v[i], abs=1e-13)
    assert tiles.terms.tolist() == np.array(parts)[:, tiles.order].tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("n_bins", [1, 6])
def test_sums_on_a_grid_are_those_of_the_definition(n_bins, convex, weighted):
    n = 60
    sample, layout = some_sample(n, weighted), uniform_layout(n_bins, 0.0, 1.0, True, convex)
    v = np.ones(n) if sample.v is None else sample.v
    c = np.array([counts(n, 1), counts(n, 2, 0.3)])
    rows = np.random.default_rng(3).integers(0, n, (7, 20)).astype(np.int32)
    drawn = [c[at // R, :, at % R] for at in range(2 * R)]
    listed = [np.bincount(row, minlength=n) for row in rows]
    for times, sums in (
        (drawn, Tiles.of(sample, layout, 0.1, MOMENTS[:2]).sums(c)),
        (listed, Records.of(sample, layout, 0.1, MOMENTS[:2]).sums(rows)),
    ):
        assert sums.shape == (2, n_bins, len(times))
        for r, count in enumerate(times):
            expected = expected_sums(sample, (count * v).tolist(), fields_of(n_bins, convex))[1]
            assert sums[..., r] == pytest.approx(expected, abs=1e-12)
    gaps = Tiles.of(sample, layout, -inf, MOMENTS[:1]).sums(c)  # the gaps alone
    assert gaps.shape == (1, n_bins, 2 * R)
    assert gaps.sum(1)[0] == pytest.approx(
        [(count * v) @ (sample.y - sample.s) for count in drawn], abs=1e-11
    )


@pytest.mark.parametrize(("right", "convex"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_equal_weight_are_those_of_the_definition(weighted, right, convex):
    n, rng = 60, np.random.default_rng(4)
    sample = some_sample(n, weighted)
    v = np.ones(n) if sample.v is None else sample.v
    c = np.array([counts(n, 1), counts(n, 2, 0.3)])
    rows = rng.integers(0, n, (7, 20))  # in any order
    for n_bins, low, high, threshold in ((5, 0.0, 1.0, 0.1), (9, 0.25, 0.6, -inf)):
        fields = quantile_fields(n_bins, low, high, threshold, right, convex)
        ordered = Ordered.of(sample, low, high, threshold, MOMENTS[:2])
        drawn = [c[at // R, :, at % R] for at in range(2 * R)]
        listed = [np.bincount(row, minlength=n) for row in rows]
        arguments = sample, rows, n_bins, low, high, right, convex, threshold, MOMENTS[:2]
        for times, (total, sums) in (
            (drawn, ordered.sums(c, n_bins, right, convex)),
            (listed, drawn_equal_mass_sums(*arguments)),
        ):
            for r in range(0, len(times), 3):
                weight, expected = expected_sums(sample, (times[r] * v).tolist(), fields)
                assert total[r] == pytest.approx(weight, rel=1e-13)
                assert sums[..., r] == pytest.approx(expected, abs=1e-12)


def test_rows_are_ordered_without_those_that_do_not_exist():
    sample = sample_of([0.1, 0.3, 0.3, 0.5, 0.9], [0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0])
    rows = Ordered.of(sample, 0.2, 0.6, 0.1, MOMENTS[:2]).rows
    assert rows.skip == 1
    assert rows.s.tolist() == [0.3, 0.3, 0.5, 0.9]
    assert rows.u.tolist() == [0.3, 0.3, 0.5, 0.6]
    assert rows.v.tolist() == [2, 3, 4, 5]
    run, first = runs_of(rows.u)
    assert (rows.run.tolist(), rows.first.tolist()) == (run.tolist(), first.tolist())
    assert (rows.low, rows.high) == (0.2, 0.6)
