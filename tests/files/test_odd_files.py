"""Odd files are the same read whole and as streams: their rows, or the place that is refused."""

import re
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from fastece.cli.stream_sums import StreamSums
from fastece.data.errors import BadArgumentError
from fastece.files import FileSum, read_predictions, tables
from helpers.command_line import as_json, failure, values
from helpers.odd_files import draw_file

OPTIONS = {
    "setting": "auto", "labels": None, "pos_label": None, "from_logits": False, "estimators": [],
    "n_bins": 15, "by": None, "soft": False, "votes": None, "clip": None,
}  # fmt: skip


class Total(StreamSums):
    """Sums of a report, and the rows that they are made of."""

    def __init__(self, **options):
        super().__init__(Namespace(**{**OPTIONS, **options}))
        self.seen_rows = []

    def add(self, found):
        self.first = self.first or found  # whose errors are not tried
        super().add(found)
        prob = np.asarray(found.y_prob, float)
        ones = np.ones(len(prob))
        columns = [
            np.asarray(found.y_true, float), prob.reshape(len(prob), -1),
            ones if found.weights is None else found.weights,
            found.others.get("by", ones),
        ]  # fmt: skip
        rows = zip(*(x.tolist() for x in columns), strict=True)
        self.seen_rows += [(*x[:3], as_number(x[3]), found.row(k)) for k, x in enumerate(rows)]

    def __eq__(self, other):
        return self.all_sums() == other.all_sums()

    def all_sums(self):
        slices = {
            (argument, as_number(label)): sums
            for argument, sums_by_label in self.slices.items()
            for label, sums in sums_by_label.items()
        }
        return self.rows, self.top, slices

    __hash__ = None


