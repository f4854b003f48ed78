"""recalibrate: every row is transformed by a map that has not seen it."""

import numpy as np
import pandas
import pytest

from fastece.recalibration import PlattScaling, TemperatureScaling, cross_fitting, recalibrate
from helpers.recalibration_cases import (
    METHODS,
    PROBLEMS,
    assert_probabilities,
    binary,
    classes,
    probabilities,
)

# Calls of `Recorder`.
CALLS = []


class Recorder:
    """Platt scaling that keeps its calls."""

    def __init__(self):
        self.inner = PlattScaling()

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        CALLS.append(["fit", np.array(X), np.array(y), sample_weight])
        self.inner.fit(X, y, sample_weight)
        return self

    def transform(self, X):  # noqa: N803
        CALLS.append(["transform", np.array(X)])
        return self.inner.transform(X)


def folds_of(y, x, **options):
    """(rows of the fit, rows transformed) of each fold, which the distinct scores tell."""
    CALLS.clear()
    recalibrate(y, x, method=Recorder(), **options)
    keys = {row.tobytes(): i for i, row in enumerate(np.asarray(x, dtype=float))}
    asked = [
        (call[0], np.array([keys[row.tobytes()] for row in np.asarray(call[1], dtype=float)]))
        for call in CALLS
    ]
    assert [kind for kind, _ in asked] == ["fit", "transform"] * (len(asked) // 2)
    return [(asked[i][1], asked[i + 1][1]) for i in range(0, len(asked), 2)]


def distinct(problem, n=300):
    """Probabilities of which no two rows are equal, labels, and weights."""
    data = PROBLEMS[problem](n=n, seed=4)
    shift = 1e-4 * np.random.default_rng(11).standard_normal(data.logits.shape)
    return probabilities(data.logits + shift), data.y, data.w


@pytest.mark.parametrize(
    ("problem", "cv"), [("one column", 2), ("two columns", 5), ("three classes", 10)]
)
def test_every_row_is_transformed_once_by_a_fit_to_the_other_folds(problem, cv):
    x, y, _ = distinct(problem)
    folds = folds_of(y, x, cv=cv, rng=3)
    assert len(folds) == cv
    for fit, transformed in folds:
        assert not set(fit) & set(transformed)
        assert len(fit) + len(transformed) == len(y)
        assert len(set(fit)) == len(fit)
    assert sorted(np.concatenate([t for _, t in folds])) == list(range(len(y)))


def test_folds_are_shuffled_by_the_generator():
    x, y, _ = distinct("one column")
    one, again, other = (
        [tuple(sorted(t)) for _, t in folds_of(y, x, rng=rng)] for rng in (1, 1, 2)
    )
    assert one == again
    assert one != other
    ordered = [t for _, t in folds_of(y, x, rng=1)]
    assert any(np.ptp(t) > len(t) for t in ordered)  # no runs of neighbours
    default = [tuple(sorted(t)) for _, t in folds_of(y, x)]
    assert default == [tuple(sorted(t)) for _, t in folds_of(y, x, rng=0)]
    assert default != one


@pytest.mark.parametrize("labels", ["integers", "strings"])
def test_groups_stay_together(labels):
    x, y, _ = distinct("one column", n=400)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 40, 400) * 7 - 3
    names = groups if labels == "integers" else [f"patient {g}" for g in groups]
    folds = folds_of(y, x, groups=names, rng=2)
    assert len(folds) == 5
    homes = [set(groups[t]) for _, t in folds]
    assert sum(map(len, homes)) == len(set(groups))
    for fit, t in folds:
        assert not set(groups[fit]) & set(groups[t])
    sizes = [len(t) for _, t in folds]
    assert min(sizes) > 40  # of 80 on average
    shares = [np.mean(y[t]) for _, t in folds]
    assert max(abs(s - np.mean(y)) for s in shares) < 0.15


