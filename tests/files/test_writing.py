"""Predictions are written in the format that the name says, and read again bit for bit."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastece.files import (
    check_output,
    read_predictions,
    write_file,
    write_predictions,
)
from helpers.prediction_files import FORMATS, GROUP, TRUE, WEIGHT, encoded

# Numbers that have all their bits.
NEW = np.random.default_rng(0).dirichlet([1, 1, 1], 4)
FRACTIONS = np.array([0.1, 0.2, 1 / 3, 5e-324])
OUTPUTS = ["new.csv", "new.jsonl", "new.npz", "new.csv.gz", "new.jsonl.gz", "new.npz.gz"]


@pytest.fixture
def rewrite(tmp_path):
    """Write a file, read it, write it again with other probabilities; give the new path."""

    def rewrite_file(content, new, name="a.csv", out="new.csv", **options):
        path = tmp_path / name
        path.write_bytes(encoded(content))
        predictions = read_predictions(path, **options)
        write_predictions(tmp_path / out, predictions.with_probabilities(np.asarray(new)))
        assert path.read_bytes() == encoded(content)
        return tmp_path / out

    return rewrite_file


@pytest.mark.parametrize(
    ("name", "out"),
    [("lists.ndjson", "new.csv"), ("fields.npy", "new.jsonl"), ("commas.csv", "new.npz"),
     ("packed.npz.gz", "new.csv.gz"), ("commas.csv", "new.jsonl.gz"), ("fields.npy", "new.npz.gz"),
     ("lists.ndjson", "new.parquet")],
)  # fmt: skip
def test_every_format_becomes_every_other(rewrite, name, out):
    if out == "new.parquet":
        pytest.importorskip("pyarrow")
    path = rewrite(FORMATS[name], NEW, name, out, weights="w", columns={"by": "group"})
    again = read_predictions(path, weights="w", columns={"by": "group"})
    assert np.asarray(again.y_prob).tolist() == NEW.tolist()
    assert again.y_true.tolist() == TRUE
    assert again.weights.tolist() == WEIGHT
    assert again.others["by"].tolist() == GROUP
    assert path.read_bytes().startswith(b"\x1f\x8b") == out.endswith(".gz")
    assert not list(path.parent.glob("*.part"))


def test_confidences_are_written_beside_both_labels(rewrite):
    text = "id,confidence,true_label,pred_label\na,0.5,cat,dog\nb,0.75,cat,cat\n"
    assert rewrite(text, FRACTIONS[2:]).read_text() == (
        "id,confidence,true_label,pred_label\na,0.3333333333333333,cat,dog\nb,5e-324,cat,cat\n"
    )


@pytest.mark.parametrize("out", [*OUTPUTS, "new.parquet"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,y_true,note,y_prob\n007,0,a,0.5\n008,1,,0.75\n"),
        ("a.jsonl", '{"id": "007", "y_true": 0, "note": "a", "y_prob": 0.5}\n'
         '{"id": "008", "y_true": 1, "note": null, "y_prob": 0.75}\n'),
    ],
)  # fmt: skip
def test_every_column_of_the_input_is_kept(rewrite, name, content, out):
    path = rewrite(content, FRACTIONS[:2], name, out)
    again = read_predictions(path)
    assert again.table.names == ["id", "y_true", "note", "y_prob"]
    assert again.y_prob.tolist() == FRACTIONS[:2].tolist()
    columns = again.read_columns(["id", "note"])
    assert columns["id"].tolist() == ["007", "008"]
    assert columns["note"].tolist()[0] == "a"
    assert columns["note"].tolist()[1] in ("", None)


def test_probabilities_within_objects_are_replaced_there(rewrite):
    rows = [{"y": y, "out": {"p": 0.5, "site": "x"}} for y in (0, 1)]
    content = "".join(f"{json.dumps(row)}\n" for row in rows)
    path = rewrite(content, FRACTIONS[:2], "a.jsonl", "new.jsonl", y_true="y", y_prob="out.p")
    new = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["out"] for row in new] == [{"p": 0.1, "site": "x"}, {"p": 0.2, "site": "x"}]


def test_columns_that_are_named_keep_their_names(rewrite):
    text = "y,dog,cat\ndog,0.5,0.5\ncat,1,0\n"
    path = rewrite(text, NEW[:2, :2], y_true="y", y_prob="dog,cat")
    assert path.read_text().startswith("y,dog,cat\ndog,")
    path = rewrite("y,s\n0,0.5\n1,1\n", FRACTIONS[:2], y_true="y", y_prob="s")
    assert path.read_text() == "y,s\n0,0.1\n1,0.2\n"


def test_a_name_of_no_format_is_refused():
    with pytest.raises(ValueError, match=r"out: must end in \.csv, .*got 'a.txt'"):
        check_output(Path("a.txt"))
    check_output(Path("a.jsonl.gz"))


@pytest.mark.parametrize("out", ["new.jsonl", "new.npz", "new.jsonl.gz"])
def test_infinite_labels_are_read_again(rewrite, out):
    rows = [("1.5", "Infinity"), ("-Infinity", "1.5"), ("Infinity", "Infinity"), ("1.5", "1.5")]
    lines = [f'{{"true_label": {a}, "pred_label": {b}, "confidence": 0.5}}' for a, b in rows]
    path = rewrite("\n".join(lines), FRACTIONS, "a.jsonl", out)
    columns = read_predictions(path).read_columns(["true_label", "pred_label"])
    assert columns["true_label"].tolist() == [float(a) for a, _ in rows]
    assert columns["pred_label"].tolist() == [float(b) for _, b in rows]
    if out == "new.jsonl":
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)


# --- any file -------------------------------------------------------------------------------------

on_unix = pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")


@pytest.fixture
def place(tmp_path):
    """A folder of an old file a.csv."""
    (tmp_path / "a.csv").write_text("old")
    return tmp_path


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_nothing_else(place, monkeypatch, step, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)) as stop:
        write_file(place / "a.csv", b"new")
    if isinstance(error, OSError):
        assert stop.value.filename == str(place / "a.csv")
    assert (place / "a.csv").read_text() == "old"
    assert os.listdir(place) == ["a.csv"]


def test_text_is_refused_before_anything_is_written(place):
    with pytest.raises(TypeError):
        write_file(place / "a.csv", "text")
    assert (place / "a.csv").read_text() == "old"
    assert os.listdir(place) == ["a.csv"]


def test_another_process_may_write_the_file_meanwhile(place, monkeypatch):
    fsync = os.fsync

    def write_second_file(_):
        monkeypatch.setattr(os, "fsync", fsync)
        write_file(place / "a.csv", b"the second")
        assert (place / "a.csv").read_text() == "the second"

    monkeypatch.setattr(os, "fsync", write_second_file)
    write_file(place / "a.csv", b"the first")
    assert (place / "a.csv").read_text() == "the first"
    assert os.listdir(place) == ["a.csv"]


@on_unix
def test_a_link_stays_a_link(place):
    (place / "link.csv").symlink_to("a.csv")
    write_file(place / "link.csv", b"new")
    assert (place / "link.csv").is_symlink()
    assert (place / "a.csv").read_text() == "new"


@on_unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_mode_is_kept_and_never_wider(place, monkeypatch, mode):
    modes_before_the_end = []
    fsync = os.fsync

    def note_mode(file):
        modes_before_the_end.append(stat.S_IMODE(os.fstat(file).st_mode))
        fsync(file)

    monkeypatch.setattr(os, "fsync", note_mode)
    (place / "a.csv").chmod(mode)
    write_file(place / "a.csv", b"new")
    assert stat.S_IMODE((place / "a.csv").stat().st_mode) == mode
    assert [x & ~mode for x in modes_before_the_end] == [0]


@on_unix
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_usual_mode(place, mask):
    mask_before = os.umask(mask)
    try:
        write_file(place / "new.csv", b"new")
    finally:
        os.umask(mask_before)
    assert stat.S_IMODE((place / "new.csv").stat().st_mode) == 0o666 & ~mask


@on_unix
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


@on_unix
def test_a_terminal_is_written_through():
    master, terminal = os.openpty()
    try:
        write_file(os.ttyname(terminal), b"content")
        assert os.read(master, 99) == b"content"
    finally:
        os.close(master)
        os.close(terminal)


@pytest.mark.slow
@on_unix
def test_a_process_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    code = (
        "import os, signal\nfrom fastece.files import write_file\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"write_file({str(path)!r}, b'new')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    others = [name for name in os.listdir(tmp_path) if name != "a.csv"]
    assert all(name.endswith(".part") for name in others)
