"""The command `recalibrate` prints the values of Python, and its files are read again."""

import json
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.files import read_predictions
from fastece.recalibration import METHODS, PriorShift, load, recalibrate, recommend
from helpers.command_line import DIGITS, PAIRS, as_json, failure, run, text

QUICK = ["--resamples", 19]
RNG = np.random.default_rng(0)
TRUTH = RNG.dirichlet([1, 1, 1], 120)
LABEL = np.array([RNG.choice(3, p=row) for row in TRUTH])
# Over-confident logits, and of two classes.
LOGITS = 2 * np.log(TRUTH)
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
HIT = (RNG.random(120) < TRUTH[:, 0]).astype(int)
SCORE = TRUTH[:, 0] ** 2
WEIGHT = RNG.integers(0, 3, 120)
GROUP = np.arange(120) // 9
ANIMALS = np.array(["cow", "dog", "cat"])[LABEL]


def table(names, *columns):
    """CSV of columns, numbers with all their digits."""
    cells = [np.asarray(column).tolist() for column in columns]
    lines = [names, *(",".join(map(str, row)) for row in zip(*cells, strict=True))]
    return "\n".join(lines) + "\n"


BINARY = table("y_true,y_prob", HIT, SCORE)
VECTORS = table("y_true,p_0,p_1,p_2", LABEL, *P.T)


@pytest.fixture
def command(capsys, tmp_path):
    """Call the command on a file; give its values and the recalibrated predictions."""

    def recalibrate_file(file, *options, resamples=19, out="new.csv", **named_options):
        out = tmp_path / out
        options = [*options, "--out", out, "--resamples", resamples]
        printed = as_json(capsys, "recalibrate", file, *options)
        assert printed["out"] == str(out)
        return printed, read_predictions(out, **named_options)

    return recalibrate_file


def lines_of(found, key):
    return {line["name"]: line for line in found[key]}


@pytest.mark.slow
def test_folds_of_the_digits(command):
    a = np.load(DIGITS)
    options = ["--method", "temperature", "--folds", 4, "--seed", 3]
    printed, new = command(DIGITS, *options, resamples=32, out="new.npz")
    p = recalibrate(a["y_true"], a["y_prob"], method="temperature", cv=4, rng=3)
    assert new.y_true.tolist() == a["y_true"].tolist()
    assert new.y_prob.dtype == a["y_prob"].dtype
    assert new.y_prob.tolist() == p.tolist()
    assert [printed[x] for x in ("title", "method", "n", "n_resamples", "parameters")] == [
        str(DIGITS), "temperature", 1797, 32, {}
    ]  # fmt: skip
    lines = {**lines_of(printed, "differences"), **lines_of(printed, "scores")}
    for name in ("ece_bayes", "ece", "log_loss"):
        models = (a["y_true"], a["y_prob"], p)
        line = lines[name]
        result = fastece.compare(*models, estimator=name, n_resamples=32, rng=3)
        assert (line["before"], line["after"]) == (result.a, result.b)
        assert line["difference"] == result.value
        assert (line["low"], line["high"]) == pytest.approx(result.confidence_interval, rel=1e-12)


