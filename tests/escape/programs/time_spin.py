"""A loop in C that no signal handler of Python interrupts, with every signal blocked.

#! timeout_ms=700
#? status=timeout limit_hit=time
"""

import re
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
re.match(r"(a*)*b", "a" * 64)
