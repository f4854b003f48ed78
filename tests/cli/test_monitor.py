"""The command `monitor` prints the numbers of `fastece.Monitor`, file by file."""

import json

import numpy as np
import pytest

import fastece
from fastece.cli import main
from fastece.recalibration import PlattScaling, save
from helpers.command_line import failure


@pytest.fixture
def days(tmp_path):
    """Files of eight days in a folder, and their rows; from the fifth on scores are too low."""
    rng = np.random.default_rng(0)
    rows = []
    (tmp_path / "days").mkdir()
    for day in range(8):
        z = rng.normal(0, 1.5, 100)
        p = (1 / (1 + np.exp(-z))).round(4)
        shift = 1 if day >= 4 else 0
        y = (rng.random(100) < 1 / (1 + np.exp(-z - shift))).astype(int)
        table = np.column_stack([y, p])
        path = tmp_path / "days" / f"day{day}.csv"
        np.savetxt(path, table, "%.10g", ",", header="y_true,y_prob", comments="")
        rows.append((path, y, p))
    return rows


def followed(rows, **options):
    monitor = fastece.Monitor(**options)
    for _, y, p in rows:
        monitor.update(y, p)
    return monitor


def test_a_folder_is_one_stream_in_the_order_of_its_days(capsys, days):
    folder = str(days[0][0].parent)
    assert main(["monitor", folder, "--json", "--level", "0.01"]) == 1
    printed = json.loads(capsys.readouterr().out)
    files = printed.pop("files")
    assert printed == followed(days, level=0.01).to_dict()
    assert printed["alarm"]
    assert 300 <= printed["since"] <= 500
    for k, (line, (path, y, p)) in enumerate(zip(files, days, strict=True)):
        assert line["file"] == str(path)
        assert line["rows"] == 100
        assert line["error"] == fastece.ece(y, p, estimator="ece_bayes")
        until = followed(days[: k + 1], level=0.01)
        assert line["e_value"] == until.e_value
        assert (line["p_value"], line["alarm"]) == (until.p_value, until.alarm)
    assert main(["monitor", folder]) == 1
    page = capsys.readouterr().out.splitlines()
    assert page[:2] == str(followed(days)).splitlines()[:2]
    assert sum(line.endswith("  yes") for line in page) == sum(x["e_value"] >= 20 for x in files)


def test_a_state_goes_on_where_it_was(capsys, days, tmp_path):
    state = tmp_path / "state.json"
    for path, _, _ in days:
        code = main(["monitor", str(path), "--state", str(state), "--json"])
        printed = json.loads(capsys.readouterr().out)
        assert code == (1 if printed["alarm"] else 0)
    assert printed["state"] == str(state)
    assert {x: printed[x] for x in followed(days).to_dict()} == followed(days).to_dict()
    assert fastece.Monitor.load(state).to_dict() == followed(days).to_dict()
    error = failure(capsys, "monitor", days[0][0], "--state", str(state), "--level", "0.1")
    assert "--level: must be 0.05, as in the state, got 0.1" in error
    assert fastece.Monitor.load(state).n == 800
    other = tmp_path / "vectors.csv"
    other.write_text("y_true,p_0,p_1,p_2\n0,1,0,0\n")
    error = failure(capsys, "monitor", str(other), "--state", str(state))
    assert "vectors.csv: from line 2 on: y_prob: must have shape (n,), got (1, 3)" in error
    assert "n_classes" not in error


