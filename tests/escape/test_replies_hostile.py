"""Clients that make the server say much and then do not listen, and programs that help them. What
waits for them is bounded, and whoever else asks is answered as before: no turn of the event loop
takes long, whatever is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deaths import kill_server
from harness import LiveService, Service, cloche_bin, eventually
from http_client import upload
from jupyter import Jupyter
from raw_http import Closed, Raw, ask, execute, heard, post, request, server_pid
from raw_ws import Socket
from test_live_hostile import TOOLS
from test_turns_many import read_by_somebody
from turns import many_descriptors

ASAN = "asan" in str(cloche_bin())
LONG_S = 0.25 if ASAN else 0.05  # a bound of the histogram; of processor time, whoever else has it
MB = 1 << 20
FILES = 4000
NAME = "\x01" * 1000
# Every byte of it is six in JSON.
LOUD = "import sys\nfor to in (sys.stdout, sys.stderr):\n    to.write('\\x01' * {size})"
Starter = Callable[..., Service]


def metrics(service: Service) -> dict[str, float]:
    service.drain()
    lines = ask(service, request("GET", "/metrics")).body.decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name.removeprefix("cloche_"): float(value) for name, value in pairs}


def long_turns(service: Service) -> float:
    now = metrics(service)
    under = f'loop_turn_cpu_seconds_bucket{{le="{LONG_S:g}"}}'
    return now["loop_turn_cpu_seconds_count"] - now[under]


def peak_mb(service: Service) -> float:
    text = Path(f"/proc/{server_pid(service)}/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


class Cost:
    """What something cost the server: memory at its most, and turns that were too long."""

    def __init__(self, service: Service) -> None:
        self.service = service
        Path(f"/proc/{server_pid(service)}/clear_refs").write_text("5")  # forgets the peak
        self.memory, self.turns = peak_mb(service), long_turns(service)

    def check(self, most_mb: float) -> None:
        assert long_turns(self.service) == self.turns, "a turn of the loop took long"
        grown = peak_mb(self.service) - self.memory
        assert ASAN or grown < most_mb, grown


@contextlib.contextmanager
def deaf(service: Service, n: int, asks: bytes) -> Iterator[list[Raw]]:
    """Clients that ask and do not read more than the beginning."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Raw(service)) for _ in range(n)]
        for client in clients:
            client.send(asks)
        for client in clients:
            client.until(b"\r\n\r\n")
        yield clients


def rest(client: Raw) -> Iterator[bytes]:
    """The chunks of a body."""
    return iter(client.chunk, b"")


def test_a_reply_is_made_as_it_is_read(start_service: Starter) -> None:
    """16 MB on both streams are 192 MB of JSON."""
    service = start_service("--profiles", "base", "--max-output-bytes", str(64 * MB))
    size = 16 * MB
    asked = {"code": LOUD.format(size=size), "timeout_ms": 60000}
    cost = Cost(service)
    with Raw(service, 120) as client:
        client.send(post("/v1/execute", {**asked, "limits": {"output_bytes": size}}))
        got = client.until(b"\r\n\r\n")
        assert b" 200 " in got, got
        loud = total = 0
        for chunk in rest(client):
            loud += chunk.count(b"1")
            total += len(chunk)
    assert total > 12 * size and loud >= 2 * size
    cost.check(2.5 * 16 + 32)  # what the program wrote, and a little for the rest


def test_a_large_reply_is_whole(start_service: Starter) -> None:
    """Cut anywhere: also between the bytes of a character, and of what is none."""
    service = start_service("--profiles", "base")
    text = "aä€😀\x01x".encode() + b"\x80"
    code = f"import sys\n_ = sys.stdout.buffer.write({text!r} * 60001)"
    reply = execute(service, code)
    want = text.decode(errors="replace") * 60001
    assert reply.json["stdout"] == want
    again = ask(service, request("GET", f"/v1/executions/{reply.json['id']}"))
    assert again.json["result"] == reply.json
    lines = ask(
        service, post("/v1/execute/batch", {"items": [{"code": code, "timeout_ms": 60000}] * 2})
    ).body
    for line in lines.splitlines():
        assert json.loads(line)["stdout"] == want


def test_clients_that_do_not_read_share_what_they_wait_for(start_service: Starter) -> None:
    service = start_service("--profiles", "base", "--max-output-bytes", str(64 * MB))
    asked = {"limits": {"output_bytes": 7 * MB}, "timeout_ms": 60000}
    with Raw(service) as client:
        client.send(post("/v1/execute", {"code": LOUD.format(size=7 * MB), **asked}))
        client.until(b"\r\n\r\n")
        made = json.loads(b"".join(rest(client)))
    cost = Cost(service)
    with deaf(service, 40, request("GET", f"/v1/executions/{made['id']}")) as clients:
        assert eventually(lambda: metrics(service)["replies_bytes"] > 14e6)
        assert metrics(service)["replies_bytes"] < 24e6
        cost.check(32)
        assert execute(service, "print(1)").json["stdout"] == "1\n"
        assert json.loads(b"".join(rest(clients[0])))["result"] == made
    assert eventually(lambda: metrics(service)["replies_bytes"] == 0)


