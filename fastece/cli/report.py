"""How well a classifier is calibrated, on one page."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fastece.binned.estimator import Binned
from fastece.estimators import ESTIMATORS, find_estimator
from fastece.problems.settings import SETTINGS, ArrayProblems
from fastece.protocol import direct_values
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.resampling.arguments import Call, read_call, samples_of
from fastece.resampling.bootstrap import bootstrap, bootstrapped
from fastece.resampling.calibration_test import calibration_test, result_of
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import ConfidenceInterval
from fastece.resampling.rehearsal import compile_resampling

__all__ = ["PAIRS", "Measure", "Report", "check_pairs", "make_report", "read_model"]

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
    low, high : float or None
        Ends of its confidence interval; None without resamples.
    estimator : str
        The estimator with its parameters.
    n_bins, occupied : int or None
        Number of bins of all problems together, and how many of them hold at least one row; None
        for an estimator without bins.
    bandwidth : float or None
        The bandwidth that was used, for an estimator that has one; class-wise, the mean over
        classes.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    estimator: str
    n_bins: int | None
    occupied: int | None
    bandwidth: float | None


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
    n_resamples : int
        Number of resamples behind the intervals and the p-value.
    confidence_level : float
        Of the intervals.
    p_value : float or None
        Of `fastece.calibration_test` with "ece"; None without resamples.
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
    n_resamples: int
    confidence_level: float
    p_value: float | None
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
        level = f"{100 * self.confidence_level:g} % interval"
        wide = f"  {level:<18}" if self.n_resamples else ""
        lines.append(f"  error      value{wide}   bins  occupied  estimator")
        for m in self.measures:
            ends = f"  [{m.low:.5f}, {m.high:.5f}]" if self.n_resamples else ""
            bins = f"{m.n_bins or '-':>5}  {m.occupied or '-':>8}"
            lines.append(f"  {m.name:<7} {m.value:8.5f}{ends}  {bins}  {self.named(m)}")
        if self.n_resamples:
            lines.append(f"\n  intervals: basic bootstrap, {self.n_resamples} resamples")
            lines.append(f"  p-value of an ece as large if calibrated: {self.p_value:.4f}")
        return "\n".join([*lines, *(f"\n{diagram}" for diagram in self.diagrams)])

    def named(self, m: Measure) -> str:
        """The estimator of one line, with the bandwidth that it found."""
        if m.bandwidth is None:
            return m.estimator
        mean = "mean " if len(self.diagrams) > 1 else ""
        return f"{m.estimator}, {mean}bandwidth {m.bandwidth:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["measures"] = [asdict(measure) for measure in self.measures]
        values["diagrams"] = [diagram.to_dict() for diagram in self.diagrams]
        return values


def measure(
    name: str, estimator: Any, problems: ArrayProblems, ends: ConfidenceInterval | None
) -> Measure:
    """One line of the report."""
    low, high = ends or (None, None)
    if not isinstance(estimator, Binned):
        value = float(direct_values(estimator, problems).mean())
        bandwidths = getattr(estimator, "bandwidths", None)
        used = None if bandwidths is None else float(np.mean(bandwidths(problems)))
        return Measure(name, value, low, high, str(estimator), None, None, used)
    sums = estimator.bins(problems, moments=2)
    value = float(estimator.values(sums).mean())
    filled = int(np.count_nonzero(sums.weight))
    return Measure(name, value, low, high, str(estimator), sums.weight.size, filled, None)


def with_fields(name: str, fields: dict[str, Any]) -> Any:
    """The estimator of that name, with those of the fields that it has."""
    estimator = find_estimator(name, {})
    return find_estimator(name, {k: v for k, v in fields.items() if hasattr(estimator, k)})


def estimators_of(n_bins: Any, classes: int | None) -> dict[str, Any]:
    """Every estimator of the table and "mce", for top labels of that many classes if given."""
    fields = {"n_bins": n_bins}
    if classes is not None:
        fields["score_range"] = (1 / classes, 1.0)
    estimators = {name: with_fields(name, fields) for name in ESTIMATORS}
    return {**estimators, "mce": find_estimator("ece", {**fields, "norm": math.inf})}


def check_pairs(setting: Any, from_logits: bool) -> None:
    """Refuse what labels and confidences cannot give."""
    if setting not in ("auto", "binary") or from_logits:
        raise ValueError(
            f"setting: {setting!r} needs a class vector; labels and confidences are a binary "
            "problem, and confidences are no logits"
        )


def read_model(
    y_true: Any, y_prob: Any, prob_name: str, *, n_bins: Any, classes: int | None, least: int,
    **options: Any,
) -> Call:  # fmt: skip
    """The call of every estimator on one model; `options` are those of `fastece.bootstrap`."""
    call = read_call(
        y_true, {prob_name: y_prob}, estimator="ece", fields={}, least=least, method="basic",
        average="macro", labels=None, pos_label=None, sample_weight=None, **options,
    )  # fmt: skip
    return replace(call, estimators=estimators_of(n_bins, classes))


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
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    rng: Any = 0,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
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
    n_resamples : int, default 1000
        For the intervals and the p-value; without any, there is neither.
    confidence_level, n_jobs
        As in `fastece.bootstrap`.
    rng : int, None or numpy.random.Generator, default 0
        As in `fastece.bootstrap`, but the same report every time unless it is asked otherwise.

    Returns
    -------
    Report
    """
    if pairs:
        check_pairs(setting, from_logits)
    call = read_model(
        y_true, y_prob, "y_prob", n_bins=n_bins, classes=classes, least=0, setting=setting,
        from_logits=from_logits, n_resamples=n_resamples, confidence_level=confidence_level,
        n_jobs=n_jobs, executor=None,
    )  # fmt: skip
    call = replace(call, progress=progress)
    with compile_resampling(call, bootstrap, calibration_test):
        return measured(call, rng, title=title, pairs=pairs, classes=classes)


def measured(call: Call, rng: Any, *, title: str, pairs: bool, classes: int | None) -> Report:
    """The report of one call."""
    problems, estimators = call.models[0], call.estimators
    top = problems if pairs else replace(problems, setting=SETTINGS["confidence"])
    whole = Binned(n_bins=1).bins(top)
    ends, p_value = resampled(call, rng) if call.n_resamples else ({}, None)
    return Report(
        title=title,
        n=problems.n,
        n_classes=classes if pairs else problems.n_classes,
        accuracy=float(whole.hits[0, 0] / whole.total[0]),
        mean_confidence=float(whole.score[0, 0] / whole.total[0]),
        setting=PAIRS if pairs else call.setting,
        n_resamples=call.n_resamples,
        confidence_level=call.level,
        p_value=p_value,
        measures=tuple(
            measure(name, e, problems, ends.get(name)) for name, e in estimators.items()
        ),
        diagrams=tuple(diagrams_of(estimators["ece"], problems)),
    )


def resampled(call: Call, rng: Any) -> tuple[dict[str, ConfidenceInterval], float]:
    """Intervals of all estimators, from shared draws, and the p-value of "ece"."""
    results = bootstrapped(call, rng=rng)
    test = result_of(call, "ece", samples_of(call.models[0]), new_key(rng))
    return {name: result.confidence_interval for name, result in results.items()}, test.p_value
