"""Logs of evaluations as tables of predictions: of lm-evaluation-harness, and of inspect.

`open_log` knows them by the keys of their first row. Only what most logs have is read. A log with
anything else is refused, as it would have to be guessed what is right, or how sure the model was.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import MAX_TIER
from fastece.data.errors import InputError, RowsWarning, warn_outside
from fastece.files.cells import NUMBER, PERCENT_SIGN
from fastece.files.columns import PAIR_COLUMNS
from fastece.files.json_objects import Json, follow
from fastece.files.tables import (
    Columns,
    JsonObjects,
    Table,
)

# Where a line of lm-evaluation-harness has the likelihoods of choices, and its accuracy.
RESPONSES = ("filtered_resps", "resps")
ACCURACY = "acc"
# Where its document has the texts of choices, or their letters.
CHOICES = (("choices",), ("choices", "text"), ("choices", "label"))
NO_TARGET = "must be the number of a choice, the first is 0, or the text of one choice"
# Digits of the number of a choice; a text of more digits is no number.
MAX_DIGITS = 9
# The column of several logs that names the task of each.
TASK_COLUMN = "task"
# The column of an inspect log whose attempts at one question are a group.
QUESTION_COLUMN = "question"
# Outcomes of inspect as text. N is no answer, which is not right.
OUTCOMES = {
    **dict.fromkeys(("C", "True", "1", "1.0"), True),
    **dict.fromkeys(("I", "N", "False", "0", "0.0"), False),
}
NO_OUTCOME = "must have one result that is C, I or N, true or false, 1 or 0, with a confidence"
CHOOSE_SCORER = "{y_true} and {y_prob} name the columns of one"
NAME_COLUMNS = (
    "name the columns of results and confidences by {y_true} and {y_prob}, and a word that means "
    "right by {pos_label}"
)
# Long parts of an attempt, none of which is a result.
LONG_PARTS = {"attachments", "error", "error_retries", "events", "events_data", "messages", "store"}
# Shares may exceed 1 by rounding.
MAX_SHARE = 1 + 1e-6
# A larger share of attempts that are left out is a warning.
MAX_LEFT_OUT = 0.2


class LogTable(JsonObjects):
    """Rows of a log, with columns made of them beside the paths into the rows.

    Parameters
    ----------
    file : str
    row_names : sequence of str
        Names of the rows for messages.
    rows : sequence of dict
    columns : dict
        The columns that were made, by their names.
    note : str
    """

    def __init__(
        self, file: str, row_names: Sequence[str], rows: Sequence[Json], columns: Mapping[str, Any],
        note: str,
    ) -> None:  # fmt: skip
        super().__init__(file, "row", lambda: enumerate(rows, 1))
        self.find_names()
        self.names = [*columns, *(name for name in self.names if name not in columns)]
        self.note = note
        self._row_names = row_names
        self._columns = columns

    def batches(self, names: Sequence[str], _numbers: Collection[str] = (), /) -> Iterator[Columns]:
        """Yield all rows as one batch."""
        paths = [name for name in names if name not in self._columns]
        columns = self.make_columns(list(self.read_rows()), paths)
        yield {name: columns.get(name, self._columns.get(name, [])) for name in names}

    def row_name(self, index: int) -> str:
        """Name a row."""
        return self._row_names[index]

    def names_to_keep(self) -> list[str]:
        """List the columns that were made; the rows of a log are no table."""
        return list(self._columns)


def open_log(table: Table, names_columns: bool) -> Table:
    """Return the predictions of a log; other tables are as they are.

    With `names_columns` the caller names columns, and of a log of inspect only groups are made.
    """
    if isinstance(table, LogTable) or not isinstance(table, JsonObjects):
        return table
    _, row = next(table.read_rows(), (0, {}))
    if is_harness(row):
        return table if names_columns else read_harness([table])
    samples = row.get("samples")
    if isinstance(samples, list) and any("epoch" in as_object(x) for x in samples):
        attempts = list(map(as_object, samples))
        table = JsonObjects(table.file, "attempt", lambda: iter(enumerate(attempts, 1)))
        return read_inspect(table, names_columns)
    is_inspect = table.unit == "attempt" or ("epoch" in row and "scores" in row)
    return read_inspect(table, names_columns) if is_inspect else table


def is_harness(row: Json) -> bool:
    """Decide whether an object has the keys of a line of lm-evaluation-harness."""
    return "target" in row and any(name in row for name in RESPONSES)


def as_object(value: Any) -> Json:
    """Return an object of JSON, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def columns_of_hits(hits: Sequence[bool], confidences: Any) -> dict[str, Any]:
    """Make columns of hits; a right prediction has the true label, True."""
    columns = (np.ones(len(hits), bool), np.array(hits), np.array(confidences))
    return dict(zip(PAIR_COLUMNS, columns, strict=True))


