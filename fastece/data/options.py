"""Options of reading: the names by which a caller says how arrays are read.

Public functions take them as ``**options: Unpack[ReadingKeywords]``, so that type checkers and
editors know them, and `shows_options` writes them into the signature. A function that takes only
some of them has a TypedDict of its own. It makes one object of them, by `reading_options`, or by
`split_options` beside parameters of an estimator, and hands it on.

Another option is a field of `ReadingOptions`, which `are_plain` asks for, a key of `RowKeywords`, a
line in the docstring of `fastece.ece`, and a section of ``docs/reference/input.md``.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, get_args

from fastece.data.parameters import unknown_option

F = TypeVar("F", bound=Callable[..., Any])


class RowKeywords(TypedDict, total=False):
    """All options but the setting, where it decides on the type of a result."""

    labels: Any
    pos_label: Any
    sample_weight: Any
    counts: Any
    from_logits: bool
    soft: bool
    votes: Any
    percent: bool
    ignore_label: Any
    class_axis: int | None


class ReadingKeywords(RowKeywords, total=False):
    """The options that every function which reads whole rows takes."""

    setting: str | int


class GroupKeyword(TypedDict, total=False):
    """The option of functions that answer for each group of rows by itself."""

    by: Any


class GroupedKeywords(ReadingKeywords, GroupKeyword, total=False):
    """All fields of `ReadingOptions` as keywords."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadingOptions:
    """How a caller's arrays are read; nothing has been checked.

    Attributes
    ----------
    setting : str or int
        Which probability is compared with which outcome.
    labels : sequence of K labels, or None
        The classes in the order of the columns.
    pos_label : label or None
        The class of a single column, or of column 1 of two.
    sample_weight : (n,) array_like or None
        Weights of the rows.
    counts : (n,) array_like or None
        How many independent rows each row stands for.
    from_logits : bool
        Whether predictions are logits.
    soft : bool
        Whether labels are shares.
    votes : (n,) array_like or None
        Number of votes, of which labels count some.
    percent : bool
        Whether predictions are percents.
    ignore_label : label or None
        The label whose rows are left out.
    class_axis : int or None
        The axis of the predictions that holds the classes; None where rows are the first axis.
    by : (n,) array_like, dict or frame of columns, or None
        The group of each row, each of which is answered for by itself.
    """

    setting: Any = "auto"
    labels: Any = None
    pos_label: Any = None
    sample_weight: Any = None
    counts: Any = None
    from_logits: Any = False
    soft: Any = False
    votes: Any = None
    percent: Any = False
    ignore_label: Any = None
    class_axis: Any = None
    by: Any = None

    @property
    def are_default(self) -> bool:
        """Whether no option is given, except a setting."""
        # Only options that the caller gave are attributes of an object of its own.
        options = vars(self)
        return self is DEFAULT_OPTIONS or (len(options) == 1 and "setting" in options)

    @property
    def are_plain(self) -> bool:
        """Whether no option is given, except a setting and weights."""
        if vars(self).keys() <= PLAIN_NAMES:  # which takes half of the time
            return True
        return (
            self.labels is self.pos_label is self.counts is self.votes is None
            and self.ignore_label is self.class_axis is self.by is None
            and self.from_logits is self.soft is self.percent is False
        )

    @property
    def given(self) -> dict[str, Any]:
        """The options by name that are not the default."""
        values = {name: getattr(self, name) for name in GROUPED_NAMES}
        return {name: x for name, x in values.items() if x is not getattr(DEFAULT_OPTIONS, name)}

    @property
    def beside_setting(self) -> dict[str, Any]:
        """The options by name, except the setting."""
        return {name: getattr(self, name) for name in GROUPED_NAMES if name != "setting"}


PLAIN_NAMES = {"setting", "sample_weight"}
DEFAULT_OPTIONS = ReadingOptions()
GROUPED_NAMES = tuple(ReadingOptions.__dataclass_fields__)
OPTION_NAMES = tuple(name for name in GROUPED_NAMES if name != "by")


def split_options(
    keywords: Mapping[str, Any], names: Sequence[str] = OPTION_NAMES
) -> tuple[ReadingOptions, dict[str, Any]]:
    """Separate the options of reading, of some names, from other keywords."""
    if not keywords:
        return DEFAULT_OPTIONS, {}
    given: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in keywords.items():
        if name in names:
            given[name] = value
        else:
            others[name] = value
    return make_options(given), others


def reading_options(keywords: Mapping[str, Any], taken: Any = ReadingKeywords) -> ReadingOptions:
    """Make the options of a function that takes the keys of a TypedDict alone."""
    check_names(keywords, taken)
    return make_options(keywords)


def make_options(given: Mapping[str, Any]) -> ReadingOptions:
    """Make the options of known names; all others have the defaults of the class.

    The constructor would set every field by itself, which takes 1.2 us in place of 0.3.
    """
    if not given:
        return DEFAULT_OPTIONS
    options = object.__new__(ReadingOptions)
    vars(options).update(given)
    return options


def check_names(keywords: Mapping[str, Any], taken: Any) -> None:
    """Refuse keywords that are no keys of a TypedDict."""
    for name in keywords:
        if name not in taken.__optional_keys__:
            known = [option for option in GROUPED_NAMES if option in taken.__optional_keys__]
            raise unknown_option(name, known)


def shows_options(function: F) -> F:
    """Show the options of reading in a signature, where `help` and editors look.

    The TypedDict of ``**options`` has their names. ``**options`` stays at the end of the signature
    if that TypedDict has other keys too.
    """
    signature = inspect.signature(function)
    *parameters, keywords = signature.parameters.values()
    (taken,) = get_args(keywords.annotation)
    parameters += [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
        for field in fields(ReadingOptions)
        if field.name in taken.__optional_keys__ and field.name not in signature.parameters
    ]
    if not taken.__optional_keys__ <= {*GROUPED_NAMES}:
        parameters.append(keywords.replace(annotation=inspect.Parameter.empty))
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
