"""Files as the commands read them, and which label each of their columns is of."""

import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.cli import main
from helpers.command_line import PAIRS, SMALL, as_json, failure, text, values

LOG = Path(__file__).parents[1] / "fixtures" / "lm_eval_samples.jsonl"


def test_binary_csv(capsys, write):
    report = as_json(capsys, "report", write("y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n"))
    assert values(report)["ece"] == fastece.ece([0, 1, 1], [0.1, 0.4, 0.9])
    assert (report["n"], report["n_classes"], report["setting"]) == (3, 2, "binary")
    assert report["accuracy"] == pytest.approx(2 / 3)
    assert report["mean_confidence"] == pytest.approx((0.9 + 0.6 + 0.9) / 3)


def test_top_label_csv(capsys, write):
    path = write(f"{PAIRS}3,3,0.9\n1,2,0.5\nx,x,0.7\n")
    report = as_json(capsys, "report", path)
    assert values(report)["ece"] == fastece.ece([1, 0, 1], [0.9, 0.5, 0.7])
    assert report["n_classes"] is None
    assert report["setting"] == "binary"
    assert report["accuracy"] == pytest.approx(2 / 3)
    assert "is the predicted class right as often" in text(capsys, "report", path)
    report = as_json(capsys, "report", path, "--classes", 10)
    value = fastece.ece([1, 0, 1], [0.9, 0.5, 0.7], score_range=(0.1, 1.0))
    assert values(report)["ece"] == value
    assert report["n_classes"] == 10
    assert report["diagrams"][0]["edges"][0] == 0.1


def test_named_columns_and_npz(capsys, write, tmp_path):
    path = write("target,no,yes\n0,0.9,0.1\n1,0.6,0.4\n")
    report = as_json(capsys, "report", path, "--y-true", "target", "--y-prob", "yes")
    assert values(report)["ece"] == fastece.ece([0, 1], [0.1, 0.4])
    report = as_json(capsys, "report", path, "--y-true", "target", "--y-prob", "no,yes")
    assert values(report)["ece"] == fastece.ece([0, 1], [[0.9, 0.1], [0.6, 0.4]])
    archive = tmp_path / "a.npz"
    logits = np.array([[0.0, 2.0], [1.0, -1.0]])
    np.savez(archive, y_true=[1, 1], y_prob=logits, a=logits[:, 0], b=logits[:, 1])
    report = as_json(capsys, "report", archive, "--from-logits")
    assert values(report)["ece"] == fastece.ece([1, 1], logits, from_logits=True)
    again = as_json(capsys, "report", archive, "--y-prob", "a,b", "--from-logits")
    assert values(again) == values(report)


def test_parquet(capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"y_true": [0, 1, 1], "y_prob": [0.1, 0.4, 0.9]}), path)
    assert values(as_json(capsys, "report", path))["ece"] == fastece.ece([0, 1, 1], [0.1, 0.4, 0.9])
    parquet.write_table(pa.table({"y_true": [0, None, 1], "y_prob": [0.1, 0.4, 0.9]}), path)
    assert "row 2, column y_true: must not be missing, got None" in failure(capsys, "report", path)


