"""Fitted maps as JSON: plain text that every later release reads."""

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_choice, check_integer
from fastece.estimators.bayes import BayesCurve
from fastece.estimators.density import KDE
from fastece.files import whole_file
from fastece.recalibration.base import Calibrator, Parameter
from fastece.recalibration.methods import METHODS, method_name

FORMAT, VERSION = "fastece.recalibration", 1
KEYS = ("format", "version", "method", "options", "n_classes", "classes", "parameters")
CURVES = {"BayesCurve": BayesCurve, "KDE": KDE}
MAX_CLASSES = 2**20


def save(model: Calibrator, path: str | PathLike[str]) -> None:
    """Write a fitted map to a file.

    Parameters
    ----------
    model : object
        A fitted map of one of the classes of `METHODS`.
    path : path
        The file is replaced, if there is one.

    Raises
    ------
    ValueError, TypeError
        For any other object, or one that has not been fitted.

    Notes
    -----
    Plain JSON: `format`, `version`, `method`, `options`, `n_classes`, `classes` and `parameters`;
    numbers have all their digits, and null stands for nan.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fastece.recalibration import PlattScaling, load, save
    >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "platt.json"
    ...     save(model, path)
    ...     load(path).slope_ == model.slope_
    True
    """
    name = method_name(model)
    if name is None:
        raise InputTypeError("model", f"must be one of {', '.join(METHODS)}", value=model)
    if not model.__sklearn_is_fitted__():
        raise InputError("model", f"{type(model).__name__} must be fitted before it is saved")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "method": name,
        "options": {name: write_option(x) for name, x in model.get_params().items()},
        "n_classes": model.n_classes_,
        "classes": model.classes_,
        "parameters": {name: to_json(getattr(model, f"{name}_")) for name in model.PARAMETERS},
    }
    with whole_file(Path(path)) as file:
        file.write(json.dumps(content, allow_nan=False).encode() + b"\n")


def load(path: str | PathLike[str]) -> Calibrator:
    """Read a fitted map from a file that `save` wrote.

    The file may be of this release or of an earlier one.

    Parameters
    ----------
    path : path

    Returns
    -------
    object
        A map of the class that was saved.

    Raises
    ------
    ValueError
        For a file that is damaged, was not written by `save`, or is of a later version.
    OSError
        For a file that cannot be read.
    """
    text = Path(path).read_bytes()
    try:
        return read_model(json.loads(text, parse_constant=refuse_constant))
    except (ValueError, TypeError, RecursionError) as error:
        rule = f"is no map that fastece has saved and can read: {error}"
        raise InputError("path", rule, place=str(path)) from error


def refuse_constant(name: str) -> None:
    """Refuse nan and infinities, which JSON does not have.

    Python writes and reads them all the same.
    """
    raise ValueError(f"{name} is no number")


def read_model(content: Any) -> Calibrator:
    """Read the map of the content of a file."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError("format", f"must be {FORMAT}")
    check_integer("version", content.get("version"), 1, VERSION, "a version that it reads,")
    check_keys("content", content, KEYS)
    model = METHODS[check_choice("method", content["method"], list(METHODS))]()
    check_keys("options", content["options"], model.get_params())
    model.set_params(**{name: read_option(x) for name, x in content["options"].items()})
    model.n_classes_ = check_integer("n_classes", content["n_classes"], 2, MAX_CLASSES)
    model.classes_ = read_classes(content["classes"], model.n_classes_)
    check_keys("parameters", content["parameters"], model.PARAMETERS)
    read_parameters(model, content["parameters"])
    return model


def check_keys(name: str, value: Any, keys: Iterable[str]) -> None:
    """Check that a value is a dictionary of some keys."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise InputError(name, f"must have {', '.join(keys)}")


def read_classes(value: Any, n_classes: int) -> list[str] | None:
    """Read the labels of the columns."""
    if value is None:
        return None
    if not isinstance(value, list) or len({x for x in value if isinstance(x, str)}) != n_classes:
        raise InputError("classes", f"must be null or {n_classes} strings")
    return value


def read_parameters(model: Calibrator, found: dict[str, Any]) -> None:
    """Set the fitted attributes of a model, for one problem or for several."""
    n_classes = model.n_classes_
    sizes = [{"K": n_classes} for _ in range(n_classes)]
    for name, parameter in model.PARAMETERS.items():
        value = found[name]
        if not parameter.each or n_classes == 2:
            read: Any = read_array(name, value, parameter, sizes[0])
        elif isinstance(value, list) and len(value) == n_classes:
            pairs = enumerate(zip(value, sizes, strict=True))
            read = [read_array(f"{name}[{k}]", x, parameter, size) for k, (x, size) in pairs]
            read = read if parameter.shape else np.array(read)
        else:
            raise InputError(name, f"must have {n_classes} entries, one for each class")
        setattr(model, f"{name}_", read)


def read_array(name: str, value: Any, parameter: Parameter, sizes: dict[str, int]) -> Any:
    """Read a number or an array of the shape, and between the bounds, of a parameter.

    `sizes` of axes are those of one problem: its first array gives the number of points.
    """
    array = np.array(None)
    with suppress(ValueError):  # of lists of different lengths
        array = np.array(value, np.float64) if are_numbers(value) else array
    if parameter.shape in ("B", "b"):
        sizes.setdefault("B", max(array.size + (parameter.shape == "b"), 1))
        sizes["b"] = sizes["B"] - 1
    shape = tuple(sizes[letter] for letter in parameter.shape)
    if array.dtype != np.float64 or array.shape != shape:
        raise InputError(name, f"must be numbers of shape {shape}")
    known = array[~np.isnan(array)] if parameter.may_be_nan else array
    if not ((known >= parameter.low) & (known <= parameter.high)).all():
        raise InputError(name, f"must be from {parameter.low} to {parameter.high}")
    if parameter.increasing and (np.diff(array) < 0).any():
        raise InputError(name, "must not decrease")
    return array if parameter.shape else float(array)


def are_numbers(value: Any) -> bool:
    """Return whether a value is a number, null, or nested lists of them."""
    if isinstance(value, list):
        return all(map(are_numbers, value))
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def to_json(value: Any) -> Any:
    """Turn numbers and arrays into JSON's values, nan into null."""
    if isinstance(value, list):
        return [to_json(x) for x in value]
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    return None if math.isnan(value) else value


def write_option(value: Any) -> Any:
    """Convert an option to JSON's values, an estimator to its class and fields."""
    if is_dataclass(value) and not isinstance(value, type):
        fields = {name: str(x) if x == math.inf else x for name, x in asdict(value).items()}
        return {type(value).__name__: fields}
    return value.item() if isinstance(value, np.generic) else value


def read_option(value: Any) -> Any:
    """Turn JSON's values into an option; JSON has no infinity and no tuples."""
    if not isinstance(value, dict):
        return value
    name, fields = next(iter(value.items()), ("", None))
    if len(value) != 1 or name not in CURVES or not isinstance(fields, dict):
        raise InputError("options", "must be of an estimator with a curve", value=value)
    return CURVES[name](**{
        key: math.inf if x == "inf" else tuple(x) if isinstance(x, list) else x
        for key, x in fields.items()
    })  # fmt: skip
