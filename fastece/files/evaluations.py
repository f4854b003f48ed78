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
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fastece.data.errors import InputError
from fastece.files.columns import PAIR, PYARROW, Fault
from fastece.files.harness import follow

# Files of attempts: whole ones, and those whose messages are in files of their own.
SAMPLE = re.compile(r"samples/.+_epoch_\d+(/sample)?\.json")
# A method of ZIP that inspect uses, and the standard library knows from Python 3.14 on.
ZSTANDARD = 93
# Long parts of an attempt, none of which is a result.
LONG = {"attachments", "error", "error_retries", "events", "events_data", "messages", "store"}
# Outcomes as text. N is no answer, which is not right.
RIGHT, WRONG = ("C", "True", "1", "1.0"), ("I", "N", "False", "0", "0.0")
OUTCOMES = {**dict.fromkeys(RIGHT, True), **dict.fromkeys(WRONG, False)}
RULE = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
MIXED = "must be a percent, as confidences above 1 of this file are, or none may be above 1"
QUESTION = "question"


def find_attempts(document: Any) -> list[dict[str, Any]]:
    """Find the attempts in a document of JSON, the failed ones too, or none."""
    keys = ("samples", "cases", "failures") if isinstance(document, dict) else ()
    lists = [rows for key in keys if isinstance(rows := document.get(key), list)]
    rows = [without_long(as_object(row)) for rows in lists for row in rows]
    return rows if any({"epoch", "assertions"} & {*row} for row in rows) else []


def without_long(row: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt without its long parts, which would fill memory."""
    return {key: row[key] for key in row if key not in LONG}


def find_samples(archive: ZipFile) -> list[ZipInfo]:
    """Find the files of attempts in an archive; of files of one name the last counts."""
    files = {info.filename: info for info in archive.infolist()}
    return [files[name] for name in files if SAMPLE.fullmatch(name)]


def unpack(archive: ZipFile, info: ZipInfo, place: str) -> bytes:
    """Read a file of an archive, by pyarrow if zstandard has packed it."""
    if info.compress_type != ZSTANDARD:
        return archive.read(info)
    try:
        import pyarrow
    except ImportError as error:
        rule = "is packed by zstandard, which needs pyarrow"
        raise InputError("path", rule, place=place, hint=PYARROW) from error
    packed = copy(info)  # as bytes that are not packed, whose checksum is unknown
    packed.compress_type, packed.file_size = ZIP_STORED, info.compress_size
    del packed.CRC
    with pyarrow.input_stream(pyarrow.py_buffer(archive.read(packed)), "zstd") as stream:
        content: bytes = stream.read()
    return content


def results_of(row: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the results of an attempt by name, each an outcome and a confidence."""
    results, shared = as_object(row.get("scores")), list[Any]()
    if "assertions" in row:
        shared = [{name: follow(x, ["value"]) for name, x in results.items()}]
        shared += map(row.get, ("metrics", "attributes", "output"))
        results = as_object(row["assertions"])
    found = {}
    for name, result in results.items():
        value = follow(result, ["value"])
        parts = [x for x in (*shared, value, follow(result, ["metadata"])) if isinstance(x, dict)]
        stated = [part["confidence"] for part in parts if "confidence" in part]
        outcome = value.get("score", value.get("correct")) if isinstance(value, dict) else value
        if outcome is not None and outcome == outcome:
            found[name] = outcome, stated[0] if stated else letter_probability(row)
    return found


def letter_probability(row: dict[str, Any]) -> float | None:
    """Return the probability of the last letter of a choice, or None."""
    choices = row.get("choices")
    letters = {*ascii_uppercase[: len(choices) if isinstance(choices, list) else 0]}
    tokens = follow(row, ["output", "choices", "0", "logprobs", "content"])
    found = [
        follow(token, ["logprob"]) for token in (tokens if isinstance(tokens, list) else ())
        if str(follow(token, ["token"])).strip() in letters
    ]  # fmt: skip
    return math.exp(found[-1]) if found and is_number(found[-1]) and found[-1] <= 0 else None


def as_object(value: Any) -> dict[str, Any]:
    """Return an object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number, which true and false are not."""
    return type(value) in (int, float)


def answer_of(results: dict[str, tuple[Any, Any]]) -> tuple[Any, Any, str]:
    """Return outcome, confidence and name of the one whole result, or faults."""
    whole = [
        (OUTCOMES[str(outcome)], score, name) for name, (outcome, score) in results.items()
        if str(outcome) in OUTCOMES and is_number(score)
    ]  # fmt: skip
    fault = Fault(RULE, {name: [*result] for name, result in results.items()})
    return whole[0] if len(whole) == 1 else (fault, fault, "none")


def percent_as_share(score: Any) -> Any:
    """Return a percent as a share, or the fault of one that looks like a share."""
    if not is_number(score):
        return score
    return Fault(MIXED, score, "") if 0 < score < 1 else score / 100


def read_answers(
    rows: Sequence[dict[str, Any]], results: Sequence[dict[str, tuple[Any, Any]]]
) -> tuple[dict[str, list[Any]], str, str]:
    """Read answers as columns, with a note and the column of groups, if any."""
    hits, scores, names = map(list, zip(*map(answer_of, results), strict=True))
    is_percent = any(is_number(x) and x > 1 for x in scores)
    shares = [percent_as_share(x) for x in scores] if is_percent else scores
    questions = [str(x.get("source_case_name") or x.get("name", x.get("id"))) for x in rows]
    cells: tuple[list[Any], ...] = [True] * len(rows), hits, shares, questions
    columns = dict(zip((*PAIR, QUESTION), cells, strict=True))
    note = "report of pydantic-evals" if "assertions" in rows[0] else "log of inspect"
    note += f", {', '.join(dict.fromkeys(names))}{', confidences in percent' * is_percent}"
    is_repeated = len({*questions}) < len(rows)
    note += "; attempts at one question are a group" * is_repeated
    return columns, note, QUESTION * is_repeated
