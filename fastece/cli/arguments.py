"""Arguments of commands, on argparse: the parser, and functions that add what several share.

The destination of an option (`dest`) is the argument of Python that it becomes, so that errors
about this argument name the option. An option that one command has, or whose meaning is the
command's own, stands in the command's module.
"""

import argparse
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from fastece.data.errors import BadArgumentError

# The value of --resamples for which a report's test draws replicates until its p-value is known.
AUTO = "auto"
# Options that code for all commands reads: in a command without one of them it is None.
SHARED = (
    "y_true", "y_prob", "sample_weight", "labels", "pos_label", "classes", "missing", "percent",
    "soft", "votes", "counts", "groups", "by", "from_logits", "clip", "setting", "n_bins",
    "estimator", "n_resamples", "confidence_level", "rng", "event", "full", "plot", "html",
)  # fmt: skip
# A command or an option that is not known, in a message of argparse.
UNKNOWN = re.compile(r"(?<=invalid choice: ')\w+|(?<=unrecognized arguments: )--[\w-]+")
# How alike a known name must be to be proposed; 1 is equal.
MIN_SIMILARITY = 0.75
# A page of help has its lines as they are written, at most so long, and one for each option.
HELP_FORMAT = partial(argparse.RawDescriptionHelpFormatter, max_help_position=26, width=80)


