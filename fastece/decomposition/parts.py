"""What every decomposition has: parts of problems, added up over classes, and how they print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fastece.checks.probabilities import as_probabilities
from fastece.data.reading import read_source
from fastece.data.source import Source
from fastece.resampling.results import Plain, Tabular, aligned


def add_parts(
    y_true: Any, y_prob: Any, parts_of: Callable[[Source, int], Sequence[float]], *,
    setting: Any = "auto", **options: Any,
) -> tuple[list[float], int, str]:  # fmt: skip
    """Add up the parts of each problem: values, number of rows and setting in words.

    Of class vectors with the setting "auto" they are the sum over the classes, each against the
    rest; with "classwise" the mean.
    """
    is_auto = isinstance(setting, str) and setting == "auto"
    if isinstance(y_true, Source):
        is_sum = is_auto and y_true.has_vectors
    else:
        is_sum = is_auto and as_probabilities(y_prob).ndim == 2
    source = read_source(y_true, y_prob, setting="classwise" if is_sum else setting, **options)
    each = [parts_of(source, k) for k in range(source.n_problems)]
    values = np.sum(each, axis=0) / (1 if is_sum else len(each))
    name = "classwise" if source.setting.per_class else source.name(0)
    return values.tolist(), source.n, f"sum over {len(each)} classes" if is_sum else name


@dataclass(frozen=True, eq=False, kw_only=True)
class Decomposition(Plain, Tabular):
    """A score as a sum of parts, some of which are taken off."""

    score: float
    n: int
    setting: str

    # Sign and name of each part.
    _parts: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def named(cls, values: Sequence[float]) -> dict[str, Any]:
        """The score and the parts by their names."""
        return dict(zip(("score", *(name for _, name in cls._parts)), values, strict=True))

    @property
    def _head(self) -> str:
        return f"setting {self.setting}: {self.n} rows"

    def _table(self) -> tuple[str, list[list[str]]]:
        rows = {"score": self.score}
        rows |= {f"{sign} {name}": getattr(self, name) for sign, name in self._parts}
        return self._head, [[name.replace("_", " "), f"{x:.5f}"] for name, x in rows.items()]

    def __str__(self) -> str:
        head, rows = self._table()
        return "\n  ".join([head, *aligned(rows, last="<")])