def test_parquet_without_pyarrow_says_what_to_install(capsys, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'fastece[files]'" in failure(capsys, "report", path)


def test_pairs_in_an_archive_and_labels_of_two_kinds(capsys, write, tmp_path):
    archive = tmp_path / "a.npz"
    np.savez(archive, true_label=[3, 1], pred_label=[3, 2], confidence=[0.9, 0.5])
    assert values(as_json(capsys, "report", archive))["ece"] == fastece.ece([1, 0], [0.9, 0.5])
    assert as_json(capsys, "report", write(f"{PAIRS}1,1,0.9\n2,x,0.8\n"))["accuracy"] == 0.5


# --- which label a column is of --------------------------------------------------------------

Y = ["stay", "churn", "churn", "stay", "churn"]
CHURN = [0.2, 0.9, 0.7, 0.4, 0.6]


def csv_of(labels, p):
    rows = "".join(f"{y},{1 - s:g},{s:g}\n" for y, s in zip(labels, p, strict=True))
    return f"y_true,p_0,p_1\n{rows}"


@pytest.mark.parametrize("command", ["report", "compare", "curve"])
def test_labels_say_which_label_each_column_is_of(capsys, write, command):
    path = write(csv_of(Y, CHURN))
    files = [path, path] if command == "compare" else [path]
    options = ["--labels", "stay, churn", "--resamples", 8, "--setting", 1]
    found = as_json(capsys, command, *files, *options)
    columns = np.column_stack([1 - np.array(CHURN), CHURN])
    numbers = [int(label == "churn") for label in Y]
    assert found["setting"] == "class 1 ('churn')"
    if command == "curve":
        curve = fastece.reliability_curve(numbers, columns, setting=1, estimator="ece_bayes")
        assert found["curves"][0]["value"] == pytest.approx(curve.value)
    else:
        lines = found["measures" if command == "report" else "differences"]
        (line,) = (line for line in lines if line["name"] == "ece")
        assert line["value" if command == "report" else "a"] == fastece.ece(
            numbers, columns, setting=1
        )
    if command == "report":
        assert found["accuracy"] == 1.0  # 0, were the columns taken in the order of the alphabet


def test_numbers_and_commas_in_labels(capsys, write):
    path = write(csv_of([2, 1, 1, 2, 1], CHURN))
    report = as_json(capsys, "report", path, "--labels", "2,1")
    assert report["accuracy"] == 1.0
    assert "labels of the file are numbers, got 'two'" in failure(
        capsys, "report", path, "--labels", "2,two"
    )
    path = write(csv_of(['"a, b"' if y == "stay" else "c" for y in Y], CHURN))
    assert as_json(capsys, "report", path, "--labels", '"a, b",c')["accuracy"] == 1.0


def test_pos_label_says_what_a_probability_is_of(capsys, write, tmp_path):
    rows = "".join(f"{y},{p}\n" for y, p in zip(Y, CHURN, strict=True))
    path = write(f"y_true,y_prob\n{rows}")
    report = as_json(capsys, "report", path, "--pos-label", "churn")
    expected = fastece.ece([int(y == "churn") for y in Y], CHURN)
    assert values(report)["ece"] == expected
    assert "does 'churn' come as often" in text(capsys, "report", path, "--pos-label", "churn")
    archive = tmp_path / "a.npz"
    np.savez(archive, y_true=[2, 1, 1, 2, 1], y_prob=CHURN)
    report = as_json(capsys, "report", archive, "--pos-label", "1", "--labels", "2,1")
    assert values(report)["ece"] == expected


def test_labels_that_are_not_there_are_told_without_options_of_python(capsys, write):
    path = write(csv_of(Y, CHURN))
    line = failure(capsys, "report", path, "--labels", "stay,leave")
    assert "must be among the labels 'stay', 'leave'" in line
    assert "--labels: must name 2 classes" in failure(capsys, "report", path, "--labels", "a,b,c")


@pytest.mark.parametrize(
    "option", [["--labels", "0,1"], ["--pos-label", "1"], ["--from-logits"]], ids=lambda o: o[0]
)
def test_predicted_classes_need_no_order(capsys, write, option):
    line = failure(capsys, "report", write(f"{PAIRS}0,0,0.5\n"), *option)
    assert option[0] in line
    assert "confidences of predicted classes" in line


# --- bad files -------------------------------------------------------------------------------


def test_awkward_but_whole_csv_files(capsys, write):
    expected = fastece.ece([0, 1, 1], [0.1, 0.4, 0.9])
    for content in (
        "\ufeffy_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n",
        "y_true,y_prob\r\n0,0.1\r\n\r\n1,0.4\r\n1,0.9",
        '\n"y_true", y_prob ,"a\nb"\n0, 0.1,x\n1, 0.4,"#, y"\n"1",0.9,z\n',
    ):
        assert values(as_json(capsys, "report", write(content)))["ece"] == expected


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("y_true,y_prob\n0,1.5\n", [], r"line 2, column y_prob: .* \[0, 1\] .*, got 1.5\n"),
        ("y_true,y_prob\n0,high\n", [], "'high'"),
        (
            "y_true,y_prob\n0,0.5\n2,0.5\n",
            [],
            "line 3, column y_true: labels must be from 0 to 1, got 2",
        ),
        ("y_true,y_prob\n", [], "empty"),
        ("", [], "is empty"),
        ("a,b\n0,1\n", [], "no column 'y_true', it has a, b; expected y_true,y_prob or"),
        ("y_true,y_prob\n0,0.1\n,0.9\n", [], "line 3, column y_true: must not be missing, got ''"),
        (
            "y_true,y_prob\n0,0.1\n1,0.2,0.3\n",
            [],
            "line 3: must have 2 cells, as the header has, got 3",
        ),
        ("y_true,y_prob,y_prob\n0,0.1,0.2\n", [], "two columns are named 'y_prob'"),
        (f"{PAIRS}0,0,0.5\n", ["--setting", "confidence"], "--setting: .* class vector"),
        ("y_true,p_0,p_2\n0,0.1,0.9\n", [], "no column 'p_1'"),
        ("y_true,p_0\n0,0.5\n", [], "p_0 is the only"),
        ("y_true,y_prob\n0,0.5\n", ["--y-prob", "score"], "no column 'score'"),
        ("y_true,y_prob\n0,0.5\n", ["--classes", "3"], "--classes: goes with"),
        (f"{PAIRS}0,0,0.5\n", ["--classes", "1"], "--classes: must be .* from 2 to"),
        ("y_true,y_prob\n0,0.5\n", ["--n-bins", "0"], "--n-bins: must be"),
        ("y_true,y_prob\n0,0.5\n", ["--setting", "top"], "--setting: .*'auto', 'binary'"),
        ("y_true,y_prob\n0,0.5\n", ["--setting", "-1"], "--setting: must be a class index"),
    ],
)
def test_bad_files_are_refused_in_one_line(capsys, write, content, options, message):
    assert re.search(message, failure(capsys, "report", write(content), *options))


