"""Bad input and bad options: exit code 2, and one line that names the option or the place."""

import json
import re
import sys

import numpy as np
import pytest

from fastece.cli import main
from helpers.command_line import PAIRS, SMALL, failure

BINARY = "y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n"
MODEL = {
    "format": "fastece.recalibration 1", "method": "temperature",
    "options": {"from_logits": False, "clip": None}, "n_classes": 3, "classes": None,
    "parameters": {"temperature": 1.5, "clip": 0.01},
}  # fmt: skip
FILES = {
    "a.csv": SMALL,
    "small.csv": BINARY,
    "other.csv": "y_true,y_prob\n0,0.1\n0,0.4\n0,0.9\n",
    "short.csv": "y_true,y_prob\n0,0.1\n1,0.4\n",
    "weights.csv": "y_true,y_prob,w\n0,0.1,1\n\n1,0.4,2\n",
    "weights2.csv": "y_true,y_prob,w\n0,0.1,1\n1,0.4,3\n",
    "vectors.csv": "y_true,p_0,p_1\n0,0.5,0.5\n1,0.5,0.5\n1,0.5,0.5\n",
    "vectors3.csv": "y_true,p_0,p_1,p_2\n0,1,0,0\n1,1,0,0\n1,0,0,1\n",
    "text.csv": "y_true,p_0,p_1\nstay,0.8,0.2\nchurn,0.1,0.9\n",
    "wrong.csv": "y_true,p_0,p_1\na,0.1,0.9\nb,0.5,0.5\nc,0.5,0.5\n",
    "pairs.csv": f"{PAIRS}0,0,0.5\n",
    "groups.csv": "y_true,y_prob,g,h\n0,0.1,x,1\n1,0.4,,1\n1,0.9,y,1\n",
    "above.csv": "y_true,y_prob\n0,0.5\n\n1,1.5\n0,-1\n",
    "no_number.csv": "y_true,y_prob\n0,0.5\n\n1,1.5\n0,nope\n",
    "infinite.csv": "y_true,p_0,p_1\n0,1,0\n1,1,inf\n2,-inf,0\n",
    "classes.csv": "y_true,p_0,p_1\n0,1,0\n1,0,1\n2,0,1\n3,0,1\n",
    "negative.csv": "y_true,y_prob,w\n0,0.5,1\n1,0.5,-1\n0,0.5,-2\n1,0.5,1\n",
    "one.csv": "y_true,y_prob\n1,0.5\n",
    "votes2.csv": "y_true,y_prob,m\n1,0.5,2\n1,0.2,2\n",
    "votes3.csv": "y_true,y_prob,m\n1,0.5,2\n1,0.2,3\n",
    "votes.csv": "y_true,y_prob,m\n1,0.5,2\n\n3,0.2,2\n1,0.1,2.5\n",
    "empty.csv": "",
    "header.csv": "y_true,y_prob\n",
    "cells.csv": "y_true,y_prob\n0,0.1\n1,0.2,0.3\n",
    "twice.csv": "y_true,y_prob,y_prob\n0,0.1,0.2\n",
    "gap.csv": "y_true,p_0,p_2\n0,0.1,0.9\n",
    "a.jsonl": '{"y_true": 0, "y_prob": [0.5, 0.5]}\n{"y_true": 0, "y_prob": [1.5, 0.5]}\n',
    "broken.npz": "not a zip",
    "broken.parquet": "not Parquet",
    "m.json": json.dumps(MODEL),
    "n.json": json.dumps({**MODEL, "n_classes": 2}),
}
ERRORS = """
report none.csv                                | none.csv
report nothing*.csv                            | nothing\\*.csv
report above.csv | above.csv: line 4, column y_prob: .* got 1.5; .*--from-logits; and 1 more
report no_number.csv                           | no_number.csv: line 5, column y_prob: .* 'nope'
report infinite.csv                            | line 3, column p_1: .* got inf; and 1 more
report classes.csv                             | line 4, column y_true: .* got 2; --labels
report negative.csv --weights w                | line 3, column w: .* got -1.0; and 1 more
report a.jsonl                                 | line 2, column y_prob\\[:, 0\\]: .* got 1.5
report empty.csv                               | empty.csv: is empty
report header.csv                              | header.csv: .*empty
report cells.csv                               | line 3: .* got 3
report twice.csv                               | 'y_prob'
report gap.csv                                 | 'p_1'
report broken.npz                              | broken.npz: no column 'y_true'
report broken.parquet                          | broken.parquet:
report cut.npz                                 | cut.npz
report array.npz                               | array.npz: .*\\(3,\\)
report wrong.csv                               | --labels
report text.csv --labels stay,leave            | line 3, column y_true: .*'leave', got 'churn'
report text.csv --labels a,b,c                 | --labels: .* 2 classes, got 3
report vectors.csv --labels 0,two              | --labels: .* got 'two'
report a.csv --y-true no                       | a.csv: .* 'no'
report a.csv --y-prob score                    | a.csv: .* 'score'
report a.csv --weights page                    | a.csv: .* 'page', .*--weights takes
report a.csv --groups page                     | a.csv: .* 'page', .*--groups
report a.csv --classes 3                       | --classes:
report a.csv --n-bins 0                        | --n-bins: must be
report a.csv --clip 0                          | --clip: must be greater than 0
report a.csv --clip 0.7                        | --clip: must be
report a.csv --clip 0.1 --from-logits          | --clip: needs probabilities, and these are logits
report a.csv --clip 0.1 --stream               | --clip: needs all rows at once
demo --binary --model network                  | --binary: goes without --model
report a.csv --n-bins many                     | --n-bins: must be
report a.csv --setting top                     | --setting: .*'auto', 'binary'
report a.csv --setting -1                      | --setting: must be
report a.csv --resamples -1                    | --resamples: must be
report a.csv --seed -1 --resamples 9           | --seed: .* got -1
report a.csv --confidence-level 95             | --confidence-level: .* got 95
report a.csv --confidence-level nan            | --confidence-level:
report a.csv --estimator nothing               | --estimator: .* 'nothing'; known:
report a.csv --estimator brier_score           | --estimator: BrierScore
report votes.csv --soft                        | line 4, column y_true: .* got 3.0
report votes.csv --votes m                     | line 4, column y_true: .* --votes.* got 3.0; and 1
report votes.csv --votes n                     | votes.csv: .* 'n', .*--votes
report pairs.csv --soft                        | --soft: needs
report a.csv --stream --soft                   | --soft: .* without --stream
report votes.csv --stream --votes m            | --votes: .* without --stream
compare votes2.csv votes3.csv --votes m        | votes3.csv: line 3: .* the votes of .* 2.* got 3
compare small.csv small.csv --votes m          | small.csv: .* 'm'
report a.csv --on-error skip                   | --on-error: .* --stream
report a.csv --plot a.gif                      | --plot: must end in .png
report a.csv --plot no/a.png                   | --plot: .* got 'no'
report a.csv --html a.txt                      | --html: must end in .html
report a.csv --html no/a.html                  | --html: .* got 'no'
report a.csv --plot x.png --html x.png         | --html:
report pairs.csv --classes 1                   | --classes: .* from 2 to
report pairs.csv --setting confidence          | --setting: .* got 'confidence'
report pairs.csv --labels 0,1                  | --labels:
report pairs.csv --pos-label 1                 | --pos-label:
report pairs.csv --from-logits                 | --from-logits:
compare - -                                    | models:
compare small.csv other.csv                    | other.csv: line 3: .* which has 1 in line 3, got 0
compare small.csv short.csv                    | short.csv: .* 3, got 2
compare small.csv above.csv                    | above.csv
compare small.csv pairs.csv                    | pairs.csv:
compare small.csv vectors3.csv --setting classwise | vectors3: must have
compare small.csv vectors.csv --setting 5      | --setting:
compare weights.csv weights2.csv --weights w   | weights2.csv: line 3: .* 2.0 in line 4, got 3.0
compare small.csv small.csv --resamples 0      | --resamples: must be
compare small.csv small.csv --resamples auto   | --resamples: must be an integer
compare small.csv small.csv --n-bins 0         | --n-bins: must be
compare small.csv small.csv --groups page      | small.csv: .* 'page', .*--groups
compare groups.csv groups.csv --groups g       | groups.csv: line 3, column g:
compare groups.csv groups.csv --groups h       | --groups: .* at least 2
compare pairs.csv pairs.csv --setting classwise | --setting:
curve a.csv --estimator ece_kde --bandwidth -1 | --bandwidth: must be
curve a.csv --estimator ece_kde --bandwidth nan | --bandwidth: must be
curve a.csv --estimator ece_kde --bandwidth wide | --bandwidth: must be
curve a.csv --estimator ece_kde --kernel box   | --kernel: must be
curve a.csv --bandwidth 0.1                    | --bandwidth: .* --estimator ece_kde
validate small.csv --thresholds 0,0.5           | --thresholds: must be greater
monitor a.csv --level 5                        | --level: must be
monitor a.csv --level 1                        | --level: must be
monitor a.csv --state small.csv                | small.csv: is no monitor
monitor a.csv --state no/s.json                | --state: .* got 'no'
monitor a.csv --state a.csv                    | --state: .* that this command does not read
monitor a.csv a.csv                            | a.csv: is named twice
monitor small.csv above.csv                    | above.csv: line 4, column y_prob: .* got 1.5
monitor small.csv vectors.csv                  | vectors.csv: from line 2 on: y_prob: must have
monitor a.csv --forget 0                       | --forget: must be
monitor a.csv --reference small.csv            | small.csv: is no
monitor a.csv --plot a.gif                     | --plot: must end in .png
threshold small.csv --accuracy 95              | --accuracy: must be
threshold small.csv --accuracy 1               | --accuracy: must be .* less than 1
threshold small.csv --confidence-level 1       | --confidence-level: must be
threshold groups.csv --by g                    | groups.csv: line 3, column g:
threshold groups.csv --by h --by y_prob        | --by: must be one column, got 'y_prob'
threshold groups.csv --groups h                | --groups: .* at least 2
threshold vectors3.csv --setting classwise     | --setting: .* --by takes predicted classes
threshold small.csv --save small.csv           | --save: .* got 'small.csv'
plan a.csv                                     | --width: or --detect must be given
plan a.csv --width 2                           | --width: must be
plan a.csv --detect 0.1 --level 95             | --level: must be
plan small.csv --detect 0.1 --estimator ece    | --estimator: goes with --width
check a.csv --max-error 0                       | --max-error: must be .* got 0
check a.csv --max-error 5                       | --max-error: must be .* got 5
check a.csv --max-error 0.1 --max-increase 0    | --max-increase: goes with --baseline
check a.csv --max-error 0.1 --baseline small.csv | --max-increase: goes with --baseline
check small.csv --max-error .1 --max-increase 0 --baseline other.csv | other.csv: line 3
check small.csv --max-error .1 --max-increase 0 --baseline vectors.csv | --baseline: .* of y_prob
check small.csv --max-error .1 --max-increase 0 --baseline none.csv | none.csv
check a.csv                                     | --max-error: .* --max-ratio is a bound on O/E
check a.csv --max-error 0.1 --estimator oe      | pass --max-ratio in place of --max-error
check a.csv --max-ratio 1.2 --max-increase 0 --baseline a.csv | goes without --baseline
check a.csv --max-error 0.1 --id id             | --id: goes with --baseline
check a.csv --max-error 0.1 --min-rows 0        | --min-rows: must be .* got 0
check a.csv --max-error 0.1 --by site           | a.csv: .* .site., .*--by takes
check groups.csv --max-error 0.1 --by g         | groups.csv: line 3, column g: must not be
check groups.csv --max-error 0.1 --by h --by g  | groups.csv: line 3, column g: must not be
check a.csv --max-error 0.1 --estimator log_loss | --estimator: LogLoss.* no calibration error
check a.csv --max-error 0.1 --resamples 0       | --resamples: must be
check a.csv --max-error 0.1 --junit no/x.xml    | --junit: .* got .no.
check a.csv --max-error 0.1 --junit a.csv       | --junit: .* got .a.csv.
check a.csv --max-error .1 --max-increase 0 --baseline one.csv --summary one.csv | --summary:
curve a.csv --setting confident                | --setting: must be
curve a.csv --resamples -1                     | --resamples: must be
curve a.csv --classes 3                        | --classes:
curve pairs.csv --setting classwise            | --setting:
recalibrate a.csv --method best                | --method: .* got 'best'; .*'temperature', .*'all'
recalibrate a.csv --old 0.1                    | --old: goes with --method prior_shift
recalibrate a.csv --method prior_shift         | --old: goes with
recalibrate a.csv --method prior_shift --old 0 | --old: must be .* none of them 0
recalibrate a.csv --method prior_shift --old .2,.3,.5 | --old: must be .* 2 classes
recalibrate a.csv --load n.json --new 0.5      | --new: .* --load
recalibrate a.csv --fit small.csv --folds 3    | --folds: .* --fit
recalibrate a.csv --load n.json --method beta  | --method: .* --load
recalibrate a.csv --fit a.csv                  | --fit: .* --folds
recalibrate a.csv --fit hard.csv               | --fit: must be another file
recalibrate a.csv --fit vectors3.csv           | --fit: vectors3.csv: .* classes .* 2, got 3
recalibrate a.csv --fit vectors.csv            | --fit: vectors.csv: .* columns .* 1, got 2
recalibrate a.csv --fit pairs.csv              | --fit: pairs.csv: .* 'proba.* 'labels and
recalibrate a.csv --fit none.csv               | none.csv
recalibrate a.csv --fit above.csv              | above.csv: line 4, column y_prob: .*got 1.5
recalibrate a.csv --fit one.csv --method all   | --method: .* got 1 alone
recalibrate a.csv --load a.csv                 | a.csv:
recalibrate a.csv --load m.json                | --load: m.json: .* classes .* 2, got 3
recalibrate a.csv --load n.json --from-logits  | --load: n.json: .* 'logits', got 'probabilities'
recalibrate a.csv --folds 1                    | --folds: must be
recalibrate a.csv --folds 200                  | --folds: must be
recalibrate a.csv --groups who                 | a.csv: .* 'who', .*--groups
recalibrate a.csv --out a.csv                  | --out: .* got 'a.csv'
recalibrate a.csv --out ./link.csv             | --out: .* got './link.csv'
recalibrate a.csv --fit small.csv --out small.csv | --out: .* got 'small.csv'
recalibrate a.csv --out x.csv --save x.csv     | --save: .* got 'x.csv'
recalibrate a.csv --out -                      | --out:
recalibrate a.csv --out no/x.csv               | --out: .* got 'no'
recalibrate a.csv --out x.txt                  | --out: must end in .csv
recalibrate a.csv --resamples 0                | --resamples: must be
recalibrate a.csv --estimator none             | --estimator: .* got 'none'
report a.csv --stream --by g                   | a.csv: .* 'g', .*--by
report a.csv --by y_prob --by site             | a.csv: .* 'site', .*--by takes
report groups.csv --by h --by g                | groups.csv: line 3, column g: must not be
report groups.csv --stream --by h --by g       | groups.csv: line 3, column g: must not be
report a.csv --stream --groups g               | --groups: .* without --stream
report a.csv small.csv --groups g              | --groups: .* one file
report a.csv --stream --estimator log_loss     | LogLoss
report a.csv --stream --estimator nonsense     | 'nonsense'
report a.csv --stream --classes 3              | --classes:
report none.csv --stream                       | none.csv
report a.csv pairs.csv                         | pairs.csv: from line 2 on: y_prob
study --preset none                            | --preset: .* 'none'
study --draws 0 --out study                    | --draws
study --sizes 5                                | --sizes: .* --predictions
study --predictions a.csv --holdout 5          | --holdout: .* --predictions
"""
ERRORS = [line.split(" | ") for line in ERRORS.strip().splitlines()]


