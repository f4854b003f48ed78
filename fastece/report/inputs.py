"""The input of a report: names, rows and options, checked as one call for all parts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
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
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.words import SCORES
from fastece.resampling.arguments import add_groups, read_call, require_calibration_error
from fastece.resampling.calibration_test import AUTO, ROUNDS
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
# Takes the name of the next step.
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ReportNames:
    """Names in a report.

    Attributes
    ----------
    title : str
    by, groups : str
        Names of the values of `by` and of the groups, "" without any.
    event : str
        Name of the event that is predicted, "" without one.
    note : str
        Notes on how a file was read.
    """

    title: str
    by: str = ""
    groups: str = ""
    event: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The rows of a report, or the sums of a stream.

    Attributes
    ----------
    y_true, y_prob : array_like
        As in `fastece.ece`; a stream comes alone.
    reading : ReadingOptions
        How to read them.
    by, groups : array_like, or dict of columns, optional
        As in `fastece.calibration_report`; for a stream, `by` is a dict of sums by slice.
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
    """

    y_true: Any
    y_prob: Any = None
    reading: ReadingOptions = DEFAULT_OPTIONS
    by: Any = None
    groups: Any = None
    pairs: bool = False
    n_classes: int | None = None
    row_name: Callable[[int], str] = "y_prob[{}]".format
    stream: dict[str, Any] | None = None
    top_label: TableMaker | None = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """How much is computed for a report, and with which draws.

    Attributes
    ----------
    errors : dict
        Estimators by name, `LEAD` and `TEST` first: see `choose_errors`.
    rng, n_resamples, confidence_level, n_jobs, executor
        As in `fastece.calibration_report`.
    is_full : bool
        Whether to compute everything, or only the numbers of the first page.
    has_all_vectors : bool or None
        Whether to measure all errors of class vectors, or only the one that may decide the verdict.
        None: as `is_full`.
    """

    errors: dict[str, Any]
    rng: Any = 0
    n_resamples: int | str = 1999
    confidence_level: float = 0.95
    n_jobs: int | None = None
    executor: Any = None
    is_full: bool = True
    has_all_vectors: bool | None = None

    @property
    def is_sequential(self) -> bool:
        """Whether the test draws more replicates until its p-value is known."""
        return isinstance(self.n_resamples, str) and self.n_resamples == AUTO

    @property
    def measures_all_vectors(self) -> bool:
        """Whether to measure all errors of class vectors."""
        return self.is_full if self.has_all_vectors is None else self.has_all_vectors


@dataclass(frozen=True, kw_only=True)
class ReportInput:
    """Checked rows and options, from which each part of a report is measured.

    Attributes
    ----------
    call : Call
        The rows, and the errors as its estimators.
    names, data, options
        The arguments of `make_report`.
    seed : int
        The seed that the report shows.
    key : int
        The number that the draws of direction, slices and validation depend on.
    progress : callable
    """

    call: Call
    names: ReportNames
    data: ReportData
    options: ReportOptions
    seed: int
    key: int
    progress: Progress = field(repr=False)

    @property
    def table(self) -> RowTable:
        """The rows, or the sums of a stream."""
        return self.call.tables[0]

    @property
    def has_rows(self) -> bool:
        """Whether every row is there, and not only the sums of a stream."""
        return self.table.stream is None

    @property
    def is_full(self) -> bool:
        """Whether to compute everything, or only the numbers of the first page."""
        return self.options.is_full

    @property
    def has_test(self) -> bool:
        """Whether there is a test: with resamples, but not for all classes of a stream."""
        return self.call.n_resamples > 0 and (self.has_rows or self.table.n_problems == 1)

    @property
    def is_top_label(self) -> bool:
        """Whether the question is if the predicted class is right."""
        return self.data.pairs or self.table.setting.is_top

    @property
    def lead(self) -> Call:
        """The call with the first error alone."""
        return self.call.with_estimator(self.call.estimators[LEAD])

    @cached_property
    def diagrams(self) -> list[ReliabilityDiagram]:
        """The diagram of each problem, with the bins of the usual error."""
        return diagrams_of(self.call.estimators[TEST], self.table)

    @property
    def n_rows(self) -> int:
        """Number of rows, of a table with counts each once."""
        return self.call.n if self.call.counts is None else self.call.counts.size

    def read_rows(self, setting: str, vectors: bool = False) -> RowTable:
        """Read the rows with another setting."""
        options = replace(self.data.reading, setting=setting)
        return read_rows_or_table(self.data.y_true, self.data.y_prob, options, vectors=vectors)

    def call_with(self, table: RowTable, estimators: dict[str, Any]) -> Call:
        """Return the call for another setting of the rows and other estimators."""
        return replace(self.call, tables=[table], estimators=estimators)


def flatten_data(data: ReportData, axes: RowAxes) -> ReportData:
    """Return the data with one axis of rows for all axes but the one of classes."""
    y_true, y_prob, reading = flatten_rows(axes, data.y_true, data.y_prob, data.reading)
    by = data.by
    if by is not None:
        columns = {name: axes.flatten("by", column) for name, column in columns_of(by).items()}
        by = columns.get(None, columns)
    return replace(
        data, y_true=y_true, y_prob=y_prob, reading=reading, by=by,
        groups=axes.flatten_groups(data.groups),
    )  # fmt: skip


def read_input(
    names: ReportNames, data: ReportData, options: ReportOptions, progress: Progress
) -> ReportInput:
    """Check rows and options of a report, or raise a ValueError or a TypeError."""
    call = read_call(
        "calibration_report",
        data.y_true,
        {"y_prob": data.y_prob},
        0,
        estimator=list(SCORES),
        n_resamples=ROUNDS[0] if options.is_sequential else options.n_resamples,
        confidence_level=options.confidence_level,
        n_jobs=options.n_jobs,
        executor=options.executor,
        **{name: getattr(data.reading, name) for name in OPTION_NAMES},
    )
    if call.tables[0].has_own_rows:
        raise call.tables[0].lack("a report")
    call = replace(add_groups(call, data.groups, data.y_prob), estimators=options.errors)
    require_calibration_error(call, "a report")
    is_seed = isinstance(options.rng, Integral) and not isinstance(options.rng, bool)
    seed = int(options.rng) if is_seed else new_key(options.rng)
    return ReportInput(
        call=call,
        names=names,
        data=data,
        options=options,
        seed=seed,
        key=new_key(seed),
        progress=progress,
    )


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
