"""The modules of this directory import one another by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