def test_files_that_cannot_be_read(capsys, tmp_path, write):
    assert "nothing.csv" in failure(capsys, "report", tmp_path / "nothing.csv")
    line = failure(capsys, "report", write("not a zip", "broken.npz"))
    assert "broken.npz: is no npz file: it starts with b'not a '" in line
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, np.zeros(3))
    line = failure(capsys, "report", tmp_path / "array.npz")
    assert "array.npz: holds an array of shape (3,)" in line
    np.savez(tmp_path / "cut.npz", y_true=np.zeros(500), y_prob=np.zeros(500))
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    assert "cut.npz" in failure(capsys, "report", tmp_path / "cut.npz")
    assert "wide.csv" in failure(capsys, "report", write("x" * 200_000, "wide.csv"))
    assert "broken.parquet" in failure(capsys, "report", write("not Parquet", "broken.parquet"))


def test_missing_and_mixed_labels_of_pairs_are_refused(capsys, write, tmp_path):
    big = f"{PAIRS}9007199254740993,9007199254740992,0.8\n"
    assert as_json(capsys, "report", write(big))["accuracy"] == 0
    archive = tmp_path / "a.npz"
    for content, message in (
        ({"true_label": [1, 2], "pred_label": [1]}, "pred_label: has shape (1,), true_label"),
        ({"true_label": [0, 1], "pred_label": ["0", "1"]}, "has dtype <U1"),
        ({"true_label": [0, 1], "pred_label": [0, 1], "confidence": [[0.5, 0.5]] * 2},
         "confidence: has shape (2, 2)"),
        ({"y_true": [0, 1], "y_prob": [[0.5], [0.5]]}, "one column"),
    ):  # fmt: skip
        np.savez(archive, **{"confidence": [0.5, 0.5], **content})
        assert message in failure(capsys, "report", archive)


# --- files as they come ------------------------------------------------------------------------


def feed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))


@pytest.mark.parametrize("command", ["report", "compare", "curve"])
def test_every_command_reads_standard_input_and_json_lines(capsys, write, monkeypatch, command):
    rows = [(y == "churn", p) for y, p in zip(Y, CHURN, strict=True)]
    lines = "".join(json.dumps({"y_true": int(y), "y_prob": p}) + "\n" for y, p in rows)
    path = write("y_true\ty_prob\n" + "".join(f"{y:d}\t{p}\n" for y, p in rows))
    feed(monkeypatch, lines)
    found = as_json(capsys, command, *([path] * (command == "compare")), "-", "--resamples", 8)
    assert (found["n"], found["setting"]) == (5, "binary")
    assert "standard input" in (found.get("title"), found.get("b"))
    if command == "compare":
        assert all(line["difference"] == 0 for line in found["differences"])


def test_standard_input_is_one_file(capsys):
    assert "must be another file than standard input" in failure(capsys, "compare", "-", "-")


