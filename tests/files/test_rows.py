"""Files that lose or double rows without a word: lengths, first rows, pipes, keys, encodings."""

import gzip
import json
import os
import re
import threading
import zipfile
from contextlib import suppress

import numpy as np
import pytest

import fastece
from fastece.files import FileSum, iter_batches, read_predictions
from helpers.command_line import SMALL, as_json, failure, values
from helpers.prediction_files import as_json as lines_of
from helpers.prediction_files import as_npz, encoded

SKIP = ("--stream", "--on-error", "skip")
GOOD = [{"y_true": i % 3 % 2, "y_prob": (i % 20 + 0.5) / 20} for i in range(60)]
LISTS = [{**row, "y_prob": [1 - row["y_prob"], row["y_prob"]]} for row in GOOD]


@pytest.fixture(params=[1, pytest.param(100, marks=pytest.mark.slow)])
def tiny(request, monkeypatch):
    """Batches of a line, or of a few."""
    monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", request.param)


def as_lines(rows):
    return b"".join(row if isinstance(row, bytes) else lines_of([row]).encode() for row in rows)


def add_up(path, **options):
    """The sums of the good rows of a file, and its counts."""
    sums = []

    def add(predictions):
        n_classes = predictions.y_prob.shape[1] if predictions.y_prob.ndim > 1 else None
        sums_so_far = sums[0] if sums else fastece.Accumulator(n_classes)
        sums[:] = [sums_so_far.update(predictions.y_true, predictions.y_prob, predictions.weights)]

    stream = FileSum(add, True, lambda *_: None)
    stream.add_file(path, **options)
    return *sums, stream.files[0]


# --- lengths --------------------------------------------------------------------------------------

LENGTHS = {
    "y_true": {"y_true": np.arange(5) % 2, "y_prob": np.full(300, 0.5), "w": np.ones(300)},
    "y_prob": {"y_true": np.arange(300) % 2, "y_prob": np.full(305, 0.5), "w": np.ones(300)},
    "w": {"y_true": np.arange(300) % 2, "y_prob": np.full(300, 0.5), "w": np.ones(1000)},
    "a number": {"y_true": np.int64(1), "y_prob": np.full(300, 0.5), "w": np.ones(300)},
}


@pytest.mark.parametrize("name", LENGTHS)
def test_arrays_of_other_lengths_are_refused_before_a_row_counts(name, write, capsys, monkeypatch):
    path = write(as_npz(**LENGTHS[name]), "a.npz")
    line = failure(capsys, "report", path, "--weights", "w")
    assert "has shape" in line
    assert ("y_true: has shape (), must be a column" in line) == (name == "a number")
    assert failure(capsys, "report", path, "--weights", "w", "--stream") == line
    assert "has shape" in failure(capsys, "report", path, "--weights", "w", *SKIP)
    monkeypatch.setattr(
        "fastece.files.predictions.MAX_WHOLE_ROWS", 3
    )  # a stream that nobody asked for
    assert failure(capsys, "report", path, "--weights", "w") == line
    sums = fastece.Accumulator()
    with pytest.raises(ValueError, match=r"y_true|sample_weight"):
        sums.update(*LENGTHS[name].values())
    assert sums == fastece.Accumulator()


# --- bad first rows -------------------------------------------------------------------------------

FIRST = {
    "a list": {"y_true": 0, "y_prob": [9, 9, 9]},
    "a label": {"y_true": "cat", "y_prob": 0.5},
    "other keys": {"target": 0, "score": 0.5},
    "no score": {"y_true": 0},
    "no label": {"y_prob": 0.5},
    "nothing": {},
    "an object": {"y_true": 0, "y_prob": {"a": 9, "b": 9}},
    "null": {"y_true": None, "y_prob": None},
    "a pair": {"true_label": 0, "pred_label": 0},
    "an array": b"[1]\n",
    "a number": b"7\n",
    "no JSON": b"oops\n",
    "half an object": b'{"y_true": 0, \n',
    "no text": b'{"y_true": 0, "y_prob": 0.5, "\xff": 1}\n',
    "two keys": b'{"y_true": 0, "y_prob": 0.5, "y_prob": 0.25}\n',
    "two objects": b'{"y_true": 0, "y_prob": 0.5} {"y_true": 0, "y_prob": 0.5}\n',
}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_bad_row_at_the_start_is_skipped_alone(write):
    expected = [add_up(write(as_lines(x[:20]), "good.jsonl"))[0] for x in (GOOD, LISTS)]
    for k, (name, bad) in enumerate(FIRST.items()):
        good = (GOOD, LISTS)[k % 2][:20]
        for place, times in ((0, 1), (0, 5), (1, 2), (2, 1)):
            rows = [*good[:place], *[bad] * times, *good[place:]]
            sums, count = add_up(write(as_lines(rows), "a.jsonl"))
            assert (count.rows, count.skipped, count.is_cut) == (20, times, False), name
            assert f": line {place + 1}" in count.reason, name
            assert sums == expected[k % 2], name


