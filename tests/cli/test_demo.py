"""The demonstration: one screen on predictions that ship with fastece, and their recalibration."""

import re

import numpy as np
import pytest

import fastece
from fastece import datasets
from fastece.recalibration import recalibrate
from helpers.command_line import as_json, text

# Options, and the data set that they show.
MODELS = {
    (): "digits_random_forest",
    ("--model", "network"): "digits_network",
    ("--binary",): "breast_cancer",
}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "name"), MODELS.items())
def test_the_demo_is_one_screen(capsys, options, name):
    page = text(capsys, "demo", *options, "--resamples", 99)
    lines = page.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert f"{len(datasets.load(name).y_true)} rows" in lines[0]
    assert "fastece recalibrate FILE" in page


@pytest.mark.slow
def test_the_verdict_of_the_forest_comes_first_as_a_sentence(capsys):
    page = text(capsys, "demo", quick=False)
    sentence = " ".join(page.splitlines()[1:3])
    y, p = datasets.load("digits_random_forest")
    low, high = fastece.estimate(y, p).confidence_interval
    accuracy = (p.argmax(axis=1) == y).mean()
    confidence = p.max(axis=1).mean()
    assert sentence == (
        f"Under-confident by 0.191 (95 % CI {low:.3f} to {high:.3f}): right "
        f"{100 * accuracy:.1f} % of the time, claims {100 * confidence:.1f} %; test of "
        "calibration: p <= 0.0005."
    )


@pytest.mark.parametrize(("options", "name"), MODELS.items())
def test_recalibration_out_of_fold_is_shown_before_and_after(capsys, options, name):
    page = text(capsys, "demo", *options)
    y, p = datasets.load(name)
    q = recalibrate(y, p, method="temperature")
    for error, measure in {
        "ece_bayes": lambda p: fastece.ece(y, p, estimator="ece_bayes"),
        "ece": lambda p: fastece.ece(y, p),
        "log_loss": lambda p: fastece.log_loss(y, p),
    }.items():
        # The last line with this name; the first is of the report.
        printed = re.findall(rf"^  {error} +([\d.]+) +([\d.]+) ", page, re.M)[-1]
        np.testing.assert_allclose(np.float64(printed), [measure(p), measure(q)], atol=6e-4)


@pytest.mark.parametrize(
    ("options", "name"), [((), "digits_random_forest"), (("--binary",), "breast_cancer")]
)
def test_recalibration_of_a_single_class_has_its_error(capsys, options, name):
    page = text(capsys, "demo", *options, "--setting", 1)
    y, p = datasets.load(name)
    q = recalibrate(y, p, method="temperature")
    (_, after) = re.findall(r"^  ece +([\d.]+) +([\d.]+) ", page, re.M)[-1]
    assert float(after) == pytest.approx(fastece.ece(y, q, setting=1), abs=6e-4)


@pytest.mark.slow
def test_the_demo_has_the_numbers_of_the_report(capsys):
    printed = as_json(capsys, "demo", "--binary", quick=False)
    report = fastece.calibration_report(*datasets.load("breast_cancer"), title=printed["title"])
    assert printed["headline"] == report.headline
    assert printed["measures"] == report.to_dict()["measures"]
    assert printed["diagrams"] == report.to_dict()["diagrams"]


@pytest.mark.slow
def test_the_whole_page_ends_with_recalibration(capsys):
    page = text(capsys, "demo", "--full", "--resamples", 19)
    assert page.rindex("After temperature scaling") > page.rindex("Reliability diagram")
