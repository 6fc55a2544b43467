"""Looks through all of its memory for what others left there: a word that every test plants.

#= found: []
#= looked at: enough
"""

import re

from attempt import says

pattern = re.compile(rb"CANARY-[0-9a-f]{32}")
found = set()
size = 0
with open("/proc/self/mem", "rb", 0) as memory, open("/proc/self/maps") as maps:
    for line in maps:
        span, mode = line.split()[:2]
        if not mode.startswith("r") or "[v" in line:
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        while start < end:
            try:
                memory.seek(start)
                data = memory.read(min(end - start, 1 << 20))
            except OSError:
                break
            found.update(pattern.findall(data))
            size += len(data)
            start += len(data)
says("found", sorted(found))
says("looked at", "enough" if size > 1 << 22 else size)
