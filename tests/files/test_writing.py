"""What was read is written in the format that the name says, and read again bit for bit."""

import csv
import errno
import json
import os
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastece.files import Predictions, check_output, read_predictions, write_predictions, writing
from fastece.files.writing import write_file
from helpers.prediction_files import FORMATS, GROUP, TRUE, WEIGHT, encoded

# Numbers with all their bits.
NEW = np.random.default_rng(0).dirichlet([1, 1, 1], 4)
TENTHS = np.array([0.1, 0.2, 1 / 3, 5e-324])
NAMES = ["new.csv", "new.jsonl", "new.npz", "new.csv.gz", "new.jsonl.gz", "new.npz.gz"]


@pytest.fixture
def rewrite(tmp_path):
    """Write a file with this content, and what was read of it with other numbers; its path."""

    def rewrite_file(content, new, name="a.csv", out="new.csv", **options):
        path = tmp_path / name
        path.write_bytes(encoded(content))
        predictions = read_predictions(path, **options)
        write_predictions(tmp_path / out, predictions.with_probabilities(np.asarray(new)))
        assert path.read_bytes() == encoded(content)
        return tmp_path / out

    return rewrite_file


@pytest.mark.parametrize("out", [*NAMES, "new.parquet"])
@pytest.mark.parametrize("name", ["commas.csv", "lists.ndjson", "fields.npy", "packed.npz.gz"])
def test_every_format_becomes_every_other(rewrite, name, out):
    if out == "new.parquet":
        pytest.importorskip("pyarrow")
    path = rewrite(FORMATS[name], NEW, name, out, weights="w", columns={"by": "group"})
    read = read_predictions(path, weights="w", columns={"by": "group"})
    assert np.asarray(read.y_prob).tolist() == NEW.tolist()
    assert read.y_true.tolist() == TRUE
    assert read.weights.tolist() == WEIGHT
    assert read.others["by"].tolist() == GROUP
    assert path.read_bytes().startswith(b"\x1f\x8b") == out.endswith(".gz")
    assert not [*path.parent.glob("*.part")]


def test_confidences_are_written_beside_both_labels(rewrite):
    text = "id,confidence,true_label,pred_label\na,0.5,cat,dog\nb,0.75,cat,cat\n"
    assert rewrite(text, TENTHS[2:]).read_text() == (
        "true_label,pred_label,confidence\ncat,dog,0.3333333333333333\ncat,cat,5e-324\n"
    )


def test_columns_that_are_named_keep_their_names(rewrite):
    text = "y,dog,cat\ndog,0.5,0.5\ncat,1,0\n"
    path = rewrite(text, NEW[:2, :2], y_true="y", y_prob="dog,cat")
    assert path.read_text().startswith("y,dog,cat\ndog,")
    assert rewrite("y,s\n0,0.5\n1,1\n", TENTHS[:2], y_true="y", y_prob="s").read_text() == (
        "y,s\n0,0.1\n1,0.2\n"
    )


def test_a_name_of_no_format_is_refused():
    with pytest.raises(ValueError, match=r"out: must end in \.csv, .*got 'a.txt'"):
        check_output(Path("a.txt"))
    check_output(Path("a.jsonl.gz"))


# How files are made: without a name until they are whole, or where that cannot be, with one.
NAMELESS = [
    pytest.param(True, marks=pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="of Linux")),
    False,
]
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")


@pytest.fixture(params=NAMELESS)
def place(request, tmp_path, monkeypatch):
    """A folder of an old file a.csv, and both ways of making files."""
    if not request.param:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    (tmp_path / "a.csv").write_text("old")
    return tmp_path


