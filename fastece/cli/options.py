"""Commands and their options, as tables for argparse."""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from fastece import __version__
from fastece.files import LAYOUTS


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr and exit with 2."""
        print(f"fastece: error: {message} (fastece --help)", file=sys.stderr)
        sys.exit(2)


def reader(
    rule: str, read: Callable[[str], Any], holds: Callable[[Any], bool] = lambda _: True
) -> Callable[[str], Any]:
    """Make a reader of an option's text, whose error names the rule."""

    def read_text(text: str) -> Any:
        with suppress(ValueError):
            value = read(text)
            if holds(value):
                return value
        raise argparse.ArgumentTypeError(f"must be {rule}, got {text!r}")

    return read_text


def number_or(word: str, number: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make a reader of a number or a given word."""
    return reader(f'a number or "{word}"', lambda text: text if text == word else number(text))


def read_setting(text: str) -> int | str:
    """Read a class index or a name."""
    return int(text) if text.lstrip("-").isdecimal() else text


read_level = reader("a number between 0 and 1", float, lambda level: 0 < level < 1)
read_scores = reader(
    "scores in [0, 1] and commas",
    lambda text: [float(part) for part in text.split(",")],
    lambda scores: all(0 <= score <= 1 for score in scores),
)


def value(
    metavar: str | None, text: str, read: Callable[[str], Any] = str, default: Any = None
) -> dict[str, Any]:
    """Describe an option with a value for argparse."""
    return {"metavar": metavar, "help": text, "type": read, "default": default}


def form(name: str, text: str) -> dict[str, Any]:
    """Describe an option for the form of the output for argparse."""
    return {"action": "store_const", "const": name, "dest": "form", "help": text}


OPTIONS = {
    "--y-true": value("COLUMN", "column of the labels"),
    "--y-prob": value("COLUMN[,COLUMN...]", "columns of the probabilities; prob_* is all of those"),
    "--weights": value("COLUMN", "column of the weights of the rows"),
    "--labels": value("LABEL[,LABEL...]", "label of each column of probabilities, in their order"),
    "--pos-label": value("LABEL", "which label y_prob is the probability of"),
    "--classes": value("K", "classes behind the predicted one: its confidence is 1/K or more", int),
    "--at": value("SCORE[,SCORE...]", "in [0, 1] (default: eleven over the range)", read_scores),
    "--bandwidth": value(
        "H", 'standard deviation of the kernel, or "silverman" (default)',
        number_or("silverman", float),
    ),
    "--kernel": value(None, "default: gaussian"),
    "--setting": value(
        None, "auto, binary, confidence, classwise or a class index", read_setting, "auto"
    ),
    "--from-logits": {"action": "store_true", "help": "the file holds logits"},
    "--n-bins": value(None, 'a number or "sqrt"', number_or("sqrt", int), 15),
    "--resamples": value("N", "replicates behind the intervals (1999; of curve 500)", int),
    "--confidence-level": value("LEVEL", "of the intervals (default 0.95)", read_level, 0.95),
    "--plot": value("FILE", "write a picture: .png, .svg or .pdf, with matplotlib"),
    "--html": value("FILE", "write the report as one HTML page, with matplotlib"),
    "--by": value("COLUMN", "errors of the groups of rows that this column tells, too"),
    "--stream": {
        "action": "store_true",
        "help": "add the rows up as they are read, and keep none: so are several files, and large "
        "ones of more than 10 million rows, anyway",
    },
    "--on-error": {
        "choices": ["stop", "skip"], "default": "stop",
        "help": "of a stream: a bad row, or what cannot be read, is an error (default), or left "
        "out and counted",
    },
    "report --estimator": {
        "action": "append", "default": [], "metavar": "NAME", "dest": "estimators",
        "help": "one more error by name, such as ece_sweep, smooth_ece or mmce",
    },
    "--preset": value(
        None, "quick (default: less than a minute) or paper (69 million evaluations)"
    ),
    "--predictions": {
        "nargs": "+", "default": [], "metavar": "FILE", "help":
        "compare on these files, as fastece report reads them, in place of simulated models",
    },
    "--sizes": value(
        "N[,N...]", "evaluation sets of --predictions (default: 50 to a tenth of the rows)",
        reader("numbers and commas", lambda text: tuple(map(int, text.split(",")))),
    ),
    "study --out": {
        **value("FOLDER", "of the results (default: fastece-study-PRESET, and other options)"),
        "dest": "folder",
    },
    "--convention": value("NAME", "corrected (default), or published: with that code's slips"),
    "--estimator": {
        "action": "append", "default": [], "metavar": "MODULE:NAME", "dest": "estimators",
        "help": "one more estimator: an object with prepare and evaluate, or what makes one",
    },
    "curve --estimator": {
        "choices": ["ece_bayes", "ece_kde"], "default": "ece_bayes",
        "help": "a Bayesian curve (default), which needs no resamples, or densities",
    },
    "--method": value("NAME", "temperature (default), or another one, or all: the best of them"),
    "--folds": value("N", "recalibrate each of N parts by what the others say (default 5)", int),
    "--groups": value("COLUMN", "rows with the same value here stay in one fold"),
    "--fit": value("FILE", "fit to these predictions, of the same model, in place of folds"),
    "--load": value("FILE", "fit nothing: a model of --save"),
    "--save": value("FILE", "write the fitted model, as JSON; after folds, one of all rows"),
    "report --groups": value(
        "COLUMN", "rows with the same value here belong together: ece by draws of whole groups, too"
    ),
    "compare --groups": value(
        "COLUMN", "rows with the same value here, in A, belong together: whole groups are drawn"
    ),
    "--out": value("FILE", "write the recalibrated predictions, as FILE has them"),
    "--holdout": value("N", "rows to draw from (200000)", int),
    "--largest": value("N", "largest evaluation set (500)", int),
    "--draws": value("N", "evaluation sets of each size (200)", int),
    "--jobs": value("N", "processes (default -1: one per core)", int, -1),
    "--seed": value(None, "of everything that is random (default 0)", int),
    "--json": form("json", "machine-readable output"),
    "--markdown": form("markdown", "the page as Markdown"),
}  # fmt: skip
FILE = ("--y-true", "--y-prob", "--weights", "--labels", "--pos-label", "--classes")
MEASURE = ("--setting", "--from-logits", "--resamples", "--confidence-level", "--seed")
REPORT = ("report --estimator", "--n-bins", *MEASURE, "--plot", "--html")
RECALIBRATE = (
    "--method", "--folds", "--groups", "--fit", "--load", "--save", "--out",
)  # fmt: skip
CURVE = ("curve --estimator", "--at", "--bandwidth", "--kernel")
STUDY = (
    "--preset", "--predictions", "--y-true", "--y-prob", "--sizes", "study --out", "--convention",
    "--estimator", "--holdout", "--largest", "--draws", "--seed", "--jobs",
)  # fmt: skip


class Command(NamedTuple):
    """A row of the table of commands; `module` of this folder has its function `run`."""

    module: str
    help: str
    description: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    defaults: dict[str, Any]


COMMANDS = {
    "report": Command(
        "report", "size, accuracy, calibration errors and reliability diagram of a file",
        f"Report on a file of predictions, or with - on standard input: CSV with the columns "
        f"{LAYOUTS}; also between tabs or semicolons, as JSON Lines, NPY, NPZ or Parquet (with "
        "pyarrow), or packed by gzip; or a log of lm-evaluation-harness. With --resamples 0 only "
        "what has a posterior has intervals. Several files, patterns in quotes and folders are one "
        "stream of rows, which need not fit in memory.",
        ("files",), (*FILE, "--by", "report --groups", *REPORT, "--stream", "--on-error"),
        {"seed": 0},
    ),
    "compare": Command(
        "compare", "the difference between two models, on the same rows",
        "Compare two files of predictions, as fastece report reads them, which have the same "
        "labels row by row: every error of both, the difference a - b, its interval, and the "
        "p-value of there being none. With --groups intervals are those of the bootstrap.",
        ("a", "b"), (*FILE, "compare --groups", *REPORT[:-1]), {"resamples": 1999, "seed": 0},
    ),
    "recalibrate": Command(
        "recalibrate", "better calibrated predictions, and whether they are",
        "Recalibrate a file of predictions, as fastece report reads it, and compare before and "
        "after. Out of folds, no row is recalibrated by what was fitted to it; or fit to another "
        "file. --method all ranks the methods by their log loss.",
        ("file",), (*FILE, *RECALIBRATE, *REPORT[:-1]), {"resamples": 1999, "seed": 0},
    ),
    "demo": Command(
        "report", "the report on predictions that ship with fastece",
        "Report on a small neural network that reads handwritten digits (1797 rows, 10 classes, "
        "cross-validated).",
        (), REPORT, {"seed": 0},
    ),
    "curve": Command(
        "curve", "how often scores come true, at any score",
        "How often scores come true, as a Bayesian curve or from densities, with intervals, for a "
        "file of predictions as fastece report reads it. With --resamples 0 densities have none.",
        ("file",), (*FILE, *CURVE, *MEASURE, "--plot"), {"resamples": 500, "seed": 0},
    ),
    "warmup": Command(
        "warmup", "compile everything ahead, such as for a container image",
        "Compile every kernel for every kind of input, and keep them in a folder of "
        "FASTECE_CACHE_DIR or of the user's cache folder.",
        (), (), {},
    ),
    "study": Command(
        "commands", "which estimator is best, on simulated models or on your own files",
        "Compare estimators on distributions of scores whose calibration error is known: of "
        "simulated models (Posocco and Bonnefoy, 2021), or of large files of predictions. An "
        "interrupted study goes on where it was.",
        (), STUDY, {},
    ),
}  # fmt: skip


# Options by the names of their values, which are arguments of Python.
NAMES: dict[str, str | None] = {
    key.split()[-1][2:].replace("-", "_"): key.split()[-1] for key in OPTIONS
}
# The same, and other arguments of Python, for messages of errors.
REFERENCES = {
    **NAMES, "n_resamples": "--resamples", "n_jobs": "--jobs", "rng": "--seed", "cv": "--folds",
    "first": None,
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands, where options that one lacks are None."""
    parser = Parser(prog="fastece", description="Calibration errors of classifiers.")
    parser.add_argument("--version", action="version", version=f"fastece {__version__}")
    parser.set_defaults(**dict.fromkeys((*NAMES, "file", "files", "a", "b")))
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, row in COMMANDS.items():
        command = commands.add_parser(name, help=row.help, description=row.description)
        for argument in row.arguments:
            more: dict[str, Any] = {"nargs": "+"} if argument == "files" else {}
            command.add_argument(argument, metavar=argument.removesuffix("s").upper(), **more)
        for option in (*row.options, "--json", "--markdown"):
            command.add_argument(option.split()[-1], **OPTIONS[option])
        command.set_defaults(**row.defaults)
    return parser
