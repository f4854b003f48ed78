"""The command line, as a user types it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastece
from fastece.cli import commands as cli
from fastece.cli.commands import main
from fastece.kernels import cache
from fastece.speed import bench, warmup, yardstick

DIGITS = Path(fastece.__file__).parent / "data"
FOUR = ["ece", "ece_a", "ece_c", "ece_ac"]


def run(capsys, *arguments, quick=True):
    """Exit code, standard output and standard error; `quick`: a report without resamples, unless
    it says how many."""
    arguments = [str(a) for a in arguments]
    if quick and arguments[0] in ("report", "demo") and "--resamples" not in arguments:
        arguments += ["--resamples", "0"]
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def as_json(capsys, *arguments, quick=True):
    code, out, err = run(capsys, *arguments, "--json", quick=quick)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out)


def failure(capsys, *arguments):
    """The one line on standard error."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("fastece: error: ")
    assert err.count("\n") == 1
    return err


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="predictions.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def values(report):
    return {m["name"]: m["value"] for m in report["measures"]}


def test_demo_reports_on_the_digits(capsys):
    code, out, err = run(capsys, "demo")
    assert (code, err) == (0, "")
    for text in ("rows             1797", "classes          10", "accuracy", "mean confidence",
                 "setting          confidence", "ece_ac", "mce", "(0.933, 1.000]"):  # fmt: skip
        assert text in out
    digits = np.load(DIGITS / "digits_neural_network.npz")
    report = as_json(capsys, "demo")
    for name in FOUR:
        value = fastece.ece(digits["y_true"], digits["y_prob"], estimator=name)
        assert values(report)[name] == value
        assert f"{value:.5f}" in out
    assert values(report)["mce"] == fastece.mce(digits["y_true"], digits["y_prob"])
    assert report["accuracy"] == np.mean(digits["y_prob"].argmax(1) == digits["y_true"])
    assert report["mean_confidence"] == pytest.approx(digits["y_prob"].max(1).mean(), abs=1e-6)


def test_shipped_files_are_small_and_whole():
    for name in ("digits_neural_network.npz", "digits_random_forest.npz"):
        digits = np.load(DIGITS / name)
        assert digits["y_prob"].shape == (1797, 10)
        assert np.allclose(digits["y_prob"].sum(1), 1, atol=1e-5)
        assert np.bincount(digits["y_true"]).min() > 150
        assert (DIGITS / name).stat().st_size < 300_000


def test_binary_csv(capsys, write):
    path = write("y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n")
    report = as_json(capsys, "report", path)
    assert values(report)["ece"] == fastece.ece([0, 1, 1], [0.1, 0.4, 0.9])
    assert (report["n"], report["n_classes"], report["setting"]) == (3, 2, "binary")
    assert report["accuracy"] == pytest.approx(2 / 3)
    assert report["mean_confidence"] == pytest.approx((0.9 + 0.6 + 0.9) / 3)


def test_class_vector_csv_in_any_column_order_with_string_labels(capsys, write):
    path = write('p_1,y_true,"p_0",p_2\n0.2,"ant",0.7,0.1\n0.8,bee,0.1,0.1\n0.3,cow,0.3,0.4\n')
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    assert values(as_json(capsys, "report", path))["ece"] == fastece.ece([0, 1, 2], p)
    report = as_json(capsys, "report", path, "--setting", "classwise", "--n-bins", 5)
    assert values(report)["ece"] == fastece.sce([0, 1, 2], p, n_bins=5)
    assert [d["setting"] for d in report["diagrams"]] == [
        "class 0 ('ant')",
        "class 1 ('bee')",
        "class 2 ('cow')",
    ]
    report = as_json(capsys, "report", path, "--setting", "1", "--n-bins", "sqrt")
    assert values(report)["ece"] == fastece.ece([0, 1, 2], p, setting=1, n_bins="sqrt")


def test_top_label_csv(capsys, write):
    path = write("true_label,pred_label,confidence\n3,3,0.9\n1,2,0.5\nx,x,0.7\n")
    report = as_json(capsys, "report", path)
    assert values(report)["ece"] == fastece.ece([1, 0, 1], [0.9, 0.5, 0.7])
    assert report["n_classes"] is None
    assert report["setting"].startswith("binary")
    assert report["accuracy"] == pytest.approx(2 / 3)
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


