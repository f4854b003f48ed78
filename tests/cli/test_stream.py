"""The report of a stream: its numbers are those of the accumulator and of all rows at once, within
what it promises; what cannot be read is named, or left out and counted."""

import json
import re

import numpy as np
import pytest

import fastece
from fastece.files import formats, predictions
from helpers.command_line import PAIRS, SMALL, as_json, failure, run, text, values
from helpers.prediction_files import packed

N = 4000


@pytest.fixture
def tiny(monkeypatch):
    """Batches of a few hundred rows."""
    monkeypatch.setattr(formats, "ROWS", 300)
    monkeypatch.setattr(formats, "CHARACTERS", 3000)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 1, N)
    return (rng.random(N) < p**1.3).astype(int), p


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 2, 1], N)
    return (p.cumsum(1) < rng.random((N, 1))).sum(1), p


def csv(y, p):
    names = ["y_prob"] if p.ndim == 1 else [f"p_{k}" for k in range(p.shape[1])]
    rows = zip(y.tolist(), p.reshape(len(p), -1).tolist(), strict=True)
    return "\n".join(
        [",".join(["y_true", *names]), *(",".join(map(repr, [a, *b])) for a, b in rows)]
    )


@pytest.fixture
def file_of(tmp_path):
    def write(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def check_errors(report, y, p, **options):
    """Errors are those of all rows: of bins of equal width to 1e-12, others about."""
    found = values(report)
    for name in ("ece", "ece_c"):
        assert found[name] == pytest.approx(fastece.ece(y, p, estimator=name, **options), abs=1e-12)
    assert found["mce"] == pytest.approx(fastece.mce(y, p, **options), abs=1e-12)
    kde = fastece.ece(y, p, estimator="ece_kde", **options)
    assert found["ece_kde"] == pytest.approx(kde, rel=2e-3)
    for name in ("ece_a", "ece_ac"):
        assert found[name] == pytest.approx(fastece.ece(y, p, estimator=name, **options), abs=2e-3)


@pytest.mark.usefixtures("tiny")
def test_a_stream_has_the_errors_of_all_rows(capsys, file_of, binary):
    y, p = binary
    path = file_of(csv(y, p))
    report = as_json(capsys, "report", path, "--stream")
    check_errors(report, y, p)
    whole = as_json(capsys, "report", path)
    for name in ("n", "n_classes", "setting", "pairs"):
        assert report[name] == whole[name]
    for name in ("accuracy", "mean_confidence"):
        assert report[name] == pytest.approx(whole[name], abs=1e-12)
    assert report["scores"][0]["value"] == pytest.approx(fastece.brier_score(y, p), abs=1e-9)
    first, other = report["measures"][0], whole["measures"][0]
    assert [first[x] for x in ("value", "low", "high")] == pytest.approx(
        [other[x] for x in ("value", "low", "high")], abs=1e-3
    )
    assert report["verdict"] == "miscalibrated"
    assert report["headline"].startswith("Miscalibrated: probabilities too high by 0.0")
    over, under = report["direction"]["over"], report["direction"]["under"]
    assert over + under == pytest.approx(values(report)["ece_bayes"], abs=1e-9)
    assert report["direction"]["mean_gap"] == pytest.approx((y - p).mean(), abs=1e-9)
    assert report["stream"]["batches"] > 5
    assert report["stream"]["rows"] == N


def test_a_stream_has_the_numbers_of_its_accumulator(capsys, file_of, vectors):
    y, p = vectors
    report = as_json(capsys, "report", file_of(csv(y, p)), "--stream")
    rows = fastece.Accumulator(3).update(y, p)
    found = values(report)
    for name in ("ece", "ece_a", "ece_c", "ece_ac", "ece_kde"):
        assert found[name] == rows.ece(name)
    answer = rows.estimate()
    assert found["ece_bayes"] == answer.value
    assert (
        report["measures"][0]["low"],
        report["measures"][0]["high"],
    ) == answer.confidence_interval
    assert report["scores"][0]["value"] == rows.brier_score()
    assert report["accuracy"] == pytest.approx((p.argmax(1) == y).mean(), abs=1e-12)
    assert report["mean_confidence"] == pytest.approx(p.max(1).mean(), abs=1e-12)
    assert report["setting"] == "confidence"


@pytest.mark.usefixtures("tiny")
def test_classes_one_by_one(capsys, file_of, vectors):
    y, p = vectors
    path = file_of(csv(y, p))
    report = as_json(capsys, "report", path, "--stream", "--setting", "classwise")
    check_errors(report, y, p, setting="classwise")
    assert sorted(row["label"] for row in report["classes"]["rows"]) == [0, 1, 2]
    assert [row["n"] for row in report["classes"]["rows"]] == pytest.approx(
        [(y == row["label"]).sum() for row in report["classes"]["rows"]], abs=1e-6
    )
    assert report["accuracy"] == pytest.approx((p.argmax(1) == y).mean(), abs=1e-12)
    out = text(capsys, "report", path, "--stream", "--setting", "classwise")
    assert "The intervals hold jointly" in out
    assert "classes are miscalibrated" in out or "No class is miscalibrated" in out


def test_one_class(capsys, file_of, vectors):
    y, p = vectors
    report = as_json(capsys, "report", file_of(csv(y, p)), "--stream", "--setting", 1)
    assert values(report)["ece"] == pytest.approx(fastece.ece(y, p, setting=1), abs=1e-12)
    assert report["accuracy"] == pytest.approx((p.argmax(1) == y).mean(), abs=1e-12)


def test_logits_and_weights(capsys, file_of, binary):
    y, p = binary
    rows = zip(
        y.tolist(), np.log(p / (1 - p)).tolist(), (1 + np.arange(N) % 3).tolist(), strict=True
    )
    path = file_of("y_true,y_prob,w\n" + "".join(f"{a},{b!r},{c}\n" for a, b, c in rows))
    report = as_json(capsys, "report", path, "--stream", "--from-logits", "--weights", "w")
    weight = 1 + np.arange(N) % 3
    assert values(report)["ece"] == pytest.approx(fastece.ece(y, p, sample_weight=weight), abs=1e-9)
    assert report["n_effective"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=1e-6)


@pytest.mark.usefixtures("tiny")
def test_pairs_are_a_stream_too(capsys, file_of):
    rng = np.random.default_rng(2)
    s = rng.random(2000).round(6)
    hit = rng.random(2000) < s
    rows = "".join(
        f"cat,{'cat' if h else 'dog'},{c}\n" for h, c in zip(hit, s.tolist(), strict=True)
    )
    report = as_json(capsys, "report", file_of(PAIRS + rows), "--stream")
    assert values(report)["ece"] == pytest.approx(fastece.ece(hit, s), abs=1e-12)
    assert report["accuracy"] == pytest.approx(hit.mean(), abs=1e-12)
    assert (report["pairs"], report["n_classes"]) == (True, None)


def test_the_page_says_that_it_streamed(capsys, file_of):
    out = text(capsys, "report", file_of(SMALL), "--stream")
    for part in ("Streamed", "files    1", "rows     60", "are exact", "0.2 %",
                 "Brier", "(0.933, 1.000]", "Parts of ece_bayes"):  # fmt: skip
        assert part.lower() in out.lower()
    assert max(map(len, out.splitlines())) <= 130


def test_a_small_file_is_read_whole(capsys, file_of, monkeypatch):
    path = file_of(SMALL)
    assert "Streamed" not in text(capsys, "report", path)
    monkeypatch.setattr(predictions, "MOST_ROWS", 10)
    assert "Streamed" in text(capsys, "report", path)


def test_several_files_patterns_and_folders_are_one_stream(capsys, file_of, tmp_path, binary):
    y, p = binary
    file_of(csv(y[:1000], p[:1000]), "1.csv")
    file_of(packed(csv(y[1000:1500], p[1000:1500]).encode()), "2.csv.gz")
    np.save(tmp_path / "3.npy", np.column_stack([y[1500:], p[1500:]]))
    one = as_json(capsys, "report", file_of(csv(y, p), "whole.txt"), "--stream")
    (tmp_path / "whole.txt").unlink()
    names = [str(tmp_path / name) for name in ("1.csv", "2.csv.gz", "3.npy")]
    for files in (names, [f"{tmp_path}/?.*"], [tmp_path]):
        report = as_json(capsys, "report", *files)
        assert report["measures"] == one["measures"]
        assert [file["rows"] for file in report["stream"]["by_file"]] == [1000, 500, N - 1500]
    assert "and 2 more files" in text(capsys, "report", tmp_path)


@pytest.mark.usefixtures("tiny")
def test_parquet(capsys, tmp_path, binary):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    y, p = binary
    table = pa.table({"y_true": y.astype(np.int8), "y_prob": p.astype(np.float32)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1000)
    report = as_json(capsys, "report", tmp_path / "a.parquet", "--stream")
    check_errors(report, y, p.astype(np.float32))


def test_a_picture(capsys, file_of, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "a.svg"
    text(capsys, "report", file_of(SMALL), "--stream", "--plot", picture)
    assert picture.read_text(encoding="utf-8").count("<svg") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "g"], "no column 'g', it has .*; --by takes"),
        (["--groups", "g"], "--groups: needs all rows at once"),
        (["--resamples", "99"], "--resamples: needs all rows at once"),
        (["--estimator", "log_loss"], "LogLoss"),
        (["--estimator", "nonsense"], "nonsense"),
        (["--classes", "3"], "--classes: goes with"),
        (["--y-prob", "z"], "no column 'z'"),
    ],
)
def test_what_a_stream_cannot_answer_is_refused(capsys, file_of, arguments, message):
    assert re.search(message, failure(capsys, "report", file_of(SMALL), "--stream", *arguments))


