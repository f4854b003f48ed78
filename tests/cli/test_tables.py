"""Commands read a table as its names of columns, keys and ids say, in any order."""

import io
import json
import re

import numpy as np
import pytest

import fastece
from helpers.command_line import as_json, failure, run, text, values

rng = np.random.default_rng(5)
N = 120
P = rng.random(N).round(4)
Y = (rng.random(N) < P).astype(int)
VECTORS = rng.dirichlet([1, 1, 1], N).round(5)
CLASSES = (VECTORS.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, 2)


def csv(**columns):
    """Write columns as the text of a table."""
    cells = [np.asarray(column).tolist() for column in columns.values()]
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*cells, strict=True))]
    return "\n".join([*lines, ""])


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a text to a file in the working folder, and return its path."""
    monkeypatch.chdir(tmp_path)

    def put(name, content):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return put


# --- numbers of classes ---------------------------------------------------------------------------


def test_numbers_that_end_all_names_are_the_classes(capsys, put):
    rows = CLASSES < 2
    prob = VECTORS[rows]
    value = fastece.ece(CLASSES[rows], prob)
    first_is_1 = csv(y=CLASSES[rows] + 1, p_1=prob[:, 0], p_2=prob[:, 1], p_3=prob[:, 2])
    path = put("a.csv", first_is_1)
    options = ("--y-true", "y", "--y-prob")
    assert values(as_json(capsys, "report", path, *options, "p_1,p_2,p_3"))["ece"] == value
    assert values(as_json(capsys, "report", path, *options, "p_*"))["ece"] == value
    assert "pass --labels" in failure(capsys, "report", path, *options, "p_*", "--stream")
    stream = (*options, "p_*", "--stream", "--labels", "1,2,3")
    assert values(as_json(capsys, "report", path, *stream))["ece"] == pytest.approx(
        value, abs=1e-12
    )
    mixed = csv(y=CLASSES[rows], q2=prob[:, 2], q0=prob[:, 0], q1=prob[:, 1])
    path = put("b.csv", mixed)
    assert values(as_json(capsys, "report", path, *options, "q2,q0,q1"))["ece"] == value
    message = failure(capsys, "report", path, *options, "q2,q1")
    assert "line" in message
    assert "must be a number at the end of the names" in message


# --- JSON -----------------------------------------------------------------------------------------


def keyed(values, order=range(N), first=0):
    """Write a column as pandas does, with the key of each row, in some order of the rows."""
    return {str(first + k): values[k].item() for k in order}


def test_columns_of_json_belong_together_by_their_keys(capsys, put):
    as_text = sorted(range(N), key=str)
    value = fastece.ece(Y, P)
    columns = {"y_true": keyed(Y), "y_prob": keyed(P, as_text), "g": keyed(Y, as_text[::-1])}
    path = put("a.json", json.dumps(columns))
    report = as_json(capsys, "report", path, "--by", "g")
    assert values(report)["ece"] == value
    assert {(x["label"], x["events"]) for x in report["slices"]["rows"]} == {(0, 0), (1, 1)}
    # The entries of a list have the keys from 0 on.
    path = put("b.json", json.dumps({"y_true": Y.tolist(), "y_prob": keyed(P, as_text)}))
    assert values(as_json(capsys, "report", path))["ece"] == value


@pytest.mark.parametrize("other", [keyed(P, first=1), P.tolist()])
def test_columns_of_json_with_other_keys_are_refused(capsys, put, other):
    path = put("a.json", json.dumps({"y_true": keyed(Y, first=2), "y_prob": other}))
    message = failure(capsys, "report", path)
    assert re.search(r"a.json: column y_prob: has no entry with the key '12[01]'", message)


@pytest.mark.parametrize("kind", ["lists", "keys", "rows"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_a_long_line_of_json_is_read(capsys, put, kind, ending):
    documents = {
        "lists": {"y_true": Y.tolist(), "y_prob": P.tolist()},
        "keys": {"y_true": keyed(Y), "y_prob": keyed(P)},
        "rows": [{"y_true": int(y), "y_prob": p} for y, p in zip(Y, P, strict=True)],
    }
    line = json.dumps(documents[kind])
    # More than one megabyte, the size of a chunk of lines.
    line = line[0] + " " * 2**20 + line[1:]
    report = as_json(capsys, "report", put("a.json", line + ending))
    assert values(report)["ece"] == fastece.ece(Y, P)


# --- rows of two files ----------------------------------------------------------------------------

OTHER = np.clip(P + rng.normal(0, 0.1, N), 0.001, 0.999).round(4)
IDS = [f"id{k}" for k in range(N)]
# The same labels line by line, in another order of the rows.
ORDER = np.empty(N, int)
for label in (0, 1):
    ORDER[label == Y] = rng.permutation(np.flatnonzero(label == Y))
COMPARE = ("--resamples", "9", "--json")


def models(put, order=ORDER, name="id", ids=IDS):
    """Write two files of models, the rows of the second in some order."""
    first = put("a.csv", csv(**{name: ids}, y_true=Y, y_prob=P))
    second = csv(**{name: np.array(ids)[order]}, y_true=Y[order], y_prob=OTHER[order])
    return first, put("b.csv", second)


@pytest.mark.parametrize("order", [ORDER, np.argsort(-OTHER)], ids=["same labels", "by score"])
@pytest.mark.parametrize("ids", [IDS, [7 * k for k in range(N)]], ids=["texts", "numbers"])
@pytest.mark.parametrize("option", [(), ("--id", "id")])
def test_rows_are_paired_by_a_column_that_identifies_them(capsys, put, order, ids, option):
    expected = fastece.compare(Y, P, OTHER, estimator="brier_score", n_resamples=9, rng=0)
    report = as_json(capsys, "compare", *models(put, order, ids=ids), *COMPARE[:2], *option)
    (score,) = (line for line in report["scores"] if line["name"] == "brier_score")
    assert score["difference"] == pytest.approx(expected.value, abs=1e-15)
    assert report["note"] == "as it is (a), rows paired by the column id (b)"
    page = text(capsys, "compare", "a.csv", "b.csv", *COMPARE[:2], *option)
    assert "rows paired by the column id (b)" in page


def test_the_rows_of_a_baseline_are_paired_too(capsys, put):
    first, second = models(put)
    line = ("check", first, "--baseline", second, "--max-error", 1, "--max-increase", 1)
    code, out, err = run(capsys, *line, "--resamples", 9)
    assert (code, err) == (0, "")
    assert f"{second}: rows paired by the column id" in " ".join(out.split())
    sorted_baseline = models(put, np.arange(N))[1]
    line = ("check", first, "--baseline", sorted_baseline, *line[4:])
    code, other, _ = run(capsys, *line, "--resamples", 9)
    assert code == 0
    assert other.splitlines()[0] == out.splitlines()[0]


def test_rows_are_paired_between_formats_and_in_a_pipe(capsys, put, monkeypatch, tmp_path):
    first, second = models(put, ids=[7 * k for k in range(N)])
    np.savez(tmp_path / "a.npz", id=7 * np.arange(N), y_true=Y, y_prob=P, mean=np.array([1, 2]))
    by_file = as_json(capsys, "compare", first, second, *COMPARE[:2])
    by_array = as_json(capsys, "compare", tmp_path / "a.npz", second, *COMPARE[:2])
    assert by_array["differences"] == by_file["differences"]
    content = io.TextIOWrapper(io.BytesIO(second.read_bytes()))
    monkeypatch.setattr("sys.stdin", content)
    by_pipe = as_json(capsys, "compare", first, "-", *COMPARE[:2])
    assert by_pipe["differences"] == by_file["differences"]


def test_rows_without_ids_are_paired_line_by_line(capsys, put):
    names = [f"group {k % 50}" for k in range(N)]
    first, second = models(put, ids=names)
    report = as_json(capsys, "compare", first, second, *COMPARE[:2])
    assert report["note"] == ""
    first, second = models(put, np.argsort(-OTHER), ids=names)
    message = failure(capsys, "compare", first, second)
    assert "must have the labels of" in message
    assert "--id names a column that identifies the rows" in message
    assert "--id: must have the same values in" in failure(
        capsys, "compare", first, second, "--id", "id"
    )
    assert "a.csv: no column 'key'" in failure(capsys, "compare", first, second, "--id", "key")


def test_two_columns_that_pair_rows_differently_need_an_option(capsys, put):
    columns = {"y_true": Y, "y_prob": P, "id": IDS, "line": range(N)}
    first = put("a.csv", csv(**columns))
    columns |= {"y_true": Y[ORDER], "y_prob": OTHER[ORDER], "id": np.array(IDS)[ORDER]}
    second = put("b.csv", csv(**columns))
    message = failure(capsys, "compare", first, second)
    assert "the columns id and line pair the rows differently; --id names the one" in message
    by_id = as_json(capsys, "compare", first, second, "--id", "id", *COMPARE[:2])
    assert by_id["note"] == "as it is (a), rows paired by the column id (b)"
    by_line = as_json(capsys, "compare", first, second, "--id", "line", *COMPARE[:2])
    assert by_line["note"] == ""


def test_an_option_that_pairs_rows_needs_a_baseline(capsys, put):
    line = ("check", put("a.csv", csv(y_true=Y, y_prob=P)), "--max-error", 1, "--id", "id")
    assert "--id: goes with --baseline" in failure(capsys, *line)
