"""Fitted maps as code: a program of few kinds of steps, written in Python, SQL or JavaScript."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fastece import __version__

# A name in a formula, and whether it stands for the entry of a class or of a piece.
NAME = re.compile(r"\b([a-z]\w*)(\[k\])?")
# Functions in formulas, and their names in SQL.
FUNCTIONS = {"exp": "exp", "log": "ln", "min": "min", "max": "max"}
# Templates of whole programs, and of the lines of each kind of step.
PYTHON = {
    "program": (
        "# {headline}\nfrom math import exp, log\n\n{constants}\n\n\n"
        "def recalibrate({input}):\n{steps}\n    return recalibrated\n"
    ),
    "constant": "{name} = {value}",
    "value": "    {name} = {formula}",
    "vector": "    {name} = [{formula} for k in range({n_classes})]",
    "sum": "    {name} = sum({formula})",
    "max": "    {name} = max({formula})",
    "piece": "    k = sum(end < {variable} for end in {ends})\n    {name} = {formula}",
}
JAVASCRIPT = {
    "program": (
        "// {headline}\nconst {{exp, log, min, max}} = Math;\n{constants}\n"
        "function recalibrate({input}) {{\n{steps}\n  return recalibrated;\n}}\n"
    ),
    "constant": "const {name} = {value};",
    "value": "  const {name} = {formula};",
    "vector": "  const {name} = Array.from({input}, (_, k) => {formula});",
    "sum": "  const {name} = {formula}.reduce((a, b) => a + b);",
    "max": "  const {name} = max(...{formula});",
    "piece": (
        "  const k = {ends}.filter((end) => end < {variable}).length;\n  const {name} = {formula};"
    ),
}
SQL_DIALECT = "-- Other databases than SQLite call min and max LEAST and GREATEST."


class Step(NamedTuple):
    """A step of a program, which computes a number or a vector.

    Parameters
    ----------
    kind : {"value", "vector", "sum", "max", "piece"}
    name : str
        The name of the number or vector.
    formula : str
        A formula, or for "sum" and "max" the name of a vector. It may have names, numbers, the
        operators + - * /, parentheses and `FUNCTIONS`, with blanks around operators. ``name[k]``
        is the entry of class k, or in a piece of piece k.
    ends, variable : str
        For a piece: k is the first piece whose end is not below the variable.
    """

    kind: str
    name: str
    formula: str
    ends: str = ""
    variable: str = ""


class Program:
    """A map as constants and steps; the last step is called "recalibrated".

    Its input is p, the probability of class 1 or of each of more classes, or z, the log odds of
    class 1 or the logit of each class.

    Parameters
    ----------
    title : str
        The name of the method.
    n_classes : int
    from_logits : bool
        Whether the input is z.
    """

    def __init__(self, title: str, n_classes: int, from_logits: bool) -> None:
        self.title = title
        self.n_classes = n_classes
        self.from_logits = from_logits
        self.input = "z" if from_logits else "p"
        self.constants: dict[str, Any] = {}
        self.steps: list[Step] = []

    # --- steps of any formula ---------------------------------------------------------------

    def define(self, **constants: Any) -> None:
        """Add constants: numbers, or arrays with an entry for each class or piece."""
        for name, value in constants.items():
            self.constants[name] = np.asarray(value, np.float64).tolist()

    def value(self, name: str, formula: str) -> None:
        """Add a number."""
        self.steps.append(Step("value", name, formula))

    def vector(self, name: str, formula: str) -> None:
        """Add a number for each class k."""
        self.steps.append(Step("vector", name, formula))

    def piece(self, name: str, formula: str, *, ends: str, variable: str) -> None:
        """Add a number by the formula of the piece in which a variable lies.

        A variable at the end of a piece belongs to it. The constant `ends` increases, and has an
        entry for each piece; the last one is the largest number that the variable may be.
        """
        self.steps.append(Step("piece", name, formula, ends, variable))

    def sigmoid(self, name: str, variable: str) -> None:
        """Add the sigmoid of a number."""
        exp = f"exp(min({variable}, 0))"
        self.value(name, f"{exp} / ({exp} + exp(-max({variable}, 0)))")

    def softmax(self, name: str, vector: str) -> None:
        """Add the softmax of a vector."""
        self.steps.append(Step("max", f"max_{vector}", vector))
        self.vector(f"exp_{vector}", f"exp({vector}[k] - max_{vector})")
        self.steps.append(Step("sum", f"sum_{vector}", f"exp_{vector}"))
        self.vector(name, f"exp_{vector}[k] / sum_{vector}")

    # --- forms of the input -----------------------------------------------------------------

    def add_probability(self) -> None:
        """Make p the probability of class 1."""
        if self.from_logits:
            self.sigmoid("p", "z")

    def add_log_odds(self, clip: float) -> None:
        """Make z the log odds of class 1 of two."""
        if not self.from_logits:
            self._add_clipped(clip)
            self.value("z", "log(clipped) - log(1 - clipped)")

    def add_log_probabilities(self, clip: float) -> None:
        """Make log_p0 and log_p1 the logarithms of the probabilities of two classes."""
        if self.from_logits:
            self.value("excess", "log(1 + exp(min(z, -z)))")
            self.value("log_p0", "-max(z, 0) - excess")
            self.value("log_p1", "min(z, 0) - excess")
        else:
            self._add_clipped(clip)
            self.value("log_p0", "log(1 - clipped)")
            self.value("log_p1", "log(clipped)")

    def add_logits(self, clip: float) -> None:
        """Make z the vector of the logits of more than two classes."""
        if not self.from_logits:
            self.define(clip=clip)
            self.vector("z", "log(max(p[k], clip))")

    def _add_clipped(self, clip: float) -> None:
        """Add the probability of class 1, at least the clip away from 0 and 1."""
        self.define(clip=clip)
        self.value("clipped", "min(max(p, clip), 1 - clip)")

    # --- text -------------------------------------------------------------------------------

    def headline(self, inputs: str) -> str:
        """Write a line about the method and its input, whose names are given."""
        if self.n_classes == 2:
            kind = "log odds" if self.from_logits else "probability"
            classes = "class 1"
        else:
            kind = "logits" if self.from_logits else "probabilities"
            classes = f"{self.n_classes} classes"
        title = self.title[:1].upper() + self.title[1:]
        return f"{title} by fastece {__version__}, from the {kind} {inputs} of {classes}."


def fill_templates(templates: dict[str, str], program: Program) -> str:
    """Write a program by templates of the whole and of its lines."""
    constants = [
        templates["constant"].format(name=name, value=value)
        for name, value in program.constants.items()
    ]
    names = {"input": program.input, "n_classes": program.n_classes}
    steps = [templates[step.kind].format(**names, **step._asdict()) for step in program.steps]
    return templates["program"].format(
        headline=program.headline(program.input), input=program.input,
        constants="\n".join(constants), steps="\n".join(steps),
    )  # fmt: skip


# --- SQL --------------------------------------------------------------------------------------


def to_sql(program: Program) -> str:
    """Write a program as a query, which adds columns to a table `predictions`."""
    inputs = program.input
    if program.n_classes > 2:
        inputs = f"{inputs}0, {inputs}1, ..."
    selects = []
    table = "predictions"
    for number, step in enumerate(program.steps, 1):
        columns = ",\n  ".join(columns_in_sql(program, step))
        selects.append(f"SELECT *,\n  {columns}\nFROM {table}")
        table = f"step{number}"
    *inner, last = selects
    tables = [f"step{number} AS (\n{select}\n)" for number, select in enumerate(inner, 1)]
    first = "WITH " + ",\n".join(tables) + "\n" if tables else ""
    return f"-- {program.headline(inputs)}\n{SQL_DIALECT}\n{first}{last}\n"


def columns_in_sql(program: Program, step: Step) -> list[str]:
    """Write the columns of a step: one, or one for each class."""
    name = name_in_sql(program, step.name)
    classes = range(program.n_classes)
    if step.kind == "vector":
        return [f"{formula_in_sql(program, step.formula, k)} AS {name}{k}" for k in classes]
    if step.kind == "value":
        expression = formula_in_sql(program, step.formula)
    elif step.kind == "piece":
        expression = pieces_in_sql(program, step)
    else:
        entries = [f"{name_in_sql(program, step.formula)}{k}" for k in classes]
        expression = " + ".join(entries) if step.kind == "sum" else f"max({', '.join(entries)})"
    return [f"{expression} AS {name}"]


def pieces_in_sql(program: Program, step: Step) -> str:
    """Write the formula of each piece, and the condition that the variable lies in it."""
    variable = name_in_sql(program, step.variable)
    pieces = [
        f"    WHEN {variable} <= {number_in_sql(end)} "
        f"THEN {formula_in_sql(program, step.formula, k)}"
        for k, end in enumerate(program.constants[step.ends])
    ]
    return "\n".join(["CASE", *pieces, "  END"])


def formula_in_sql(program: Program, formula: str, k: int = 0) -> str:
    """Write a formula for class or piece k, with numbers in place of constants."""

    def term(found: re.Match[str]) -> str:
        name, index = found.groups()
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        if name in program.constants:
            value = program.constants[name]
            return number_in_sql(value[k] if index else value)
        column = name_in_sql(program, name)
        return f"{column}{k}" if index else column

    return NAME.sub(term, formula)


def number_in_sql(number: float) -> str:
    """Write a number with all its digits; two signs in a row would begin a comment."""
    return f"({number!r})" if number < 0 else repr(number)


def name_in_sql(program: Program, name: str) -> str:
    """Name the column of an input, a step or the result.

    The columns of steps begin with "_", so that none is a column of the caller's table.
    """
    return name if name in (program.input, "recalibrated") else f"_{name}"


LANGUAGES: dict[str, Callable[[Program], str]] = {
    "python": partial(fill_templates, PYTHON),
    "sql": to_sql,
    "js": partial(fill_templates, JAVASCRIPT),
}
