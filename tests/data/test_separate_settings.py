"""Settings whose problems have rows of their own: several yes/no tasks, and predicted classes."""

import math
import re
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit, softmax

import fastece
from fastece.resampling.results import BootstrapResult
from helpers.field_samples import plain_ece

N_TASKS = 3
N_CLASSES = 3
DRAWS = {"n_resamples": 49, "rng": 0}


def draw_tasks(n=240, missing=0.3, seed=0):
    """Draw probabilities (n, T) and labels with gaps, which depend on each other in a row."""
    rng = np.random.default_rng(seed)
    prob = rng.random((n, N_TASKS))
    labels = (rng.random((n, 1)) < prob**1.5).astype(float)
    labels[rng.random(prob.shape) < missing] = np.nan
    return labels, prob


def draw_classes(n=300, seed=0):
    """Draw class vectors (n, K) of a model that is over-confident, and classes."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(N_CLASSES), n)
    labels = np.array([rng.choice(N_CLASSES, p=row) for row in (prob + 0.2) / (1 + 0.6)])
    return labels, prob


LABELS, PROB = draw_tasks()
CLASSES, VECTORS = draw_classes()
PREDICTED = VECTORS.argmax(axis=1)
CONFIDENCE = VECTORS.max(axis=1)
HITS = (PREDICTED == CLASSES).astype(int)
SHARES = np.bincount(PREDICTED) / PREDICTED.size


def rows_of_task(k):
    """Return the labels and probabilities of the rows that have a label of a task."""
    is_labelled = ~np.isnan(LABELS[:, k])
    return LABELS[is_labelled, k].astype(int), PROB[is_labelled, k]


def rows_of_class(k):
    """Return the hits and confidences of a predicted class."""
    return HITS[k == PREDICTED], CONFIDENCE[k == PREDICTED]


# Arguments, the rows of each problem, and the shares of problems in the mean.
SETTINGS = {
    "tasks": (LABELS, PROB, rows_of_task, np.full(N_TASKS, 1 / N_TASKS)),
    "top-label": (CLASSES, VECTORS, rows_of_class, SHARES),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_errors_are_those_of_plain_numpy_and_their_mean(setting):
    y, p, rows_of, shares = SETTINGS[setting]
    expected = [plain_ece(*rows_of(k)) for k in range(3)]
    each = fastece.ece(y, p, setting=setting, average=None)
    assert each == pytest.approx(expected, abs=1e-12)
    assert fastece.ece(y, p, setting=setting) == pytest.approx(shares @ expected, abs=1e-12)


# --- the law: a problem has the numbers of its own rows ------------------------------------------

LOGITS = np.random.default_rng(3).normal(size=(240, N_CLASSES)) * 1.5
LOGITS[:40] *= 40  # whose probabilities are rounded to 0 and 1
WEIGHTS = np.random.default_rng(4).integers(0, 4, 240).astype(float)


def numbers_of(result, names):
    """Read attributes of a result, each as an array; "low" and "high" are of its interval."""
    interval = getattr(result, "confidence_interval", None)
    ends = {} if interval is None else {"low": interval.low, "high": interval.high}
    return [np.asarray(ends[x] if x in ends else getattr(result, x)) for x in names]


def values(name):
    """Make the call of an estimator's value."""
    return lambda y, p, **options: [fastece.ece(y, p, estimator=name, **options)]


def estimates(name):
    """Make the call of an estimator's interval, with what chance alone shows."""

    def call(y, p, **options):
        result = fastece.estimate(y, p, estimator=name, **DRAWS, **options)
        numbers = numbers_of(result, ("value", "low", "high"))
        return [*numbers, *(np.asarray(x) for x in (result.floor.mean, result.floor.high))]

    return call


def p_values_of(name):
    """Make the call of a test of calibration."""

    def call(y, p, **options):
        result = fastece.calibration_test(y, p, estimator=name, **DRAWS, **options)
        return numbers_of(result, ("value", "p_value", "null_distribution"))

    return call


def directions(name):
    """Make the call of the parts of an error, with all intervals."""

    def call(y, p, **options):
        result = fastece.direction(y, p, estimator=name, **DRAWS, **options)
        numbers = numbers_of(result, ("value", "over", "under", "mean_gap", "low", "high"))
        for interval in (result.over_interval, result.under_interval, result.mean_gap_interval):
            numbers += [np.asarray(interval.low), np.asarray(interval.high)]
        return numbers

    return call


