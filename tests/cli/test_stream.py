"""The report of a stream has the values of an accumulator, nearly as all rows at once.

Bad rows and broken files are named, or are left out and counted.
"""

import json

import numpy as np
import pytest

import fastece
from fastece.display.numbers import to_plain
from helpers.command_line import PAIRS, SMALL, as_json, failure, run, values
from helpers.prediction_files import packed

N = 4000
SKIP = ("--stream", "--on-error", "skip")


@pytest.fixture
def tiny(monkeypatch):
    """Batches of a few hundred rows."""
    monkeypatch.setattr("fastece.files.tables.MAX_ROWS", 300)
    monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", 3000)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 1, N)
    return (rng.random(N) < p**1.3).astype(int), p


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 2, 1], N)
    return (p.cumsum(1) < rng.random((N, 1))).sum(1), p


def csv(y, p, **more):
    names = ["y_prob"] if p.ndim == 1 else [f"p_{k}" for k in range(p.shape[1])]
    columns = [y, *p.reshape(len(p), -1).T, *more.values()]
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    header = ",".join(["y_true", *names, *more])
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""])


def as_state(vectors, weight=None, logits=False, **options):
    """An accumulator of rows, the file of these rows, and the options that read it."""
    y, p = vectors
    n_classes = None if p.ndim == 1 else p.shape[1]
    prob = np.log(p / (1 - p)) if logits else p
    state = fastece.Accumulator(n_classes, from_logits=logits, **options).update(y, prob, weight)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    words += ["--from-logits"] if logits else []
    if weight is None:
        return state, csv(y, prob), words
    return state, csv(y, prob, w=weight), [*words, "--weights", "w"]


CASES = {
    "binary": lambda binary, _: as_state(binary),
    "weights and logits": lambda binary, _: as_state(binary, 1 + np.arange(N) % 3, logits=True),
    "vectors": lambda _, vectors: as_state(vectors),
    "class-wise": lambda _, vectors: as_state(vectors, setting="classwise"),
    "one class": lambda _, vectors: as_state(vectors, setting=1),
}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("case", CASES)
def test_a_stream_is_the_report_of_its_accumulator(capsys, write, binary, vectors, case):
    state, content, options = CASES[case](binary, vectors)
    printed = as_json(capsys, "report", write(content), "--stream", *options)
    expected = to_plain(fastece.calibration_report(state, n_resamples=0).to_dict())
    assert printed["stream"]["rows"] == N
    assert printed["stream"]["batches"] > 5
    for name in ("n", "setting", "n_classes", "measures", "scores", "diagrams", "verdict"):
        assert printed[name] == expected[name], name
    y, p = binary if case in ("binary", "weights and logits") else vectors
    of_top = (p > 0.5) == y if p.ndim == 1 else p.argmax(1) == y
    if case != "weights and logits":
        assert printed["accuracy"] == pytest.approx(of_top.mean(), abs=1e-12)


def test_bools_are_classes_of_a_stream_that_is_about_classes(capsys, write):
    rows = "".join(f"{hit},{score}\n" for hit, score in [("true", 0.9), ("false", 0.2)] * 50)
    path = write(f"y_true,y_prob\n{rows}")
    report = as_json(capsys, "report", path, "--stream", "--setting", "classwise")
    assert report["accuracy"] == 1.0
    error = failure(capsys, "report", path, "--stream", "--setting", "confidence")
    assert "must be at least 0.5 in this setting, as --y-true says right or wrong" in error


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_pairs_are_a_stream_too(capsys, write):
    rng = np.random.default_rng(2)
    s = rng.random(2000).round(6)
    hit = rng.random(2000) < s
    rows = "".join(
        f"cat,{'cat' if h else 'dog'},{c}\n" for h, c in zip(hit, s.tolist(), strict=True)
    )
    report = as_json(capsys, "report", write(PAIRS + rows), "--stream")
    assert values(report)["ece"] == pytest.approx(fastece.ece(hit, s), abs=1e-12)
    assert report["accuracy"] == pytest.approx(hit.mean(), abs=1e-12)
    assert (report["pairs"], report["n_classes"]) == (True, None)


