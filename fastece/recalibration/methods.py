"""The table of methods, out-of-fold probabilities by any of them, and maps in files."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError, InputTypeError
from fastece.data.labels import as_groups
from fastece.data.parameters import check_choice, check_flag, check_integer, list_names
from fastece.display.numbers import to_plain
from fastece.files import unique_keys, write_file
from fastece.kernels.types import I64
from fastece.recalibration import base, binary
from fastece.recalibration.prior import PriorShift
from fastece.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling
from fastece.resampling.draws import new_key
from fastece.resampling.engine import progress_callbacks

METHODS: dict[str, type[base.Calibrator]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "platt": binary.PlattScaling,
    "beta": binary.BetaCalibration,
    "isotonic": binary.IsotonicCalibration,
    "histogram": binary.HistogramBinning,
    "scaling_binning": binary.ScalingBinning,
    "curve": binary.CurveCalibration,
    "prior_shift": PriorShift,
}
FORMAT, VERSION = "fastece.recalibration", 2
KEYS = ("format", "version", "method", "options", "n_classes", "classes", "parameters")
MAX_CLASSES = 2**20


def recalibrate(
    y_true: Any, y_prob: Any, *, method: Any, cv: int = 5, groups: Any = None, rng: Any = 0,
    from_logits: bool = False, sample_weight: Any = None,
) -> NDArray[Any]:  # fmt: skip
    """Recalibrate all rows, each by a map that was fitted without its label.

    Parameters
    ----------
    y_true : array_like (n,)
        Labels from 0 to K - 1, or strings that name the columns of `y_prob`.
    y_prob : array_like (n,) or (n, K)
        Probabilities of the positive class or class vectors.
    method : str or object
        A name of `METHODS`, or an object with `fit` and `transform` as its classes have them.
    cv : int, default 5
        Number of folds: each is recalibrated by a map that was fitted to the others.
    groups : array_like (n,), optional
        Rows of one group, such as one patient, stay in one fold.
    rng : None, int or numpy.random.Generator, default 0
        Seed of the folds. Rows are shuffled, and every fold gets its share of each class; with
        `groups`, folds only have about equally many rows.
    from_logits : bool, default False
        Whether predictions are log odds or logits.
    sample_weight : array_like (n,), optional
        Not negative. Rows of weight 0 are recalibrated, but nothing is fitted to them.

    Returns
    -------
    (n,) or (n, K) array
        Probabilities of the shape of `y_prob`, whose errors are an estimate of the errors on new
        rows.

    Raises
    ------
    ValueError, TypeError
        For an unknown method, more folds than rows or groups, training rows of a fold that have one
        class alone, an object that gives no probabilities of the shape of `y_prob`, and as
        `fastece.ece` does for labels and probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import ece
    >>> from fastece.recalibration import recalibrate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> better = recalibrate(y, p, method="beta")
    >>> print(f"{ece(y, p):.3f} {ece(y, better):.3f}")
    0.171 0.025
    """
    model = find_method(method, check_flag("from_logits", from_logits))
    rows = base.read_rows(y_true, y_prob, sample_weight, from_logits)
    fold = draw_folds(rows.label, check_integer("cv", cv, 2, rows.label.size), groups, rng)
    out = np.empty_like(rows.x)
    for part in range(cv):
        others = rows.where(fold != part).to_fit(f"y_true without fold {part}")
        fitted = deepcopy(model).fit_rows(others)
        out[fold == part] = fitted.map_rows(rows.where(fold == part))
        for callback in progress_callbacks:
            callback(part + 1, cv)
    return out


class ForeignCalibrator:
    """An object of another library, fitted to checked rows like our own methods."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit_rows(self, rows: base.Rows) -> Self:
        """Fit the object, with weights if there are any."""
        weight = {} if rows.v is None else {"sample_weight": rows.v}
        self.model.fit(rows.x, rows.label, **weight)
        return self

    def map_rows(self, rows: base.Rows) -> NDArray[Any]:
        """Map predictions to probabilities of their shape, by the fitted object."""
        name = "method.transform(X)"
        p = base.read_predictions(self.model.transform(rows.x), False, name).x
        if p.shape != rows.x.shape:
            raise InputError(name, f"must have the shape of X, {rows.x.shape}", value=p.shape)
        return p


def find_method(method: Any, from_logits: bool) -> base.Calibrator | ForeignCalibrator:
    """Return the method to fit, from its name or an object."""
    if isinstance(method, str):
        return METHODS[check_choice("method", method, list(METHODS))](from_logits=from_logits)
    has_verbs = all(callable(getattr(method, verb, None)) for verb in ("fit", "transform"))
    if isinstance(method, type) or not has_verbs:
        rule = "must be a name or an object with fit and transform"
        raise InputTypeError("method", rule, value=method, hint=list_names(METHODS))
    kind, own = type(method), (base.Calibrator.fit, base.Calibrator.transform)
    if not isinstance(method, base.Calibrator) or (kind.fit, kind.transform) != own:
        return ForeignCalibrator(method)
    if method.from_logits != from_logits:
        raise InputError("from_logits", f"must be {method.from_logits} for {method!r}")
    return method


