"""Settings of a stream, which two states must share to be added up."""

import zlib
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from fastece.data.errors import InputError
from fastece.data.options import ReadingOptions
from fastece.data.parameters import check_integer
from fastece.data.table import Setting, find_setting
from fastece.kernels import REPLICATES
from fastece.kernels.types import I32, U64
from fastece.resampling.draws import new_key

MAX_CELLS = 2**22
MAX_REPLICATES = 2**16
MAX_CLASSES = 2**31 - 1
MAX_SEED = 2**63 - 1
# Fine cells of a coarse one: 7200 coarse cells still hold the edges and centres of all numbers of
# bins that 64800 fine ones do.
FINE_CELLS_PER_COARSE = 9
# Half of the bits of a random word.
HALF_WORD = np.uint64(32)


@dataclass(frozen=True)
class Settings:
    """Settings that two states must share to be merged.

    Attributes
    ----------
    n_classes : int or None
        Number of columns of class vectors; None for probabilities of the positive class.
    setting : str or int
    n_cells, n_replicates : int
    seed : int or None
    from_logits : bool
    """

    n_classes: int | None
    setting: str | int
    n_cells: int
    n_replicates: int
    seed: int | None
    from_logits: bool

    def __post_init__(self) -> None:
        self._check("n_cells", 1, MAX_CELLS)
        self._check("n_replicates", 0, MAX_REPLICATES)
        if self.n_classes is not None:
            self._check("n_classes", 2, MAX_CLASSES)
        if self.seed is not None:
            self._check("seed", 0, MAX_SEED)
        has_seed = self.seed is not None
        has_replicates = self.n_replicates > 0
        if has_seed != has_replicates:
            raise InputError("seed", "goes with {n_replicates}, the same for all parts of a stream")
        row = self.row  # which refuses an unknown setting
        if not isinstance(self.setting, str):
            object.__setattr__(self, "setting", row.column)

    def _check(self, name: str, low: int, high: int) -> None:
        """Check an integer, and keep it as one of Python.

        Equal settings then have one text.
        """
        object.__setattr__(self, name, check_integer(name, getattr(self, name), low, high))

    @cached_property
    def row(self) -> Setting:
        """The setting, as a row of the table of settings."""
        return find_setting(self.setting, (1,) if self.n_classes is None else (1, self.n_classes))

    @cached_property
    def reading(self) -> ReadingOptions:
        """The options by which batches are read, unless a batch has others."""
        return ReadingOptions(setting=self.setting, from_logits=self.from_logits)

    @property
    def is_auto_vector(self) -> bool:
        """Whether scores such as the Brier score use the whole class vectors."""
        return self.setting == "auto" and self.n_classes is not None

    @property
    def n_problems(self) -> int:
        """Number of problems: one, or one for each class."""
        return (self.n_classes or 2) if self.row.per_class else 1

    @property
    def low(self) -> float:
        """The lower end of the support of the score."""
        return 1 / (self.n_classes or 2) if self.row.is_top else 0.0

    @property
    def n_coarse(self) -> int:
        """Number of coarse cells."""
        if self.n_cells % FINE_CELLS_PER_COARSE == 0:
            return self.n_cells // FINE_CELLS_PER_COARSE
        return self.n_cells

    @cached_property
    def key(self) -> int:
        """Key that determines all draws; 0 without replicates."""
        return new_key(self.seed) if self.n_replicates else 0

    @property
    def n_groups(self) -> int:
        """Number of groups of rows: that of replicates, in whole blocks."""
        return -(-self.n_replicates // REPLICATES) * REPLICATES

    def groups_of(self, words: U64) -> I32:
        """Return the group (n,) of each row from the 32 high bits of its random word."""
        scaled = (words >> HALF_WORD) * np.uint64(self.n_groups)
        return (scaled >> HALF_WORD).astype(np.int32)

    @property
    def fingerprint(self) -> int:
        """Hash of the settings, of 32 bits."""
        return zlib.crc32(repr([*asdict(self).items()]).encode())
