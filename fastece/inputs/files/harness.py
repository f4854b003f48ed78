"""Per-sample logs of lm-evaluation-harness (``--log_samples``) for multiple-choice tasks.

A line is an object: `filtered_resps` has the log-likelihood of each choice, and whether it is the
greedy continuation, as strings; `resps` the same, one list deeper; `target` is the right choice, as
its number from 0 on or its text. `arguments` holds the requests, each a context and a continuation;
`doc` is the document of the data set, and `acc` is 1 if the likeliest choice is right.
"""

import math
from typing import Any, NamedTuple

from fastece.inputs.files.json_lines import Objects, follow
from fastece.inputs.files.table import refuse_rows, shown

RESPONSES = ("filtered_resps", "resps")
# Where a document has the texts of its choices, or their letters.
CHOICES = (("choices",), ("choices", "text"), ("choices", "label"))


class Question(NamedTuple):
    """One line: the choices' log-likelihoods, and lists of their texts."""

    scores: list[float]
    texts: list[list[str]]


def is_log(row: dict[str, Any]) -> bool:
    """Whether an object has the keys of a line of such a log."""
    return "target" in row and any(name in row for name in RESPONSES)


def read_log(table: Objects) -> tuple[list[int], list[list[float]]]:
    """The number of the right choice of each question, and the log-likelihoods of its choices."""
    found = [read_question(row) for row in table.rows]
    refuse_rows((table.row(i), x) for i, x in enumerate(found) if isinstance(x, str))
    questions = [x for x in found if isinstance(x, Question)]
    right = right_choices(table, questions)
    rows = zip(table.rows, questions, right, strict=True)
    first = table.rows[0].get("filter")
    refuse_rows((table.row(i), contradiction(*row, first)) for i, row in enumerate(rows))
    return right, [question.scores for question in questions]


def read_question(row: dict[str, Any]) -> Question | str:
    """What a line holds, or the rule that it breaks."""
    name = next(name for name in RESPONSES if name in row)
    try:
        scores = [log_likelihood(response) for response in row[name]]
    except (ValueError, TypeError, LookupError):
        scores = []
    requests = read_requests(row)
    texts = [[text for _, text in requests], *(follow(row.get("doc"), path) for path in CHOICES)]
    if len(requests) == len(scores) and any(context for context, _ in requests):
        # Requests without a context weigh the choices by themselves, for another score.
        scores = [x for x, (context, _) in zip(scores, requests, strict=True) if context]
        texts[0] = [text for context, text in requests if context]
    if len(scores) < 2 or any(map(math.isnan, scores)) or not math.isfinite(max(scores)):
        rule = "must hold the log-likelihoods of two or more choices"
        return f"column {name}: {rule}, got {shown(row[name])}"
    lists = (x for x in texts if isinstance(x, list) and len(x) == len(scores))
    return Question(scores, [[str(text).strip() for text in x] for x in lists])


def log_likelihood(response: Any) -> float:
    """The number that comes first in a response, which may lie in a list of one response."""
    while isinstance(response, list):
        if isinstance(response[0], list) and len(response) > 1:
            raise ValueError
        response = response[0]
    return float(response)


def read_requests(row: dict[str, Any]) -> list[list[str]]:
    """The context and the continuation of each request; none if the log does not have them."""
    found = row.get("arguments")
    found = list(found.values()) if isinstance(found, dict) else found
    pairs = [list(x.values()) if isinstance(x, dict) else x for x in found or []]
    is_whole = all(isinstance(x, list) and len(x) == 2 for x in pairs)
    return [[str(text) for text in pair] for pair in pairs] if is_whole else []


def right_choices(table: Objects, questions: list[Question]) -> list[int]:
    """The number of the right choice of each question: targets are all numbers, or all texts,
    whatever fewer of them contradict."""
    targets = [str(row["target"]).strip() for row in table.rows]
    numbers = [by_number(x, question) for x, question in zip(targets, questions, strict=True)]
    texts = [by_text(x, question) for x, question in zip(targets, questions, strict=True)]
    rule = "must be the number of a choice, the first is 0, or the text of one choice"
    right = texts if texts.count(None) < numbers.count(None) else numbers
    if None not in numbers and None not in texts and numbers != texts:
        rule += ", and is both"
        right = [a if a == b else None for a, b in zip(numbers, texts, strict=True)]
    refuse_rows(
        (table.row(i), f"column target: {rule}, got {shown(target)}" if k is None else "")
        for i, (k, target) in enumerate(zip(right, targets, strict=True))
    )
    return [k for k in right if k is not None]


def by_number(target: str, question: Question) -> int | None:
    """The choice of which the target is the number."""
    is_number = target.isdecimal() and len(target) < 10
    return int(target) if is_number and int(target) < len(question.scores) else None


def by_text(target: str, question: Question) -> int | None:
    """The only choice of which the target is the text."""
    found = {texts.index(target) for texts in question.texts if texts.count(target) == 1}
    return found.pop() if len(found) == 1 else None


def contradiction(row: dict[str, Any], question: Question, right: int, first: Any) -> str:
    """What a line says of itself that is not so, or of another filter than the `first` line's."""
    if row.get("filter") != first:
        return f"column filter: must be {first!r}, as in the first row, got {row.get('filter')!r}"
    hit = question.scores.index(max(question.scores)) == right
    accuracy = row.get("acc", hit)
    if isinstance(accuracy, int | float) and accuracy != hit:
        return (
            f"column acc: must be {hit:d}, by the target and the likeliest choice, got {accuracy}"
        )
    return ""
