"""The longest turn of the loop that a call over MCP may cause, by what it asks and by what a
program says: see test_turns.py."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

from mcp_http import Mcp, file_uri
from test_turns_shown import KERNELS
from turns import LONGEST_S, Turns


@pytest.fixture
def mcp(port: int) -> Iterator[Mcp]:
    with Mcp(port, query="disk_mb=200&profile=base") as mcp:
        mcp.python("1")
        yield mcp


LIES = "from IPython.display import publish_display_data as p\n"
SAYS = {
    **{name: code for name, code in KERNELS.items() if "comm" not in name},
    "a million lines": "import os\nfor i in range(1000): os.write(1, b'x\\n' * 1000)",
    "4 MB of escapes": "import os\nos.write(1, b'\\x1b[31m' * 700_000)",
    "4 MB of returns": "import os\nos.write(1, b'a\\r' * 1_900_000)",
    "4 MB of backslashes": "import os\nos.write(1, b'\\\\' * 1_900_000)",
    "eight images of 1.4 MB": LIES
    + "for i in range(8): p({'image/png': 'iVBORw0KGgo' + 'A' * 1_400_001})",
    "images of 4 MB": LIES + "for i in range(7): p({'image/png': 'iVBORw0KGgo' + 'A' * 4_000_001})",
    "3,000 updates": "h = display(0, display_id=True)\nfor i in range(3_000): h.update(i)",
    "3,000 displays with names": "for i in range(3_000): display(i, display_id=str(i))",
    "a thousand files": "for i in range(1000): open('n' * 200 + str(i), 'w').close()",
    "an SVG of 3 MB": LIES + "p({'image/svg+xml': '<' * (3 << 20)})",
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_cell_says_takes_no_long_turn(mcp: Mcp, name: str) -> None:
    turns = Turns(mcp.port)
    answer = mcp.python(SAYS[name], timeout_s=30)
    assert len(answer.texts) <= 30_000
    for uri in answer.links:
        if uri.startswith("cloche://execution/"):
            mcp.resource(uri)
    assert turns.longest() <= LONGEST_S


def filled(mcp: Mcp, code: str) -> Mcp:
    assert not mcp.python(code, timeout_s=60).is_error
    return mcp


ASKS: dict[str, Callable[[Mcp], object]] = {
    "code of 3.9 MB": lambda mcp: mcp.python("#" + "x" * 3_900_000),
    "code of 1,300,000 lines": lambda mcp: mcp.python("1\n" * 1_300_000, timeout_s=1),
    "30,000 values in 60 kB": lambda mcp: mcp.send("x", {"_x": [1] * 30_000}),
    "50,000 objects": lambda mcp: mcp.send("x", {"_x": [{}] * 49_000}),
    "a batch of everything": lambda mcp: mcp.send("ping", {"_x": ["x" * 200] * 16_000}),
    "a file of 3.9 MB comes": lambda mcp: mcp.call("write_file", path="a", content="x" * 3_900_000),
    "3.9 MB of base64 come": lambda mcp: mcp.call(
        "write_file",
        path="a",
        encoding="base64",
        content=base64.b64encode(bytes(2_900_000)).decode(),
    ),
    "a file of 100 MB in one line": lambda mcp: filled(
        mcp, "with open('a', 'w') as f:\n    for i in range(100): f.write('x' * (1 << 20))"
    ).call("read_file", path="a"),
    "the last of 20 million lines": lambda mcp: filled(
        mcp, "with open('a', 'w') as f:\n    for i in range(20): f.write('x\\n' * 1_000_000)"
    ).call("read_file", path="a", offset=20_000_000),
    "a picture of 3 MB": lambda mcp: filled(
        mcp, "open('a', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(3_000_000))"
    ).call("read_file", path="a"),
    "a resource of 3 MB": lambda mcp: filled(
        mcp, "open('a', 'wb').write(bytes(3_000_000))"
    ).resource(file_uri("a")),
    "5,000 files": lambda mcp: filled(mcp, "for i in range(5_000): open(f'{i}', 'w').close()").call(
        "list_files"
    ),
    "20,000 variables": lambda mcp: filled(
        mcp, "globals().update({f'v{i}': i for i in range(20_000)})"
    ).call("sandbox", action="info"),
    "a command that prints 4 MB": lambda mcp: mcp.shell("head -c 4000000 /dev/zero | tr '\\0' x"),
}


@pytest.mark.parametrize("name", ASKS)
def test_what_a_call_asks_takes_no_long_turn(mcp: Mcp, name: str) -> None:
    turns = Turns(mcp.port)
    ASKS[name](mcp)
    assert mcp.python("1", reset=True).text == "1"
    assert turns.longest() <= LONGEST_S
