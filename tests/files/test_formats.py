"""One table in every format is read as the same predictions; a fault is one line."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions
from helpers.prediction_files import (
    FORMATS,
    GROUP,
    NAMES,
    PROB,
    ROWS,
    TRUE,
    WEIGHT,
    as_json,
    as_npy,
    as_npz,
    as_zip,
    encoded,
    packed,
)


@pytest.fixture
def stdin(monkeypatch):
    def feed(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(encoded(content))))

    return feed


COLUMNS = {name: list(column) for name, column in zip(NAMES, zip(*ROWS, strict=True), strict=True)}
RECORDS = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
# A frame of pandas, as its `to_json` writes it.
FRAME = {name: {str(k): x for k, x in enumerate(column)} for name, column in COLUMNS.items()}


def as_arrow(new):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(COLUMNS)
    file = io.BytesIO()
    with getattr(pa.ipc, new)(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return file.getvalue()


def as_zstandard(text):
    pa = pytest.importorskip("pyarrow")
    return pa.compress(text.encode(), codec="zstd", asbytes=True)


# Files of the same table that other programs write.
OTHER_FORMATS = {
    "array.json": lambda: json.dumps(RECORDS),
    "array_of_lines.json": lambda: json.dumps(RECORDS, indent=1),
    "lists_of_lines.json": lambda: json.dumps(COLUMNS, indent=2),
    "frame.json": lambda: json.dumps(FRAME),
    "packed.json.gz": lambda: packed(json.dumps(COLUMNS).encode()),
    "packed.csv.zst": lambda: as_zstandard(FORMATS["commas.csv"]),
    "mac.zip": lambda: as_zip({"a/b.csv": FORMATS["commas.csv"], "__MACOSX/b.csv": "x"}),
    "lines.zip": lambda: as_zip({"a.jsonl": FORMATS["rows.jsonl"]}),
    "packed.zip": lambda: as_zip({"a.csv.gz": FORMATS["packed.csv.gz"]}),
    "table.feather": lambda: as_arrow("new_file"),
    "table.arrow": lambda: as_arrow("new_stream"),
}


def check_read(path):
    read = read_predictions(path, weights="w", columns={"by": "group", "groups": "w"})
    assert read.y_true.tolist() == read.label.tolist() == TRUE
    assert np.asarray(read.y_prob).tolist() == PROB
    assert read.weights.tolist() == read.others["groups"].tolist() == WEIGHT
    assert read.others["by"].tolist() == GROUP
    assert fastece.ece(read.y_true, read.y_prob) == fastece.ece(TRUE, PROB)


@pytest.mark.parametrize("name", [*FORMATS, *OTHER_FORMATS])
def test_the_same_table_is_in_every_format(write, stdin, batches, monkeypatch, name):
    """Read whole, from standard input, and in batches of any size, which keep the rows' names."""
    content = FORMATS.get(name) or OTHER_FORMATS[name]()
    path = write(content, name)
    check_read(path)
    if name in FORMATS:
        stdin(content)
        check_read("-")
    for size in (1, 2, 3, 2**19):
        monkeypatch.setattr("fastece.files.tables.MAX_ROWS", size)
        monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", 60 + size)
        found = batches(path, weights="w", columns={"by": "group"})
        assert [x for batch in found for x in batch.weights] == WEIGHT
        assert [x for batch in found for x in batch.others["by"]] == GROUP


@pytest.mark.slow
def test_arrays_and_json_are_read_without_pyarrow_and_others_name_it(write):
    names = [str(write(content, name)) for name, content in FORMATS.items()]
    names.append(str(write({"y_true": TRUE, "y_prob": PROB})))
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from fastece.files import read_predictions\n"
        f"for name in {names!r}:\n"
        "    try: print(read_predictions(name).label.tolist())\n"
        "    except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        if any(ending in name for ending in (".json", ".ndjson", ".npy", ".npz")):
            assert json.loads(line) == TRUE
        else:
            rule = "needs pyarrow, without which only JSON, NPZ and NPY are read"
            assert line == f"{name}: {rule}; pip install 'fastece[files]'"


