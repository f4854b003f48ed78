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
alternatives in `MONEY`, and over the times at which a bet may begin in `kernels.bets.money_left`.
`kernels.bets.look` adds all of it up to the e-value.

The loops over rows are in `fastece.kernels.bets`; here are the alternatives, the shares of the
money, and how the money of a monitor is kept.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError
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
# Looks that are kept for a picture; when there are more, every second one is dropped.
MAX_LOOKS = 2000
# Largest number of rows of a saved monitor: above it, floats skip integers.
MAX_ROWS = 2**53


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


def sigmoid(z: Any) -> Any:
    """Compute the probabilities that have these log odds."""
    return 1 / (1 + np.exp(-z))


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
    middles = sigmoid(z)
    norm = 1 + middles * np.expm1(change)
    gains = np.stack([-np.log(norm), change, -np.expm1(change) / norm])
    scores = sigmoid(edges)
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
        waiting_rows=np.zeros(n_cells, np.int64),
        waiting_hits=np.zeros(n_cells, np.int64),
        waiting_distance=np.zeros(n_cells),
        numbers=np.zeros(5, np.int64),
        values=np.zeros(5),
    )


class EvidencePoint(NamedTuple):
    """The evidence after some rows, and the sums of their outcomes and scores."""

    n: int
    log_e_value: float
    hits: float
    scores: float


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
        The money of each problem, of which the shares sum to 1.
    looks : tuple of EvidencePoint
        At most `MAX_LOOKS` of the looks.
    """

    wagers: "Wagers"
    bets: "Bets"
    looks: tuple[EvidencePoint, ...] = (EvidencePoint(0, 0.0, 0.0, 0.0),)

    @classmethod
    def of_no_rows(cls, shares: F64, forget: int | None) -> Self:
        """Bet before the first row, with the shares (Q,) of the problems."""
        wagers = make_wagers(forget)
        return cls(wagers, begin_bets(shares, wagers))

    # --- rows -----------------------------------------------------------------------------------

    def after_rows(self, scores: F64, outcomes: U8) -> "Evidence":
        """Return the evidence after more rows.

        Parameters
        ----------
        scores : (Q, n) float64 array
        outcomes : (Q, n) uint8 array
        """
        bets = kernels.bets.Bets._make(array.copy() for array in self.bets)
        looks = np.empty((max_looks(outcomes.shape[1]), len(EvidencePoint._fields)))
        n_looks = kernels.bets.follow_rows(
            np.ascontiguousarray(scores),
            np.ascontiguousarray(outcomes),
            tuple(self.wagers),
            tuple(bets),
            looks,
        )
        all_looks = [*self.looks]
        for n, *values in looks[:n_looks].tolist():
            if len(all_looks) == MAX_LOOKS:
                all_looks = all_looks[::2]
            all_looks.append(EvidencePoint(int(n), *values))
        return replace(self, bets=bets, looks=tuple(all_looks))

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

    # --- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers under the names that they have in files."""
        return {**self.bets._asdict(), "looks": self.looks}

    def from_dict(self, values: Mapping[str, Any]) -> "Evidence":
        """Read the evidence from the values of a file, for the monitor of this evidence."""
        arrays = {
            name: read_array(name, values[name], array)
            for name, array in self.bets._asdict().items()
        }
        check_numbers(arrays["numbers"], arrays["money"].size)
        looks = tuple(EvidencePoint(int(n), *map(float, point)) for n, *point in values["looks"])
        return replace(self, bets=kernels.bets.Bets(**arrays), looks=looks)


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


def read_array(name: str, value: Any, like: Any) -> Any:
    """Read numbers in the shape and the type of an array from nested lists."""
    array = np.array(value, like.dtype)
    is_number = np.isfinite(array) if name != "values" else ~np.isnan(array)
    if array.shape != like.shape or not is_number.all():
        raise InputError(name, f"must be numbers of shape {like.shape}")
    return array
