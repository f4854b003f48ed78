"""An environment of asv that uses the Python that runs asv, with its packages.

Nothing is built or installed: benchmarks of required packages that are missing are skipped. A
commit is checked out, and comes first on the path of Python.
Compiled kernels are kept in a folder of the environment, and calls of the user do not find them.
Results are filed under the versions on which speed depends, wherever the interpreter lies.
"""

import os
import platform
import sys
from importlib.metadata import version
from typing import Any

from asv.environment import Environment
from asv.util import check_output

# Packages whose versions change the speed of fastece.
PACKAGES = ("numba", "numpy")


class Interpreter(Environment):
    """The running interpreter, under a name made of versions."""

    tool_name = "interpreter"

    def __init__(self, conf: Any, python: str, requirements: Any, variables: Any) -> None:  # noqa: ARG002
        self._python = platform.python_version()
        self._requirements: dict[str, str] = {}
        super().__init__(conf, self._python, self._requirements, variables)

    @classmethod
    def matches(cls, python: str) -> bool:  # noqa: ARG003
        """Accept any name of an interpreter."""
        return True

    @property
    def name(self) -> str:
        """The part of the names of result files that tells environments apart."""
        versions = [f"{package}{version(package)}" for package in PACKAGES]
        return "-".join([f"python{platform.python_version()}", *versions])

    def create(self) -> None:
        """Make the folder of the environment, without installing anything."""
        os.makedirs(self._path, exist_ok=True)

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:  # noqa: ARG002
        """Check out a commit."""
        self.checkout_project(repo, commit_hash)

    def run(self, args: list[str], **options: Any) -> Any:
        """Run Python with the checkout, if there is one, and return its output.

        The benchmarks refuse any other fastece than the one in FASTECE_MEASURED.
        """
        environment = {**os.environ, **(options.pop("env", None) or {})}
        environment["FASTECE_CACHE_DIR"] = os.path.join(self._path, "kernels")
        environment["ASV_PYTHONPATH"] = self._build_root
        environment["FASTECE_MEASURED"] = self._build_root
        return check_output([sys.executable, *args], env=environment, **options)
