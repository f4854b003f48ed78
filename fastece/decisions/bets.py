"""Bets against calibration: the money in them is the evidence of `fastece.Monitor`.

The monitor begins with money of 1 and bets on outcomes. Each bet is on an `Alternative`, by which
rows with log odds z in truth have log odds ``z + d(z)``. A row with score s and outcome y
multiplies the money in this bet by its likelihood ratio::

    exp(y d) / (1 + s (exp(d) - 1))

whose mean is 1 if s is the probability of the outcome. So the money in all bets together, the
e-value, has a mean of at most 1 at any time while predictions are calibrated, and ever reaches
``1 / level`` with a chance of at most `level` (Ville 1939, "Etude critique de la notion de
collectif").

All computations are on logarithms, since the money may exceed the range of floats.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple, Self

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_integer
from fastece.data.samples import Sample
from fastece.kernels.types import F64, I64

# Width of a cell of scores in log odds: with the mean score of a cell in place of each row's own,
# a thousandth of the evidence is lost.
CELL_WIDTH = 0.25
# Largest log odds, either way, between two cells; the last cells have all that lies beyond.
MAX_LOG_ODDS = 14.0
# Three kinds of alternatives share the money, and the alternatives of a kind have equal shares.
MONEY_OF_SHIFTS = 0.4
MONEY_OF_SLOPES = 0.35
MONEY_OF_RANGES = 0.25
# Shifts of all log odds. Each is half as large as the next, so that one of them gains at least
# eight ninths of the growth rate that the true shift would have, for true shifts of 0.04 to 2.1.
SHIFTS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# Slopes of the log odds, each with each of the shifts.
SLOPES = (0.65, 0.85, 1.15, 1.35)
SHIFTS_OF_SLOPES = (0.0, 0.4, -0.4, 1.2, -1.2)
# Shifts of only the scores whose log odds lie between two neighbouring cuts.
CUTS = (-math.inf, *range(-5, 6), math.inf)
SHIFTS_OF_RANGES = (0.3, 0.9)
SIGNS = (1, -1)
# Share of the money that is bet before the first row.
SHARE_BET_AT_START = 0.5
# Rows after which the money that is not bet yet has shrunk by the factor sqrt(2).
ROWS_OF_SCHEDULE = 10_000
# In place of 0, whose logarithm would be infinite, where a batch is too small to bet any money.
MIN_MONEY = 1e-300
# Looks that are kept for a picture; when there are more, every second one is dropped.
MAX_LOOKS = 2000
# In place of a bet, where an outcome had the probability 0.
NO_BET = -1
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


def sigmoid(z: float) -> float:
    """Compute the probability that has these log odds."""
    return 1 / (1 + math.exp(-z))


def make_alternatives() -> tuple[Alternative, ...]:
    """Make the 12 shifts, the 20 slopes with shifts, and the 48 shifts of ranges."""
    shifts = [size * sign for size, sign in product(SHIFTS, SIGNS)]
    slopes = [*product(SLOPES, SHIFTS_OF_SLOPES)]
    ranges = [*product(pairwise(CUTS), SHIFTS_OF_RANGES, SIGNS)]
    return (
        *(Alternative(MONEY_OF_SHIFTS / len(shifts), shift) for shift in shifts),
        *(Alternative(MONEY_OF_SLOPES / len(slopes), shift, slope) for slope, shift in slopes),
        *(
            Alternative(MONEY_OF_RANGES / len(ranges), size * sign, 1.0, low, high)
            for (low, high), size, sign in ranges
        ),
    )


ALTERNATIVES = make_alternatives()
# Share (J,) of the money that is bet on each alternative.
MONEY = np.array([alternative.money for alternative in ALTERNATIVES])


class ChangedOdds(NamedTuple):
    """Changes of the odds by each of J alternatives in each of C cells of scores.

    Attributes
    ----------
    edges : (C - 1,) float64 array
        Scores between two cells.
    log_odds : (J, C) float64 array
        The change d of the log odds in the middle of the cell.
    odds : (J, C) float64 array
        The relative change of the odds, ``exp(d) - 1``.
    """

    edges: F64
    log_odds: F64
    odds: F64


@cache
def changed_odds() -> ChangedOdds:
    """Compute the changes of all alternatives, once."""
    edges = np.arange(-MAX_LOG_ODDS, MAX_LOG_ODDS + CELL_WIDTH / 2, CELL_WIDTH)
    middles = np.append(edges, MAX_LOG_ODDS + CELL_WIDTH) - CELL_WIDTH / 2
    log_odds = np.zeros((len(ALTERNATIVES), middles.size))
    for alternative, changes in zip(ALTERNATIVES, log_odds, strict=True):
        in_range = (alternative.low < middles) & (middles < alternative.high)
        change = alternative.shift + (alternative.slope - 1) * middles
        changes[in_range] = change[in_range]
    return ChangedOdds(1 / (1 + np.exp(-edges)), log_odds, np.expm1(log_odds))


def log_likelihood_ratios(sample: Sample) -> F64:
    """Compute the log likelihood ratio (J,) of each alternative for a batch of rows.

    The rows of a cell are summed up and count with their mean score m, so the order of rows
    changes no bit. With h outcomes of 1 among the n rows of a cell, its part is::

        h d - n log(1 + m (exp(d) - 1))

    By Jensen's inequality it is at most the sum over the rows with their own scores, so no bet
    gains more than it should.
    """
    changes = changed_odds()
    ordered = sample.sorted()
    begin = np.append(0, np.searchsorted(ordered.s, changes.edges))
    n_rows = np.diff(begin, append=ordered.n)
    cells = np.flatnonzero(n_rows)
    n_rows = n_rows[cells]
    hits = np.add.reduceat(ordered.y, begin[cells], dtype=np.int64)
    mean_score = np.add.reduceat(ordered.s, begin[cells]) / n_rows
    log_norm = np.log1p(mean_score * changes.odds[:, cells])
    ratios = hits * changes.log_odds[:, cells] - n_rows * log_norm
    return np.asarray(ratios.sum(axis=1))


# --- money ----------------------------------------------------------------------------------


def money_left(n: int) -> float:
    """Return the share of all money that is not bet yet after n rows."""
    return (1 - SHARE_BET_AT_START) / math.sqrt(1 + n / ROWS_OF_SCHEDULE)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The money in every bet after some batches, and where the best bet began.

    Each alternative is bet on from the first row, and again with new money after every batch: some
    bet has begun near the change, whenever it was (Shin, Ramdas and Rinaldo 2023, "E-detectors: a
    nonparametric framework for sequential change detection", here with weights that sum to 1).

    Attributes
    ----------
    log_money : (P, J) float64 array
        Logarithm of the money in the bets of each problem on each alternative, from all beginnings.
    log_ratio : (P, J) float64 array
        Log likelihood ratio since the most likely beginning; it begins anew after a batch at whose
        end it was not above 0 (Page 1954, "Continuous inspection schemes").
    first_row : (P, J) int64 array
        Rows before that beginning.
    n, n_batches : int
        Rows and batches so far.
    log_e_value, max_log_e_value : float
        Logarithm of all money now, and its largest value after any batch.
    since, best_bet : int
        Rows before the beginning of the most likely alternative, and its place among the P J bets,
        both when the e-value was largest. `best_bet` is -1 where an outcome was impossible.
    looks : tuple of (int, float)
        Rows and `log_e_value` after batches: at most `MAX_LOOKS` of them.
    """

    log_money: F64
    log_ratio: F64
    first_row: I64
    n: int = 0
    n_batches: int = 0
    log_e_value: float = 0.0
    max_log_e_value: float = 0.0
    since: int = 0
    best_bet: int = 0
    looks: tuple[tuple[int, float], ...] = ((0, 0.0),)

    @classmethod
    def of_no_rows(cls, shares: F64) -> Self:
        """Bet before the first row, with the shares (P, J) of the money in each bet."""
        return cls(
            log_money=np.log(SHARE_BET_AT_START * shares),
            log_ratio=np.zeros(shares.shape),
            first_row=np.zeros(shares.shape, np.int64),
        )

    def after_batch(
        self, log_ratios: F64, shares: F64, n_rows: int, is_impossible: bool
    ) -> "Evidence":
        """Return the evidence after one more batch.

        Parameters
        ----------
        log_ratios : (P, J) float64 array
            Log likelihood ratios of the batch.
        shares : (P, J) float64 array
            Shares of new money that are bet on each alternative when the batch is over.
        n_rows : int
            Rows of the batch.
        is_impossible : bool
            Whether an outcome of the batch had the predicted probability 0: then the e-value is
            infinite for good.
        """
        n = self.n + n_rows
        new_money = max(money_left(self.n) - money_left(n), MIN_MONEY)
        log_money = np.logaddexp(self.log_money + log_ratios, np.log(shares) + math.log(new_money))
        log_e_value = math.inf
        if not is_impossible and self.log_e_value < math.inf:
            log_not_bet = math.log(money_left(n))
            log_e_value = float(np.logaddexp.reduce(log_money, axis=None, initial=log_not_bet))
        first_row = np.where(self.log_ratio > 0, self.first_row, self.n)
        log_ratio = np.maximum(self.log_ratio, 0.0) + log_ratios
        max_log_e_value = self.max_log_e_value
        since = self.since
        best_bet = self.best_bet
        if log_e_value > self.max_log_e_value:
            max_log_e_value = log_e_value
            best_bet = NO_BET if is_impossible else int(log_ratio.argmax())
            since = self.n if is_impossible else int(first_row.flat[best_bet])
        looks = self.looks if len(self.looks) < MAX_LOOKS else self.looks[::2]
        return Evidence(
            log_money=log_money, log_ratio=log_ratio, first_row=first_row, n=n,
            n_batches=self.n_batches + 1, log_e_value=log_e_value,
            max_log_e_value=max_log_e_value, since=since, best_bet=best_bet,
            looks=(*looks, (n, log_e_value)),
        )  # fmt: skip

    def to_saved(self) -> dict[str, Any]:
        """Return all numbers under the names that they have in files."""
        return {
            "wealth": self.log_money, "ratio": self.log_ratio, "start": self.first_row,
            "n": self.n, "batches": self.n_batches, "log_e": self.log_e_value,
            "most": self.max_log_e_value, "since": self.since, "best": self.best_bet,
            "looks": self.looks,
        }  # fmt: skip

    @classmethod
    def from_saved(cls, content: Mapping[str, Any], shape: tuple[int, ...]) -> Self:
        """Read the evidence from the values of a file, with arrays of the shape (P, J)."""
        n_bets = math.prod(shape)
        return cls(
            log_money=read_array("wealth", content["wealth"], shape, np.float64),
            log_ratio=read_array("ratio", content["ratio"], shape, np.float64),
            first_row=read_array("start", content["start"], shape, np.int64),
            n=check_integer("n", content["n"], 0, MAX_ROWS),
            n_batches=check_integer("batches", content["batches"], 0, MAX_ROWS),
            log_e_value=float(content["log_e"]),
            max_log_e_value=float(content["most"]),
            since=check_integer("since", content["since"], 0, MAX_ROWS),
            best_bet=check_integer("best", content["best"], NO_BET, n_bets - 1),
            looks=tuple((int(n), float(log_e_value)) for n, log_e_value in content["looks"]),
        )


def read_array(name: str, value: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """Read an array of finite numbers of a shape and a type from nested lists."""
    array = np.array(value, kind)
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(name, f"must be numbers of shape {shape}")
    return array
