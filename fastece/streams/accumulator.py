"""Calibration of a stream: batches go in, and every estimator can be asked afterwards."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import compress
from typing import Any, Self

import numpy as np

from fastece.checks.parameters import check_average, check_choice, check_integer
from fastece.data.cells import Cells
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.bayes.posterior import posterior_of_rows
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.losses import BrierScore
from fastece.estimators.table import cell_value, find_estimator, need_vectors
from fastece.intervals.estimate import POSTERIOR, Estimate
from fastece.reliability.curve import ReliabilityCurve, curve_of_rows
from fastece.reliability.diagram import ReliabilityDiagram, diagram_of_cells
from fastece.resampling.arguments import describe
from fastece.resampling.intervals import as_float, check_level
from fastece.resampling.results import BootstrapResult
from fastece.streams.reading import count_rows, group_ids, read_batch
from fastece.streams.state import TOTALS, Settings, State
from fastece.typing import I64

# Draws of row i begin at 32 i of a counter of 64 bits.
MOST_ROW = 2**59 - 1


class Accumulator:
    """Sums over rows from which every calibration error can be told, in memory that does not grow.

    Rows are added up in cells of their score, ``(j / n_cells, (j + 1) / n_cells]``, and those of
    the scores 0 and 1 by themselves: weights and hits in each; in a ninth as many coarse cells also
    the sums of w s, w s y and w s^2. Sums are integers, so any partition of the rows, in any order,
    on any number of workers, gives the same bits.

    Parameters
    ----------
    n_classes : int, optional
        Number of columns K of `y_prob`; None: probabilities of the positive class (n,).
    setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
        As in `fastece.ece`. "classwise" has the state of K problems.
    n_cells : int, default 64800
        Fine cells: edges and centres of 10, 12, 15, 16, 18, 20, 25, 30, 50 and 100 bins are ends of
        the 7200 coarse ones. Another number that is no multiple of 9 has as many coarse cells.
    n_replicates : int, default 0
        Replicates of `bootstrap`: in each, every row counts as often as a Poisson variable with the
        mean 1 says.
    seed : int, optional
        Of the replicates; all parts of a stream must have the same.
    from_logits : bool, default False
        Whether `y_prob` holds logits.

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range.

    Notes
    -----
    Memory: 16 bytes a fine cell and 64 a coarse one, 1.5 MB; K times that for "classwise"; and
    512 bytes a coarse cell for every 32 replicates, 3.7 MB, for each problem.

    What is exact, and what is not:

    - Uniform bins, hard or convex, whose edges (and centres) are ends of coarse cells, the Brier
      score and sharpness differ from those in memory by rounding, at most 1e-12; largest gaps
      (norm inf) of bins with little weight by 1e-11. That is so of the default number of cells;
      the error is about 2e-10 / n_cells of few. Debiased errors with weights know squares of
      weights to 6e-8, so weights should be about 1.
    - Other uniform bins: rows in the cell of an edge may be on its other side. The error is at most
      twice their share of all rows.
    - Bins of equal weight: the rank of an edge is right to 1e-4 plus the share of the rows in its
      cell.
    - Densities: within 2e-3 relative, plus 1e-6. Other estimators take rows of one cell for rows of
      one score, which is up to 1 / n_cells away from theirs: "ece_bayes" is within 1 % unless most
      rows share a few cells, and "ece_sweep" may find another number of bins.
    - Not to be told are log losses, whose logarithms differ within a cell, bins that are closed at
      the left, and of class vectors whatever is no sum over one score, but for the Brier score.

    Weights are multiples of 2^-62 and at least 2^-40, with replicates 2^-20. Their sum is at most
    2^32, that of their squares at most 2^38: more is refused before it is added.

    Replicates follow the bootstrap with Poisson weights (Hanley and MacGibbon 2006, "Creating
    non-parametric bootstrap samples using Poisson frequencies"; Chamandy et al. 2012, "Estimating
    uncertainty for massive data streams"). The weight of a row is a hash of the seed, of its number
    in the stream and of the replicate, or, with groups, of its group.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import Accumulator, ece
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p**1.3
    >>> parts = [Accumulator().update(y[i::4], p[i::4]) for i in range(4)]
    >>> whole = sum(parts)
    >>> abs(whole.ece() - ece(y, p)) < 1e-12
    True
    >>> whole == Accumulator().update(y, p)
    True
    >>> print(whole.estimate())
    BayesCurve(), setting binary: 10000 rows; by posterior
      value          0.07202
      95 % interval  [0.06322, 0.08020]
    """

    def __init__(
        self, n_classes: int | None = None, *, setting: Any = "auto", n_cells: int = 64800,
        n_replicates: int = 0, seed: int | None = None, from_logits: bool = False,
    ) -> None:  # fmt: skip
        self._settings = Settings(n_classes, setting, n_cells, n_replicates, seed, from_logits)
        # Sums as numbers, for further questions about the same rows: 10 MB a problem at most.
        self._cells: list[Cells] | None = None
        self.reset()

    # --- adding rows ------------------------------------------------------------------------

    def reset(self) -> Self:
        """Forget all rows."""
        self._state = State(self._settings)
        self._next_row, self._cells = 0, None
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cells": None}

    def update(
        self, y_true: Any, y_prob: Any, sample_weight: Any = None, row_offset: int | None = None,
        groups: Any = None,
    ) -> Self:  # fmt: skip
        """Add a batch of rows.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in `fastece.ece`; labels are 0 or 1, or from 0 to K - 1. An empty batch, or one whose
            weights are all 0, changes nothing but the number of the next row.
        row_offset : int, optional
            The number of the first row in the whole stream, which draws of replicates depend on.
            None: the row after the last one of this accumulator.
        groups : (n,) array_like, optional
            The group of each row, integers or strings: with replicates, rows of one group are drawn
            together, wherever they are.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; then nothing was added.
        """
        settings, n = self._settings, count_rows(y_true, y_prob)
        first = self._next_row
        if row_offset is not None:
            first = check_integer("row_offset", row_offset, 0, MOST_ROW - n)
        batch = read_batch(settings, y_true, y_prob, sample_weight) if n else None
        ids = self._ids(groups, first, n)
        if batch is not None:
            problems, distance = batch
            ids, self._cells = None if ids is None else ids[problems.positions], None
            self._state.add(settings, problems, distance, ids)
            self._state.count(grouped=problems.n if groups is not None else 0)
        has_first = settings.n_replicates > 0 and groups is None and n > 0 and first == 0
        self._state.count(rows=n, first_rows=has_first)
        self._next_row = first + n
        return self

    def _ids(self, groups: Any, first: int, n: int) -> I64 | None:
        """What the draws of each row depend on: its number, or its group; None without draws."""
        if groups is None:
            if self._state.get("grouped") and n:
                raise ValueError("groups: rows before had some, so these must have them too")
            return np.arange(first, first + n) if self._settings.n_replicates else None
        if not self._settings.n_replicates:
            raise ValueError("groups: go with n_replicates=; without them, rows are only added up")
        if self._state.get("n") > self._state.get("grouped"):
            raise ValueError("groups: rows before had none, so these must have none either")
        return group_ids(groups, n)

    # --- several states ---------------------------------------------------------------------

    def merge(self, other: "Accumulator") -> Self:
        """Add all rows of another accumulator of the same settings."""
        if not isinstance(other, Accumulator):
            raise TypeError(f"other: must be an Accumulator, got {other!r:.80}")
        self._settings.check_same(other._settings)
        mine, theirs = self._state, other._state
        mine.check_room(theirs.weight, theirs.square)
        self._check_totals(mine.totals + theirs.totals)
        for name, array in mine.arrays.items():
            array += theirs.arrays[name]
        mine.weight, mine.square = mine.weight + theirs.weight, mine.square + theirs.square
        self._cells = None
        self._next_row = max(self._next_row, other._next_row, mine.get("rows"))
        return self

    def _check_totals(self, totals: I64) -> None:
        """Sums of states are those of states that can be merged."""
        known = dict(zip(TOTALS, totals.tolist(), strict=True))
        if known["fingerprint"] != known["parts"] * self._settings.fingerprint:
            raise ValueError("state: is one of other settings than those of this accumulator")
        if known["grouped"] not in (0, known["n"]):
            raise ValueError("state: some rows have groups and others have none")
        if known["first_rows"] > 1:
            raise ValueError(
                "state: two parts have a row of the number 0, and would share its draws; give "
                "update the row_offset of each part"
            )

    def copy(self) -> "Accumulator":
        """Another accumulator with the same rows."""
        return deepcopy(self)

    def __add__(self, other: Any) -> "Accumulator":
        if isinstance(other, int) and other == 0:  # as `sum` begins
            return self.copy()
        if not isinstance(other, Accumulator):
            return NotImplemented
        return self.copy().merge(other)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        """Whether settings and sums are the same; the number of the next row may differ."""
        if not isinstance(other, Accumulator):
            return NotImplemented
        same = ("n", "first_rows", "grouped", "distance", "distance_low", "square_low")
        mine, theirs = self._state, other._state
        return (
            self._settings == other._settings
            and all(mine.get(name) == theirs.get(name) for name in same)
            and all(
                np.array_equal(array, theirs.arrays[name])
                for name, array in mine.arrays.items()
                if name != "totals"
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def state_dict(self) -> dict[str, I64]:
        """Copies of all sums by name, int64 arrays: those of several accumulators of the same
        settings may be added elementwise, by any all-reduce."""
        return {name: array.copy() for name, array in self._state.arrays.items()}

    def load_state_dict(self, state: dict[str, Any]) -> Self:
        """Take over what `state_dict` gave, or a sum of such; anything else is a ValueError, and
        then nothing changes. Rows go on after as many as were given: with replicates, a part that
        began elsewhere needs the `row_offset` of what follows."""
        mine = State(self._settings)
        for name, array in mine.arrays.items():
            got = np.asarray(state[name]) if name in state else None
            if got is None or got.shape != array.shape or got.dtype != np.int64:
                kind = "nothing" if got is None else f"{got.dtype} {got.shape}"
                raise ValueError(
                    f"state: {name} must be int64 {array.shape}, as settings are here; got {kind}"
                )
            array[:] = got
        if more := sorted({*state} - {*mine.arrays}):
            raise ValueError(f"state: has {more[0]!r}, which is none of {[*mine.arrays]}")
        if any((array < 0).any() for array in (mine.fine, mine.replicates, mine.totals[:4])):
            raise ValueError("state: has weights or counts below 0, so sums were too large")
        self._check_totals(mine.totals)
        mine.measure()
        mine.check_room(0.0, 0.0)
        self._state, self._next_row, self._cells = mine, mine.get("rows"), None
        return self

    # --- what rows say ----------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows of positive weight."""
        return self._state.get("n")

    @property
    def nbytes(self) -> int:
        """Bytes of the sums."""
        return sum(array.nbytes for array in self._state.arrays.values())

    def __repr__(self) -> str:
        settings = self._settings
        shown = [f"n_classes={settings.n_classes}"] if settings.n_classes else []
        shown += [] if settings.setting == "auto" else [f"setting={settings.setting!r}"]
        shown += [f"n_replicates={settings.n_replicates}"] if settings.n_replicates else []
        return f"<Accumulator({', '.join(shown)}): {self.n} rows, {self.nbytes / 1e6:.1f} MB>"

    def cells(self) -> list[Cells]:
        """The sums of each problem as numbers: what estimators are asked about."""
        if not self.n:
            raise ValueError("no rows: update was not called, or with rows of weight 0 alone")
        if self._cells is None:
            settings = self._settings
            self._cells = [self._state.cells(settings, k) for k in range(settings.n_problems)]
        return self._cells

    def _name(self, k: int) -> str:
        """The setting of problem k, as results name it."""
        row = self._settings.row
        return f"class {k}" if row.per_class else row.name

    def _average(self, values: Sequence[Any], average: str | None) -> Any:
        """Values of the problems as the caller wants them."""
        check_average(average)
        array = np.asarray(values)
        if not self._settings.row.per_class:
            return as_float(array[0])
        return as_float(array if average is None else array.mean(0))

    def ece(self, estimator: Any = "ece", *, average: str | None = "macro", **fields: Any) -> Any:
        """The value of an estimator, or of each class: as `fastece.ece`.

        Parameters
        ----------
        estimator : str or object, default "ece"
            Any that has no need of what the state does not know.
        average : {"macro", None}
            Class by class: the mean, or all values (K,).
        **fields
            Parameters of the estimator to replace.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; where the state cannot tell; without rows.
        """
        found = find_estimator(estimator, fields)
        reads_pairs = getattr(found, "reads_pairs", False)
        if self._settings.is_auto_vector and need_vectors([found]) and not reads_pairs:
            if isinstance(found, BrierScore):
                return self.brier_score()
            raise ValueError(
                f"estimator: {describe(found)} is a value of whole class vectors, of which a "
                "stream keeps the score of the top label; setting='confidence' asks about that"
            )
        return self._average([cell_value(found, cells) for cells in self.cells()], average)

    def mce(self, estimator: Any = "ece", **options: Any) -> Any:
        """`ece` with the norm inf: the largest gap."""
        return self.ece(estimator, norm=np.inf, **options)

    def brier_score(self, *, average: str | None = "macro") -> Any:
        """The mean squared distance from what came true, as `fastece.brier_score`: of class vectors
        (setting "auto") the sum over the classes of it."""
        if self._settings.is_auto_vector:
            (cells,) = self.cells()
            return self._state.squared_distance / float(cells.weight.sum())
        return self.ece("brier_score", average=average)

    def reliability_diagram(
        self, estimator: Any = "ece", **fields: Any
    ) -> ReliabilityDiagram | list[ReliabilityDiagram]:
        """The bins of the score, as `fastece.reliability_diagram`: a list of K for "classwise"."""
        found = find_estimator(estimator, fields)
        if not isinstance(found, Binned):
            raise TypeError(f"estimator: a reliability diagram needs bins, got {found!r}")
        diagrams = [
            diagram_of_cells(found, cells, self._name(k)) for k, cells in enumerate(self.cells())
        ]
        return diagrams if self._settings.row.per_class else diagrams[0]

    def reliability_curve(
        self, estimator: Any = "ece_kde", *, confidence_level: float = 0.95, **fields: Any
    ) -> ReliabilityCurve | list[ReliabilityCurve]:
        """The probability of a hit at any score, as `fastece.reliability_curve`, without resamples:
        "ece_bayes" has its band from the posterior. A list of K for "classwise"."""
        found, level = find_estimator(estimator, fields), check_level(confidence_level)
        curves = []
        for k, cells in enumerate(self.cells()):
            sample, c = cells.rows
            curves.append(curve_of_rows(found, sample, c, cells.n, self._name(k), level))
        return curves if self._settings.row.per_class else curves[0]

    def estimate(
        self, estimator: Any = "ece_bayes", *, average: str | None = "macro",
        confidence_level: float = 0.95, **fields: Any,
    ) -> Estimate:  # fmt: skip
        """The calibration error with its interval, as `fastece.estimate` of "ece_bayes".

        Classes are answered one by one, ``average=None``: the interval of their mean depends on
        which rows they share, which sums do not tell.
        """
        found = find_estimator(estimator, fields)
        check_average(average)
        if not isinstance(found, BayesCurve):
            raise ValueError(
                f"estimator: a stream has intervals of 'ece_bayes', got {describe(found)}; others "
                "have those of bootstrap, with n_replicates="
            )
        per_class = self._settings.row.per_class
        if per_class and average is not None:
            raise ValueError(
                "average: must be None class by class, as sums do not tell the interval of a mean"
            )
        parts = [
            posterior_of_rows(*cells.rows, found.norm, k) for k, cells in enumerate(self.cells())
        ]
        values = np.array([part.value for part in parts])
        return Estimate(
            value=as_float(values if per_class else values[0]),
            confidence_level=check_level(confidence_level),
            p_value=None,
            method=POSTERIOR,
            n_resamples=0,
            n=self.n,
            key=0,
            estimator=describe(found),
            setting=self._settings.row.name,
            _parts=parts,
        )

    def bootstrap(
        self, estimator: Any = "ece", *, average: str | None = "macro", method: Any = "basic",
        confidence_level: float = 0.95, **fields: Any,
    ) -> BootstrapResult:  # fmt: skip
        """The bootstrap distribution of a value, as `fastece.bootstrap`, from the replicates that
        were added up with the rows.

        In a replicate, rows of a coarse cell keep their scores, and misses and hits count as often
        as it drew them together. Replicates that drew nothing, as there are of some rows or groups,
        are left out. There is no acceleration, so intervals are "basic" or "percentile".

        Raises
        ------
        ValueError, TypeError
            As `ece`; without replicates.
        """
        settings, found = self._settings, find_estimator(estimator, fields)
        if not settings.n_replicates:
            raise ValueError("n_replicates: the accumulator was made without; bootstrap needs some")
        method = check_choice("method", method, ("basic", "percentile"))
        estimate, values = self.ece(found, average=average), []
        has_rows = self._state.drawn(settings) > 0
        if has_rows.sum() < 2:
            raise ValueError("groups: are so few that hardly any replicate drew one")
        if settings.is_auto_vector and need_vectors([found]):
            raise ValueError(f"estimator: {describe(found)} of class vectors has no replicates")
        for k, cells in enumerate(self.cells()):
            sample, c = cells.rows
            plan = found.prepare(sample, cells.n)
            draws = compress(self._state.multiplicities(settings, k, sample, c), has_rows)
            values.append([float(found.evaluate(plan, draw)) for draw in draws])
        return BootstrapResult(
            estimate=estimate,
            confidence_level=check_level(confidence_level),
            method=method,
            n=self.n,
            size=self.n,
            key=settings.key,
            estimator=describe(found),
            setting=settings.row.name,
            _distribution=np.asarray(self._average(values, average)),
            _jackknife=None,
        )
