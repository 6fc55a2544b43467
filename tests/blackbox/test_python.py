"""Python behaves as it does under plain python3: the cases that people meet first."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import LONG, Engine
from plain_python import normal, plain


THREADS = (
    "import threading\n"
    "t = [threading.Thread(target=print, args=(k,)) for k in range(3)]\n"
    "for x in t: x.start(); x.join()"
)
LINGER = (
    "import threading, time\n"
    "def late():\n    time.sleep(0.2); print('late')\n"
    "threading.Thread(target=late).start()\nprint('main done')"
)
DAEMON = (
    "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    "print('bye')"
)
ASYNCIO = (
    "import asyncio\nasync def f(k):\n    await asyncio.sleep(0.01 * k); return k\n"
    "async def main():\n    print(await asyncio.gather(*map(f, range(4))))\nasyncio.run(main())"
)
SUBPROCESS = (
    "import subprocess, sys\n"
    "print(subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout)\n"
    "print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], stdout=-1).stdout)\n"
    "print(subprocess.run('exit 3', shell=True).returncode)"
)
MULTI = (
    "import multiprocessing as mp\n"
    "def f(x): return x * x\n"
    "if __name__ == '__main__':\n"
    "    with mp.get_context('{method}').Pool(2) as p:\n"
    "        print(p.map(f, range(5)))\n"
)
ATEXIT = (
    "import atexit\n"
    "atexit.register(print, 'first registered')\n"
    "atexit.register(print, 'second')\n"
    "print('body')"
)
BEHAVIOURS = {
    "threads": (THREADS, "0\n1\n2\n"),
    "non-daemon threads finish": (LINGER, "main done\nlate\n"),
    "daemon threads do not hold the end": (DAEMON, "bye\n"),
    "asyncio": (ASYNCIO, "[0, 1, 2, 3]\n"),
    "subprocess": (SUBPROCESS, "hi\n\nb'42\\n'\n3\n"),
    "multiprocessing fork": (MULTI.format(method="fork"), "[0, 1, 4, 9, 16]\n"),
    "multiprocessing spawn": (MULTI.format(method="spawn"), "[0, 1, 4, 9, 16]\n"),
    "multiprocessing forkserver": (MULTI.format(method="forkserver"), "[0, 1, 4, 9, 16]\n"),
    "atexit in reverse order": (ATEXIT, "body\nsecond\nfirst registered\n"),
    "atexit after sys.exit": (
        ATEXIT + "\nimport sys; sys.exit(3)",
        "body\nsecond\nfirst registered\n",
    ),
    "encoding": (
        "import sys; print('ü€🌱', sys.stdout.encoding, sys.getfilesystemencoding())",
        "ü€🌱 utf-8 utf-8\n",
    ),
    "output that was never flushed": ("import sys; sys.stdout.write('tail')", "tail"),
}


@pytest.mark.parametrize("what", BEHAVIOURS)
def test_behaves_as_under_python3(engine: Engine, what: str) -> None:
    code, expected = BEHAVIOURS[what]
    result = engine.run(code, memory=512, **LONG)
    assert (result.stdout, result.stderr) == (expected, "")


TRACEBACKS = {
    "plain": "1/0",
    "nested": "def f(n):\n    if n:\n        return f(n - 1)\n    raise ValueError('deep')\n\nf(3)",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('b') from e",
    "during handling": "try:\n    {}['a']\nexcept KeyError:\n    raise RuntimeError('b')",
    "in a library": "import json\njson.loads('{')",
    "syntax error": "x = 1\nif x\n    pass",
    "indentation error": "def f():\nreturn 1",
    "recursion": "def f(): f()\nf()",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError('t')])",
    "notes": "e = ValueError('x')\ne.add_note('a note')\nraise e",
    "in a thread": "from threading import *\ndef f(): raise KeyError(1)\nThread(target=f).start()",
    "carets": "a = {'x': {'y': None}}\nprint(a['x']['y']['z'] + 1)",
    "unprintable": "class E(Exception):\n    def __str__(self): raise TypeError\nraise E",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "system exit message": "import sys\nsys.exit('a message')",
}


@pytest.mark.parametrize("what", TRACEBACKS)
def test_the_traceback_is_python3s(engine: Engine, tmp_path: Path, what: str) -> None:
    expected = plain(TRACEBACKS[what], tmp_path)
    done = engine.cli("--timeout", "60", "-c", TRACEBACKS[what])
    assert normal(done.stderr) == normal(expected.stderr, tmp_path)
    assert done.stdout == expected.stdout