def asymptotic_tests(statistic):
    """Make the call of a p-value in closed form, which has one number for each problem."""

    def call(y, p, **options):
        options.pop("average", None)
        return [fastece.CumulativeError(statistic).asymptotic_p_value(y, p, **options)]

    return call


def pictures(function, fields):
    """Make the call of a picture, of which several problems have a list."""

    def call(y, p, **options):
        options.pop("average", None)
        result = function(y, p, **options)
        if not isinstance(result, list):
            return [np.asarray(getattr(result, name)) for name in fields]
        return [[np.asarray(getattr(each, name)) for each in result] for name in fields]

    return call


def sweeps(y, p, **options):
    """Compute the errors of a density for some bandwidths."""
    return [fastece.KDE().bandwidth_sweep(y, p, [0.02, 0.2], **options)]


NAMES = (*fastece.ESTIMATORS, *fastece.estimators.table.STATISTICS)
LAW = {
    **{f"ece {name}": values(name) for name in NAMES},
    **{
        f"estimate {name}": estimates(name)
        for name in ("ece_bayes", "ece", "ece_a", "ece_kde", "ece_debiased", "mmce")
    },
    **{
        f"test {name}": p_values_of(name)
        for name in ("adaptive", "ece", "ece_kde", "ecce_r", "skce", "hosmer_lemeshow")
    },
    **{f"direction {name}": directions(name) for name in ("ece", "ece_a", "ece_kde", "ece_bayes")},
    **{f"asymptotic {name}": asymptotic_tests(name) for name in ("range", "max")},
    "diagram": pictures(
        partial(fastece.reliability_diagram, n_bins="sqrt"), ("count", "score", "frequency")
    ),
    "curve": pictures(fastece.reliability_curve, ("score", "probability", "low", "high", "value")),
    "sweep": sweeps,
}  # fmt: skip
FORMS = {
    "probabilities": {},
    "logits": {"from_logits": True},
    "percents": {"percent": True},
}


def scores_of(form, prob):
    """Write the probabilities of the law's data in some form."""
    return {"probabilities": prob, "logits": LOGITS, "percents": 100 * prob}[form]


def law_data(setting):
    """Make labels, logits, probabilities, the rows of each problem, and the setting of one."""
    rng = np.random.default_rng(5)
    if setting == "tasks":
        prob = expit(LOGITS)
        labels = (rng.random((240, 1)) < prob**1.5).astype(float)
        labels[rng.random(prob.shape) < 0.3] = np.nan
        return labels, prob, [~np.isnan(labels[:, k]) for k in range(N_TASKS)], "binary"
    prob = softmax(LOGITS, axis=1)
    labels = np.array([rng.choice(N_CLASSES, p=row) for row in (prob + 0.2) / 1.6])
    rows = [LOGITS.argmax(axis=1) == k for k in range(N_CLASSES)]
    # The support of a confidence is [1/K, 1], so the rows of a predicted class keep all columns.
    return labels, prob, rows, "confidence"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*few distinct", "ignore:.*contradict")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("part", range(4))
def test_each_problem_has_the_numbers_of_its_own_rows(part, setting):
    """Each number of a part of the table, with probabilities, logits, percents and weights."""
    labels, prob, rows_of_problems, setting_of_one = law_data(setting)
    is_task = setting == "tasks"
    for k, name in enumerate(list(LAW)[part::4]):
        form, weights = (("probabilities", None), ("logits", WEIGHTS), ("percents", WEIGHTS))[k % 3]
        options = FORMS[form]
        scores = scores_of(form, prob)
        together = LAW[name](
            labels, scores, setting=setting, average=None, sample_weight=weights, **options
        )
        for i, rows in enumerate(rows_of_problems):
            alone = LAW[name](
                labels[rows, i].astype(int) if is_task else labels[rows],
                scores[rows, i] if is_task else scores[rows],
                setting=setting_of_one,
                sample_weight=None if weights is None else weights[rows],
                **options,
            )
            for number, expected in zip(together, alone, strict=True):
                np.testing.assert_allclose(number[i], expected, 1e-12, 1e-12, err_msg=name)


