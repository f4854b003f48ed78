"""Wrong arguments: each is refused by its name, with the rule, the first offender and its value."""

import numpy as np
import pytest

from fastece.recalibration import load, recalibrate, save
from helpers.bad_input import assert_refused, put
from helpers.recalibration_cases import METHODS, binary, classes, fitted

ONE = binary(n=60)
MANY = classes(n=60)
# (X, y, sample_weight), and patterns of the message.
FITS = [
    ((put(ONE.X, (3, 1.5), (5, 2.0)), ONE.y), [r"\bX\b", r"\b3\b", r"1\.5"]),
    ((put(MANY.X, ((3, 1), -0.25)), MANY.y), [r"\bX\b", r"\b3\b", r"-0\.25"]),
    ((MANY.X[None], MANY.y), [r"\bX\b", "dimension|shape"]),
    ((ONE.X[:, None], ONE.y), [r"\bX\b", "column"]),
    ((np.empty(0), np.empty(0, int)), ["empty|no rows|at least"]),
    ((ONE.X.astype(str), ONE.y), [r"\bX\b"]),
    ((ONE.X + 0j, ONE.y), [r"\bX\b", "complex"]),
    ((ONE.X, ONE.y[:-1]), [r"\bX\b", r"\by\b", r"\b60\b", r"\b59\b"]),
    ((ONE.X, put(ONE.y, (6, 2))), [r"\by\b", r"\b6\b", r"\b2\b"]),
    ((MANY.X, put(MANY.y, (6, 3))), [r"\by\b", r"\b6\b", r"\b3\b"]),
    ((ONE.X, put(ONE.y, (6, 0.5))), [r"\by\b", r"\b6\b|probabilit", r"0\.5|swap"]),
    ((ONE.X, None), [r"\by\b"]),
    ((ONE.X, ONE.y, put(ONE.w, (2, -1.0))), ["sample_weight", r"\b2\b", "-1"]),
    ((ONE.X, ONE.y, np.zeros(60)), ["sample_weight"]),
    ((ONE.X, ONE.y, ONE.w[:-1]), ["sample_weight", r"\b60\b", r"\b59\b"]),
]


@pytest.mark.parametrize("name", METHODS)
def test_bad_data_of_a_fit_are_refused_by_every_method(name):
    for data, patterns in FITS:
        assert_refused(lambda data=data: METHODS[name]().fit(*data), patterns)


@pytest.mark.parametrize("name", METHODS)
def test_bad_logits(name):
    for x, y in ((ONE.logits, ONE.y), (MANY.logits, MANY.y)):
        for value in (np.nan, np.inf):
            bad = x.copy()
            bad[5] = value
            patterns = [r"\bX\b", r"\b5\b", str(value)]
            assert_refused(
                lambda bad=bad, y=y: METHODS[name](from_logits=True).fit(bad, y), patterns
            )
    impossible_row = MANY.logits.copy()
    impossible_row[5] = -np.inf
    model = METHODS[name](from_logits=True)
    assert_refused(lambda: model.fit(impossible_row, MANY.y), [r"\bX\b", r"\b5\b"])


# Method, options, patterns.
OPTIONS = [
    ("matrix", {"off_diagonal": -1.0}, ["off_diagonal", "-1"]),
    ("matrix", {"off_diagonal": np.inf}, ["off_diagonal", "inf"]),
    ("matrix", {"intercept": -0.5}, ["intercept", r"-0\.5"]),
    ("matrix", {"intercept": None}, ["intercept", "None"]),
    ("platt", {"smooth": "yes"}, ["smooth", "yes"]),
    ("histogram", {"n_bins": 0}, ["n_bins", r"integer from 1 .*\b0\b"]),
    ("histogram", {"n_bins": True}, ["n_bins", "True"]),
    ("histogram", {"edges": "round"}, ["edges", "round", "uniform", "quantile"]),
    ("scaling_binning", {"n_bins": 0}, ["n_bins", r"\b0\b"]),
    ("curve", {"estimator": "ece_none"}, ["estimator", "ece_none"]),
    ("curve", {"estimator": "ece"}, ["estimator", "ece_kde"]),
    ("curve", {"monotone": "maybe"}, ["monotone", "maybe"]),
]


def test_bad_options_are_refused_by_the_fit_at_the_latest():
    for name, options, patterns in OPTIONS:
        assert_refused(
            lambda name=name, options=options: METHODS[name](**options).fit(ONE.X, ONE.y), patterns
        )


