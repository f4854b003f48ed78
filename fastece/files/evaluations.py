"""Attempts at questions, in logs of inspect.

A log is a ZIP archive (``.eval``) with a file of JSON for each attempt, or one document of JSON
with all of them. ``scores`` of an attempt has the result of each scorer, with a ``value``, which is
C or I, a number or an object, and perhaps ``metadata``; ``id`` names the question, ``epoch``
numbers the attempts.

Columns of the rows are the answers of the attempts (`ANSWER_COLUMNS`), and all dotted paths into
them, such as ``scores.judge.value``.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from fastece.data.containers import MAX_TIER
from fastece.data.errors import InputError, RowsWarning, warn_outside
from fastece.files.arrow import INSTALL_PYARROW
from fastece.files.batches import Batch, Choose, Header
from fastece.files.broken import input_errors
from fastece.files.cells import NUMBER, PERCENT_SIGN, Fault, RawColumn
from fastece.files.json_objects import follow, paths_of, read_object

# The word for a row of a log of attempts in messages.
ATTEMPT = "attempt"
# Columns of labels that are predicted, and their probabilities.
PAIR_COLUMNS = ("true_label", "pred_label", "confidence")
# Columns of shares of credit, and of the probabilities of being right.
SHARE_COLUMNS = ("y_true", "y_prob")
ANSWER_COLUMNS = (*PAIR_COLUMNS, *SHARE_COLUMNS)
QUESTION_COLUMN = "question"
# Files of attempts: whole ones, and those whose messages are in files of their own.
ATTEMPT_FILE = re.compile(r"samples/.+_epoch_\d+(/sample)?\.json")
# A method of ZIP that inspect uses, and that the standard library knows from Python 3.14 on.
ZIP_ZSTANDARD = 93
# Long parts of an attempt, none of which is a result.
LONG_PARTS = {"attachments", "error", "error_retries", "events", "events_data", "messages", "store"}
# Keys of a value with several parts, such as {"correct": 1, "confidence": 0.8}.
CONFIDENCE_KEY = "confidence"
OUTCOME_KEYS = ("score", "correct")
# Outcomes as text. N is no answer, which is not right.
OUTCOMES = {
    **dict.fromkeys(("C", "True", "1", "1.0"), True),
    **dict.fromkeys(("I", "N", "False", "0", "0.0"), False),
}
# A result that is partly right, as inspect counts it.
PARTLY_RIGHT = {"P": 0.5}
ONE_RESULT = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
CHOOSE_SCORER = "{y_true} and {y_prob} name the columns of one, {soft} takes the mean of all"
ONE_CONFIDENCE = "must have results from 0 to 1 that share one confidence"
PARTIAL_CREDIT = "has partial credit, which is neither right nor wrong"
USE_CREDIT = "{soft} takes it as it is"
NAME_COLUMNS = (
    "name the columns of results and confidences by {y_true} and {y_prob}, and a word that means "
    "right by {pos_label}"
)
MIXED_UNITS = "must be a percent, as confidences above 1 of this file are, or none may be above 1"
# Shares may exceed 1 by rounding.
MAX_SHARE = 1 + 1e-6
# A larger share of attempts that are left out is a warning.
MAX_LEFT_OUT = 0.2
# Columns that a message lists.
MAX_LISTED = 8


class Stated(NamedTuple):
    """A number that a model stated as its confidence, and whether it had a sign %."""

    number: float
    has_sign: bool


class ScorerResult(NamedTuple):
    """The result of one scorer for an attempt, as the log has it."""

    outcome: Any
    confidence: Any


class Answer(NamedTuple):
    """The credit of an attempt from 0 to 1, its confidence, and the scorers."""

    credit: float
    confidence: Stated
    scorers: tuple[str, ...]


# --- files ----------------------------------------------------------------------------------------


def find_attempts(document: Any) -> list[dict[str, Any]]:
    """Find the attempts in a document of JSON, the failed ones among them."""
    if not isinstance(document, dict):
        return []
    samples = document.get("samples")
    if not isinstance(samples, list):
        return []
    attempts = [drop_long_parts(as_object(sample)) for sample in samples]
    return attempts if any("epoch" in attempt for attempt in attempts) else []


def read_attempt_files(archive: ZipFile, name: str) -> list[dict[str, Any]]:
    """Read the files of attempts in an archive; a later file of a name counts."""
    files = {info.filename: info for info in archive.infolist()}
    attempts = []
    for info in files.values():
        if not ATTEMPT_FILE.fullmatch(info.filename):
            continue
        place = f"{name}: {info.filename}"
        with input_errors(place, Exception):
            text = unpack(archive, info, place).decode("utf-8", "surrogateescape")
        attempt = read_object(text)
        if isinstance(attempt, Fault):
            raise InputError("path", attempt.rule, value=attempt.value, place=place)
        attempts.append(drop_long_parts(attempt))
    return attempts


def unpack(archive: ZipFile, info: ZipInfo, place: str) -> bytes:
    """Read a file of an archive, by pyarrow if zstandard has packed it."""
    if info.compress_type != ZIP_ZSTANDARD:
        return archive.read(info)
    try:
        import pyarrow
    except ImportError as error:
        rule = "is packed by zstandard, which needs pyarrow"
        raise InputError("path", rule, place=place, hint=INSTALL_PYARROW) from error
    # The file is read as if its bytes were not packed; their checksum is unknown.
    packed = copy(info)
    packed.compress_type = ZIP_STORED
    packed.file_size = info.compress_size
    del packed.CRC
    with pyarrow.input_stream(pyarrow.py_buffer(archive.read(packed)), "zstd") as stream:
        content: bytes = stream.read()
    return content


def drop_long_parts(attempt: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt without its long parts, which would fill memory."""
    return {key: value for key, value in attempt.items() if key not in LONG_PARTS}