@pytest.mark.parametrize("function", [fastece.brier_decomposition, fastece.score_decomposition])
@pytest.mark.parametrize("setting", SETTINGS)
def test_components_are_the_mean_of_those_of_each_problem(setting, function):
    labels, prob, rows_of_problems, setting_of_one = law_data(setting)
    shares = np.full(N_TASKS, 1 / N_TASKS)
    parts = []
    for k, rows in enumerate(rows_of_problems):
        is_task = setting == "tasks"
        y = labels[rows, k].astype(int) if is_task else labels[rows]
        parts.append(function(y, prob[rows, k] if is_task else prob[rows], setting=setting_of_one))
        if not is_task:
            shares[k] = rows.mean()
    mean = function(labels, prob, setting=setting)
    for name in ("score", "uncertainty"):
        expected = shares @ [getattr(part, name) for part in parts]
        assert getattr(mean, name) == pytest.approx(expected, abs=1e-12)


# --- replicates ----------------------------------------------------------------------------------


class CountRecorder:
    """An estimator that only writes down how often each row was drawn."""

    needs_sorted = False
    is_calibration_error = False

    def __init__(self):
        self.counts = []

    def prepare(self, *_):
        return None

    def evaluate(self, _, c):
        self.counts.append(np.asarray(c, int))
        return 0.0


def draw_counts(order, n_resamples):
    """Draw how often each row counts in each replicate (R, n); rows are drawn in some order."""
    recorder = CountRecorder()
    n = len(order)
    y, p = np.arange(n) % 2, np.full(n, 0.5)
    fastece.bootstrap(y, p, estimator=recorder, n_resamples=n_resamples, rng=0, n_jobs=1)
    counts = np.empty((n_resamples, n), int)
    counts[:, order] = recorder.counts[:n_resamples]  # the value of the data comes last
    return counts


# Two of 40 rows are predicted to be class 2, and the same have a label of task 2.
SPARSE_VECTORS = np.random.default_rng(6).dirichlet([5, 5, 0.1], 40)
SPARSE_VECTORS[:2] = [[0.1, 0.2, 0.7], [0.2, 0.25, 0.55]]
SPARSE_CLASSES = np.random.default_rng(7).integers(0, 3, 40)
SPARSE_LABELS = np.where(
    (np.arange(40) < 2)[:, None] | (np.arange(3) < 2),
    np.random.default_rng(8).integers(0, 2, (40, 3)),
    np.nan,
)


@pytest.mark.parametrize(
    ("setting", "name", "has_weights"),
    [("tasks", "ece", False), ("tasks", "brier_score", True), ("tasks", "ecce_r", False),
     ("top-label", "ece_a", True), ("top-label", "mmce", False), ("top-label", "aurc", True)],
)  # fmt: skip
def test_replicates_are_the_values_of_the_rows_drawn(setting, name, has_weights):
    n_resamples = 99
    weights = WEIGHTS[:40] + 1 if has_weights else None
    if setting == "tasks":
        y, p = SPARSE_LABELS, SPARSE_VECTORS
        rows_of_problems = [np.flatnonzero(~np.isnan(y[:, k])) for k in range(3)]
    else:
        y, p = SPARSE_CLASSES, SPARSE_VECTORS
        rows_of_problems = [np.flatnonzero(p.argmax(axis=1) == k) for k in range(3)]
    # Rows are drawn in the order in which they appear in the problems.
    order = np.array(list(dict.fromkeys(np.concatenate(rows_of_problems).tolist())))
    counts = draw_counts(order, n_resamples)
    weight = np.ones(40) if weights is None else weights
    expected = np.full((3, n_resamples), np.nan)
    shares = np.zeros((3, n_resamples))
    for k, rows in enumerate(rows_of_problems):
        outcome = y[rows, k].astype(int) if setting == "tasks" else (y[rows] == k).astype(int)
        score = p[rows, k] if setting == "tasks" else p[rows].max(axis=1)
        for r in range(n_resamples):
            drawn = np.repeat(np.arange(rows.size), counts[r, rows])
            shares[k, r] = weight[rows][drawn].sum()
            if drawn.size:
                expected[k, r] = fastece.ece(
                    outcome[drawn], score[drawn], estimator=name, sample_weight=weight[rows][drawn]
                )
    assert 5 < np.isnan(expected[2]).sum() < 60  # replicates without a row
    options = {"setting": setting, "estimator": name, "sample_weight": weights}
    options |= {"n_resamples": n_resamples, "rng": 0}
    each = fastece.bootstrap(y, p, average=None, **options)
    np.testing.assert_allclose(each.bootstrap_distribution, expected, rtol=1e-12, atol=1e-12)
    mean = fastece.bootstrap(y, p, **options)
    if setting == "tasks":
        expected_mean = expected.mean(axis=0)
    else:
        expected_mean = (np.nan_to_num(expected) * shares).sum(axis=0) / shares.sum(axis=0)
    np.testing.assert_allclose(mean.bootstrap_distribution, expected_mean, rtol=1e-12, atol=1e-12)
    for result, distribution in (*zip(lines_of(each), expected, strict=True),
                                 (mean, expected_mean)):  # fmt: skip
        there = distribution[~np.isnan(distribution)]
        low, high = np.quantile(there, [0.025, 0.975])
        percentile = result.interval(method="percentile")
        assert (percentile.low, percentile.high) == pytest.approx((low, high), abs=1e-12)
        assert result.standard_error == pytest.approx(there.std(ddof=1), abs=1e-12)
        assert result.bias == pytest.approx(there.mean() - result.value, abs=1e-12)


