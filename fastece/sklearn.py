"""Calibration errors where scikit-learn asks for a score, and reliability diagrams as its displays.

>>> from fastece.sklearn import ece_scorer
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = load_breast_cancer(return_X_y=True)
>>> cross_val_score(GaussianNB(), X, y, scoring=ece_scorer).round(3)
array([-0.076, -0.082, -0.046, -0.052, -0.046])

scikit-learn itself is imported where it is needed: its extra is ``pip install fastece[sklearn]``.
"""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.estimators import find_estimator, is_calibration_error
from fastece.inputs.arrays import EntryError
from fastece.inputs.parameters import check_average, check_flag
from fastece.inputs.probabilities import as_probabilities
from fastece.losses import Accuracy, BrierScore, LogLoss
from fastece.problems.settings import find_setting
from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram
from fastece.scores import Macro, ece

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastece.resampling.calibration_test import ConsistencyBand

__all__ = ["ReliabilityDisplay", "Scorer", "ece_scorer", "scorer"]

# Of means over rows. Neither is better of other ones, such as sharpness.
GREATER_IS_BETTER: dict[type[Any], bool] = {Accuracy: True, BrierScore: False, LogLoss: False}


def class_probabilities(estimator: Any, X: Any) -> tuple[NDArray[Any], list[Any]]:  # noqa: N803
    """What a fitted classifier predicts for the rows of X: probabilities (n, K), and the labels of
    the columns."""
    kind = type(estimator).__name__
    try:
        predict = estimator.predict_proba
    except AttributeError as error:
        raise TypeError(
            f"estimator: must have predict_proba, {kind} has none; "
            "sklearn.calibration.CalibratedClassifierCV makes probabilities of decisions"
        ) from error
    found = predict(X)
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"estimator: must have classes_, as classifiers do, {kind} has none")
    classes = np.asarray(estimator.classes_) if not isinstance(found, list) else np.empty(0)
    if classes.ndim != 1 or classes.size == 0:
        raise TypeError(f"estimator: must predict one label for each row, {kind} predicts several")
    if classes.size == 1:
        raise ValueError(
            f"estimator: {kind} was fitted to rows of one class alone, {classes.tolist()}; "
            "stratified folds have rows of every class"
        )
    prob = as_probabilities(found, "predict_proba(X)")
    if prob.shape[1:] != classes.shape:
        raise ValueError(
            f"estimator: {kind}.predict_proba must give a column for each of {classes.size} "
            f"classes, got shape {prob.shape}"
        )
    return prob, classes.tolist()


def own_setting(setting: Any, labels: list[Any]) -> Any:
    """The setting for a classifier: "auto" is the binary problem of two classes, and the top label
    of more."""
    is_auto = isinstance(setting, str) and setting == "auto"
    return "binary" if is_auto and len(labels) == 2 else setting


