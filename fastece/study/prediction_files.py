"""Studies of a user's own predictions, in files."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from fastece.data.errors import BadArgumentError, InputError, warn
from fastece.data.options import ReadingOptions
from fastece.data.parameters import check_choice, check_flag, check_integer
from fastece.data.reading import read_problems
from fastece.data.table import RowTable
from fastece.files import read_predictions
from fastece.kernels.types import I32
from fastece.study.design import MAX_INTEGER, Population, Purpose, StudyDesign

# Sizes of evaluation sets where none are given: those up to a tenth of a file's rows.
DEFAULT_SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
ROWS_PER_DRAWN_ROW = 10
MIN_SIZE = 2
# Settings of a file, by its content.
SETTINGS_OF_CONTENT = {
    "probabilities": ("binary",),
    "class vectors": ("confidence", "classwise"),
    "predictions": ("confidence",),
}
# Bins of the truth. They have a hundred rows or more from 4000 rows on: in fewer rows, a gap is
# mostly chance.
TRUTH_BINS_OF_LARGE_FILES = 100
TRUTH_BINS_OF_SMALL_FILES = 40
MIN_ROWS_OF_LARGE_FILES = 10_000


class PredictionFile(NamedTuple):
    """One distribution of scores: a file of predictions.

    Parameters
    ----------
    number : int
        Place of the file in the design.
    file : str
    n_rows : int
    holds : str
        "probabilities" of the positive class, "class vectors", or "predictions" with confidences.
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


class FileContent(NamedTuple):
    """The content of a file of predictions.

    Parameters
    ----------
    holds : str
        As in `PredictionFile`.
    problems : list of RowTable
        In each of the settings that suit the content.
    """

    holds: str
    problems: list[RowTable]


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
    percent : bool, default False
        Whether probabilities are percents, which are divided by 100.
    missing : {"stop", "skip"}, default "stop"
        Whether rows without a label or a prediction are an error, or left out.

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
    >>> [(digits.settings_of(file), digits.sizes_of(file)) for file in digits.distributions]
    [(('confidence', 'classwise'), (50, 100))]
    """

    LISTS: ClassVar[tuple[str, ...]] = ("files", "sizes", "estimators")
    noun: ClassVar[str] = "files of predictions"
    shows_all_truths: ClassVar[bool] = True

    files: tuple[str, ...]
    sizes: tuple[int, ...] | None = None
    y_true: str | None = None
    y_prob: str | None = None
    percent: bool = False
    missing: str = "stop"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("percent", self.percent)
        check_choice("missing", self.missing, ("stop", "skip"))
        object.__setattr__(self, "files", tuple(map(str, self.files)))
        if self.sizes is not None:
            for size in self.sizes:
                check_integer("sizes", size, MIN_SIZE, MAX_INTEGER)
            object.__setattr__(self, "sizes", tuple(sorted(map(int, self.sizes))))
        for file in self.distributions:
            check_sizes(file, self.sizes_of(file))

    @property
    def input_files(self) -> tuple[str, ...]:
        """Files that scores come from."""
        return self.files

    @cached_property
    def distributions(self) -> list[PredictionFile]:
        """All files."""
        contents = map(self.read, self.files)
        return [
            PredictionFile(number, file, content.problems[-1].n, content.holds)
            for number, (file, content) in enumerate(zip(self.files, contents, strict=True))
        ]

    def read(self, file: str) -> FileContent:
        """Read the content of a file; errors name the file."""
        predictions = read_predictions(
            file,
            y_true=self.y_true,
            y_prob=self.y_prob,
            percent=self.percent,
            skips_missing=self.missing == "skip",
        )
        has_vectors = np.ndim(predictions.y_prob) == 2
        layout = "class vectors" if has_vectors else "probabilities"
        try:
            problems = [
                read_problems(
                    predictions.y_true,
                    predictions.y_prob,
                    ReadingOptions(setting=setting, from_logits=predictions.from_logits),
                )
                for setting in SETTINGS_OF_CONTENT[layout]
            ]
        except BadArgumentError as error:
            error.place = error.place or Path(file).name
            raise
        return FileContent("predictions" if predictions.pairs else layout, problems)

    def settings_of(self, distribution: PredictionFile) -> tuple[str, ...]:
        """Return the settings that suit the content of a file."""
        return SETTINGS_OF_CONTENT[distribution.holds]

    def sizes_of(self, distribution: PredictionFile) -> tuple[int, ...]:
        """Return the sizes of the design, or default sizes that suit a file's rows."""
        if self.sizes is not None:
            return self.sizes
        max_size = distribution.n_rows // ROWS_PER_DRAWN_ROW
        return tuple(size for size in DEFAULT_SIZES if size <= max_size)

    def populations(self, distribution: PredictionFile) -> Iterator[Population]:
        """Yield all rows of a file, with outcomes in place of probabilities."""
        content = self.read(distribution.file)
        is_large = distribution.n_rows >= MIN_ROWS_OF_LARGE_FILES
        n_bins = TRUTH_BINS_OF_LARGE_FILES if is_large else TRUTH_BINS_OF_SMALL_FILES
        settings = self.settings_of(distribution)
        for setting, problems in zip(settings, content.problems, strict=True):
            samples = problems.samples()
            outcomes = [sample.y.astype(np.float64) for sample in samples]
            yield Population(setting, samples, outcomes, n_bins)

    def rows(self, distribution: PredictionFile, size: int) -> I32:
        """Draw rows of a file, none of them twice in a draw."""
        rng = self.rng(Purpose.DRAWS, distribution.number, size)
        rows = np.empty((self.draws, size), np.int32)
        for draw in rows:
            draw[:] = rng.choice(distribution.n_rows, size, replace=False, shuffle=False)
        return rows


def check_sizes(file: PredictionFile, sizes: tuple[int, ...]) -> None:
    """Check that a file has rows enough for evaluation sets; warn of large ones."""
    n = file.n_rows
    if not sizes:
        min_rows = ROWS_PER_DRAWN_ROW * DEFAULT_SIZES[0]
        hint = f"it takes {min_rows}, or sizes of your own"
        raise InputError("files", f"{file} has {n} rows, too few to draw from", hint=hint)
    if sizes[-1] > n:
        raise InputError("sizes", f"{sizes[-1]} rows, but {file} has {n}")
    large_sizes = [str(size) for size in sizes if ROWS_PER_DRAWN_ROW * size > n]
    if large_sizes:
        rule = f"evaluation sets of {', '.join(large_sizes)} rows are more than a tenth of its {n}"
        warn(str(file), f"{rule}: errors look smaller than they are")
