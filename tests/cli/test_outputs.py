"""Outputs of commands under every fault: the old file or the whole new one, no other."""

import errno
import os
import stat
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from fastece.cli import main
from helpers import output_faults as faults
from helpers.output_faults import OLD, OUTPUTS, one_line, tree

pytestmark = pytest.mark.slow

for package in ("matplotlib", "pyarrow"):
    pytest.importorskip(package)
if os.name != "posix":
    pytest.skip("has other files and signals", allow_module_level=True)
# One output of each function that writes. All outputs are written whole, and meet a full disk.
KINDS = [x for x in OUTPUTS if x.name in ("r.html", "c.png", "x.csv.gz", "x.parquet", "m.json")]
every_kind = pytest.mark.parametrize("output", KINDS, ids=str)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot become another user")


@pytest.fixture
def out(tmp_path, monkeypatch):
    """The folder for outputs, beside the inputs; nothing is drawn on pictures."""
    monkeypatch.chdir(tmp_path)
    faults.without_drawing(monkeypatch.setattr)
    return faults.write_inputs(tmp_path)


@pytest.fixture
def run(capsys):
    """Run an output's command under a fault: exit code and standard error."""

    def run_command(output, path=None, a="a.csv", fault=None):
        if fault is not None:
            with tempfile.TemporaryDirectory() as folder:
                faults.write_inputs(folder)
                faults.warm_up(folder, output)
            capsys.readouterr()
        with fault or nullcontext():
            code = main(output.line(path, a))
        printed, err = capsys.readouterr()
        assert (printed == "") == (code != 0)
        return code, err

    return run_command


@contextmanager
def raises(function, error, calls):
    """Let a function of the system raise an error; `calls` gets the arguments of its calls."""

    def fails(*arguments, **_):
        calls.append(arguments)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, function, fails)
        yield


def assert_only_one_file_changes(output, name, out, run):
    """A run without a word writes a whole file at a place, and touches nothing else."""
    before = tree(out.parent)
    assert run(output) == (0, "")
    after = tree(out.parent)
    assert output.is_whole(after.pop(name))
    before.pop(name, None)
    assert after == before


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_the_whole_file_is_there_and_nothing_else(output, out, run):
    for name in (f"{output.name}.part", f".{output.name}.part", f"{output.name}.tmp"):
        (out / name).write_bytes(OLD)  # names like those of files aside
    assert_only_one_file_changes(output, f"out/{output.name}", out, run)


@every_kind
def test_an_old_file_is_replaced_and_keeps_its_mode(output, out, run):
    path = out / output.name
    path.write_bytes(OLD)
    path.chmod(0o640)
    assert_only_one_file_changes(output, f"out/{output.name}", out, run)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.unlink()
    before = os.umask(0o077)
    try:
        assert run(output) == (0, "")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@every_kind
def test_links_stay(output, out, run):
    """A link to a link to a file in another folder: the file is written, as by any program."""
    far = out.parent / "far"
    far.mkdir()
    (out / "between").symlink_to(f"../far/{output.name}")
    (out / output.name).symlink_to("between")
    for _ in ("new", "old"):
        assert_only_one_file_changes(output, f"far/{output.name}", out, run)


@every_kind
@pytest.mark.parametrize("kind", [faults.Pipe, faults.Terminal])
def test_devices_and_pipes_are_written_through(output, kind, out, run):
    path = out / output.name
    other = kind(path)
    before = tree(out.parent)
    code, err = run(output)
    content = other.content()
    assert (code, err) == (0, "")
    assert output.is_whole(content)
    if kind is faults.Terminal:
        path.unlink()  # it leads nowhere now
        before.pop(f"out/{output.name}")
    assert tree(out.parent) == before


@every_kind
@pytest.mark.parametrize("old", [None, OLD], ids=["new", "old"])
def test_on_a_full_disk_all_is_as_before(output, old, out, run):
    if old:
        (out / output.name).write_bytes(old)
    before = tree(out.parent)
    code, err = run(output, fault=faults.file_limit(len(OLD) + 50))
    assert code == 2
    assert one_line(err, output.option, output.name)
    assert "too large" in err, err
    assert tree(out.parent) == before


@every_kind
@pytest.mark.parametrize(
    ("function", "error", "code"),
    [("fsync", OSError(errno.ENOSPC, "No space left on device"), 2),
     ("replace", OSError(errno.EIO, "no"), 2), ("replace", KeyboardInterrupt(), 130)],
    ids=["full", "broken", "interrupt"],
)  # fmt: skip
def test_a_failure_at_the_end_leaves_all_as_before(output, function, error, code, out, run):
    (out / output.name).write_bytes(OLD)
    before = tree(out.parent)
    calls = []
    exit_code, err = run(output, fault=raises(function, error, calls))
    assert calls
    assert exit_code == code
    assert err.count("\n") == 1
    assert code == 130 or one_line(err, output.option, output.name), err
    assert tree(out.parent) == before


def folder(path):
    path.mkdir()
    (path / "thesis.tex").write_text("mine")


def loop(path):
    path.symlink_to(path.name)


