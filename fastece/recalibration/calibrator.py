"""The base class of all maps, by the conventions of scikit-learn, which is not needed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import all_column_names, order_of_numbers, refuse_where
from fastece.data.errors import InputError, rename_arguments, warn
from fastece.data.parameters import check_choice, check_flag, check_real
from fastece.data.scores import two_columns
from fastece.kernels.types import F64
from fastece.recalibration.code import LANGUAGES, Program
from fastece.recalibration.inverse import smallest_numbers
from fastece.recalibration.outputs import (
    MAX_LOGIT,
    MIN_CLIP,
    NAMES_IN_FIT,
    LabelledOutputs,
    ModelOutputs,
    read_labelled_outputs,
    read_outputs,
)

# A parameter up to this size, multiplied by the largest logit and added up over classes, still
# gives a finite number.
MAX_PARAMETER = 1e200
# The largest clip: every probability would become one half.
MAX_CLIP = 0.5
# A probability within so many units of rounding of 0 or 1 counts as exactly 0 or 1.
ROUNDING_UNITS = 4
IMPOSSIBLE_LABELS = (
    "some labels have probability 0, and the map depends on the clip that stands for it: isotonic "
    "and curve calibration take no logarithms"
)


class Parameter(NamedTuple):
    """Description of a fitted attribute, by which a saved map is checked.

    Parameters
    ----------
    name : str
        The attribute without the "_" at its end.
    shape : str
        A letter for each axis: K for classes, B for bins or points, b for one less than B. A number
        has none.
    low, high : float
        Bounds of all entries.
    increasing : bool
        Whether entries must not decrease.
    may_be_nan : bool
        Whether entries may be nan.
    """

    name: str
    shape: str = ""
    low: float = -MAX_PARAMETER
    high: float = MAX_PARAMETER
    increasing: bool = False
    may_be_nan: bool = False


# A parameter whose entries are probabilities.
Probability = partial(Parameter, low=0.0, high=1.0)


@dataclass(kw_only=True, eq=False)
class Calibrator(ABC):
    """A map from predictions to better calibrated ones, fitted to rows held apart.

    A subclass has its options as fields. It writes `_fit`, which sets the fitted attributes, and
    `_map`, and describes the fitted attributes in `PARAMETERS`. For `to_code` it writes
    `_write_code` or `_write_code_of_classes`; for `inverse` it accepts by `_check_increasing`, or
    writes `_invert_classes`.
    """

    # The name of the method in texts.
    title: ClassVar[str]
    # Fitted attributes. Where `has_parameters_per_class`, maps of more than two classes have one
    # entry of each for every class, and maps of two classes only have the one of class 1.
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    has_parameters_per_class: ClassVar[bool] = False
    # Fitted numbers that all classes share.
    SHARED_PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    # Whether class vectors keep the class of their largest probability.
    keeps_argmax: ClassVar[bool] = False
    # The kind of predictions that is mapped, "logits" or "probabilities": the other kind is
    # converted to it.
    needs: ClassVar[str] = "probabilities"

    from_logits: bool = False

    def __post_init__(self) -> None:
        check_flag("from_logits", self.from_logits)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Fit the map.

        Parameters
        ----------
        X : array_like (n,) or (n, K)
            Probabilities of the positive class or class vectors; with `from_logits` log odds or
            logits.
        y : array_like (n,)
            Labels from 0 to K - 1, or strings: names of the columns of `X`, or else the K sorted
            ones, as scikit-learn's classifiers order their columns.
        sample_weight : array_like (n,), optional
            Not negative; rows of weight 0 do not exist.

        Returns
        -------
        The object itself. Its fitted attributes end in "_"; `classes_` are the labels of the
        columns, where these are strings or the columns' names say them, else None.

        Raises
        ------
        ValueError, TypeError
            For values that are not probabilities or labels, and for labels of one class alone.
        """
        with rename_arguments(NAMES_IN_FIT):
            rows = read_labelled_outputs(
                y, X, sample_weight, self.from_logits, name="X", sorts_labels=True
            ).rows_to_fit("y")
        return self.fit_rows(rows)

    def fit_rows(self, rows: LabelledOutputs) -> Self:
        """Fit the map to rows that have been checked, and have weights above 0."""
        self._fit(rows)
        self.n_classes_ = rows.n_classes
        self.classes_ = rows.class_names
        return self

    def transform(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Map predictions to recalibrated probabilities.

        Parameters
        ----------
        X : array_like (n,) or (n, K)
            Predictions of the kind that the map was fitted to; of two classes, one column or two.

        Returns
        -------
        (n,) or (n, K) array
            Probabilities of the shape of X: float32 where X is, else float64.

        Raises
        ------
        ValueError, TypeError
            Before `fit`; for another number of classes; for values that are not probabilities.
        """
        self._check_fitted("X", "maps anything")
        outputs = self._read(X, self.from_logits, "X")
        columns = all_column_names(X)
        fitted_columns = [str(label) for label in self.classes_ or ()]
        if columns and order_of_numbers(columns) != order_of_numbers(fitted_columns):
            rule = "must have its columns in the order of those that the map was fitted to"
            raise InputError("X", rule, value=columns)
        return self.map_outputs(outputs)

    def _check_fitted(self, argument: str, use: str) -> None:
        """Refuse a use of a map that has not been fitted."""
        if not self.__sklearn_is_fitted__():
            raise InputError(argument, f"{type(self).__name__} must be fitted before it {use}")

    def _read(self, values: Any, from_logits: bool, name: str) -> ModelOutputs:
        """Check the caller's probabilities or logits of as many classes as the map has."""
        with rename_arguments({**NAMES_IN_FIT, "first": name}):
            outputs = read_outputs(values, from_logits, name)
        if outputs.n_classes != self.n_classes_:
            rule = f"must have {self.n_classes_} classes, as the rows that the map was fitted to"
            raise InputError(name, rule, value=outputs.values.shape)
        return outputs

    def map_outputs(self, outputs: ModelOutputs) -> NDArray[Any]:
        """Map checked predictions to probabilities of their shape and dtype."""
        p = self._map(outputs)
        n_axes = outputs.values.ndim
        if p.ndim == 2 and n_axes == 1:
            p = p[:, 1]
        elif p.ndim == 1 and n_axes == 2:
            p = np.column_stack([1 - p, p])
        return p.astype(outputs.values.dtype, copy=False)

    def inverse(self, p: Any) -> F64:
        """Find the predictions that are mapped to given probabilities.

        Parameters
        ----------
        p : array_like (n,) or (n, K)
            Recalibrated probabilities of class 1, or class vectors.

        Returns
        -------
        (n,) or (n, K) float64 array
            Predictions of the kind that the map was fitted to: probabilities or, with
            `from_logits`, log odds and, for class vectors, log probabilities. With two classes they
            are the smallest whose recalibrated probability of class 1 is at least p; where the map
            is continuous and increases, that is the one that is mapped to p. The smallest log odds
            are -1e100.

        Raises
        ------
        ValueError, TypeError
            Before `fit`; for a map that may decrease, or of more than two classes unless it is
            temperature scaling; for another number of classes, values that are not probabilities,
            or probabilities that no prediction is mapped to.

        Examples
        --------
        >>> from fastece.recalibration import PlattScaling
        >>> model = PlattScaling().fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
        >>> print(model.inverse([0.2, 0.5]).round(3))
        [0.285 0.5  ]
        """
        self._check_fitted("p", "has an inverse")
        if self.n_classes_ == 2:
            self._check_increasing()
            return self._invert(self._read(p, False, "p"))
        return self._invert_classes(self._read(p, False, "p"))

    def _check_increasing(self) -> None:
        """Refuse an inverse where the map of two classes may decrease."""
        raise InputError("p", f"{self.title} has no inverse, since it may decrease")

    def _invert(self, outputs: ModelOutputs) -> F64:
        """Find the predictions behind probabilities of two classes, in their shape."""
        p = outputs.score(1).s
        low, high = self._input_range()

        def recalibrate(score: F64) -> NDArray[Any]:
            return self.map_outputs(self._column(score))

        smallest, largest = recalibrate(np.array([low, high]))
        rule = f"must be at most {largest}, as the map gives {smallest} to {largest}"
        refuse_where("p", rule, p, lambda part: part > largest + ROUNDING_UNITS * MIN_CLIP)
        target = np.minimum(p, recalibrate(np.full(p.size, high)))
        score = smallest_numbers(lambda score: recalibrate(score) >= target, low, high, p.size)
        if outputs.values.ndim == 1:
            return score
        if self.from_logits:
            return ModelOutputs(score, from_logits=True).score(1).log_probabilities
        return two_columns(score, from_logits=False)

    def _column(self, values: F64) -> ModelOutputs:
        """Return predictions of class 1 of two, which need no check."""
        return ModelOutputs(values, self.from_logits)

    def _input_range(self) -> tuple[float, float]:
        """Return the smallest and the largest prediction in one column."""
        return (-MAX_LOGIT, MAX_LOGIT) if self.from_logits else (0.0, 1.0)

    def _invert_classes(self, outputs: ModelOutputs) -> F64:
        """Find the predictions behind class vectors of more than two classes."""
        rule = f"{self.title} has an inverse for two classes alone"
        raise InputError("p", rule, value=outputs.values.shape)

    def to_code(self, language: str) -> str:
        """Write the fitted map as a short program, which needs no package.

        Parameters
        ----------
        language : {"python", "sql", "js"}

        Returns
        -------
        str
            For Python and JavaScript a function `recalibrate`, from a number to a number for two
            classes and from a sequence to a list for more. For SQL a query of a table
            `predictions`, in the dialect of SQLite: it keeps all columns, and adds
            `recalibrated`, or `recalibrated0`, `recalibrated1` and so on, after columns of steps
            whose names begin with "_".

        Raises
        ------
        ValueError, TypeError
            Before `fit`; for an unknown language; for more than two classes, unless the map has
            code for them.

        Notes
        -----
        The input is p: the probability of class 1 or of each of more classes, in SQL the columns
        `p0`, `p1` and so on. With `from_logits` it is z, the log odds of class 1 or the logits;
        they must be finite, as -inf is not replaced. The program checks no input, and gives the
        results of `transform` for float64 and, with two classes, one column.

        Examples
        --------
        >>> from fastece.recalibration import PriorShift
        >>> code = PriorShift(old=0.5, new=0.25).fit([0.5]).to_code("js")
        >>> for line in code.splitlines()[1:]:
        ...     print(line)
        const {exp, log, min, max} = Math;
        const ratio0 = 1.5;
        const ratio1 = 0.5;
        function recalibrate(p) {
          const recalibrated = ratio1 * p / (ratio0 * (1 - p) + ratio1 * p);
          return recalibrated;
        }
        """
        self._check_fitted("language", "is written as code")
        check_choice("language", language, list(LANGUAGES))
        program = Program(self.title, self.n_classes_, self.from_logits)
        if self.n_classes_ == 2:
            self._write_code(program)
        else:
            self._write_code_of_classes(program)
        return LANGUAGES[language](program)

    def _write_code(self, program: Program) -> None:  # noqa: ARG002
        """Write the map of two classes; its last step is the probability of class 1."""
        self._refuse_code()

    def _write_code_of_classes(self, program: Program) -> None:  # noqa: ARG002
        """Write the map of more than two classes; its last step is a vector."""
        self._refuse_code()

    def _refuse_code(self) -> NoReturn:
        """Refuse to write code, and name the file that has the numbers of the map."""
        rule = f"{self.title} of {self.n_classes_} classes is not written as code"
        hint = "fastece.recalibration.save writes a JSON file with all numbers of the map"
        raise InputError("language", rule, hint=hint)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[Any]:  # noqa: N803
        """Fit the map to rows, and map the same rows.

        The map has seen their labels; with `recalibrate` it has not.
        """
        return self.fit(X, y, sample_weight).transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the options by name; scikit-learn's `deep` changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Replace options; an unknown name or a bad value is a ValueError or a TypeError."""
        options = self.get_params()
        for name in params:
            if name not in options:
                raise InputError(name, f"{type(self).__name__} has {', '.join(options)} alone")
        type(self)(**{**options, **params})  # A new object checks the values.
        vars(self).update(params)
        return self

    @abstractmethod
    def _fit(self, rows: LabelledOutputs) -> None:
        """Set the fitted attributes from rows."""

    @abstractmethod
    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        """Map predictions to probabilities (n,) of class 1, or (n, K)."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None, target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(), input_tags=InputTags(one_d_array=True),
        )  # fmt: skip


# --- maps of logarithms of probabilities ------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class LogitMap(Calibrator):
    """A map of logarithms of probabilities, which a clip makes finite."""

    SHARED_PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("clip", low=MIN_CLIP, high=MAX_CLIP),
    )

    clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is not None:
            check_real("clip", self.clip, MIN_CLIP, MAX_CLIP)

    def fit_rows(self, rows: LabelledOutputs) -> Self:
        """Choose the clip, and fit the map to rows that have been checked."""
        self.clip_ = choose_clip(rows) if self.clip is None else float(self.clip)
        return super().fit_rows(replace(rows, clip=self.clip_))

    def map_outputs(self, outputs: ModelOutputs) -> NDArray[Any]:
        """Map checked predictions to probabilities of their shape and dtype."""
        return super().map_outputs(replace(outputs, clip=self.clip_))

    def _column(self, values: F64) -> ModelOutputs:
        return replace(super()._column(values), clip=self.clip_)


def choose_clip(rows: LabelledOutputs) -> float:
    """Choose the smallest probability before logarithms; warn of impossible labels.

    For n rows to fit to, some of whose probabilities are exactly 0 or 1, the clip is
    ``1 / (2 n + 2)``: Jeffreys' estimate ``(k + 1/2) / (n + 1)`` of a rate, for k = 0 events in n
    rows. Where another probability is nearer to 0 or 1, the clip is that probability, so that no
    other one is clipped. Where none is exactly 0 or 1, the clip is `MIN_CLIP`.
    """
    if rows.from_logits:
        logits = rows.values
        if np.isfinite(logits).all():
            return MIN_CLIP
        if logits.ndim == 1:
            logits = two_columns(logits, from_logits=True)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        is_exact = logits == -np.inf
    elif rows.values.ndim == 1:
        p = np.column_stack([1 - rows.values, rows.values])
        rounding = float(np.finfo(rows.values.dtype).eps)
        is_exact = p < [ROUNDING_UNITS * rounding, ROUNDING_UNITS * MIN_CLIP]
    else:
        p = rows.values
        is_exact = p < ROUNDING_UNITS * MIN_CLIP
    if not is_exact.any():
        return MIN_CLIP
    if is_exact[np.arange(rows.n_rows), rows.label].any():
        warn("X", IMPOSSIBLE_LABELS)
    largest_clip = 1 / (2 * rows.n_rows + 2)
    return max(MIN_CLIP, float(p.min(where=~is_exact, initial=largest_clip)))
