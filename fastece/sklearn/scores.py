"""Estimators of the table as scores of fitted classifiers."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.calls import Macro, ece
from fastece.checks.arrays import as_probabilities
from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_average, check_flag
from fastece.data.source import find_setting
from fastece.estimators.table import find_estimator


@dataclass(eq=False, repr=False)
class Scorer:
    """A score of a fitted classifier, for `scoring=` of scikit-learn, by `scorer`.

    Attributes
    ----------
    estimator : object
        The error or score, such as ``Binned(n_bins=15)``.
    setting, average
        As in `scorer`.
    greater_is_better : bool
        Whether the score is the number itself. If not, it is minus the number.
    """

    # It makes a call of its own to predict_proba: scikit-learn keeps predictions for several
    # scores by the name of the method, so those for the positive class of one would come to all.

    estimator: Any
    setting: Any
    average: Macro | None
    greater_is_better: bool
    _request: bool | str | None = None  # of sample weights

    def __repr__(self) -> str:
        shown = str(self.estimator)
        for name, default in (("setting", "auto"), ("average", "macro")):
            value = getattr(self, name)
            shown += "" if value == default else f", {name}={value!r}"
        return f"scorer({shown}, greater_is_better={self.greater_is_better})"

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None  # noqa: N803
    ) -> float | dict[str, float]:  # fmt: skip
        """Compute the score of a fitted classifier on a test set, the greater the better.

        Parameters
        ----------
        estimator : classifier
            It has `predict_proba` and `classes_`, as a pipeline that ends in a classifier has.
        X : (n, ...) array_like
            Rows of the test set.
        y_true : (n,) array_like
            Their labels, which are among `classes_`; not every class has to occur.
        sample_weight : (n,) array_like of float, optional
            Weights, not negative.

        Returns
        -------
        float, or a dict of them by label, of every class with ``average=None``

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; for a label that is not among `classes_`, and for an estimator without
            class probabilities.
        """
        prob, labels = class_probabilities(estimator, X)
        try:
            value = ece(
                y_true, prob, estimator=self.estimator, setting=own_setting(self.setting, labels),
                average=self.average, labels=labels, sample_weight=sample_weight,
            )  # fmt: skip
        except InputError as error:
            if error.argument == "y_true" and error.index is not None:
                kind = type(estimator).__name__
                error.add_note(f"These are classes_ of {kind}: it was fitted to no others.")
            raise
        sign = 1.0 if self.greater_is_better else -1.0
        if isinstance(value, np.ndarray):
            return {str(k): sign * one for k, one in zip(labels, value.tolist(), strict=True)}
        return sign * value

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Request sample weights, where scikit-learn routes metadata.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: weights that are passed along reach the scorer. False: they do not. None, the
            initial state: passing them along is an error. A string: the name they are passed by.

        Returns
        -------
        Scorer
            This scorer, which is changed, as in scikit-learn; `ece_scorer` is shared by the whole
            program, and ``scorer("ece")`` creates a new one.

        Raises
        ------
        RuntimeError
            Metadata are not routed: see ``sklearn.set_config(enable_metadata_routing=True)``.
        ValueError
            A request that is none of these.
        """
        from sklearn import get_config

        if not get_config().get("enable_metadata_routing"):
            raise RuntimeError(
                "set_score_request: call sklearn.set_config(enable_metadata_routing=True) first"
            )
        self.routing(sample_weight)
        self._request = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requests of metadata, as scikit-learn routes them."""
        return self.routing(self._request)

    def routing(self, sample_weight: bool | str | None) -> Any:
        """Build the requests of metadata, or refuse an invalid one."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=sample_weight)
        return request

    def _accept_sample_weight(self) -> bool:
        """Return whether scores in a dict take weights where nothing is routed."""
        return True


