"""The first contact: help, names that are nearly right, columns that are found, infinite losses."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import fastece
from fastece.cli import COMMANDS, main
from helpers.command_line import as_json, failure, run, text

RNG = np.random.default_rng(0)
N = 120
PROB = RNG.dirichlet([1, 1, 1], N)
Y = np.array([RNG.choice(3, p=row) for row in PROB])
NAMES_OF = np.array(["cat", "dog", "owl"])
ROUND = PROB.copy()
FIRST, SECOND = np.flatnonzero(Y == 1)[1:3].tolist()  # whose outcome has probability 0
ROUND[[FIRST, SECOND], 1] = 0.0
ROUND /= ROUND.sum(1, keepdims=True)


def table(header, *columns):
    lines = zip(*(np.asarray(x).tolist() for x in columns), strict=True)
    return "\n".join([header, *(",".join(map(str, row)) for row in lines)]) + "\n"


ANIMALS = table("id,label,p_cat,p_dog,p_owl", range(N), NAMES_OF[Y], *PROB.T)
VECTORS = table("y_true,p_0,p_1,p_2", Y, *ROUND.T)
TWO = table("y_true,old,new", Y == 1, ROUND[:, 1], PROB[:, 1])


# --- help -----------------------------------------------------------------------------------


HEADS = ["input", "what to measure", "output", "examples"]
# Lines of a screen on which a page of help fits, and characters of each.
SCREEN_LINES = 48
SCREEN_WIDTH = 80


def test_without_a_command_there_is_help(capsys):
    code, out, err = run(capsys, quick=False)
    assert (code, err) == (0, "")
    assert all(re.search(rf"^    {name}\b", out, re.MULTILINE) for name in COMMANDS)


def help_page(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_on_one_screen(capsys, command):
    page = help_page(capsys, command)
    lines = page.splitlines()
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_WIDTH
    heads = [line.removesuffix(":") for line in lines if re.fullmatch(r"[a-z ]+:", line)]
    assert heads == [head for head in HEADS if head in heads]
    # Each option has its explanation on its line, or a long one on the next.
    for line, after in pairwise(lines):
        if line.startswith("  -"):
            assert re.search(r"\S {2,}\S", line) or re.match(r" {8,}\S", after)


def example_lines():
    """Yield the examples in the help of each command."""
    for command in COMMANDS:
        page = io.StringIO()
        with contextlib.redirect_stdout(page), contextlib.suppress(SystemExit):
            main([command, "--help"])
        _, _, examples = page.getvalue().partition("examples:\n")
        for line in examples.strip().splitlines():
            yield pytest.param(line.strip(), id=line.strip())


@pytest.mark.slow
@pytest.mark.parametrize("line", [*example_lines()])
def test_the_examples_of_help_run(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    if "study" in line or "warmup" in line:
        pytest.skip("takes minutes; a test of its own runs it")
    if "--html" in line or "--plot" in line:
        pytest.importorskip("matplotlib")
    write_examples(tmp_path)
    *_, words = line.partition("fastece ")
    code, out, err = run(capsys, *shlex.split(words))
    assert code in (0, 1, 3), err
    assert out


def write_examples(folder):
    """Write the files that the examples name."""
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    old = p**2
    patient = np.arange(300) // 2
    columns = {"y_true": y, "y_prob": p, "died": y, "risk": p, "old": old, "new": p}
    rows = table(",".join([*columns, "patient"]), *columns.values(), patient)
    (folder / "days").mkdir()
    for name in ("predictions", "trial", "old", "new", "both", "pilot", "test", "validation"):
        (folder / f"{name}.csv").write_text(rows)
        (folder / "days" / f"day{len(name)}.csv").write_text(rows)


@pytest.mark.slow
def test_the_command_line_completes_words():
    pytest.importorskip("argcomplete")
    words = {
        "fastece re": {"report", "recalibrate"},
        "fastece report --cl": {"--clip", "--classes"},
    }
    for line, expected in words.items():
        env = {
            **os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
            "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": "/dev/stdout",
        }  # fmt: skip
        code = "import sys; sys.argv = ['fastece']; from fastece.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert {word.strip() for word in done.stdout.split("\n")} - {""} == expected


# --- columns --------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_that_are_named_as_the_labels_are_found(capsys, write):
    path = write(ANIMALS)
    printed = as_json(capsys, "report", path, "--y-true", "label")
    named_options = ["--y-true", "label", "--y-prob", "p_cat,p_dog,p_owl"]
    assert printed == as_json(capsys, "report", path, *named_options)
    assert printed["measures"][1]["value"] == pytest.approx(fastece.ece(Y, PROB))
    assert {x["label"] for x in printed["classes"]["rows"]} == {*NAMES_OF}
    code, _, _ = run(capsys, "check", path, "--y-true", "label", "--max-error", 0.9)
    assert code == 0


@pytest.mark.parametrize(
    ("content", "options", "columns"),
    [
        (ANIMALS, [], "label (text), p_cat (numbers from 0 to 1), p_dog (numbers from 0 to 1)"),
        (table("hit,q", Y == 1, PROB[:, 1]), [], "hit (true or false), q (numbers from 0 to 1)"),
        (table("truth,n", Y, Y + 5), ["--y-true", "truth"], "truth (whole numbers), n (whole num"),
        ("a,b\nx,y\nz,w\n", [], "a (text), b (text)"),
        ("y_true,b\n1,2\n0,3\n", [], "y_true (0 or 1), b (whole numbers)"),
    ],
)
def test_columns_that_are_not_found_are_listed_with_their_kinds(
    capsys, write, content, options, columns
):
    message = failure(capsys, "report", write(content, "my file.csv"), *options)
    assert columns in message
    assert "expected y_true,y_prob or" in message
    assert "name the labels with --y-true and the probabilities with --y-prob" in message
    assert "try " not in message


# --- two columns, infinite losses -------------------------------------------------------------


@pytest.mark.slow
def test_two_columns_of_one_file_are_compared(capsys, write):
    path = write(TWO)
    quick = ["--resamples", 99]
    printed = as_json(capsys, "compare", path, "--y-prob", "old", "--y-prob", "new", *quick)
    one = write(TWO.replace("old", "y_prob"), "a.csv")
    two = write(TWO.replace("new", "y_prob"), "b.csv")
    other = as_json(capsys, "compare", one, two, *quick)
    assert (printed["a"], printed["b"]) == (f"{path}, old", f"{path}, new")
    for name in ("differences", "scores", "verdict", "p_values", "n"):
        assert printed[name] == other[name]
    both = as_json(capsys, "compare", path, path, "--y-prob", "old", "--y-prob", "new", *quick)
    assert both["differences"] == printed["differences"]
    three = [path, path, "--y-prob", "old", "--y-prob", "new"]
    for arguments in ([], ["--y-prob", "old"], ["--y-prob", "old"] * 27, three):
        assert "--y-prob OLD --y-prob NEW" in failure(capsys, "compare", path, *arguments)


@pytest.mark.slow
def test_an_infinite_loss_names_the_row_and_the_remedy(capsys, write):
    note = "the outcome had probability 0 in {} and 1 more row; --clip, or clip= of"
    page = text(capsys, "report", write(VECTORS), "--full")
    assert f"log_loss: {note.format(f'line {FIRST + 2}')}" in " ".join(page.split())
    page = text(
        capsys, "compare", write(TWO), "--y-prob", "old", "--y-prob", "new", "--resamples", 99
    )
    assert f"log_loss of old: {note.format(f'line {FIRST + 2}')}" in " ".join(page.split())
    report = fastece.calibration_report(Y, ROUND, n_resamples=0)
    assert note.format(f"y_prob[{FIRST}]") in " ".join(str(report).split())
    assert report.scores[1].note.startswith("log_loss: ")
    weight = np.where(np.arange(N) == FIRST, 0.0, 1.0)
    printed = fastece.calibration_report(Y, ROUND, sample_weight=weight, n_resamples=0)
    assert f"in y_prob[{SECOND}]; --clip" in printed.scores[1].note


@pytest.mark.slow
@pytest.mark.parametrize("content", [VECTORS, TWO.replace("old", "y_prob")])
def test_clip_makes_losses_finite_and_counts_the_rows(capsys, write, content):
    is_vector = content is VECTORS
    data = (Y, ROUND) if is_vector else (Y == 1, ROUND[:, 1])
    report = as_json(capsys, "report", write(content), "--clip", 0.001)
    off = ROUND < 0.001 if is_vector else (data[1] < 0.001) | (data[1] > 0.999)
    count = off.reshape(N, -1).any(1).sum()
    assert count > 0
    assert report["note"] == f"probabilities clipped at 0.001 in {count} of {N} rows"
    loss = next(x["value"] for x in report["scores"] if x["name"] == "log_loss")
    expected = fastece.ece(*data, estimator=fastece.LogLoss(clip=0.001))
    assert loss == pytest.approx(expected, rel=1e-3 if is_vector else 1e-12)
    printed = as_json(
        capsys,
        "compare",
        write(content),
        write(content, "b.csv"),
        "--clip",
        0.001,
        "--resamples",
        99,
    )
    assert printed["note"] == report["note"]


@pytest.mark.parametrize(
    "content",
    ["y_true,y_prob\n0,1.5\n1,0.2\n", "y_true,p_0,p_1\n0,nan,1\n1,0,1\n",
     "y_true,p_0,p_1\n0,-0.2,1.2\n1,0,1\n"],
)  # fmt: skip
def test_clip_hides_nothing_that_is_wrong(capsys, write, content):
    path = write(content)
    assert failure(capsys, "report", path, "--clip", 0.1) == failure(capsys, "report", path)


# --- logs -----------------------------------------------------------------------------------


def log(choices, seed):
    rng = np.random.default_rng(seed)
    lines = []
    for subject in ["birds", "rivers"] * 20:
        z = rng.normal(0, 2, choices)
        right = int(rng.choice(choices, p=np.exp(z) / np.exp(z).sum()))
        doc = {"choices": [*"ABCD"[:choices]], "subject": subject}
        lines.append({"doc": doc, "target": right, "filtered_resps": [[str(x), "0"] for x in z]})
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("choices", [(4, 4), (4, 2)])
def test_logs_of_one_run_are_one_report_with_a_table_by_task(capsys, write, choices):
    paths = []
    for seed, (task, k) in enumerate(zip(("arc_easy", "boolq"), choices, strict=True)):
        content = "\n".join(map(json.dumps, log(k, seed)))
        paths.append(write(content, f"samples_{task}_2025-11-02T03-04-05.123.jsonl"))
    report = as_json(capsys, "report", *paths)
    assert (report["n"], report["by"]) == (80, "task")
    alone = [as_json(capsys, "report", path) for path in paths]
    rows = {x["label"]: x["n"] for x in report["slices"]["rows"]}
    assert rows == {"arc_easy": 40, "boolq": 40}
    assert report["accuracy"] == pytest.approx(np.mean([x["accuracy"] for x in alone]))
    assert (report["n_classes"] == 4) == (choices == (4, 4))
    assert "and 1 more file" in report["title"]
    both = as_json(capsys, "report", *paths, "--by", "doc.subject")
    assert len(both["slices"]["rows"]) == 4
    other = write("y_true,y_prob\n1,0.5\n", "c.csv")
    assert f"{other}: must be a log of lm-eval" in failure(capsys, "report", *paths, other)
    bad = write(paths[1].read_text().replace('"target": ', '"target": 1', 1), "samples_bad.jsonl")
    message = failure(capsys, "report", paths[0], bad)
    assert f"{bad}: line 1" in message
