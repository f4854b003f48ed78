"""Two models on the same rows, on one page."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from fastece.cli.report import PAIRS, check_pairs, read_model
from fastece.inputs.files import Predictions
from fastece.resampling.compare import comparison_results
from fastece.resampling.results import ComparisonResult

__all__ = ["Comparison", "Difference", "make_comparison"]


@dataclass(frozen=True)
class Difference:
    """One calibration error of two models.

    Attributes
    ----------
    name : str
        As `fastece.ece` takes it, or "mce".
    a, b : float
        The errors of the two models.
    difference : float
        ``a - b``: above 0 where the second is better calibrated.
    low, high : float
        Ends of the confidence interval of the difference.
    p_value : float
        Of the hypothesis that both errors are the same.
    estimator : str
        The estimator with its parameters.
    """

    name: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    estimator: str


@dataclass(frozen=True)
class Comparison:
    """Calibration errors of two models on the same rows.

    Attributes
    ----------
    a, b : str
        What the models are called.
    n : int
        Number of rows.
    setting : str
        The setting that the errors are of.
    n_resamples : int
    confidence_level : float
    differences : tuple of Difference
    """

    a: str
    b: str
    n: int
    setting: str
    n_resamples: int
    confidence_level: float
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g} % interval"
        lines = [
            f"a: {self.a}",
            f"b: {self.b}",
            f"  rows             {self.n}",
            f"  setting          {self.setting}",
            "",
            f"  error         a        b     a - b  {level:<20}  p-value  estimator",
        ]
        lines += [
            f"  {d.name:<7} {d.a:.5f}  {d.b:.5f}  {d.difference:+.5f}  "
            f"[{d.low:+.5f}, {d.high:+.5f}]  {d.p_value:7.4f}  {d.estimator}"
            for d in self.differences
        ]
        return "\n".join([*lines, f"\n  basic bootstrap, {self.n_resamples} shared resamples"])

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


def difference_of(name: str, result: ComparisonResult) -> Difference:
    """One line of the table."""
    low, high = result.confidence_interval
    return Difference(
        name=name,
        a=result.a,
        b=result.b,
        difference=result.difference,
        low=low,
        high=high,
        p_value=result.p_value,
        estimator=result.estimator,
    )


def check_same_rows(a: Predictions, b: Predictions, names: tuple[str, str]) -> None:
    """Both have the same labels, row by row."""
    if a.pairs != b.pairs:
        raise ValueError(
            f"{names[1]}: must have the kind of columns that {names[0]} has: only one of them has "
            "labels and confidences of the predicted class"
        )
    one, other = a.label.ravel().tolist(), b.label.ravel().tolist()
    if len(one) != len(other):
        raise ValueError(
            f"{names[1]}: must have the rows of {names[0]}, which has {len(one)}; got {len(other)}"
        )
    for row, (label, got) in enumerate(zip(one, other, strict=True), 1):
        if label != got:
            raise ValueError(
                f"{names[1]}: must have the labels of {names[0]}, which has {label!r} in row "
                f"{row}; got {got!r}"
            )


def make_comparison(
    a: Predictions,
    b: Predictions,
    names: tuple[str, str] = ("a", "b"),
    *,
    setting: Any = "auto",
    from_logits: bool = False,
    n_bins: Any = 15,
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    rng: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare two models by every estimator of the table.

    Parameters
    ----------
    a, b : Predictions
        Of the same rows, as their labels must show.
    names : (str, str)
        What the models are called.
    setting, from_logits, n_bins, n_resamples, confidence_level, rng, n_jobs
        As in `fastece.compare`.
    progress : callable, optional
        Told how far the work is.

    Returns
    -------
    Comparison
    """
    check_same_rows(a, b, names)
    if a.pairs:
        check_pairs(setting, from_logits)
    # Each by itself: whether the predicted class is right is another question for each model.
    calls = [
        read_model(
            model.y_true, model.y_prob, f"{name}: y_prob", n_bins=n_bins, classes=a.classes,
            least=1, setting=setting, from_logits=from_logits, n_resamples=n_resamples,
            confidence_level=confidence_level, n_jobs=n_jobs, executor=None,
        )
        for name, model in zip(names, (a, b), strict=True)
    ]  # fmt: skip
    models = [model for one in calls for model in one.models]
    call = replace(calls[0], models=models, progress=progress)
    results = comparison_results(call, rng=rng)
    return Comparison(
        a=names[0],
        b=names[1],
        n=call.n,
        setting=PAIRS if a.pairs else call.setting,
        n_resamples=call.n_resamples,
        confidence_level=call.level,
        differences=tuple(difference_of(name, result) for name, result in results.items()),
    )
