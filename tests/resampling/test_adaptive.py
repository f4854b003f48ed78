"""The adaptive test: the smallest p-value of several statistics under the same draws."""

import numpy as np
import pytest
import reference

import fastece
from fastece import calibration_test
from helpers.probes import HitCode
from helpers.resample_cases import classes, near


def rows(n, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.9, n)
    return rng.random(n) < p**power, p


def tied(n):
    y, p = rows(n)
    return y, np.round(p, 1)


CASES = {
    "plain": (*rows(40), None),
    "off": (*rows(40, 1, 2.0), None),
    "ties, zeros and ones": (*tied(40), None),
    "three scores": (np.arange(40) % 3 == 0, np.arange(40) % 3 / 3 + 0.1, None),
    "weights": (*rows(40, 2), np.random.default_rng(3).uniform(0.5, 1.5, 40)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_statistics_and_p_values_equal_the_reference(name):
    y, p, w = CASES[name]
    options = {"sample_weight": w, "n_resamples": 99, "rng": 3}
    result = calibration_test(y, p, **options)
    codes = calibration_test(y, p, estimator=HitCode(), **options).null_distribution
    draws = [y.astype(int), *(codes.astype(np.int64)[:, None] >> np.arange(y.size) & 1)]
    w = w if w is None else w.tolist()
    each = np.array([reference.score_statistics(p.tolist(), z.tolist(), w) for z in draws])
    ece = [fastece.ece(z, p, sample_weight=w) for z in draws]
    table = np.column_stack([each, ece])
    thresholds = table - 1e-9 * (1 + table)
    p_values = (table[None] >= thresholds[:, None]).mean(1)
    smallest = p_values.min(1)
    assert [x.name for x in result.components] == ["slope", "smooth", "ece"]
    assert [x.statistic for x in result.components] == near(table[0])
    assert [x.p_value for x in result.components] == near(p_values[0])
    assert result.value == near(smallest[0])
    assert result.null_distribution == near(smallest[1:])
    assert result.p_value == near(np.mean(smallest <= smallest[0] + 1e-12))


def test_order_of_rows_and_scale_of_weights_change_no_statistic():
    y, p = tied(300)
    w = np.random.default_rng(1).gamma(1.0, 1.0, 300)
    order = np.random.default_rng(2).permutation(300)
    values = []
    for rows_in_order, scale in ((slice(None), 1.0), (order, 1.0), (order, 8.0)):
        data = y[rows_in_order], p[rows_in_order]
        weight = scale * w[rows_in_order]
        components = calibration_test(*data, sample_weight=weight, n_resamples=9).components
        values.append([component.statistic for component in components])
    assert values[1] == near(values[0])
    assert values[2] == near(values[0])


@pytest.mark.slow
def test_cells_of_many_rows_change_statistics_little():
    y, p = rows(4000)
    components = calibration_test(y, p, n_resamples=9).components
    expected = reference.score_statistics(p.tolist(), y.tolist())
    assert [x.statistic for x in components[:2]] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("setting", ["classwise", "confidence"])
def test_adaptive_bits_are_equal_for_any_threads_and_parts(setting, monkeypatch):
    data = classes(300, 3)
    options = {"setting": setting, "n_resamples": 199, "average": None}
    at_once = calibration_test(*data, n_jobs=1, **options)
    monkeypatch.setattr("fastece.resampling.adaptive.MAX_SUMS", 10**5)
    in_parts = calibration_test(*data, n_jobs=2, **options)
    assert in_parts.to_dict() == at_once.to_dict()
    assert len(at_once.components) == 3  # classes, or statistics


def test_macro_average_tests_the_mean_statistic_of_classes():
    data = classes(200, 3)
    options = {"setting": "classwise", "n_resamples": 99}
    each = calibration_test(*data, average=None, **options)
    both = calibration_test(*data, **options)
    means = np.mean([[x.statistic for x in one] for one in each.components], axis=0)
    assert [x.statistic for x in both.components] == near(means)
    assert each.p_value.shape == (3,)
    assert each.null_distribution.shape == (3, 99)
    one = calibration_test(*data, setting=1, n_resamples=99)
    assert [x.statistic for x in one.components] == near([x.statistic for x in each.components[1]])
    assert [*each.to_frame().columns][:3] == ["class", "p_value", "slope_p_value"]


def test_adaptive_with_groups_of_one_row_equals_the_test_without():
    y, p = rows(100)
    plain, alone = (calibration_test(y, p, n_resamples=99, groups=g) for g in (None, range(100)))
    assert alone.p_value == plain.p_value
    assert alone.components == plain.components


def test_adaptive_in_a_list_shares_draws_and_bins_with_ece():
    y, p = rows(200)
    both = calibration_test(y, p, estimator=["adaptive", "ece"], n_bins=7, n_resamples=99)
    assert both["adaptive"].p_value == calibration_test(y, p, n_bins=7, n_resamples=99).p_value
    last = both["adaptive"].components[-1]
    assert (last.statistic, last.p_value) == (both["ece"].value, both["ece"].p_value)
    assert np.array_equal(both["adaptive"].band.low, both["ece"].band.low, equal_nan=True)
    assert str(calibration_test(y, p, n_bins=7, n_resamples=9)).startswith("adaptive(n_bins=7), ")
    assert both["ece"].components is None


def test_sure_scores_have_no_slope():
    right = calibration_test([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=99)
    wrong = calibration_test([0, 1, 1], [1.0, 0.0, 0.0], n_resamples=99)
    assert (right.p_value, wrong.p_value) == (1, 1 / 100)
    assert wrong.components[0].statistic == 0


def test_adaptive_refuses_bad_arguments_by_name():
    y, p = rows(20)
    with pytest.raises(TypeError, match=r"^bandwidth: is not a parameter of"):
        calibration_test(y, p, bandwidth=0.1)
    with pytest.raises(ValueError, match=r"^n_bins: "):
        calibration_test(y, p, n_bins=0)
    with pytest.raises(ValueError, match=r"^estimator: must be a known name, got 'adaptive'"):
        fastece.estimate(y, p, estimator="adaptive")


@pytest.mark.slow
def test_a_slope_among_rare_events_is_found():
    # The test rejects 77 of 100 such samples, "ece" alone 43 (400 samples): fewer than 20 of 40
    # have a probability of 2e-4.
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(-3.1, 1.2, 1000)
        p = 1 / (1 + np.exp(-x))
        frequency = 1 / (1 + np.exp(1 - 0.65 * x))
        rejected += (
            calibration_test(rng.random(1000) < frequency, p, n_resamples=199).p_value <= 0.05
        )
    assert rejected >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights", "class by class"])
def test_the_level_is_exact(name):
    # Of 300 samples fewer than 5 or more than 28 are rejected with a probability of 8e-4.
    rng = np.random.default_rng(4)
    rejected = 0
    for i in range(300):
        p = rng.beta(0.2, 0.3, 150)
        options = {}
        if name == "weights":
            p = np.round(p, 1)
            options["sample_weight"] = rng.gamma(1.0, 1.0, 150)
        elif name == "class by class":
            p = rng.dirichlet([0.4, 0.7, 1.0], 150)
            options["setting"] = "classwise"
        y = (
            rng.random(150) < p
            if p.ndim == 1
            else (p.cumsum(1)[:, :2] < rng.random((150, 1))).sum(1)
        )
        rejected += (
            calibration_test(y, p, n_resamples=99, rng=i, n_jobs=1, **options).p_value <= 0.05
        )
    assert 5 <= rejected <= 28
