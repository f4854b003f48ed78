"""Recalibration of files: the numbers are those of `fastece.recalibration` and `fastece.compare`,
and what is written is read again."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions
from fastece.recalibration import METHODS, load, recalibrate
from helpers.command_line import DIGITS, FOREST, PAIRS, as_json, failure, run, text

QUICK = ["--resamples", 19]
RNG = np.random.default_rng(0)
TRUTH = RNG.dirichlet([1, 1, 1], 120)
LABEL = np.array([RNG.choice(3, p=row) for row in TRUTH])
# Over-confident logits, and of two classes.
LOGITS = 2 * np.log(TRUTH)
HIT = (RNG.random(120) < TRUTH[:, 0]).astype(int)
SCORE = TRUTH[:, 0] ** 2


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def table(names, *columns):
    """CSV of columns, numbers with all their digits."""
    cells = [np.asarray(column).tolist() for column in columns]
    lines = [names, *(",".join(map(str, row)) for row in zip(*cells, strict=True))]
    return "\n".join(lines) + "\n"


BINARY = table("y_true,y_prob", HIT, SCORE)
VECTORS = table("y_true,p_0,p_1,p_2", LABEL, *softmax(LOGITS).T)


def lines_of(found, key):
    return {line["name"]: line for line in found[key]}


def test_folds_of_the_digits(capsys, tmp_path):
    a = np.load(DIGITS)
    out = tmp_path / "new.npz"
    options = ["--method", "temperature", "--folds", 4, "--seed", 3, "--out", out]
    found = as_json(capsys, "recalibrate", DIGITS, *options, "--resamples", 32)
    p = recalibrate(a["y_true"], a["y_prob"], method="temperature", cv=4, rng=3)
    with np.load(out) as new:
        assert new["y_true"].tolist() == a["y_true"].tolist()
        assert new["y_prob"].dtype == a["y_prob"].dtype
        assert new["y_prob"].tolist() == p.tolist()
    assert (found["title"], found["method"], found["out"]) == (str(DIGITS), "temperature", str(out))
    assert (found["n"], found["n_resamples"], found["parameters"]) == (1797, 32, {})
    models = (a["y_true"], a["y_prob"], p)
    errors = fastece.compare(
        *models, estimator=["ece_bayes", "ece"], n_resamples=32, rng=3, method="mover"
    )
    score = fastece.compare(*models, estimator="log_loss", n_resamples=32, rng=3)
    lines = {**lines_of(found, "differences"), **lines_of(found, "scores")}
    for name, result in {**errors, "log_loss": score}.items():
        line = lines[name]
        assert (line["before"], line["after"]) == (result.a, result.b)
        assert line["difference"] == result.value
        assert (line["low"], line["high"]) == pytest.approx(result.confidence_interval, rel=1e-12)


def test_a_model_of_another_file_is_saved_and_loaded(capsys, write, tmp_path):
    file, other = write(BINARY), write(table("y_true,y_prob", HIT[:70], SCORE[:70]), "b.csv")
    model, one, two = tmp_path / "m.json", tmp_path / "one.csv", tmp_path / "two.csv"
    page = text(
        capsys, "recalibrate", file, "--fit", other, "--method", "beta", "--save", model,
        "--out", one, *QUICK,
    )  # fmt: skip
    fitted = METHODS["beta"]().fit(SCORE[:70], HIT[:70])
    assert f"beta calibration, fitted to {other}\n" in page
    assert re.search(rf"  a +{fitted.a_:.5g}\n", page)
    assert page.endswith(f"  predictions  {one}\n  model        {model}\n")
    assert read_predictions(one).y_prob.tolist() == fitted.transform(SCORE).tolist()
    found = as_json(capsys, "recalibrate", file, "--load", model, "--out", two, *QUICK)
    assert (found["method"], found["fitted"]) == ("beta", f"loaded from {model}")
    assert found["parameters"] == {"a": fitted.a_, "b": fitted.b_, "c": fitted.c_}
    assert two.read_bytes() == one.read_bytes()


def test_after_folds_the_model_of_all_rows_is_saved(capsys, write, tmp_path):
    model, out = tmp_path / "m.json", tmp_path / "new.csv"
    page = text(
        capsys, "recalibrate", write(BINARY), "--method", "platt", "--save", model,
        "--out", out, *QUICK,
    )  # fmt: skip
    fitted = METHODS["platt"]().fit(SCORE, HIT)
    assert load(model).slope_ == fitted.slope_
    assert re.search(rf"  slope +{fitted.slope_:.5g} \(of all rows\)\n", page)
    assert "after: out of folds, so no row by what was fitted to it" in page
    assert page.endswith("(fitted to all rows; the numbers above are of one for each fold)\n")
    p = recalibrate(HIT, SCORE, method="platt")
    assert read_predictions(out).y_prob.tolist() == p.tolist()


def test_all_methods_are_ranked_and_the_best_is_written(capsys, write, tmp_path):
    out = tmp_path / "new.csv"
    options = ["recalibrate", write(BINARY), "--method", "all", "--out", out, *QUICK]
    found = as_json(capsys, *options)
    assert sorted(line["method"] for line in found["ranks"]) == sorted(METHODS)
    assert found["refused"] == {}
    after = {name: recalibrate(HIT, SCORE, method=name) for name in METHODS}
    losses = {name: fastece.log_loss(HIT, p) for name, p in after.items()}
    assert losses["isotonic"] == np.inf
    for line in found["ranks"]:
        name, p = line["method"], after[line["method"]]
        loss = float(line["log_loss"])
        assert loss == pytest.approx(losses[name], rel=1e-12)
        assert line["ece_bayes"] == pytest.approx(fastece.ece(HIT, p, estimator="ece_bayes"))
        assert line["same_class"] == np.mean((p > 0.5) == (SCORE > 0.5))
    order = [float(line["log_loss"]) for line in found["ranks"]]
    assert order == sorted(order)
    best = min(losses, key=losses.get)
    assert found["method"] == best == found["ranks"][0]["method"]
    assert read_predictions(out).y_prob.tolist() == after[best].tolist()
    page = text(capsys, *options)
    rows = re.search(r"\n  method .*rows that keep their class\n((?:.+\n)+)\n", page)[1]
    assert rows.count("\n") == len(METHODS) + 1
    assert re.search(r"temperature scaling .* all\n", rows)
    assert re.search(r"isotonic calibration +inf .* %\n", rows)
    assert rows.splitlines()[-1].split()[:3] == ["as", "it", "is"]


def test_methods_that_cannot_be_used_are_named(capsys, write):
    n, classes = 40, 7
    y = np.arange(n) % classes  # scores know a little of them, whichever tests ran before
    p = 0.9 * np.random.default_rng(0).dirichlet(np.ones(classes), n) + 0.1 * np.eye(classes)[y]
    names = ",".join(["y_true", *(f"p_{k}" for k in range(classes))])
    page = text(capsys, "recalibrate", write(table(names, y, *p.T)), "--method", "all", "--folds",
                2, *QUICK)  # fmt: skip
    reason = "has 56 parameters, more than the 40 rows to fit to"
    assert f"  matrix scaling cannot be used: {reason}\n" in page


def test_logits_become_probabilities(capsys, write, tmp_path):
    file, out = write(table("id,y_true,p_0,p_1,p_2", HIT, LABEL, *LOGITS.T)), tmp_path / "new.csv"
    options = ["recalibrate", file, "--from-logits", "--method", "vector", *QUICK]
    page = text(capsys, *options, "--out", out, "--save", tmp_path / "m.json")
    assert f"  predictions  {out} (probabilities, where the file has logits)\n" in page
    p = recalibrate(LABEL, LOGITS, method="vector", from_logits=True)
    new = read_predictions(out)
    assert new.y_prob.tolist() == p.tolist()
    line = lines_of(as_json(capsys, *options), "differences")["ece"]
    assert line["before"] == fastece.ece(LABEL, LOGITS, from_logits=True)
    assert line["after"] == fastece.ece(LABEL, p)
    error = failure(capsys, "recalibrate", write(VECTORS), "--load", tmp_path / "m.json")
    assert "m.json: must have logits or probabilities of the file, 'probabilities'" in error


def test_labels_weights_and_groups(capsys, write, tmp_path):
    names, out = np.array(["cow", "dog", "cat"]), tmp_path / "new.csv"
    p, group = softmax(LOGITS), np.arange(120) // 9
    weight = RNG.integers(0, 3, 120)
    file = write(table("y_true,cow,dog,cat,w,g", names[LABEL], *p.T, weight, group))
    found = as_json(
        capsys, "recalibrate", file, "--y-prob", "cow,dog,cat", "--weights", "w", "--groups", "g",
        "--method", "vector", "--folds", 3, "--out", out, *QUICK,
    )  # fmt: skip
    wanted = recalibrate(LABEL, p, method="vector", cv=3, groups=group, sample_weight=weight)
    new = read_predictions(out, y_prob="cow,dog,cat")
    assert np.asarray(new.y_prob).tolist() == wanted.tolist()
    assert found["fitted"] == "3 folds, rows of the same g together"
    value = fastece.ece(LABEL, wanted, sample_weight=weight)
    assert lines_of(found, "differences")["ece"]["after"] == pytest.approx(value)
    file = write(table("y_true,y_prob", np.array(["stay", "churn"])[HIT], SCORE))
    text(
        capsys, "recalibrate", file, "--pos-label", "churn", "--method", "platt", "--out", out,
        *QUICK,
    )  # fmt: skip
    assert read_predictions(out).y_prob.tolist() == recalibrate(HIT, SCORE, method="platt").tolist()


def test_confidences_are_a_binary_problem(capsys, write, tmp_path):
    rows = "".join(f"{hit},1,{p}\n" for hit, p in zip(HIT.tolist(), SCORE.tolist(), strict=True))
    out = tmp_path / "new.csv"
    file = write(PAIRS + rows)
    options = ["recalibrate", file, "--method", "all", "--classes", 5]
    page = text(capsys, *options, "--out", out, *QUICK)
    assert "binary: is the predicted class right" in page
    assert re.search(r"Platt scaling .* -\n", page)
    best = as_json(capsys, *options, *QUICK)["method"]
    new = read_predictions(out)
    assert new.pairs
    assert new.y_prob.tolist() == recalibrate(HIT, SCORE, method=best).tolist()


def test_a_verdict_says_whether_it_helped(capsys, write):
    n = 3000
    p = np.random.default_rng(1).random(n)
    y = (np.random.default_rng(2).random(n) < p).astype(int)
    sharp = p**2 / (p**2 + (1 - p) ** 2)
    good = write(table("y_true,y_prob", y, p))
    bad = write(table("y_true,y_prob", y, sharp), "b.csv")
    found = as_json(capsys, "recalibrate", bad, "--resamples", 99)
    start = r"Temperature scaling made it better calibrated by ece_bayes: 0\.\d+ before, 0\.\d+ "
    assert re.match(start + r"after \(95 % interval of before - after \[0\.", found["verdict"])
    assert re.search(r"; the log loss is better: 0.57\d* before, 0.50\d* after", found["verdict"])
    # What mends the sharp one spoils the good one.
    found = as_json(capsys, "recalibrate", good, "--fit", bad, "--resamples", 99)
    assert found["verdict"].startswith("Temperature scaling made it worse calibrated by ece_bayes")
    assert "; the log loss is worse: " in found["verdict"]
    found = as_json(capsys, "recalibrate", good, "--resamples", 99)
    start = (
        "Temperature scaling is not shown to have changed how well it is calibrated by ece_bayes"
    )
    assert found["verdict"].startswith(start)


def test_an_infinite_log_loss_is_said(capsys, write):
    found = as_json(capsys, "recalibrate", write(BINARY), "--method", "isotonic", *QUICK)
    assert found["verdict"].endswith("infinite after, as a label had probability 0.")
    assert lines_of(found, "scores")["log_loss"]["after"] == "inf"
    wrong = np.where(np.arange(120), SCORE, 1 - HIT[0])
    found = as_json(capsys, "recalibrate", write(table("y_true,y_prob", HIT, wrong)), *QUICK)
    assert re.search(r"; the log loss was infinite, and is 0\.\d+ after\.", found["verdict"])


def test_warnings_are_given_once(capsys, write):
    short = softmax(LOGITS) * np.where(np.arange(120) % 9, 1, 0.9)[:, None]
    file = write(table("y_true,p_0,p_1,p_2", LABEL, *short.T))
    code, _, err = run(capsys, "recalibrate", file, *QUICK)
    assert code == 0
    assert re.fullmatch(r"fastece: warning: \S+: from line 2 on: y_prob: 14 of .*\n", err)
    alike = write(table("y_true,y_prob", HIT, np.full(120, 0.5)))
    _, _, err = run(capsys, "recalibrate", alike, "--method", "beta", *QUICK)
    assert err.startswith("fastece: warning: beta calibration: all scores are equal, so")
    assert err.count("\n") == 1


def test_a_file_in_a_folder_that_cannot_be_written(capsys, write, monkeypatch):
    old = write("", "old.csv")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).is_file())
    error = failure(capsys, "recalibrate", write(BINARY), "--out", old)
    assert "--out: must be in a folder that can be written" in error


def test_picture_of_before_and_after(capsys, write, tmp_path, figures):
    picture = tmp_path / "a.svg"
    page = text(capsys, "recalibrate", write(BINARY), "--plot", picture, *QUICK)
    assert page.endswith(f"\n  picture  {picture}\n")
    names = [entry.get_text() for entry in figures[0].axes[0].get_legend().get_texts()]
    assert [name for name in names if name.startswith(("before", "after"))], names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "best"], r"--method: .* got 'best'; .*'temperature', .*'curve', 'all'"),
        (["--fit", "b.csv", "--folds", "3"], "--folds: does not go with --fit"),
        (["--load", "m.json", "--method", "beta"], "--method: does not go with --load"),
        (["--fit", "a.csv"], "--fit: must be another file"),
        (["--fit", "c.csv"], "--fit: c.csv: must have the number of classes of the file, 2, got 3"),
        (["--fit", "d.csv"], "d.csv: must have the number of columns of the file, 1, got 2"),
        (["--fit", "e.csv"], "e.csv: must have the kind of columns of the file, 'proba"),
        (["--fit", "none.csv"], "none.csv"),
        (["--fit", "f.csv"], "f.csv: line 2, column y_prob: .*got 1.5"),
        (["--load", "b.csv"], "b.csv: "),
        (
            ["--load", "n.json", "--from-logits"],
            "--load: n.json: must have logits .* of the file, 'logits', got 'probabilities'",
        ),
        (["--fit", "g.csv", "--method", "all"], "--method: no method can be used; .* got 1 alone"),
        (["--load", "m.json"], "m.json: must have the number of classes of the file, 2, got 3"),
        (["--folds", "1"], "--folds: must be"),
        (["--folds", "200"], "--folds: must be"),
        (["--groups", "who"], "no column 'who', it has .*; --groups takes the name of a column"),
        (["--out", "a.csv"], "--out: must be no other file of this command, got 'a.csv'"),
        (["--out", "./link"], "--out: must be no other file"),
        (["--fit", "b.csv", "--out", "b.csv"], "--out: must be no other file"),
        (["--out", "x.csv", "--save", "x.csv"], "--save: must be no other file"),
        (["--out", "-"], "--out: must be a file"),
        (["--out", "no/x.csv"], "--out: must be in a folder that exists, got 'no'"),
        (["--out", "x.txt"], "--out: must end in .csv"),
        (["--resamples", "0"], "--resamples: must be"),
        (["--estimator", "none"], "got 'none'"),
    ],
)
def test_what_is_refused_before_anything_is_computed(
    capsys, tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    model = {
        "format": "fastece.recalibration", "version": 1, "method": "temperature",
        "options": {"from_logits": False}, "n_classes": 3, "classes": None,
        "parameters": {"temperature": 1.5},
    }  # fmt: skip
    files = {
        "a.csv": BINARY, "b.csv": BINARY, "c.csv": VECTORS, "e.csv": f"{PAIRS}0,0,0.5\n",
        "d.csv": table("y_true,p_0,p_1", HIT, 1 - SCORE, SCORE), "f.csv": "y_true,y_prob\n0,1.5\n",
        "g.csv": "y_true,y_prob\n1,0.5\n",
        "m.json": json.dumps(model), "n.json": json.dumps({**model, "n_classes": 2}),
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "link").symlink_to("a.csv")
    assert re.search(message, failure(capsys, "recalibrate", "a.csv", *options))
    assert {path.name for path in tmp_path.iterdir()} == {*files, "link"}
    assert all((tmp_path / name).read_text() == content for name, content in files.items())


def test_a_log_of_the_harness_is_recalibrated(capsys, tmp_path):
    log = Path(__file__).parents[1] / "fixtures" / "lm_eval_samples.jsonl"
    out = tmp_path / "x.jsonl"
    assert run(capsys, "recalibrate", log, "--out", out, "--folds", 2, *QUICK)[0] == 0
    assert read_predictions(out).y_true.tolist() == read_predictions(log).y_true.tolist()


def test_two_models_have_other_predictions(capsys, tmp_path):
    out = tmp_path / "new.npz"
    found = as_json(capsys, "recalibrate", DIGITS, "--fit", FOREST, "--out", out, *QUICK)
    a, b = np.load(DIGITS), np.load(FOREST)
    p = METHODS["temperature"]().fit(b["y_prob"], b["y_true"]).transform(a["y_prob"])
    assert found["fitted"] == f"fitted to {FOREST}"
    with np.load(out) as new:
        assert new["y_prob"].tolist() == p.tolist()


def test_a_model_of_other_classes_is_refused(capsys, tmp_path):
    """Of the same number of columns in another order, or of pairs of labels."""
    rng = np.random.default_rng(1)
    names = np.array(["cat", "dog", "eel"])
    p = rng.dirichlet(np.ones(3), 60)
    for order in ([0, 1, 2], [2, 1, 0]):
        rows = [f"{names[rng.choice(3, p=row)]}," + ",".join(map(str, row[order])) for row in p]
        header = "label," + ",".join(names[order])
        path = tmp_path / f"{names[order][0]}.csv"
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    named = ("--y-true", "label", "--y-prob")
    model = tmp_path / "model.json"
    text(capsys, "recalibrate", tmp_path / "cat.csv", *named, "cat,dog,eel", "--save", model)
    text(capsys, "recalibrate", tmp_path / "cat.csv", *named, "cat,dog,eel", "--load", model)
    other = (tmp_path / "eel.csv", *named, "eel,dog,cat")
    error = failure(capsys, "recalibrate", *other, "--load", model)
    assert "got ['cat', 'dog', 'eel']" in error
