"""Logs of inspect; `inspect.eval` is made by hand in their shape."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fastece.cli import main
from fastece.files import iter_batches, read_predictions

LOG = Path(__file__).parents[1] / "fixtures" / "inspect.eval"


def unchanged(row):
    return row


@pytest.fixture
def log(tmp_path):
    """Write a log of inspect after a change of an attempt, as an object or as bytes."""

    def write(change=unchanged, name="", compression=zipfile.ZIP_DEFLATED):
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(LOG) as old, zipfile.ZipFile(path, "w", compression) as new:
            for file in old.namelist():
                content = old.read(file)
                if file.startswith(f"samples/{name}"):
                    changed = change(json.loads(content))
                    content = changed if isinstance(changed, bytes) else json.dumps(changed)
                new.writestr(file, content)
        return path

    return write


def set_score(value):
    """Change the result of an attempt of inspect."""
    return lambda row: row | {"scores": {"judge": {"value": value}}}


def test_a_log_of_inspect():
    read = read_predictions(LOG, columns={"by": "metadata.subject"})
    assert read.y_true.tolist() == [True, False, False, True, True]
    np.testing.assert_allclose(read.y_prob, [0.95, 0.8, 1, 0.9, 0.6], rtol=1e-15)
    groups = ["rivers-1", "birds-1", "birds-2", "rivers-1", "birds-1"]
    assert read.others["groups"].tolist() == groups
    assert read.others["by"].tolist() == [name.partition("-")[0] for name in groups]
    assert read.pairs
    assert read.note == (
        "log of inspect, judge, confidences in percent; attempts at one question are a group; "
        "1 of 6 attempts without a result are left out"
    )


@pytest.fixture
def as_json(tmp_path):
    """Write the log as JSON, with some entries before its attempts."""

    def write(*entries, indent=None):
        with zipfile.ZipFile(LOG) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [*entries, *(json.loads(archive.read(name)) for name in names)]
        path = tmp_path / "log.json"
        document = {"version": 2, "samples": samples}
        path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("indent", [None, 2])
def test_a_log_of_inspect_as_json(as_json, indent):
    ours = read_predictions(as_json(indent=indent))
    theirs = read_predictions(LOG)
    assert ours.y_prob.tolist() == theirs.y_prob.tolist()
    assert ours.note == theirs.note


@pytest.mark.parametrize("indent", [None, 1])
def test_a_log_that_is_cut_off_is_refused_with_a_line(as_json, indent):
    path = as_json(indent=indent)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match=r"log\.json: line 1: must hold a JSON object: "):
        read_predictions(path)


def test_entries_that_are_no_objects_are_attempts_without_a_result(as_json):
    assert "2 of 7 attempts without a result" in read_predictions(as_json(5)).note


def with_a_letter(row, token=" B", logprob=-0.5):
    tokens = [{"token": "ANSWER", "logprob": -0.1}, {"token": token, "logprob": logprob}]
    output = {"choices": [{"logprobs": {"content": tokens}}]}
    return row | {
        "choices": ["wren", "kiwi"], "output": output, "scores": {"choice": {"value": "C"}},
    }  # fmt: skip


def test_the_probability_of_a_chosen_letter(log):
    read = read_predictions(log(with_a_letter))
    np.testing.assert_allclose(read.y_prob, np.exp([-0.5] * 6), rtol=1e-15)
    assert read.y_true.all()


def test_files_of_an_archive_that_zstandard_has_packed(log):
    pyarrow = pytest.importorskip("pyarrow")
    if not pyarrow.Codec.is_available("zstd"):
        pytest.skip("pyarrow without zstandard")
    path = packed_by_zstandard(log(), pyarrow)
    read = read_predictions(path)
    assert read.y_true.tolist() == [True, False, False, True, True]


def packed_by_zstandard(path, pyarrow):
    """Pack the files of an archive, which zipfile cannot before Python 3.14."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, pyarrow.compress(content, codec="zstd", asbytes=True))
    content = bytearray(packed.getvalue())
    for magic, method, size in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        for name in files:
            offset = content.index(magic)
            while content[offset + (30 if method == 8 else 46) :][: len(name)] != name.encode():
                offset = content.index(magic, offset + 1)
            struct.pack_into("<H", content, offset + method, 93)
            struct.pack_into("<I", content, offset + size, len(files[name]))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_score({"score": "yes", "confidence": 90}), r"attempt 4: must have one result .*, got "
         r"\{'judge': \['yes', '90'\]\}; name the columns of results and confidences"),
        (set_score({"score": [1], "confidence": 90}), "attempt 4: must have one result"),
        (set_score({"score": "C", "confidence": 0.9}), "confidences: go from 0.9 to 100: "
         "neither shares nor percents"),
        (set_score({"score": "P", "confidence": 90}), "attempt 4: must have one result that is C"),
        (lambda row: row | {"scores": row["scores"] | {"b": row["scores"]["judge"]}},
         r"attempt 4: .*, got \{'judge': \['C', '90'\], 'b': \['C', '90'\]\}; y_true and y_prob "
         r"name the columns of one$"),
        (lambda _: b'{"id": ', "rivers-1_epoch_2.json: must hold a JSON object: Expecting"),
        (lambda _: b"[1]", r"rivers-1_epoch_2.json: must hold a JSON object, got \[1\]$"),
        (lambda _: b"\xff\xfe{", "rivers-1_epoch_2.json: is no text in UTF-8, got"),
    ],
)  # fmt: skip
def test_bad_logs_of_inspect_are_refused(log, change, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_predictions(log(change, "rivers-1_epoch_2"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change", [set_score(None), lambda row: row | {"scores": [1]}, lambda row: row | {"scores": {}}]
)
def test_attempts_without_a_result_are_counted(log, change):
    read = read_predictions(log(change, "rivers-1_epoch_2"))
    assert read.note.endswith("2 of 6 attempts without a result are left out")
    with pytest.raises(ValueError, match=r"log\.eval: has 6 attempts without a result; name the"):
        read_predictions(log(change))


# Values of the same attempts, whose results or confidences have other names, and what shows them.
CORRECT = {"C": 1, "I": 0, "N": 0}


def rename_parts(**parts):
    """Change the parts of a value: each is a function of the result and the confidence."""

    def change(row):
        value = row.get("scores", {}).get("judge", {}).get("value")
        if not isinstance(value, dict):
            return row
        outcome, stated = value["score"], value["confidence"]
        values = {name: part(CORRECT[outcome], stated) for name, part in parts.items()}
        return row | {"scores": {"judge": {"value": values}}}

    return change


def result(correct, _):
    return correct


def confidence(_, stated):
    return stated


def test_parts_without_a_confidence_are_no_results_beside_those_of_another_scorer(log):
    other = {"quality": {"value": {"relevant": 1}}}
    read = read_predictions(log(lambda row: row | {"scores": row.get("scores", {}) | other}))
    assert read.y_prob.tolist() == read_predictions(LOG).y_prob.tolist()
    assert read.note.startswith("log of inspect, judge, ")


def test_columns_of_attempts_are_named_by_their_paths(log):
    path = log(rename_parts(accuracy=result, concise=result, certainty=confidence))
    read = read_predictions(
        path,
        y_true="scores.judge.value.accuracy",
        y_prob="scores.judge.value.certainty",
        percent=True,
    )
    assert read.y_true.tolist() == [1, 0, 0, 1, 1]
    np.testing.assert_allclose(read.y_prob, [0.95, 0.8, 1, 0.9, 0.6], rtol=1e-15)
    assert read.others["groups"].tolist()[0] == "rivers-1"
    assert read.note == (
        "log of inspect; attempts at one question are a group; "
        "1 of 6 attempts without a result are left out"
    )


@pytest.mark.parametrize(
    "change",
    [
        set_score("P"), set_score("C"), set_score([1]),
        *(set_score({"score": "C", "confidence": x}) for x in (None, True, "n/a", "", [], {}, "%")),
        set_score({"score": "C", "confidence": float("nan")}),
        lambda row: with_a_letter(row, logprob="x"), lambda row: with_a_letter(row, logprob=3),
        lambda row: with_a_letter(row, token="C"),
        lambda row: with_a_letter(row) | {"choices": 5},
        lambda row: with_a_letter(row) | {"output": {"choices": [{"logprobs": {"content": 5}}]}},
    ],
)  # fmt: skip
def test_attempts_without_a_readable_confidence_are_counted(log, change):
    read = read_predictions(log(change, "rivers-1_epoch_2"))
    assert len(read.y_prob) == 4
    assert read.note.endswith("1 of 6 attempts without a readable confidence are left out")
    with pytest.raises(ValueError, match=r"has 6 attempts without a readable confidence"):
        read_predictions(log(change))


@pytest.mark.parametrize("confidence", ["90", " 90 ", "90%", "90 %", 90.0])
def test_texts_of_numbers_are_confidences(log, confidence):
    read = read_predictions(
        log(set_score({"score": "C", "confidence": confidence}), "rivers-1_epoch_2")
    )
    np.testing.assert_allclose(read.y_prob, [0.95, 0.8, 1, 0.9, 0.6], rtol=1e-15)


def test_a_file_of_an_archive_that_is_damaged_is_named(log):
    path = log()
    content = bytearray(path.read_bytes())
    start = content.index(b"birds-1_epoch_1.json") + 40
    content[start : start + 20] = b"x" * 20
    path.write_bytes(content)
    match = r"log\.eval: samples/birds-1_epoch_1\.json: cannot be read: "
    with pytest.raises(ValueError, match=match):
        read_predictions(path)
    path.write_bytes(content[:1500])
    with pytest.raises(ValueError, match=r"log\.eval: cannot be read: "):
        read_predictions(path)


def test_attempts_are_no_stream():
    with pytest.raises(ValueError, match=r"is a log of an evaluation, which is no stream$"):
        next(iter_batches(LOG))


def test_questions_that_are_asked_once_are_no_groups(log):
    path = log(lambda row: row | {"id": f"{row['id']}-{row['epoch']}"})
    read = read_predictions(path)
    assert "groups" not in read.others
    assert "group" not in read.note


@pytest.fixture
def many(tmp_path):
    """A log with 120 attempts at 80 questions."""
    with zipfile.ZipFile(LOG) as old, zipfile.ZipFile(tmp_path / "log.eval", "w") as new:
        for k in range(40):
            for name in ("rivers-1_epoch_1", "birds-1_epoch_1", "rivers-1_epoch_2"):
                row = json.loads(old.read(f"samples/{name}.json"))
                row["id"] += f"-{k}"
                row["scores"]["judge"]["value"]["confidence"] = 50 + k
                new.writestr(f"samples/{name}-{k}_epoch_{row['epoch']}.json", json.dumps(row))
    return str(tmp_path / "log.eval")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["report", "--by", "metadata.subject", "--resamples", "9"], ["curve"], ["threshold"],
        ["check", "--max-error", "1", "--baseline", str(LOG), "--max-increase", "0.5"],
        ["recalibrate", "--folds", "2", "--resamples", "9"],
        ["compare", str(LOG), "--resamples", "9"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_read_attempts(command, many, capsys):
    others = [many if word == str(LOG) else word for word in command[1:]]
    code = main([command[0], many, *others, "--json"])
    predictions = json.loads(capsys.readouterr().out)
    assert code in (0, 1, 3)
    assert predictions.get("n", 120) == 120


@pytest.mark.parametrize("command", [["plan", "--width", "0.1"], ["monitor"]], ids=" ".join)
def test_commands_that_take_rows_as_independent_refuse_attempts(command, many, capsys):
    assert main([command[0], many, *command[1:]]) == 2
    message = "log.eval: has several attempts at a question, and this command takes rows"
    assert message in capsys.readouterr().err
