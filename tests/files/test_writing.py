"""A file that was read is written with other probabilities: they are read again bit for bit, and
all else is what it was."""

import csv
import gzip
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastece.files import check_rewrite, read_predictions, whole_file, write_predictions
from fastece.files.text import split_row
from helpers.prediction_files import FORMATS, GROUP, TRUE, WEIGHT, as_npz, encoded

# Numbers with all their bits.
NEW = np.random.default_rng(0).dirichlet([1, 1, 1], 4)
TENTHS = np.array([0.1, 0.2, 1 / 3, 5e-324])


@pytest.fixture
def rewrite(tmp_path):
    """Write a file with this content, and it again with other numbers; its path, and bytes."""

    def rewrite_file(content, new, name="a.csv", out="new", **columns):
        path = tmp_path / name
        path.write_bytes(encoded(content))
        predictions = read_predictions(path, keep_table=True, **columns)
        check_rewrite("--out", tmp_path / out, predictions)
        write_predictions(tmp_path / out, predictions, np.asarray(new))
        assert path.read_bytes() == encoded(content)
        return tmp_path / out

    return rewrite_file


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written_as_it_is_read(rewrite, name):
    path = rewrite(FORMATS[name], NEW, name)
    read = read_predictions(path, weights="w", columns=["group", "w"])
    assert np.asarray(read.y_prob).tolist() == NEW.tolist()
    assert read.y_true.tolist() == TRUE
    assert read.weights.tolist() == read.others["w"].tolist() == WEIGHT
    assert read.others["group"].tolist() == GROUP
    assert not [*path.parent.glob("*.part")]


@pytest.mark.parametrize("name", ["tabs.tsv", "rows.jsonl", "fields.npy", "arrays.npz"])
def test_a_name_that_ends_in_gz_is_packed(rewrite, name):
    path = rewrite(FORMATS[name], NEW, name, f"new.{name}.gz")
    assert path.read_bytes().startswith(b"\x1f\x8b")
    assert np.asarray(read_predictions(path).y_prob).tolist() == NEW.tolist()


def test_text_keeps_every_other_character(rewrite):
    text = (
        '\ufeff\n note ;"y_true"; y_prob;\r\n\r\n"a;""b""\nc";0; 0.5;\r\n\n007;1;"0.25";"x"\r\n\r\n'
    )
    path = rewrite(text, TENTHS[1:3])
    assert path.read_bytes().decode() == (
        '\ufeff\n note ;"y_true"; y_prob;\r\n\r\n"a;""b""\nc";0;0.2;\r\n\n'
        '007;1;0.3333333333333333;"x"\r\n\r\n'
    )
    path = rewrite("p_1\tx\ty_true\tp_0\n1\té\t0\t0", [[0.25, 0.75]])
    assert path.read_bytes().decode() == "p_1\tx\ty_true\tp_0\n0.75\té\t0\t0.25"


@given(st.lists(st.text('a,;" \n', max_size=4), min_size=1), st.sampled_from(",;"))
def test_a_row_is_split_as_csv_does(cells, delimiter):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerow(cells)
    row = file.getvalue().removesuffix("\r\n")
    found = split_row(row, delimiter)
    assert delimiter.join(found) == row
    unquoted = [cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell for cell in found]
    assert unquoted == cells


def test_confidences_are_written_beside_both_labels(rewrite):
    text = "id,confidence,true_label,pred_label\na,0.5,cat,dog\nb,0.75,cat,cat\n"
    path = rewrite(text, TENTHS[2:])
    assert path.read_text() == (
        "id,confidence,true_label,pred_label\n"
        "a,0.3333333333333333,cat,dog\nb,5e-324,cat,cat\n"
    )  # fmt: skip


