"""The table of settings."""

import re

import numpy as np
import pytest

from fastece.data.source import SETTINGS, Setting, class_count, find_setting


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_found_by_name(name):
    assert SETTINGS[name].name == name
    assert find_setting(name, (5,)) is find_setting(name, (5, 2)) is SETTINGS[name]


def test_the_top_label_alone_has_a_support_of_its_own():
    assert [name for name, row in SETTINGS.items() if row.is_top] == ["confidence"]
    assert [name for name, row in SETTINGS.items() if row.per_class] == ["classwise"]
    assert not find_setting(0, (5, 3)).is_top


def test_a_class_index_is_one_class_against_the_rest():
    for index in (2, np.int64(2), np.uint8(2)):
        assert find_setting(index, (5, 3)) == Setting("class 2", column=2)
    assert find_setting(1, (5,)) == Setting("class 1", column=1)


def test_probabilities_of_the_positive_class_are_of_two_classes():
    assert (class_count((5,)), class_count((5, 2)), class_count((5, 7))) == (2, 2, 7)


@pytest.mark.parametrize(
    ("setting", "shape", "message"),
    [
        ("top", (5,), "setting: must be a known name, got 'top'"),
        (None, (5,), "setting: must be a known name, got None"),
        (True, (5, 3), "setting: must be a known name, got True"),
        (1.0, (5, 3), "setting: must be a known name, got 1.0"),
        (3, (5, 3), "setting: "),
        (-1, (5, 3), "setting: "),
        (2, (5,), "setting: "),
        ("binary", (5, 3), "setting: 'binary' needs P(positive) or 2 columns"),
    ],
)
def test_other_settings_are_refused(setting, shape, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        find_setting(setting, shape)
