"""What sockets do, a row each: `name: outcome`. Run natively on the test internet's host and in a
sandbox that may reach all of it, it must print the same but for the rows that test_semantics.py
names. semantics.py --list prints the rows, each with the connects that it costs at most (a sandbox
has a burst of 100), semantics.py [ROW…] runs only these."""


import signal
import sys

import semantics_connecting  # noqa: F401
import semantics_waiting  # noqa: F401
import semantics_bytes  # noqa: F401
import semantics_beside  # noqa: F401
from semantics_base import rows


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{function.__name__} {cost}" for function, cost in rows))
        return
    for function, _ in rows:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        try:
            outcome = function()
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(f"{function.__name__}: {outcome}", flush=True)


main()
