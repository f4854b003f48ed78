"""The input of a report: the request for it, and its rows and options after all checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

from fastece.data.axes import RowAxes, flatten_rows
from fastece.data.labels import columns_of
from fastece.data.options import DEFAULT_OPTIONS, OPTION_NAMES, ReadingOptions
from fastece.data.reading import read_rows_or_table
from fastece.data.table import RowTable, TableMaker
from fastece.estimators.binned import Binned
from fastece.estimators.table import ESTIMATORS, find_estimator
from fastece.inference.selections import Selection, select_by_columns, select_streams
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.words import SCORES
from fastece.resampling.adaptive import AdaptiveTest
from fastece.resampling.arguments import add_groups, read_call, require_calibration_error
from fastece.resampling.calibration_test import (
    AUTO,
    ROUNDS,
    calibration_results,
    sequential_results,
)
from fastece.resampling.call import Call
from fastece.resampling.draws import new_key

# The first error is the best guess, and its curve is beside the diagram. The second error is the
# usual one, and the diagram has its bins.
LEAD = "ece_bayes"
TEST = "ece"
# The errors of a report by default.
ERRORS: dict[str, Any] = {
    **{name: ESTIMATORS[name] for name in (LEAD, TEST, "ece_a", "ece_c", "ece_ac", "ece_kde")},
    "mce": Binned(norm=float("inf")),
}


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """The rows, options and names of a report, before anything is checked.

    Attributes
    ----------
    y_true, y_prob : array_like
        As in `fastece.ece`; a stream comes alone.
    reading : ReadingOptions
        How to read them.
    by, groups : array_like, or dict of columns, optional
        As in `fastece.calibration_report`; for a stream, `by` is a dict of sums by slice.
    errors : dict
        Estimators by name, `LEAD` and `TEST` first: see `choose_errors`.
    rng, n_resamples, confidence_level, n_jobs, executor
        As in `fastece.calibration_report`.
    is_full : bool
        Whether to measure everything, or only the numbers of the first page.
    title : str
    by_name, groups_name : str
        Names of the values of `by` and of the groups, "" without any.
    event : str
        Name of the event that is predicted, "" without one.
    note : str
        Notes on how a file was read.
    pairs : bool
        Whether rows are hits and confidences of predicted classes.
    n_classes : int or None
        Number of classes of pairs, if it is known.
    row_name : callable
        The name of a row in notes, from its number.
    stream : dict or None
        Numbers of a stream by name, and its "notes".
    top_label : TableMaker or None
        The rows of a stream in a setting that has the accuracy.
    progress : callable
        Takes the name of each step.
    """

    y_true: Any
    y_prob: Any = None
    reading: ReadingOptions = DEFAULT_OPTIONS
    by: Any = None
    groups: Any = None
    errors: dict[str, Any]
    rng: Any = 0
    n_resamples: int | str = 1999
    confidence_level: float = 0.95
    n_jobs: int | None = None
    executor: Any = None
    is_full: bool = True
    title: str
    by_name: str = ""
    groups_name: str = ""
    event: str = ""
    note: str = ""
    pairs: bool = False
    n_classes: int | None = None
    row_name: Callable[[int], str] = "y_prob[{}]".format
    stream: dict[str, Any] | None = None
    top_label: TableMaker | None = None
    progress: Callable[[str], None] = lambda _: None

    @property
    def is_sequential(self) -> bool:
        """Whether the test draws more replicates until its p-value is known."""
        return isinstance(self.n_resamples, str) and self.n_resamples == AUTO


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """Checked rows and options, from which each part of a report is measured.

    Attributes
    ----------
    request : ReportRequest
    call : Call
        The rows, and the errors as its estimators.
    selections : list of Selection or None
        The rows of each slice; None without `by`.
    seed : int
        The seed that the report shows.
    key : int
        The number that the draws of direction, slices and validation depend on.
    """

    request: ReportRequest
    call: Call
    selections: list[Selection] | None
    seed: int
    key: int

    @property
    def is_full(self) -> bool:
        """Whether to measure everything, or only the numbers of the first page."""
        return self.request.is_full

    @property
    def table(self) -> RowTable:
        """The rows, or the sums of a stream."""
        return self.call.tables[0]

    @property
    def n_rows(self) -> int:
        """Number of rows, of a table with counts each once."""
        return self.call.n if self.call.counts is None else self.call.counts.size

    @property
    def has_rows(self) -> bool:
        """Whether every row is there, and not only the sums of a stream."""
        return self.table.stream is None

    @property
    def has_test(self) -> bool:
        """Whether there is a test: with resamples, but not for all classes of a stream."""
        return self.call.n_resamples > 0 and (self.has_rows or self.table.n_problems == 1)

    @property
    def is_top_label(self) -> bool:
        """Whether the question is if the predicted class is right."""
        return self.request.pairs or self.table.setting.is_top

    @property
    def lead(self) -> Call:
        """The call with the first error alone."""
        return self.call.with_estimator(self.call.estimators[LEAD])

    @cached_property
    def diagrams(self) -> list[ReliabilityDiagram]:
        """The diagram of each problem, with the bins of the usual error."""
        return diagrams_of(self.call.estimators[TEST], self.table)

    @cached_property
    def test(self) -> Any:
        """The result of the adaptive test of calibration; None where there is none."""
        if not self.has_test:
            return None
        adaptive = self.call.with_estimator(AdaptiveTest(self.call.estimators[TEST].n_bins))
        test = sequential_results if self.request.is_sequential else calibration_results
        return test(adaptive, self.seed)

    def read_rows(self, setting: str, vectors: bool = False) -> RowTable:
        """Read the rows with another setting."""
        request = self.request
        options = replace(request.reading, setting=setting)
        return read_rows_or_table(request.y_true, request.y_prob, options, vectors=vectors)

    def call_with(self, table: RowTable, estimators: dict[str, Any]) -> Call:
        """Return the call for another setting of the rows and other estimators."""
        return replace(self.call, tables=[table], estimators=estimators)


def flatten_request(request: ReportRequest, axes: RowAxes) -> ReportRequest:
    """Return the request with one axis of rows for all axes but the one of classes."""
    y_true, y_prob, reading = flatten_rows(axes, request.y_true, request.y_prob, request.reading)
    by = request.by
    if by is not None:
        columns = {name: axes.flatten("by", column) for name, column in columns_of(by).items()}
        by = columns.get(None, columns)
    return replace(
        request, y_true=y_true, y_prob=y_prob, reading=reading, by=by,
        groups=axes.flatten_groups(request.groups),
    )  # fmt: skip


def read_input(request: ReportRequest) -> ReportInput:
    """Check rows and options of a report, or raise a ValueError or a TypeError."""
    request.progress("reading")
    call = read_call(
        "calibration_report",
        request.y_true,
        {"y_prob": request.y_prob},
        0,
        estimator=list(SCORES),
        n_resamples=ROUNDS[0] if request.is_sequential else request.n_resamples,
        confidence_level=request.confidence_level,
        n_jobs=request.n_jobs,
        executor=request.executor,
        **{name: getattr(request.reading, name) for name in OPTION_NAMES},
    )
    if call.tables[0].has_own_rows:
        raise call.tables[0].lack("a report")
    call = replace(add_groups(call, request.groups, request.y_prob), estimators=request.errors)
    require_calibration_error(call, "a report")
    is_seed = isinstance(request.rng, Integral) and not isinstance(request.rng, bool)
    seed = int(request.rng) if is_seed else new_key(request.rng)
    return ReportInput(
        request=request,
        call=call,
        selections=select_slices(call, request),
        seed=seed,
        key=new_key(seed),
    )


def select_slices(call: Call, request: ReportRequest) -> list[Selection] | None:
    """Check the labels of slices, and find the rows of each; None without labels."""
    by = request.by
    if by is None:
        return None
    if isinstance(by, Mapping) and any(isinstance(x, TableMaker) for x in by.values()):
        return select_streams({label: stream.table() for label, stream in by.items()})
    call.tables[0].need_shared_rows("the error of each slice", "by")
    return select_by_columns(call, by, request.y_prob)


def choose_errors(names: Iterable[Any], **fields: Any) -> dict[str, Any]:
    """Find estimators by name, `LEAD` and `TEST` first, and replace their fields.

    Names are keys of the table, or "mce"; other objects are named by their text. An estimator
    takes the fields that it has.
    """
    errors = {}
    for name in dict.fromkeys([LEAD, TEST, *names]):
        estimator = ERRORS.get(name, name) if isinstance(name, str) else name
        estimator = find_estimator(estimator, {})
        fields_of_estimator = {key: x for key, x in fields.items() if hasattr(estimator, key)}
        errors[str(name)] = find_estimator(estimator, fields_of_estimator)
    return errors
