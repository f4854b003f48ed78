"""One table of predictions in every format."""

import gzip
import io
import json
import zipfile

import numpy as np

TRUE = [0, 2, 1, 1]
PROB = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.3, 0.6, 0.1], [0.4, 0.35, 0.25]]
WEIGHT = [1.0, 2.0, 0.5, 0.0]
GROUP = ["a", "b", "a", "c, d"]
NAMES = ["y_true", "p_0", "p_1", "p_2", "w", "group"]
ROWS = [[y, *p, w, g] for y, p, w, g in zip(TRUE, PROB, WEIGHT, GROUP, strict=True)]


def as_text(delimiter, end="\n", start=""):
    quoted = [[f'"{x}"' if isinstance(x, str) else str(x) for x in row] for row in ROWS]
    return start + "".join(f"{delimiter.join(row)}{end}" for row in [NAMES, *quoted])


def as_json(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def as_npz(**changes):
    file = io.BytesIO()
    arrays = {"y_true": TRUE, "y_prob": np.array(PROB), "w": WEIGHT, "group": GROUP}
    np.savez(file, **(arrays | changes))
    return file.getvalue()


def as_zip(members):
    """An archive of files by their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def packed(content):
    # Without the time, which would be part of the names of tests.
    return gzip.compress(content, mtime=0)


KINDS = [(name, "U4" if name == "group" else "f8") for name in NAMES]
LISTS = [
    {"y_true": y, "y_prob": p, "w": w, "group": g}
    for y, p, w, g in zip(TRUE, PROB, WEIGHT, GROUP, strict=True)
]
FORMATS = {
    "commas.csv": as_text(","),
    "tabs.tsv": as_text("\t", end="\r\n"),
    "semicolons": as_text(";", start="\ufeff"),
    "old_mac.csv": as_text(",", end="\r"),
    "packed.csv.gz": packed(as_text(";").encode()),
    "rows.jsonl": as_json(dict(zip(NAMES, row, strict=True)) for row in ROWS),
    "strings.jsonl": as_json(dict(zip(NAMES, map(str, row), strict=True)) for row in ROWS),
    "lists.ndjson": as_json(LISTS),
    "fields.npy": as_npy(np.array([tuple(row) for row in ROWS], KINDS)),
    "packed.npy.gz": packed(as_npy(np.array([tuple(row) for row in ROWS], KINDS))),
    "arrays.npz": as_npz(),
    "packed.npz.gz": packed(as_npz()),
}


def encoded(content):
    return content if isinstance(content, bytes) else content.encode()
