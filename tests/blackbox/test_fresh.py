"""Every execution is fresh: nothing of another one, and no randomness in common."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import Engine


RANDOM = {
    "random": "import random; print(random.random(), random.getrandbits(64))",
    "random.Random": "import random; print(random.Random().random())",
    "uuid4": "import uuid; print(uuid.uuid4())",
    "uuid1": "import uuid; print(uuid.uuid1())",
    "secrets": "import secrets; print(secrets.token_hex())",
    "os.urandom": "import os; print(os.urandom(16))",
    "ssl": "import ssl; print(ssl.RAND_bytes(16))",
    "tempfile": "import tempfile; print(tempfile.mkdtemp(), tempfile.mktemp())",
    "numpy global": "import numpy as np; print(np.random.rand(), np.random.randint(1 << 60))",
    "numpy default_rng": "import numpy as np; print(np.random.default_rng().random())",
    "numpy RandomState": "import numpy as np; print(np.random.RandomState().rand())",
    "authkey": "import multiprocessing as m; print(m.current_process().authkey.hex())",
}


@pytest.mark.parametrize("source", RANDOM)
def test_randomness_differs_between_executions(engine: Engine, source: str) -> None:
    runs = 6
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(engine.execute, RANDOM[source], timeout_ms=60000) for _ in range(runs)]
        outcomes = [job.result() for job in jobs]
    assert [o.stderr for o in outcomes] == [b""] * runs
    values = [value for o in outcomes for value in o.stdout.split()]
    assert len(values) == len(set(values))


def test_a_seed_still_decides(engine: Engine) -> None:
    code = (
        "import random, numpy as np; random.seed(1); np.random.seed(1)\n"
        "print(random.random(), np.random.rand())"
    )
    outcomes = {engine.execute(code, timeout_ms=60000).stdout for _ in range(3)}
    assert outcomes == {b"0.13436424411240122 0.417022004702574\n"}


POISON = """
import atexit, builtins, locale, os, random, signal, subprocess, sys, tempfile, types
builtins.print_canary = 'CANARY-1'
sys.modules['canary'] = types.ModuleType('canary')
sys.path.insert(0, '/canary')
sys.meta_path.append(None)
os.environ['CANARY'] = 'CANARY-2'
os.umask(0)
sys.setrecursionlimit(77)
random.random = lambda: 0.5
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for where in ('/workspace', '/tmp', '/dev/shm'):
    open(where + '/canary', 'w').write('CANARY-3')
os.mkdir('/tmp/matplotlib-canary')
held = ['CANARY-4' * 1000 for _ in range(1000)]
subprocess.Popen(['sleep', '1000'], start_new_session=True)
os._exit(0)
"""
CLEAN = """
import builtins, os, random, signal, sys
print(hasattr(builtins, 'print_canary'), 'canary' in sys.modules, '/canary' in sys.path)
print(None in sys.meta_path, 'CANARY' in os.environ, oct(os.umask(0o22)), sys.getrecursionlimit())
print(type(random.random).__name__, signal.getsignal(signal.SIGUSR1).name)
print([os.listdir(w) for w in ('/workspace', '/tmp', '/dev/shm')])
print([p for p in os.listdir('/proc') if p.isdigit() and 'sleep' in open(f'/proc/{p}/comm').read()])
"""


def test_nothing_of_an_earlier_program_is_visible(engine: Engine) -> None:
    before = engine.execute(CLEAN)
    assert before.stderr == b""
    for _ in range(4):
        assert engine.execute(POISON).exit_status == 0
        assert engine.execute(CLEAN).stdout == before.stdout
    first, second, third, files, sleepers = before.stdout.decode().splitlines()
    assert (first, second) == ("False False False", "False False 0o22 1000")
    assert third == "builtin_function_or_method SIG_DFL"
    assert files == "[['__main__.py'], [], []]"
    assert sleepers == "[]"


def test_two_programs_at_once_do_not_see_each_other(engine: Engine) -> None:
    code = "open('mine', 'x').write('a'); open('/tmp/mine', 'x').write('b'); print('ok')"
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: engine.execute(code), range(8)))
    assert [o.stdout for o in outcomes] == [b"ok\n"] * 8
