"""Options: what one is, and those that several commands share.

A command registers its options in its own module (`Command`). An option that only one command has,
or whose meaning is the command's own, stands there and not here. `Option.name` without its dashes
is the argument of the Python function that checks it, so that errors name it.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastece.cli.output_files import PAGE, PICTURE, OutputFile
from fastece.cli.progress import Progress

# The value of --resamples for which a report's test draws replicates until its p-value is known.
AUTO = "auto"

# Heads of a command's help, in their order.
INPUT = "input"
MEASURE = "what to measure"
OUTPUT = "output"
HEADS = (INPUT, MEASURE, OUTPUT)


@dataclass(frozen=True)
class Option:
    """An option of the command line.

    Attributes
    ----------
    name : str
        "--y-true".
    head : str
        The head of a command's help under which it stands.
    keywords : dict
        Keywords of argparse: help, metavar, type, default and so on.
    reads_file : bool
        Whether its value is a file that the command reads.
    writes : OutputFile or None
        The kind of the file that its value names for output.
    """

    name: str
    head: str
    keywords: dict[str, Any]
    reads_file: bool = False
    writes: OutputFile | None = None

    @property
    def argument(self) -> str:
        """The option as a name of Python: "y_true"."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def attribute(self) -> str:
        """The attribute of the parsed options that has its value."""
        return str(self.keywords.get("dest", self.argument))


@dataclass(frozen=True)
class FileArgument:
    """A file, or several, that a command takes without an option.

    `nargs` has the values that argparse knows: None for one file, "?" for one that may be left out,
    "+" or "*" for several, which may also be patterns and folders.
    """

    attribute: str
    metavar: str
    nargs: str | None = None

    @property
    def is_list(self) -> bool:
        """Whether it takes several files."""
        return self.nargs in ("+", "*")


@dataclass(frozen=True)
class Command:
    """The description of a command, which its module registers.

    Attributes
    ----------
    description : str
        The head of its help, in one or two sentences.
    run : callable
        Takes the parsed options and a function that shows the next step; returns a `Page`.
    files : tuple of FileArgument
    options : tuple of Option
    """

    description: str
    run: Callable[[argparse.Namespace, Progress], Any]
    files: tuple[FileArgument, ...] = ()
    options: tuple[Option, ...] = ()


# --- kinds of options -----------------------------------------------------------------------------


def value(
    name: str, head: str, help: str, *, metavar: str | None = None,  # noqa: A002
    read: Callable[[str], Any] = str, default: Any = None, reads_file: bool = False,
    writes: OutputFile | None = None, **keywords: Any,
) -> Option:  # fmt: skip
    """Describe an option with a value, which `read` reads from its text."""
    keywords |= {"metavar": metavar, "help": help, "type": read, "default": default}
    return Option(name, head, keywords, reads_file=reads_file, writes=writes)


def read_resamples(text: str) -> int | str:
    """Read a number of resamples, or the word for as many as the test needs."""
    if text == AUTO:
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None


def repeated(name: str, head: str, help: str, *, metavar: str, **keywords: Any) -> Option:  # noqa: A002
    """Describe an option that may be given again; its values are a list."""
    return Option(name, head, {"action": "append", "metavar": metavar, "help": help, **keywords})


def choice(
    name: str, head: str, help: str, choices: list[str], default: str  # noqa: A002
) -> Option:  # fmt: skip
    """Describe an option whose value is one of a few words."""
    return Option(name, head, {"choices": choices, "default": default, "help": help})


def flag(name: str, head: str, help: str) -> Option:  # noqa: A002
    """Describe an option that is given or not."""
    return Option(name, head, {"action": "store_true", "help": help})


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
    values = [float(part) for part in text.split(",")]
    if not all(0 <= score <= 1 for score in values):
        raise ValueError
    return values


# --- shared options -------------------------------------------------------------------------------

FILE = FileArgument("file", "FILE")

