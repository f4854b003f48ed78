"""Files of predictions with oddities and faults, drawn at random.

An odd file is a head, rows and an end. Rows are drawn before they are written, so that the numbers
of a good row are known without any reader, and a bad row can be left out.
"""

import gzip
import io
import json
from dataclasses import dataclass, field, replace

import numpy as np

DELIMITERS = [",", ";", "\t"]
ENDS = ["\n", "\n", "\r\n"]
# Texts that are no numbers, and numbers that are no probabilities.
BAD_NUMBERS = ["", " ", "nan", "NaN", "x", "1e400", "-0.5", "1.5", "0x1", "1_0", "٣", "True", "inf"]
BAD_LABELS = ["", "nan", "-1", "7", "0.5", "1e400", "18446744073709551616"]
ODD_JSON = [None, float("nan"), "x", "", [], {}, [9], [9, 9, 9, 9], 1.5, -1, 10**30]
ODD_LABELS = [None, "cat", float("nan"), -1, 7, 0.5, [0], {"a": 1}, 10**30, ""]
BROKEN_LINES = [
    b"{", b"[1]", b"7", b"null", b"oops", b'"text"', b'{"y_true": 0, "y_prob": 0.5, "y_true": 1}',
    b'{"y_true": 0, "y_prob": 0.5} {}', b'{"y_true": 0, "y_prob": "\xff"}', b"{}",
    b'{"y_true": 0, "y_prob": ' + b"[" * 3000, b'{"y_true": 0,', b'{"y_true": 0, "y_prob": 0.5}, ',
]  # fmt: skip


@dataclass
class OddFile:
    """Bytes of a file in pieces, and its rows as they were drawn."""

    name: str
    head: bytes
    rows: list[bytes]
    good: list[tuple]  # of each row: label, probabilities, weight, slice
    bad: dict[int, str] = field(default_factory=dict)  # rows with a fault
    options: dict = field(default_factory=dict)
    is_packed: bool = False
    is_whole: bool = False  # its rows cannot be left out one by one

    @property
    def content(self):
        plain = self.head + b"".join(self.rows)
        return gzip.compress(plain, 1, mtime=0) if self.is_packed else plain

    def without_bad_rows(self):
        """The same file without its bad rows."""
        keep = [k for k in range(len(self.rows)) if k not in self.bad]
        rows, good = ([x[k] for k in keep] for x in (self.rows, self.good))
        return replace(self, rows=rows, good=good, bad={})


def draw_file(rng):
    """Draw an odd file of any format."""
    forms = [delimited, delimited, delimited, lines, lines, lines, archive, matrix, parquet]
    return forms[rng.integers(len(forms))](rng)


def draw_rows(rng, n_classes):
    """Draw labels, rows of probabilities, weights and slices."""
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 30]))
    prob = rng.dirichlet(np.ones(n_classes), n).round(int(rng.integers(1, 17)))
    prob[:, 0] = 1 - prob[:, 1:].sum(1)
    label = rng.integers(0, n_classes, n)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    weight[0] = 1.0
    by = rng.choice(
        [["1", "2", "10"], ["a", "b c", "ü"], ["1", "x", "2"], ["1.5", "2", "-1"]][rng.integers(4)],
        n,
    )
    return label.tolist(), prob.clip(0, 1).tolist(), weight.tolist(), by.tolist()


def places_of_faults(rng, n):
    """Draw up to three rows to spoil, most often none or one; the first ones most often."""
    count = rng.choice([0, 0, 1, 1, 2, 3])
    return {int(min(rng.choice([0, 1, n - 1, rng.integers(n)]), n - 1)) for _ in range(count)}


def number_text(rng, x):
    """Write a number in one of the ways that are read."""
    ways = [repr(x), repr(x), f"{x:.17g}", f" {x!r} ", f"+{x!r}", f"{x:.17e}", f'"{x!r}"']
    return str(rng.choice(ways))


