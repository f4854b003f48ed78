"""Fitted maps as plain values and in files: nothing damaged passes."""

import math
from contextlib import suppress
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_choice, check_integer
from fastece.display.numbers import to_plain
from fastece.files.saved import SavedFormat
from fastece.recalibration.calibrator import Calibrator, Parameter
from fastece.recalibration.curves import CURVES
from fastece.recalibration.methods import METHODS

SAVED = SavedFormat("map", "fastece.recalibration", 1)
ENTRIES = ("method", "options", "n_classes", "classes", "parameters")
MAX_CLASSES = 2**20
# The labels of columns are of one kind.
KINDS_OF_LABELS = ({str}, {int}, {float}, {bool})


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
    Plain JSON: `format`, `method`, `options`, `n_classes`, `classes` and `parameters`; numbers have
    all their digits, and null stands for nan.

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
    SAVED.save(path, to_dict(model))


def to_dict(model: Calibrator) -> dict[str, Any]:
    """Describe a fitted map by plain values; refuse other objects."""
    method = next((name for name, kind in METHODS.items() if kind is type(model)), None)
    if method is None:
        raise InputTypeError("model", f"must be one of {', '.join(METHODS)}", value=model)
    if not model.__sklearn_is_fitted__():
        raise InputError("model", f"{type(model).__name__} must be fitted before it is saved")
    options = {name: plain_option(option) for name, option in model.get_params().items()}
    parameters = {
        parameter.name: getattr(model, f"{parameter.name}_")
        for parameter in (*model.PARAMETERS, *model.SHARED_PARAMETERS)
    }
    values = {
        "method": method,
        "options": options,
        "n_classes": model.n_classes_,
        "classes": model.classes_,
        "parameters": parameters,
    }
    plain: dict[str, Any] = to_plain(values)
    return plain


def plain_option(option: Any) -> Any:
    """Turn an estimator with a curve into its name and fields; other options stay."""
    if type(option) in CURVES:
        return {type(option).__name__: asdict(option)}
    return option


def load(path: str | PathLike[str]) -> Calibrator:
    """Read a fitted map from a file that `save` wrote.

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
        For a file that is damaged, or was not written by `save` in the format of this release.
    OSError
        For a file that cannot be read.
    """
    return SAVED.load(path, from_dict)


def from_dict(values: dict[str, Any]) -> Calibrator:
    """Make a fitted map from the values of `to_dict`; refuse wrong ones."""
    check_entries("content", values, ENTRIES)
    model = METHODS[check_choice("method", values["method"], list(METHODS))]()
    set_options(model, values["options"])
    model.n_classes_ = check_integer("n_classes", values["n_classes"], 2, MAX_CLASSES)
    model.classes_ = values["classes"]
    check_class_names(model.classes_, model.n_classes_)
    set_parameters(model, values["parameters"])
    return model


def check_entries(name: str, value: Any, entries: tuple[str, ...]) -> None:
    """Check that a value is a dictionary with these entries and no others."""
    if not isinstance(value, dict) or value.keys() != set(entries):
        raise InputError(name, f"must have {', '.join(entries)}")


def check_class_names(names: Any, n_classes: int) -> None:
    """Check that names of classes are null, or a string or number for each class."""
    if names is None:
        return
    are_labels = isinstance(names, list) and {*map(type, names)} in KINDS_OF_LABELS
    if not are_labels or len(names) != n_classes or len(set(names)) != n_classes:
        raise InputError("classes", f"must be null or {n_classes} strings or numbers")


def set_options(model: Calibrator, options: Any) -> None:
    """Set the options of a map; the map itself checks their values."""
    check_entries("options", options, tuple(model.get_params()))
    model.set_params(**{name: make_option(option) for name, option in options.items()})


def make_option(option: Any) -> Any:
    """Make an option of JSON's values: an estimator with a curve, or the value itself."""
    if not isinstance(option, dict):
        return option
    kinds = {kind.__name__: kind for kind in CURVES}
    if len(option) == 1:
        ((name, values),) = option.items()
        if name in kinds and isinstance(values, dict):
            return kinds[name](**{key: make_field(value) for key, value in values.items()})
    raise InputError("options", "must be of an estimator with a curve", value=option)


