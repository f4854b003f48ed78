"""The design of a study on a user's own predictions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from fastece.checks.errors import BadArgumentError, InputError, warn
from fastece.checks.parameters import check_integer
from fastece.data.reading import read_problems
from fastece.data.source import Problems
from fastece.files import read_predictions
from fastece.study.base import DRAWS, Population, StudyDesign, add_time, check_list
from fastece.typing import I32

# Sizes of evaluation sets where none are given: those up to a tenth of a file's rows.
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
PART = 10
# Settings of a file, by its content.
SETTINGS_OF = {
    "probabilities": ("binary",),
    "class vectors": ("confidence", "classwise"),
    "predictions": ("confidence",),
}
# Bins of the truth, with a hundred rows or more in each from 4000 rows on: in fewer, a gap is
# mostly chance.
BINS, FEW_BINS, MANY_ROWS = 100, 40, 10_000


class PredictionFile(NamedTuple):
    """One distribution of scores: a file of predictions and its number.

    It holds "probabilities" of the positive class, "class vectors", or "predictions" with
    confidences.
    """

    number: int
    file: str
    n_rows: int
    holds: str

    def __str__(self) -> str:
        return self.file

    @property
    def file_name(self) -> str:
        """Name of the file of its results."""
        return f"file{self.number}-{Path(self.file).stem}.parquet"


@dataclass(frozen=True)
class Predictions(StudyDesign):
    """A study of estimators on files of predictions, as `fastece report` reads them.

    Every file is a distribution of scores. Evaluation sets are drawn from its rows without
    replacement, so that each is like the data of a user with few rows. The truth is the debiased
    error on all rows, ``sum_b W_b / n (2 |D| - E|N(D, d**2)|)`` over 100 bins of equal mass, or 40
    below 10 000 rows; it has a standard error.

    Parameters
    ----------
    files : tuple of str
        With a probability for each row (setting "binary"), class vectors ("confidence" and
        "classwise"), or true and predicted labels and confidences ("confidence", scores from 0).
    sizes : tuple of int, optional
        Rows of the evaluation sets; by default 50, 100, 200, 500, 1000, 2000 and 5000, up to a
        tenth of a file's rows. Larger ones share so many rows with the truth that errors look
        smaller than they are: by ``1 - sqrt(1 - n / rows)``, 5 % at a tenth.
    draws, convention, estimators, seed
        As in `Design`.
    y_true, y_prob : str, optional
        Columns of labels and of probabilities, several separated by commas, if not named as usual.

    Raises
    ------
    ValueError, TypeError, OSError
        For a parameter outside its range, and a file that cannot be read or has too few rows.

    Warns
    -----
    UserWarning
        Where a size is more than a tenth of a file's rows.

    Examples
    --------
    >>> from importlib.resources import as_file, files
    >>> from fastece.study import Predictions
    >>> with as_file(files("fastece") / "data" / "digits_neural_network.npz") as path:
    ...     digits = Predictions((str(path),))
    >>> [(digits.settings_of(which), digits.sizes_of(which)) for which in digits.distributions]
    [(('confidence', 'classwise'), (50, 100))]
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...] | None = None
    draws: int = 200
    convention: Literal["corrected", "published"] = "corrected"
    estimators: tuple[str, ...] = ()
    seed: int = 0
    y_true: str | None = None
    y_prob: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        files = check_list("files", self.files)
        object.__setattr__(self, "files", check_list("files", map(str, files)))
        if self.sizes is not None:
            given = check_list("sizes", self.sizes)
            sizes = sorted(check_integer("sizes", size, 2, 2**31 - 1) for size in given)
            object.__setattr__(self, "sizes", tuple(sizes))
        for which in self.distributions:
            check_sizes(which, self.sizes_of(which))

    @cached_property
    def distributions(self) -> list[PredictionFile]:
        """All files."""
        found = []
        for number, file in enumerate(self.files):
            holds, problems = self.read(file)
            found.append(PredictionFile(number, file, problems[-1].n, holds))
        return found

    def read(self, file: str) -> tuple[str, list[Problems]]:
        """Read the content of a file and its problems by setting; errors name it."""
        found = read_predictions(file, y_true=self.y_true, y_prob=self.y_prob)
        holds = "class vectors" if np.ndim(found.y_prob) == 2 else "probabilities"
        data = found.y_true, found.y_prob
        try:
            problems = [read_problems(*data, setting=setting) for setting in SETTINGS_OF[holds]]
        except BadArgumentError as error:
            error.place = error.place or Path(file).name
            raise
        return "predictions" if found.pairs else holds, problems

    def settings_of(self, which: PredictionFile) -> tuple[str, ...]:
        """Return the settings that suit the content of a file."""
        return SETTINGS_OF[which.holds]

    def sizes_of(self, which: PredictionFile) -> tuple[int, ...]:
        """Return the sizes of the design, or default sizes that suit a file's rows."""
        if self.sizes is not None:
            return self.sizes
        return tuple(size for size in SIZES if PART * size <= which.n_rows)

    def populations(self, which: PredictionFile, seconds: dict[str, float]) -> Iterator[Population]:
        """Yield all rows of a file, with outcomes in place of probabilities."""
        with add_time(seconds, "reading"):
            _, found = self.read(which.file)
        n_bins = BINS if which.n_rows >= MANY_ROWS else FEW_BINS
        for setting, problems in zip(self.settings_of(which), found, strict=True):
            samples = problems.samples()
            outcomes = [sample.y.astype(np.float64) for sample in samples]
            yield Population(setting, samples, outcomes, n_bins)

    def rows(self, which: PredictionFile, size: int) -> I32:
        """Draw rows of a file, none of them twice in a draw."""
        rng = self.rng(DRAWS, which.number, size)
        out = np.empty((self.draws, size), np.int32)
        for row in out:
            row[:] = rng.choice(which.n_rows, size, replace=False, shuffle=False)
        return out


def check_sizes(which: PredictionFile, sizes: tuple[int, ...]) -> None:
    """Refuse sizes for which a file has too few rows, or warn of them."""
    if not sizes:
        hint = f"it takes {PART * SIZES[0]}, or sizes of your own"
        raise InputError(
            "files", f"{which} has {which.n_rows} rows, too few to draw from", hint=hint
        )
    if sizes[-1] > which.n_rows:
        raise InputError("sizes", f"{sizes[-1]} rows, but {which} has {which.n_rows}")
    large = ", ".join(str(size) for size in sizes if PART * size > which.n_rows)
    if large:
        rule = f"evaluation sets of {large} rows are more than a tenth of its {which.n_rows}"
        warn(str(which), f"{rule}: errors look smaller than they are")
