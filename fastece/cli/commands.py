"""The command line: ``fastece report FILE``, ``compare A B`` and what else there is."""

import argparse
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fastece import __version__
from fastece.cli.compare import Comparison, make_comparison
from fastece.cli.curve import CurveReport, curve_report, make_curves
from fastece.cli.report import Report, make_report
from fastece.inputs.files import LAYOUTS, Predictions, read_predictions
from fastece.plot.files import check_picture, curve_picture, report_picture, save_picture
from fastece.reliability.curve import ReliabilityCurve
from fastece.speed import bench

if TYPE_CHECKING:
    from fastece.speed.warmup import WarmUp
    from fastece.study import StudyResult

__all__ = ["main"]

T = TypeVar("T")
DEMO = "digits_neural_network.npz"
# Of the curve beside the diagram: enough for a band to look at.
BAND_RESAMPLES = 500


@dataclass(frozen=True)
class Pictured:
    """A result, and the file of its picture.

    Attributes
    ----------
    result : Report or CurveReport
    plot : str
    """

    result: Report | CurveReport
    plot: str

    def __str__(self) -> str:
        return f"{self.result}\n\npicture: {self.plot}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {**self.result.to_dict(), "plot": self.plot}


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
    report.set_defaults(run=run_report)

    compare = commands.add_parser(
        "compare", help="the difference between two models, on the same rows",
        description="Compare two files of predictions, as fastece report reads them, which have "
        "the same labels row by row: every error of both, the difference a - b, its interval, and "
        "the p-value of there being none.",
    )  # fmt: skip
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    compare.set_defaults(run=run_compare)

    demo = commands.add_parser(
        "demo", help="the same on predictions that ship with fastece",
        description="Report on a small neural network that reads handwritten digits (1797 rows, "
        "10 classes, cross-validated).",
    )  # fmt: skip
    demo.set_defaults(run=run_demo)

    curve = commands.add_parser(
        "curve", help="how often scores come true, at any score",
        description="The probability of a hit at some scores, from densities of the scores, with "
        "its interval, for a file of predictions, as fastece report reads it.",
    )  # fmt: skip
    curve.add_argument("file", metavar="FILE")
    curve.set_defaults(run=run_curve)

    for command in (report, compare, curve):
        add_file_options(command)
    add_curve_options(curve)
    for command, resamples in ((report, 1000), (compare, 9999), (demo, 1000), (curve, 500)):
        add_options(command, resamples)
    for command in (report, compare, demo):
        command.add_argument("--n-bins", type=n_bins_type, default=15, help='a number or "sqrt"')
    for command in (report, demo, curve):
        command.add_argument(
            "--plot", metavar="FILE", help="write a picture: .png, .svg or .pdf, with matplotlib"
        )
    add_machine_commands(commands)
    return parser


def add_machine_commands(commands: Any) -> None:
    """The commands that read no file."""
    speed = commands.add_parser(
        "bench", help="speed of every estimator on this machine, and of numpy beside it",
        description="Time one call of every estimator on uniform scores and on class vectors, and "
        "replicates of the bootstrap, each beside the numpy code that a user would write, on one "
        "thread: about half a minute.",
    )  # fmt: skip
    output = speed.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="machine-readable output")
    output.add_argument("--markdown", action="store_true", help="a table for a README")
    speed.set_defaults(run=run_bench)

    warmup = commands.add_parser(
        "warmup", help="compile everything ahead, such as for a container image",
        description="Compile every kernel for every kind of input, and keep them in a folder of "
        "FASTECE_CACHE_DIR or of the user's cache folder.",
    )  # fmt: skip
    warmup.add_argument("--json", action="store_true", help="machine-readable output")
    warmup.set_defaults(run=run_warmup)
    add_study_command(commands)


def add_study_command(commands: Any) -> None:
    """The comparison of estimators on synthetic problems."""
    study = commands.add_parser(
        "study", help="which estimator is best, on synthetic problems with known truth",
        description="Compare estimators on distributions of scores whose calibration error is "
        "known (Posocco and Bonnefoy, 2021). An interrupted study goes on where it was.",
    )  # fmt: skip
    study.add_argument(
        "--preset", default="quick",
        help="quick (default: less than a minute) or paper (64.8 million evaluations)",
    )  # fmt: skip
    study.add_argument(
        "--out",
        metavar="FOLDER",
        help="of the results (default: fastece-study-PRESET, and what else is given)",
    )
    study.add_argument(
        "--convention", metavar="NAME",
        help="corrected (default), or published: with the slips of the published code",
    )  # fmt: skip
    study.add_argument(
        "--estimator", action="append", default=[], metavar="MODULE:NAME", dest="estimators",
        help="one more estimator: an object with prepare and evaluate, or what makes one",
    )  # fmt: skip
    study.add_argument("--holdout", type=int, metavar="N", help="rows to draw from (200000)")
    study.add_argument("--largest", type=int, metavar="N", help="largest evaluation set (500)")
    study.add_argument("--draws", type=int, metavar="N", help="evaluation sets of each size (200)")
    study.add_argument("--seed", type=int, help="of everything that is random (default 0)")
    study.add_argument(
        "--jobs", type=int, default=-1, metavar="N", help="processes (default -1: one per core)"
    )
    study.add_argument("--json", action="store_true", help="machine-readable output")
    study.set_defaults(run=run_study)


