"""`python -m fencepost`: the command line."""

import sys

from fencepost.cli import main

sys.exit(main())
