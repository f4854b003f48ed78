"""Calibration of a stream: an accumulator adds batches up and gives samples."""

import math
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from fastece.data.axes import find_row_axes, flatten_rows
from fastece.data.containers import index_of, warn_of_index
from fastece.data.counted import read_counted_arrays
from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import ReadingOptions, check_names, shows_options
from fastece.data.parameters import check_integer
from fastece.data.samples import Sample, Vectors
from fastece.data.table import (
    DISTANCES,
    RANKS,
    REPEAT_ROWS,
    SQUARES,
    RowTable,
    Setting,
    TableMaker,
)
from fastece.kernels.types import I64
from fastece.streams.batches import read_batch, words_of_groups
from fastece.streams.cells import ScoreCells
from fastece.streams.damage import MAX_ROW
from fastece.streams.draws import GroupDraws
from fastece.streams.settings import Settings
from fastece.streams.state import State


class BatchKeywords(TypedDict, total=False):
    """The options of reading that `Accumulator.update` takes beside its weights."""

    labels: Any
    pos_label: Any
    counts: Any
    ignore_label: Any
    class_axis: int | None


class Accumulator(TableMaker):
    """Sums over rows that calibration errors are computed from, in constant memory.

    Functions take it in place of labels and probabilities: ``ece(state)``, ``estimate(state)``,
    ``reliability_diagram(state)``.

    Rows are added up in cells of their score, ``(j / n_cells, (j + 1) / n_cells]``, and rows
    with scores 0 and 1 by themselves: weights and hits in each; in a ninth as many coarse cells
    also the sums of w s, w s y and w s^2. Sums are integers, so any partition of the rows, in any
    order, on any number of workers, gives the same bits.

    `update` adds a batch in whole or not at all, also when an interrupt such as Ctrl-C ends it, and
    so does `merge`. Threads may share an accumulator; while others add rows, ask a `copy`. A
    process that is forked while a thread adds rows must not use it, as its lock is never released
    there.

    Parameters
    ----------
    n_classes : int, optional
        Number of columns K of `y_prob`; None: probabilities of the positive class (n,).
    setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
        As in `fastece.ece`. "classwise" has the state of K problems.
    n_cells : int, default 64800
        Fine cells: edges and centres of 10, 12, 15, 16, 18, 20, 25, 30, 50 and 100 bins are ends of
        the 7200 coarse ones. A number that is not a multiple of 9 has as many coarse cells.
    n_replicates : int, default 0
        Replicates of `bootstrap`, which draws groups of rows: as many groups as replicates, or up
        to 31 more.
    seed : int, optional
        Seed of the replicates; all parts of a stream must have the same.
    from_logits : bool, default False
        Whether `y_prob` holds logits.

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range.

    Notes
    -----
    Memory: 16 bytes a fine cell and 64 a coarse one, 1.5 MB; K times that for "classwise"; and
    512 bytes a coarse cell for every 32 groups, 3.7 MB, for each problem.

    Accuracy:

    - Uniform bins, hard or convex, whose edges (and centres) are ends of coarse cells, the Brier
      score and sharpness differ from the values in memory by rounding, at most 1e-12, and largest
      gaps (norm inf) of bins with little weight by 1e-11. This holds for the default number of
      cells; with few cells the error is about 2e-10 / n_cells. Debiased errors with weights use
      squares of weights that are right to 6e-8, so weights should be about 1.
    - Other uniform bins: rows in the cell of an edge may be on its other side. The error is at most
      twice their share of all rows.
    - Bins of equal weight: the rank of an edge is right to 1e-4 plus the share of the rows in its
      cell.
    - Densities: within 2e-3 relative, plus 1e-6. Other estimators take rows of one cell for rows of
      one score, which is up to 1 / n_cells from their scores: "ece_bayes" is within 1 % unless most
      rows share a few cells, and "ece_sweep" may find another number of bins.
    - Results that need single rows are refused: log losses, whose logarithms differ within a cell,
      bins that are closed at the left, and comparisons; and for class vectors any result that is
      not a sum over one score, except the Brier score. `fastece.calibration_test` draws labels by
      cell, and tests classes one by one.

    Weights are multiples of 2^-62 and at least 2^-40, with replicates 2^-20. Their sum is at most
    2^32, and the sum of their squares at most 2^38: more is refused before it is added.

    Replicates are those of a bootstrap of groups (Field and Welsh 2007, "Bootstrapping clustered
    data"), which are a random partition of the rows (Wolter 2007, "Introduction to Variance
    Estimation", chapter 2, on random groups). The group of a row is a hash of the seed and of its
    number in the stream, or of its label in `groups`, so that such rows stay together. A replicate
    draws as many groups as have rows, with replacement, and a row counts as often as its group.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import Accumulator, ece, estimate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p**1.3
    >>> parts = [Accumulator().update(y[i::4], p[i::4]) for i in range(4)]
    >>> whole = sum(parts)
    >>> abs(ece(whole) - ece(y, p)) < 1e-12
    True
    >>> whole == Accumulator().update(y, p)
    True
    >>> print(estimate(whole))
    BayesCurve(), setting binary: 10000 rows
      value         0.072
      95 % CI       [0.063, 0.079]
      chance alone  0.003
      method        posterior
    """

    def __init__(
        self, n_classes: int | None = None, *, setting: Any = "auto", n_cells: int = 64800,
        n_replicates: int = 0, seed: int | None = None, from_logits: bool = False,
    ) -> None:  # fmt: skip
        settings = Settings(n_classes, setting, n_cells, n_replicates, seed, from_logits)
        self.setting: Setting = settings.row
        self.key = settings.key
        self.n_replicates = settings.n_replicates
        self.n_classes = settings.n_classes or 2
        self.low = settings.low
        self.high = 1.0
        self._state = State(settings)
        self._lock = RLock()

    # --- adding rows ------------------------------------------------------------------------

    def reset(self) -> Self:
        """Forget all rows."""
        self._state = State(self._state.settings)
        return self

    @shows_options
    def update(
        self, y_true: Any, y_prob: Any = None, sample_weight: Any = None,
        row_offset: int | None = None, groups: Any = None, **options: Unpack[BatchKeywords],
    ) -> Self:  # fmt: skip
        """Add a batch of rows.

        Parameters
        ----------
        y_true, y_prob, sample_weight, **options
            As in `fastece.ece`: `labels`, `pos_label`, `counts`, `ignore_label` and `class_axis`.
            Labels are 0 or 1, or from 0 to K - 1, unless `labels` or `pos_label` says which label
            is which class, in every batch. With `pos_label` alone a batch may have one other label,
            and batches are not compared: `labels` is stricter. An empty batch, or one whose weights
            are all 0 or whose labels are all ignored, changes only the number of the next row.
            `counts` go without replicates, where each row comes into a group by its number.
        row_offset : int, optional
            The number of the first row in the whole stream, which replicates depend on.
            None: the row after the last one of this accumulator.
        groups : (n,) array_like, optional
            The group of each row, integers or strings: with replicates, rows of one group are drawn
            together, wherever they are. With `class_axis` as in `fastece.bootstrap`, but without
            "first_axis", whose numbers would be the same in every batch.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; then nothing was added.
        RuntimeError
            These are the rows of several processes, see `CalibrationMetric.sync`.
        """
        check_names(options, BatchKeywords)
        if isinstance(y_true, TableMaker):
            rule = f"must be labels, and here is {y_true!r}"
            raise InputTypeError("y_true", rule, hint="merge adds the rows of another Accumulator")
        reading = self._state.settings.reading
        if options or sample_weight is not None:
            reading = replace(reading, sample_weight=sample_weight, **options)
        if reading.class_axis is None:
            return self._add_rows(y_true, y_prob, reading, row_offset, groups)
        axes = find_row_axes("y_prob", y_prob, reading.class_axis)
        if isinstance(groups, str):
            rule = "must be labels in a stream, as images of two batches are not the same"
            raise InputError("groups", rule, value=groups)
        y_true, y_prob, reading = flatten_rows(axes, y_true, y_prob, reading)
        groups = axes.flatten_groups(groups)
        with axes.naming_entries("y_prob"):
            return self._add_rows(y_true, y_prob, reading, row_offset, groups)

    def _add_rows(
        self, y_true: Any, y_prob: Any, reading: ReadingOptions, row_offset: int | None, groups: Any
    ) -> Self:
        """Add a batch of rows (n,)."""
        settings = self._state.settings
        if reading.counts is not None:
            return self._add_counted(y_true, y_prob, reading, groups)
        # Whether both are as long is checked when they are read.
        n = max(len(x) if hasattr(x, "__len__") else 1 for x in (y_true, y_prob))
        if row_offset is not None:
            row_offset = check_integer("row_offset", row_offset, 0, MAX_ROW - n)
        batch = None
        if n:
            batch = read_batch(settings, y_true, y_prob, reading)
        if groups is not None and not settings.n_replicates:
            raise InputError("groups", "go with {n_replicates}; without, rows are only added up")
        warn_of_index("groups", groups, index_of(y_true, y_prob))
        words = words_of_groups(settings, groups, n) if n and groups is not None else None
        with self._lock:
            self._state.add(batch, n, row_offset, words)
        return self

    def _add_counted(self, y_true: Any, y_prob: Any, reading: ReadingOptions, groups: Any) -> Self:
        """Add a batch of rows that count several times."""
        settings = self._state.settings
        if settings.n_replicates:
            rule = "must be left out with {n_replicates}, which go by the numbers of single rows"
            raise InputError("counts", rule, hint=REPEAT_ROWS)
        if groups is not None:
            raise InputError("groups", "go with {n_replicates}; without, rows are only added up")
        has_classes = settings.n_classes is not None
        table = read_counted_arrays(y_true, y_prob, reading, has_classes=has_classes)
        of_rows = replace(reading, sample_weight=table.sample_weight, counts=None)
        with table.naming_rows():
            batch = read_batch(settings, table.y_true, table.y_prob, of_rows)
        with self._lock:
            self._state = self._state.with_counted(batch, table.counts)
        return self

    # --- several states ---------------------------------------------------------------------

    def merge(self, other: "Accumulator") -> Self:
        """Add all rows of another accumulator of the same settings.

        Sums do not know their rows: what is merged twice counts twice. Its own rows are refused.
        """
        if not isinstance(other, Accumulator):
            raise InputTypeError("other", "must be an Accumulator", value=other)
        if other is self:
            raise InputError("other", "must be another one, as its own rows would count twice")
        # Locks are taken in one order everywhere, so that two threads do not wait for each other.
        first, second = sorted((self._lock, other._lock), key=id)
        with first, second:
            self._state = self._state.merge(other._state)
        return self

    def copy(self) -> "Accumulator":
        """Return another accumulator with the same rows."""
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {**vars(self), "_state": self._state.copy(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    def __add__(self, other: Any) -> "Accumulator":
        if isinstance(other, int) and other == 0:  # as `sum` begins
            return self.copy()
        if not isinstance(other, Accumulator):
            return NotImplemented
        return self.copy().merge(other)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        """Compare settings and sums; the number of the next row may differ."""
        return self._state == other._state if isinstance(other, Accumulator) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def state_dict(self) -> dict[str, I64]:
        """Return copies of all sums by name, int64 arrays.

        Sums of several accumulators with the same settings may be added elementwise, by any
        all-reduce.
        """
        with self._lock:
            return {name: array.copy() for name, array in self._state.arrays.items()}

    def load_state_dict(self, state: dict[str, Any]) -> Self:
        """Restore the sums that `state_dict` returned, or a total of several.

        Anything else raises a ValueError, and nothing changes. The next row has the number of rows
        given so far: with replicates, a part that began elsewhere needs a `row_offset`.
        """
        new = State(self._state.settings)
        new.load(state)
        self._state = new
        return self

    # --- a maker of tables ------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self._state.get("n")

    @property
    def nbytes(self) -> int:
        """Bytes of the sums."""
        return sum(array.nbytes for array in self._state.arrays.values())

    def __repr__(self) -> str:
        settings = self._state.settings
        defaults = {"n_classes": None, "setting": "auto", "n_replicates": 0}
        values = {name: getattr(settings, name) for name in defaults}
        arguments = [f"{name}={x!r}" for name, x in values.items() if x != defaults[name]]
        return f"<Accumulator({', '.join(arguments)}): {self.n} rows, {self.nbytes / 1e6:.1f} MB>"

    @property
    def has_vectors(self) -> bool:
        """Whether distances of class vectors from the true class were added up too."""
        return self._state.settings.is_auto_vector

    def cells(self) -> list[ScoreCells]:
        """Return the sums of each problem as numbers."""
        if not self.n:
            raise InputError("y_true", "has no rows", hint="update adds some of positive weight")
        with self._lock:
            return self._state.cells()

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return self.n_classes if self.setting.per_class else 1

    def table(self, setting: Any = "auto") -> RowTable:
        """Return the cells as sorted rows with counts; its own setting is the only one."""
        allowed = ["auto", self.setting.name, self.setting.column]
        if self.has_vectors:
            # The top label is one question about class vectors, and "auto" stands for all of them.
            allowed = ["auto"]
        if setting is None or setting not in allowed:
            name = "auto" if self.has_vectors else self.setting.name
            raise InputError("setting", f"must be {name!r}, that of {self!r}", value=setting)
        return self.cell_table(RANKS)

    def cell_table(self, needs: str) -> RowTable:
        """Return the cells as sorted rows with counts, which have the content required."""
        samples = [self._sample(cells, needs) for cells in self.cells()]
        weights = [sample.weights for sample in samples]
        has_weights = any(sample.v is not None for sample in samples)
        return RowTable(
            setting=self.setting,
            prob=np.concatenate([sample.s for sample in samples]),
            label=np.concatenate([sample.y for sample in samples]),
            low=self.low,
            high=self.high,
            n_classes=self.n_classes,
            v=np.concatenate(weights) if has_weights else None,
            c=np.concatenate([sample.counts for sample in samples]),
            rows=np.concatenate([sample.rows for sample in samples]),
            vectors=samples[0].vectors,
            offsets=np.append(0, np.cumsum([sample.n for sample in samples])),
            stream=self,
            content=needs,
        )

    def _sample(self, cells: ScoreCells, needs: str) -> Sample:
        """Return the cells of a problem as sorted rows with counts."""
        if needs == DISTANCES:
            return self._row_of_mean_distance(float(cells.weight.sum()))
        return cells.by_square if needs == SQUARES else cells.by_rank

    def _row_of_mean_distance(self, weight: float) -> Sample:
        """Make a sample of one row, whose class vector has the mean distance of all rows.

        The Brier score is the mean of squared distances of class vectors from the true class, and
        nothing else of the vectors counts. The vector ``(1 - d, d)`` of a row of the first class
        has the squared distance ``2 d**2``, so this row, which counts as all rows do, has their
        Brier score.
        """
        distance = math.sqrt(self._state.squared_distance / weight / 2)
        vectors = Vectors(np.array([[1 - distance, distance]]), np.zeros(1, np.int64))
        return Sample(
            s=np.ones(1),
            y=np.ones(1, np.uint8),
            v=None,
            low=self.low,
            high=self.high,
            rows=np.zeros(1, np.int64),
            vectors=vectors,
            c=np.array([weight]),
        )

    def draws(self) -> GroupDraws:
        """Return draws of the groups of rows, from which replicates follow."""
        if not self.n_replicates:
            raise InputError("n_replicates", f"there are none in {self!r}")
        with self._lock:
            return self._state.draws()
