"""A report on small data from its last part to its first, by which a second process compiles."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial

from fastece.data.rehearsal import compile_backwards
from fastece.data.second_process import compile_beside
from fastece.data.sources import Problems
from fastece.estimators.table import ESTIMATORS
from fastece.inference.direction import direction_of
from fastece.report.breakdown import measure_breakdowns
from fastece.report.class_vectors import DECISIVE, VECTOR_ERRORS, has_class_vectors, measure_vectors
from fastece.report.errors import measure_errors
from fastece.report.inputs import (
    ERRORS,
    LEAD,
    ReportData,
    ReportInput,
    ReportNames,
    ReportOptions,
    choose_errors,
    read_input,
)
from fastece.report.pictures import prepare_pictures
from fastece.report.sample import run_test, summarize_rows
from fastece.report.scores import decompose_brier_score, measure_scores
from fastece.report.thresholds import choose_thresholds
from fastece.report.validation import validate_rows
from fastece.resampling.ahead import N_CLASSES, kind_of_float, make_data

# Errors in the order in which they are compiled. Densities take longest, and the other process
# comes to bins of equal mass as soon as it has the posterior of the first error.
ORDER = ("ece_kde", "ece_c", "mce", "ece", "ece_ac", "ece_a")
# Replicates, of which a block of kernels has 32.
N_RESAMPLES = 99


def compile_report_beside(inputs: ReportInput) -> AbstractContextManager[None]:
    """Compile kernels in a second process, while the block makes the report."""
    source = inputs.source
    if not isinstance(source, Problems):
        return nullcontext()
    names = tuple(name for name in inputs.call.estimators if name in ERRORS or name in ESTIMATORS)
    is_matrix = source.n_classes >= N_CLASSES and not inputs.data.pairs
    options = inputs.options
    kind = kind_of_float(inputs.data.arguments.get("y_prob"))
    description = (is_matrix, kind, names, options.is_full, options.measures_all_vectors)
    return compile_beside(compile_report, lambda: description)


def compile_report(
    is_matrix: bool, kind: str, names: Sequence[str], is_full: bool, has_all_vectors: bool
) -> None:
    """Measure the parts of a report on small data, the last one first.

    Parameters
    ----------
    is_matrix : bool
        Whether probabilities are a matrix, or of one class.
    kind : str
        Kind of float of the probabilities, as numpy writes it.
    names : sequence of str
        Names of the errors.
    is_full, has_all_vectors : bool
        As in `ReportOptions`.
    """
    options = ReportOptions(
        errors=choose_errors(names),
        n_resamples=N_RESAMPLES,
        is_full=is_full,
        has_all_vectors=has_all_vectors,
    )
    data = ReportData(arguments=make_data(N_CLASSES if is_matrix else 1, kind))
    inputs = read_input(ReportNames(title=""), data, options, lambda _: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for measure in parts_backwards(inputs):
            # Small data do not have every part; its kernels are compiled where it is needed.
            with suppress(ValueError, TypeError):
                measure()


def parts_backwards(inputs: ReportInput) -> list[Callable[[], object]]:
    """List the parts of a report about from its end.

    The other process begins with the posterior of the first error, and of a full report goes on to
    bins of equal mass. Parts that need one of these come late, so that the two processes do not
    compile the same kernels. On a first page, the test alone has bins of equal mass, and soon both
    processes need all of its kernels: this one begins with the last.
    """
    measures = [partial(measure_one_error, inputs, name) for name in errors_backwards(inputs)]
    test = partial(run_test, inputs)
    parts: list[Callable[[], object]] = [partial(compile_backwards, test), *measures]
    if inputs.is_full:
        parts = [
            partial(choose_thresholds, inputs),
            *measures,
            test,
            partial(measure_scores, inputs),
            partial(decompose_brier_score, inputs),
        ]
    if has_class_vectors(inputs):
        has_all = inputs.options.measures_all_vectors
        names = list(VECTOR_ERRORS) if has_all else [DECISIVE]
        parts.append(partial(measure_vectors, inputs, names))
    parts.append(partial(summarize_rows, inputs))
    parts.append(partial(measure_breakdowns, inputs, None))
    parts.append(partial(direction_of, inputs.lead, inputs.key))
    if inputs.is_full:
        parts.append(partial(validate_rows, inputs))
    parts.append(partial(prepare_pictures, inputs))
    return parts


def errors_backwards(inputs: ReportInput) -> list[str]:
    """List the errors without the first one, in the order of `ORDER`."""
    names = [name for name in inputs.call.estimators if name != LEAD]
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else -1)


def measure_one_error(inputs: ReportInput, name: str) -> None:
    """Measure an error with its interval and its test."""
    estimators = {name: inputs.call.estimators[name]}
    measure_errors(replace(inputs, call=inputs.call_with(inputs.source, estimators)))