def test_parquet_without_pyarrow_says_what_to_install(capsys, tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in failure(capsys, "report", path)


def test_pairs_in_an_archive_and_labels_of_two_kinds(capsys, write, tmp_path):
    archive = tmp_path / "a.npz"
    np.savez(archive, true_label=[3, 1], pred_label=[3, 2], confidence=[0.9, 0.5])
    assert values(as_json(capsys, "report", archive))["ece"] == fastece.ece([1, 0], [0.9, 0.5])
    path = write("true_label,pred_label,confidence\n1,1,0.9\n2,x,0.8\n")
    assert as_json(capsys, "report", path)["accuracy"] == 0.5


def test_every_row_of_the_table_is_in_the_report(capsys, monkeypatch):
    class Brier:
        def prepare(self, sample, size):  # noqa: ARG002
            return (sample.y - sample.s) ** 2

        def evaluate(self, plan, c):
            return float(np.average(plan, weights=c))

    monkeypatch.setitem(fastece.ESTIMATORS, "brier", Brier())
    report = as_json(capsys, "demo", "--n-bins", 20)
    line = {m["name"]: m for m in report["measures"]}
    assert 0 < line["brier"]["value"] < 0.1
    assert line["brier"]["n_bins"] is None
    assert line["ece"]["n_bins"] == 20
    assert "brier" in run(capsys, "demo")[1]


def test_report_says_how_sure_it_is(capsys):
    digits = np.load(DIGITS / "digits_neural_network.npz")
    data = digits["y_true"], digits["y_prob"]
    report = as_json(capsys, "demo", quick=False)
    assert (report["n_resamples"], report["confidence_level"]) == (1000, 0.95)
    lines = {m["name"]: m for m in report["measures"]}
    for name in FOUR:
        result = fastece.bootstrap(*data, estimator=name, n_resamples=1000, rng=0)
        assert (lines[name]["low"], lines[name]["high"]) == result.confidence_interval
    assert 0 <= lines["mce"]["low"] < lines["mce"]["high"]
    test = fastece.calibration_test(*data, n_resamples=1000, rng=0)
    assert report["p_value"] == test.p_value
    out = run(capsys, "demo", quick=False)[1]
    assert "95 % interval" in out
    assert f"[{lines['ece']['low']:.5f}, {lines['ece']['high']:.5f}]" in out
    assert f"if calibrated: {report['p_value']:.4f}" in out
    assert run(capsys, "demo", quick=False)[1] == out


def test_intervals_of_a_small_file(capsys, write):
    path = write("y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n0,0.3\n")
    report = as_json(capsys, "report", path, "--resamples", 32, "--n-bins", 2)
    data = [0, 1, 1, 0], [0.1, 0.4, 0.9, 0.3]
    for line in report["measures"][:4]:
        result = fastece.bootstrap(*data, estimator=line["name"], n_bins=2, n_resamples=32, rng=0)
        assert (line["low"], line["high"]) == result.confidence_interval
    assert 0 < report["p_value"] <= 1


def test_options_of_the_intervals(capsys):
    fast = ["--resamples", 32]
    report = as_json(capsys, "demo", *fast, "--confidence-level", 0.5)
    other = as_json(capsys, "demo", *fast, "--confidence-level", 0.5, "--seed", 7)
    digits = np.load(DIGITS / "digits_neural_network.npz")
    for seed, found in ((0, report), (7, other)):
        result = fastece.bootstrap(
            digits["y_true"], digits["y_prob"], n_resamples=32, confidence_level=0.5, rng=seed
        )
        line = found["measures"][0]
        assert (line["low"], line["high"]) == result.confidence_interval
    assert "50 % interval" in run(capsys, "demo", *fast, "--confidence-level", 0.5)[1]
    code, out, _ = run(capsys, "demo", "--resamples", 0)
    assert code == 0
    assert "interval" not in out
    assert "p-value" not in out
    without = as_json(capsys, "demo", "--resamples", 0)
    assert without["p_value"] is None
    assert without["measures"][0]["low"] is without["measures"][0]["high"] is None
    assert values(without) == values(report)


@pytest.mark.parametrize("setting", ["classwise", "3"])
def test_intervals_in_other_settings(capsys, setting):
    report = as_json(capsys, "demo", "--resamples", 32, "--setting", setting)
    digits = np.load(DIGITS / "digits_neural_network.npz")
    result = fastece.bootstrap(
        digits["y_true"], digits["y_prob"], estimator="ece_ac", n_resamples=32, rng=0,
        setting=int(setting) if setting.isdecimal() else setting,
    )  # fmt: skip
    line = report["measures"][3]
    assert (line["low"], line["high"]) == result.confidence_interval


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resamples", "-1"], "n_resamples: must be"),
        (["--confidence-level", "95"], "confidence_level: must be"),
        (["--resamples", "32", "--seed", "-1"], "rng: a seed must not be negative"),
    ],
)
def test_bad_options_of_the_intervals(capsys, options, message):
    assert message in failure(capsys, "demo", *options)


