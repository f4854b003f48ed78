"""Logs of lm-evaluation-harness; `lm_eval_samples.jsonl` is made by hand in their shape."""

import json
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions

LOG = Path(__file__).parents[1] / "fixtures" / "lm_eval_samples.jsonl"
RIGHT = [1, 1, 0, 2]
SCORES = [[-4.5, -1.25, -6.0], [-2.0, -2.5, -7.0], [-0.5, -3.0, -2.25], [-5.5, -6.0, -1.0]]


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


@pytest.fixture
def read(tmp_path):
    """Read the log after a change of its rows."""

    def read_changed(change, **options):
        rows = [json.loads(line) for line in LOG.read_text(encoding="utf-8").splitlines()]
        for i, row in enumerate(rows):
            change(row, i)
        path = tmp_path / "samples.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return read_predictions(path, **options)

    return read_changed


def test_a_log_holds_class_vectors():
    read = read_predictions(LOG, columns={"by": "doc.subject"})
    assert (read.y_true.tolist(), read.y_prob.tolist()) == (RIGHT, SCORES)
    assert (read.pairs, read.from_logits) == (False, True)
    assert read.others["by"].tolist() == ["birds", "rivers"] * 2
    value = fastece.ece(read.y_true, read.y_prob, from_logits=True)
    assert value == pytest.approx(fastece.ece(RIGHT, [softmax(z) for z in SCORES]), abs=1e-15)


def with_requests_without_context(row, _):
    row["filtered_resps"] += [["-1.0", "False"]] * 3
    for k, text in enumerate(row["doc"]["choices"], 3):
        row["arguments"][f"gen_args_{k}"] = {"arg_0": "", "arg_1": text}


def as_lists_of_requests(row, i):
    choices = row["doc"].pop("choices")
    row.update(arguments=[["", f" {text}"] for text in choices], target=f" {choices[RIGHT[i]]}")


def as_letters(row, i):
    row["doc"]["choices"] = {"text": row["doc"]["choices"], "label": ["A", "B", "C"]}
    row["target"] = "ABC"[RIGHT[i]]


@pytest.mark.parametrize(
    "change",
    [
        lambda row, _: row.pop("filtered_resps"),
        lambda row, i: row.update(filtered_resps=[[x, 0] for x in SCORES[i]], target=RIGHT[i]),
        lambda row, i: row.update(target=row["doc"]["choices"][RIGHT[i]]),
        as_letters,
        as_lists_of_requests,
        with_requests_without_context,
    ],
)
def test_forms_of_a_log(read, change):
    predictions = read(change)
    assert (predictions.y_true.tolist(), predictions.y_prob.tolist()) == (RIGHT, SCORES)


def drop_a_choice(row, i):
    if i == 2:
        del row["filtered_resps"][1], row["doc"]["choices"][1], row["arguments"]["gen_args_1"]


def test_questions_with_other_numbers_of_choices_are_a_binary_problem(read):
    predictions = read(drop_a_choice)
    scores = [*SCORES[:2], [-0.5, -2.25], SCORES[3]]
    assert predictions.pairs
    assert predictions.y_true.tolist() == [True, False, True, True]
    np.testing.assert_allclose(predictions.y_prob, [softmax(z).max() for z in scores], rtol=1e-15)
    assert "2 to 3" in predictions.note


def numeric_choices(row, _):
    row["doc"]["choices"] = ["2", "0", "1"]


def test_a_target_that_is_two_choices_is_decided_by_the_accuracy(read):
    predictions = read(numeric_choices)
    assert predictions.pairs
    assert predictions.y_true.tolist() == [True, False, True, True]


def set_in(row_index, key, value):
    def change(row, i):
        if i == row_index:
            row[key] = value

    return change


def same_continuation(row, _):
    row["target"] = "fly"
    row["arguments"] = [[text, "fly"] for text in row["doc"].pop("choices")]


def same_continuation_without_accuracy(row, i):
    same_continuation(row, i)
    del row["acc"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in(1, "target", "3"), "line 2, column target: must be the number .*, got '3'$"),
        (set_in(1, "target", "[0, 1]"), "line 2, column target: .*, got"),
        (set_in(2, "target", "thrush"), "line 3, column target: .*, got 'thrush'$"),
        (same_continuation_without_accuracy, "line 1, column target: .*, got 'fly'$"),
        (set_in(3, "filtered_resps", ["Seine"]), "line 4, column filtered_resps: must"),
        (set_in(3, "filtered_resps", ["4"]), "of two or more choices, got"),
        (set_in(3, "filtered_resps", [["nan", "False"]] * 3), "line 4, column filtered_resps"),
        (set_in(3, "filtered_resps", [["-inf", "False"]] * 3), "line 4, column filtered_resps"),
        (set_in(3, "filtered_resps", [[[-1, 0], [-2, 0]]] * 3), "line 4, column filtered_resps"),
        (set_in(3, "filtered_resps", 7), "line 4, column filtered_resps: .*, got 7$"),
        (set_in(3, "filtered_resps", [[], []]), "line 4, column filtered_resps"),
        (lambda row, _: row.update(target="thrush", acc=None), "line 1, column target: must be"),
        (set_in(0, "acc", 0.0), "line 1, column acc: must be 1 if .*, got 0.0$"),
        (set_in(2, "filter", "first"), "line 3, column filter: must be 'none', .*, got 'first'$"),
    ],
)  # fmt: skip
def test_bad_logs_are_refused(read, change, message):
    with pytest.raises(ValueError, match=message):
        read(change)


def test_columns_that_are_named_are_no_log(read):
    predictions = read(lambda *_: None, y_true="target", y_prob="acc")
    assert predictions.y_prob.tolist() == [1, 0, 1, 1]


def test_a_line_of_a_log_that_is_no_object_is_named(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(LOG.read_text(encoding="utf-8") + "[1]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 5: must hold a JSON object, got \[1\]$"):
        read_predictions(path)
