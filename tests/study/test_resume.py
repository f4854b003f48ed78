"""A study that was killed goes on: finished work is kept, half-written files are not read."""

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
# Ending of files that a killed process may leave beside them.
LEFT = ".part"


def finished(folder):
    """Name -> time and inode, which change with a file that is written again."""
    status = {path.name: path.stat() for path in (folder / "distributions").glob("*.parquet")}
    return {name: (stat.st_mtime_ns, stat.st_ino) for name, stat in status.items()}


def assert_complete(folder, want, design=TINY):
    """The same files as after a study that was never interrupted, and no others."""
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
        self.count = 0
        self.last = last
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
    for last in [*range(1, pictures, 4), *range(pictures, steps.count + 1, 14)]:
        folder = tmp_path / f"killed{last}"
        with monkeypatch.context() as patch, suppress(Killed):
            Steps(patch, last)
            run_study(FEW, folder)
        before = finished(folder) if folder.exists() else {}
        with monkeypatch.context() as patch:
            if last < pictures:  # none of them was begun
                patch.setattr(cases.figures, "save_figure", lambda *_: None)
            try:
                run_study(FEW, folder)
            except ValueError as error:
                failed.append((last, str(error)))
                continue
        assert before.items() <= finished(folder).items()
        if last < pictures:
            cases.assert_same_files(folder, tmp_path / "whole", TABLES)
        else:
            assert_complete(folder, tmp_path / "whole", FEW)
    assert failed == []


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The folder of a study of TINY that was never interrupted."""
    folder = tmp_path_factory.mktemp("study") / "complete"
    with pytest.MonkeyPatch.context() as patch:
        cases.with_quick_figures(patch.setattr)
        run_study(TINY, folder)
    return folder


@pytest.mark.slow
def test_half_written_files_are_never_read(complete, tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    folder = shutil.copytree(complete, tmp_path / "study")
    left = finished(folder)
    for i, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_dir() or path.name == "study.json":
            continue
        # As long as the file would be, and of the right beginning.
        path.with_name(path.name + ".part").write_bytes(path.read_bytes()[:50] + b"garbage")
        if i % 2 or path.parent == folder:
            left.pop(path.name, None)
            path.unlink()
    (folder / "study.json.part").write_text("{")
    (folder / ".figure2.png.1.part").write_text("garbage")
    run_study(TINY, folder)
    assert 0 < len(left) < len(TINY.distributions)
    assert left.items() <= finished(folder).items()
    assert_complete(folder, complete)


@pytest.mark.slow
def test_a_full_disk_leaves_what_is_finished(complete, tmp_path, monkeypatch):
    cases.with_quick_figures(monkeypatch.setattr)
    original = os.fsync
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) > 3:  # the note on the design and two distributions
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            run_study(TINY, tmp_path / "full")
    left = finished(tmp_path / "full")
    assert len(left) == 2
    run_study(TINY, tmp_path / "full")
    assert left.items() <= finished(tmp_path / "full").items()
    assert_complete(tmp_path / "full", complete)
