"""The command `info`: versions for a report of a bug, and the kernels in use."""

import numba
import numpy as np
import pytest

import fastece
from fastece.kernels import cache
from helpers.command_line import as_json, run


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """An installation without compiled kernels, whose parts a test can change."""
    monkeypatch.setattr(cache.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(cache, "USER", cache.KernelFolder(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SHIPPED", cache.KernelFolder(None))
    monkeypatch.setattr(cache, "SHIPPED_FOLDERS", tmp_path / "shipped")
    (tmp_path / "cache").mkdir()
    return tmp_path


def test_versions_processor_and_threads_are_named(capsys):
    printed = as_json(capsys, "info")
    assert printed["fastece"].startswith(f"{fastece.__version__} in ")
    assert (printed["numba"], printed["numpy"]) == (numba.__version__, np.__version__)
    assert printed["threads"] >= 1
    code, out, err = run(capsys, "info", quick=False)
    assert (code, err) == (0, "")
    assert all(name.replace("_", " ") in out for name in printed)


def test_kernels_in_use_are_native_then_shipped_then_compiled(capsys, kernels, monkeypatch):
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "compiled at their first use"
    assert printed["shipped_kernels"] == "none in this installation"
    shipped = cache.SHIPPED_FOLDERS / "level-key"
    shipped.mkdir(parents=True)
    assert "none that fits" in as_json(capsys, "info")["shipped_kernels"]
    (shipped / "f-1.nbc").touch()
    monkeypatch.setattr(cache, "SHIPPED", cache.KernelFolder(shipped))
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "shipped"
    assert printed["shipped_kernels"] == f"1 signatures in {shipped}"
    (kernels / "cache" / "f-1.nbc").touch()
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "native"
    assert printed["native_kernels"] == f"1 signatures in {kernels / 'cache'}"


@pytest.mark.usefixtures("kernels")
def test_the_reason_is_named_where_no_kernels_are_kept(capsys, monkeypatch):
    monkeypatch.setattr(cache, "USER", cache.KernelFolder(None, "no space"))
    assert as_json(capsys, "info")["native_kernels"] == "none: no space"
    monkeypatch.setattr(cache.config, "DISABLE_JIT", 1)
    monkeypatch.setattr(cache, "USER", cache.find_user_folder())
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "none: Python runs the loops"
    assert "NUMBA_DISABLE_JIT" in printed["native_kernels"]