def test_objects_keep_their_other_keys(rewrite):
    rows = [
        {"x": [1.5, {"é": "\ud800"}], "y_true": "dog", "y_prob": {"cat": 0.25, "dog": 0.75}},
        {"y_prob": {"dog": "0.5", "cat": 0.5}, "big": 10**30, "y_true": "cat"},
    ]
    text = "\n\n".join(map(json.dumps, rows))
    new = [[0.1, 0.9], [0.2, 0.8]]
    path = rewrite(text, new)
    rows[0]["y_prob"] = {"cat": 0.1, "dog": 0.9}
    rows[1]["y_prob"] = {"dog": 0.8, "cat": 0.2}
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [*map(json.loads, lines)] == rows
    assert [list(json.loads(line)) for line in lines] == [list(row) for row in rows]
    assert list(json.loads(lines[1])["y_prob"]) == ["dog", "cat"]
    assert "é" in lines[0]


def test_numbers_inside_objects_are_found_by_their_paths(rewrite):
    rows = [{"out": [{"y": y, "s": {"p": p, "q": 3}}], "k": None} for y, p in ((1, 0.5), (0, 0.25))]
    path = rewrite(
        "\n".join(map(json.dumps, rows)), TENTHS[:2], y_true="out.0.y", y_prob="out.0.s.p"
    )
    for row, p in zip(rows, TENTHS, strict=False):
        row["out"][0]["s"]["p"] = p
    assert [*map(json.loads, path.read_text().splitlines())] == rows
    lists = [{"y": 1, "p": [0.5, 0.25, 7]}, {"y": 0, "p": [0, 1, 8]}]
    path = rewrite("\n".join(map(json.dumps, lists)), NEW[:2, :2], y_true="y", y_prob="p.1,p.0")
    found = [json.loads(line)["p"] for line in path.read_text().splitlines()]
    assert found == [[NEW[0, 1], NEW[0, 0], 7], [NEW[1, 1], NEW[1, 0], 8]]


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<f2", "U5"])
def test_arrays_keep_their_types(rewrite, kind):
    stays = kind in ("<f4", ">f8")
    more = {"file": np.arange(3), "y_true": np.uint8(TRUE)}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in {**more, "y_prob": np.zeros((4, 3)).astype(kind)}.items():
            with archive.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, array)
    path = rewrite(content.getvalue(), NEW, "a.npz", "b.npz")
    with np.load(path) as found:
        assert [*found] == ["file", "y_true", "y_prob"]
        assert (found["y_true"].dtype, found["y_true"].tolist()) == (np.uint8, TRUE)
        assert found["y_prob"].dtype == (kind if stays else "f8")
        assert found["y_prob"].tolist() == NEW.astype(kind if stays else "f8").tolist()
        compression = {info.compress_type for info in found.zip.infolist()}
    assert compression == {zipfile.ZIP_DEFLATED}
    # Named fields: one of them of three numbers.
    table = np.zeros(4, [("id", "U3"), ("y_true", "i2"), ("y_prob", kind, (3,))])
    table["id"], table["y_true"], table["y_prob"] = "abc", TRUE, np.array(0.5).astype(kind)
    file = io.BytesIO()
    np.save(file, table)
    found = np.load(rewrite(file.getvalue(), NEW, "a.npy", "b.npy"))
    assert found["id"].tolist() == ["abc"] * 4
    assert (found["y_true"].dtype, found["y_true"].tolist()) == (np.int16, TRUE)
    assert found["y_prob"].tolist() == NEW.astype(kind if stays else "f8").tolist()


def test_arrays_of_single_columns(rewrite):
    content = as_npz(y_prob=TENTHS.astype("f4"))
    with np.load(rewrite(content, TENTHS, out="b.npz")) as found:
        assert found["y_prob"].dtype == np.float32
        assert found["y_prob"].tolist() == np.float32(TENTHS).tolist()
    file = io.BytesIO()
    np.save(file, np.array([[0, 1], [1, 0], [1, 1], [0, 0]]))
    found = np.load(rewrite(file.getvalue(), TENTHS, out="b.npy"))
    assert found.tolist() == np.column_stack([[0, 1, 1, 0], TENTHS]).tolist()


