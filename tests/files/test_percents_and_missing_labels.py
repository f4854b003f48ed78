"""Percents in files, and rows without a label: the right number, by an option that is named."""

import json

import numpy as np
import pytest

import fastece
from helpers.command_line import SMALL, as_json, failure, run, text
from helpers.field_samples import as_csv, as_json_lines, as_rows, draw_risks, plain_ece

RNG = np.random.default_rng(0)
N = 200
PERCENTS = RNG.integers(40, 100, N)
RIGHT = (RNG.random(N) < 0.8 * PERCENTS / 100).astype(int)
ERROR = plain_ece(RIGHT, PERCENTS / 100)
COLUMNS = {"y_true": RIGHT, "y_prob": PERCENTS}
SIGNS = {"y_true": RIGHT, "y_prob": [f"{x}%" for x in PERCENTS]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "form"),
    [(COLUMNS, as_csv), (SIGNS, lambda x: as_json_lines(as_rows(x))), (SIGNS, lambda x: json.dumps(
        {name: np.asarray(column).tolist() for name, column in x.items()}))],
)  # fmt: skip
def test_percents_of_a_table_are_read_by_an_option_and_signs_without(
    write, error_of, columns, form
):
    path = write(form(columns), "percents")
    assert error_of(path, "--percent") == pytest.approx(ERROR, abs=1e-12)
    assert error_of(path, "--percent", "--stream") == pytest.approx(ERROR, abs=1e-12)
    if columns is SIGNS:
        assert error_of(path) == pytest.approx(ERROR, abs=1e-12)


def test_class_vectors_in_percent(write, error_of):
    prob = RNG.dirichlet([1, 1, 1], N)
    columns = {"y_true": RNG.integers(0, 3, N)} | {f"p_{k}": 100 * p for k, p in enumerate(prob.T)}
    hits = prob.argmax(1) == columns["y_true"]
    error = error_of(write(as_csv(columns)), "--percent")
    assert error == pytest.approx(plain_ece(hits, prob.max(1)), abs=1e-12)


@pytest.mark.slow
def test_lists_of_percents_with_signs_are_divided_once(write, error_of):
    prob = RNG.dirichlet([1, 1, 1], N).round(4)
    prob[:, 0] = 1 - prob[:, 1:].sum(axis=1)
    rows = [
        {"y_true": int(y), "y_prob": [f"{100 * p:.2f}%" for p in row]}
        for y, row in zip(RNG.integers(0, 3, N), prob, strict=True)
    ]
    error = plain_ece(prob.argmax(1) == [row["y_true"] for row in rows], prob.max(1))
    path = write(as_json_lines(rows), "lists.jsonl")
    assert error_of(path) == pytest.approx(error, abs=1e-12)
    assert error_of(path, "--percent") == pytest.approx(error, abs=1e-12)


def test_numbers_above_one_are_refused_with_the_option_that_divides(capsys, write):
    message = failure(capsys, "report", write(as_csv(COLUMNS)))
    assert f"got {PERCENTS[0]}" in message
    assert "percentages: --percent" in message
    tiers = {"y_true": RIGHT, "y_prob": PERCENTS % 6}
    assert "--percent" not in failure(capsys, "report", write(as_csv(tiers)))


def test_a_number_that_is_no_percent_is_named(capsys, write):
    columns = {"y_true": [0, 1, 1], "y_prob": [50, 120, -3]}
    message = failure(capsys, "report", write(as_csv(columns)), "--percent")
    assert "line 3, column y_prob: must be a number from 0 to 100, got 120.0; and 1 more" in message
    mixed = {"y_true": [0, 1, 1], "y_prob": ["50%", "0.7", "20%"]}
    message = failure(capsys, "report", write(as_csv(mixed)))
    assert "line 3, column y_prob: must have a sign %, as the first row has, got '0.7'" in message


def test_percents_of_logits_are_refused(capsys, write):
    message = failure(capsys, "report", write(as_csv(COLUMNS)), "--percent", "--from-logits")
    assert "--from-logits: goes without --percent" in message


# --- files with rows without a label ----------------------------------------------------------

Y, P = draw_risks()
UNLABELLED = np.arange(300) % 7 == 3
LABELLED_ERROR = plain_ece(Y[~UNLABELLED], P[~UNLABELLED])
NOTE = f"{UNLABELLED.sum()} of 300 rows without a label are left out"


def with_blanks(blank):
    return {"y_true": [blank if x else y for x, y in zip(UNLABELLED, Y.tolist(), strict=True)],
            "y_prob": P.tolist()}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "name"),
    [(as_csv(with_blanks("NaN")), "b.csv"), (as_json_lines(as_rows(with_blanks(None))), "c.jsonl")],
)  # fmt: skip
def test_rows_without_a_label_are_left_out_and_counted(capsys, write, error_of, content, name):
    path = write(content, name)
    message = failure(capsys, "report", path)
    assert "column y_true: must not be missing" in message
    assert "--missing skip leaves such rows out" in message
    for options in ([], ["--stream"]):
        error = error_of(path, "--missing", "skip", *options)
        assert error == pytest.approx(LABELLED_ERROR, abs=1e-12)
        page = text(capsys, "report", path, "--missing", "skip", *options, "--full")
        assert NOTE in " ".join(page.split())


@pytest.mark.slow
def test_rows_without_a_label_are_left_out_of_arrays(capsys, tmp_path, error_of):
    path = tmp_path / "a.npz"
    np.savez(path, y_true=np.where(UNLABELLED, np.nan, Y), y_prob=P)
    assert "--missing skip leaves such rows out" in failure(capsys, "report", path)
    assert error_of(path, "--missing", "skip") == pytest.approx(LABELLED_ERROR, abs=1e-12)
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    parquet.write_table(table(with_blanks(None)), tmp_path / "a.parquet")
    error = error_of(tmp_path / "a.parquet", "--missing", "skip")
    assert error == pytest.approx(LABELLED_ERROR, abs=1e-12)


def test_a_file_without_any_label_is_refused(capsys, write):
    path = write("y_true,y_prob\n,0.5\n,0.2\n")
    for options in ([], ["--stream"]):
        message = failure(capsys, "report", path, "--missing", "skip", *options)
        assert "none of its 2 rows has a label" in message


def test_a_monitor_leaves_rows_out_whose_labels_may_come_later(capsys, write):
    path = write(as_csv(with_blanks("")))
    printed = as_json(capsys, "monitor", path)
    kept = fastece.Monitor().update(Y[~UNLABELLED], P[~UNLABELLED])
    assert (printed["n"], printed["log_e_value"]) == (kept.n, kept.log_e_value)
    assert printed["files"][0]["unlabelled"] == UNLABELLED.sum()
    page = " ".join(text(capsys, "monitor", path).split())
    assert f"{UNLABELLED.sum()} rows have no label yet and are left out" in page
    assert "once they are labelled, give them in a file of their own" in page
    assert "must not be missing" in failure(capsys, "monitor", path, "--missing", "stop")
    code, out, _ = run(capsys, "monitor", write(SMALL, "whole.csv"))
    assert code in (0, 1)
    assert "no label" not in out
