"""Percents, labels that are missing or ignored: the right number, by an option that is named."""

import json
import re

import numpy as np
import pytest

import fastece
from fastece.streams import CalibrationMetric
from helpers.command_line import SMALL, as_json, failure, run, text
from helpers.field_samples import as_csv, as_json_lines, as_rows, draw_risks, plain_ece

RNG = np.random.default_rng(0)
N = 200
PERCENTS = RNG.integers(40, 100, N)
RIGHT = (RNG.random(N) < 0.8 * PERCENTS / 100).astype(int)
ERROR = plain_ece(RIGHT, PERCENTS / 100)
COLUMNS = {"y_true": RIGHT, "y_prob": PERCENTS}
SIGNS = {"y_true": RIGHT, "y_prob": [f"{x}%" for x in PERCENTS]}

# --- percents -------------------------------------------------------------------------------


@pytest.mark.representative(2)
@pytest.mark.parametrize("columns", [COLUMNS, SIGNS])
@pytest.mark.parametrize("form", [as_csv, lambda x: as_json_lines(as_rows(x)), lambda x: json.dumps(
    {name: np.asarray(column).tolist() for name, column in x.items()})])  # fmt: skip
def test_percents_of_a_table_are_read_by_an_option_and_signs_without(
    write, error_of, columns, form
):
    path = write(form(columns), "percents")
    assert error_of(path, "--percent") == pytest.approx(ERROR, abs=1e-12)
    assert error_of(path, "--percent", "--stream") == pytest.approx(ERROR, abs=1e-12)
    if columns is SIGNS:
        assert error_of(path) == pytest.approx(ERROR, abs=1e-12)


def test_class_vectors_in_percent(write, error_of):
    prob = RNG.dirichlet([1, 1, 1], N)
    columns = {"y_true": RNG.integers(0, 3, N)} | {f"p_{k}": 100 * p for k, p in enumerate(prob.T)}
    hits = prob.argmax(1) == columns["y_true"]
    error = error_of(write(as_csv(columns)), "--percent")
    assert error == pytest.approx(plain_ece(hits, prob.max(1)), abs=1e-12)


def test_lists_of_percents_with_signs_are_divided_once(write, error_of):
    prob = RNG.dirichlet([1, 1, 1], N).round(4)
    prob[:, 0] = 1 - prob[:, 1:].sum(axis=1)
    rows = [
        {"y_true": int(y), "y_prob": [f"{100 * p:.2f}%" for p in row]}
        for y, row in zip(RNG.integers(0, 3, N), prob, strict=True)
    ]
    error = plain_ece(prob.argmax(1) == [row["y_true"] for row in rows], prob.max(1))
    path = write(as_json_lines(rows), "lists.jsonl")
    assert error_of(path) == pytest.approx(error, abs=1e-12)
    assert error_of(path, "--percent") == pytest.approx(error, abs=1e-12)


def test_numbers_above_one_are_refused_with_the_option_that_divides(capsys, write):
    message = failure(capsys, "report", write(as_csv(COLUMNS)))
    assert f"got {PERCENTS[0]}" in message
    assert "percentages: --percent" in message
    tiers = {"y_true": RIGHT, "y_prob": PERCENTS % 6}
    assert "--percent" not in failure(capsys, "report", write(as_csv(tiers)))
    with pytest.raises(ValueError, match=r"y_true comes first, or percentages: percent=True$"):
        fastece.ece(RIGHT, PERCENTS)
    with pytest.raises(ValueError, match=r"percentages: percent=True; decimal odds: 1 / odds$"):
        fastece.ece(RIGHT, 0.5 * PERCENTS + 5.25)
    with pytest.raises(ValueError, match=r"percentages: percent=True$"):
        fastece.ece(RIGHT, PERCENTS - PERCENTS.min() + 0.5)


