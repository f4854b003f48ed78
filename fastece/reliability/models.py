"""Several models in one picture, each of which is one binary problem."""

from collections.abc import Mapping
from typing import Any

from fastece.data.errors import InputError
from fastece.data.table import RowTable


def models_by_name(y_prob: Any) -> Mapping[Any, Any]:
    """Return the predictions of models by their names; a single model has none."""
    if not isinstance(y_prob, Mapping):
        return {None: y_prob}
    if not y_prob:
        raise InputError("y_prob", "must have at least one model")
    return y_prob


def check_one_problem(table: RowTable) -> None:
    """Refuse a setting with a problem for each class."""
    if table.setting.per_class:
        raise InputError("setting", "must be that of one problem", value=table.setting.name)
