"""Probabilities out of fold: by a map that was fitted to other rows, or by the one that suits."""

import warnings
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import index_of, warn_of_index
from fastece.data.errors import BadArgumentError, InputError
from fastece.data.parameters import check_flag
from fastece.data.scores import two_columns
from fastece.estimators.losses import LogLoss, vector_terms
from fastece.kernels.types import F64, I64
from fastece.recalibration.calibrator import Calibrator
from fastece.recalibration.choice import (
    CANDIDATES,
    NONE,
    MapChoice,
    choose_simplest,
    compare_with_best,
)
from fastece.recalibration.folds import Folds, draw_folds
from fastece.recalibration.methods import METHODS, ForeignCalibrator, find_method
from fastece.recalibration.outputs import LabelledOutputs, read_labelled_outputs
from fastece.resampling.engine import progress_callbacks

SAYS_0 = "it gives probabilities of 0, of which one event makes the log loss infinite"


def recalibrate(
    y_true: Any, y_prob: Any, *, method: Any = "auto", cv: int = 5, groups: Any = None,
    rng: Any = 0, from_logits: bool = False, sample_weight: Any = None,
) -> NDArray[Any]:  # fmt: skip
    """Recalibrate all rows, each by a map that was fitted without its label.

    Parameters
    ----------
    y_true : array_like (n,)
        Labels from 0 to K - 1, or strings that name the columns of `y_prob`.
    y_prob : array_like (n,) or (n, K)
        Probabilities of the positive class or class vectors.
    method : str or object, default "auto"
        A name of `METHODS`, or an object with `fit` and `transform` as its classes have them.
        "auto" is the method of `recommend`, which may be "none": probabilities stay as they are.
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

    See Also
    --------
    recommend : What "auto" has tried.

    Notes
    -----
    With "auto", each map is fitted without the labels that it is applied to, but the choice of the
    method has seen all labels. Errors of the result are therefore a little too small, though not
    where any sample would have led to the same choice.

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
    from_logits = check_flag("from_logits", from_logits)
    model = find_method(method, from_logits)
    rows, folds = read_rows_and_folds(y_true, y_prob, cv, groups, rng, from_logits, sample_weight)
    n_candidates = 0
    if model is None:
        n_candidates = len(CANDIDATES)
        choice = choose_map(rows, folds, n_candidates + 1)
        model = METHODS[choice.method](from_logits=from_logits)
    return map_out_of_fold(model, rows, folds, n_candidates, n_candidates + 1)


def recommend(
    y_true: Any, y_prob: Any, *, cv: int = 5, groups: Any = None, rng: Any = 0,
    from_logits: bool = False, sample_weight: Any = None,
) -> MapChoice:  # fmt: skip
    """Recommend a method of recalibration, or none, by its log loss out of fold.

    Parameters
    ----------
    y_true, y_prob, cv, groups, rng, from_logits, sample_weight
        As in `recalibrate`.

    Returns
    -------
    MapChoice
        The name of the method, `method`, with the log loss of all that were tried in `trials`.

    Raises
    ------
    ValueError, TypeError
        As `recalibrate` does.

    Notes
    -----
    Tried are "none", "temperature", "ets", "svs" and, up to 200 classes, "sms": all of these keep
    near to temperature scaling where rows are few. They are fitted out of the same folds. From the
    one of the smallest mean log loss, every method differs by the mean of the differences of each
    row, which has a standard error. The first method in this order that is above the smallest log
    loss by at most one standard error is taken (the rule of Breiman, Friedman, Olshen and Stone
    1984, "Classification and regression trees", section 3.4.3, here with paired differences). So
    calibrated predictions are left alone: "none" is chosen for about 95 of 100 samples of them.

    With `groups`, the sums of the differences in each group are taken as independent. A method that
    gives a probability of 0, as "none" does where predictions have some, is not chosen: one event
    there would make the log loss infinite. A choice by log loss is not one by calibration error,
    although the two rarely disagree by much.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import recommend
    >>> rng = np.random.default_rng(0)
    >>> z = 2 * rng.normal(size=1000)
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-z))
    >>> recommend(y, z, from_logits=True).method
    'none'
    >>> recommend(y, 3 * z, from_logits=True).method
    'temperature'
    """
    from_logits = check_flag("from_logits", from_logits)
    rows, folds = read_rows_and_folds(y_true, y_prob, cv, groups, rng, from_logits, sample_weight)
    return choose_map(rows, folds, len(CANDIDATES))


def read_rows_and_folds(
    y_true: Any, y_prob: Any, cv: Any, groups: Any, rng: Any, from_logits: bool, sample_weight: Any
) -> tuple[LabelledOutputs, Folds]:
    """Check the caller's rows, and draw their folds."""
    rows = read_labelled_outputs(
        y_true, y_prob, sample_weight, from_logits, name="y_prob", sorts_labels=False
    )
    folds = draw_folds(rows.label, cv, groups, rng)
    warn_of_index("groups", groups, index_of(y_true, y_prob))
    return rows, folds


def map_out_of_fold(
    model: Calibrator | ForeignCalibrator, rows: LabelledOutputs, folds: Folds, n_before: int,
    n_methods: int,
) -> NDArray[Any]:  # fmt: skip
    """Map every row by a model that was fitted to the other folds.

    `n_before` of `n_methods` have been fitted before, which is the progress that callbacks get.
    """
    recalibrated = np.empty_like(rows.values)
    for fold in range(folds.n_folds):
        is_in_fold = folds.of_row == fold
        other_folds = rows.where(~is_in_fold).rows_to_fit(f"y_true without fold {fold}")
        fitted = deepcopy(model).fit_rows(other_folds)
        recalibrated[is_in_fold] = fitted.map_outputs(rows.where(is_in_fold))
        for callback in progress_callbacks:
            callback(n_before * folds.n_folds + fold + 1, n_methods * folds.n_folds)
    return recalibrated


# --- the choice of a method -----------------------------------------------------------------------


def choose_map(rows: LabelledOutputs, folds: Folds, n_methods: int) -> MapChoice:
    """Try the methods on the same folds, and choose one.

    Only the losses of their rows are kept. Warnings are about maps that may not be chosen, and are
    dropped: whoever fits the chosen one gets its own.
    """
    used = np.arange(rows.n_rows)
    if rows.sample_weight is not None:
        used = np.flatnonzero(rows.sample_weight)
    used_rows = rows.where(used)
    losses = {}
    refused = {}
    for number, name in enumerate(CANDIDATES):
        model = METHODS[name](from_logits=rows.from_logits)
        try:
            with warnings.catch_warnings(action="ignore"):
                p = map_out_of_fold(model, rows, folds, number, n_methods)[used]
        except BadArgumentError as error:
            if name == NONE:  # The rows are refused, and not a method.
                raise
            refused[name] = error.rule
            continue
        vectors = two_columns(p, from_logits=False) if p.ndim == 1 else p
        if vectors.all():
            losses[name] = log_losses(vectors, used_rows.label)
        else:
            refused[name] = SAYS_0
    if not losses:
        raise InputError("method", "cannot be chosen, as all give probabilities of 0: name one")
    trials = compare_with_best(losses, used_rows.unit_weight, folds.group[used])
    return MapChoice(
        method=choose_simplest(trials), trials=trials, refused=refused, n=used_rows.n_rows
    )


def log_losses(vectors: NDArray[Any], label: I64) -> F64:
    """Compute the log loss (n,) of the label of each row of class vectors (n, K)."""
    losses = np.empty(label.size)
    vector_terms(kernels.CHANCE, vectors, label, losses)
    return LogLoss().of_terms(losses)
