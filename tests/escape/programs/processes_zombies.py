"""Children that nobody waits for, orphans that init inherits.

#= orphans: 200
#= zombies: 10
#? status=ok
"""

import os

from attempt import says

for _ in range(200):
    r, w = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.close(w)
    os.read(r, 1)  # the end of both
    os.close(r)
    os.wait()
says("orphans", 200)
for _ in range(10):
    if os.fork() == 0:
        os._exit(0)
says("zombies", 10)
