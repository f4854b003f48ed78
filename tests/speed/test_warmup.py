"""The warm-up compiles all kernels ahead: after it, no call compiles any more."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastece
from fastece.cli import warmup
from fastece.kernels import cache

PACKAGE = Path(fastece.__file__).parent
PUBLIC_CALLS = Path(__file__).parents[1] / "helpers" / "public_calls.py"


def run_python(*arguments, **environment_changes):
    """Run Python in a new process, without coverage, which slows compiling down."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment["NUMBA_DISABLE_JIT"] = "0"
    environment["PYTHONPATH"] = f"{PACKAGE.parent}{os.pathsep}{PUBLIC_CALLS.parents[1]}"
    environment |= environment_changes
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def warm_folder(tmp_path):
    """Return a folder with all kernels, and the answer of the warm-up.

    Compiling everything takes a minute on two cores. `.ci/run` does so before all tests and names
    its folder; elsewhere, a new folder is filled.
    """
    if folder := os.environ.get("FASTECE_WARM_DIR"):
        return Path(folder), json.loads(Path(f"{folder}.json").read_text(encoding="utf-8"))
    folder = tmp_path / "warm"
    folder.mkdir()
    done = run_python("-m", "fastece", "warmup", "--json", FASTECE_CACHE_DIR=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return folder, json.loads(done.stdout)


def times_of_kernels(folder):
    """Return when each file of compiled code in a folder was written, by its name."""
    return {path.name: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")}


@pytest.mark.slow
def test_no_call_compiles_after_the_warm_up(tmp_path):
    """This is one test, as each process of pytest would compile everything for itself."""
    folder, answer = warm_folder(tmp_path)
    assert_every_kernel_is_kept(folder)
    assert_answer_counts_kernels(answer, folder)
    times_before = times_of_kernels(folder)
    done = run_python(PUBLIC_CALLS, tmp_path / "predictions.npz", FASTECE_CACHE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{}", "the warm-up does not compile these"
    assert times_of_kernels(folder) == times_before


def assert_every_kernel_is_kept(folder):
    """Compare the kernels on disk with those in the source.

    A kernel that only other kernels call is kept too, as numba compiles it by itself first.
    """
    compiled_kernels = {name.partition("-")[0] for name in times_of_kernels(folder)}
    kernels = set()
    for path in (PACKAGE / "kernels").glob("[!_]*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            decorators = getattr(node, "decorator_list", [])
            if any(getattr(decorator, "id", "") == "jit" for decorator in decorators):
                kernels.add(f"{path.stem}.{node.name}")
    assert kernels
    assert kernels == compiled_kernels


def assert_answer_counts_kernels(answer, folder):
    """Compare the answer with the folder, and with a second warm-up."""
    # Most kernels are compiled for one kind of numbers alone, which keeps the warm-up short.
    assert answer["signatures"] <= 1.3 * answer["kernels"]
    (keyed,) = folder.iterdir()
    assert answer.pop("seconds") > 0
    names = set(times_of_kernels(folder))
    n_kernels = len({name.partition("-")[0] for name in names})
    assert answer == {
        "directory": str(keyed),
        "kernels": n_kernels,
        "signatures": len(names),
        "cached": 0,
    }
    again = run_python("-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(folder))
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith(f"{len(names)} signatures of {n_kernels} kernels in ")
    assert again.stdout.endswith(f" ({len(names)} were there already), kept in {keyed}\n")


@pytest.mark.slow
def test_warm_up_fails_at_once_where_nothing_can_be_kept(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    done = run_python("-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(blocked))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fastece: error: ")
    assert done.stderr.count("\n") == 1
    assert "Set FASTECE_CACHE_DIR" in done.stderr
    done = run_python(
        "-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastece: error: NUMBA_DISABLE_JIT is set, so nothing is compiled\n"


def test_warm_up_fails_as_soon_as_something_is_not_kept(monkeypatch, tmp_path):
    calls = []

    def full_disk():
        calls.append("full")
        cache.USER.problem = "no space"

    monkeypatch.setattr(cache, "USER", cache.KernelFolder(tmp_path))
    monkeypatch.setattr(warmup, "steps", lambda: iter([full_disk, calls.clear]))
    with pytest.raises(OSError, match="no space"):
        warmup.run(None, print)
    assert calls == ["full"]
