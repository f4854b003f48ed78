"""Objects saved as JSON: every bit comes back, and another text is refused in one line."""

import math

import pytest

from fastece import InputError
from fastece.files.saved import SavedFormat

LAMP = SavedFormat("lamp", "fastece.lamp", 2)


def keep(content):
    return content


def test_saved_values_come_back_with_all_their_digits(tmp_path):
    content = {"power": 0.1 + 0.2, "name": "é", "empty": None, "sizes": [1, 2**53 + 1]}
    assert LAMP.from_text(LAMP.to_text(content), keep) == content
    LAMP.save(tmp_path / "lamp.json", content)
    assert LAMP.load(tmp_path / "lamp.json", keep) == content


@pytest.mark.parametrize("version", [1, 3])
def test_texts_of_other_versions_are_refused_with_both(version):
    text = f'{{"format": "fastece.lamp {version}", "power": 1}}'
    rule = f"^text: is a lamp of version {version}, and this fastece reads 2$"
    with pytest.raises(InputError, match=rule):
        LAMP.from_text(text, keep)


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
        '{"format": "fastece.other 2"}',
        '{"format": ["fastece.lamp 2"]}',
        '{"format": "fastece.lamp 1", "format": "fastece.lamp 2"}',
        '{"format": "fastece.lamp 2", "power": NaN}',
        '{"format": "fastece.lamp 2", "power": -Infinity}',
    ],
)
def test_other_texts_are_refused_in_one_line(text, tmp_path):
    with pytest.raises(InputError, match=r"^text: is no lamp that fastece has saved") as error:
        LAMP.from_text(text, keep)
    assert "\n" not in str(error.value)
    path = tmp_path / "lamp.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=r"lamp\.json: is no lamp") as error:
        LAMP.load(path, keep)
    assert (error.value.argument, error.value.place) == ("path", str(path))


def test_values_that_do_not_make_the_object_are_refused():
    text = LAMP.to_text({"power": "high"})
    with pytest.raises(InputError, match="is no lamp that fastece has saved: could not convert"):
        LAMP.from_text(text, lambda values: float(values["power"]))
    with pytest.raises(InputError, match="is no lamp that fastece has saved: 'size' is missing"):
        LAMP.from_text(text, lambda values: values["size"])


def test_constants_that_json_does_not_have_are_not_written():
    with pytest.raises(ValueError, match="JSON"):
        LAMP.to_text({"power": math.nan})
