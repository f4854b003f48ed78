"""The command line: ``fastece report FILE``, ``fastece demo`` and ``fastece warmup``."""

import argparse
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, NoReturn

from fastece import __version__
from fastece.files import LAYOUTS, Predictions, read_predictions
from fastece.report import Report, make_report

if TYPE_CHECKING:
    from fastece.warmup import WarmUp

__all__ = ["main"]

DEMO = "digits_neural_network.npz"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr and exit with 2."""
        print(f"fastece: error: {message} (fastece --help)", file=sys.stderr)
        sys.exit(2)


def make_parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    parser = Parser(prog="fastece", description="Calibration errors of classifiers.")
    parser.add_argument("--version", action="version", version=f"fastece {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    report = commands.add_parser(
        "report", help="size, accuracy, calibration errors and reliability diagram of a file",
        description=f"Report on a file of predictions: CSV with the columns {LAYOUTS}; NPZ with "
        "the arrays y_true and y_prob; Parquet (with pyarrow).",
    )  # fmt: skip
    report.add_argument("file", metavar="FILE")
    report.add_argument("--y-true", metavar="COLUMN", help="column of the labels")
    report.add_argument(
        "--y-prob", metavar="COLUMN[,COLUMN...]", help="columns of the probabilities"
    )
    report.add_argument(
        "--classes", type=int, metavar="K", help="classes behind the top label: scores on [1/K, 1]"
    )
    report.set_defaults(run=run_report)

    demo = commands.add_parser(
        "demo", help="the same on predictions that ship with fastece",
        description="Report on a small neural network that reads handwritten digits (1797 rows, "
        "10 classes, cross-validated).",
    )  # fmt: skip
    demo.set_defaults(run=run_demo)

    for command in (report, demo):
        command.add_argument(
            "--setting", type=setting_type, default="auto",
            help="auto, binary, confidence, classwise or a class index",
        )  # fmt: skip
        command.add_argument("--n-bins", type=n_bins_type, default=15, help='a number or "sqrt"')
        command.add_argument("--from-logits", action="store_true", help="the file holds logits")
        command.add_argument("--json", action="store_true", help="machine-readable output")

    warmup = commands.add_parser(
        "warmup", help="compile everything ahead, such as for a container image",
        description="Compile every kernel for every kind of input, and keep them in a folder of "
        "FASTECE_CACHE_DIR or of the user's cache folder.",
    )  # fmt: skip
    warmup.add_argument("--json", action="store_true", help="machine-readable output")
    warmup.set_defaults(run=run_warmup)
    return parser


def setting_type(text: str) -> int | str:
    """Read a setting: a class index or a name."""
    return int(text) if text.lstrip("-").isdecimal() else text


def n_bins_type(text: str) -> int | str:
    """Read a number of bins, or "sqrt"."""
    if text != "sqrt" and not text.lstrip("-").isdecimal():
        raise argparse.ArgumentTypeError(f'must be a number or "sqrt", got {text!r}')
    return text if text == "sqrt" else int(text)


def run_report(options: argparse.Namespace) -> Report:
    """``fastece report FILE``."""
    predictions = read_predictions(
        options.file, y_true=options.y_true, y_prob=options.y_prob, classes=options.classes
    )
    return report_on(options.file, predictions, options)


def run_demo(options: argparse.Namespace) -> Report:
    """``fastece demo``."""
    with as_file(files("fastece").joinpath("data", DEMO)) as path:
        predictions = read_predictions(path)
    return report_on("handwritten digits, a small neural network", predictions, options)


def run_warmup(options: argparse.Namespace) -> "WarmUp":  # noqa: ARG001
    """``fastece warmup``."""
    from fastece.warmup import warm_up

    return warm_up(must_keep=True, progress=show_signatures if sys.stderr.isatty() else None)


def show_signatures(count: int) -> None:
    """Progress of the warm-up, on a line of a terminal that the next output overwrites."""
    print(f"{count} signatures\r", end="", file=sys.stderr, flush=True)


def report_on(title: str, predictions: Predictions, options: argparse.Namespace) -> Report:
    """Measure what was read."""
    return make_report(
        predictions.y_true, predictions.y_prob, title=title, setting=options.setting,
        pairs=predictions.pairs, classes=predictions.classes,
        from_logits=options.from_logits, n_bins=options.n_bins,
    )  # fmt: skip


def to_json(value: Any) -> Any:
    """What JSON can hold: nan and infinities become null."""
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default those of the process.

    Returns
    -------
    int
        0, or 2 for bad input, with one line on stderr.
    """
    options = make_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name this terminal cannot show
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = options.run(options)
        except (ValueError, TypeError, OSError, MemoryError) as error:
            message = str(error) or "not enough memory"
            print(f"fastece: error: {' '.join(message.split())}", file=sys.stderr)
            return 2
    for warning in caught:
        print(f"fastece: warning: {warning.message}", file=sys.stderr)
    text = json.dumps(to_json(result.to_dict()), allow_nan=False) if options.json else str(result)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"fastece: error: {error}", file=sys.stderr)
        return 2
    return 0
