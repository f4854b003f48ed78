"""Which containers are read or refused, and which numbers are warned of."""

import re
import warnings
from math import inf

import numpy as np
import pytest

import fastece
from fastece.data.containers import as_array
from helpers.bad_input import CLASS_TRUE, PROB, ROWS, TRUE, WEIGHT, put
from helpers.layouts import frozen, strided

package = pytest.importorskip


NO_ARRAYS = {
    "lazy": lambda: package("polars").LazyFrame({"a": PROB, "b": 1 - PROB}),
    "sparse columns": lambda: frame(package("pandas"), package("pandas").arrays.SparseArray(PROB)),
    "real numbers, got dtype object": lambda: frame(package("pandas"), PROB.astype(str)),
    "": lambda: package("torch").empty(8, device="meta"),
    "Sparse layout": lambda: package("torch").eye(8).to_sparse(),
}


@pytest.mark.parametrize("words", NO_ARRAYS)
def test_containers_without_numbers_are_refused(words):
    with pytest.raises((ValueError, TypeError), match=f"y_prob: .*{words}"):
        fastece.ece(TRUE, NO_ARRAYS[words]())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_missing_value_of_a_container_is_refused_with_its_index(library):
    module = package(library)
    for name, values, kind in (
        ("y_prob", PROB.tolist(), "Float64"),
        ("y_true", TRUE.astype(bool).tolist(), "boolean"),
        ("y_true", TRUE.tolist(), "Int64"),
    ):
        cells = [*values[:3], None, *values[4:]]
        if library == "pandas":
            column = module.array(cells, kind)
        else:
            column = module.Series(cells) if library == "polars" else module.array(cells)
        data = {"y_true": TRUE, "y_prob": PROB, name: column}
        with pytest.raises((ValueError, TypeError), match=rf"{name}: .*{name}\[3\] is"):
            fastece.ece(**data)


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


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def frame(module, array, **options):
    """A data frame of rows, or a series."""
    return (module.DataFrame if array.ndim == 2 else module.Series)(array, **options)


def arrow(array, make):
    """A table of rows, or an array made by a function."""
    if array.ndim == 1:
        return make(array)
    return package("pyarrow").table({str(k): x for k, x in enumerate(array.T)})


def tensor(dtype):
    torch = package("torch")
    return lambda a: torch.tensor(a, dtype=getattr(torch, dtype))


# All the numbers are exact in the shortest floats. An index must not reorder anything.
CONTAINERS = {
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist()),
    "list of numpy numbers": list,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "read-only": frozen,
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder("S")),
    "unaligned": unaligned,
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape))[1],
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
    "__array__": Array,
    "__dlpack__": DLPack,
    "old __dlpack__": OldDLPack,
    **{kind: lambda a, kind=kind: a.astype(kind) for kind in ("f2", "f4", "f8", "g", ">f4", ">f8")},
    "bfloat16": lambda a: a.astype(package("ml_dtypes").bfloat16),
    "pandas": lambda a: frame(package("pandas"), a),
    "pandas index": lambda a: frame(package("pandas"), a, index=range(8, 0, -1)),
    "pandas Float64": lambda a: frame(package("pandas"), a).astype("Float64"),
    "pandas Float32": lambda a: frame(package("pandas"), a).astype("Float32"),
    "polars": lambda a: frame(package("polars"), a),
    "pyarrow": lambda a: arrow(a, package("pyarrow").array),
    "pyarrow chunks": lambda a: arrow(
        a, lambda x: package("pyarrow").chunked_array([x[:3], x[3:]])
    ),
    **{f"torch {kind}": lambda a, kind=kind: tensor(kind)(a)
       for kind in ("float64", "float32", "float16", "bfloat16")},
    "torch gradient": lambda a: tensor("float32")(a).requires_grad_(),
    "torch strides": lambda a: tensor("float64")(a.T.copy()).t(),
}  # fmt: skip


def values(true, prob, weight, **data):
    """Some values that touch every path of the data."""
    out = []
    for options in ({}, {"estimator": "ece_ac", "n_bins": 4}, {"setting": "classwise", "norm": 2}):
        out.append(fastece.ece(true, prob, **options, **data))
        out.append(fastece.ece(true, prob, sample_weight=weight, **options, **data))
    out.append(fastece.mce(true, prob, sample_weight=weight, **data))
    return out


