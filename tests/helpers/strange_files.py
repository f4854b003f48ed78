"""Files of any kind, drawn at random: of other programs, damaged, or with odd content."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import zipfile

import numpy as np

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
WORDS = ["a", "b", "0", "1", "", "nan", "no", "1:no", "2:yes", "50%", "0,5", "1e999", "-3", "None"]
# Cells that a table of numbers has by mistake.
ODD_CELLS = [
    "", " ", "NA", "#DIV/0!", "#N/A", "1e308", "-1e308", "9" * 400, "0." + "3" * 300, "1,5",
    "1_000", "½", "\u0660\u066b\u0665", "0x1p-3", "\uff11", "\u00a00.5", "0.5\u200b",
    "\u22120.5", "+0.5", ".5", "5.", "0.5.5", "\x00", "\x1b[2J", '"', '"0.5', "'0.5'", "=1+1",
    "TRUE", "yes", "2026-01-01", "1e-400", "-0", "inf", "\ud800", "x" * 70_000, "0,5", "{}",
    "[0.5]",
]  # fmt: skip
# Kinds of cells, as `cells` numbers them, that suit a name.
KIND_OF_NAME = {
    "y_true": 0, "label": 4, "true_label": 4, "pred_label": 4, "obs": 4, "y_prob": 1, "p": 1,
    "confidence": 1, "p_0": 1, "p_1": 1,
}  # fmt: skip
VALUES = [
    None, True, 0, 1, 7, -1, 0.5, 1.5, 91, "91%", "a", "b", "", "0.3", [], {}, [1], [0.5, 0.5],
    {"a": 0.5, "b": 0.5}, {"0": 1}, float("nan"), 10**30, [[0]], {"a": {"b": [1, 2]}}, "\ud800",
]  # fmt: skip


def draw_strange_file(rng):
    """Draw a name and its bytes."""
    kinds = [
        start_and_noise, table, table, json_value, json_value, json_lines, zip_archive, arrays,
        pickled, arrow_table, inspect_log, harness_log, plausible, plausible, plausible,
        marred_table, marred_table,
    ]  # fmt: skip
    content = kinds[rng.integers(len(kinds))](rng)
    fate = 2 * rng.random()
    if fate < 0.08 and content:
        content = content[: int(rng.integers(len(content)))]
    elif fate < 0.16 and content:
        damaged = bytearray(content)
        for _ in range(int(rng.integers(1, 5))):
            damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
        content = bytes(damaged)
    elif fate < 0.3:
        content = rng.choice([gzip.compress, bz2.compress, lzma.compress])(content)
    endings = ["csv", "txt", "json", "jsonl", "npz", "parquet", "xlsx", "gz", "feather", "eval"]
    return f"strange.{rng.choice(endings)}", content


def plausible(rng):
    """Predictions that are nearly right, in some format."""
    prob = rng.random(30).round(int(rng.integers(1, 9)))
    columns = {"y_true": (rng.random(30) < prob).astype(int).tolist(), "y_prob": prob.tolist()}
    if rng.random() < 0.5:
        name = str(rng.choice(list(columns)))
        columns[name][int(rng.integers(30))] = value(rng)
    if rng.random() < 0.2:
        columns["y_prob"] = cells(rng, 30)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kind = rng.integers(5)
    if kind == 0:
        return json.dumps(columns).encode()
    if kind == 1:
        return json.dumps(rows).encode()
    if kind == 2:
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    text = "".join(f"{','.join(map(str, row.values()))}\n" for row in rows)
    text = ("y_true,y_prob\n" + text).encode("utf-8", "replace")
    if kind == 3:
        return text
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", text)
    return file.getvalue()


def marred_table(rng):
    """A good table with marks of other programs, people and languages."""
    n_rows = 30
    prob = rng.random(n_rows).round(4)
    label = (rng.random(n_rows) < prob).astype(int)
    columns = {"y_true": label.astype(str).tolist(), "y_prob": prob.astype(str).tolist()}
    extra_names = ["", "y_prob", "Y_PROB", " y_prob ", "\u202ey_prob", "\x1b[31m", "名前", "a,b"]
    for name in rng.choice(extra_names, int(rng.integers(3))):
        columns[f"{name}"] = [str(rng.choice(ODD_CELLS))] * n_rows
    for _ in range(int(rng.integers(4))):
        column = str(rng.choice(list(columns)))
        columns[column][int(rng.integers(n_rows))] = str(rng.choice(ODD_CELLS))
    names_of_columns = list(columns)
    if rng.random() < 0.3:
        names_of_columns.append(str(rng.choice(names_of_columns)))
    delimiter = str(rng.choice([",", ",", ";", "\t", "|"]))
    rows = [names_of_columns]
    rows += [[columns[name][k] for name in names_of_columns] for k in range(n_rows)]
    if rng.random() < 0.2:
        del rows[int(rng.integers(n_rows))][-1]
    if rng.random() < 0.2:
        rows[int(rng.integers(1, n_rows))] = []
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    text = "".join(delimiter.join(row) + end for row in rows)
    start = rng.choice(["", "", "", "\ufeff", "# a comment\n", "sep=;\n", "\n\n"])
    return (start + text).encode("utf-8", "surrogatepass")


def start_and_noise(rng):
    start = STARTS[rng.integers(len(STARTS))]
    return start + rng.bytes(int(rng.choice([0, 1, 30, 3000])))


def names(rng):
    sets = [
        ["y_true", "y_prob"], ["y_true", "y_prob"], ["y_true", "p_0", "p_1"], ["label", "p"],
        ["label", "p_a", "p_b"],
        ["true_label", "pred_label", "confidence"], ["pred", "obs", "a", "b"], ["x"], ["", ""],
        ["0", "0.7"], ["actual", "predicted", "prediction"], ["y_true", "y_true"], ["a b", "ü"],
    ]  # fmt: skip
    return list(sets[rng.integers(len(sets))])


def cells(rng, n_rows, name=""):
    """A column of cells: numbers of a range, words, or a mixture, often as its name suggests."""
    kind = rng.integers(9)
    if name in KIND_OF_NAME and rng.random() < 0.6:
        kind = KIND_OF_NAME[name]
    if kind == 0:
        return rng.integers(0, 2, n_rows).tolist()
    if kind == 1:
        return rng.random(n_rows).round(3).tolist()
    if kind == 2:
        return (100 * rng.random(n_rows)).round(1).tolist()
    if kind == 3:
        return rng.normal(0, 3, n_rows).round(2).tolist()
    if kind == 4:
        return rng.choice(["a", "b"], n_rows).tolist()
    if kind == 5:
        return [f"{x:.2f}".replace(".", ",") for x in rng.random(n_rows)]
    if kind == 6:
        return [f"{100 * x:.0f}%" for x in rng.random(n_rows)]
    if kind == 7:
        return rng.integers(1, 6, n_rows).tolist()
    return rng.choice(WORDS, n_rows).tolist()


def table(rng):
    n_rows = int(rng.choice([0, 1, 2, 12, 40]))
    columns = names(rng)
    delimiter = str(rng.choice([",", ",", ",", ";", "\t", "|", " "]))
    rows = [columns, *zip(*(cells(rng, n_rows, name) for name in columns), strict=True)]
    if rng.random() < 0.1:
        rows = rows[1:]
    text = "".join(delimiter.join(map(str, row)) + "\n" for row in rows)
    if rng.random() < 0.1:
        text = text.replace("\n", '"\n', 2)
    encoding = str(rng.choice(["utf-8"] * 6 + ["utf-16", "latin-1", "utf-32"]))
    return text.encode(encoding, "replace")


def value(rng):
    return VALUES[rng.integers(len(VALUES))]


def record(rng):
    return {name: value(rng) for name in names(rng)}


def records(rng):
    columns = names(rng)
    made = [cells(rng, 12, name) for name in columns]
    return [dict(zip(columns, row, strict=True)) for row in zip(*made, strict=True)]


def json_value(rng):
    kind = rng.integers(7)
    if kind == 0:
        document = value(rng)
    elif kind == 1:
        document = records(rng)
    elif kind == 2:
        document = [record(rng) for _ in range(int(rng.integers(4)))]
    elif kind == 3:
        document = {
            name: cells(rng, int(rng.choice([0, 3, 12, 12, 12])), name) for name in names(rng)
        }
    elif kind == 4:
        document = {"results": {name: dict(enumerate(cells(rng, 9, name))) for name in names(rng)}}
    elif kind == 5:
        document = {"columns": names(rng), "data": [cells(rng, 3) for _ in range(3)]}
    else:
        document = {name: [value(rng) for _ in range(3)] for name in names(rng)}
    return json.dumps(document, indent=rng.choice([None, 1])).encode()


def json_lines(rng):
    rows = records(rng) if rng.random() < 0.6 else [record(rng) for _ in range(5)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def zip_archive(rng):
    file = io.BytesIO()
    members = [
        "[Content_Types].xml", "xl/worksheets/sheet1.xml", "archive/data.pkl", "content.xml",
        "a.csv", "b.jsonl", "y_true.npy", "y_prob.npy", "folder/", "readme", "a.csv.gz",
        "samples/a_epoch_1.json", "__MACOSX/a.csv",
    ]  # fmt: skip
    with zipfile.ZipFile(file, "w", int(rng.choice([0, 8]))) as archive:
        for member in rng.choice(members, int(rng.integers(4)), replace=False):
            archive.writestr(
                str(member), start_and_noise(rng) if rng.random() < 0.3 else table(rng)
            )
    return file.getvalue()


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


def pickled(rng):
    return pickle.dumps(records(rng), protocol=int(rng.integers(6)))


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


def inspect_log(rng):
    def score():
        parts = {"value": value(rng), "metadata": {"confidence": value(rng)}}
        return parts if rng.random() < 0.8 else value(rng)

    samples = [
        {"id": value(rng), "epoch": 1, "scores": {"s": score()}, "choices": value(rng)}
        for _ in range(int(rng.integers(1, 6)))
    ]
    if rng.random() < 0.5:
        for sample in samples:
            outcome = rng.choice(["C", "I"])
            confidence = int(rng.integers(0, 100))
            sample["scores"] = {"s": {"value": outcome, "metadata": {"confidence": confidence}}}
    return json.dumps({"samples": samples}).encode()


def harness_log(rng):
    def line():
        responses = [[float(x), False] for x in rng.normal(-3, 1, int(rng.integers(1, 5)))]
        row = {"doc": value(rng), "target": value(rng), "filtered_resps": responses}
        if rng.random() < 0.5:
            row |= {"acc": value(rng), "arguments": value(rng)}
        if rng.random() < 0.2:
            row["resps"] = value(rng)
        return row

    return "".join(json.dumps(line()) + "\n" for _ in range(4)).encode()
