"""Which containers are read, and which are refused."""

import warnings
from math import inf

import numpy as np
import pytest

import fastece
from helpers.bad_input import CLASS_TRUE, PROB, ROWS, TRUE, WEIGHT
from helpers.layouts import frozen, strided


def test_a_lazy_frame_is_refused():
    frame = pytest.importorskip("polars").LazyFrame({"a": PROB, "b": 1 - PROB})
    with pytest.raises(TypeError, match="y_prob: lazy containers are refused"):
        fastece.ece(TRUE, frame)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_value_of_a_container_is_refused_with_its_index(package):
    module = pytest.importorskip(package)
    for name, values, kind in (
        ("y_prob", PROB.tolist(), "Float64"),
        ("y_true", TRUE.astype(bool).tolist(), "boolean"),
        ("y_true", TRUE.tolist(), "Int64"),
    ):
        cells = [*values[:3], None, *values[4:]]
        if package == "pandas":
            column = module.array(cells, kind)
        else:
            column = module.Series(cells) if package == "polars" else module.array(cells)
        data = {"y_true": TRUE, "y_prob": PROB, name: column}
        with pytest.raises((ValueError, TypeError), match=rf"{name}: .*{name}\[3\] is"):
            fastece.ece(**data)


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


class Tensor:
    """What is read of a tensor on another device, that needs a gradient, in bfloat16."""

    def __init__(self, values, dtype="torch.bfloat16"):
        self.values, self.dtype, self.calls = values, dtype, []

    def __getattr__(self, name):
        if name not in {"detach", "cpu", "resolve_conj", "resolve_neg", "float"}:
            raise AttributeError(name)
        return lambda: self.calls.append(name) or self

    def __len__(self):
        return len(self.values)

    def numpy(self):
        assert self.calls[:2] == ["detach", "cpu"]
        assert ("float" in self.calls) == (self.dtype == "torch.bfloat16")
        return np.array(self.values, np.float32)


@pytest.mark.parametrize("dtype", ["torch.bfloat16", "torch.float32"])
def test_tensors_are_brought_to_the_host_first(dtype):
    assert fastece.ece(TRUE, Tensor(PROB, dtype)) == fastece.ece(TRUE, PROB)
    rows = np.full((2, 3), np.float32(0.333984375))  # the bfloat16 next to 1/3; three make 1.002
    if dtype == "torch.bfloat16":
        assert fastece.ece([0, 1], Tensor(rows, dtype)) == pytest.approx(1 / 6, abs=1e-3)
    else:
        with pytest.warns(UserWarning, match="do not sum to 1"):
            fastece.ece([0, 1], Tensor(rows, dtype))


def test_bfloat16_of_numpy_is_read():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    check(lambda a: a.astype(bfloat16))
    assert fastece.ece([0, 1], np.full((2, 3), 1 / 3).astype(bfloat16)) >= 0


def test_sparse_columns_of_pandas_are_refused():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(pandas.arrays.SparseArray(PROB))
    with pytest.raises(TypeError, match="y_prob: sparse columns are refused"):
        fastece.ece(TRUE, column)


@pytest.mark.parametrize("shape", [(2**31,), (2**31, 2)])
def test_more_rows_than_kernels_count_are_refused_before_they_are_read(shape):
    many = np.broadcast_to(np.array(np.nan), shape)  # eight bytes, and nan is not looked for
    with pytest.raises(ValueError, match="y_prob: must have at most 2147483647 rows"):
        fastece.ece([0], many)
