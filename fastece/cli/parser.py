"""The parser of the command line, made of the descriptions that commands register."""

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any, NoReturn

from fastece import __version__
from fastece.cli.options import FORMS, HEADS, OUTPUT, SHARED, TEXT, Command
from fastece.cli.registry import SUMMARIES, load_command, options_by_command
from fastece.data.errors import to_printable

# A command or an option that is not known, in a message of argparse.
UNKNOWN = re.compile(r"(?<=invalid choice: ')\w+|(?<=unrecognized arguments: )--[\w-]+")
# How alike a known name must be to be proposed; 1 is equal.
MIN_SIMILARITY = 0.75


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line, with the parsers of commands by their names."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.command_parsers: dict[str, Parser] = {}

    def error(self, message: str) -> NoReturn:
        """Print one line on stderr, with the nearest known name, and exit with 2."""
        unknown = UNKNOWN.search(message)
        hint = hint_for(unknown[0]) if unknown else "fastece --help"
        line = to_printable(" ".join(message.split()))
        self.exit(2, f"fastece: error: {line} ({hint})\n")


def hint_for(word: str) -> str:
    """Write which command has an option, or which name is nearest to an unknown word."""
    names = {
        command: [x.name for x in options] for command, options in options_by_command().items()
    }
    option_names = dict.fromkeys(chain(*names.values()))
    nearest = get_close_matches(word, [*SUMMARIES, *option_names, *FORMS], 1, MIN_SIMILARITY)
    if not nearest:
        return "fastece --help"
    name = nearest[0]
    if name != word:
        return f"did you mean {name}?"
    commands = [command for command, options in names.items() if name in options]
    return f"{name} is of {', '.join(commands)}"


def parse_words(words: Sequence[str]) -> argparse.Namespace | None:
    """Read a command line, whose files may stand before and after options.

    Return None if it names no command, after the help is printed.
    """
    parser = make_parser(words)
    if words and words[0] in SUMMARIES:
        command_parser = parser.command_parsers[words[0]]
        return command_parser.parse_intermixed_args(words[1:], argparse.Namespace(command=words[0]))
    options = parser.parse_args(words)
    if options.command is not None:
        return options
    parser.print_help()
    return None


def make_parser(words: Sequence[str]) -> Parser:
    """Make the parser of a command line; only the command among its words has options."""
    parser = Parser(prog="fastece", description="Calibration errors of classifiers.")
    parser.add_argument("--version", action="version", version=f"fastece {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command")
    typed = next((word for word in words if word in SUMMARIES), None)
    for name, summary in SUMMARIES.items():
        command_parser = subparsers.add_parser(name, help=summary)
        parser.command_parsers[name] = command_parser
        if name == typed:
            add_command(command_parser, load_command(name))
    return parser


def add_command(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the files and options of a command to its parser.

    Shared options that it lacks are None.
    """
    parser.description = command.description
    groups = {head: parser.add_argument_group(head) for head in HEADS}
    for file in command.files:
        groups[HEADS[0]].add_argument(file.attribute, metavar=file.metavar, nargs=file.nargs)
    for option in command.options:
        groups[option.head].add_argument(option.name, **option.keywords)
    for name, form in FORMS.items():
        groups[OUTPUT].add_argument(
            name, action="store_const", const=form, default=TEXT, dest="form", help=form.help
        )
    attributes = {option.attribute for option in command.options}
    lacking = {option.attribute for option in SHARED} - attributes
    parser.set_defaults(**dict.fromkeys(lacking))
