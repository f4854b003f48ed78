"""The commands and their options, as tables that argparse is made of."""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fastece import __version__
from fastece.inputs.files import LAYOUTS

__all__ = ["make_parser"]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr and exit with 2."""
        print(f"fastece: error: {message} (fastece --help)", file=sys.stderr)
        sys.exit(2)


def number_or(word: str, number: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader of a number or a word."""

    def read(text: str) -> Any:
        try:
            return text if text == word else number(text)
        except ValueError:
            message = f'must be a number or "{word}", got {text!r}'
            raise argparse.ArgumentTypeError(message) from None

    return read


def read_setting(text: str) -> int | str:
    """A class index or a name."""
    return int(text) if text.lstrip("-").isdecimal() else text


def read_scores(text: str) -> list[float]:
    """Scores, separated by commas."""
    try:
        scores = [float(part) for part in text.split(",")]
    except ValueError:
        scores = [math.nan]
    if not all(0 <= score <= 1 for score in scores):
        raise argparse.ArgumentTypeError(f"must be scores in [0, 1] and commas, got {text!r}")
    return scores


def read_level(text: str) -> float:
    """A confidence level."""
    level = number_or("", float)(text)
    if not level or not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text!r}")
    return float(level)


# Where two commands mean different things by one, its name begins with the command's.
OPTIONS: dict[str, dict[str, Any]] = {
    "--y-true": {"metavar": "COLUMN", "help": "column of the labels"},
    "--y-prob": {"metavar": "COLUMN[,COLUMN...]", "help": "columns of the probabilities"},
    "--labels": {
        "metavar": "LABEL[,LABEL...]",
        "help": "which label each column of probabilities is of, in their order",
    },
    "--pos-label": {"metavar": "LABEL", "help": "which label y_prob is the probability of"},
    "--classes": {
        "type": int, "metavar": "K",
        "help": "number of classes behind the predicted one: its confidence is at least 1/K",
    },
    "--at": {
        "type": read_scores, "metavar": "SCORE[,SCORE...]",
        "help": "scores in [0, 1] (default: eleven from one end of the range to the other)",
    },
    "--bandwidth": {
        "type": number_or("silverman", float), "default": "silverman", "metavar": "H",
        "help": 'standard deviation of the kernel, or "silverman" (default)',
    },
    "--kernel": {"default": "gaussian", "help": "default: gaussian"},
    "--setting": {
        "type": read_setting, "default": "auto",
        "help": "auto, binary, confidence, classwise or a class index",
    },
    "--from-logits": {"action": "store_true", "help": "the file holds logits"},
    "--n-bins": {"type": number_or("sqrt", int), "default": 15, "help": 'a number or "sqrt"'},
    "--resamples": {
        "type": int, "metavar": "N", "help": "resamples behind the intervals (default %(default)s)",
    },
    "--confidence-level": {
        "type": read_level, "default": 0.95, "metavar": "LEVEL",
        "help": "of the intervals (default 0.95)",
    },
    "--plot": {"metavar": "FILE", "help": "write a picture: .png, .svg or .pdf, with matplotlib"},
    "--markdown": {
        "action": "store_const", "const": "markdown", "dest": "form",
        "help": "tables for a README",
    },
    "--preset": {
        "default": "quick",
        "help": "quick (default: less than a minute) or paper (64.8 million evaluations)",
    },
    "--out": {
        "metavar": "FOLDER",
        "help": "of the results (default: fastece-study-PRESET, and what else is given)",
    },
    "--convention": {
        "metavar": "NAME",
        "help": "corrected (default), or published: with the slips of the published code",
    },
    "--estimator": {
        "action": "append", "default": [], "metavar": "MODULE:NAME", "dest": "estimators",
        "help": "one more estimator: an object with prepare and evaluate, or what makes one",
    },
    "curve --estimator": {
        "choices": ["ece_kde", "ece_bayes"], "default": "ece_kde",
        "help": "densities (default), or a Bayesian curve, which needs no resamples",
    },
    "--holdout": {"type": int, "metavar": "N", "help": "rows to draw from (200000)"},
    "--largest": {"type": int, "metavar": "N", "help": "largest evaluation set (500)"},
    "--draws": {"type": int, "metavar": "N", "help": "evaluation sets of each size (200)"},
    "--jobs": {
        "type": int, "default": -1, "metavar": "N", "help": "processes (default -1: one per core)",
    },
    "--seed": {"type": int, "help": "of everything that is random (default 0)"},
    "--json": {
        "action": "store_const", "const": "json", "dest": "form", "help": "machine-readable output",
    },
}  # fmt: skip
FILE = ("--y-true", "--y-prob", "--labels", "--pos-label", "--classes")
MEASURE = ("--setting", "--from-logits", "--resamples", "--confidence-level", "--seed")
CURVE = ("curve --estimator", "--at", "--bandwidth", "--kernel")
STUDY = (
    "--preset", "--out", "--convention", "--estimator", "--holdout", "--largest", "--draws",
    "--seed", "--jobs",
)  # fmt: skip


