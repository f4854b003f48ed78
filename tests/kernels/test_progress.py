"""The message on stderr before kernels are compiled."""

import multiprocessing
import sys

import pytest

from fastece.kernels import cache, compiling
from fastece.kernels.progress import MESSAGE, announce_compiling
from helpers.kernel_forms import PLAIN


@pytest.fixture
def compile_one(monkeypatch):
    """Compile a kernel in a process that has compiled nothing yet, and whose user reads stderr."""
    monkeypatch.delenv("FASTECE_QUIET")
    announce_compiling.cache_clear()
    monkeypatch.setattr(cache, "USER", cache.KernelFolder(None))

    def increased(x):
        return x + 1

    increased.__module__ = "fastece.kernels.new"
    yield lambda: compiling.jit(increased)(1)
    announce_compiling.cache_clear()


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
@pytest.mark.parametrize(("is_terminal", "clearing"), [(False, ""), (True, "\r\x1b[K")])
def test_the_message_appears_once(capsys, monkeypatch, compile_one, is_terminal, clearing):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    compile_one()
    compile_one()
    assert capsys.readouterr().err == f"{clearing}{MESSAGE}\n"


@pytest.mark.parametrize("reason", ["FASTECE_QUIET", "worker"])
def test_nothing_is_shown_by_workers_or_on_request(capsys, monkeypatch, compile_one, reason):
    if reason == "worker":
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "another")
    else:
        monkeypatch.setenv("FASTECE_QUIET", "1")
    compile_one()
    assert capsys.readouterr().err == ""


def test_a_closed_stream_is_no_reason_to_fail(monkeypatch, compile_one):
    def fail(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", fail)
    assert compile_one() == 2
