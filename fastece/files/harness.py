"""Logs of lm-evaluation-harness for multiple-choice tasks, written by ``--log_samples``.

A line is an object: `filtered_resps` has the log-likelihood of each choice, and whether it is the
greedy continuation, as strings; `resps` the same, one list deeper; `target` is the right choice, as
its number from 0 on or its text. `arguments` holds the requests, each a context and a continuation;
`doc` is the document of the data set. `acc` is 1 if the likeliest choice is right.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastece.files.batches import BadColumn, Batch, refuse_first_fault
from fastece.files.cells import Fault, row_fault
from fastece.files.json_objects import follow

RESPONSES = ("filtered_resps", "resps")
ACCURACY = "acc"
# Where a document has the texts of its choices, or their letters.
CHOICES = (("choices",), ("choices", "text"), ("choices", "label"))
# Digits of the number of a choice; a text of more digits is no number.
MAX_DIGITS = 9


class Question(NamedTuple):
    """Scores of the choices of a line, and the target among them.

    A score is a log-likelihood. The target is looked for as the number of a choice, and as the text
    of one; None: not found.
    """

    scores: list[float]
    number: int | None
    text: int | None


class Log(NamedTuple):
    """Whether the likeliest choice of each question is right, and all scores.

    `right` are the right choices, or None where no target shows them.
    """

    hits: list[bool]
    scores: list[list[float]]
    right: list[int] | None


class Request(NamedTuple):
    """A request to a model, to measure how likely a continuation is after a context."""

    context: str
    continuation: str


def is_log(row: Mapping[str, Any]) -> bool:
    """Decide whether an object has the keys of a line of such a log."""
    return "target" in row and any(name in row for name in RESPONSES)


def read_log(batch: Batch) -> Log:
    """Read the scores of each question of a log, and which choice is right.

    Where targets are no choices, as in winogrande, whose choices are contexts, the accuracy of each
    line shows whether the likeliest choice is right.
    """
    rows = batch.objects

    def refuse(name: str, rule: str, are_bad: Iterable[bool]) -> None:
        pairs = zip(rows, are_bad, strict=True)
        faults = [Fault(rule, row.get(name)) if is_bad else None for row, is_bad in pairs]
        if any(faults):
            refuse_first_fault(batch, [BadColumn(name, faults, lambda cell, _: cell)], {})

    if any(isinstance(row, Fault) for row in rows):
        refuse_first_fault(batch, [BadColumn("path", [*rows], row_fault)], {})
    first = next(filter(is_log, rows))
    responses = next(name for name in RESPONSES if name in first)
    questions = [read_question(row, responses) for row in rows]
    rule = "must hold the log-likelihoods of two or more choices"
    refuse(responses, rule, (not question.scores for question in questions))
    rule = f"must be {first.get('filter')!r}, as the first row has"
    refuse("filter", rule, (row.get("filter") != first.get("filter") for row in rows))
    scores = [question.scores for question in questions]
    accuracies = [row.get(ACCURACY) for row in rows]
    right = find_targets(questions)
    if not any(choice is not None for choice in right) and all(map(is_accuracy, accuracies)):
        return Log([bool(x) for x in accuracies], scores, None)
    rule = "must be the number of a choice, the first is 0, or the text of one choice"
    refuse("target", rule, (choice is None for choice in right))
    if all(None not in (q.number, q.text) for q in questions):
        refuse("target", f"{rule}, and is both", (q.number != q.text for q in questions))
    choices = [choice for choice in right if choice is not None]
    hits = [x.index(max(x)) == choice for x, choice in zip(scores, choices, strict=True)]
    rule = "must be 1 if the likeliest choice is the target, else 0"
    pairs = zip(accuracies, hits, strict=True)
    refuse(ACCURACY, rule, (isinstance(x, int | float) and x != hit for x, hit in pairs))
    return Log(hits, scores, choices)


def find_targets(questions: Sequence[Question]) -> list[int | None]:
    """Find the right choice of each question.

    All targets are numbers, or all are texts: what fewer of them contradict.
    """
    numbers = [question.number for question in questions]
    texts = [question.text for question in questions]
    return texts if texts.count(None) < numbers.count(None) else numbers


def is_accuracy(value: Any) -> bool:
    """Decide whether a value is the accuracy of one question: 0 or 1."""
    return isinstance(value, int | float) and value in (0, 1)


def read_question(row: Mapping[str, Any], responses: str) -> Question:
    """Read a line of a log; without two choices there are no scores."""
    try:
        scores = [log_likelihood(response) for response in row[responses]]
    except (ValueError, TypeError, LookupError):
        scores = []
    requests = read_requests(row)
    if len(requests) == len(scores) and any(request.context for request in requests):
        # Requests without a context weigh the choices by themselves, for another score.
        scores = [x for x, request in zip(scores, requests, strict=True) if request.context]
        requests = [request for request in requests if request.context]
    if len(scores) < 2 or any(map(math.isnan, scores)) or not math.isfinite(max(scores)):
        return Question([], None, None)
    target = str(row.get("target")).strip()
    is_number = target.isdecimal() and len(target) <= MAX_DIGITS and int(target) < len(scores)
    lists_of_texts = [[request.continuation for request in requests]]
    lists_of_texts += [follow(row.get("doc"), path) for path in CHOICES]
    return Question(
        scores,
        number=int(target) if is_number else None,
        text=find_choice(target, lists_of_texts, len(scores)),
    )


def find_choice(target: str, lists_of_texts: Sequence[Any], n_choices: int) -> int | None:
    """Find the choice whose text is the target, if all lists agree on it."""
    places = set()
    for texts in lists_of_texts:
        if isinstance(texts, list) and len(texts) == n_choices:
            stripped = [str(text).strip() for text in texts]
            if stripped.count(target) == 1:
                places.add(stripped.index(target))
    return places.pop() if len(places) == 1 else None


def log_likelihood(response: Any) -> float:
    """Return the first number of a response, which may be nested in lists of one."""
    while isinstance(response, list):
        if isinstance(response[0], list) and len(response) > 1:
            raise ValueError
        response = response[0]
    return float(response)


def read_requests(row: Mapping[str, Any]) -> list[Request]:
    """Read the context and the continuation of each request, if the log has them."""
    arguments = row.get("arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    if not isinstance(requests, list):
        return []
    pairs = [list(x.values()) if isinstance(x, dict) else x for x in requests]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return []
    return [Request(str(context), str(continuation)) for context, continuation in pairs]
