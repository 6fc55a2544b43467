"""Standard streams and the control socket closed or swapped: the execution ends. The argument says
which.

#! open_files=1024
"""

import os
import socket
import sys

what = sys.argv[1]
if what == "closed":
    os.closerange(0, 2000)
elif what == "control closed":
    os.close(1000)
elif what == "control is standard output":
    os.dup2(1, 1000)
elif what == "control is null":
    os.dup2(os.open("/dev/null", os.O_RDWR), 1000)
elif what == "control blocks":
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    try:
        while True:
            ours.send(bytes(65536))
    except BlockingIOError:
        pass
    ours.setblocking(True)
    os.dup2(ours.fileno(), 1000)
    os.dup(theirs.fileno())  # stays open when its object is gone
elif what == "streams are the control":
    for fd in (0, 1, 2):
        os.dup2(1000, fd)
    print("this is no frame", flush=True)
elif what == "streams swapped":
    os.dup2(0, 9)
    os.dup2(1, 0)
    os.dup2(9, 1)
elif what == "executed":
    os.execv("/bin/true", ["true"])
else:
    raise SystemExit(f"what is {what}?")