def scorer(
    estimator: Any = "ece", *, setting: Any = "auto", average: Macro | None = "macro",
    greater_is_better: bool | None = None, **fields: Any,
) -> Scorer:  # fmt: skip
    """Make a score for `scoring=` of scikit-learn: `cross_validate`, `GridSearchCV`.

    Parameters
    ----------
    estimator : str or object, default "ece"
        A name of `fastece.ESTIMATORS`, also a proper score such as "log_loss", or your own object.
    setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
        As in `fastece.ece`, but "auto" goes by the classes that a model was fitted to: of two it is
        the binary problem of ``classes_[1]``, of more the top label. An int is a position in
        `classes_`.
    average : {"macro", None}, default "macro"
        For "classwise": the mean over classes; or, with None, one score for each, which
        scikit-learn names by label: "test_ant", "test_bee". That works by itself, not in a dict.
    greater_is_better : bool, optional
        Whether the score is the number itself, else minus the number. Without it, errors and losses
        are negative and the accuracy is positive; other numbers, such as the sharpness, for which
        larger is neither better nor worse, need it.
    **fields
        Replace parameters of the estimator, such as ``n_bins=30``.

    Returns
    -------
    Scorer
        It is called with a fitted classifier, rows, labels and, if you like, sample weights. Labels
        of any kind are found in `classes_`. It can be pickled.

    Raises
    ------
    ValueError, TypeError
        For an unknown estimator, setting or field; where `greater_is_better` is needed.

    Notes
    -----
    A model that predicts the base rate for every row is calibrated, and useless: choose models by a
    proper score (``scorer("log_loss")``) and look at their calibration error beside it.

    Each score calls `predict_proba` by itself, even in a dict of scores.

    Where metadata are routed, ``scorer(...).set_score_request(sample_weight=True)`` routes weights
    to the scorer. Where they are not, `cross_validate` gives scores no weights, and `GridSearchCV`
    does so in newer releases of scikit-learn alone, as with its own scores.

    A fold without a value (its test set has a label that the model was not fitted to, weights that
    are all 0, or no bin of `min_count`) is nan in the scores. Errors come with a warning, or raise
    with ``error_score="raise"``. The mean over folds is nan then, and a grid search ranks such
    parameters last. A log loss is -inf where an observed class had probability 0, unless
    ``clip=`` is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from fastece.sklearn import scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scoring = {"ece": scorer(n_bins=10), "brier": scorer("brier_score")}
    >>> found = cross_validate(GaussianNB(), X, y, cv=3, scoring=scoring)
    >>> found["test_ece"].round(3), found["test_brier"].round(3)
    (array([-0.054, -0.05 , -0.032]), array([-0.088, -0.11 , -0.05 ]))
    >>> scoring["brier"]
    scorer(BrierScore(), greater_is_better=False)
    """
    chosen = find_estimator(estimator, fields)
    check_average(average)
    is_binary = isinstance(setting, str) and setting == "binary"
    find_setting(setting, (0,) if is_binary else (0, 2**31))  # before anything is fitted
    sign = chosen.greater_is_better if greater_is_better is None else greater_is_better
    if sign is None:
        raise InputError("greater_is_better", f"must be True or False for {chosen!r}")
    return Scorer(chosen, setting, average, check_flag("greater_is_better", sign))


def class_probabilities(estimator: Any, X: Any) -> tuple[NDArray[Any], list[Any]]:  # noqa: N803
    """Return a classifier's probabilities (n, K) and the labels of their columns."""
    kind = type(estimator).__name__
    try:
        predict = estimator.predict_proba
    except AttributeError as error:
        hint = "sklearn.calibration.CalibratedClassifierCV makes probabilities of decisions"
        rule = f"must have predict_proba, {kind} has none"
        raise InputTypeError("estimator", rule, hint=hint) from error
    found = predict(X)
    if not hasattr(estimator, "classes_"):
        raise InputTypeError("estimator", f"must have classes_, as classifiers do, {kind} has none")
    if any(map(np.ndim, estimator.classes_)):
        rule = f"must predict one label for each row, {kind} predicts several"
        raise InputTypeError("estimator", rule)
    classes = np.asarray(estimator.classes_)
    if classes.size == 1:
        rule = f"{kind} was fitted to rows of one class alone, {classes.tolist()}"
        raise InputError("estimator", rule, hint="stratified folds have rows of every class")
    prob = as_probabilities(found, "predict_proba(X)")
    if prob.shape[1:] != classes.shape:
        rule = f"{kind}.predict_proba must give a column for each of {classes.size} classes"
        raise InputError("estimator", f"{rule}, got shape {prob.shape}")
    return prob, classes.tolist()


def own_setting(setting: Any, labels: list[Any]) -> Any:
    """Return the setting for a classifier: "auto" is "binary" for two classes."""
    is_auto = isinstance(setting, str) and setting == "auto"
    return "binary" if is_auto and len(labels) == 2 else setting


ece_scorer = scorer("ece")