class Scorer:
    """A score of a fitted classifier, for `scoring=` of scikit-learn: what `scorer` gives.

    Attributes
    ----------
    estimator : object
        What is computed, such as ``Binned(n_bins=15)``.
    setting, average
        As in `scorer`.
    greater_is_better : bool
        Whether the score is the number itself. If not, it is minus the number.
    """

    # It makes a call of its own to predict_proba: scikit-learn keeps predictions for several
    # scores by the name of the method, so those for the positive class of one would come to all.

    def __init__(self, estimator: Any, setting: Any, average: Macro | None, greater: bool) -> None:
        self.estimator = estimator
        self.setting = setting
        self.average = average
        self.greater_is_better = greater
        self._request: bool | str | None = None  # of sample weights

    def __repr__(self) -> str:
        defaults = {"setting": "auto", "average": "macro"}
        options = {name: value for name, value in vars(self).items() if name in defaults}
        shown = [f"{k}={value!r}" for k, value in options.items() if value != defaults[k]]
        sign = f"greater_is_better={self.greater_is_better}"
        return f"scorer({', '.join([str(self.estimator), *shown, sign])})"

    def __call__(
        self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None  # noqa: N803
    ) -> float | dict[str, float]:  # fmt: skip
        """The score of a fitted classifier on rows of a test set; the greater the better.

        Parameters
        ----------
        estimator : classifier
            It has `predict_proba` and `classes_`, as a pipeline with a classifier at its end has.
        X : (n, ...) array_like
            Rows that it takes.
        y_true : (n,) array_like
            Their labels, which are among `classes_`; not each of these has to occur.
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
        except EntryError as error:
            if error.name == "y_true":
                kind = type(estimator).__name__
                error.add_note(f"These are classes_ of {kind}: it was fitted to no others.")
            raise
        sign = 1.0 if self.greater_is_better else -1.0
        if isinstance(value, np.ndarray):
            return {str(k): sign * one for k, one in zip(labels, value.tolist(), strict=True)}
        return sign * value

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Ask for sample weights, where scikit-learn routes metadata.

        Parameters
        ----------
        sample_weight : bool, str or None
            True: those that are passed along come to the scorer. False: they do not. None, as at
            first: to pass them along is an error. A string: the name that they are passed by.

        Returns
        -------
        Scorer
            This one, which is changed, as scikit-learn's own are.

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
        before, self._request = self._request, sample_weight
        try:
            self.get_metadata_routing()
        except ValueError:
            self._request = before
            raise
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn asks of everything that metadata may go to."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self._request)
        return request

    def _accept_sample_weight(self) -> bool:
        """What scikit-learn asks of scores in a dict, where it routes no metadata."""
        return True


def scorer(
    estimator: Any = "ece", *, setting: Any = "auto", average: Macro | None = "macro",
    greater_is_better: bool | None = None, **fields: Any,
) -> Scorer:  # fmt: skip
    """A score for `scoring=` of scikit-learn: `cross_validate`, `GridSearchCV` and the like.

    Parameters
    ----------
    estimator : str or object, default "ece"
        A row of `fastece.ESTIMATORS`, proper scores such as "log_loss" too, or an object of yours.
    setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
        As in `fastece.ece`, but "auto" goes by the classes that a model was fitted to: of two it is
        the binary problem of ``classes_[1]``, of more the top label. An int is a position in
        `classes_`.
    average : {"macro", None}, default "macro"
        For "classwise": the mean over classes; or, with None, one score for each, which
        scikit-learn names by label: "test_ant", "test_bee". That works by itself, not in a dict.
    greater_is_better : bool, optional
        Whether the score is the number itself, else minus the number. Without it, errors and losses
        are negative and the accuracy is as it is; numbers that no model is better by, as the
        sharpness, need it.
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
    A model that says the base rate of every row is calibrated, and useless: choose models by a
    proper score (``scorer("log_loss")``) and look at their calibration error beside it.

    Where metadata are routed, ``scorer(...).set_score_request(sample_weight=True)`` has weights
    come here. Where they are not, `cross_validate` gives scores no weights, and `GridSearchCV` does
    so in newer releases of scikit-learn alone, as with its own scores.

    A fold without a value (its test set has a label that the model was not fitted to, weights that
    are all 0, or no bin of `min_count`) is nan in the scores. Errors come with a warning, or raise
    with ``error_score="raise"``. The mean over folds is nan then, and a grid search ranks such
    parameters last. A log loss is -inf where a class that comes true had a probability of 0, unless
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
    if greater_is_better is None and not is_calibration_error(chosen):
        greater_is_better = GREATER_IS_BETTER.get(type(chosen))
        if greater_is_better is None:
            raise ValueError(
                f"greater_is_better: must be True or False for {chosen!r}, by which no model is "
                "known to be better"
            )
    greater = check_flag("greater_is_better", greater_is_better or False)
    return Scorer(chosen, setting, average, greater)


ece_scorer = scorer("ece")


