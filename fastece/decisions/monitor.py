"""A monitor of calibration over time, which may be looked at after every batch of rows."""

import math
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

import numpy as np

from fastece.data.axes import find_row_axes, flatten_rows
from fastece.data.containers import as_array, column_names, numbers_of
from fastece.data.errors import InputError, InputTypeError, rename_arguments
from fastece.data.options import ReadingOptions, reading_options, shows_options
from fastece.data.parameters import check_integer, check_real
from fastece.data.reading import read_problems
from fastece.data.table import RowTable
from fastece.decisions.bets import ALTERNATIVES, MAX_ROWS, Evidence
from fastece.display.axes import check_axes, draw_on_page, new_figure, open_figure
from fastece.display.documents import Document, Picture, Section
from fastece.display.numbers import Number, PValue, count_of, to_plain
from fastece.display.pictures import draw_evidence
from fastece.display.results import Readable
from fastece.files.saved import SavedFormat
from fastece.kernels.types import F64, U8

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CLASSES = 2**20
# Share of the money that is bet on the top label of class vectors; all classes share the rest.
MONEY_OF_TOP_LABEL = 0.5
# Exponentials of larger numbers are larger than floats.
MAX_EXPONENT = 709.0
# Width and height of the picture, in inches.
FIGURE_SIZE = (7.2, 4.6)
SAVED = SavedFormat("monitor", "fastece.monitor", 1)
# Predictions that a reference maps, so that a loaded monitor knows it again.
N_PROBES = 8
# The numbers of `to_dict`.
VALUES = (
    "level", "n_classes", "n", "e_value", "log_e_value", "p_value", "alarm", "since", "change",
)  # fmt: skip
# Rows of each of two labels that are sorted by chance once in 1e11 times.
MIN_ROWS_OF_LABEL = 20


