"""The density based error: its fields, brute force, settings, weights and laws."""

from dataclasses import FrozenInstanceError
from itertools import pairwise
from math import inf, isfinite, isnan, pi, sqrt

import numpy as np
import pytest
import reference

import fastece
from fastece import KDE, ece, mce
from fastece.estimators.table import ESTIMATORS
from helpers import kde_cases
from helpers.kde_cases import KERNELS
from helpers.kde_helpers import KDE_NAME, SYMMETRIC, close, exact, kde, matrix, same, smooth
from helpers.strategies import as_lists
from oracles import reference_kde as oracle

ROUNDS = 8


def test_the_table_holds_it_and_its_fields_have_defaults():
    assert ESTIMATORS["ece_kde"] == KDE()
    assert KDE() == KDE("silverman", "gaussian", 1.0, "support", "auto")
    assert KDE(bandwidth=0.1).bandwidth == 0.1
    assert len({KDE(bandwidth=0.1), KDE(), KDE()}) == 2
    assert "0.125" in repr(KDE(bandwidth=0.125))
    with pytest.raises(FrozenInstanceError):
        KDE().kernel = "beta"


REFUSED = [
    *(("bandwidth", value) for value in (0, 0.0, -0.1, np.nan, inf, True, "scott", None, [0.1])),
    *(("kernel", value) for value in ("box", "", None, 3)),
    *(("norm", value) for value in (0.5, -1, np.nan, True, "two")),
    *(("grid_step", value) for value in (0, -0.01, np.nan, inf, True, "fine", None)),
    *(
        ("score_range", value)
        for value in ((0.5, 0.5), (0.7, 0.2), (-0.1, 1.0), (0.0, np.nan), "all", 3, (0.1, 0.2, 0.3))
    ),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=repr)
