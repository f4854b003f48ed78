"""Estimators of one's own: found, refused, and in the same arena."""

from dataclasses import replace
from math import fsum

import numpy as np
import pytest

from fastece.data.samples import Sample
from fastece.study import run_study
from fastece.study.candidates import candidates_of, import_estimator
from fastece.study.estimation import run_distribution
from helpers import study_cases as cases
from helpers.study_cases import SINGLE, SIXTEEN


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("name", ["Gap", "an_object", "a_function", "Slow", "ready"])
def test_an_estimator_of_a_user_is_found(name):
    candidate = import_estimator(f"own_estimators:{name}")
    assert candidate.name == name
    sample = Sample(np.array([0.2, 0.8]), np.array([1, 0], np.uint8), None, 0.0, 1.0, np.arange(2))
    plan = candidate.estimator.prepare(sample, 2)
    assert 0 <= candidate.estimator.evaluate(plan, np.ones(2, np.uint8)) <= 0.8


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("own_estimators", ValueError, "must be \"module:name\", got 'own_estimators'"),
        (":Gap", ValueError, "must be"),
        ("own_estimators:", ValueError, "must be"),
        ("", ValueError, "must be"),
        ("no_such_module:Gap", ValueError, "'no_such_module:Gap' was not found.*No module named"),
        ("own_estimators:Gab", ValueError, "'own_estimators:Gab' was not found.*Gab"),
        ("own_broken:Gap", ValueError, "not found.*No module named 'nothing_like_this'"),
        ("own_estimators:number", TypeError, "estimator: .*got 3"),
        ("own_estimators:of_a_number", TypeError, "estimator: .*got 3"),
        ("fastece.estimators.losses:BrierScore", ValueError, "is no calibration error"),
        ("own_estimators:Unprepared", TypeError, "an object with prepare and evaluate"),
        ("own_estimators:with_arguments", ValueError, "not made: .*missing 1 required"),
        ("own_estimators:out_of_reach", ValueError, "not made: .*no such file"),
    ],
)
def test_other_objects_are_refused(tmp_path, path, error, message):
    with pytest.raises(error, match=message) as caught:
        import_estimator(path)
    assert str(caught.value).startswith("estimator: ")
    with pytest.raises(error, match=message):
        run_study(replace(SINGLE, estimators=(path,)), tmp_path / "out")
    with pytest.raises(ValueError, match="estimator: the name 'zero' is taken"):
        run_study(replace(SINGLE, estimators=("own_estimators:zero",)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("module")
def test_estimators_of_a_user_compete_on_the_same_draws():
    names = ("Slow", "ready", "Gap", "Narrow")
    design = replace(SINGLE, estimators=tuple(f"own_estimators:{name}" for name in names))
    which = design.distributions[0]
    estimates, _, _ = run_distribution(design, which)
    entrants = [candidate.name for candidate in candidates_of(design)]
    assert entrants == [*SIXTEEN, *names, "zero"]
    values = dict(zip(entrants, estimates.swapaxes(0, 1), strict=True))
    assert np.array_equal(values["ready"], values["ece_10"])  # Binned, by its subsets
    assert values["Slow"] == pytest.approx(values["ece_10"], abs=1e-15)
    assert values["Narrow"] == pytest.approx(values["Gap"], abs=1e-15)
    # Nobody is disturbed by them.
    alone, _, _ = run_distribution(SINGLE, which)
    assert np.array_equal(alone[:, :16], estimates[:, :16])
    again = cases.Replay(design, which)
    for i, size in enumerate(design.sizes):
        for j, row in enumerate(again.rows(size)):
            for s, setting in enumerate(design.settings):
                gaps = [
                    abs(fsum(y) - fsum(p)) / size for p, y, _, _ in again.problems(row, setting)
                ]
                assert values["Gap"][s, i, j] == pytest.approx(np.mean(gaps), abs=1e-14)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_estimator_that_fails_is_named(tmp_path, n_jobs):
    design = replace(SINGLE, estimators=("own_estimators:Failing",))
    message = (
        "estimator: 'Failing' failed on 3 classes, 2 features, mixture 0, naive_bayes, training 0, "
        "n = 10: ZeroDivisionError"
    )
    with pytest.raises(ValueError, match=message):
        run_study(design, tmp_path / "a", n_jobs=n_jobs)


@pytest.mark.slow
def test_estimators_of_a_user_are_found_by_processes(request, tmp_path, monkeypatch):
    # joblib keeps the processes of an earlier call, which know an older path.
    joblib = pytest.importorskip("joblib")
    joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-3) for _ in range(4))
    request.getfixturevalue("module")
    cases.with_quick_figures(monkeypatch.setattr)
    design = replace(
        SINGLE, models=("naive_bayes", "logistic_regression"), estimators=("own_estimators:Gap",)
    )
    alone = run_study(design, tmp_path / "one")
    spread = run_study(design, tmp_path / "two", n_jobs=2)
    assert spread.values.equals(alone.values)
    assert "Gap" in alone.summary["estimator"].to_pylist()
    assert "Gap" in str(alone)
