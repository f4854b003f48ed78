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