def test_bad_input_of_a_stream_is_one_line(capsys, file_of, tmp_path):
    assert "No such file" in failure(capsys, "report", tmp_path / "none.csv", "--stream")
    assert "no file has such a name" in failure(capsys, "report", f"{tmp_path}/*.csv")
    assert "goes with --stream" in failure(capsys, "report", file_of(SMALL), "--on-error", "skip")
    pairs = file_of(PAIRS + "a,a,0.5\n", "p.csv")
    assert "p.csv: from line 2 on: y_prob: must have the kind of columns" in failure(
        capsys, "report", file_of(SMALL), pairs
    )


def lines_of(n, **bad):
    """A file of n rows, some of which are others: by their line, the header is 1."""
    rows = [f"{i % 3 % 2},{(i % 20 + 0.5) / 20}" for i in range(n)]
    for place, row in bad.items():
        rows[int(place.strip("_")) - 2] = row
    return "\n".join(["y_true,y_prob", *rows, ""])


BAD = {
    "no number": ("1,x", "line 777, column y_prob: must be a number, got 'x'"),
    "above 1": ("1,1.5", "line 777, column y_prob: "),
    "no class": ("2,0.5", "line 777, column y_true: labels must be from 0 to 1, got 2"),
    "text": ("cat,0.5", "column y_true: must be the number of a class"),
    "cells": ("1,0.5,3", "line 777: must have 2 cells"),
    "missing": ("1,", "line 777, column y_prob: must not be missing"),
}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_in_the_middle_stops_or_is_skipped(capsys, file_of, name):
    row, message = BAD[name]
    path = file_of(lines_of(2000, _777=row))
    assert f"{path}: " in (line := failure(capsys, "report", path, "--stream"))
    assert message in line
    report = as_json(capsys, "report", path, "--stream", "--on-error", "skip")
    assert (report["n"], report["stream"]["rows"], report["stream"]["skipped"]) == (1999, 1999, 1)
    assert "line 777" in report["stream"]["by_file"][0]["reason"]
    rows = lines_of(2000).splitlines()
    good = file_of("\n".join(rows[:776] + rows[777:]), "good.csv")
    assert report["measures"] == as_json(capsys, "report", good, "--stream")["measures"]