def test_labels_logits_and_pairs_are_read(capsys, tmp_path):
    a = tmp_path / "a.csv"
    a.write_text("y_true,p_stay,p_go\nstay,2,0\ngo,1,1.5\ngo,0,1\n")
    columns = ["--y-prob", "p_stay,p_go", "--labels", "stay,go"]
    assert main(["monitor", str(a), *columns, "--from-logits", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    z = np.array([[2, 0], [1, 1.5], [0, 1]])
    expected = fastece.Monitor(n_classes=2).update([0, 1, 1], z, from_logits=True)
    assert printed["e_value"] == expected.e_value
    a.write_text("true_label,pred_label,confidence\n0,0,0.9\n1,2,0.5\n1,1,0.7\n")
    assert main(["monitor", str(a), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["e_value"] == fastece.Monitor().update([1, 0, 1], [0.9, 0.5, 0.7]).e_value


def test_a_reference_goes_on_with_a_state(capsys, days, tmp_path):
    release = tmp_path / "map.json"
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    model = PlattScaling().fit(p, rng.random(5000) < p)
    save(model, release)
    expected = fastece.Monitor(reference=model, forget=1000)
    state = tmp_path / "state.json"
    options = ["--reference", str(release), "--forget", "1000"]
    for path, y, prob in days:
        expected.update(y, prob)
        main(["monitor", str(path), *options, "--state", str(state), "--json"])
        printed = json.loads(capsys.readouterr().out)
        assert {x: printed[x] for x in expected.to_dict()} == expected.to_dict()
        error = fastece.ece(y, model.transform(prob), estimator="ece_bayes")
        assert printed["files"][0]["error"] == error
    path = str(days[0][0])
    for wrong, message in (
        ([], "--reference: must be that of the saved monitor"),
        ([*options[:2], "--forget", "9"], "--forget: must be 1000, as in the state"),
    ):
        assert message in failure(capsys, "monitor", path, *wrong, "--state", str(state))


def test_an_impossible_outcome_is_infinite_evidence(capsys, tmp_path):
    a = tmp_path / "a.csv"
    a.write_text("y_true,y_prob\n0,1\n")
    assert main(["monitor", str(a)]) == 1
    page = capsys.readouterr().out
    assert "an outcome whose predicted probability was 0" in page
    assert " inf " in page
    # JSON has no such number.
    assert main(["monitor", str(a), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["e_value"] == "inf"


@pytest.fixture
def numbered(tmp_path):
    """Files of twelve days without zeros in front of their numbers, the last four off."""
    rng = np.random.default_rng(4)
    (tmp_path / "week2.d").mkdir()
    paths = []
    for day in range(1, 13):
        p = rng.random(100).round(3)
        y = rng.random(100) < (p if day < 9 else p**2.5)
        rows = "".join(f"{int(hit)},{x}\n" for hit, x in zip(y, p, strict=True))
        paths.append(tmp_path / "week2.d" / f"day{day}.csv")
        paths[-1].write_text(f"y_true,y_prob\n{rows}")
    return [str(path) for path in paths]


def followed_files(capsys, *arguments):
    main(["monitor", *arguments, "--json"])
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    return [line["file"] for line in printed["files"]], printed["since"], captured.err


def test_files_of_a_folder_or_a_pattern_are_in_the_order_of_their_numbers(capsys, numbered):
    folder = numbered[0].removesuffix("/day1.csv")
    expected = followed_files(capsys, *numbered)
    assert expected[0] == numbered
    assert 750 < expected[1] <= 850
    assert expected[2] == ""
    assert followed_files(capsys, folder) == expected
    assert followed_files(capsys, f"{folder}/day*.csv") == expected


def test_numbered_files_in_the_order_of_texts_are_a_warning_of_one_line(capsys, numbered):
    as_a_shell_sorts = sorted(numbered)
    files, _, error = followed_files(capsys, *as_a_shell_sorts)
    assert files == as_a_shell_sorts
    assert error.count("\n") == 1
    assert f"warning: {numbered[1]}: is read after {numbered[11]}, though its number is" in error
    assert "a folder, or a pattern in quotes, is read in the order of numbers" in error


def test_names_that_differ_in_more_than_numbers_are_no_warning(capsys, numbered, tmp_path):
    other = tmp_path / "b1.csv"
    other.write_text("y_true,y_prob\n1,0.5\n")
    files, _, error = followed_files(capsys, numbered[8], str(other), numbered[9])
    assert len(files) == 3
    assert error == ""
    error = followed_files(capsys, numbered[9], str(other), numbered[8])[2]
    assert f"{numbered[8]}: is read after {numbered[9]}" in error
