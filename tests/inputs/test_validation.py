"""What is accepted, what is refused, and what the refusal says.

BAD is also run in a process of its own, to see that a refusal never even imports numba.
"""

import re
import subprocess
import sys
import time
import warnings
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import Binned

TRUE = np.array([0, 1, 1, 0, 1, 0, 1, 1])
PROB = np.array([0.25, 0.75, 0.5, 0.125, 1.0, 0.0, 0.625, 0.875])
CLASS_TRUE = np.array([0, 1, 2, 0, 1, 2, 2, 1])
ROWS = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]] * 2)
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.25, 1.0])
FUNCTIONS = ["ece", "mce", "sce", "ace", "tace", "reliability_diagram"]


def put(array, *changes):
    """A copy of the array with `(index, value)` changes, of a dtype that can hold them."""
    copy = np.array(array, dtype=np.result_type(array, *(np.asarray(v) for _, v in changes)))
    for index, value in changes:
        copy[index] = value
    return copy


def masked(array, index):
    mask = np.zeros(np.shape(array), bool)
    mask[index] = True
    return np.ma.MaskedArray(array, mask)


def sparse(array):
    from scipy.sparse import csr_matrix

    return csr_matrix(array)


def lazy_frame():
    import polars

    return polars.LazyFrame({"a": PROB, "b": 1 - PROB})


def ece(true=TRUE, prob=PROB, **options):
    return fastece.ece(true, prob, **options)


def classes(true=CLASS_TRUE, prob=ROWS, **options):
    return fastece.ece(true, prob, **options)