def add_file_options(command: argparse.ArgumentParser) -> None:
    """How files are read."""
    command.add_argument("--y-true", metavar="COLUMN", help="column of the labels")
    command.add_argument(
        "--y-prob", metavar="COLUMN[,COLUMN...]", help="columns of the probabilities"
    )
    command.add_argument(
        "--classes", type=int, metavar="K", help="classes behind the top label: scores on [1/K, 1]"
    )


def add_curve_options(command: argparse.ArgumentParser) -> None:
    """Where the curve is wanted, and how smooth."""
    command.add_argument(
        "--at", type=at_type, metavar="SCORE[,SCORE...]",
        help="scores in [0, 1] (default: eleven from one end of the range to the other)",
    )  # fmt: skip
    command.add_argument(
        "--bandwidth", type=bandwidth_type, default="silverman", metavar="H",
        help='standard deviation of the kernel, or "silverman" (default)',
    )  # fmt: skip
    command.add_argument("--kernel", default="gaussian", help="default: gaussian")


def add_options(command: argparse.ArgumentParser, resamples: int) -> None:
    """What is measured, and how sure it is to be."""
    off = "" if command.prog.endswith("compare") else "; 0: no intervals"
    command.add_argument(
        "--setting", type=setting_type, default="auto",
        help="auto, binary, confidence, classwise or a class index",
    )  # fmt: skip
    command.add_argument("--from-logits", action="store_true", help="the file holds logits")
    command.add_argument(
        "--resamples", type=int, default=resamples, metavar="N",
        help=f"resamples behind the intervals (default {resamples}{off})",
    )  # fmt: skip
    command.add_argument(
        "--confidence-level", type=float, default=0.95, metavar="LEVEL",
        help="of the intervals (default 0.95)",
    )  # fmt: skip
    command.add_argument(
        "--seed", type=int, default=0, help="of the resamples (default 0: the same every time)"
    )
    command.add_argument("--json", action="store_true", help="machine-readable output")


def setting_type(text: str) -> int | str:
    """Read a setting: a class index or a name."""
    return int(text) if text.lstrip("-").isdecimal() else text


def n_bins_type(text: str) -> int | str:
    """Read a number of bins, or "sqrt"."""
    if text != "sqrt" and not text.lstrip("-").isdecimal():
        raise argparse.ArgumentTypeError(f'must be a number or "sqrt", got {text!r}')
    return text if text == "sqrt" else int(text)


def at_type(text: str) -> list[float]:
    """Read scores."""
    try:
        scores = [float(part) for part in text.split(",")]
    except ValueError:
        scores = [math.nan]
    if not all(0 <= score <= 1 for score in scores):
        raise argparse.ArgumentTypeError(f"must be scores in [0, 1] and commas, got {text!r}")
    return scores


def bandwidth_type(text: str) -> float | str:
    """Read a bandwidth, or "silverman"."""
    try:
        return text if text == "silverman" else float(text)
    except ValueError:
        message = f'must be a number or "silverman", got {text!r}'
        raise argparse.ArgumentTypeError(message) from None


def read_file(path: str, options: argparse.Namespace) -> Predictions:
    """Read a file as the options say."""
    return read_predictions(
        path, y_true=options.y_true, y_prob=options.y_prob, classes=options.classes
    )


def run_report(options: argparse.Namespace) -> Report | Pictured:
    """``fastece report FILE``."""
    return report_on(options.file, lambda: read_file(options.file, options), options)


def run_compare(options: argparse.Namespace) -> Comparison:
    """``fastece compare A B``."""
    a, b = read_file(options.a, options), read_file(options.b, options)
    return with_progress(
        lambda progress: make_comparison(
            a,
            b,
            (options.a, options.b),
            n_bins=options.n_bins,
            **measured_as(options),
            progress=progress,
        )
    )


def run_demo(options: argparse.Namespace) -> Report | Pictured:
    """``fastece demo``."""
    return report_on("handwritten digits, a small neural network", read_demo, options)


def read_demo() -> Predictions:
    """Read the predictions that ship with fastece."""
    with as_file(files("fastece").joinpath("data", DEMO)) as path:
        return read_predictions(path)