@pytest.mark.parametrize("name", METHODS)
def test_options_of_every_method(name):
    bad = ["from_logits", "perhaps"]
    assert_refused(lambda: METHODS[name](from_logits="perhaps").fit(ONE.X, ONE.y), bad)
    with pytest.raises(TypeError, match="nonsense"):
        METHODS[name](nonsense=1)
    with pytest.raises((ValueError, TypeError), match="nonsense"):
        METHODS[name]().set_params(nonsense=1)


@pytest.mark.parametrize("name", METHODS)
def test_a_transform_asks_for_a_fit_and_its_classes(name):
    assert_refused(lambda: METHODS[name]().transform(ONE.X), ["fit"])
    of_three = fitted(name, "three classes")
    of_two = fitted(name, "one column")
    four = np.full((5, 4), 0.25)
    assert_refused(lambda: of_three.transform(four), [r"\bX\b", r"\b3\b", r"\b4\b"])
    assert_refused(lambda: of_three.transform(ONE.X), [r"\bX\b", r"\b3\b"])
    assert_refused(lambda: of_two.transform(four), [r"\bX\b", r"\b4\b"])


@pytest.mark.parametrize("name", METHODS)
def test_bad_data_of_a_transform(name):
    model = fitted(name, "three classes")
    cases = [
        (put(MANY.X, ((7, 2), np.nan)), [r"\bX\b", r"\b7\b", "nan"]),
        (put(MANY.X, ((7, 2), 1.5)), [r"\bX\b", r"\b7\b", r"1\.5"]),
        (MANY.X[None], [r"\bX\b"]),
        ("words", [r"\bX\b"]),
        (None, [r"\bX\b"]),
    ]
    for bad, patterns in cases:
        assert_refused(lambda bad=bad: model.transform(bad), patterns)


def again(y_true=ONE.y, y_prob=ONE.X, method="temperature", **options):
    return recalibrate(y_true, y_prob, method=method, **options)


CALLS = [
    (lambda: again(method="cold"), ["method", "cold", "auto", *METHODS]),
    (lambda: again(method=None), ["method", "None"]),
    (lambda: again(method=3), ["method", r"\b3\b"]),
    (lambda: again(method=METHODS["beta"]), ["method"]),
    (lambda: again(cv=1), ["cv", r"\b1\b"]),
    (lambda: again(cv=2.5), ["cv", r"2\.5"]),
    (lambda: again(cv=61), ["cv", r"\b61\b", r"\b60\b"]),
    (lambda: again(groups=np.zeros(59)), ["groups", r"\b59\b", r"\b60\b"]),
    (lambda: again(groups=np.zeros(60)), ["groups"]),
    (
        lambda: again(groups=np.arange(60) % 3),
        ["groups", r"\b3\b", r"\b5\b"],
    ),
    (lambda: again(rng="lucky"), ["rng"]),
    (lambda: again(from_logits="no"), ["from_logits"]),
    (
        lambda: again(method=METHODS["beta"](from_logits=True)),
        ["from_logits", "True"],
    ),
    (lambda: again(sample_weight=ONE.w[1:]), ["sample_weight", r"\b59\b"]),
    (lambda: again(y_true=put(ONE.y, (4, 2))), ["y_true", r"\b4\b", r"\b2\b"]),
    (lambda: again(y_prob=put(ONE.X, (4, 2.0))), ["y_prob", r"\b4\b"]),
    (lambda: again(y_prob=put(ONE.X, (4, np.nan))), ["y_prob", r"\b4\b", "nan"]),
    (lambda: again(y_true=ONE.X, y_prob=ONE.y), ["y_true"]),
    (lambda: again(y_true=ONE.y[1:]), ["y_true", "y_prob", r"\b59\b"]),
]


def test_bad_calls_of_recalibrate():
    for call, patterns in CALLS:
        assert_refused(call, patterns)


def test_bad_objects_to_save(tmp_path):
    path = tmp_path / "model.json"
    for model in (None, "temperature", METHODS["beta"], {"method": "beta"}):
        assert_refused(lambda model=model: save(model, path), ["model"])
    assert_refused(lambda: save(METHODS["beta"](), path), ["fit"])
    assert not path.exists()
    with pytest.raises(OSError, match="nothing"):
        load(tmp_path / "nothing.json")
