"""Arguments of functions that resample, read and checked."""

from dataclasses import replace
from typing import Any

from fastece.data.containers import index_of, warn_of_index
from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups
from fastece.data.options import GROUPED_NAMES, OPTION_NAMES, split_options
from fastece.data.parameters import check_average, check_integer, check_jobs
from fastece.data.reading import read_table
from fastece.data.table import RowTable
from fastece.estimators.draws import Labels
from fastece.estimators.table import EstimatorKeywords, find_estimator
from fastece.resampling.call import Call
from fastece.resampling.engine import Workers
from fastece.resampling.groups import Groups
from fastece.resampling.intervals import check_level
from fastece.resampling.naming import Finder, describe, find_estimators

# Functions that answer for each group of `by` by itself.
FUNCTIONS_OF_PARTS = ("bootstrap", "estimate", "calibration_test")
# Numbers of replicates and of rows, as the kernels number them, have room far beyond.
MAX_RESAMPLES = 2**40


class ResamplingKeywords(EstimatorKeywords, total=False):
    """Keywords that all functions which resample have in common."""

    confidence_level: float
    n_jobs: int | None
    executor: Any


def read_call(
    function: str, y_true: Any, models: dict[str, Any], min_resamples: int = 1,
    find: Finder = find_estimator, /, *, estimator: Any,
    n_resamples: Any = 1999, confidence_level: Any = 0.95, average: Any = "macro",
    n_jobs: Any = None, executor: Any = None, **options: Any,
) -> Call:  # fmt: skip
    """Check the arguments that functions which resample have in common.

    Parameters
    ----------
    function : str
        The name of the function, for errors.
    y_true : array_like
        The labels.
    models : dict of str to array_like
        Predicted probabilities by the names of their arguments.
    min_resamples : int
        The smallest number of replicates.
    find : callable
        Finds the estimator of a name, as `find_estimator` does.
    estimator, n_resamples, confidence_level, average, n_jobs, executor, **options
        As in `fastece.bootstrap`; `options` are options of reading, and parameters of estimators.

    Raises
    ------
    InputError, InputTypeError
        For an argument that is not right, by its name.
    """
    check_average(average)
    takes_parts = function in FUNCTIONS_OF_PARTS
    names = GROUPED_NAMES if takes_parts else OPTION_NAMES
    reading, fields = split_options(options, names)
    estimators = find_estimators(estimator, fields, names, find)
    count = check_integer("n_resamples", n_resamples, min_resamples, MAX_RESAMPLES)
    level = check_level(confidence_level)
    workers = check_workers(n_jobs, executor)
    vectors = any(each.needs_vectors for each in estimators.values())
    tables = [
        read_table(
            y_true,
            prob,
            reading,
            prob_name=name,
            vectors=vectors,
            takes_parts=takes_parts,
        )
        for name, prob in models.items()
    ]
    if tables[0].votes > 1 and tables[0].count() < 2:
        raise InputError("y_true", "must have at least 2 soft labels, as whole rows are drawn")
    return Call(
        function=function,
        estimators=estimators,
        tables=tables,
        average=average,
        n_resamples=count,
        level=level,
        workers=workers,
        index=index_of(y_true, *models.values()),
    )


def add_groups(call: Call, groups: Any, y_prob: Any, name: str = "y_prob") -> Call:
    """Return the call with the groups (N,) of the caller's rows, if there are any.

    `y_prob` are the caller's probabilities and `name` is their argument: each of their rows has a
    group. A group without a row of positive weight does not exist.
    """
    if groups is None:
        return call
    table = call.tables[0]
    if table.stream is not None:
        raise table.lack(call.function, "groups")
    warn_of_index("groups", groups, call.index)
    axes = table.find_axes(name, y_prob)
    column = as_groups(axes.flatten_groups(groups), axes.n, "groups")
    of_rows = Groups.of(column.position[table.callers])
    if of_rows.count < 2:
        rule = "must be at least 2 that have rows of positive weight, as groups are drawn"
        raise InputError("groups", rule, value=1)
    return replace(call, groups=of_rows)


def check_workers(n_jobs: Any, executor: Any) -> Workers:
    """Return who evaluates replicates: threads of our own, or an executor."""
    if executor is None:
        return Workers(check_jobs(n_jobs))
    if n_jobs is not None:
        raise InputError("n_jobs", "goes without executor=, which has workers of its own")
    if not callable(getattr(executor, "submit", None)):
        raise InputTypeError("executor", "must have a method submit", value=executor)
    return Workers(1, executor)


def check_single(estimator: Any) -> None:
    """Refuse a list of estimators."""
    if isinstance(estimator, list | tuple):
        raise InputTypeError("estimator", "must be one, not a list", value=estimator)


def require_calibration_error(call: Call, function: str) -> None:
    """Refuse estimators whose value for a calibrated model is not known.

    A function that draws labels under a hypothesis needs it; a calibration error is 0 there. All
    but `calibration_test` also need the values of models that are not calibrated.
    """
    for estimator in call.estimators.values():
        if not estimator.is_calibration_error:
            rule = f"{describe(estimator)} is no calibration error"
            reason = f"so {function} has no value of a calibrated model to compare it with"
            hint = "bootstrap and compare take it"
            raise InputError("estimator", f"{rule}, {reason}", hint=hint)
        reads_labels = call.uses_class_vectors(estimator) or Labels in estimator.native
        if reads_labels and estimator.truth is None and function != "calibration_test":
            rule = f"must have a method truth for {function}"
            hint = "bootstrap, compare and calibration_test do without"
            raise InputError("estimator", rule, value=estimator, hint=hint)


def require_one_problem(call: Call, hint: str = "") -> RowTable:
    """Return the only problem of the first model, or refuse several."""
    data = call.models[0]
    if data.n_problems > 1 or any(map(call.uses_class_vectors, call.estimators.values())):
        rule = "must be one problem: 'binary', 'confidence' or a class index"
        raise InputError("setting", rule, value=call.setting, hint=hint)
    return data