def test_progress_of_resampling_on_a_terminal(capsys, monkeypatch):
    out = run(capsys, "demo", "--resamples", 2000)[1]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, same, err = run(capsys, "demo", "--resamples", 2000)
    assert (code, same) == (0, out)
    assert "resampling: 1/" in err
    assert err.endswith("\r\x1b[K")


def differences(comparison):
    return {d["name"]: d for d in comparison["differences"]}


def test_compare_two_models_of_the_digits(capsys):
    one, other = (DIGITS / f"digits_{m}.npz" for m in ("neural_network", "random_forest"))
    a, b = np.load(one), np.load(other)
    fast = ["--resamples", 32, "--seed", 3]
    for options, named in (([], {}), (["--setting", "classwise"], {"setting": "classwise"})):
        found = as_json(capsys, "compare", one, other, *fast, *options)
        assert (found["a"], found["b"], found["n"]) == (str(one), str(other), 1797)
        assert found["n_resamples"] == 32
        assert [*differences(found)] == [*fastece.ESTIMATORS, "mce"]
        for line in found["differences"][:4]:
            result = fastece.compare(
                a["y_true"], a["y_prob"], b["y_prob"], estimator=line["name"],
                n_resamples=32, rng=3, **named,
            )  # fmt: skip
            assert (line["a"], line["b"]) == (result.a, result.b)
            assert line["difference"] == result.difference
            assert (line["low"], line["high"]) == result.confidence_interval
            assert line["p_value"] == result.p_value
    code, out, err = run(capsys, "compare", one, other, *fast, "--confidence-level", 0.9)
    assert (code, err) == (0, "")
    for text in ("setting          confidence", "90 % interval", "ece_ac", "mce", "p-value"):
        assert text in out


def test_compare_a_model_with_itself(capsys, write):
    path = write("y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n")
    for line in as_json(capsys, "compare", path, path, "--resamples", 64)["differences"]:
        assert (line["difference"], line["p_value"]) == (0, 1)


def test_compare_top_labels_by_the_hits_of_each_model(capsys, write):
    a = write("true_label,pred_label,confidence\n3,3,0.9\n1,2,0.5\n0,0,0.8\n2,2,0.6\n", "a.csv")
    b = write("true_label,pred_label,confidence\n3,1,0.7\n1,1,0.6\n0,0,0.9\n2,2,0.3\n", "b.csv")
    found = as_json(capsys, "compare", a, b, "--resamples", 64, "--n-bins", 4)
    line = differences(found)["ece"]
    assert line["a"] == fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], n_bins=4)
    assert line["b"] == fastece.ece([0, 1, 1, 1], [0.7, 0.6, 0.9, 0.3], n_bins=4)
    assert found["setting"].startswith("binary")
    # The same from class vectors whose largest entries these are.
    p = np.full((2, 4, 4), 0.0)
    for k, rows in enumerate(([(3, 0.9), (2, 0.5), (0, 0.8), (2, 0.6)],
                              [(1, 0.7), (1, 0.6), (0, 0.9), (2, 0.3)])):  # fmt: skip
        for i, (label, confidence) in enumerate(rows):
            p[k, i] = (1 - confidence) / 3
            p[k, i, label] = confidence
    result = fastece.compare([3, 1, 0, 2], *p, n_resamples=64, n_bins=4, rng=0)
    assert (line["low"], line["high"]) == pytest.approx(result.confidence_interval)
    found = as_json(capsys, "compare", a, b, "--classes", 4, "--resamples", 9)
    value = fastece.ece([1, 0, 1, 1], [0.9, 0.5, 0.8, 0.6], score_range=(0.25, 1.0))
    assert differences(found)["ece"]["a"] == value


BINARY = "y_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("y_true,y_prob\n0,0.1\n0,0.4\n0,0.9\n", [], "has 1 in row 2; got 0"),
        ("y_true,y_prob\n0,0.1\n1,0.4\n", [], "which has 3; got 2"),
        ("y_true,y_prob\n0,0.1\n1,0.4\n1,1.9\n", [], r"b.csv: y_prob\[2\] is 1.9"),
        ("true_label,pred_label,confidence\n0,0,0.5\n", [], "kind of columns"),
        ("y_true,p_0,p_1\n0,0.5,0.5\n1,0.5,0.5\n1,0.5,0.5\n", ["--setting", "5"], "class index"),
        ("y_true,p_0,p_1,p_2\n0,1,0,0\n1,1,0,0\n1,0,0,1\n", ["--setting", "classwise"],
         "must have the classes and the setting of"),
        (BINARY, ["--resamples", "0"], "n_resamples: must be"),
        (BINARY, ["--n-bins", "0"], "n_bins: must be"),
        (BINARY, ["--classes", "3"], "--classes goes with"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_compared(capsys, write, text, options, message):
    a, b = write(BINARY, "a.csv"), write(text, "b.csv")
    assert re.search(message, failure(capsys, "compare", a, b, *options))


def test_top_labels_have_no_other_setting(capsys, write):
    path = write("true_label,pred_label,confidence\n0,0,0.5\n")
    assert "class vector" in failure(capsys, "compare", path, path, "--setting", "classwise")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (20, 50))
    monkeypatch.setattr(bench, "BOOTSTRAP_SIZES", (30, 40))
    monkeypatch.setattr(yardstick, "SHORTEST_ROUND", 0)
    monkeypatch.setattr(yardstick, "CALL_ROWS", 0)
    monkeypatch.setattr(yardstick, "LEAST_REPLICATES", 32)
    monkeypatch.setattr(yardstick, "MOST_LOOPS", 3)


