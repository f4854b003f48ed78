"""Scores and displays for scikit-learn: the same numbers as plain loops over the folds."""

import copy
import pickle

import numpy as np
import pytest
import reference
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import brier_score_loss, get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fastece
from fastece.sklearn import ReliabilityDisplay, Scorer, ece_scorer, scorer
from helpers.sklearn_cases import NAMES, Data, Fixed, Named, fitted

FOLDS = StratifiedKFold(3)
NEAR = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def data(request):
    return Data(request.param)


def errors_of_folds(data, model=None, *, fits=False, scores=False, **options):
    """The error on the test set of each fold, by the loops of the reference.

    `fits` and `scores` choose which of them are weighted. Two classes are one binary problem.
    """
    errors = []
    for train, test in FOLDS.split(data.X, data.y):
        weights = {"sample_weight": data.w[train]} if fits else {}
        fold_model = clone(model or GaussianNB()).fit(data.X[train], data.y[train], **weights)
        labels = fold_model.classes_.tolist()
        prob = fold_model.predict_proba(data.X[test])
        if len(labels) == 2 and "setting" not in options:
            prob = prob[:, 1]
        w = data.w[test].tolist() if scores else None
        y = data.y[test].tolist()
        errors.append(reference.ece(y, prob.tolist(), w, labels=labels, **options))
    return np.array(errors)


def routing(model=None):
    """A context that routes weights, and a model and a scorer that ask for them."""
    context = sklearn.config_context(enable_metadata_routing=True)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (model or GaussianNB()).set_fit_request(sample_weight=True)
        score = scorer("ece", n_bins=10).set_score_request(sample_weight=True)
    return context, model, score


@pytest.mark.parametrize(
    ("options", "reference_options"),
    [
        ({}, {"n_bins": 15}),
        ({"estimator": "ece_a", "n_bins": 7}, {"edges": "quantile", "n_bins": 7}),
        ({"estimator": fastece.Binned(n_bins=4, norm=2.0)}, {"n_bins": 4, "norm": 2.0}),
        ({"setting": "confidence"}, {"setting": "confidence", "n_bins": 15}),
        ({"setting": 0}, {"setting": 0, "n_bins": 15}),
        ({"setting": "classwise"}, {"setting": "classwise", "n_bins": 15}),
    ],
    ids=str,
)
def test_folds_have_the_errors_of_plain_loops(data, options, reference_options):
    scores = cross_val_score(GaussianNB(), data.X, data.y, cv=FOLDS, scoring=scorer(**options))
    np.testing.assert_allclose(-scores, errors_of_folds(data, **reference_options), **NEAR)


def test_weights_are_routed_to_scores_alone_by_another_name(data):
    context, model, score = routing()
    with context:
        score.set_score_request(sample_weight="importance")
        model.set_fit_request(sample_weight=False)
        results = cross_validate(
            model, data.X, data.y, cv=FOLDS, params={"importance": data.w},
            scoring={"weighted": score, "plain": scorer(n_bins=10)},
        )  # fmt: skip
    errors = errors_of_folds(data, scores=True, n_bins=10)
    np.testing.assert_allclose(-results["test_weighted"], errors, **NEAR)
    np.testing.assert_allclose(-results["test_plain"], errors_of_folds(data, n_bins=10), **NEAR)


def test_weights_that_no_scorer_asks_for_are_refused():
    data = Data(2)
    context, model, _ = routing()
    with context:
        with pytest.raises(UnsetMetadataPassedError, match=r"scorer\(Binned\(n_bins=15\), gre"):
            cross_val_score(
                model, data.X, data.y, scoring=scorer(), params={"sample_weight": data.w}
            )
        unweighted = scorer().set_score_request(sample_weight=False)
        weights = {"sample_weight": data.w}
        scores = cross_val_score(
            model, data.X, data.y, cv=FOLDS, scoring=unweighted, params=weights
        )
    errors = errors_of_folds(data, fits=True, n_bins=15)
    np.testing.assert_allclose(-scores, errors, **NEAR)


GRID = {"var_smoothing": [1e-9, 0.1, 1.0]}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_grid_has_the_errors_of_plain_loops(data, weighted):
    context, model, score = routing()
    with context:
        grid = GridSearchCV(model, GRID, scoring=score, cv=FOLDS)
        grid.fit(data.X, data.y, **({"sample_weight": data.w} if weighted else {}))
    models = [GaussianNB(var_smoothing=smoothing) for smoothing in GRID["var_smoothing"]]
    errors = [errors_of_folds(data, m, fits=weighted, scores=weighted, n_bins=10) for m in models]
    means = np.mean(errors, axis=1)
    np.testing.assert_allclose(-grid.cv_results_["mean_test_score"], means, **NEAR)
    for k in range(3):
        scores = -grid.cv_results_[f"split{k}_test_score"]
        np.testing.assert_allclose(scores, [of_model[k] for of_model in errors], **NEAR)
    assert grid.best_index_ == np.argmin(means)
    assert grid.best_score_ == pytest.approx(-means.min(), abs=1e-12)


