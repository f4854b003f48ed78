"""Commands and their options, as tables for argparse."""

import argparse
import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from fastece import __version__
from fastece.files import LAYOUTS

# A command or an option that is not known, in a message of argparse.
UNKNOWN = re.compile(r"(?<=invalid choice: ')\w+|(?<=unrecognized arguments: )--[\w-]+")


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr, with the nearest known name, and exit with 2."""
        hint, found = "fastece --help", UNKNOWN.search(message)
        if found is not None:
            names = [*COMMANDS, *filter(None, NAMES.values()), *FORMS]
            for name in get_close_matches(found[0], names, 1, 0.75):
                of = [
                    x for x, row in COMMANDS.items() if name in (y.split()[-1] for y in row.options)
                ]
                other = f"{name} is of {', '.join(of)}"
                hint = other if name == found[0] else f"did you mean {name}?"
        self.exit(2, f"fastece: error: {message} ({hint})\n")


def number_or_text(number: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make a reader of numbers that leaves other texts, such as names, as they are."""

    def read(text: str) -> Any:
        try:
            return number(text)
        except ValueError:
            return text

    return read


def scores(text: str) -> list[float]:
    """Read scores in [0, 1] and commas."""
    found = [float(part) for part in text.split(",")]
    if not all(0 <= score <= 1 for score in found):
        raise ValueError
    return found


def costs(text: str) -> tuple[float, ...]:
    """Read costs and commas."""
    return tuple(map(float, text.split(",")))


def sizes(text: str) -> tuple[int, ...]:
    """Read numbers and commas."""
    return tuple(map(int, text.split(",")))


def value(
    metavar: str | None, text: str, read: Callable[[str], Any] = str, default: Any = None
) -> dict[str, Any]:
    """Describe an option with a value for argparse."""
    return {"metavar": metavar, "help": text, "type": read, "default": default}


