"""Files that a command writes, checked before anything is computed."""

import os
from pathlib import Path

from fastece.checks.errors import InputError
from fastece.plot.pages import KINDS, require_matplotlib


def check_picture(path: str | Path) -> Path:
    """Return the checked file of ``--plot``; matplotlib must be there."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        rule = f"must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise InputError("plot", rule, value=str(path))
    require_matplotlib("plot")
    return check_writable("plot", path)


def check_page(path: str) -> Path:
    """Return the checked file of ``--html``; matplotlib must be there."""
    if not path.lower().endswith((".html", ".htm")):
        raise InputError("html", "must end in .html", value=path)
    require_matplotlib("html")
    return check_writable("html", path)


def check_writable(option: str, path: str | Path) -> Path:
    """Check that the file of an option can be written."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(option, "must be in a folder that exists", value=str(path.parent))
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(option, "must be a file that can be written", value=str(path))
    return path
