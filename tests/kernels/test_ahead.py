"""Kernels compiled by another process meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastece
from fastece.kernels import _jit, ahead

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks on files")
ROOT = Path(fastece.__file__).parents[1]
# A block that needs one kernel now and another one after the other process has compiled it.
BLOCK = """
import runpy, sys, time
import numpy as np
from pathlib import Path
from fastece.kernels import _jit, ahead, cache, quantiles, replicates

def later():
    for _ in range(3000):
        if list(Path(cache.CACHE_DIRECTORY).glob("quantiles.total_weight-*.nbc")):
            return True
        time.sleep(0.01)

told = []
ahead.processors = lambda: 2
_jit.WATCHERS.append(lambda name, count: told.append(name))
with ahead.compile_ahead(runpy.run_path, sys.argv[1]):
    replicates.zero(np.ones(3))
    print(later())
    quantiles.total_weight(np.ones(3))
print(told)
"""


OTHER = (
    "import numpy as np; from fastece.kernels import quantiles; quantiles.total_weight(np.ones(3))"
)


def run(code, folder, *arguments, **changes):
    """Standard output of a process that compiles."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": str(ROOT)}
    env |= {"FASTECE_CACHE_DIR": str(folder), "FASTECE_COMPILE_AHEAD": "1", **changes}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_another_process_has_compiled_is_not_compiled(tmp_path):
    script = tmp_path / "other.py"
    script.write_text(OTHER, encoding="utf-8")
    assert run(BLOCK, tmp_path / "cache", script) == "True\n['zero']\n"


def test_no_process_is_started_where_all_is_compiled_and_none_is_left(tmp_path):
    count = (
        "import os, subprocess; import numpy as np; from fastece.kernels import ahead, replicates;"
        "begun = []; popen = subprocess.Popen; ahead.processors = lambda: 2;"
        "subprocess.Popen = lambda *a, **k: (begun.append(popen(*a, **k)) or begun[-1])"
        " if '-P' in a[0] else popen(*a, **k)\n"
        "with ahead.compile_ahead(print, 1): replicates.zero(np.ones(3))\n"
        "print([process.returncode is not None for process in begun])"
    )
    assert run(count, tmp_path) == "[True]\n"
    assert run(count, tmp_path) == "[]\n"


def test_an_estimator_that_cannot_be_sent_goes_without_help(tmp_path):
    code = (
        "import numpy as np; from fastece.kernels import ahead, replicates;"
        "ahead.processors = lambda: 2\n"
        "with ahead.compile_ahead(lambda: None): replicates.zero(np.ones(3))\n"
        "print('fine')"
    )
    assert run(code, tmp_path) == "fine\n"


@pytest.fixture
def possible(monkeypatch):
    """A process that might be helped."""
    monkeypatch.setattr(ahead, "processors", lambda: 2)
    monkeypatch.setattr(ahead, "CACHE_DIRECTORY", "here")
    monkeypatch.setattr(ahead, "FAILURES", [])
    monkeypatch.setattr(ahead.multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(ahead.sys, "executable", "/bin/python3")
    monkeypatch.delitem(sys.modules, "pytest")
    monkeypatch.setenv("FASTECE_COMPILE_AHEAD", "1")


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (ahead, "processors", lambda: 1),
        (ahead, "CACHE_DIRECTORY", None),
        (ahead, "FAILURES", ["no space"]),
        (ahead.multiprocessing, "parent_process", lambda: "another"),
        (ahead.sys, "executable", "/opt/editor"),
        (ahead.sys, "frozen", True),
    ],
    ids=["processor", "folder", "failure", "worker", "embedded", "frozen"],
)
@pytest.mark.usefixtures("possible")
def test_where_no_process_is_started(monkeypatch, owner, name, value):
    assert ahead.is_possible()
    monkeypatch.setattr(owner, name, value, raising=False)
    assert not ahead.is_possible()


@pytest.mark.usefixtures("possible")
def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("FASTECE_COMPILE_AHEAD", "0")
    assert not ahead.is_possible()


def test_not_in_tests_and_one_at_a_time():
    before = list(_jit.WATCHERS)
    with ahead.compile_ahead(print):
        assert before == _jit.WATCHERS
    assert not ahead.ONLY_ONE.locked()


def test_processors_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3 + pid, 5, 7}, raising=False)
    monkeypatch.delattr("os.process_cpu_count", raising=False)
    assert ahead.processors() == 3
    monkeypatch.setattr("os.process_cpu_count", lambda: 2, raising=False)
    assert ahead.processors() == 2
    monkeypatch.delattr("os.process_cpu_count")
    monkeypatch.delattr("os.sched_getaffinity")
    assert ahead.processors() == 64