# name -> (call, what its message matches): argument, rule, first offending index, its value.
# Most have a second offender further on, which must not be the one that is named.
BAD = {
    # not finite
    "y_prob nan": (lambda: ece(prob=put(PROB, (3, nan), (6, nan))), ["y_prob", r"\b3\b", "nan"]),
    "y_prob inf": (lambda: ece(prob=put(PROB, (2, inf), (5, nan))), ["y_prob", r"\b2\b", "inf"]),
    "y_prob -inf": (lambda: ece(prob=put(PROB, (2, -inf))), ["y_prob", r"\b2\b", "-inf"]),
    "y_prob nan first": (lambda: ece(prob=put(PROB, (0, nan))), ["y_prob", r"\b0\b", "nan"]),
    "y_prob nan last": (lambda: ece(prob=put(PROB, (7, nan))), ["y_prob", r"\b7\b", "nan"]),
    "y_prob float32 nan": (
        lambda: ece(prob=put(PROB, (3, nan)).astype(np.float32)),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "y_prob float16 nan": (
        lambda: ece(prob=put(PROB, (3, nan)).astype(np.float16)),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "row nan": (
        lambda: classes(prob=put(ROWS, ((4, 1), nan), ((6, 0), nan))),
        ["y_prob", r"\b4\b", r"\b1\b", "nan"],
    ),
    "row nan of weight 0": (
        lambda: classes(prob=put(ROWS, ((4, 1), nan)), sample_weight=put(WEIGHT, (4, 0.0))),
        ["y_prob", r"\b4\b", "nan"],
    ),
    "logit beyond float64": (
        lambda: ece(prob=put(PROB.astype("g"), (3, np.longdouble("1e4000"))), from_logits=True),
        ["y_prob", r"\b3\b", r"inf|1e\+4000"],
    ),
    "weight beyond float64": (
        lambda: ece(sample_weight=put(WEIGHT.astype("g"), (3, np.longdouble("1e4000")))),
        ["sample_weight", r"\b3\b", r"inf|1e\+4000"],
    ),
    "logit nan": (
        lambda: ece(prob=put(PROB, (3, nan)), from_logits=True),
        ["y_prob", r"\b3\b", "nan"],
    ),
    "logit inf": (
        lambda: ece(prob=put(PROB, (3, inf)), from_logits=True),
        ["y_prob", r"\b3\b", "inf"],
    ),
    "logit row inf": (
        lambda: classes(prob=put(ROWS, ((2, 1), inf)), from_logits=True),
        ["y_prob", r"\b2\b", "inf"],
    ),
    "logit row all -inf": (
        lambda: classes(prob=put(ROWS, (5, -inf)), from_logits=True),
        ["y_prob", r"\b5\b", "-inf"],
    ),
    "y_true nan": (lambda: ece(put(TRUE, (4, nan), (6, nan))), ["y_true", r"\b4\b", "nan"]),
    "y_true inf": (lambda: classes(put(CLASS_TRUE, (4, inf))), ["y_true", r"\b4\b", "inf"]),
    "weight nan": (
        lambda: ece(sample_weight=put(WEIGHT, (2, nan))),
        ["sample_weight", r"\b2\b", "nan"],
    ),
    "weight inf": (
        lambda: ece(sample_weight=put(WEIGHT, (2, inf))),
        ["sample_weight", r"\b2\b", "inf"],
    ),
    # not a probability
    "above 1": (
        lambda: ece(prob=put(PROB, (3, 1.5), (6, 2.5))),
        ["y_prob", r"\b3\b", r"1\.5", r"\[0, 1\]"],
    ),
    "below 0": (lambda: ece(prob=put(PROB, (3, -0.25), (6, 7))), ["y_prob", r"\b3\b", r"-0\.25"]),
    "just above 1": (lambda: ece(prob=put(PROB, (3, 1.00001))), ["y_prob", r"\b3\b", r"1\.0000"]),
    "just below 0": (
        lambda: ece(prob=put(PROB, (3, -2e-6))),
        ["y_prob", r"\b3\b", r"-2(\.\d+)?e-0?6"],
    ),
    "percent": (lambda: ece(prob=100 * PROB), ["y_prob", r"\b0\b", r"25"]),
    "integer probability": (lambda: ece(prob=np.arange(8)), ["y_prob", r"\b2\b"]),
    "row above 1": (
        lambda: classes(prob=put(ROWS, ((3, 2), 1.5), ((5, 0), -1))),
        ["y_prob", r"\b3\b", r"\b2\b", r"1\.5"],
    ),
    "float32 above 1": (
        lambda: ece(prob=put(PROB, (3, 1.5)).astype(np.float32)),
        ["y_prob", r"\b3\b", r"1\.5"],
    ),
    # labels
    "label K": (lambda: classes(put(CLASS_TRUE, (5, 3), (7, 9))), ["y_true", r"\b5\b", r"\b3\b"]),
    "label negative": (
        lambda: classes(put(CLASS_TRUE, (5, -1), (7, 9))),
        ["y_true", r"\b5\b", "-1"],
    ),
    "label huge": (lambda: classes(put(CLASS_TRUE, (5, 2**40))), ["y_true", r"\b5\b", str(2**40)]),
    "label beyond int64": (
        lambda: classes(put(CLASS_TRUE.astype(np.uint64), (5, np.uint64(2**64 - 1)))),
        ["y_true", r"\b5\b", str(2**64 - 1)],
    ),
    "label 1e300": (lambda: classes(put(CLASS_TRUE, (5, 1e300))), ["y_true", r"\b5\b", r"1e\+300"]),
    "label beyond int64 in a list": (
        lambda: classes([0, 1, 2, 0, 1, 10**30, 2, 1]),
        ["y_true"],
    ),
    "label not integral": (
        lambda: classes(put(CLASS_TRUE, (4, 1.5), (6, 0.5))),
        ["y_true", r"\b4\b", r"1\.5", "integ|whole"],
    ),
    "binary label 2": (lambda: ece(put(TRUE, (4, 2), (6, 3))), ["y_true", r"\b4\b", r"\b2\b"]),
    "binary label -1": (lambda: ece(put(TRUE, (3, -1))), ["y_true", r"\b3\b", "-1"]),
    "binary label of two columns": (
        lambda: ece(put(TRUE, (4, 2)), np.column_stack([1 - PROB, PROB]), setting="binary"),
        ["y_true", r"\b4\b", r"\b2\b"],
    ),
    "top label of one column": (
        lambda: ece(put(TRUE, (4, 2)), setting="confidence"),
        ["y_true", r"\b4\b", r"\b2\b"],
    ),
    "label not in labels": (
        lambda: classes(["a", "b", "c", "d", "a", "e", "b", "c"], labels=["a", "b", "c"]),
        ["y_true", r"\b3\b", "d"],
    ),
    "nan among labels": (
        lambda: classes(np.array(["a", "b", "c", nan, *"abca"], object), labels=["a", "b", "c"]),
        ["y_true", r"\b3\b", "nan"],
    ),
    "none among labels": (
        lambda: classes(["a", "b", "c", None, *"abca"], labels=["a", "b", "c"]),
        ["y_true", r"\b3\b", "None"],
    ),
    "number not in labels": (
        lambda: classes(put(CLASS_TRUE, (4, 7)), labels=[0, 1, 2]),
        ["y_true", r"\b4\b", r"\b7\b"],
    ),
    "too few labels": (lambda: classes(labels=[0, 1]), ["labels", r"\b2\b", r"\b3\b"]),
    "too many labels": (lambda: ece(labels=[0, 1, 2]), ["labels", r"\b2\b", r"\b3\b"]),
    "labels twice": (lambda: classes(labels=[0, 1, 1]), ["labels"]),
    "two strings for three classes": (lambda: classes(["a", "b"] * 4), ["y_true", "labels"]),
    "four strings for three classes": (lambda: classes(list("abcdabcd")), ["y_true", "labels"]),
    "complex labels": (lambda: ece(TRUE + 1j), ["y_true", "complex"]),
    "labels of nothing": (lambda: ece([None] * 8), ["y_true"]),
    "labels of dates": (lambda: ece(np.arange(8).astype("M8[D]")), ["y_true"]),
    # shapes
    "lengths": (lambda: ece(TRUE[:7]), ["y_true", "y_prob", r"\b7\b", r"\b8\b"]),
    "lengths of rows": (lambda: classes(prob=ROWS[:5]), ["y_true", "y_prob", r"\b8\b", r"\b5\b"]),
    "length of weights": (
        lambda: ece(sample_weight=WEIGHT[:3]),
        ["sample_weight", r"\b3\b", r"\b8\b"],
    ),
    "one weight": (lambda: ece(sample_weight=2.0), ["sample_weight"]),
    "weights in two dimensions": (lambda: ece(sample_weight=np.ones((8, 2))), ["sample_weight"]),
    "empty": (lambda: ece([], []), ["y_prob|y_true", "empty|at least one"]),
    "no rows": (lambda: classes([], np.empty((0, 3))), ["y_prob|y_true", "empty|at least one"]),
    "no columns": (lambda: classes(prob=np.empty((8, 0))), ["y_prob"]),
    "one column": (lambda: ece(prob=PROB[:, None]), ["y_prob", r"\(8, 1\)|one column|1 column"]),
    "three dimensions": (lambda: classes(prob=ROWS[None]), ["y_prob", r"\b3\b|dimension"]),
    "scalar": (lambda: ece(1, 0.5), ["y_prob|y_true", "dimension|scalar|1-d|array"]),
    "ragged": (lambda: ece(prob=[[0.5, 0.5], [1.0]] * 4), ["y_prob"]),
    "one-hot labels": (lambda: classes(np.eye(3)[CLASS_TRUE]), ["y_true", r"\(8, 3\)|dimension"]),
    "labels in three dimensions": (lambda: ece(TRUE[:, None, None]), ["y_true"]),
    "binary of three columns": (
        lambda: classes(setting="binary"),
        ["setting|y_prob", "binary", r"\b3\b"],
    ),
    # kinds
    "complex": (lambda: ece(prob=PROB + 0j), ["y_prob", "complex"]),
    "strings": (lambda: ece(prob=["0.5"] * 8), ["y_prob", "str|number"]),
    "bytes": (lambda: ece(prob=np.array([b"0.5"] * 8)), ["y_prob"]),
    "a string": (lambda: ece(prob="0.5"), ["y_prob"]),
    "objects": (lambda: ece(prob=PROB.astype(object)), ["y_prob", "object"]),
    "none": (lambda: ece(prob=None), ["y_prob"]),
    "y_true none": (lambda: ece(None), ["y_true"]),
    "none among floats": (lambda: ece(prob=[0.5, None] * 4), ["y_prob"]),
    "dates": (lambda: ece(prob=np.arange(8).astype("m8[s]")), ["y_prob"]),
    "dictionary": (lambda: ece(prob=dict(enumerate(PROB))), ["y_prob"]),
    "set": (lambda: ece(prob=set(PROB)), ["y_prob"]),
    "generator": (lambda: ece(prob=(p for p in PROB)), ["y_prob"]),
    "structured": (lambda: ece(prob=np.zeros(8, dtype=[("a", float)])), ["y_prob"]),
    "string weights": (lambda: ece(sample_weight=["1"] * 8), ["sample_weight"]),
    "complex weights": (lambda: ece(sample_weight=WEIGHT + 0j), ["sample_weight"]),
    "masked": (lambda: ece(prob=masked(PROB, 3)), ["y_prob", "mask"]),
    "masked labels": (lambda: ece(masked(TRUE, 3)), ["y_true", "mask"]),
    "masked weights": (lambda: ece(sample_weight=masked(WEIGHT, 3)), ["sample_weight", "mask"]),
    "sparse": (lambda: classes(prob=sparse(ROWS)), ["y_prob", "sparse"]),
    "sparse labels": (lambda: ece(sparse(TRUE[:, None])), ["y_true", "sparse"]),
    # weights
    "negative weight": (
        lambda: ece(sample_weight=put(WEIGHT, (3, -0.5), (5, -2.0))),
        ["sample_weight", r"\b3\b", r"-0\.5"],
    ),
    "weights sum to 0": (
        lambda: ece(sample_weight=np.zeros(8)),
        ["sample_weight", "0|zero|positive"],
    ),
    # swapped
    "swapped": (lambda: ece(PROB, TRUE), ["y_true", "swap|order|first"]),
    "swapped, float labels": (
        lambda: ece(PROB, TRUE.astype(float)),
        ["y_true", "swap|order|first"],
    ),
    "swapped rows": (lambda: classes(ROWS, CLASS_TRUE), ["y_true", "swap|order|first"]),
    # options
    "n_bins 0": (lambda: ece(n_bins=0), ["n_bins", r"\b0\b"]),
    "n_bins negative": (lambda: ece(n_bins=-3), ["n_bins", "-3"]),
    "n_bins fraction": (lambda: ece(n_bins=2.5), ["n_bins", r"2\.5"]),
    "n_bins bool": (lambda: ece(n_bins=True), ["n_bins", "True|bool"]),
    "n_bins nan": (lambda: ece(n_bins=nan), ["n_bins", "nan"]),
    "n_bins unknown": (lambda: ece(n_bins="scott"), ["n_bins", "scott", "sqrt"]),
    "n_bins none": (lambda: ece(n_bins=None), ["n_bins", "None"]),
    "n_bins of sce": (lambda: fastece.sce(CLASS_TRUE, ROWS, n_bins=0), ["n_bins", r"\b0\b"]),
    "n_bins in an object": (lambda: ece(estimator=Binned(n_bins=0)), ["n_bins", r"\b0\b"]),
    "norm below 1": (lambda: ece(norm=0.5), ["norm", r"0\.5"]),
    "norm nan": (lambda: ece(norm=nan), ["norm", "nan"]),
    "norm -inf": (lambda: ece(norm=-inf), ["norm", "-inf"]),
    "norm text": (lambda: ece(norm="l1"), ["norm", "l1"]),
    "edges": (lambda: ece(edges="equal"), ["edges", "equal", "uniform", "quantile"]),
    "mapping": (lambda: ece(mapping="soft"), ["mapping", "soft", "hard", "convex"]),
    "closed": (lambda: ece(closed="both"), ["closed", "both", "right", "left"]),
    "convex, closed left": (lambda: ece(mapping="convex", closed="left"), ["closed", "convex"]),
    "score_range": (lambda: ece(score_range="all"), ["score_range", "all", "unit", "support"]),
    "score_range reversed": (lambda: ece(score_range=(0.75, 0.25)), ["score_range", r"0\.75"]),
    "score_range empty": (lambda: ece(score_range=(0.5, 0.5)), ["score_range", r"0\.5"]),
    "score_range nan": (lambda: ece(score_range=(nan, 1.0)), ["score_range", "nan"]),
    "score_range single": (lambda: ece(score_range=(0.5,)), ["score_range"]),
    "min_count": (lambda: ece(min_count=3), ["min_count", "norm"]),
    "min_count, norm 2": (lambda: ece(min_count=3, norm=2), ["min_count", "norm"]),
    "min_count nan": (lambda: fastece.mce(TRUE, PROB, min_count=nan), ["min_count", "nan"]),
    "bin_weights": (lambda: ece(bin_weights="same"), ["bin_weights", "same", "mass", "equal"]),
    "threshold": (lambda: ece(threshold="low"), ["threshold", "low"]),
    "threshold nan": (lambda: ece(threshold=nan), ["threshold", "nan"]),
    "estimator": (lambda: ece(estimator="ece_x"), ["estimator", "ece_x", r"ece_a\b", r"ece_ac\b"]),
    "estimator of nothing": (lambda: ece(estimator=3), ["estimator"]),
    "setting": (
        lambda: ece(setting="multi"),
        ["setting", "multi", "binary", "confidence", "classwise"],
    ),
    "setting bool": (lambda: ece(setting=True), ["setting", "True|bool"]),
    "setting fraction": (lambda: classes(setting=1.0), ["setting", r"1\.0"]),
    "setting K": (lambda: classes(setting=3), ["setting", r"\b3\b"]),
    "setting 2 of one column": (lambda: ece(setting=2), ["setting", r"\b2\b"]),
    "average": (
        lambda: classes(setting="classwise", average="micro"),
        ["average", "micro", "macro"],
    ),
    "field": (lambda: ece(bins=10), ["bins", "n_bins", "edges", "mapping"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_a_message_that_helps(name):
    call, patterns = BAD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError)) as error:
            call()
    missing = [pattern for pattern in patterns if not re.search(pattern, str(error.value))]
    assert not missing, str(error.value)


def refused_in(call):
    """Seconds until the refusal."""
    start = time.perf_counter()
    try:
        call()
    except (ValueError, TypeError):
        return time.perf_counter() - start
    return inf


def test_bad_input_is_refused_within_ten_milliseconds():
    slow = {
        name: seconds
        for name, (call, _) in BAD.items()
        if (seconds := min(refused_in(call) for _ in range(3))) >= 0.01
    }
    assert not slow


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import test_validation
assert "numba" not in sys.modules, "numba came with the tests"
for name, (call, _) in test_validation.BAD.items():
    assert test_validation.refused_in(call) < test_validation.inf, name + ": accepted"
    assert "numba" not in sys.modules, name + ": numba was imported"
"""


def test_bad_input_is_refused_before_numba_is_imported():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_importing_the_package_does_not_import_numba():
    script = "import fastece, sys; dir(fastece); print([m for m in sys.modules if 'numba' in m])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_refuses_the_same_data(function):
    for true, prob, options, words in (
        (TRUE, put(PROB, (3, nan)), {}, ["y_prob", r"\b3\b", "nan"]),
        (put(TRUE, (4, 2)), PROB, {}, ["y_true", r"\b4\b", r"\b2\b"]),
        (TRUE, PROB, {"sample_weight": -WEIGHT}, ["sample_weight", r"\b0\b", r"-1\.0"]),
        (CLASS_TRUE, put(ROWS, ((4, 1), nan)), {}, ["y_prob", r"\b4\b", "nan"]),
        (TRUE, PROB[:, None], {}, ["y_prob"]),
        (TRUE, PROB, {"n_bins": 0}, ["n_bins", r"\b0\b"]),
        (TRUE, PROB, {"nbins": 3}, ["nbins", "n_bins"]),
    ):
        with pytest.raises((ValueError, TypeError)) as error:
            getattr(fastece, function)(true, prob, **options)
        assert all(re.search(word, str(error.value)) for word in words), str(error.value)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_everything_after_the_data_is_keyword_only(function):
    with pytest.raises(TypeError):
        getattr(fastece, function)(CLASS_TRUE, ROWS, "ece")


def test_the_objects_refuse_what_the_functions_refuse():
    for field, bad in (("n_bins", 0), ("norm", 0.5), ("edges", "equal"), ("mapping", "soft")):
        with pytest.raises((ValueError, TypeError), match=field):
            fastece.ece(TRUE, PROB, estimator=Binned(**{field: bad}))
    with pytest.raises((ValueError, TypeError), match="convex"):
        fastece.ece(TRUE, PROB, estimator=Binned(closed="left"), mapping="convex")


def test_a_lazy_frame_is_refused():
    pytest.importorskip("polars")
    with pytest.raises((ValueError, TypeError), match="y_prob"):
        fastece.ece(TRUE, lazy_frame())


def test_a_missing_value_of_a_container_is_refused_with_its_index():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    floats = [*PROB[:3], None, *PROB[4:]]
    integers = [*TRUE[:3].tolist(), None, *TRUE[4:].tolist()]
    for make in (lambda x: pandas.array(x, "Float64"), polars.Series, pyarrow.array):
        with pytest.raises((ValueError, TypeError), match="y_prob") as error:
            fastece.ece(TRUE, make(floats))
        assert re.search(r"\b3\b", str(error.value)), str(error.value)
    truths = [None if y is None else bool(y) for y in integers]
    for make in (lambda x: pandas.array(x, "boolean"), polars.Series, pyarrow.array):
        with pytest.raises((ValueError, TypeError), match="y_true") as error:
            fastece.ece(make(truths), PROB)
        assert re.search(r"\b3\b", str(error.value)), str(error.value)
    for make in (lambda x: pandas.array(x, "Int64"), polars.Series, pyarrow.array):
        with pytest.raises((ValueError, TypeError), match="y_true") as error:
            fastece.ece(make(integers), PROB)
        assert re.search(r"\b3\b", str(error.value)), str(error.value)


def test_object_columns_are_refused_like_object_arrays():
    pandas = pytest.importorskip("pandas")
    for make in (pandas.DataFrame, lambda a: pandas.Series(a[:, 0])):
        with pytest.raises((ValueError, TypeError), match="y_prob"):
            fastece.ece(CLASS_TRUE, make(ROWS.astype(object)), setting=0)


def test_tensors_without_numbers_are_refused():
    torch = pytest.importorskip("torch")
    for tensor in (torch.empty(8, device="meta"), torch.eye(8).to_sparse()):
        with pytest.raises((ValueError, TypeError), match="y_prob"):
            fastece.ece(TRUE, tensor)


# -- warnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["confidence", "classwise", 1])
@pytest.mark.parametrize("function", ["ece", "mce", "reliability_diagram"])
def test_rows_that_do_not_sum_to_one_warn_once_and_name_the_first(function, setting):
    rows = put(ROWS, ((5, 1), 0.5), ((6, 1), 0.125), ((7, 0), 0.5))
    with pytest.warns(UserWarning, match="y_prob") as caught:
        getattr(fastece, function)(CLASS_TRUE, rows, setting=setting)
    assert len(caught) == 1
    assert re.search(r"\b5\b", str(caught[0].message)), str(caught[0].message)
    assert caught[0].filename == __file__  # points at the caller's line


def test_the_tolerance_of_row_sums_is_a_thousandth():
    above, below = put(ROWS, ((5, 0), 0.1265)), put(ROWS, ((5, 0), 0.1255))
    with pytest.warns(UserWarning, match=r"\b5\b"):
        fastece.ece(CLASS_TRUE, above)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fastece.ece(CLASS_TRUE, below) >= 0
        assert fastece.ece(CLASS_TRUE, 3 * ROWS, from_logits=True) >= 0


DEGENERATE = {
    "one row": ([1], [0.5]),
    "one row of zero": ([0], [0.0]),
    "one class": ([1, 1, 1], [0.25, 0.5, 1.0]),
    "equal scores": ([0, 1, 1], [0.5, 0.5, 0.5]),
    "equal zeros": ([0, 1, 1], [0.0, 0.0, 0.0]),
    "equal ones": ([0, 1, 1], [1.0, 1.0, 1.0]),
    "one class vector": ([2], [[0.25, 0.25, 0.5]]),
    "equal class vectors": ([2, 2], [[0.25, 0.25, 0.5]] * 2),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_have_values_and_no_warning(name):
    true, prob = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in ("ece", "ece_a", "ece_c", "ece_ac"):
            for norm in (1, 2, inf):
                for n_bins in (1, 15, 10_000, "sqrt"):
                    options = {"estimator": estimator, "norm": norm, "n_bins": n_bins}
                    assert 0 <= fastece.ece(true, prob, **options) <= 1, options
            assert fastece.reliability_diagram(true, prob, estimator=estimator).count.sum() == len(
                true
            )
        for function in (fastece.mce, fastece.sce, fastece.ace, fastece.tace):
            assert 0 <= function(true, prob) <= 1


def test_all_weight_on_one_row_is_a_value_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in ("ece", "ece_a", "ece_c", "ece_ac"):
            weight = [0, 0, 1, 0, 0, 0, 0, 0]
            value = fastece.ece(TRUE, PROB, estimator=estimator, sample_weight=weight)
            assert value == 0.5


# -- containers ------------------------------------------------------------------------------------


class Array:
    """Anything with `__array__`."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class DLPack:
    """Anything with `__dlpack__`, and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDLPack(DLPack):
    """The protocol before it had keywords for versions, devices and copies."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def frozen(array):
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def strided(array):
    wide = np.full((3 * len(array), *array.shape[1:]), 7, dtype=array.dtype)
    wide[::3] = array
    return wide[::3]


def reversed_view(array):
    return np.ascontiguousarray(array[::-1])[::-1]


def swapped_bytes(array):
    return array.astype(array.dtype.newbyteorder("S"))


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


NUMPY = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
    "list of numpy numbers": list,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed": reversed_view,
    "read-only": frozen,
    "swapped bytes": swapped_bytes,
    "unaligned": unaligned,
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape))[1],
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
    "__array__": Array,
    "__dlpack__": DLPack,
    "old __dlpack__": OldDLPack,
}


