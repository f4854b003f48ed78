"""Attempts at questions, in logs of inspect and in reports of pydantic-evals.

A log of inspect (``.eval``) is a ZIP archive with a file of JSON for each attempt: ``scores`` has
the result of each scorer, with a ``value``, which is C or I, a number or an object, and perhaps
``metadata``; ``id`` names the question, ``epoch`` numbers the attempts. A report of pydantic-evals
is an object of JSON whose ``cases`` are attempts: ``assertions`` are true or false, ``scores`` are
numbers, and where questions were repeated ``source_case_name`` names the question.
"""

import math
import re
from collections.abc import Iterable, Sequence
from copy import copy
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
# A result that is partly right, as inspect counts it.
PARTLY_RIGHT = {"P": 0.5}
ONE_RESULT = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
CHOOSE_SCORER = "{scorer} names one"
PARTIAL_CREDIT = "has partial credit, which is neither right nor wrong"
USE_CREDIT = "{soft} takes it as it is, {right_from} 0.5 takes half of it and more as right"
MIXED_UNITS = "must be a percent, as confidences above 1 of this file are, or none may be above 1"
# Shares may exceed 1 by rounding.
MAX_SHARE = 1 + 1e-6
# A larger share of attempts that are left out is a warning.
MAX_LEFT_OUT = 0.2


class LogOptions(NamedTuple):
    """Knowledge of a caller about a log of attempts.

    Attributes
    ----------
    scorer : str or None
        The scorer, or the assertion, whose results count; None: the only one with a confidence.
    right_from : float or None
        The share of full credit from which an attempt is right, on average over its scorers.
    is_soft : bool
        Whether that share is the outcome, as a soft label.
    scale : float or None
        The largest confidence that a model may state, by which confidences are divided.
    """

    scorer: str | None = None
    right_from: float | None = None
    is_soft: bool = False
    scale: float | None = None

    @property
    def takes_partial_credit(self) -> bool:
        """Whether results between right and wrong, and several results, are taken."""
        return self.is_soft or self.right_from is not None


class Stated(NamedTuple):
    """A number that a model stated as its confidence, and whether it had a sign %."""

    number: float
    has_sign: bool


class ScorerResult(NamedTuple):
    """The result of one scorer, or one assertion, for an attempt."""

    outcome: Any
    confidence: Any


class Answer(NamedTuple):
    """The credit of an attempt from 0 to 1, its confidence and its scorers, or faults."""

    credit: float | Fault
    confidence: Stated | Fault
    scorers: tuple[str, ...]


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


def attempt_batch(
    file: str, attempts: Sequence[dict[str, Any]], choose: Choose, options: LogOptions
) -> Batch:
    """Make rows of attempts with a result and a confidence; a note counts others."""
    results_by_number: dict[int, dict[str, ScorerResult]] = {}
    for number, attempt in enumerate(attempts, 1):
        results = find_results(attempt)
        if results:
            results_by_number[number] = results
    if not results_by_number:
        raise InputError("path", f"has {len(attempts)} attempts without a result", place=file)
    if options.scorer is not None:
        check_scorer(file, results_by_number.values(), options.scorer)
    answers_by_number = {
        number: find_answer(results, options) for number, results in results_by_number.items()
    }
    numbers = [number for number, answer in answers_by_number.items() if answer is not None]
    n_unstated = len(answers_by_number) - len(numbers)
    check_stated(file, len(attempts), len(answers_by_number), n_unstated)
    rows = [attempts[number - 1] for number in numbers]
    answers = [answer for answer in answers_by_number.values() if answer is not None]
    unit = find_unit(file, answers, options.scale)
    questions = [name_question(row) for row in rows]
    is_repeated = len(set(questions)) < len(rows)
    columns = answer_columns(answers, questions, unit, options)

    note = describe_log(rows, answers, unit, is_repeated)
    n_without_result = len(attempts) - len(results_by_number)
    for count, lack in ((n_without_result, "result"), (n_unstated, "readable confidence")):
        if count:
            note += f"; {count} of {len(attempts)} attempts without a {lack} are left out"
    paths = dict(paths_of(rows[0]))
    header = Header(
        file,
        [*columns, *paths],
        unit=ATTEMPT,
        note=note,
        group_column=QUESTION_COLUMN if is_repeated else "",
        has_shares=True,
    )
    chosen: dict[str, RawColumn] = {
        key: columns[key] if key in columns else [follow(row, paths[key]) for row in rows]
        for key in choose(header).names()
    }
    return Batch(header, chosen, np.array(numbers))


def check_scorer(file: str, results: Iterable[dict[str, ScorerResult]], scorer: str) -> None:
    """Refuse the name of a scorer that no attempt has."""
    names = list(dict.fromkeys(name for by_name in results for name in by_name))
    if scorer not in names:
        rule = f"must be one of {', '.join(names)}"
        raise InputError("scorer", rule, value=scorer, place=f"{file}: {{scorer}}")


