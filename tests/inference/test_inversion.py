"""Intervals by test inversion: laws that hold for any data, and hypotheses by plain loops."""

from dataclasses import replace

import numpy as np
import pytest
import reference

from fastece import Binned
from fastece.inference.cell_curves import (
    cell_curve,
    cell_path,
    gap_directions,
    one_sided_curve,
)
from fastece.inference.inversion import FLOOR_QUANTILE, Evidence, scan_path
from helpers.answer_cases import LEVELS, cells_for, check_laws, random_cells


@pytest.mark.slow
def test_laws_hold_for_cells_of_any_kind():
    rng = np.random.default_rng(80)
    for _ in range(80):
        curve = cell_curve(random_cells(rng))
        check_laws(curve)
        level = 1 - curve.p_value
        if 0 < level < 1:
            assert curve.interval(level + 1e-9 * (1 - level)).low == 0


@pytest.mark.parametrize("side", [1, -1])
def test_laws_hold_for_gaps_of_one_side(side):
    rng = np.random.default_rng([side + 1, 40])
    for _ in range(40):
        cells = random_cells(rng)
        curve = one_sided_curve(cells, side)
        check_laws(curve)
        if not (side * cells.gap > 0).any():  # nothing is seen, so nothing is sure
            assert curve.p_value == 1


@pytest.mark.slow
def test_sides_are_mirrored_by_the_sign_of_the_gaps():
    # Outcomes 1 are to one side as outcomes 0 to the other.
    rng = np.random.default_rng(5)
    for _ in range(40):
        cells = random_cells(rng)
        # Ties have a random order.
        cells.null[:] += 1e-3 * cells.per_row[:, :, None] * rng.normal(size=cells.null.shape)
        mirrored = replace(
            cells, gap=-cells.gap, null=-cells.null,
            expected=cells.max_gap - cells.expected,
        )  # fmt: skip
        one = one_sided_curve(cells, 1)
        other = one_sided_curve(mirrored, -1)
        assert one.p_value == other.p_value
        for level in LEVELS:
            assert one.interval(level) == pytest.approx(other.interval(level), rel=0.1, abs=0.02)


def test_one_bin_has_its_gap_on_one_side():
    p = np.full(10_000, 0.5)
    for hits, side, low, high in (
        (5500, 1, 0.0402, 0.0598),
        (5500, -1, 0, 0),
        (4500, -1, 0.04, 0.06),
    ):
        cells = cells_for(np.arange(10_000) < hits, p, Binned(n_bins=1), 4000)
        interval = one_sided_curve(cells, side).interval(0.95)
        assert interval == pytest.approx((low, high), abs=1.2e-3)


def test_scores_of_1_are_never_too_low():
    cells = cells_for(np.arange(50) >= 2, np.ones(50), "ece", 99)
    assert one_sided_curve(cells, 1).interval(0.95) == (0, 0)
    assert one_sided_curve(cells, -1).interval(0.95).high > 0.05


def test_p_values_on_a_path_equal_plain_loops():
    rng = np.random.default_rng(1)
    for _ in range(20):
        cells = random_cells(rng, 49)
        null = cells.errors(np.zeros((1, *cells.gap.shape)))[0]
        seen = float(cells.error(cells.gap[None])[0])
        lucky = max(seen, float(np.quantile(null, FLOOR_QUANTILE)))
        critical = np.sort(null)[min(49, int(np.ceil(0.95 * 50))) - 1]
        path = cell_path(cells, gap_directions(cells)[1])
        sizes = scan_path(path, Evidence(seen, lucky, critical)).sizes
        base = gap_directions(cells)[1]
        assert np.all(np.diff(sizes) >= -1e-15)
        assert sizes[0] == 0
        # the same hypotheses again, found by their sizes along the path
        for m in (0.0, 0.5, 2.0):
            gap = np.clip(m * base, -cells.expected, cells.max_gap - cells.expected)
            errors = path.errors(np.array([m]))[0]
            assert errors == pytest.approx(cells.errors(gap[None])[0])
            above, below = reference.p_values(errors.tolist(), null.tolist(), seen, lucky)
            power = (errors > critical + 1e-12).mean()
            half = min(max((power - 0.05) / 0.95, 0), 1) / 2
            assert above == pytest.approx((1 + (errors >= seen - 1e-12).sum()) / 50 / (1 - half))
            if half:
                assert below == pytest.approx((1 + (errors <= lucky + 1e-12).sum()) / 50 / half)


def test_ends_of_one_bin_are_near_the_ends_of_a_normal_mean():
    # |mean (y - s)| of 10 000 rows has a standard error of 0.005: the ends are near |gap| +- 1.96
    # of them where it is clear, and never nearer to 0 than two where it is not.
    p = np.full(10_000, 0.5)
    for hits, low, high in ((5500, 0.0402, 0.0598), (5001, 0.0, 0.0098), (5000, 0.0, 0.0098)):
        y = np.arange(10_000) < hits
        interval = cell_curve(cells_for(y, p, Binned(n_bins=1), 4000)).interval(0.95)
        assert interval.low == pytest.approx(low, abs=6e-4)
        assert interval.high == pytest.approx(high, abs=1.2e-3)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_certain_and_right_has_a_binomial_upper_limit(n):
    # No miss in n rows: 97.5 % would have one if the rate were 1 - 0.025^(1/n).
    curve = cell_curve(cells_for(np.ones(n, int), np.ones(n), "ece", 999))
    assert curve.p_value == 1
    low, high = curve.interval(0.95)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / n), rel=0.15)


def test_certain_and_sometimes_wrong_has_binomial_limits():
    # 3 misses of 100: exact limits of a binomial proportion are 0.0062 and 0.0852.
    curve = cell_curve(cells_for(np.arange(100) >= 3, np.ones(100), "ece", 999))
    assert curve.p_value == 1 / 1000
    low, high = curve.interval(0.95)
    assert 0.004 < low < 0.013
    assert 0.065 < high < 0.095


def test_levels_beyond_the_replicates_begin_at_0():
    y = np.arange(400) % 2
    p = np.full(400, 0.2)
    curve = cell_curve(cells_for(y, p, "ece", 99))
    assert curve.p_value == 0.01
    assert curve.interval(0.98).low > 0
    assert curve.interval(0.995).low == 0
    assert curve.interval(0.9999).high > 0.7