class BatchKeywords(TypedDict, total=False):
    """Options of reading for a batch, whose rows count once each, with hard labels."""

    labels: Any
    pos_label: Any
    from_logits: bool
    percent: bool
    ignore_label: Any
    class_axis: int | None


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
    forget : int, optional
        Number of rows of a period, such as a year. Bets begin evenly over the first
        period, and ever less over later ones, so that a long calibrated past delays an alarm less.
        None: most bets begin early.

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

    The share 0.5 of the money is bet on 12 shifts d from 0.05 to 1.6 either way, 0.3 on four
    slopes with five shifts each, and 0.2 on shifts by 0.3 or 0.9 of the scores between neighbours
    of 11 cuts alone. New bets begin at every look, with weights w_j that sum to 1 over all looks
    that will ever be. A bet with weight w_j that begins at look j is worth w_j on average at any
    time, so all of them together are worth at most 1: restarts cost no part of the promise (Shin,
    Ramdas and Rinaldo 2023, "E-detectors: a nonparametric framework for sequential change
    detection"). Half of each share is bet before the first row, and the share
    ``0.5 (1 + n / 10000)**-0.5`` is left after n rows. With `forget`, a tenth is bet before the
    first row, and the share ``0.9 / ((j + 1) (j + 2))`` evenly over period j = 0, 1, ...

    With class vectors, half of the money is bet on whether the most probable class is right, and
    the other half on the K classes: a mean of e-values is an e-value (Vovk and Wang 2021,
    "E-values: calibration, combination and applications"). Henzi and Ziegel (2022, "Valid
    sequential inference on probability forecast performance") and Arnold, Henzi and Ziegel (2023,
    "Sequentially valid tests for forecast calibration") test forecasts by betting too.

    There is a look after each of the first 64 rows, then whenever the rows have grown by a 32nd
    part, and at the latest after 160 more or a 2048th part. This calendar depends on the number of
    rows alone, so batches may be cut anywhere, and no bit changes. Between two looks, rows are
    added up in cells of 0.25 in z, and a tangent stands for the logarithm: this never makes the
    e-value larger, and hardly smaller. An outcome that had the predicted probability 0 makes the
    e-value infinite at once, for good.

    The promise needs bets that are made before the labels are seen, so whether and when a row
    counts must not depend on its label given its score. Where labels come late, and one outcome is
    known earlier than the other, give the rows of a day when all of its labels have come.

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
    Monitor: 6000 rows
    Alarm: the predictions are not calibrated, or no longer.
      e-value             1.75e+10
      alarm from e-value  20
      p-value             <0.0001
      change              roughly after 2906 rows, where the best bet began
      most likely         predictions too low by 0.4 in the log odds
    """

    def __init__(
        self, level: float = 0.05, *, reference: Any = None, n_classes: int | None = None,
        forget: int | None = None,
    ) -> None:  # fmt: skip
        self.level = check_real("level", level, 0.0, 1.0)
        if not 0 < self.level < 1:
            raise InputError("level", "must be between 0 and 1", value=level)
        if n_classes is not None:
            n_classes = check_integer("n_classes", n_classes, 2, MAX_CLASSES)
        check_reference(reference)
        if forget is not None:
            forget = check_integer("forget", forget, 1, MAX_ROWS)
        self.reference = reference
        self.n_classes = n_classes
        self.forget = forget
        self._evidence = Evidence.of_no_rows(shares_of_problems(n_classes), forget)

    # --- rows -------------------------------------------------------------------------------

    @shows_options
    def update(self, y_true: Any, y_prob: Any, **options: Unpack[BatchKeywords]) -> Self:
        """Add rows, such as a day, in the order of time.

        Parameters
        ----------
        y_true, y_prob, **options
            As in `fastece.ece`: `labels`, `pos_label`, `from_logits`, `percent`, `ignore_label` and
            `class_axis`. A batch without rows changes nothing. With `class_axis` the rows are in
            the order of the labels.

        Returns
        -------
        Monitor
            Itself.

        Raises
        ------
        ValueError, TypeError
            As `fastece.ece`; for another number of classes; and for rows that are sorted by their
            labels. Then nothing has changed.
        """
        reading = reading_options(options, BatchKeywords)
        if is_empty(y_true) and is_empty(y_prob):
            return self
        if reading.class_axis is None:
            problems = self._read(y_true, y_prob, reading)
        else:
            axes = find_row_axes("y_prob", y_prob, reading.class_axis)
            y_true, y_prob, reading = flatten_rows(axes, y_true, y_prob, reading)
            with axes.naming_entries("y_prob"):
                problems = self._read(y_true, y_prob, reading)
        if problems.vectors is None:
            sample = problems.view()
            scores = sample.s[np.newaxis]
            outcomes = sample.y[np.newaxis]
        else:
            scores, outcomes = top_label_and_classes(problems)
        self._evidence = self._evidence.after_rows(scores, outcomes)
        return self

    def _read(self, y_true: Any, y_prob: Any, options: ReadingOptions) -> RowTable:
        """Read a batch, check its shape and its order, and map it by the reference."""
        names = column_names(y_prob)
        if options.labels is None and names and numbers_of(names) is not None:
            # Classes are in the order that all batches share.
            rule = (
                f"must have columns that are numbered from 0 on, in their order, got {names!r:.200}"
            )
            raise InputError("y_prob", rule, hint="pass {labels}, in the order of the columns")
        if self.reference is not None:
            for name in ("from_logits", "percent"):
                if getattr(options, name):
                    raise InputError(name, "goes without a reference, which maps predictions")
            with rename_arguments({"X": "y_prob"}):
                y_prob = self.reference.transform(y_prob)
        self._check_shape(as_array("y_prob", y_prob).shape)
        has_vectors = self.n_classes is not None
        problems = read_problems(y_true, y_prob, options, vectors=has_vectors)
        check_order(problems)
        return problems

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Check that probabilities have the monitor's number of classes."""
        if self.n_classes is None:
            has_shape = len(shape) == 1
            rule = "must have shape (n,)"
        else:
            has_shape = shape[1:] == (self.n_classes,)
            rule = f"must have shape (n, {self.n_classes})"
        if not has_shape:
            hint = "as {n_classes} says"
            is_class_axis_1 = len(shape) > 2 and shape[1] == self.n_classes
            if is_class_axis_1:
                hint = "for classes on axis 1 pass {class_axis_1}"
            raise InputError("y_prob", rule, value=shape, hint=hint)

    # --- evidence ---------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows so far; the last few of them may wait for the next look."""
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

        It is the most likely beginning of the most likely alternative, at some look, when the
        e-value was largest. Calibrated rows cost a bet little, so it may begin long before the
        change: in the example of this class the change comes after 4000 rows, and the best bet
        began after 2906. It may begin later, too. For small changes it is days away from the truth.
        """
        return self._evidence.since if self.alarm else None

    @property
    def change(self) -> str | None:
        """Description of the most likely alternative; None without an alarm."""
        if not self.alarm:
            return None
        best_bet = self._evidence.best_bet
        if best_bet is None:
            return "an outcome whose predicted probability was 0"
        problem, alternative = best_bet
        description = ALTERNATIVES[alternative].description
        if self.n_classes is not None:
            part = "top label" if problem == 0 else f"class {problem - 1}"
            description = f"{part}: {description}"
        return description

    # --- pages ------------------------------------------------------------------------------

    __repr__ = Readable.__str__

    def document(self) -> Document:
        """Describe the evidence so far."""
        facts: dict[str, Any] = {
            "e-value": Number(self.e_value, form=".3g"),
            "alarm from e-value": f"{1 / self.level:.3g}",
            "p-value": PValue(self.p_value),
        }
        lead = "No alarm: these rows do not show that the predictions are miscalibrated."
        tone = "good"
        if self.alarm:
            lead = "Alarm: the predictions are not calibrated, or no longer."
            tone = "bad"
            rows_before = count_of(self.since or 0, "row")
            facts["change"] = f"roughly after {rows_before}, where the best bet began"
            facts["most likely"] = self.change
        title = f"Monitor: {count_of(self.n, 'row')}"
        picture = Picture(title, partial(draw_on_page, self.plot))
        return Document(title, lead, [Section(facts=facts, pictures=[picture])], tone)

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence so far as plain values by name."""
        values = {name: getattr(self, name) for name in VALUES}
        plain: dict[str, Any] = to_plain(values)
        return plain

    def _columns(self) -> dict[str, Any]:
        looks = self._evidence.looks
        return {
            "n": [look.n for look in looks],
            "e_value": [capped_exp(look.log_e_value) for look in looks],
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the e-value over the rows, and below it by how much predictions are off.

        The title has the verdict, the line the e-value of the alarm, and the shade the rows since
        the change. If there are more looks than 2000, some of them are drawn. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        check_axes(ax)
        ax = open_figure(FIGURE_SIZE).subplots() if ax is None else ax
        return draw_evidence(
            ax,
            self._evidence.looks,
            level=self.level,
            since=self.since,
            change=self.change,
            outcome="outcomes" if self.n_classes is None else "right top labels",
        )

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
        values = {
            "level": self.level, "n_classes": self.n_classes, "forget": self.forget,
            "reference": self._probe(), "state": self._evidence.to_dict(),
        }  # fmt: skip
        SAVED.save(path, to_plain(values))

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
            For a file that is damaged, or was not written by `save`, and for another reference.
        OSError
            For a file that cannot be read.
        """
        check_reference(reference)
        monitor, saved_probe = SAVED.load(path, partial(cls._from_dict, reference))
        probe = monitor._probe()
        if probe is None or saved_probe is None:
            is_same = probe is saved_probe
        else:
            is_same = np.allclose(probe, saved_probe)
        if not is_same:
            raise InputError("reference", "must be that of the saved monitor", value=reference)
        return monitor

    @classmethod
    def _from_dict(cls, reference: Any, values: dict[str, Any]) -> tuple[Self, Any]:
        """Make a monitor from the values of a file, and the probe of its old reference."""
        monitor = cls(
            values["level"], reference=reference, n_classes=values["n_classes"],
            forget=values["forget"],
        )  # fmt: skip
        monitor._evidence = monitor._evidence.from_dict(values["state"])
        return monitor, values["reference"]

    def _probe(self) -> Any:
        """Map a few predictions by the reference; None without one."""
        if self.reference is None:
            return None
        n_classes = self.n_classes or 2
        vectors = 1.0 + np.outer(range(N_PROBES), range(n_classes)) % 7
        vectors /= vectors.sum(axis=1, keepdims=True)
        return self.reference.transform(vectors if self.n_classes else vectors[:, 1])


def check_reference(reference: Any) -> None:
    """Check that a reference, if there is one, has a method transform."""
    if reference is not None and not callable(getattr(reference, "transform", None)):
        raise InputTypeError("reference", "must have a method transform", value=reference)


def shares_of_problems(n_classes: int | None) -> Any:
    """Compute the share (Q,) of the money of each problem.

    Class vectors have K + 1 problems: a mean of e-values is an e-value (Vovk and Wang 2021,
    "E-values: calibration, combination and applications").
    """
    if n_classes is None:
        return np.ones(1)
    of_class = (1 - MONEY_OF_TOP_LABEL) / n_classes
    return np.array([MONEY_OF_TOP_LABEL, *[of_class] * n_classes])


def top_label_and_classes(problems: RowTable) -> tuple[F64, U8]:
    """Return scores and outcomes (K + 1, n): of the top label, and of each class."""
    top = problems.view()
    prob, label = problems.read_vectors()
    n, n_classes = prob.shape
    scores = np.empty((n_classes + 1, n))
    scores[0] = top.s
    scores[1:] = prob.T
    outcomes = np.zeros((n_classes + 1, n), np.uint8)
    outcomes[0] = top.y
    outcomes[1 + label, np.arange(n)] = 1
    return scores, outcomes


def check_order(problems: RowTable) -> None:
    """Refuse rows that are sorted by their labels, which are not in the order of time.

    Within each label they would be evidence against any model. So many rows in the order of time
    are sorted by chance once in 1e11 times. Rows sorted by their scores are no evidence.
    """
    if problems.vectors is None:
        sample = problems.view()
        label = sample.y
        if is_monotone(sample.s):
            return
    else:
        _, label = problems.read_vectors()
    if label.size < 2 * MIN_ROWS_OF_LABEL or not is_monotone(label):
        return
    n_of_first = int(np.count_nonzero(label == label[0]))
    if MIN_ROWS_OF_LABEL <= n_of_first <= label.size - MIN_ROWS_OF_LABEL:
        rule = "must be in the order of time, and is sorted"
        raise InputError("y_true", rule, hint="shuffle rows of the same time")


def is_monotone(values: Any) -> bool:
    """Return whether values never fall, or never rise."""
    before = values[:-1]
    after = values[1:]
    return bool((before <= after).all() or (before >= after).all())


def is_empty(values: Any) -> bool:
    """Return whether a container has no rows."""
    if hasattr(values, "shape"):  # a scalar array has no length
        return tuple(values.shape[:1]) == (0,)
    return hasattr(values, "__len__") and len(values) == 0


def capped_exp(x: float) -> float:
    """Compute the exponential of a number; it is infinite for infinity alone."""
    return math.exp(x if math.isinf(x) else min(x, MAX_EXPONENT))
