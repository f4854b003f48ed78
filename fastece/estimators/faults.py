"""Faults of an estimator, found by trying it on small samples.

A `Trial` is an estimator on the rows of one kind. `Trial.rules` has a line for each rule of the
protocol, with the two sides that must agree: a new rule is a new line there.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.options import ReadingOptions
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.estimators.base import Estimator
from fastece.estimators.draws import Counts, Labels, Rows
from fastece.estimators.table import find_estimator
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64

# Sums in another order are rounded differently.
TOLERANCE = 1e-9
# All weights are multiplied by this, to see that only their ratios matter.
WEIGHT_SCALE = 1e6


class EstimatorError(ValueError):
    """Error about an estimator that breaks rules of the protocol.

    Attributes
    ----------
    faults : tuple of str
        A line each: the rule, what was seen, and on which rows.
    """

    def __init__(self, *faults: str) -> None:
        super().__init__("\n- ".join(["the estimator breaks rules:", *faults]))
        self.faults = faults


def check_estimator(estimator: Any) -> None:
    """Try an estimator of one's own, and list its faults in an error.

    Parameters
    ----------
    estimator : object or str
        As in `fastece.ece`: an object with `prepare` and `evaluate`.

    Raises
    ------
    EstimatorError
        Where it breaks rules. Its text has a line for each: the rule, what was seen, on which rows.

    Notes
    -----
    Rows of several kinds are tried: many of them, ties, scores of 0 and 1, weights, one row, one
    score, one outcome, and class vectors where it declares that it needs them. On these, without a
    warning: `evaluate` returns a number, the same for the same plan and counts, of any type; it
    uses the counts, so that a row that counts twice is as good as two rows, and writes into neither
    them nor the sample; only ratios of weights matter, and they do; rows may come in any order;
    `values` and `block` agree with `evaluate`, for counts, lists of rows and other labels; no value
    is less than `lowest` or more than `largest`, where it declares them; object and plan can be
    sent to another process; a posterior has an influence for each row and intervals that grow with
    the level, and a curve has increasing scores and lies from 0 to 1. These are the laws that the
    tests of the package hold its own estimators to. Whether the number is a good one is not tried.

    Examples
    --------
    >>> from fastece import Binned, EstimatorError, check_estimator
    >>> check_estimator(Binned(n_bins=10))
    >>> class Gap:
    ...     def prepare(self, sample, size):
    ...         return sample.y.mean() - sample.s.mean()
    ...
    ...     def evaluate(self, plan, c):
    ...         return abs(plan)
    >>> try:
    ...     check_estimator(Gap())
    ... except EstimatorError as error:
    ...     print(error.faults[0])
    evaluate must use c: got 0.25 for every draw (40 rows)
    """
    faults: dict[str, str] = {}
    for name, rows in rows_to_try().items():
        try:
            with warnings.catch_warnings(action="error"):
                for rule, seen in faults_of(find_estimator(estimator, {}), rows):
                    faults.setdefault(rule, f"{seen} ({name})")
        except Exception as error:
            faults.setdefault(
                "it must not fail or warn", f"{type(error).__name__}: {error} ({name})"
            )
    if faults:
        raise EstimatorError(*(f"{rule}: {seen}" for rule, seen in faults.items()))


class TrialRows(NamedTuple):
    """Rows on which an estimator is tried."""

    y: NDArray[Any]
    p: F64
    sample_weight: F64 | None = None


def rows_to_try() -> dict[str, TrialRows]:
    """Make rows of several kinds by name."""
    rng = np.random.default_rng(0)
    scores = np.repeat(np.arange(10) / 9, 4)
    outcomes = np.arange(40) % 4 > 0
    many_scores = rng.random(700)
    vectors = rng.dirichlet(np.ones(3), 40)
    weights = rng.random(40) + 0.1
    return {
        "40 rows": TrialRows(outcomes, scores),
        "40 rows with weights": TrialRows(outcomes, scores, weights),
        "700 rows": TrialRows(rng.random(700) < many_scores, many_scores),
        "one row": TrialRows(outcomes[1:2], scores[9:10]),
        "rows of one score": TrialRows(outcomes, 0 * scores + 0.3),
        "rows of one outcome": TrialRows(0 * outcomes, scores),
        "class vectors": TrialRows(np.arange(40) % 3, vectors),
    }


def faults_of(estimator: Estimator, rows: TrialRows) -> Iterator[tuple[str, str]]:
    """Yield the rules that an estimator breaks on some rows, and the values seen."""
    has_vectors = rows.p.ndim > 1
    is_one_row = rows.p.size == 1
    if has_vectors and not estimator.needs_vectors:
        return
    if is_one_row and estimator.needs_vectors:  # it may compare rows, and there is no other
        return
    trial = Trial(estimator, rows)
    value = trial.user_value()
    if not isinstance(value, int | float | np.number):
        yield "evaluate must return a number", f"got {value!r:.60}"
        return
    trial.draw()
    has_effect_of_rows = len({*trial.values_of_lists}) > 1
    if len({*trial.values_of_counts}) == 1 and has_effect_of_rows:
        yield "evaluate must use c", f"got {value:.6g} for every draw"
    is_weighted = trial.sample.v is not None
    if is_weighted and value == trial.unweighted_value and has_effect_of_rows:
        yield "evaluate must use sample.v", f"got {value:.6g} with and without weights"
    for rule, sides in {**trial.rules(), **trial.rules_of_abilities()}.items():
        difference = describe_difference(*sides)
        if difference:
            yield rule, difference
    if trial.is_sample_changed():
        yield "prepare and evaluate must not write into the sample", "they do"


def describe_difference(side: Callable[[], Any], expected: Any) -> str:
    """Describe the first two values that differ, or an error; "" if all is well."""
    try:
        a = np.atleast_1d(side())
        b = np.atleast_1d(expected)
    except Exception as error:
        return f"got {type(error).__name__}: {error}"
    if a.shape != b.shape:
        return f"got the shape {a.shape}, and not {b.shape}"
    different = np.flatnonzero(~np.isclose(a, b, TOLERANCE, TOLERANCE, equal_nan=True))
    if not different.size:
        return ""
    return f"got {a[different[0]]:.6g}, and not {b[different[0]]:.6g}"


class Trial:
    """An estimator, a sample that it has prepared, and draws with their values."""

    def __init__(self, estimator: Estimator, rows: TrialRows) -> None:
        problems = read_problems(
            rows.y,
            rows.p,
            ReadingOptions(sample_weight=rows.sample_weight),
            vectors=rows.p.ndim > 1,
        )
        self.estimator = estimator
        self.sample = self.arrange(problems.sample(0))
        self.n = self.sample.n
        self.rng = np.random.default_rng(1)
        self.sample_before = pickle.dumps(self.sample)
        self.plan = estimator.prepare(self.sample, self.n)
        counts = self.rng.multinomial(self.n, np.ones(self.n) / self.n, REPLICATES)
        self.counts = counts.astype(np.uint8)

    def arrange(self, sample: Sample) -> Sample:
        """Return the rows in the order that the estimator wants."""
        return sample.sorted() if self.estimator.needs_sorted else sample

    def user_value(self) -> Any:
        """Return the value of the sample, exactly as the caller's object returns it."""
        user = getattr(self.estimator, "user", self.estimator)
        return user.evaluate(self.plan, self.sample.counts)

    def evaluate(self, counts: Any) -> list[float]:
        """Evaluate the plan for each line of counts."""
        return [self.estimator.evaluate(self.plan, c) for c in counts]

    def value(self, rows: Any = slice(None), **changes: Any) -> float:
        """Compute the value of some rows, with other fields of the sample or other labels."""
        sample = self.sample
        if "labels" in changes:
            sample = sample.with_labels(changes.pop("labels"))
        sample = replace(sample, **changes)
        return self.estimator.evaluate_once(self.arrange(sample.where(rows)))

    def draw(self) -> None:
        """Draw rows and labels, and compute the values that rules compare with."""
        self.counts_given = self.counts.copy()
        self.weights = self.rng.integers(1, 4, self.n) * 1.0
        self.values_of_counts = self.evaluate(self.counts_given)
        lists = [np.repeat(np.arange(self.n), c) for c in self.counts]
        self.lists = np.array(lists, np.int32)
        self.unweighted_value = self.value(v=None)
        self.values_of_lists = [self.value(rows) for rows in self.lists]
        self.labels = self.rng.integers(0, 2, (1, self.n, REPLICATES)).astype(np.int32)

    def rules(self) -> dict[str, tuple[Callable[[], Any], Any]]:
        """Return the two sides that must agree, by the rule that they agree by."""
        values = partial(self.estimator.values, self.plan)
        blocks = np.ascontiguousarray(self.counts.T)[None]
        values_of_labels = [self.value(labels=y) for y in self.labels[0].T]
        all_values = [*self.values_of_counts, *values_of_labels]
        weights = self.weights
        rules: dict[str, tuple[Callable[[], Any], Any]] = {
            "evaluate must not write into c": (self.counts_given.ravel, self.counts.ravel()),
            "the same plan and c must have the same value": (
                lambda: self.evaluate(self.counts.copy()),
                self.values_of_counts,
            ),
            "c may be of any type": (
                lambda: self.evaluate(self.counts * 1.0),
                self.values_of_counts,
            ),
            "rows may come in any order": (
                lambda: self.value(self.rng.permutation(self.n)),
                self.value(),
            ),
            "equal weights must be no weights": (
                lambda: self.value(v=np.full(self.n, 3.0)),
                self.unweighted_value,
            ),
            "only ratios of weights may matter": (
                lambda: self.value(v=WEIGHT_SCALE * weights),
                self.value(v=weights.copy()),
            ),
            "values of Counts must be those of evaluate": (
                lambda: values(Counts(blocks)),
                self.values_of_counts,
            ),
            "values of Labels must be those of the rows": (
                lambda: values(Labels(self.labels, self.sample)),
                values_of_labels,
            ),
            "another process must get the same": (self.values_elsewhere, self.values_of_counts),
            "values must lie from lowest to largest": (
                lambda: np.clip(all_values, *self.bounds()),
                all_values,
            ),
        }
        if not self.estimator.needs_vectors:  # in which copies of a row count as one
            rules["a row that counts twice must be two rows"] = (
                lambda: self.values_of_counts,
                self.values_of_lists,
            )
            rules["values of Rows must be those of evaluate"] = (
                lambda: values(Rows(self.lists, self.sample)),
                self.values_of_counts,
            )
        return rules

    def rules_of_abilities(self) -> dict[str, tuple[Callable[[], Any], Any]]:
        """Return the two sides of the rules of a posterior and of a curve."""
        rules: dict[str, tuple[Callable[[], Any], Any]] = {}
        estimator = self.estimator
        if estimator.posterior is not None:
            posterior = estimator.posterior([self.sample])
            inner = posterior.interval(0.5)
            rules["a posterior must have an influence for each row"] = (
                lambda: np.shape(posterior.influence),
                (self.n,),
            )
            rules["intervals of a posterior must grow with the level"] = (
                lambda: np.clip(inner, *posterior.interval(0.95)),
                inner,
            )
        if estimator.curve is not None:
            curve = estimator.curve(self.sample.sorted(), self.n, 0.95, 1.0)
            rules["scores of a curve must rise"] = (lambda: np.unique(curve.score), curve.score)
            rules["a curve must lie from 0 to 1"] = (
                lambda: np.clip(curve.probability, 0.0, 1.0),
                curve.probability,
            )
        return rules

    def bounds(self) -> tuple[float, float]:
        """Return the bounds that the estimator declares for such rows."""
        vectors = self.sample.vectors
        return self.estimator.bounds(None if vectors is None else vectors.prob.shape[1])

    def values_elsewhere(self) -> list[float]:
        """Evaluate a copy of the estimator and its plan, as another process has it."""
        evaluate = partial(self.estimator.evaluate, self.plan)
        copy = pickle.loads(pickle.dumps(evaluate))
        return [copy(c) for c in self.counts.copy()]

    def is_sample_changed(self) -> bool:
        """Decide whether the estimator has written into the sample."""
        return pickle.dumps(self.sample) != self.sample_before
