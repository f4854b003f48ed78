"""Reliability curves: densities, the posterior they give, and a band around it."""

import math
from functools import partial

import numpy as np
import pytest
import reference

import fastece
from fastece import KDE
from fastece.data.samples import Sample
from helpers.kde_cases import KERNELS
from helpers.probes import Spy
from helpers.strategies import as_lists
from oracles import reference_kde as oracle

reliability_curve = partial(fastece.reliability_curve, estimator="ece_kde")


def data(n=400, seed=0, a=2.0, b=2.0):
    """(y_true, y_prob): Beta scores, P(y = 1 | s) = s^1.3."""
    rng = np.random.default_rng(seed)
    s = rng.beta(a, b, n)
    return (rng.random(n) < s**1.3).astype(np.int64), s


def matrix(n=300, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), n)
    return np.where(rng.random(n) < 0.7, p.argmax(1), rng.integers(0, n_classes, n)), p


def step_of(curve):
    return (curve.score[-1] - curve.score[0]) / (len(curve.score) - 1)


def check_shape(curve, low=0.0, high=1.0):
    """Check the properties of every curve on [low, high]."""
    step = step_of(curve)
    assert np.diff(curve.score) == pytest.approx(np.full(len(curve.score) - 1, step), abs=1e-12)
    assert curve.score[0] == pytest.approx(low + step / 2, abs=1e-9)
    assert curve.score[-1] == pytest.approx(high - step / 2, abs=1e-9)
    for name in ("score", "probability", "lce", "density", "supported"):
        assert getattr(curve, name).shape == curve.score.shape, name
    assert curve.supported.dtype == bool
    assert (curve.density >= 0).all()
    on = curve.supported
    assert ((curve.probability[on] >= 0) & (curve.probability[on] <= 1)).all()
    assert curve.lce[on] == pytest.approx((curve.probability - curve.score)[on], abs=1e-12)
    assert on.tolist() == (curve.density >= 0.01 / (high - low)).tolist()
    for name in ("probability", "lce", "low", "high", "median"):
        values = getattr(curve, name)
        assert values is None or (np.isfinite(values) == on).all(), name


FIELDS = [
    {},
    {"bandwidth": 0.003},
    {"bandwidth": 0.05},
    {"bandwidth": 0.5},
    {"bandwidth": 0.05, "score_range": (0.2, 0.7)},
    {"score_range": (0.5, 1.0)},
]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_curve_is_a_density_and_a_posterior(kernel):
    for fields in FIELDS[KERNELS.index(kernel) % 2 :: 2]:
        check_density_and_posterior(kernel, fields)


def check_density_and_posterior(kernel, fields):
    weight = np.random.default_rng(1).random(400)
    for y, s in (data(), data(400, 1, 0.3, 0.4), data(400, 2, 30, 30)):
        for w in (None, weight):
            curve = reliability_curve(y, s, kernel=kernel, sample_weight=w, **fields)
            check_shape(curve, *fields.get("score_range", (0.0, 1.0)))
            if kernel != "beta":
                assert curve.density.sum() * step_of(curve) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_densities_and_posteriors_equal_brute_force(kernel):
    for seed, h, score_range in ((0, 0.02, "unit"), (1, 0.1, (0.2, 0.8)), (2, 0.4, "unit")):
        y, s = data(500, seed)
        w = np.random.default_rng(seed).random(500) if seed else None
        low, high = reference.score_range_of(score_range, 0.0, 1.0)
        fields = {"bandwidth": h, "kernel": kernel, "score_range": score_range}
        curve = reliability_curve(y, s, sample_weight=w, **fields)
        f, g = oracle.densities(curve.score, s, y, w, h, kernel, low, high)
        slack = 1e-3 * f.max()
        assert curve.density == pytest.approx(f, abs=slack), seed
        on = curve.supported
        assert (curve.probability * curve.density)[on] == pytest.approx(g[on], abs=slack)


def test_a_name_and_an_object_give_the_same_curve():
    y, s = data(100)
    fields = {"bandwidth": 0.07, "kernel": "triweight"}
    by_name = reliability_curve(y, s, estimator="ece_kde", **fields)
    by_object = reliability_curve(y, s, estimator=KDE(**fields))
    assert by_name.density.tolist() == by_object.density.tolist()
    with pytest.raises(TypeError, match=r"estimator|density|curve"):
        reliability_curve(y, s, estimator="ece")
    with pytest.raises(ValueError, match="estimator"):
        reliability_curve(y, s, estimator="kde")


