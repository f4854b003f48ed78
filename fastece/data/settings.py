"""The table of settings: which probability is the score, and its outcome."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_integer, list_names


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str  # as the caller writes it and as results show it
    # The class whose probability is the score, and whose label makes the outcome 1. None: the class
    # of the largest probability, or every class in turn.
    column: int | None = None
    per_class: bool = False  # every class in turn: K problems rather than one

    @property
    def is_top(self) -> bool:
        """The score is the largest of K probabilities, so its support is [1/K, 1]."""
        return self.column is None and not self.per_class


SETTINGS = {
    "binary": Setting("binary", column=1),
    "confidence": Setting("confidence"),
    "classwise": Setting("classwise", per_class=True),
}


def class_count(shape: tuple[int, ...]) -> int:
    """Count the classes; probabilities of the positive class alone are of 2."""
    return 2 if len(shape) == 1 else shape[1]


def find_setting(setting: Any, shape: tuple[int, ...]) -> Setting:
    """Return the row that `setting` names, for probabilities of this shape."""
    if isinstance(setting, str) and setting == "auto":
        return SETTINGS["binary" if len(shape) == 1 else "confidence"]
    n_classes = class_count(shape)
    if isinstance(setting, Integral) and not isinstance(setting, bool | np.bool_):
        k = check_integer("setting", setting, 0, n_classes - 1, "a class index")
        return Setting(f"class {k}", column=k)
    if not isinstance(setting, str) or setting not in SETTINGS:
        names = ["auto", *SETTINGS]
        known = f"{list_names(names)}, or a class index"
        raise InputError("setting", "must be a known name", value=setting, hint=known)
    if setting == "binary" and n_classes != 2:
        raise InputError(
            "setting", f"'binary' needs P(positive) or 2 columns, and here are {n_classes}",
            hint="'confidence', 'classwise' or a class index take any number of classes",
        )  # fmt: skip
    return SETTINGS[setting]
