"""An environment of asv: the Python that runs asv, as it is, with what is installed there.

asv's own "existing" environment files its results under the path of the interpreter; these are
filed under the versions that speed depends on, wherever the interpreter lies.
"""

import platform
from importlib.metadata import version
from typing import Any

from asv.environment import ExistingEnvironment


class Interpreter(ExistingEnvironment):
    """Named by versions."""

    tool_name = "interpreter"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._python = platform.python_version()  # was the path, which results would show

    @property
    def name(self) -> str:
        """Part of the name of each file of results."""
        packages = (f"{name}{version(name)}" for name in ("numba", "numpy"))
        return "-".join([f"python{platform.python_version()}", *packages])
