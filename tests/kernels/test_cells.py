"""Fixed-point sums of cells, compiled and as plain Python, against integers of Python."""

from fractions import Fraction

import numpy as np
import pytest

from fastece.kernels import REPLICATES, cells
from fastece.resampling.draws import poisson_law
from helpers.kernel_forms import forms

NO_WEIGHTS = np.empty(0)
CELLS = 90
COARSE = 10
LAW = poisson_law(1.0)


def nearest(x):
    """The nearest integer, or the even one of two."""
    return round(Fraction(x))


def rows(n, kind="random", seed=0):
    """Scores with ends of cells among them, hits, and weights."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    ends = rng.integers(0, CELLS + 1, n) / CELLS
    s = np.where(rng.random(n) < 0.3, ends, s)
    s = np.where(rng.random(n) < 0.2, np.nextafter(ends, rng.random(n)), s).clip(0, 1)
    w = {"none": NO_WEIGHTS, "ones": np.ones(n), "random": 10 ** rng.uniform(-6, 4, n)}[kind]
    return s, (rng.random(n) < s).astype(np.uint8), w


def expected_sums(s, y, w, n_cells, n_coarse):
    """All sums as integers, row by row."""
    fine = [[0, 0] for _ in range(n_cells + 2)]
    coarse = [[0] * 8 for _ in range(n_coarse)]
    low = 0
    for i, score in enumerate(s.tolist()):
        weight = float(w[i]) if w.size else 1.0
        hit = int(y[i])
        j = next(j for j in range(n_cells) if score <= (j + 1) / n_cells)
        k = j * n_coarse // n_cells
        r = nearest((score - (k + 0.5) * (1.0 / n_coarse)) * (2.0**31 * n_coarse)) / 2.0**31
        first = weight * r * 2.0**31
        parts = [weight * 2.0**30, first]
        high = [nearest(x) for x in parts]
        detail = [nearest((x - h) * 2.0**32) for x, h in zip(parts, high, strict=True)]
        square = (weight * weight - weight) * 2.0**24
        low += int((square - int(square)) * 2.0**32)
        place = {0.0: 0, 1.0: n_cells + 1}.get(score, j + 1)
        fine[place][hit] += high[0]
        words = [
            high[1] * (1 - hit), high[1] * hit, nearest((r * r * weight) * 2.0**31), int(square),
            detail[0] * (1 - hit), detail[0] * hit, detail[1] * (1 - hit), detail[1] * hit,
        ]  # fmt: skip
        coarse[k] = [a + b for a, b in zip(coarse[k], words, strict=True)]
    return fine, coarse, low


@pytest.mark.parametrize("kind", ["none", "ones", "random"])
@pytest.mark.parametrize("n", [1, 40, cells.BLOCK + 7])
def test_rows_are_added_up_as_integers(kind, n):
    s, y, w = rows(n, kind)
    fine, coarse, low = expected_sums(s, y, w, CELLS, COARSE)
    for kernel in forms(cells.add_rows):
        fine_sums = np.zeros((CELLS + 2, 2), np.int64)
        coarse_sums = np.zeros((COARSE, 8), np.int64)
        assert kernel(s, y, w, fine_sums, coarse_sums) == low
        assert fine_sums.tolist() == fine
        assert coarse_sums.tolist() == coarse


@pytest.mark.parametrize("kind", ["none", "random"])
def test_replicates_add_rows_up_as_often_as_they_draw_them(kind):
    n = cells.MADE + 9
    blocks = 2
    s, y, w = rows(n, kind)
    ids = np.arange(n) * 3 - 20
    for kernel in forms(cells.add_replicates):
        sums = np.zeros((blocks, 2 * COARSE, REPLICATES), np.int64)
        kernel(np.uint64(4), s, y, w, ids, *LAW, CELLS, sums)
        expected = np.zeros_like(sums)
        cell = np.empty(n, np.int32)
        coarse = np.empty(n, np.int32)
        r = np.empty(n)
        cells.place_rows(s, y, CELLS, COARSE, cell, coarse, r, np.empty(n))
        for b in range(blocks):
            c = np.empty((n, REPLICATES), np.uint8)
            words = np.empty(cells.MADE * cells.ROW_WORDS, np.uint64)
            with np.errstate(over="ignore"):
                cells.poisson_counts(np.uint64(4), b, ids, *LAW, words, c)
            for i in range(n):
                weight = nearest(w[i] * 2.0**26) if w.size else 2**26
                expected[b, coarse[i] // 8 * 2 + y[i]] += c[i].astype(np.int64) * weight
        assert (sums == expected).all()


@pytest.mark.parametrize("has_draws", [False, True])
@pytest.mark.parametrize("n_classes", [None, 3])
def test_a_batch_is_added_to_the_sums_of_all_problems(n_classes, has_draws):
    n = 50
    kinds = n_classes or 1
    s, y, w = rows(n, "random" if has_draws else "none")
    prob = s if n_classes is None else np.stack([s, s[::-1], 1 - s], axis=1)
    ids = np.arange(n) + 3
    totals_of_batch = np.arange(len(cells.TOTALS))
    for kernel in forms(cells.add_batch):
        fine = np.ones((kinds, CELLS + 2, 2), np.int64)
        coarse = np.ones((kinds, COARSE, 8), int)
        sums = np.ones((kinds, 1, 2 * COARSE, REPLICATES), np.int64)
        totals = 10 * totals_of_batch
        draws = (np.uint64(4), ids, *LAW, sums) if has_draws else None
        label = y if n_classes is None else y.astype(np.int64)
        kernel(prob, label, w, s, fine, coarse, totals, totals_of_batch, draws)
        for k in range(kinds):
            column = s if n_classes is None else np.ascontiguousarray(prob[:, k])
            hit = y if n_classes is None else (y == k).astype(np.uint8)
            expected_fine = np.ones_like(fine[k])
            expected_coarse = np.ones_like(coarse[k])
            expected_sums = np.ones_like(sums[k])
            low = cells.add_rows(column, hit, w, expected_fine, expected_coarse)
            if has_draws:
                with np.errstate(over="ignore"):
                    cells.add_replicates(
                        np.uint64(4), column, hit, w, ids, *LAW, CELLS, expected_sums
                    )
            assert np.array_equal(fine[k], expected_fine)
            assert np.array_equal(coarse[k], expected_coarse)
            assert np.array_equal(sums[k], expected_sums)
        expected = 11 * totals_of_batch
        expected[cells.SQUARE_LOW] += low
        # The batch has distances of its own, which are given to the kernel as `s`.
        of_distance = slice(cells.DISTANCE, cells.DISTANCE + 2)
        high, detail = totals[of_distance] - expected[of_distance]
        distance = (high + detail / cells.DETAIL) / cells.DISTANCE_UNIT
        assert distance == pytest.approx((s * w if w.size else s).sum(), rel=1e-15)
        expected[of_distance] = totals[of_distance]
        assert np.array_equal(totals, expected)
