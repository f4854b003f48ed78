"""A monitor of calibration over time, which may be looked at after every batch of rows."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastece.data.containers import as_array
from fastece.data.errors import InputError, InputTypeError, rename_arguments
from fastece.data.parameters import check_integer, check_real
from fastece.data.reading import read_problems
from fastece.data.samples import Sample
from fastece.data.sources import NO_ROWS
from fastece.decisions.bets import (
    ALTERNATIVES,
    MONEY,
    NO_BET,
    Evidence,
    log_likelihood_ratios,
)
from fastece.display.axes import new_figure, open_figure
from fastece.display.documents import Document, Section
from fastece.display.numbers import Number, PValue, to_plain
from fastece.display.pictures import draw_evidence
from fastece.display.results import Readable
from fastece.display.svg import to_svg
from fastece.files.saved import SavedFormat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CLASSES = 2**20
# Share of the money that is bet on the top label of class vectors; all classes share the rest.
MONEY_OF_TOP_LABEL = 0.5
# Exponentials of larger numbers are larger than floats.
MAX_EXPONENT = 709.0
# Width and height of the picture, in inches.
FIGURE_SIZE = (7.2, 4.0)
SAVED = SavedFormat("monitor", "fastece.monitor", 1)
# Predictions that a reference maps, so that a loaded monitor knows it again.
N_PROBES = 8
# The numbers of `to_dict`.
VALUES = (
    "level", "n_classes", "n", "e_value", "log_e_value", "p_value", "alarm", "since", "change",
)  # fmt: skip
ALARM = "Alarm: the predictions are not calibrated, or no longer."
NO_ALARM = "No alarm: these rows do not show that the predictions are miscalibrated."
IMPOSSIBLE = "an outcome whose predicted probability was 0"


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
    money of 1 and bets on outcomes against alternatives, by which log odds z of a score s are in
    truth ``z + d(z)``. A row with outcome y multiplies such a bet by its likelihood ratio::

        exp(y d) / (1 + s (exp(d) - 1))

    which has mean 1 if s is right. So the money in all bets together, the e-value, ever reaches
    ``1 / level`` with a chance of at most `level` (Ville 1939, "Etude critique de la notion de
    collectif").

    The share 0.4 of the money is bet on 12 shifts d from 0.05 to 1.6 either way, 0.35 on four
    slopes with five shifts each, and 0.25 on shifts by 0.3 or 0.9 of the scores between neighbours
    of 11 cuts alone. Half of each share is bet before the first row, and more after every batch, so
    that the share ``0.5 (1 + n / 10000)**-0.5`` of all money is left after n rows: some bet has
    begun near the change, whenever it was (Shin, Ramdas and Rinaldo 2023, "E-detectors: a
    nonparametric framework for sequential change detection", here with weights that sum to 1, so
    that the promise is for all time).

    With class vectors, half of the money is bet on whether the most probable class is right, and
    the other half on the K classes: a mean of e-values is an e-value (Vovk and Wang 2021,
    "E-values: calibration, combination and applications"). Henzi and Ziegel (2022, "Valid
    sequential inference on probability forecast performance") and Arnold, Henzi and Ziegel (2023,
    "Sequentially valid tests for forecast calibration") test forecasts by betting too.

    The rows of a batch are added up in cells of 0.25 in z and count with the mean score of their
    cell. By Jensen's inequality this never makes the e-value larger, and it makes it hardly
    smaller; the order of rows in a batch changes no bit. Bets begin at the ends of batches, where
    one also looks; these must not depend on labels that follow. An outcome that had the predicted
    probability 0 makes the e-value infinite, for good.

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
    Monitor: 6000 rows in 30 batches
    Alarm: the predictions are not calibrated, or no longer.
      e-value             2.22e+11
      alarm from e-value  20
      p-value             <0.0001
      change              after about 4000 rows
      most likely         predictions too low by 0.4 in the log odds
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
        self.reference = reference
        self.n_classes = n_classes
        self._shares = shares_of_bets(n_classes)
        self._evidence = Evidence.of_no_rows(self._shares)

    # --- rows -------------------------------------------------------------------------------

    def update(
        self, y_true: Any, y_prob: Any, *, labels: Any = None, pos_label: Any = None,
        from_logits: bool = False, percent: bool = False, ignore_label: Any = None,
    ) -> Self:  # fmt: skip
        """Add a batch of rows, such as a day; batches come in the order of time.

        Parameters
        ----------
        y_true, y_prob, labels, pos_label, from_logits, percent, ignore_label
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
        if is_empty(y_true) and is_empty(y_prob):
            return self
        options = {
            "labels": labels,
            "pos_label": pos_label,
            "from_logits": from_logits,
            "percent": percent,
            "ignore_label": ignore_label,
        }
        samples = [*self._read(y_true, y_prob, options)]
        ratios = np.array([log_likelihood_ratios(sample) for sample in samples])
        is_impossible = any(bool((sample.s == 1 - sample.y).any()) for sample in samples)
        self._evidence = self._evidence.after_batch(
            ratios, self._shares, samples[0].n, is_impossible
        )
        return self

    def _read(self, y_true: Any, y_prob: Any, options: dict[str, Any]) -> Iterator[Sample]:
        """Yield the problem of a batch; of class vectors the top label and each class."""
        if self.reference is not None:
            for name in ("from_logits", "percent"):
                if options[name]:
                    raise InputError(name, "goes without a reference, which maps predictions")
            with rename_arguments({"X": "y_prob"}):
                y_prob = self.reference.transform(y_prob)
        self._check_shape(as_array("y_prob", y_prob).shape)
        has_vectors = self.n_classes is not None
        problems = read_problems(y_true, y_prob, vectors=has_vectors, **options)
        yield replace(problems.view(), rows=NO_ROWS, vectors=None)
        if problems.vectors is not None:
            prob, label = problems.read_vectors()
            for k, p in enumerate(prob.T):
                y = (label == k).view(np.uint8)
                yield Sample(p.astype(np.float64), y, None, 0.0, 1.0, NO_ROWS)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Check that probabilities have the monitor's number of classes."""
        if self.n_classes is None:
            has_shape = len(shape) == 1
            rule = "must have shape (n,)"
        else:
            has_shape = shape[1:] == (self.n_classes,)
            rule = f"must have shape (n, {self.n_classes})"
        if not has_shape:
            raise InputError("y_prob", rule, value=shape, hint="as {n_classes} says")

    # --- evidence ---------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return self._evidence.n

    @property
    def e_value(self) -> float:
        """Evidence against calibration: the money now, which was 1 at the beginning.

        Infinite after an outcome whose predicted probability was 0, else at most 8e307.
        """
        return capped_exp(self._evidence.log_e_value)

    @property
    def log_e_value(self) -> float:
        """Logarithm of the e-value, which may be larger than floats."""
        return self._evidence.log_e_value

    @property
    def p_value(self) -> float:
        """1 over the largest e-value so far; it never rises."""
        return capped_exp(-self._evidence.max_log_e_value)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached 1 / level."""
        return self._evidence.max_log_e_value >= -math.log(self.level)

    @property
    def since(self) -> int | None:
        """Rows before the change, as estimated; None without an alarm.

        It is the most likely beginning of the most likely alternative, at the end of some batch,
        when the e-value was largest. For small changes it is days away from the truth.
        """
        return self._evidence.since if self.alarm else None

    @property
    def change(self) -> str | None:
        """Description of the most likely alternative; None without an alarm."""
        if not self.alarm:
            return None
        best_bet = self._evidence.best_bet
        if best_bet == NO_BET:
            return IMPOSSIBLE
        problem, alternative = divmod(best_bet, len(ALTERNATIVES))
        description = ALTERNATIVES[alternative].description
        if self.n_classes is None:
            return description
        if problem == 0:
            return f"top label: {description}"
        return f"class {problem - 1}: {description}"

    # --- pages ------------------------------------------------------------------------------

    __repr__ = Readable.__str__

    def document(self) -> Document:
        """Describe the evidence so far."""
        facts: dict[str, Any] = {
            "e-value": Number(self.e_value, form=".3g"),
            "alarm from e-value": f"{1 / self.level:.3g}",
            "p-value": PValue(self.p_value),
        }
        lead = NO_ALARM
        tone = "good"
        if self.alarm:
            lead = ALARM
            tone = "bad"
            facts["change"] = f"after about {self.since} rows"
            facts["most likely"] = self.change
        title = f"Monitor: {self.n} rows in {self._evidence.n_batches} batches"
        picture = [lambda key: to_svg(self._figure(), title, key)]
        return Document(title, lead, [Section(facts=facts, pictures=picture)], tone)

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence so far as plain values by name."""
        plain: dict[str, Any] = to_plain({name: getattr(self, name) for name in VALUES})
        return plain

    def _columns(self) -> dict[str, Any]:
        rows, log_e_values = zip(*self._evidence.looks, strict=True)
        return {"n": [*rows], "e_value": [*map(capped_exp, log_e_values)]}

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the e-value over the rows with the line of the alarm; needs matplotlib.

        If there are more looks than 2000, some of them are drawn.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        ax = open_figure(FIGURE_SIZE).subplots() if ax is None else ax
        return draw_evidence(ax, self._columns(), self.level, self.since)

    def _figure(self) -> Any:
        """Draw the e-value on a figure outside pyplot."""
        return self.plot(new_figure(FIGURE_SIZE).subplots()).figure

    # --- files ------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the monitor to a file, as JSON with all digits, without its reference.

        Parameters
        ----------
        path : path
            The file is replaced, if there is one.
        """
        content = {
            "level": self.level, "n_classes": self.n_classes, "reference": self._probe(),
            "state": self._evidence.to_saved(),
        }  # fmt: skip
        SAVED.save(path, to_plain(content))

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
        monitor, saved_probe = SAVED.load(path, partial(cls._from_saved, reference))
        probe = monitor._probe()
        if probe is None or saved_probe is None:
            is_same = probe is saved_probe
        else:
            is_same = np.allclose(probe, saved_probe)
        if not is_same:
            raise InputError("reference", "must be that of the saved monitor", value=reference)
        return monitor

    @classmethod
    def _from_saved(cls, reference: Any, content: dict[str, Any]) -> tuple[Self, Any]:
        """Make a monitor from the values of a file, and the probe of its old reference."""
        monitor = cls(content["level"], reference=reference, n_classes=content["n_classes"])
        monitor._evidence = Evidence.from_saved(content["state"], monitor._shares.shape)
        return monitor, content["reference"]

    def _probe(self) -> Any:
        """Map a few predictions by the reference; None without one."""
        if self.reference is None:
            return None
        n_classes = self.n_classes or 2
        vectors = 1.0 + np.outer(range(N_PROBES), range(n_classes)) % 7
        vectors /= vectors.sum(axis=1, keepdims=True)
        return self.reference.transform(vectors if self.n_classes else vectors[:, 1])


def shares_of_bets(n_classes: int | None) -> Any:
    """Compute the share (P, J) of the money in each bet on each of the problems.

    Class vectors have K + 1 problems: a mean of e-values is an e-value (Vovk and Wang 2021,
    "E-values: calibration, combination and applications").
    """
    if n_classes is None:
        money_of_problems = [1.0]
    else:
        money_of_class = (1 - MONEY_OF_TOP_LABEL) / n_classes
        money_of_problems = [MONEY_OF_TOP_LABEL, *[money_of_class] * n_classes]
    return np.multiply.outer(money_of_problems, MONEY)


def is_empty(values: Any) -> bool:
    """Return whether a container has no rows."""
    return hasattr(values, "__len__") and len(values) == 0


def capped_exp(x: float) -> float:
    """Compute the exponential of a number; it is infinite for infinity alone."""
    return math.exp(x if math.isinf(x) else min(x, MAX_EXPONENT))