OPTIONS = {
    "--y-true": value("COLUMN", "column of the labels"),
    "--y-prob": value("COLUMN[,COLUMN...]", "columns of the probabilities; prob_* is all of those"),
    "--weights": value("COLUMN", "column of the weights of the rows"),
    "--soft": {"action": "store_true", "help": "labels are shares in [0, 1], not 0 or 1"},
    "--votes": value("COLUMN", "column of numbers of votes, of which the labels count those for 1"),
    "--labels": value("LABEL[,LABEL...]", "label of each column of probabilities, in their order"),
    "--pos-label": value("LABEL", "which label y_prob is the probability of"),
    "--classes": value("K", "classes behind the predicted one: its confidence is 1/K or more", int),
    "--by": value("COLUMN", "errors by its values or quartiles; repeatable") | {"action": "append"},
    "--groups": value("COLUMN", "rows with the same value here, in A of compare, belong together"),
    "--setting": value(
        None, "auto, binary, confidence, classwise or a class index", number_or_text(int), "auto"
    ),
    "--clip": value("P", "clip probabilities to [P, 1 - P], so that no loss is infinite", float),
    "--from-logits": {"action": "store_true", "help": "the file holds logits"},
    "--n-bins": value(None, 'a number or "sqrt"', number_or_text(int), 15),
    "--resamples": value("N", "replicates behind the intervals (1999; of curve 500)", int),
    "--confidence-level": value("LEVEL", "of the intervals (default 0.95)", float, 0.95),
    "--seed": value(None, "of everything that is random (default 0)", int, 0),
    "--plot": value("FILE", "write a picture: .png, .svg or .pdf, with matplotlib"),
    "--full": {"action": "store_true", "help": "everything, not only what one screen holds"},
    "--html": value("FILE", "write the report as one HTML page, with matplotlib"),
    "--out": value("PATH", "recalibrated predictions, as FILE has them; of study: a folder"),
    "--safe-csv": {"action": "store_true", "help": "of --out: ' before what a spreadsheet runs"},
    "--estimator": {
        "action": "append", "default": [], "metavar": "NAME", "dest": "estimators",
        "help": "one more error, such as mmce; of study MODULE:NAME, with prepare and evaluate",
    },
    "--stream": {
        "action": "store_true",
        "help": "keep no rows, as of several files, and of more than 10 million rows",
    },
    "--on-error": {
        "choices": ["stop", "skip"], "default": "stop",
        "help": "of a stream: whether bad rows and cut files are an error, or left out and counted",
    },
    "compare --y-prob": {
        "action": "append", "metavar": "COLUMN[,COLUMN...]",
        "help": "columns of the probabilities; once for each model, of one file or of each",
    },
    "curve --estimator": {
        "choices": ["ece_bayes", "ece_kde"], "default": "ece_bayes",
        "help": "a Bayesian curve (default), which needs no resamples, or densities",
    },
    "plan --estimator": value("NAME", "of the interval (ece_bayes)", default="ece_bayes"),
    "--width": value("W", "mean width of the interval that is wanted", float),
    "--detect": value("E", "calibration error that the test is to find", float),
    "--power": value("P", "how often it is to find it (0.8)", float, 0.8),
    "--level": value("LEVEL", "of the interval; 1 minus the size of the test (0.95)", float, 0.95),
    "monitor --level": value("LEVEL", "chance of a false alarm, ever (0.05)", float),
    "--state": value("FILE", "go on from this file, if it is there, and write it"),
    "--accuracy": value("A", "how often what acts alone is to be right (0.95)", float),
    "--cost": value("MISTAKE,ABSTAIN", "in place of it: act where that costs least", costs),
    "threshold --by": value("COLUMN", "a threshold for each of its values") | {"action": "append"},
    "threshold --save": value("FILE", "write the threshold as JSON, for `Threshold.from_json`"),
    "--at": value("SCORE[,SCORE...]", "in [0, 1] (default: eleven over the range)", scores),
    "--max-error": value("E", "largest error that is allowed", float) | {"required": True},
    "--baseline": value("FILE", "predictions of another model for the same rows", str),
    "--max-increase": value("E", "by how much the error may exceed that of --baseline", float),
    "--min-rows": value("N", "slices with fewer rows are not judged (20)", int, 20),
    "--junit": value("FILE", "write the verdicts as JUnit XML"),
    "--summary": value("FILE", "write the page as Markdown, such as for the page of a build"),
    "--event": value("NAME", "name of the event that is predicted"),
    "--thresholds": value("SCORE[,SCORE...]", "of the net benefit (nine from 0.01 to 0.5)", scores),
    "--bandwidth": value("H", 'of the kernel, or "silverman" (default)', number_or_text(float)),
    "--kernel": value(None, "default: gaussian"),
    "--old": value("RATE[,RATE...]", "of prior_shift: base rate that the model is for", scores),
    "--new": value("RATE[,RATE...]", "of prior_shift: that of now (default: estimated)", scores),
    "--method": value("NAME", "temperature (default), or another one, or all: the best of them"),
    "--folds": value("N", "recalibrate each of N parts by what the others say (default 5)", int),
    "--fit": value("FILE", "fit to these predictions, of the same model, in place of folds"),
    "--load": value("FILE", "fit nothing: a model of --save"),
    "--save": value("FILE", "write the fitted model, as JSON; after folds, one of all rows"),
    "--preset": value(None, "quick (default: less than a minute) or paper (69 million values)"),
    "--predictions": {
        "nargs": "+", "default": [], "metavar": "FILE",
        "help": "compare on these files, in place of simulated models",
    },
    "--sizes": value("N[,N...]", "evaluation sets (default: 50 to a tenth of the rows)", sizes),
    "--convention": value("NAME", "corrected (default), or published: with that code's slips"),
    "--holdout": value("N", "rows to draw from (200000)", int),
    "--largest": value("N", "largest evaluation set (500)", int),
    "--draws": value("N", "evaluation sets of each size (200)", int),
    "--jobs": value("N", "processes (default -1: one per core)", int, -1),
}  # fmt: skip
# Options of every command, with their help: forms of its page, which is text without them.
FORMS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "--json": ("machine-readable output", lambda x: json.dumps(x.to_dict(), allow_nan=False)),
    "--markdown": ("Markdown", lambda x: x.to_markdown().rstrip("\n")),
}
# Options under the heads of a command's help; the others are of what is measured.
HEADS = {
    "input": {
        "--y-true", "--y-prob", "--weights", "--labels", "--pos-label", "--classes", "--groups",
        "--by", "--from-logits", "--stream", "--on-error", "--fit", "--load", "--predictions",
        "--soft", "--votes", "--baseline", "--clip",
    },
    "what to measure": set[str](),
    "output": {
        "--full", "--plot", "--html", "--out", "--safe-csv", "--save", "--state", "--jobs",
        "--junit", "--summary", *FORMS,
    },
}  # fmt: skip
FILE = ("--y-true", "--y-prob", "--weights", "--labels", "--pos-label", "--classes")
ROWS = (*FILE, "--soft", "--votes")
MEASURE = ("--setting", "--from-logits", "--resamples", "--confidence-level", "--seed", "--plot")
ERRORS = ("--estimator", "--n-bins", "--clip", *MEASURE)


