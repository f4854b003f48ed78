"""The density based error: oracle, bandwidths, brute force, replicates."""

from itertools import cycle
from math import exp, inf, isnan, lgamma, log, pi, sqrt

import numpy as np
import pytest

import fastece
from fastece import KDE, bootstrap, calibration_test, ece, mce
from fastece.data.samples import Sample
from fastece.estimators.draws import Counts
from helpers import kde_cases
from helpers.kde_cases import KERNELS
from helpers.kde_helpers import (
    KDE_NAME,
    VARIANTS,
    close,
    exact,
    kde,
    rows_of,
    same,
    samples,
    sizes,
    smooth,
)
from helpers.samples import draws
from oracles import reference_kde as oracle
from oracles.reference_kde import densities

REFUSED = [
    *(("bandwidth", value) for value in (0, 0.0, -0.1, np.nan, inf, True, "scott", None, [0.1])),
    *(("kernel", value) for value in ("box", "", None, 3)),
    *(("norm", value) for value in (0.5, -1, np.nan, True, "two")),
    ("grid_step", 0.001),
    *(
        ("score_range", value)
        for value in ((0.5, 0.5), (0.7, 0.2), (-0.1, 1.0), (0.0, np.nan), "all", 3, (0.1, 0.2, 0.3))
    ),
]


def test_a_bad_field_is_refused_by_name():
    for name, value in REFUSED:
        with pytest.raises((ValueError, TypeError), match=name):
            kde([0, 1, 1], [0.2, 0.6, 0.9], **{name: value})


@pytest.mark.parametrize("kernel", KERNELS)
def test_auto_is_within_a_thousandth_of_brute_force(kernel):
    for seed in range(12):
        rng = np.random.default_rng([20, seed])
        (y, s, w), fields = kde_cases.random_case(rng, kernel, 1000)
        assert kde(y, s, w, **fields) == close(exact(y, s, w, **fields)), (seed, fields)


@pytest.mark.parametrize("h", [1e-4, 0.003, 0.1])
def test_integrals_known_by_hand(h):
    assert kde([1, 1], [1.0, 1.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([0, 0], [0.0, 0.0], bandwidth=h) == close(sqrt(2 / pi) * h)
    assert kde([1], [1.0], bandwidth=h, norm=2) == close(h)
    assert kde([1], [1.0], bandwidth=h, kernel="triweight") == close(3 * h * 35 / 128)
    assert kde([1], [1.0], bandwidth=h, kernel="epanechnikov") == close(sqrt(5) * h * 3 / 8)
    assert kde([0], [0.5], bandwidth=h) == close(0.5)
    assert kde([0, 1], [0.5, 0.5], bandwidth=h) == close(sqrt(2 / pi) * h)


@pytest.mark.parametrize(
    ("kernel", "score_range"), [*zip(KERNELS, cycle(["unit", (0.2, 0.9)]), strict=False)]
)
def test_the_largest_gap_is_that_where_there_is_density(kernel, score_range):
    # On any grid the edge of "where f >= 0.01" is met but roughly: a smaller and a larger place.
    for seed in range(4):
        y, s = smooth(300, seed)
        for h in (0.02, 0.1):
            fields = {"bandwidth": h, "kernel": kernel, "score_range": score_range}
            got = kde(y, s, norm=inf, **fields)
            smallest, largest = (
                exact(y, s, norm=inf, floor=floor, **fields) for floor in (0.02, 0.005)
            )
            assert smallest - 5e-3 <= got <= largest + 5e-3, (seed, h)
            assert mce(y, s, **KDE_NAME, **fields) == got


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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), [*zip(DEGENERATE, cycle(KERNELS), strict=False)])
def test_degenerate_data_have_an_error(name, kernel):
    # pytest makes errors of warnings
    y, s = DEGENERATE[name]
    for bandwidth, norms in (("silverman", [1]), (0.003, [2]), (0.5, [1, 2]), (3.0, [1])):
        for norm in norms:
            fields = {"kernel": kernel, "bandwidth": bandwidth, "norm": norm}
            value = kde(y, s, **fields)
            assert isinstance(value, float)
            assert 0 <= value <= (1.5 if kernel == "beta" else 1 + 1e-9), fields
            assert value == close(exact(y, s, **fields)), fields
        worst = kde(y, s, kernel=kernel, bandwidth=bandwidth, norm=inf)
        assert 0 <= worst <= 1 or (kernel == "beta" and isnan(worst))