def test_parquet_keeps_its_columns_and_types(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    single = NEW.astype("f4").tolist()
    cells = [dict(zip("abc", row, strict=True)) for row in single]
    kinds = {
        "float": (pyarrow.float32(), TENTHS.tolist(), np.float32(TENTHS).tolist()),
        "text": (pyarrow.string(), ["0.5"] * 4, TENTHS.tolist()),
        "list": (pyarrow.list_(pyarrow.float32()), [[0.5, 0.25, 0.25]] * 4, single),
        "fixed": (pyarrow.list_(pyarrow.float64(), 3), [[0.5, 0.25, 0.25]] * 4, NEW.tolist()),
        "whole": (pyarrow.list_(pyarrow.int8()), [[1, 0, 0]] * 4, NEW.tolist()),
        "object": (
            pyarrow.struct([(name, pyarrow.float32()) for name in "abc"]),
            [{"a": 0.5, "b": 0.5, "c": 0.0}] * 4, cells,
        ),
    }  # fmt: skip
    schema = pyarrow.schema(
        [("y_true", pyarrow.int16()), *((name, kind) for name, (kind, *_) in kinds.items())]
    ).with_metadata({"who": "me"})
    columns = {"y_true": [0, 1, 1, 0], **{name: old for name, (_, old, _) in kinds.items()}}
    old = pyarrow.table(columns, schema)
    parquet.write_table(old, tmp_path / "a.parquet")
    for name, (kind, _, wanted) in kinds.items():
        read = read_predictions(tmp_path / "a.parquet", y_prob=name, keep_table=True)
        values = TENTHS if np.ndim(read.y_prob) == 1 else NEW
        write_predictions(tmp_path / "b.parquet", read, values)
        new = parquet.read_table(tmp_path / "b.parquet")
        assert new.column_names == old.column_names
        assert new.schema.metadata[b"who"] == b"me"
        assert new.column(name).to_pylist() == wanted
        if name not in ("text", "whole"):
            assert new.schema.field(name).type == kind
        assert new.drop_columns(name) == old.drop_columns(name)


def test_a_file_is_there_when_it_is_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("before")
    (tmp_path / "link").symlink_to(path)

    def stop_halfway():
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_halfway()
    assert path.read_text() == "before"
    with whole_file(tmp_path / "link") as file:
        file.write(b"after")
    assert path.read_text() == "after"
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "link"]


LOG = '{"target": 0, "filtered_resps": [["-1.5", "False"], ["-2", "False"]]}\n'


@pytest.mark.parametrize(
    ("content", "out", "message"),
    [
        (LOG, "b.jsonl", "--out: a.csv is a log of lm-evaluation-harness, which has"),
        ("y_true,y_prob\n0,0.5\n", "b.npz", r"b.npz must end as a.csv could, .* .csv or .tsv or"),
        ("y_true,y_prob\n0,0.5\n", "b.JSON.gz", "b.JSON.gz must end as"),
        ('{"y_true": 0, "y_prob": 1}', "b.csv", "format .jsonl or .ndjson or .json, and so is"),
        (as_npz(), "b.npy", "format .npz, and so is what is written"),
    ],
)
def test_what_cannot_be_written(tmp_path, monkeypatch, content, out, message):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(encoded(content))
    read = read_predictions("a.csv", keep_table=True)
    with pytest.raises(ValueError, match=message):
        check_rewrite("--out", Path(out), read)
    assert os.listdir() == ["a.csv"]


def test_standard_input_can_be_written_again(tmp_path, monkeypatch):
    content = gzip.compress(b"y_true,y_prob\n0,0.5\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    read = read_predictions("-", keep_table=True)
    write_predictions(tmp_path / "new.csv", read, np.array([0.1]))
    assert (tmp_path / "new.csv").read_text() == "y_true,y_prob\n0,0.1\n"
