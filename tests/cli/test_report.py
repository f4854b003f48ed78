"""The command `report` prints the values of `fastece.calibration_report`."""

import io
import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.display.numbers import ConfidenceInterval, Number
from helpers.command_line import DIGITS, PAIRS, SMALL, as_json, failure, run, text, values

N = 60
RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], N)
Y = np.array([RNG.choice(3, p=row) for row in P])
HIT = (Y == 0).astype(int)
WEIGHT = RNG.integers(0, 3, N)
GROUP = RNG.integers(0, 9, N)
COLUMNS = {
    "y": Y, "hit": HIT, "w": WEIGHT, "g": [f"g{x}" for x in GROUP], "q": 1 - P[:, 0],
    **{f"p_{k}": P[:, k] for k in range(3)},
}  # fmt: skip
LOG = Path(__file__).parents[1] / "fixtures" / "lm_eval_samples.jsonl"


@pytest.fixture
def rows(write):
    """A file with all columns."""
    lines = zip(*(np.asarray(column).tolist() for column in COLUMNS.values()), strict=True)
    return write("\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in lines)]))


@pytest.fixture(scope="module")
def digits():
    with np.load(DIGITS) as archive:
        return archive["y_true"], archive["y_prob"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--y-prob", "p_0,p_1,p_2"],
         ["rows             60\n", "chance alone", "(0.", "bins of equal width"]),
        (["--y-true", "hit", "--y-prob", "p_0", "--weights", "w"], ["effective rows", "weight"]),
        (["--y-true", "hit", "--y-prob", "p_0", "--by", "g", "--groups", "g"],
         ["Slices by g", "No slice shows miscalibration (sm", "9 by g", "9 groups are few"]),
        pytest.param(
            ["--y-true", "hit", "--y-prob", "p_0", "--by", "g", "--by", "q"],
            ["Slices by g, q", "slice              ", " observed  predicted ",
             "adjusted for all 13"],
            marks=pytest.mark.slow,
        ),
        (["--y-prob", "p_0,p_1,p_2", "--setting", "classwise", "--estimator", "mmce"],
         ["Classes, most", "\n  mmce "]),
        (["--y-prob", "p_0,p_1,p_2", "--stream", "--by", "g"], ["files            1\n", "Slices"]),
    ],
)  # fmt: skip
def test_the_first_page_is_one_screen(capsys, rows, options, parts):
    options = ["report", rows, "--y-true", "y", *options]
    options += [] if "--stream" in options else ["--resamples", 19]
    page = text(capsys, *options)
    full = text(capsys, *options, "--full")
    lines = page.splitlines()
    lines_on_screen = [math.ceil(len(line) / 80) for line in lines[1:] if line]
    n_blank = lines.count("")
    # Notes on groups, and the table of slices, make it longer.
    assert 1 + sum(lines_on_screen) + n_blank <= (40 if "--by" not in options else 50)
    assert ("Reliability diagram" in page) == ("classwise" not in options)
    for part in (*parts, "ece_bayes", "More: --full"):
        assert part in page, part
    assert lines[1] == full.splitlines()[1]
    assert text(capsys, *options, "--markdown").count("\n| ece\\_bayes |") == 1
    line = as_json(capsys, *options)["measures"][1]
    interval = None if line["low"] is None else ConfidenceInterval(line["low"], line["high"])
    number = Number(line["value"], interval)
    assert re.search(rf"\n  ece +{number} ", page)


@pytest.mark.slow
def test_pairs_are_a_binary_problem(capsys, write, tmp_path):
    path = write(f"{PAIRS}3,3,0.9\n1,2,0.5\nx,x,0.7\n")
    report = as_json(capsys, "report", path)
    assert values(report)["ece"] == fastece.ece([1, 0, 1], [0.9, 0.5, 0.7])
    assert (report["n_classes"], report["setting"], report["pairs"]) == (None, "binary", True)
    assert report["accuracy"] == pytest.approx(2 / 3)
    assert "accuracy" not in [line["name"] for line in report["scores"]]
    report = as_json(capsys, "report", path, "--classes", 10)
    value = fastece.ece([1, 0, 1], [0.9, 0.5, 0.7], score_range=(0.1, 1.0))
    assert (values(report)["ece"], report["n_classes"]) == (value, 10)
    assert report["diagrams"][0]["edges"][0] == 0.1
    archive = tmp_path / "a.npz"
    np.savez(archive, true_label=[3, 1], pred_label=[3, 2], confidence=[0.9, 0.5])
    assert values(as_json(capsys, "report", archive))["ece"] == fastece.ece([1, 0], [0.9, 0.5])
    for content, accuracy in (("1,1,0.9\n2,x,0.8\n", 0.5),
                              ("9007199254740993,9007199254740992,0.8\n", 0)):  # fmt: skip
        assert as_json(capsys, "report", write(PAIRS + content))["accuracy"] == accuracy


