"""Each command prints its golden page, and the numbers of the call of Python that it is.

``python tests/cli/test_pages.py`` writes the pages anew, of which one reads the difference.
"""

import contextlib
import io
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece import decisions
from fastece.cli import main
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
# Keys of JSON that a command fills with names of files and columns.
OWN_KEYS = {"title", "note", "by", "groups", "event"}
# A command of each page, on files of these columns.
LINES = {
    "report": "report trial.csv --y-true died --y-prob risk --by site --event death --resamples 99",
    "compare": "compare trial.csv --y-true died --y-prob risk --y-prob new_risk --resamples 99",
    "recalibrate": "recalibrate trial.csv --y-true died --y-prob risk --method beta --resamples 99",
    "demo": "demo --binary --resamples 99",
    "curve": "curve trial.csv --y-true died --y-prob risk --at 0.1,0.5,0.9",
    "validate": "validate trial.csv --y-true died --y-prob risk --event death --resamples 99",
    "plan": "plan trial.csv --y-true died --y-prob risk --width 0.2",
    "monitor": "monitor trial.csv more.csv --y-true died --y-prob risk",
    "check": "check trial.csv --y-true died --y-prob risk --max-error 0.1 --by site",
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
    page = page_of(LINES[command])
    if command == "recalibrate":
        # The interval of a difference of ece_bayes moves with the last bits of fitted scores.
        golden, page = without_numbers(golden), without_numbers(page)
    assert page == golden


def without_numbers(page):
    """The words of a page, in one line."""
    return " ".join(re.sub(r"-?\d[\d.e-]*", "#", page).split())


# --- the same numbers as the call of Python ---------------------------------------------------

DATA = (COLUMNS["died"], COLUMNS["risk"])
# A line without its file and the names of the columns, and the call that it is.
CALLS = {
    "check --max-error 0.1 --min-rows 20": ("check", {"max_error": 0.1, "min_rows": 20}),
    "check --max-error 0.2 --by site --groups patient": (
        "check",
        {"max_error": 0.2, "by": COLUMNS["site"], "groups": COLUMNS["patient"]},
    ),
    "check --max-ratio 1.25 --weights w": (
        "check",
        {"max_ratio": 1.25, "sample_weight": COLUMNS["w"]},
    ),
    "check --max-error 0.1 --estimator ece --resamples 99 --seed 3": (
        "check",
        {"max_error": 0.1, "estimator": "ece", "n_resamples": 99, "rng": 3},
    ),
    "threshold --accuracy 0.7": ("choose_threshold", {"accuracy": 0.7}),
    "threshold --accuracy 0.6 --confidence-level 0.8 --by site": (
        "choose_threshold",
        {"accuracy": 0.6, "confidence": 0.8, "by": COLUMNS["site"]},
    ),
    "validate --resamples 99 --thresholds 0.1,0.3 --weights w": (
        "validate",
        {"n_resamples": 99, "thresholds": [0.1, 0.3], "sample_weight": COLUMNS["w"]},
    ),
    "plan --width 0.3 --level 0.9 --seed 2": (
        "rows_needed",
        {"width": 0.3, "level": 0.9, "rng": 2},
    ),
    "report --resamples 9 --groups patient": (
        "calibration_report",
        {"n_resamples": 9, "groups": COLUMNS["patient"]},
    ),
    "report --resamples 0 --n-bins 5 --estimator mmce --seed 4 --confidence-level 0.9": (
        "calibration_report",
        {
            "n_resamples": 0, "n_bins": 5, "estimator": [*ERRORS, "mmce"], "rng": 4,
            "confidence_level": 0.9,
        },
    ),
}  # fmt: skip


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
@pytest.mark.parametrize("line", CALLS)
def test_a_command_has_the_numbers_of_its_call(capsys, line):
    name, arguments = CALLS[line]
    command, *options = line.split()
    columns = ["--y-true", "died", "--y-prob", "risk"]
    main([command, "trial.csv", *columns, *options, "--json"])
    printed = json.loads(capsys.readouterr().out)
    expected = getattr(decisions if name == "choose_threshold" else fastece, name)(
        *DATA, **arguments
    ).to_dict()
    # The names of files and columns are the command's own.
    for key in expected.keys() - OWN_KEYS:
        assert_close(printed[key], expected[key], key)


if __name__ == "__main__":
    import tempfile

    PAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place))
        os.chdir(place)
        for command, line in LINES.items():
            (PAGES / f"{command}.txt").write_text(page_of(line), encoding="utf-8")
