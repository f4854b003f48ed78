"""Columns that are named after the labels of a file are found; other columns are listed."""

import json

import numpy as np
import pytest

from fastece.data.errors import InputError
from fastece.files import iter_batches, read_predictions

ROWS = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]]
LABELS = ["cat", "dog", "owl", "cat"]
NAMES = ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("names", "labels", "expected"),
    [
        (["id", *NAMES, "split"], NAMES, NAMES),
        # Nothing shows that owl is a class.
        (["id", *NAMES], ["cat", "dog"], ["cat", "dog"]),
        (["id", "p_cat", "p_dog", "p_owl"], ["cat", "dog"], ["p_cat", "p_dog", "p_owl"]),
        (["p.cat", "p.dog", "q.cat"], ["cat", "dog"], ["p.cat", "p.dog"]),
        # Either prefix would be a guess.
        (["p_cat", "p_dog", "q_cat", "q_dog"], ["cat", "dog"], None),
        # No separator stands before the labels.
        (["bobcat", "hotdog"], ["cat", "dog"], None),
        (["p_cat", "p_dog"], ["cat", "dog", "owl"], None),
        # Features may be numbered too.
        (["0", "1", "2"], ["0", "1"], None),
        (["cat"], ["cat"], None),
    ],
)
def test_columns_are_found_if_they_are_named_after_all_labels(write, names, labels, expected):
    rows = [[label, *["0.5"] * len(names)] for label in labels]
    path = write("\n".join(map(",".join, [["label", *names], *rows])))
    if expected is None:
        with pytest.raises(InputError, match="no column 'y_prob'"):
            read_predictions(path, y_true="label")
    else:
        predictions = read_predictions(path, y_true="label")
        assert predictions.columns["y_prob"] == expected


def records(prefix):
    """Rows as dictionaries, with this prefix before the names of the classes."""
    return [
        {"label": label, **{prefix + name: p for name, p in zip(NAMES, row, strict=True)}}
        for label, row in zip(LABELS, ROWS, strict=True)
    ]


def write_csv(path, rows):
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines))


def write_json_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))


def write_npz(path, rows):
    np.savez(path, **{name: np.array([row[name] for row in rows]) for name in rows[0]})


WRITERS = {".csv": write_csv, ".jsonl": write_json_lines, ".npz": write_npz}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("prefix", ["", "p_", "prob of "])
def test_columns_are_found_by_the_labels_in_every_format(tmp_path, ending, prefix):
    path = tmp_path / f"a{ending}"
    WRITERS[ending](path, records(prefix))
    predictions = read_predictions(path, y_true="label")
    assert predictions.y_true.tolist() == LABELS
    assert np.asarray(predictions.y_prob).tolist() == ROWS
    names = [prefix + name for name in NAMES]
    assert predictions.y_prob.columns == predictions.columns["y_prob"] == names
    (batch,) = iter_batches(path, y_true="label", labels=NAMES)
    assert batch.y_prob.tolist() == ROWS


def test_objects_of_a_line_are_columns_too(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"label": label, "p": dict(zip(NAMES, row, strict=True))}
        for label, row in zip(LABELS, ROWS, strict=True)
    ]
    write_json_lines(path, rows)
    assert np.asarray(read_predictions(path, y_true="label").y_prob).tolist() == ROWS


KINDS = [
    ("1,0,1", "0 or 1"),
    ("0,2,10", "whole numbers"),
    ("0.25,1,0", "numbers from 0 to 1"),
    ("0.5,-1,2", "numbers"),
    ("no,yes,no", "text"),
    ("True,False,True", "true or false"),
    ("1,,0", "mixed or missing"),
]


@pytest.mark.parametrize(("cells", "kind"), KINDS)
def test_an_error_about_a_column_shows_the_kinds_of_the_others(write, cells, kind):
    rows = "".join(f"{cell},x\n" for cell in cells.split(","))
    path = write(f"a,b\n{rows}")
    with pytest.raises(InputError, match=rf"no column 'y_true', it has a \({kind}\), b \(text\)"):
        read_predictions(path)


def test_kinds_of_columns_are_shown_for_lists_and_objects(write):
    path = write('{"a": [0.5, 0.5], "b": {"x": 1, "y": 2}}\n', "a.jsonl")
    kinds = r"it has a \(2 numbers each\), a\.0 \(numbers from 0 to 1\), .*, b \(2 numbers each\)"
    with pytest.raises(InputError, match=kinds):
        read_predictions(path)


def test_an_error_about_a_column_lists_eight_columns(write):
    names = [f"q{k}" for k in range(20)]
    path = write(f"{','.join(names)}\n{','.join(['1'] * 20)}\n")
    with pytest.raises(InputError, match=r"q7 \(0 or 1\), \.\.\.; expected y_true,y_prob or"):
        read_predictions(path)
