"""Fixed-point sums of cells, against integers of Python."""

from fractions import Fraction

import numpy as np
import pytest

from fastece.kernels import cells

NO_WEIGHTS = np.empty(0)
CELLS = 90
COARSE = 10
GROUPS = 5


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


def expected_sums(s, y, w, group, n_cells=CELLS, n_coarse=COARSE):
    """All sums of a problem as integers, row by row."""
    fine = [[0, 0] for _ in range(n_cells + 2)]
    coarse = [[0] * 8 for _ in range(n_coarse)]
    groups = [[0] * GROUPS for _ in range(2 * n_coarse)]
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
        groups[2 * k + hit][group[i]] += high[0]
        words = [
            high[1] * (1 - hit), high[1] * hit, nearest((r * r * weight) * 2.0**31), int(square),
            detail[0] * (1 - hit), detail[0] * hit, detail[1] * (1 - hit), detail[1] * hit,
        ]  # fmt: skip
        coarse[k] = [a + b for a, b in zip(coarse[k], words, strict=True)]
    return fine, coarse, groups, low


@pytest.mark.parametrize(
    ("problems", "n", "kind"),
    [(1, 1, "none"), (3, 40, "ones"), (3, cells.BLOCK + 7, "random"), (1, cells.BLOCK + 7, "none")],
)
def test_a_batch_is_added_up_as_integers(problems, n, kind):
    s, y, w = rows(n, kind)
    score = np.array([s, s[::-1], 1 - s])[:problems]
    hit = np.array([y, y[::-1], 1 - y])[:problems]
    group = np.random.default_rng(n).integers(0, GROUPS, n).astype(np.int32)
    distance = s if problems == 1 else NO_WEIGHTS
    more = np.arange(len(cells.TOTALS))
    for has_groups in (False, True):
        fine = np.ones((problems, CELLS + 2, 2), np.int64)
        coarse = np.ones((problems, COARSE, 8), np.int64)
        groups = np.ones((problems, GROUPS if has_groups else 0, 2 * COARSE), np.int64)
        totals = 10 * more
        group_of_row = group if has_groups else group[:0]
        cells.add_batch(score, hit, w, group_of_row, distance, fine, coarse, groups, totals, more)
        for k in range(problems):
            fine_sums, coarse_sums, group_sums, low = expected_sums(score[k], hit[k], w, group)
            assert (fine[k] - 1).tolist() == fine_sums
            assert (coarse[k] - 1).tolist() == coarse_sums
            if has_groups:
                assert (groups[k] - 1).T.tolist() == group_sums
        expected = 11 * more
        expected[cells.SQUARE_LOW] += low  # the same in all problems
        of_distance = slice(cells.DISTANCE, cells.DISTANCE + 2)
        high, detail = totals[of_distance] - expected[of_distance]
        total_distance = (high + detail / cells.DETAIL) / cells.DISTANCE_UNIT
        weight = w if w.size else np.ones(n)
        assert total_distance == pytest.approx(distance @ weight[: distance.size], rel=1e-15)
        expected[of_distance] = totals[of_distance]
        assert np.array_equal(totals, expected)
