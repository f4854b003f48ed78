"""Attempts at questions, in logs of inspect and in reports of pydantic-evals.

A log of inspect (``.eval``) is a ZIP archive with a file of JSON for each attempt: ``scores`` has
the result of each scorer, with a ``value``, which is C or I, a number or an object, and perhaps
``metadata``; ``id`` names the question, ``epoch`` numbers the attempts. A report of pydantic-evals
is an object of JSON whose ``cases`` are attempts: ``assertions`` are true or false, ``scores`` are
numbers, and where questions were repeated ``source_case_name`` names the question.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from string import ascii_uppercase
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fastece.files.columns import PAIR, Fault
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
RULE = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
QUESTION = "question"


def find_attempts(document: Any) -> list[dict[str, Any]]:
    """Find the attempts in a document of JSON, with those that failed, or none."""
    keys = ("samples", "cases", "failures") if isinstance(document, dict) else ()
    lists = [rows for key in keys if isinstance(rows := document.get(key), list)]
    rows = [without_long(row) for rows in lists for row in rows if isinstance(row, dict)]
    return rows if any({"epoch", "assertions"} & {*row} for row in rows) else []


def without_long(row: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt without its long parts, which would fill memory."""
    return {key: row[key] for key in row if key not in LONG}


def read_samples(archive: ZipFile, decode: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    """Yield the attempts in an archive; of files of one name the last counts."""
    for name, info in {info.filename: info for info in archive.infolist()}.items():
        if SAMPLE.fullmatch(name):
            is_known = info.compress_type != ZSTANDARD
            content = archive.read(info) if is_known else unpack(archive, info)
            yield without_long(decode(content.decode()))


def unpack(archive: ZipFile, info: ZipInfo) -> bytes:
    """Read a file of an archive that zstandard has packed, by pyarrow."""
    import pyarrow

    packed = copy(info)  # as bytes that are not packed, whose checksum is unknown
    packed.compress_type, packed.file_size = ZIP_STORED, info.compress_size
    del packed.CRC
    with pyarrow.input_stream(pyarrow.py_buffer(archive.read(packed)), "zstd") as stream:
        content: bytes = stream.read()
    return content


def results_of(row: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the results of an attempt by name, each an outcome and a confidence."""
    results, shared = row.get("scores") or {}, list[Any]()
    if "assertions" in row:
        shared = [{name: follow(x, ["value"]) for name, x in results.items()}]
        shared += map(row.get, ("metrics", "attributes", "output"))
        results = row["assertions"]
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
    """Return the probability of the last token that is the letter of a choice, or None."""
    letters = {*ascii_uppercase[: len(row.get("choices") or ())]}
    tokens = follow(row, ["output", "choices", "0", "logprobs", "content"]) or ()
    found = [x for x in tokens if str(follow(x, ["token"])).strip() in letters]
    return math.exp(found[-1]["logprob"]) if found else None


def answer_of(results: dict[str, tuple[Any, Any]]) -> tuple[Any, Any, str]:
    """Return outcome, confidence and name of the one whole result, or the rule that is broken."""
    whole = [
        (OUTCOMES[str(outcome)], score, name) for name, (outcome, score) in results.items()
        if str(outcome) in OUTCOMES and isinstance(score, int | float)
    ]  # fmt: skip
    fault = Fault(RULE, {name: [*result] for name, result in results.items()})
    return whole[0] if len(whole) == 1 else (fault, fault, "none")


def read_answers(
    rows: Sequence[dict[str, Any]], results: Sequence[dict[str, tuple[Any, Any]]]
) -> tuple[dict[str, list[Any]], str, str]:
    """Read answers as columns, a note on them, and the column whose values are groups, if any."""
    hits, scores, names = map(list, zip(*map(answer_of, results), strict=True))
    is_percent = any(isinstance(x, int | float) and x > 1 for x in scores)
    shares = [x / 100 if is_percent and isinstance(x, int | float) else x for x in scores]
    questions = [str(x.get("source_case_name") or x.get("name", x.get("id"))) for x in rows]
    cells: tuple[list[Any], ...] = [True] * len(rows), hits, shares, questions
    columns = dict(zip((*PAIR, QUESTION), cells, strict=True))
    note = "report of pydantic-evals" if "assertions" in rows[0] else "log of inspect"
    note += f", {', '.join(dict.fromkeys(names))}{', confidences in percent' * is_percent}"
    is_repeated = len({*questions}) < len(rows)
    note += "; attempts at one question are a group" * is_repeated
    return columns, note, QUESTION * is_repeated
