"""Commands that a signal ends at any moment: the old file or the whole new one, no other."""

import os
import random
import shutil
import signal

import pytest

from helpers import output_faults as faults
from helpers.output_faults import OLD, OUTPUTS, tree

pytestmark = pytest.mark.slow

for package in ("matplotlib", "pyarrow", "sklearn", "joblib", "tqdm", "threadpoolctl"):
    pytest.importorskip(package)
if os.name != "posix":
    pytest.skip("has other signals", allow_module_level=True)

MOMENTS = 3
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
NAMES = ("r.html", "c.png", "x.csv.gz", "m.json")
STUDY = ["study", "--jobs", "1", "--json", "--out", "out/study"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The folder in which commands run."""
    folder = tmp_path_factory.mktemp("killed")
    faults.write_inputs(folder)
    return folder


@pytest.fixture(scope="module")
def trials(place):
    """A process that forks for every trial."""
    process = faults.Trials(place)
    yield process
    process.close()


def moments(seconds, name):
    """Random moments of the run, half of them near its end, where files are written."""
    rng = random.Random(name)
    for k in range(MOMENTS):
        yield seconds * (rng.random() if k % 2 else rng.uniform(0.7, 1.02))


def was_ended(code, err, number):
    """Did the signal end it, in the way of this signal?"""
    if number == signal.SIGINT:
        assert code == 130
        assert err.count("\n") <= 1
        assert "Traceback" not in err
    else:
        # A handler may have cleaned up, and then says so as shells do.
        assert code in (-number, 128 + number)
    return True


@pytest.mark.parametrize("output", [x for x in OUTPUTS if x.name in NAMES], ids=str)
def test_outputs(output, place, trials):
    path = place / "out" / output.name
    trials.run(output.line())
    seconds = min(trials.run(output.line())[1] for _ in range(3))
    path.write_bytes(OLD)
    before = tree(place)
    ended = dict.fromkeys(SIGNALS, 0)
    for number in SIGNALS:
        for delay in moments(seconds, f"{output} {number}"):
            path.write_bytes(OLD)
            code, _, err = trials.run(output.line(), number, delay)
            ended[number] += code != 0 and was_ended(code, err, number)
            after = tree(place)
            content = after[f"out/{output.name}"]
            assert (code and content == OLD) or output.is_whole(content)
            for name in set(after) - set(before):
                # A process that is killed cannot clean up.
                assert code < 0
                assert name.endswith(".part")
                (place / name).unlink()
            assert after.keys() >= before.keys()
    assert any(ended.values())  # else the moments were none of the run


def test_a_study_goes_on_where_it_was(place, trials):
    folder = place / "out" / "study"

    def results():
        # Seconds differ from one run to the next, and a killed process cannot clean up.
        clocks = ("timings.csv", "distributions/")
        files = {name: data for name, data in tree(folder).items() if not name.endswith(".part")}
        return {name: name.startswith(clocks) or content for name, content in files.items()}

    shutil.rmtree(folder, ignore_errors=True)
    assert trials.run(STUDY)[0] == 0  # compiles
    shutil.rmtree(folder)
    code, seconds, err = trials.run(STUDY)
    results_of_whole_run = results()
    assert (code, err) == (0, "")
    near_end, anywhere, *_ = moments(seconds, "study")
    for number, delay in ((signal.SIGINT, near_end), (signal.SIGKILL, anywhere)):
        code = 0
        while code == 0:  # a run that is faster than the first ends before its signal
            shutil.rmtree(folder)
            code, _, err = trials.run(STUDY, number, delay)
            delay *= 0.8
        assert was_ended(code, err, number)
        code, _, err = trials.run(STUDY)
        assert (code, err) == (0, "")
        assert results() == results_of_whole_run