@pytest.mark.parametrize(
    ("name", "problem"), [(name, list(PROBLEMS)[i % 3]) for i, name in enumerate(METHODS)]
)
def test_each_fold_is_mapped_by_a_fit_to_the_others(name, problem):
    x, y, w = distinct(problem)
    q = recalibrate(y, x, method=name, cv=3, rng=5, sample_weight=w)
    assert_probabilities(q, x)
    for fit, mapped in folds_of(y, x, cv=3, rng=5, sample_weight=w):
        model = METHODS[name]().fit(x[fit], y[fit], w[fit])
        np.testing.assert_allclose(q[mapped], model.transform(x[mapped]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["temperature", "isotonic", "scaling_binning"])
def test_the_same_seed_gives_the_same_bits(name):
    data = classes(n=100)
    first = recalibrate(data.y, data.X, method=name, cv=2, rng=4)
    assert first.tobytes() == recalibrate(data.y, data.X, method=name, cv=2, rng=4).tobytes()
    assert (first != recalibrate(data.y, data.X, method=name, cv=2, rng=5)).any()


def test_folds_are_drawn_by_a_generator():
    data = classes(n=100)
    generator = np.random.default_rng(4)
    q = recalibrate(data.y, data.X, method="platt", rng=generator)
    assert_probabilities(q, data.X)
    assert (q != recalibrate(data.y, data.X, method="platt", rng=generator)).any()


@pytest.mark.parametrize("name", ["beta", "vector", "curve"])
def test_logits_are_passed_on(name):
    data = binary(n=150)
    q = recalibrate(data.y, data.logits, method=name, from_logits=True, cv=2, rng=1)
    assert_probabilities(q, data.logits)
    if name not in ("vector", "matrix"):
        expected = recalibrate(data.y, data.X, method=name, cv=2, rng=1)
        np.testing.assert_allclose(q, expected, rtol=0, atol=1e-7)
    model = METHODS[name](from_logits=True)
    same = recalibrate(data.y, data.logits, method=model, from_logits=True, cv=2, rng=1)
    np.testing.assert_array_equal(same, q)


class Share:
    """An object with `fit` and `transform` alone: no parameters, nothing inherited."""

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002, N803
        self.share_ = np.average(y, weights=sample_weight)
        return self

    def transform(self, X):  # noqa: N803
        return np.full(len(X), self.share_)


class Halved(PlattScaling):
    """A class of the table with a fit of its own."""

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        super().fit(X, y, sample_weight)
        self.slope_ /= 2
        return self


@pytest.mark.parametrize("kind", [Share, Halved])
def test_an_object_of_another_class_is_fitted_to_the_folds(kind):
    x, y, w = distinct("one column")
    q = recalibrate(y, x, method=kind(), rng=1, sample_weight=w)
    for fit, t in folds_of(y, x, rng=1):
        want = kind().fit(x[fit], y[fit], w[fit]).transform(x[t])
        np.testing.assert_allclose(q[t], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda x: np.column_stack([1 - x, x]),
            r"method.transform\(X\): must have the shape of X, ",
        ),
        (lambda x: x * np.nan, r"method.transform\(X\)\[0\] is nan|method.transform\(X\).*nan"),
        (lambda x: x + 2, r"method.transform\(X\): probabilities must lie in \[0, 1\]"),
    ],
)
def test_answers_of_an_object_that_are_no_probabilities_are_refused(answer, message):
    class Other(Share):
        def transform(self, X):  # noqa: N803
            return answer(X)

    x, y, _ = distinct("one column")
    with pytest.raises(ValueError, match=message):
        recalibrate(y, x, method=Other())


@pytest.mark.parametrize("problem", ["two columns", "three classes"])
def test_labels_of_text(problem):
    """`fit` takes them as scikit-learn sorts them; else columns must be named after them."""
    x, y, _ = distinct(problem)
    names = np.array(["bad", "good", "so-so"])[y]
    want = recalibrate(y, x, method="platt")
    with pytest.raises(ValueError, match=r"is unknown, found 'bad', 'good'.*; pass numbers of cl"):
        recalibrate(names, x, method="platt")
    frame = pandas.DataFrame(x, columns=["bad", "good", "so-so"][: x.shape[1]])
    np.testing.assert_array_equal(recalibrate(names, frame, method="platt"), want)
    model = PlattScaling().fit(x, names)
    np.testing.assert_array_equal(model.transform(x), PlattScaling().fit(x, y).transform(x))


def test_progress_counts_the_folds(monkeypatch):
    data = binary(n=100)
    counts = []
    monkeypatch.setattr(cross_fitting, "progress_callbacks", [lambda *count: counts.append(count)])
    recalibrate(data.y, data.X, method="platt", cv=3)
    assert counts == [(1, 3), (2, 3), (3, 3)]


def test_an_object_is_not_changed():
    data = binary(n=100)
    model = TemperatureScaling()
    recalibrate(data.y, data.X, method=model)
    assert not hasattr(model, "temperature_")
    fitted = TemperatureScaling().fit(data.X, data.y)
    before = fitted.temperature_
    recalibrate(data.y, data.X**3, method=fitted)
    assert fitted.temperature_ == before
