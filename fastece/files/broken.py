"""Broken files: errors of the libraries that read them, turned into errors about input."""

from collections.abc import Generator
from contextlib import contextmanager

from fastece.data.errors import BadArgumentError, InputError


@contextmanager
def input_errors(place: str, *kinds: type[Exception]) -> Generator[None]:
    """Turn errors of these kinds in the block into input errors about a place.

    Errors of the disk, which have a number, and a lack of memory stay as they are.
    """
    try:
        yield
    except (BadArgumentError, MemoryError, ImportError):
        raise
    except kinds as error:
        if getattr(error, "errno", None) is not None:
            raise
        reason = str(error) or type(error).__name__
        raise InputError("path", f"cannot be read: {reason}", place=place) from error