def run_curve(options: argparse.Namespace) -> CurveReport | Pictured:
    """``fastece curve FILE``."""
    path = options.plot and check_picture(options.plot)
    predictions = read_file(options.file, options)
    found = curves_on(
        predictions, options, options.resamples, bandwidth=options.bandwidth, kernel=options.kernel
    )
    report = curve_report(found, options.at, title=options.file, pairs=predictions.pairs)
    if not path:
        return report
    save_picture(curve_picture(options.file, found), path)
    return Pictured(report, options.plot)


def run_bench(options: argparse.Namespace) -> bench.BenchResult:  # noqa: ARG001
    """``fastece bench``."""
    return with_progress(lambda progress: bench.run_bench(bench.SIZES, progress=progress))


def run_warmup(options: argparse.Namespace) -> "WarmUp":  # noqa: ARG001
    """``fastece warmup``."""
    from fastece.speed.warmup import warm_up

    return with_progress(lambda progress: warm_up(must_keep=True, progress=progress))


def run_study(options: argparse.Namespace) -> "StudyResult":
    """``fastece study``."""
    from fastece.study import preset
    from fastece.study import run_study as run

    names = ("convention", "holdout", "largest", "draws", "seed")
    changes = {name: getattr(options, name) for name in names}
    if options.estimators and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last: a file there stands for no module that is installed
    design = preset(options.preset, **changes, estimators=tuple(options.estimators))
    given = [f"{name}-{value}" for name, value in changes.items() if value is not None]
    given += [path.rpartition(":")[2] for path in options.estimators]
    folder = options.out or "-".join(["fastece-study", options.preset, *given])
    return run(design, folder, n_jobs=options.jobs)


def with_progress(work: Callable[[Callable[[str], None] | None], T]) -> T:
    """`work` that tells what it does on one line of a terminal, if stderr is one."""
    if not sys.stderr.isatty():
        return work(None)
    try:
        return work(show_progress)
    finally:
        show_progress("")


def show_progress(text: str) -> None:
    """One line of a terminal, written over by the next."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def asked_of(predictions: Predictions, options: argparse.Namespace) -> dict[str, Any]:
    """What was read, and what reports and curves take from the options."""
    return {
        "y_true": predictions.y_true, "y_prob": predictions.y_prob, "pairs": predictions.pairs,
        "classes": predictions.classes, **measured_as(options),
    }  # fmt: skip


def measured_as(options: argparse.Namespace) -> dict[str, Any]:
    """What all that is measured takes from the options."""
    return {
        "setting": options.setting, "from_logits": options.from_logits,
        "n_resamples": options.resamples, "confidence_level": options.confidence_level,
        "rng": options.seed, "n_jobs": -1,
    }  # fmt: skip


def curves_on(
    predictions: Predictions, options: argparse.Namespace, resamples: int, **fields: Any
) -> list[ReliabilityCurve]:
    """The curves of what was read, with a band of that many resamples."""
    asked = {**asked_of(predictions, options), "n_resamples": resamples, **fields}
    return with_progress(lambda progress: make_curves(**asked, progress=progress))


def report_on(
    title: str, read: Callable[[], Predictions], options: argparse.Namespace
) -> Report | Pictured:
    """Measure what is read, and draw it if that is asked."""
    path = options.plot and check_picture(options.plot)
    predictions = read()
    asked = asked_of(predictions, options)
    report = with_progress(
        lambda progress: make_report(**asked, title=title, n_bins=options.n_bins, progress=progress)
    )
    if not path:
        return report
    curves = []
    if len(report.diagrams) == 1:
        curves = curves_on(predictions, options, min(options.resamples, BAND_RESAMPLES))
    save_picture(report_picture(title, report.diagrams, curves), path)
    return Pictured(report, options.plot)


def to_json(value: Any) -> Any:
    """What JSON can hold: nan and infinities become null."""
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text_of(result: Any, options: argparse.Namespace) -> str:
    """What is printed of a result."""
    if options.json:
        return json.dumps(to_json(result.to_dict()), allow_nan=False)
    return result.to_markdown() if getattr(options, "markdown", False) else str(result)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default those of the process.

    Returns
    -------
    int
        0, or 2 for bad input, with one line on stderr; 130 if it was interrupted.
    """
    options = make_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name this terminal cannot show
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = options.run(options)
        except KeyboardInterrupt:
            print("fastece: interrupted", file=sys.stderr)
            return 130
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            message = str(error) or "not enough memory"
            print(f"fastece: error: {' '.join(message.split())}", file=sys.stderr)
            return 2
    for warning in dict.fromkeys(str(one.message) for one in caught):  # a picture reads twice
        print(f"fastece: warning: {warning}", file=sys.stderr)
    try:
        print(text_of(result, options), flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"fastece: error: {error}", file=sys.stderr)
        return 2
    return 0
