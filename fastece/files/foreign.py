"""Formats that are known by their first bytes and not read, with the remedy for each.

A new one is a row of `FOREIGN_FORMATS`. Without it a file is taken for text, and the error names a
cell or a header that its reader has never seen.
"""

from typing import NamedTuple

from fastece.data.errors import InputError

# Bytes of a file in which text has no byte 0.
N_TEXT_BYTES = 1024
SAVE_AS_CSV = "save the table as CSV"
UNPACK = "unpack it, or pack it by gzip"
SAVE_ARRAYS = "save the arrays by numpy.savez"


class ForeignFormat(NamedTuple):
    """How files of a format begin, its name, and how to make a file that is read."""

    starts: tuple[bytes, ...]
    name: str
    remedy: str


FOREIGN_FORMATS = (
    ForeignFormat((b"\x80",), "a pickle, which could run any code", SAVE_ARRAYS),
    ForeignFormat((b"\x89HDF\r\n\x1a\n",), "HDF5", SAVE_ARRAYS),
    ForeignFormat((b"MATLAB 5.0",), "a file of MATLAB", SAVE_ARRAYS),
    ForeignFormat((b"\xd0\xcf\x11\xe0",), "an old workbook of Excel", "save a sheet as CSV"),
    ForeignFormat((b"FEA1",), "Feather of version 1", "write version 2, or Parquet"),
    ForeignFormat((b"ORC",), "ORC", "write Parquet"),
    ForeignFormat((b"Obj\x01",), "Avro", "write Parquet"),
    ForeignFormat((b"SQLite format 3\0",), "a database of SQLite", SAVE_AS_CSV),
    ForeignFormat((b"$FL2", b"$FL3"), "a file of SPSS", SAVE_AS_CSV),
    ForeignFormat((b"<stata_dta>",), "a file of Stata", SAVE_AS_CSV),
    ForeignFormat((b"RDX2\n", b"RDX3\n", b"X\n\0\0\0", b"A\n"), "a file of R", SAVE_AS_CSV),
    ForeignFormat((b"\0" * 12,), "a file of SAS, or of zeros", SAVE_AS_CSV),
    ForeignFormat((b"BZh",), "packed by bzip2", UNPACK),
    ForeignFormat((b"\xfd7zXZ\0",), "packed by xz", UNPACK),
    ForeignFormat((b"\x28\xb5\x2f\xfd",), "packed by zstandard", UNPACK),
    ForeignFormat((b"7z\xbc\xaf\x27\x1c",), "a 7z archive", UNPACK),
    ForeignFormat((b"Rar!",), "a RAR archive", UNPACK),
    ForeignFormat((b"\x1f\x8b",), "packed by gzip twice", UNPACK),
    ForeignFormat((b"%PDF",), "a PDF", SAVE_AS_CSV),
    ForeignFormat((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "a picture", SAVE_AS_CSV),
    ForeignFormat((b"<?xml", b"<html", b"<HTML", b"<!"), "a page of XML or HTML", SAVE_AS_CSV),
    ForeignFormat((b"@relation", b"@RELATION"), "ARFF of Weka", SAVE_AS_CSV),
)


def refuse_foreign(name: str, start: bytes) -> None:
    """Refuse a file of a known format that is not read, by its first bytes."""
    for foreign in FOREIGN_FORMATS:
        if start.startswith(foreign.starts):
            raise InputError("path", f"is {foreign.name}", place=name, hint=foreign.remedy)


def refuse_binary(name: str, start: bytes) -> None:
    """Refuse a file as text if a byte is 0 among its first bytes."""
    if b"\0" in start[:N_TEXT_BYTES]:
        rule = f"is no text, and of no format that is read: it starts with {start[:6]!r}"
        raise InputError("path", rule, place=name, hint=SAVE_AS_CSV)