def test_whoever_reads_least_is_cut_first(start_service: Starter) -> None:
    """Each waits for another program's output: more than all may hold."""
    service = start_service("--profiles", "base", "--replies-mb", "16")
    asked = {"code": LOUD.format(size=2 * MB), "limits": {"output_bytes": 2 * MB}}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Raw(service)) for _ in range(8)]
        for client in clients:
            client.send(post("/v1/execute", {**asked, "timeout_ms": 60000}))
            client.until(b"\r\n\r\n")
            assert metrics(service)["replies_bytes"] <= 16 * MB
        assert metrics(service)["replies_cut_total"] == 5
        for client in clients[:5]:
            with pytest.raises(Closed):
                sum(map(len, rest(client)))
        for client in clients[5:]:
            assert sum(map(len, rest(client))) > 24 * MB
    assert eventually(lambda: metrics(service)["replies_bytes"] == 0)


# ---------------------------------------------------------------------------- lists


def fill_store(store: Path, n: int) -> None:
    """As many more stored files, while the server is not there: with long names, six bytes a
    letter."""
    (meta,) = store.glob("*.meta.json")
    known = json.loads(meta.read_text())
    data = store / known["file_id"]
    data.chmod(0o644)
    for i in range(n):
        own = store / f"{i:08x}-0000-4000-8000-000000000000"
        when = known["upload_time"] - (i + 1) / 1000
        entry = {**known, "file_id": own.name, "upload_time": when, "filename": NAME}
        os.link(data, own)
        with open(f"{own}.meta.json", "wb", buffering=0) as file:
            file.write(json.dumps(entry).encode())


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with very many stored files."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as where:  # a disk takes minutes
        Path(where).chmod(0o711)
        store = Path(where) / "files"
        options = ("--profiles", "base", "--file-dir", str(store))
        first = Service(tmp_path_factory.mktemp("first"), *options)
        try:
            upload(first.port, "x", b"x")
            first.stop()
        finally:
            first.kill()
        fill_store(store, FILES - 1)
        second = Service(tmp_path_factory.mktemp("second"), *options)
        try:
            yield second
            second.stop()
        finally:
            second.kill()


def test_a_long_list_holds_nobody_up(many_files: Service) -> None:
    service = many_files
    cost = Cost(service)
    asks = request("GET", "/v1/files")
    with deaf(service, 20, asks), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Raw(service)) for _ in range(3)]
        for client in clients:
            client.send(asks)
        for client in clients:
            client.until(b"\r\n\r\n")
            files = json.loads(b"".join(rest(client)))["files"]
            assert len({file["file_id"] for file in files}) == FILES
    cost.check(24)


def test_files_that_go_while_they_are_listed(many_files: Service) -> None:
    """The list goes on behind them, and what was there all the time is in it."""
    service, gone = many_files, range(0, 200, 2)
    with deaf(service, 1, request("GET", "/v1/files")) as (client,):
        for i in gone:
            path = f"/v1/files/{i:08x}-0000-4000-8000-000000000000"
            assert ask(service, request("DELETE", path)).status == 204
        files = json.loads(b"".join(rest(client)))["files"]
    ids = [int(file["file_id"][:8], 16) for file in files[1:]]
    assert ids == sorted(ids), "newest first"
    assert set(range(FILES - 1)) - set(gone) <= set(ids)


def test_files_in_pages(many_files: Service) -> None:
    service = many_files
    seen: list[str] = []
    after = ""
    while True:
        page = ask(service, request("GET", f"/v1/files?limit=1500{after}")).json
        seen += [file["file_id"] for file in page["files"]]
        assert len(page["files"]) == 1500 or page["next"] is None
        if not page["next"]:
            break
        after = f"&after={page['next']}"
    assert seen == [f["file_id"] for f in ask(service, request("GET", "/v1/files")).json["files"]]
    (third,) = ask(service, request("GET", f"/v1/files?limit=1&after={seen[1]}")).json["files"]
    assert third["file_id"] == seen[2]
    assert ask(service, request("GET", "/v1/files?limit=0")).code == "bad_value"
    assert ask(service, request("GET", "/v1/files?limit=1&after=x")).code == "no_file"


# ---------------------------------------------------------------------------- WebSockets