@pytest.mark.slow
def test_without_routing_weights_go_where_scikit_learn_sends_them():
    """Newer releases of scikit-learn weight scores, older ones fits alone."""
    data = Data(3)
    ours = scorer("log_loss")
    theirs = "neg_log_loss"
    means = []
    for scoring in (ours, theirs, {"ours": ours, "theirs": theirs}):
        grid = GridSearchCV(GaussianNB(), GRID, scoring=scoring, cv=FOLDS, refit=False)
        results = grid.fit(data.X, data.y, sample_weight=data.w).cv_results_
        means += [results[name] for name in results if name.startswith("mean_test")]
    assert len(means) == 4
    for mean in means[1:]:
        np.testing.assert_allclose(mean, means[0], **NEAR)


def test_scorers_of_all_estimators_equal_ece(data):
    model = GaussianNB().fit(data.X, data.y)
    prob = model.predict_proba(data.X)
    options = {"labels": model.classes_, "sample_weight": data.w}
    is_two = prob.shape[1] == 2
    losses = ("brier_score", "ranked_probability_score", "log_loss")
    # Two classes are one binary problem; with three, one estimator of each kind.
    for name in fastece.ESTIMATORS if is_two else ("ece_ac", "canonical", "log_loss", "accuracy"):
        estimator = fastece.ESTIMATORS[name]
        is_lower_better = estimator.is_calibration_error or name in losses
        direction = {}
        if name in ("sharpness", "entropy"):
            with pytest.raises(ValueError, match="greater_is_better: must be True or False for"):
                scorer(name)
            direction = {"greater_is_better": True}
        score = scorer(name, **direction)
        value = fastece.ece(data.y, prob[:, 1] if is_two else prob, estimator=name, **options)
        found = score(model, data.X, data.y, data.w)
        assert found == pytest.approx(-value if is_lower_better else value, rel=1e-9), name
        assert repr(score) == f"scorer({estimator}, greater_is_better={not is_lower_better})"
        assert score.greater_is_better is not is_lower_better


def test_proper_scores_equal_scikit_learn(data):
    model = GaussianNB().fit(data.X, data.y)
    args = (model, data.X, data.y)
    assert scorer("accuracy")(*args) == get_scorer("accuracy")(*args)
    expected = get_scorer("neg_log_loss")(*args, sample_weight=data.w)
    assert scorer("log_loss")(*args, sample_weight=data.w) == pytest.approx(expected, abs=1e-12)
    if len(model.classes_) == 2:
        prob = model.predict_proba(data.X)[:, 1]
        loss = brier_score_loss(data.y, prob, pos_label="bee")
        assert scorer("brier_score")(*args) == pytest.approx(-loss, abs=1e-12)


class Gap:
    """A user's estimator: the mean of score minus outcome."""

    def prepare(self, sample, size):  # noqa: ARG002
        return sample.s - sample.y

    def evaluate(self, plan, c):
        return float(np.average(plan, weights=c))


def test_a_users_estimator_becomes_a_scorer():
    data, model = fitted(2)
    outcome = np.where(data.y == "bee", 1, 0)
    gap = np.mean(model.predict_proba(data.X)[:, 1] - outcome)
    assert scorer(Gap())(model, data.X, data.y) == pytest.approx(-gap, abs=1e-12)
    score = scorer(Gap(), greater_is_better=True)
    assert score(model, data.X, data.y) == pytest.approx(gap, abs=1e-12)


def test_repr_of_a_scorer_has_its_options():
    assert repr(ece_scorer) == "scorer(Binned(n_bins=15), greater_is_better=False)"
    score = scorer("ece_a", n_bins=5, setting="classwise", average=None)
    bins = "Binned(n_bins=5, edges='quantile')"
    assert repr(score) == (
        f"scorer({bins}, setting='classwise', average=None, greater_is_better=False)"
    )
    assert isinstance(score, Scorer)


@pytest.mark.parametrize(
    "copied_by", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_a_scorer_keep_their_requests(copied_by):
    data = Data(2)
    context, model, score = routing()
    with context:
        copied = copied_by(score)
        score.set_score_request(sample_weight=False)  # the copy keeps its request
        weights = {"sample_weight": data.w}
        options = {"cv": FOLDS, "params": weights}
        scores = cross_val_score(model, data.X, data.y, scoring=copied, **options)
    errors = errors_of_folds(data, fits=True, scores=True, n_bins=10)
    np.testing.assert_allclose(-scores, errors, **NEAR)
    assert repr(copied) == repr(score)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), GaussianNB()),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        GridSearchCV(GaussianNB(), GRID, scoring=ece_scorer, cv=2),
    ],
    ids=["pipeline", "calibrated decisions", "grid"],
)
def test_models_of_models_have_scores(model, data):
    scores = cross_val_score(model, data.X, data.y, cv=FOLDS, scoring=ece_scorer)
    np.testing.assert_allclose(-scores, errors_of_folds(data, model, n_bins=15), **NEAR)


