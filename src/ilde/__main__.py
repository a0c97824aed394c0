"""`python -m ilde`: the command line without an installed script."""

import sys

from ilde.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
