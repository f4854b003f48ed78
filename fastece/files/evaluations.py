"""Attempts at questions, in logs of inspect and in reports of pydantic-evals.

A log of inspect (``.eval``) is a ZIP archive with a file of JSON for each attempt: ``scores`` has
the result of each scorer, with a ``value``, which is C or I, a number or an object, and perhaps
``metadata``; ``id`` names the question, ``epoch`` numbers the attempts. A report of pydantic-evals
is an object of JSON whose ``cases`` are attempts: ``assertions`` are true or false, ``scores`` are
numbers, and where questions were repeated ``source_case_name`` names the question.
"""

import math
import re
from collections.abc import Sequence
from copy import copy
from string import ascii_uppercase
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from fastece.data.errors import InputError
from fastece.files.arrow import INSTALL_PYARROW
from fastece.files.batches import Batch, Choose, Header
from fastece.files.broken import input_errors
from fastece.files.cells import Fault, RawColumn
from fastece.files.json_objects import follow, paths_of, read_object

# Columns of labels that are predicted, and their probabilities.
PAIR_COLUMNS = ("true_label", "pred_label", "confidence")
QUESTION_COLUMN = "question"
# Files of attempts: whole ones, and those whose messages are in files of their own.
ATTEMPT_FILE = re.compile(r"samples/.+_epoch_\d+(/sample)?\.json")
# A method of ZIP that inspect uses, and that the standard library knows from Python 3.14 on.
ZIP_ZSTANDARD = 93
# Long parts of an attempt, none of which is a result.
LONG_PARTS = {"attachments", "error", "error_retries", "events", "events_data", "messages", "store"}
# Outcomes as text. N is no answer, which is not right.
OUTCOMES = {
    **dict.fromkeys(("C", "True", "1", "1.0"), True),
    **dict.fromkeys(("I", "N", "False", "0", "0.0"), False),
}
ONE_RESULT = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
MIXED_UNITS = "must be a percent, as confidences above 1 of this file are, or none may be above 1"


class ScorerResult(NamedTuple):
    """The result of one scorer, or one assertion, for an attempt."""

    outcome: Any
    confidence: Any


class Answer(NamedTuple):
    """The outcome of an attempt, its confidence and its scorer, or faults."""

    is_right: bool | Fault
    confidence: Any
    scorer: str


# --- files ----------------------------------------------------------------------------------------


def find_attempts(document: Any) -> list[dict[str, Any]]:
    """Find the attempts in a document of JSON, the failed ones among them."""
    if not isinstance(document, dict):
        return []
    lists = [document.get(key) for key in ("samples", "cases", "failures")]
    rows = [drop_long_parts(as_object(x)) for rows in lists if isinstance(rows, list) for x in rows]
    has_attempts = any("epoch" in row or "assertions" in row for row in rows)
    return rows if has_attempts else []


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
    """Make rows of the attempts that have results; a note counts the others."""
    results_by_number: dict[int, dict[str, ScorerResult]] = {}
    for number, attempt in enumerate(attempts, 1):
        results = find_results(attempt)
        if results:
            results_by_number[number] = results
    if not results_by_number:
        raise InputError("path", f"has {len(attempts)} attempts without a result", place=file)
    rows = [attempts[number - 1] for number in results_by_number]
    answers = [find_answer(results) for results in results_by_number.values()]
    questions = [name_question(row) for row in rows]
    is_repeated = len(set(questions)) < len(rows)
    columns = answer_columns(answers, questions)

    paths = dict(paths_of(rows[0]))
    header = Header(
        file,
        [*columns, *paths],
        unit="attempt",
        note=describe_log(rows, answers, is_repeated, len(attempts)),
        group_column=QUESTION_COLUMN if is_repeated else "",
    )
    chosen: dict[str, RawColumn] = {
        key: columns[key] if key in columns else [follow(row, paths[key]) for row in rows]
        for key in choose(header).names()
    }
    return Batch(header, chosen, np.array(list(results_by_number)))


def find_results(attempt: dict[str, Any]) -> dict[str, ScorerResult]:
    """Find the results of an attempt by the names of their scorers or assertions."""
    results = as_object(attempt.get("scores"))
    # Where a confidence may stand for all results.
    shared_parts: list[Any] = []
    if "assertions" in attempt:
        shared_parts = [{name: follow(score, ["value"]) for name, score in results.items()}]
        shared_parts += [attempt.get(key) for key in ("metrics", "attributes", "output")]
        results = as_object(attempt["assertions"])
    results_by_name = {}
    for name, result in results.items():
        value = follow(result, ["value"])
        parts = [*shared_parts, value, follow(result, ["metadata"])]
        confidences = [
            part["confidence"] for part in parts if isinstance(part, dict) and "confidence" in part
        ]
        outcome = value.get("score", value.get("correct")) if isinstance(value, dict) else value
        if outcome is not None and outcome == outcome:
            confidence = confidences[0] if confidences else letter_probability(attempt)
            results_by_name[name] = ScorerResult(outcome, confidence)
    return results_by_name


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


def find_answer(results: dict[str, ScorerResult]) -> Answer:
    """Find the one result with an outcome and a confidence, or return a fault."""
    answers = [
        Answer(OUTCOMES[str(result.outcome)], result.confidence, name)
        for name, result in results.items()
        if str(result.outcome) in OUTCOMES and is_number(result.confidence)
    ]
    if len(answers) == 1:
        return answers[0]
    fault = Fault(ONE_RESULT, {name: [*result] for name, result in results.items()}, is_of_row=True)
    return Answer(fault, fault, "none")


def name_question(attempt: dict[str, Any]) -> str:
    """Return the name of the question that was attempted."""
    name = attempt.get("source_case_name") or attempt.get("name", attempt.get("id"))
    return str(name)


def answer_columns(answers: Sequence[Answer], questions: list[str]) -> dict[str, list[Any]]:
    """Make columns of answers; a right prediction has the true label, True."""
    confidences = [answer.confidence for answer in answers]
    if are_percents(answers):
        confidences = [percent_to_share(x) for x in confidences]
    true_label, pred_label, confidence = PAIR_COLUMNS
    return {
        true_label: [True] * len(answers),
        pred_label: [answer.is_right for answer in answers],
        confidence: confidences,
        QUESTION_COLUMN: questions,
    }


def are_percents(answers: Sequence[Answer]) -> bool:
    """Decide whether confidences are percents: some number is above 1."""
    return any(is_number(answer.confidence) and answer.confidence > 1 for answer in answers)


def percent_to_share(confidence: Any) -> Any:
    """Return a percent as a share, or the fault of one that looks like a share."""
    if not is_number(confidence):
        return confidence
    return Fault(MIXED_UNITS, confidence) if 0 < confidence < 1 else confidence / 100


def describe_log(
    rows: Sequence[dict[str, Any]], answers: Sequence[Answer], is_repeated: bool, n_attempts: int
) -> str:
    """Describe how a log was read."""
    kind = "report of pydantic-evals" if "assertions" in rows[0] else "log of inspect"
    scorers = dict.fromkeys(answer.scorer for answer in answers)
    note = f"{kind}, {', '.join(scorers)}"
    if are_percents(answers):
        note += ", confidences in percent"
    if is_repeated:
        note += "; attempts at one question are a group"
    n_dropped = n_attempts - len(rows)
    if n_dropped:
        note += f"; {n_dropped} of {n_attempts} attempts without a result are left out"
    return note


def as_object(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> bool:
    """Decide whether a value of JSON is a number, which true and false are not."""
    return type(value) in (int, float)
