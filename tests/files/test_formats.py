"""One table in every format is read as the same predictions; what is off is told in one line."""

import io
import sys

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions
from helpers.prediction_files import (
    FORMATS,
    GROUP,
    PROB,
    TRUE,
    WEIGHT,
    as_json,
    as_npy,
    as_npz,
    encoded,
    packed,
)


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(encoded(content))
        return path

    return write_file


@pytest.fixture
def stdin(monkeypatch):
    def feed(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(encoded(content))))

    return feed


def check_read(path):
    read = read_predictions(path, weights="w", columns={"by": "group", "groups": "w"})
    assert read.y_true.tolist() == read.label.tolist() == TRUE
    assert np.asarray(read.y_prob).tolist() == PROB
    assert read.weights.tolist() == read.others["groups"].tolist() == WEIGHT
    assert read.others["by"].tolist() == GROUP
    assert fastece.ece(read.y_true, read.y_prob) == fastece.ece(TRUE, PROB)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_holds_the_same(write, name):
    check_read(write(FORMATS[name], name))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_but_parquet_is_read_without_pyarrow(write, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    check_read(write(FORMATS[name], name))


@pytest.mark.parametrize("name", FORMATS)
def test_standard_input_is_read_by_its_content(stdin, name):
    stdin(FORMATS[name])
    check_read("-")


def test_lists_in_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"y_true": TRUE, "y_prob": PROB, "w": WEIGHT, "group": GROUP}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    check_read(tmp_path / "a.parquet")
    parquet.write_table(
        pyarrow.table({"y_true": TRUE, "y_prob": ["0.5", "x", "0.1", ""]}), tmp_path / "a.parquet"
    )
    with pytest.raises(ValueError, match="row 2, column y_prob: must be a number, got 'x'; and 1"):
        read_predictions(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:-20] + whole[-8:])
    with pytest.raises(ValueError, match=r"a.parquet: "):
        read_predictions(tmp_path / "a.parquet")


def test_a_matrix_in_npy_starts_with_the_labels(write):
    read = read_predictions(write(as_npy(np.column_stack([TRUE, PROB]))))
    assert (read.y_true.tolist(), np.asarray(read.y_prob).tolist()) == (TRUE, PROB)
    read = read_predictions(write(as_npy(np.array([[0, 0.25], [1, 0.5]]))))
    assert (read.y_true.tolist(), read.y_prob.tolist()) == ([0, 1], [0.25, 0.5])


def test_paths_lead_into_objects(write):
    rows = [
        {"out": {"label": y, "scores": [{"p": p[0]}, {"p": p[1]}]}, "p.x": 1}
        for y, p in ((1, [0.25, 0.75]), (0, [0.5, 0.5]))
    ]
    path = write(as_json(rows))
    read = read_predictions(path, y_true="out.label", y_prob="out.scores.1.p", weights="p.x")
    assert (read.y_true.tolist(), read.y_prob.tolist()) == ([1, 0], [0.75, 0.5])
    assert read.weights.tolist() == [1, 1]
    read = read_predictions(path, y_true="out.label", y_prob="out.scores.*.p")
    assert np.asarray(read.y_prob).tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_probabilities_by_name_are_in_any_order(write):
    rows = [
        {"y_true": "dog", "y_prob": {"cat": 0.25, "dog": 0.75}},
        {"y_true": "cat", "y_prob": {"dog": 0.0, "cat": 1.0}},
    ]
    read = read_predictions(write(as_json(rows)))
    assert fastece.ece(read.y_true, read.y_prob) == fastece.ece([1, 0], [[0.25, 0.75], [1, 0]])
    read = read_predictions(write(as_json(rows)), y_prob="y_prob.dog")
    assert read.y_prob.tolist() == [0.75, 0.0]


@pytest.mark.parametrize(
    ("header", "pattern", "names"),
    [
        ("y_true,prob_1,prob_10,prob_0,prob_2", "prob_[01]", ["prob_0", "prob_1"]),
        ("y_true,prob_b,x,prob_a", "prob_*", ["prob_b", "prob_a"]),
        ("y_true,z,10,2", "y_*,10,z", None),
        ("y_true,a*,a1", "a*,a1", ["a*", "a1"]),
        ("y_true," + ",".join(f"p{k}" for k in (3, 1, 10, 2, 9, 8, 7, 6, 5, 4)), "p*",
         [f"p{k}" for k in range(1, 11)]),
    ],
)  # fmt: skip
def test_patterns_mean_columns(write, header, pattern, names):
    path = write(f"{header}\n{','.join(map(str, range(header.count(',') + 1)))}\n")
    if names is None:
        with pytest.raises(ValueError, match="must mean two columns or more, found none"):
            read_predictions(path, y_prob=pattern)
        return
    read = read_predictions(path, y_prob=pattern)
    assert read.y_prob.columns == names
    assert np.asarray(read.y_prob).tolist() == [[header.split(",").index(n) for n in names]]


