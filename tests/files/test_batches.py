"""Files in batches hold the rows that they hold when read whole, and faults name the same rows."""

import numpy as np
import pytest

from fastece.files import expand_paths, iter_batches, read_predictions
from helpers.prediction_files import (
    GROUP,
    PROB,
    TRUE,
    as_json,
    as_npy,
    encoded,
    packed,
)


@pytest.fixture(params=[1, 2, 3, 2**19], ids=lambda rows: f"{rows} rows")
def size(request, monkeypatch):
    """Batches of a few rows, or lines, and of all."""
    monkeypatch.setattr("fastece.files.tables.MAX_ROWS", request.param)
    monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", 60 + request.param)
    return request.param


def joined(found, name):
    return np.concatenate([np.asarray(getattr(batch, name)) for batch in found])


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.usefixtures("size")
def test_a_matrix_is_mapped(batches, write, kind, order):
    array = np.column_stack([TRUE, PROB]).astype(kind, order=order)
    predictions = batches(write(as_npy(array), "a.npy"))
    assert predictions[0].y_prob.dtype == kind


@pytest.mark.usefixtures("tiny")
def test_pairs_are_the_same_in_batches(batches, write):
    path = write("true_label,pred_label,confidence\n" + "a,a,0.5\nb,a,0.25\nc,c,1\n" * 60)
    predictions = batches(path, classes=3)
    assert len(predictions) > 1
    assert predictions[0].classes == 3


def test_parquet_is_read_by_its_row_groups(batches, write, size):
    columns = {"y_true": np.array(TRUE, np.int8), "other": GROUP, "y_prob": PROB}
    predictions = batches(write(columns, row_group_size=3))
    assert len(predictions) >= 4 // size
    assert {batch.y_true.dtype for batch in predictions} == {np.dtype(np.uint8)}


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_columns_of_parquet_keep_their_type(batches, write, kind):
    columns = {"y_true": [True, False, True], "y_prob": np.array([0.5, 0.25, 1.0], kind)}
    (batch,) = batches(write(columns))
    assert (batch.y_true.dtype, batch.y_prob.dtype) == (bool, kind)


def test_negative_labels_stay_negative(write):
    columns = {"y_true": np.array([0, -1], np.int8), "y_prob": [0.5, 0.5]}
    (batch,) = iter_batches(write(columns))
    assert batch.y_true.tolist() == [0, -1]


def test_empty_row_groups_are_no_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    schema = pa.schema([("y_true", pa.int64()), ("y_prob", pa.float64())])
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for rows in ([], [0, 1], [], [1]):
            columns = {"y_true": rows, "y_prob": [0.5] * len(rows)}
            writer.write_table(pa.table(columns, schema))
    assert joined(iter_batches(tmp_path / "a.parquet"), "y_true").tolist() == [0, 1, 1]


QUOTED = 'name,y_true,y_prob\n"a\nb\n\nc",1,0.5\nplain,0,"0.25"\n\n"x ""y""\r\nz",1,1\nlast,0,0\n'


def test_cells_with_line_breaks_are_never_cut(batches, write, monkeypatch):
    path = write(QUOTED)
    for characters in range(40, 80):
        monkeypatch.setattr("fastece.files.tables.BLOCK_SIZE", characters)
        names = [batch.row(i) for batch in batches(path) for i in range(len(batch.y_true))]
        assert names == ["line 5", "line 6", "line 9", "line 10"], characters


