"""``python -m priorshift``: the command line."""

import sys

from priorshift.cli import main

if __name__ == "__main__":
    sys.exit(main())