# --- lm-evaluation-harness ------------------------------------------------------------------------


class Question(NamedTuple):
    """Log-likelihoods of the choices of a line, and the target among them.

    The target is looked for as the number of a choice, and as the text of one; None: not found.
    """

    scores: list[float]
    number: int | None
    text: int | None


def read_harness(logs: Sequence[JsonObjects], tasks: Sequence[str] = ()) -> LogTable:
    """Read questions whose choices have log-likelihoods, one of which is the target.

    The softmax of a question's choices is a class vector. Where questions have different numbers of
    choices, or no target is a choice, rows say whether the likeliest choice is right. Of several
    logs, the task of each is a column.
    """
    rows: list[Json] = []
    places: list[str] = []
    counts_of_logs = []
    for log in logs:
        numbered_rows = list(log.read_rows())
        places += [f"{log.file}: {log.unit} {number}" for number, _ in numbered_rows]
        rows += [row for _, row in numbered_rows]
        counts_of_logs.append(len(numbered_rows))
    questions = [read_question(*pair) for pair in zip(places, rows, strict=True)]
    starts = np.repeat(np.cumsum([0, *counts_of_logs[:-1]]), counts_of_logs)
    for place, row, start in zip(places, rows, starts, strict=True):
        expected = rows[start].get("filter")
        if row.get("filter") != expected:
            raise refusal(place, row, "filter", f"must be {expected!r}, as the first row has")
    stops = np.cumsum(counts_of_logs).tolist()
    targets = [
        target
        for start, stop in zip([0, *stops], stops, strict=False)
        for target in find_targets(questions[start:stop])
    ]
    has_targets = any(target is not None for target in targets)
    hits = [
        check_accuracy(place, row, question, target, has_targets)
        for place, row, question, target in zip(places, rows, questions, targets, strict=True)
    ]
    counts = [len(question.scores) for question in questions]
    note = "log of lm-evaluation-harness, softmax over the choices of each question"
    if has_targets and min(counts) == max(counts):
        scores = np.array([question.scores for question in questions])
        columns: dict[str, Any] = {"y_true": np.array(targets), "y_prob": scores}
    else:
        if min(counts) != max(counts):
            note += f", which has {min(counts)} to {max(counts)}: of the likeliest choice alone"
        if not has_targets:
            note += f"; no target is one of them, so {ACCURACY} says whether it is right"
        columns = columns_of_hits(hits, [top_share(question.scores) for question in questions])
    file = f"{len(logs)} logs"
    if tasks:
        columns[TASK_COLUMN] = np.repeat(tasks, counts_of_logs)
    else:
        file = logs[0].file
        places = [place.removeprefix(f"{file}: ") for place in places]
    table = LogTable(file, places, rows, columns, note)
    table.needs_all_rows = table.has_shares = True
    table.from_logits = "y_prob" in columns
    return table


def refusal(place: str, row: Json, column: str, rule: str) -> InputError:
    """Make the error about a value of a row."""
    return InputError(column, rule, value=row.get(column), place=f"{place}, column {column}")


def read_question(place: str, row: Json) -> Question:
    """Read the log-likelihoods of choices, and find the target among these."""
    responses = next((name for name in RESPONSES if name in row), RESPONSES[0])
    try:
        scores = [first_number(response) for response in row[responses]]
    except (ValueError, TypeError, LookupError):
        scores = []
    requests = read_requests(row)
    if len(requests) == len(scores) and any(context for context, _ in requests):
        # Requests without a context weigh the choices by themselves, for another score.
        pairs = zip(scores, requests, strict=True)
        scores = [score for score, (context, _) in pairs if context]
        requests = [request for request in requests if request[0]]
    if len(scores) < 2 or any(map(math.isnan, scores)) or math.isinf(max(scores)):
        rule = "must hold the log-likelihoods of two or more choices"
        raise refusal(place, row, responses, rule)
    target = str(row.get("target")).strip()
    is_number = target.isdecimal() and len(target) <= MAX_DIGITS and int(target) < len(scores)
    lists_of_texts: list[Any] = [[text for _, text in requests]]
    lists_of_texts += [follow(row.get("doc"), path) for path in CHOICES]
    return Question(
        scores,
        number=int(target) if is_number else None,
        text=find_choice(target, lists_of_texts, len(scores)),
    )


