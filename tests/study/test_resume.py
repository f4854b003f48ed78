"""A study that is killed goes on: nothing finished is done again, nothing half written is read."""

import errno
import multiprocessing
import os
import random
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from fastece.study import run_study
from helpers import study_cases as cases
from helpers.study_cases import PICTURES, SINGLE, TABLES, TINY

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

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


# -- killed ----------------------------------------------------------------------------------------


class Forks:
    """Processes in groups of their own, which have imported everything already."""

    def __init__(self):
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([
            "fastece.study.figures", "fastece.study.study", "joblib", "matplotlib.figure",
            "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
            "pyarrow.parquet", "scipy.special", "sklearn.calibration", "sklearn.ensemble",
            "sklearn.linear_model", "sklearn.naive_bayes", "sklearn.svm", "threadpoolctl",
        ])  # fmt: skip

    def start(self, design, folder):
        process = self.context.Process(target=in_a_group, args=(design, folder))
        process.start()
        return process


def in_a_group(design, folder):
    os.setsid()
    cases.run_with_quick_figures(design, folder)


def kill_group(pid):
    """Kill a process that leads a group, with all of the group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def wait_for_group(process):
    """Until the process leads a group of its own."""
    while process.is_alive() and os.getpgid(process.pid) != process.pid:
        time.sleep(0.001)


@pytest.fixture(scope="module")
def forks():
    return Forks()


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory):
    """The folder of a study that is not interrupted, and how long it takes."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    for _ in range(2):  # the first loads what is compiled into the cache of the system
        start = time.monotonic()
        process = forks.start(TINY, folder)
        process.join(120)
        assert process.exitcode == 0
        seconds = time.monotonic() - start
        if not folder.with_name("warm").exists():
            folder.rename(folder.with_name("warm"))
    return folder, seconds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments(forks, whole, tmp_path, seed):
    # Five kills of each of four studies. A study goes on for a random part of what all of it takes,
    # which covers computing cells in the first kills and writing tables and pictures in the last.
    moments, folder, kept = random.Random(seed), tmp_path / "killed", {}
    kills = 0
    while kills < 5:
        process = forks.start(TINY, folder)
        wait_for_group(process)
        process.join(moments.uniform(0, 0.6) * whole[1])
        kill_group(process.pid)
        process.join(60)
        assert process.exitcode in (-signal.SIGKILL, 0)
        if process.exitcode == 0:  # it was faster than we, and nothing was killed: once more
            shutil.rmtree(folder)
            kept = {}
            continue
        kills += 1
        now = finished(folder)
        assert kept.items() <= now.items()  # nothing that was finished is written again
        kept = now
    process = forks.start(TINY, folder)
    process.join(120)
    assert process.exitcode == 0
    assert kept.items() <= finished(folder).items()
    assert_complete(folder, whole[0])


# -- at every step ---------------------------------------------------------------------------------


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
    for last in [*range(1, pictures), *range(pictures, steps.count + 1, 7)]:
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


# -- what is half written --------------------------------------------------------------------------


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


def test_a_folder_with_the_note_half_written_goes_on(tmp_path, monkeypatch):
    # Killed while the first file was written.
    cases.with_quick_figures(monkeypatch.setattr)
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.json.part").write_text('{"version"')
    run_study(FEW, folder)
    assert (folder / "study.json").exists()


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


def test_one_missing_distribution_is_the_only_one_that_is_computed(study):
    folder, whole = study
    kept = finished(folder)
    name = TINY.distributions[5].file_name
    (folder / "distributions" / name).unlink()
    kept.pop(name)
    run_study(TINY, folder)
    now = finished(folder)
    assert kept.items() <= now.items()
    assert set(now) - set(kept) == {name}
    assert_complete(folder, whole)