DEGENERATE = {
    "no hits": (np.zeros(20, int), np.linspace(0, 1, 20), "epanechnikov"),
    "only hits": (np.ones(20, int), np.linspace(0, 1, 20), "beta"),
    "one row": ([1], [0.4], "gaussian"),
    "all equal": ([0, 1, 1], [0.3] * 3, "triweight"),
    "ends": ([0, 1, 1], [0.0, 1.0, 1.0], "beta"),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_have_a_curve(case):
    y, s, kernel = DEGENERATE[case]
    for bandwidth in ("silverman", 0.1):
        curve = reliability_curve(y, s, kernel=kernel, bandwidth=bandwidth)
        check_shape(curve)
        on = curve.supported
        if case in ("no hits", "only hits"):
            assert curve.probability[on] == pytest.approx(float(case == "only hits"), abs=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "beta"])
def test_writing_to_a_curve_changes_no_other(kernel):
    y, s = data(60)
    options = {"kernel": kernel, "bandwidth": 0.1, "n_resamples": 40, "rng": 0}
    names = ("score", "probability", "lce", "density", "supported", "rows", "low", "high", "median")
    curve, again = (reliability_curve(y, s, **options) for _ in range(2))
    arrays = [getattr(curve, name) for name in names]
    for i, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:i]), names[i]
        array[:] = 0
    assert str(reliability_curve(y, s, **options).to_dict()) == str(again.to_dict())


def test_class_wise_there_is_a_curve_for_each_class():
    y, p = matrix()
    curves = reliability_curve(y, p, setting="classwise")
    assert isinstance(curves, list)
    assert len(curves) == 3
    for k, curve in enumerate(curves):
        check_shape(curve)
        alone = reliability_curve(y, p, setting=k)
        binary = reliability_curve((y == k).astype(int), p[:, k])
        assert curve.density == pytest.approx(alone.density, rel=1e-9, abs=1e-12)
        assert curve.density == pytest.approx(binary.density, rel=1e-9, abs=1e-12)
        assert curve.probability == pytest.approx(
            binary.probability, rel=1e-9, abs=1e-9, nan_ok=True
        )


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_curve_of_the_top_label_begins_at_one_class_in_k(n_classes):
    y, p = matrix(300, n_classes)
    low = 1 / n_classes
    curve = reliability_curve(y, p, bandwidth=0.05)
    check_shape(curve, low, 1.0)
    (s, hits, *_), *_ = reference.problems(*as_lists(y, p), "confidence")
    f, _ = oracle.densities(curve.score, s, hits, None, 0.05, "gaussian", low, 1.0)
    assert curve.density == pytest.approx(f, abs=1e-3 * f.max())


def test_a_curve_interpolates_its_posterior():
    y, s = data()
    curve = reliability_curve(y, s)
    assert np.asarray(curve(curve.score)) == pytest.approx(
        curve.probability, abs=1e-12, nan_ok=True
    )
    middle = (curve.score[3] + curve.score[4]) / 2
    assert curve(middle) == pytest.approx((curve.probability[3] + curve.probability[4]) / 2)
    assert np.ndim(curve(0.5)) == 0
    assert isinstance(float(curve(0.5)), float)
    for shape in ((3,), (2, 2), (0,)):
        points = np.full(shape, 0.25)
        assert curve(points).shape == shape
        assert (curve(points) == curve(0.25)).all()
    assert np.asarray(curve([0.1, 0.9])).tolist() == [curve(0.1), curve(0.9)]
    for end in (0.0, 1.0, 0, 1):
        assert 0 <= curve(end) <= 1


@pytest.mark.parametrize("bad", [-0.01, 1.01, np.nan, np.inf, [0.2, 1.5], [0.2, np.nan]])
def test_a_curve_refuses_values_that_are_no_scores(bad):
    y, s = data(60)
    curve = reliability_curve(y, s, n_resamples=40, rng=1)
    with pytest.raises(ValueError):
        curve(bad)
    with pytest.raises(ValueError):
        curve.interval(bad)


