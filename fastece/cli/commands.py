"""The commands: what runs each of them, and what is printed of it."""

import io
import json
import os
import re
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import fastece
from fastece.checks.errors import BadArgumentError, InputWarning
from fastece.cli.options import COMMANDS, make_parser, option_names
from fastece.cli.page import Page
from fastece.cli.terminal import progress

# Options of `fastece study` that belong to simulated models, or to files.
SIMULATED, OF_FILES = ("preset", "holdout", "largest"), ("sizes", "y_true", "y_prob")
# What text of a tuple has beside its numbers, and names of folders have not.
FOLDER = str.maketrans(",", "-", "() ")
PACKAGE = os.path.join(os.path.dirname(fastece.__file__), "")
# What messages say of the arguments of Python, and the options that are meant.
OPTIONS = {
    r"^(confidence|n|pos)_(level|bins|label):": r"--\1-\2:",
    r"^(setting|bandwidth|kernel|labels):": r"--\1:",
    r"^n_(resamples|jobs):": r"--\1:",
    r"^rng:": "--seed:",
    r"^(estimator|by|groups|method):": r"--\1:",
    r"^cv:": "--folds:",
    r"\bfrom_logits=True\b": "--from-logits",
    r"\blabels=(?=\[)": "--labels ",
    r"\blabels=": "--labels",
    r"\bpos_label=": "--pos-label",
}


def run_warmup(options: Namespace) -> Page:  # noqa: ARG001
    """``fastece warmup``."""
    from fastece.cli import warmup

    with progress() as say:
        result = warmup.warm_up(must_keep=True, progress=say)
    return Page(str(result), result.to_dict())


def run_study(options: Namespace) -> Page:
    """``fastece study``."""
    from fastece import study

    if options.estimators and os.getcwd() not in sys.path:  # they may be in the working folder
        sys.path.append(os.getcwd())
    names = ("convention", *SIMULATED, *OF_FILES, "draws", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    for name in SIMULATED if options.predictions else OF_FILES:
        if name in given:
            where = "does not go with" if options.predictions else "goes with"
            raise ValueError(f"--{name.replace('_', '-')}: {where} --predictions")
    title = "predictions" if options.predictions else given.pop("preset", "quick")
    parts = [f"{name}-{value}".translate(FOLDER) for name, value in given.items()]
    parts += [path.rpartition(":")[2] for path in options.estimators]
    given["estimators"] = tuple(options.estimators)
    files = tuple(options.predictions)
    design = study.Predictions(files, **given) if files else study.preset(title, **given)
    folder = options.out or "-".join(["fastece-study", title, *parts])
    result = study.run_study(design, folder, n_jobs=options.jobs)
    return Page(str(result), result.to_dict())


def command(name: str) -> Callable[[Namespace], Page]:
    """The function behind a command. Its module is loaded now, with what measures: ``fastece
    --help`` need not wait for it."""
    module, function = COMMANDS[name].run.split(":")
    return getattr(import_module(f"fastece.cli.{module}"), function)  # type: ignore[no-any-return]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process: its exit code is 0, or 2 for bad input, with
    one line on stderr, or 130 if it was interrupted."""
    options = make_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name this terminal cannot show
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            page = command(options.command)(options)
        except KeyboardInterrupt:
            print("fastece: interrupted", file=sys.stderr)
            return 130
        except (OSError, MemoryError, ImportError) as error:
            return refuse(str(error) or "not enough memory")
        except BadArgumentError as error:
            error.rename(option_names())
            return refuse(str(error))
        except (ValueError, TypeError) as error:
            if not is_refusal(error):
                raise
            return refuse(in_options(str(error)))
    for one in caught:
        if isinstance(one.message, InputWarning):
            one.message.rename(option_names())
    for warning in dict.fromkeys(str(one.message) for one in caught):  # the rows are read often
        print(f"fastece: warning: {warning}", file=sys.stderr)
    is_json = options.form == "json"
    return write(json.dumps(to_json(page.values), allow_nan=False) if is_json else page.text)


def refuse(message: str) -> int:
    """One line on stderr, and the exit code of bad input."""
    print(f"fastece: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def is_refusal(error: Exception) -> bool:
    """Whether a check of this package raised an error on purpose: the last line of its traceback is
    a ``raise`` of ours. Whatever else Python or numpy did not like is a fault of the package."""
    text = "".join(traceback.format_tb(error.__traceback__))
    if type(error.__cause__).__name__.endswith("RemoteTraceback"):  # of another process
        text = str(error.__cause__)
    # Of code that dataclasses make, no line is shown: the next frame follows at once.
    place = r'^ *"*File "(.*)", line \d+, in .*\n(?! *File ") *(.*)'
    places = re.findall(place, text, re.MULTILINE)
    path, line = places[-1]
    return bool(path.startswith(PACKAGE) and line.startswith("raise "))


def in_options(message: str) -> str:
    """A message of Python in words of the command line."""
    for pattern, option in OPTIONS.items():
        message = re.sub(pattern, option, message)
    return message


def to_json(value: Any) -> Any:
    """What JSON can hold: nan and infinities become null."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def write(text: str) -> int:
    """Print the page; the exit code."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader, such as head, that has seen enough is no error.
        return 0 if isinstance(error, BrokenPipeError) else refuse(str(error))
    return 0