class OneLine(NamedTuple):
    """The numbers of one problem of a bootstrap of several."""

    result: BootstrapResult
    k: int

    def __getattr__(self, name):
        return getattr(self.result, name)[self.k]

    def interval(self, method):
        interval = self.result.interval(method=method)
        return type(interval)(interval.low[self.k], interval.high[self.k])


def lines_of(result):
    """Return the numbers of each problem of a bootstrap."""
    return [OneLine(result, k) for k in range(len(result.value))]


def test_replicates_without_rows_are_counted_in_a_sentence():
    options = {"setting": "top-label", "n_resamples": 99, "rng": 0}
    each = fastece.bootstrap(SPARSE_CLASSES, SPARSE_VECTORS, average=None, **options)
    missing = int(np.isnan(each.bootstrap_distribution[2]).sum())
    sentence = f"{missing} of 99 replicates drew no row of predicted class 2"
    assert sentence in str(each)
    assert np.isfinite(each.confidence_interval.low).all()
    mean = fastece.bootstrap(SPARSE_CLASSES, SPARSE_VECTORS, **options)
    assert "drew no row" not in str(mean)
    assert np.isfinite(mean.bootstrap_distribution).all()
    tasks = fastece.bootstrap(SPARSE_LABELS, SPARSE_VECTORS, **options | {"setting": "tasks"})
    missing = int(np.isnan(tasks.bootstrap_distribution).sum())
    assert f"{missing} of 99 replicates drew no row of a task" in str(tasks)


def test_a_task_that_no_replicate_has_is_nan():
    labels = SPARSE_LABELS.copy()
    labels[1, 2] = np.nan  # a single row is left
    for seed in range(20):  # a row is not drawn with the probability 0.36
        result = fastece.bootstrap(
            labels, SPARSE_VECTORS, setting="tasks", average=None, n_resamples=1, rng=seed
        )
        if np.isnan(result.bootstrap_distribution[2, 0]):
            break
    assert "1 of 1 replicates drew no row of task 2" in str(result)
    for end in result.confidence_interval:
        assert np.isnan(end).tolist() == [False, False, True]


# --- means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_single_problem_is_its_own_mean(setting):
    y, p = (LABELS[:, :1], PROB[:, :1])
    if setting == "top-label":
        y, p = CLASSES[PREDICTED == 1], VECTORS[PREDICTED == 1]
    mean = fastece.estimate(y, p, setting=setting, estimator="ece", **DRAWS)
    each = fastece.estimate(y, p, setting=setting, average=None, estimator="ece", **DRAWS)
    assert mean.value == each.value[0]
    assert mean.confidence_interval.high == each.confidence_interval.high[0]


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_mean_has_an_interval_around_its_error(setting):
    y, p, _, _ = SETTINGS[setting]
    for name in ("ece_bayes", "ece", "ece_kde"):
        result = fastece.estimate(y, p, setting=setting, estimator=name, **DRAWS)
        low, high = result.confidence_interval
        assert 0 <= low < result.value < high < 1
        if name == "ece":
            assert result.value == fastece.ece(y, p, setting=setting)