@pytest.mark.parametrize(
    ("content", "options", "fields", "data", "arguments"),
    [
        (BINARY, ["--method", "platt"], {}, (HIT, SCORE), {"method": "platt"}),
        (table("id,y_true,p_0,p_1,p_2", HIT, LABEL, *LOGITS.T),
         ["--from-logits", "--method", "vector"], {}, (LABEL, LOGITS),
         {"method": "vector", "from_logits": True}),
        (table("y_true,cow,dog,cat,w,g", ANIMALS, *P.T, WEIGHT, GROUP),
         ["--y-prob", "cow,dog,cat", "--weights", "w", "--groups", "g", "--method", "vector",
          "--folds", 3], {"y_prob": "cow,dog,cat"}, (LABEL, P),
         {"method": "vector", "cv": 3, "groups": GROUP, "sample_weight": WEIGHT}),
        (table("y_true,y_prob", np.array(["stay", "churn"])[HIT], SCORE),
         ["--pos-label", "churn", "--method", "beta"], {}, (HIT, SCORE), {"method": "beta"}),
        (table(PAIRS.strip(), HIT, np.ones(120, int), SCORE),
         ["--classes", 5, "--method", "histogram"], {}, (HIT, SCORE), {"method": "histogram"}),
    ],
    ids=["binary", "logits", "named, weights, groups", "texts", "pairs"],
)  # fmt: skip
def test_options_are_arguments_of_recalibrate(
    command, write, content, options, fields, data, arguments
):
    printed, new = command(write(content), *options, **fields)
    expected = recalibrate(*data, **arguments)
    assert np.asarray(new.y_prob).tolist() == expected.tolist()
    line = lines_of(printed, "differences")["ece"]
    weight = {"sample_weight": arguments.get("sample_weight")}
    if "--classes" in options:
        weight["score_range"] = (0.2, 1.0)
    before = fastece.ece(*data, **weight, from_logits="from_logits" in arguments)
    assert line["before"] == pytest.approx(before, rel=1e-12)
    assert line["after"] == pytest.approx(fastece.ece(data[0], expected, **weight), rel=1e-12)
    folds = f"{arguments.get('cv', 5)} folds"
    if "groups" in arguments:
        folds += ", rows of the same g together"
    assert printed["fitted"] == folds


@pytest.mark.slow
def test_a_model_of_another_file_is_saved_and_loaded(command, capsys, write, tmp_path):
    file = write(BINARY)
    other = write(table("y_true,y_prob", HIT[:70], SCORE[:70]), "b.csv")
    model = tmp_path / "m.json"
    fitted = METHODS["beta"]().fit(SCORE[:70], HIT[:70])
    options = ["--fit", other, "--method", "beta", "--save", model]
    printed, one = command(file, *options, out="one.csv")
    again, two = command(file, "--load", model, out="two.csv")
    assert (printed["fitted"], again["fitted"]) == (f"fitted to {other}", f"loaded from {model}")
    for values, new in ((printed, one), (again, two)):
        assert values["method"] == "beta"
        assert values["parameters"] == {"a": fitted.a_, "b": fitted.b_, "c": fitted.c_}
        assert new.y_prob.tolist() == fitted.transform(SCORE).tolist()
    page = text(capsys, "recalibrate", file, *options, *QUICK)
    assert page.endswith(f"\n  model  {model}\n")


def test_after_folds_the_model_of_all_rows_is_saved(command, write, tmp_path):
    model = tmp_path / "m.json"
    printed, new = command(write(BINARY), "--method", "platt", "--save", model)
    fitted = METHODS["platt"]().fit(SCORE, HIT)
    assert load(model).slope_ == fitted.slope_ == printed["parameters"]["slope"]
    assert new.y_prob.tolist() == recalibrate(HIT, SCORE, method="platt").tolist()


@pytest.mark.slow
def test_all_methods_are_ranked_and_the_best_is_written(command, capsys, write):
    file = write(BINARY)
    printed, new = command(file, "--method", "all")
    # Labels do not show the base rate of prior_shift. The first of equal methods is the best.
    fitted = [name for name in METHODS if name != "prior_shift"]
    assert sorted(line["method"] for line in printed["ranks"]) == sorted(fitted)
    assert printed["refused"] == {}
    after = {name: recalibrate(HIT, SCORE, method=name) for name in fitted}
    losses = {name: fastece.log_loss(HIT, p) for name, p in after.items()}
    assert losses["isotonic"] == np.inf
    for line in printed["ranks"]:
        name = line["method"]
        p = after[line["method"]]
        assert float(line["log_loss"]) == pytest.approx(losses[name], rel=1e-12)
        assert line["ece_bayes"] == pytest.approx(fastece.ece(HIT, p, estimator="ece_bayes"))
        assert line["same_class"] == np.mean((p > 0.5) == (SCORE > 0.5))
    order = [float(line["log_loss"]) for line in printed["ranks"]]
    assert order == sorted(order)
    best = min(losses, key=losses.get)
    assert printed["method"] == best == printed["ranks"][0]["method"]
    assert new.y_prob.tolist() == after[best].tolist()
    lines = text(capsys, "recalibrate", file, "--method", "all", *QUICK).splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("rows that keep their class"))
    rows = lines[start + 1 : start + 1 + len(fitted)]
    titles = [METHODS[line["method"]].title for line in printed["ranks"]]
    assert [row[2:].startswith(title) for row, title in zip(rows, titles, strict=True)] == [
        True
    ] * len(fitted)
    assert all(row.split()[-1] in ("all", "%") for row in rows)
    pairs = write(table(PAIRS.strip(), HIT, np.ones(120, int), SCORE))
    printed, new = command(pairs, "--method", "all")
    assert new.pairs
    assert {line["same_class"] for line in printed["ranks"]} == {None}


