"""Folders of a study, and files that are whole or not there."""

import json
from dataclasses import replace

import pytest

from fastece.study import run_study
from fastece.study.store import Store, write_whole
from helpers.study_cases import SINGLE


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.csv"

    def fail(part):
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert not path.exists()
    write_whole(path, lambda part: part.write_text("all of it"))
    assert path.read_text() == "all of it"
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert path.read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_two_may_write_a_file_at_once(tmp_path):
    path = tmp_path / "a.csv"

    def interrupted(part):
        part.write_text("the fir")
        write_whole(path, lambda other: other.write_text("the second"))
        assert path.read_text() == "the second"
        part.write_text("the first")

    write_whole(path, interrupted)
    assert path.read_text() == "the first"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


MADE_BY = {"version of fastece": "1"}


def test_a_folder_is_of_one_design(tmp_path):
    Store(tmp_path / "a", SINGLE, MADE_BY)
    Store(tmp_path / "a", SINGLE, MADE_BY)
    for design, made_by, message in (
        (replace(SINGLE, draws=6), MADE_BY, "holds a study with draws 5, not 6"),
        (replace(SINGLE, seed=3), MADE_BY, "seed 0, not 3"),
        (replace(SINGLE, convention="published"), MADE_BY, "'corrected', not 'published'"),
        (replace(SINGLE, estimators=("a:b",)), MADE_BY, r"estimators \[\], not \['a:b'\]"),
        (SINGLE, {"version of fastece": "2"}, "version of fastece '1', not '2'"),
    ):
        with pytest.raises(ValueError, match=f"out: .*{message}: choose another folder"):
            Store(tmp_path / "a", design, made_by)


def test_a_folder_with_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("not mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("not mine")
    for name in ("file", "folder"):
        with pytest.raises(ValueError, match=r"out: .*exists, and holds no study"):
            run_study(SINGLE, tmp_path / name)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["thesis.tex"]
    assert (tmp_path / "file").read_text() == "not mine"


def test_an_empty_folder_and_one_in_folders_that_are_not_there_are_good(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "a" / "b"):
        store = Store(folder, SINGLE, MADE_BY)
        assert json.loads((folder / "study.json").read_text())["draws"] == SINGLE.draws
        assert not store.has(SINGLE.distributions[0])


def test_a_spoiled_note_is_refused(tmp_path):
    Store(tmp_path, SINGLE, MADE_BY)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(ValueError):
        Store(tmp_path, SINGLE, MADE_BY)
