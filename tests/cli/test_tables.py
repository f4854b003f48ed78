"""Commands read a table as its names of columns, keys and ids say, in any order."""

import csv as csv_module
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import fastece
from helpers.command_line import as_json, failure, run, text, values

DOCS = Path(__file__).parents[2] / "docs"
rng = np.random.default_rng(5)
N = 120
P = rng.random(N).round(4)
Y = (rng.random(N) < P).astype(int)
VECTORS = rng.dirichlet([1, 1, 1], N).round(5)
CLASSES = (VECTORS.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, 2)


def csv(**columns):
    """Write columns as the text of a table."""
    cells = [np.asarray(column).tolist() for column in columns.values()]
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*cells, strict=True))]
    return "\n".join([*lines, ""])


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a text to a file in the working folder, and return its path."""
    monkeypatch.chdir(tmp_path)

    def put(name, content):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return put


# --- numbers of classes ---------------------------------------------------------------------------


@pytest.mark.slow
def test_numbers_that_end_all_names_are_the_classes(capsys, put):
    rows = CLASSES < 2
    prob = VECTORS[rows]
    value = fastece.ece(CLASSES[rows], prob)
    first_is_1 = csv(y=CLASSES[rows] + 1, p_1=prob[:, 0], p_2=prob[:, 1], p_3=prob[:, 2])
    path = put("a.csv", first_is_1)
    options = ("--y-true", "y", "--y-prob")
    assert values(as_json(capsys, "report", path, *options, "p_1,p_2,p_3"))["ece"] == value
    assert values(as_json(capsys, "report", path, *options, "p_*"))["ece"] == value
    assert "pass --labels" in failure(capsys, "report", path, *options, "p_*", "--stream")
    stream = (*options, "p_*", "--stream", "--labels", "1,2,3")
    assert values(as_json(capsys, "report", path, *stream))["ece"] == pytest.approx(
        value, abs=1e-12
    )
    mixed = csv(y=CLASSES[rows], q2=prob[:, 2], q0=prob[:, 0], q1=prob[:, 1])
    path = put("b.csv", mixed)
    assert values(as_json(capsys, "report", path, *options, "q2,q0,q1"))["ece"] == value
    message = failure(capsys, "report", path, *options, "q2,q1")
    assert "line" in message
    assert "must be a number at the end of the names" in message


@pytest.mark.parametrize("line", ["monitor", "recalibrate --resamples 9", "report --setting 1"])
def test_the_order_of_numbered_columns_does_not_matter(capsys, put, line):
    columns = {f"q{k}": VECTORS[:, k] for k in range(3)}
    path = put("a.csv", csv(y=CLASSES, **columns))
    command, *options = line.split()
    options += ["--y-true", "y", "--y-prob"]
    pages = [run(capsys, command, path, *options, names) for names in ("q0,q1,q2", "q2,q0,q1")]
    assert pages[0][0] in (0, 1)
    assert pages[0] == pages[1]


# --- JSON -----------------------------------------------------------------------------------------


def keyed(values, order=range(N), first=0):
    """Write a column as pandas does, with the key of each row, in some order of the rows."""
    return {str(first + k): values[k].item() for k in order}


@pytest.mark.slow
def test_columns_of_json_belong_together_by_their_keys(capsys, put):
    as_text = sorted(range(N), key=str)
    value = fastece.ece(Y, P)
    columns = {"y_true": keyed(Y), "y_prob": keyed(P, as_text), "g": keyed(Y, as_text[::-1])}
    path = put("a.json", json.dumps(columns))
    report = as_json(capsys, "report", path, "--by", "g")
    assert values(report)["ece"] == value
    assert {(x["label"], x["events"]) for x in report["slices"]["rows"]} == {(0, 0), (1, 1)}
    # The entries of a list have the keys from 0 on.
    path = put("b.json", json.dumps({"y_true": Y.tolist(), "y_prob": keyed(P, as_text)}))
    assert values(as_json(capsys, "report", path))["ece"] == value


@pytest.mark.parametrize("other", [keyed(P, first=1), P.tolist()])
def test_columns_of_json_with_other_keys_are_refused(capsys, put, other):
    path = put("a.json", json.dumps({"y_true": keyed(Y, first=2), "y_prob": other}))
    message = failure(capsys, "report", path)
    assert re.search(r"a.json: column y_prob: has no entry with the key '12[01]'", message)


@pytest.mark.parametrize(("kind", "ending"), [("lists", ""), ("keys", "\n"), ("rows", "\n\n")])
def test_a_long_line_of_json_is_read(capsys, put, kind, ending):
    documents = {
        "lists": {"y_true": Y.tolist(), "y_prob": P.tolist()},
        "keys": {"y_true": keyed(Y), "y_prob": keyed(P)},
        "rows": [{"y_true": int(y), "y_prob": p} for y, p in zip(Y, P, strict=True)],
    }
    line = json.dumps(documents[kind])
    # More than one megabyte, the size of a chunk of lines.
    line = line[0] + " " * 2**20 + line[1:]
    report = as_json(capsys, "report", put("a.json", line + ending))
    assert values(report)["ece"] == fastece.ece(Y, P)


# --- rows of two files ----------------------------------------------------------------------------

OTHER = np.clip(P + rng.normal(0, 0.1, N), 0.001, 0.999).round(4)
IDS = [f"id{k}" for k in range(N)]
# The same labels line by line, in another order of the rows.
ORDER = np.empty(N, int)
for label in (0, 1):
    ORDER[label == Y] = rng.permutation(np.flatnonzero(label == Y))
COMPARE = ("--resamples", "9", "--json")


def models(put, order=ORDER, name="id", ids=IDS):
    """Write two files of models, the rows of the second in some order."""
    first = put("a.csv", csv(**{name: ids}, y_true=Y, y_prob=P))
    second = csv(**{name: np.array(ids)[order]}, y_true=Y[order], y_prob=OTHER[order])
    return first, put("b.csv", second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "ids", "option"),
    [(ORDER, IDS, ()), (np.argsort(-OTHER), [7 * k for k in range(N)], ("--id", "id"))],
    ids=["texts with the same labels", "numbers by score"],
)
def test_rows_are_paired_by_a_column_that_identifies_them(capsys, put, order, ids, option):
    expected = fastece.compare(Y, P, OTHER, estimator="brier_score", n_resamples=9, rng=0)
    report = as_json(capsys, "compare", *models(put, order, ids=ids), *COMPARE[:2], *option)
    (score,) = (line for line in report["scores"] if line["name"] == "brier_score")
    assert score["difference"] == pytest.approx(expected.value, abs=1e-15)
    assert report["note"] == "as it is (a), rows paired by the column id (b)"
    page = text(capsys, "compare", "a.csv", "b.csv", *COMPARE[:2], *option)
    assert "rows paired by the column id (b)" in page


def test_the_rows_of_a_baseline_are_paired_too(capsys, put):
    first, second = models(put)
    line = ("check", first, "--baseline", second, "--max-error", 1, "--max-increase", 1)
    code, out, err = run(capsys, *line, "--resamples", 9)
    assert (code, err) == (0, "")
    assert f"{second}: rows paired by the column id" in " ".join(out.split())
    sorted_baseline = models(put, np.arange(N))[1]
    line = ("check", first, "--baseline", sorted_baseline, *line[4:])
    code, other, _ = run(capsys, *line, "--resamples", 9)
    assert code == 0
    assert other.splitlines()[0] == out.splitlines()[0]


@pytest.mark.slow
def test_rows_are_paired_between_formats_and_in_a_pipe(capsys, put, monkeypatch, tmp_path):
    first, second = models(put, ids=[7 * k for k in range(N)])
    np.savez(tmp_path / "a.npz", id=7 * np.arange(N), y_true=Y, y_prob=P, mean=np.array([1, 2]))
    by_file = as_json(capsys, "compare", first, second, *COMPARE[:2])
    by_array = as_json(capsys, "compare", tmp_path / "a.npz", second, *COMPARE[:2])
    assert by_array["differences"] == by_file["differences"]
    content = io.TextIOWrapper(io.BytesIO(second.read_bytes()))
    monkeypatch.setattr("sys.stdin", content)
    by_pipe = as_json(capsys, "compare", first, "-", *COMPARE[:2])
    assert by_pipe["differences"] == by_file["differences"]


@pytest.mark.slow
def test_rows_without_ids_are_paired_line_by_line(capsys, put):
    names = [f"group {k % 50}" for k in range(N)]
    first, second = models(put, ids=names)
    report = as_json(capsys, "compare", first, second, *COMPARE[:2])
    assert report["note"] == ""
    first, second = models(put, np.argsort(-OTHER), ids=names)
    message = failure(capsys, "compare", first, second)
    assert "must have the labels of" in message
    assert "--id names a column that identifies the rows" in message
    assert "--id: must have the same values in" in failure(
        capsys, "compare", first, second, "--id", "id"
    )
    assert "a.csv: no column 'key'" in failure(capsys, "compare", first, second, "--id", "key")


@pytest.mark.slow
def test_two_columns_that_pair_rows_differently_need_an_option(capsys, put):
    columns = {"y_true": Y, "y_prob": P, "id": IDS, "line": range(N)}
    first = put("a.csv", csv(**columns))
    columns |= {"y_true": Y[ORDER], "y_prob": OTHER[ORDER], "id": np.array(IDS)[ORDER]}
    second = put("b.csv", csv(**columns))
    message = failure(capsys, "compare", first, second)
    assert "the columns id and line pair the rows differently; --id names the one" in message
    by_id = as_json(capsys, "compare", first, second, "--id", "id", *COMPARE[:2])
    assert by_id["note"] == "as it is (a), rows paired by the column id (b)"
    by_line = as_json(capsys, "compare", first, second, "--id", "line", *COMPARE[:2])
    assert by_line["note"] == ""


# Answers of two models to the same questions: whether each is right, and its confidence.
RIGHT = rng.random((2, N)) < np.stack([P, OTHER])
WORDS = np.array(["wrong", "right"])


def lines_of(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def answers_as_json(right, confidence, ids):
    names = ("id", "correct", "stated")
    columns = zip(ids, right.tolist(), confidence.tolist(), strict=True)
    return lines_of(dict(zip(names, row, strict=True)) for row in columns)


def answers_as_log(right, confidence, ids):
    """Attempts of inspect, each at a question of its own."""
    columns = zip(ids, np.where(right, "C", "I").tolist(), confidence.tolist(), strict=True)
    return lines_of(
        {"id": k, "epoch": 1, "scores": {"judge": {"value": v, "metadata": {"confidence": c}}}}
        for k, v, c in columns
    )


ANSWERS = {
    "a bool by its name": (answers_as_json, "--y-true correct --y-prob stated"),
    "0 or 1 by its name": (
        lambda right, p, ids: csv(id=ids, correct=right.astype(int), p=p),
        "--y-true correct --y-prob p",
    ),
    "words beside a confidence": (
        lambda right, p, ids: csv(id=ids, grade=WORDS[right.astype(int)], confidence=p),
        "--y-true grade --y-prob confidence --pos-label right",
    ),
    "percents": (
        lambda right, p, ids: csv(id=ids, ok=right, confidence=[f"{100 * x:.2f}%" for x in p]),
        "--y-true ok --y-prob confidence --percent",
    ),
    "a log": (answers_as_log, ""),
    "a log with named columns": (
        answers_as_log,
        "--y-true scores.judge.value --y-prob scores.judge.metadata.confidence --pos-label C",
    ),
}


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize("order", [np.arange(N), ORDER], ids=["one order", "two orders"])
def test_models_that_are_right_or_wrong_by_themselves_are_compared(capsys, put, form, order):
    write, line = ANSWERS[form]
    new = put("new.jsonl", write(RIGHT[0], P, IDS))
    old = put("old.jsonl", write(RIGHT[1][order], OTHER[order], np.array(IDS)[order].tolist()))
    errors = [
        fastece.ece(right, p, estimator="ece_bayes")
        for right, p in zip(RIGHT, (P, OTHER), strict=True)
    ]
    gate = ("--max-error", 1, "--max-increase", 1, "--baseline", old)
    code, out, err = run(capsys, "check", new, *gate, *line.split(), "--json")
    assert (code, err) == (0, "")
    checked = json.loads(out)
    found = [row["value"] for row in checked["rows"]]
    assert found == pytest.approx([errors[0], errors[0] - errors[1]], abs=1e-9)
    is_paired = "rows paired by the column" in checked["note"]
    assert is_paired == (order is ORDER)
    assert "line by line" not in checked["note"]
    compared = as_json(capsys, "compare", new, old, *COMPARE[:2], *line.split())
    first = compared["differences"][0]
    assert [first["a"], first["b"]] == pytest.approx(errors, abs=1e-9)
    # To guess whether an answer is right has an accuracy that nobody asks for.
    assert "accuracy" not in {score["name"] for score in compared["scores"]}


def test_the_commands_of_the_tutorial_compare_two_language_models(capsys, put):
    page = (DOCS / "tutorials/language_model.md").read_text(encoding="utf-8")
    section = page.partition("## Two models on the same questions")[2].partition("\n## ")[0]
    (row,) = re.findall(r"`(\{.*\})`", section)
    for name, right, p, order in (("new", RIGHT[0], P, ...), ("old", RIGHT[1], OTHER, ORDER)):
        columns = zip(np.array(IDS)[order], right[order], p[order], strict=True)
        rows = [(str(key), bool(hit), float(x)) for key, hit, x in columns]
        names = tuple(json.loads(row))
        put(f"{name}.jsonl", lines_of(dict(zip(names, values, strict=True)) for values in rows))
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    commands = block.replace("\\\n", " ").splitlines()
    assert [shlex.split(command)[:2] for command in commands] == [
        ["fastece", "compare"], ["fastece", "check"]
    ]  # fmt: skip
    for command in commands:
        code, out, err = run(capsys, *shlex.split(command)[1:], "--resamples", 9)
        assert (code in (0, 1, 3), err) == (True, "")
        assert "rows paired by the column id" in " ".join(out.split())


def test_hits_are_read_as_pairs_of_labels_that_show_them(capsys, put):
    files = {}
    for name, right, p in zip("ab", RIGHT, (P, OTHER), strict=True):
        hits = csv(id=IDS, correct=right.astype(int), confidence=p)
        pairs = csv(
            id=IDS, true_label=["A"] * N, pred_label=np.where(right, "A", "B"), confidence=p
        )
        files[name] = (put(f"{name}.csv", hits), put(f"{name}_pairs.csv", pairs))
    columns = ("--y-true", "correct", "--y-prob", "confidence")
    hits, pairs = zip(*files.values(), strict=True)
    found = as_json(capsys, "compare", *hits, *columns, *COMPARE[:2])
    expected = as_json(capsys, "compare", *pairs, *COMPARE[:2])
    for name in ("differences", "scores", "verdict", "setting"):
        assert found[name] == expected[name]
    for option in ([], ["--stream"]):
        found, expected = (
            as_json(capsys, "report", hits[0], *columns, *option),
            as_json(capsys, "report", pairs[0], *option),
        )
        named = {"title": "", "stream": None}  # the file, and its bytes
        assert {**found, **named} == {**expected, **named}
        assert found["accuracy"] == pytest.approx(RIGHT[0].mean())


@pytest.mark.parametrize(
    ("right", "confidence", "fault"),
    [
        ([0, 1], [1.0, 0.9], "A confidence of 100 % was wrong in line 2"),
        ([1, 1], [0.0, 0.9], "A confidence of 0 % was right in line 2"),
        ([0, 1], [1.0, 0.0], "A confidence of 100 % was wrong or a confidence of 0 % was right in"),
    ],
)
def test_a_confidence_that_cannot_be_is_named(capsys, put, right, confidence, fault):
    table = csv(correct=[*right, *Y], confidence=[*confidence, *P])
    columns = ("--y-true", "correct", "--y-prob", "confidence", "--resamples", 9)
    report = as_json(capsys, "report", put("a.csv", table), *columns)
    assert report["notes"][0].startswith(fault)
    table = csv(y_true=[*right, *Y], y_prob=[*confidence, *P])
    report = as_json(capsys, "report", put("a.csv", table), *columns[4:])
    assert report["notes"][0].startswith("The outcome had the predicted probability 0 in line 2")


def test_answers_that_no_column_pairs_have_a_note(capsys, put):
    """With the same labels in both files there would be a sign that lines are the same rows."""
    paths = [
        put(f"{name}.csv", csv(correct=right.astype(int), confidence=p, source=["exam"] * N))
        for name, right, p in zip("ab", RIGHT, (P, OTHER), strict=True)
    ]
    columns = ("--y-true", "correct", "--y-prob", "confidence", *COMPARE[:2])
    report = as_json(capsys, "compare", *paths, *columns)
    assert "rows paired line by line, as no column shows which belong together" in report["note"]
    question = [f"question {k // 2}" for k in range(N)]
    for path, right, p in zip(paths, RIGHT, (P, OTHER), strict=True):
        path.write_text(csv(correct=right.astype(int), confidence=p, question=question))
    for option in ([], ["--groups", "question"]):
        assert as_json(capsys, "compare", *paths, *columns, *option)["note"] == ""


@pytest.mark.parametrize("option", ["--soft", "--votes asked", "--counts asked"])
def test_shares_of_right_answers_must_be_those_of_both_models(capsys, put, option):
    first, second = (
        put(
            f"{name}.csv",
            csv(id=IDS, asked=[4] * N, correct=right / 4 if option == "--soft" else right, p=p),
        )
        for name, right, p in zip("ab", 3 * RIGHT.astype(int), (P, OTHER), strict=True)
    )
    line = ("--y-true", "correct", "--y-prob", "p", *option.split(), *COMPARE[:2])
    assert "must have the labels of" in failure(capsys, "compare", first, second, *line)
    assert as_json(capsys, "compare", first, first, *line)["differences"][0]["difference"] == 0


def test_outcomes_that_all_models_share_must_be_the_same(capsys, put):
    first, second = (
        put(f"{name}.csv", csv(died=right, risk=p))
        for name, right, p in zip("ab", RIGHT, (P, OTHER), strict=True)
    )
    message = failure(capsys, "compare", first, second, "--y-true", "died", "--y-prob", "risk")
    assert "must have the labels of" in message
    assert "name the column 'correct' if it says whether each model was right" in message


# --- files that are written -----------------------------------------------------------------------

ODD_CELLS = ["007", "1.10", "", "a, b", 'a "b"', "=1"]
RECALIBRATE = ("--method", "platt", "--resamples", 9, "--out")


def table_with_other_columns():
    """Lines of a table in which columns that are not read stand between the others."""
    rows = ((ODD_CELLS[k % 6], Y[k], k / 4, P[k], IDS[k]) for k in range(N))
    return [["note", "y_true", "amount", "y_prob", "id"], *rows]


def write_cells(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv_module.writer(file, lineterminator="\n").writerows(rows)


def test_recalibrated_predictions_keep_all_columns_of_the_file(capsys, put):
    path = put("a.csv", "")
    write_cells(path, table_with_other_columns())
    text(capsys, "recalibrate", path, *RECALIBRATE, "new.csv")
    with open("a.csv", newline="") as old, open("new.csv", newline="") as new:
        old_rows, new_rows = list(csv_module.reader(old)), list(csv_module.reader(new))
    assert new_rows[0] == old_rows[0]
    for before, after in zip(old_rows[1:], new_rows[1:], strict=True):
        assert [*after[:3], after[4]] == [*before[:3], before[4]]
        assert after[3] != before[3]


# --- files among options --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "compare a.csv --groups id b.csv --resamples 9",
        "compare --groups id --resamples 9 a.csv b.csv",
        "compare a.csv b.csv --groups id --resamples 9",
        "compare --groups id --resamples 9 -- a.csv b.csv",
    ],
)
def test_files_stand_before_and_after_options(capsys, put, line):
    models(put, np.arange(N))
    report = as_json(capsys, *line.split())
    assert (report["a"], report["b"], report["n_groups"]) == ("a.csv", "b.csv", N)


def test_files_of_a_stream_stand_anywhere(capsys, put):
    models(put, np.arange(N))
    report = as_json(capsys, "report", "a.csv", "--n-bins", 5, "b.csv")
    assert report["n"] == 2 * N
    assert as_json(capsys, "check", "--max-error", 1, "a.csv")["passed"] is True


# --- labels and headers as other programs write them ----------------------------------------------


@pytest.mark.slow
def test_bools_of_r_are_labels(capsys, put):
    labels = np.where(Y == 1, "TRUE", "FALSE")
    path = put("a.csv", csv(y_true=labels, y_prob=P))
    assert values(as_json(capsys, "report", path))["ece"] == fastece.ece(Y, P)
    report = as_json(capsys, "report", path, "--pos-label", "FALSE")
    assert values(report)["ece"] == fastece.ece(1 - Y, P)
    # T and F may be other labels.
    path = put("b.csv", csv(y_true=[x[0] for x in labels], y_prob=P))
    assert "pass --pos-label" in failure(capsys, "report", path)


@pytest.mark.parametrize(
    ("names", "labels"),
    [(("p_TRUE", "p_FALSE"), np.where(Y == 1, "TRUE", "FALSE")), (("q.True", "q.False"), Y)],
)
def test_columns_that_are_named_after_bools_are_theirs(capsys, put, names, labels):
    path = put("a.csv", csv(y_true=labels, **{names[0]: P, names[1]: 1 - P}))
    report = as_json(capsys, "report", path, "--y-prob", ",".join(names), "--setting", "binary")
    assert values(report)["ece"] == pytest.approx(fastece.ece(1 - Y, 1 - P), abs=1e-15)


@pytest.mark.parametrize("mark", ['"sep=;"', "SEP=|"])
def test_a_first_line_names_the_delimiter(capsys, put, mark):
    delimiter = mark.strip('"')[-1]
    table = csv(y_true=Y, y_prob=P).replace(",", delimiter)
    path = put("a.csv", f"{mark}\n{table}")
    assert values(as_json(capsys, "report", path))["ece"] == fastece.ece(Y, P)
    path = put("b.csv", f"{mark}\n{table}1{delimiter}high\n")
    assert f"b.csv: line {N + 3}, column y_prob: must be a number" in failure(
        capsys, "report", path
    )


@pytest.mark.parametrize("labels", [Y, np.where(Y == 1, "TRUE", "FALSE"), CLASSES])
def test_a_row_of_totals_is_named(capsys, put, labels):
    table = csv(y_true=labels, y_prob=P)
    if labels is CLASSES:
        table = csv(y_true=labels, p_0=VECTORS[:, 0], p_1=VECTORS[:, 1], p_2=VECTORS[:, 2])
    total = ",".join(["Total", *["0.4"] * (table.partition("\n")[0].count(","))])
    message = failure(capsys, "report", put("a.csv", f"{table}{total}\n"))
    assert f"a.csv: line {N + 2}, column y_true: must be a number or a bool" in message
    assert "got 'Total'; leave out rows that are none, such as totals" in message


# --- rows without a prediction --------------------------------------------------------------------

HAS_NONE = np.arange(N) % 7 == 0
LACKING = f"{HAS_NONE.sum()} of {N} rows without a prediction are left out"


def tables_with_gaps(put, tmp_path):
    """Files in which some rows lack a prediction."""
    blanks = np.where(HAS_NONE, "", P.astype(str))
    rows = [{"y_true": int(y), "y_prob": None if x == "" else float(x)}
            for y, x in zip(Y, blanks, strict=True)]  # fmt: skip
    np.savez(tmp_path / "c.npz", y_true=Y, y_prob=np.where(HAS_NONE, np.nan, P))
    return [
        put("a.csv", csv(y_true=Y, y_prob=blanks)),
        put("b.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows)),
        tmp_path / "c.npz",
    ]


@pytest.mark.slow
def test_rows_without_a_prediction_are_left_out_and_counted(capsys, put, tmp_path):
    value = fastece.ece(Y[~HAS_NONE], P[~HAS_NONE])
    for path in tables_with_gaps(put, tmp_path):
        assert "--missing skip leaves such rows out" in failure(capsys, "report", path)
        report = as_json(capsys, "report", path, "--missing", "skip")
        assert values(report)["ece"] == value
        assert LACKING in report["note"]
        assert LACKING in " ".join(text(capsys, "report", path, "--missing", "skip").split())
        stream = as_json(capsys, "report", path, "--missing", "skip", "--stream")
        assert values(stream)["ece"] == pytest.approx(value, abs=1e-12)
        assert LACKING in stream["stream"]["notes"][0]


def test_rows_without_a_label_and_without_a_prediction_are_counted_apart(capsys, put):
    labels = np.where(np.arange(N) < 10, "", Y.astype(str))
    prob = [*["0.5"] * 9, *["" if k % 2 else str(P[k]) for k in range(9, N)]]
    report = as_json(capsys, "report", put("a.csv", csv(y_true=labels, y_prob=prob)),
                     "--missing", "skip")  # fmt: skip
    assert f"10 of {N} rows without a label are left out" in report["note"]
    assert f"; 55 of {N} rows without a prediction are left out" in report["note"]
    assert report["n"] == N - 65
    nothing = put("b.csv", "y_true,y_prob\n,0.5\n1,\n")
    message = failure(capsys, "report", nothing, "--missing", "skip")
    assert "none of its 2 rows has a label and a prediction" in message


def test_class_vectors_with_an_empty_entry_are_left_out(capsys, put):
    columns = {f"p_{k}": VECTORS[:, k].astype(object) for k in range(3)}
    columns["p_1"][HAS_NONE] = ""
    path = put("a.csv", csv(y_true=CLASSES, **columns))
    report = as_json(capsys, "report", path, "--missing", "skip")
    assert values(report)["ece"] == fastece.ece(CLASSES[~HAS_NONE], VECTORS[~HAS_NONE])


def test_a_monitor_warns_of_rows_without_a_prediction(capsys, put, tmp_path):
    path = tables_with_gaps(put, tmp_path)[0]
    code, out, err = run(capsys, "monitor", path)
    assert code in (0, 1)
    assert f"{HAS_NONE.sum()} rows without a prediction are left out" in err
    assert "no label yet" not in out


# --- a column of outcomes for each class ----------------------------------------------------------

OUTCOMES = {f"{name}_outcome": k == CLASSES for k, name in enumerate(["home", "tie", "away"])}
OUTCOMES |= {name: VECTORS[:, k] for k, name in enumerate(["home", "tie", "away"])}
ONE_HOT = ("--y-true", "home_outcome,tie_outcome,away_outcome", "--y-prob", "home,tie,away")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [int, float, bool])
def test_outcomes_may_have_a_column_each(capsys, put, kind):
    table = {name: x.astype(kind) if x.dtype == bool else x for name, x in OUTCOMES.items()}
    path = put("a.csv", csv(**table))
    report = as_json(capsys, "report", path, *ONE_HOT)
    assert values(report)["ece"] == fastece.ece(CLASSES, VECTORS)
    assert report["classes"]["rows"][0]["label"] in ("home", "tie", "away")
    stream = as_json(capsys, "report", path, *ONE_HOT, "--stream")
    assert values(stream)["ece"] == pytest.approx(fastece.ece(CLASSES, VECTORS), abs=1e-12)
    text(capsys, "recalibrate", path, *ONE_HOT, "--method", "temperature", "--resamples", 9,
         "--out", "b.csv")  # fmt: skip
    with open("b.csv", newline="") as file:
        assert next(csv_module.reader(file)) == list(table)


def test_outcomes_that_are_not_exclusive_are_refused(capsys, put):
    table = {name: x.astype(int) if x.dtype == bool else x for name, x in OUTCOMES.items()}
    table["home_outcome"] = np.ones(N, int)
    first = np.flatnonzero(CLASSES > 0)[0] + 2
    path = put("a.csv", csv(**table))
    message = failure(capsys, "report", path, *ONE_HOT)
    assert f"a.csv: line {first}: home_outcome, tie_outcome, away_outcome must be 0 or 1" in message
    message = failure(capsys, "report", path, "--y-true", "home_outcome,tie_outcome", *ONE_HOT[2:])
    assert "a.csv: names 2 columns of outcomes, --y-prob 3" in message
    message = failure(capsys, "report", path, "--y-true", "home_outcome,b", *ONE_HOT[2:])
    assert "no column 'b'" in message


# --- slices of dates ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "stream"), [("csv", ()), ("parquet", ("--stream",)), ("npz", ("--stream",))]
)
def test_dates_of_a_file_are_months_in_their_order(capsys, put, tmp_path, ending, stream):
    days = np.datetime64("2023-11-20") + np.arange(N)[::-1]
    path = put("a.csv", csv(y_true=Y, y_prob=P, day=days))
    if ending == "npz":
        path = tmp_path / "a.npz"
        np.savez(path, y_true=Y, y_prob=P, day=days)
    elif ending == "parquet":
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "a.parquet"
        columns = {"y_true": Y, "y_prob": P, "day": days.tolist()}
        parquet.write_table(pa.table({key: list(x) for key, x in columns.items()}), path)
    report = as_json(capsys, "report", path, "--by", "day", *stream)
    found = report["slices"]["rows"]
    assert [row["label"] for row in found] == [
        "2023-11",
        "2023-12",
        "2024-01",
        "2024-02",
        "2024-03",
    ]
    assert [row["n"] for row in found] == [11, 31, 31, 29, 18]
    page = text(capsys, "report", path, "--by", "day", "--full", *stream)
    assert "Slices by day, in the order of time" in page