class Parser(argparse.ArgumentParser):
    """The parser of a command, whose errors are one line.

    Parameters
    ----------
    command : str
        The name of the command.
    description : str
        The head of its help.
    usage : str
        The line that one types.
    examples : str
        Lines that show how it is used, each after the end of a line.

    Attributes
    ----------
    input, measure, output
        The groups of arguments about the input, the measures and the output.
    """

    def __init__(
        self, command: str = "", description: str = "", usage: str = "", examples: str = "",
        **options: Any,
    ) -> None:  # fmt: skip
        options = {
            "prog": f"fastece {command}".rstrip(),
            "description": description,
            "usage": usage or None,
            "epilog": f"examples:{examples}" if examples else None,
            **options,
        }
        super().__init__(formatter_class=HELP_FORMAT, add_help=False, **options)
        self.set_defaults(**dict.fromkeys(SHARED))
        self.input = self.add_argument_group("input")
        self.measure = self.add_argument_group("what to measure")
        self.output = self.add_argument_group("output")
        self.output.add_argument("-h", "--help", action="help", help="print this page")

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr, with the nearest known name, and exit with 2."""
        from fastece.data.errors import to_printable

        line = to_printable(" ".join(message.split()))
        self.exit(2, f"fastece: error: {line} ({self.hint_for(message)})\n")

    def hint_for(self, message: str) -> str:
        """Write which known name is nearest to an unknown word in a message."""
        names: list[str] = []
        for action in self._actions:
            names += [*action.option_strings, *map(str, action.choices or ())]
        unknown = UNKNOWN.search(message)
        nearest = get_close_matches(unknown[0], names, 1, MIN_SIMILARITY) if unknown else []
        return f"did you mean {nearest[0]}?" if nearest else f"{self.prog} --help"

    def name_options(self, error: "BadArgumentError") -> None:
        """Name arguments in an error by their options; others have none.

        An error names the argument as in Python, `sample_weight`, or as the option, `weights`.
        """
        options = {}
        for action in self._actions:
            for option in action.option_strings:
                options[action.dest] = option
                options[option.removeprefix("--").replace("-", "_")] = option
        names = {error.argument, *error.references}
        error.rename({name: options.get(name) for name in names})


# --- values ---------------------------------------------------------------------------------------


def resamples(text: str) -> int | str:
    """Read a number of resamples, or the word for as many as the test needs."""
    return text if text == AUTO else int(text)


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


# --- shared arguments -----------------------------------------------------------------------------


def add_file(parser: Parser) -> None:
    """Add the file of a command that reads one."""
    parser.input.add_argument("file", metavar="FILE", help="a table; - is standard input")


def add_columns(parser: Parser) -> None:
    """Add the options of the columns of labels, probabilities and weights."""
    add_labels(parser)
    add_probabilities(parser)
    add_meaning(parser)


def add_labels(parser: Parser) -> None:
    """Add the option that names the column of the labels."""
    add = parser.input.add_argument
    add("--y-true", metavar="A,B,...", help="column of the labels, or one for each class")


def add_probabilities(parser: Parser) -> None:
    """Add the option that names the columns of the probabilities."""
    add = parser.input.add_argument
    add("--y-prob", metavar="A,B,...", help="columns of the probabilities, or 'prob_*'")


def add_meaning(parser: Parser) -> None:
    """Add the weights, and how labels and probabilities are meant."""
    add = parser.input.add_argument
    add("--weights", metavar="COLUMN", dest="sample_weight", help="weights of the rows")
    add_class_names(parser)
    add("--classes", metavar="K", type=int, help="number of classes of column 'confidence'")
    add_missing(parser, "stop")
    add_percent(parser)


def add_class_names(parser: Parser) -> None:
    """Add the options that match columns and classes."""
    add = parser.input.add_argument
    add("--labels", metavar="A,B,...", help="labels of the columns, in their order")
    add("--pos-label", metavar="LABEL", help="label that one column of probabilities is of")


def add_missing(parser: Parser, default: str) -> None:
    """Add the treatment of rows without a label or a prediction."""
    parser.input.add_argument(
        "--missing", choices=["stop", "skip"], default=default,
        help=f"rows without label or prediction ({default})",
    )  # fmt: skip


def add_percent(parser: Parser) -> None:
    """Add the option of probabilities in percent."""
    parser.input.add_argument("--percent", action="store_true", help="probabilities are percents")


def add_soft_labels(parser: Parser) -> None:
    """Add the options of soft labels, votes and counts."""
    add = parser.input.add_argument
    add("--soft", action="store_true", help="labels are shares in [0, 1], not 0 or 1")
    add("--votes", metavar="COLUMN", help="votes of each row; labels count those for 1")
    add_counts(parser)


def add_counts(parser: Parser) -> None:
    """Add the option of rows that each stand for several."""
    parser.input.add_argument("--counts", metavar="COLUMN", help="independent rows behind each row")


def add_groups(parser: Parser) -> None:
    """Add the option of rows that depend on each other."""
    help_text = "rows that depend on each other, as a patient's"
    parser.input.add_argument("--groups", metavar="COLUMN", help=help_text)


def add_slices(parser: Parser) -> None:
    """Add the option of slices."""
    parser.input.add_argument(
        "--by", metavar="COLUMN", action="append",
        help="slices by value, or by quartile; repeatable",
    )  # fmt: skip


def add_id(parser: Parser) -> None:
    """Add the option that pairs the rows of two files."""
    parser.input.add_argument("--id", metavar="COLUMN", help="identifies the rows of both files")


def add_event(parser: Parser) -> None:
    """Add the name of the event that probabilities are of."""
    parser.input.add_argument("--event", metavar="NAME", help="name of the event that is predicted")


def add_scale(parser: Parser) -> None:
    """Add the option of files of logits."""
    parser.input.add_argument("--from-logits", action="store_true", help="the file has logits")


def add_setting(parser: Parser) -> None:
    """Add the choice of the binary problem."""
    parser.measure.add_argument(
        "--setting", type=number_or_text(int), default="auto", metavar="NAME",
        help="binary, confidence, classwise, or a class (auto)",
    )  # fmt: skip


def add_intervals(parser: Parser) -> None:
    """Add the options of intervals and tests by resampling."""
    parser.measure.add_argument(
        "--resamples", metavar="N", type=resamples, default=1999, dest="n_resamples",
        help="resamples (1999); auto: until a p-value is known",
    )  # fmt: skip
    add_level(parser)
    add_seed(parser)


def add_level(parser: Parser) -> None:
    """Add the level of intervals."""
    parser.measure.add_argument(
        "--confidence-level", metavar="L", type=float, default=0.95,
        help="level of the intervals (0.95)",
    )  # fmt: skip


def add_seed(parser: Parser) -> None:
    """Add the seed of random numbers."""
    parser.measure.add_argument(
        "--seed", metavar="N", type=int, default=0, dest="rng",
        help="seed of all random numbers (0)",
    )  # fmt: skip


def add_errors(parser: Parser) -> None:
    """Add the options of the errors that a page shows."""
    parser.measure.add_argument(
        "--estimator", metavar="NAME", action="append", default=[],
        help="one more error, such as mmce; repeatable",
    )  # fmt: skip
    parser.measure.add_argument(
        "--n-bins", metavar="N", type=number_or_text(int), default=15,
        help="bins (15), or sqrt of the rows",
    )  # fmt: skip


def add_clip(parser: Parser) -> None:
    """Add the limit of probabilities."""
    parser.input.add_argument(
        "--clip", metavar="P", type=float, help="limit probabilities to [P, 1 - P]"
    )


def add_picture(parser: Parser) -> None:
    """Add the file of a picture."""
    parser.output.add_argument("--plot", metavar="FILE", help="a picture: .png, .svg or .pdf")


def add_page(parser: Parser) -> None:
    """Add the file of a page with pictures."""
    parser.output.add_argument("--html", metavar="FILE", help="a page with all pictures")


def add_full(parser: Parser) -> None:
    """Add the option of pages longer than a screen."""
    parser.output.add_argument(
        "--full", action="store_true", default=False, help="everything, not one screen"
    )


def add_report(parser: Parser) -> None:
    """Add the measures and the outputs of a report."""
    add_setting(parser)
    add_errors(parser)
    add_intervals(parser)
    add_full(parser)
    add_picture(parser)
    add_page(parser)
    add_forms(parser)


def add_forms(parser: Parser) -> None:
    """Add the forms in which every command writes its page."""
    forms = parser.output.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="for programs")
    forms.add_argument("--markdown", action="store_true", help="for an issue or a page")
