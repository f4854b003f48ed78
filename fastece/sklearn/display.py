"""Reliability diagrams in the form of scikit-learn's displays. Needs matplotlib."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from fastece.checks.errors import InputError
from fastece.reliability.diagram import ReliabilityDiagram, reliability_diagram
from fastece.sklearn.scores import class_probabilities, own_setting


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
            Another name of the model than that of the display.
        color, legend, band
            As in `fastece.ReliabilityDiagram.plot`.

        Returns
        -------
        ReliabilityDisplay
            This one.

        Raises
        ------
        ValueError
            For `ax`, where there is one diagram for each class: they take a figure.
        """
        from fastece.plot.axes import new_axes
        from fastece.plot.pages import plot_classes

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
        self.ax_ = new_axes(1)[0] if ax is None else ax
        before = artists_of([self.ax_])
        self.diagram.plot(self.ax_, color=color, label=name, legend=legend, band=band)
        self.artists_ = [artist for artist in artists_of([self.ax_]) if artist not in before]
        self.figure_ = self.ax_.figure
        settle(self.figure_)
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
            prob, labels = prob[:, ::-1], labels[::-1]
        options["setting"] = own_setting(setting, labels)
        name = type(estimator).__name__ if name is None else name
        shown = {"name": name, "ax": ax, "pos_label": pos_label, "labels": labels}
        return cls.from_predictions(y, prob, **shown, **options)

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
            As in `fastece.ReliabilityDiagram.plot`.
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


def settle(figure: Any) -> None:
    """Lay out a figure once before it is drawn, unless it is a part of another.

    Square axes need two layouts; a file saved after the first would cut off the title.
    """
    if figure.get_layout_engine() is not None and hasattr(figure, "draw_without_rendering"):
        figure.draw_without_rendering()
