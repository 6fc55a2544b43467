"""What the nursery starts: a script is compiled at every start, so the rest is in cell.start."""

import os
import sys

if sys.version_info < (3, 7):
    sys.exit(97)  # TOO_OLD of the nursery: such a Python cannot even compile the rest

sys.path[0] = os.path.dirname(sys.path[0])

from cell.start import main  # noqa: E402

main()