@pytest.mark.slow
def test_slices_and_labels_of_a_stream(capsys, write, binary):
    y, p = binary
    by = np.where(np.arange(N) % 3, "b", '"a,c"')
    path = write(csv(y, p, g=by))
    of_all_rows = as_json(capsys, "report", path, "--by", "g")["slices"]
    numbers = as_json(capsys, "report", path, "--by", "g", "--stream")
    for one, other in zip(numbers["slices"]["rows"], of_all_rows["rows"], strict=True):
        assert (one["label"], one["n"]) == (other["label"], other["n"])
        # A stream has other cells than rows have, and draws pass from state to state: an
        # end of an interval moves by more of itself than the value.
        for name, rel in (("value", 0.05), ("low", 0.1), ("high", 0.05)):
            assert one[name] == pytest.approx(other[name], rel=rel, abs=1e-3), name
    texts = write(csv(np.where(y, "leave", "stay"), p))
    for option in (["--labels", "stay,leave"], ["--pos-label", "leave"]):
        printed = as_json(capsys, "report", texts, "--stream", *option)
        assert values(printed) == values(numbers)
    many_slices = write(csv(y[:300], p[:300], g=np.arange(300)))
    assert "--by: " in failure(capsys, "report", many_slices, "--by", "g", "--stream")


@pytest.mark.slow
def test_slices_of_a_stream_by_several_columns(capsys, write, binary):
    y, p = binary
    path = write(csv(y, p, g=np.where(np.arange(N) % 3, "b", "a"), h=np.arange(N) % 2))
    options = ["--by", "g", "--by", "h"]
    of_all_rows = as_json(capsys, "report", path, *options)
    printed = as_json(capsys, "report", path, *options, "--stream")
    assert printed["by"] == of_all_rows["by"] == "g, h"
    for one, other in zip(*(sorted(x["slices"]["rows"], key=lambda row: row["label"])
                            for x in (printed, of_all_rows)), strict=True):  # fmt: skip
        assert (one["label"], one["n"]) == (other["label"], other["n"])
        for name in ("events", "predicted"):
            assert one[name] == pytest.approx(other[name], abs=1e-6)
    # Numbers of a file are cut at quartiles, which a stream does not know; names are not.
    for prefix, code in (("", 2), ("x", 0)):
        path = write(csv(y, p, g=[f"{prefix}{k % 21}" for k in range(N)]))
        assert run(capsys, "report", path, "--by", "g", "--stream")[0] == code
    message = failure(
        capsys, "report", write(csv(y, p, g=np.arange(N) % 21)), "--by", "g", "--stream"
    )
    assert "--by: must have at most 20 different numbers in a stream, got 'g'; without" in message


@pytest.mark.slow
def test_a_large_file_is_a_stream(capsys, write, monkeypatch):
    path = write(SMALL)
    assert not as_json(capsys, "report", path)["stream"]
    monkeypatch.setattr("fastece.files.predictions.MAX_WHOLE_ROWS", 10)
    assert as_json(capsys, "report", path)["stream"]["rows"] == 60
    path = write("y_true,y_prob,g\n" + "0,0.5,a\n1,0.5,b\n" * 9)
    assert "--groups: " in failure(capsys, "report", path, "--groups", "g")


@pytest.mark.slow
def test_several_files_patterns_and_folders_are_one_stream(capsys, write, tmp_path, binary):
    y, p = binary
    write(csv(y[:1000], p[:1000]), "1.csv")
    write(packed(csv(y[1000:1500], p[1000:1500]).encode()), "2.csv.gz")
    np.save(tmp_path / "3.npy", np.column_stack([y[1500:], p[1500:]]))
    one = as_json(capsys, "report", write(csv(y, p), "whole.txt"), "--stream")
    (tmp_path / "whole.txt").unlink()
    names = [str(tmp_path / name) for name in ("1.csv", "2.csv.gz", "3.npy")]
    for files in (names, [f"{tmp_path}/?.*"], [tmp_path]):
        report = as_json(capsys, "report", *files)
        assert report["measures"] == one["measures"]
        assert [file["rows"] for file in report["stream"]["by_file"]] == [1000, 500, N - 1500]
    assert "and 2 more files" in report["title"]