@pytest.mark.parametrize(
    "labels",
    [[-1, 1], [False, True], [2.0, 1.0], [3, 9, 7], np.array([5, 2, 4], np.uint8)],
    ids=str,
)
def test_scores_do_not_depend_on_the_type_of_labels(labels):
    data = Data(len(labels))
    expected = cross_val_score(GaussianNB(), data.X, data.y, cv=FOLDS, scoring=ece_scorer)
    order = np.sort(labels)[np.argsort(np.argsort(NAMES[: len(labels)]))]  # sorted like the names
    data.y = order[np.arange(len(data.y)) % len(labels)]
    scores = cross_val_score(GaussianNB(), data.X, data.y, cv=FOLDS, scoring=ece_scorer)
    np.testing.assert_allclose(scores, expected, **NEAR)


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_scores_of_frames_equal_scores_of_arrays(kind, data):
    pandas = pytest.importorskip("pandas")
    expected = cross_val_score(GaussianNB(), data.X, data.y, cv=FOLDS, scoring=ece_scorer)
    frame = pandas.DataFrame(data.X, columns=["a", "b", "c"])
    series = pandas.Series(data.y.astype(object)).astype(kind)
    scores = cross_val_score(GaussianNB(), frame, series, cv=FOLDS, scoring=ece_scorer)
    np.testing.assert_allclose(scores, expected, **NEAR)


def test_each_class_has_a_score_by_its_label(data):
    score = scorer(setting="classwise", average=None)
    results = cross_validate(GaussianNB(), data.X, data.y, cv=FOLDS, scoring=score)
    errors = errors_of_folds(data, setting="classwise", average=None, n_bins=15)
    for k, label in enumerate(np.unique(data.y)):
        np.testing.assert_allclose(-results[f"test_{label}"], errors[:, k], **NEAR)


def test_a_test_set_may_lack_a_class():
    data, model = fitted(3)
    X = data.X[data.y != "cow"]  # noqa: N806
    y = data.y[data.y != "cow"]
    prob = model.predict_proba(X).tolist()
    error = reference.ece(y.tolist(), prob, labels=model.classes_.tolist(), n_bins=15)
    assert ece_scorer(model, X, y) == pytest.approx(-error, abs=1e-12)


def test_a_label_that_the_model_has_not_seen_is_refused():
    data = Data(3)
    is_seen = data.y != "cow"
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(data.X[is_seen], data.y[is_seen])
    with pytest.raises(
        ValueError, match=r"the labels 'ant', 'bee'; y_true\[2\] is 'cow'"
    ) as caught:
        ece_scorer(model, data.X, data.y)
    assert caught.value.__notes__ == ["These are classes_ of Pipeline: it was fitted to no others."]
    sets = [(np.flatnonzero(is_seen), np.arange(len(is_seen)))]
    with pytest.raises(ValueError, match=r"y_true\[2\] is 'cow'"):
        cross_val_score(
            GaussianNB(), data.X, data.y, cv=sets, scoring=ece_scorer, error_score="raise"
        )
    with pytest.warns(UserWarning, match="is 'cow'"):
        scores = cross_val_score(GaussianNB(), data.X, data.y, cv=sets, scoring=ece_scorer)
    assert np.isnan(scores).tolist() == [True]


