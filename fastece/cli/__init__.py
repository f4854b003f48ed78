"""The command line: ``fastece report FILE``, ``compare A B`` and other commands."""

from fastece.cli.commands import main as main
