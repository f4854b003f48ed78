"""The command `info`: versions for a report of a bug, and the kernels in use."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

import fastece
from fastece.kernels import archive, cache
from helpers.command_line import as_json, run

LEVEL = archive.X86_LEVELS[0]


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """An installation without compiled kernels, whose parts a test can change."""
    monkeypatch.setattr(cache.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(cache, "FAILURES", [])
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "FOLDER", tmp_path / "shipped")
    monkeypatch.setattr(archive, "ARCHIVE", None)
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
    archive.FOLDER.mkdir()
    assert "none that fits" in as_json(capsys, "info")["shipped_kernels"]
    shipped = SimpleNamespace(names=frozenset({"f-1.nbc"}), level=LEVEL, path="here.zip")
    monkeypatch.setattr(archive, "ARCHIVE", shipped)
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "shipped"
    assert printed["shipped_kernels"] == f"1 signatures for {LEVEL.name} in here.zip"
    (kernels / "cache" / "f-1.nbc").touch()
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "native"
    assert printed["native_kernels"] == f"1 signatures in {kernels / 'cache'}"


@pytest.mark.usefixtures("kernels")
def test_the_reason_is_named_where_no_kernels_are_kept(capsys, monkeypatch):
    monkeypatch.setattr(cache, "FAILURES", ["no space"])
    assert as_json(capsys, "info")["native_kernels"] == "none: no space"
    monkeypatch.setattr(cache, "FAILURES", [])
    monkeypatch.setattr(cache, "CACHE_DIRECTORY", None)
    monkeypatch.setattr(cache.config, "DISABLE_JIT", 1)
    printed = as_json(capsys, "info")
    assert printed["kernels_in_use"] == "none: Python runs the loops"
    assert "NUMBA_DISABLE_JIT" in printed["native_kernels"]
