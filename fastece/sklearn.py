"""Calibration errors as scores of scikit-learn, reliability diagrams as displays.

>>> from fastece.sklearn import ece_scorer
>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = load_breast_cancer(return_X_y=True)
>>> cross_val_score(GaussianNB(), X, y, scoring=ece_scorer).round(3)
array([-0.076, -0.082, -0.046, -0.052, -0.046])

scikit-learn itself is imported where it is needed: its extra is ``pip install fastece[sklearn]``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_average, check_flag
from fastece.data.table import find_setting
from fastece.estimators.table import find_estimator
from fastece.metrics import Macro, ece
from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram

__all__ = ["ReliabilityDisplay", "Scorer", "ece_scorer", "scorer"]


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
    # scores by the name of the method, and would hand the positive class of one score to all.

    estimator: Any
    setting: Any
    average: Macro | None
    greater_is_better: bool
    # Whether sample weights are requested.
    _request: bool | str | None = None

    def __repr__(self) -> str:
        arguments = [str(self.estimator)]
        if self.setting != "auto":
            arguments.append(f"setting={self.setting!r}")
        if self.average != "macro":
            arguments.append(f"average={self.average!r}")
        arguments.append(f"greater_is_better={self.greater_is_better}")
        return f"scorer({', '.join(arguments)})"

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
            Their labels, which are among `classes_`; not every class has to occur. With "tasks"
            (n, T), a column for each task.
        sample_weight : (n,) array_like of float, optional
            Weights, not negative.

        Returns
        -------
        float, or with ``average=None`` a dict of them by label, or by the number of a task

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; for a label that is not among `classes_`, and for an estimator without
            class probabilities.
        """
        if is_tasks(self.setting):
            prob, labels = task_probabilities(estimator, X)
            setting = self.setting
        else:
            prob, labels = class_probabilities(estimator, X)
            setting = own_setting(self.setting, labels)
        try:
            value = ece(
                y_true, prob, estimator=self.estimator, setting=setting,
                average=self.average, labels=labels, sample_weight=sample_weight,
            )  # fmt: skip
        except InputError as error:
            if error.argument == "y_true" and error.index is not None:
                kind = type(estimator).__name__
                error.add_note(f"These are classes_ of {kind}: it was fitted to no others.")
            raise
        sign = 1.0 if self.greater_is_better else -1.0
        if isinstance(value, np.ndarray):
            names: Any = range(value.size) if is_tasks(self.setting) else labels
            return {str(k): sign * one for k, one in zip(names, value.tolist(), strict=True)}
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
            advice = "call sklearn.set_config(enable_metadata_routing=True) first"
            raise RuntimeError(f"set_score_request: {advice}")
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
    setting : {"auto", "binary", "confidence", "classwise", "tasks"} or int, default "auto"
        As in `fastece.ece`, but "auto" goes by the classes that a model was fitted to: of two it is
        the binary problem of ``classes_[1]``, of more the top label. An int is a position in
        `classes_`. "tasks" is for models of several yes/no labels, such as
        ``MultiOutputClassifier``, ``ClassifierChain`` and forests.
    average : {"macro", None}, default "macro"
        For "classwise" and "tasks": the mean over classes or tasks; or, with None, one score for
        each, which scikit-learn names by label or task: "test_ant", "test_bee"; "test_0". That
        works by itself, not in a dict.
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
    if not is_tasks(setting):  # refuse an unknown one before anything is fitted
        is_binary = isinstance(setting, str) and setting == "binary"
        find_setting(setting, (0,) if is_binary else (0, 2**31))
    sign = chosen.greater_is_better if greater_is_better is None else greater_is_better
    if sign is None:
        raise InputError("greater_is_better", f"must be True or False for {chosen!r}")
    return Scorer(chosen, setting, average, check_flag("greater_is_better", sign))


def class_probabilities(estimator: Any, X: Any) -> tuple[NDArray[Any], list[Any]]:  # noqa: N803
    """Return a classifier's probabilities (n, K) and the labels of their columns."""
    kind = type(estimator).__name__
    predictions = predict(estimator, X)
    if any(map(np.ndim, estimator.classes_)):
        rule = f"must predict one label for each row, {kind} predicts several"
        raise InputTypeError("estimator", rule, hint="scorer(setting='tasks') takes yes/no labels")
    classes = np.asarray(estimator.classes_)
    if classes.size == 1:
        rule = f"{kind} was fitted to rows of one class alone, {classes.tolist()}"
        raise InputError("estimator", rule, hint="stratified folds have rows of every class")
    prob = as_probabilities(predictions, "predict_proba(X)")
    if prob.shape[1:] != classes.shape:
        rule = f"{kind}.predict_proba must give a column for each of {classes.size} classes"
        raise InputError("estimator", f"{rule}, got shape {prob.shape}")
    return prob, classes.tolist()


def task_probabilities(estimator: Any, X: Any) -> tuple[Any, list[Any] | None]:  # noqa: N803
    """Return the probabilities (n, T) of tasks, and the labels no and yes.

    None stands for the labels 0 and 1.
    """
    predictions = predict(estimator, X)
    classes = [np.asarray(of_task).tolist() for of_task in estimator.classes_]
    if not all(isinstance(of_task, list) for of_task in classes):
        return predictions, None  # these are numbers of the tasks
    for k, of_task in enumerate(classes):
        if len(of_task) != 2 or of_task != classes[0]:
            rule = "must be fitted to the same two labels in every task"
            hint = f"those of task 0 are {classes[0]!r:.80}"
            raise InputError(f"estimator.classes_[{k}]", rule, value=of_task, hint=hint)
    if isinstance(predictions, list):
        predictions = np.stack([of_task[:, 1] for of_task in predictions], axis=1)
    return predictions, classes[0]