RISK = np.linspace(0.05, 0.95, 400)
CALIBRATED = (RNG.random(400) < RISK).astype(int), RISK
CALLS_OF_AUTO = [
    (BINARY, [], (HIT, SCORE), {}),
    (table("y_true,y_prob", *CALIBRATED), ["--seed", 2], CALIBRATED, {"rng": 2}),
    (table("y_true,p_0,p_1,p_2,w,g", LABEL, *P.T, WEIGHT, GROUP),
     ["--weights", "w", "--groups", "g", "--folds", 3, "--method", "auto"], (LABEL, P),
     {"cv": 3, "groups": GROUP, "sample_weight": WEIGHT}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("content", "options", "data", "arguments"), CALLS_OF_AUTO)
def test_the_method_is_the_recommended_one(
    command, capsys, write, tmp_path, content, options, data, arguments
):
    """Out of folds, and of folds of another file."""
    choice = recommend(*data, **arguments)
    file = write(content)
    model = tmp_path / "m.json"
    printed, new = command(file, *options, "--save", model)
    assert printed["method"] == choice.method
    assert printed["trials"] == choice.to_dict()["trials"]
    assert np.asarray(new.y_prob).tolist() == recalibrate(*data, **arguments).tolist()
    assert type(load(model)) is METHODS[choice.method]
    page = text(capsys, "recalibrate", file, *options, *QUICK)
    assert choice.reason.partition(":")[0] in page
    assert ("The predictions are best left as they are." in page) == (choice.method == "none")
    if not arguments:
        printed, new = command(file, "--fit", write(content, "b.csv"))
        fitted = METHODS[choice.method]().fit(data[1], data[0])
        assert printed["trials"] == choice.to_dict()["trials"]
        assert new.y_prob.tolist() == fitted.transform(data[1]).tolist()


@pytest.mark.slow
def test_base_rates_are_options(command, write, tmp_path):
    shift = ["--method", "prior_shift", "--save", tmp_path / "m.json"]
    printed, new = command(write(BINARY), *shift, "--old", 0.3, "--new", 0.6)
    expected = PriorShift(old=0.3, new=0.6).fit(SCORE).transform(SCORE)
    assert new.y_prob.tolist() == expected.tolist()
    assert printed["parameters"]["new"] == pytest.approx(0.6)
    rates = ["--old", "0.2,0.3,0.5"]
    printed, new = command(write(VECTORS), *shift[:2], *rates, "--fit", write(VECTORS, "b.csv"))
    expected = PriorShift(old=[0.2, 0.3, 0.5]).fit(P).transform(P)
    np.testing.assert_allclose(new.y_prob, expected, rtol=1e-12)
    again, _ = command(write(BINARY), "--load", tmp_path / "m.json")
    assert again["method"] == "prior_shift"


@pytest.mark.slow
def test_methods_that_cannot_be_used_are_named(command, write):
    n = 40
    classes = 7
    y = np.arange(n) % classes  # scores know a little of them, whichever tests ran before
    p = 0.9 * np.random.default_rng(0).dirichlet(np.ones(classes), n) + 0.1 * np.eye(classes)[y]
    names = ",".join(["y_true", *(f"p_{k}" for k in range(classes))])
    printed, _ = command(write(table(names, y, *p.T)), "--method", "all", "--folds", 2)
    assert "56 parameters, more than the 40 rows" in printed["refused"]["matrix"]


@pytest.mark.slow
def test_a_verdict_is_about_the_intervals(capsys, write):
    n = 3000
    p = np.random.default_rng(1).random(n)
    y = (np.random.default_rng(2).random(n) < p).astype(int)
    good = write(table("y_true,y_prob", y, p))
    bad = write(table("y_true,y_prob", y, p**2 / (p**2 + (1 - p) ** 2)), "b.csv")
    wrong = write(table("y_true,y_prob", HIT, np.where(np.arange(120), SCORE, 1 - HIT[0])), "c.csv")
    for options, error, loss in (
        ([bad], "improved the calibration", "; better log loss"),
        (
            [good, "--fit", bad],
            "worsened the calibration",
            "; worse log loss",
        ),
        (
            [good, "--method", "temperature"],
            "no clear change in the calibration",
            "; worse log loss",
        ),
        ([good], "The predictions are best left as they are.", ""),
        ([write(BINARY, "d.csv"), "--method", "isotonic"], "", "log loss is infinite after"),
        ([wrong], "", "log loss was infinite"),
    ):
        code, out, err = run(capsys, "recalibrate", *options, "--resamples", 99, "--json")
        verdict = json.loads(out)["verdict"]
        assert code == 0
        assert ("some labels have probability 0" in err) == (options == [wrong])
        assert error in verdict
        assert loss in verdict


@pytest.mark.slow
def test_warnings_are_given_once(capsys, write):
    short = P * np.where(np.arange(120) % 9, 1, 0.9)[:, None]
    file = write(table("y_true,p_0,p_1,p_2", LABEL, *short.T))
    alike = write(table("y_true,y_prob", HIT, np.full(120, 0.5)), "b.csv")
    for options, start in ((file, f"{file}: from line 2 on: y_prob: 14"),
                           ((alike, "--method", "beta"), "beta calibration: ")):  # fmt: skip
        options = options if isinstance(options, tuple) else (options,)
        code, _, err = run(capsys, "recalibrate", *options, *QUICK)
        assert (code, err.count("\n")) == (0, 1)
        assert err.startswith(f"fastece: warning: {start}")


@pytest.mark.slow
def test_picture_of_before_and_after(capsys, write, tmp_path, figures):
    picture = tmp_path / "a.svg"
    printed = as_json(capsys, "recalibrate", write(BINARY), "--plot", picture, *QUICK)
    assert printed["plot"] == str(picture)
    names = [entry.get_text() for entry in figures[0].axes[0].get_legend().get_texts()]
    assert [name for name in names if name.startswith(("before", "after"))], names


def test_a_log_of_the_harness_is_recalibrated(capsys, tmp_path):
    log = Path(__file__).parents[1] / "fixtures" / "lm_eval_samples.jsonl"
    out = tmp_path / "x.jsonl"
    assert run(capsys, "recalibrate", log, "--out", out, "--folds", 2, *QUICK)[0] == 0
    new = read_predictions(out)
    assert new.y_true.tolist() == read_predictions(log).y_true.tolist()


@pytest.mark.slow
def test_a_model_of_other_classes_is_refused(capsys, write, tmp_path):
    """The classes have another order, or the file has logits, or pairs of labels."""
    model = tmp_path / "model.json"
    names = ("cow,dog,cat", "cat,dog,cow")
    files = [
        write(table(f"y_true,{order}", ANIMALS, *columns), f"{k}.csv")
        for k, (order, columns) in enumerate(zip(names, (P.T, P.T[::-1]), strict=True))
    ]
    for option in ("--save", "--load"):
        options = ["--y-prob", names[0], option, model]
        as_json(capsys, "recalibrate", files[0], *options, *QUICK)
    error = failure(capsys, "recalibrate", files[1], "--y-prob", names[1], "--load", model)
    assert "got ['cow', 'dog', 'cat']" in error
