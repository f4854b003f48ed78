"""A command prints a page, one line for bad input, or a traceback for a fault."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastece
from fastece.cli import main, warmup
from fastece.kernels import cache as kernel_cache
from fastece.resampling import engine
from helpers.command_line import SMALL, failure, run, text


@pytest.fixture
def fail(monkeypatch):
    """Add an estimator that raises an error; return the words that use it."""

    def add_estimator(error):
        class Failing:
            def prepare(self, sample, size):  # noqa: ARG002
                raise error

            def evaluate(self, plan, c):
                raise NotImplementedError

        monkeypatch.setitem(fastece.ESTIMATORS, "failing", Failing())
        return ("demo", "--estimator", "failing")

    return add_estimator


@pytest.mark.parametrize("error", [TypeError("a fault"), ValueError("a fault")])
def test_a_fault_of_the_package_shows_its_traceback(capsys, fail, error):
    with pytest.raises(type(error), match="a fault"):
        run(capsys, *fail(error))


@pytest.mark.parametrize(
    ("error", "message"),
    [(OSError("disk"), "disk"), (MemoryError("too large"), "too large"), (ImportError("no x"), "x"),
     (MemoryError(), "memory")],
)  # fmt: skip
def test_an_error_of_the_machine_is_one_line(capsys, fail, error, message):
    assert message in failure(capsys, *fail(error))


def test_an_interrupt_is_one_word(capsys, fail):
    assert run(capsys, *fail(KeyboardInterrupt())) == (130, "", "fastece: interrupted\n")


def test_a_warning_is_printed_once_however_often_the_rows_are_read(capsys, write):
    path = write("y_true,p_0,p_1\n1,0.9,0.3\n0,0.5,0.5\n")
    code, out, err = run(capsys, "report", path)
    assert code == 0
    assert "ece" in out
    assert err.startswith(f"fastece: warning: {path}: from line 2 on: y_prob: 1 of 2 ")
    assert err.count("\n") == err.count("fastece: warning: ") == 1


def test_warnings_are_in_words_of_the_command_line(capsys, write):
    rows = "".join(f"{i % 2},{i / 40}\n" for i in range(40))
    _, _, err = run(capsys, "report", write(f"y_true,y_prob\n{rows}"), "--from-logits")
    assert err.endswith("probabilities, but --from-logits?\n")


def use_terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_the_line_of_progress_is_gone_after_an_error(capsys, monkeypatch, fail):
    pytest.importorskip("tqdm")
    use_terminal(monkeypatch)
    code, _, err = run(capsys, *fail(OSError("disk")))
    shown, _, last = err.rpartition("\r")
    assert (code, last) == (2, "fastece: error: disk\n")
    # The line is overwritten by blanks.
    assert "reading" in shown
    assert shown.endswith(" ")


def test_no_progress_is_shown_without_tqdm(capsys, monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    text(capsys, "demo")


@pytest.mark.slow
def test_every_step_of_a_report_is_shown(capsys, monkeypatch):
    plain = text(capsys, "demo", "--full", "--resamples", 64)
    use_terminal(monkeypatch)
    monkeypatch.setattr(engine, "MAX_INLINE_ROWS", 0)
    code, out, err = run(capsys, "demo", "--full", "--resamples", 64)
    assert (code, out) == (0, plain)  # the same page every time
    for step in ("reading", "measuring ece_kde", "intervals, 64 replicates"):
        assert step in err
    assert re.search("64 replicates of a calibrated model +[1-9][0-9]* %", err)


def program(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_imports_neither_numba_nor_scipy(argument):
    code = (
        f"import sys\nfrom fastece.cli import main\n"
        f"try: main(['{argument}'])\n"
        "finally: print([m for m in ('numba', 'scipy', 'pandas') if m in sys.modules])"
    )
    done = program(code, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pipe is closed differently")
def test_a_reader_that_has_seen_enough_is_no_error():
    code = (
        "import sys\nfrom fastece import cli\nfrom fastece.cli import output\n"
        "from fastece.display.documents import Document\n"
        "page = output.Page(Document('line\\n' * 100_000), {})\n"
        "cli.run_command = lambda *_: page\n"
        "sys.exit(cli.main(['demo']))"
    )
    pipe = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert pipe.stdout.readline() == b"line\n"
    pipe.stdout.close()
    assert pipe.stderr.read() == b""
    pipe.stderr.close()
    assert pipe.wait() == 0


@pytest.mark.parametrize(
    ("closed", "code", "message"),
    [("stdout", 1, "the page cannot be printed: standard output is closed"), ("stderr", 0, ""),
     ("stdin", 2, "standard input: is closed")],
)  # fmt: skip
def test_a_closed_stream_is_one_line(capsys, monkeypatch, write, closed, code, message):
    path = "-" if closed == "stdin" else write(SMALL)
    monkeypatch.setattr(sys, closed, None)
    assert main(["report", str(path), "--resamples", "0"]) == code
    out, err = capsys.readouterr()
    assert err == (f"fastece: error: {message}\n" if message else "")
    assert bool(out) == (closed == "stderr")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="numbers of files differ")
def test_no_file_takes_the_number_of_a_closed_stream(write):
    code = (
        "import os, sys\nfor number in (0, 1, 2): os.close(number)\n"
        "sys.stdin = sys.stdout = sys.stderr = None\n"
        "from fastece import cli\n"
        "cli.run_command = lambda *_: os._exit(os.open(sys.argv[1], os.O_RDONLY))\n"
        "cli.main(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", code, write(SMALL)], check=False)
    assert done.returncode > 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    ("moment", "code", "error"), [("run", 130, "fastece: interrupted\n"), ("end", 0, "")]
)
def test_an_interrupt_of_the_process_is_one_line(moment, code, error):
    program = f"""
import atexit, os, signal, sys
from fastece import cli
from fastece.cli.output import Page
from fastece.display.documents import Document

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def run_command(*_):
    if {moment == "run"}:
        interrupt()
    return Page(Document("page"), {{}})

cli.run_command = run_command
atexit.register(interrupt if {moment == "end"} else int)
sys.argv[1:] = ["demo"]
sys.exit(cli.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (code, error)
    assert done.stdout == ("" if code else "page\n")


@pytest.mark.slow
def test_the_installed_command_and_the_module_are_the_same():
    options = ["demo", "--help"]
    module = subprocess.run(
        [sys.executable, "-m", "fastece", *options], capture_output=True, check=True
    )
    assert module.stdout.startswith(b"usage: fastece demo")
    script = Path(sys.executable).parent / "fastece"
    if not script.exists():
        pytest.skip("fastece is not installed beside this interpreter")
    command = subprocess.run([script, *options], capture_output=True, check=True)
    assert command.stdout == module.stdout


@pytest.mark.parametrize("is_terminal", [False, True])
def test_warmup_counts_signatures_and_shows_them_on_a_terminal(
    capsys, monkeypatch, tmp_path, is_terminal
):
    monkeypatch.setattr(kernel_cache, "USER", kernel_cache.KernelFolder(tmp_path))
    files = (tmp_path / f"{name}.nbc" for name in ("f-1", "f-2", "g-1"))
    monkeypatch.setattr(warmup, "steps", lambda: (file.touch for file in files))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    code, out, err = run(capsys, "warmup", "--json")
    printed = json.loads(out)
    assert printed.pop("seconds") >= 0
    assert (code, printed) == (
        0, {"directory": str(tmp_path), "kernels": 2, "signatures": 3, "cached": 0}
    )  # fmt: skip
    assert all(f"{k} signatures" in err for k in (1, 2, 3)) == is_terminal
    assert is_terminal or err == ""