def test_labels_between_quotes_and_bools(capsys, write):
    path = write('y_true,p_0,p_1\n"a, b",0.8,0.2\nc,0.1,0.9\n')
    assert as_json(capsys, "report", path, "--labels", '"a, b",c')["accuracy"] == 1
    np.savez(path.with_name("a.npz"), y_true=[True, False], y_prob=[0.8, 0.1])
    report = as_json(capsys, "report", path.with_name("a.npz"), "--pos-label", "true")
    assert values(report)["ece"] == fastece.ece([1, 0], [0.8, 0.1])


def test_empty_bins_are_null_in_json(capsys, write):
    diagram = as_json(capsys, "report", write("y_true,y_prob\n1,0.9\n"))["diagrams"][0]
    assert diagram["score"][0] is None
    assert diagram["count"][13] == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "compare", "recalibrate"])
def test_every_command_reads_standard_input(capsys, write, monkeypatch, command):
    path = write(SMALL)
    rows = [line.split(",") for line in SMALL.splitlines()[1:]]
    lines = "".join(json.dumps({"y_true": int(y), "y_prob": float(p)}) + "\n" for y, p in rows)
    first = [path] if command == "compare" else []
    options = ["--resamples", 8, *(["--method", "platt"] if command == "recalibrate" else [])]
    of_all_rows = as_json(capsys, command, *first, path, *options)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    printed = as_json(capsys, command, *first, "-", *options)
    name = "b" if command == "compare" else "title"
    assert printed.pop(name) == "standard input"
    of_all_rows.pop(name), printed.pop("verdict", 0), of_all_rows.pop("verdict", 0)
    assert printed == of_all_rows


@pytest.mark.slow
def test_a_log_of_the_harness_is_class_vectors_or_pairs(capsys, tmp_path):
    report = as_json(capsys, "report", LOG)
    assert (report["setting"], report["n_classes"], report["accuracy"]) == ("confidence", 3, 0.75)
    assert "softmax" in report["note"]
    lines = LOG.read_text(encoding="utf-8").splitlines(keepends=True)
    row = json.loads(lines[0])
    del row["filtered_resps"][2], row["arguments"], row["doc"]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join([json.dumps(row) + "\n", *lines[1:]]), encoding="utf-8")
    for command in (["report"], ["curve"], ["compare", path]):
        printed = as_json(capsys, *command, path, "--resamples", 8)
        assert printed["setting"] == "binary"
        assert "2 to 3" in printed["note"]


def test_a_path_that_is_not_utf_8_is_printed(tmp_path, capsysbinary):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.csv")
    try:
        Path(path).write_text(SMALL)
    except OSError:
        pytest.skip("the file system has no such names")
    for command in ("report", "curve"):
        assert main([command, path, "--resamples", "9"]) == 0
        out, err = capsysbinary.readouterr()
        assert rb"\udcff\udcfe.csv" in out
        assert err == b""


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 32])
def test_picture_of_a_report_has_the_diagram_and_the_curve(capsys, write, tmp_path, figures, count):
    options = ["--resamples", count, "--confidence-level", "0.9", "--plot", tmp_path / "a.svg"]
    as_json(capsys, "report", write(SMALL), *options)
    left, right = figures[-1].axes
    assert [ax.get_title() for ax in (left, right)] == [
        "Reliability diagram", "Reliability curve"
    ]  # fmt: skip
    assert figures[-1].get_suptitle() == ""  # not the path
    legends = [[entry.get_text() for entry in ax.get_legend().get_texts()] for ax in (left, right)]
    assert ("90 % if calibrated" in legends[0]) == bool(count)
    assert [name for name in legends[1] if "%" in name] == ["90 % CI (posterior)"]


@pytest.mark.slow
def test_heaped_scores_are_drawn_in_equal_bins_over_log_odds(capsys, tmp_path, figures, digits):
    options = ["--resamples", 32, "--plot", tmp_path / "a.svg"]
    assert run(capsys, "demo", "--model", "network", *options)[0] == 0
    plain, odds, _ = figures[0].axes
    assert odds.get_xscale() == "logit"
    assert "equal-mass bins" in odds.get_title()
    band = fastece.calibration_test(*digits, estimator="ece", n_resamples=32, rng=0).band
    bars = [bar for bar in plain.patches if bar.get_alpha() is None][: np.isfinite(band.low).sum()]
    assert [bar.get_y() for bar in bars] == band.low[np.isfinite(band.low)].tolist()


@pytest.mark.slow
def test_picture_of_classes_has_their_diagrams(capsys, tmp_path, figures):
    options = ["--setting", "classwise", "--plot", tmp_path / "a.svg"]
    assert run(capsys, "demo", *options)[0] == 0
    titles = [ax.get_title().partition(",")[0] for ax in figures[0].axes]
    assert titles == [f"class {k}" for k in range(10)]


@pytest.mark.parametrize("command", ["report", "curve", "compare", "recalibrate"])
def test_pictures_are_refused_without_matplotlib_before_anything_is_read(
    capsys, monkeypatch, tmp_path, command
):
    n_files = 2 if command == "compare" else 1
    missing = [tmp_path / "nothing.csv"] * n_files
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "--plot: " in failure(capsys, command, *missing, "--plot", tmp_path / "a.png")