@pytest.mark.usefixtures("tiny")
def test_all_bad_rows_are_counted_and_the_first_is_told(capsys, file_of):
    bad = dict.fromkeys(["_2", "_3", "_500", "_501", "_1200", "_2001"], "1,x")
    path = file_of(lines_of(2000, **bad))
    out = text(capsys, "report", path, "--stream", "--on-error", "skip")
    assert re.search("rows skipped +6\n", out)
    assert "skipped 6 rows; first:" in " ".join(out.split())
    assert "line 2, column y_prob: must be a number, got 'x'" in " ".join(out.split())


@pytest.mark.usefixtures("tiny")
def test_bad_objects_are_skipped(capsys, file_of):
    rows = [json.dumps({"y_true": i % 2, "y_prob": 0.5}) for i in range(400)]
    rows[0], rows[200], rows[399] = "{", "[]", rows[399][:-1]
    report = as_json(capsys, "report", file_of("\n".join(rows), "a.jsonl"), "--stream",
                     "--on-error", "skip")  # fmt: skip
    assert (report["n"], report["stream"]["skipped"]) == (397, 3)


def test_a_file_of_bad_rows_is_not_tried_to_its_end(capsys, file_of):
    bad = file_of("y_true,y_prob\n" + "cat,0.5\n" * 3000)
    said = failure(capsys, "report", bad, "--stream", "--on-error", "skip")
    assert "none of its first 1000 rows is good; the first:" in said


