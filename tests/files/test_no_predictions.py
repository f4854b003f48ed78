"""Files that are no predictions: refused in one line with the remedy, whatever they hold."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re

import numpy as np
import pytest

from fastece.cli import main
from helpers.command_line import SMALL, failure
from helpers.field_samples import draw_risks, plain_ece
from helpers.prediction_files import as_zip
from helpers.strange_files import COMMANDS, OPTIONS, draw_strange_file

Y, P = draw_risks()
LISTS = {"y_true": Y.tolist(), "y_prob": P.tolist()}


@pytest.mark.slow
def test_lists_within_objects_are_columns_with_dotted_names(write, error_of):
    path = write(json.dumps({"model": "a", "results": {"truth": LISTS["y_true"], "p": P.tolist()}}))
    options = ["--y-true", "results.truth", "--y-prob", "results.p"]
    assert error_of(path, *options) == pytest.approx(plain_ece(Y, P), abs=1e-12)


WORKBOOK = {"[Content_Types].xml": "<Types/>", "xl/worksheets/sheet1.xml": "<worksheet/>"}
NONE = "is none of CSV and JSON in UTF-8, Parquet, Arrow, NPZ and NPY; save the table as CSV in"
REFUSED = {
    "a workbook": (lambda: as_zip(WORKBOOK), r"one table.*has \[Content_Types\].xml, xl/work"),
    "torch": (lambda: as_zip({"a/data.pkl": "x", "a/0": "y"}), "one table.*has a/data.pkl, a/0"),
    "two tables": (lambda: as_zip({"a.csv": "x", "b.csv": "y"}), "one table.*has a.csv, b.csv"),
    "an empty archive": (lambda: as_zip({}), "one table.* it has nothing; unpack it"),
    "a cut archive": (lambda: as_zip({"a.csv": "x" * 99})[:60], "cannot be read: "),
    "a pickle": (lambda: pickle.dumps(LISTS), NONE),
    "HDF5": (lambda: b"\x89HDF\r\n\x1a\n", NONE),
    "an old workbook": (lambda: b"\xd0\xcf\x11\xe0\xa1", NONE),
    "bzip2": (lambda: bz2.compress(b"x"), NONE),
    "xz": (lambda: lzma.compress(b"x"), NONE),
    "UTF-16": (lambda: SMALL.encode("utf-16"), NONE),
    "zeros": (lambda: bytes(99), NONE),
    "noise": (lambda: b"abc\0\x07", NONE),
    "gzip of nothing": (lambda: gzip.compress(b""), "is empty"),
    "nothing": (lambda: b"", "is empty"),
    "numbers in an array": (lambda: "[1, 2]", "is a JSON array without objects"),
    "half an array": (lambda: '[{"y_true": 1,\n', "is a JSON array that is cut off or broken"),
    "lists of two lengths": (lambda: '{"y_true": [1, 0], "y_prob": [0.5]}',
                             "column y_prob: has 1 entries, y_true has 2"),
    "one column": (lambda: "x\n0.5\n", "no column 'y_true', it has x"),
}  # fmt: skip


def test_a_file_that_is_not_read_is_named_with_the_remedy(capsys, write):
    for kind, (content, message) in REFUSED.items():
        assert re.search(message, failure(capsys, "report", write(content(), "strange"))), kind


def check_strange_file(capsys, seed):
    """Run a command on a strange file: a verdict, or exit code 2 and one line."""
    rng = np.random.default_rng(seed)
    name, content = draw_strange_file(rng)
    with open(name, "wb") as file:
        file.write(content)
    command = COMMANDS[rng.integers(len(COMMANDS))].format(name, other="other.csv")
    line = [*command.split(), *OPTIONS[rng.integers(len(OPTIONS))].split()]
    try:
        code = main(line)
    except SystemExit as stop:
        # The command has no such option.
        code = stop.code
    out, err = capsys.readouterr()
    assert "Traceback" not in err, (seed, line)
    if code == 2:
        assert out == "", (seed, line)
        assert err.startswith("fastece: error: "), (seed, line)
        assert err.count("\n") == 1, (seed, line)
    else:
        verdicts = (("check", 1), ("check", 3), ("monitor", 1), ("threshold", 1))
        assert code == 0 or (line[0], code) in verdicts


@pytest.fixture
def _other_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text(SMALL)


@pytest.mark.parametrize("prob", [np.array(["a"]), np.array([b"x"]), np.zeros(1, "V3")])
def test_labels_of_two_axes_beside_no_numbers_are_one_line(capsys, write, prob):
    file = io.BytesIO()
    np.savez(file, y_true=np.array([[0.3, 0.1, 0.9]]), y_prob=prob)
    path = write(file.getvalue(), "arrays.npz")
    failure(capsys, "report", path, write(SMALL, "other.csv"), "--resamples", "0")


@pytest.mark.slow
@pytest.mark.usefixtures("_other_file")
def test_any_file_whatever_is_a_verdict_or_one_line(capsys):
    for seed in range(60):
        check_strange_file(capsys, seed)


@pytest.mark.slow
@pytest.mark.usefixtures("_other_file")
@pytest.mark.parametrize("first", range(1000, 1500, 250))
def test_more_files_are_a_verdict_or_one_line(capsys, first):
    for seed in range(first, first + 250):
        check_strange_file(capsys, seed)
