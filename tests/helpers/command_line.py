"""Commands as a user types them, run in this process."""

import json
from pathlib import Path

import fastece
from fastece.cli import main

DATA = Path(fastece.__file__).parent / "data"
DIGITS = DATA / "digits_neural_network.npz"
FOREST = DATA / "digits_random_forest.npz"
SMALL = "y_true,y_prob\n" + "".join(f"{i % 3 % 2},{(i % 20 + 0.5) / 20}\n" for i in range(60))
PAIRS = "true_label,pred_label,confidence\n"


def run(capsys, *arguments, quick=True):
    """Exit code, standard output and standard error; `quick`: a report without resamples, unless
    it says how many."""
    arguments = [str(a) for a in arguments]
    if quick and arguments[0] in ("report", "demo") and "--resamples" not in arguments:
        arguments += ["--resamples", "0"]
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def text(capsys, *arguments, quick=True):
    """Return the page of a command that prints nothing on standard error."""
    code, out, err = run(capsys, *arguments, quick=quick)
    assert (code, err) == (0, "")
    return out


def as_json(capsys, *arguments, quick=True):
    out = text(capsys, *arguments, "--json", quick=quick)
    assert out.count("\n") == 1
    return json.loads(out)


def failure(capsys, *arguments):
    """The one line on standard error."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("fastece: error: ")
    assert err.count("\n") == 1
    return err


def values(report):
    """Name -> error."""
    return {line["name"]: line["value"] for line in report["measures"]}