def errors_of_tasks(model, features, labels, words, cv):
    """The errors (folds, T) of each task by the loops of the reference; `words` are no and yes."""
    errors = []
    for train, test in cv.split(features):
        prob = clone(model).fit(features[train], labels[train]).predict_proba(features[test])
        if isinstance(prob, list):
            prob = np.stack([q[:, 1] for q in prob], axis=1)
        hits = (labels[test] == words[1]).astype(int)
        columns = range(hits.shape[1])
        errors.append(
            [reference.ece(hits[:, k].tolist(), prob[:, k].tolist(), n_bins=15) for k in columns]
        )
    return np.array(errors)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MultiOutputClassifier(GaussianNB()), [0, 1]),
        (MultiOutputClassifier(GaussianNB()), ["no", "yes"]),
        (make_pipeline(StandardScaler(), MultiOutputClassifier(GaussianNB())), [0, 1]),
        (ClassifierChain(GaussianNB(), order=[2, 0, 1]), [0, 1]),
        (OneVsRestClassifier(GaussianNB()), [0, 1]),
        (DecisionTreeClassifier(max_depth=3, random_state=0), ["no", "yes"]),
    ],
    ids=str,
)
def test_models_of_several_labels_have_the_mean_error_of_their_tasks(model, words):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 4))
    labels = np.array(words)[
        (rng.random((300, 3)) < 1 / (1 + np.exp(-features[:, :3]))).astype(int)
    ]
    cv = KFold(3)
    errors = errors_of_tasks(model, features, labels, words, cv)
    options = {"cv": cv, "error_score": "raise"}
    mean = cross_val_score(model, features, labels, scoring=scorer(setting="tasks"), **options)
    np.testing.assert_allclose(-mean, errors.mean(axis=1), **NEAR)
    each = scorer(setting="tasks", average=None)
    found = cross_validate(model, features, labels, scoring=each, **options)
    for k in range(3):
        np.testing.assert_allclose(-found[f"test_{k}"], errors[:, k], **NEAR)


def test_tasks_of_other_labels_than_yes_and_no_are_refused():
    data = Data(3)
    labels = np.column_stack([data.y, data.y])
    model = MultiOutputClassifier(GaussianNB()).fit(data.X, labels)
    with pytest.raises(ValueError, match=r"classes_\[0\]: must be fitted to the same two labels"):
        scorer(setting="tasks")(model, data.X, labels)
    with pytest.raises(TypeError, match=r"scorer\(setting='tasks'\) takes yes/no labels"):
        ece_scorer(model, data.X, labels)


def test_models_without_class_probabilities_are_refused():
    data = Data(3)
    several = MultiOutputClassifier(GaussianNB()).fit(data.X, np.column_stack([data.y, data.y]))
    ragged = MultiOutputClassifier(GaussianNB()).fit(
        data.X, np.column_stack([data.y, data.y > "b"])
    )
    one = Named(np.array(["a"]), np.ones((240, 1)))
    short = Named(np.array(["a", "b", "c"]), np.full((240, 2), 0.5))
    flat = Named(np.array(["a", "b"]), np.full(240, 0.5))
    nameless = Fixed(None, np.full((240, 2), 0.5))
    broken = Named(np.array(["a", "b"]), np.full((240, 2), np.nan))
    for model, error, words in [
        (LinearSVC().fit(data.X, data.y), TypeError, "must have predict_proba, LinearSVC has none"),
        (SVC().fit(data.X, data.y), TypeError, "CalibratedClassifierCV makes probabilities"),
        (several, TypeError, "MultiOutputClassifier predicts several"),
        (ragged, TypeError, "MultiOutputClassifier predicts several"),
        (nameless, TypeError, "must have classes_, as classifiers do, Fixed has none"),
        (one, ValueError, r"Named was fitted to rows of one class alone, \['a'\]"),
        (short, ValueError, r"a column for each of 3 classes, got shape \(240, 2\)"),
        (flat, ValueError, r"a column for each of 2 classes, got shape \(240,\)"),
        (broken, ValueError, r"must be finite; y_prob\[0, 0\] is nan"),
    ]:
        with pytest.raises(error, match=words):
            ece_scorer(model, data.X, np.resize(["a", "b"], 240))
        with pytest.raises(error, match=words):
            ReliabilityDisplay.from_estimator(model, data.X, np.resize(["a", "b"], 240))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"estimator": "ecee"}, ValueError, "estimator: must be a known name, got 'ecee'"),
        ({"bins": 3}, TypeError, "bins: is not a parameter of the estimator Binned"),
        ({"labels": ["a", "b"]}, TypeError, "labels: is not a parameter"),
        ({"n_bins": 0}, ValueError, "n_bins: "),
        ({"setting": "top"}, ValueError, "setting: must be a known name, got 'top'; known: 'auto'"),
        ({"setting": -1}, ValueError, "setting: must be a class index"),
        ({"average": "micro"}, ValueError, "average: must be .* got 'micro'"),
        ({"greater_is_better": "no"}, TypeError, "greater_is_better: must be True or False"),
    ],
    ids=str,
)
def test_scorers_refuse_wrong_options_at_once(options, error, words):
    with pytest.raises(error, match=words):
        scorer(**options)


def test_requests_need_routing():
    score = scorer()
    with pytest.raises(
        RuntimeError, match=r"call sklearn.set_config\(enable_metadata_routing=True"
    ):
        score.set_score_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        assert score.set_score_request(sample_weight=True) is score
        with pytest.raises(ValueError, match="alias"):
            score.set_score_request(sample_weight=3)
        assert score.get_metadata_routing().score.requests == {"sample_weight": True}
        with pytest.raises(TypeError, match="weights"):
            score.set_score_request(weights=True)