Y_TRUE = value(
    "--y-true", INPUT, "column of the labels; or a column for each class, 1 where it came",
    metavar="COLUMN[,COLUMN...]",
)  # fmt: skip
Y_PROB = value(
    "--y-prob", INPUT, "columns of the probabilities; prob_* is all of those",
    metavar="COLUMN[,COLUMN...]",
)  # fmt: skip
WEIGHTS = value("--weights", INPUT, "column of the weights of the rows", metavar="COLUMN")
LABELS = value(
    "--labels", INPUT, "labels of the columns of probabilities, in their order",
    metavar="LABEL[,LABEL...]",
)  # fmt: skip
POS_LABEL = value(
    "--pos-label", INPUT, "label that the probabilities are of, for two classes", metavar="LABEL"
)
CLASSES = value(
    "--classes", INPUT,
    "number of classes, for a file of only the predicted class and its confidence",
    metavar="K", read=int,
)  # fmt: skip
PERCENT = flag("--percent", INPUT, "probabilities are percents, which are divided by 100")
MISSING = choice(
    "--missing", INPUT, "rows without a label or a prediction are an error, or left out and "
    "counted",
    ["stop", "skip"], "stop",
)  # fmt: skip
SOFT = flag("--soft", INPUT, "labels are shares in [0, 1], not 0 or 1")
VOTES = value(
    "--votes", INPUT, "column of the number of votes in each row; labels count the votes for 1",
    metavar="COLUMN",
)  # fmt: skip
COUNTS = value(
    "--counts", INPUT, "column of how many independent rows each row stands for", metavar="COLUMN"
)
GROUPS = value(
    "--groups",
    INPUT,
    "column that identifies correlated rows (such as patient); intervals and tests account for it",
    metavar="COLUMN",
)
BY = repeated(
    "--by", INPUT, "column whose values, or quartiles, are slices; repeatable", metavar="COLUMN"
)  # fmt: skip
ID = value(
    "--id", INPUT, "column that identifies the rows of both files, which may be in any order",
    metavar="COLUMN",
)  # fmt: skip
FROM_LOGITS = flag("--from-logits", INPUT, "the file holds logits")
CLIP = value(
    "--clip", INPUT, "clip probabilities to [P, 1 - P], to keep the log loss finite", metavar="P",
    read=float,
)  # fmt: skip
SETTING = value(
    "--setting", MEASURE,
    "which probability to check: the positive class (binary), the predicted class (confidence), "
    "every class (classwise), or one class (its index); by default auto",
    read=number_or_text(int), default="auto",
)  # fmt: skip
N_BINS = value(
    "--n-bins", MEASURE, 'number of bins (default 15), or "sqrt" of the rows', metavar="N",
    read=number_or_text(int), default=15,
)  # fmt: skip
ESTIMATORS = repeated(
    "--estimator", MEASURE, "an additional calibration error, such as mmce; repeatable",
    metavar="NAME", default=[],
    dest="estimators",
)  # fmt: skip
RESAMPLES = value(
    "--resamples", MEASURE, "number of resamples for intervals and tests (default 1999); auto, in "
    "reports: more for the test, until its p-value is known",
    metavar="N", read=read_resamples, default=1999,
)  # fmt: skip
CONFIDENCE_LEVEL = value(
    "--confidence-level", MEASURE, "level of the intervals (default 0.95)",
    metavar="LEVEL", read=float,
    default=0.95,
)  # fmt: skip
SEED = value(
    "--seed", MEASURE, "seed of all random numbers (default 0)", read=int, default=0
)  # fmt: skip
EVENT = value("--event", MEASURE, "name of the event that is predicted", metavar="NAME")
FULL = flag("--full", OUTPUT, "print everything, not only one screen")
PLOT = value(
    "--plot", OUTPUT, "write a picture: .png, .svg or .pdf, with matplotlib", metavar="FILE",
    writes=PICTURE,
)  # fmt: skip
HTML = value(
    "--html", OUTPUT, "write the report as one HTML page, with matplotlib", metavar="FILE",
    writes=PAGE,
)  # fmt: skip

# How a file is read, and how its rows are.
COLUMNS = (Y_TRUE, Y_PROB, WEIGHTS, LABELS, POS_LABEL, CLASSES, MISSING, PERCENT)
ROWS = (*COLUMNS, SOFT, VOTES, COUNTS)
# How rows are measured, and how surely.
INTERVALS = (SETTING, FROM_LOGITS, RESAMPLES, CONFIDENCE_LEVEL, SEED)
ERRORS = (ESTIMATORS, N_BINS, CLIP, *INTERVALS, PLOT)
# Options that code for all commands reads: in a command without one of them it is None.
SHARED = (*ROWS, *ERRORS, GROUPS, BY, FULL)


# --- forms of a page ------------------------------------------------------------------------------


class PageForm(NamedTuple):
    """An option of every command that writes its page in another form than as text.

    Attributes
    ----------
    help : str
    write : callable
        Writes a page.
    wants_all : bool
        Whether the page is for programs, for which all numbers are computed.
    """

    help: str
    write: Callable[[Any], str]
    wants_all: bool = False


def to_json(page: Any) -> str:
    """Write the values of a page as JSON."""
    return json.dumps(page.to_dict(), allow_nan=False)


def to_markdown(page: Any) -> str:
    """Write a page as Markdown."""
    return str(page.to_markdown()).rstrip("\n")


TEXT = PageForm("text", str)
FORMS = {
    "--json": PageForm("machine-readable output", to_json, wants_all=True),
    "--markdown": PageForm("Markdown", to_markdown),
}