BAD = {
    "a cell that is no number": ("1,0.5\n0,x\n", "line 7, column y_prob: must be a number"),
    "a cut line": ("1,0.5\n0", "line 7: must have 2 cells"),
    "a quote that nothing closes": (
        '1,0.5\n"0,0.1\n1,0.1\n',
        "line [78]: (unexpected end of data|must have 2)",
    ),
    "no text": (b"1,0.5\n0,\xff\n", "line 7: is no text in UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("tiny")
def test_a_bad_row_is_named_by_its_line(write, name):
    rows, message = BAD[name]
    path = write(b"y_true,y_prob\n" + b"0,0.25\n" * 4 + encoded(rows))
    for read in (read_predictions, lambda path: list(iter_batches(path))):
        with pytest.raises(ValueError, match=f"a.csv: .*{message}"):
            read(path)


@pytest.mark.usefixtures("tiny")
def test_a_bad_line_of_json_is_named(write):
    rows = as_json([{"y_true": 1, "y_prob": 0.5}] * 5) + '{"y_true": 1\n'
    with pytest.raises(ValueError, match=r"a\.jsonl: line 6: must hold a JSON object"):
        list(iter_batches(write(rows, "a.jsonl")))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["y_true", "y_prob"])
def test_a_key_that_later_objects_lack_is_named(write, name):
    all_rows = {"y_true": 1, "y_prob": 0.5}
    rows = as_json([all_rows] * 5 + [{key: x for key, x in all_rows.items() if key != name}])
    with pytest.raises(ValueError, match=f"line 6, column {name}: must not be missing, got None"):
        list(iter_batches(write(rows, "a.jsonl")))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,0.5"] * 3, "line 2, column y_true: must be the number of a class, .*'a'"),
        (["1,0.5"] * 2 + ["a,0.5"], "line 4, column y_true: must be the number of a class"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_labels_are_numbers_of_classes(write, rows, message):
    with pytest.raises(ValueError, match=message):
        list(iter_batches(write("\n".join(["y_true,y_prob", *rows]))))


@pytest.mark.usefixtures("tiny")
def test_labels_of_pairs_may_be_numbers_and_strings(write):
    head = "true_label,pred_label,confidence\n"
    path = write(head + "a,a,0.5\n1,1,0.5\n1,2,0.5\n" * 60)
    assert joined(iter_batches(path), "y_true").tolist() == [True, True, False] * 60
    path = write(head + "1,1.0,0.5\n" * 90 + "a,a,0.5\n")
    # As there is a string.
    assert read_predictions(path).y_true.tolist() == [False] * 90 + [True]
    with pytest.raises(ValueError, match="line 2, column pred_label: must be written as true_la"):
        list(iter_batches(path))


@pytest.mark.usefixtures("tiny")
def test_all_batches_have_the_same_number_of_probabilities(write):
    rows = as_json([{"y_true": 0, "y_prob": [0.5, 0.5]}, {"y_true": 0, "y_prob": [1, 0, 0]}])
    with pytest.raises(ValueError, match="line 2, column y_prob: must be 2 numbers, as in"):
        list(iter_batches(write(rows, "a.jsonl")))


@pytest.mark.parametrize("names", ["1,0", "p_1,p_0", "p_1,p_2"])
def test_columns_with_numbers_are_in_their_order(write, names):
    path = write(f"y,{names}\n1,0.5,0.5\n")
    with pytest.raises(ValueError, match="must be numbered from 0 on, in their order"):
        list(iter_batches(path, y_true="y", y_prob=names))
    (batch,) = iter_batches(path, y_true="y", y_prob=names, labels=["1", "2"])
    assert batch.y_prob.tolist() == [[0.5, 0.5]]


def test_logs_are_read_whole(write):
    row = {"target": 0, "filtered_resps": [["-1.0", "False"], ["-2.0", "False"]]}
    with pytest.raises(ValueError, match="a log of an evaluation, which is no stream"):
        list(iter_batches(write(as_json([row]), "a.jsonl")))


@pytest.mark.parametrize(
    "content", ["", "y_true,y_prob\n", as_npy(np.empty((0, 2)))], ids=["nothing", "header", "array"]
)
def test_a_file_without_rows_is_empty(write, content):
    with pytest.raises(ValueError, match="is empty"):
        list(iter_batches(write(content)))


def readable(path, **options):
    """Rows that come before the error, and its message."""
    rows = []
    with pytest.raises(ValueError, match=path.name) as caught:  # noqa: PT012
        for batch in iter_batches(path, **options):
            rows += batch.y_true.tolist()
    return rows, str(caught.value)


@pytest.mark.usefixtures("tiny")
def test_packed_text_that_is_cut_off_is_refused(write):
    rng = np.random.default_rng(0)
    content = "y_true,y_prob\n" + "".join(f"1,{x!r}\n" for x in rng.random(2000).tolist())
    rows, message = readable(write(packed(content.encode())[:-8000], "a.csv.gz"))
    assert len(rows) < 2000
    assert "ended before" in message


def test_packed_text_with_other_bytes_in_it_is_refused(write):
    content = bytearray(packed(("y_true,y_prob\n" + "1,0.5\n" * 5000).encode()))
    content[len(content) // 2] ^= 255
    _, message = readable(write(bytes(content), "a.csv.gz"))
    assert message


def test_parquet_without_its_end_is_refused(write):
    path = write({"y_true": TRUE, "y_prob": PROB})
    path.write_bytes(path.read_bytes()[:-30])
    rows, message = readable(path)
    assert not rows
    assert "cannot be read" in message


def test_parquet_with_a_broken_page_is_read_up_to_there(write, monkeypatch):
    monkeypatch.setattr("fastece.files.tables.MAX_ROWS", 100)
    score = np.random.default_rng(0).integers(0, 50, 1000) / 50
    columns = {"y_true": (score > 0.5).astype(np.int8), "y_prob": score}
    path = write(columns, row_group_size=500)
    pq = pytest.importorskip("pyarrow.parquet")
    start = pq.ParquetFile(path).metadata.row_group(1).column(1).dictionary_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(content)
    rows, message = readable(path)
    assert len(rows) == 500
    assert "cannot be read" in message


@pytest.mark.usefixtures("tiny")
def test_a_missing_value_of_parquet_is_named_by_its_row(write):
    columns = {"y_true": [0, 1, 1, 0], "y_prob": [0.5, 0.5, None, 0.5]}
    _, message = readable(write(columns))
    assert message.endswith("row 3, column y_prob: must not be missing, got None")


def test_folders_and_patterns_are_files(tmp_path):
    hidden = ("_meta.json", ".copies/e.csv", "in/_temporary/f.csv")
    for name in ("b.csv", "a.parquet", "c.csv.gz", "c.csv.zst", "notes.md", "in/d.npy", *hidden):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"")
    names = [name.removeprefix(f"{tmp_path}/") for name in expand_paths([str(tmp_path)])]
    assert names == ["a.parquet", "b.csv", "c.csv.gz", "c.csv.zst", "in/d.npy"]
    assert expand_paths([f"{tmp_path}/*.csv", "other", "-"]) == [f"{tmp_path}/b.csv", "other", "-"]
    deep = f"{tmp_path}/**/*.npy"
    assert expand_paths([deep]) == [f"{tmp_path}/in/d.npy"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["{}/*.csv"], "no file has such a name"),
        (["{}"], "no file in this folder ends in .csv"),
        (["{}/x.md", "{}/./x.md"], "x.md: is named twice"),
        (["{}/x.md", "{}/hard link"], "hard link: is named twice"),
    ],
)
def test_paths_that_name_no_file_or_one_twice_are_refused(tmp_path, paths, message):
    (tmp_path / "x.md").write_text("")
    (tmp_path / "hard link").hardlink_to(tmp_path / "x.md")
    with pytest.raises(ValueError, match=message):
        expand_paths([path.format(tmp_path) for path in paths])