# --- attempts as rows -----------------------------------------------------------------------------


def attempt_batch(file: str, attempts: Sequence[dict[str, Any]], choose: Choose) -> Batch:
    """Make rows of attempts.

    Where a column of answers is chosen, these are the attempts with a result and a confidence;
    otherwise those with scores. A note counts the others.
    """
    numbered = dict(enumerate(attempts, 1))
    scored = {number: x for number, x in numbered.items() if as_object(x.get("scores"))}
    if not scored:
        raise InputError("path", f"has {len(attempts)} attempts without a result", place=file)
    keys = find_result_keys(scored.values())
    found = {number: find_results(attempt, keys) for number, attempt in scored.items()}
    results = {number: by_scorer for number, by_scorer in found.items() if by_scorer}
    stated = {number: by_scorer for number, by_scorer in results.items() if is_stated(by_scorer)}
    paths = dict(paths_of(scored[next(iter(stated or scored))]))
    header = Header(file, [*paths, *ANSWER_COLUMNS, QUESTION_COLUMN], unit=ATTEMPT)
    wanted = set(choose(header).names())

    has_answers = not wanted.isdisjoint(ANSWER_COLUMNS)
    columns: dict[str, RawColumn] = {}
    if has_answers:
        rows = {number: scored[number] for number in stated}
        left_out = {
            "result": len(attempts) - len(results),
            "readable confidence": len(results) - len(stated),
        }
        check_stated(file, attempts, len(results), len(results) - len(stated))
        find_answer = find_share if wanted.isdisjoint(PAIR_COLUMNS) else find_hit
        answers = [find_answer(by_scorer) for by_scorer in stated.values()]
        good_answers = [answer for answer in answers if isinstance(answer, Answer)]
        unit = find_unit(file, good_answers)
        columns |= answer_columns(answers, unit)
        notes = [describe_answers(good_answers, unit)]
    else:
        rows = scored
        left_out = {"result": len(attempts) - len(scored)}
        notes = ["log of inspect"]
    questions = [str(attempt.get("id")) for attempt in rows.values()]
    is_repeated = len(set(questions)) < len(questions)
    if is_repeated:
        notes.append("attempts at one question are a group")
    for lack, count in left_out.items():
        if count:
            notes.append(f"{count} of {len(attempts)} attempts without a {lack} are left out")

    header = replace(
        header,
        note="; ".join(notes),
        group_column=QUESTION_COLUMN if is_repeated else "",
        has_shares=has_answers,
    )
    columns[QUESTION_COLUMN] = questions
    chosen: dict[str, RawColumn] = {
        name: columns[name] if name in columns else [follow(x, paths[name]) for x in rows.values()]
        for name in choose(header).names()
    }
    return Batch(header, chosen, np.array([*rows]))


