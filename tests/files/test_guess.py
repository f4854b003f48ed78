"""Columns found by the labels in a file, and options that would read it."""

import json

import numpy as np
import pytest

from fastece.files import NoColumnError, Reader, read_predictions, suggest_options
from fastece.files.guess import class_columns

ROWS = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]]
LABELS = ["cat", "dog", "owl", "cat"]
NAMES = ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("names", "words", "found"),
    [
        (["id", *NAMES, "split"], NAMES, NAMES),
        (["id", *NAMES], ["cat", "dog"], ["cat", "dog"]),  # nothing shows that owl is a class
        (["id", "p_cat", "p_dog", "p_owl"], ["cat", "dog"], ["p_cat", "p_dog", "p_owl"]),
        (["p.cat", "p.dog", "q.cat"], ["cat", "dog"], ["p.cat", "p.dog"]),
        (["p_cat", "p_dog", "q_cat", "q_dog"], ["cat", "dog"], []),  # either would be a guess
        (["bobcat", "hotdog"], ["cat", "dog"], []),  # no separator before them
        (["p_cat", "p_dog"], ["cat", "dog", "owl"], []),
        (["0", "1", "2"], ["0", "1"], []),  # features may be numbered
        (["cat"], ["cat"], []),
        (["cat", "dog"], [], []),
    ],
)
def test_columns_are_named_after_all_labels(names, words, found):
    assert class_columns(names, words) == found


def records(prefix):
    rows = zip(LABELS, ROWS, strict=True)
    return [
        {"label": x, **{prefix + k: p for k, p in zip(NAMES, row, strict=True)}} for x, row in rows
    ]


def as_csv(path, rows):
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines))


def as_json_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))


def as_npz(path, rows):
    np.savez(path, **{name: np.array([row[name] for row in rows]) for name in rows[0]})


WRITERS = {".csv": as_csv, ".jsonl": as_json_lines, ".npz": as_npz}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("prefix", ["", "p_", "prob of "])
def test_files_of_each_format_are_read_by_their_labels(tmp_path, ending, prefix):
    path = tmp_path / f"a{ending}"
    WRITERS[ending](path, records(prefix))
    found = read_predictions(path, y_true="label")
    assert found.y_true.tolist() == LABELS
    assert np.asarray(found.y_prob).tolist() == ROWS
    assert found.y_prob.columns == found.columns["y_prob"] == [prefix + name for name in NAMES]
    batches = Reader(str(path), y_true="label", labels=NAMES)
    (batch,) = [batches.read_batch(table) for table in batches.tables()]
    assert batch.y_prob.tolist() == ROWS
    names = ",".join(prefix + name for name in NAMES)
    names = f"'{names}'" if " " in names else names
    assert suggest_options(str(path), "y_true") == f"--y-true label --y-prob {names}"
    with pytest.raises(NoColumnError, match="no column 'y_true'"):
        read_predictions(path)


def test_objects_of_a_line_are_columns_too(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = zip(LABELS, ROWS, strict=True)
    as_json_lines(path, [{"label": x, "p": dict(zip(NAMES, row, strict=True))} for x, row in rows])
    assert np.asarray(read_predictions(path, y_true="label").y_prob).tolist() == ROWS


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("y_true,q\n0,0.5\n1,0.2\n", "--y-prob q"),
        ("event,q\nFalse,0.5\nTrue,0.2\n", "--y-true event --y-prob q"),
        ("who;q\nno;0.5\nyes;0.2\nno;0.1\n", "--y-true who --y-prob q --pos-label yes"),
        ("k,a,b,c\n0,0.5,0.25,0.25\n2,0.25,0.25,0.5\n0,0.5,0.5,0\n", "--y-true k --y-prob a,b,c"),
        ("k,a,b,c\n0,0.5,0.25,0.3\n2,0.25,0.25,0.5\n1,0.5,0.5,0\n", ""),  # sums are not 1
        ("a,b\nx,y\nz,w\n", ""),
        ("k,q\nx,0.5\ny,1.5\n", ""),
        ("k,q\nx,0.5\n", ""),
    ],
)
def test_options_are_suggested_by_the_first_rows(tmp_path, content, options):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert suggest_options(str(path), "y_true") == options