def contents(x):
    """The numbers in a container, for comparison before and after."""
    x = getattr(x, "array", x)
    x = x.detach().double() if hasattr(x, "detach") else x
    return x.tolist() if hasattr(x, "tolist") else x


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_give_the_value_of_the_array_and_are_left_alone(name):
    for true, prob in ((TRUE, PROB), (CLASS_TRUE, ROWS)):
        inputs = [CONTAINERS[name](array.copy()) for array in (true, prob, WEIGHT)]
        before = [repr(contents(x)) for x in inputs]
        assert values(*inputs) == values(true, prob, WEIGHT)
        assert [repr(contents(x)) for x in inputs] == before


def test_every_integer_and_bool_dtype_is_accepted():
    true, prob = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 0, 1, 1])
    weight = np.array([1, 1, 0, 1, 1])
    rows = np.eye(2)[prob]
    for dtype in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"):
        got = values(true.astype(dtype), prob.astype(dtype), weight.astype(dtype))
        assert got == values(true, prob.astype(float), weight.astype(float)), dtype
        assert fastece.ece(true.astype(dtype), rows.astype(dtype)) == fastece.ece(true, rows), dtype


def pandas_labels(kind):
    return lambda y: package("pandas").Series(y).astype(kind)


BINARY_LABELS = {
    **{kind: pandas_labels(kind) for kind in ("Int64", "UInt8", "boolean", "category")},
    "pyarrow": lambda y: package("pyarrow").array(y.astype(bool)),
    **{f"torch {kind}": lambda y, kind=kind: tensor(kind)(y)
       for kind in ("int64", "int32", "uint8", "bool")},
}  # fmt: skip
TEXT_LABELS = {
    **{kind: pandas_labels(kind) for kind in ("object", "string", "category")},
    "polars": lambda y: package("polars").Series(y),
    "pyarrow": lambda y: package("pyarrow").array(y),
}


@pytest.mark.parametrize("name", BINARY_LABELS)
def test_binary_labels_of_any_kind_are_read(name):
    assert values(BINARY_LABELS[name](TRUE), PROB, WEIGHT) == values(TRUE, PROB, WEIGHT)


@pytest.mark.parametrize("name", TEXT_LABELS)
def test_texts_of_any_kind_are_labels(name):
    order = ["b", "a", "c"]
    labels = TEXT_LABELS[name]([order[k] for k in CLASS_TRUE])
    assert values(labels, ROWS, WEIGHT, labels=order) == values(CLASS_TRUE, ROWS, WEIGHT)


def test_a_memory_map_is_read_and_not_written(tmp_path):
    np.save(tmp_path / "a.npy", PROB)
    prob = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert values(TRUE, prob, WEIGHT) == values(TRUE, PROB, WEIGHT)


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
    logits = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -np.inf]], dtype=dtype, order=order)
    copy = logits.copy()
    for setting in ("confidence", "classwise", 1):
        assert fastece.ece([0, 1], logits, from_logits=True, setting=setting) >= 0
    assert np.array_equal(logits, copy)


def test_containers_may_be_mixed():
    assert values(TRUE.tolist(), Array(PROB), tuple(WEIGHT)) == values(TRUE, PROB, WEIGHT)
    columns = {"a": ROWS[:, 0], "b": ROWS[:, 1], "c": ROWS[:, 2].astype("f4")}
    mixed = package("pandas").DataFrame(columns)
    assert values(CLASS_TRUE, mixed, WEIGHT) == values(CLASS_TRUE, ROWS, WEIGHT)


def test_lazy_parts_of_tensors_are_read():
    torch = package("torch")
    negated = torch.complex(torch.tensor(PROB), -torch.tensor(PROB)).conj().imag
    assert negated.is_neg()
    assert values(TRUE, negated, WEIGHT) == values(TRUE, PROB, WEIGHT)
    logits = torch.tensor(3 * ROWS, dtype=torch.bfloat16, requires_grad=True)
    exact = fastece.ece(CLASS_TRUE, logits.detach().double().numpy(), from_logits=True)
    assert fastece.ece(CLASS_TRUE, logits, from_logits=True) == exact