def make_field(value: Any) -> Any:
    """Make a field of an estimator; JSON has no infinity and no tuples."""
    if value == "inf":
        return math.inf
    return tuple(value) if isinstance(value, list) else value


# -- parameters ------------------------------------------------------------------------------------


def set_parameters(model: Calibrator, values: Any) -> None:
    """Set the fitted attributes of a map whose number of classes is set."""
    names = [parameter.name for parameter in (*model.PARAMETERS, *model.SHARED_PARAMETERS)]
    check_entries("parameters", values, tuple(names))
    for parameter in model.SHARED_PARAMETERS:
        reader = ParameterReader(model.n_classes_)
        setattr(model, f"{parameter.name}_", reader.read(parameter, values[parameter.name]))
    has_entry_per_class = model.has_parameters_per_class and model.n_classes_ > 2
    n_readers = model.n_classes_ if has_entry_per_class else 1
    readers = [ParameterReader(model.n_classes_) for _ in range(n_readers)]
    for parameter in model.PARAMETERS:
        value = values[parameter.name]
        if has_entry_per_class:
            attribute = read_classes(parameter, value, readers)
        else:
            attribute = readers[0].read(parameter, value)
        setattr(model, f"{parameter.name}_", attribute)


def read_classes(parameter: Parameter, value: Any, readers: "list[ParameterReader]") -> Any:
    """Read the entries of a parameter for every class: a list of arrays, or an array."""
    if not isinstance(value, list) or len(value) != len(readers):
        rule = f"must have {len(readers)} entries, one for each class"
        raise InputError(parameter.name, rule)
    entries = [
        reader.read(parameter._replace(name=f"{parameter.name}[{k}]"), entry)
        for k, (reader, entry) in enumerate(zip(readers, value, strict=True))
    ]
    return entries if parameter.shape else np.array(entries)


class ParameterReader:
    """Reader of the parameters of one fitted problem, whose arrays must fit together.

    The first array with an axis B or b decides how many bins or points there are.

    Parameters
    ----------
    n_classes : int
        The size of axes K.
    """

    def __init__(self, n_classes: int) -> None:
        self.sizes = {"K": n_classes}

    def read(self, parameter: Parameter, value: Any) -> Any:
        """Read a number or an array; refuse another shape, and entries out of bounds."""
        array = read_numbers(value)
        shape = self._expected_shape(parameter, array)
        if array is None or array.shape != shape:
            raise InputError(parameter.name, f"must be numbers of shape {shape}")
        entries = array[~np.isnan(array)] if parameter.may_be_nan else array
        if not ((entries >= parameter.low) & (entries <= parameter.high)).all():
            raise InputError(parameter.name, f"must be from {parameter.low} to {parameter.high}")
        if parameter.increasing and (np.diff(array) < 0).any():
            raise InputError(parameter.name, "must not decrease")
        return array if parameter.shape else float(array)

    def _expected_shape(self, parameter: Parameter, array: Any) -> tuple[int, ...]:
        """Return the shape of a parameter; this array sets the number of bins if none has."""
        if "B" not in self.sizes and parameter.shape in ("B", "b"):
            size = 0 if array is None else array.size
            n_bins = size + 1 if parameter.shape == "b" else size
            self.sizes["B"] = max(n_bins, 1)
            self.sizes["b"] = self.sizes["B"] - 1
        return tuple(self.sizes[axis] for axis in parameter.shape)


def read_numbers(value: Any) -> Any:
    """Read numbers or nested lists of them as a float64 array; None for others."""
    if not are_numbers(value):
        return None
    with suppress(ValueError, OverflowError):  # lists of different lengths, numbers too large
        return np.array(value, np.float64)
    return None


def are_numbers(value: Any) -> bool:
    """Return whether a value is a number, null, or nested lists of them."""
    if isinstance(value, list):
        return all(map(are_numbers, value))
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
