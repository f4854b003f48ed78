"""Names and arguments are those of the libraries, none of which is imported."""

import importlib
import inspect
import subprocess
import sys

import pytest

from helpers.compat_cases import general_calibration_error, library

FUNCTIONS = {
    "torchmetrics": (
        "binary_calibration_error", "multiclass_calibration_error", "calibration_error",
        "BinaryCalibrationError", "MulticlassCalibrationError", "CalibrationError",
    ),
    "netcal": ("ECE", "MCE", "ACE", "ECE.measure", "MCE.measure", "ACE.measure"),
    "uncertainty_calibration": ("get_ece", "get_ece_em", "get_calibration_error"),
    "sklearn": ("calibration_curve",),
    "relplot": ("smECE", "smECE_sigma", "binnedECE"),
    "robustness_metrics": (
        "gce", "general_calibration_error", "ece", "rmsce", "sce", "ace", "tace",
    ),
}  # fmt: skip


def theirs(module, name):
    """The function or class of the library."""
    if module == "robustness_metrics":
        return getattr(general_calibration_error(), name)
    if module == "torchmetrics":
        library("torchmetrics")
        place = "classification" if name[0].isupper() else "functional.classification"
        # Of a function and a module of one name the package has the module.
        place += ".calibration_error" if name == "calibration_error" else ""
        return getattr(importlib.import_module(f"torchmetrics.{place}"), name)
    package = {
        "netcal": "netcal.metrics",
        "uncertainty_calibration": "calibration",
        "sklearn": "sklearn.calibration",
        "relplot": "relplot.metrics",
    }[module]
    found = library(package)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def parameters(function):
    """Names, defaults and kinds, but for `self` and further keywords."""
    made_by_new = inspect.isclass(function) and "__new__" in vars(function)
    found = list(
        inspect.signature(function.__new__ if made_by_new else function).parameters.values()
    )
    if made_by_new or found[0].name == "self":
        found = found[1:]
    return [(p.name, p.default, p.kind) for p in found if p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FUNCTIONS.items() for name in names]
)
def test_arguments_are_those_of_the_library(module, name):
    ours = importlib.import_module(f"fastece.compat.{module}")
    for part in name.split("."):
        ours = getattr(ours, part)
    assert parameters(ours) == parameters(theirs(module, name))


CODE = """
import fastece.compat, sys
others = "calibration netcal numba relplot sklearn tensorflow torch torchmetrics"
print([name for name in (*others.split(), "uncertainty_metrics") if name in sys.modules])
"""


def test_import_brings_no_library():
    command = [sys.executable, "-c", CODE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
