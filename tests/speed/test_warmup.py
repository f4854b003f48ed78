"""Compiling ahead: after it, nothing is compiled any more."""

import ast
import json
import os
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import fastece
from fastece.cli import warmup
from fastece.data.errors import InputError, InputTypeError
from fastece.kernels import cache

PACKAGE = Path(fastece.__file__).parent

PUBLIC_CALLS = Path(__file__).parents[1] / "helpers" / "public_calls.py"


def run(*arguments, **changes):
    # Compiling takes twice as long where coverage is measured, and covers nothing that is not.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    path = os.pathsep.join([str(PACKAGE.parent), str(PUBLIC_CALLS.parents[1])])
    env |= {"NUMBA_DISABLE_JIT": "0", "PYTHONPATH": path, **changes}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip


def warm_folder(tmp_path):
    """A folder that has been warmed, and the printed answer: one that is there, or a new one.

    Compiling everything takes a minute of two cores; `.ci/run` has done so before all tests.
    """
    if folder := os.environ.get("FASTECE_WARM_DIR"):
        return Path(folder), json.loads(Path(f"{folder}.json").read_text(encoding="utf-8"))
    folder = tmp_path / "warm"
    folder.mkdir()
    done = run("-m", "fastece", "warmup", "--json", FASTECE_CACHE_DIR=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return folder, json.loads(done.stdout)


def kept(folder):
    return {path.name: path.stat().st_mtime_ns for path in Path(folder).rglob("*.nbc")}


@pytest.mark.slow
def test_nothing_is_compiled_after_it(tmp_path):
    """One test, as each process of pytest would compile everything for itself."""
    folder, answer = warm_folder(tmp_path)
    assert_every_kernel_is_kept(folder)
    assert_answer_counts_kernels(answer, folder)
    before = kept(folder)
    done = run(PUBLIC_CALLS, tmp_path / "predictions.npz", FASTECE_CACHE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{}", "the warm-up does not compile these"
    assert kept(folder) == before


def assert_every_kernel_is_kept(folder):
    """A kernel that others call is kept too, as numba compiles it for itself first."""
    stems = {name.partition("-")[0] for name in kept(folder)}
    kernels = set()
    for path in (PACKAGE / "kernels").glob("[!_]*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if "jit" in [getattr(d, "id", "") for d in getattr(node, "decorator_list", ())]:
                kernels.add(f"{path.stem}.{node.name}")
    assert kernels
    assert kernels == stems


def assert_answer_counts_kernels(answer, folder):
    """It has the seconds and the place, and a second warm-up finds everything there."""
    # Most kernels are compiled for one kind of numbers alone, which keeps the warm-up short.
    assert answer["signatures"] <= 1.3 * answer["kernels"]
    (keyed,) = folder.iterdir()
    assert answer.pop("seconds") > 0
    stems = {name.partition("-")[0] for name in kept(folder)}
    counts = {"kernels": len(stems), "signatures": len(kept(folder)), "cached": 0}
    assert answer == {"directory": str(keyed), **counts}
    again = run("-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(folder))
    assert (again.returncode, again.stderr) == (0, "")
    signatures, kernels = counts["signatures"], counts["kernels"]
    assert again.stdout.startswith(f"{signatures} signatures of {kernels} kernels in ")
    assert again.stdout.endswith(f" ({signatures} were there already), kept in {keyed}\n")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # as the command does
def test_its_steps_are_calls_that_work_or_are_refused():
    steps, done = list(warmup.steps()), []
    assert len(steps) > 200
    for step in steps[::31]:
        if len(step.keywords.get("y_prob", step.args[:1])) <= warmup.N_ROWS:
            with suppress(InputError, InputTypeError):
                done.append(step())
    assert len(done) > len(steps[::31]) / 2


@pytest.mark.slow
def test_it_fails_at_once_where_nothing_can_be_kept(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    done = run("-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(blocked))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fastece: error: ")
    assert done.stderr.count("\n") == 1
    assert "Set FASTECE_CACHE_DIR" in done.stderr
    done = run("-m", "fastece", "warmup", FASTECE_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastece: error: NUMBA_DISABLE_JIT is set, so nothing is compiled\n"


def test_it_fails_as_soon_as_something_is_not_kept(monkeypatch, tmp_path):
    calls = []

    def full_disk():
        calls.append("full")
        cache.FAILURES.append("no space")

    monkeypatch.setattr(cache, "FAILURES", [])
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(warmup, "steps", lambda: iter([full_disk, calls.clear]))
    monkeypatch.setattr(warmup, "compile_beside", lambda _: nullcontext())
    with pytest.raises(OSError, match="no space"):
        warmup.run(None, print)
    assert calls == ["full"]