def test_onlookers_that_do_not_read_share_what_they_wait_for(start_live: Starter) -> None:
    service = start_live("--profiles", "base")
    jupyter = Jupyter(service.port)
    ident = jupyter.kernel()
    path = f"/api/kernels/{ident}/channels"
    cost = Cost(service)
    with contextlib.ExitStack() as stack:
        onlookers = [stack.enter_context(Socket(service, path=path)) for _ in range(100)]
        with jupyter.open(ident) as runs:
            runs.ok("for n in range(6): print('x' * 1000000)")
            assert metrics(service)["replies_cut_total"] == 0
            cost.check(64)
            runs.ok("for n in range(12): print('x' * 1000000)")
            assert eventually(lambda: metrics(service)["replies_cut_total"] == 100), "8 MB each"
            assert len(onlookers) == 100
            cost.check(64)
        assert eventually(lambda: metrics(service)["replies_bytes"] < 8 * MB)


ONLOOKERS = 1_800
SAYS_MUCH = (
    TOOLS
    + """
input()
shown = event('display', data={}, metadata={}, display_id='x', update=True)
for i in range(2_000): say(shown)
open('done', 'w').close()
"""
)


def test_a_cell_from_an_earlier_server_waits_for_what_is_on_its_way(
    start_live: Callable[..., LiveService],
) -> None:
    """When it has said all, most of that has gone to everybody: a newcomer gets only the rest."""
    service = start_live("--profiles", "base", "--replies-mb", "1024")
    jupyter = Jupyter(service.port)
    ident = jupyter.kernel()
    path = f"/api/kernels/{ident}/channels?session_id="
    with heard(service), many_descriptors(), contextlib.ExitStack() as stack:
        with jupyter.open(ident, session="mine") as kernel:
            kernel.start(SAYS_MUCH)
            kernel.until(lambda m: m["msg_type"] == "input_request")
            kill_server(service)
        sockets = [
            stack.enter_context(Socket(service, path=path + str(i))) for i in range(ONLOOKERS)
        ]
        kernel = stack.enter_context(jupyter.open(ident, session="mine"))
        (box,) = jupyter.client.listed()["sandboxes"]
        done = f"/v1/sandboxes/{box['id']}/files/done"
        with read_by_somebody([*sockets, kernel.socket]):
            kernel.send("input_reply", {"value": ""}, "stdin")
            assert eventually(lambda: jupyter.ask("GET", done).status == 200, 300)
            with jupyter.open(ident) as newcomer:
                newcomer.ask("kernel_info_request")
                got = [m for m in newcomer.strays if m["msg_type"] == "update_display_data"]
                assert len(got) < 600
        jupyter.wipe()


def test_a_stream_to_one_who_does_not_read_is_bounded(start_service: Starter) -> None:
    """The program waits for its reader, and the server holds a little for each."""
    service = start_service("--profiles", "base")
    loud = {"code": "while True: print('x' * 10000)", "timeout_ms": 60000}
    loud |= {"limits": {"output_bytes": 64 * MB}}
    cost = Cost(service)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(Raw(service))
            client.send(post("/v1/execute/stream", loud)).until(b"xxxx")
        assert eventually(lambda: metrics(service)["replies_bytes"] > 3 * 250000)
        assert metrics(service)["replies_bytes"] < 3 * MB
        cost.check(96)  # with what is kept of each program's output
        assert execute(service, "print(1)").json["stdout"] == "1\n"


def test_the_output_of_a_running_command_is_shared(start_live: Starter) -> None:
    service = start_live("--profiles", "base")
    size, boxes = 2 * MB, "/v1/sandboxes"
    box = ask(service, post(boxes, {})).json["id"]
    loud = LOUD.format(size=size) + "\nsys.stdout.flush()\nimport time\ntime.sleep(1000)"
    asked = {"argv": ["python3", "-c", loud], "background": True}
    made = ask(service, post(f"{boxes}/{box}/commands", asked)).json["id"]
    look = request("GET", f"{boxes}/{box}/commands/{made}")
    assert eventually(lambda: len(ask(service, look).body) > 12 * size)
    cost = Cost(service)
    with deaf(service, 40, look) as clients:
        cost.check(32)
        shown = json.loads(b"".join(rest(clients[0])))
        assert shown["status"] == "running"
        assert shown["stdout"] == shown["stderr"] == "\x01" * size
    listed = ask(service, request("GET", f"{boxes}/{box}/commands?limit=1"))
    assert [one["id"] for one in listed.json["commands"]] == [made] and listed.json["next"] is None
    pages = request("GET", f"{boxes}/{box}/commands?limit=1&after={made}")
    assert ask(service, pages).json == {"commands": [], "next": None}
    pages = request("GET", f"{boxes}/{box}/kernels?limit=1&after=nobody")
    assert ask(service, pages).code == "bad_value"
    assert ask(service, request("DELETE", f"{boxes}/{box}")).status == 204
