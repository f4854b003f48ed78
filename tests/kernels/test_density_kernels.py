"""Kernels of densities, against loops over the rows."""

from itertools import product

import numpy as np
import pytest

from fastece.estimators.binned.replicates import GROUP_SIZES
from fastece.kernels import EPANECHNIKOV, NO_WEIGHTS, density
from fastece.kernels.replicates import OrderedRows
from helpers.samples import draws, runs_of
from oracles import reference_kde as oracle

MAX_ROWS_OF_SMALLEST_GROUPS, _ = GROUP_SIZES[0]
LANES = [1, 32]
RANGES = [(0.0, 1.0), (0.25, 0.9)]
# The smallest number of cells, an even and an odd number.
COUNTS = [1, 2, 7]
# Cells beyond each end.
GHOSTS = 2


def near(value, rel=1e-12):
    return pytest.approx(value, rel=rel, abs=1e-12)


def fresh(*shape):
    """An array of nan, which shows where it is not overwritten."""
    return np.full(shape, np.nan)


def score_sets():
    """name -> increasing scores with ties, at the ends, alone, in groups of more than one row."""
    rng = np.random.default_rng(0)
    return {
        "one": np.array([0.4]),
        "all equal": np.full(9, 0.3),
        "tenths": np.sort(rng.random(40).round(1)),
        "ends": np.sort(np.where(rng.random(30) < 0.5, 0.0, 1.0)),
        "groups": np.sort(rng.random(MAX_ROWS_OF_SMALLEST_GROUPS + 5).round(2)),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", score_sets())
def test_bandwidths_of_counts_are_those_of_the_rows_of_each_replicate(name, weighted):
    u = score_sets()[name]
    n = u.size
    rng = np.random.default_rng(1)
    v = rng.integers(1, 4, n).astype(np.float64) if weighted else NO_WEIGHTS
    order = np.arange(n, dtype=np.int32)
    c = draws(n, 2 * n + 1, 1 if n > MAX_ROWS_OF_SMALLEST_GROUPS else 2)
    weight = v if weighted else np.ones(n)
    terms = np.stack([weight * (u - 0.3), weight * (u - 0.3) ** 2])
    expected = []
    for g in range(len(c)):
        for r in range(32):
            drawn = c[g, :, r] > 0
            w = (weight * c[g, :, r])[drawn]
            expected.append(oracle.silverman(u[drawn], w, 2 * n + 1))
    run, first = runs_of(u)
    group = 1 if n <= MAX_ROWS_OF_SMALLEST_GROUPS else 16
    rows = OrderedRows(u, u, v, order, run, first, skip=0, low=0.0, high=1.0, group=group)
    out = fresh(32 * len(c))
    density.bandwidths_of_counts(c, rows, terms, 2.0 * n + 1, out)
    assert out == near(np.array(expected), 1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_bandwidths_of_drawn_scores_are_those_of_their_rows(size, weighted):
    rng = np.random.default_rng(size)
    u = np.sort(rng.random((5, size)), axis=1)
    u[1:3] = u[1:3].round(1).clip(0.2, 0.7)
    w = rng.integers(0, 3, u.shape if weighted else (0, 0)).astype(np.float64)
    if weighted:
        w[:, -1] = 2.0
    weight = w if weighted else np.ones(u.shape)
    expected = [
        oracle.silverman(x[a > 0], a[a > 0], size + 2) for x, a in zip(u, weight, strict=True)
    ]
    out = fresh(5)
    density.bandwidths_of_drawn(u, w, 0.0, 1.0, size + 2.0, out)
    assert out == near(np.array(expected), 1e-10)


def lagrange(t):
    """Values at t of the cubics that are 1 in one of -1, 0, 1 and 2, and 0 in the others."""
    nodes = (-1, 0, 1, 2)
    return [np.prod([(t - m) / (k - m) for m in nodes if m != k]) for k in nodes]


@pytest.mark.parametrize("limits", RANGES)
def test_scores_are_shared_by_the_cells_around_them(limits):
    low, high = limits
    for count in COUNTS:
        step = (high - low) / count
        centres = low + step * (np.arange(-GHOSTS, count + GHOSTS) + 0.5)
        edges = low + step * np.arange(count + 1)
        s = np.concatenate([edges, centres[GHOSTS:-GHOSTS], np.linspace(low, high, 11)])
        s = s.clip(low, high)
        cell = np.full(s.size, -9, np.int32)
        share = fresh(4, s.size)
        density.place(s, low, step, count, cell, share)
        assert cell.min() >= 0
        assert cell.max() + 4 <= count + 2 * GHOSTS
        for x, first, shares in zip(s, cell, share.T, strict=True):
            places = centres[first : first + 4]
            assert places[1] - 1e-12 <= x <= places[2] + 1e-12
            t = (x - places[1]) / step
            assert shares.tolist() == near(lagrange(t))


def shared_rows(rng, n, cells, width):
    """Hits, first cells of the rows up to both ends, and shares."""
    hit = rng.integers(0, 2, n).astype(np.uint8)
    cell = rng.integers(0, cells - width + 1, n).astype(np.int32)
    cell[0] = 0
    cell[-1] = cells - width
    return hit, cell, rng.normal(size=(width, n))


def sums_of(c, hit, cell, share, cells):
    """Shares times multiplicities (L, n, W), row after row."""
    out = np.zeros((len(c), 2, cells, c.shape[2]))
    for part in range(len(c)):
        for i in range(len(hit)):
            for k in range(len(share)):
                out[part, hit[i], cell[i] + k] += share[k, i] * c[part, i]
    return out


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_rows_are_added_up_in_their_cells(lanes, dtype, width):
    rng = np.random.default_rng(2)
    for n, cells, parts in ((1, width, 1), (12, 9, 3)):
        rows = shared_rows(rng, n, cells, width)
        c = rng.integers(0, 4, (parts, n, lanes)).astype(dtype)
        out = fresh(parts, 2, cells, lanes)
        density.spread(c, *rows, out)
        assert out == near(sums_of(c, *rows, cells))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lanes", LANES)
def test_drawn_scores_are_placed_and_count_once(lanes, weighted):
    rng = np.random.default_rng(14)
    for low, high in RANGES:
        s = np.sort(rng.uniform(low, high, 12))
        s[0] = low
        s[-1] = high
        y = rng.integers(0, 2, 12).astype(np.uint8)
        v = rng.random(12) if weighted else NO_WEIGHTS
        for count, size in ((1, 1), (9, 5)):
            step = (high - low) / count
            cell = np.full(12, -9, np.int32)
            share = fresh(4, 12)
            density.place(s, low, step, count, cell, share)
            share *= v if weighted else 1.0
            drawn = rng.integers(0, 12, (2, lanes, size)).astype(np.int32)
            c = np.stack([[np.bincount(line, minlength=12) for line in part] for part in drawn])
            expected = sums_of(c.swapaxes(1, 2), y, cell, share, count + 2 * GHOSTS)
            out = fresh(*expected.shape)
            density.spread_drawn_rows(drawn, s, y, v, low, step, out)
            assert out == near(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_a_sample_are_added_up_as_their_shares(weighted):
    rng = np.random.default_rng(15)
    for (low, high), n in product(RANGES, (1, 12, 2050)):
        s = rng.uniform(low, high, n)
        s[0] = low
        s[-1] = high
        y = rng.integers(0, 2, n).astype(np.uint8)
        v = rng.random(n) if weighted else NO_WEIGHTS
        for count in (1, 9):
            step = (high - low) / count
            cell = np.full(n, -9, np.int32)
            share = fresh(4, n)
            density.place(s, low, step, count, cell, share)
            share *= v if weighted else 1.0
            expected = sums_of(np.ones((1, n, 1)), y, cell, share, count + 2 * GHOSTS)[0, :, :, 0]
            out = np.ones(expected.shape)
            density.add_rows_to_cells(s, y, v, low, step, out)
            assert out == near(1 + expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_distances_from_a_centre_are_added_up(weighted):
    rng = np.random.default_rng(16)
    for n in (1, 7, 8, 9, 100):
        s = rng.random(n)
        v = rng.random(n) if weighted else NO_WEIGHTS
        w = v if weighted else np.ones(n)
        assert density.add_distances(s, v, 0.3) == near([w @ (s - 0.3), w @ (s - 0.3) ** 2])


def test_absolute_gaps_are_integrated_over_the_lines_between_them():
    gap = np.array([1.0, 2.0, -1.0, 0.0, -3.0, 1.0, 0.0, 2.0])
    assert density.mean_size(gap) == near(np.abs(gap).sum() - 2 / 3 - 3 / 4)
    assert density.mean_size(gap[:1].copy()) == 1.0


def mirror(count, reach):
    """The cell of each number from -reach to count + reach, mirrored at one end and the other."""
    cells = []
    for q in range(-reach, count + reach):
        while not 0 <= q < count:
            q = -1 - q if q < 0 else 2 * count - 1 - q
        cells.append(q + GHOSTS)
    return np.array(cells, np.int32)


@pytest.mark.parametrize("count", COUNTS)
def test_cells_are_mirrored_at_both_ends(count):
    for reach in (1, 2, 20):
        assert density.mirrored_cells(count, reach).tolist() == mirror(count, reach).tolist()


@pytest.mark.parametrize("width", LANES)
def test_lanes_are_gathered_by_their_numbers(width):
    rng = np.random.default_rng(5)
    c = rng.integers(0, 250, (3, 4, 32)).astype(np.uint8)
    columns = c.swapaxes(1, 2).reshape(96, 4)
    lanes = rng.permutation(96)[: 2 * width]
    out = np.full((2, 4, width), 255, np.uint8)
    density.gather_lanes(c, lanes, out)
    assert np.array_equal(out.swapaxes(1, 2).reshape(2 * width, 4), columns[lanes])


def smoothed(cells, taps, image, count):
    """The sum of the docstring, term after term."""
    reach = taps.shape[1] - 1
    out = np.zeros((*cells.shape[:2], count, cells.shape[3]))
    for j in range(count):
        for m in range(-reach, reach + 1):
            out[:, :, j] += taps[:, abs(m), None] * cells[:, :, image[j + reach + m]]
    return out


@pytest.mark.parametrize("count", COUNTS)
def test_cells_of_one_replicate_are_convolved_as_those_of_a_lane(count):
    rng = np.random.default_rng(7)
    for reach in (1, 2, 3, 6):
        x = rng.random(count + 2 * GHOSTS)
        taps = rng.random(reach + 1)
        inside = np.zeros(x.size)
        for q, cell in enumerate(mirror(count, GHOSTS)):
            inside[cell] += x[q]
        image = mirror(count, reach)
        expected = smoothed(inside[None, None, :, None], taps[None, :, None], image, count)
        out = fresh(count)
        density.smooth_line(x.copy(), taps, out)
        assert out == near(expected[0, 0, :, 0])


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", COUNTS)
def test_cells_are_convolved(count, lanes):
    rng = np.random.default_rng(6)
    for reach in (1, 2, 3, 6):
        cells = rng.normal(size=(2, 2, count + 2 * GHOSTS, lanes))
        cells[1] = 0.0  # only one cell of one lane has a weight
        cells[1, 1, GHOSTS, -1] = -2.0
        taps = rng.random((2, reach + 1, lanes))
        out = fresh(2, 2, count, lanes)
        density.smooth(cells, taps, out)
        assert out == near(smoothed(cells, taps, mirror(count, reach), count))


@pytest.mark.parametrize("lanes", LANES)
def test_densities_above_rounding_are_normalised_to_mass_1(lanes):
    rng = np.random.default_rng(8)
    for count in COUNTS:
        sums = rng.random((2, 2, count, lanes)) + 0.1
        if count > 2:
            sums[0, :, 0] *= 1e-14  # next to nothing
            sums[:, 0, 1] = -1e-9
            sums[:, 1, 2] = -1e-9
            sums[1, :, 3] = -1.0
        g = np.maximum(sums[:, 1], 0.0)
        f = np.maximum(sums[:, 0], 0.0) + g
        scale = 1.0 / (0.2 * f.sum(1, keepdims=True))
        scale = np.where(f > 1e-12 * f.max(1, keepdims=True), scale, 0.0)
        normalised = sums.copy()
        density.normalise(normalised, 0.2)
        assert normalised[:, 0] == near(f * scale)
        assert normalised[:, 1] == near(g * scale)
        assert 0.2 * normalised[:, 0].sum(1) == near(np.ones((2, lanes)))
        assert (normalised[:, 1] <= normalised[:, 0]).all()


NORMS = [1.0, 1.5, 2.0, 3.0]


def value_of(f, g, score, width, low, high, p):
    """The rule of the docstring for one replicate: of neighbours the trapezoidal rule, or the
    integral of the power of a line with a twelfth of how much its slope changes; at the ends the
    half cell that is left, with a twelfth of the slope where it begins."""

    def height(u, f):
        return abs(u / f) ** p * f if f > 0 else 0.0

    def line(a, b, f):
        return f ** (1 - p) * (a ** (p + 1) + b ** (p + 1)) / ((p + 1) * (a + b))

    def slope(a, b, f):
        return p * (a + b) * (b / f) ** (p - 1)

    def gap(s, f, g):
        return g - s * f if abs(g - s * f) > 1e-12 * g else 0.0

    u = [gap(s, x, y) for x, y, s in zip(f, g, score, strict=True)]
    total = 0.0
    for j in range(len(f) - 1):
        a = abs(u[j])
        b = abs(u[j + 1])
        mean = (f[j] + f[j + 1]) / 2
        if (u[j] < 0) != (u[j + 1] < 0) and f[j] > 0 and f[j + 1] > 0:
            kink = slope(a, b, mean) + slope(b, a, mean)
            total += (width[j] + width[j + 1]) / 2 * (line(a, b, mean) + kink / 12)
        else:
            left = width[j] * height(u[j], f[j])
            right = width[j + 1] * height(u[j + 1], f[j + 1])
            total += (left + right) / 2
    for j, wall in ((0, low), (len(f) - 1, high)):
        at_wall = gap(wall, f[j], g[j])
        at_centre = gap(score[j], f[j], g[j])
        if (at_wall < 0) != (at_centre < 0):
            a = abs(at_wall)
            b = abs(at_centre)
            half = line(a, b, f[j]) / 2 + 2 * slope(a, b, f[j]) / 12
        else:
            outer = height(at_wall, f[j])
            inner = height(at_centre, f[j])
            half = (outer + inner) / 4 + 2 * (inner - outer) / 12
        total += width[j] * half
    return total ** (1 / p)


def density_pairs(rng, score, low, high, lanes):
    """Densities (4, 2, G, W): of any posteriors; with holes; calibrated to the last bit and next
    to that; with a change of sign beyond the outermost centres."""
    count = score.size
    f = rng.random((4, count, lanes)) + 0.1
    g = f * rng.random((4, count, lanes))
    f[1, rng.random((count, lanes)) < 0.3] = 0.0
    g[1] = np.where(f[1] > 0, f[1] * rng.choice([0.0, 1.0], (count, lanes)), 0.0)
    g[2] = f[2] * score[:, None]
    g[2, ::3] *= 1.2
    g[2, 1::3] *= 0.9
    g[3, 0] = f[3, 0] * (3 * score[0] + low) / 4
    g[3, -1] = f[3, -1] * (score[-1] + high) / 2
    return np.stack([f, g], axis=1)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("limits", RANGES)
def test_integrals_equal_the_rule(limits, lanes, p):
    rng = np.random.default_rng(11)
    low, high = limits
    for count in (1, 2, 9):
        width = rng.uniform(0.5, 1.5, count)
        width *= (high - low) / width.sum()
        score = low + width.cumsum() - width / 2
        pairs = density_pairs(rng, score, low, high, lanes)
        expected = [
            [value_of(*pair[:, :, r].tolist(), score, width, low, high, p) for r in range(lanes)]
            for pair in pairs
        ]
        out = fresh(4, lanes)
        density.integrate(pairs, score, width, low, high, p, out)
        assert out == near(np.array(expected), 1e-11)


@pytest.mark.parametrize("limits", RANGES)
def test_largest_gaps_are_taken_where_there_is_density(limits):
    low, high = limits
    rng = np.random.default_rng(12)
    for count in (1, 2, 9):
        width = np.full(count, (high - low) / count)
        score = low + width.cumsum() - width / 2
        f = rng.random((3, count, 2))
        f[0] = 0.0
        f[1, ::2] = 1e-3 * density.SUPPORT  # too low to count
        g = f * rng.random(f.shape)
        x = np.concatenate([[low], score, [high]])[:, None]
        f_up_to_ends = np.concatenate([f[:, :1], f, f[:, -1:]], axis=1)
        g_up_to_ends = np.concatenate([g[:, :1], g, g[:, -1:]], axis=1)
        is_dense = f_up_to_ends >= density.SUPPORT / (high - low)
        rate = np.divide(g_up_to_ends, f_up_to_ends, out=np.zeros(is_dense.shape), where=is_dense)
        gaps = np.where(is_dense, np.abs(rate - x), -1.0).max(axis=1)
        expected = np.where(gaps < 0, np.nan, gaps)
        out = fresh(3, 2)
        density.largest_gaps(np.stack([f, g], axis=1), score, low, high, out)
        assert out == pytest.approx(expected, rel=1e-14, nan_ok=True)


def test_the_norm_chooses_between_the_integral_and_the_largest_gap():
    rng = np.random.default_rng(13)
    pairs = density_pairs(rng, np.array([0.25, 0.75]), 0.0, 1.0, 2)
    score = np.array([0.25, 0.75])
    width = np.full(2, 0.5)
    for p in (1.0, 2.0, np.inf):
        expected = fresh(4, 2)
        out = fresh(4, 2)
        if p == np.inf:
            density.largest_gaps(pairs, score, 0.0, 1.0, expected)
        else:
            density.integrate(pairs, score, width, 0.0, 1.0, p, expected)
        density.density_norms(pairs, score, width, 0.0, 1.0, p, out)
        assert out == near(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_bandwidths_equal_the_rule(weighted):
    rng = np.random.default_rng(17)
    for s in (rng.random(50), rng.random(9).round(1), np.full(4, 0.3), np.array([0.4])):
        v = rng.random(s.size) + 0.1 if weighted else NO_WEIGHTS
        n = s.size + 3  # the caller's rows, whatever the weights
        expected = oracle.silverman(s, v if weighted else None, n)
        assert density.bandwidth_of_scores(s, v, 0.0, 1.0, float(n)) == near(expected, 1e-11)


@pytest.mark.parametrize("per_octave", [4, 16])
def test_grids_fit_powers_of_two_times_the_smallest_bandwidth(per_octave):
    levels = np.arange(-3 * per_octave, 12 * per_octave)
    h = 0.0003 * 2.0 ** (levels / per_octave)
    for factor, expected in ((1.0, levels), (1.02, levels), (0.98, levels - 1)):
        out = fresh(h.size)
        density.grid_bandwidths(factor * h, float(per_octave), out)
        assert out == near(0.0003 * 2.0 ** (expected / per_octave))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_errors_of_rows_equal_brute_force(p, weighted):
    rng = np.random.default_rng(18)
    n = 60
    s = rng.random(n)
    y = (rng.random(n) < s).astype(np.uint8)
    v = rng.random(n) if weighted else NO_WEIGHTS
    for low, high, h in ((0.0, 1.0, 0.05), (0.0, 1.0, 0.2), (0.3, 0.9, 0.1)):
        fields = {"norm": p, "score_range": (low, high), "bandwidth": h}
        exact = oracle.kde_error((s, y, 0.0, 1.0), v if weighted else None, **fields)
        value = density.density_error(s, y, v, density.GAUSSIAN, 1.0, low, high, h, p)
        assert value == pytest.approx(exact, rel=1e-3, abs=1e-6)


HEIGHTS = {
    density.GAUSSIAN: (5.5, lambda u: np.exp(-u * u / 2)),
    density.TRIWEIGHT: (3.0, lambda u: (1 - u * u / 9) ** 3),
    EPANECHNIKOV: (np.sqrt(5.0), lambda u: 1 - u * u / 5),
}


def test_kernels_have_taps_up_to_their_reach():
    assert density.tap_count(density.TRIWEIGHT, 0.1, 0.5) == 16
    assert density.tap_count(density.GAUSSIAN, 0.1, 1e-4) == 2
    assert density.cells_needed(EPANECHNIKOV, 4.0, 0.5, 0.1) == near(480.0)


def test_halves_of_kernels_add_up_to_one():
    h = np.array([[0.3, 0.05, 1.0], [0.01, 0.2, 0.6]])
    for shape, (reach, height) in HEIGHTS.items():
        taps = np.full((2, 1 + int(np.ceil(5.5 / 0.1)), 3), np.nan)
        density.fill_taps(shape, 0.1, h, taps)
        for part, r in np.ndindex(h.shape):
            u = 0.1 * np.arange(taps.shape[1]) / h[part, r]
            plain = np.where(u < reach, height(u), 0.0)
            total = plain[0] + 2 * plain[1:].sum()
            assert taps[part, :, r] == pytest.approx(plain / total, rel=1e-12, abs=1e-300)


def test_gaps_are_shared_by_the_cells_around_their_score():
    s = np.array([0.0, 0.1, 0.125, 0.3, 0.625, 1.0])
    gap = np.array([1.0, -1.0, 2.0, 0.5, -0.25, 3.0])
    rng = np.random.default_rng(5)
    share = np.array([  # centres at 1/8, 3/8, 5/8, 7/8; beyond them the end cell has all
        [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1],
    ])  # fmt: skip
    for lanes in (1, 3):
        c = rng.integers(0, 3, (6, lanes))
        out = np.full((lanes, 4), np.nan)
        density.spread_gaps(c.astype(np.float64), s, gap, out)
        assert out == pytest.approx((c * gap[:, None]).T @ share, abs=1e-14)
        assert out.sum(1) == pytest.approx(gap @ c)
