"""The oracle of the density based error: against integrals known by hand, and against itself."""

from math import exp, inf, lgamma, log, pi, sqrt

import numpy as np
import pytest

from oracles import reference_kde as oracle
from oracles.reference_kde import KERNELS, densities, kde_error

SYMMETRIC = KERNELS[:3]


def near(value, slack=1e-7):
    return pytest.approx(value, rel=slack, abs=1e-12)


def problem(scores, hits, low=0.0, high=1.0):
    return list(scores), list(hits), low, high


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("h", [0.02, 1.0, 3.0])
def test_kernels_have_mass_one_and_standard_deviation_h(kind, h):
    u = h * np.linspace(-12, 12, 400_001)
    k, step = oracle.kernel(kind, u, h), u[1] - u[0]
    assert k.sum() * step == near(1)
    assert (k * u**2).sum() * step == near(h**2)
    assert k.min() == 0 or kind == "gaussian"


def test_the_second_beta_kernel_is_the_density_of_a_beta_law():
    h, b, s = 0.2, 0.04, 0.3
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


@pytest.mark.parametrize("kind", KERNELS)
def test_beta_kernels_of_scores_at_an_end_are_zero_and_reflected_ones_are_doubled(kind):
    x = np.array([0.01, 0.3, 0.99])
    f, g = densities(x, [0.0, 1.0], [0, 1], None, 0.05, kind, 0.0, 1.0)
    if kind == "beta":
        assert f.tolist() == g.tolist() == [0, 0, 0]
    else:
        assert f == near(oracle.kernel(kind, x, 0.05) + oracle.kernel(kind, 1 - x, 0.05))
        assert g == near(oracle.kernel(kind, 1 - x, 0.05))


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("h", [1e-3, 0.03, 0.5, 2.0])
def test_all_images_together_keep_the_mass(kind, h):
    rng = np.random.default_rng(1)
    s, w = np.append(rng.random(30), [0, 1, 1]), rng.random(33)
    x = (np.arange(50_000) + 0.5) / 50_000
    for low, high in ((0.0, 1.0), (0.3, 0.55)):
        f, g = densities(low + (high - low) * x, s, s > 0.5, w, h, kind, low, high)
        assert f.mean() * (high - low) == near(1, 1e-6)
        assert g.mean() * (high - low) == near(w[s > 0.5].sum() / w.sum(), 1e-6)


@pytest.mark.parametrize("kind", KERNELS)
def test_densities_are_plain_sums_over_rows_and_images(kind):
    rng = np.random.default_rng(2)
    s, w = rng.random(40).round(1), rng.random(40)
    y, x = (rng.random(40) < s).astype(int), rng.random(9)
    for low, high, h in ((0.0, 1.0, 0.07), (0.25, 0.75, 0.4)):
        points = low + (high - low) * x
        f, g = densities(points, s, y, w, h, kind, low, high)
        if kind == "beta":
            one = [densities(points, [t], [1], None, h, kind, low, high)[0] for t in s]
        else:
            shift = 2 * (high - low) * np.arange(-30, 31)[:, None]
            inside = np.clip(s, low, high)
            one = [
                oracle.kernel(kind, points - (t + shift), h).sum(axis=0)
                + oracle.kernel(kind, points - (2 * low - t + shift), h).sum(axis=0)
                for t in inside
            ]
        assert f == near(w @ one / w.sum())
        assert g == near((w * y) @ one / w.sum())


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_densities_are_those_of_another_package(kind):
    kdepy = pytest.importorskip("KDEpy")
    s, h = np.random.default_rng(5).beta(2, 3, 400), 0.04
    grid = np.linspace(-1.5, 2.5, 2**15)
    name = {"triweight": "triweight", "epanechnikov": "epa"}.get(kind, kind)
    mirrored = kdepy.FFTKDE(kernel=name, bw=h).fit(np.concatenate([s, -s, 2 - s])).evaluate(grid)
    x = np.linspace(0.05, 0.95, 50)
    f, _ = densities(x, s, 0 * s, None, h, kind, 0.0, 1.0)
    assert 3 * np.interp(x, grid, mirrored) == pytest.approx(f, abs=1e-3 * f.max())


# -- the integral ----------------------------------------------------------------------------------


def test_one_score_in_the_middle():
    # A miss at m: int s f = m. A hit: 1 - m. Far from both ends nothing is reflected.
    for kind in SYMMETRIC:
        fields = {"bandwidth": 0.02, "kernel": kind}
        assert kde_error(problem([0.4], [0]), **fields) == near(0.4)
        assert kde_error(problem([0.4], [1]), **fields) == near(0.6)
        second = kde_error(problem([0.4], [0]), norm=2.0, **fields)
        assert second == near(sqrt(0.4**2 + 0.02**2))