def check_stated(
    file: str, attempts: Sequence[dict[str, Any]], n_results: int, n_unstated: int
) -> None:
    """Refuse a log without a result that has a confidence; warn where many have none."""
    n = len(attempts)
    if n_unstated == n_results:
        lack = "readable confidence" if n_results else "result"
        names = score_columns(attempts)
        shown = f"; their scores have {', '.join(names[:MAX_LISTED])}" if names else ""
        if len(names) > MAX_LISTED:
            shown += ", ..."
        rule = f"has {n} attempts without a {lack}{shown}"
        raise InputError("path", rule, place=file, hint=NAME_COLUMNS if names else "")
    if n_unstated > MAX_LEFT_OUT * n:
        rule = f"{n_unstated} of {n} attempts have no readable confidence and are left out"
        hint = "the others may be easier, or harder, than these"
        warn_outside(RowsWarning("path", rule, hint=hint, place=file))


def score_columns(attempts: Iterable[dict[str, Any]]) -> list[str]:
    """List the columns of the values of all scores, and of their metadata."""
    names: dict[str, None] = {}
    for attempt in attempts:
        for scorer, result in as_object(attempt.get("scores")).items():
            parts = {key: follow(result, [key]) for key in ("value", "metadata")}
            for name, path in paths_of(parts):
                if isinstance(follow(parts, path), str | int | float):
                    names[f"scores.{scorer}.{name}"] = None
    return list(names)


def answer_columns(answers: Sequence[Answer | Fault], unit: float) -> dict[str, RawColumn]:
    """Make the columns of answers; a right prediction has the true label, True."""
    given_credits = [x if isinstance(x, Fault) else x.credit for x in answers]
    hits = [x if isinstance(x, Fault) else x == 1 for x in given_credits]
    shares = [x if isinstance(x, Fault) else share_of(x.confidence, unit) for x in answers]
    true_label, pred_label, confidence = PAIR_COLUMNS
    label, probability = SHARE_COLUMNS
    return {
        true_label: [True] * len(answers),
        pred_label: hits,
        confidence: shares,
        label: given_credits,
        probability: shares,
    }


def find_unit(file: str, answers: Sequence[Answer]) -> float:
    """Find the number that stands for certainty: 1, or 100 of percents.

    Only a sign %, or a number that no scale of tiers reaches, proves percents.
    """
    stated = [answer.confidence for answer in answers]
    numbers = [x.number for x in stated if not x.has_sign]
    largest = max(numbers, default=0.0)
    if largest > MAX_TIER or len(numbers) < len(stated):
        return 100.0
    if largest <= MAX_SHARE:
        return 1.0
    rule = f"go from {min(numbers):g} to {largest:g}: neither shares nor percents"
    hint = f"divide tiers by the largest that may be stated, such as {math.ceil(largest)}"
    raise InputError("confidence", rule, place=f"{file}: confidences", hint=hint)


def share_of(confidence: Stated, unit: float) -> float | Fault:
    """Return a confidence as a share, or the fault of one that is of another unit."""
    number, has_sign = confidence
    if has_sign:
        return number / 100
    if unit == 100 and 0 < number < 1:
        return Fault(MIXED_UNITS, number)
    return number / unit


def describe_answers(answers: Sequence[Answer], unit: float) -> str:
    """Describe the scorers of a log, and the unit of its confidences."""
    scorers = dict.fromkeys(name for answer in answers for name in answer.scorers)
    note = f"log of inspect, {', '.join(scorers) or 'none'}"
    return f"{note}, confidences in percent" if unit == 100 else note


# --- results of scorers ---------------------------------------------------------------------------


