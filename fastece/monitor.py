"""A monitor of calibration over time, which may be looked at after every batch of rows."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from fastece.checks.arrays import as_probabilities
from fastece.checks.errors import InputError, InputTypeError, rename_arguments
from fastece.checks.parameters import check_integer, check_real
from fastece.data.reading import read_problems
from fastece.data.sample import Sample
from fastece.data.source import NO_ROWS
from fastece.document.document import Document, Section
from fastece.document.numbers import Number, PValue, to_plain
from fastece.document.result import Readable
from fastece.files import unique_keys, write_file
from fastece.plot.axes import draw_evidence, new_axes
from fastece.typing import F64, I64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Cells of the score have this width in log odds, up to this far from 0: with the mean score of a
# cell in place of each row's own, a thousandth of the evidence is lost.
CELL, REACH = 0.25, 14.0
# Alternatives: shifts of the log odds, each half as large as the next, so that one of them gains at
# least eight ninths of what the true shift would, from 0.04 to 2.1; slopes with shifts; and shifts
# of the scores between two cuts alone. Each kind gets a share of the money.
SHIFTS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
SLOPES, SLOPE_SHIFTS = (0.65, 0.85, 1.15, 1.35), (0.0, 0.4, -0.4, 1.2, -1.2)
CUTS, CUT_SHIFTS = (-math.inf, *range(-5, 6), math.inf), (0.3, 0.9)
SHARES = {"shift": 0.4, "slope": 0.35, "range": 0.25}
# The share of the money that is bet before the first row, and the rows in the rule of `idle`.
FIRST, SCALE = 0.5, 10_000
# Looks that are kept for a picture; of more, every second one is dropped.
MOST_LOOKS = 2000
FORMAT, VERSION, MAX_CLASSES, MAX_ROWS = "fastece.monitor", 1, 2**20, 2**53
KEYS = ("format", "version", "level", "n_classes", "reference", "state")
ALARM = "Alarm: the predictions are not calibrated, or no longer."
QUIET = "No alarm: these rows do not show that the predictions are miscalibrated."
IMPOSSIBLE = "an outcome whose predicted probability was 0"


# --- alternatives ---------------------------------------------------------------------------


class Alternative(NamedTuple):
    """An alternative to calibration: the log odds are those of the score, plus a shift."""

    name: str
    share: float  # of the money
    shift: Any  # number, or array with one for each cell


def alternatives(center: F64) -> Iterator[Alternative]:
    """Yield all alternatives, for cells with these log odds in the middle."""
    for shift in both_signs(SHIFTS):
        share = SHARES["shift"] / len(SHIFTS) / 2
        yield Alternative(name_shift("predictions", shift), share, shift)
    for slope in SLOPES:
        for shift in SLOPE_SHIFTS:
            name = f"slope {slope:g} of the log odds" + (f", shift {shift:+g}" if shift else "")
            share = SHARES["slope"] / len(SLOPES) / len(SLOPE_SHIFTS)
            yield Alternative(name, share, shift + (slope - 1) * center)
    for low, high in pairwise(CUTS):
        ends = " to ".join(f"{1 / (1 + math.exp(-z)):.3g}" for z in (low, high))
        for shift in both_signs(CUT_SHIFTS):
            share = SHARES["range"] / (len(CUTS) - 1) / len(CUT_SHIFTS) / 2
            inside = (low < center) & (center < high)
            yield Alternative(name_shift(f"predictions from {ends}", shift), share, shift * inside)


def both_signs(sizes: tuple[float, ...]) -> list[float]:
    """List numbers of these sizes with both signs."""
    return [sign * size for size in sizes for sign in (1, -1)]


def name_shift(rows: str, shift: float) -> str:
    """Write by how much predictions are too low or too high."""
    return f"{rows} too {'low' if shift > 0 else 'high'} by {abs(shift):g} in the log odds"


class Bets(NamedTuple):
    """All J alternatives as arrays, for C cells."""

    edges: F64  # (C - 1,) scores between cells
    names: tuple[str, ...]
    share: F64  # (J,), of the money
    shift: F64  # (J, C), of the log odds
    odds: F64  # (J, C), relative change of the odds


@cache
def make_bets() -> Bets:
    """Make the table of alternatives."""
    edges = np.arange(-REACH, REACH + CELL / 2, CELL)
    center = np.append(edges, REACH + CELL) - CELL / 2
    names, shares, shifts = zip(*alternatives(center), strict=True)
    shift = np.array([np.broadcast_to(x, center.size) for x in shifts])
    return Bets(1 / (1 + np.exp(-edges)), names, np.array(shares), shift, np.expm1(shift))


def log_ratios(sample: Sample) -> F64:
    """Compute the log likelihood ratio of each alternative (J,) for rows in any order.

    The rows of a cell count with their mean score, by which it is smaller, if anything.
    """
    bets, ordered = make_bets(), sample.sorted()
    begin = np.append(0, np.searchsorted(ordered.s, bets.edges))
    count = np.diff(begin, append=ordered.n)
    cells = np.flatnonzero(count)
    hits = np.add.reduceat(ordered.y, begin[cells], dtype=np.int64)
    mean = np.add.reduceat(ordered.s, begin[cells]) / count[cells]
    norm = np.log1p(mean * bets.odds[:, cells])
    return np.asarray((hits * bets.shift[:, cells] - count[cells] * norm).sum(axis=1))


# --- evidence -------------------------------------------------------------------------------


def idle(n: int) -> float:
    """Return the share of the money that is not bet yet after n rows."""
    return (1 - FIRST) / math.sqrt(1 + n / SCALE)


@dataclass(frozen=True, eq=False)
class State:
    """Money in each bet, and what else a monitor keeps of its rows.

    Arrays have the shape (P, J), of problems and alternatives.
    """

    wealth: F64  # log of the money, from all beginnings
    ratio: F64  # log likelihood ratio from the best beginning; 0 or less: from the last batch
    start: I64  # rows before that beginning
    n: int = 0
    batches: int = 0
    log_e: float = 0.0
    most: float = 0.0  # the largest log_e, and at that time
    since: int = 0  # rows before the beginning of the most likely alternative
    best: int = 0  # which one that was; -1: an outcome was impossible
    looks: tuple[tuple[int, float], ...] = ((0, 0.0),)  # rows and log_e

    def add(self, ratios: F64, share: F64, rows: int, is_impossible: bool) -> "State":
        """Return the state after a batch, when new money is bet in these shares."""
        n, left = self.n + rows, idle(self.n + rows)
        new = np.log(share) + math.log(max(idle(self.n) - left, 1e-300))
        wealth = np.logaddexp(self.wealth + ratios, new)
        log_e = float(np.logaddexp.reduce(wealth, axis=None, initial=math.log(left)))
        log_e = math.inf if is_impossible or self.log_e == math.inf else log_e
        start = np.where(self.ratio > 0, self.start, self.n)
        ratio = np.maximum(self.ratio, 0.0) + ratios
        most, since, best = self.most, self.since, self.best
        if log_e > most:
            best = -1 if is_impossible else int(ratio.argmax())
            most, since = log_e, self.n if is_impossible else int(start.flat[best])
        looks = (*self.looks[:: 1 + (len(self.looks) >= MOST_LOOKS)], (n, log_e))
        batches = self.batches + 1
        return State(wealth, ratio, start, n, batches, log_e, most, since, best, looks)


def exp(x: float) -> float:
    """Compute the exponential function of a number, at most 8e307, or of infinity."""
    return math.exp(x if math.isinf(x) else min(x, 709.0))


class Monitor(Readable):
    """A test of calibration that goes on, and may be looked at after every batch.

    However often one looks, and whenever one stops, the chance that it ever alarms is at most
    `level` as long as the predictions are calibrated.

    Parameters
    ----------
    level : float, default 0.05
        Largest chance of a false alarm, ever.
    reference : object, optional
        A fitted map of `fastece.recalibration`, or any object whose `transform` turns predictions
        into probabilities of their shape: these are tested, as what was true at release. Without
        it, the predictions themselves are.
    n_classes : int, optional
        Number of columns K of `y_prob`; None: probabilities of the positive class (n,).

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range, and a reference without `transform`.

    Notes
    -----
    Calibrated means that the label of a row has the predicted probabilities, given everything
    before: scores and labels of earlier rows, and the row's own scores. The monitor begins with
    money of 1 and bets on outcomes against alternatives, by which the log odds z of a score s are
    in truth ``z + d(z)``. A row with outcome y multiplies such a bet by its likelihood ratio::

        exp(y d) / (1 + s (exp(d) - 1))

    which has mean 1 if s is right. So the money in all bets together, the e-value, reaches
    ``1 / level`` with a chance of at most `level` (Ville 1939).

    Alternatives are 12 shifts d from 0.05 to 1.6, four slopes with five shifts each, and shifts by
    0.3 or 0.9 of the scores between two of 11 cuts. Half of the money is bet before the first row,
    and more after every batch, so that ``0.5 (1 + n / 10000)**-0.5`` is left after n rows: some bet
    has begun near the change, whenever that is (Shin, Ramdas and Rinaldo 2023, "E-detectors: a
    nonparametric framework for sequential change detection", here with weights that sum to 1, so
    that the promise is of all time). All bets on one alternative are one number.

    Of class vectors, half of the money is bet on whether the most probable class is right, and the
    other half on the K classes: a mean of e-values is an e-value (Vovk and Wang 2021, "E-values:
    calibration, combination and applications"). Tests of forecasts by betting are those of Henzi
    and Ziegel (2022, "Valid sequential inference on probability forecast performance") and Arnold,
    Henzi and Ziegel (2023, "Sequentially valid tests for forecast calibration").

    The rows of a batch are added up in cells of 0.25 in z and count with the mean score of their
    cell, which by Jensen's inequality never makes the e-value larger, and hardly smaller. So the
    order of rows in a batch changes no bit. At the ends of batches bets begin, and one looks; where
    they are must not depend on labels that follow. An outcome that had the predicted probability 0
    makes the e-value infinite, for good.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import Monitor
    >>> rng, monitor = np.random.default_rng(0), Monitor()
    >>> for day in range(30):
    ...     z = rng.normal(-1, 1.5, 200)
    ...     shift = 0.5 if day >= 20 else 0.0
    ...     y = rng.random(200) < 1 / (1 + np.exp(-z - shift))
    ...     monitor = monitor.update(y, 1 / (1 + np.exp(-z)))
    >>> print(monitor)
    """

    def __init__(
        self, level: float = 0.05, *, reference: Any = None, n_classes: int | None = None
    ) -> None:
        self.level = check_real("level", level, 0.0, 1.0)
        if not 0 < self.level < 1:
            raise InputError("level", "must be between 0 and 1", value=level)
        if n_classes is not None:
            n_classes = check_integer("n_classes", n_classes, 2, MAX_CLASSES)
        if reference is not None and not callable(getattr(reference, "transform", None)):
            raise InputTypeError("reference", "must have a method transform", value=reference)
        self.reference, self.n_classes = reference, n_classes
        of_problems = [1.0] if n_classes is None else [0.5, *[0.5 / n_classes] * n_classes]
        self._share = np.multiply.outer(of_problems, make_bets().share)
        nothing = np.zeros(self._share.shape)
        self._state = State(np.log(FIRST * self._share), nothing, nothing.astype(np.int64))

    # --- rows -------------------------------------------------------------------------------

    def update(
        self, y_true: Any, y_prob: Any, *, labels: Any = None, pos_label: Any = None,
        from_logits: bool = False,
    ) -> Self:  # fmt: skip
        """Add a batch of rows, such as those of a day; batches come in the order of time.

        Parameters
        ----------
        y_true, y_prob, labels, pos_label, from_logits
            As in `fastece.ece`. A batch without rows changes nothing.

        Returns
        -------
        Monitor
            Itself.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`, and for another number of classes; then nothing has changed.
        """
        if not max(len(x) if hasattr(x, "__len__") else 1 for x in (y_true, y_prob)):
            return self
        options = {"labels": labels, "pos_label": pos_label, "from_logits": from_logits}
        samples = [*self._read(y_true, y_prob, options)]
        ratios = np.array([log_ratios(sample) for sample in samples])
        is_impossible = any(bool((sample.s == 1 - sample.y).any()) for sample in samples)
        self._state = self._state.add(ratios, self._share, samples[0].n, is_impossible)
        return self

    def _read(self, y_true: Any, y_prob: Any, options: dict[str, Any]) -> Iterator[Sample]:
        """Yield the problem of a batch, or those of the top label and of each class."""
        n_classes, logits = self.n_classes, options["from_logits"]
        if self.reference is not None:
            if logits:
                raise InputError("from_logits", "goes without a reference, which maps predictions")
            with rename_arguments({"X": "y_prob"}):
                y_prob = self.reference.transform(y_prob)
        shape = as_probabilities(y_prob).shape
        if shape[1:] != (() if n_classes is None else (n_classes,)):
            rule = f"must have shape {'(n,)' if n_classes is None else f'(n, {n_classes})'}"
            raise InputError("y_prob", rule, value=shape, hint="as {n_classes} says")
        problems = read_problems(y_true, y_prob, vectors=n_classes is not None, **options)
        yield replace(problems.view(), rows=NO_ROWS, vectors=None)
        if problems.vectors is not None:
            for k, p in enumerate(problems.vectors.prob.T):
                y = (problems.vectors.label == k).view(np.uint8)
                yield Sample(p.astype(np.float64), y, None, 0.0, 1.0, NO_ROWS)

    # --- evidence ---------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return self._state.n

    @property
    def e_value(self) -> float:
        """Evidence against calibration: the money now, of 1 at the beginning.

        Infinite after an outcome whose predicted probability was 0, and else at most 8e307.
        """
        return exp(self._state.log_e)

    @property
    def log_e_value(self) -> float:
        """Logarithm of the e-value, which may be larger than floats."""
        return self._state.log_e

    @property
    def p_value(self) -> float:
        """1 over the largest e-value so far; it never rises."""
        return exp(-self._state.most)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached 1 / level."""
        return self._state.most >= -math.log(self.level)

    @property
    def since(self) -> int | None:
        """Rows before the change, as estimated; None without an alarm.

        It is the most likely beginning of the most likely alternative, at the end of some batch,
        when the e-value was largest. For small changes it is days away from the truth.
        """
        return self._state.since if self.alarm else None

    @property
    def change(self) -> str | None:
        """Description of the most likely alternative; None without an alarm."""
        if not self.alarm or self._state.best < 0:
            return IMPOSSIBLE if self.alarm else None
        names = make_bets().names
        problem, j = divmod(self._state.best, len(names))
        of_class = "" if self.n_classes is None else f"class {problem - 1}: "
        return f"{of_class if problem else of_class and 'top label: '}{names[j]}"

    # --- pages ------------------------------------------------------------------------------

    def document(self) -> Document:
        """Describe the evidence so far."""
        facts = {
            "e-value": Number(self.e_value, form=".3g"),
            "alarm from": Number(1 / self.level, form=".3g"),
            "p-value": PValue(self.p_value),
        }
        if self.alarm:
            facts |= {"change": f"after about {self.since} rows", "most likely": self.change}
        title = f"Monitor: {self.n} rows in {self._state.batches} batches"
        lead, tone = (ALARM, "bad") if self.alarm else (QUIET, "good")
        return Document(title, lead, [Section(facts=facts)], tone)

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence so far as plain values by name."""
        names = ("level", "n_classes", "n", "e_value", "log_e_value", "p_value", "alarm", "since",
                 "change")  # fmt: skip
        plain: dict[str, Any] = to_plain({name: getattr(self, name) for name in names})
        return plain

    def _columns(self) -> dict[str, Any]:
        rows, log_e = zip(*self._state.looks, strict=True)
        return {"n": [*rows], "e_value": [*map(exp, log_e)]}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the e-value over the rows with the line of the alarm; needs matplotlib.

        Of many looks, up to 2000 are drawn.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        ax = new_axes(1)[0] if ax is None else ax
        return draw_evidence(ax, self._columns(), self.level, self.since)

    # --- files ------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the monitor to a file, as JSON with all digits, but for its reference.

        Parameters
        ----------
        path : path
            The file is replaced, if there is one.
        """
        values = FORMAT, VERSION, self.level, self.n_classes, self._probe(), vars(self._state)
        content = to_plain(dict(zip(KEYS, values, strict=True)))
        write_file(path, json.dumps(content, allow_nan=False).encode() + b"\n")

    @classmethod
    def load(cls, path: str | PathLike[str], reference: Any = None) -> Self:
        """Read a monitor from a file that `save` wrote; it goes on with the same bits.

        Parameters
        ----------
        path : path
        reference : object, optional
            The one that the monitor had.

        Returns
        -------
        Monitor

        Raises
        ------
        ValueError
            For a file that is damaged, was not written by `save`, or is of a later version, and
            for another reference.
        OSError
            For a file that cannot be read.
        """
        text = Path(path).read_bytes()
        try:
            content = json.loads(text, object_pairs_hook=unique_keys)
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise InputError("format", f"must be {FORMAT}")
            check_integer("version", content.get("version"), 1, VERSION, "a known version")
            monitor = cls(content["level"], reference=reference, n_classes=content["n_classes"])
            monitor._state = read_state(content["state"], monitor._state)
            saved = content["reference"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            rule = f"is no monitor that fastece has saved and can read: {error}"
            raise InputError("path", rule, place=str(path)) from error
        probe = monitor._probe()
        if (probe is None) != (saved is None) or not (probe is None or np.allclose(probe, saved)):
            raise InputError("reference", "must be that of the saved monitor", value=reference)
        return monitor

    def _probe(self) -> Any:
        """Map a few predictions by the reference, to know it again."""
        if self.reference is None:
            return None
        if self.n_classes is None:
            return self.reference.transform(np.arange(1, 9) / 9)
        rows = 1.0 + np.outer(range(8), range(self.n_classes)) % 7
        return self.reference.transform(rows / rows.sum(axis=1, keepdims=True))


def read_state(content: Any, blank: State) -> State:
    """Read a state of the shape of another one from plain values."""
    values: dict[str, Any] = {name: float(content[name]) for name in ("log_e", "most")}
    for name in ("n", "batches", "since", "best"):
        most = blank.wealth.size - 1 if name == "best" else MAX_ROWS
        values[name] = check_integer(name, content[name], -1, most)
    for name in ("wealth", "ratio", "start"):
        values[name] = array = np.array(content[name], vars(blank)[name].dtype)
        if array.shape != blank.wealth.shape or not np.isfinite(array).all():
            raise InputError(name, f"must be numbers of shape {blank.wealth.shape}")
    values["looks"] = tuple((int(n), float(log_e)) for n, log_e in content["looks"])
    return State(**values)
