"""The command line as ``python -m fastece``."""

import sys

from fastece.cli import main

if __name__ == "__main__":
    sys.exit(main())
