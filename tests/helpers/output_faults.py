"""Outputs of the commands, faults that befall them, and what may be there afterwards."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from traceback import print_exc, walk_tb
from xml.etree import ElementTree

import numpy as np

import fastece

ROWS = 40
SCORES = [(i % 20 + 0.5) / 20 for i in range(ROWS)]
OUTCOMES = [int(i * 0.37 % 1 < score) for i, score in enumerate(SCORES)]
CONTENT = "y_true,y_prob\n" + "".join(f"{y},{p}\n" for y, p in zip(OUTCOMES, SCORES, strict=True))
# Shorter than every output, and no part of one.
OLD = b"what was there before\n"
NOBODY = 65534


@dataclass(frozen=True)
class Output:
    """A command, the option by which it writes a file, and the name of the file."""

    command: str
    option: str
    name: str

    def __str__(self):
        return f"{self.command.split()[0]} {self.option} {self.name}"

    def line(self, path=None, a="a.csv"):
        """The arguments of the command, with this path and this input."""
        path = f"out/{self.name}" if path is None else os.fspath(path)
        command = [a if word == "a.csv" else word for word in self.command.split()]
        return [*command, self.option, path]

    def is_whole(self, content):
        """Is this all of a file that this output writes?"""
        return CHECKS[self.name.partition(".")[2]](content)


OUTPUTS = """
report a.csv --resamples 0                   --html r.html
report a.csv --resamples 0 --json            --plot r.png
report a.csv --resamples 0                   --plot r.svg
report a.csv --resamples 0 --markdown        --plot r.pdf
report a.csv --stream                        --html s.html
report a.csv b.csv --json                    --plot s.svg
compare a.csv b.csv --resamples 9            --plot c.png
recalibrate a.csv --resamples 9 --folds 2    --out x.csv
recalibrate a.csv --resamples 9 --folds 2    --out x.csv.gz
recalibrate a.csv --resamples 9 --folds 2    --out x.jsonl
recalibrate a.csv --resamples 9 --folds 2    --out x.jsonl.gz
recalibrate a.csv --resamples 9 --folds 2    --out x.npz
recalibrate a.csv --resamples 9 --folds 2    --out x.parquet
recalibrate a.csv --method temperature --folds 2 --resamples 9 --save m.json
recalibrate a.csv --resamples 9 --folds 2    --plot x.svg
curve a.csv                                  --plot k.pdf
demo --resamples 0                           --html d.html
demo --resamples 0                           --plot d.png
"""
OUTPUTS = [Output(*line.rsplit(maxsplit=2)) for line in OUTPUTS.strip().splitlines()]


def page_is_whole(content):
    text = content.decode()
    return text.lower().startswith("<!doctype html") and text.rstrip().endswith("</html>")


def png_is_whole(content):
    from PIL import Image

    with in_file(content, ".png") as path, Image.open(path) as image:
        image.load()
        return image.format == "PNG" and content.endswith(b"IEND\xaeB`\x82")


def svg_is_whole(content):
    return ElementTree.fromstring(content).tag.endswith("}svg")


def pdf_is_whole(content):
    lines = content.rstrip().splitlines()
    start = int(lines[-2])
    return content.startswith(b"%PDF-") and content[start:].startswith(b"xref")


def map_is_whole(content):
    from fastece.recalibration import load

    with in_file(content, ".json") as path:
        return 0 < load(path).temperature_ < float("inf")


def predictions_are_whole(suffix):
    """Are all rows there, in the format that the suffix says?"""

    def is_whole(content):
        from fastece.files import read_predictions

        packed = content.startswith(b"\x1f\x8b")
        with in_file(content, suffix) as path:
            read = read_predictions(path)
        same = read.y_true.tolist() == OUTCOMES and len(read.y_prob) == ROWS
        return same and packed == suffix.endswith(".gz")

    return is_whole


PREDICTIONS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "npz", "parquet")
CHECKS = {name: predictions_are_whole(f".{name}") for name in PREDICTIONS}
CHECKS |= {"html": page_is_whole, "png": png_is_whole, "svg": svg_is_whole}
CHECKS |= {"pdf": pdf_is_whole, "json": map_is_whole}


@contextmanager
def in_file(content, suffix):
    """A file with this content, as long as the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"file{suffix}")
        path.write_bytes(content)
        yield path


def write_inputs(folder):
    """Write the inputs of the commands, and make the folder of their outputs."""
    for name in ("a.csv", "b.csv"):
        Path(folder, name).write_text(CONTENT)
    Path(folder, "out").mkdir()
    return Path(folder, "out")


def without_drawing(setattr_):
    """Pictures are written as ever, but nothing is drawn on them, which takes no time."""
    from matplotlib.figure import Figure

    setattr_(Figure, "draw", lambda self, renderer: None)  # noqa: ARG005


def tree(folder):
    """Return the entries of a folder: name -> target of a link, "folder", or content."""
    entries = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            entries[name] = f"to {os.readlink(path)}"
        elif path.is_dir():
            entries[name] = "folder"
        else:
            entries[name] = path.read_bytes() if path.is_file() else f"mode {path.stat().st_mode:o}"
    return entries


def one_line(err, *words):
    """Is this one line of an error, with one of these words, and none about files aside?"""
    good = err.startswith("fastece: error: ") and err.count("\n") == 1 and ".part" not in err
    return good and any(word in err for word in words)


def write_table(path):
    """Write the input in the format that its name asks for."""
    columns = {"y_true": OUTCOMES, "y_prob": SCORES}
    if path.endswith(".npz"):
        np.savez(path, **columns)
    elif path.endswith(".parquet"):
        from pyarrow import parquet, table

        parquet.write_table(table(columns), path)
    else:
        Path(path).write_text(CONTENT)


