"""An environment of asv: the Python that runs asv, as it is, with what is installed there.

Nothing is built or installed. A commit is checked out and stands first on the path of Python, with
a folder of compiled kernels that users' calls do not see. Results are filed under the versions that
speed depends on, wherever the interpreter lies.
"""

import os
import platform
import sys
from importlib.metadata import version
from typing import Any

from asv.environment import Environment
from asv.util import check_output


class Interpreter(Environment):
    """Named by versions."""

    tool_name = "interpreter"

    def __init__(self, conf: Any, python: str, requirements: Any, variables: Any) -> None:  # noqa: ARG002
        self._python, self._requirements = platform.python_version(), {}
        super().__init__(conf, self._python, {}, variables)

    @classmethod
    def matches(cls, python: str) -> bool:  # noqa: ARG003
        """Serve any name of an interpreter."""
        return True

    @property
    def name(self) -> str:
        """Part of the name of each file of results."""
        packages = (f"{name}{version(name)}" for name in ("numba", "numpy"))
        return "-".join([f"python{platform.python_version()}", *packages])

    def create(self) -> None:
        """Install nothing."""
        os.makedirs(self._path, exist_ok=True)

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:  # noqa: ARG002
        """Check out a commit."""
        self.checkout_project(repo, commit_hash)

    def run(self, args: list[str], **options: Any) -> Any:
        """Start Python with the checkout, which the benchmarks insist on, if there is one."""
        environment = {**os.environ, **(options.pop("env", None) or {})}
        environment["FASTECE_CACHE_DIR"] = os.path.join(self._path, "kernels")
        environment["ASV_PYTHONPATH"] = environment["FASTECE_MEASURED"] = self._build_root
        return check_output([sys.executable, *args], env=environment, **options)