class Command(NamedTuple):
    """A row of the table of commands; `module` of this folder has its function `run`."""

    module: str
    help: str
    description: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    resamples: int | None = None


COMMANDS = {
    "report": Command(
        "report", "size, accuracy, calibration errors and reliability diagram of a file",
        f"Report on a file, or with - on standard input: CSV with the columns {LAYOUTS}; JSON "
        "Lines, NPY, NPZ or Parquet (with pyarrow), all also packed by gzip; or a log of "
        "lm-evaluation-harness, inspect or pydantic-evals. Several files, patterns in quotes and "
        "folders are one stream of rows, which need not fit in memory. With --resamples 0 only "
        "posteriors have intervals.",
        ("files",),
        (*ROWS, "--by", "--groups", "--event", *ERRORS, "--full", "--html", "--stream",
         "--on-error"),
    ),
    "compare": Command(
        "compare", "the difference between two models or more, on the same rows",
        "Compare files, or columns of one, with the same labels row by row: every error of both "
        "models, the difference a - b, its interval, and the p-value of there being none. Of more "
        "than two models each is compared with the first.",
        ("a", "b", "others"),
        ("--y-true", "compare --y-prob", *ROWS[2:], "--groups", *ERRORS, "--html"), 1999,
    ),
    "recalibrate": Command(
        "recalibrate", "better calibrated predictions, and whether they are",
        "Recalibrate a file out of folds, so that no row is recalibrated by what was fitted to it, "
        "or by a model of another file, and compare before and after.",
        ("file",),
        (*FILE, "--method", "--old", "--new", "--folds", "--groups", "--fit", "--load", "--save",
         "--out", "--safe-csv", *ERRORS),
        1999,
    ),
    "demo": Command(
        "report", "the report on predictions that ship with fastece",
        "Report on a small neural network that reads handwritten digits (1797 rows, 10 classes, "
        "cross-validated).",
        (), (*ERRORS, "--full", "--html"),
    ),
    "curve": Command(
        "curve", "how often scores come true, at any score",
        "How often scores of a file come true, as a Bayesian curve or from densities, with "
        "intervals. With --resamples 0 densities have none.",
        ("file",),
        (*ROWS, "--groups", "curve --estimator", "--at", "--bandwidth", "--kernel", *MEASURE), 500,
    ),
    "validate": Command(
        "validate", "validation of a risk model: O/E, slope, ICI, C statistic, net benefit",
        "Validate predicted probabilities of one event: rates, recalibration, calibration curve, "
        "discrimination and net benefit, with intervals and a line of explanation each.",
        ("file",),
        (*ROWS, "--groups", "--event", "--thresholds", "--setting", "--from-logits",
         "--resamples", "--confidence-level", "--seed"),
        1999,
    ),
    "plan": Command(
        "plan", "how many rows an interval of some width, or a test of some power, takes",
        "Find how many rows a test set needs, by simulation on the scores of a pilot: for a mean "
        "width of the interval, or for a test that finds an error. It takes some seconds.",
        ("file",),
        (*FILE, "--width", "--detect", "--power", "--level", "plan --estimator", "--setting",
         "--from-logits", "--seed"),
    ),
    "monitor": Command(
        "monitor", "an alarm when predictions are calibrated no longer, file by file",
        "Test calibration over time; the chance that it ever alarms falsely is at most the level. "
        "Files come in the order of time; those of a folder or a pattern in that of their names.",
        ("files",),
        ("--y-true", "--y-prob", "--labels", "--pos-label", "--from-logits", "monitor --level",
         "--state", "--plot", "--html"),
    ),
    "check": Command(
        "check", "a gate: does the calibration error lie below a bound?",
        "Decide whether a calibration error is small enough. Exit codes: 0 passes (the interval "
        "lies below the bound), 1 fails (above), 3 cannot tell (it holds the bound), 2 bad input.",
        ("file",),
        (*FILE, "--max-error", "--baseline", "--max-increase", "--by", "--min-rows", "--groups",
         "plan --estimator", *MEASURE[:-1], "--junit", "--summary"),
        1999,
    ),
    "threshold": Command(
        "threshold", "the score from which predictions are right often enough to act alone",
        "Choose the lowest confidence from which predictions are right in a share of cases, with a "
        "promise that holds after choosing, and the coverage that it gives. Of one column of "
        "probabilities it is that of the more probable label; --setting binary takes label 1.",
        ("file",),
        (*FILE, "--accuracy", "--cost", "threshold --by", "--groups", "--setting", "--from-logits",
         "--confidence-level", "threshold --save"),
    ),
    "warmup": Command(
        "warmup", "compile everything ahead, such as for a container image",
        "Compile every kernel for every kind of input, and keep them in a folder of "
        "FASTECE_CACHE_DIR or of the user's cache folder.",
        (), (),
    ),
    "study": Command(
        "commands", "which estimator is best, on simulated models or on your own files",
        "Compare estimators on distributions of scores whose calibration error is known: of "
        "simulated models (Posocco and Bonnefoy, 2021), or of large files of predictions. An "
        "interrupted study goes on where it was.",
        (),
        ("--preset", "--predictions", "--y-true", "--y-prob", "--sizes", "--out", "--convention",
         "--estimator", "--holdout", "--largest", "--draws", "--seed", "--jobs"),
    ),
}  # fmt: skip
# Options by the names of their values, which are arguments of Python.
NAMES: dict[str, str | None] = {
    key.split()[-1][2:].replace("-", "_"): key.split()[-1] for key in OPTIONS
}
# The same, and other arguments of Python, for messages of errors.
REFERENCES = {
    **NAMES, "n_resamples": "--resamples", "n_jobs": "--jobs", "rng": "--seed", "cv": "--folds",
    "y_prob_b": "b", "first": None, "n_classes": None, "confidence": "--confidence-level",
}  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands, where options that one lacks are None."""
    parser = Parser(prog="fastece", description="Calibration errors of classifiers.")
    parser.add_argument("--version", action="version", version=f"fastece {__version__}")
    parser.set_defaults(**dict.fromkeys((*NAMES, "file", "files", "a", "b", "others")))
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    for name, row in COMMANDS.items():
        command = commands.add_parser(name, help=row.help, description=row.description)
        groups = {head: command.add_argument_group(head) for head in HEADS}
        heads = {option: groups[head] for head, options in HEADS.items() for option in options}
        for argument in row.arguments:
            nargs = {"files": "+", "b": "?", "others": "*"}.get(argument)
            metavar = "C" if argument == "others" else argument.removesuffix("s").upper()
            groups["input"].add_argument(argument, metavar=metavar, nargs=nargs)
        for key in row.options:
            option = key.split()[-1]
            heads.get(option, groups["what to measure"]).add_argument(option, **OPTIONS[key])
        for option, (text, write) in FORMS.items():
            heads[option].add_argument(
                option, action="store_const", const=write, default=str, dest="form", help=text
            )
        command.set_defaults(resamples=row.resamples)
    return parser
