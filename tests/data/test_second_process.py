"""Kernels are compiled in a second process too: where that is safe, and never elsewhere."""

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fastece
from fastece.data import second_process
from fastece.data.second_process import ONE_PROCESS, WORKER_OF_TESTS, compile_beside
from fastece.kernels import cache
from fastece.kernels.progress import progress

# A killed process is gone at once; a busy machine takes longer.
SECONDS_TO_END = 30.0


def wait_forever():
    """What a second process does that is to be ended."""
    time.sleep(600)


@pytest.fixture
def codes(monkeypatch, tmp_path):
    """The code of each process that is started, where everything allows one."""
    started = []

    def start_nothing(code):
        started.append(code)
        return subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)

    for variable in (ONE_PROCESS, WORKER_OF_TESTS):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(second_process, "processors", lambda: 2)
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(cache, "FAILURES", [])
    monkeypatch.setattr(second_process, "start_python", start_nothing)
    return started


def compile_a_kernel():
    """Do what a kernel does that has to be compiled."""
    progress.begin("kernel")
    progress.end()


def test_a_process_starts_with_the_first_kernel_and_once(codes, tmp_path):
    with compile_beside(wait_forever, lambda: (1, "two", (math.inf,))):
        assert codes == []
        compile_a_kernel()
        compile_a_kernel()
        assert len(codes) == 1
    compile_a_kernel()
    (code,) = codes
    assert f"follow({str(tmp_path)!r})" in code
    assert f"from {__name__} import wait_forever" in code
    assert "from math import inf" in code
    assert "wait_forever(*(1, 'two', (inf,)))" in code


def test_no_process_starts_where_all_kernels_are_at_hand(codes):
    y = [0, 1, 1, 0]
    p = [0.1, 0.6, 0.8, 0.4]
    fastece.ece(y, p)
    with compile_beside(wait_forever):
        fastece.ece(y, p)
    assert codes == []


