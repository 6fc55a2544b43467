"""What the nursery starts: a script is compiled at every start, so the rest is in cell.start."""

import gc
import os
import sys

if sys.version_info < (3, 7):
    sys.exit(97)  # TOO_OLD of the nursery: such a Python cannot even compile the rest

gc.disable()  # what is imported stays
sys.path[0] = os.path.dirname(sys.path[0])

import cell  # noqa: E402, F401
import cloche_zygote  # noqa: E402, F401

del sys.path[0]  # nothing else is there, and every import would look

from cell.start import main  # noqa: E402

main()