def test_a_bad_field_is_refused_by_name(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        kde([0, 1, 1], [0.2, 0.6, 0.9], **{name: value})


@pytest.mark.parametrize("batch", range(ROUNDS))
@pytest.mark.parametrize("kernel", KERNELS)
def test_auto_is_within_a_thousandth_of_brute_force(kernel, batch):
    bad = []
    for seed in range(3):
        rng = np.random.default_rng([20, batch, seed])
        (y, s, w), fields = kde_cases.random_case(rng, kernel, 3000)
        got, want = kde(y, s, w, **fields), exact(y, s, w, **fields)
        if got != close(want):
            bad.append(((batch, seed), len(s), fields, got, want))
    assert not bad, bad


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_step_of_the_paper_is_fine_enough_for_wide_kernels(kernel, norm):
    y, s = smooth(800)
    for h in (0.02, 0.1, 0.4) if kernel != "beta" else (0.1, 0.4):
        fields = {"bandwidth": h, "kernel": kernel, "norm": norm}
        got = kde(y, s, grid_step=0.0003, **fields)
        assert got == pytest.approx(exact(y, s, **fields), rel=5e-3, abs=1e-6), h


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", ["silverman", 0.05])
def test_every_setting_is_brute_force_on_its_problems(kernel, bandwidth):
    fields = {"bandwidth": bandwidth, "kernel": kernel}
    weight = np.random.default_rng(3).random(150)
    for n_classes in (2, 3, 6):
        y, p = matrix(150, n_classes, n_classes)
        for w in (None, weight):
            for setting in ("confidence", 0, n_classes - 1, "auto", "classwise"):
                problems = reference.problems(*as_lists(y, p), setting)
                wanted = [oracle.kde_error(problem, w, **fields) for problem in problems]
                options = {**KDE_NAME, "setting": setting, "sample_weight": w, **fields}
                if setting == "classwise":
                    values = ece(y, p, average=None, **options)
                    assert values.shape == (n_classes,)
                    assert values.tolist() == close(wanted)
                    assert ece(y, p, **options) == same(values.mean())
                else:
                    assert ece(y, p, **options) == close(wanted[0]), (n_classes, setting)


def test_two_columns_are_a_binary_problem_too():
    y, s = smooth(90)
    value = kde(y, s)
    two = np.stack([1 - s, s], axis=1)
    assert kde(y, two, setting="binary") == same(value)
    assert kde(y, s, setting="binary") == same(value)
    assert kde(y, two, setting=1) == same(value)
    z = np.log(s) - np.log1p(-s)
    assert kde(y, z, from_logits=True) == same(value, 1e-9)
    single = s.astype(np.float32)
    assert kde(y, single) == same(kde(y, single.astype(np.float64)))
    assert kde(y.astype(bool), s.tolist()) == same(value)


def test_the_support_of_the_top_label_begins_at_one_class_in_k():
    y, p = matrix(120, 4)
    options = {**KDE_NAME, "setting": "confidence", "bandwidth": 0.1}
    value = ece(y, p, **options)
    assert ece(y, p, score_range="support", **options) == same(value)
    assert ece(y, p, score_range=(0.25, 1.0), **options) == same(value)
    problem = reference.problems(*as_lists(y, p), "confidence")[0]
    unit = oracle.kde_error(problem, bandwidth=0.1, score_range="unit")
    assert ece(y, p, score_range="unit", **options) == close(unit)
    assert abs(unit - value) > 2e-3 * value


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_outside_the_range_are_placed_at_its_end(kernel):
    y, s = smooth(200)
    fields = {"kernel": kernel, "score_range": (0.3, 0.8)}
    for h in (0.05, 0.3, "silverman"):
        value = kde(y, s, bandwidth=h, **fields)
        assert value == close(exact(y, s, bandwidth=h, **fields))
        assert kde(y, np.clip(s, 0.3, 0.8), bandwidth=h, **fields) == same(value)


@pytest.mark.parametrize("h", [1e-4, 0.003, 0.1])
def test_integrals_known_by_hand(h):
    assert kde([1, 1], [1.0, 1.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([0, 0], [0.0, 0.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([1], [1.0], bandwidth=h, norm=2) == close(h)
    assert kde([1], [1.0], bandwidth=h, kernel="triweight") == close(3 * h * 35 / 128)
    assert kde([1], [1.0], bandwidth=h, kernel="epanechnikov") == close(sqrt(5) * h * 3 / 8)
    assert kde([0], [0.5], bandwidth=h) == close(0.5)
    assert kde([0, 1], [0.5, 0.5], bandwidth=h) == close(sqrt(2 / pi) * h)


def test_many_rows_give_the_true_error():
    rng = np.random.default_rng(6)
    s = rng.beta(5, 1.5, 100_000)
    y = rng.random(len(s)) < s - 0.4 * s * (1 - s) * 0.5
    true = 0.2 * 5 * 1.5 / (6.5 * 7.5)
    for kernel in KERNELS:
        assert kde(y, s, kernel=kernel) == pytest.approx(true, abs=0.004)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("score_range", ["unit", (0.2, 0.9)])
def test_the_largest_gap_is_that_where_there_is_density(kernel, score_range):
    # On any grid the edge of "where f >= 0.01" is met but roughly: a smaller and a larger place.
    for seed in range(4):
        y, s = smooth(300, seed)
        for h in (0.02, 0.1):
            fields = {"bandwidth": h, "kernel": kernel, "score_range": score_range}
            for step, part in ((0.0003, 1.2), ("auto", 2.0)):
                got = kde(y, s, norm=inf, grid_step=step, **fields)
                least, most = (
                    exact(y, s, norm=inf, floor=floor, **fields)
                    for floor in (0.01 * part, 0.01 / part)
                )
                # Beta kernels change within h**2 of the ends, which even points do not see.
                slack = 2e-2 if kernel == "beta" and step != "auto" else 5e-3
                assert least - slack <= got <= most + slack, (seed, h, step)
            assert mce(y, s, grid_step=step, **KDE_NAME, **fields) == got


def test_the_largest_gap_may_be_at_an_end():
    for kernel in KERNELS:
        for y in (0, 1):
            # A kernel that is level all over: P(y = 1 | s) = y.
            assert mce([y], [0.5], bandwidth=10.0, kernel=kernel, **KDE_NAME) == pytest.approx(1)


def test_the_largest_gap_does_not_look_where_nothing_is():
    # Far from both heaps g / f is 0 or 1 and means nothing.
    s = np.repeat([0.3, 0.7], 50)
    y = np.tile([0, 0, 0, 1, 0, 1, 1, 1, 0, 1], 10)
    value = kde(y, s, bandwidth=0.01, norm=inf)
    assert value == pytest.approx(exact(y, s, bandwidth=0.01, norm=inf), abs=0.02)
    assert value < 0.35


DEGENERATE = {
    "one hit": ([1], [0.3]),
    "one miss at 0": ([0], [0.0]),
    "one hit at 1": ([1], [1.0]),
    "no hits": (np.zeros(30, int), np.linspace(0, 1, 30)),
    "only hits": (np.ones(30, int), np.linspace(0, 1, 30)),
    "all equal": (np.arange(20) % 2, np.full(20, 0.37)),
    "all 0": (np.arange(20) % 2, np.zeros(20)),
    "all 1": (np.arange(20) % 2, np.ones(20)),
    "0 and 1": (np.arange(20) % 2, np.arange(20) // 10 * 1.0),
    "tiny": (np.arange(20) % 2, np.full(20, 5e-324)),
    "two neighbours": ([0, 1], [0.5, np.nextafter(0.5, 1)]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("kernel", KERNELS)
def test_degenerate_data_have_an_error(name, kernel):
    # pytest makes errors of warnings
    y, s = DEGENERATE[name]
    for bandwidth in ("silverman", 0.003, 0.5, 3.0):
        for norm in (1, 2):
            fields = {"kernel": kernel, "bandwidth": bandwidth, "norm": norm}
            value = kde(y, s, **fields)
            assert isinstance(value, float)
            assert 0 <= value <= (1.5 if kernel == "beta" else 1 + 1e-9), fields
            assert value == close(exact(y, s, **fields)), fields
        worst = kde(y, s, kernel=kernel, bandwidth=bandwidth, norm=inf)
        assert 0 <= worst <= 1 or (kernel == "beta" and isnan(worst))


@pytest.mark.parametrize("kernel", KERNELS)
def test_classes_that_are_absent_have_an_error(kernel):
    y, p = matrix(60, 3)
    never = np.append(p, np.zeros((60, 1)), axis=1)
    values = kde(y, never, setting="classwise", average=None, kernel=kernel)
    assert all(isfinite(value) for value in values)
    assert values[:3] == same(kde(y, p, setting="classwise", average=None, kernel=kernel))
    # all scores 0 without a hit: half a kernel of the least bandwidth
    if kernel == "gaussian":
        assert values[3] == close(sqrt(2 / pi) * 0.0003)
    without = kde(np.minimum(y, 1), p, setting="classwise", average=None, kernel=kernel)
    problem = reference.problems(*as_lists(np.minimum(y, 1), p), 2)[0]
    assert without[2] == close(oracle.kde_error(problem, kernel=kernel))


@pytest.mark.parametrize("kernel", KERNELS)
def test_exchanging_the_two_labels_mirrors_the_densities(kernel):
    rng = np.random.default_rng(7)
    s = rng.integers(0, 2**20, 90) / 2**20
    y = (rng.random(90) < s**2).astype(int)
    for bandwidth in ("silverman", 0.004, 0.2):
        fields = {"kernel": kernel, "bandwidth": bandwidth}
        assert kde(1 - y, 1 - s, **fields) == close(kde(y, s, **fields), 2.1e-3)


@pytest.mark.parametrize("kernel", SYMMETRIC)
def test_errors_grow_with_the_norm(kernel):
    for seed in range(5):
        y, s = smooth(60, seed, 0.7, 0.5)
        for bandwidth in ("silverman", 0.003, 0.3):
            fields = {"kernel": kernel, "bandwidth": bandwidth}
            values = [kde(y, s, norm=p, **fields) for p in (1, 1.5, 2, 4)]
            assert all(a <= b * 1.0021 + 2e-6 for a, b in pairwise(values)), values
            assert values[-1] <= 1.001


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
@pytest.mark.parametrize("h", [0.02, 0.08])
def test_densities_are_those_of_another_package(kernel, h):
    # bw of KDEpy is the standard deviation, too; the mirrored data have three times the mass.
    kdepy = pytest.importorskip("KDEpy")
    y, s = smooth(1000)
    curve = fastece.reliability_curve(
        y, s, **KDE_NAME, bandwidth=h, kernel=kernel, grid_step=0.0003
    )
    grid = np.linspace(-1.5, 2.5, 2**15)

    def mirrored(part):
        fitted = kdepy.FFTKDE(kernel=kernel, bw=h).fit(np.concatenate([part, -part, 2 - part]))
        return 3 * np.interp(curve.score, grid, fitted.evaluate(grid))

    f, g = mirrored(s), mirrored(s[y == 1]) * y.mean()
    inner = (curve.score > 0.02) & (curve.score < 0.98)
    assert curve.density[inner] == pytest.approx(f[inner], abs=1e-3 * f.max())
    product = (curve.probability * curve.density)[inner & curve.supported]
    assert product == pytest.approx(g[inner & curve.supported], abs=1e-3 * f.max())