@contextmanager
def file_limit(size):
    """Files of this process can have so many bytes, as on a disk that is full."""
    import resource

    # Python keeps the bytecode of a module that it imports now, cut off as it is.
    keeps = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
        sys.dont_write_bytecode = keeps


@contextmanager
def rights_of_nobody():
    """Lay down the rights of root, to whom every file is open."""
    if os.geteuid() == 0:
        groups = os.getgroups()
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, 0)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if os.getresuid()[2] == 0:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.setgroups(groups)


class Pipe:
    """A FIFO of this name, and a thread that reads from it."""

    def __init__(self, path):
        os.mkfifo(path)
        self.parts = []
        self.is_done = threading.Event()
        # Not blocked: this end does not wait for a writer, who may never come.
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        part = b""
        is_done = False
        while part or not is_done:
            is_done = self.is_done.wait(0.001)
            try:
                part = os.read(self.reader, 65536)
            except BlockingIOError:
                part = b""
            self.parts.append(part)

    def content(self):
        """All that was written; nothing if nobody ever opened it."""
        self.is_done.set()
        self.thread.join(10)
        os.close(self.reader)
        return b"".join(self.parts)


class Terminal:
    """A device: a pseudo-terminal, to which the name is a link; and a thread that reads it."""

    def __init__(self, path):
        self.parts = []
        self.reader, self.writer = os.openpty()
        tty.setraw(self.writer)
        path.symlink_to(os.ttyname(self.writer))
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            while part := os.read(self.reader, 65536):
                self.parts.append(part)
        except OSError:  # so a pseudo-terminal ends
            pass

    def content(self):
        """All that was written."""
        os.close(self.writer)
        self.thread.join(10)
        os.close(self.reader)
        return b"".join(self.parts)


def environment():
    """Variables of a child that finds the package and the helpers."""
    paths = [str(path) for path in (Path(__file__).parents[1], Path(fastece.__file__).parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class Trials:
    """Runs of a command that a signal ends, each in a fork of a process with all in memory."""

    def __init__(self, folder):
        # A fork has no other threads than the one that forks.
        env = {**environment(), "NUMBA_NUM_THREADS": "1"}
        self.server = subprocess.Popen(
            [sys.executable, "-c", "from helpers.output_faults import serve; serve()"], cwd=folder,
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, arguments, number=0, delay=0.0):
        """Exit code, seconds and standard error of the command; the signal comes after a delay."""
        request = {"arguments": arguments, "signal": int(number), "delay": delay}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def close(self):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(60)


WARM = set()


def warm_up(folder, output):
    """Run a command once, in this folder, so that the next time it compiles and imports nothing."""
    from fastece.cli import main

    if output not in WARM:
        with chdir(folder):
            main(output.line())
        WARM.add(output)


def serve():
    """Fork for every line of standard input, run the command, send the signal, print the end."""
    import fastece.study  # noqa: F401
    from fastece.cli import main
    from fastece.study import PRESETS
    from helpers import study_cases

    without_drawing(setattr)
    study_cases.with_quick_figures(setattr)
    PRESETS["quick"] = study_cases.SINGLE
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if not request["signal"]:  # this process, too, has it all in memory then
                with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                    main(request["arguments"])
            start = time.perf_counter()
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            child = os.fork()
            if child == 0:
                os._exit(run_trial(request["arguments"], out, err))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            if request["signal"]:
                time.sleep(request["delay"])
                os.kill(child, request["signal"])
            _, status = os.waitpid(child, 0)
            seconds = time.perf_counter() - start
            err.seek(0)
            code = os.waitstatus_to_exitcode(status)
            print(json.dumps([code, seconds, err.read().decode()]), flush=True)


def run_trial(arguments, out, err):
    """Exit code of the command in this process, which shows what an interrupt leaves uncaught."""
    from fastece.cli import main

    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.argv[1:] = arguments
    code = 130
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        code = main()
        sys.stdout.flush()
    except BaseException as error:
        has_begun = any(frame.f_code is main.__code__ for frame, _ in walk_tb(error.__traceback__))
        if has_begun or not isinstance(error, KeyboardInterrupt):
            print_exc()
            code = 1
    sys.stderr.flush()
    return code


def in_mounts(folder):
    """Problems of outputs on a full file system, which only this child sees; None if it cannot."""
    script = 'mount -t tmpfs -o size=64k tmpfs out && exec "$0" -c "$1"'
    code = "from helpers.output_faults import fill_up; fill_up()"
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    try:
        done = subprocess.run(
            ["unshare", "--mount", *user, "sh", "-c", script, sys.executable, code], cwd=folder,
            env=environment(), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return None
    if "unshare" in done.stderr or "mount" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fill_up():
    """Write every output where there is no room for it, and print all faults."""
    from fastece.cli import main

    without_drawing(setattr)
    faults = []
    for output in OUTPUTS:
        path = Path("out", output.name)
        filler = Path("out/filler")
        for is_old in (False, True):
            filler.write_bytes(b"")
            if is_old:
                path.write_bytes(OLD)
            with open(filler, "ab", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            before = set(tree("out"))
            err = StringIO()
            try:
                with redirect_stdout(StringIO()), redirect_stderr(err):
                    code = main(output.line())
            except Exception as error:  # is a problem, and does not end the others
                code = repr(error)
            good = code == 2 and one_line(err.getvalue(), output.name, output.option)
            good &= "No space" in err.getvalue() and set(tree("out")) == before
            good &= not is_old or path.read_bytes() == OLD
            faults.append((str(output), "" if good else f"{code} {err.getvalue()} {before}"))
            path.unlink(missing_ok=True)
    print(json.dumps(faults))