@pytest.mark.usefixtures("small")
def test_bench_times_every_row_of_the_table(capsys):
    result = as_json(capsys, "bench")
    settings = ("binary", "confidence", "classwise")
    cases = [(r["n"], r["setting"], r["estimator"]) for r in result["rows"]]
    assert cases == [(n, s, e) for n in (20, 50) for s in settings for e in fastece.ESTIMATORS]
    for row in result["rows"]:
        assert row["idiom"] == row["estimator"]
        assert row["seconds"] > 0
        assert row["ratio"] > 0
        assert row["scores_per_second"] == pytest.approx(row["n"] / row["seconds"])
        assert row["ns_per_score"] == pytest.approx(1e9 * row["seconds"] / row["n"])
    drawn = [(r["n"], r["estimator"]) for r in result["bootstrap"]]
    assert drawn == [(n, e) for n in (30, 40) for e in fastece.ESTIMATORS]
    for row in result["bootstrap"]:
        assert (row["idiom"], row["replicates"]) == (row["estimator"], 32)
        assert row["seconds"] > 0
        assert row["ratio"] > 0
        assert row["replicates_per_second"] == pytest.approx(1 / row["seconds"])
        assert row["samples_per_second"] == pytest.approx(row["n"] / row["seconds"])
        assert row["ns_per_sample"] == pytest.approx(1e9 * row["seconds"] / row["n"])
    assert result["machine"]["fastece"] == fastece.__version__
    assert result["machine"]["threads"] == 1
    assert result["machine"]["processor"]


@pytest.mark.usefixtures("small")
def test_bench_in_words_and_as_a_table(capsys):
    code, out, err = run(capsys, "bench")
    assert (code, err) == (0, "")
    calls, replicates = out.split("\n\n")
    where, _, *lines = calls.splitlines()
    assert where.startswith(f"fastece {fastece.__version__}, Python ")
    assert len(lines) == 1 + 2 * 3 * 5
    assert lines[-1].split()[:3] == ["50", "classwise", "ece_kde"]
    title, head, *lines = replicates.splitlines()
    assert title.startswith("bootstrap")
    assert len(lines) == 2 * 5
    assert lines[-1].split()[:2] == ["40", "ece_kde"]
    assert len({line.rindex(line.split()[-1]) for line in (head, *lines)}) == 1  # in columns
    code, out, err = run(capsys, "bench", "--markdown")
    table = [line.split("|") for line in out.splitlines() if line.startswith("|")]
    assert table[0] == ["", " setting ", " estimator ", " 20 scores ", " 50 scores ", ""]
    assert table[17] == ["", " replicate of ", " 30 rows ", " 40 rows ", ""]
    assert len(table) == 2 + 3 * 5 + 2 + 5
    assert [len(line) for line in table] == [6] * 17 + [5] * 7


@pytest.mark.usefixtures("small")
def test_bench_names_the_idiom_of_an_estimator_that_has_none(capsys, monkeypatch):
    monkeypatch.setitem(fastece.ESTIMATORS, "fifteen", fastece.Binned(n_bins=15))
    result = as_json(capsys, "bench")
    for rows in (result["rows"], result["bootstrap"]):
        assert {r["idiom"] for r in rows if r["estimator"] == "fifteen"} == {"ece"}
    page = run(capsys, "bench", "--markdown")[1]
    assert "| classwise | `fifteen` (ece) |" in page
    assert "\n| `fifteen` (ece) |" in page


@pytest.mark.usefixtures("small")
def test_bench_tells_a_terminal_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = run(capsys, "bench")
    assert code == 0
    assert "1/40 binary ece, 20 scores" in err
    assert "40/40 bootstrap ece_kde, 40 scores" in err
    assert err.endswith("\x1b[K")
    assert "\x1b" not in out


