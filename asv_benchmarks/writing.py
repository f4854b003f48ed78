"""How times and tables are written in Markdown, and put into pages between two comments."""

import re
from collections.abc import Iterable, Mapping, Sequence

# Seconds in a unit of time, and its name.
UNITS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
# A page has the text NAME between these two comments.
BLOCK = re.compile(r"(<!-- speed ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write_seconds(seconds: float) -> str:
    """Write a time with three digits, in the largest unit that does not exceed it."""
    size, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    number = seconds / size
    # Limits at which rounding adds a digit before the point.
    if number >= 99.5:
        return f"{number:.0f} {unit}"
    if number >= 9.95:
        return f"{number:.1f} {unit}"
    return f"{number:.2f} {unit}"


def write_nanoseconds(nanoseconds: float) -> str:
    """Write nanoseconds with a decimal below 10."""
    return f"{nanoseconds:.0f} ns" if nanoseconds >= 10 else f"{nanoseconds:.1f} ns"


def write_ratio(ratio: float) -> str:
    """Write a ratio with two digits, or with all digits before the point."""
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:.0f}x"


def write_count(count: int) -> str:
    """Write a number of rows with a space before each group of three digits."""
    return f"{count:,}".replace(",", " ")


def write_table(
    text_heads: Sequence[str], number_heads: Sequence[str], lines: Iterable[Sequence[str]]
) -> str:
    """Write a table whose first columns are texts, and whose other columns are numbers."""
    ruler = ["---"] * len(text_heads) + ["---:"] * len(number_heads)
    rows = [[*text_heads, *number_heads], ruler, *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def blocks_of(page: str) -> set[str]:
    """Return the names of the texts that a page has between comments."""
    return {name for _, name, _ in BLOCK.findall(page)}


def fill_blocks(page: str, texts: Mapping[str, str]) -> str:
    """Return a page in which the texts between comments are replaced."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{texts[block[2]]}\n\n{block[3]}", page)
