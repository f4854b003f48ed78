"""States counted by many workers have the bits of one worker, however rows are divided."""

import multiprocessing
import os
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastece
from fastece import Accumulator
from fastece.streams import from_batches, from_dask

pytestmark = pytest.mark.slow

da = pytest.importorskip("dask.array")

N = 1000
REPLICATES = {"n_replicates": 32, "seed": 5, "n_cells": 1800}
OPTIONS = {
    "plain": {},
    "replicates": REPLICATES,
    "few cells": {"n_cells": 1800},
}


def rows(n=N, seed=0):
    """Labels, probabilities, weights and groups."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.8, n)
    y = (rng.random(n) < p**1.3).astype(np.int64)
    return y, p, rng.integers(0, 4, n) / 4, rng.integers(0, 60, n)


def vectors(n=N, k=4, seed=0):
    """Labels and class vectors."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n)


def cuts(sizes, n=N):
    """A chunking of n rows by sizes, with all remaining rows in one more chunk."""
    ends = np.minimum(np.cumsum([0, *sizes]), n)
    return (tuple(int(x) for x in np.diff([*ends, n])),)


def without_sizes(array):
    """The same blocks, with numbers of rows that are unknown before they are computed."""
    array = array.map_blocks(lambda x: x)
    array._chunks = ((float("nan"),) * array.numblocks[0], *array.chunks[1:])
    return array


chunkings = st.lists(st.integers(0, 400), max_size=5).map(cuts)


@settings(max_examples=12)
@given(first=chunkings, second=chunkings, third=chunkings, name=st.sampled_from(list(OPTIONS)))
def test_any_chunking_gives_the_same_bits(first, second, third, name):
    y, p, w, _ = rows()
    y_dask = da.from_array(y, chunks=first)
    p_dask = da.from_array(p, chunks=second)
    w_dask = da.from_array(w, chunks=third)
    state = from_dask(y_dask, p_dask, sample_weight=w_dask, **OPTIONS[name])
    once = Accumulator(**OPTIONS[name]).update(y, p, w)
    assert state == once
    assert fastece.ece(state) == fastece.ece(once)
    assert state.n == (w > 0).sum()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("other", [cuts([300, 300]), cuts([100])])
def test_blocks_of_unknown_sizes_give_the_same_bits(name, other):
    y, p, *_ = rows()
    y_dask = without_sizes(da.from_array(y, chunks=cuts([300, 300])))
    p_dask = without_sizes(da.from_array(p, chunks=other))
    assert from_dask(y_dask, p_dask, **OPTIONS[name]) == Accumulator(**OPTIONS[name]).update(y, p)
    # The sizes of one array are known, the sizes of the other are not.
    y_dask = da.from_array(y, chunks=other)
    assert from_dask(y_dask, p_dask, **OPTIONS[name]) == Accumulator(**OPTIONS[name]).update(y, p)


def test_many_blocks_are_added_in_several_rounds():
    y, p, *_ = rows()
    state = from_dask(da.from_array(y, chunks=10), da.from_array(p, chunks=10), **REPLICATES)
    assert state == Accumulator(**REPLICATES).update(y, p)


@pytest.mark.parametrize("name", ["few cells", "replicates"])
def test_columns_of_frames_give_the_same_bits(name):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    y, p, w, g = rows()
    options = OPTIONS[name]
    frame = dd.from_pandas(pd.DataFrame({"y": y, "p": p, "w": w, "g": g}), npartitions=5)
    frame = frame[frame.w > 0]  # after this the sizes of partitions are unknown
    y, p, w, g = (x[w > 0] for x in (y, p, w, g))
    state = from_dask(frame.y, frame.p, sample_weight=frame.w, **options)
    assert state == Accumulator(**options).update(y, p, w)
    if name == "replicates":
        state = from_dask(frame.y, frame.p, groups=frame.g, **options)
        assert state == Accumulator(**options).update(y, p, groups=g)
        state = from_dask(frame.y, frame.p, groups="patient " + frame.g.astype(str), **options)
        names = [f"patient {i}" for i in g]
        assert state == Accumulator(**options).update(y, p, groups=names)


