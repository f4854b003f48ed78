"""How well a classifier is calibrated, on one page."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fastece.binned import Binned
from fastece.estimators import ESTIMATORS, find_estimator
from fastece.protocol import direct_values
from fastece.reliability import ReliabilityDiagram, diagrams_of
from fastece.settings import SETTINGS, ArrayProblems, read_problems

__all__ = ["Measure", "Report", "make_report"]

PAIRS = "binary (is the top label right, at its confidence)"


@dataclass(frozen=True)
class Measure:
    """One calibration error of a report.

    Attributes
    ----------
    name : str
        As `fastece.ece` takes it, or "mce".
    value : float
        The error; class-wise, the mean over classes.
    estimator : str
        The estimator with its parameters.
    n_bins, occupied : int or None
        Number of bins of all problems together, and how many of them hold at least one row; None
        for an estimator without bins.
    """

    name: str
    value: float
    estimator: str
    n_bins: int | None
    occupied: int | None


@dataclass(frozen=True, eq=False)
class Report:
    """Size, accuracy, calibration errors and reliability diagram of a set of predictions.

    Attributes
    ----------
    title : str
        What was measured.
    n : int
        Number of rows.
    n_classes : int or None
        Number of classes; None where only the top label is known.
    accuracy, mean_confidence : float
        Share of rows whose most probable class is the label, and its mean probability.
    setting : str
        The setting that the errors are of.
    measures : tuple of Measure
    diagrams : tuple of ReliabilityDiagram
        One, or one for each class.
    """

    title: str
    n: int
    n_classes: int | None
    accuracy: float
    mean_confidence: float
    setting: str
    measures: tuple[Measure, ...]
    diagrams: tuple[ReliabilityDiagram, ...]

    def __str__(self) -> str:
        head = {
            "rows": f"{self.n}",
            "classes": "not known" if self.n_classes is None else f"{self.n_classes}",
            "accuracy": f"{self.accuracy:.4f}",
            "mean confidence": f"{self.mean_confidence:.4f}",
            "setting": self.setting,
        }
        lines = [self.title, *(f"  {key:<16} {value}" for key, value in head.items()), ""]
        lines.append("  error      value   bins  occupied  estimator")
        for m in self.measures:
            bins = f"{m.n_bins or '-':>5}  {m.occupied or '-':>8}"
            lines.append(f"  {m.name:<6} {m.value:9.5f}  {bins}  {m.estimator}")
        return "\n".join([*lines, *(f"\n{diagram}" for diagram in self.diagrams)])

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["measures"] = [asdict(measure) for measure in self.measures]
        values["diagrams"] = [diagram.to_dict() for diagram in self.diagrams]
        return values


def measure(name: str, estimator: Any, problems: ArrayProblems) -> Measure:
    """One line of the report."""
    if not isinstance(estimator, Binned):
        value = float(direct_values(estimator, problems).mean())
        return Measure(name, value, str(estimator), None, None)
    sums = estimator.bins(problems, moments=2)
    value = float(estimator.values(sums).mean())
    filled = int(np.count_nonzero(sums.weight))
    return Measure(name, value, str(estimator), sums.weight.size, filled)


def with_fields(name: str, fields: dict[str, Any]) -> Any:
    """The estimator of that name, with those of the fields that it has."""
    estimator = find_estimator(name, {})
    return find_estimator(name, {k: v for k, v in fields.items() if hasattr(estimator, k)})


def make_report(
    y_true: Any,
    y_prob: Any,
    *,
    title: str = "predictions",
    setting: Any = "auto",
    pairs: bool = False,
    classes: int | None = None,
    from_logits: bool = False,
    n_bins: Any = 15,
) -> Report:
    """Measure predictions with every estimator of the table.

    Parameters
    ----------
    y_true, y_prob, setting, from_logits, n_bins
        As in `fastece.ece`.
    title : str
        First line of the report.
    pairs : bool
        `y_true` says whether the predicted class was right and `y_prob` is its confidence: a binary
        problem, whose scores lie on [1/K, 1] if the number of `classes` K is given.
    classes : int, optional
        With `pairs` only.

    Returns
    -------
    Report
    """
    fields = {"n_bins": n_bins}
    if pairs and (setting not in ("auto", "binary") or from_logits):
        raise ValueError(
            f"setting: {setting!r} needs a class vector; labels and confidences are a binary "
            "problem, and confidences are no logits"
        )
    if classes is not None:
        fields["score_range"] = (1 / classes, 1.0)
    problems = read_problems(y_true, y_prob, setting=setting, from_logits=from_logits).checked
    classwise = problems.setting.per_class
    top = problems if pairs else replace(problems, setting=SETTINGS["confidence"])
    whole = Binned(n_bins=1).bins(top)
    estimators = {name: with_fields(name, fields) for name in ESTIMATORS}
    estimators["mce"] = find_estimator("ece", {**fields, "norm": math.inf})
    return Report(
        title=title,
        n=problems.n,
        n_classes=classes if pairs else problems.n_classes,
        accuracy=float(whole.hits[0, 0] / whole.total[0]),
        mean_confidence=float(whole.score[0, 0] / whole.total[0]),
        setting=PAIRS if pairs else "classwise" if classwise else problems.name(0),
        measures=tuple(measure(name, e, problems) for name, e in estimators.items()),
        diagrams=tuple(diagrams_of(estimators["ece"], problems)),
    )
