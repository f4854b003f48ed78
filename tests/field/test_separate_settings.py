"""Settings whose problems have rows of their own: several yes/no tasks, and predicted classes."""

import math
import re

import numpy as np
import pytest

import fastece
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


# The support of a confidence is [1/K, 1], which the problem of hits alone does not know.
@pytest.mark.parametrize("name", ["ece", "ece_a", "smooth_ece", "mmce", "brier_score"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_estimator_has_the_values_of_separate_calls(setting, name):
    y, p, rows_of, _ = SETTINGS[setting]
    each = fastece.ece(y, p, setting=setting, average=None, estimator=name)
    assert each.tolist() == [fastece.ece(*rows_of(k), estimator=name) for k in range(3)]


@pytest.mark.parametrize("name", ["ece_bayes", "ece", "ece_kde", "smooth_ece"])
def test_intervals_of_tasks_are_those_of_separate_calls(name):
    together = fastece.estimate(
        LABELS, PROB, setting="tasks", average=None, estimator=name, **DRAWS
    )
    for k in range(N_TASKS):
        alone = fastece.estimate(*rows_of_task(k), estimator=name, **DRAWS)
        assert together.value[k] == alone.value
        assert together.confidence_interval.low[k] == alone.confidence_interval.low
        assert together.confidence_interval.high[k] == alone.confidence_interval.high
        assert together.floor.mean[k] == alone.floor.mean


@pytest.mark.parametrize("name", ["adaptive", "ece", "ece_kde", "hosmer_lemeshow"])
def test_tests_of_tasks_are_those_of_separate_calls(name):
    together = fastece.calibration_test(
        LABELS, PROB, setting="tasks", average=None, estimator=name, **DRAWS
    )
    for k in range(N_TASKS):
        alone = fastece.calibration_test(*rows_of_task(k), estimator=name, **DRAWS)
        assert together.p_value[k] == alone.p_value
        assert together.null_distribution[k].tolist() == alone.null_distribution.tolist()


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


def test_top_labels_of_binary_scores_logits_and_percents():
    score = VECTORS[:, 1]
    hit = (CLASSES == 1).astype(int)
    two_columns = np.column_stack([1 - score, score])
    expected = fastece.ece(hit, two_columns, setting="top-label")
    logit = np.log(score / (1 - score))
    for p, options in (
        (score, {}),
        (logit, {"from_logits": True}),
        (100 * score, {"percent": True}),
    ):
        value = fastece.ece(hit, p, setting="top-label", **options)
        assert value == pytest.approx(expected, abs=1e-12)


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


def test_labels_of_several_tasks_name_the_setting():
    for labels in (LABELS, np.nan_to_num(LABELS), np.nan_to_num(LABELS).astype(int)):
        with pytest.raises(ValueError, match=r"for several yes/no tasks: setting='tasks'$"):
            fastece.ece(labels, PROB)


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
    "counts": lambda y, p, **options: fastece.ece(y, p, counts=np.ones(len(p), int), **options),
    "votes": lambda y, p, **options: fastece.ece(y, p, votes=np.ones(len(p), int), **options),
    "bca": lambda y, p, **options: fastece.bootstrap(y, p, method="bca", **options),
    "size": lambda y, p, **options: fastece.bootstrap(y, p, size=len(p) // 2, **options),
    "inversion": lambda y, p, **options: fastece.estimate(y, p, estimator="mmce", **options),
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_need_the_same_rows_refuse_the_setting(name, setting):
    y, p, _, _ = SETTINGS[setting]
    with pytest.raises(ValueError, match=f"setting.*{setting}|must be that of one problem"):
        REFUSED[name](y, p, setting=setting)


@pytest.mark.parametrize(
    ("labels", "prob", "message"),
    [
        (LABELS[:, :2], PROB, "y_true: must have the shape (n, T) of y_prob"),
        (LABELS[:, 0], PROB, "y_true: must have the shape (n, T) of y_prob"),
        (LABELS[:, 0], PROB[:, 0], "setting: 'tasks' needs y_prob of shape (n, T)"),
        (np.where(np.arange(3) == 1, math.nan, LABELS), PROB, "y_true: has no label of task 1"),
        (np.where(LABELS == 1, 2, LABELS), PROB, "y_true: labels must be from 0 to 1"),
        (LABELS[:, :0], PROB[:, :0], "y_true: must have a column for each task"),
    ],
)
def test_bad_tasks_are_refused(labels, prob, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fastece.ece(labels, prob, setting="tasks")


@pytest.mark.parametrize("setting", ["auto", "tasks"])
def test_a_list_of_arrays_of_scikit_learn_has_a_hint(setting):
    arrays = [np.column_stack([1 - PROB[:, k], PROB[:, k]]) for k in range(N_TASKS)]
    hint = "np.stack([q[:, 1] for q in y_prob], 1) with setting='tasks'"
    with pytest.raises(ValueError, match=re.escape(hint)):
        fastece.ece(LABELS, arrays, setting=setting)
    columns = np.stack([q[:, 1] for q in arrays], 1)
    expected = np.mean([plain_ece(*rows_of_task(k)) for k in range(N_TASKS)])
    assert fastece.ece(LABELS, columns, setting="tasks") == pytest.approx(expected, abs=1e-12)


def test_a_task_without_a_row_of_positive_weight_is_named():
    labels = np.nan_to_num(LABELS)
    weights = np.where(np.arange(len(labels)) < 100, 1.0, 0.0)
    labels[:100, 2] = math.nan
    with pytest.raises(ValueError, match=r"^sample_weight: .* where task 2 has a label"):
        fastece.ece(labels, PROB, setting="tasks", sample_weight=weights)


def test_tasks_in_another_order_than_the_predictions_are_refused():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(LABELS, columns=["skin", "liver", "heart"])
    prob = pd.DataFrame(PROB, columns=["liver", "skin", "heart"])
    with pytest.raises(ValueError, match=r"^y_true: must have its columns in the order of y_prob"):
        fastece.ece(labels, prob, setting="tasks")
    other_names = labels.set_axis(["a", "b", "c"], axis=1)
    value = fastece.ece(other_names, prob, setting="tasks")
    assert value == fastece.ece(LABELS, PROB, setting="tasks")


def test_a_bad_value_of_a_task_is_named_by_row_and_task():
    prob = PROB.copy()
    row = int(np.flatnonzero(~np.isnan(LABELS[:, 2]))[7])
    prob[row, 2] = 1.5
    with pytest.raises(ValueError, match=re.escape(f"y_prob[{row}, 2]")):
        fastece.ece(LABELS, prob, setting="tasks")
