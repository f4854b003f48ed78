"""Arguments of functions that resample, read and checked."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups
from fastece.data.parameters import check_average, check_integer, check_jobs
from fastece.data.reading import read_source
from fastece.data.samples import Sample
from fastece.data.sources import Problems, Source, need_rows
from fastece.display.results import Results
from fastece.estimators.base import Chances, Labels
from fastece.estimators.losses import Mean, infinite_rows
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64
from fastece.resampling.dependence import dependence_of
from fastece.resampling.draws import Dependence, Groups, draws_of
from fastece.resampling.engine import Problem, evaluate, plan_replicates
from fastece.resampling.results import as_float, check_level

Finder = Callable[[Any, dict[str, Any], str], Any]
MOST_RESAMPLES = 2**40
# Options of the reader of data; all others are parameters of estimators.
READING = ("setting", "labels", "pos_label", "sample_weight", "from_logits", "soft", "votes")
# What Python writes where an object has no text of its own: another number in every process.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(estimator: Any) -> str:
    """Write an estimator with its parameters, as the same text in every process."""
    return ADDRESS.sub("", str(estimator))


def find_estimators(
    estimator: Any, fields: dict[str, Any], function: str, find: Finder = find_estimator
) -> dict[str, Any]:
    """Return the estimators of one call by name: "" for one that is no list.

    In a list the name that the caller gives, or for objects their text, or the class of those
    without one, numbered.
    """
    if not isinstance(estimator, list | tuple):
        return {"": find(estimator, fields, function)}
    if not estimator:
        raise InputError("estimator", "the list is empty")
    found: dict[str, Any] = {}
    for one in estimator:
        name = str(one)
        if ADDRESS.search(name):
            kind = type(one).__name__
            names = (kind, *(f"{kind} {i}" for i in range(2, len(estimator) + 1)))
            name = next(name for name in names if name not in found)
        if name in found:
            raise InputError("estimator", f"{name!r} is named twice")
        found[name] = find(one, fields, function)
    return found


def check_single(estimator: Any) -> None:
    """Refuse a list of estimators."""
    if isinstance(estimator, list | tuple):
        raise InputTypeError("estimator", "must be one, not a list", value=estimator)


def check_executor(executor: Any, n_jobs: Any) -> int:
    """Return the number of own threads, where there is no executor."""
    if executor is None:
        return check_jobs(n_jobs)
    if n_jobs is not None:
        raise InputError("n_jobs", "goes without executor=, which has workers of its own")
    if not callable(getattr(executor, "submit", None)):
        raise InputTypeError("executor", "must have a method submit", value=executor)
    return 1


def require_calibration_error(call: "Call", function: str) -> None:
    """Refuse estimators whose value for a calibrated model is not known.

    A function that draws labels under a hypothesis needs it: of calibration errors it is 0. All but
    `calibration_test` also need the values of models that are not calibrated.
    """
    for estimator in call.estimators.values():
        if not estimator.is_calibration_error:
            rule = f"{describe(estimator)} is no calibration error"
            reason = f"so {function} has no value of a calibrated model to compare it with"
            hint = "bootstrap and compare take it"
            raise InputError("estimator", f"{rule}, {reason}", hint=hint)
        reads_labels = call.uses_class_vectors(estimator) or Labels in estimator.native
        if reads_labels and Chances not in estimator.native and function != "calibration_test":
            rule = f"must take the draws Chances for {function}"
            hint = "bootstrap, compare and calibration_test do without"
            raise InputError("estimator", rule, value=estimator, hint=hint)


@dataclass(frozen=True)
class Call:
    """Checked arguments of one call.

    `estimators` have names, "" if there is one without a list; `sources` are the problems of each
    model, on the same rows; `groups` tell which of these belong together, None where none do.
    """

    estimators: dict[str, Any]
    sources: Sequence[Source]
    average: str | None
    n_resamples: int
    level: float
    jobs: int
    executor: Any
    groups: Groups | None = None
    reader: str = "this function"

    @property
    def models(self) -> list[Problems]:
        """Problems of each model; an error where a source does not have every row."""
        return [need_rows(source, self.reader) for source in self.sources]

    @property
    def n(self) -> int:
        """Number of the caller's rows of positive weight."""
        return self.sources[0].count()

    @property
    def n_groups(self) -> int | None:
        """Number of groups, as results have it."""
        return None if self.groups is None else self.groups.count

    @cached_property
    def clusters(self) -> Groups | None:
        """Groups, or the rows of each soft label; None where all rows are independent."""
        groups = self.groups
        if groups is None and self.sources[0].votes > 1:
            groups = Groups.of(self.models[0].callers)
        return None if groups is None or groups.count == groups.of_row.size else groups

    @cached_property
    def dependence(self) -> Dependence | None:
        """Dependence within the groups of the only model; None without any."""
        groups = self.clusters
        return None if groups is None else dependence_of(self.models[0], groups)

    @property
    def design_effect(self) -> float:
        """Design effect of the groups: so many of their rows count as one."""
        return 1.0 if self.dependence is None else self.dependence.effect

    @property
    def setting(self) -> str:
        """Setting, as results have it."""
        problems = self.sources[0]
        return "classwise" if problems.setting.per_class else problems.name(0)

    @property
    def per_class(self) -> bool:
        """Whether each class has a value of its own, and not all of them their mean."""
        return self.average is None and self.sources[0].setting.per_class

    def only_problem(self, hint: str = "") -> Problems:
        """Return the only problem of the first model, or refuse several."""
        data = self.models[0]
        if data.n_problems > 1 or any(map(self.uses_class_vectors, self.estimators.values())):
            rule = "must be one problem: 'binary', 'confidence' or a class index"
            raise InputError("setting", rule, value=self.setting, hint=hint)
        return data

    def only(self, estimator: Any) -> "Call":
        """Return the same call with one estimator, which is in no list."""
        return replace(self, estimators={"": estimator})

    def uses_class_vectors(self, estimator: Any) -> bool:
        """Return whether an estimator has a value of whole class vectors here."""
        return estimator.needs_vectors and self.sources[0].has_vectors

    def average_of(self, values: Any) -> Any:
        """Return values (K, ...) of the problems of one model, or their mean."""
        return values if self.per_class else values.mean(0)

    def facts(self, name: str, key: int) -> dict[str, Any]:
        """Return the fields that all results of one estimator have in common."""
        estimator = self.estimators[name]
        setting = "class vectors" if self.uses_class_vectors(estimator) else self.setting
        return {
            "n": self.n, "n_groups": self.n_groups, "key": key, "estimator": describe(estimator),
            "setting": setting,
        }  # fmt: skip

    def results(self, result_of: Callable[[str], Any]) -> Any:
        """Return the result of each estimator, or of the one that is in no list."""
        found = Results({name: result_of(name) for name in self.estimators})
        return found.get("", found)

    def values(self, name: str) -> list[Any]:
        """Compute the value of one estimator on the data of each model."""
        values = [self.estimators[name].point_values(problems) for problems in self.sources]
        return [as_float(self.average_of(value)) for value in values]

    def infinite_rows(self, name: str, values: Any) -> list[int]:
        """Find the caller's rows that make a mean of theirs infinite; none in a stream."""
        mean, rows = self.estimators[name], [s for s in self.sources if isinstance(s, Problems)]
        if not isinstance(mean, Mean) or not np.isinf(values).any():
            return []
        return sorted({row for source in rows for row in infinite_rows(source, mean)})

    def problem(self, sample: Sample) -> Problem:
        """Make a problem for draws of rows or of groups from a sample.

        These are not all of as many rows, so there every row has a weight, and estimators add the
        weights up.
        """
        if self.clusters is not None and sample.v is None:
            sample = replace(sample, v=np.ones(sample.n))
        return Problem(sample)

    def draws(self, key: int, size: int) -> Any:
        """Make draws of `size` rows, or of as many groups as there are."""
        return draws_of(key, self.n, size, self.clusters)

    def quantity(self, models: Sequence[Any]) -> Any:
        """Return the quantity of the call from the values of each model.

        It is the error of the only one, or the first one's minus the second one's.
        """
        with np.errstate(invalid="ignore"):  # of two infinite ones
            return models[0] - models[1] if len(models) > 1 else models[0]

    def replicates(
        self, estimators: Sequence[Any], problems: Sequence[Problem], draws: Any, size: int,
        first: int, last: int,
    ) -> F64:  # fmt: skip
        """Compute the values (members, ..., last - first) of a range of replicates.

        Each is of `size` of the rows. Members are every estimator on the first problem, then on the
        next.
        """
        plan = plan_replicates(estimators, problems, draws, size)
        return evaluate(plan, first, last, self.jobs, self.executor)