@pytest.mark.usefixtures("tiny")
def test_a_file_that_is_cut_off_stops_or_is_kept_up_to_there(capsys, file_of):
    rng = np.random.default_rng(3)
    rows = "".join(f"{int(x < 0.5)},{x!r}\n" for x in rng.random(3000).tolist())
    path = file_of(packed(f"y_true,y_prob\n{rows}".encode())[:-9000], "a.csv.gz")
    other = file_of(SMALL, "b.csv")
    assert f"{path}: cannot be read: Compressed file ended" in failure(
        capsys, "report", path, other
    )
    report = as_json(capsys, "report", path, other, "--on-error", "skip")
    cut, whole = report["stream"]["by_file"]
    assert 500 < cut["rows"] < 3000
    assert (cut["is_cut"], cut["skipped"], whole["rows"], whole["is_cut"]) == (True, 0, 60, False)
    out = " ".join(text(capsys, "report", path, other, "--on-error", "skip").split())
    assert "files cut off 1" in out
    assert "skipped the rest, which cannot be read; first:" in out


def test_files_that_cannot_be_read_at_all(capsys, file_of):
    bad = file_of(b"PAR1 and nothing more", "a.parquet")
    code, out, err = run(capsys, "report", bad, "--stream", "--on-error", "skip")
    assert (code, out) == (2, "")
    assert "no row is good; the first:" in err
    report = as_json(capsys, "report", bad, file_of(SMALL), "--on-error", "skip")
    assert [file["is_cut"] for file in report["stream"]["by_file"]] == [True, False]


def test_a_warning_names_the_file_once(capsys, file_of):
    path = file_of("y_true,p_0,p_1\n" + "1,0.5,0.4\n0,0.5,0.4\n" * 50)
    code, _, err = run(capsys, "report", path, "--stream")
    assert code == 0
    assert err.count("\n") == 1
    assert f"{path}: from line 2 on: " in err


def test_the_terminal_says_how_far_it_is(capsys, file_of, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, _, err = run(capsys, "report", file_of(SMALL), "--stream")
    assert code == 0
    assert "60 rows, 100 % of " in err


def test_slices_of_a_stream_are_those_of_its_rows(capsys, file_of, binary):
    y, p = binary
    by = np.where(np.arange(N) % 3, "b", "a,c")
    rows = "".join(f'{a},{s!r},"{g}"\n' for a, s, g in zip(y.tolist(), p.tolist(), by, strict=True))
    path = file_of(f"y_true,y_prob,g\n{rows}")
    whole = as_json(capsys, "report", path, "--by", "g")["slices"]
    stream = as_json(capsys, "report", path, "--by", "g", "--stream")["slices"]
    for one, other in zip(stream["rows"], whole["rows"], strict=True):
        assert (one["label"], one["n"]) == (other["label"], other["n"])
        for name in ("value", "low", "high"):
            assert one[name] == pytest.approx(other[name], rel=0.05, abs=1e-3)


def test_labels_of_a_stream_may_be_named(capsys, file_of, binary):
    y, p = binary
    numbers = as_json(capsys, "report", file_of(csv(y, p)), "--stream")
    texts = csv(y, p).replace("\n0,", "\nstay,").replace("\n1,", "\nleave,")
    for option in (["--labels", "stay,leave"], ["--pos-label", "leave"]):
        found = as_json(capsys, "report", file_of(texts), "--stream", *option)
        assert values(found) == values(numbers)


@pytest.mark.parametrize("more", [["--stream"], []])
def test_advice_about_groups_is_true(capsys, file_of, monkeypatch, more):
    path = file_of("y_true,y_prob,g\n0,0.5,a\n1,0.5,b\n1,0.5,b\n")
    monkeypatch.setattr(predictions, "MOST_ROWS", 2)
    line = failure(capsys, "report", path, "--groups", "g", *more)
    assert ("without --stream" in line) == bool(more)
    assert ("sample of its rows" in line) != bool(more)
