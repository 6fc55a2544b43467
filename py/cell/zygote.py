"""What the nursery starts: a script is compiled at every start, so the rest is in cell.start."""

import os
import sys

sys.path[0] = os.path.dirname(sys.path[0])

from cell.start import main  # noqa: E402

main()