def predict(estimator: Any, X: Any) -> Any:  # noqa: N803
    """Return the class probabilities as the classifier predicts them."""
    kind = type(estimator).__name__
    try:
        predict_proba = estimator.predict_proba
    except AttributeError as error:
        hint = "sklearn.calibration.CalibratedClassifierCV makes probabilities of decisions"
        rule = f"must have predict_proba, {kind} has none"
        raise InputTypeError("estimator", rule, hint=hint) from error
    predictions = predict_proba(X)
    if not hasattr(estimator, "classes_"):
        raise InputTypeError("estimator", f"must have classes_, as classifiers do, {kind} has none")
    return predictions


def is_tasks(setting: Any) -> bool:
    """Decide whether a setting is the one of several yes/no labels."""
    return isinstance(setting, str) and setting == "tasks"


def own_setting(setting: Any, labels: list[Any]) -> Any:
    """Return the setting for a classifier: "auto" is "binary" for two classes."""
    is_auto = isinstance(setting, str) and setting == "auto"
    return "binary" if is_auto and len(labels) == 2 else setting


ece_scorer = scorer("ece")


class ReliabilityDisplay:
    """A reliability diagram in the form of scikit-learn's displays.

    `from_estimator` and `from_predictions` compute one and draw it on square axes. Where most
    scores are near 0 or 1, ``display.diagram.plot()`` adds axes of log odds.

    Parameters
    ----------
    diagram : ReliabilityDiagram, or a list of one for each class
        The result of `fastece.reliability_diagram`.
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
        The marks of this model: line, points, intervals, occupancy.

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
    figure_: Any
    artists_: list[Any]

    def __init__(
        self, diagram: ReliabilityDiagram | list[ReliabilityDiagram], *, name: str | None = None
    ) -> None:
        self.diagram = diagram
        self.name = name

    def __repr__(self) -> str:
        diagrams = self.diagram if isinstance(self.diagram, list) else [self.diagram]
        errors = ", ".join(f"{diagram.value:.4f}" for diagram in diagrams)
        return f"<ReliabilityDisplay({self.name!r}): error {errors}>"

    def plot(
        self, ax: Any = None, *, name: str | None = None, color: Any = None, legend: bool = True,
        band: Any = True,
    ) -> Self:  # fmt: skip
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on, beside other models; by default a new figure.
        name : str, optional
            Another name of the model; by default the name of the display.
        color, legend, band
            As in `ReliabilityDiagram.plot`.

        Returns
        -------
        ReliabilityDisplay
            This one.

        Raises
        ------
        ValueError
            For `ax`, where there is one diagram for each class: they take a figure.
        """
        from fastece.display.axes import check_axes, new_axes, settle_layout
        from fastece.display.pages import plot_classes

        name = self.name if name is None else name
        if isinstance(self.diagram, list):
            if ax is not None or color is not None or not legend:
                rule = "'classwise' fills a figure of its own, without ax, color or legend"
                raise InputError("setting", rule, hint="a class index has one diagram")
            models = self.diagram if name is None else {name: self.diagram}
            self.figure_ = plot_classes(models, band=band)
            self.ax_ = np.array(self.figure_.axes)
            self.artists_ = artists_of(self.ax_)
            return self
        check_axes(ax)
        self.ax_ = new_axes(1)[0] if ax is None else ax
        before = artists_of([self.ax_])
        self.diagram.plot(self.ax_, color=color, label=name, legend=legend, band=band)
        self.artists_ = [artist for artist in artists_of([self.ax_]) if artist not in before]
        self.figure_ = self.ax_.figure
        settle_layout(self.figure_)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, /, *, name: str | None = None,  # noqa: N803
        ax: Any = None, pos_label: Any = None, setting: Any = "auto", **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the diagram of a fitted classifier on rows of a test set.

        The first three arguments have no names: `estimator=` is another estimator of the error.

        Parameters
        ----------
        estimator : classifier
            It has `predict_proba` and `classes_`, as a pipeline that ends in a classifier has.
        X : (n, ...) array_like
            Rows of the test set.
        y : (n,) array_like
            Their labels.
        name : str, optional
            Name in the legend; by default the name of the estimator's class.
        ax : matplotlib Axes, optional
            Axes to draw on, beside other models; by default a new figure.
        pos_label : label, optional
            The positive one of two classes, by default ``classes_[1]``.
        setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
            As in `scorer`.
        **options
            Of `fastece.reliability_diagram` (`estimator`, `n_bins`, `sample_weight`) and of `plot`
            (`color`, `legend`, `band`).

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
            prob = prob[:, ::-1]
            labels = labels[::-1]
        options["setting"] = own_setting(setting, labels)
        if name is None:
            name = type(estimator).__name__
        return cls.from_predictions(
            y, prob, name=name, ax=ax, pos_label=pos_label, labels=labels, **options
        )

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, name: str | None = None, ax: Any = None,
        pos_label: Any = None, color: Any = None, legend: bool = True, band: Any = True,
        **options: Any,
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
            Axes to draw on, beside other models; by default a new figure.
        pos_label : label, optional
            The positive class, where labels are not 0 and 1.
        color, legend, band
            As in `ReliabilityDiagram.plot`.
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


def artists_of(axes: Iterable[Any]) -> list[Any]:
    """List lines, points, intervals and bars on axes."""
    return [artist for ax in axes for artist in (*ax.lines, *ax.collections, *ax.patches)]
