"""The line on stderr while kernels are compiled."""

import multiprocessing
import sys

import pytest

from fastece.kernels import compiling
from fastece.kernels import progress as module

CLEAR = "\r\x1b[K"


def compile_kernels(progress, monkeypatch, is_terminal):
    """Compile a kernel that calls another kernel, and a third one after them."""
    times = iter([0.0, 2.0, 4.0, 10.0, 11.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    progress.begin("outer")
    progress.begin("inner")
    progress.end()
    progress.end()
    progress.begin("third")
    progress.end()


@pytest.mark.parametrize(
    ("is_terminal", "expected", "lines"),
    [
        (True, 9, [CLEAR + "fastece: compiling once, about 3 s: kernel 2 of 9, inner", CLEAR,
                   CLEAR + "fastece: compiling once, about 3 s: kernel 3 of 9, third", CLEAR]),
        (True, 0, [CLEAR + "fastece: compiling once, a few seconds: kernel 2, inner", CLEAR,
                   CLEAR + "fastece: compiling once, a few seconds: kernel 3, third", CLEAR]),
        (False, 9, ["fastece: compiling once, about 3 s\n"]),
    ],
)  # fmt: skip
def test_long_compiling_is_shown(capsys, monkeypatch, is_terminal, expected, lines):
    monkeypatch.delenv("FASTECE_QUIET")
    progress = module.Progress()
    progress.expected = expected
    compile_kernels(progress, monkeypatch, is_terminal)
    assert capsys.readouterr().err == "".join(lines)
    assert (progress.done, progress.seconds) == (3, 5.0)


@pytest.mark.parametrize("reason", ["FASTECE_QUIET", "worker", "fast"])
def test_nothing_is_shown_by_workers_or_on_request(capsys, monkeypatch, reason):
    if reason != "FASTECE_QUIET":
        monkeypatch.delenv("FASTECE_QUIET")
    if reason == "worker":
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "another")
    if reason == "fast":
        monkeypatch.setattr(module, "PATIENCE", 99.0)
    compile_kernels(module.Progress(), monkeypatch, True)
    assert capsys.readouterr().err == ""


def test_a_closed_stream_is_no_reason_to_fail(monkeypatch):
    def fail(*_):
        raise BrokenPipeError

    monkeypatch.setattr(module.progress, "begin", fail)
    monkeypatch.setattr(module.progress, "end", fail)
    kernel = compiling.jit(lambda x: x + 1)
    assert kernel(1) == 2