class Tensor:
    """What is read of a tensor on another device, that needs a gradient, in bfloat16.

    As torch, it refuses to be an array until all steps are taken, each of which makes a new tensor.
    """

    def __init__(self, values, dtype="torch.bfloat16", steps=()):
        self.values, self.dtype, self.steps = values, dtype, steps

    def __getattr__(self, name):
        if name not in {"detach", "cpu", "resolve_conj", "resolve_neg", "float"}:
            raise AttributeError(name)
        return lambda: type(self)(self.values, self.dtype, (*self.steps, name))

    def __len__(self):
        return len(self.values)

    def numpy(self):
        if "detach" not in self.steps:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if "cpu" not in self.steps:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if self.dtype == "torch.bfloat16" and "float" not in self.steps:
            raise TypeError("Got unsupported ScalarType BFloat16")
        assert ("float" in self.steps) == (self.dtype == "torch.bfloat16")
        return np.array(self.values, np.float32)


class HostTensor(Tensor):
    """A tensor on the host, without a gradient: an array as it is."""

    def numpy(self):
        assert not self.steps
        return self.values


def test_tensors_on_the_host_are_read_without_a_copy():
    tensor = HostTensor(PROB)
    assert as_array("y_prob", tensor) is PROB
    assert fastece.ece(TRUE, tensor) == fastece.ece(TRUE, PROB)


def test_tensors_that_no_step_turns_into_arrays_are_named():
    class Sparse(Tensor):
        def numpy(self):
            raise TypeError("can't convert Sparse layout tensor to numpy.")

    with pytest.raises(ValueError, match="y_prob: cannot be read as a numeric array: can't conv"):
        fastece.ece(TRUE, Sparse(PROB))


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float32"])
def test_tensors_are_brought_to_the_host_first(dtype):
    assert fastece.ece(TRUE, Tensor(PROB, dtype)) == fastece.ece(TRUE, PROB)
    rows = np.full((2, 3), np.float32(0.333984375))  # the bfloat16 next to 1/3; three make 1.002
    if dtype == "torch.bfloat16":
        assert fastece.ece([0, 1], Tensor(rows, dtype)) == pytest.approx(1 / 6, abs=1e-3)
    else:
        with pytest.warns(UserWarning, match="do not sum to 1"):
            fastece.ece([0, 1], Tensor(rows, dtype))


def test_the_rounding_of_bfloat16_is_no_fault_of_a_row():
    bfloat16 = package("ml_dtypes").bfloat16
    assert fastece.ece([0, 1], np.full((2, 3), 1 / 3).astype(bfloat16)) >= 0


@pytest.mark.parametrize("shape", [(2**31,), (2**31, 2)])
def test_more_rows_than_kernels_count_are_refused_before_they_are_read(shape):
    many = np.broadcast_to(np.array(np.nan), shape)  # eight bytes, and nan is not looked for
    with pytest.raises(ValueError, match="y_prob: must have at most 2147483647 rows"):
        fastece.ece([0], many)


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


@pytest.mark.parametrize(("dtype", "n_classes"), [("f2", 60_000), ("f4", 3)])
def test_the_rounding_of_short_floats_is_no_fault_of_a_row(dtype, n_classes):
    even = np.full((2, n_classes), 1 / n_classes).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fastece.ece([0, 1], even) >= 0
        assert fastece.ece([0, 1], even, setting=1) >= 0
    off = even.copy()
    off[1, :10] += np.array(0.01, dtype)
    with pytest.warns(UserWarning, match=r"1 of 2 rows .* the first is y_prob\[1\]"):
        fastece.ece([0, 1], off)


@pytest.mark.parametrize(("true", "prob"), [(TRUE, PROB), (CLASS_TRUE, ROWS)])
def test_probabilities_that_pass_as_logits_are_warned_of(true, prob):
    twice, many = np.concatenate([true, true]), np.concatenate([prob, prob])
    with pytest.warns(UserWarning, match="probabilities, but from_logits=True") as caught:
        fastece.ece(twice, many, from_logits=True)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for logits in (1.01 * many, -5 * many, np.full(many.shape, 0.5)):
            fastece.ece(twice, logits, from_logits=True)
        fastece.ece(true, prob, from_logits=True)  # so few may be by chance


def test_two_models_must_have_the_same_classes_before_labels_are_read():
    with pytest.raises(ValueError, match="y_prob_b: must have the classes of y_prob_a, 3, got 2"):
        fastece.compare(CLASS_TRUE, ROWS, ROWS[:, :2] * 2)
