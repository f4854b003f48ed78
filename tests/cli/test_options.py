"""Options are refused as they are typed, in one line."""

import pytest

from fastece.cli import main
from fastece.cli.options import COMMANDS, make_parser


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required"),
        (["report"], "required: FILE"),
        (["nothing"], "invalid choice"),
        (["demo", "--n-bins", "many"], 'a number or "sqrt"'),
        (["demo", "--labels", "a,b"], "unrecognized"),
        (["demo", "--confidence-level", "95"], "between 0 and 1"),
        (["demo", "--confidence-level", "nan"], "between 0 and 1"),
        (["demo", "--confidence-level", "high"], "number"),
        (["compare", "a.csv"], "required: B"),
        (["curve", "a.csv", "--at", "1.2"], "scores in [0, 1]"),
        (["curve", "a.csv", "--at", "-0.1"], "scores in [0, 1]"),
        (["curve", "a.csv", "--at", "nan"], "scores in [0, 1]"),
        (["curve", "a.csv", "--at", "0.8,x"], "scores in [0, 1]"),
        (["curve", "a.csv", "--at", ""], "scores in [0, 1]"),
        (["curve", "a.csv", "--bandwidth", "wide"], 'a number or "silverman"'),
    ],
)
def test_wrong_arguments_exit_with_2_and_one_line(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_its_options(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    page = capsys.readouterr().out
    for option in COMMANDS[command].options:
        assert option.split()[-1] in page  # of one command alone: its name goes before
    assert "%(" not in page


def test_values_are_read_as_what_they_are():
    read = make_parser().parse_args
    options = read(["report", "a.csv", "--setting", "3", "--n-bins", "sqrt"])
    assert (options.setting, options.n_bins, options.resamples, options.seed) == (
        3, "sqrt", None, 0
    )  # fmt: skip
    options = read(["curve", "a.csv", "--at", "0.8,0.9", "--bandwidth", "0.1"])
    assert (options.at, options.bandwidth, options.resamples) == ([0.8, 0.9], 0.1, 500)
    assert read(["study"]).seed is None
