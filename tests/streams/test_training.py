"""A metric of training loops: the error of all rows since the last reset, on any tensor."""

import copy
import pickle
import sys
import tracemalloc
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fastece
from fastece.streams import CalibrationMetric
from helpers.processes import run_two

N = 600
CHOICES = [
    {},
    {"n_bins": 10},
    {"estimator": "ece_c", "norm": 2},
    {"estimator": fastece.Binned(n_bins=20, norm=np.inf)},
    {"estimator": "brier_score"},
]


def rows(n=N, seed=0):
    """Predictions and targets."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.8, n)
    return p, (rng.random(n) < p**1.3).astype(np.int64)


def vectors(n=N, k=5, seed=0):
    """Class vectors and targets."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)


def halves(*arrays):
    return [[x[: N // 3] for x in arrays], [x[N // 3 :] for x in arrays]]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_metric_is_the_error_of_all_rows(choice):
    p, y = rows()
    metric = CalibrationMetric(**choice)
    for batch in halves(p, y):
        metric.update(*batch)
    assert metric.compute() == pytest.approx(fastece.ece(y, p, **choice), abs=1e-12)
    assert isinstance(metric.compute(), float)


@pytest.mark.parametrize("setting", ["auto", "classwise", 3])
def test_class_vectors_equal_ece_in_every_setting(setting):
    p, y = vectors()
    metric = CalibrationMetric(5, setting=setting)
    for batch in halves(p, y):
        metric.update(*batch)
    assert metric.compute() == pytest.approx(fastece.ece(y, p, setting=setting), abs=1e-12)


def test_a_call_gives_the_value_of_the_batch_and_counts_it():
    p, y = rows()
    metric = CalibrationMetric(n_replicates=32, seed=1)
    for preds, target in halves(p, y):
        assert metric(preds, target) == pytest.approx(fastece.ece(target, preds), abs=1e-12)
    assert metric.compute() == pytest.approx(fastece.ece(y, p), abs=1e-12)
    once = CalibrationMetric(n_replicates=32, seed=1)
    once.update(p, y)
    assert metric.accumulator == once.accumulator


def test_a_call_with_many_classes_copies_no_state():
    p, y = vectors()
    metric = CalibrationMetric(5, setting="classwise")
    metric(p, y)
    tracemalloc.start()
    assert metric(p, y) == pytest.approx(fastece.sce(y, p), abs=1e-12)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < metric.accumulator.nbytes / 4


def test_reset_forgets():
    metric = CalibrationMetric()
    metric.update(*rows(seed=1))
    metric.reset()
    for compute in (metric.compute, lambda: metric([], [])):
        with pytest.warns(UserWarning, match="compute before any update is nan"):
            assert np.isnan(compute())
    metric.update(*rows())
    p, y = rows()
    assert metric.compute() == pytest.approx(fastece.ece(y, p), abs=1e-12)


def test_a_bad_batch_counts_nothing():
    p, y = rows()
    metric = CalibrationMetric()
    metric.update(p, y)
    before = copy.deepcopy(metric)
    for method in (metric.update, metric):
        with pytest.raises(ValueError, match=r"y_prob.*\[0, 1\]"):
            method([0.2, 1.5], [0, 1])
    assert metric.accumulator == before.accumulator


def test_merged_pickled_and_summed_metrics_equal_one_metric_of_all_rows():
    p, y = rows()
    metric = CalibrationMetric()
    metric.update(p, y)
    first = CalibrationMetric()
    second = CalibrationMetric()
    for half, batch in zip((first, second), halves(p, y), strict=True):
        half.update(*batch)
    states = [first.state_dict(), second.state_dict()]
    assert first.merge(second) is first
    for other in (
        first,
        pickle.loads(pickle.dumps(metric)),
        CalibrationMetric().load_state_dict(metric.state_dict()),
        CalibrationMetric().load_state_dict({k: states[0][k] + states[1][k] for k in states[0]}),
    ):
        assert other.accumulator == metric.accumulator
        assert other.compute() == metric.compute()
    with pytest.raises(TypeError, match="other: must be a CalibrationMetric, got Accumulator"):
        metric.merge(first.accumulator)
    with pytest.raises(ValueError, match="other: must be another one, as its own rows"):
        metric.merge(metric)
    assert metric.accumulator.n == len(y)


@pytest.mark.parametrize(
    ("dtype", "is_vector"),
    [("float64", True), ("float32", False), ("float16", True), ("bfloat16", False)],
)
def test_tensors_of_any_float_type_equal_ece(dtype, is_vector):
    torch = pytest.importorskip("torch")
    p, y = vectors() if is_vector else rows()
    preds = torch.tensor(p).to(getattr(torch, dtype)).requires_grad_()
    target = torch.tensor(y)
    metric = CalibrationMetric(5 if is_vector else None)
    for batch in halves(preds, target):
        metric.update(*batch)
    error = fastece.ece(target, preds)
    assert metric.compute() == pytest.approx(error, abs=1e-12)
    assert error == pytest.approx(fastece.ece(y, p), abs=0.03)
    assert preds.grad is None
    assert preds.requires_grad


PROCESS = """
import copy
import torch
from torch import distributed
import fastece
from fastece.streams import CalibrationMetric

distributed.init_process_group("gloo")
rank = distributed.get_rank()
generator = torch.Generator().manual_seed(rank)
preds = torch.rand(500 + rank, generator=generator)
target = (torch.rand(len(preds), generator=generator) < preds).int()
metric = CalibrationMetric(n_replicates=32, seed=1)
metric.update(preds, target, row_offset=500 * rank)
assert copy.deepcopy(metric).sync().accumulator.n == 1001
assert metric.accumulator.n == len(preds)
assert metric.sync() is metric
loaded = CalibrationMetric(n_replicates=32, seed=1).load_state_dict(metric.state_dict())
for method in (metric.sync, lambda: metric.update(preds, target), loaded.sync):
    try:
        method()
    except RuntimeError as error:
        assert "all processes" in str(error)
    else:
        raise AssertionError("counted twice")
low, high = fastece.bootstrap(metric.accumulator).interval()
print(metric.compute().hex(), metric.accumulator.n, low.hex(), high.hex())
metric.reset()
metric.update(preds, target)
distributed.destroy_process_group()
"""


def test_a_sum_of_processes_takes_no_more_rows_and_neither_does_its_checkpoint():
    metric = CalibrationMetric()
    metric.update(*rows())
    is_sum = np.ones(1, np.int64)  # `sync` leaves this in the state
    metric.load_state_dict({**metric.state_dict(), "is_sum": is_sum})
    state = metric.state_dict()
    saved = CalibrationMetric().load_state_dict(state)
    read = fastece.Accumulator().load_state_dict(state)
    for held in (metric, saved, copy.deepcopy(saved), pickle.loads(pickle.dumps(saved))):
        assert held.compute() == fastece.ece(read)
        other = CalibrationMetric()
        for action in (
            lambda held=held: held.update(*rows()),
            lambda held=held, other=other: held.merge(other),
            lambda held=held, other=other: other.merge(held),
            lambda held=held: sum([held.accumulator, held.accumulator]),
        ):
            with pytest.raises(RuntimeError, match="rows of all processes"):
                action()
        assert held.accumulator == read
        assert other.accumulator.n == 0
        assert "is_sum" not in other.state_dict()
    with pytest.raises(ValueError, match="one sum over all processes"):
        saved.load_state_dict({name: 2 * array for name, array in state.items()})
    saved.reset()
    saved.update(*rows())
    assert saved.accumulator == read
    assert "is_sum" not in saved.state_dict()


class Tensor:
    """The part of a tensor that `sync` needs."""

    def __init__(self, values, device):
        self.values = values.copy()
        assert device == "cpu"

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def test_sync_leaves_a_sum_of_processes(monkeypatch):
    def all_reduce(tensor, group):
        assert group is None
        tensor.values *= 2  # of two processes with the same rows

    torch = ModuleType("torch")
    torch.tensor = Tensor
    torch.from_numpy = np.asarray
    torch.distributed = SimpleNamespace(
        is_initialized=lambda: True, get_backend=lambda _: "gloo", all_reduce=all_reduce
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    metric = CalibrationMetric()
    metric.update(*rows())
    assert metric.sync() is metric
    resumed = CalibrationMetric().load_state_dict(metric.state_dict())
    for held in (metric, resumed):
        assert held.accumulator.n == 2 * N
        for action in (held.sync, lambda held=held: held.update(*rows())):
            with pytest.raises(RuntimeError, match="rows of all processes"):
                action()
        assert held.accumulator.n == 2 * N


@pytest.mark.slow
def test_processes_add_up(tmp_path):
    torch = pytest.importorskip("torch")
    first, second = run_two(PROCESS, tmp_path)
    assert first == second
    metric = CalibrationMetric(n_replicates=32, seed=1)
    for rank in range(2):
        generator = torch.Generator().manual_seed(rank)
        preds = torch.rand(500 + rank, generator=generator)
        metric.update(preds, (torch.rand(len(preds), generator=generator) < preds).int())
    low, high = fastece.bootstrap(metric.accumulator).interval()
    assert first == f"{metric.compute().hex()} 1001 {low.hex()} {high.hex()}"


def test_sync_without_processes_is_refused():
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="init_process_group"):
        CalibrationMetric().sync()
