"""The same bits from threads, processes and a cluster of workers, and an end when asked for one."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from threading import Timer

import numpy as np
import pytest

import fastece
from fastece import Binned
from fastece.estimators.table import ESTIMATORS
from fastece.resampling import engine
from helpers.probes import Broken, Code, Process

N = 500
COUNT = 1500
NAMES = [name for name, estimator in ESTIMATORS.items() if isinstance(estimator, Binned)]

BASIC = {"estimator": "ece", "method": "basic"}


def data(n=N, seed=0):
    """(y_true, y_prob_a, y_prob_b) of three classes."""
    rng = np.random.default_rng(seed)
    a = rng.random((n, 3)) ** 2
    b = a + 0.2 * rng.random((n, 3))
    true = np.where(rng.random(n) < 0.6, a.argmax(axis=1), rng.integers(0, 3, n))
    return true, a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)


def everything(**how):
    """Name -> numbers: all that the three functions give, by `how` they are computed."""
    true, a, b = data()
    weight = np.random.default_rng(1).integers(0, 3, N)
    options = {"n_resamples": COUNT, "rng": 3, **how}
    each = {"setting": "classwise", "average": None, "estimator": NAMES[:2]}
    calls = {
        "all": fastece.bootstrap(true, a, estimator=NAMES, **options),
        "classes": fastece.bootstrap(true, a, **each, **options),
        "weights": fastece.bootstrap(
            true, a, estimator=["ece", "ece_ac"], sample_weight=weight, **options
        ),
        "small": fastece.bootstrap(true, a, estimator=["ece", "ece_a"], size=5, **options),
        "models": {"": fastece.compare(true, a, b, **options, **BASIC)},
        "bca": {"": fastece.bootstrap(true, a, method="bca", **options)},
    }
    numbers = {}
    for call, results in calls.items():
        for name, result in results.items():
            numbers[call, name] = result.bootstrap_distribution
            numbers[call, name, "interval"] = np.array(result.confidence_interval)
    hypothesis = fastece.calibration_test(true, a, **options)
    numbers["test"] = hypothesis.null_distribution
    numbers["band"] = np.array([hypothesis.band.low, hypothesis.band.high])
    return numbers


def assert_same_bits(found, want):
    assert list(found) == list(want)
    for name, values in want.items():
        assert np.array_equal(found[name], values, equal_nan=True), name


@pytest.fixture(scope="module")
def alone():
    """The numbers that one thread gives."""
    return everything()


def spawned(workers=2):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def processes():
    with spawned() as pool:
        yield pool


@pytest.mark.parametrize("n_jobs", [2, 7, -1])
def test_bits_are_equal_for_any_number_of_threads(alone, n_jobs):
    assert_same_bits(everything(n_jobs=n_jobs), alone)


@pytest.mark.slow
def test_bits_are_equal_for_a_pool_of_processes(alone, processes):
    assert_same_bits(everything(executor=processes), alone)


@pytest.mark.slow
def test_bits_are_equal_for_a_cluster(alone, client):
    assert_same_bits(everything(executor=client), alone)
    true, prob, _ = data()
    options = {"n_resamples": 40, "rng": 3}
    of_executor = fastece.bootstrap(true, prob, executor=client.get_executor(), **options)
    want = fastece.bootstrap(true, prob, **options).bootstrap_distribution
    assert np.array_equal(of_executor.bootstrap_distribution, want)


def test_concurrent_callers_get_equal_bits(alone):
    with ThreadPoolExecutor(4) as pool:
        for numbers in pool.map(lambda jobs: everything(n_jobs=jobs), [1, 2, 1, 2]):
            assert_same_bits(numbers, alone)


def test_executors_need_submit_alone_and_stay_open(alone):
    class Minimal:
        submitted = 0

        def submit(self, *args, **kwargs):
            self.submitted += 1
            return pool.submit(*args, **kwargs)

    with ThreadPoolExecutor(2) as pool:
        executor = Minimal()
        assert_same_bits(everything(executor=executor), alone)
        assert executor.submitted >= len(alone) // 2  # every call
        assert pool.submit(int, 3).result() == 3


@pytest.mark.slow
def test_processes_evaluate_estimators_of_users(processes):
    true, prob, _ = data(12)
    options = {"n_resamples": 70, "rng": 0}
    result = fastece.bootstrap(true, prob, estimator=Process(), executor=processes, **options)
    assert os.getpid() not in set(result.bootstrap_distribution)
    options["estimator"] = Code(13)
    for size in (None, 2):
        alone, spread = (
            fastece.bootstrap(true, prob, size=size, executor=executor, **options)
            for executor in (None, processes)
        )
        assert np.array_equal(alone.bootstrap_distribution, spread.bootstrap_distribution)
    alone, spread = (
        fastece.calibration_test(true, prob, executor=executor, **options)
        for executor in (None, processes)
    )
    assert np.array_equal(alone.null_distribution, spread.null_distribution)


@pytest.mark.slow
def test_workers_of_a_cluster_evaluate_estimators_of_users(client):
    true, prob, _ = data(12)
    workers = set(client.run(os.getpid).values())
    result = fastece.bootstrap(
        true, prob, estimator=Process(), n_resamples=70, rng=0, executor=client
    )
    assert os.getpid() not in workers
    assert set(result.bootstrap_distribution) <= workers


@pytest.mark.slow
def test_clusters_draw_anew_without_a_seed(client):
    # A cluster may keep results of calls it has seen.
    true, prob, _ = data()
    draws = [
        fastece.bootstrap(true, prob, n_resamples=40, executor=client).bootstrap_distribution
        for _ in range(2)
    ]
    assert not np.array_equal(*draws)


@pytest.mark.parametrize("call", [fastece.bootstrap, fastece.calibration_test, fastece.compare])
def test_executor_and_threads_exclude_each_other(call):
    arguments = data() if call is fastece.compare else data()[:2]
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match=r"executor.*n_jobs|n_jobs.*executor"),
    ):
        call(*arguments, n_resamples=40, executor=pool, n_jobs=2)


def test_errors_of_estimators_reach_the_caller(processes):
    true, prob, _ = data(40)
    options = {"estimator": Broken(), "n_resamples": 1000, "rng": 0}
    with ThreadPoolExecutor(2) as pool:
        for how in ({}, {"n_jobs": 2}, {"executor": pool}, {"executor": processes}):
            with pytest.raises(ZeroDivisionError, match="broken on purpose"):
                fastece.bootstrap(true, prob, **options, **how)
        assert fastece.bootstrap(true, prob, n_resamples=40, executor=pool).n == 40


def test_few_tasks_wait_at_a_time(monkeypatch):
    submitted = []
    waiting = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(super().submit(*args, **kwargs))
            waiting.append(sum(not future.done() for future in submitted))
            return submitted[-1]

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Counting)
    monkeypatch.setattr(engine, "TASK_ROWS", 2**18)
    true, prob, _ = data(2**13)
    result = fastece.bootstrap(true, prob, n_resamples=3200, rng=0, n_jobs=2)
    assert len(submitted) >= 100
    assert 2 <= max(waiting) <= 16
    again = fastece.bootstrap(true, prob, n_resamples=3200, rng=0, n_jobs=1)
    assert np.array_equal(result.bootstrap_distribution, again.bootstrap_distribution)


@pytest.mark.slow
def test_fewer_threads_give_the_same_bits(monkeypatch):
    pools = []

    class Noted(ThreadPoolExecutor):
        def __init__(self, workers):
            pools.append(workers)
            super().__init__(workers)

    true, prob, _ = data(2**14)
    options = {"n_resamples": 640, "rng": 0, "n_jobs": 6}
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Noted)
    on_six = fastece.bootstrap(true, prob, **options)
    monkeypatch.setattr(engine, "MAX_EXTRA_BYTES", 2**22)
    on_three = fastece.bootstrap(true, prob, **options)
    assert pools == [6, 3]
    assert np.array_equal(on_six.bootstrap_distribution, on_three.bootstrap_distribution)


INTERRUPTED = """
import signal, sys
import numpy as np
import fastece

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
rng = np.random.default_rng(0)
prob = rng.random(200_000)
true = rng.random(200_000) < prob
options = dict(estimator=sys.argv[1], n_jobs=int(sys.argv[2]), rng=0)
few = fastece.bootstrap(true, prob, n_resamples=64, **options)  # compiles
print("begins", flush=True)
try:
    fastece.bootstrap(true, prob, n_resamples=10**6, **options)