def test_without_resamples_there_is_no_band():
    y, s = data(60)
    curve = reliability_curve(y, s)
    assert curve.median is None
    assert curve.low is None
    assert curve.high is None
    with pytest.raises(ValueError, match="n_resamples"):
        curve.interval(0.5)


@pytest.mark.parametrize(
    ("kernel", "fields"), [("gaussian", {}), ("triweight", {"bandwidth": 0.05}), ("beta", {})]
)
def test_the_median_lies_in_the_band(kernel, fields):
    y, s = data(150)
    for w in (None, np.random.default_rng(2).random(150)):
        options = {"kernel": kernel, "n_resamples": 60, "rng": 1, "sample_weight": w, **fields}
        curve = reliability_curve(y, s, **options)
        check_shape(curve)
        for name in ("median", "low", "high"):
            assert getattr(curve, name).shape == curve.score.shape
        on = curve.supported
        assert (curve.low <= curve.median)[on].all()
        assert (curve.median <= curve.high)[on].all()
        assert (curve.low[on] >= 0).all()
        assert (curve.high[on] <= 1).all()
        plain = reliability_curve(y, s, **{**options, "n_resamples": 0})
        assert curve.probability == pytest.approx(plain.probability, abs=1e-9, nan_ok=True)


def test_an_interval_interpolates_the_band():
    y, s = data(150)
    curve = reliability_curve(y, s, n_resamples=60, rng=1)
    low, high = curve.interval(0.5)
    assert low == pytest.approx(np.interp(0.5, curve.score, curve.low))
    assert high == pytest.approx(np.interp(0.5, curve.score, curve.high))
    points = np.array([0.3, 0.5, 0.6])
    low, high = curve.interval(points)
    assert low == pytest.approx(np.interp(points, curve.score, curve.low))
    assert high == pytest.approx(np.interp(points, curve.score, curve.high))
    assert (low < high).all()


def test_a_band_widens_with_its_level_and_narrows_with_the_rows():
    y, s = data(4000)
    options = {"bandwidth": 0.05, "n_resamples": 99, "rng": 1}
    curves = [reliability_curve(y, s, confidence_level=level, **options) for level in (0.5, 0.95)]
    narrow, wide = curves
    on = wide.supported
    assert (narrow.low >= wide.low - 1e-12)[on].all()
    assert (narrow.high <= wide.high + 1e-12)[on].all()
    assert narrow.median == pytest.approx(wide.median, nan_ok=True)
    of_200_rows = reliability_curve(y[:200], s[:200], **options)
    centre = (of_200_rows.score > 0.3) & (of_200_rows.score < 0.7)
    width = (of_200_rows.high - of_200_rows.low)[centre].mean()
    assert np.mean((wide.high - wide.low)[(wide.score > 0.3) & (wide.score < 0.7)]) < width / 2


@pytest.mark.parametrize("name", ["n_resamples", "confidence_level", "rng", "bandwidth", "kernel"])
def test_a_bad_argument_is_refused_by_name(name):
    y, s = data(30)
    bad = {"n_resamples": -1, "confidence_level": 1.5, "rng": "x", "bandwidth": 0, "kernel": "box"}
    with pytest.raises((ValueError, TypeError), match=name):
        reliability_curve(y, s, **{"n_resamples": 10, name: bad[name]})


@pytest.mark.slow
def test_each_replicate_has_its_own_bandwidth():
    # Three quarters of the scores are 1: the IQR of some resamples is 0, and their bandwidth is
    # a hundred times as large as others.
    rng = np.random.default_rng(7)
    n = 600
    s = np.where(rng.random(n) < 0.75, 1.0, 1 - rng.random(n) / 50)
    y = (rng.random(n) < s).astype(np.int64)
    curve = reliability_curve(y, s, n_resamples=150, rng=0)
    spy = Spy()
    drawn = spy.rows(
        fastece.bootstrap(y, s, estimator=spy, n_resamples=150, rng=0).bootstrap_distribution
    )
    scores = np.array([0.985, 0.992, 0.997])
    alone = np.array([reliability_curve(y[rows], s[rows])(scores) for rows in drawn])
    low, median, high = np.quantile(alone, [0.025, 0.5, 0.975], axis=0)
    assert curve.interval(scores)[0] == pytest.approx(low, abs=0.01)
    assert np.interp(scores, curve.score, curve.median) == pytest.approx(median, abs=0.01)
    assert curve.interval(scores)[1] == pytest.approx(high, abs=0.01)