@pytest.mark.parametrize(("kernel", "h"), [("gaussian", 0.02), ("triweight", 0.08)])
def test_densities_are_those_of_another_package(kernel, h):
    # bw of KDEpy is the standard deviation, too; the mirrored data have three times the mass.
    kdepy = pytest.importorskip("KDEpy")
    y, s = smooth(1000)
    curve = fastece.reliability_curve(y, s, **KDE_NAME, bandwidth=h, kernel=kernel)
    grid = np.linspace(-1.5, 2.5, 2**15)

    def mirrored(part):
        fitted = kdepy.FFTKDE(kernel=kernel, bw=h).fit(np.concatenate([part, -part, 2 - part]))
        return 3 * np.interp(curve.score, grid, fitted.evaluate(grid))

    f = mirrored(s)
    g = mirrored(s[y == 1]) * y.mean()
    inner = (curve.score > 0.02) & (curve.score < 0.98)
    assert curve.density[inner] == pytest.approx(f[inner], abs=1e-3 * f.max())
    product = (curve.probability * curve.density)[inner & curve.supported]
    assert product == pytest.approx(g[inner & curve.supported], abs=1e-3 * f.max())


def test_silverman_counts_rows_and_not_weights():
    y, s = smooth(60)
    rng = np.random.default_rng(4)
    for weight in (None, np.full(60, 9.0), rng.integers(0, 4, 60), 10 ** rng.uniform(-3, 3, 60)):
        n = 60 if weight is None else int((weight > 0).sum())
        h = oracle.silverman(s, weight, n)
        value = kde(y, s, weight)
        assert value == same(kde(y, s, weight, bandwidth=h), 1e-9)
        assert value == close(exact(y, s, weight))
    # hits and misses in two places: the posterior is 1/2 and the error grows with the bandwidth
    y = np.array([0, 0, 1, 1])
    s = np.array([0.45, 0.55, 0.45, 0.55])
    twice = kde(np.repeat(y, 2), np.repeat(s, 2))
    assert kde(y, s, np.full(4, 2)) == same(kde(y, s), 1e-9)
    assert kde(y, s, np.full(4, 2)) > 1.02 * twice


@pytest.mark.parametrize(
    "s",
    [
        [0.2, 0.2, 0.2, 0.2, 0.8],  # IQR 0: left out
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],  # cuts between two scores
        [0.0, 0.45, 0.5, 0.55, 1.0, 0.52, 0.47],  # the IQR is the smaller one
        [0.5, 0.5 + 1e-9],  # the least bandwidth
        [0.05, 0.1, 0.6, 0.61, 0.99],
    ],
)
def test_silverman_by_the_rule(s):
    y = np.arange(len(s)) % 2
    for low, high in ((0.0, 1.0), (0.15, 0.58)):
        h = oracle.silverman(s, None, len(s), low, high)
        value = kde(y, s, score_range=(low, high))
        assert value == same(kde(y, s, score_range=(low, high), bandwidth=h), 1e-9)


def test_labels_under_the_null_do_not_move_the_scores():
    # The bandwidth is one of the scores, which the null keeps: the same null for fixed and rule.
    y, s = smooth(100)
    h = oracle.silverman(s, None, 100)
    options = {**KDE_NAME, "n_resamples": 64, "rng": 2}
    rule, fixed = (calibration_test(y, s, bandwidth=b, **options) for b in ("silverman", h))
    assert rule.null_distribution.tolist() == same(fixed.null_distribution.tolist(), 1e-9)


