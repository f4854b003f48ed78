"""Commands print their golden pages, and the numbers of the calls of Python that they are.

``python tests/cli/test_pages.py`` writes the pages anew, of which one reads the difference.
"""

import contextlib
import io
import json
import os
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import decisions
from fastece.cli import main
from fastece.display.numbers import to_plain
from fastece.files.cells import NamedColumns
from fastece.report.inputs import ERRORS

PAGES = Path(__file__).parent / "pages"
N = 240
K = np.arange(N)
RNG = np.random.default_rng(7)
SCORE = RNG.random(N).round(3)
# Outcomes are rarer than scores say.
OUTCOME = RNG.random(N) < SCORE**1.5
COLUMNS = {
    "died": OUTCOME.astype(int),
    "risk": SCORE,
    "new_risk": np.round(SCORE**1.5, 4),
    "w": 1 + K % 3,
    "site": np.where(K % 4 == 0, "north", "south"),
    "patient": K // 2,
}
# Columns of other kinds of predictions: class vectors and their logits, texts, votes, shares.
P = RNG.dirichlet([1, 1, 1], N)
KIND = (P.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1).clip(0, 2)
COLUMNS |= {
    "kind": KIND, "animal": np.array(["ant", "bee", "cow"])[KIND],
    "word": np.where(OUTCOME, "yes", "no"), "alive_risk": 1 - SCORE,
    **{f"p_{k}": P[:, k] for k in range(3)}, **{f"z_{k}": np.log(P[:, k]) for k in range(3)},
    "votes_for": RNG.binomial(4, SCORE), "votes": np.full(N, 4), "share": RNG.integers(0, 3, N) / 2,
}  # fmt: skip
# Keys of JSON that a command fills with names of files and columns.
OWN_KEYS = {"title", "note", "by", "groups", "event"}
# A command of each page, on files of these columns.
LINES = {
    "report": "report trial.csv --y-true died --y-prob risk --by site --event death --resamples 99",
    "compare": "compare trial.csv --y-true died --y-prob risk --y-prob new_risk --resamples 99",
    "recalibrate": "recalibrate trial.csv --y-true died --y-prob risk --method beta --resamples 99",
    "recalibrate_auto": "recalibrate trial.csv --y-true died --y-prob risk --resamples 99",
    "demo": "demo --binary --resamples 99",
    "curve": "curve trial.csv --y-true died --y-prob risk --at 0.1,0.5,0.9",
    "validate": "validate trial.csv --y-true died --y-prob risk --event death --resamples 99",
    "plan": "plan trial.csv --y-true died --y-prob risk --width 0.2",
    "monitor": "monitor trial.csv more.csv --y-true died --y-prob risk",
    "check": (
        "check trial.csv --y-true died --y-prob risk --max-error 0.1 --by site --min-rows 100 "
        "--baseline old.csv --max-increase 0.05"
    ),
    "check_of_one_line": "check trial.csv --y-true died --y-prob risk --max-error 0.1",
    "threshold": "threshold trial.csv --y-true died --y-prob risk --accuracy 0.6",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files of the lines."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


def write_files(folder):
    rows = zip(*(column.tolist() for column in COLUMNS.values()), strict=True)
    text = "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows), ""])
    for name in ("trial.csv", "more.csv"):
        (folder / name).write_text(text, encoding="utf-8")
    # Another model of the same rows.
    rows = zip(COLUMNS["died"], COLUMNS["new_risk"], strict=True)
    text = "\n".join(["died,risk", *(f"{y},{p}" for y, p in rows), ""])
    (folder / "old.csv").write_text(text, encoding="utf-8")
    # Top labels that are right where the outcome is 1.
    rows = zip(COLUMNS["died"], COLUMNS["risk"], strict=True)
    text = "\n".join(["true_label,pred_label,confidence", *(f"1,{y},{p}" for y, p in rows), ""])
    (folder / "pairs.csv").write_text(text, encoding="utf-8")


def page_of(line):
    """The page that a line prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(shlex.split(line))
    return out.getvalue()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", LINES)
def test_a_command_prints_its_golden_page(command):
    golden = (PAGES / f"{command}.txt").read_text(encoding="utf-8")
    assert page_of(LINES[command]) == golden


# --- the same numbers as the call of Python ---------------------------------------------------

DATA = (COLUMNS["died"], COLUMNS["risk"])
VECTORS = (KIND, P)
OF_KIND = "--y-true kind --y-prob p_0,p_1,p_2"
# A line, and the call that it is. A line without --y-true is about died and risk of trial.csv.
CALLS = {
    "check --max-error 0.1 --min-rows 20": ("check", DATA, {"max_error": 0.1, "min_rows": 20}),
    "check --max-error 0.02": ("check", DATA, {"max_error": 0.02}),
    "check --max-error 0.3": ("check", DATA, {"max_error": 0.3}),
    "check --max-error 0.1 --confidence-level 0.999": (
        "check", DATA, {"max_error": 0.1, "confidence_level": 0.999},
    ),
    "check --max-error 0.2 --by site --groups patient": (
        "check", DATA,
        {"max_error": 0.2, "by": COLUMNS["site"], "groups": COLUMNS["patient"]},
    ),
    "check --max-error 0.1 --by site --by w": (
        "check", DATA, {"max_error": 0.1, "by": {"site": COLUMNS["site"], "w": COLUMNS["w"]}},
    ),
    "check --max-error 0.1 --by site --min-rows 100 --baseline old.csv --max-increase 0.05": (
        "check", DATA,
        {"max_error": 0.1, "by": COLUMNS["site"], "min_rows": 100,
         "baseline": COLUMNS["new_risk"], "max_increase": 0.05},
    ),
    "check --max-ratio 1.25 --weights w": (
        "check", DATA, {"max_ratio": 1.25, "sample_weight": COLUMNS["w"]},
    ),
    "check --max-ratio 1.01 --groups patient": (
        "check", DATA, {"max_ratio": 1.01, "groups": COLUMNS["patient"]},
    ),
    "check --max-error 0.2 --setting binary --weights w --groups patient": (
        "check", DATA,
        {"max_error": 0.2, "sample_weight": COLUMNS["w"], "groups": COLUMNS["patient"]},
    ),
    "check --max-error 0.1 --estimator ece --resamples 99 --seed 3": (
        "check", DATA, {"max_error": 0.1, "estimator": "ece", "n_resamples": 99, "rng": 3},
    ),
    "threshold": ("choose_threshold", DATA, {}),
    "threshold --accuracy 0.7": ("choose_threshold", DATA, {"accuracy": 0.7}),
    "threshold --accuracy 0.6 --confidence-level 0.8 --by site": (
        "choose_threshold", DATA, {"accuracy": 0.6, "confidence": 0.8, "by": COLUMNS["site"]},
    ),
    "threshold --accuracy 0.6 --groups patient": (
        "choose_threshold", DATA, {"accuracy": 0.6, "groups": COLUMNS["patient"]},
    ),
    "threshold --accuracy 0.6 --setting confidence": (
        "choose_threshold", DATA, {"accuracy": 0.6, "setting": "confidence"},
    ),
    "threshold pairs.csv --accuracy 0.6": ("choose_threshold", DATA, {"accuracy": 0.6}),
    "validate --resamples 99 --thresholds 0.1,0.3 --weights w": (
        "validate", DATA,
        {"n_resamples": 99, "thresholds": [0.1, 0.3], "sample_weight": COLUMNS["w"]},
    ),
    "validate --resamples 99 --groups patient --event death": (
        "validate", DATA, {"n_resamples": 99, "groups": COLUMNS["patient"], "event": "death"},
    ),
    "validate --y-true votes_for --y-prob risk --votes votes --resamples 0": (
        "validate", (COLUMNS["votes_for"], SCORE), {"votes": COLUMNS["votes"], "n_resamples": 0},
    ),
    "plan --width 0.3 --level 0.9 --seed 2": (
        "rows_needed", DATA, {"width": 0.3, "level": 0.9, "rng": 2},
    ),
    "plan --detect 0.3 --power 0.7 --level 0.9": (
        "rows_needed", DATA, {"detect": 0.3, "power": 0.7, "level": 0.9},
    ),
    "report --resamples 9 --groups patient": (
        "calibration_report", DATA, {"n_resamples": 9, "groups": COLUMNS["patient"]},
    ),
    "report --resamples 0 --n-bins 5 --estimator mmce --seed 4 --confidence-level 0.9": (
        "calibration_report", DATA,
        {"n_resamples": 0, "n_bins": 5, "estimator": [*ERRORS, "mmce"], "rng": 4,
         "confidence_level": 0.9},
    ),
    "report --y-true votes_for --y-prob risk --counts votes --resamples 0": (
        "calibration_report", (COLUMNS["votes_for"], SCORE),
        {"counts": COLUMNS["votes"], "n_resamples": 0},
    ),
    "report --resamples auto": ("calibration_report", DATA, {"n_resamples": "auto"}),
    "report --resamples 0 --by site --by new_risk --by site": (
        "calibration_report", DATA,
        {"n_resamples": 0, "by": {name: COLUMNS[name] for name in ("site", "new_risk")}},
    ),
    "report --resamples 9 --weights w --by site": (
        "calibration_report", DATA,
        {"n_resamples": 9, "sample_weight": COLUMNS["w"], "by": COLUMNS["site"]},
    ),
    "report --y-true died --y-prob alive_risk,risk --n-bins sqrt --setting binary --resamples 0": (
        "calibration_report",
        (OUTCOME.astype(int),
         NamedColumns(np.stack([1 - SCORE, SCORE], 1), ["alive_risk", "risk"])),
        {"n_bins": "sqrt", "setting": "binary", "n_resamples": 0},
    ),
    "report --y-true word --y-prob risk --pos-label yes --resamples 0": (
        "calibration_report", (COLUMNS["word"], SCORE), {"pos_label": "yes", "n_resamples": 0},
    ),
    f"report {OF_KIND} --confidence-level 0.5 --seed 7 --resamples 9": (
        "calibration_report", VECTORS, {"confidence_level": 0.5, "rng": 7, "n_resamples": 9},
    ),
    f"report {OF_KIND} --setting classwise --n-bins 5 --resamples 9": (
        "calibration_report", VECTORS, {"setting": "classwise", "n_bins": 5, "n_resamples": 9},
    ),
    f"report {OF_KIND} --estimator mmce --estimator ece_sweep --resamples 0": (
        "calibration_report", VECTORS,
        {"estimator": [*ERRORS, "mmce", "ece_sweep"], "n_resamples": 0},
    ),
    "report --y-true kind --y-prob z_* --from-logits --resamples 0": (
        "calibration_report", (KIND, np.log(P)), {"from_logits": True, "n_resamples": 0},
    ),
    "report --y-true animal --y-prob p_0,p_1,p_2 --labels ant,bee,cow --setting 2 --resamples 0": (
        "calibration_report", (COLUMNS["animal"], P),
        {"labels": ["ant", "bee", "cow"], "setting": 2, "n_resamples": 0},
    ),
    "report --y-true kind --y-prob p_2,p_0,p_1 --labels 2,0,1 --resamples 0": (
        "calibration_report", (KIND, P[:, [2, 0, 1]]), {"labels": [2, 0, 1], "n_resamples": 0},
    ),
    "report --y-true votes_for --y-prob risk --votes votes --resamples 9": (
        "calibration_report", (COLUMNS["votes_for"], SCORE),
        {"votes": COLUMNS["votes"], "n_resamples": 9},
    ),
    "report --y-true share --y-prob risk --soft --by site --resamples 0": (
        "calibration_report", (COLUMNS["share"], SCORE),
        {"soft": True, "by": COLUMNS["site"], "n_resamples": 0},
    ),
}  # fmt: skip
# Lines that take seconds.
LONG = ("report --resamples auto", "plan --detect 0.3 --power 0.7 --level 0.9")
# Exit codes of the verdicts of a check.
CODES = {True: 0, False: 1, None: 3}


def exit_code(name, result):
    """The exit code that a result of a function stands for."""
    if name == "check":
        return CODES[result.passed]
    if name == "choose_threshold":
        return int(np.isnan(result.value).any())
    return 0


def assert_close(found, expected, where):
    """Compare values of JSON; floats up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_close(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for k, value in enumerate(expected):
            assert_close(found[k], value, f"{where}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), where
    else:
        assert found == expected, where


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line", [pytest.param(x, marks=pytest.mark.slow) if x in LONG else x for x in CALLS]
)
def test_a_command_has_the_numbers_of_its_call(capsys, line):
    name, data, arguments = CALLS[line]
    command, *words = line.split()
    if "pairs.csv" not in words:
        columns = [] if "--y-true" in words else ["--y-true", "died", "--y-prob", "risk"]
        words = ["trial.csv", *columns, *words]
    result = getattr(decisions if name == "choose_threshold" else fastece, name)(*data, **arguments)
    assert main([command, *words, "--json"]) == exit_code(name, result)
    printed = json.loads(capsys.readouterr().out)
    expected = to_plain(result.to_dict())
    # The names of files and columns are the command's own.
    for key in expected.keys() - OWN_KEYS:
        assert_close(printed[key], expected[key], key)
    if name == "calibration_report":
        by = [word for flag, word in pairwise(words) if flag == "--by"]
        assert list(printed) == list(expected)
        assert (printed["title"], printed["by"]) == ("trial.csv", ", ".join(dict.fromkeys(by)))


# --- files beside the page --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("folder", "figures")
@pytest.mark.parametrize(
    ("command", "option", "start"),
    [("compare", "--plot a.svg", b"<?xml"), ("recalibrate", "--plot a.svg", b"<?xml"),
     ("validate", "--plot a.png", b"\x89PNG"), ("curve", "--plot a.pdf", b"%PDF"),
     ("report", "--stream --plot a.svg", b"<?xml"),
     ("report", "--html a.html", b"<!"), ("monitor", "--html a.html", b"<!")],
)  # fmt: skip
def test_a_picture_or_a_page_changes_no_number(capsys, command, option, start):
    line = LINES[command]
    if "--stream" in option:
        line = f"{line} --stream"
    kind, name = option.split()[-2:]
    main([*shlex.split(line), "--json"])
    alone = json.loads(capsys.readouterr().out)
    main([*shlex.split(line), kind, name, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop(kind.removeprefix("--")) == name
    alone.pop(kind.removeprefix("--"), None)
    assert printed == alone
    assert Path(name).read_bytes().startswith(start)
    assert name in page_of(f"{line} {kind} {name}")


if __name__ == "__main__":
    import tempfile

    PAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place))
        os.chdir(place)
        for command, line in LINES.items():
            (PAGES / f"{command}.txt").write_text(page_of(line), encoding="utf-8")