def read_call(
    function: str, y_true: Any, models: dict[str, Any], least: int = 1,
    find: Finder = find_estimator, /, *, estimator: Any,
    n_resamples: Any = 1999, confidence_level: Any = 0.95, average: Any = "macro",
    n_jobs: Any = None, executor: Any = None, **options: Any,
) -> Call:  # fmt: skip
    """Check the arguments that functions which resample have in common.

    `bootstrap` documents them. `models` are predicted probabilities by the names of their
    arguments, `least` is the smallest number of replicates, `find` finds the
    estimator of a name, and `function` has no options but these and its own.
    """
    check_average(average)
    reading = {name: options.pop(name) for name in READING if name in options}
    estimators = find_estimators(estimator, options, function, find)
    count = check_integer("n_resamples", n_resamples, least, MOST_RESAMPLES)
    level, jobs = check_level(confidence_level), check_executor(executor, n_jobs)
    reading["vectors"] = any(one.needs_vectors for one in estimators.values())
    reading["checks_order"] = True
    sources = [read_source(y_true, p, prob_name=name, **reading) for name, p in models.items()]
    if sources[0].votes > 1 and sources[0].count() < 2:
        raise InputError("y_true", "must have at least 2 soft labels, as whole rows are drawn")
    return Call(estimators, sources, average, count, level, jobs, executor, reader=function)


def add_groups(call: Call, groups: Any, y_prob: Any, name: str = "y_prob") -> Call:
    """Return the call with the groups (N,) of rows, if there are any.

    The rows are the ones of a caller's probabilities. A group that has no row of positive weight
    does not exist.
    """
    if groups is None:
        return call
    need_rows(call.sources[0], call.reader, "groups")
    label, _ = as_groups(groups, len(as_probabilities(y_prob, name)), "groups")
    found = Groups.of(label[call.models[0].callers])
    if found.count < 2:
        rule = "must be at least 2 that have rows of positive weight, as groups are drawn"
        raise InputError("groups", rule, value=1)
    return replace(call, groups=found)
