"""Bets against calibration: the money in them is the evidence of `fastece.Monitor`.

The monitor begins with money of 1 and bets on outcomes. Each bet is on an `Alternative`, by which
rows with log odds z in truth have log odds ``z + d(z)``. A row with score s and outcome y
multiplies the money in this bet by at most its likelihood ratio::

    exp(y d) / (1 + s (exp(d) - 1))

whose mean is 1 if s is the probability of the outcome. So the money in all bets together, the
e-value, has a mean of at most 1 at any time while predictions are calibrated, and ever reaches
``1 / level`` with a chance of at most `level` (Ville 1939, "Etude critique de la notion de
collectif").

With m the middle of the cell that s lies in, and a = exp(d) - 1, the tangent of the logarithm
bounds the denominator: ``log(1 + s a) <= log(1 + m a) + a (s - m) / (1 + m a)``. The bound is
linear in s, so a cell needs the sums of its rows alone, and bets gain a thousandth less.

The promise is one for everything that a monitor bets on, since all shares of the money sum to 1:
over the problems of the same rows in the shares that `Monitor` gives to `Evidence.of_no_rows`, over
segments in `Evidence._with_segments`, over alternatives in `MONEY`, and over the times at which a
bet may begin in `kernels.bets.money_left`. `kernels.bets.look` adds all of it up to the e-value.

The loops over rows are in `fastece.kernels.bets`; here are the alternatives, the shares of the
money, and how the money of a monitor is kept.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_integer
from fastece.kernels.types import F64, I64, U8

if TYPE_CHECKING:
    from fastece.kernels.bets import Bets, Wagers

# Width of a cell of scores in log odds: with the tangent in the middle of a cell in place of each
# row's own logarithm, a thousandth of the evidence is lost.
CELL_WIDTH = 0.25
# Largest log odds, either way, between two cells; the last cells have all that lies beyond.
MAX_LOG_ODDS = 14.0
# Three kinds of alternatives share the money. Slopes have equal shares, and so have ranges.
MONEY_OF_SHIFTS = 0.5
MONEY_OF_SLOPES = 0.3
MONEY_OF_RANGES = 0.2
# Shifts of all log odds, with their parts of the money of shifts. Each is half as large as the
# next, so that one of them gains at least eight ninths of the growth rate that the true shift would
# have, for true shifts of 0.04 to 2.1. Large shifts need little money, as a day of rows shows them.
SHIFTS = {0.05: 2, 0.1: 3, 0.2: 4, 0.4: 4, 0.8: 2, 1.6: 1}
# Slopes of the log odds, each with each of the shifts.
SLOPES = (0.65, 0.85, 1.15, 1.35)
SHIFTS_OF_SLOPES = (0.0, 0.4, -0.4, 1.2, -1.2)
# Shifts of only the scores whose log odds lie between two neighbouring cuts.
CUTS = (-math.inf, *range(-5, 6), math.inf)
SHIFTS_OF_RANGES = (0.3, 0.9)
SIGNS = (1, -1)
# Share of the money that is bet on all rows, where segments have the rest.
MONEY_OF_ALL_ROWS = 0.5
# Looks that are kept for a picture; when there are more, every second one is dropped.
MAX_LOOKS = 2000
# Largest number of rows of a saved monitor: above it, floats skip integers.
MAX_ROWS = 2**53
NO_SEGMENTS = np.empty(0, np.int64)


# --- alternatives ---------------------------------------------------------------------------


class Alternative(NamedTuple):
    """A way to be off: log odds z from low to high are in truth shift + slope z."""

    money: float  # share of all money that is bet on it
    shift: float
    slope: float = 1.0
    low: float = -math.inf
    high: float = math.inf

    @property
    def description(self) -> str:
        """Description of the change: "predictions too low by 0.4 in the log odds"."""
        if self.slope != 1:
            shift = f", shift {self.shift:+g}" if self.shift else ""
            return f"slope {self.slope:g} of the log odds{shift}"
        scores = ""
        if math.isfinite(self.low) or math.isfinite(self.high):
            scores = f" from {sigmoid(self.low):.3g} to {sigmoid(self.high):.3g}"
        direction = "low" if self.shift > 0 else "high"
        return f"predictions{scores} too {direction} by {abs(self.shift):g} in the log odds"


def sigmoid(z: float) -> float:
    """Compute the probability that has these log odds."""
    return 1 / (1 + math.exp(-z))


def make_alternatives() -> tuple[Alternative, ...]:
    """Make the 12 shifts, the 20 slopes with shifts, and the 48 shifts of ranges."""
    part = MONEY_OF_SHIFTS / (len(SIGNS) * sum(SHIFTS.values()))
    slopes = [*product(SLOPES, SHIFTS_OF_SLOPES)]
    ranges = [*product(pairwise(CUTS), SHIFTS_OF_RANGES, SIGNS)]
    return (
        *(
            Alternative(parts * part, size * sign)
            for (size, parts), sign in product(SHIFTS.items(), SIGNS)
        ),
        *(Alternative(MONEY_OF_SLOPES / len(slopes), shift, slope) for slope, shift in slopes),
        *(
            Alternative(MONEY_OF_RANGES / len(ranges), size * sign, 1.0, low, high)
            for (low, high), size, sign in ranges
        ),
    )


ALTERNATIVES = make_alternatives()
# Share (J,) of the money that is bet on each alternative.
MONEY = np.array([alternative.money for alternative in ALTERNATIVES])
# Shifts and slopes change the odds of all scores, and come first.
N_EVERYWHERE = len(SHIFTS) * len(SIGNS) + len(SLOPES) * len(SHIFTS_OF_SLOPES)


@cache
def make_wagers(forget: int | None) -> "Wagers":
    """Compute the gains of each alternative in each cell of scores."""
    edges = np.arange(-MAX_LOG_ODDS, MAX_LOG_ODDS + CELL_WIDTH / 2, CELL_WIDTH)
    z = np.append(edges, MAX_LOG_ODDS + CELL_WIDTH) - CELL_WIDTH / 2
    change = np.zeros((len(ALTERNATIVES), z.size))
    for alternative, changes in zip(ALTERNATIVES, change, strict=True):
        in_range = (alternative.low < z) & (z < alternative.high)
        shifted = alternative.shift + (alternative.slope - 1) * z
        changes[in_range] = shifted[in_range]
    middles = 1 / (1 + np.exp(-z))
    norm = 1 + middles * np.expm1(change)
    gains = np.stack([-np.log(norm), change, -np.expm1(change) / norm])
    scores = 1 / (1 + np.exp(-edges))
    pieces = np.arange(kernels.bets.N_PIECES + 1) / kernels.bets.N_PIECES
    lowest_cell = np.append(np.searchsorted(scores, pieces, side="right"), scores.size)
    in_cell = change[N_EVERYWHERE:] != 0
    first = N_EVERYWHERE + in_cell.argmax(axis=0)
    return kernels.bets.Wagers(
        edges=scores,
        middles=middles,
        lowest_cell=lowest_cell.astype(np.int64),
        gains=np.ascontiguousarray(gains.transpose(2, 0, 1)),
        first=first,
        last=first + in_cell.sum(axis=0),
        money=MONEY,
        log_money=np.log(MONEY),
        n_everywhere=N_EVERYWHERE,
        forget=float(forget or 0),
    )


# --- money ----------------------------------------------------------------------------------


def begin_bets(shares: F64, wagers: "Wagers") -> "Bets":
    """Bet before the first row, with a share (P,) of all money for each problem."""
    n_bets = (shares.size, wagers.money.size)
    n_cells = (shares.size, wagers.middles.size)
    at_start = shares * (1 - kernels.bets.money_left(0.0, wagers.forget))
    return kernels.bets.Bets(
        money=np.outer(at_start, wagers.money),
        log_ratio=np.zeros(n_bets),
        first_row=np.zeros(n_bets, np.int64),
        share=shares.astype(np.float64),
        total=shares.astype(np.float64),
        rows=np.zeros(shares.size, np.int64),
        waiting_rows=np.zeros(n_cells, np.int64),
        waiting_hits=np.zeros(n_cells, np.int64),
        waiting_distance=np.zeros(n_cells),
        numbers=np.zeros(5, np.int64),
        values=np.zeros(6),
    )


def number_segments(
    names: Sequence[str] | None, segments: Sequence[str] | None, n_old: int
) -> tuple[I64, list[int]]:
    """Find the number of each row's segment, and the first rows of new segments.

    Parameters
    ----------
    names : (n,) sequence of str, or None
        The segment of each row; None without segments.
    segments : sequence of str, or None
        All segments in the order of their numbers.
    n_old : int
        Number of segments that earlier batches have; the others are new.
    """
    if names is None or segments is None:
        return NO_SEGMENTS, []
    numbers = {name: k for k, name in enumerate(segments)}
    segment = np.array([numbers[name] for name in names], np.int64)
    present, first_row = np.unique(segment, return_index=True)
    return segment, first_row[present >= n_old].tolist()


def first_problems(bets: "Bets", n_problems: int) -> "Bets":
    """Return the bets of the first problems, as views."""
    arrays = {name: array[:n_problems] for name, array in bets._asdict().items()}
    return kernels.bets.Bets(**{**arrays, "numbers": bets.numbers, "values": bets.values})


def begin_segment(bets: "Bets", n_problems: int, number: int) -> None:
    """Move the money of a new segment from the reserve into its bets, in place.

    Parameters
    ----------
    bets : Bets
        With room for the segment, whose money is not on the common scale yet.
    n_problems : int
        Number of problems of the same rows.
    number : int
        Number of segments that have begun before.
    """
    scale = math.exp(-bets.values[kernels.bets.LOG_SCALE])
    problems = slice(n_problems * (1 + number), n_problems * (2 + number))
    bets.money[problems] *= scale
    bets.total[problems] *= scale
    bets.values[kernels.bets.RESERVE] = (1 - MONEY_OF_ALL_ROWS) / (number + 2)


class EvidencePoint(NamedTuple):
    """The evidence after some rows, and the sums of their outcomes and scores."""

    n: int
    log_e_value: float
    hits: float
    scores: float


class SegmentEvidence(NamedTuple):
    """The evidence of the rows of a segment alone."""

    segment: str
    n: int
    e_value: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The money in every bet after some rows, and where the best bet began.

    Each alternative is bet on from the first row, and again with new money at every look: some
    bet has begun near the change, whenever it was (Shin, Ramdas and Rinaldo 2023, "E-detectors: a
    nonparametric framework for sequential change detection", here with weights that sum to 1).

    Attributes
    ----------
    wagers : Wagers
        The gains of each alternative.
    bets : Bets
        The money of each problem: of all rows, and then of the rows of each segment.
    shares : (Q,) float64 array
        Shares of the problems of the same rows, which sum to 1.
    segments : tuple of str, or None
        Names of the segments in the order in which they appeared; None without segments.
    looks : tuple of EvidencePoint
        At most `MAX_LOOKS` of the looks.
    """

    wagers: "Wagers"
    bets: "Bets"
    shares: F64
    segments: tuple[str, ...] | None = None
    looks: tuple[EvidencePoint, ...] = (EvidencePoint(0, 0.0, 0.0, 0.0),)

    @classmethod
    def of_no_rows(cls, shares: F64, forget: int | None) -> Self:
        """Bet before the first row, with the shares (Q,) of the problems."""
        wagers = make_wagers(forget)
        return cls(wagers, begin_bets(shares, wagers), shares)

    # --- rows -----------------------------------------------------------------------------------

    def after_rows(self, scores: F64, outcomes: U8, names: Sequence[str] | None) -> "Evidence":
        """Return the evidence after more rows.

        Parameters
        ----------
        scores : (Q, n) float64 array
        outcomes : (Q, n) uint8 array
        names : (n,) sequence of str, or None
            The segment of each row.
        """
        evidence = self if names is None else self._with_segments(names)
        n_segments = len(self.segments or ())
        segment, first_rows = number_segments(names, evidence.segments, n_segments)
        bets = kernels.bets.Bets._make(array.copy() for array in evidence.bets)
        n_rows = outcomes.shape[1]
        looks = np.empty((max_looks(n_rows), len(EvidencePoint._fields)))
        n_looks = 0
        # Bets on a segment begin right before its first row. If they began with the batch, sums of
        # money would be rounded in another way for another cut into batches.
        for begin, end in pairwise([0, *first_rows, n_rows]):
            n_looks += kernels.bets.follow_rows(
                np.ascontiguousarray(scores[:, begin:end]),
                np.ascontiguousarray(outcomes[:, begin:end]),
                segment[begin:end],
                tuple(self.wagers),
                tuple(first_problems(bets, self.shares.size * (1 + n_segments))),
                looks[n_looks:],
            )
            if end < n_rows:
                begin_segment(bets, self.shares.size, n_segments)
                n_segments += 1
        all_looks = [*evidence.looks]
        for n, *values in looks[:n_looks].tolist():
            if len(all_looks) == MAX_LOOKS:
                all_looks = all_looks[::2]
            all_looks.append(EvidencePoint(int(n), *values))
        return replace(evidence, bets=bets, looks=tuple(all_looks))

    def _with_segments(self, names: Sequence[str]) -> "Evidence":
        """Make room for bets on the segments that appear here first.

        Half of all money is for segments, and number k of them gets the part 1 / (k (k + 1)), so
        that all segments that may come get no more than there is. `begin_segment` gives it.
        """
        bets = self.bets
        old_names = self.segments
        if old_names is None:
            old_names = ()
            bets = begin_bets(MONEY_OF_ALL_ROWS * self.shares, self.wagers)
            bets.values[kernels.bets.RESERVE] = 1 - MONEY_OF_ALL_ROWS
        new_names = [name for name in dict.fromkeys(names) if name not in old_names]
        if new_names:
            k = 1 + len(old_names) + np.arange(len(new_names))
            parts = (1 - MONEY_OF_ALL_ROWS) / (k * (k + 1))
            new_bets = begin_bets(np.outer(parts, self.shares).ravel(), self.wagers)
            joined = {
                name: np.concatenate([array, getattr(new_bets, name)])
                for name, array in bets._asdict().items()
            }
            joined |= {"numbers": bets.numbers, "values": bets.values}
            bets = kernels.bets.Bets(**joined)
        return replace(self, bets=bets, segments=(*old_names, *new_names))

    # --- evidence -------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return int(self.bets.numbers[kernels.bets.N_ROWS])

    @property
    def log_e_value(self) -> float:
        """Logarithm of all money at the last look."""
        return float(self.bets.values[kernels.bets.LOG_E_VALUE])

    @property
    def max_log_e_value(self) -> float:
        """Largest logarithm of all money at any look."""
        return float(self.bets.values[kernels.bets.MAX_LOG_E_VALUE])

    @property
    def since(self) -> int:
        """Rows before the best bet began, when the e-value was largest."""
        return int(self.bets.numbers[kernels.bets.SINCE])

    @property
    def best_bet(self) -> tuple[int, int] | None:
        """Problem and alternative of the best bet; None where an outcome was impossible."""
        best = int(self.bets.numbers[kernels.bets.BEST])
        return None if best == kernels.bets.NO_BET else divmod(best, len(ALTERNATIVES))

    def log_e_values_of_segments(self) -> dict[str, float]:
        """Return the logarithm of the e-value of each segment, whose money began with 1."""
        n_problems = self.shares.size
        totals = self.bets.total.reshape(-1, n_problems).sum(axis=1)
        shares = self.bets.share.reshape(-1, n_problems).sum(axis=1)
        log_scale = float(self.bets.values[kernels.bets.LOG_SCALE])
        log_e_values = np.log(totals[1:] / shares[1:]) + log_scale
        return dict(zip(self.segments or (), log_e_values.tolist(), strict=True))

    def rows_of_segments(self) -> list[int]:
        """Count the rows of each segment."""
        first_problems = slice(self.shares.size, None, self.shares.size)
        waiting = self.bets.waiting_rows[first_problems].sum(axis=1)
        return [*(self.bets.rows[first_problems] + waiting).tolist()]

    # --- files ----------------------------------------------------------------------------------

    def to_saved(self) -> dict[str, Any]:
        """Return all numbers under the names that they have in files."""
        return {**self.bets._asdict(), "segments": self.segments, "looks": self.looks}

    def from_saved(self, content: Mapping[str, Any]) -> "Evidence":
        """Read the evidence from the values of a file, for the monitor of this evidence."""
        segments = content["segments"]
        evidence = self
        if segments is not None:
            segments = tuple(segments)
            if not all(isinstance(name, str) for name in segments):
                raise InputTypeError("segments", "must be texts")
            evidence = self._with_segments(segments)
        arrays = {
            name: read_array(name, content[name], array)
            for name, array in evidence.bets._asdict().items()
        }
        check_numbers(arrays["numbers"], arrays["money"].size)
        looks = tuple(read_point(*values) for values in content["looks"])
        return replace(evidence, bets=kernels.bets.Bets(**arrays), segments=segments, looks=looks)


