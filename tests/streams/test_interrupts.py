"""Interrupted at any moment, a state is as before or as after, and everything can be done again."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import fastece
from fastece import Accumulator
from fastece.streams.metric import CalibrationMetric
from fastece.study import run_study
from helpers import study_cases
from helpers.faults import interrupt_after, interrupt_at_line, moments, seconds_of
from helpers.kernel_forms import PLAIN
from helpers.stream_cases import binary_data, class_data, weights_of
from helpers.study_cases import PICTURES, TABLES

pytestmark = [
    pytest.mark.skipif(PLAIN, reason="a kernel that is not compiled can be interrupted"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="sends a signal"),
]
FILES = TABLES + PICTURES
N = 600
KEY = {"n_replicates": 33, "seed": 3}
CLASSES = {"n_classes": 5}
CASES = {
    "binary": {},
    "weights": {},
    "replicates": KEY,
    "groups": KEY,
    "vectors": CLASSES,
    "class-wise": {**CLASSES, "setting": "classwise"},
    "class-wise replicates": {**CLASSES, "setting": "classwise", **KEY},
}


@cache
def batch(case, seed):
    """Rows as `update` takes them."""
    y, p = class_data(N, seed=seed) if "n_classes" in CASES[case] else binary_data("sharp", N, seed)
    weight = weights_of("random", N) if case == "weights" else None
    return y, p, weight, None, y % 7 if case == "groups" else None


def new(case, *seeds):
    """A state of some batches that was asked before, or of none."""
    state = Accumulator(**CASES[case], n_cells=90)
    for seed in seeds:
        state.update(*batch(case, seed))
    return state


def add(state, case):
    state.update(*batch(case, 2))


def merge(state, case):
    other = Accumulator(**CASES[case], n_cells=90)
    y, p, weight, _, groups = batch(case, 2)
    state.merge(other.update(y, p, weight, N, groups))


def load(state, case):
    state.load_state_dict(saved(case))


def reset(state, _):
    state.reset()


@cache
def saved(case):
    return new(case, 2).state_dict()


ACTIONS = {"update": add, "merge": merge, "load_state_dict": load, "reset": reset}


def snapshot(state, case):
    """The sums of a state, its answer, and the sums after the next rows."""
    sums = {name: array.tobytes() for name, array in state.state_dict().items()}
    after = state.copy().update(*batch(case, 3)).state_dict()
    value = fastece.ece(state) if state.n else None
    return value, sums, {name: array.tobytes() for name, array in after.items()}


def assert_whole(state, case, action, before, after):
    """It is as before, and then another try leads to where it should, or as after."""
    now = snapshot(state, case)
    assert now in (before, after)
    if now == before:
        ACTIONS[action](state, case)
        assert snapshot(state, case) == after


def ends(case, action):
    """Snapshots of a state before and after an action."""
    state = new(case, 1)
    before = snapshot(state, case)
    ACTIONS[action](state, case)
    return before, snapshot(state, case)


CHANGES = [(case, "update") for case in CASES]
CHANGES += [(case, action) for case in ("binary", "replicates") for action in list(ACTIONS)[1:]]
# Each action, on states of different kinds.
AT_EACH_LINE = [("binary", action) for action in ACTIONS] + [("class-wise replicates", "update")]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "action"), AT_EACH_LINE)
def test_an_interrupt_at_any_line_leaves_the_state_before_or_after(case, action):
    before, after = ends(case, action)
    first = new(case, 1)
    fastece.ece(first)
    for last in range(1, 10_000):
        state = first.copy()
        fastece.ece(state)
        with interrupt_at_line(last) as raised:
            ACTIONS[action](state, case)
        assert_whole(state, case, action, before, after)
        if not raised:
            break
    assert last > 3


@pytest.mark.parametrize(
    ("case", "action"),
    [("binary", "merge"), *(pytest.param(*x, marks=pytest.mark.slow) for x in CHANGES)],
)
def test_a_signal_leaves_the_state_before_or_after(case, action):
    """The same by a real signal, at random moments."""
    before, after = ends(case, action)
    first = new(case, 1)
    seconds = seconds_of(lambda: ACTIONS[action](first.copy(), case))
    for moment in moments(seconds, 30):
        state = first.copy()
        fastece.ece(state)
        interrupt_after(moment, partial(ACTIONS[action], state, case))
        assert_whole(state, case, action, before, after)


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_a_metric_is_interrupted(count):
    y, p = class_data(N)
    metrics = [CalibrationMetric(5, n_bins=10, n_cells=90) for _ in range(3)]
    for metric, batches in zip(metrics, (1, 2, 3), strict=True):
        for _ in range(batches):
            metric.update(p, y)
    before = metrics[1]
    after = metrics[2]

    def again(metric):
        metric.reset()
        for _ in range(2):
            metric.update(p, y)
        metric.merge(metrics[0])

    metric = CalibrationMetric(5, n_bins=10, n_cells=90)
    seen = set()
    for moment in moments(seconds_of(lambda: again(metric)), count):
        interrupt_after(moment, partial(again, metric))
        seen.add(metric.accumulator.n)
        expected = {0: None, N: metrics[0], 2 * N: before, 3 * N: after}[metric.accumulator.n]
        if expected is not None:
            assert metric.accumulator == expected.accumulator
            assert metric.compute() == expected.compute()
    assert len(seen) > 1


# An interrupt within a callback of the pool is reported and lost, so that the call goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("count", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_a_bootstrap_is_interrupted(count):
    y, p = binary_data("sharp", 20_000)

    def values(n_jobs=2):
        options = {"n_resamples": 600, "rng": 3, "n_jobs": n_jobs}
        return fastece.bootstrap(y, p, estimator="ece_a", **options).bootstrap_distribution

    def begun():
        """Threads; one that an interrupt kept from beginning stays in the library's list."""
        return {thread for thread in threading.enumerate() if thread.ident is not None}

    expected = values()
    threads = begun()
    for moment in moments(seconds_of(values, 3), count):
        interrupt_after(moment, values)
    assert np.array_equal(values(), expected)
    assert np.array_equal(values(1), expected)
    end = time.monotonic() + 20
    while (left := begun() - threads) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


