"""The command ``info``: the versions, the processor and the compiled kernels of an installation."""

import platform
from argparse import Namespace
from importlib.metadata import version
from pathlib import Path

import fastece
from fastece.cli.arguments import (
    Parser,
    add_forms,
)
from fastece.cli.output import Page
from fastece.cli.progress import Progress
from fastece.data.parameters import processors
from fastece.display.documents import Document, Section

DESCRIPTION = """Versions, the processor, and the compiled kernels in use with their folders:
all that a report of a bug needs."""
EXAMPLES = """
  fastece info --markdown
"""
TITLE = "fastece, what it runs on, and its compiled kernels"
PACKAGES = ("numba", "llvmlite", "numpy", "scipy")


def make_parser() -> Parser:
    """Make the parser of ``fastece info``."""
    parser = Parser("info", DESCRIPTION, "fastece info [options]", EXAMPLES)
    add_forms(parser)
    return parser


def run(options: Namespace, progress: Progress) -> Page:  # noqa: ARG001
    """Run ``fastece info``."""
    from llvmlite.binding import get_host_cpu_name

    values_by_name = {
        "fastece": f"{fastece.__version__} in {Path(fastece.__file__).parent}",
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{package: version(package) for package in PACKAGES},
        "processor": get_host_cpu_name(),
        "threads": processors(),
        **describe_kernels(),
    }
    values = {name.replace(" ", "_"): value for name, value in values_by_name.items()}
    return Page(Document(TITLE, sections=[Section(facts=values_by_name)]), values)


def describe_kernels() -> dict[str, str]:
    """Describe the kernels in use, and where native and shipped ones are."""
    from fastece.kernels import cache

    n_kept = len(cache.USER.kernels())
    n_shipped = len(cache.SHIPPED.kernels())
    if cache.config.DISABLE_JIT:
        in_use = "none: Python runs the loops"
    elif n_kept:
        in_use = "native"
    elif n_shipped:
        in_use = "shipped"
    else:
        in_use = "compiled at their first use"
    native = f"{n_kept} signatures in {cache.USER.path}"
    if cache.USER.problem:
        native = f"none: {cache.USER.problem}"
    shipped = "none in this installation"
    if n_shipped:
        shipped = f"{n_shipped} signatures in {cache.SHIPPED.path}"
    elif cache.SHIPPED_FOLDERS.is_dir():
        shipped = f"none that fits these versions and this processor in {cache.SHIPPED_FOLDERS}"
    return {"kernels in use": in_use, "native kernels": native, "shipped kernels": shipped}