@pytest.mark.slow
def test_the_command_line_is_imported_without_pyarrow():
    code = "import fastece.cli, fastece.files, sys; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_lists_in_parquet(write):
    check_read(write({"y_true": TRUE, "y_prob": PROB, "w": WEIGHT, "group": GROUP}))
    path = write({"y_true": TRUE, "y_prob": ["0.5", "x", "0.1", ""]})
    with pytest.raises(ValueError, match="row 2, column y_prob: must be a number, got 'x'; and 1"):
        read_predictions(path)


@pytest.mark.slow
def test_pandas_is_not_imported_to_read_columns_of_pyarrow(write):
    pytest.importorskip("pyarrow")
    text = "y_true,y_prob\n" + "1,0.5\n" * 9
    names = [str(write(text)), str(write({"y_true": [True, False], "y_prob": [0.5, 1.0]}))]
    code = (
        "import sys; from fastece.files import read_predictions;"
        f"[read_predictions(name) for name in {names!r}];"
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


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


def test_patterns_leave_out_columns_of_other_options(write):
    path = write("p_label,p_a,p_w,p_b,p_by\n1,0.5,2,0.25,x\n")
    options = {"y_true": "p_label", "y_prob": "p_*", "weights": "p_w", "columns": {"by": "p_by"}}
    read = read_predictions(path, **options)
    assert read.y_prob.columns == ["p_a", "p_b"]


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


def test_infinite_logits_are_numbers(write):
    path = write("y_true,p_0,p_1\n0,1.5,-inf\n1,-Infinity,2e0\n")
    assert read_predictions(path).y_prob.tolist() == [[1.5, -np.inf], [-np.inf, 2.0]]


DOGS = ["dog", "cat", "cat", "dog"]
PETS = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])


def named(*names, as_text):
    """Columns of probabilities with names, for a Parquet file or for text."""
    columns = {"y_true": DOGS, **dict(zip(names, PETS.T.tolist(), strict=True))}
    rows = [columns, *zip(*columns.values(), strict=True)]
    return "".join(f"{','.join(map(str, row))}\n" for row in rows) if as_text else columns


@pytest.mark.parametrize("as_text", [True, False])
def test_columns_that_are_named_keep_their_names(write, as_text):
    right = fastece.ece([0, 1, 1, 0], PETS)
    path = write(named("dog", "cat", as_text=as_text))
    for names in ("dog,cat", "cat,dog"):
        read = read_predictions(path, y_prob=names)
        assert fastece.ece(read.y_true, read.y_prob) == right
    path = write(named("p_dog", "p_cat", as_text=as_text))
    read = read_predictions(path, y_prob="p_dog,p_cat")
    assert fastece.ece(read.y_true, read.y_prob) == right  # without the prefix that all share
    assert fastece.ece(read.y_true, read.y_prob, labels=["dog", "cat"]) == right
    read = read_predictions(write(named("p_0", "p_1", as_text=as_text)))
    assert isinstance(read.y_prob, np.ndarray)  # counted columns have no names
    order = ["cat", "dog"]
    assert fastece.ece(read.y_true, read.y_prob, labels=order) == fastece.ece([1, 0, 0, 1], PETS)


HEAD = '{"y_true": 0, "y_prob": [0.5, 0.5]}\n'


