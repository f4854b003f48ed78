"""Logs of evaluations: confidences of any unit, several judges, targets that are no choices."""

import json

import numpy as np
import pytest

from helpers.command_line import as_json, failure, run, text
from helpers.field_samples import as_json_lines, plain_ece

RNG = np.random.default_rng(2)
N = 200
SHARES = RNG.beta(6, 1.5, N).round(2)
RIGHT = RNG.random(N) < 0.9 * SHARES


def as_log(confidences, outcomes=RIGHT, scorer="judge"):
    """Write a log of inspect as JSON; a confidence of ... is absent."""
    samples = []
    for k, (confidence, outcome) in enumerate(zip(confidences, outcomes, strict=True)):
        value = "CI"[not outcome] if isinstance(outcome, bool | np.bool_) else outcome
        metadata = {} if confidence is ... else {"confidence": confidence}
        scores = {scorer: {"value": value, "metadata": metadata}}
        samples.append({"id": k, "epoch": 1, "scores": scores})
    return json.dumps({"version": 2, "samples": samples})


# --- the unit of confidences ------------------------------------------------------------------


@pytest.mark.parametrize("largest", [2, 5, 7, 10])
def test_tiers_are_neither_shares_nor_percents(capsys, write, largest):
    tiers = np.arange(N) % (largest + 1)
    path = write(as_log(tiers.tolist()), "log.json")
    message = failure(capsys, "report", path)
    assert f"confidences: go from 0 to {largest}: neither shares nor percents" in message
    assert "divide tiers by the largest that may be stated" in message


@pytest.mark.parametrize(
    "form", [lambda x: 100 * x, lambda x: f"{100 * x:.0f}%", lambda x: f" {100 * x:.0f} % ", str],
)  # fmt: skip
def test_percents_and_texts_of_numbers_are_read(write, error_of, form):
    path = write(as_log([form(x) for x in SHARES.tolist()]), "log.json")
    assert error_of(path) == pytest.approx(plain_ece(RIGHT, SHARES), abs=1e-12)


# --- attempts that are left out ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("blank", [None, ..., "high", [], True])
def test_attempts_without_a_confidence_are_left_out_and_counted(capsys, write, error_of, blank):
    confidences = [blank if k % 10 == 0 else x for k, x in enumerate(SHARES.tolist())]
    path = write(as_log(confidences), "log.json")
    kept = np.arange(N) % 10 != 0
    assert error_of(path) == pytest.approx(plain_ece(RIGHT[kept], SHARES[kept]), abs=1e-12)
    note = "20 of 200 attempts without a readable confidence are left out"
    assert note in " ".join(text(capsys, "report", path).split())
    assert note in " ".join(text(capsys, "report", path, "--stream", "--full").split())


@pytest.mark.slow
def test_a_fifth_of_the_attempts_without_a_confidence_is_a_warning(capsys, write):
    def warnings(n_blank):
        confidences = [None] * n_blank + SHARES.tolist()[n_blank:]
        code, _, err = run(capsys, "report", write(as_log(confidences), "log.json"))
        assert code == 0
        return err

    assert warnings(40) == ""
    assert "41 of 200 attempts have no readable confidence and are left out" in warnings(41)


# --- judges ----------------------------------------------------------------------------------


def with_two_judges():
    log = json.loads(as_log(SHARES.tolist()))
    other = RNG.random(N) < 0.8
    for sample, agrees in zip(log["samples"], other, strict=True):
        value = sample["scores"]["judge"]["value"]
        second = value if agrees else {"C": "I", "I": "C"}[value]
        sample["scores"]["second"] = {**sample["scores"]["judge"], "value": second}
    return json.dumps(log), np.where(other, RIGHT, ~RIGHT)


@pytest.mark.slow
def test_of_several_judges_one_is_named(capsys, write, error_of):
    content, second = with_two_judges()
    path = write(content, "log.json")
    message = failure(capsys, "report", path)
    assert "--y-true and --y-prob name the columns of one" in message
    for name, outcomes in (("judge", RIGHT), ("second", second)):
        columns = (
            "--y-true",
            f"scores.{name}.value",
            "--y-prob",
            f"scores.{name}.metadata.confidence",
        )
        error = error_of(path, *columns, "--pos-label", "C")
        assert error == pytest.approx(plain_ece(outcomes, SHARES), abs=1e-12)
    message = failure(capsys, "report", path, "--y-true", "scores.third.value")
    assert "no column 'scores.third.value', it has " in message


def test_partial_credit_is_neither_right_nor_wrong(capsys, write):
    path = write(as_log(SHARES.tolist(), RNG.choice([0.0, 0.5, 1.0], N).tolist()), "log.json")
    assert "must have one result that is C, I or N, true or" in failure(capsys, "report", path)


# --- lm-evaluation-harness --------------------------------------------------------------------


def winogrande():
    """Write a log whose choices are contexts, before one continuation."""
    rows = []
    hits = []
    confidences = []
    for _ in range(N):
        scores = RNG.normal(-20, 2, 2)
        right = int(RNG.integers(2))
        shares = np.exp(scores - scores.max())
        hits.append(scores.argmax() == right)
        confidences.append((shares / shares.sum()).max())
        rows.append(
            {
                "doc": {"option1": "Ann", "option2": "Eve", "answer": str(right + 1)},
                "target": "was early.",
                "arguments": [[f"Ann met Eve because {x}", " was early."] for x in ("Ann", "Eve")],
                "filtered_resps": [[x, False] for x in scores.tolist()],
                "acc": float(hits[-1]),
            }
        )
    return rows, hits, confidences


@pytest.mark.slow
def test_where_no_target_is_a_choice_the_accuracy_of_a_line_counts(capsys, write, error_of):
    rows, hits, confidences = winogrande()
    path = write(as_json_lines(rows), "samples_winogrande.jsonl")
    assert error_of(path) == pytest.approx(plain_ece(hits, confidences), abs=1e-12)
    note = "no target is one of them, so acc says whether it is right"
    assert note in as_json(capsys, "report", path)["note"]
    for row in rows:
        del row["acc"]
    message = failure(capsys, "report", write(as_json_lines(rows), "other.jsonl"))
    assert "line 1, column target: must be the number of a choice" in message