REFUSED = {
    "a folder": (folder, "out/{}"),
    "a loop of links": (loop, "out/{}"),
    "a link to nowhere": (lambda path: path.symlink_to("none/x"), "out/{}"),
    "no folder": (None, "none/{}"),
    "in a file": (None, "a.csv/{}"),
    "long name": (None, "out/" + 300 * "n" + "{}"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_place_that_cannot_be_written_is_refused(fault, out, run):
    make, path = REFUSED[fault]
    for output in {x.name: x for x in OUTPUTS}.values():
        if make:
            make(out / output.name)
        before = tree(out.parent)
        code, err = run(output, path.format(output.name))
        assert code == 2, output
        assert one_line(err, output.option, output.name), err
        assert tree(out.parent) == before


def test_a_long_name_is_as_good_as_a_short_one(out, run):
    output = OUTPUTS[0]
    path = out / f"{'n' * 250}.html"
    assert run(output, path) == (0, "")
    assert output.is_whole(path.read_bytes())
    assert [*tree(out)] == [path.name]


# --- files that another user may not write --------------------------------------------------------


def closed_folder(path):
    path.parent.chmod(0o555)


def closed_folder_with_file(path):
    path.write_bytes(OLD)
    path.chmod(0o666)
    path.parent.chmod(0o555)


def closed_file(path):
    path.write_bytes(OLD)
    path.chmod(0o444)


def hidden_folder(path):
    path.parent.chmod(0)


def folder_of_all(path):
    """Any may write the file and the folder, but only the owner may rename it."""
    path.write_bytes(OLD)
    path.chmod(0o666)
    path.parent.chmod(0o1777)


@pytest.fixture
def open_place(monkeypatch):
    """Inputs and a folder that every user may read and write."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.chdir(folder)
        faults.without_drawing(monkeypatch.setattr)
        out = faults.write_inputs(folder)
        for path in (Path(folder), out):
            path.chmod(0o777)
        yield out
        out.chmod(0o777)


@as_root
@pytest.mark.parametrize("output", KINDS[::2], ids=str)
@pytest.mark.parametrize(
    ("fault", "is_certain"),
    [(closed_folder, True), (closed_folder_with_file, False), (closed_file, True),
     (hidden_folder, True), (folder_of_all, False)],
)  # fmt: skip
def test_files_that_a_user_may_not_write_stay(output, fault, is_certain, open_place, run):
    fault(open_place / output.name)
    before = tree(open_place.parent)
    code, err = run(output, fault=faults.rights_of_nobody())
    after = tree(open_place.parent)
    if is_certain or code:
        assert code == 2
        assert one_line(err, output.option, output.name), err
        assert after == before
    else:
        assert output.is_whole(after.pop(f"out/{output.name}"))
        before.pop(f"out/{output.name}")
        assert after == before


# --- studies --------------------------------------------------------------------------------------


def study(capsys):
    """Exit code and standard error of a small study into a folder."""
    capsys.readouterr()
    code = main(["study", "--jobs", "1", "--json", "--out", "out/study"])
    printed, err = capsys.readouterr()
    assert (printed == "") == (code != 0)
    return code, err


@pytest.fixture
def small_study(monkeypatch):
    """The study of no options is small, and pictures take no time."""
    for package in ("sklearn", "joblib", "tqdm", "threadpoolctl"):
        pytest.importorskip(package)
    from fastece.study import PRESETS
    from helpers import study_cases

    study_cases.with_quick_figures(monkeypatch.setattr)
    monkeypatch.setitem(PRESETS, "quick", study_cases.SINGLE)


@pytest.mark.usefixtures("small_study")
@pytest.mark.parametrize("size", [100, 3000, 30_000])
def test_a_study_on_a_full_disk_goes_on_when_there_is_room(size, out, capsys):
    """The design, the values and the summary are the first that there is no room for."""
    with faults.file_limit(size):
        code, err = study(capsys)
    assert code == 2
    assert one_line(err, "study"), err
    assert "too large" in err
    assert not [name for name in tree(out) if name.endswith(".part")]
    assert study(capsys) == (0, "")
    assert {"study.json", "summary.csv", "values.parquet"} <= set(tree(out / "study"))
    assert not [name for name in tree(out) if name.endswith(".part")]


@pytest.mark.usefixtures("small_study")
@pytest.mark.parametrize("make", [Path.touch, loop, os.mkfifo, folder])
def test_a_study_needs_a_folder_of_its_own(make, out, capsys):
    make(out / "study")
    before = tree(out)
    code, err = study(capsys)
    assert code == 2
    assert one_line(err, "--out", "study"), err
    assert tree(out) == before


@as_root
@pytest.mark.usefixtures("small_study")
def test_a_study_in_a_folder_that_a_user_may_not_write_is_refused(open_place, capsys):
    open_place.chmod(0o555)
    before = tree(open_place)
    with faults.rights_of_nobody():
        code, err = study(capsys)
    assert code == 2
    assert one_line(err, "--out", "study"), err
    assert tree(open_place) == before


@pytest.mark.skipif(not Path("/proc/self/ns/mnt").exists(), reason="needs mounts of its own")
def test_on_a_small_file_system_that_is_full(tmp_path):
    """Every output, one after the other, where one page of 4096 bytes is free, or none."""
    faults.write_inputs(tmp_path)
    done = faults.in_mounts(tmp_path)
    if done is None:
        pytest.skip("cannot mount a file system")
    assert [(name, problem) for name, problem in done if problem] == []
    assert len(done) == 2 * len(OUTPUTS)