def test_a_number_that_is_no_percent_is_named(capsys, write):
    columns = {"y_true": [0, 1, 1], "y_prob": [50, 120, -3]}
    message = failure(capsys, "report", write(as_csv(columns)), "--percent")
    assert "line 3, column y_prob: must be a number from 0 to 100, got 120.0; and 1 more" in message
    mixed = {"y_true": [0, 1, 1], "y_prob": ["50%", "0.7", "20%"]}
    message = failure(capsys, "report", write(as_csv(mixed)))
    assert "line 3, column y_prob: must have a sign %, as the first row has, got '0.7'" in message


def test_percents_of_logits_are_refused(capsys, write):
    message = failure(capsys, "report", write(as_csv(COLUMNS)), "--percent", "--from-logits")
    assert "--from-logits: goes without --percent" in message


@pytest.mark.parametrize(
    "percents",
    [PERCENTS, PERCENTS.astype(np.float32), [f"{x} %" for x in PERCENTS], [*map(str, PERCENTS)],
     np.array([f"{x}%" for x in PERCENTS], object), [f"{x}%".encode() for x in PERCENTS]],
)  # fmt: skip
def test_percents_of_arrays_are_divided_by_an_option(percents):
    error = fastece.ece(RIGHT, percents, percent=True)
    assert error == pytest.approx(ERROR, abs=1e-7)
    assert fastece.reliability_diagram(RIGHT, percents, percent=True).value == pytest.approx(error)
    resampled = fastece.bootstrap(RIGHT, percents, percent=True, n_resamples=9, rng=0)
    assert resampled.value == pytest.approx(error)


def test_percents_that_are_none_are_refused():
    with pytest.raises(TypeError, match=r"must be percents; y_prob\[1\] is 'high'"):
        fastece.ece([0, 1], ["50%", "high"], percent=True)
    with pytest.raises(ValueError, match=r"percent: goes without from_logits=True"):
        fastece.ece([0, 1], [50, 20], percent=True, from_logits=True)
    with pytest.raises(TypeError, match="percent: goes with arrays"):
        fastece.ece(fastece.Accumulator().update([0, 1], [0.5, 0.5]), percent=True)


# --- labels that are ignored ------------------------------------------------------------------

