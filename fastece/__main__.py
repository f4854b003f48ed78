"""``python -m fastece`` is the command line."""

import sys

from fastece.cli import main

if __name__ == "__main__":
    sys.exit(main())