@pytest.mark.parametrize("setting", ["confidence", "classwise", 2])
def test_class_vectors_give_the_same_bits(setting):
    y, p = vectors()
    options = {"n_classes": 4, "setting": setting, "n_cells": 1800}
    once = Accumulator(**options).update(y, p)
    y_dask = da.from_array(y, chunks=170)
    p_dask = da.from_array(p, chunks=(300, 3))
    assert from_dask(y_dask, p_dask, **options) == once
    assert from_dask(y_dask, without_sizes(p_dask.rechunk({1: 4})), **options) == once


def test_class_vectors_may_be_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    y, p = vectors(k=3)
    frame = dd.from_pandas(pd.DataFrame(p, columns=["a", "b", "c"]).assign(y=y), npartitions=4)
    once = Accumulator(3).update(y, p)
    assert from_dask(frame.y, frame[["a", "b", "c"]], n_classes=3) == once
    # Columns may be nullable, and have another number of partitions.
    labels = frame.y.astype("Int64").repartition(npartitions=3)
    assert from_dask(labels, frame[["a", "b", "c"]].astype("Float64"), n_classes=3) == once


def test_labels_and_probabilities_of_one_task_are_made_once():
    made = []

    def block(number):
        made.append(int(number[0]))
        return np.stack(rows(100, seed=made[-1])[:2])

    dask = pytest.importorskip("dask")
    numbers = da.arange(3, chunks=1)
    chunks = ((2,), (100,) * 3)
    both = da.map_blocks(block, numbers, new_axis=0, chunks=chunks, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        assert from_dask(both[0], both[1]).n == 300
    assert sorted(made) == [0, 1, 2]


def batches(size=130, n_columns=2):
    """Batches of the rows, one of them empty."""
    columns = rows()[:n_columns]
    yield tuple(x[:0] for x in columns)
    for start in range(0, N, size):
        yield tuple(x[start : start + size] for x in columns)


@pytest.mark.parametrize(
    ("name", "n_columns"), [("plain", 2), ("plain", 3), ("replicates", 3), ("replicates", 4)]
)
def test_a_pool_of_threads_gives_the_same_bits(name, n_columns):
    options = OPTIONS[name]
    y, p, w, g = (*rows()[:n_columns], None, None)[:4]
    once = Accumulator(**options).update(y, p, w, groups=g)
    assert from_batches(batches(n_columns=n_columns), **options) == once
    with ThreadPoolExecutor(3) as pool:
        assert from_batches(batches(7, n_columns), executor=pool, **options) == once
        assert from_batches(batches(500, n_columns), executor=pool, **options) == once
    assert from_batches([], **options) == Accumulator(**options)


@pytest.mark.slow
def test_a_pool_of_processes_gives_the_same_bits():
    y, p, *_ = rows()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        state = from_batches(batches(), executor=pool, **REPLICATES)
    assert state == Accumulator(**REPLICATES).update(y, p)


class LazyExecutor:
    """An executor that runs its work when the result is asked for, and counts waiting calls."""

    def __init__(self):
        self.waiting = 0
        self.max_waiting = 0

    def submit(self, function, *args):
        self.waiting += 1
        self.max_waiting = max(self.max_waiting, self.waiting)
        future = Future()

        def result():
            self.waiting -= 1
            return function(*args)

        future.result = result
        return future


def test_a_bounded_number_of_batches_waits():
    pool = LazyExecutor()
    y, p, *_ = rows()
    assert from_batches(batches(2), executor=pool) == Accumulator().update(y, p)
    assert pool.waiting == 0
    assert 1 < pool.max_waiting <= 2 * os.cpu_count()


def test_a_bad_row_is_named_with_its_block():
    y, p, *_ = rows()
    p[777] = 1.5
    y_dask, p_dask = (da.from_array(x, chunks=100) for x in (y, p))
    with pytest.raises(ValueError, match=r"y_prob.*\[0, 1\]") as error:
        from_dask(y_dask, p_dask)
    assert error.value.__notes__ == ["in block 7"]
    parts = [(y[i : i + 100], p[i : i + 100]) for i in range(0, N, 100)]
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match=r"\[0, 1\]") as error:
        from_batches(parts, executor=pool)
    assert error.value.__notes__ == ["in batch 7"]


