"""Results as values that JSON can hold."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
    """Convert a value to plain Python: nan to None, infinities to "inf" and "-inf".

    Arrays and sequences become lists, numpy's numbers become Python's, and objects with a method
    `to_dict` become its result.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
