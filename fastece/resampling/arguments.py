"""What a caller of a function that resamples wants, read and checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.estimators import find_estimator
from fastece.inputs.parameters import check_average, check_choice, check_integer, check_jobs
from fastece.problems.problems import Problems
from fastece.problems.reading import read_problems
from fastece.resampling.engine import Replicates, evaluate
from fastece.resampling.intervals import METHODS, check_level

__all__ = ["Call", "check_executor", "describe", "read_call"]

MOST_RESAMPLES = 2**40
# What Python writes where an object has no text of its own: another number in every process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(estimator: Any) -> str:
    """An estimator with its parameters, the same text in every process."""
    return ADDRESS.sub("", str(estimator))


def find_estimators(estimator: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The estimators of one call by name: "" for one that is no list; in a list the name that the
    caller gives, or for objects their text, or the class of those without one, numbered."""
    if not isinstance(estimator, list | tuple):
        return {"": find_estimator(estimator, fields)}
    if not estimator:
        raise ValueError("estimator: the list is empty")
    found: dict[str, Any] = {}
    for one in estimator:
        name = str(one)
        if ADDRESS.search(name):
            kind = type(one).__name__
            numbers = ("", *(f" {i}" for i in range(2, len(estimator) + 1)))
            name = next(kind + number for number in numbers if kind + number not in found)
        if name in found:
            raise ValueError(f"estimator: {name!r} is named twice")
        found[name] = find_estimator(one, fields)
    return found


def check_executor(executor: Any, n_jobs: Any) -> int:
    """Number of threads of our own, where there is no executor."""
    if executor is None:
        return check_jobs(n_jobs)
    if n_jobs is not None:
        raise ValueError("n_jobs: goes without executor=, which has workers of its own")
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor: must have a method submit, got {executor!r}")
    return 1


@dataclass(frozen=True)
class Call:
    """The checked arguments of one call.

    `estimators` have names, "" if there is one without a list; `models` are the problems of each
    model, on the same rows.
    """

    estimators: dict[str, Any]
    models: list[Problems]
    average: str | None
    n_resamples: int
    level: float
    method: str
    jobs: int
    executor: Any

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.models[0].n

    @property
    def setting(self) -> str:
        """The setting, as results name it."""
        problems = self.models[0]
        return "classwise" if problems.setting.per_class else problems.name(0)

    def average_of(self, values: Any) -> Any:
        """Values (K, ...) of the problems of one model as the caller wants them: that of the only
        problem, those of all classes, or their mean."""
        if not self.models[0].setting.per_class:
            return values[0]
        return values if self.average is None else values.mean(0)

    def quantity(self, models: Sequence[Any]) -> Any:
        """What the call is about, from the values of each model: the error of the only one, or the
        first one's minus the second one's."""
        return models[0] - models[1] if len(models) > 1 else models[0]

    def evaluate(self, replicates: Replicates, first: int, last: int) -> NDArray[np.float64]:
        """The values (members, ..., last - first) of a range of replicates."""
        return evaluate(replicates, first, last, self.jobs, self.executor)


def read_call(
    y_true: Any, models: dict[str, Any], *, estimator: Any, fields: dict[str, Any],
    n_resamples: Any, confidence_level: Any, method: Any, average: Any, n_jobs: Any, executor: Any,
    least: int = 1, **data: Any,
) -> Call:  # fmt: skip
    """Check the arguments of one call.

    Parameters
    ----------
    models : dict
        Predicted probabilities by the names of their arguments.
    least : int
        The smallest number of replicates.
    **data
        How to read labels and probabilities, as `read_problems` takes it.
    """
    check_average(average)
    estimators = find_estimators(estimator, fields)
    count = check_integer("n_resamples", n_resamples, least, MOST_RESAMPLES)
    level, method = check_level(confidence_level), check_choice("method", method, METHODS)
    jobs = check_executor(executor, n_jobs)
    problems = [
        read_problems(y_true, y_prob, prob_name=name, **data) for name, y_prob in models.items()
    ]
    return Call(estimators, problems, average, count, level, method, jobs, executor)