def test_awkward_but_whole_csv_files(capsys, write):
    expected = fastece.ece([0, 1, 1], [0.1, 0.4, 0.9])
    for text in (
        "\ufeffy_true,y_prob\n0,0.1\n1,0.4\n1,0.9\n",
        "y_true,y_prob\r\n0,0.1\r\n\r\n1,0.4\r\n1,0.9",
        '\n"y_true", y_prob ,"a\nb"\n0, 0.1,x\n1, 0.4,"#, y"\n"1",0.9,z\n',
    ):
        assert values(as_json(capsys, "report", write(text)))["ece"] == expected


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe is closed differently")
def test_a_reader_that_has_seen_enough_is_no_error():
    options = ["demo", "--n-bins", "3000", "--resamples", "0"]
    code = f"import sys; from fastece.cli.commands import main; sys.exit(main({options}))"
    pipe = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert pipe.stdout.readline().startswith(b"handwritten")
    pipe.stdout.close()
    assert pipe.stderr.read() == b""
    pipe.stderr.close()
    assert pipe.wait() == 0


def test_empty_bins_are_null_in_json(capsys, write):
    path = write("y_true,y_prob\n1,0.9\n")
    diagram = as_json(capsys, "report", path)["diagrams"][0]
    assert diagram["score"][0] is None
    assert diagram["count"][13] == 1


def test_rows_that_do_not_sum_to_one_are_told_on_stderr(capsys, write):
    path = write("y_true,p_0,p_1\n1,0.9,0.3\n0,0.5,0.5\n")
    code, out, err = run(capsys, "report", path)
    assert code == 0
    assert "ece" in out
    assert err.startswith("fastece: warning: y_prob: 1 of 2 rows do not sum to 1")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("y_true,y_prob\n0,1.5\n", [], r"y_prob\[0\] is 1.5"),
        ("y_true,y_prob\n0,high\n", [], "could not convert string 'high'"),
        ("y_true,y_prob\n0,0.5\n2,0.5\n", [], r"y_true\[1\] is 2"),
        ("y_true,y_prob\n", [], "empty"),
        ("", [], "no column 'y_true'"),
        ("a,b\n0,1\n", [], "no column 'y_true', it has a, b; expected y_true,y_prob or"),
        ("y_true,y_prob\n0,0.1\n,0.9\n", [], "y_true of row 2 is blank"),
        ("y_true,y_prob\n0,0.1\n1,0.2,0.3\n", [], "row 2 has 3 cells, the header has 2"),
        ("y_true,y_prob,y_prob\n0,0.1,0.2\n", [], "two columns are named 'y_prob'"),
        (
            "true_label,pred_label,confidence\n0,0,0.5\n",
            ["--setting", "confidence"],
            "class vector",
        ),
        ("true_label,pred_label,confidence\n0,0,0.5\n", ["--from-logits"], "no logits"),
        ("y_true,p_0,p_2\n0,0.1,0.9\n", [], "no column 'p_1'"),
        ("y_true,y_prob\n0,0.5\n", ["--y-prob", "score"], "no column 'score'"),
        ("y_true,y_prob\n0,0.5\n", ["--classes", "3"], "--classes goes with"),
        ("true_label,pred_label,confidence\n0,0,0.5\n", ["--classes", "1"], "from 2 to"),
        ("y_true,y_prob\n0,0.5\n", ["--n-bins", "0"], "n_bins: must be"),
        ("y_true,y_prob\n0,0.5\n", ["--setting", "top"], "known: 'auto', 'binary'"),
        ("y_true,y_prob\n0,0.5\n", ["--setting", "-1"], "setting: must be a class index"),
    ],
)
def test_bad_files_are_refused_in_one_line(capsys, write, text, options, message):
    assert re.search(message, failure(capsys, "report", write(text), *options))


def test_files_that_cannot_be_read(capsys, tmp_path, write):
    assert "nothing.csv" in failure(capsys, "report", tmp_path / "nothing.csv")
    assert "broken.npz" in failure(capsys, "report", write("not a zip", "broken.npz"))
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, np.zeros(3))
    assert "array.npz: is no NPZ" in failure(capsys, "report", tmp_path / "array.npz")
    np.savez(tmp_path / "cut.npz", y_true=np.zeros(500), y_prob=np.zeros(500))
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    assert "cut.npz" in failure(capsys, "report", tmp_path / "cut.npz")
    assert "wide.csv" in failure(capsys, "report", write("x" * 200_000, "wide.csv"))
    assert "broken.parquet" in failure(capsys, "report", write("not Parquet", "broken.parquet"))


