"""Files of any kind, drawn at random: good ones that are damaged, and starts of other formats."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
from functools import cache
from pathlib import Path

import numpy as np

from helpers.command_line import SMALL
from helpers.prediction_files import FORMATS, as_npz, as_zip, encoded

FIXTURES = Path(__file__).parents[1] / "fixtures"
COMMANDS = [
    "report {} --resamples 0", "report {} --stream --resamples 0",
    "report {} {other} --resamples 0",
    "report {} --stream --on-error skip --resamples 0", "check {} --max-error 0.1 --resamples 99",
    "curve {} --resamples 0", "validate {} --resamples 99", "threshold {}", "monitor {}",
    "plan {} --width 0.2", "recalibrate {} --folds 2 --resamples 99",
    "compare {} {other} --resamples 99", "recalibrate {other} --fit {} --resamples 99",
    "recalibrate {other} --load {} --resamples 99", "monitor {other} --state {}",
    "check {other} --max-error 0.1 --max-increase 0.1 --baseline {} --resamples 99",
    "study --predictions {}",
]  # fmt: skip
OPTIONS = [
    *[""] * 14, "--y-true label", "--y-prob p", "--y-true label --y-prob p", "--from-logits",
    "--y-prob p_*", "--pos-label a", "--labels a,b", "--y-true y_prob --y-prob y_true",
    "--percent", "--missing skip",
]  # fmt: skip
# First bytes of formats of other programs.
STARTS = [
    b"\x89HDF\r\n\x1a\n", b"\xd0\xcf\x11\xe0\xa1\xb1", b"FEA1", b"ORC", b"Obj\x01", b"%PDF-1.7",
    b"SQLite format 3\0", b"$FL2@(#)", b"RDX3\nX\n", b"X\n\0\0\0\x02", b"BZh9", b"7z\xbc\xaf'\x1c",
    b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"Rar!", b"\x89PNG\r\n", b"MATLAB 5.0 MAT-file", b"PAR1",
    b"ARROW1\0\0", b"\xff\xff\xff\xff\x10\0\0\0", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08\0",
    b"\x93NUMPY\x01\0", b"\0" * 40, b"\x80\x04\x95", b"<?xml version='1.0'?><a/>", b"\xff\xfea\0",
    b"@relation a\n@data\n", b"\xef\xbb\xbf", b"", b"\n", b" ", b"{", b"[", b"\"", b"[[", b"{}",
]  # fmt: skip
# Cells that a table of numbers has by mistake.
ODD_CELLS = [
    "", " ", "NA", "#DIV/0!", "#N/A", "1e308", "-1e308", "9" * 400, "0." + "3" * 300, "1,5",
    "1_000", "½", "\u0660\u066b\u0665", "0x1p-3", "\uff11", "\u00a00.5", "0.5\u200b",
    "\u22120.5", "+0.5", ".5", "5.", "0.5.5", "\x00", "\x1b[2J", '"', '"0.5', "'0.5'", "=1+1",
    "TRUE", "yes", "2026-01-01", "1e-400", "-0", "inf", "\ud800", "x" * 70_000, "0,5", "{}",
    "[0.5]",
]  # fmt: skip
# A word of a table or of JSON, with its quotes.
WORD = re.compile(r'"[^"\n]*"|[^\s,;:{}\[\]"]+')
# Values of JSON that no prediction has, and some that it may have.
VALUES = [
    "null", "true", "7", "-1", "0.5", "91", '"91%"', '"a"', "[]", "{}", "[1]", "[0.5, 0.5]",
    '{"a": 0.5}', "NaN", "1e400", str(10**30), "[[0]]", '{"a": {"b": [1, 2]}}', '"\\ud800"',
]  # fmt: skip


@cache
def good_files():
    """Texts and bytes of predictions and logs, as many programs write them."""
    rows = [dict(zip(("y_true", "y_prob"), map(float, line.split(",")), strict=True))
            for line in SMALL.splitlines()[1:]]  # fmt: skip
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    files = [
        SMALL, SMALL.replace(",", ";"), json.dumps(rows), json.dumps(columns, indent=1),
        json.dumps({"results": columns}), "".join(json.dumps(row) + "\n" for row in rows),
        as_zip({"a.csv": SMALL}), as_zip({"[Content_Types].xml": "<a/>", "a.csv": SMALL}),
        as_zip({"a.csv": SMALL, "b.csv": SMALL}), as_npz(), pickle.dumps(rows), *FORMATS.values(),
        *(path.read_bytes() for path in FIXTURES.glob("lm_eval*.jsonl")),
        (FIXTURES / "inspect.eval").read_bytes(),
    ]  # fmt: skip
    return [encoded(file) for file in files]


def draw_strange_file(rng):
    """Draw a name and its bytes."""
    kinds = [start_and_noise, arrays, arrow_table, damaged, damaged, damaged, damaged]
    content = kinds[rng.integers(len(kinds))](rng)
    fate = rng.random()
    if fate < 0.1 and content:
        content = content[: int(rng.integers(len(content)))]
    elif fate < 0.2 and content:
        flipped = bytearray(content)
        for _ in range(int(rng.integers(1, 5))):
            flipped[int(rng.integers(len(flipped)))] = int(rng.integers(256))
        content = bytes(flipped)
    elif fate < 0.3:
        content = rng.choice([gzip.compress, bz2.compress, lzma.compress])(content)
    endings = ["csv", "txt", "json", "jsonl", "npz", "parquet", "xlsx", "gz", "feather", "eval"]
    return f"strange.{rng.choice(endings)}", content


def start_and_noise(rng):
    start = STARTS[rng.integers(len(STARTS))]
    return start + rng.bytes(int(rng.choice([0, 1, 30, 3000])))


def damaged(rng):
    """A good file of which some words, a line or the encoding are other ones."""
    content = good_files()[rng.integers(len(good_files()))]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    for _ in range(int(rng.integers(4))):
        words = list(WORD.finditer(text))
        odd = VALUES if text.lstrip()[:1] in ("{", "[") else ODD_CELLS
        # A word of the head or of the first row is taken as often as any other.
        few = words[: 20 if rng.random() < 0.5 else None]
        start, end = few[rng.integers(len(few))].span()
        text = text[:start] + odd[rng.integers(len(odd))] + text[end:]
    if rng.random() < 0.2:
        lines = text.splitlines(keepends=True)
        k = int(rng.integers(len(lines)))
        lines[k : k + 1] = [[], 2 * [lines[k]], ["\n", lines[k]]][rng.integers(3)]
        text = "".join(lines)
    start = rng.choice(["", "", "", "\ufeff", "# a comment\n", "sep=;\n", "\n\n"])
    if rng.random() < 0.1:
        return (start + text).encode(str(rng.choice(["utf-16", "latin-1", "utf-32"])), "replace")
    return (start + text).encode("utf-8", "surrogatepass")


def names(rng):
    sets = [
        ["y_true", "y_prob"], ["y_true", "y_prob"], ["y_true", "p_0", "p_1"], ["label", "p"],
        ["label", "p_a", "p_b"],
        ["true_label", "pred_label", "confidence"], ["pred", "obs", "a", "b"], ["x"], ["", ""],
        ["0", "0.7"], ["actual", "predicted", "prediction"], ["y_true", "y_true"], ["a b", "ü"],
    ]  # fmt: skip
    return list(sets[rng.integers(len(sets))])


def array(rng):
    n = int(rng.choice([0, 1, 12]))
    kinds = [
        rng.integers(0, 2, n), rng.random(n), rng.random((n, 3)), np.array(0.5), rng.random(n) + 1j,
        np.array(["a"] * n), np.array(["2020-01-01"] * n, "M8[D]"), np.zeros(n, "i4,f8"),
        np.zeros((2, 2, 2)), np.array([b"x"] * n), rng.random(n).astype("f2"), np.zeros(n, "V3"),
        rng.normal(0, 9, (n, 2)), np.full(n, np.nan), rng.integers(0, 2, n).astype(bool),
        np.array([b"x" * 9] * n, object),
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]


def arrays(rng):
    file = io.BytesIO()
    if rng.random() < 0.3:
        np.save(file, array(rng), allow_pickle=True)
    else:
        np.savez(file, **{f"{name} ": array(rng) for name in names(rng)} if rng.random() < 0.1
                 else {name or "x": array(rng) for name in names(rng)})  # fmt: skip
    return file.getvalue()


def arrow_table(rng):
    import pyarrow as pa
    from pyarrow import feather, ipc, parquet

    kinds = [
        pa.array([1, 0, None]), pa.array([0.5, 0.1, 0.9]), pa.array(["a", "b", "a"]),
        pa.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]), pa.array([{"x": 1}, None, {"x": 2}]),
        pa.array([1, 0, 1]), pa.array([None, None, None]), pa.array([b"a", b"b", b"c"]),
        pa.array([1, 2, 3], pa.date32()), pa.array([True, False, None]), pa.array([[], [1], None]),
        pa.array(["a", "b", None]).dictionary_encode(), pa.array([1, 2, 3], pa.timestamp("us")),
        pa.array([1, 2, 3], pa.decimal128(9, 2)), pa.array([0.5, 1.5, float("nan")], pa.float32()),
        pa.array([0.5, 0.25, 1.0], pa.float16()),
        pa.array([[("a", 1)], [], None], pa.map_("string", "int64")),
    ]  # fmt: skip
    columns = names(rng)
    made = pa.Table.from_arrays([kinds[rng.integers(len(kinds))] for _ in columns], columns)
    if rng.random() < 0.2:
        made = made.slice(0, 0)
    file = io.BytesIO()
    kind = rng.integers(3)
    if kind == 0:
        try:
            parquet.write_table(made, file)
        except pa.ArrowException:
            return b"PAR1"
    elif kind == 1:
        feather.write_feather(made, file)
    else:
        with ipc.new_stream(file, made.schema) as writer:
            writer.write_table(made)
    return file.getvalue()