REFUSALS = {
    "switched off": lambda patch: patch.setenv(ONE_PROCESS, "1"),
    "worker of tests": lambda patch: patch.setenv(WORKER_OF_TESTS, "gw0"),
    "worker": lambda patch: patch.setattr(multiprocessing, "parent_process", object),
    "one processor": lambda patch: patch.setattr(second_process, "processors", lambda: 1),
    "frozen": lambda patch: patch.setattr(sys, "frozen", True, raising=False),
    "embedded": lambda patch: patch.setattr(sys, "executable", "/opt/blender"),
    "no executable": lambda patch: patch.setattr(sys, "executable", None),
    "nothing compiled": lambda patch: patch.setattr(cache, "CACHE_DIRECTORY", None),
    "nothing kept": lambda patch: patch.setattr(cache, "FAILURES", ["no space"]),
    "read only": lambda patch: patch.setattr(os, "access", lambda *_: False),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_no_process_starts_where_it_is_unsafe_or_of_no_use(codes, monkeypatch, reason):
    REFUSALS[reason](monkeypatch)
    with compile_beside(wait_forever):
        compile_a_kernel()
    assert codes == []


def test_calls_inside_of_calls_share_one_process(codes):
    with compile_beside(wait_forever):
        with compile_beside(wait_forever):
            compile_a_kernel()
        compile_a_kernel()
    assert len(codes) == 1
    with compile_beside(wait_forever):
        compile_a_kernel()
    assert len(codes) == 2


def test_a_process_that_cannot_start_is_done_without(codes, monkeypatch):
    def refuse(code):
        codes.append(code)
        raise PermissionError(code)

    monkeypatch.setattr(second_process, "start_python", refuse)
    for count in (1, 2):
        with compile_beside(wait_forever):
            compile_a_kernel()
        assert len(codes) == count


# --- processes that are started -------------------------------------------------------------


def note_processes(monkeypatch):
    """Return the list of the processes that are started from now on."""
    processes = []
    start_python = second_process.start_python

    def note(code):
        processes.append(start_python(code))
        return processes[-1]

    monkeypatch.setattr(second_process, "start_python", note)
    return processes


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_the_process_ends_with_the_block(monkeypatch, tmp_path, error):
    monkeypatch.setattr(second_process, "is_worth_a_process", lambda: True)
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(second_process, "CODE", "import time; time.sleep(600)")
    processes = note_processes(monkeypatch)
    try:
        with compile_beside(wait_forever):
            compile_a_kernel()
            assert processes[0].poll() is None
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert processes[0].returncode is not None
    assert processes[0].stdin.closed


STARTER = """
import os, signal, sys
from fastece.data.second_process import start_python
code = "from fastece.data.second_process import end_with_input; from threading import Thread;"
code += "Thread(target=end_with_input, daemon=True).start(); import time; time.sleep(600)"
print(start_python(code).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_the_process_ends_when_its_starter_is_killed():
    done = run_python(STARTER)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    end = time.monotonic() + SECONDS_TO_END
    while is_running(pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(pid):
    """Return whether a process is there, and not only the number of one that has ended."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


FOLLOWER = """
from fastece.data import second_process
from fastece.kernels import cache
second_process.end_with_input = lambda: None
second_process.follow({})
print("goes on")
"""


@pytest.mark.parametrize(
    ("directory", "output"), [("cache.CACHE_DIRECTORY", "goes on\n"), ("'elsewhere'", "")]
)
def test_a_process_whose_kernels_nobody_reads_ends_at_once(tmp_path, directory, output):
    done = run_python(FOLLOWER.format(directory), FASTECE_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def run_python(code, **changes):
    """Run code in a new process, which is no worker of tests, without coverage."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment.pop(WORKER_OF_TESTS, None)
    environment["NUMBA_DISABLE_JIT"] = "0"
    environment["PYTHONPATH"] = str(Path(fastece.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment | changes, capture_output=True, text=True, check=False,
    )  # fmt: skip


# Makes a call and prints its result with the number of second processes, and of kernels compiled
# here.
FIRST_CALL = """
import json
import numpy as np
import fastece
from fastece.data import second_process
from fastece.kernels.compiling import KERNELS
second_process.processors = lambda: 2
n_started = 0
start_python = second_process.start_python
def count(code):
    global n_started
    n_started += 1
    return start_python(code)
second_process.start_python = count
p = np.random.default_rng(0).random(300)
result = fastece.{}((p > 0.4).astype(int), p, n_resamples=99, rng=0)
n_compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)
print(json.dumps([n_started, n_compiled, str(result)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("function", ["calibration_report", "estimate", "bootstrap"])
def test_a_first_call_is_compiled_by_two_processes_and_is_the_same(tmp_path, function):
    code = FIRST_CALL.format(function)

    def run(folder, **changes):
        done = run_python(
            code, FASTECE_CACHE_DIR=str(tmp_path / folder), FASTECE_QUIET="", **changes
        )
        assert done.returncode == 0, done.stderr
        assert "compiling once" in done.stderr or not json.loads(done.stdout)[1]
        return json.loads(done.stdout)

    n_started, n_compiled, result = run("two")
    n_started_alone, n_compiled_alone, result_alone = run("one", **{ONE_PROCESS: "1"})
    assert (n_started, n_started_alone) == (1, 0)
    assert n_compiled < n_compiled_alone
    assert result == result_alone
    assert run("two")[:2] == [0, 0]
    assert run("two")[2] == result


# Does the work of the second process, and then makes the report.
BACKWARDS = """
import numpy as np
import fastece
from fastece.kernels.compiling import KERNELS
from fastece.report import ahead
def count():
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)
p = np.random.default_rng(0).dirichlet(np.ones(3), 300).astype("f4")
y = np.arange(300) % 3
names = tuple(ahead.ERRORS)
for data in ((y, p), (y // 2, p[:, 0])):
    is_matrix = data[1].ndim == 2
    ahead.compile_report(is_matrix, "<f4", names, is_full=True, has_all_vectors=True)
    n_before = count()
    fastece.calibration_report(*data, n_resamples=99)
    print(n_before > 0, count() - n_before)
"""


@pytest.mark.slow
def test_the_second_process_can_compile_all_that_a_report_needs(tmp_path):
    done = run_python(BACKWARDS, FASTECE_CACHE_DIR=str(tmp_path), **{ONE_PROCESS: "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True 0", "True 0"]
