"""The disk cache of compiled kernels: its name, its place, and what happens without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastece.kernels import _jit

ECE = "import fastece; print(fastece.ece([0, 1, 1], [0.2, 0.6, 0.9], n_bins=10))"


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", **environment},
    )  # fmt: skip


def test_key_changes_with_every_kernel_source(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    first = _jit.cache_key(tmp_path)
    assert first == _jit.cache_key(tmp_path)
    (tmp_path / "b.py").write_text("x = 2\n", encoding="utf-8")
    second = _jit.cache_key(tmp_path)
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    assert len({first, second, _jit.cache_key(tmp_path)}) == 3


def test_key_changes_with_numba_and_with_the_processor(tmp_path, monkeypatch):
    keys = {_jit.cache_key(tmp_path)}
    monkeypatch.setattr(_jit.numba, "__version__", "0.0")
    keys.add(_jit.cache_key(tmp_path))
    monkeypatch.setattr(_jit, "get_host_cpu_name", lambda: "abacus")
    keys.add(_jit.cache_key(tmp_path))
    assert len(keys) == 3


@pytest.mark.parametrize("variable", ["FASTECE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_place_is_the_first_that_is_named(tmp_path, monkeypatch, variable):
    for name in ("FASTECE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "here"))
    directory = Path(_jit.cache_directory())
    assert directory.is_dir()
    assert directory.name == _jit.cache_key()
    assert tmp_path / "here" in directory.parents


def test_unwritable_place_is_one_warning_and_no_cache(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("FASTECE_CACHE_DIR", str(file / "below"))
    with pytest.warns(RuntimeWarning, match="FASTECE_CACHE_DIR") as caught:
        assert _jit.cache_directory() is None
    assert len(caught) == 1
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", None)

    @_jit.jit
    def twice(x):
        return 2 * x

    assert twice(4) == 8


def test_compiled_kernels_are_kept_and_values_are_the_same(tmp_path):
    first = run(ECE, FASTECE_CACHE_DIR=str(tmp_path))
    kept = [path for path in tmp_path.rglob("*.nbc") if "cell_moments" in path.name]
    assert kept
    second = run(ECE, FASTECE_CACHE_DIR=str(tmp_path))
    assert first.stdout == second.stdout == "0.23333333333333336\n"
    blocked = tmp_path / "file"
    blocked.touch()
    third = run(ECE, FASTECE_CACHE_DIR=str(blocked))
    assert third.stdout == first.stdout
    assert third.stderr.count("RuntimeWarning") == 1


@pytest.mark.parametrize("damage", [b"", b"not a pickle", None])
def test_damaged_cache_files_are_compiled_anew_and_replaced(tmp_path, damage):
    expected = run(ECE, FASTECE_CACHE_DIR=str(tmp_path)).stdout
    files = [path for path in tmp_path.rglob("*.nb?") if "cell_moments" in path.name]
    whole = {path: path.read_bytes() for path in files}
    assert len(whole) == 2
    for path, content in whole.items():
        path.write_bytes(content[: len(content) // 2] if damage is None else damage)
    done = run(ECE, FASTECE_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == (expected, "")
    assert all(len(path.read_bytes()) > len(content) // 2 for path, content in whole.items())


def test_nowhere_to_keep_kernels_is_a_warning(monkeypatch):
    for name in ("FASTECE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless(path):
        raise RuntimeError(f"no home for {path}")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.warns(RuntimeWarning, match="no home for"):
        assert _jit.cache_directory() is None


def test_kernels_are_kept_in_the_keyed_folder_or_not_at_all(tmp_path):
    code = (
        "from fastece.kernels import _jit, binning; from pathlib import Path;"
        "print(type(binning.scatter._cache).__name__)"
    )
    assert run(code, FASTECE_CACHE_DIR=str(tmp_path)).stdout == "ForgivingCache\n"
    folder = next(tmp_path.iterdir())
    (kernels,) = folder.iterdir()
    kernels.rmdir()
    kernels.touch()  # numba cannot make its folder here, and would go elsewhere
    assert run(code, FASTECE_CACHE_DIR=str(tmp_path)).stdout == "NullCache\n"