def first_number(response: Any) -> float:
    """Return the first number of a response, which may be in lists of one entry."""
    while isinstance(response, list):
        if isinstance(response[0], list) and len(response) > 1:
            raise ValueError
        response = response[0]
    return float(response)


def read_requests(row: Json) -> list[tuple[str, str]]:
    """Read the context and the text of each request to the model, if the log has them."""
    arguments = row.get("arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    if not isinstance(requests, list):
        return []
    pairs = [list(x.values()) if isinstance(x, dict) else x for x in requests]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return []
    return [(str(context), str(text)) for context, text in pairs]


def find_choice(target: str, lists_of_texts: Sequence[Any], n_choices: int) -> int | None:
    """Find the choice whose text is the target, if all lists agree on it."""
    places = set()
    for texts in lists_of_texts:
        if isinstance(texts, list) and len(texts) == n_choices:
            stripped = [str(text).strip() for text in texts]
            if stripped.count(target) == 1:
                places.add(stripped.index(target))
    return places.pop() if len(places) == 1 else None


def find_targets(questions: Sequence[Question]) -> list[int | None]:
    """Find the right choice of each question.

    All targets are numbers, or all are texts: what fewer of them contradict. If both are possible
    for all, they have to agree.
    """
    numbers = [question.number for question in questions]
    texts = [question.text for question in questions]
    if None not in numbers and None not in texts:
        pairs = zip(numbers, texts, strict=True)
        return [number if number == text else None for number, text in pairs]
    return texts if texts.count(None) < numbers.count(None) else numbers


def check_accuracy(
    place: str, row: Json, question: Question, target: int | None, has_targets: bool
) -> bool:
    """Return whether the likeliest choice is right, which no accuracy may contradict.

    Where no target shows it, the accuracy does.
    """
    accuracy = row.get(ACCURACY)
    if not has_targets and accuracy in (0, 1):
        return bool(accuracy)
    if target is None:
        rule = NO_TARGET
        if question.number is not None and question.text is not None:
            rule += ", and is both"
        raise refusal(place, row, "target", rule)
    is_hit = question.scores.index(max(question.scores)) == target
    if isinstance(accuracy, int | float) and accuracy != is_hit:
        rule = "must be 1 if the likeliest choice is the target, else 0"
        raise refusal(place, row, ACCURACY, rule)
    return is_hit


def top_share(scores: Sequence[float]) -> float:
    """Return the probability of the likeliest choice."""
    differences = np.array(scores) - max(scores)
    return float(1 / np.exp(differences).sum())


# --- inspect --------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """Whether an attempt is right, the text of its confidence, and the scorer."""

    is_right: bool
    confidence: str
    scorer: str


def read_inspect(log: JsonObjects, names_columns: bool) -> LogTable:
    """Read attempts at questions, each with a result and a confidence.

    Attempts without one of both are left out and counted. Those at one question are a group. Where
    the caller names columns, all attempts with scores are rows.
    """
    rows: list[Json] = []
    row_names: list[str] = []
    answers: list[Answer] = []
    # Attempts without any result, and others without a confidence.
    n_attempts = n_unscored = n_unstated = 0
    for number, sample in log.read_rows():
        n_attempts += 1
        results = read_results(sample)
        stated = {name: x for name, x in results.items() if x.confidence is not None}
        if not (as_object(sample.get("scores")) if names_columns else results):
            n_unscored += 1
        elif not (names_columns or stated):
            n_unstated += 1
        else:
            row_names.append(f"attempt {number}")
            rows.append({key: value for key, value in sample.items() if key not in LONG_PARTS})
            if not names_columns:
                answers.append(choose_answer(f"{log.file}: attempt {number}", stated))
    if not rows:
        lack = "readable confidence" if n_unstated else "result"
        rule = f"has {n_attempts} attempts without a {lack}"
        raise InputError("path", rule, place=log.file, hint=NAME_COLUMNS)
    if n_unstated > MAX_LEFT_OUT * n_attempts:
        rule = f"{n_unstated} of {n_attempts} attempts have no readable confidence and are left out"
        hint = "the others may be easier, or harder, than these"
        warn_outside(RowsWarning("path", rule, hint=hint, place=log.file))
    notes = ["log of inspect"]
    columns: dict[str, Any] = {}
    if answers:
        notes[0] += f", {', '.join(dict.fromkeys(answer.scorer for answer in answers))}"
        shares, are_percents = to_shares(log.file, [answer.confidence for answer in answers])
        notes[0] += ", confidences in percent" if are_percents else ""
        columns = columns_of_hits([answer.is_right for answer in answers], shares)
    questions = [str(row.get("id")) for row in rows]
    are_groups = len(set(questions)) < len(questions)
    if are_groups:
        notes.append("attempts at one question are a group")
    for lack, count in {"result": n_unscored, "readable confidence": n_unstated}.items():
        if count:
            notes.append(f"{count} of {n_attempts} attempts without a {lack} are left out")
    columns[QUESTION_COLUMN] = questions
    table = LogTable(log.file, row_names, rows, columns, "; ".join(notes))
    table.has_shares = bool(answers)
    table.needs_all_rows = are_groups
    table.group_column = QUESTION_COLUMN if are_groups else ""
    return table


class ScorerResult(NamedTuple):
    """The result of a scorer as text, and a confidence that can be read."""

    outcome: str
    confidence: str | None


def read_results(sample: Json) -> dict[str, ScorerResult]:
    """Read the results of an attempt by scorer; an outcome of nan is none."""
    results = {}
    for scorer, score in as_object(sample.get("scores")).items():
        value = follow(score, ["value"])
        outcome = value
        if isinstance(value, dict):
            outcome = value.get("score", value.get("correct"))
        if outcome is not None and outcome == outcome:
            confidence = find_confidence(sample, [value, follow(score, ["metadata"])])
            results[scorer] = ScorerResult(str(outcome).strip(), confidence)
    return results


def choose_answer(place: str, results: Mapping[str, ScorerResult]) -> Answer:
    """Return the only result of an attempt, which has to be right or wrong."""
    (scorer, result), *others = results.items()
    if others or result.outcome not in OUTCOMES:
        shown = {name: [*result] for name, result in results.items()}
        hint = CHOOSE_SCORER if others else NAME_COLUMNS
        raise InputError("path", NO_OUTCOME, value=shown, place=place, hint=hint)
    return Answer(OUTCOMES[result.outcome], str(result.confidence), scorer)


def find_confidence(sample: Json, parts: Sequence[Any]) -> str | None:
    """Find the text of a confidence in a score, or the probability of a letter."""
    holders = [part for part in parts if isinstance(part, dict) and "confidence" in part]
    if not holders:
        return letter_probability(sample)
    text = str(holders[0]["confidence"]).strip()
    number = text.removesuffix(PERCENT_SIGN).rstrip()
    is_readable = NUMBER.fullmatch(number) and math.isfinite(float(number))
    return text if is_readable else None


def letter_probability(sample: Json) -> str | None:
    """Return the probability of the last letter of a choice in the output."""
    choices = sample.get("choices")
    n_choices = len(choices) if isinstance(choices, list) else 0
    letters = set(ascii_uppercase[:n_choices])
    tokens = follow(sample, ["output", "choices", "0", "logprobs", "content"])
    logs = [
        follow(token, ["logprob"])
        for token in (tokens if isinstance(tokens, list) else [])
        if str(follow(token, ["token"])).strip() in letters
    ]
    is_log = bool(logs) and type(logs[-1]) in (int, float) and logs[-1] <= 0
    return repr(math.exp(logs[-1])) if is_log else None


def to_shares(file: str, confidences: Sequence[str]) -> tuple[NDArray[np.float64], bool]:
    """Turn confidences into shares, and return whether they are percents.

    They are if one is above 10 or has a sign %.
    """
    numbers = np.array([float(text.removesuffix(PERCENT_SIGN)) for text in confidences])
    have_signs = [text.endswith(PERCENT_SIGN) for text in confidences]
    largest = numbers.max()
    are_percents = largest > MAX_TIER or any(have_signs)
    are_mixed = any(0 < x < 1 for x, sign in zip(numbers, have_signs, strict=True) if not sign)
    if largest > MAX_SHARE and (are_mixed or not are_percents):
        rule = f"go from {numbers.min():g} to {largest:g}: neither shares nor percents"
        hint = "divide tiers by the largest that may be stated"
        raise InputError("confidence", rule, place=f"{file}: confidences", hint=hint)
    return (numbers / 100 if are_percents else numbers), are_percents
