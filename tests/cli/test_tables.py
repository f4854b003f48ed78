"""Commands read a table as its names of columns, keys and ids say, in any order."""

import json
import re

import numpy as np
import pytest

import fastece
from helpers.command_line import as_json, failure, values

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
def put(tmp_path):
    """Write a text to a file, and return its path."""

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
