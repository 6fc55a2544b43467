import os


def nothing():
    """Holds the globals, and they it: so the collector ends the file."""


file = os.fdopen(os.dup(1), "w")
file.write("written at the end\n")
print("body done", flush=True)