def test_arrays_of_numpy_are_refused():
    y, p, *_ = rows()
    with pytest.raises(TypeError, match="y_true: must be a dask array, series or frame, got nd"):
        from_dask(y, da.from_array(p))
    with pytest.raises(TypeError, match="sample_weight: must be a dask array"):
        from_dask(da.from_array(y), da.from_array(p), sample_weight=[1.0] * N)


def test_different_numbers_of_rows_are_refused():
    y, p, *_ = rows()
    with pytest.raises(ValueError, match=r"y_true, y_prob: must .* rows, got \[999, 1000\]"):
        from_dask(da.from_array(y[1:]), da.from_array(p))
    # With unknown sizes and replicates the rows of blocks are counted first.
    y_dask, p_dask = (without_sizes(da.from_array(x, chunks=500)) for x in (y[1:], p))
    with pytest.raises(ValueError, match=r"rows, got \[999, 1000\]"):
        from_dask(y_dask, p_dask, **REPLICATES)
    with pytest.raises(ValueError):  # without replicates only `update` notices the difference
        from_dask(y_dask, p_dask)


@pytest.mark.parametrize("batch", [([0, 1],), ([0, 1], [0.2, 0.6], None, None, "more")])
def test_a_batch_has_two_to_four_parts(batch):
    with pytest.raises(ValueError, match=r"batches: must be tuples.*batches\[1\] is 'a tuple of"):
        from_batches([([0, 1], [0.2, 0.6]), batch])


def test_wrong_options_are_refused_before_any_work():
    def block(_):
        raise AssertionError("a worker was asked")

    y, p, *_ = (da.from_array(x).map_blocks(block, dtype=x.dtype) for x in rows())
    with pytest.raises(ValueError, match="seed"):
        from_dask(y, p, n_replicates=3)
    with pytest.raises(TypeError, match="n_cell"):
        from_dask(y, p, n_cell=3)


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(client, tmp_path):
    died = tmp_path / "died"
    n_blocks = 24
    rows_of_block = 500
    deadly_block = 17

    def make(i):
        import os
        import signal
        import time

        import numpy as np

        time.sleep(0.02)
        if i == deadly_block and not died.exists():
            died.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        rng = np.random.default_rng(i)
        p = rng.random(rows_of_block)
        return np.stack([rng.random(rows_of_block) < p, p])

    dask = pytest.importorskip("dask")
    workers = set(client.run(os.getpid).values())
    tasks = [dask.delayed(make)(i) for i in range(n_blocks)]
    both = [da.from_delayed(task, (2, rows_of_block), float) for task in tasks]
    y, p = (da.concatenate([b[j] for b in both]) for j in range(2))
    state = from_dask(y, p, **REPLICATES)
    assert int(died.read_text()) in workers  # a worker did end
    once = Accumulator(**REPLICATES)
    for i in range(n_blocks):
        once.update(*make(i))
    assert state == once
    assert state.n == n_blocks * rows_of_block
    assert fastece.ece(state) == fastece.ece(once)


@pytest.mark.parametrize("options", [{"pos_label": "yes"}, {"labels": ["no", "yes"]}], ids=str)
def test_labels_of_dask_may_be_texts(options):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = rng.random(600) < p
    texts = da.from_array(np.where(y, "yes", "no"), chunks=200)
    state = from_dask(texts, da.from_array(p, chunks=250), **options)
    assert state == Accumulator().update(y, p)