def test_equal_tasks_have_the_interval_of_one():
    labels = np.repeat(LABELS[:, :1], N_TASKS, axis=1)
    prob = np.repeat(PROB[:, :1], N_TASKS, axis=1)
    several = fastece.estimate(labels, prob, setting="tasks", n_resamples=0)
    single = fastece.estimate(*rows_of_task(0), n_resamples=0)
    width = np.diff(several.confidence_interval)
    assert several.value == pytest.approx(single.value, abs=0.02)
    assert width > 0.8 * np.diff(single.confidence_interval)


def test_bootstrap_draws_the_rows_of_all_tasks_together():
    result = fastece.bootstrap(LABELS, PROB, setting="tasks", estimator="brier_score", **DRAWS)
    each = fastece.bootstrap(
        LABELS, PROB, setting="tasks", estimator="brier_score", average=None, **DRAWS
    )
    mean = each.bootstrap_distribution.mean(axis=0)
    assert result.bootstrap_distribution == pytest.approx(mean, abs=1e-12)
    # Labels of a row depend on each other, so the mean varies more than independent tasks would.
    apart = np.linalg.norm(each.bootstrap_distribution.std(axis=1)) / N_TASKS
    assert result.bootstrap_distribution.std() > apart


def test_bootstrap_draws_the_shares_of_predicted_classes():
    # The Brier score of confidences is a mean over rows, so predicted classes change nothing.
    options = {"estimator": "brier_score", "n_resamples": 999, "rng": 0}
    by_class = fastece.bootstrap(CLASSES, VECTORS, setting="top-label", **options)
    all_rows = fastece.bootstrap(CLASSES, VECTORS, setting="confidence", **options)
    assert by_class.value == pytest.approx(all_rows.value, abs=1e-12)
    assert by_class.standard_error == pytest.approx(all_rows.standard_error, rel=0.1)


@pytest.mark.parametrize("setting", SETTINGS)
def test_weights_equal_repeated_rows(setting):
    y, p, _, _ = SETTINGS[setting]
    weights = np.random.default_rng(1).integers(0, 3, len(p))
    repeated = fastece.ece(
        np.repeat(y, weights, axis=0), np.repeat(p, weights, axis=0), setting=setting
    )
    value = fastece.ece(y, p, setting=setting, sample_weight=weights)
    assert value == pytest.approx(repeated, abs=1e-12)


def test_huge_weights_have_the_shares_of_ordinary_ones():
    weights = np.random.default_rng(1).random(len(CLASSES))
    options = {"setting": "top-label", "n_resamples": 9, "rng": 0}
    ordinary = fastece.bootstrap(CLASSES, VECTORS, sample_weight=weights, **options)
    huge = fastece.bootstrap(CLASSES, VECTORS, sample_weight=1.7e308 * weights, **options)
    expected = pytest.approx(ordinary.bootstrap_distribution, abs=1e-12)
    assert huge.bootstrap_distribution == expected
    assert huge.value == pytest.approx(ordinary.value, abs=1e-12)


def test_a_direction_names_each_problem():
    result = fastece.direction(CLASSES, VECTORS, setting="top-label", average=None, **DRAWS)
    assert "predicted class 2" in str(result)
    assert result.n == len(CLASSES)


def test_top_labels_of_binary_scores_logits_and_percents():
    score = VECTORS[:, 1]
    hit = (CLASSES == 1).astype(int)
    two_columns = np.column_stack([1 - score, score])
    options_of_all = {"setting": "top-label", "average": None}
    expected = [
        fastece.ece(hit, two_columns, estimator=name, **options_of_all)
        for name in ("ece", "c_statistic")
    ]
    logit = np.log(score / (1 - score))
    for p, options in (
        (score, {}),
        (logit, {"from_logits": True}),
        (100 * score, {"percent": True}),
    ):
        values_of_form = [
            fastece.ece(hit, p, estimator=name, **options_of_all, **options)
            for name in ("ece", "c_statistic")
        ]
        np.testing.assert_allclose(values_of_form, expected, rtol=0, atol=1e-12)


def test_a_class_that_is_never_predicted_has_no_value():
    vectors = np.column_stack([VECTORS, np.zeros(len(VECTORS))])
    names = ["ant", "bee", "cow", "dog"]
    result = fastece.estimate(
        np.array(names)[CLASSES], vectors, setting="top-label", labels=names, average=None
    )
    assert result.value.size == N_CLASSES
    assert "predicted class 'cow'" in str(result)
    assert "dog" not in str(result)


