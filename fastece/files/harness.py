"""Per-sample logs of lm-evaluation-harness for multiple-choice tasks.

They are written by ``--log_samples``.

A line is an object: `filtered_resps` has the log-likelihood of each choice, and whether it is the
greedy continuation, as strings; `resps` the same, one list deeper; `target` is the right choice, as
its number from 0 on or its text. `arguments` holds the requests, each a context and a continuation;
`doc` is the document of the data set, and `acc` is 1 if the likeliest choice is right.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from fastece.files.columns import Fault, Table, row_fault

RESPONSES = ("filtered_resps", "resps")
# Where a document has the texts of its choices, or their letters.
CHOICES = (("choices",), ("choices", "text"), ("choices", "label"))


def is_log(row: dict[str, Any]) -> bool:
    """Return whether an object has the keys of a line of such a log."""
    return "target" in row and any(name in row for name in RESPONSES)


def read_log(table: Table) -> tuple[list[int], list[list[float]]]:
    """Read the right choice and the log-likelihoods of each question of a log."""
    rows = table.rows

    def refuse(name: str, rule: str, are_bad: Iterable[bool]) -> None:
        pairs = zip(rows, are_bad, strict=True)
        cells = [Fault(rule, row.get(name), "") if is_bad else None for row, is_bad in pairs]
        if any(cells):
            table.refuse([(name, cells, lambda cell, _: cell)])

    def contradicts(row: dict[str, Any], scores: list[float], right: int) -> bool:
        accuracy, hit = row.get("acc"), scores.index(max(scores)) == right
        return isinstance(accuracy, int | float) and accuracy != hit

    if any(isinstance(row, Fault) for row in rows):
        table.refuse([("path", [*rows], row_fault)])
    first = next(filter(is_log, rows))
    name = next(name for name in RESPONSES if name in first)
    scores, numbers, texts = zip(*(read_question(row, name) for row in rows), strict=True)
    refuse(name, "must hold the log-likelihoods of two or more choices", (not z for z in scores))
    # Targets are all numbers, or all texts, whatever fewer of them contradict.
    right = texts if texts.count(None) < numbers.count(None) else numbers
    rule = "must be the number of a choice, the first is 0, or the text of one choice"
    refuse("target", rule, (k is None for k in right))
    if None not in (*numbers, *texts):
        refuse("target", f"{rule}, and is both", map(int.__ne__, numbers, texts))
    rule = f"must be {first.get('filter')!r}, as the first row has"
    refuse("filter", rule, (row.get("filter") != first.get("filter") for row in rows))
    rule = "must be 1 if the likeliest choice is the target, else 0"
    refuse("acc", rule, map(contradicts, rows, scores, right))
    return [*right], [*scores]


def read_question(row: dict[str, Any], name: str) -> tuple[list[float], int | None, int | None]:
    """Read the log-likelihoods of the choices of a line, and its target.

    The target is found as the number of a choice, and as the text of one. Without two choices there
    are no log-likelihoods.
    """
    try:
        scores = [log_likelihood(response) for response in row[name]]
    except (ValueError, TypeError, LookupError):
        scores = []
    requests = read_requests(row)
    lists = [[text for _, text in requests], *(follow(row.get("doc"), path) for path in CHOICES)]
    if len(requests) == len(scores) and any(context for context, _ in requests):
        # Requests without a context weigh the choices by themselves, for another score.
        scores = [x for x, (context, _) in zip(scores, requests, strict=True) if context]
        lists[0] = [text for context, text in requests if context]
    if len(scores) < 2 or any(map(math.isnan, scores)) or not math.isfinite(max(scores)):
        return [], None, None
    target = str(row.get("target")).strip()
    is_number = target.isdecimal() and len(target) < 10 and int(target) < len(scores)
    places = set()
    for texts in lists:
        if isinstance(texts, list) and len(texts) == len(scores):
            texts = [str(text).strip() for text in texts]
            places |= {texts.index(target)} if texts.count(target) == 1 else set()
    return scores, int(target) if is_number else None, places.pop() if len(places) == 1 else None


def log_likelihood(response: Any) -> float:
    """Return the first number of a response, which may be nested in lists of one."""
    while isinstance(response, list):
        if isinstance(response[0], list) and len(response) > 1:
            raise ValueError
        response = response[0]
    return float(response)


def read_requests(row: dict[str, Any]) -> list[list[str]]:
    """Read the context and the continuation of each request, if the log has them."""
    found = row.get("arguments")
    found = list(found.values()) if isinstance(found, dict) else found
    pairs = [list(x.values()) if isinstance(x, dict) else x for x in found or []]
    is_whole = all(isinstance(x, list) and len(x) == 2 for x in pairs)
    return [[str(text) for text in pair] for pair in pairs] if is_whole else []


def follow(value: Any, path: Sequence[str]) -> Any:
    """Return the value that a path leads to, or None."""
    for key in path:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, TypeError, ValueError):
            return None
    return value