def delimited(rng):
    """Draw text of one of the three delimiters."""
    layout = rng.choice(["binary", "classes", "pairs"])
    n_classes = 3 if layout == "classes" else 2
    label, prob, weight, by = draw_rows(rng, n_classes)
    delimiter = rng.choice(DELIMITERS)
    end = rng.choice(ENDS)
    columns = {"binary": ["y_true", "y_prob"], "classes": ["y_true", "p_0", "p_1", "p_2"]}
    names = columns.get(layout, ["true_label", "pred_label", "confidence"])
    extra_columns = [name for name in ("w", "by", "note", "note") if rng.random() < 0.5]
    words = [["0", "1"], ["cat", "dog"], ["True", "False"], ["1.0", "2"], ["1", "x"]][
        rng.integers(5)
    ]
    is_bool = layout == "binary" and rng.random() < 0.2
    rows = []
    good = []
    bad = {}
    for y, p, v, g in zip(label, prob, weight, by, strict=True):
        if layout == "pairs":
            guess = int(rng.integers(2))
            cells = [words[y], words[guess], number_text(rng, p[1])]
            good.append((float(y == guess), [p[1]], v, g))
        else:
            cells = [str(bool(y)) if is_bool else str(y)]
            cells += [number_text(rng, x) for x in (p if layout == "classes" else p[1:])]
            good.append((float(y), p if layout == "classes" else p[1:], v, g))
        note = '"two\nlines, ""quoted"""' if rng.random() < 0.1 else "ü"
        cells += [{"w": repr(v), "by": f'"{g}"', "note": note}[name] for name in extra_columns]
        rows.append(cells)
    for k in places_of_faults(rng, len(rows)):
        kind = rng.choice(["number", "number", "label", "short", "long", "bytes"])
        cells = rows[k] = [*rows[k]]
        first = 2 if layout == "pairs" else 1
        if kind == "number":
            cells[first] = str(rng.choice(BAD_NUMBERS))
        elif kind == "label" and layout != "pairs":
            cells[0] = str(rng.choice(BAD_LABELS))
        elif kind == "long":
            cells.append("")
        elif kind == "bytes":
            cells[first] = "\udcff"
        else:
            cells.pop()
        bad[k] = kind
    encoded = [(delimiter.join(c) + end).encode("utf-8", "surrogateescape") for c in rows]
    if rng.random() < 0.2:  # blank lines, which are no rows
        encoded = [x + end.encode() * int(rng.integers(2)) for x in encoded]
    if rng.random() < 0.2:
        encoded[-1] = encoded[-1].removesuffix(end.encode())
    head = (delimiter.join([*names, *extra_columns]) + end).encode()
    head = (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + head
    return OddFile(
        "a.csv", head, encoded, good, bad,
        options=options_of(extra_columns), is_packed=rng.random() < 0.1,
    )  # fmt: skip


def options_of(more):
    """The options that read the columns of weights and slices, where there are any."""
    options = {"weights": "w"} if "w" in more else {}
    return options | ({"columns": {"by": "by"}} if "by" in more else {})


def lines(rng):
    """Draw JSON Lines."""
    layout = rng.choice(["binary", "list", "object", "classes"])
    n_classes = 2 if layout == "binary" else 3
    label, prob, weight, by = draw_rows(rng, n_classes)
    extra_columns = [name for name in ("w", "by", "note") if rng.random() < 0.5]
    end = str(rng.choice(ENDS))
    is_text = rng.random() < 0.2
    is_bool = n_classes == 2 and rng.random() < 0.2
    rows = []
    good = []
    for y, p, v, g in zip(label, prob, weight, by, strict=True):
        row = {"y_true": bool(y) if is_bool else y}
        if layout == "classes":
            row |= {f"p_{k}": x for k, x in enumerate(p)}
        else:
            values = [str(x) if is_text else x for x in p]
            keyed = {str(k): x for k, x in enumerate(values)}
            row["y_prob"] = {"binary": values[1], "list": values, "object": keyed}[layout]
        note = {"b": [1, {"c": None}]} if rng.random() < 0.5 else "ü"
        rows.append(
            row | {k: x for k, x in {"w": v, "by": g, "note": note}.items() if k in extra_columns}
        )
        good.append((float(y), p[1:] if layout == "binary" else p, v, g))
    bad = {}
    broken = {}
    for k in places_of_faults(rng, len(rows)):
        kind = bad[k] = str(rng.choice(["number", "label", "missing", "broken", "broken"]))
        score = "p_1" if layout == "classes" else "y_prob"
        if kind == "broken":
            broken[k] = BROKEN_LINES[rng.integers(len(BROKEN_LINES))]
        elif kind == "missing":
            del rows[k][str(rng.choice([score, "y_true"]))]
        elif kind == "label":
            rows[k]["y_true"] = ODD_LABELS[rng.integers(len(ODD_LABELS))]
        else:
            rows[k][score] = ODD_JSON[rng.integers(len(ODD_JSON))]
    space = "" if rng.random() < 0.8 else " "
    encoded = []
    for k, row in enumerate(rows):
        text = space + json.dumps(row, ensure_ascii=bool(rng.random() < 0.5)) + space
        line = broken.get(k, text.encode())
        encoded.append(line + (2 * end if rng.random() < 0.1 else end).encode())
    head = b"\xef\xbb\xbf" if rng.random() < 0.1 else b""
    return OddFile(
        "a.jsonl", head, encoded, good, bad,
        options=options_of(extra_columns), is_packed=rng.random() < 0.1,
    )  # fmt: skip


def arrays_of(rng):
    """Draw columns as arrays, of which one may have a fault, and the good rows."""
    n_classes = int(rng.choice([2, 3]))
    label, prob, weight, by = draw_rows(rng, n_classes)
    kind = str(rng.choice(["f8", "f4", "f2"]))
    p = np.array(prob).astype(kind)
    p = p[:, 1] if n_classes == 2 else p
    types = ["i1", "u1", "i8", "u8", "f8", "f4"]
    if n_classes == 2:
        types.append("?")
    columns = {"y_true": np.array(label).astype(str(rng.choice(types))), "y_prob": p}
    columns |= {"w": np.array(weight), "by": np.array(by)}
    if rng.random() < 0.3:
        columns["by"] = rng.integers(0, 3, len(label))
    pairs = zip(
        label,
        p.astype(float).reshape(len(p), -1).tolist(),
        weight,
        columns["by"].tolist(),
        strict=True,
    )
    good = [(float(y), p, v, g) for y, p, v, g in pairs]
    bad = {}
    for k in places_of_faults(rng, len(label)):
        name = str(rng.choice(["y_true", "y_prob", "w"]))
        value = {
            "y_true": 9,
            "y_prob": rng.choice([np.nan, 1.5, np.inf]),
            "w": rng.choice([np.nan, -1]),
        }[name]
        if columns[name].dtype.kind != "b":
            columns[name] = columns[name].copy()
            columns[name][k] = value
            bad[k] = name
    extra_columns = [name for name in ("w", "by") if rng.random() < 0.6]
    bad = {k: x for k, x in bad.items() if x != "w" or "w" in extra_columns}
    return columns, good, bad, options_of(extra_columns)


def file_in_one_piece(rng, name, file, good, bad, options):
    """A file whose rows cannot be left out one by one; one in ten is compressed."""
    return OddFile(
        name, file.getvalue(), [], good, bad,
        options=options, is_packed=rng.random() < 0.1, is_whole=True,
    )  # fmt: skip


def archive(rng):
    """Draw an archive of NumPy, some of whose arrays have other lengths."""
    columns, good, bad, options = arrays_of(rng)
    if rng.random() < 0.3:
        name = str(rng.choice(["y_true", "y_prob", "w"]))
        columns[name] = (
            columns[name][: len(good) // 2]
            if rng.random() < 0.5
            else np.concatenate([columns[name]] * 2)
        )
        bad = {0: "length"} if name != "w" or "weights" in options else bad
    file = io.BytesIO()
    np.savez(file, **columns)
    return file_in_one_piece(rng, "a.npz", file, good, bad, options)


def matrix(rng):
    """Draw a matrix or an array with named fields."""
    columns, good, bad, options = arrays_of(rng)
    p = columns["y_prob"]
    file = io.BytesIO()
    if rng.random() < 0.5:
        bad = {k: x for k, x in bad.items() if x != "w"}
        options = {}
        array = np.column_stack([columns["y_true"], p]).astype(str(rng.choice(["f4", "f8"])))
        good = [
            (y, row[1:].tolist(), v, g)
            for (y, _, v, g), row in zip(good, array.astype(float), strict=True)
        ]
        array = np.asarray(array, order=str(rng.choice(["C", "F"])))
    else:
        flat = {f"p_{k}": x for k, x in enumerate(p.T)} if p.ndim > 1 else {"y_prob": p}
        flat = {"y_true": columns["y_true"], **flat, "w": columns["w"], "by": columns["by"]}
        array = np.array(
            [*zip(*flat.values(), strict=True)], [(k, x.dtype) for k, x in flat.items()]
        )
    np.save(file, array)
    return file_in_one_piece(rng, "a.npy", file, good, bad, options)


def parquet(rng):
    """Draw a Parquet file of several row groups."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    columns, good, bad, options = arrays_of(rng)
    arrays = {k: pa.array(x if x.ndim == 1 else x.tolist()) for k, x in columns.items()}
    if rng.random() < 0.3:
        arrays["by"] = arrays["by"].dictionary_encode()
    k = int(rng.integers(len(good)))
    if rng.random() < 0.3:
        name = str(rng.choice(["y_true", "y_prob"]))
        cells = arrays[name].to_pylist()
        cells[k] = None
        arrays[name] = pa.array(cells, arrays[name].type)
        bad[k] = name
    elif columns["y_prob"].ndim > 1 and k and rng.random() < 0.3:
        cells = arrays["y_prob"].to_pylist()
        cells[k] = cells[k][:-1]
        arrays["y_prob"] = pa.array(cells)
        bad[k] = "y_prob"
    names = [*arrays, "twice", "twice"]
    other = pa.array(["x"] * len(good))
    file = io.BytesIO()
    table = pa.Table.from_arrays([*arrays.values(), other, other], names)
    pq.write_table(table, file, row_group_size=int(rng.choice([1, 2, 7, 1000])))
    return file_in_one_piece(rng, "a.parquet", file, good, bad, options)
