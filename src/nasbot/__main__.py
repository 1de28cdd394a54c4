"""``python -m nasbot`` is the command ``nasbot``."""

import sys

from nasbot.cli import main

if __name__ == "__main__":
    sys.exit(main())