FAULTS = [
    ("y_true,y_prob\n0,x\n1,0.5\n,y\n", {}, "line 2, column y_prob: must be a number, got 'x';"
     " and 1 more row$"),
    ("y_true,y_prob\n0,x\n,0.5\n,y\n1\n", {}, "line 5: must have 2 cells, .*, got 1$"),
    ("y_true,y_prob\n\n0,0.1\n\n1,0.2,0.3\n", {}, "line 5: must have 2 cells, .*, got 3"),
    ("\ny_true,y_prob\n0,0.1\n\n,0.9\n", {}, "line 5, column y_true: must not .*, got ''"),
    ("y_true,y_prob\r\n0,0.1\r\n\r\nnan,0.9\r\n", {}, "line 4, column y_true: .*, got 'nan'"),
    ('"a\nb",y_true,y_prob\nx,0,0.1\n"y\nz",1,high\n', {}, "line 5, .* a number, got 'high'"),
    ("y_true,p_0,p_1\n0,.1,0.9\n1,1,+0.\n1,0.5,1_0\n", {}, "line 4, column p_1: .* got '1_0'"),
    ("y_true,y_prob\n0,0.1\n1,\n", {}, "line 3, column y_prob: must not be missing, got ''"),
    ("true_label,pred_label,confidence\n0,0,nan\n", {}, "line 2, column confidence: must"),
    ("y_true,y_prob\n", {}, "is empty: it has no rows$"),
    ("y_true,y_prob,x\n0,0.5\n1,0.5\n", {}, "line 2: must have 3 cells, .*2$"),
    ("y_true,y_prob\n0,0.5,1\n1,0.5,1\n", {}, "line 2: must have 2 cells, .* got 3$"),
    ("y_true;y_prob\n0;0,5\n", {}, "a number with a decimal point, got '0,5'; save the table"),
    ("a,b;c\n0,1;2\n", {}, "no column 'y_true', it has "),
    ('y_true,y_prob\n0,"0.5\n1,0.5\n', {}, "line 3, column y_prob: must be a number, got"),
    ("y_true,y_prob,a,a\n0,0.5,1,1\n", {"weights": "a"}, "two columns are named 'a'$"),
    ("y_true,y_prob\n0,0.5\n", {"weights": "w"}, "no column 'w'"),
    ("y_true,y_prob,w\n0,0.5,\n", {"weights": "w"}, "line 2, column w: must not be missing"),
    ("y_true,y_prob,g\n0,0.5,\n", {"columns": {"by": "g"}}, "line 2, column g: must not be"),
    ("y_true,p_0,p_1,p_99999999999\n0,0,1,1\n", {}, "no column 'p_2'"),
    ("y_true,p1,p3\n0,0,1\n", {"y_prob": "p*"}, "must mean columns that count up, found"),
    ("y_true,p1,q\n0,0,1\n", {"y_prob": "p*"}, "two columns or more, found p1$"),
    ("", {}, "is empty$"),
    ("\ufeff\n\n", {}, "is empty$"),
    (b"y_true,y_prob\n0,0.5\n1,\xe9\n", {}, "line 3: is no text in UTF-8$"),
    (packed(b"y_true,y_prob\n" + b"0,0.5\n" * 9)[:-9], {}, "a.csv: .*Compressed file ended"),
    (packed(b"y_true,y_prob\n0,0.5\n")[:-5] + b"12345", {}, "a.csv: .*failed"),
    (as_npy(np.zeros((3, 1))), {}, r"shape \(3, 1\), and must hold"),
    (as_npy(np.zeros(3))[:-3], {}, "a.csv: "),
    (as_npy(np.array([None])), {}, "a.csv: cannot be read"),
    (as_npz(y_prob=[["0.5", "x"]] * 4), {}, r"row 1, column y_prob.1: .* got 'x'; and 3 more"),
    (as_npz(p_0=["0.5"] * 3, y_prob=PROB), {"y_prob": "p_0,w"}, "p_0 has|has shape|y_true has"),
    (HEAD + "{\n[1]\n", {}, "line 2: must hold a JSON object: "),
    ("[1]\n", {}, "is a JSON array without objects; each entry must be one"),
    ('\n [\n{"y_true": 1, "y_prob": 0.5},\n 7]\n', {}, "entry 2: must be an object, got 7$"),
    ('[{"y_true": 1, "y_prob": 0.5},', {}, "is a JSON array that is cut off"),
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
]  # fmt: skip


def test_a_fault_is_named_by_its_line_and_column(write):
    for content, options, message in FAULTS:
        with pytest.raises(ValueError, match=message):
            read_predictions(write(content), **options)


@pytest.mark.parametrize("header", ["y_true", "y_true;a,b", "a,b\ty_true"])
def test_a_known_name_decides_the_delimiter(write, header):
    with pytest.raises(ValueError, match="no column 'y_prob', it has"):
        read_predictions(write(f"{header}\n"))