class Command(NamedTuple):
    """One row of the table of commands: help, description, arguments, options and defaults."""

    help: str
    description: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    defaults: dict[str, Any]


COMMANDS = {
    "report": Command(
        "size, accuracy, calibration errors and reliability diagram of a file",
        f"Report on a file of predictions: CSV with the columns {LAYOUTS}; NPZ with the arrays "
        "y_true and y_prob; Parquet (with pyarrow). With --resamples 0 there are no intervals.",
        ("file",), (*FILE, *MEASURE, "--n-bins", "--plot"), {"resamples": 1000, "seed": 0},
    ),
    "compare": Command(
        "the difference between two models, on the same rows",
        "Compare two files of predictions, as fastece report reads them, which have the same "
        "labels row by row: every error of both, the difference a - b, its interval, and the "
        "p-value of there being none.",
        ("a", "b"), (*FILE, *MEASURE, "--n-bins"), {"resamples": 9999, "seed": 0},
    ),
    "demo": Command(
        "the report on predictions that ship with fastece",
        "Report on a small neural network that reads handwritten digits (1797 rows, 10 classes, "
        "cross-validated).",
        (), (*MEASURE, "--n-bins", "--plot"), {"resamples": 1000, "seed": 0},
    ),
    "curve": Command(
        "how often scores come true, at any score",
        "How often scores come true, from densities or as a Bayesian curve, with intervals, for a "
        "file of predictions as fastece report reads it. With --resamples 0 densities have no "
        "intervals.",
        ("file",), (*FILE, *CURVE, *MEASURE, "--plot"), {"resamples": 500, "seed": 0},
    ),
    "bench": Command(
        "speed of every estimator on this machine, and of numpy beside it",
        "Time one call of every estimator on uniform scores and on class vectors, and replicates "
        "of the bootstrap, each beside the numpy code that a user would write, on one thread: "
        "about half a minute.",
        (), ("--markdown",), {},
    ),
    "warmup": Command(
        "compile everything ahead, such as for a container image",
        "Compile every kernel for every kind of input, and keep them in a folder of "
        "FASTECE_CACHE_DIR or of the user's cache folder.",
        (), (), {},
    ),
    "study": Command(
        "which estimator is best, on synthetic problems with known truth",
        "Compare estimators on distributions of scores whose calibration error is known (Posocco "
        "and Bonnefoy, 2021). An interrupted study goes on where it was.",
        (), STUDY, {},
    ),
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """A parser of every command."""
    parser = Parser(prog="fastece", description="Calibration errors of classifiers.")
    parser.add_argument("--version", action="version", version=f"fastece {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, row in COMMANDS.items():
        command = commands.add_parser(name, help=row.help, description=row.description)
        for argument in row.arguments:
            command.add_argument(argument, metavar=argument.upper())
        for option in (*row.options, "--json"):
            command.add_argument(option.split()[-1], **OPTIONS[option])
        command.set_defaults(**row.defaults)
    return parser
