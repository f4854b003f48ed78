"""Designs of simulated studies: their size, their parts, and wrong ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fastece.study import PRESETS, Design, preset
from fastece.study.distributions import MODELS
from helpers.study_cases import FIFTEEN, TINY


def test_the_paper_has_its_size():
    paper = preset("paper")
    assert paper == Design()
    assert len(paper.distributions) == len(set(paper.distributions)) == 540
    assert len(paper.sizes) == 20
    assert (paper.sizes[0], paper.sizes[-1]) == (30, 500)
    ratios = np.diff(np.log(paper.sizes))
    assert ratios == pytest.approx(np.full(19, np.log(500 / 30) / 19), abs=0.02)
    assert (paper.holdout, paper.draws, paper.train_size) == (200_000, 200, 300)
    assert paper.settings == ("confidence", "classwise")
    evaluations = 540 * 20 * 200 * 2 * len(FIFTEEN)
    assert evaluations == 64_800_000
    assert set(MODELS) == set(paper.models)
    assert len(paper.models) == 4


def test_presets_and_their_changes():
    assert set(PRESETS) == {"quick", "paper"}
    assert preset("quick", draws=7, holdout=None).draws == 7
    assert preset("quick", holdout=None) == PRESETS["quick"]
    assert preset("paper", holdout=2_000_000).holdout == 2_000_000
    assert preset("paper", largest=5000).sizes[-1] == 5000
    with pytest.raises(ValueError, match=r"preset: .* got 'full'; known: 'quick', 'paper'"):
        preset("full")
    with pytest.raises(ValueError, match="draws: must be an integer from 2"):
        preset("quick", draws=1)


def test_a_design_goes_through_json():
    design = replace(TINY, estimators=("a:b",), convention="published")
    assert Design(**json.loads(json.dumps(design.to_dict()))) == design
    assert hash(Design(classes=[2, 5])) == hash(Design(classes=(2, 5)))


def test_sizes_are_distinct_and_increase():
    assert replace(TINY, smallest=10, largest=12, n_sizes=20).sizes == (10, 11, 12)
    assert replace(TINY, smallest=10, largest=10, n_sizes=5).sizes == (10,)
    assert replace(TINY, n_sizes=1).sizes == (10,)


def test_random_numbers_depend_on_their_purpose_and_on_nothing_else():
    design = Design()
    first = design.rng(4, 2, 1, 0, 30).random(3)
    assert np.array_equal(replace(design, draws=7).rng(4, 2, 1, 0, 30).random(3), first)
    for other in (
        design.rng(3, 2, 1, 0, 30),
        design.rng(4, 2, 1, 0, 31),
        design.rng(4, 2, 0, 1, 30),
        replace(design, seed=1).rng(4, 2, 1, 0, 30),
    ):
        assert not np.isin(other.random(3), first).any()


WRONG = [
    ({"classes": (1,)}, "classes: must be an integer from 2 to 1000, got 1"),
    ({"classes": ()}, r"classes: must be a list of some, got \(\)"),
    ({"features": (0,)}, "features: must be an integer from 1"),
    ({"models": "naive_bayes"}, "models: must be a list of some, got 'naive_bayes'"),
    ({"models": ("bayes",)}, "models: .* got 'bayes'; known: 'logistic_regression'"),
    ({"models": []}, "models: must be a list"),
    ({"settings": ("binary",)}, "settings: .* got 'binary'"),
    ({"settings": ("macro",)}, "settings: .* got 'macro'; known: "),
    ({"convention": "paper"}, "convention: .* got 'paper'; known: 'corrected', 'published'"),
    ({"convention": None}, "convention: .* got None"),
    ({"mixtures": 0}, "mixtures: must be an integer from 1"),
    ({"trainings": 0}, "trainings: must be an integer from 1"),
    ({"train_size": 9}, "train_size: must be an integer from 10"),
    ({"holdout": 999}, "holdout: must be an integer from 1000"),
    ({"smallest": 1}, "smallest: must be an integer from 2"),
    ({"n_sizes": 0}, "n_sizes: must be an integer from 1"),
    ({"draws": 1}, "draws: must be an integer from 2"),
    ({"seed": -1}, "seed: must be an integer from 0"),
    ({"largest": 29}, r"largest: must be from smallest \(30\) to holdout \(200000\), got 29"),
    ({"largest": 1001, "holdout": 1000}, r"largest: .* to holdout \(1000\), got 1001"),
    ({"estimators": "a:b"}, "estimators: must be a list of some, got 'a:b'"),
    # These would count distributions or curves twice.
    ({"classes": (2, 2)}, "classes"),
    ({"models": ("naive_bayes", "naive_bayes")}, "models"),
    ({"settings": ("confidence", "confidence")}, "settings"),
    ({"draws": 2.5}, "draws: must be an integer, got 2.5"),
    ({"draws": True}, "draws: must be an integer, got True"),
    ({"seed": None}, "seed: must be an integer"),
    ({"classes": (2.0,)}, "classes: must be an integer, got 2.0"),
    ({"classes": 2}, "classes"),
    ({"estimators": (3,)}, "estimators"),
]


def test_wrong_designs_are_refused():
    for changes, message in WRONG:
        with pytest.raises((ValueError, TypeError), match=message):
            Design(**changes)