class ReliabilityDisplay:
    """A reliability diagram in the form of scikit-learn's displays.

    `from_estimator` and `from_predictions` make one and draw it.

    Parameters
    ----------
    diagram : ReliabilityDiagram, or a list of one for each class
        What `fastece.reliability_diagram` gives.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    diagram, name
        The parameters.
    ax_ : matplotlib Axes, or array of them
        Where the diagram was drawn last; of one for each class, the axes of all.
    figure_ : matplotlib Figure
    artists_ : list of matplotlib artists
        What was drawn there for this model: line, points, intervals, occupancy.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from fastece.sklearn import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> one, two = (GaussianNB(var_smoothing=x).fit(X[::2], y[::2]) for x in (1e-9, 1e-3))
    >>> display = ReliabilityDisplay.from_estimator(one, X[1::2], y[1::2], n_bins=10)
    >>> other = ReliabilityDisplay.from_estimator(
    ...     two, X[1::2], y[1::2], n_bins=10, ax=display.ax_, name="smooth"
    ... )
    >>> round(display.diagram.value, 3), round(other.diagram.value, 3)
    (0.059, 0.098)
    """

    ax_: Any
    figure_: "Figure"
    artists_: list[Any]

    def __init__(
        self, diagram: ReliabilityDiagram | list[ReliabilityDiagram], *, name: str | None = None
    ) -> None:
        self.diagram = diagram
        self.name = name

    def plot(
        self, ax: "Axes | None" = None, *, name: str | None = None, color: Any = None,
        legend: bool = True, band: "ConsistencyBand | bool | None" = True,
    ) -> Self:  # fmt: skip
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, beside what is there; without it, on a new figure.
        name : str, optional
            Another name of the model than that of the display.
        color, legend, band
            As in `fastece.plot.plot_diagram`.

        Returns
        -------
        ReliabilityDisplay
            This one.

        Raises
        ------
        ValueError
            For `ax`, where there is one diagram for each class: they take a figure.
        """
        from fastece.plot.results import new_axes, plot_classes

        name = self.name if name is None else name
        if isinstance(self.diagram, list):
            if ax is not None or color is not None or not legend:
                raise ValueError(
                    "setting: 'classwise' fills a figure of its own, without ax, color or legend; "
                    "a class index has one diagram"
                )
            self.figure_ = plot_classes({name: self.diagram}, band=band)
            self.ax_ = np.array(self.figure_.axes)
            self.artists_ = [artist for one in self.ax_ for artist in artists_of(one)]
            return self
        self.ax_ = new_axes(1)[0] if ax is None else ax
        before = artists_of(self.ax_)
        self.diagram.plot(self.ax_, color=color, label=name, legend=legend, band=band)
        self.artists_ = [artist for artist in artists_of(self.ax_) if artist not in before]
        self.figure_ = self.ax_.figure
        settle(self.figure_)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, /, *, name: str | None = None,  # noqa: N803
        ax: "Axes | None" = None, pos_label: Any = None, setting: Any = "auto", **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the diagram of a fitted classifier on rows of a test set.

        Parameters
        ----------
        estimator : classifier
            With `predict_proba` and `classes_`, as a pipeline with a classifier at its end has.
        X : (n, ...) array_like
            Rows that it takes.
        y : (n,) array_like
            Their labels.
        name : str, optional
            Name in the legend; by default that of the estimator's class.
        ax : matplotlib Axes, optional
            Where to draw, beside what is there; without it, on a new figure.
        pos_label : label, optional
            The positive one of two classes, by default ``classes_[1]``.
        setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
            As in `scorer`.
        **options
            Of `fastece.reliability_diagram` (`estimator` for another estimator of the error,
            `n_bins`, `sample_weight`) and of `plot` (`color`, `legend`, `band`).

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError, TypeError
            As `fastece.reliability_diagram`; for an estimator without class probabilities.
        """
        prob, labels = class_probabilities(estimator, X)
        if len(labels) == 2 and pos_label is not None and pos_label == labels[0]:
            prob, labels = prob[:, ::-1], labels[::-1]
        return cls.from_predictions(
            y, prob, name=type(estimator).__name__ if name is None else name, ax=ax,
            pos_label=pos_label, labels=labels, setting=own_setting(setting, labels), **options,
        )  # fmt: skip

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, name: str | None = None, ax: "Axes | None" = None,
        pos_label: Any = None, color: Any = None, legend: bool = True,
        band: "ConsistencyBand | bool | None" = True, **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the diagram of labels and probabilities.

        Parameters
        ----------
        y_true : (n,) array_like
            Labels.
        y_prob : (n,) or (n, K) array_like of float
            Probability of the positive class, or of each class.
        name : str, optional
            Name of the model in the legend.
        ax : matplotlib Axes, optional
            Where to draw, beside what is there; without it, on a new figure.
        pos_label : label, optional
            The positive class, where labels are not 0 and 1.
        color, legend, band
            As in `fastece.plot.plot_diagram`.
        **options
            Of `fastece.reliability_diagram`: `estimator`, `n_bins`, `setting`, `labels`,
            `sample_weight` and the others.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError, TypeError
            As `fastece.reliability_diagram`.
        """
        diagram = reliability_diagram(y_true, y_prob, pos_label=pos_label, **options)
        return cls(diagram, name=name).plot(ax, color=color, legend=legend, band=band)


def artists_of(ax: "Axes") -> list[Any]:
    """Lines, points, intervals and bars on axes."""
    return [*ax.lines, *ax.collections, *ax.patches]


def settle(figure: Any) -> None:
    """Lay out a figure once before it is drawn: that takes two turns with square axes, and a file
    of the first would cut off the title. Parts of figures are laid out with the whole."""
    if figure.get_layout_engine() is not None and hasattr(figure, "draw_without_rendering"):
        figure.draw_without_rendering()
