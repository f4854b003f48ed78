"""Tiny kernels in a copy of the package, and processes that compile or load them.

The mechanism of the cache is the same for all kernels, and these compile in no time.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fastece

PAIR = "from fastece.kernels.caller import doubled; print(doubled(3), doubled(0.5))"
PAIR_SHOWS = "8 3.0\n"
COMPILED = (  # how many signatures were not in the cache
    "; from fastece.kernels import compiling;"
    "print(sum(len(kernel.stats.cache_misses) for kernel in compiling.KERNELS))"
)
CALLEE = """\
from fastece.kernels.compiling import jit


@jit
def increased(x):
    return x + 1
"""
CALLER = """\
from fastece.kernels.compiling import jit
from fastece.kernels.callee import increased


@jit
def doubled(x):
    return 2 * increased(x)
"""
PLACES = ("FASTECE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")


def environment(package=None, **changes):
    """Environment of a process that compiles; `None` takes a variable away."""
    changes = {"NUMBA_DISABLE_JIT": "0", **changes}
    if package is not None:
        # The process imports the copy and not the working folder, with the usual settings of numba.
        # Edits must be visible at once, and coverage must not look for a copy that is gone.
        usual = dict.fromkeys(("NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))
        changes = {"PYTHONDONTWRITEBYTECODE": "1", **usual, **changes}
        changes |= {"PYTHONPATH": package, "PYTHONSAFEPATH": "1"}
        changes |= dict.fromkeys(k for k in os.environ if k.startswith("COVERAGE_PROCESS"))
    merged = {**os.environ, **changes}
    return {key: str(value) for key, value in merged.items() if value is not None}


def run(code, package=None, preexec_fn=None, **changes):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=environment(package, **changes), preexec_fn=preexec_fn,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def output_of(code, package=None, **changes):
    """Standard output of a process that writes nothing to stderr."""
    done = run(code, package, **changes)
    assert done.stderr == ""
    return done.stdout


def contents_of(folder):
    """path -> content of every file of the cache."""
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def copy_package(to):
    """The package with the pair in it."""
    leave = shutil.ignore_patterns("__pycache__", "*.npz")
    shutil.copytree(Path(fastece.__file__).parent, to / "fastece", ignore=leave)
    (to / "fastece/kernels/callee.py").write_text(CALLEE, encoding="utf-8")
    (to / "fastece/kernels/caller.py").write_text(CALLER, encoding="utf-8")
    return to


def modes_bind():
    """From here on file modes bind, also where tests run as root (Linux only)."""
    if sys.platform == "linux" and os.geteuid() == 0:
        drop_capability = 24
        override_modes = 1
        ctypes.CDLL(None).prctl(drop_capability, override_modes, 0, 0, 0)
