"""What was read is written in the format that the name says, and read again bit for bit."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from fastece.files import check_output, read_predictions, whole_file, write_predictions
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


def test_a_file_is_there_when_it_is_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.write("no bytes")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_two_may_write_a_file_at_once(tmp_path):
    path = tmp_path / "a.csv"
    with whole_file(path) as file:
        file.write(b"the first")
        with whole_file(path) as other:
            other.write(b"the second")
        assert path.read_text() == "the second"
    assert path.read_text() == "the first"
    assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    with whole_file(tmp_path / "link.csv") as file:
        file.write(b"new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "a.csv").read_text() == "new"
