"""The same numbers as scikit-learn, and as betacal and netcal where these are there."""

import numpy as np
import pytest

from helpers.recalibration_cases import METHODS, binary, classes

NEAR = {"rtol": 0, "atol": 1e-6}


def answering(response, k):
    """A classifier whose decision values or probabilities are its features."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    def fit(self, x, y, sample_weight=None):  # noqa: ARG001
        self.classes_ = np.arange(k)
        return self

    def answer(self, x):  # noqa: ARG001
        return x[:, 0] if x.shape[1] == 1 else x

    parts = {"fit": fit, response: answer}
    return type("Model", (ClassifierMixin, BaseEstimator), parts)()


def calibrated(method, x, y, w, new, response="decision_function"):
    """Probabilities of scikit-learn's CalibratedClassifierCV, fitted to all rows at once."""
    from sklearn.calibration import CalibratedClassifierCV

    model = answering(response, len(np.unique(y)))
    columns, fresh = (z[:, None] if z.ndim == 1 else z for z in (x, new))
    cv = [(np.arange(len(y)), np.arange(len(y)))]
    fitted = CalibratedClassifierCV(model, method=method, cv=cv, ensemble=True)
    q = fitted.fit(columns, y, sample_weight=w).predict_proba(fresh)
    return q[:, 1] if x.ndim == 1 else q


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_with_smooth_targets_is_the_sigmoid_of_scikit_learn(weighted):
    """Its optimiser stops at gradients of 1e-6 of the sum, hence the tolerance of parameters."""
    calibration = pytest.importorskip("sklearn.calibration")
    data = binary()
    w = data.w if weighted else None
    a, b = calibration._sigmoid_calibration(data.logits, data.y, w)
    model = METHODS["platt"](from_logits=True, smooth=True).fit(data.logits, data.y, w)
    assert (model.slope_, model.intercept_) == pytest.approx((-a, -b), abs=1e-6)
    q = calibrated("sigmoid", data.logits, data.y, w, data.new_logits)
    np.testing.assert_allclose(model.transform(data.new_logits), q, **NEAR)


@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_is_that_of_scikit_learn(weighted):
    pytest.importorskip("sklearn", "1.8")
    data = classes(k=4)
    w = data.w if weighted else None
    model = METHODS["temperature"](from_logits=True).fit(data.logits, data.y, w)
    q = calibrated("temperature", data.logits, data.y, w, data.new_logits)
    np.testing.assert_allclose(model.transform(data.new_logits), q, rtol=0, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_is_that_of_scikit_learn(weighted):
    isotonic = pytest.importorskip("sklearn.isotonic")
    data = binary()
    w = data.w if weighted else None
    their = isotonic.IsotonicRegression(out_of_bounds="clip").fit(data.X, data.y, w)
    got = METHODS["isotonic"]().fit(data.X, data.y, w)
    for new in (data.X, data.new, np.linspace(0, 1, 500)):
        np.testing.assert_allclose(got.transform(new), their.predict(new), rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_beta_is_that_of_betacal():
    """Its optimiser stops at a gradient of 1e-4, hence 1e-4 for parameters; it drops a negative
    parameter as the authors say."""
    betacal = pytest.importorskip("betacal")
    data = binary(n=1000)
    their = betacal.BetaCalibration("abm").fit(data.X, data.y)
    want = their.predict(data.new)
    model = METHODS["beta"]().fit(data.X, data.y)
    np.testing.assert_allclose([model.a_, model.b_], their.calibrator_.map_[:2], atol=1e-4)
    np.testing.assert_allclose(model.transform(data.new), want, rtol=0, atol=1e-4)


# --- probmetrics, whose maps lead a public comparison ------------------------------------------


def loss_of(q, y):
    """Mean log loss of probabilities of class 1, or of class vectors."""
    vectors = np.column_stack([1 - q, q]) if q.ndim == 1 else q
    return -np.log(vectors[np.arange(len(y)), y]).mean()


def structured_objective(model, weight, intercept, x, y):
    """Mean log loss with penalties, of lines of the inputs that a structured map has."""
    n, k = x.shape
    scaled = x ** (1 / model.temperature_)
    scaled /= scaled.sum(axis=1, keepdims=True)
    u = np.log((1 - model.uniform_) * scaled + model.uniform_ / k)
    factor = np.full((k, k), k * (k - 1) / n)
    np.fill_diagonal(factor, k / n)
    penalty = (factor * (weight - np.eye(k)) ** 2).sum() + k / n * (intercept**2).sum()
    lines = u @ weight.T + intercept
    log_total = np.log(np.exp(lines).sum(axis=1))
    return (log_total - lines[np.arange(n), y]).mean() + penalty


@pytest.mark.parametrize(("n", "k"), [(1000, 2), (300, 3), (2000, 10)])
@pytest.mark.filterwarnings("ignore")
def test_structured_scaling_has_no_larger_objective_than_probmetrics(n, k):
    probmetrics = pytest.importorskip("probmetrics.calibrators")
    data = classes(n=n, k=k)
    for name in ("svs", "sms"):
        model = METHODS[name]().fit(data.X, data.y)
        their = probmetrics.get_calibrator(name).fit(data.X, data.y)
        if name == "svs":
            ours = np.diag(model.weight_), model.intercept_
            theirs = np.diag(their.v_), their.b_
        else:
            ours = model.weight_, model.intercept_
            theirs = their.W_[:, :-1], their.W_[:, -1]
        got = structured_objective(model, *ours, data.X, data.y)
        assert got <= structured_objective(model, *theirs, data.X, data.y) + 1e-8
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-2)
        q = their.predict_proba(data.X)
        np.testing.assert_allclose(model.transform(data.X), q, atol=5e-3)


@pytest.mark.parametrize(("n", "k"), [(1000, 2), (2000, 10)])
@pytest.mark.filterwarnings("ignore")
def test_an_ensemble_has_no_larger_loss_than_that_of_probmetrics(n, k):
    calibrators = pytest.importorskip("probmetrics.calibrators.temperature_scaling")
    data = classes(n=n, k=k)
    their = calibrators.ETSCalibrator("ce").fit(data.X, data.y).predict_proba(data.X)
    got = loss_of(METHODS["ets"]().fit_transform(data.X, data.y), data.y)
    assert got <= loss_of(their, data.y) + 1e-8


@pytest.mark.filterwarnings("ignore")
def test_a_parabola_has_no_larger_loss_than_that_of_probmetrics_and_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    z = rng.uniform(-2, 2, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z - 0.1 * z**2))).astype(int)
    model = METHODS["quadratic"](from_logits=True).fit(z, y)
    assert model.b_ + 2 * model.c_ * model.low_ > 0  # the best parabola does not fall
    got = loss_of(model.transform(z), y)
    features = np.column_stack([z, z**2])
    regression = linear_model.LogisticRegression(C=np.inf, tol=1e-8).fit(features, y)
    their = regression.predict_proba(features)
    assert got <= loss_of(their, y) + 1e-8
    np.testing.assert_allclose(model.c_, regression.coef_[0, 1], atol=1e-5)
    probmetrics = pytest.importorskip("probmetrics.calibrators")
    p = np.column_stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])
    their = probmetrics.get_calibrator("quadratic-scaling").fit(p, y).cal_.coef_[0]
    line = np.column_stack([np.ones(z.size), features]) @ their
    assert got <= loss_of(1 / (1 + np.exp(-line)), y) + 1e-8
