"""Standard streams that are closed, full, ended early or no files, and interrupts at the start."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from fastece.cli import main
from helpers import output_faults as faults
from helpers.output_faults import one_line

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")
if os.name != "posix":
    pytest.skip("has other files and signals", allow_module_level=True)

COMMANDS = [
    "report a.csv --resamples 0",
    "report a.csv b.csv",
    "compare a.csv b.csv --resamples 9",
    "recalibrate a.csv --resamples 9 --folds 2",
    "curve a.csv",
    "demo --resamples 0",
]
# Each command with a form of its page.
PAGES = [f"{x} {('', '--json', '--markdown')[k % 3]}" for k, x in enumerate(COMMANDS)]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with inputs."""
    monkeypatch.chdir(tmp_path)
    faults.without_drawing(monkeypatch.setattr)
    faults.write_inputs(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("line", PAGES)
def test_a_page_that_cannot_be_printed_is_an_error(line, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        code = main(line.split())
    _, err = capsys.readouterr()
    assert code == 1
    assert one_line(err, "standard output"), err
    with monkeypatch.context() as patch, open("page", "w", encoding="utf-8") as full:
        patch.setattr(sys, "stdout", full)
        with faults.file_limit(100):
            code = main(line.split())
    _, err = capsys.readouterr()
    assert code in (1, 2)
    assert one_line(err, "standard output", "too large"), err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", ["report -", "report - --stream", "compare a.csv -",
                                     "recalibrate a.csv --fit -", "curve -"])  # fmt: skip
def test_without_standard_input_there_is_nothing_to_read(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert one_line(err, "standard input", "-"), err


PRELUDE = f'fastece() {{ "{sys.executable}" -m fastece "$@"; }}\n'
# A line of bash, its exit codes, and words of its one line on standard error.
CLOSED = """
fastece report a.csv --resamples 0 2>&-                       | 0 |
fastece report none.csv 2>&-                                  | 2 |
fastece report - <&-                                          | 2 | standard input
fastece report a.csv --resamples 0 <&-                        | 0 |
fastece report a.csv --resamples 0 >&-                        | 1 | standard output
fastece report a.csv --resamples 0 --html o.html <&- >&- 2>&- | 1 |
ulimit -f 0; fastece report a.csv --resamples 0 >page         | 1 2 | too large
fastece demo --resamples 0 | head -1; exit ${PIPESTATUS[0]}   | 0 |
"""
CLOSED = [[word.strip() for word in line.rsplit("|", 2)] for line in CLOSED.strip().splitlines()]


def bash(line, folder):
    """Run a line of bash."""
    # Coverage would write files, for which some of the lines leave no room.
    env = {k: v for k, v in faults.environment().items() if not k.startswith("COV")}
    return subprocess.run(
        ["bash", "-c", PRELUDE + line], cwd=folder, env=env,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("line", "codes", "words"), CLOSED)
def test_closed_and_full_streams_of_a_shell(line, codes, words, place):
    done = bash(line, place)
    assert str(done.returncode) in codes.split(), done.stderr
    if words:
        assert one_line(done.stderr, words), done.stderr
    else:
        assert done.stderr == ""
    if done.returncode == 0:
        assert done.stdout
    if "o.html" in line:  # no stream was taken for the page
        assert (place / "o.html").read_text().rstrip().endswith("</html>")


# A line of bash, the command that gives the same, and options of both.
PIPES = """
cat a.csv | fastece report /dev/stdin                | report a.csv                | --resamples 0
fastece report <(cat a.parquet)                      | report a.parquet            | --stream
fastece compare <(cat a.csv) <(cat b.csv)            | compare a.csv b.csv         | --resamples 9
fastece recalibrate a.csv --fit <(cat b.csv)         | recalibrate a.csv --fit b.csv | --resamples 9
"""
PIPES = [[part.strip() for part in line.rsplit("|", 2)] for line in PIPES.strip().splitlines()]


@pytest.mark.parametrize(("piped", "named", "options"), PIPES)
def test_pipes_are_read_as_files_are(piped, named, options, place, capsys):
    if "a.parquet" in named:
        faults.write_table("a.parquet")
    assert main([*named.split(), "--json", *options.split()]) == 0
    want = capsys.readouterr()
    done = bash(f"{piped} --json {options}", place)
    assert (done.returncode, done.stderr, want.err) == (0, "", "")
    of_pipes = json.loads(done.stdout)
    of_files = json.loads(want.out)
    names = ("title", "fitted", "a", "b", "stream")  # names of files are in them
    assert {**of_pipes, **dict.fromkeys(names)} == {**of_files, **dict.fromkeys(names)}


def test_a_map_is_saved_into_a_pipe(place):
    line = "fastece recalibrate a.csv --method temperature --save >(cat >m.json); code=$?; wait"
    done = bash(f"{line}; sleep 0.2; exit $code", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert faults.map_is_whole((place / "m.json").read_bytes())


def ended_by(number, delay, folder):
    """Exit code and standard error of a command to which a signal comes so late."""
    with subprocess.Popen(
        [sys.executable, "-m", "fastece", "report", "a.csv"], cwd=folder, text=True,
        env=faults.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        time.sleep(delay)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_an_interrupt_at_the_start_is_one_line(place):
    """From 0 ms on. Until Python itself has started, which reads no line of fastece, it ends as
    every program of Python does: killed by the signal, or with a traceback of its own modules."""
    times = []
    for _ in range(3):  # the first may wait for a disk or another process
        start = time.perf_counter()
        ended_by(signal.SIGCONT, 0, place)
        times.append(time.perf_counter() - start)
    seconds = min(times)
    rng = random.Random(0)
    # One random moment in each sixth of the run.
    delays = [seconds * (sixth + rng.random()) / 6 for sixth in range(6)]
    seen = []
    for delay in delays:
        code, out, err = ended_by(signal.SIGINT, delay, place)
        if "fastece" not in err and code in (-signal.SIGINT, 1, 130) and not out:
            assert code != 0
            seen.append("Python")
            continue
        seen.append("interrupted" if code else "done")
        # Killed by the signal is 130, too, in a shell.
        assert code in (130, -signal.SIGINT) or (code, err) == (0, ""), (delay, err)
        assert err.count("\n") <= 1, (delay, err)
    assert seen.count("interrupted") >= 2, seen
