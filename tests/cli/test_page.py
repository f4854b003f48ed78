"""Facts and tables of a page."""

import pytest

from fastece.cli.page import Page, table
from fastece.data.settings import SETTINGS
from fastece.report.words import question


def test_columns_are_aligned():
    lines = table(["error", "value", "estimator"], [["ece", "0.5", "A()"], ["ece_kde", "12", ""]])
    assert lines == ["  error    value  estimator", "  ece        0.5  A()", "  ece_kde     12"]


@pytest.mark.parametrize("setting", [*SETTINGS, "class 3", "class 3 ('cow')"])
def test_every_setting_asks_a_question(setting):
    assert question(setting, False).startswith(f"{setting}: ")
    assert "?" in question(setting, False)


def test_a_question_names_the_label_of_the_caller():
    assert question("binary ('churn')", False) == (
        "binary ('churn'): does 'churn' come as often as its probability?"
    )
    assert "predicted class" in question("binary", True)


def test_a_picture_is_named_at_the_end():
    page = Page("text", {"n": 1}).with_file("plot", "a.png")
    assert page == ("text\n\npicture: a.png", {"n": 1, "plot": "a.png"})
