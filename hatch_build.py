"""Hook of hatchling that puts compiled kernels into a wheel, where ``FASTECE_KERNELS`` asks for it.

``FASTECE_KERNELS=1`` compiles them for each kind of processor that fastece knows, which takes a few
minutes; names of kinds, as ``x86-64-v3,x86-64-v4``, compile for those alone. The wheel is then for
this version of Python and this kind of machine. Without the variable, and in an editable
installation, the wheel is for all, and kernels are compiled at their first use.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

VARIABLE = "FASTECE_KERNELS"
SCRIPT = Path("scripts", "release", "build_kernels.py")
# Kernels are linked to no library of the system. These are the oldest systems that Python and numba
# have files for, by the operating system.
PLATFORMS = {
    "Linux": "manylinux_2_17_{machine}.manylinux2014_{machine}",
    "Darwin": "macosx_11_0_{machine}",
    "Windows": "win_{machine}",
}


class CompiledKernels(BuildHookInterface[Any]):
    """Adds archives of compiled kernels to a wheel."""

    def dependencies(self) -> list[str]:
        """List the packages that compile kernels: all that fastece needs."""
        return list(self.metadata.core.dependencies) if os.environ.get(VARIABLE) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, and add their folder and the tag of this Python and machine."""
        levels = os.environ.get(VARIABLE)
        if not levels or version == "editable" or self.target_name != "wheel":
            return
        self.folder = tempfile.TemporaryDirectory()
        names = [] if levels == "1" else levels.split(",")
        command = [sys.executable, Path(self.root, SCRIPT), self.folder.name, *names]
        subprocess.run(command, check=True)
        build_data["force_include"][self.folder.name] = "fastece/kernels/shipped"
        build_data["pure_python"] = False
        build_data["tag"] = wheel_tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the folder."""
        if hasattr(self, "folder"):
            self.folder.cleanup()


def wheel_tag() -> str:
    """Return the tag of wheels for this version of Python and this kind of machine."""
    python = next(sys_tags())
    machine = platform.machine().lower()
    return (
        f"{python.interpreter}-{python.abi}-{PLATFORMS[platform.system()].format(machine=machine)}"
    )
