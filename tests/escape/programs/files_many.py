"""A million tiny files end at the inodes of the sandbox; the reply is bounded.

#= files: refused ENOSPC
#= made: about twenty thousand
#? status=ok limit_hit=disk
"""

import os

from attempt import attempt, says

made = 0


def many():
    global made
    for directory in range(1000):
        os.mkdir(f"d{directory}")
        for name in range(1000):
            os.close(os.open(f"d{directory}/{name}", os.O_CREAT | os.O_WRONLY))
            made += 1


attempt("files", many)
says("made", "about twenty thousand" if 19_000 < made < 20_100 else made)
