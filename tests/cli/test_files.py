"""Commands never write over their input, and leave whole files or the old ones."""

import errno
import json
import os
import sys

import pytest

from fastece.files import file_identity
from helpers.command_line import SMALL, failure, text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need rights there")
QUICK = ("--method", "platt", "--resamples", "9")
SAME = """
report a.html --html a.html
report a.html --html ./folder/../a.html
report a.html --html link.html
report a.html --html hard.html
report a.html b.html --html b.html
report folder --html folder/link.html
report b*.html --html b.html
report - --html a.html
compare a.html b.html --plot b.png
curve a.html --plot a.png
recalibrate a.html --fit b.html --plot b.png
recalibrate a.html --load b.html --save b.html
recalibrate a.html --load b.html --save b.png
recalibrate a.html --out out.csv --save hard.csv
recalibrate a.html --out new.csv --save to_new.csv
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of two files of predictions, with links to them, and of an old file."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("a.html", "b.html", "folder/c.csv", "out.csv"):
        (tmp_path / name).write_text(SMALL)
    for link, name in [("hard.html", "a.html"), ("a.png", "a.html"), ("b.png", "b.html"),
                       ("hard.csv", "out.csv"), ("folder/link.html", "folder/c.csv")]:  # fmt: skip
        os.link(name, link)
    (tmp_path / "link.html").symlink_to("a.html")
    (tmp_path / "to_new.csv").symlink_to("new.csv")
    return tmp_path


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", SAME.strip().splitlines())
def test_a_file_that_is_read_or_written_is_not_written_over(capsys, monkeypatch, folder, line):
    if " - " in line:
        monkeypatch.setattr(
            "fastece.cli.output.file_identity", lambda x: file_identity(x.replace("-", "a.html"))
        )
    before = files_of(folder)
    message = failure(capsys, *line.split())
    assert f" {line.split()[-2]}: must be a file that this command does not read" in message
    assert files_of(folder) == before


@pytest.mark.parametrize(("option", "is_old"), [("--out o.csv", False), ("--save o", True)])
def test_a_full_disk_leaves_the_files_as_they_were(capsys, monkeypatch, folder, option, is_old):
    path = folder / option.split()[1]
    if is_old:
        path.write_text("old")
    before = files_of(folder)

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    message = failure(capsys, "recalibrate", "a.html", *QUICK, *option.split())
    assert "No space left" in message
    assert message.endswith(f": {path.name}\n")
    assert files_of(folder) == before


def test_a_pipe_gets_the_predictions(capsys, folder):
    os.mkfifo("pipe.csv")
    reader = os.open("pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    text(capsys, "recalibrate", "a.html", *QUICK, "--out", "pipe.csv")
    assert os.read(reader, 12) == b"y_true,y_pro"
    os.close(reader)
    assert (folder / "pipe.csv").is_fifo()


@pytest.mark.parametrize("name", ["o.csv.gz", "o.parquet"])
def test_halves_of_surrogate_pairs_in_labels_are_refused(capsys, folder, name):
    pytest.importorskip("pyarrow")
    rows = [{"y_true": "b\ud800"[i % 2], "y_prob": i / 40} for i in range(40)]
    (folder / "s.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    line = ("recalibrate", "s.jsonl", "--pos-label", "b", *QUICK, "--out", name)
    assert "--out: must end in .jsonl or .npz" in failure(capsys, *line)
    assert not (folder / name).exists()


@pytest.mark.skipif(not os.path.exists("/dev/stderr"), reason="has no names of open files")
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.usefixtures("folder")
def test_the_file_of_a_standard_stream_is_not_replaced(capsys, number):
    stream = os.dup(number)
    try:
        with open("log.json", "w") as file:
            os.dup2(file.fileno(), number)
        line = failure(capsys, "recalibrate", "a.html", *QUICK, "--save", "log.json")
    finally:
        os.dup2(stream, number)
        os.close(stream)
    assert line.startswith("fastece: error: --save: must be a file that this command does not")
