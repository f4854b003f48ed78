"""The command `threshold` prints the numbers of `choose_threshold`."""

import json
import re

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.decisions import Threshold, choose_threshold
from helpers.command_line import failure


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, 900).round(4)
    y = (rng.random(900) < p).astype(int)
    return y, p


@pytest.fixture
def path(data, write):
    lines = (f"{label},{score}" for label, score in zip(*data, strict=True))
    return str(write("\n".join(["y_true,y_prob", *lines])))


def found_of(capsys, *options):
    code = main(["threshold", *options, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == int(found["value"] is None or None in np.atleast_1d(found["value"]))
    return found


def test_a_saved_threshold_is_that_of_python(capsys, data, path, tmp_path):
    y, p = data
    saved = tmp_path / "threshold.json"
    assert main(["threshold", path, "--save", str(saved)]) == 0
    printed = capsys.readouterr().out
    assert "predictions are right in at least 95 % of cases" in printed
    assert "  accuracy  accuracy at least\n" in printed
    # The sentence and the table round the coverage alike.
    percent = re.search(r"confidence:\s(\S+)\s%\sof\sthe\srows", printed)[1]
    assert f" {float(percent) / 100:.3f}  [" in printed
    again = Threshold.from_json(saved.read_text())
    assert again(p).tolist() == choose_threshold(y, p)(p).tolist()


@pytest.fixture
def answers(write):
    """Files of answers of calibrated confidences from 10 to 95 %, with their rows."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.1, 0.95, 2000).round(2)
    correct = rng.random(2000) < confidence
    lines = [
        json.dumps({"correct": bool(hit), "confidence": f"{100 * x:.0f}%"})
        for hit, x in zip(correct, confidence, strict=True)
    ]
    table = [f"{int(hit)},{x}" for hit, x in zip(correct, confidence, strict=True)]
    log = write("\n".join(lines), "answers.jsonl")
    csv = write("\n".join(["correct,confidence", *table]), "answers.csv")
    return [str(log), str(csv)], correct, confidence


COLUMNS = ["--y-true", "correct", "--y-prob", "confidence"]


def test_an_answer_of_little_confidence_is_never_let_pass(capsys, answers, tmp_path):
    paths, correct, confidence = answers
    expected = choose_threshold(correct, confidence, accuracy=0.8)
    assert expected.value > 0.6
    for path in paths:
        saved = tmp_path / "threshold.json"
        found = found_of(capsys, path, *COLUMNS, "--accuracy", "0.8", "--save", str(saved))
        assert (found["setting"], found["value"]) == ("binary", expected.value)
        assert found["coverage"] == (confidence >= expected.value).mean()
        acts = Threshold.from_json(saved.read_text())([0.1, 0.2, 0.5, 0.95])
        assert acts.tolist() == [False, False, False, True]
        error = failure(capsys, "threshold", path, *COLUMNS, "--setting", "confidence")
        assert "--setting: needs a class vector" in error
        assert "which is a binary problem" in error


def test_only_labels_of_classes_have_predictions_of_either_label(capsys, data, path, answers):
    note = "the setting confidence takes predictions of either label"
    paths, correct, confidence = answers
    for argv in ([paths[0], *COLUMNS], [paths[1], *COLUMNS], [path]):
        assert main(["threshold", *argv, "--accuracy", "0.8"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert (note in printed) == (argv == [path])
    words = np.where(correct, "right", "wrong")
    table = fastece.Predictions(correct, confidence)
    for threshold in (
        choose_threshold(correct, confidence, accuracy=0.8),
        choose_threshold(words, confidence, accuracy=0.8, pos_label="right"),
        choose_threshold(table, accuracy=0.8),
    ):
        assert note not in " ".join(str(threshold).split())
    assert note in " ".join(str(choose_threshold(*data)).split())
    report = fastece.calibration_report(*data, n_resamples=9)
    assert note in " ".join(str(report).split())


def test_a_value_of_by_without_a_score_is_exit_code_1(capsys, write, tmp_path):
    rng = np.random.default_rng(0)
    confidence = rng.beta(9, 1, 600)
    right = rng.random(600) < confidence
    rows = [
        f"{int(hit)},{x},{'a' if k < 590 else 'b'}"
        for k, (hit, x) in enumerate(zip(right, confidence, strict=True))
    ]
    path = str(write("\n".join(["y_true,y_prob,site", *rows])))
    assert main(["threshold", path, "--accuracy", "0.85"]) == 0
    saved = ["--save", str(tmp_path / "by.json")]
    assert main(["threshold", path, "--accuracy", "0.85", "--by", "site", *saved]) == 1
    printed = capsys.readouterr().out
    assert "1 of 2 values" in printed
    assert "by.json (with it no row of values without a score may act)" in printed


def test_weighted_rows_without_a_miss_are_a_warning_in_options_of_the_command(capsys, write):
    rows = "".join(f"1,{0.6 + k / 1000},{1 + k % 2}\n" for k in range(200))
    assert main(["threshold", str(write(f"y_true,y_prob,w\n{rows}")), "--weights", "w"]) == 1
    captured = capsys.readouterr()
    assert "No score is found" in captured.out
    assert "no row is a miss" in captured.err
    assert captured.err.endswith("leave --weights out if misses weigh as much as hits\n")


def test_without_a_threshold_the_accuracy_that_rows_support_is_shown(capsys, data, path, tmp_path):
    y, p = data
    saved = tmp_path / "none.json"
    assert main(["threshold", path, "--accuracy", "0.999", "--save", str(saved)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "none.json (with it no row may act)" in printed
    assert not Threshold.from_json(saved.read_text())(p).any()
    assert "No score is found from which predictions are right in at least 99.9 %" in printed
    assert "coverage" not in printed  # a table of dashes
    percent, score = re.search(r"support is (\d+) %, from the score (\S+) on", printed).groups()
    percent = int(percent)
    found = choose_threshold(y, p, accuracy=percent / 100)
    assert found.value == pytest.approx(float(score), abs=1e-3)
    above = choose_threshold(y, p, accuracy=(percent + 1) / 100)
    assert np.isnan(above.value)
