"""Any file written whole: at its place there is the old one, or the whole new one.

The content goes to a temporary file beside the place, which `os.replace` moves there when it is on
the disk.
"""

import os
import stat
from os import PathLike
from pathlib import Path
from uuid import uuid4


def write_file(path: str | PathLike[str], content: bytes) -> None:
    """Write a file whole; the mode of an old one is kept, and links to it stay.

    A pipe or another device is written to.

    Raises
    ------
    OSError
        If it cannot be written; then all is as before.
    """
    try:
        if is_device(path):
            write_through(path, content)
        else:
            replace_file(Path(os.path.realpath(path)), content)
    except OSError as error:
        # The error of the system may name the temporary file, or none.
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_device(path: str | PathLike[str]) -> bool:
    """Decide whether there is something else than a regular file or a folder."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def write_through(path: str | PathLike[str], content: bytes) -> None:
    """Write to a pipe or another device, which is never made anew."""
    with open(os.open(path, os.O_WRONLY), "wb") as file:
        file.write(content)


def replace_file(path: Path, content: bytes) -> None:
    """Write content to a temporary file, and move it to a path when it is on the disk."""
    old_mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f".{uuid4().hex}.part")
    # The system takes away what new files of this user may not have, so nobody can read the
    # temporary file who could not read the old one.
    mode = 0o666 if old_mode is None else old_mode
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if old_mode is not None:
            os.chmod(temporary, old_mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
