"""What is read from files: labels as they are written, names of columns, and lines that are bad."""

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "predictions.csv"
        path.write_bytes(text.encode())
        return path

    return write_file


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["0", "1", "10", "-1"], [0, 1, 10, -1]),
        (["0.0", "1.0", "1.000000e+01"], [0.0, 1.0, 10.0]),
        ([" 1", "0 ", "1"], [1, 0, 1]),
        (["True", "False", "True"], [True, False, True]),
        (["1_1", "11"], ["1_1", "11"]),
        (["007", "7"], ["007", "7"]),
        (["+1", "1"], ["+1", "1"]),
        (["1.1", "1.10"], ["1.1", "1.10"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["0", "-0"], ["0", "-0"]),
        (["inf", "1"], ["inf", "1"]),
        (["\u0661", "1"], ["\u0661", "1"]),
        (["9007199254740993", "9007199254740992.0"], ["9007199254740993", "9007199254740992.0"]),
    ],
)
def test_labels_that_are_written_otherwise_stay_apart(write, cells, labels):
    path = write("y_true,y_prob\n" + "".join(f"{cell},0.5\n" for cell in cells))
    got = read_predictions(path).y_true
    assert got.tolist() == labels
    assert got.dtype.kind == np.array(labels).dtype.kind


def test_a_label_is_right_only_if_it_is_written_as_predicted(write):
    head = "true_label,pred_label,confidence\n"
    assert read_predictions(write(head + "1_1,11,0.5\n007,7,0.5\na,a,0.5\n")).y_true.sum() == 1
    assert read_predictions(write(head + "1.0,1,0.5\n2.0,2,0.5\n")).y_true.all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y_true,y_prob\n\n0,0.1\n\n1,0.2,0.3\n",
            "line 5: must have 2 cells, as the header has, got 3",
        ),
        ("\ny_true,y_prob\n0,0.1\n\n,0.9\n", "line 5, column y_true: must not be missing, got ''"),
        (
            "y_true,y_prob\r\n0,0.1\r\n\r\nnan,0.9\r\n",
            "line 4, column y_true: must not be missing, got 'nan'",
        ),
        (
            '"a\nb",y_true,y_prob\nx,0,0.1\n"y\nz",1,high\n',
            "line 5, column y_prob: must be a number, got 'high'",
        ),
        (
            "y_true,p_0,p_1\n0,.1,0.9\n1,1,+0.\n1,0.5,1_0\n",
            "line 4, column p_1: must be a number, got '1_0'",
        ),
        ("y_true,y_prob\n0,0.1\n1,\n", "line 3, column y_prob: must not be missing, got ''"),
        (
            "true_label,pred_label,confidence\n0,0,0.1\n0,0,nan\n",
            "line 3, column confidence: must not be missing, got 'nan'",
        ),
        ("y_true,y_prob\n", "is empty: it has no rows"),
    ],
)
def test_a_bad_cell_is_told_by_the_line_of_the_file(write, text, message):
    with pytest.raises(ValueError, match=f"predictions.csv: {message}"):
        read_predictions(write(text))


def test_infinite_logits_are_numbers(write):
    path = write("y_true,p_0,p_1\n0,1.5,-inf\n1,-Infinity,2e0\n")
    assert read_predictions(path).y_prob.tolist() == [[1.5, -np.inf], [-np.inf, 2.0]]


TRUE = ["dog", "cat", "cat", "dog"]
ROWS = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])


def names_csv(tmp_path, names):
    path = tmp_path / "a.csv"
    lines = [f"{y},{a},{b}" for y, (a, b) in zip(TRUE, ROWS.tolist(), strict=True)]
    path.write_text("\n".join([f"y_true,{names}", *lines]))
    return path


def names_parquet(tmp_path, names):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = zip(names.split(","), ROWS.T, strict=True)
    parquet.write_table(pyarrow.table({"y_true": TRUE, **dict(columns)}), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


@pytest.mark.parametrize("make", [names_csv, names_parquet])
def test_columns_that_are_named_keep_their_names(make, tmp_path):
    read = read_predictions(make(tmp_path, "dog,cat"), y_prob="dog,cat")
    right = [0, 1, 1, 0]
    assert fastece.ece(read.y_true, read.y_prob) == fastece.ece(right, ROWS)
    other = read_predictions(make(tmp_path, "dog,cat"), y_prob="cat,dog")
    assert fastece.ece(other.y_true, other.y_prob) == fastece.ece(right, ROWS)
    read = read_predictions(make(tmp_path, "p_dog,p_cat"), y_prob="p_dog,p_cat")
    with pytest.raises(ValueError, match=r"y_prob's columns, \['p_dog', 'p_cat'\].*pass labels="):
        fastece.ece(read.y_true, read.y_prob)
    assert fastece.ece(read.y_true, read.y_prob, labels=["dog", "cat"]) == fastece.ece(right, ROWS)


def test_columns_that_are_counted_have_no_names(tmp_path):
    read = read_predictions(names_csv(tmp_path, "p_0,p_1"))
    assert isinstance(read.y_prob, np.ndarray)
    assert fastece.ece(read.y_true, read.y_prob) == fastece.ece([1, 0, 0, 1], ROWS)