def find_result_keys(attempts: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Find the keys of results that are not called "correct", by scorer.

    Values have several parts, such as {"accuracy": 1, "confidence": 0.8}. The key is the only one,
    except the confidence, whose values are right or wrong in all attempts. A scorer with several
    such keys, or none, is absent.
    """
    columns: dict[str, dict[str, list[Any]]] = {}
    for attempt in attempts:
        for scorer, result in as_object(attempt.get("scores")).items():
            for key, part in as_object(follow(result, ["value"])).items():
                columns.setdefault(scorer, {}).setdefault(key, []).append(part)
    keys = {}
    for scorer, parts in columns.items():
        candidates = [key for key in parts if key != CONFIDENCE_KEY and are_outcomes(parts[key])]
        if len(candidates) == 1:
            keys[scorer] = candidates[0]
    return keys


def are_outcomes(parts: Iterable[Any]) -> bool:
    """Decide whether parts of values are right or wrong, as far as they are there."""
    outcomes = {str(part).strip() for part in parts if part is not None}
    return bool(outcomes) and outcomes <= OUTCOMES.keys()


def find_results(attempt: dict[str, Any], keys: Mapping[str, str]) -> dict[str, ScorerResult]:
    """Find the results of an attempt by scorer, with the keys of `find_result_keys`."""
    results = {}
    for scorer, result in as_object(attempt.get("scores")).items():
        value = follow(result, ["value"])
        parts = [as_object(value), as_object(follow(result, ["metadata"]))]
        confidences = [part[CONFIDENCE_KEY] for part in parts if CONFIDENCE_KEY in part]
        name = scorer
        outcome = value
        if isinstance(value, dict):
            # Of other scorers, parts without a confidence beside them are no results.
            other_key = keys.get(scorer, "") if confidences else ""
            key = next((key for key in OUTCOME_KEYS if key in value), other_key)
            outcome = value.get(key)
            name = scorer if key in OUTCOME_KEYS else f"{scorer}.{key}"
        if outcome is not None and outcome == outcome:
            confidence = confidences[0] if confidences else letter_probability(attempt)
            results[name] = ScorerResult(outcome, confidence)
    return results


def letter_probability(attempt: dict[str, Any]) -> float | None:
    """Return the probability of the last letter of a choice in the output, or None."""
    choices = attempt.get("choices")
    n_choices = len(choices) if isinstance(choices, list) else 0
    letters = set(ascii_uppercase[:n_choices])
    tokens = follow(attempt, ["output", "choices", "0", "logprobs", "content"])
    logs = [
        follow(token, ["logprob"])
        for token in (tokens if isinstance(tokens, list) else [])
        if str(follow(token, ["token"])).strip() in letters
    ]
    is_probability = bool(logs) and is_number(logs[-1]) and logs[-1] <= 0
    return math.exp(logs[-1]) if is_probability else None


# --- the answer of an attempt ---------------------------------------------------------------------


def is_stated(results: Mapping[str, ScorerResult]) -> bool:
    """Decide whether a result has a confidence that can be read."""
    return any(read_stated(result.confidence) is not None for result in results.values())


def grade(results: Mapping[str, ScorerResult]) -> dict[str, Answer]:
    """Read the answer of each scorer whose credit and confidence can be read."""
    answers = {}
    for name, result in results.items():
        credit = read_credit(result.outcome)
        confidence = read_stated(result.confidence)
        if credit is not None and confidence is not None:
            answers[name] = Answer(credit, confidence, (name,))
    return answers


def find_hit(results: Mapping[str, ScorerResult]) -> Answer | Fault:
    """Find the one result that is right or wrong."""
    answers = grade(results)
    full = {name: answer for name, answer in answers.items() if answer.credit in (0, 1)}
    if len(full) == 1:
        return next(iter(full.values()))
    if len(answers) != 1:
        return fault_of(results, ONE_RESULT, CHOOSE_SCORER if len(answers) > 1 else "")
    return fault_of(results, PARTIAL_CREDIT, USE_CREDIT)


def find_share(results: Mapping[str, ScorerResult]) -> Answer | Fault:
    """Find the mean credit of all results, which share one confidence."""
    answers = grade(results)
    confidences = {answer.confidence for answer in answers.values()}
    if len(confidences) != 1:
        return fault_of(results, ONE_CONFIDENCE, "")
    credit = sum(answer.credit for answer in answers.values()) / len(answers)
    return Answer(credit, confidences.pop(), tuple(answers))


def fault_of(results: Mapping[str, ScorerResult], rule: str, hint: str) -> Fault:
    """Make the fault of an attempt, which shows its results."""
    shown = {name: [*result] for name, result in results.items()}
    return Fault(rule, shown, is_of_row=True, hint=hint)


def read_credit(outcome: Any) -> float | None:
    """Read how right a result is, from 0 to 1; None for anything else."""
    text = str(outcome).strip()
    if text in OUTCOMES:
        return float(OUTCOMES[text])
    if text in PARTLY_RIGHT:
        return PARTLY_RIGHT[text]
    stated = read_stated(outcome)
    is_credit = stated is not None and not stated.has_sign and 0 <= stated.number <= 1
    return stated.number if stated is not None and is_credit else None


def read_stated(value: Any) -> Stated | None:
    """Read a number, also as a text and with a sign %; None for anything else."""
    if is_number(value):
        return Stated(float(value), False) if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    number = text.removesuffix(PERCENT_SIGN).rstrip()
    if not NUMBER.fullmatch(number) or not math.isfinite(float(number)):
        return None
    return Stated(float(number), text.endswith(PERCENT_SIGN))


def as_object(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> bool:
    """Decide whether a value of JSON is a number, which true and false are not."""
    return type(value) in (int, float)