@pytest.mark.usefixtures("tiny")
def test_of_two_kinds_that_alternate_the_first_good_one_counts(write):
    rows = [FIRST["a list"], *(row for pair in zip(LISTS, GOOD, strict=True) for row in pair)]
    sums, count = add_up(write(as_lines(rows), "a.jsonl"))
    assert (count.rows, count.skipped) == (60, 61)
    assert sums == add_up(write(as_lines(LISTS), "good.jsonl"))[0]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("bad", "place"), [('"0,0.5', 0), ('0,"0.5', 7), ('0,"0.5"x', 20), ('"""', 7)]
)
def test_rows_after_a_quote_that_nothing_closes_are_not_lost_without_a_word(bad, place, write):
    good = [f"{row['y_true']},{row['y_prob']}" for row in GOOD[:20]]
    lines = ["y_true,y_prob", *good[:place], bad, *good[place:]]
    count = add_up(write("\n".join(lines), "a.csv"))[-1]
    assert re.search(r": (line|row) \d+", count.reason)
    assert count.is_cut or (count.rows, count.skipped) == (20, 1)
    with pytest.raises(ValueError, match=r"a\.csv: line \d+"):
        read_predictions(write("\n".join(lines), "a.csv"))


def test_a_file_whose_rows_are_all_bad_leaves_the_others_alone(write, capsys):
    paths = [write(as_lines([FIRST["a list"]] * 3), "a.jsonl"), write(as_lines(GOOD), "b.jsonl")]
    report = as_json(capsys, "report", *paths, *SKIP)
    assert [(x["rows"], x["skipped"]) for x in report["stream"]["by_file"]] == [(0, 3), (60, 0)]
    alone = as_json(capsys, "report", paths[1], "--stream")
    assert values(report) == values(alone)


@pytest.mark.parametrize("indent", [None, 0, 1])
def test_an_array_of_objects_is_read_as_its_lines(write, indent):
    lines = read_predictions(write(as_lines(GOOD), "lines.jsonl"))
    text = json.dumps(GOOD, indent=indent).replace("},\n{", "},{")
    array = read_predictions(write(text, "array.jsonl"))
    assert list(array.y_true) == list(lines.y_true)
    assert np.array_equal(array.y_prob, lines.y_prob)


# --- pipes ----------------------------------------------------------------------------------------


@pytest.fixture
def piped(tmp_path):
    """Make pipes with a content, which who reads them once more find empty."""
    threads = []
    is_over = threading.Event()

    def feed(path, content):
        path.write_bytes(content)
        while not is_over.wait(0.01):
            with suppress(OSError):  # nobody reads
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    def make(content):
        path = tmp_path / f"pipe{len(threads)}"
        os.mkfifo(path)
        threads.append(threading.Thread(target=feed, args=(path, encoded(content)), daemon=True))
        threads[-1].start()
        return path

    yield make
    is_over.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


