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


@pytest.mark.parametrize("name", CASES)
def test_statistics_and_p_values_are_those_of_the_reference(name):
    y, p, w = CASES[name]
    options = {"sample_weight": w, "n_resamples": 99, "rng": 3}
    found = calibration_test(y, p, **options)
    codes = calibration_test(y, p, estimator=HitCode(), **options).null_distribution
    draws = [y.astype(int), *(codes.astype(np.int64)[:, None] >> np.arange(y.size) & 1)]
    w = w if w is None else w.tolist()
    each = np.array([reference.score_statistics(p.tolist(), z.tolist(), w) for z in draws])
    ece = [fastece.ece(z, p, sample_weight=w) for z in draws]
    table = np.column_stack([each, ece])
    least = table - 1e-9 * (1 + table)
    p_values = (table[None] >= least[:, None]).mean(1)
    smallest = p_values.min(1)
    assert [x.name for x in found.components] == ["slope", "smooth", "ece"]
    assert [x.statistic for x in found.components] == near(table[0])
    assert [x.p_value for x in found.components] == near(p_values[0])
    assert found.value == near(smallest[0])
    assert found.null_distribution == near(smallest[1:])
    assert found.p_value == near(np.mean(smallest <= smallest[0] + 1e-12))


def test_statistics_do_not_depend_on_the_order_of_rows_or_the_scale_of_weights():
    y, p, w = *tied(300), np.random.default_rng(1).gamma(1.0, 1.0, 300)
    order = np.random.default_rng(2).permutation(300)
    found = [
        calibration_test(y[at], p[at], sample_weight=c * w[at], n_resamples=9).components
        for at, c in ((slice(None), 1.0), (order, 1.0), (order, 8.0))
    ]
    values = [[x.statistic for x in one] for one in found]
    assert values[1] == near(values[0])
    assert values[2] == near(values[0])


def test_many_rows_are_summed_up_in_cells_without_much_loss():
    y, p = rows(4000)
    found = calibration_test(y, p, n_resamples=9).components
    wanted = reference.score_statistics(p.tolist(), y.tolist())
    assert [x.statistic for x in found[:2]] == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize("setting", ["classwise", "confidence"])
def test_bits_do_not_depend_on_threads_and_parts(setting, monkeypatch):
    data, options = classes(300, 3), {"setting": setting, "n_resamples": 199, "average": None}
    whole = calibration_test(*data, n_jobs=1, **options)
    monkeypatch.setattr("fastece.resampling.adaptive.MAX_SUMS", 10**5)
    parts = calibration_test(*data, n_jobs=2, **options)
    assert parts.to_dict() == whole.to_dict()
    assert len(whole.components) == 3  # classes, or statistics


def test_classes_share_the_draws_and_their_mean_is_tested():
    data, options = classes(200, 3), {"setting": "classwise", "n_resamples": 99}
    each = calibration_test(*data, average=None, **options)
    both = calibration_test(*data, **options)
    means = np.mean([[x.statistic for x in one] for one in each.components], axis=0)
    assert [x.statistic for x in both.components] == near(means)
    assert each.p_value.shape == (3,)
    assert each.null_distribution.shape == (3, 99)
    one = calibration_test(*data, setting=1, n_resamples=99)
    assert [x.statistic for x in one.components] == near([x.statistic for x in each.components[1]])
    assert [*each.to_frame().columns][:3] == ["class", "p_value", "slope_p_value"]


def test_groups_of_one_row_are_the_test_without_groups():
    y, p = rows(100)
    plain, alone = (calibration_test(y, p, n_resamples=99, groups=g) for g in (None, range(100)))
    assert alone.p_value == plain.p_value
    assert alone.components == plain.components


def test_it_stands_in_a_list_and_takes_the_bins_of_its_error():
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


def test_bad_arguments_are_named():
    y, p = rows(20)
    with pytest.raises(TypeError, match=r"^bandwidth: is not a parameter of"):
        calibration_test(y, p, bandwidth=0.1)
    with pytest.raises(ValueError, match=r"^n_bins: "):
        calibration_test(y, p, n_bins=0)
    with pytest.raises(ValueError, match=r"^estimator: must be a known name, got 'adaptive'"):
        fastece.estimate(y, p, estimator="adaptive")


def test_a_slope_among_rare_events_is_found():
    # Of 400 such samples the test rejects 77 of 100, that of "ece" alone 43: fewer than 20 of 40
    # has a probability of 2e-4.
    rejected = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(-3.1, 1.2, 1000)
        p, frequency = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(1 - 0.65 * x))
        rejected += (
            calibration_test(rng.random(1000) < frequency, p, n_resamples=199).p_value <= 0.05
        )
    assert rejected >= 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sharp", "ties", "weights", "class by class"])
def test_the_level_is_exact(name):
    # Outside of 3.2 to 7.1 % of 1500 samples with a probability of 1e-3, in each case.
    rng, rejected = np.random.default_rng(4), 0
    for i in range(1500):
        p, options = rng.beta(0.2, 0.3, 150), {}
        if name == "ties":
            p = np.round(p, 1)
        elif name == "weights":
            options["sample_weight"] = rng.gamma(1.0, 1.0, 150)
        elif name == "class by class":
            p, options["setting"] = rng.dirichlet([0.4, 0.7, 1.0], 150), "classwise"
        y = (
            rng.random(150) < p
            if p.ndim == 1
            else (p.cumsum(1)[:, :2] < rng.random((150, 1))).sum(1)
        )
        rejected += (
            calibration_test(y, p, n_resamples=99, rng=i, n_jobs=1, **options).p_value <= 0.05
        )
    assert 0.032 <= rejected / 1500 <= 0.071
