"""A study that is killed goes on: nothing finished is done again, nothing half written is read."""

import errno
import os
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest

from fastece.study import run_study
from helpers import study_cases as cases
from helpers.study_cases import PICTURES, SINGLE, TABLES, TINY

FILES = TABLES + PICTURES
# What a killed process may leave beside them.
LEFT = ".part"


def finished(folder):
    """Name -> what a file that is written again does not keep, of all finished distributions."""
    found = {}
    for path in (folder / "distributions").glob("*.parquet"):
        status = path.stat()
        found[path.name] = status.st_mtime_ns, status.st_ino
    return found


def assert_complete(folder, want, design=TINY):
    """The same files as those of a study that was never interrupted, and no others."""
    cases.assert_same_files(folder, want, FILES)
    names = {path.name for path in folder.iterdir() if not path.name.endswith(LEFT)}
    assert names == {*FILES, "timings.csv", "distributions"}
    cells = {path.name for path in (folder / "distributions").iterdir()}
    cells = {name for name in cells if not name.endswith(LEFT)}
    assert cells == {which.file_name for which in design.distributions}


class Killed(BaseException):
    """In place of a signal."""


class Steps:
    """Ends the process, as it were, at the n-th time that something happens to files."""

    def __init__(self, monkeypatch, last=None):
        self.count, self.last = 0, last
        for name in ("mkdir", "replace", "fsync"):
            monkeypatch.setattr(os, name, self.step(getattr(os, name)))

    def step(self, function):
        def call(*args, **kwargs):
            self.tick()
            result = function(*args, **kwargs)
            self.tick()
            return result

        return call

    def tick(self):
        self.count += 1
        if self.last is not None and self.count >= self.last:
            raise Killed


FEW = replace(SINGLE, mixtures=2, n_sizes=1, draws=2, settings=("confidence",))


@pytest.mark.slow
def test_killed_between_any_two_changes_of_files(tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    with monkeypatch.context() as patch:
        steps = Steps(patch)
        run_study(FEW, tmp_path / "whole")
    pictures = steps.count - 2 * len(PICTURES)
    assert pictures > 20
    failed = []
    for last in [*range(1, pictures, 2), *range(pictures, steps.count + 1, 7)]:
        folder = tmp_path / f"killed{last}"
        with monkeypatch.context() as patch, suppress(Killed):
            Steps(patch, last)
            run_study(FEW, folder)
        kept = finished(folder) if folder.exists() else {}
        with monkeypatch.context() as patch:
            if last < pictures:  # none of them was begun
                patch.setattr(cases.figures, "save_figure", lambda *_: None)
            try:
                run_study(FEW, folder)
            except ValueError as error:
                failed.append((last, str(error)))
                continue
        assert kept.items() <= finished(folder).items()
        if last < pictures:
            cases.assert_same_files(folder, tmp_path / "whole", TABLES)
        else:
            assert_complete(folder, tmp_path / "whole", FEW)
    assert failed == []


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The folder of a study of TINY, and a copy."""
    cases.with_quick_figures(monkeypatch.setattr)
    run_study(TINY, tmp_path / "study")
    return tmp_path / "study", shutil.copytree(tmp_path / "study", tmp_path / "whole")


def test_half_written_files_are_never_read(study):
    folder, whole = study
    kept = finished(folder)
    for i, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_dir() or path.name == "study.json":
            continue
        # As long as the file would be, and of the right beginning.
        path.with_name(path.name + ".part").write_bytes(path.read_bytes()[:50] + b"garbage")
        if i % 2 or path.parent == folder:
            kept.pop(path.name, None)
            path.unlink()
    (folder / "study.json.part").write_text("{")
    (folder / ".figure2.png.1.part").write_text("garbage")
    run_study(TINY, folder)
    assert 0 < len(kept) < 16
    assert kept.items() <= finished(folder).items()
    assert_complete(folder, whole)


def test_a_full_disk_leaves_what_is_finished(study, tmp_path, monkeypatch):
    _, whole = study
    original, written = os.fsync, []

    def full(descriptor):
        written.append(descriptor)
        if len(written) > 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            run_study(TINY, tmp_path / "full")
    kept = finished(tmp_path / "full")
    assert len(kept) == 7
    run_study(TINY, tmp_path / "full")
    assert kept.items() <= finished(tmp_path / "full").items()
    assert_complete(tmp_path / "full", whole)
