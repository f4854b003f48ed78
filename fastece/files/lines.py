"""Lines of a text in chunks of some megabytes; the first may be looked at before it is read."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from zipfile import BadZipFile

import numpy as np

from fastece.files.batches import Places

# Characters of a chunk: a megabyte, and ten times as much while its cells are strings.
MAX_CHARACTERS = 2**20
# Errors of packed files that are cut off or have other bytes in them.
BROKEN = (EOFError, OSError, zlib.error, BadZipFile)


class LineChunks:
    """Chunks of lines, the first of which, `head`, can be looked at and made longer."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self._chunks: Iterator[list[str]] = cut_lines(lines)
        self.head = next(self._chunks)

    def has_more(self) -> bool:
        """Decide whether lines that are not blank follow the first chunk."""
        lines: list[str] = []
        for chunk in self._chunks:
            lines += chunk
            if any(map(str.strip, chunk)):
                self._chunks = chain([lines], self._chunks)
                return True
        return False

    def extend_head(self) -> None:
        """Add the next chunk, if there is one, to the first."""
        self.head += next(self._chunks, [])

    def read_all(self) -> None:
        """Add all other chunks to the first."""
        for chunk in self._chunks:
            self.head += chunk

    def __iter__(self) -> Iterator[list[str]]:
        yield self.head
        yield from self._chunks


def cut_lines(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield lines in chunks; lines before a break come before the error about it."""
    chunk: list[str] = []
    n_characters = 0
    try:
        for line in lines:
            chunk.append(line)
            n_characters += len(line)
            if n_characters >= MAX_CHARACTERS:
                yield chunk
                chunk = []
                n_characters = 0
    except BROKEN:
        yield chunk
        raise
    yield chunk


def places_of_lines(lines: Sequence[str], n_before: int) -> Places:
    """Find the numbers of the lines that are not blank, after so many other lines."""
    places = range(n_before + 1, n_before + len(lines) + 1)
    if all(map(str.strip, lines)):
        return places
    return np.array([k for k, line in zip(places, lines, strict=True) if line.strip()])
