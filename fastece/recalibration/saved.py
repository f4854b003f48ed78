"""Fitted maps as JSON: plain text that every later release reads."""

import json
import math
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from json import JSONDecodeError
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fastece.checks.parameters import check_integer
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.density.estimator import KDE
from fastece.files import whole_file
from fastece.recalibration.base import Calibrator, Parameter
from fastece.recalibration.methods import METHODS, method_name

FORMAT, VERSION = "fastece.recalibration", 1
CURVES = {"BayesCurve": BayesCurve, "KDE": KDE}
MOST_CLASSES = 2**20


def save(model: Calibrator, path: str | PathLike[str]) -> None:
    """Write a fitted map to a file.

    Parameters
    ----------
    model : object
        Of one of the classes of `METHODS`, fitted.
    path : path
        The file is replaced, if there is one.

    Raises
    ------
    ValueError, TypeError
        For what is no such object, or has not been fitted.

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
        raise TypeError(f"model: must be one of {', '.join(METHODS)}, got {model!r}")
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"model: {type(model).__name__} must be fitted before it is saved")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "method": name,
        "options": {name: plain_option(x) for name, x in model.get_params().items()},
        "n_classes": model.n_classes_,
        "classes": model.classes_,
        "parameters": {name: plain(getattr(model, f"{name}_")) for name in model.PARAMETERS},
    }
    with whole_file(Path(path)) as file:
        file.write(json.dumps(content, allow_nan=False).encode() + b"\n")


def load(path: str | PathLike[str]) -> Calibrator:
    """Read a fitted map from a file that `save` has written, of this release or an earlier one.

    Parameters
    ----------
    path : path

    Returns
    -------
    object
        Of the class it was.

    Raises
    ------
    ValueError
        For a file that is damaged, is none of `save`, or is of a later version.
    OSError
        For a file that cannot be read.
    """
    text = Path(path).read_bytes()
    try:
        return read_model(json.loads(text.decode("utf-8"), parse_constant=refuse_constant))
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: is no map that fastece has saved, or is damaged: {error}"
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def refuse_constant(name: str) -> None:
    """JSON has no nan and no infinity, though Python writes and reads them."""
    raise ValueError(f"{name} is no number")


def read_model(content: Any) -> Calibrator:
    """The map of the content of a file."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("is no map that fastece has saved")
    version = check_integer("version", content.get("version"), 1, 2**31)
    if version > VERSION:
        raise ValueError(f"is of version {version}, and this fastece reads up to {VERSION}")
    method, options = content.get("method"), content.get("options")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method: there is no {method!r}")
    model = METHODS[method]()
    if not isinstance(options, dict) or options.keys() != model.get_params().keys():
        raise ValueError(f"options: must be {', '.join(model.get_params())}")
    model.set_params(**{name: read_option(x) for name, x in options.items()})
    model.n_classes_ = check_integer("n_classes", content.get("n_classes"), 2, MOST_CLASSES)
    model.classes_ = read_classes(content.get("classes", 0), model.n_classes_)
    found = content.get("parameters")
    if not isinstance(found, dict) or found.keys() != model.PARAMETERS.keys():
        raise ValueError(f"parameters: must be {', '.join(model.PARAMETERS)}")
    sizes: dict[str, int] = {"K": model.n_classes_}
    for name, parameter in model.PARAMETERS.items():
        setattr(model, f"{name}_", read_parameter(name, found[name], parameter, sizes))
    return model


def read_classes(value: Any, n_classes: int) -> list[str] | None:
    """The labels of the columns, checked."""
    if value is None:
        return None
    if not isinstance(value, list) or len({x for x in value if isinstance(x, str)}) != n_classes:
        raise ValueError(f"classes: must be null or {n_classes} strings")
    return value


def read_parameter(name: str, value: Any, parameter: Parameter, sizes: dict[str, int]) -> Any:
    """A fitted attribute, checked: `sizes` are those of axes that are known, each problem's."""
    if not parameter.each or sizes["K"] == 2:
        return read_array(name, value, parameter, sizes, "")
    if not isinstance(value, list) or len(value) != sizes["K"]:
        raise ValueError(f"{name}: must have {sizes['K']} entries, one for each class")
    each = [read_array(f"{name}[{k}]", x, parameter, sizes, str(k)) for k, x in enumerate(value)]
    return each if parameter.shape else np.array(each)


def read_array(
    name: str, value: Any, parameter: Parameter, sizes: dict[str, int], problem: str
) -> Any:
    """A number or an array of the shape, and between the bounds, of a parameter."""
    array, shape = np.array(None), []
    with suppress(ValueError):  # of lists of different lengths
        array = np.array(value, np.float64) if are_numbers(value) else array
    for axis, letter in enumerate(parameter.shape):
        size = array.shape[axis] if axis < array.ndim else -1
        if letter != "K":  # the first of a problem's arrays says how many points there are
            size = sizes.setdefault("B" + problem, size + (letter == "b")) - (letter == "b")
        shape.append(sizes["K"] if letter == "K" else size)
    if (
        array.dtype != np.float64
        or list(array.shape) != shape
        or 0 in array.shape[: "B" in parameter.shape]
    ):
        raise ValueError(f"{name}: must be numbers of shape {tuple(shape)}")
    known = array[~np.isnan(array)] if parameter.may_be_nan else array
    if not ((known >= parameter.low) & (known <= parameter.high) & np.isfinite(known)).all():
        raise ValueError(f"{name}: must be from {parameter.low} to {parameter.high}")
    if parameter.increasing and (np.diff(array) < 0).any():
        raise ValueError(f"{name}: must not decrease")
    return array if parameter.shape else float(array)


def are_numbers(value: Any) -> bool:
    """Whether this is a number, null, or lists of them."""
    if isinstance(value, list):
        return all(map(are_numbers, value))
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def plain(value: Any) -> Any:
    """Numbers and arrays as JSON has them."""
    if isinstance(value, list):
        return [plain(x) for x in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return None if math.isnan(value) else value


def plain_option(value: Any) -> Any:
    """An option as JSON has it: of an estimator its fields, by the name of its class."""
    if is_dataclass(value) and not isinstance(value, type):
        fields = {name: str(x) if x == math.inf else x for name, x in asdict(value).items()}
        return {type(value).__name__: fields}
    return value.item() if isinstance(value, np.generic) else value


def read_option(value: Any) -> Any:
    """An option from JSON."""
    if not isinstance(value, dict):
        return value
    name, fields = next(iter(value.items()), ("", None))
    if len(value) != 1 or name not in CURVES or not isinstance(fields, dict):
        raise ValueError(f"options: there is no {value!r:.80}")
    return CURVES[name](**{key: read_field(x) for key, x in fields.items()})


def read_field(value: Any) -> Any:
    """A field of an estimator from JSON, which has no infinity and no tuples."""
    if value == "inf":
        return math.inf
    return tuple(value) if isinstance(value, list) else value