def draw_folds(label: I64, cv: int, groups: Any, rng: Any) -> I64:
    """Draw the fold (n,) of each row, stratified by class unless groups stay together."""
    generator = np.random.default_rng(new_key(rng))
    order = generator.permutation(label.size)
    if groups is None:
        # Rows in turn, class by class: a fold has its share of each, and as many rows as others.
        order = order[np.argsort(label[order], kind="stable")]
        fold = np.empty(label.size, np.int64)
        fold[order] = np.arange(label.size) % cv
        return fold
    group = as_groups(groups, label.size, "groups")[0]
    count = np.bincount(group)
    if count.size < cv:
        raise InputError("cv", f"must be at most the {count.size} groups there are", value=cv)
    home, load = np.empty(count.size, np.int64), np.zeros(cv)
    shuffled = generator.permutation(count.size)
    for one in shuffled[np.argsort(-count[shuffled], kind="stable")]:  # the largest first
        home[one] = load.argmin()
        load[home[one]] += count[one]
    return home[group]


# -- files -----------------------------------------------------------------------------------------


def save(model: base.Calibrator, path: str | PathLike[str]) -> None:
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
    name = next((name for name, kind in METHODS.items() if kind is type(model)), None)
    if name is None:
        raise InputTypeError("model", f"must be one of {', '.join(METHODS)}", value=model)
    if not model.__sklearn_is_fitted__():
        raise InputError("model", f"{type(model).__name__} must be fitted before it is saved")
    options = {
        name: {type(x).__name__: asdict(x)} if type(x) in binary.CURVES else x
        for name, x in model.get_params().items()
    }
    parameters = {x.name: getattr(model, f"{x.name}_") for x in (*model.PARAMETERS, *model.SHARED)}
    values = FORMAT, VERSION, name, options, model.n_classes_, model.classes_, parameters
    content = to_plain(dict(zip(KEYS, values, strict=True)))
    write_file(path, json.dumps(content, allow_nan=False).encode() + b"\n")


def load(path: str | PathLike[str]) -> base.Calibrator:
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
        options: Any = {"parse_constant": refuse_constant, "object_pairs_hook": unique_keys}
        return read_model(json.loads(text, **options))
    except (ValueError, TypeError, RecursionError) as error:
        rule = f"is no map that fastece has saved and can read: {error}"
        raise InputError("path", rule, place=str(path)) from error


def refuse_constant(name: str) -> None:
    """Refuse nan and infinities, which Python reads though JSON does not have them."""
    raise ValueError(f"{name} is no number")


def read_model(content: Any) -> base.Calibrator:
    """Read the map of the content of a file."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError("format", f"must be {FORMAT}")
    version = check_integer("version", content.get("version"), 1, VERSION, "a known version")
    check_keys("content", content, KEYS)
    model = METHODS[check_choice("method", content["method"], list(METHODS))]()
    options, found = content["options"], content["parameters"]
    if version == 1 and model.SHARED and isinstance(options, dict) and isinstance(found, dict):
        options, found = {**options, "clip": base.CLIP}, {**found, "clip": base.CLIP}
    check_keys("options", options, model.get_params())
    model.set_params(**{name: read_option(x) for name, x in options.items()})
    model.n_classes_ = n = check_integer("n_classes", content["n_classes"], 2, MAX_CLASSES)
    model.classes_ = names = content["classes"]
    if names is not None and not (
        isinstance(names, list) and len({x for x in names if isinstance(x, str)}) == n
    ):
        raise InputError("classes", f"must be null or {n} strings")
    check_keys("parameters", found, [x.name for x in (*model.PARAMETERS, *model.SHARED)])
    for parameter in model.SHARED:
        name = parameter.name
        setattr(model, f"{name}_", read_array(name, found[name], parameter, {}))
    sizes: dict[int, dict[str, int]] = defaultdict(lambda: {"K": n})  # of each class
    for parameter in model.PARAMETERS:
        name, value = parameter.name, found[parameter.name]
        if n == 2 or not isinstance(model, base.OneVsRest | PriorShift):
            read: Any = read_array(name, value, parameter, sizes[0])
        elif isinstance(value, list) and len(value) == n:
            pairs = enumerate(value)
            read = [read_array(f"{name}[{k}]", x, parameter, sizes[k]) for k, x in pairs]
            read = read if parameter.shape else np.array(read)
        else:
            raise InputError(name, f"must have {n} entries, one for each class")
        setattr(model, f"{name}_", read)
    return model


def check_keys(name: str, value: Any, keys: Iterable[str]) -> None:
    """Check that a value is a dictionary of some keys."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise InputError(name, f"must have {', '.join(keys)}")


def read_array(name: str, value: Any, parameter: base.Parameter, sizes: dict[str, int]) -> Any:
    """Read a number or an array of the shape, and between the bounds, of a parameter.

    `sizes` of axes are those of one problem: its first array gives the number of points.
    """
    array = np.array(None)
    with suppress(ValueError, OverflowError):  # lists of different lengths, numbers too large
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


def read_option(value: Any) -> Any:
    """Turn JSON's values into an option; JSON has no infinity and no tuples."""
    if not isinstance(value, dict):
        return value
    kinds = {kind.__name__: kind for kind in binary.CURVES}
    name, fields = next(iter(value.items()), ("", None))
    if len(value) != 1 or name not in kinds or not isinstance(fields, dict):
        raise InputError("options", "must be of an estimator with a curve", value=value)
    return kinds[name](**{
        key: math.inf if x == "inf" else tuple(x) if isinstance(x, list) else x
        for key, x in fields.items()
    })  # fmt: skip