PROB = RNG.dirichlet([2, 1, 1, 1], 400)
LABELS = np.array([RNG.choice(4, p=p) for p in PROB])
LABELS[30:80] = 255
KEPT = LABELS != 255
GROUPS = np.arange(400) // 5
OPTIONS = {"n_resamples": 99, "rng": 0}
CALLS = [
    lambda y, p, **k: fastece.ece(y, p, **k),
    lambda y, p, **k: fastece.ece(y, p, setting="classwise", average=None, **k).tolist(),
    lambda y, p, **k: fastece.brier_score(y, p, **k),
    lambda y, p, **k: fastece.canonical_error(y, p, **k),
    lambda y, p, **k: fastece.reliability_diagram(y, p, **k).value,
    lambda y, p, **k: fastece.bootstrap(y, p, **k, **OPTIONS).confidence_interval,
    lambda y, p, **k: fastece.estimate(y, p, **k, **OPTIONS).confidence_interval,
    lambda y, p, **k: fastece.calibration_test(y, p, **k, **OPTIONS).p_value,
    lambda y, p, **k: fastece.calibration_report(y, p, **k, n_resamples=0).n,
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ignored", [255, "ignored", np.nan, None])
def test_rows_of_an_ignored_label_are_as_if_they_were_not_there(call, ignored):
    labels = LABELS
    options = {"ignore_label": ignored}
    if ignored == "ignored":
        names = np.array(["a", "b", "c", "d"])
        labels = np.where(KEPT, names[LABELS % 4], ignored)
        options["labels"] = [*"abcd"]
    elif ignored is None:
        labels = np.where(KEPT, LABELS, None)
        options["ignore_label"] = np.nan
        options["labels"] = [0, 1, 2, 3]
    elif ignored != 255:
        labels = np.where(KEPT, LABELS, np.nan)
    assert call(labels, PROB, **options) == call(LABELS[KEPT], PROB[KEPT])


def test_groups_and_slices_belong_to_the_rows_that_are_kept():
    options = {"sample_weight": RNG.random(400), "groups": GROUPS, **OPTIONS}
    kept_options = {
        name: x[KEPT] if isinstance(x, np.ndarray) else x for name, x in options.items()
    }
    whole = fastece.estimate(LABELS, PROB, ignore_label=255, **options)
    kept = fastece.estimate(LABELS[KEPT], PROB[KEPT], **kept_options)
    assert whole.confidence_interval == kept.confidence_interval
    by = RNG.choice(["x", "y"], 400)
    whole = fastece.slices(LABELS, PROB, by=by, ignore_label=255, **OPTIONS)
    kept = fastece.slices(LABELS[KEPT], PROB[KEPT], by=by[KEPT], **OPTIONS)
    assert [(x.label, x.n, x.value) for x in whole.rows] == [
        (x.label, x.n, x.value) for x in kept.rows
    ]


def test_streams_metrics_and_monitors_leave_ignored_labels_out():
    expected = fastece.ece(LABELS[KEPT], PROB[KEPT])
    state = fastece.Accumulator(4)
    metric = CalibrationMetric(4, ignore_label=255)
    for start in range(0, 400, 40):
        rows = slice(start, start + 40)
        state.update(LABELS[rows], PROB[rows], ignore_label=255)
        if KEPT[rows].any():
            metric(PROB[rows], LABELS[rows])
    assert state.n == KEPT.sum()
    assert fastece.ece(state) == pytest.approx(expected, abs=1e-12)
    assert metric.compute() == pytest.approx(expected, abs=1e-12)
    whole = fastece.Monitor(n_classes=4).update(LABELS, PROB, ignore_label=255)
    kept = fastece.Monitor(n_classes=4).update(LABELS[KEPT], PROB[KEPT])
    assert (whole.n, whole.log_e_value) == (kept.n, kept.log_e_value)


def test_an_ignored_label_is_named_by_the_errors_about_labels():
    with pytest.raises(ValueError, match=r"from 0 to 3; .* is 255; .*, or ignore_label= leaves"):
        fastece.ece(LABELS, PROB)
    with pytest.raises(ValueError, match=r"must be finite; .*ignore_label=nan|ignore_label="):
        fastece.ece(np.where(KEPT, LABELS, np.nan), PROB)
    with pytest.raises(ValueError, match="has no label other than 255, which is ignored"):
        fastece.ece(np.full(400, 255), PROB, ignore_label=255)
    with pytest.raises(ValueError, match="ignore_label: goes with hard labels, not soft"):
        fastece.ece([0.5, 1], [0.5, 0.5], soft=True, ignore_label=1)
    with pytest.raises(ValueError, match=r"np.moveaxis\(y_prob, 1, -1\).reshape\(-1, 4\)"):
        fastece.ece(np.zeros((2, 8, 8), int), np.full((2, 4, 8, 8), 0.25))


# --- files with rows without a label ----------------------------------------------------------

Y, P = draw_risks()
UNLABELLED = np.arange(300) % 7 == 3
LABELLED_ERROR = plain_ece(Y[~UNLABELLED], P[~UNLABELLED])
NOTE = f"{UNLABELLED.sum()} of 300 rows without a label are left out"


def with_blanks(blank):
    return {"y_true": [blank if x else y for x, y in zip(UNLABELLED, Y.tolist(), strict=True)],
            "y_prob": P.tolist()}  # fmt: skip


@pytest.mark.representative(1)
@pytest.mark.parametrize(
    ("content", "name"),
    [(as_csv(with_blanks("")), "a.csv"), (as_csv(with_blanks("NaN")), "b.csv"),
     (as_json_lines(as_rows(with_blanks(None))), "c.jsonl"),
     (json.dumps(with_blanks(None)), "d.json")],
)  # fmt: skip
def test_rows_without_a_label_are_left_out_and_counted(capsys, write, error_of, content, name):
    path = write(content, name)
    message = failure(capsys, "report", path)
    assert "column y_true: must not be missing" in message
    assert "--missing skip leaves such rows out" in message
    for options in ([], ["--stream"]):
        error = error_of(path, "--missing", "skip", *options)
        assert error == pytest.approx(LABELLED_ERROR, abs=1e-12)
        page = text(capsys, "report", path, "--missing", "skip", *options, "--full")
        assert NOTE in " ".join(page.split())


def test_rows_without_a_label_are_left_out_of_arrays(capsys, tmp_path, error_of):
    path = tmp_path / "a.npz"
    np.savez(path, y_true=np.where(UNLABELLED, np.nan, Y), y_prob=P)
    assert "--missing skip leaves such rows out" in failure(capsys, "report", path)
    assert error_of(path, "--missing", "skip") == pytest.approx(LABELLED_ERROR, abs=1e-12)
    pytest.importorskip("pyarrow")
    from pyarrow import parquet, table

    parquet.write_table(table(with_blanks(None)), tmp_path / "a.parquet")
    error = error_of(tmp_path / "a.parquet", "--missing", "skip")
    assert error == pytest.approx(LABELLED_ERROR, abs=1e-12)


def test_a_file_without_any_label_is_refused(capsys, write):
    path = write("y_true,y_prob\n,0.5\n,0.2\n")
    for options in ([], ["--stream"]):
        message = failure(capsys, "report", path, "--missing", "skip", *options)
        assert "none of its 2 rows has a label" in message


def test_a_monitor_leaves_rows_out_whose_labels_may_come_later(capsys, write):
    path = write(as_csv(with_blanks("")))
    printed = as_json(capsys, "monitor", path)
    kept = fastece.Monitor().update(Y[~UNLABELLED], P[~UNLABELLED])
    assert (printed["n"], printed["log_e_value"]) == (kept.n, kept.log_e_value)
    assert printed["files"][0]["unlabelled"] == UNLABELLED.sum()
    page = " ".join(text(capsys, "monitor", path).split())
    assert f"{UNLABELLED.sum()} rows have no label yet and are left out" in page
    assert "once they are labelled, give them in a file of their own" in page
    assert "must not be missing" in failure(capsys, "monitor", path, "--missing", "stop")
    code, out, _ = run(capsys, "monitor", write(SMALL, "whole.csv"))
    assert code in (0, 1)
    assert "no label" not in out


def test_rows_without_a_forecast_have_a_hint_that_leaves_them_out():
    rng = np.random.default_rng(4)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    p[::7] = np.nan
    hint = "keep = ~np.isnan(y_prob), then pass y_true[keep] and y_prob[keep]"
    for call in (fastece.ece, fastece.Accumulator().update, fastece.estimate):
        with pytest.raises(ValueError, match=re.escape(hint)):
            call(y, p)
    keep = ~np.isnan(p)
    expected = plain_ece(np.delete(y, np.s_[::7]), np.delete(p, np.s_[::7]))
    assert fastece.ece(y[keep], p[keep]) == pytest.approx(expected, abs=1e-12)
    vectors = np.column_stack([1 - p, p])
    with pytest.raises(ValueError, match=r"keep = ~np.isnan\(y_prob\).any\(1\)"):
        fastece.ece(y, vectors)
    with pytest.raises(ValueError, match=r"y_prob_b: .* keep = ~np.isnan\(y_prob_b\), "):
        fastece.compare(y[keep], p[keep], np.where(np.arange(keep.sum()) == 3, np.nan, p[keep]))
    with pytest.raises(ValueError, match=r"must be finite; y_prob\[1\] is inf$"):
        fastece.ece([0, 1], [0.2, np.inf])
