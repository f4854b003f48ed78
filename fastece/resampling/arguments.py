"""The checked arguments of one call that resamples, and the values of its replicates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.estimators import find_estimator
from fastece.inputs.parameters import check_average, check_integer, check_jobs
from fastece.problems.problems import Problems
from fastece.problems.reading import read_problems
from fastece.protocol import Sample
from fastece.resampling.engine import Problem, Replicates, Work, evaluate, plan_replicates
from fastece.resampling.intervals import check_level, check_method

__all__ = ["Call", "plan", "read_call", "replicate_values", "samples_of"]

F64 = NDArray[np.float64]

MOST_RESAMPLES = 2**40


def find_estimators(estimator: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The estimators of one call by their names."""
    if not isinstance(estimator, list | tuple):
        return {"": find_estimator(estimator, fields)}
    if not estimator:
        raise ValueError("estimator: the list is empty")
    found: dict[str, Any] = {}
    for one in estimator:
        name = one if isinstance(one, str) else str(one)
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

    Attributes
    ----------
    estimators : dict
        By name; "" for a single one.
    models : list of Problems
        The problems of each model, on the same rows.
    average : "macro" or None
    n_resamples : int
    level : float
    method : str
    jobs : int
    executor : object or None
    progress : callable or None
        Told how far the work is.
    """

    estimators: dict[str, Any]
    models: list[Problems]
    average: str | None
    n_resamples: int
    level: float
    method: str
    jobs: int
    executor: Any
    progress: Callable[[str], None] | None = None

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self.models[0].n

    @property
    def setting(self) -> str:
        """The setting, as results name it."""
        problems = self.models[0]
        return "classwise" if problems.setting.per_class else problems.name(0)

    def averaged(self, values: F64) -> Any:
        """Values (K, ...) of the problems as the caller wants them."""
        if not self.models[0].setting.per_class:
            return values[0]
        return values if self.average is None else values.mean(0)


def read_call(
    y_true: Any,
    models: dict[str, Any],
    *,
    estimator: Any,
    fields: dict[str, Any],
    n_resamples: Any,
    least: int,
    confidence_level: Any,
    method: Any,
    setting: Any,
    average: Any,
    labels: Any,
    pos_label: Any,
    sample_weight: Any,
    from_logits: Any,
    n_jobs: Any,
    executor: Any,
) -> Call:
    """Check the arguments of one call; `models` are the predicted probabilities by the names of
    their arguments, `least` is the smallest number of replicates."""
    check_average(average)
    estimators = find_estimators(estimator, fields)
    count = check_integer("n_resamples", n_resamples, least, MOST_RESAMPLES)
    level, method = check_level(confidence_level), check_method(method)
    jobs = check_executor(executor, n_jobs)
    problems = [
        read_problems(
            y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label, sample_weight=sample_weight,
            from_logits=from_logits, prob_name=name,
        )
        for name, y_prob in models.items()
    ]  # fmt: skip
    return Call(estimators, problems, average, count, level, method, jobs, executor)


def samples_of(problems: Problems) -> list[Sample]:
    """The problems as samples, in the order in which rows are drawn."""
    return problems.samples()


def plan(call: Call, problems: Sequence[Problem], draws: Any, size: int) -> Replicates:
    """Every estimator of the call, prepared on every problem."""
    return plan_replicates(list(call.estimators.values()), problems, draws, size)


def replicate_values(call: Call, works: Sequence[Work]) -> list[F64]:
    """Values (problems, estimators, ..., replicates) of some ranges of replicates."""
    found = evaluate(works, call.jobs, call.executor, call.progress)
    each = len(call.estimators)
    return [values.reshape(len(values) // each, each, *values.shape[1:]) for values in found]