def values(true, prob, weight):
    """Some values that touch every path of the data."""
    out = []
    for options in ({}, {"estimator": "ece_ac", "n_bins": 4}, {"setting": "classwise", "norm": 2}):
        out.append(fastece.ece(true, prob, **options))
        out.append(fastece.ece(true, prob, sample_weight=weight, **options))
    out.append(fastece.mce(true, prob, sample_weight=weight))
    return out


def check(make):
    """The container gives the value of the float64 array and is left as it was."""
    for true, prob in ((TRUE, PROB), (CLASS_TRUE, ROWS)):
        inputs = [make(array.copy()) for array in (true, prob, WEIGHT)]
        before = [repr(contents(x)) for x in inputs]
        assert values(*inputs) == values(true, prob, WEIGHT)
        assert [repr(contents(x)) for x in inputs] == before


def contents(x):
    """The numbers in a container, for comparison before and after."""
    x = getattr(x, "array", x)
    if hasattr(x, "detach"):
        x = x.detach().double()
    return x.tolist() if hasattr(x, "tolist") else x


@pytest.mark.parametrize("name", NUMPY)
def test_containers_give_the_value_of_the_array_and_are_left_alone(name):
    check(NUMPY[name])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f4", ">f8"])
def test_every_float_dtype_is_accepted(dtype):
    check(lambda a: a.astype(dtype))  # all the numbers used here are exact in float16


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"])
def test_every_integer_and_bool_dtype_is_accepted(dtype):
    true, prob = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 1, 1])
    weight = np.array([1, 1, 0, 1, 1])
    got = values(true.astype(dtype), prob.astype(dtype), weight.astype(dtype))
    assert got == values(true, prob.astype(float), weight.astype(float))
    rows = np.eye(2)[prob]
    assert fastece.ece(true.astype(dtype), rows.astype(dtype)) == fastece.ece(true, rows)


