"""Faults of an estimator, found by trying it on small samples."""

import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.estimators.base import Estimator
from fastece.estimators.draws import Counts, Labels, Rows
from fastece.estimators.table import find_estimator

UNBROKEN = "it must work without an error or a warning"


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
    `values` and `block` agree with `evaluate`, for counts, lists of rows and other labels; object
    and plan can be sent to another process. These are the laws that the tests of the package hold
    its own estimators to. Whether the number is a good one is not tried.

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
    for place, rows in rows_to_try().items():
        try:
            with warnings.catch_warnings(action="error"):
                for rule, seen in faults_of(find_estimator(estimator, {}), *rows):
                    faults.setdefault(rule, f"{seen} ({place})")
        except Exception as error:
            faults.setdefault(
                "it must not fail or warn", f"{type(error).__name__}: {error} ({place})"
            )
    if faults:
        raise EstimatorError(*(f"{rule}: {seen}" for rule, seen in faults.items()))


def rows_to_try() -> dict[str, tuple[Any, ...]]:
    """Make labels, probabilities and weights by name."""
    rng, s, y = np.random.default_rng(0), np.repeat(np.arange(10) / 9, 4), np.arange(40) % 4 > 0
    many, vectors = rng.random(700), rng.dirichlet(np.ones(3), 40)
    return {
        "40 rows": (y, s), "40 rows with weights": (y, s, rng.random(40) + 0.1),
        "700 rows": (rng.random(700) < many, many), "one row": (y[1:2], s[9:10]),
        "rows of one score": (y, 0 * s + 0.3), "rows of one outcome": (0 * y, s),
        "class vectors": (np.arange(40) % 3, vectors),
    }  # fmt: skip


def difference(find: Callable[[], Any], want: Any) -> str:
    """Describe the first two values that differ, or an error; "" if all is well."""
    try:
        a, b = np.atleast_1d(find()), np.atleast_1d(want)
    except Exception as error:
        return f"got {type(error).__name__}: {error}"
    if a.shape != b.shape:
        return f"got the shape {a.shape}, and not {b.shape}"
    # Sums in another order are rounded otherwise.
    far = np.flatnonzero(~np.isclose(a, b, 1e-9, 1e-9, equal_nan=True))
    return f"got {a[far[0]]:.6g}, and not {b[far[0]]:.6g}" if far.size else ""


def faults_of(estimator: Estimator, y: Any, p: Any, v: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the rules that an estimator breaks on some rows, and its values."""
    if (p.ndim > 1) > estimator.needs_vectors or (p.size == 1 and estimator.needs_vectors):
        return  # a single row has no other class to compare with
    arrange: Any = Sample.sorted if estimator.needs_sorted else (lambda rows: rows)
    sample = arrange(read_problems(y, p, sample_weight=v, vectors=p.ndim > 1).sample(0))
    n, rng, before = sample.n, np.random.default_rng(1), pickle.dumps(sample)
    plan, c = estimator.prepare(sample, n), rng.multinomial(n, np.ones(n) / n, 32).astype(np.uint8)
    at, values = partial(estimator.evaluate, plan), partial(estimator.values, plan)
    whole = getattr(estimator, "user", estimator).evaluate(plan, sample.counts)
    if not isinstance(whole, int | float | np.number):
        yield "evaluate must return a number", f"got {whole!r:.60}"
        return
    drawn, v = c.copy(), rng.integers(1, 4, n) * 1.0
    each = [*map(at, drawn)]

    def value(rows: Any = slice(None), labels: Any = sample.y, v: Any = sample.v) -> float:
        one = replace(sample if labels is sample.y else sample.with_labels(labels), v=v)
        return estimator.evaluate_once(arrange(one.where(rows)))

    lists, plain = np.array([np.repeat(np.arange(n), row) for row in c], np.int32), value(v=None)
    repeated, labels = [*map(value, lists)], rng.integers(0, 2, (1, n, 32)).astype(np.int32)
    if len({*each}) == 1 < len({*repeated}):
        yield "evaluate must use c", f"got {whole:.6g} for every draw"
    if sample.v is not None and whole == plain and len({*repeated}) > 1:
        yield "evaluate must use sample.v", f"got {whole:.6g} with and without weights"
    blocks, other = Counts(np.ascontiguousarray(c.T)[None]), [value(labels=x) for x in labels[0].T]
    rows, hits = Rows(lists, sample), Labels(labels, sample)
    pairs: dict[str, tuple[Callable[[], Any], Any]] = {
        "evaluate must not write into c": (drawn.ravel, c.ravel()),
        "the same plan and c must have the same value": (lambda: [*map(at, c.copy())], each),
        "c may be of any type": (lambda: [*map(at, c * 1.0)], each),
        "rows may come in any order": (lambda: value(rng.permutation(n)), whole),
        "equal weights must be no weights": (lambda: value(v=np.full(n, 3.0)), plain),
        "only ratios of weights may matter": (lambda: value(v=1e6 * v), value(v=v)),
        "values of Counts must be those of evaluate": (lambda: values(blocks), each),
        "values of Labels must be those of the rows": (lambda: values(hits), other),
        "another process must get the same": (
            lambda: [*map(pickle.loads(pickle.dumps(at)), c.copy())],
            each,
        ),
    }
    if not estimator.needs_vectors:  # in which copies of a row count as one
        pairs["a row that counts twice must be two rows"] = lambda: each, repeated
        pairs["values of Rows must be those of evaluate"] = lambda: values(rows), each
    yield from ((rule, seen) for rule, pair in pairs.items() if (seen := difference(*pair)))
    if pickle.dumps(sample) != before:
        yield "prepare and evaluate must not write into the sample", "they do"