COMMANDS = list(dict.fromkeys(line.split()[0] for line, _ in ERRORS))


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_one_line_and_nothing_is_written(capsys, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "link.csv").symlink_to("a.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "a.csv")
    with open("array.npz", "wb") as file:
        np.save(file, np.zeros(3))
    np.savez("cut.npz", y_true=np.zeros(500), y_prob=np.zeros(500))
    of_all_rows = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(of_all_rows[: len(of_all_rows) // 2])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for line, message in ERRORS:
        if line.split()[0] == command:
            assert re.search(message.strip(), failure(capsys, *line.split())), line
            assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before, line


@pytest.mark.parametrize(
    ("line", "words"),
    [("report", "required: FILE"), ("nothing", "'nothing'"), ("xyz", "(fastece --help)"),
     ("repport a.csv", "(did you mean report?)"),
     ("recalibrat a.csv", "(did you mean recalibrate?)"),
     ("report a.csv --y-probs x", "(did you mean --y-prob?)"),
     ("report a.csv --zzz", "(fastece report --help)"), ("demo --jsno", "(did you mean --json?)"),
     ("demo --labels a,b", "--labels a,b"), ("demo --from-logits", "--from-logits"),
     ("demo --confidence-level high", "--confidence-level: "), ("demo --seed x", "--seed: "),
     ("curve a.csv --at 1.2", "--at: "), ("curve a.csv --at -0.1", "--at: "),
     ("curve a.csv --at nan", "--at: "), ("curve a.csv --at 0.8,x", "--at: "),
     ("check a.csv --max-error 1 b.csv", "unrecognized arguments: b.csv"),
     ("report a.csv --resamples few", "--resamples: invalid resamples value: 'few'"),
     ("report a.csv --on-error go", "--on-error: ")],
)  # fmt: skip
def test_wrong_options_exit_with_2_and_one_line(capsys, line, words):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("fastece: error: ")
    assert words in err


def test_parquet_without_pyarrow_names_the_package(capsys, tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "'fastece[files]'" in failure(capsys, "report", tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["nothing_there:X", "json:nothing"])
def test_study_looks_for_modules_in_the_working_folder_only_for_an_estimator(
    capsys, monkeypatch, tmp_path, name
):
    monkeypatch.chdir(tmp_path)
    before = [path for path in sys.path if path != str(tmp_path)]
    monkeypatch.setattr(sys, "path", list(before))
    failure(capsys, "study", "--preset", "none")
    assert sys.path == before
    assert name in failure(capsys, "study", "--estimator", name)
    assert sys.path == [*before, str(tmp_path)]  # last: it hides no other module


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ValueError])
def test_what_numba_makes_of_an_interrupt_is_an_interrupt(capsys, tmp_path, monkeypatch, cause):
    """An interrupt while a compiled function reads its constants comes as a SystemError."""

    def fail(*_, **__):
        raise SystemError("with an exception set") from cause()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(SMALL, encoding="utf-8")
    monkeypatch.setattr("fastece.cli.check.run", fail)
    line = ["check", "a.csv", "--max-error", "0.1"]
    if cause is KeyboardInterrupt:
        assert main(line) == 130
        assert capsys.readouterr().err == "fastece: interrupted\n"
    else:
        with pytest.raises(SystemError):
            main(line)
