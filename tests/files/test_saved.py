"""Objects saved as JSON: every bit comes back, and another text is refused in one line."""

import math

import pytest

from fastece import InputError
from fastece.files.saved import SavedFormat

NUMBERED = SavedFormat("lamp", "fastece.lamp", 2)
PLAIN = SavedFormat("lamp", "fastece.lamp 1", None)


def keep(content):
    return content


def test_saved_values_come_back_with_all_their_digits(tmp_path):
    content = {"power": 0.1 + 0.2, "name": "é", "empty": None, "sizes": [1, 2**53 + 1]}
    for saved_format, header in ((NUMBERED, {"version": 2}), (PLAIN, {})):
        assert saved_format.from_text(saved_format.to_text(content), keep) == {**header, **content}
        saved_format.save(tmp_path / "lamp.json", content)
        assert saved_format.load(tmp_path / "lamp.json", keep) == {**header, **content}


def test_texts_of_earlier_versions_are_read():
    assert NUMBERED.from_text('{"format": "fastece.lamp", "version": 1}', keep) == {"version": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "no json",
        "[" * 10_000,
        "{}",
        b"\xff\xfe\x00",
        '{"format": "fastece.lamp"}',
        '{"format": "fastece.lamp", "version": 3}',
        '{"format": "fastece.lamp", "version": true}',
        '{"format": "fastece.other", "version": 1}',
        '{"format": ["fastece.lamp"], "version": 1}',
        '{"format": "fastece.lamp", "version": 1, "version": 2}',
        '{"format": "fastece.lamp", "version": 1, "power": NaN}',
        '{"format": "fastece.lamp", "version": 1, "power": -Infinity}',
    ],
)
def test_other_texts_are_refused_in_one_line(text, tmp_path):
    with pytest.raises(InputError, match=r"^text: is no lamp that fastece has saved") as error:
        NUMBERED.from_text(text, keep)
    assert "\n" not in str(error.value)
    path = tmp_path / "lamp.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=r"lamp\.json: is no lamp") as error:
        NUMBERED.load(path, keep)
    assert (error.value.argument, error.value.place) == ("path", str(path))


def test_values_that_do_not_make_the_object_are_refused():
    text = NUMBERED.to_text({"power": "high"})
    for make in (lambda content: float(content["power"]), lambda content: content["size"]):
        with pytest.raises(InputError, match="is no lamp"):
            NUMBERED.from_text(text, make)


def test_constants_that_json_does_not_have_are_not_written():
    with pytest.raises(ValueError, match="JSON"):
        NUMBERED.to_text({"power": math.nan})
