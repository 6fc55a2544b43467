import io
import os
import sys

for name in ("stdin", "stdout", "stderr"):
    s = getattr(sys, name)
    print(name, type(s).__name__, s.encoding, s.errors, s.line_buffering, s.write_through)
    print(s.isatty(), s.name, s.mode, s.newlines, s.fileno(), s.readable(), s.writable())
    print(type(s.buffer).__name__, s.buffer.name, s.buffer.mode, type(s.buffer.raw if hasattr(s.buffer, "raw") else s.buffer).__name__)
    print(getattr(sys, f"__{name}__") is s, s.seekable(), repr(s))
print(io.text_encoding(None), os.get_inheritable(0), os.get_inheritable(1), os.get_inheritable(2))
print(os.get_blocking(0), os.get_blocking(1), os.get_blocking(2))
