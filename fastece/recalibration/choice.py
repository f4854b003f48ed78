"""The choice among a few methods by their log loss out of fold, "none" included."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import count_of
from fastece.display.results import Record, Result
from fastece.kernels.types import F64, I64
from fastece.recalibration.methods import METHODS

NONE = "none"
# The methods that are tried, the simplest first.
CANDIDATES = (NONE, "temperature", "ets", "svs", "sms")
BEST_LEFT = "The predictions are best left as they are."


@dataclass(frozen=True)
class Trial(Record):
    """One method that was tried.

    Parameters
    ----------
    method : str
        Its name in `METHODS`.
    log_loss : float
        Mean log loss of its probabilities, each from a map that was fitted to other folds.
    excess : float
        By how much this is above the smallest log loss of all trials.
    standard_error : float
        Standard error of the excess, from the differences of each row or group.
    """

    method: str
    log_loss: float
    excess: float
    standard_error: float


@dataclass(frozen=True, eq=False, kw_only=True)
class MapChoice(Result):
    """The method that suits some rows, and all that were tried.

    The result of `fastece.recalibration.recommend`.

    Attributes
    ----------
    method : str
        The name of the chosen method in `METHODS`.
    trials : tuple of Trial
        The methods that were tried, the simplest first: `method`, `log_loss`, `excess` over the
        smallest one, and its `standard_error`.
    refused : dict
        Why other methods could not be used, by name.
    n : int
        The number of rows with a weight above 0.
    """

    method: str
    trials: tuple[Trial, ...]
    refused: dict[str, str]
    n: int

    @property
    def reason(self) -> str:
        """A sentence on which method was taken and why."""
        best = min(self.trials, key=lambda trial: trial.log_loss)
        if best.method == self.method:
            why = "it is the best, and the simplest within one standard error of it"
        else:
            best_title = method_title(best.method)
            why = f"it is the simplest within one standard error of the best, {best_title}"
        text = f"{method_title(self.method)} is taken: {why}."
        advice = f" {BEST_LEFT}" if self.method == NONE else ""
        return text[0].upper() + text[1:] + advice

    def section(self) -> Section:
        """Describe the trials, as a section of a page."""
        rows = [
            [method_title(trial.method), trial.log_loss, trial.excess, trial.standard_error]
            for trial in self.trials
        ]
        table = Table(["method", "log_loss", "above the best", "standard error"], rows)
        refusals = [f"{method_title(name)} cannot be used: {x}" for name, x in self.refused.items()]
        return Section("Methods", table=table, notes=[self.reason, *refusals])

    def document(self) -> Document:
        """Describe the choice with its trials."""
        title = f"Recommended: {method_title(self.method)} ({count_of(self.n, 'row')}, out of fold)"
        return Document(title, sections=[self.section()])


def method_title(method: str) -> str:
    """Return the name of a method in texts."""
    return METHODS[method].title


def compare_with_best(losses: Mapping[str, F64], weight: F64, group: I64) -> tuple[Trial, ...]:
    """Compare the log loss of each method with the smallest one.

    Parameters
    ----------
    losses : dict of (n,) float64 arrays
        Losses of the rows by method.
    weight : (n,) float64 array
        Above 0; the sum is 1.
    group : (n,) int64 array
        Rows of one group are not independent.
    """
    means = {name: float(weight @ loss) for name, loss in losses.items()}
    loss_of_best = losses[min(means, key=means.__getitem__)]
    trials = []
    for name, loss in losses.items():
        difference = loss - loss_of_best
        excess = float(weight @ difference)
        error = standard_error(difference - excess, weight, group)
        trials.append(Trial(name, means[name], excess, error))
    return tuple(trials)


def standard_error(residual: F64, weight: F64, group: I64) -> float:
    """Compute the standard error of a weighted mean from deviations of rows.

    The sums of groups are independent of each other, and the rows of a group may not be.
    """
    sums = np.bincount(group, weight * residual)
    n_groups = int(np.count_nonzero(np.bincount(group)))
    n_others = max(n_groups - 1, 1)
    return math.sqrt(n_groups / n_others * float(sums @ sums))


def choose_simplest(trials: tuple[Trial, ...]) -> str:
    """Choose the first method that is within one standard error of the best."""
    return next(trial.method for trial in trials if trial.excess <= trial.standard_error)
