"""``fastece study --scheduler``: a Dask cluster in place of processes."""

import sys

import pytest

from fastece.cli import cluster, main
from helpers import study_cases as cases
from helpers.command_line import failure

# A study of 16 distributions, each in some hundredths of a second.
SMALL = ["study", "--holdout", "1000", "--largest", "50", "--draws", "3", "--out"]


@pytest.mark.slow
def test_a_cluster_gives_the_same_files_as_processes(client, tmp_path, monkeypatch, capsys):
    cases.with_quick_figures(monkeypatch.setattr)
    assert main([*SMALL, f"{tmp_path}/processes"]) == 0
    assert main([*SMALL, f"{tmp_path}/cluster", "--scheduler", client.scheduler.address]) == 0
    cases.assert_same_files(tmp_path / "cluster", tmp_path / "processes", cases.TABLES)
    assert "ece_bayes" in capsys.readouterr().out
    assert client.submit(int, 7).result() == 7  # The cluster goes on without the command.


@pytest.mark.slow
def test_a_cluster_without_workers_is_refused(tmp_path, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=0, **options) as empty:
        words = ("--out", f"{tmp_path}/none", "--scheduler", empty.scheduler_address)
        message = failure(capsys, "study", *words)
    assert "--scheduler: the cluster has had no workers for 1 seconds" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tcp://127.0.0.1:1", "--scheduler: no Dask scheduler answers there within 1 seconds"),
        ("nonsense", "--scheduler: must be the address of a Dask scheduler"),
        ("tcp://127.0.0.1:1 --jobs 2", "--jobs: goes without --scheduler"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_refused(
    tmp_path, monkeypatch, capsys, words, message
):  # fmt: skip
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 1)
    monkeypatch.chdir(tmp_path)
    assert message in failure(capsys, "study", "--scheduler", *words.split())
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_without_dask_names_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(tmp_path)
    message = failure(capsys, "study", "--scheduler", "tcp://127.0.0.1:8786")
    assert "pip install 'fastece[dask]'" in message