def rows_of(n, **bad):
    """A file of n rows, some of which are others: by their line, the header is 1."""
    rows = [f"{i % 3 % 2},{(i % 20 + 0.5) / 20}" for i in range(n)]
    for place, row in bad.items():
        rows[int(place.strip("_")) - 2] = row
    return "\n".join(["y_true,y_prob", *rows, ""])


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("row", "place"),
    [("1,1.5", "line 777, column y_prob: "), ("cat,0.5", "column y_true: "),
     ("1,0.5,3", "line 777: ")],
)  # fmt: skip
def test_a_bad_row_in_the_middle_stops_or_is_skipped(capsys, write, row, place):
    path = write(rows_of(2000, _777=row))
    line = failure(capsys, "report", path, "--stream")
    assert f"{path}: " in line
    assert place in line
    report = as_json(capsys, "report", path, *SKIP)
    assert (report["n"], report["stream"]["rows"], report["stream"]["skipped"]) == (1999, 1999, 1)
    assert "line 777" in report["stream"]["by_file"][0]["reason"]
    rows = rows_of(2000).splitlines()
    good = write("\n".join(rows[:776] + rows[777:]), "good.csv")
    assert report["measures"] == as_json(capsys, "report", good, "--stream")["measures"]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_all_bad_rows_are_counted_and_the_first_is_named(capsys, write):
    bad = dict.fromkeys(["_2", "_3", "_500", "_501", "_1200", "_2001"], "1,x")
    printed = as_json(capsys, "report", write(rows_of(2000, **bad)), *SKIP)["stream"]
    assert (printed["rows"], printed["skipped"], printed["cut_files"]) == (1994, 6, 0)
    assert "line 2, column y_prob: " in printed["by_file"][0]["reason"]
    rows = [json.dumps({"y_true": i % 2, "y_prob": 0.5}) for i in range(400)]
    rows[0] = "{"
    rows[200] = "[]"
    rows[399] = rows[399][:-1]
    printed = as_json(capsys, "report", write("\n".join(rows), "a.jsonl"), *SKIP)
    assert (printed["n"], printed["stream"]["skipped"]) == (397, 3)
    bad = write("y_true,y_prob\n" + "cat,0.5\n" * 3000)
    assert "first 1000 rows" in failure(capsys, "report", bad, *SKIP)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_file_that_is_cut_off_stops_or_is_left_out(capsys, write):
    y = np.arange(3000) % 2
    content = csv(y, np.random.default_rng(3).random(3000))
    path = write(packed(content.encode())[:-9000], "a.csv.gz")
    other = write(SMALL, "b.csv")
    assert f"{path}: " in failure(capsys, "report", path, other)
    printed = as_json(capsys, "report", path, other, *SKIP)["stream"]
    cut, of_all_rows = printed["by_file"]
    assert cut["rows"] < 3000
    assert (cut["is_cut"], cut["skipped"], of_all_rows["rows"], of_all_rows["is_cut"]) == (
        True,
        0,
        60,
        False,
    )
    assert printed["cut_files"] == len(printed["notes"]) == 1
    bad = write(b"PAR1 and nothing more", "a.parquet")
    assert failure(capsys, "report", bad, *SKIP)
    report = as_json(capsys, "report", bad, other, *SKIP)
    assert [file["is_cut"] for file in report["stream"]["by_file"]] == [True, False]
    files = [write(b"PAR1 and nothing more", f"{k}.parquet") for k in range(12)]
    notes = as_json(capsys, "report", *files, other, *SKIP)["stream"]["notes"]
    assert len(notes) == 11  # of ten files, and how many more


def test_a_warning_names_the_file_once(capsys, write):
    path = write("y_true,p_0,p_1\n" + "1,0.5,0.4\n0,0.5,0.4\n" * 50)
    code, _, err = run(capsys, "report", path, "--stream")
    assert (code, err.count("\n")) == (0, 1)
    assert f"{path}: from line 2 on: " in err


def test_the_terminal_shows_how_far_it_is(capsys, write, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, _, err = run(capsys, "report", write(SMALL), "--stream")
    assert code == 0
    assert "60 rows of " in err
