"""The answer: value, interval and p-value, by every way and for every kind of data."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import binomtest

import fastece
from fastece import KDE, Binned, estimate
from fastece.inference.cell_curves import cell_curve
from fastece.inference.estimate import Estimate
from helpers.answer_cases import LEVELS, Stand, cells_for, check_laws, tiny_classes, tiny_data
from helpers.probes import OneBin
from helpers.resample_cases import VARIANTS, binary, classes, same_bits, two_models

WAYS = {"ece": "ece", "convex": "ece_ac", "kde": "ece_kde", "labels": OneBin(), "stand": Stand()}


def ends(result):
    return np.array(result.confidence_interval)


@pytest.mark.parametrize("estimator", [*VARIANTS, KDE(), KDE(norm=2.0)])
def test_value_equals_ece_and_interval_excludes_0_by_the_p_value(estimator):
    for seed in range(8):
        data = binary(40 + seed, seed)
        result = estimate(*data, estimator=estimator, n_resamples=199)
        assert result.value == fastece.ece(*data, estimator=estimator)
        assert result.method == "test inversion"
        intervals = [result.interval(level) for level in LEVELS]
        for level, (low, high) in zip(LEVELS, intervals, strict=True):
            assert 0 <= low <= high <= 1 + 1e-12
            assert (low > 0) == (result.p_value <= round(1 - level, 12))
        assert np.all(np.diff([low for low, _ in intervals]) <= 0)
        assert np.all(np.diff([high for _, high in intervals]) >= 0)


@pytest.mark.parametrize("name", ["ece", "ece_a", "ece_c", "ece_ac"])
@pytest.mark.parametrize("setting", ["auto", "classwise", 1])
def test_p_values_of_bins_equal_the_calibration_test(name, setting):
    for data in (binary(60), classes(60)):
        options = {"estimator": name, "setting": setting, "n_resamples": 199, "rng": 7}
        result = estimate(*data, **options)
        test = fastece.calibration_test(*data, **options)
        assert result.p_value == pytest.approx(test.p_value, abs=1e-12)
        assert (result.key, result.setting, result.n) == (test.key, test.setting, test.n)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*do the rows belong together")
def test_laws_hold_for_bins_of_tiny_data_of_every_kind():
    rng = np.random.default_rng(100)
    for i in range(100):
        y, p = tiny_data(rng)
        setting = ["binary", "classwise", "confidence"][i % 3]
        if i % 3:
            y, p = tiny_classes(rng)
        estimator = Binned(
            n_bins=[15, 1, 3, "sqrt"][rng.integers(4)], edges=["uniform", "quantile"][i % 2],
            mapping=["hard", "convex"][rng.integers(2)], norm=[1, 2, np.inf][rng.integers(3)],
        )  # fmt: skip
        weight = [None, rng.random(y.size) + 0.1, rng.integers(1, 4, y.size)][rng.integers(3)]
        cells = cells_for(y, p, estimator, 39, key=i, sample_weight=weight, setting=setting)
        check_laws(cell_curve(cells), (i, estimator, setting, y, p, weight))


def test_laws_hold_for_densities_of_tiny_data():
    rng = np.random.default_rng(0)
    for i in range(24):
        y, p = tiny_data(rng)
        cells = cells_for(y, p, KDE(bandwidth=[0.05, 0.2, 1.0][i % 3]), 39, key=i)
        check_laws(cell_curve(cells), (i, y, p))


@pytest.mark.filterwarnings("ignore:.*do the rows belong together")
def test_probability_of_calibration_follows_from_the_bayes_factor():
    rng = np.random.default_rng(0)
    probabilities = []
    for _ in range(40):
        p = rng.random(300)
        one = estimate(rng.random(300) < p, p)
        odds = np.exp(one._parts[0].log_bayes_factor)
        assert one.probability_calibrated == pytest.approx(1 / (1 + odds), rel=1e-12)
        probabilities.append(one.probability_calibrated)
    assert np.mean(probabilities) > 0.7
    assert estimate(rng.random(300) < p, p**3).probability_calibrated < 1e-6
    each = estimate(*classes(120), setting="classwise", average=None).probability_calibrated
    assert each.shape == (3,)
    assert ((each > 0) & (each < 1)).all()
    assert np.isnan(estimate(*binary(80), estimator="ece").probability_calibrated)
    sure = np.repeat([0.001, 0.999], 1000)  # whose Bayes factor is more than a number holds
    assert 0 <= estimate(np.arange(2000) % 2, sure).probability_calibrated < 1e-300


@pytest.mark.parametrize("way", ["kde", "ece"])
def test_estimates_have_equal_bits_for_any_workers(way):
    for data in (binary(300), classes(120)):
        options = {"estimator": WAYS[way], "n_resamples": 256, "setting": "classwise"}
        one = estimate(*data, **options)
        assert same_bits(ends(one), ends(estimate(*data, n_jobs=3, **options)))
        with ThreadPoolExecutor(2) as pool:
            assert same_bits(ends(one), ends(estimate(*data, executor=pool, **options)))
    assert same_bits(ends(one), ends(estimate(*data, rng=0, **options)))


@pytest.mark.parametrize("way", WAYS)
def test_each_class_has_an_estimate(way):
    true, prob = classes(80)
    options = {"estimator": WAYS[way], "n_resamples": 99}
    every = estimate(true, prob, setting="classwise", average=None, **options)
    assert every.value.shape == (3,)
    assert np.shape(every.confidence_interval) == (2, 3)
    assert every.interval(0.5).low.shape == (3,)
    mean = estimate(true, prob, setting="classwise", **options)
    assert mean.value == pytest.approx(every.value.mean())
    assert type(mean.confidence_interval.low) is float
    one = estimate(true, prob, average=None, **options)  # there is one value only
    assert type(one.value) is float
    assert estimate(true, prob, setting=1, **options).value == pytest.approx(every.value[1])
    assert len(str(every).splitlines()) == 5


@pytest.mark.slow
def test_scaled_weights_and_rows_of_weight_0_change_no_estimate():
    y, p = binary(80)
    w = np.random.default_rng(0).integers(0, 4, 80)
    weighted = w > 0
    for name in ("ece", "ece_ac", "ece_kde", OneBin()):
        options = {"estimator": name, "n_resamples": 99}
        one = estimate(y, p, sample_weight=w, **options)
        for scale in (0.25, 1e300):
            other = estimate(y, p, sample_weight=w * scale, **options)
            assert ends(other) == pytest.approx(ends(one), rel=1e-9)
        other = estimate(y[weighted], p[weighted], sample_weight=w[weighted], **options)
        assert same_bits(ends(one), ends(other))


def test_posterior_gives_value_and_interval():
    data = binary(100)
    result = estimate(*data, estimator=Stand())
    assert (result.method, result.p_value) == ("posterior", None)
    problems = fastece.data.reading.read_problems(*data)
    posterior = Stand().posterior(problems.samples())
    assert result.value == posterior.value
    assert tuple(result.interval(0.8)) == pytest.approx(posterior.interval(0.8))
    assert "p-value" not in str(result)
    assert "posterior" in str(result)


def test_estimates_are_plain_values_and_can_be_pickled():
    result = estimate(*binary(50), estimator="ece", n_resamples=99, confidence_level=0.8)
    assert isinstance(result, Estimate)
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    assert again.interval(0.99) == result.interval(0.99)
    plain = result.to_dict()
    assert plain["confidence_interval"] == list(result.confidence_interval)
    assert {"value", "p_value", "method", "estimator", "setting", "n"} <= set(plain)
    assert result.confidence_interval == result.interval(0.8)


def test_undefined_values_have_no_interval():
    result = estimate(*binary(30), estimator="ece", norm=np.inf, min_count=1e9, n_resamples=9)
    assert np.isnan([result.value, result.p_value, *result.confidence_interval]).all()


def test_label_curves_agree_with_cell_curves():
    # One bin is |mean gap|: the hypotheses are the same, from other bins.
    data = binary(400)
    drawn = estimate(*data, estimator=OneBin(), n_resamples=999)
    told = estimate(*data, estimator="ece", n_bins=1, n_resamples=999)
    assert drawn.value == pytest.approx(told.value)
    assert drawn.p_value == pytest.approx(told.p_value, abs=1e-12)
    assert ends(drawn) == pytest.approx(ends(told), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("ece", lambda s: s), ("ece_ac", lambda s: s), ("ece_kde", lambda s: s),
        ("ece", lambda s: s - 0.4 * s * (1 - s)), ("ece_ac", lambda s: s - 0.8 * s * (1 - s)),
    ],
)  # fmt: skip
def test_intervals_hold_the_true_error(name, curve):
    # The truth comes from 20 000 other scores in the same bins: too high or too low by 3 %
    # at most. If 93 % are covered, fewer than 82 of 100 are once in 3300 runs of the five.
    rng = np.random.default_rng(5)
    scores = rng.beta(4, 1.5, 20_000)
    covered = 0
    for i in range(100):
        s = rng.beta(4, 1.5, 250)
        y = rng.random(250) < curve(s)
        low, high = estimate(y, s, estimator=name, n_resamples=199, rng=i).confidence_interval
        # every row is off in the same direction, so bins hide nothing
        truth = np.mean(np.abs(curve(scores) - scores))
        covered += low <= truth <= high
    assert covered >= 82


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 10])
def test_density_of_equal_scores_finds_nothing(rows):
    y = np.arange(rows) % 2
    p = np.full(rows, 0.7)
    options = {"estimator": "ece_kde", "n_resamples": 199, "rng": 0}
    result = estimate(y, p, **options)
    assert result.p_value > 0.1
    assert result.confidence_interval.low == 0


@pytest.mark.parametrize(("n", "hits"), [(2000, 1800), (20_000, 18_000), (20_000, 3000)])
def test_interval_of_a_constant_score_is_binomial(n, hits):
    y = np.arange(n) < hits
    low, high = estimate(y, np.full(n, 0.5), estimator="ece").confidence_interval
    exact = binomtest(hits, n).proportion_ci(0.95)
    ends = sorted(abs(end - 0.5) for end in (exact.low, exact.high))
    assert (low, high) == pytest.approx(ends, abs=0.03 * (ends[1] - ends[0]))


@pytest.mark.parametrize("estimator", ["ece", "ece_a", "ece_debiased"])
def test_intervals_end_at_the_largest_possible_error(estimator):
    assert (
        estimate(np.ones(50), np.full(50, 0.5), estimator=estimator).confidence_interval.high
        <= 0.5 + 1e-9
    )


def test_interval_of_a_single_row_is_wide():
    for hit in (0, 1):
        low, high = estimate([hit], [1.0], estimator="ece").confidence_interval
        assert 0 <= low < high <= 1


def test_p_value_of_exactly_alpha_excludes_0():
    rng = np.random.default_rng(0)
    for seed in range(40):
        data = binary(40, seed)
        result = estimate(*data, estimator="ece", n_resamples=99, rng=rng)
        level = 1 - result.p_value  # as it is rounded
        assert result.interval(level).low > 0


def test_posteriors_need_no_replicates_and_tables_name_the_method():
    data = binary(40)
    alone = estimate(*data, n_resamples=0)
    assert alone.to_dict() == {**estimate(*data).to_dict(), "n_resamples": 0}
    with pytest.raises(ValueError, match=r"n_resamples: must be at least 1 for Binned"):
        estimate(*data, estimator=["ece_bayes", "ece"], n_resamples=0)
    both = estimate(*data, estimator=["ece_bayes", "ece"], n_resamples=39)
    table = both.to_dict()
    assert table["method"] == ["posterior", "test inversion"]
    assert table["p_value"] == [both["ece_bayes"].to_dict()["p_value"], both["ece"].p_value]
    assert table["p_value"][0] is None
    line = next(x for x in str(both).splitlines() if "ece_bayes" in x)
    assert line.split()[-2:] == ["-", "posterior"]
    assert "p value" not in str(alone)
    assert (alone.n_resamples, both["ece"].n_resamples) == (0, 39)
    classwise = {"setting": "classwise", "average": None, "n_resamples": 0}
    table = estimate(*classes(40), estimator=["ece_bayes"], **classwise).to_dict()
    assert (table["class"], table["p_value"]) == ([0, 1, 2], [None] * 3)


def test_results_hold_a_reduced_number_of_replicates(monkeypatch):
    monkeypatch.setattr("fastece.inference.cells.MAX_GAPS", 15 * 250)
    for n_bins, count in ((15, 250), (30, 199), (3, 999)):
        result = estimate(*binary(50), estimator="ece", n_bins=n_bins, n_resamples=999)
        assert result.n_resamples == count
        assert round(result.p_value * (count + 1), 9) % 1 == 0


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_errors_without_rows_have_the_interval_0_to_1(norm):
    true, a, b = two_models(40)
    options = {"threshold": 1.0, "norm": norm, "n_resamples": 39}
    result = estimate(true, a, estimator="ece", **options)
    assert (result.value, result.p_value, *result.confidence_interval) == (0, 1, 0, 1)
    assert result.value == fastece.ece(true, a, threshold=1.0, norm=norm)
    options["estimator"] = "ece"
    difference = fastece.compare(true, a, b, method="mover", **options)
    assert (difference.p_value, *difference.confidence_interval) == (1, -1, 1)
    assert fastece.compare(true, a, a, method="mover", **options).confidence_interval == (0, 0)


@pytest.mark.parametrize("name", ["ece", "ece_ac"])
@pytest.mark.parametrize("setting", ["binary", "classwise"])
def test_labels_do_not_depend_on_rows_drawn_at_once(monkeypatch, name, setting):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(2), 150)
    data = {"y_true": rng.integers(0, 2, 150), "y_prob": p, "sample_weight": rng.random(150)}
    options = {**data, "setting": setting, "estimator": name, "n_resamples": 64}
    at_once = estimate(**options)
    monkeypatch.setattr("fastece.resampling.outcome_sums.ROWS_AT_ONCE", 70)
    in_parts = estimate(**options)
    assert in_parts.p_value == at_once.p_value
    assert in_parts.confidence_interval == pytest.approx(at_once.confidence_interval, rel=1e-9)


def test_intervals_need_less_than_3_times_the_memory_of_the_data():
    rng = np.random.default_rng(6)
    p = rng.random(2**20)
    y = (rng.random(p.size) < p).astype(int)
    tracemalloc.start()
    estimate(y, p, estimator="ece", n_resamples=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * (y.nbytes + p.nbytes)  # all labels at once: 6 times


@pytest.mark.slow
def test_floor_is_the_error_by_chance_alone():
    # One score and one bin have the mean size of a normal number, and its quantile 0.975.
    n = 2000
    s = 0.3
    deviation = np.sqrt(s * (1 - s) / n)
    one = fastece.estimate(np.arange(n) % 2, np.full(n, s), estimator="ece", n_bins=1)
    assert one.floor.mean == pytest.approx(np.sqrt(2 / np.pi) * deviation, rel=0.05)
    assert one.floor.high == pytest.approx(1.96 * deviation, rel=0.06)
    assert one.to_dict()["floor"] == list(one.floor)
    # A posterior has binomial laws of its cells, as if labels were drawn.
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    w = 1 + rng.random(200)
    options = {"estimator": "ece_bayes", "setting": "classwise", "sample_weight": w}
    y = rng.integers(3, size=200)
    null = fastece.calibration_test(y, p, n_resamples=99, **options).null_distribution
    floor = fastece.estimate(y, p, **options).floor
    assert floor.mean == pytest.approx(null.mean(), rel=0.06)
    assert floor.high == pytest.approx(np.quantile(null, 0.95), rel=0.12)
    each = fastece.estimate(y, p, average=None, **options)
    assert each.floor.mean.shape == (3,)
    assert (each.floor.mean < each.floor.high).all()


def test_intervals_of_certain_predictions_hold_the_binomial_intervals():
    # Clopper and Pearson's interval of the share of rows that are wrong: 2 of 6, 0 of 6, 6 of 6.
    for wrong, ends in ((2, (0.0433, 0.7772)), (0, (0.0, 0.4593)), (6, (0.5407, 1.0))):
        s = np.arange(6) % 2
        y = np.where(np.arange(6) < wrong, 1 - s, s)
        low, high = estimate(y, s).confidence_interval
        assert low <= ends[0] + 1e-4
        assert high >= ends[1] - 1e-4
        parts = fastece.direction(y, s)
        shares = [np.mean((s == k) & (y != s)) for k in (1, 0)]
        for share, (start, end) in zip(
            shares, (parts.over_interval, parts.under_interval), strict=True
        ):
            assert start <= share <= end


def test_posteriors_of_users_need_effect_for_groups():
    y = np.arange(40) % 2
    p = np.linspace(0.1, 0.9, 40)
    with pytest.raises(TypeError, match=r"^estimator: must have a posterior that takes .* effect"):
        estimate(y, p, estimator=Stand(), groups=np.arange(40) // 2)


# Errors of calibrated labels are drawn so often; the standard error of their mean is about 2 % of
# it. Five standard errors are exceeded in 1 of 1.7 million tests by chance.
N_CALIBRATED = 400


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("scores", ["spread", "sharp", "tied"])
def test_the_floor_of_a_density_is_the_mean_error_of_calibrated_labels(scores, norm):
    rng = np.random.default_rng(7)
    draw_scores = {
        "spread": lambda: rng.random(200),
        "sharp": lambda: rng.beta(0.15, 0.15, 400),
        "tied": lambda: rng.choice([0.1, 0.3, 0.5, 0.8], 300),
    }
    prob = draw_scores[scores]()
    estimator = fastece.KDE(norm=norm)
    labels = (rng.random((N_CALIBRATED, prob.size)) < prob).astype(int)
    result = fastece.estimate(labels[0], prob, estimator=estimator, n_resamples=1999)
    errors = np.array([fastece.ece(row, prob, estimator=estimator) for row in labels])
    standard_error = errors.std(ddof=1) / np.sqrt(N_CALIBRATED)
    # The floor is a mean of 1999 errors with a noise of its own.
    deviation = (result.floor.mean - errors.mean()) / (standard_error * np.sqrt(1.2))
    assert abs(deviation) < 5
    # The share of errors above a quantile of 95 % is binomial: 5 % and five standard errors.
    assert np.mean(errors > result.floor.high) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / N_CALIBRATED)


def test_the_floor_of_several_densities_is_the_mean_of_their_floors():
    rng = np.random.default_rng(8)
    prob = rng.dirichlet(np.full(3, 0.3), 300)
    labels = np.array([rng.choice(3, p=row) for row in prob])
    options = {"setting": "classwise", "estimator": "ece_kde", "n_resamples": 499}
    of_mean = fastece.estimate(labels, prob, **options).floor.mean
    of_classes = fastece.estimate(labels, prob, average=None, **options).floor.mean
    assert of_mean == pytest.approx(of_classes.mean(), rel=1e-9)
    of_tables = fastece.estimate(
        labels, prob, setting="top-label", estimator="ece_kde", n_resamples=499
    )
    alone = fastece.estimate(
        labels, prob, setting="top-label", estimator="ece_kde", n_resamples=499, average=None
    )
    shares = np.bincount(prob.argmax(1)) / 300
    # Problems with rows of their own draw labels of their own.
    assert of_tables.floor.mean == pytest.approx(alone.floor.mean @ shares, rel=0.03)
