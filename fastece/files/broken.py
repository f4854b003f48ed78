"""Broken files: errors of the libraries that read them, turned into errors about input."""

from collections.abc import Generator
from contextlib import contextmanager

from fastece.data.errors import BadArgumentError, InputError


@contextmanager
def input_errors(place: str, *kinds: type[Exception]) -> Generator[None]:
    """Turn errors of these kinds in the block into input errors about a place.

    Errors of the disk, which have a number, stay as they are.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, BadArgumentError) or getattr(error, "errno", None) is not None:
            raise
        raise InputError("path", f"cannot be read: {error}", place=place) from error