def as_number(value):
    """A slice as a number if it can be one: only all strings show whether they are."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def outcome(call):
    """Return the result of a call, and the error about input that it raises."""
    try:
        return call(), None
    except BadArgumentError as error:
        return None, error


def read_whole(path, options):
    total = Total()
    predictions = read_predictions(path, **options)
    with predictions.located():
        total.add(replace(predictions, y_prob=np.asarray(predictions.y_prob)))
    return total


def read_stream(path, options, skips=False):
    """The total of a stream, and the counts of its file."""
    total = Total()
    stream = FileSum(total.add, skips, lambda *_: None)
    stream.add_file(path, **options)
    return total, stream.files[0]


def expected(file):
    """The rows of a good file as they were drawn."""
    for y, p, weight, by in file.good:
        weight = weight if "weights" in file.options else 1.0
        yield y, p, weight, as_number(by) if "columns" in file.options else 1.0


def same_place(file, whole, stream):
    """Whether two refusals name the same row.

    A bad first row makes the others bad when all are read, and labels that a stream refuses may be
    good in a whole file.
    """
    is_first = 0 in file.bad and re.search("as the first row|must be one value", whole.rule)
    is_text = stream.rule.startswith("must be the number of a class")
    several = len(file.bad) > 1  # of which each way of reading may find another first
    return bool(whole.place == stream.place or is_first or is_text or several)


def check(file, tmp_path, small, monkeypatch):
    """Check a file in batches of a few rows, and of all."""
    path = tmp_path / (f"{file.name}.gz" if file.is_packed else file.name)
    path.write_bytes(file.content)
    total, error = outcome(lambda: read_whole(path, file.options))
    assert (error is None) == (not file.bad), error
    if not file.bad:
        rows = [row[:4] for row in total.seen_rows]
        for got, drawn in zip(rows, expected(file), strict=True):
            assert got[0] == drawn[0]
            assert got[1] == pytest.approx(drawn[1], abs=1e-15)
            assert got[2:] == drawn[2:]
    for sizes in ((tables.MAX_ROWS, tables.BLOCK_SIZE), small):
        with monkeypatch.context() as patch:
            patch.setattr("fastece.files.tables.MAX_ROWS", sizes[0])
            patch.setattr("fastece.files.tables.BLOCK_SIZE", sizes[1])
            check_stream(file, path, total, error)


def check_stream(file, path, total, error):
    """Check a stream, and one without its bad rows, against the whole."""
    stream, refusal = outcome(lambda: read_stream(path, file.options))
    if error is None:
        assert refusal is None
        assert stream[0].seen_rows == total.seen_rows
        assert stream[0] == total
    else:
        assert refusal is not None
        assert same_place(file, error, refusal), (error, refusal)
    lenient_stream, skipping = outcome(lambda: read_stream(path, file.options, skips=True))
    if lenient_stream is not None and not lenient_stream[1].is_cut:
        assert lenient_stream[1].rows + lenient_stream[1].skipped == len(file.good)
    if file.bad and not file.is_whole and len(file.bad) < len(file.rows):
        good = path.with_name("good")
        good.write_bytes(file.without_bad_rows().content)
        alone = read_stream(good, file.options)
        assert skipping is None
        count = lenient_stream[1]
        assert (count.skipped, count.is_cut) == (len(file.bad), False), count.reason
        assert lenient_stream[0] == alone[0]


def check_seed(seed, tmp_path, monkeypatch):
    rng = np.random.default_rng([28, seed])
    file = draw_file(rng)
    check(
        file, tmp_path, (int(rng.choice([1, 2, 3])), int(rng.choice([200, 300, 600]))), monkeypatch
    )


@pytest.mark.filterwarnings("ignore:.*sum")  # rows of rounded probabilities
@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 400), marks=pytest.mark.slow)], ids=str
)
def test_odd_files_are_the_same_whole_and_as_streams(seeds, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    for seed in seeds:
        check_seed(seed, tmp_path, monkeypatch)


# --- faults that odd files have shown -------------------------------------------------------------


@pytest.fixture
def by_lines(tmp_path, monkeypatch):
    """Write a file, which is read a few lines at a time."""
    monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", 60)

    def write(content, name="a.csv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


ROWS = [(i % 2, (i % 7 + 1) / 9) for i in range(40)]


@pytest.mark.slow
@pytest.mark.parametrize("names", [("1", "x"), ("1", "2"), ("1", "1.0"), ("True", "2")])
def test_a_slice_is_one_whatever_the_batches(names, by_lines, capsys, tmp_path):
    rows = "".join(f"{y},{p},{names[k % 2]}\n" for k, (y, p) in enumerate(ROWS))
    path = by_lines(f"y_true,y_prob,g\n{rows}")
    all_rows = as_json(capsys, "report", path, "--by", "g")["slices"]["rows"]
    stream = as_json(capsys, "report", path, "--by", "g", "--stream")["slices"]["rows"]
    assert [(x["label"], x["n"]) for x in stream] == [(x["label"], x["n"]) for x in all_rows]
    if names == ("1", "2"):  # of another format, where they are numbers
        arrays = np.array([(*row, k % 2 + 1) for k, row in enumerate(ROWS)])
        types = [("y_true", "i8"), ("y_prob", "f8"), ("g", "i8")]
        np.save(tmp_path / "b.npy", np.array([*map(tuple, arrays)], types))
        both = as_json(capsys, "report", path, tmp_path / "b.npy", "--by", "g")["slices"]["rows"]
        assert [(x["label"], x["n"]) for x in both] == [(x["label"], 2 * x["n"]) for x in all_rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (("0", "cat"), ["--labels", "0,cat"]),
        (("1", "cat"), ["--pos-label", "cat"]),
        (("True", "False"), ["--pos-label", "true"]),
    ],
)
def test_labels_with_names_are_the_same_in_batches_of_a_line(labels, options, by_lines, capsys):
    rows = "".join(f"{labels[y]},{p}\n" for y, p in ROWS)
    path = by_lines(f"y_true,y_prob\n{rows}")
    all_rows = as_json(capsys, "report", path, *options)
    stream = as_json(capsys, "report", path, *options, "--stream")
    assert values(stream)["ece"] == pytest.approx(values(all_rows)["ece"], abs=1e-12)
    assert stream["accuracy"] == pytest.approx(all_rows["accuracy"], abs=1e-12)


def test_the_negative_label_is_one_in_all_batches(by_lines, capsys):
    rows = "".join(f"{('yes', 'no', 'maybe')[k % 3]},{p}\n" for k, (_, p) in enumerate(ROWS))
    path = by_lines(f"y_true,y_prob\n{rows}")
    for options in ([], ["--stream"]):
        line = failure(capsys, "report", path, "--pos-label", "yes", *options)
        assert "column y_true: must be" in line


@pytest.mark.parametrize(
    "line", ["null", '{"y_true": 0, "y_prob": ' + "[" * 10**5 + "]" * 10**5 + "}"]
)
def test_lines_that_would_crash_pyarrow_are_refused(line, by_lines):
    rows = '{"y_true": 0, "y_prob": 0.5}\n' * 3
    path = by_lines(f"{rows}{line}\n", "a.jsonl")
    with pytest.raises(ValueError, match="line 4: must hold a JSON object"):
        read_predictions(path)


def test_one_list_among_columns_of_numbers_is_refused(by_lines):
    row = '{"y_true": 0, "p_0": 0.5, "p_1": %s}\n'
    path = by_lines(row % 0.5 + row % "[0.5]", "a.jsonl")
    _, all_rows = outcome(lambda: read_predictions(path))
    _, stream = outcome(lambda: read_stream(path, {}))
    assert all_rows.place == stream.place == f"{path}: line 2, column p_1"
