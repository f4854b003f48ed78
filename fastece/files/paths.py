"""Paths of files of predictions: patterns, folders, pipes, and several names of one file."""

import os
import re
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from fastece.data.errors import InputError

STANDARD_INPUT = "-"
GZIP_ENDING = ".gz"
ZSTANDARD_ENDING = ".zst"
# A whole number in a name.
NUMBER_IN_NAME = re.compile(r"([0-9]+)")
# Endings of the files that are read where a folder is given, also before one of a packer.
FILE_ENDINGS = (
    ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".eval", ".npy", ".npz", ".parquet",
    ".feather", ".arrow",
)  # fmt: skip


def is_piped(path: str) -> bool:
    """Decide whether a path is a pipe or a terminal, which can be read once only."""
    return path == STANDARD_INPUT or (os.path.exists(path) and not os.path.isfile(path))


def file_identity(path: str) -> Any:
    """Return the same for all names of a file, as `os.path.samefile` finds them.

    A file that is not there yet is known by its path without symbolic links.
    """
    try:
        status = os.stat("/dev/stdin" if path == STANDARD_INPUT else path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def expand_paths(paths: Sequence[str]) -> list[str]:
    """Find the files that paths, patterns and folders name, in their order, each once.

    Files of a pattern or a folder are in the order of the numbers in their names.
    """
    files = [file for path in paths for file in files_of(path)]
    seen = set()
    for file in files:
        identity = file_identity(file)
        if identity in seen:
            raise InputError("path", "is named twice; its rows would count twice", place=file)
        seen.add(identity)
    return files


def files_of(path: str) -> list[str]:
    """Find the files that one path, pattern or folder names."""
    if os.path.isdir(path):
        files = files_in(Path(path))
        rule = f"no file in this folder ends in {', '.join(FILE_ENDINGS)}"
    elif os.path.exists(path) or not has_magic(path):
        return [path]
    else:
        files = [file for file in glob(path, recursive=True) if os.path.isfile(file)]
        rule = "no file has such a name"
    if not files:
        raise InputError("path", rule, place=path)
    return sorted(files, key=lambda file: (texts_and_numbers(file), file))


def texts_and_numbers(path: str) -> list[Any]:
    """Split a path into texts and the whole numbers between them.

    So day2 comes before day10.
    """
    parts: list[Any] = NUMBER_IN_NAME.split(path)
    parts[1::2] = map(int, parts[1::2])
    return parts


def find_number_out_of_order(paths: Sequence[str]) -> tuple[str, str] | None:
    """Find the first two paths in another order than their numbers.

    Only paths that differ in nothing but their numbers are compared.
    """
    last_of_texts: dict[tuple[str, ...], str] = {}
    for path in paths:
        parts = texts_and_numbers(path)
        texts = tuple(parts[::2])
        before = last_of_texts.get(texts)
        if before is not None and parts < texts_and_numbers(before):
            return before, path
        last_of_texts[texts] = path
    return None


def files_in(folder: Path) -> list[str]:
    """Find the files of predictions below a folder, by the ends of their names.

    Copies of notebooks and unfinished work are left out: they, or their folders, begin with "." or
    "_".
    """
    files = []
    for file in folder.rglob("*"):
        is_hidden = any(name.startswith((".", "_")) for name in file.relative_to(folder).parts)
        ending = file.name.lower().removesuffix(GZIP_ENDING).removesuffix(ZSTANDARD_ENDING)
        if file.is_file() and ending.endswith(FILE_ENDINGS) and not is_hidden:
            files.append(str(file))
    return files
