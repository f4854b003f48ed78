"""All commands: each has a module of its name here, which describes and runs it.

A new command is a row of `SUMMARIES` and a module with a function `describe`. Only the module of
the command that is typed is imported, as it imports the rooms that measure.
"""

from importlib import import_module

from fastece.cli.options import Command, Option

SUMMARIES = {
    "report": "size, accuracy, calibration errors and reliability diagram of a file",
    "compare": "the difference between two models or more, on the same rows",
    "recalibrate": "recalibrate predictions and report whether it helped",
    "demo": "report on predictions that ship with fastece, and recalibrate them",
    "curve": "calibration curve: observed frequency at any score, with intervals",
    "validate": "validation of a risk model: O/E, slope, ICI, C statistic, net benefit",
    "plan": "sample size for a target interval width or test power",
    "monitor": "sequential monitoring: an alarm when predictions stop being calibrated",
    "check": "a gate: does the calibration error lie below a bound?",
    "threshold": "the score from which predictions are right often enough to act on",
    "warmup": "compile everything ahead of time, for example for a container image",
    "info": "versions, processor and compiled kernels in use, for bug reports",
    "study": "compare estimators on simulated models or on your own files",
}
# Arguments of Python whose options have other names; None: no option has it.
OTHER_NAMES: dict[str, str | None] = {
    "n_resamples": "--resamples",
    "n_jobs": "--jobs",
    "rng": "--seed",
    "sample_weight": "--weights",
    "cv": "--folds",
    "y_prob_b": "b",
    "first": None,
    "n_classes": None,
    "confidence": "--confidence-level",
    "ignore_label": None,
    "ignore_nan": None,
    "keep": None,
    "tasks": None,
    "class_axis": None,
    "class_axis_1": None,
}


def load_command(name: str) -> Command:
    """Import the module of a command, and return the description that it registers."""
    command: Command = import_module(f"fastece.cli.{name}").describe()
    return command


def options_by_command() -> dict[str, tuple[Option, ...]]:
    """Return the options of each command, for which all modules are imported."""
    return {name: load_command(name).options for name in SUMMARIES}


def argument_names() -> dict[str, str | None]:
    """Return the options by the arguments of Python that messages of errors name."""
    options = [option for options in options_by_command().values() for option in options]
    return {**{option.argument: option.name for option in options}, **OTHER_NAMES}
