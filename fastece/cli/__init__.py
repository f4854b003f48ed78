"""The command line: ``fastece report FILE``, ``compare A B`` and what else there is."""

from fastece.cli.commands import main as main