INTEGRALS = [name for name in VARIANTS if VARIANTS[name].norm < inf]


@pytest.mark.parametrize("name", INTEGRALS)
def test_evaluate_is_brute_force_on_the_repeated_rows(name):
    estimator = VARIANTS[name]
    number = INTEGRALS.index(name)
    fields = {f: getattr(estimator, f) for f in ("bandwidth", "kernel", "norm", "score_range")}
    for case, sample in [*samples()][number % 4 :: 4]:
        for size in sizes(sample.n):
            c = draws(sample.n, size, seed=1)[0, :, 0]
            y, s, w = rows_of(sample, c)
            want = oracle.kde_error((s, y, sample.low, sample.high), w, **fields)
            got = estimator.evaluate(estimator.prepare(sample, size), c)
            assert got == close(want), (case, size)


def test_a_draw_may_hold_one_row_very_often():
    sample = dict(samples())["spread"]
    c = np.zeros(sample.n, np.int64)
    c[7] = 1000
    for estimator in (KDE(), KDE(0.02)):
        value = estimator.evaluate(estimator.prepare(sample, 1000), c)
        want = kde(sample.y[7:8], sample.s[7:8], bandwidth=estimator.bandwidth)
        assert value == same(want, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["gaussian", "beta"])
def test_tiny_weights_are_weights(kernel):
    s = np.random.default_rng(3).random(40)
    y = (s > 0.4).astype(np.int64)
    weight = np.where(np.arange(40) < 39, 1e-310, 1.0)
    for size in (None, 2):
        result = bootstrap(
            y, s, **KDE_NAME, kernel=kernel, sample_weight=weight, n_resamples=64, rng=0, size=size
        )
        assert np.isfinite(result.bootstrap_distribution).all()


def near(value, slack=1e-7):
    return pytest.approx(value, rel=slack, abs=1e-12)


def problem(scores, hits, low=0.0, high=1.0):
    return list(scores), list(hits), low, high


def test_the_second_beta_kernel_is_the_density_of_a_beta_law():
    h = 0.2
    b = 0.04
    s = 0.3
    for x, a, c in ((0.5, 12.5, 12.5), (0.2, 5.0, 20.0), (0.95, 23.75, None), (0.03, None, 24.25)):
        small = min(x, 1 - x)
        if a is None or c is None:
            root = sqrt(4 * b**4 + 6 * b**2 + 2.25 - small**2 - small / b)
            a, c = (2 * b**2 + 2.5 - root if shape is None else shape for shape in (a, c))
        law = exp(lgamma(a + c) - lgamma(a) - lgamma(c) + (a - 1) * log(s) + (c - 1) * log(1 - s))
        f, g = densities([x], [s], [1], None, h, "beta", 0.0, 1.0)
        assert (f[0], g[0]) == (near(law), near(law))
        f, _ = densities([0.5 + x / 4], [0.5 + s / 4], [1], None, h, "beta", 0.5, 0.75)
        assert f[0] == near(4 * law)
    assert oracle.rho(0.0, b) == near(1)
    assert oracle.rho(2 * b, b) == near(2)