def test_a_memory_map_is_read_and_not_written(tmp_path):
    def mapped(array):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode="r")

    check(mapped)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_arrays_are_left_unmodified_even_where_values_are_clipped(dtype, order):
    rows = np.array([[1.0000001, -1e-7], [0.25, 0.75]], dtype=dtype, order=order)
    for prob in (rows, rows[:, 1], np.ascontiguousarray(rows[:, 1])):
        copy = prob.copy()
        assert fastece.ece([0, 1], prob) >= 0
        assert fastece.ece([0, 1], prob, estimator="ece_a") >= 0
        assert fastece.ece([0, 1], 5 * prob, from_logits=True) >= 0
        assert np.array_equal(prob, copy)


def test_logits_are_left_unmodified():
    logits = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -np.inf]])
    copy = logits.copy()
    for setting in ("confidence", "classwise", 1):
        assert fastece.ece([0, 1], logits, from_logits=True, setting=setting) >= 0
    assert np.array_equal(logits, copy)


def test_pandas():
    pandas = pytest.importorskip("pandas")
    check(lambda a: pandas.DataFrame(a) if a.ndim == 2 else pandas.Series(a))
    # An index that is not 0, 1, 2, ... must not reorder anything.
    check(lambda a: (pandas.DataFrame if a.ndim == 2 else pandas.Series)(a, index=range(8, 0, -1)))
    for kind in ("Float64", "Float32"):
        check(lambda a, kind=kind: (
            pandas.DataFrame(a).astype(kind) if a.ndim == 2 else pandas.Series(a).astype(kind)
        ))  # fmt: skip
    for kind in ("Int64", "UInt8", "boolean", "category"):
        labels = pandas.Series(TRUE).astype(kind)
        assert values(labels, pandas.array(PROB), WEIGHT) == values(TRUE, PROB, WEIGHT)
    names = pandas.Series([["a", "b", "c"][k] for k in CLASS_TRUE])
    for kind in ("object", "string", "category"):
        got = values(names.astype(kind), pandas.DataFrame(ROWS), WEIGHT)
        assert got == values(CLASS_TRUE, ROWS, WEIGHT), kind
    mixed = pandas.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1], "c": ROWS[:, 2].astype("f4")})
    assert values(CLASS_TRUE, mixed, WEIGHT) == values(CLASS_TRUE, ROWS, WEIGHT)


