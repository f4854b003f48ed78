"""The line on a terminal that says what is going on, and nothing elsewhere."""

import sys

import pytest

from fastece.cli.output import show, show_progress
from fastece.kernels import _jit
from fastece.resampling import engine
from helpers.command_line import run

CLEAR = "\r\x1b[K"


def use_terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_steps_parts_and_kernels_are_told_on_one_line(capsys, monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setattr(_jit, "progress_callbacks", [])
    with show_progress() as progress:
        progress("bootstrap")
        (tasks,), (kernels,) = engine.progress_callbacks, _jit.progress_callbacks
        tasks(1, 11)
        kernels("equal_mass_sums", 7)
    steps = capsys.readouterr().err.split(CLEAR)[1:]
    assert steps[:2] == ["bootstrap", "bootstrap: 1 of 11 parts done"]
    assert steps[2] == "compiling, the first time only: 7 kernels done, now equal_mass_sums"
    assert steps[3:] == [""]
    assert engine.progress_callbacks == _jit.progress_callbacks == []


def test_the_line_is_gone_after_an_error(capsys, monkeypatch):
    use_terminal(monkeypatch)
    with pytest.raises(ValueError, match="bad"), show_progress() as progress:  # noqa: PT012
        progress("reading")
        raise ValueError("bad")
    assert capsys.readouterr().err == f"{CLEAR}reading{CLEAR}"
    assert engine.progress_callbacks == []


def test_nothing_is_told_where_there_is_no_terminal(capsys):
    with show_progress() as progress:
        progress("bootstrap")
        assert engine.progress_callbacks == []
    assert capsys.readouterr().err == ""


def test_a_line_is_no_longer_than_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    show("reading " + "x" * 100)
    assert capsys.readouterr().err == CLEAR + "reading xxxxxxxxxxx"


def test_every_step_of_a_report_is_told(capsys, monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setattr(engine, "INLINE", 0)
    code, out, err = run(capsys, "demo", "--resamples", 64)
    assert code == 0
    assert "\x1b" not in out
    for step in ("reading", "measuring ece_kde", "intervals, 64 replicates"):
        assert f"{CLEAR}{step}" in err
    assert "intervals, 64 replicates of a calibrated model: 1 of " in err
    assert err.endswith(CLEAR)
