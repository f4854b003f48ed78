"""The choice of a map: the simplest within one standard error of the best, none included."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit

import fastece
from fastece.recalibration import METHODS, cross_fitting, recalibrate, recommend
from helpers.recalibration_cases import PROBLEMS, assert_probabilities, binary, classes

GROUPS = np.arange(300) // 7
CASES = [
    ("one column", {}),
    ("two columns", {"rng": 3}),
    ("three classes", {"cv": 3}),
    ("one column", {"groups": GROUPS}),
    ("three classes", {"groups": GROUPS, "sample_weight": np.arange(300) % 4}),
]
every_case = pytest.mark.parametrize(("problem", "options"), CASES)


def losses_of(y, p):
    """Log loss of each row, by a loop."""
    losses = []
    for label, row in zip(y.tolist(), p.tolist(), strict=True):
        chance = row[label] if isinstance(row, list) else (row if label else 1 - row)
        losses.append(-math.log(chance) if chance > 0 else math.inf)
    return losses


def mean_and_error(values, weights, groups):
    """Weighted mean and its standard error with independent groups, by loops."""
    total = sum(weights)
    mean = sum(w * x for w, x in zip(weights, values, strict=True)) / total
    sums = {}
    for w, x, group in zip(weights, values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + w / total * (x - mean)
    n = len(sums)
    return mean, math.sqrt(n / (n - 1) * sum(s * s for s in sums.values()))


@every_case
def test_auto_is_the_method_that_is_recommended(problem, options):
    data = PROBLEMS[problem](n=300)
    choice = recommend(data.y, data.X, **options)
    p = recalibrate(data.y, data.X, method="auto", **options)
    named = recalibrate(data.y, data.X, method=choice.method, **options)
    assert p.tobytes() == named.tobytes()
    assert p.tobytes() == recalibrate(data.y, data.X, **options).tobytes()


@every_case
def test_trials_and_choice_are_those_of_plain_loops(problem, options):
    data = PROBLEMS[problem](n=300)
    weights = options.get("sample_weight", np.ones(300)).tolist()
    used = [i for i in range(300) if weights[i] > 0]
    groups = options.get("groups", np.arange(300))[used].tolist()
    weights = [weights[i] for i in used]
    choice = recommend(data.y, data.X, **options)
    losses = {}
    for trial in choice.trials:
        p = recalibrate(data.y, data.X, method=trial.method, **options)
        losses[trial.method] = losses_of(data.y[used], p[used])
    means = {name: mean_and_error(x, weights, groups)[0] for name, x in losses.items()}
    best = min(means, key=means.get)
    near = []
    for trial in choice.trials:
        name = trial.method
        differences = [a - b for a, b in zip(losses[name], losses[best], strict=True)]
        excess, error = mean_and_error(differences, weights, groups)
        assert trial.log_loss == pytest.approx(means[name], rel=1e-12)
        assert trial.excess == pytest.approx(excess, rel=1e-9, abs=1e-15)
        assert trial.standard_error == pytest.approx(error, rel=1e-9, abs=1e-15)
        if excess <= error:
            near.append(name)
    assert choice.method == near[0]
    assert choice.n == len(used)
    assert METHODS[choice.method].title in choice.reason.lower().replace("platt", "Platt")


def test_rows_that_are_repeated_in_a_group_say_nothing_new():
    data = binary(n=150)
    once = recommend(data.y, data.X, rng=1, groups=np.arange(150))
    y, x, group = (np.repeat(values, 2, axis=0) for values in (data.y, data.X, np.arange(150)))
    twice = recommend(y, x, rng=1, groups=group)
    apart = recommend(y, x, rng=1, cv=2)
    assert twice.trials[0].standard_error == pytest.approx(once.trials[0].standard_error, rel=0.2)
    assert apart.trials[0].standard_error < 0.85 * twice.trials[0].standard_error


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["one column", "three classes"])
def test_calibrated_predictions_are_left_alone(problem):
    """Chance alone leads to a map in about 3 of 100 samples, and in 1 of 100 of more classes."""
    chosen = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        if problem == "one column":
            z = 1.5 * rng.standard_normal(400)
            y = (rng.random(400) < expit(z)).astype(int)
        else:
            z = 1.5 * rng.standard_normal((400, 3))
            y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        chosen.append(recommend(y, z, from_logits=True).method)
    assert chosen.count("none") >= 36


@pytest.mark.parametrize("shape", [(1000,), (1000, 4)])
def test_an_over_confident_model_gets_a_temperature(shape):
    rng = np.random.default_rng(1)
    z = rng.standard_normal(shape)
    if len(shape) == 1:
        y = (rng.random(1000) < expit(z)).astype(int)
    else:
        y = (z + rng.gumbel(size=shape)).argmax(axis=1)
    choice = recommend(y, 3 * z, from_logits=True)
    assert choice.method == "temperature"
    assert choice.trials[0].excess > 3 * choice.trials[0].standard_error


def test_a_map_that_says_0_is_not_chosen():
    """One event there makes the log loss infinite, whether or not these rows have it."""
    data = binary(n=300)
    for wrong in (True, False):
        certain = np.where(np.arange(300) == 7, abs(data.y[7] - wrong), data.X)
        choice = recommend(data.y, certain)
        assert "probabilities of 0" in choice.refused["none"]
        assert all(math.isfinite(trial.log_loss) for trial in choice.trials)
        assert choice.method != "none"
        # A row of weight 0 does not count.
        weight = (np.arange(300) != 7).astype(float)
        assert "none" not in recommend(data.y, certain, sample_weight=weight).refused


class Refusing(METHODS["matrix"]):
    """A map that refuses all rows."""

    def fit_rows(self, rows):
        raise fastece.InputError("X", f"has {rows.n_rows} rows, too few")


def test_a_method_that_refuses_is_named_with_its_reason(monkeypatch):
    data = classes(n=100)
    monkeypatch.setitem(METHODS, "matrix", Refusing)
    names = ("none", "matrix", "temperature")
    monkeypatch.setattr(cross_fitting, "CANDIDATES", names)
    choice = recommend(data.y, data.X)
    assert [trial.method for trial in choice.trials] == ["none", "temperature"]
    assert choice.refused == {"matrix": "has 80 rows, too few"}
    assert "matrix scaling cannot be used: has 80 rows, too few" in str(choice)
    assert_probabilities(recalibrate(data.y, data.X), data.X)


def test_rows_that_no_method_takes_are_refused():
    y = (np.arange(60) == 5).astype(int)
    for function in (recommend, recalibrate):
        with pytest.raises(ValueError, match=r"y_true without fold \d: must have labels of two"):
            function(y, np.linspace(0.1, 0.9, 60))


@pytest.mark.parametrize("function", [recommend, recalibrate])
def test_progress_counts_folds_of_all_methods(monkeypatch, function):
    """`recalibrate` fits the chosen one once more, as only losses of trials are kept."""
    data = binary(n=100)
    counts = []
    monkeypatch.setattr(cross_fitting, "progress_callbacks", [lambda *count: counts.append(count)])
    function(data.y, data.X, cv=3)
    n_methods = len(recommend(data.y, data.X).trials) + (function is recalibrate)
    assert counts[: 3 * n_methods] == [(k + 1, 3 * n_methods) for k in range(3 * n_methods)]


def test_only_warnings_of_the_chosen_method_are_given(recwarn):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = np.where(rng.random(200) < 0.9, 1.0 - y, y)  # labels contradict predictions
    x = x.clip(0.2, 0.8)
    choice = recommend(y, x)
    assert not recwarn.list
    recorded = []
    for method in ("auto", choice.method, "temperature"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recalibrate(y, x, method=method)
        recorded.append([str(warning.message) for warning in caught])
    assert recorded[0] == recorded[1]
    assert recorded[2]


def test_a_choice_prints_its_trials():
    data = binary(n=300)
    choice = recommend(data.y, data.X)
    page = str(choice)
    for trial in choice.trials:
        assert METHODS[trial.method].title in page
    assert choice.reason.split(":")[0] in page
    assert [line["method"] for line in choice.to_dict()["trials"]] == [
        trial.method for trial in choice.trials
    ]


def test_no_map_gives_probabilities_as_they_are():
    p = np.array([0.0, 1e-300, 0.3, 1.0])
    fitted = METHODS["none"]().fit(p, [0, 0, 1, 1])
    got = fitted.transform(p)
    assert got.tolist() == p.tolist()
    assert not np.shares_memory(got, p)
    logits = np.array([[0.0, -np.inf, 1.0], [2.0, 0.5, -800.0], [0.0, 0.0, 0.0]])
    q = METHODS["none"](from_logits=True).fit(logits, [0, 1, 2]).transform(logits)
    e = math.exp(1.0)
    np.testing.assert_allclose(q[0], [1 / (1 + e), 0, e / (1 + e)], rtol=1e-14)
    assert q[1, 2] == 0