@pytest.mark.parametrize("arguments", [[], ["report"], ["nothing"], ["demo", "--n-bins", "many"]])
def test_wrong_arguments_exit_with_2_and_one_line(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_installed_command_and_the_module_are_the_same():
    module = subprocess.run(
        [sys.executable, "-m", "fastece", "demo", "--json"],
        capture_output=True, check=True,
    )  # fmt: skip
    script = Path(sys.executable).parent / "fastece"
    if not script.exists():
        pytest.skip("fastece is not installed beside this interpreter")
    command = subprocess.run([script, "demo", "--json"], capture_output=True, check=True)
    assert command.stdout == module.stdout
    assert json.loads(command.stdout)["n"] == 1797


def test_columns_of_other_files_are_whole(capsys, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"y_true": [0, None, 1], "y_prob": [0.1, 0.4, 0.9]}), path)
    assert "'y_true' has missing values" in failure(capsys, "report", path)
    np.savez(tmp_path / "a.npz", true_label=[1, 2], pred_label=[1], confidence=[0.5, 0.5])
    assert "pred_label has shape (1,), true_label has (2,)" in failure(
        capsys, "report", tmp_path / "a.npz"
    )


def test_missing_and_mixed_labels_of_pairs_are_refused(capsys, write, tmp_path):
    text = "true_label,pred_label,confidence\n1,1,0.8\nnan,nan,0.9\n"
    assert "true_label of row 2 is nan" in failure(capsys, "report", write(text))
    big = "true_label,pred_label,confidence\n9007199254740993,9007199254740992,0.8\n"
    assert as_json(capsys, "report", write(big))["accuracy"] == 0
    archive = tmp_path / "a.npz"
    np.savez(archive, true_label=[0, 1], pred_label=["0", "1"], confidence=[0.5, 0.5])
    assert "pred_label <U1" in failure(capsys, "report", archive)
    np.savez(archive, true_label=[0, 1], pred_label=[0, 1], confidence=[[0.5, 0.5]] * 2)
    assert "confidence has shape (2, 2)" in failure(capsys, "report", archive)
    np.savez(archive, y_true=[0, 1], y_prob=[[0.5], [0.5]])
    assert "one column" in failure(capsys, "report", archive)
    assert "p_0 is the only" in failure(capsys, "report", write("y_true,p_0\n0,0.5\n"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fastece", "demo", "--resamples", "0"], stdout=full,
            stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("is_terminal", [False, True])
def test_warmup_says_what_is_kept_and_shows_progress_on_a_terminal(
    capsys, monkeypatch, is_terminal
):
    def warm_up(*, must_keep, progress):
        assert must_keep
        assert (progress is not None) == is_terminal
        if progress:
            progress("3 signatures")
        return warmup.WarmUp(31.24, "/opt/fastece/key", kernels=14, signatures=42, cached=2)

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    code, out, err = run(capsys, "warmup")
    assert code == 0
    assert out == (
        "42 signatures of 14 kernels in 31.2 s (2 were there already), kept in /opt/fastece/key\n"
    )
    assert err == ("\r\x1b[K3 signatures\r\x1b[K" if is_terminal else "")
    code, out, _ = run(capsys, "warmup", "--json")
    assert json.loads(out) == {
        "seconds": 31.24, "directory": "/opt/fastece/key", "kernels": 14, "signatures": 42,
        "cached": 2,
    }  # fmt: skip


def test_warmup_that_cannot_keep_anything_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr(cache, "FAILURES", ["no space; set FASTECE_CACHE_DIR"])
    assert "FASTECE_CACHE_DIR" in failure(capsys, "warmup")


def test_report_shows_the_bandwidth_that_was_used(capsys):
    digits = np.load(DIGITS / "digits_neural_network.npz")
    for setting, said in (("confidence", "bandwidth"), ("classwise", "mean bandwidth")):
        report = as_json(capsys, "demo", "--setting", setting)
        line = {m["name"]: m for m in report["measures"]}
        curves = fastece.reliability_curve(digits["y_true"], digits["y_prob"], setting=setting)
        curves = curves if setting == "classwise" else [curves]
        used = np.mean([curve.bandwidth for curve in curves])
        assert line["ece_kde"]["bandwidth"] == pytest.approx(used)
        assert line["ece"]["bandwidth"] is line["mce"]["bandwidth"] is None
        out = run(capsys, "demo", "--setting", setting)[1]
        assert f", {said} {used:.4g}\n" in out
        assert out.count("bandwidth ") == 1
        lines = [x for x in out.splitlines() if re.match("  (ece|mce|error)", x)]
        assert {re.match(r"  \w+ +[\w.]+", x).end() for x in lines} == {18}  # in columns


SMALL = "y_true,y_prob\n" + "".join(f"{i % 3 % 2},{(i % 20 + 0.5) / 20}\n" for i in range(60))
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_report_draws_a_picture(capsys, write, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    path, picture = write(SMALL), tmp_path / f"a{suffix}"
    alone = run(capsys, "report", path)[1]
    code, out, err = run(capsys, "report", path, "--plot", picture)
    assert (code, err) == (0, "")
    assert out == f"{alone}\npicture: {picture}\n"
    assert picture.read_bytes().startswith(STARTS[suffix.lower()])
    report = as_json(capsys, "report", path, "--plot", picture)
    assert report.pop("plot") == str(picture)
    assert report == as_json(capsys, "report", path)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are written."""
    pytest.importorskip("matplotlib")
    figures = []
    save = cli.save_picture
    monkeypatch.setattr(cli, "save_picture", lambda f, path: (figures.append(f), save(f, path)))
    return figures


def panels_of(figure):
    return [ax.get_title().partition(",")[0] for ax in figure.axes]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_picture_of_a_report_has_the_diagram_and_the_curve(capsys, write, tmp_path, drawn):
    path = write(SMALL)
    for count, band in ((0, []), (32, ["90 % of resamples", "median of resamples"])):
        options = ["--resamples", count, "--confidence-level", "0.9"]
        as_json(capsys, "report", path, *options, "--plot", tmp_path / "a.png")
        left, right = drawn[-1].axes
        assert (left.get_ylabel(), right.get_ylabel()) == (
            "frequency of hits", "probability of a hit"
        )  # fmt: skip
        assert [name for name in legend_of(right) if "resamples" in name] == band
        # long paths are cut at the front
        assert drawn[-1].get_suptitle().endswith("predictions.csv")


def test_picture_of_classes_has_their_diagrams(capsys, tmp_path, drawn):
    options = ["--setting", "classwise", "--plot", tmp_path / "a.svg"]
    assert run(capsys, "demo", *options)[0] == 0
    assert panels_of(drawn[0]) == [f"class {k}" for k in range(10)]
    assert drawn[0].get_suptitle() == "handwritten digits, a small neural network"


def test_curves_of_a_picture_have_no_more_resamples_than_can_be_seen(
    capsys, monkeypatch, write, tmp_path, drawn
):
    monkeypatch.setattr(cli, "BAND_RESAMPLES", 16)
    asked = []
    make = cli.make_curves
    monkeypatch.setattr(cli, "make_curves", lambda **kw: (asked.append(kw), make(**kw))[1])
    for count in (0, 8, 32):
        as_json(capsys, "report", write(SMALL), "--resamples", count, "--plot", tmp_path / "a.png")
    assert [kw["n_resamples"] for kw in asked] == [0, 8, 16]
    assert len(drawn) == 3


@pytest.mark.parametrize("command", ["report", "curve"])
def test_pictures_that_cannot_be_written_are_refused_before_anything_is_read(
    capsys, monkeypatch, tmp_path, command
):
    (tmp_path / "folder.png").mkdir()
    for name, message in (
        ("a.gif", "must end in .png, .svg or .pdf"),
        ("png", "must end in .png, .svg or .pdf"),
        ("nowhere/a.png", "there is no folder"),
        ("folder.png", "cannot be written"),
    ):
        picture = tmp_path / name
        err = failure(capsys, command, tmp_path / "nothing.csv", "--plot", picture)
        assert "--plot: " in err
        assert message in err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    err = failure(capsys, command, tmp_path / "nothing.csv", "--plot", tmp_path / "a.png")
    assert "pip install matplotlib" in err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_a_warning_is_printed_once_however_often_the_rows_are_read(capsys, write, tmp_path):
    pytest.importorskip("matplotlib")
    path = write("y_true,p_0,p_1\n0,0.7,0.4\n1,0.5,0.5\n1,0.2,0.8\n0,0.6,0.4\n")
    code, _, err = run(capsys, "report", path, "--plot", tmp_path / "a.png")
    assert code == 0
    assert err.count("\n") == err.count("fastece: warning: ") == 1


def test_curve_is_that_of_python(capsys, write):
    path = write(SMALL)
    options = ["--at", "0.8,0.25", "--resamples", 64, "--seed", 5, "--confidence-level", 0.9]
    found = as_json(capsys, "curve", path, *options, "--bandwidth", 0.1, "--kernel", "triweight")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    curve = fastece.reliability_curve(
        rows[:, 0], rows[:, 1], bandwidth=0.1, kernel="triweight", n_resamples=64, rng=5,
        confidence_level=0.9,
    )  # fmt: skip
    assert (found["title"], found["n"], found["setting"]) == (str(path), 60, "binary")
    assert (found["n_resamples"], found["confidence_level"]) == (64, 0.9)
    (table,) = found["curves"]
    assert (table["value"], table["bandwidth"]) == pytest.approx((curve.value, 0.1))
    assert table["estimator"] == curve.estimator
    assert [point["score"] for point in table["points"]] == [0.8, 0.25]
    for point in table["points"]:
        assert point["probability"] == pytest.approx(curve(point["score"]))
        ends = curve.interval(point["score"])
        assert (point["low"], point["high"]) == pytest.approx(tuple(ends))
        assert point["supported"] is True
    code, out, err = run(capsys, "curve", path, *options, "--bandwidth", 0.1)
    assert (code, err) == (0, "")
    for text in ("90 % interval", "64 resamples", "bandwidth 0.1", "0.2500", "supported"):
        assert text in out
    assert run(capsys, "curve", path, *options, "--bandwidth", 0.1)[1] == out


def test_curve_without_resamples_and_without_scores(capsys, write):
    path = write(SMALL)
    found = as_json(capsys, "curve", path, "--resamples", 0)
    points = found["curves"][0]["points"]
    assert [point["score"] for point in points] == pytest.approx(np.linspace(0, 1, 11))
    assert {(point["low"], point["high"]) for point in points} == {(None, None)}
    out = run(capsys, "curve", path, "--resamples", 0)[1]
    assert "interval" not in out
    assert out.count("\n") == 3 + 1 + 2 + 11


def test_curve_of_top_labels_and_of_classes(capsys, write):
    text = "".join(f"{i % 4},{i % 4 if i % 3 else 9},{0.4 + i / 100}\n" for i in range(50))
    path = write(f"true_label,pred_label,confidence\n{text}")
    options = ["--resamples", 0, "--classes", 4]
    found = as_json(capsys, "curve", path, *options)
    assert found["setting"].startswith("binary (is the top label right")
    scores = [point["score"] for point in found["curves"][0]["points"]]
    assert scores == pytest.approx(np.linspace(0.25, 1, 11))
    (point,) = as_json(capsys, "curve", path, *options, "--at", 0.1)["curves"][0]["points"]
    assert point["supported"] is False  # there are no scores below 1/4
    assert "class vector" in failure(capsys, "curve", path, "--setting", "classwise")
    rows = "".join(f"{'ab'[i % 2]},{i / 50},{1 - i / 50}\n" for i in range(50))
    path = write(f"y_true,p_0,p_1\n{rows}")
    options = ["--resamples", 0, "--setting", "classwise"]
    found = as_json(capsys, "curve", path, *options, "--at", 0.5)
    assert found["setting"] == "classwise"
    assert [table["setting"] for table in found["curves"]] == ["class 0 ('a')", "class 1 ('b')"]
    assert run(capsys, "curve", path, *options)[1].count("supported") == 2


def test_picture_of_a_curve(capsys, write, tmp_path, drawn):
    rows = "".join(f"{i % 2},{i / 50},{1 - i / 50}\n" for i in range(50))
    path, picture = write(f"y_true,p_0,p_1\n{rows}"), tmp_path / "a.pdf"
    code, out, err = run(capsys, "curve", path, "--resamples", 16, "--plot", picture)
    assert (code, err) == (0, "")
    assert out.endswith(f"\n\npicture: {picture}\n")
    assert picture.read_bytes().startswith(b"%PDF")
    assert panels_of(drawn[0]) == ["confidence"]
    options = ["--resamples", 0, "--setting", "classwise"]
    found = as_json(capsys, "curve", path, *options, "--plot", picture)
    assert found["plot"] == str(picture)
    assert panels_of(drawn[1]) == ["class 0", "class 1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at", "1.2"], "scores in [0, 1]"),
        (["--at", "-0.1"], "scores in [0, 1]"),
        (["--at", "nan"], "scores in [0, 1]"),
        (["--at", "0.8,x"], "scores in [0, 1]"),
        (["--at", ""], "scores in [0, 1]"),
        (["--bandwidth", "wide"], "a number or"),
    ],
)
def test_bad_scores_and_bandwidths_are_refused_as_they_are_typed(capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        main(["curve", "nothing.csv", *options])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bandwidth", "-1"], "bandwidth"),
        (["--bandwidth", "nan"], "bandwidth"),
        (["--kernel", "box"], "kernel"),
        (["--setting", "confident"], "setting"),
        (["--resamples", "-1"], "n_resamples: must be"),
        (["--confidence-level", "95"], "confidence_level: must be"),
        (["--classes", "3"], "--classes goes with"),
    ],
)
def test_bad_options_of_a_curve(capsys, write, options, message):
    assert message in failure(capsys, "curve", write(SMALL), *options)