FEW = replace(study_cases.SINGLE, mixtures=2, n_sizes=1, draws=2, settings=("confidence",))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files left open
def test_a_study_is_interrupted(tmp_path, monkeypatch):
    study_cases.with_quick_figures(monkeypatch.setattr)
    run_study(FEW, tmp_path / "first")  # compiles
    begun = time.perf_counter()
    run_study(FEW, tmp_path / "whole")
    seconds = time.perf_counter() - begun
    for i, moment in enumerate(moments(seconds, 5)):
        folder = tmp_path / f"study {i}"
        interrupt_after(moment, partial(run_study, FEW, folder))
        run_study(FEW, folder)
        study_cases.assert_same_files(folder, tmp_path / "whole", FILES)


def add_on_threads(state, offsets):
    """Add batches of 50 rows on eight threads that begin together."""
    y, p = binary_data("sharp", 50)
    barrier = threading.Barrier(8)

    def work(k):
        barrier.wait()
        for offset in offsets[k::8]:
            state.update(y, p, row_offset=offset)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    return state


@pytest.mark.parametrize("is_given", [True, False])
def test_threads_share_a_state(is_given):
    options = {**KEY, "n_cells": 90}
    offsets = [50 * i for i in range(400)]
    state = add_on_threads(Accumulator(**options), offsets if is_given else [None] * 400)
    y, p = binary_data("sharp", 50)
    one = Accumulator(**options).update(np.tile(y, 400), np.tile(p, 400))
    assert state == one  # each row number once, whoever took it
    assert Accumulator(**options).load_state_dict(state.state_dict()) == one


def test_threads_merge_each_other_without_an_end_of_waiting():
    y, p = binary_data("sharp", 50)
    a, b = (Accumulator(n_cells=90).update(y, p) for _ in range(2))

    def work(one, other):
        for _ in range(8):
            one.merge(other)

    pairs = ((a, b), (b, a))
    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert a.n % 50 == 0