except KeyboardInterrupt:
    print("interrupted", flush=True)
again = fastece.bootstrap(true, prob, n_resamples=64, **options)
assert np.array_equal(few.bootstrap_distribution, again.bootstrap_distribution)
print("works still", flush=True)
raise KeyboardInterrupt
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize(("estimator", "n_jobs"), [("ece_ac", 2)])
def test_interrupts_stop_a_bootstrap_at_once(estimator, n_jobs):
    # Within half a second; three times that here, for a machine that is busy with other things.
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, estimator, str(n_jobs)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    alarm = Timer(120, child.kill)
    alarm.start()
    with child:
        try:
            assert child.stdout.readline() == "begins\n", child.stderr.read()
            time.sleep(0.7)
            start = time.perf_counter()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n", child.stderr.read()
            assert time.perf_counter() - start < 1.5
            output, errors = child.communicate()
            assert output == "works still\n", errors
            assert errors.rstrip().endswith("KeyboardInterrupt")
        finally:
            alarm.cancel()
            child.kill()


LATE = """
import sys, threading
import numpy as np
import fastece

prob = np.random.default_rng(0).random(30_000)
true = prob > 0.4
options = dict(n_resamples=999, rng=0)
if "later" in sys.argv:
    fastece.bootstrap(true, prob, **options, n_jobs=3)

def work():
    threading.main_thread().join()  # or all but ended
    found = [fastece.bootstrap(true, prob, **options, n_jobs=jobs) for jobs in (1, 3)]
    print(np.array_equal(*(result.bootstrap_distribution for result in found)))

threading.Thread(target=work).start()
"""


@pytest.mark.slow
@pytest.mark.parametrize("use", ["first", "later"])
def test_threads_may_begin_or_continue_after_the_main_thread(use):
    done = subprocess.run(
        [sys.executable, "-c", LATE, use], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


MEASURED = """
import resource
import numpy as np
import fastece

rng = np.random.default_rng(0)
prob = rng.random(300_000)
true = rng.random(300_000) < prob
fastece.bootstrap([0, 1], [0.1, 0.9], n_resamples=64)  # compiles
fastece.ece(true, prob)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fastece.bootstrap(true, prob, n_resamples=400, rng=0, n_jobs=2)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise elsewhere")
def test_memory_does_not_grow_with_the_number_of_replicates():
    # All multiplicities at once would be 120 MB, and 960 MB as integers.
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 100