def test_tasks_have_the_names_of_their_columns():
    pd = pytest.importorskip("pandas")
    columns = ["liver", "skin", "heart"]
    labels = pd.DataFrame(LABELS, columns=columns)
    prob = pd.DataFrame(PROB, columns=columns)
    result = fastece.bootstrap(labels, prob, setting="tasks", average=None, **DRAWS)
    assert "task 'liver'" in str(result)
    diagrams = fastece.reliability_diagram(labels, prob, setting="tasks")
    assert [diagram.setting for diagram in diagrams] == [f"task {name!r}" for name in columns]


def test_labels_of_tasks_are_left_out_by_value_too():
    labels = np.where(np.isnan(LABELS), -1, LABELS).astype(int)
    value = fastece.ece(labels, PROB, setting="tasks", ignore_label=-1)
    assert value == fastece.ece(LABELS, PROB, setting="tasks")


def test_labels_of_tasks_may_be_lists_with_none():
    labels = [[None if math.isnan(y) else int(y) for y in row] for row in LABELS.tolist()]
    value = fastece.ece(labels, PROB.tolist(), setting="tasks")
    assert value == fastece.ece(LABELS, PROB, setting="tasks")


def test_groups_of_rows_widen_the_interval():
    labels, prob = draw_tasks(60, missing=0.0)
    labels, prob = np.repeat(labels, 5, axis=0), np.repeat(prob, 5, axis=0)
    groups = np.repeat(np.arange(60), 5)
    options = {"setting": "tasks", "estimator": "ece", **DRAWS}
    without = fastece.estimate(labels, prob, **options).confidence_interval
    with_groups = fastece.estimate(labels, prob, groups=groups, **options).confidence_interval
    assert np.diff(with_groups) > 1.3 * np.diff(without)


# --- refusals -----------------------------------------------------------------------------------


REFUSED = {
    "compare": lambda y, p, **options: fastece.compare(y, p, p, **options),
    "report": fastece.calibration_report,
    "slices": lambda y, p, **options: fastece.slices(y, p, by=np.arange(len(p)) % 2, **options),
    "direction": fastece.direction,
    "validate": fastece.validate,
    "plot": fastece.reliability_plot,
    "rows_needed": lambda y, p, **options: fastece.rows_needed(y, p, width=0.1, **options),
    "risk_coverage": fastece.decisions.risk_coverage,
    "threshold": fastece.decisions.choose_threshold,
    "stream": lambda y, p, **options: fastece.Accumulator(3, **options).update(y, p),
    "inversion": lambda y, p, **options: fastece.estimate(y, p, estimator="mmce", **options),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_functions_that_need_the_same_rows_refuse_the_setting(setting):
    y, p, _, _ = SETTINGS[setting]
    for call in REFUSED.values():
        with pytest.raises(ValueError, match=f"setting.*{setting}|must be that of one problem"):
            call(y, p, setting=setting)


@pytest.mark.parametrize("setting", ["auto", "tasks"])
def test_a_list_of_arrays_of_scikit_learn_has_a_hint(setting):
    arrays = [np.column_stack([1 - PROB[:, k], PROB[:, k]]) for k in range(N_TASKS)]
    hint = "np.stack([q[:, 1] for q in y_prob], 1) with setting='tasks'"
    with pytest.raises(ValueError, match=re.escape(hint)):
        fastece.ece(LABELS, arrays, setting=setting)
    columns = np.stack([q[:, 1] for q in arrays], 1)
    expected = np.mean([plain_ece(*rows_of_task(k)) for k in range(N_TASKS)])
    assert fastece.ece(LABELS, columns, setting="tasks") == pytest.approx(expected, abs=1e-12)


def test_tasks_in_another_order_than_the_predictions_are_refused():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(LABELS, columns=["skin", "liver", "heart"])
    prob = pd.DataFrame(PROB, columns=["liver", "skin", "heart"])
    with pytest.raises(ValueError, match=r"^y_true: must have its columns in the order of y_prob"):
        fastece.ece(labels, prob, setting="tasks")
    other_names = labels.set_axis(["a", "b", "c"], axis=1)
    value = fastece.ece(other_names, prob, setting="tasks")
    assert value == fastece.ece(LABELS, PROB, setting="tasks")