def test_patterns_leave_out_what_is_named_otherwise(write):
    path = write("p_label,p_a,p_w,p_b,p_by\n1,0.5,2,0.25,x\n")
    options = {"y_true": "p_label", "y_prob": "p_*", "weights": "p_w", "columns": {"by": "p_by"}}
    read = read_predictions(path, **options)
    assert read.y_prob.columns == ["p_a", "p_b"]


HEAD = '{"y_true": 0, "y_prob": [0.5, 0.5]}\n'


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("y_true,y_prob\n0,x\n1,0.5\n,y\n", {}, "line 2, column y_prob: must be a number, got 'x';"
         " and 1 more row$"),
        ("y_true,y_prob\n0,x\n,0.5\n,y\n1\n", {}, "line 2, .*'x'; and 3 more rows$"),
        ("y_true;y_prob\n0;0,5\n", {}, "must be a number with a decimal point, got '0,5'$"),
        ("a,b;c\n0,1;2\n", {}, "line 1: the cells may be separated by commas or semi"),
        ('y_true,y_prob\n0,"0.5\n1,0.5\n', {}, "line 3: unexpected end of data$"),
        ("y_true,y_prob,a,a\n0,0.5,1,1\n", {"weights": "a"}, "two columns are named 'a'$"),
        ("y_true,y_prob\n0,0.5\n", {"weights": "w"}, "no column 'w'"),
        ("y_true,y_prob,w\n0,0.5,\n", {"weights": "w"}, "line 2, column w: must not be missing"),
        ("y_true,y_prob,g\n0,0.5,\n", {"columns": {"by": "g"}}, "line 2, column g: must not be"),
        ("y_true,p_0,p_1,p_99999999999\n0,0,1,1\n", {}, "no column 'p_2'"),
        ("y_true,p1,p3\n0,0,1\n", {"y_prob": "p*"}, "must mean columns that count up, found"),
        ("y_true,p1,q\n0,0,1\n", {"y_prob": "p*"}, "two columns or more, found p1$"),
        ("", {}, "is empty$"),
        ("\ufeff\n\n", {}, "is empty$"),
        (b"y_true,y_prob\n0,0.5\n1,\xe9\n", {}, r"line 3: is no text in UTF-8, got b'\\xe9'"),
        (packed(b"y_true,y_prob\n" + b"0,0.5\n" * 9)[:-9], {}, "a.csv: .*Compressed file ended"),
        (packed(b"y_true,y_prob\n0,0.5\n")[:-5] + b"12345", {}, "a.csv: .*failed"),
        (as_npy(np.zeros((3, 1))), {}, r"shape \(3, 1\), and must hold"),
        (as_npy(np.zeros(3))[:-3], {}, "a.csv: "),
        (as_npy(np.array([None])), {}, "a.csv: cannot be read"),
        (as_npz(y_prob=[["0.5", "x"]] * 4), {}, r"row 1, column y_prob.1: .* got 'x'; and 3 more"),
        (as_npz(p_0=["0.5"] * 3, y_prob=PROB), {"y_prob": "p_0,w"}, "p_0 has|has shape|y_true has"),
        (HEAD + "{\n[1]\n", {}, "line 2: must hold a JSON object: .*; and 1 more row$"),
        ("[1]\n", {}, "is a JSON array; one object a line"),
        ('\n [\n{"y_true": 1, "y_prob": 0.5}\n]\n', {}, "is a JSON array; one object a line"),
        (HEAD + "[1]\n", {}, r"line 2: must hold a JSON object, got \[1\]$"),
        ("y_true,y_prob\n0,0.5\n", {"columns": {"by": "g"}}, r"no column 'g', .*; by= takes"),
        (HEAD + "[" * 100_000, {}, "line 2: must hold a JSON object: "),
        (HEAD + '{"y_true": 1, "y_prob": [1]}', {}, r"line 2, .* must hold 2 numbers, .*\[1\]$"),
        (HEAD + '\n{"y_true": 1, "y_prob": [1, "b"]}\n{}', {},
         "line 3, column y_prob.1: must be a number, got 'b'; and 1 more row$"),
        (HEAD + '{"y_true": 1, "y_prob": [1, NaN]}', {}, "column y_prob.1: must not be missing"),
        (HEAD + '{"y_prob": [1, 0]}', {}, "line 2, column y_true: must not be missing, got None"),
        (HEAD + '{"y_true": "1", "y_prob": [1, 0]}', {}, "must be no string, as the first row"),
        (HEAD + '{"y_true": [1], "y_prob": [1, 0]}', {}, r"must be one value, got \[1\]$"),
        ('{"y_true": 0, "y_prob": {"a": 1}}\n{"y_true": 0, "y_prob": {"b": 1}}', {},
         "line 2, column y_prob: must hold 1 numbers"),
    ],
)  # fmt: skip
def test_what_is_off_is_told_by_line_and_column(write, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_predictions(write(content), **options)


@pytest.mark.parametrize("header", ["y_true", "y_true;a,b", "a,b\ty_true"])
def test_a_known_name_tells_the_delimiter(write, header):
    with pytest.raises(ValueError, match="no column 'y_prob', it has"):
        read_predictions(write(f"{header}\n"))