COLUMNS = {"y_true": np.arange(60) % 3 % 2, "y_prob": (np.arange(60) % 20 + 0.5) / 20}
PIPED = {
    "text": SMALL,
    "lines": as_lines(GOOD),
    "packed npz": gzip.compress(as_npz(**COLUMNS)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPED)
def test_pipes_are_read_like_standard_input(name, piped, write, capsys, monkeypatch):
    monkeypatch.setattr(
        "fastece.files.predictions.MAX_WHOLE_ROWS", 10
    )  # a file of 60 rows would be read twice
    path = piped(PIPED[name])
    file = write(SMALL, "a.csv")
    report = as_json(capsys, "report", path)
    assert (report["n"], report["title"], report["stream"]) == (60, str(path), None)
    both = as_json(capsys, "report", piped(PIPED[name]), file)
    assert [one["rows"] for one in both["stream"]["by_file"]] == [60, 60]
    assert as_json(capsys, "compare", piped(PIPED[name]), piped(PIPED[name]))["n"] == 60
    assert as_json(capsys, "curve", piped(PIPED[name]))["n"] == 60
    assert as_json(capsys, "recalibrate", piped(PIPED[name]), "--method", "platt")["n"] == 60


@pytest.mark.slow
def test_parquet_comes_through_pipes(piped, capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(COLUMNS), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    assert as_json(capsys, "report", piped(content))["n"] == 60


def test_errors_about_pipes_have_the_name_that_was_typed(piped, capsys):
    path = piped("y_true,y_prob\n")
    assert f"error: {path}: is empty" in failure(capsys, "report", path)


# --- keys and names that come twice ---------------------------------------------------------------

TWICE = {
    "that is read": '"y_prob": 0.5, "y_prob": 0.9',
    "equal values": '"y_prob": 0.5, "y_prob": 0.5',
    "that nobody reads": '"y_prob": 0.5, "a": 1, "a": 2',
    "inside": '"y_prob": 0.5, "a": {"b": [{"c": 1, "c": 2}]}',
    "by an escape": '"y_prob": 0.5, "y_pro\\u0062": 0.9',
}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", TWICE)
def test_keys_that_come_twice_are_refused(name, write):
    place = (0, 1, 59)[list(TWICE).index(name) % 3]
    bad = f'{{"y_true": 0, {TWICE[name]}}}\n'.encode()
    path = write(as_lines([*GOOD[:place], bad, *GOOD[place:]]), "a.jsonl")
    message = f"a.jsonl: line {place + 1}: must hold a JSON object: 2 of its values have the key"
    with pytest.raises(ValueError, match=message):
        read_predictions(path)
    with pytest.raises(ValueError, match=message):
        [*iter_batches(path)]
    assert add_up(path)[1].skipped == 1


def test_objects_that_go_on_in_the_next_line_are_refused(write):
    rows = (
        b'{"y_true": 0, "y_prob": 0.5}\n{"y_true": 0,\n"y_prob": 0.5} {"y_true": 0, "y_prob": 1}\n'
    )
    with pytest.raises(ValueError, match="line 2: must hold a JSON object"):
        read_predictions(write(rows, "a.jsonl"))


@pytest.mark.parametrize("options", [[], ["--stream"]])
def test_arrays_of_one_name_are_refused(options, write, capsys):
    path = write(as_npz(y_true=np.arange(9) % 2, y_prob=np.full(9, 0.5)), "a.npz")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("y_prob.npy", archive.read("y_prob.npy"))
    assert "two columns are named 'y_prob'" in failure(capsys, "report", path, *options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--stream"]])
def test_columns_that_nobody_reads_may_have_one_name(options, write, capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    arrays = [pa.array(x) for x in (*COLUMNS.values(), COLUMNS["y_prob"], COLUMNS["y_prob"])]
    names = ["y_true", "y_prob", "a", "a"]
    pq.write_table(pa.Table.from_arrays(arrays, names), tmp_path / "a.parquet")
    rows = "".join(f"{y},{p},1,x\n" for y, p in zip(*COLUMNS.values(), strict=True))
    for path in (tmp_path / "a.parquet", write(f"{','.join(names)}\n{rows}", "a.csv")):
        assert as_json(capsys, "report", path, *options)["n"] == 60
        line = failure(capsys, "report", path, "--weights", "a", *options)
        assert line.startswith(f"fastece: error: {path}: two columns are named 'a'")


# --- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["16", "16-le", "16-be", "32", "32-le", "32-be"])
def test_other_encodings_are_refused(name, write, capsys):
    lines = as_lines(GOOD).decode()
    for text, options in ((SMALL, []), (f"\ufeff{SMALL}", ["--stream"]), (lines, ["--stream"])):
        path = write(text.encode(f"utf-{name}"), "a.csv")
        line = failure(capsys, "report", path, *options)
        assert f"{path}: is none of CSV and JSON in UTF-8, " in line
        packed = write(gzip.compress(path.read_bytes()), "a.csv.gz")
        assert f"{packed}: is none of CSV" in failure(capsys, "report", packed, *options)