def max_looks(n_rows: int) -> int:
    """Return the largest number of looks that so many rows may have."""
    n_close = kernels.bets.PARTS_BETWEEN_LOOKS * kernels.bets.MAX_WAITING
    return min(n_rows, n_close) + n_rows // kernels.bets.MAX_WAITING + 1


def check_numbers(numbers: I64, n_bets: int) -> None:
    """Check the numbers of bets from a file: no more rows wait than a look lets wait."""
    n_at_look = int(numbers[kernels.bets.N_AT_LOOK])
    check_integer("rows at the last look", n_at_look, 0, MAX_ROWS)
    end = n_at_look + kernels.bets.rows_between_looks(n_at_look)
    check_integer("rows", int(numbers[kernels.bets.N_ROWS]), n_at_look, end - 1)
    check_integer("since", int(numbers[kernels.bets.SINCE]), 0, MAX_ROWS)
    check_integer("best", int(numbers[kernels.bets.BEST]), kernels.bets.NO_BET, n_bets - 1)


def read_point(n: Any, log_e_value: Any, hits: Any = None, scores: Any = None) -> EvidencePoint:
    """Read a look from the values of a file, in which unknown sums are None."""
    sums = [math.nan if value is None else float(value) for value in (hits, scores)]
    return EvidencePoint(int(n), float(log_e_value), *sums)


def read_array(name: str, value: Any, like: Any) -> Any:
    """Read numbers in the shape and the type of an array from nested lists."""
    array = np.array(value, like.dtype)
    is_number = np.isfinite(array) if name != "values" else ~np.isnan(array)
    if array.shape != like.shape or not is_number.all():
        raise InputError(name, f"must be numbers of shape {like.shape}")
    return array