@pytest.mark.parametrize("command", ["report", "curve"])
def test_weights_are_those_of_the_column(capsys, write, command):
    rows = zip([0, 1, 1, 0], [0.1, 0.4, 0.9, 0.7], [1, 2, 0, 0.5], strict=True)
    path = write("y_true,y_prob,w\n" + "".join(f"{y},{p},{w}\n" for y, p, w in rows))
    found = as_json(capsys, command, path, "--weights", "w", "--resamples", 0)
    data = {"y_true": [0, 1, 1, 0], "y_prob": [0.1, 0.4, 0.9, 0.7], "sample_weight": [1, 2, 0, 0.5]}
    if command == "curve":
        assert (
            found["curves"][0]["value"]
            == fastece.reliability_curve(**data, estimator="ece_bayes").value
        )
    else:
        assert values(found)["ece"] == fastece.ece(**data)
        assert found["accuracy"] == pytest.approx(1 / 3.5)


def test_models_that_are_compared_have_the_same_weights(capsys, write):
    a = write("y_true,y_prob,w\n0,0.1,1\n\n1,0.4,2\n")
    b = write("y_true,y_prob,w\n0,0.1,1\n1,0.4,3\n", "b.csv")
    line = failure(capsys, "compare", a, b, "--weights", "w")
    assert "b.csv: line 3: must have the weights of" in line
    assert "which has 2.0 in line 4, got 3.0" in line
    assert as_json(capsys, "compare", a, a, "--weights", "w", "--resamples", 8)["n"] == 2


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("y_true,y_prob\n0,0.5\n\n1,1.5\n0,nope\n", [], "line 5, column y_prob: must be a number, "
         "got 'nope'"),
        ("y_true,y_prob\n0,0.5\n\n1,1.5\n0,-1\n", [], "line 4, column y_prob: probabilities must "
         "lie in [0, 1] (tolerance 1e-06), got 1.5"),
        ("y_true,p_0,p_1\n0,1,0\n1,1,inf\n2,-inf,0\n", [], "line 3, column p_1: must be finite, "
         "got inf; and 1 more row"),
        ("y_true,p_0,p_1\n0,1,0\n1,0,1\n2,0,1\n3,0,1\n", [], "line 4, column y_true: labels must "
         "be from 0 to 1, got 2; --labels names other classes; and 1 more row"),
        ("y,a,b\nu,1,0\nx,0,1\nv,0,1\nx,0,1\n",
         ["--y-true", "y", "--y-prob", "a,b", "--labels", "u,v"],
         "line 3, column y: must be among the labels 'u', 'v', got 'x'; and 1 more row"),
        ("y_true,y_prob,w\n0,0.5,1\n1,0.5,-1\n0,0.5,-2\n1,0.5,1\n", ["--weights", "w"],
         "line 3, column w: must not be negative, got -1.0; and 1 more row"),
        ('{"y_true": 0, "y_prob": [0.5, 0.5]}\n{"y_true": 0, "y_prob": [1.5, 0.5]}\n', [],
         "line 2, column y_prob[:, 0]: probabilities must lie in"),
    ],
)  # fmt: skip
def test_two_bad_rows_are_one_line_that_names_the_first(capsys, write, content, options, message):
    line = failure(capsys, "report", write(content), *options)
    assert f"predictions.csv: {message}" in line


def test_a_log_says_how_it_is_read(capsys, tmp_path):
    page = text(capsys, "report", LOG)
    assert "setting          confidence: " in page
    assert "read as          log of lm-evaluation-harness, softmax over the choices" in page
    assert "rows             4\n  classes          3\n  accuracy         0.7500\n" in page
    lines = LOG.read_text(encoding="utf-8").splitlines(keepends=True)
    row = json.loads(lines[0])
    del row["filtered_resps"][2], row["arguments"], row["doc"]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join([json.dumps(row) + "\n", *lines[1:]]), encoding="utf-8")
    for command in ("report", "curve"):
        page = text(capsys, command, path, "--resamples", 8, quick=False)
        assert "which has 2 to 3: of the likeliest choice alone" in page
        assert "binary: is the predicted class right as often as its confidence?" in page
    assert "which has 2 to 3" in text(capsys, "compare", path, path, "--resamples", 8)


def test_a_path_that_is_not_utf_8_is_told(tmp_path, capsysbinary):
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