@pytest.mark.parametrize("kernel", ["gaussian", "beta"])
def test_rows_equal_the_rows_that_the_kernel_averages_over(kernel):
    rng = np.random.default_rng(8)
    s = (np.arange(4000) + 0.5) / 4000
    h = 0.05
    curve = reliability_curve(rng.integers(0, 2, 4000), s, bandwidth=h, kernel=kernel)
    for x in (0.01, 0.06, 0.5, 0.97):
        k = np.array(
            [
                oracle.densities(np.array([x]), [one], [1], None, h, kernel, 0.0, 1.0)[0][0]
                for one in s[::20]
            ]
        )
        effective = 20 * k.sum() ** 2 / (k**2).sum()
        assert np.interp(x, curve.score, curve.rows) == pytest.approx(effective, rel=0.1), x


def test_a_curve_is_nan_where_there_are_no_scores():
    y = np.arange(200) % 2
    s = np.repeat([0.2, 0.7], 100)
    curve = reliability_curve(y, s, bandwidth=0.02, n_resamples=40, rng=0)
    silent = [0.05, 0.45, 0.95]
    assert np.isnan(curve(silent)).all()
    assert np.isnan(curve.interval(silent)).all()
    assert np.isfinite([curve(0.2), *curve.interval(0.2), curve(0.7)]).all()
    lines = str(curve).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["0.200", "0.700"]
    assert all(math.isnan(x["probability"]) and not x["supported"] for x in curve.points(silent))
    assert [row[-1] for row in curve.section(silent).table.rows] == ["no scores"] * 3
    plain = curve.to_dict()
    for name in ("probability", "lce", "low", "high", "median"):
        assert plain[name][len(curve.score) // 2] is None, name


@pytest.mark.parametrize("law", ["a sharp network", "heaps"])
def test_a_bayesian_curve_may_be_interpolated_where_the_scores_are(law):
    rng = np.random.default_rng(5)
    s = {
        "a sharp network": 1 - 10 ** -rng.uniform(0.2, 7, 3000),
        "heaps": np.where(
            rng.random(3000) < 0.5, rng.choice([1 / 3, 0.7, 1.0], 3000), rng.random(3000)
        ),
    }[law]
    y = rng.random(3000) < np.where(s > 0.9, 0.9 * s, s)
    curve = fastece.reliability_curve(y, s)
    sample = Sample(s, y.astype(np.uint8), None, 0.0, 1.0, np.arange(3000))
    draws = fastece.BayesCurve().curve_draws(sample, s)
    exact = draws.mean(axis=1), *np.quantile(draws, [0.025, 0.975], axis=1)
    for interpolated, values in zip((curve(s), *curve.interval(s)), exact, strict=True):
        assert np.abs(interpolated - values).mean() < 3e-4  # 8e-3 and 1e-3 between 501 even scores


def test_a_bayesian_curve_needs_no_resamples():
    y, s = data(60)
    curve = reliability_curve(y, s, estimator="ece_bayes")
    assert (curve.estimator, curve.bandwidth, curve.median) == ("BayesCurve()", None, None)
    assert curve.interval(0.5).low < curve(0.5) < curve.interval(0.5).high
    with pytest.raises(
        TypeError, match="bandwidth: is not a parameter of the estimator BayesCurve"
    ):
        reliability_curve(y, s, estimator="ece_bayes", bandwidth=0.1)
    assert reliability_curve(y, s, estimator="ece_bayes", norm=2).value > curve.value


def test_points_with_few_rows_near_are_marked():
    s = np.append(np.repeat(np.linspace(0.1, 0.4, 50), 4), 0.9)
    curve = fastece.reliability_curve(np.arange(201) % 3 == 0, s)
    marks = [row[-1] for row in curve.section([0.2, 0.9, 0.6]).table.rows]
    assert marks == ["", "few rows", "no scores"]


def test_scores_may_be_next_to_nothing():
    curve = fastece.reliability_curve(np.zeros(100, int), np.arange(100) * 1e-309)
    assert np.isfinite(curve.value).all()