@pytest.mark.parametrize("step", ["fsync", "replace", "link", "fchmod"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_nothing_else(place, monkeypatch, step, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(os, step, fail, raising=False)
    is_used = step != "link" or (hasattr(os, "O_TMPFILE") and isinstance(error, KeyboardInterrupt))
    if is_used:
        with pytest.raises(type(error)) as stop:
            write_file(place / "a.csv", b"new")
        if isinstance(error, OSError):
            assert stop.value.filename == str(place / "a.csv")
    else:  # it has a name from the beginning
        write_file(place / "a.csv", b"new")
    assert (place / "a.csv").read_text() == ("old" if is_used else "new")
    assert os.listdir(place) == ["a.csv"]


def test_only_bytes_are_written(place):
    with pytest.raises(TypeError):
        write_file(place / "a.csv", "text")
    assert (place / "a.csv").read_text() == "old"
    assert os.listdir(place) == ["a.csv"]


def test_another_may_write_the_file_meanwhile(place, monkeypatch):
    flush = os.fsync

    def write_other(_):
        monkeypatch.setattr(os, "fsync", flush)
        write_file(place / "a.csv", b"the second")
        assert (place / "a.csv").read_text() == "the second"

    monkeypatch.setattr(os, "fsync", write_other)
    write_file(place / "a.csv", b"the first")
    assert (place / "a.csv").read_text() == "the first"
    assert os.listdir(place) == ["a.csv"]


@UNIX
def test_a_link_stays_a_link(place):
    (place / "link.csv").symlink_to("a.csv")
    write_file(place / "link.csv", b"new")
    assert (place / "link.csv").is_symlink()
    assert (place / "a.csv").read_text() == "new"


@UNIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_mode_is_kept_and_never_wider(place, monkeypatch, mode):
    before, keep = [], writing.keep_access

    def keep_access(path, old, file):
        before.append(os.fstat(file).st_mode & 0o777)
        keep(path, old, file)

    monkeypatch.setattr(writing, "keep_access", keep_access)
    (place / "a.csv").chmod(mode)
    write_file(place / "a.csv", b"new")
    assert (place / "a.csv").stat().st_mode & 0o777 == mode
    assert before == [0o600]


@UNIX
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_usual_mode(place, mask):
    before = os.umask(mask)
    try:
        write_file(place / "new.csv", b"new")
    finally:
        os.umask(before)
    assert (place / "new.csv").stat().st_mode & 0o777 == 0o666 & ~mask


@UNIX
def test_hard_links_are_a_warning(place):
    os.link(place / "a.csv", place / "b.csv")
    with pytest.warns(UserWarning, match=r"a\.csv: .* hard links to it, could not be kept"):
        write_file(place / "a.csv", b"new")
    assert (place / "a.csv").read_text() == "new"
    assert (place / "b.csv").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="of another owner")
def test_the_owner_is_kept_or_a_warning(place, monkeypatch):
    path = place / "a.csv"
    path.chmod(0o664)
    os.chown(path, 12, 34)
    write_file(path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12, 34, 0o664)

    def refuse(*_):
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", refuse)
    with pytest.warns(UserWarning, match=r"a\.csv: is a new file: its owner or group"):
        write_file(path, b"newer")
    assert path.stat().st_mode & 0o777 == 0o604  # the group is another one


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="of Linux")
def test_the_list_of_readers_is_kept(place):
    # Version 2; owner rw, user 12 r, group -, mask r, others -.
    rows = [(1, 6, -1), (2, 4, 12), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)
    path = place / "a.csv"
    try:
        os.setxattr(path, writing.READERS_LIST, content)
    except OSError:
        pytest.skip("no such lists on this disk")
    write_file(path, b"new")
    assert os.getxattr(path, writing.READERS_LIST) == content


@UNIX
@pytest.mark.parametrize("is_link", [False, True])
def test_a_pipe_is_written_through(place, is_link):
    os.mkfifo(place / "pipe")
    path = place / "pipe"
    if is_link:
        path = place / "link"
        path.symlink_to("pipe")
    reader = os.open(place / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(path, b"content")
        assert os.read(reader, 99) == b"content"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((place / "pipe").stat().st_mode)
    assert path.is_symlink() == is_link


@UNIX
def test_a_terminal_is_written_through():
    master, terminal = os.openpty()
    try:
        write_file(os.ttyname(terminal), b"content")
        assert os.read(master, 99) == b"content"
    finally:
        os.close(master)
        os.close(terminal)


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="elsewhere a part is left")
def test_a_process_that_is_killed_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    code = (
        "import os, signal\nfrom fastece.files.writing import write_file\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"write_file({str(path)!r}, b'new')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("out", ["new.jsonl", "new.npz", "new.jsonl.gz"])
def test_infinite_labels_are_read_again(rewrite, out):
    rows = [("1.5", "Infinity"), ("-Infinity", "1.5"), ("Infinity", "Infinity"), ("1.5", "1.5")]
    lines = [f'{{"true_label": {a}, "pred_label": {b}, "confidence": 0.5}}' for a, b in rows]
    path = rewrite("\n".join(lines), TENTHS, "a.jsonl", out)
    read = read_predictions(path)
    assert read.cells["true_label"].tolist() == [float(a) for a, _ in rows]
    assert read.cells["pred_label"].tolist() == [float(b) for _, b in rows]
    if out == "new.jsonl":
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)


FORMULAS = {
    "=1+1": "'=1+1", "+a": "'+a", "-a": "'-a", "@a": "'@a", "\ta": "'\ta", "-1-1": "'-1-1",
    "-1": "-1", "+2.5e-3": "+2.5e-3", "-.5": "-.5", "a=1": "a=1", "": "",
}  # fmt: skip


def test_texts_that_a_spreadsheet_runs_get_an_apostrophe(tmp_path):
    label = np.array(list(FORMULAS))
    prob = np.linspace(-0.1, 1, len(label))
    cells = {"=y": label, "@w": prob}
    rows = Predictions(label, prob, label, cells=cells, columns={"y_prob": ["-p"]})
    write_predictions(tmp_path / "a.csv", rows, is_safe=True)
    with open(tmp_path / "a.csv", newline="") as file:
        head, *found = csv.reader(file)
    assert head == ["'=y", "'@w", "'-p"]
    assert [row[0] for row in found] == list(FORMULAS.values())
    assert [float(row[2]) for row in found] == prob.tolist()
    write_predictions(tmp_path / "a.csv", rows)
    assert (tmp_path / "a.csv").read_text().startswith("=y,@w,-p\n=1+1,")