def check_stated(file: str, n_attempts: int, n_results: int, n_unstated: int) -> None:
    """Refuse a log without any readable confidence; warn where many are not readable."""
    if n_unstated == n_results:
        rule = f"has {n_attempts} attempts without a readable confidence"
        raise InputError("path", rule, place=file)
    if n_unstated > MAX_LEFT_OUT * n_attempts:
        rule = f"{n_unstated} of {n_attempts} attempts have no readable confidence and are left out"
        hint = "the others may be easier, or harder, than these"
        warn_outside(RowsWarning("path", rule, hint=hint, place=file))


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


def find_answer(results: dict[str, ScorerResult], options: LogOptions) -> Answer | None:
    """Find the result of an attempt, or a fault; None without any confidence."""
    if options.scorer is not None:
        results = {name: x for name, x in results.items() if name == options.scorer}
    stated = {name: read_stated(result.confidence) for name, result in results.items()}
    if not any(stated.values()):
        return None
    credit_by_name: dict[str, float] = {}
    for name, result in results.items():
        credit = read_credit(result.outcome)
        if stated[name] is not None and credit is not None:
            credit_by_name[name] = credit
    full = {name: credit for name, credit in credit_by_name.items() if credit in (0, 1)}
    if not options.takes_partial_credit and len(full) == 1:
        credit_by_name = full
    value_of_fault = {name: [*result] for name, result in results.items()}
    confidences = {stated[name] for name in credit_by_name}
    takes_all = options.takes_partial_credit or len(credit_by_name) == 1
    if not takes_all or len(confidences) != 1:
        hint = CHOOSE_SCORER if len(credit_by_name) > 1 else ""
        fault = Fault(ONE_RESULT, value_of_fault, is_of_row=True, hint=hint)
        return Answer(fault, fault, ())
    if not options.takes_partial_credit and not full:
        fault = Fault(PARTIAL_CREDIT, value_of_fault, is_of_row=True, hint=USE_CREDIT)
        return Answer(fault, fault, ())
    (confidence,) = confidences
    assert confidence is not None, "results without a confidence have no credit here"
    return Answer(
        sum(credit_by_name.values()) / len(credit_by_name), confidence, tuple(credit_by_name)
    )


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


def name_question(attempt: dict[str, Any]) -> str:
    """Return the name of the question that was attempted."""
    name = attempt.get("source_case_name") or attempt.get("name", attempt.get("id"))
    return str(name)


def answer_columns(
    answers: Sequence[Answer], questions: list[str], unit: float, options: LogOptions
) -> dict[str, list[Any]]:
    """Make columns of answers; a right prediction has the true label, True.

    Partial credit is a soft label, beside the probability of being right.
    """
    shares = [share_of(answer.confidence, unit, options.scale is not None) for answer in answers]
    if options.is_soft:
        outcomes = [answer.credit for answer in answers]
        return {"y_true": outcomes, "y_prob": shares, QUESTION_COLUMN: questions}
    right_from = 1 if options.right_from is None else options.right_from
    true_label, pred_label, confidence = PAIR_COLUMNS
    return {
        true_label: [True] * len(answers),
        pred_label: [
            answer.credit if isinstance(answer.credit, Fault) else answer.credit >= right_from
            for answer in answers
        ],
        confidence: shares,
        QUESTION_COLUMN: questions,
    }


def find_unit(file: str, answers: Sequence[Answer], scale: float | None) -> float:
    """Find the number that stands for certainty: 1, 100 of percents, or the caller's.

    Only a sign %, or a number that no scale of tiers reaches, proves percents.
    """
    stated = [answer.confidence for answer in answers if isinstance(answer.confidence, Stated)]
    numbers = [x.number for x in stated if not x.has_sign]
    if scale is not None:
        return scale
    largest = max(numbers, default=0.0)
    if largest > MAX_TIER or len(numbers) < len(stated):
        return 100.0
    if largest <= MAX_SHARE:
        return 1.0
    rule = f"go from {min(numbers):g} to {largest:g}: neither shares nor percents"
    hint = f"{{confidence_scale}} {math.ceil(largest)} divides by {math.ceil(largest)}"
    raise InputError("confidence", rule, place=f"{file}: confidences", hint=hint)


def share_of(confidence: Stated | Fault, unit: float, is_scaled: bool) -> float | Fault:
    """Return a confidence as a share, or the fault of one that is of another unit."""
    if isinstance(confidence, Fault):
        return confidence
    number, has_sign = confidence
    if has_sign:
        return number / 100
    if is_scaled and not 0 <= number <= unit:
        return Fault(f"must be a number from 0 to {unit:g}", number)
    if unit == 100 and not is_scaled and 0 < number < 1:
        return Fault(MIXED_UNITS, number)
    return number / unit


def describe_log(
    rows: Sequence[dict[str, Any]], answers: Sequence[Answer], unit: float, is_repeated: bool
) -> str:
    """Describe how a log was read."""
    kind = "report of pydantic-evals" if "assertions" in rows[0] else "log of inspect"
    scorers = dict.fromkeys(name for answer in answers for name in answer.scorers)
    note = f"{kind}, {', '.join(scorers) or 'none'}"
    if unit == 100:
        note += ", confidences in percent"
    elif unit != 1:
        note += f", confidences from 0 to {unit:g}"
    if is_repeated:
        note += "; attempts at one question are a group"
    return note


def as_object(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> bool:
    """Decide whether a value of JSON is a number, which true and false are not."""
    return type(value) in (int, float)