def test_all_hits_at_one_are_half_a_kernel_from_the_diagonal():
    # E |u| of each kernel with standard deviation h.
    for h in (1e-4, 0.003, 0.1):
        right = problem([1.0] * 3, [1] * 3)
        assert kde_error(right, bandwidth=h) == near(sqrt(2 / pi) * h)
        third = kde_error(right, bandwidth=h, kernel="triweight")
        assert third == near(3 * h * 35 / 128)
        half = kde_error(right, bandwidth=h, kernel="epanechnikov")
        assert half == near(sqrt(5) * h * 3 / 8)
        assert kde_error(right, bandwidth=h, norm=2.0) == near(h)


def test_a_hit_and_a_miss_in_one_place_cross_the_diagonal():
    # f is one kernel around 1/2, g half of it: int |1/2 - s| f = E |u|.
    both = problem([0.5, 0.5], [0, 1])
    assert kde_error(both, bandwidth=0.05) == near(0.05 * sqrt(2 / pi))
    assert kde_error(both, bandwidth=0.05, norm=2.0) == near(0.05)
    moment = 0.05 * (2**0.75 * exp(lgamma(1.25)) / sqrt(pi)) ** (1 / 1.5)  # (E |u|^1.5)^(1/1.5)
    assert kde_error(both, bandwidth=0.05, norm=1.5) == near(moment, 1e-6)
    assert kde_error(both, bandwidth=0.05, kernel="epanechnikov") == near(
        sqrt(5) * 0.05 * 3 / 8, 1e-6
    )


def test_two_scores_far_apart_are_two_problems():
    pair = problem([0.2, 0.8], [1, 1])
    assert kde_error(pair, [3.0, 1.0], bandwidth=0.01) == near((3 * 0.8 + 0.2) / 4)
    moved = problem([0.0, 0.2, 0.8, 1.0], [1, 1, 1, 1])
    got = kde_error(moved, [1.0, 2.0, 1.0, 0.0], bandwidth=0.01, score_range=(0.2, 0.8))
    # the score 0 is placed at 0.2, where half a kernel is left and doubled
    assert got == near((3 * (0.8 - 0.01 * sqrt(2 / pi)) + 0.2 + 0.01 * sqrt(2 / pi)) / 4)


def test_beta_kernels_integrate_to_expectations():
    # int s K ds by Simpson's rule on another grid, refined until it stands still.
    for h, s in ((0.1, 0.3), (0.03, 0.001), (0.3, 0.9)):
        u = np.linspace(0, 1, 200_001)[1:-1]
        x = u**3 * (10 - 15 * u + 6 * u**2)
        f, _ = densities(x, [s], [1], None, h, "beta", 0.0, 1.0)
        scale = 30 * u**2 * (1 - u) ** 2 / 200_000
        value = kde_error(problem([s], [0]), bandwidth=h, kernel="beta")
        assert value == near((x * f * scale).sum(), 1e-6)
        mass = value + kde_error(problem([s], [1]), bandwidth=h, kernel="beta")
        assert mass == near((f * scale).sum(), 1e-6)


@pytest.mark.parametrize("s", [1e-5, 1e-30, 1e-300, 5e-324])
def test_beta_kernels_of_tiny_scores_have_an_integral_of_their_own(s):
    # Near 0 the kernel at s is exp((rho(x) - 1) log s) / B(rho(x), (1 - x) / b), on the scale
    # b / log(1 / s): integrated here in log(x).
    h = 0.05
    x = np.exp(np.linspace(log(1e-12), log(0.2), 40_001))
    f, _ = densities(x, [s], [0], None, h, "beta", 0.0, 1.0)
    want = np.trapezoid(x * f * x, np.log(x))
    assert kde_error(problem([s], [0]), bandwidth=h, kernel="beta") == near(want, 1e-5)


def test_the_largest_gap_looks_where_there_is_density():
    # g / f of a hit at 0.6 beside a miss at 0.4 is logistic; far away it is 1 or 0.
    pair = problem([0.4, 0.6], [0, 1])
    h = 0.02
    s = np.linspace(0.3, 0.7, 400_001)
    z = [np.exp(-0.5 * ((s - m) / h) ** 2) for m in (0.4, 0.6)]
    solid = (z[0] + z[1]) / (2 * h * sqrt(2 * pi)) >= 0.01
    want = np.abs(z[1] / (z[0] + z[1]) - s)[solid].max()
    assert kde_error(pair, bandwidth=h, norm=inf) == pytest.approx(want, abs=1e-3)
    assert kde_error(problem([0.3], [1]), bandwidth=0.2, norm=inf) == near(1.0)


# -- bandwidth -------------------------------------------------------------------------------------


def test_silverman_by_hand():
    s = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]  # sd^2 = 0.06; IQR = 0.65 - 0.25, over 1.349
    assert oracle.silverman(s, None, 8) == near(sqrt(0.06) * 6**-0.2)
    s[0], s[-1] = 0.0, 1.0  # only sd grows
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


# -- against itself --------------------------------------------------------------------------------