def test_polars():
    polars = pytest.importorskip("polars")
    check(lambda a: polars.DataFrame(a) if a.ndim == 2 else polars.Series(a))
    names = polars.Series([["a", "b", "c"][k] for k in CLASS_TRUE])
    assert values(names, polars.DataFrame(ROWS), WEIGHT) == values(CLASS_TRUE, ROWS, WEIGHT)


def test_pyarrow():
    pyarrow = pytest.importorskip("pyarrow")

    def table(a):
        return pyarrow.table({str(k): a[:, k] for k in range(a.shape[1])})

    check(lambda a: table(a) if a.ndim == 2 else pyarrow.array(a))
    check(lambda a: table(a) if a.ndim == 2 else pyarrow.chunked_array([a[:3], a[3:]]))
    names = pyarrow.array([["a", "b", "c"][k] for k in CLASS_TRUE])
    assert values(names, ROWS, WEIGHT) == values(CLASS_TRUE, ROWS, WEIGHT)
    truths = pyarrow.array(TRUE.astype(bool))
    assert values(truths, PROB, WEIGHT) == values(TRUE, PROB, WEIGHT)


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        check(lambda a, dtype=dtype: torch.tensor(a, dtype=dtype))
        needs = torch.tensor(PROB, dtype=dtype, requires_grad=True)
        assert values(TRUE, needs, WEIGHT) == values(TRUE, PROB, WEIGHT)
        assert needs.requires_grad
        assert needs.grad is None
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
        labels = torch.tensor(TRUE).to(dtype)
        assert values(labels, torch.tensor(PROB), WEIGHT) == values(TRUE, PROB, WEIGHT)
    rows = torch.tensor(ROWS.T.copy()).T  # not contiguous
    assert values(CLASS_TRUE, rows, WEIGHT) == values(CLASS_TRUE, ROWS, WEIGHT)
    negated = torch.complex(torch.tensor(PROB), -torch.tensor(PROB)).conj().imag  # a lazy minus
    assert negated.is_neg()
    assert values(TRUE, negated, WEIGHT) == values(TRUE, PROB, WEIGHT)
    logits = torch.tensor(3 * ROWS, dtype=torch.bfloat16, requires_grad=True)
    exact = logits.detach().double().numpy()
    assert fastece.ece(CLASS_TRUE, logits, from_logits=True) == fastece.ece(
        CLASS_TRUE, exact, from_logits=True
    )


def test_data_of_different_containers_may_be_mixed():
    assert values(TRUE.tolist(), Array(PROB), tuple(WEIGHT)) == values(TRUE, PROB, WEIGHT)