def test_silverman_by_hand():
    s = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]  # sd^2 = 0.06; IQR = 0.65 - 0.25, over 1.349
    assert oracle.silverman(s, None, 8) == near(sqrt(0.06) * 6**-0.2)
    s[0] = 0.0
    s[-1] = 1.0  # only sd grows
    assert oracle.silverman(s, None, 8) == near(min(0.4 / 1.349, np.std(s, ddof=1)) * 6**-0.2)
    assert np.std(s, ddof=1) > 0.4 / 1.349
    pair = [0.2, 0.2, 0.2, 0.2, 0.8]
    sd = sqrt(0.16 * 0.36 * 5 / 4)
    assert oracle.silverman(pair, None, 5) == near(sd * (15 / 4) ** -0.2)
    assert oracle.silverman(pair[3:], [4.0, 1.0], 2) == near(sd * sqrt(2 / 1.25) * 1.5**-0.2)
    assert oracle.silverman(s, [7.0] * 8, 8) == near(oracle.silverman(s, None, 8))
    assert oracle.silverman([0.4], None, 1) == 0.0003
    assert oracle.silverman([0.1] * 9, None, 9) == 0.0003
    assert oracle.silverman([0.1, 0.1 + 1e-9], None, 2) == 0.0003
    assert oracle.silverman([0.1, 0.15], None, 2, 0.2, 1.0) == 0.0003
    spread = np.random.default_rng(0).random(50)
    clipped = np.clip(spread, 0.3, 0.8)
    assert oracle.silverman(spread, None, 50, 0.3, 0.8) == oracle.silverman(clipped, None, 50)
    assert oracle.silverman(spread, None, 50) == near(spread.std(ddof=1) * 37.5**-0.2)


BANDWIDTHS = [0.3, 0.004, 0.02, 0.02, 2.0, 0.11]


def data(n=300, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.7), n)
    return np.array([rng.choice(n_classes, p=0.8 * row + 0.2 / n_classes) for row in p]), p


@pytest.mark.parametrize(
    ("kernel", "norm"),
    [("gaussian", 1.0), ("triweight", np.inf), ("epanechnikov", 2.0), ("beta", 1.0)],
)
def test_a_sweep_is_each_bandwidth_by_itself(kernel, norm):
    y, p = data()
    fields = {"kernel": kernel, "norm": norm}
    for options in ({}, {"setting": "classwise"}, {"sample_weight": p[:, 0] + 0.1}):
        swept = KDE(**fields).bandwidth_sweep(y, p, BANDWIDTHS, **options)
        alone = [
            ece(y, p, estimator="ece_kde", bandwidth=h, **options, **fields) for h in BANDWIDTHS
        ]
        assert swept.tolist() == alone


@pytest.mark.parametrize(
    ("bandwidths", "options", "error", "message"),
    [
        ([0.1, 0.0], {}, ValueError, r"bandwidths: must be positive and finite; bandwidths\[1\]"),
        ([np.nan], {}, ValueError, "bandwidths"),
        ([np.inf], {}, ValueError, "bandwidths"),
        ([], {}, ValueError, "bandwidths"),
        ([[0.1]], {}, ValueError, "bandwidths"),
        (["0.1"], {}, TypeError, "bandwidths"),
        (0.1, {}, TypeError, "bandwidths"),
        ([1e-12], {}, ValueError, "bandwidth"),
        ([0.1], {"bandwidth": 0.2}, TypeError, "bandwidth"),
        ([0.1], {"average": "mean"}, ValueError, "average"),
    ],
)
def test_a_bandwidth_that_is_not_positive_is_refused(bandwidths, options, error, message):
    y, p = data(20)
    with pytest.raises(error, match=message):
        KDE().bandwidth_sweep(y, p, bandwidths, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        ({}, True),
        ({"norm": np.inf}, False),
        ({"kernel": "beta"}, True),
        ({"bandwidth": 0.02}, False),
    ],
)
def test_a_single_value_is_that_of_the_replicate_with_every_row_once(weighted, options):
    rng = np.random.default_rng(3)
    for n in (1, 2, 50, 200):
        s = rng.beta(0.6, 0.4, n)
        y = (rng.random(n) < s).astype(np.int64)
        v = rng.random(n) if weighted else None
        kde = KDE(**options)
        sample = Sample(s, y.astype(np.uint8), v, 0.0, 1.0, np.arange(n)).sorted()
        once = Counts(np.ones((1, n, 32), np.uint8))
        expected = kde.values(kde.prepare(sample, n), once)[0]
        value = ece(y, s, estimator=kde, sample_weight=v)
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-10, nan_ok=True)
