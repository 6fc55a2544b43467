"""`cloche mcp`: an MCP server on stdin and stdout, between a client and a server of cloche, or one
that it starts for itself. Raw lines, as clients send them and as they do not."""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deaths import kill_server
from harness import LiveService, clean_env, cloche_bin, eventually, failed, run_cli, settled
from host import is_alive
from http_client import ask, get
from live import Client
from mcp_http import ERAS, LEGACY, MODERN, Failure
from mcp_stdio import Stdio
from raw_http import KeyedService

IN_BASE = ("--profile", "base")
LOOP = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"
WAIT = """
import os, time
print("begun", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("gone on")
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    bound = tmp_path_factory.mktemp("bound")
    bound.chmod(0o777)
    service = LiveService(
        tmp_path_factory.mktemp("mcp"), "--profiles", "base", "--bind-allow", f"{bound}:rw"
    )
    service.bound = bound  # type: ignore[attr-defined]
    yield from settled(service)


def boxes(service: LiveService) -> list[str]:
    return [box["id"] for box in get(service.port, "/v1/sandboxes").json["sandboxes"]]


@pytest.fixture
def service(shared: LiveService) -> Iterator[LiveService]:
    """Whatever a test made is gone with its processes, but for what it named."""
    yield shared
    for box in boxes(shared):
        ask(shared.port, "DELETE", f"/v1/sandboxes/{box}")


def own_directories() -> set[str]:
    places = {os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"), "/tmp"}
    return {path for place in places if place for path in glob.glob(f"{place}/cloche-mcp-*")}


# ---------------------------------------------------------------------------- what it passes on


@pytest.mark.parametrize("era", ERAS)
def test_state_stays_from_call_to_call(service: LiveService, era: str) -> None:
    with Stdio(era=era, server=service.url) as it:
        assert it.text("x = 41") == ""
        assert it.text("print(x + 1)") == "42"
        names = [tool["name"] for tool in it.ask("tools/list")["tools"]]
        assert "run_python" in names and "run_shell" in names
        assert it.call("run_python", code="1/0").is_error


def test_both_eras_in_one_process(service: LiveService) -> None:
    with Stdio(era=LEGACY, server=service.url) as it:
        it.text("x = 1")
        it.era = MODERN
        assert "2026-07-28" in it.ask("server/discover")["supportedVersions"]
        assert it.text("print(x)") == "1"
        it.era = LEGACY
        assert it.text("print(x)") == "1"
        assert it.ask("ping") == {}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_versions_are_spoken(service: LiveService, version: str) -> None:
    with Stdio(server=service.url) as it:
        me = {"name": "test", "version": "0"}
        it.era = LEGACY
        given = it.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=me)
        assert given["protocolVersion"] == version
        it.notify("notifications/initialized")
        assert it.text("print(6 * 7)") == "42"


@pytest.mark.parametrize("era", ERAS)
def test_requests_do_not_wait_for_each_other(service: LiveService, era: str) -> None:
    with Stdio(era=era, server=service.url) as it:
        slow = it.start("run_python", code=WAIT)
        assert it.until_method("notifications/progress")["params"]["progressToken"] == "prun_python"
        it.call("write_file", path="go", content="")
        assert not any(message.get("id") == slow for message in it.seen)
        assert "gone on" in str(it.answer(slow))


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_is_taken_back_ends(service: LiveService, era: str) -> None:
    with Stdio(era=era, server=service.url) as it:
        it.text("x = 1")
        endless = it.start("run_python", code=LOOP)
        it.until_method("notifications/progress")
        it.notify("notifications/cancelled", requestId=endless, reason="enough")
        assert it.text("print(x)") == "1"  # the kernel is free again, and the same
        assert not any(message.get("id") == endless for message in it.seen)


def test_a_question_of_the_sandbox_reaches_the_user(service: LiveService) -> None:
    can: dict[str, object] = {"elicitation": {}}
    with Stdio(era=LEGACY, server=service.url, can=can) as it:
        number = it.start("run_python", code="print('hello', input('who? '))")
        question = it.until_method("elicitation/create")
        assert "who?" in question["params"]["message"]
        (name,) = question["params"]["requestedSchema"]["properties"]
        content = {"action": "accept", "content": {name: "Ada"}}
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": content}
        it.write(json.dumps(reply).encode())
        assert "hello Ada" in str(it.answer(number))


def test_a_modern_client_answers_with_the_same_call(service: LiveService) -> None:
    with Stdio(server=service.url, can={"elicitation": {}}) as it:
        arguments = {"code": "print('hello', input('who? '))"}
        asked = it.ask("tools/call", name="run_python", arguments=arguments)
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        (name,) = question["params"]["requestedSchema"]["properties"]
        given = {key: {"action": "accept", "content": {name: "Ada"}}}
        state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
        answer = it.ask(
            "tools/call", name="run_python", arguments=arguments, inputResponses=given, **state
        )
        assert "hello Ada" in str(answer)


# ---------------------------------------------------------------------------- lines that are wrong


@pytest.mark.parametrize(
    "line, code, number",
    [
        (b"garbage", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,', -32700, None),
        (b'"text"', -32700, None),
        (b'{"a":1,"a":2}', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 10000, -32700, None),
        (b'{"jsonrpc":"2.0","id":"a","method":"no/such"}', -32601, "a"),
    ],
)
def test_garbage_is_answered_and_forgotten(
    service: LiveService, line: bytes, code: int, number: object
) -> None:
    with Stdio(era=LEGACY, server=service.url) as it:
        it.write(line)
        message = it.read()
        assert (message["error"]["code"], message.get("id")) == (code, number)
        assert it.ask("ping") == {}


@pytest.mark.parametrize("behind", [False, True])
def test_a_line_that_is_too_long_has_an_answer(service: LiveService, behind: bool) -> None:
    with Stdio(era=LEGACY, server=service.url) as it:
        front, back = (
            ('{"x":"', '","id":"it \\" is"}') if behind else ('{"id":"it \\" is","x":"', '"}')
        )
        it.write(front.encode() + b"y" * (5 << 20) + back.encode())
        message = it.read()
        assert message["id"] == 'it " is' and message["error"]["code"] == -32600
        assert "4194304" in message["error"]["message"]
        assert it.ask("ping") == {}


def test_a_long_line_goes_through_both_ways(service: LiveService) -> None:
    with Stdio(server=service.url) as it:
        text = "é" * 600_000
        assert not it.call("write_file", path="long", content=text).is_error
        assert it.text("print(len(open('long').read()))") == "600000"


def test_the_last_line_needs_no_newline(service: LiveService) -> None:
    with Stdio(server=service.url) as it:
        assert it.process.stdin
        it.process.stdin.write(it.message("tools/list", {}, "last"))
        assert it.process.stdin
        it.process.stdin.close()
        assert "tools" in it.answer("last")
        assert it.process.wait() == 0


# ---------------------------------------------------------------------------- servers that are not


def test_no_server_is_an_answer(tmp_path: Path) -> None:
    with Stdio(server=f"unix:{tmp_path}/none") as it:
        for _ in range(2):
            with pytest.raises(Failure, match="no server answers at unix:") as caught:
                it.ask("tools/list")
            assert caught.value.code == -32603
        assert it.leave() == 0


def test_a_missing_key_is_told(keyed_service: KeyedService) -> None:
    with Stdio(server=keyed_service.url) as it:
        with pytest.raises(Failure, match="CLOCHE_API_KEY"):
            it.ask("tools/list")
    key = {"CLOCHE_API_KEY": keyed_service.key}
    with Stdio(server=keyed_service.url, env=key) as it:
        assert it.ask("tools/list")["tools"]


@pytest.mark.parametrize("era", ERAS)
def test_the_server_is_killed_between_two_calls(service: LiveService, era: str) -> None:
    with Stdio(era=era, server=service.url) as it:
        it.text("x = 41")
        kill_server(service)
        assert it.text("print(x + 1)") == "42"


# ---------------------------------------------------------------------------- how it ends


@pytest.mark.parametrize("how", ["eof", "INT", "TERM", "HUP"])
def test_its_sandbox_goes_with_it(service: LiveService, how: str) -> None:
    with Stdio(server=service.url) as it:
        it.text("x = 1")
        assert len(boxes(service)) == 1
        it.start("run_python", code=LOOP)
        it.until_method("notifications/progress")
        if how == "eof":  # waits for the answer, which a signal does not
            it.notify("notifications/cancelled", requestId=2)
            assert it.leave() == 0
        else:
            number = getattr(signal, f"SIG{how}")
            assert it.end(number) == 128 + number
        assert boxes(service) == []


def test_a_sandbox_that_has_a_name_stays(service: LiveService) -> None:
    with Stdio("--sandbox", "mine", server=service.url) as it:
        it.text("x = 41")
        assert it.leave() == 0
    with Stdio("--sandbox", "mine", server=service.url) as it:
        assert it.text("print(x + 1)") == "42"


def test_answers_are_awaited_at_the_end_of_stdin(service: LiveService) -> None:
    with Stdio(server=service.url) as it:
        number = it.send("tools/call", name="run_python", arguments={"code": "print(6 * 7)"})
        assert it.process.stdin
        it.process.stdin.close()
        assert "42" in str(it.answer(number))
        assert it.process.wait() == 0
    assert boxes(service) == []


def test_nobody_reads_any_more(service: LiveService) -> None:
    with Stdio(server=service.url) as it:
        it.text("x = 1")
        it.start("run_python", code=LOOP)
        it.until_method("notifications/progress")
        assert it.process.stdout
        it.process.stdout.close()
        it.process.stdout = None
        assert it.process.wait() == 0
    assert boxes(service) == []


# ---------------------------------------------------------------------------- a server of its own


def test_it_starts_a_server_for_itself() -> None:
    before = own_directories()
    with Stdio(*IN_BASE) as it:
        it.text("x = 41")
        assert it.text("print(x + 1)") == "42"
        family = it.family()
        assert {"cloche", "cloche-server", "cloche-warden"} <= {process.role for process in family}
        assert len(own_directories() - before) == 1
        assert it.leave() == 0
        assert not any(is_alive(process) for process in family)
    assert own_directories() <= before


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_its_server_goes_with_it(sig: int) -> None:
    before = own_directories()
    with Stdio(*IN_BASE) as it:
        it.text("x = 1")
        family = it.family()
        it.end(sig)
        assert eventually(lambda: not any(is_alive(process) for process in family))
        assert eventually(lambda: own_directories() <= before)


def test_its_server_is_killed_between_two_calls() -> None:
    with Stdio(*IN_BASE) as it:
        it.text("x = 41")
        (server,) = (process for process in it.family() if process.role == "cloche-server")
        os.kill(server.pid, signal.SIGKILL)
        assert it.text("print(x + 1)") == "42"


def test_its_server_cannot_start() -> None:
    before = own_directories()
    done = run_cli("mcp", env=clean_env(CLOCHE_CGROUP="v3"), stdin=b"")
    assert done.returncode == 125 and done.stdout == b""
    assert b'CLOCHE_CGROUP is "v3"' in done.stderr and b"did not start" in done.stderr
    assert own_directories() <= before


def test_a_server_that_runs_is_used(service: LiveService) -> None:
    here = {"CLOCHE_SOCKET": str(service.socket), "CLOCHE_PORT": str(service.port)}
    with Stdio(env=here | {"CLOCHE_HTTP": "on"}) as it:
        it.text("x = 1")
        assert len(boxes(service)) == 1
        assert not any(process.role == "cloche-server" for process in it.family())
        assert it.leave() == 0
    assert boxes(service) == []


# ---------------------------------------------------------------------------- options


def test_options_reach_the_sandbox(service: LiveService, tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# a comment\n\nB=from a file\nA=not this\n")
    words = ("--memory", "300", "--env", "A=1=2", "--container-env-file", str(file))
    with Stdio(*words, *IN_BASE, server=service.url) as it:
        it.text("x = 1")
        (box,) = Client(service.port).listed()["sandboxes"]
        assert (box["limits"]["memory_mb"], box["profile"]) == (300, "base")
        assert it.text("import os; print(os.environ['A'], os.environ['B'])") == "1=2 from a file"


def test_a_directory_of_the_host(service: LiveService) -> None:
    bound = service.bound  # type: ignore[attr-defined]
    (bound / "in").write_text("seen")
    with Stdio("--container-bind", f"{bound}:data", server=service.url) as it:
        assert it.text("print(open('data/in').read())") == "seen"
        it.text("open('data/out', 'w').write('written')")
    assert (bound / "out").read_text() == "written"


def test_what_the_options_mean_for_a_server_of_its_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    words = ("--memory", "5000", "--bind", f"{tmp_path}:data", "--allowed-domain", "pypi.org")
    with Stdio(*words, *IN_BASE, "--container-tag", "any") as it:
        it.text("open('data/out', 'w').write('written')")
        info = it.call("sandbox", action="info").text
        assert "pypi.org" in info, info
        it.leave()
        assert "--container-tag means nothing here" in it.errors()
    assert (tmp_path / "out").read_text() == "written"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--tools", "some"], ("--tools", "core, files, ipybox or all")),
        (["--sandbox", "a b"], ("--sandbox", "letters, digits and -")),
        (["--profile", "\x1b[31m"], ("--profile", "x1b[31m", "a-z, digits, _ and -")),
        (["--container-env-var", "A"], ("NAME=VALUE",)),
        (["--env-file", "/none"], ("/none", "no such file")),
        (["--bind", "/tmp"], ("HOST:PATH",)),
        (["--tools", "ipybox", "--allowed-dir", "/none"], ("/none", "no such file")),
        (["--memory", "x"], ("--memory",)),
        (["--client", "cursor"], ("cloche mcp config",)),
        (["config", "--client", "some"], ("claude-desktop",)),
        (["serve"], ("serve",)),
        (["--shell"], ("no option",)),
    ],
)
def test_a_command_line_that_is_wrong(
    service: LiveService, words: list[str], said: tuple[str, ...]
) -> None:
    failed(run_cli("mcp", *words, env=clean_env(CLOCHE_SERVER=service.url)), *said)


# ---------------------------------------------------------------------------- ipybox's file tools


@pytest.mark.parametrize("era", ERAS)
def test_files_of_the_clients_machine(service: LiveService, era: str, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (allowed / "in.bin").write_bytes(bytes(range(256)) * 20000)
    (other / "secret").write_text("secret")
    (allowed / "link").symlink_to(other / "secret")
    words = ("--tools", "ipybox", "--allowed-dir", str(allowed))
    with Stdio(*words, era=era, server=service.url) as it:
        names = {tool["name"] for tool in it.ask("tools/list")["tools"]}
        assert names == {"execute_ipython_cell", "reset", "upload_file", "download_file"}

        def move(tool: str, relpath: str, local: Path) -> str:
            answer = it.call(tool, relpath=relpath, local_path=str(local))
            assert answer.is_error == bool(answer.content), answer
            return answer.texts

        assert move("upload_file", "data/a b.bin", allowed / "in.bin") == ""
        code = "print(len(open('data/a b.bin', 'rb').read()))"
        assert it.call("execute_ipython_cell", code=code).texts.strip() == "5120000"
        assert move("download_file", "data/a b.bin", allowed / "new" / "out.bin") == ""
        assert (allowed / "new" / "out.bin").read_bytes() == bytes(range(256)) * 20000
        head = "Error executing tool upload_file: "
        assert move("upload_file", "x", other / "secret").startswith(head + "Path '")
        assert "is not within allowed" in move("upload_file", "x", allowed / "link")
        assert move("upload_file", "x", allowed / "none").startswith(head + "File not found: ")
        assert "is not within allowed" in move("download_file", "x", allowed / ".." / "y")
        assert move("download_file", "none", allowed / "z")
        assert not (allowed / "z").exists() and sorted(os.listdir(allowed)) == [
            "in.bin",
            "link",
            "new",
        ]


def test_other_sets_have_no_such_tools(service: LiveService) -> None:
    with Stdio(server=service.url) as it:
        assert "upload_file" not in str(it.ask("tools/list"))
        with pytest.raises(Failure):
            it.call("upload_file", relpath="x", local_path="/etc/passwd")


# ---------------------------------------------------------------------------- what to paste


def config(*words: str) -> str:
    done = run_cli("mcp", "config", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def json_of(text: str) -> list[dict[str, object]]:
    """The objects between the lines that begin with #."""
    parts = "\n".join("\0" if line.startswith("#") else line for line in text.split("\n"))
    return [json.loads(part) for part in parts.split("\0") if part.strip().startswith("{")]


@pytest.mark.parametrize(
    "client, servers",
    [("claude-desktop", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")],
)
def test_config_of_clients_with_json(client: str, servers: str) -> None:
    stdio, over_http = json_of(config("--client", client, "--sandbox", "a", "--network=none"))
    entry = stdio[servers]["cloche"]  # type: ignore[index]
    assert entry["command"] == str(cloche_bin())
    assert entry["args"] == ["mcp", "--sandbox", "a", "--network=none"]
    assert "http://127.0.0.1:8000/mcp?sandbox=a&network=none" in json.dumps(over_http)


def test_config_is_for_the_server_that_is_named() -> None:
    words = ["--tools", "all"]
    text = config("--server", "https://box.example/cloche/", *words)
    assert text.count("https://box.example/cloche/mcp?tools=all") == 5
    for found in json_of(text):
        servers = found.get("servers") or found["mcpServers"]
        entry = servers["cloche"]  # type: ignore[index]
        if entry.get("args", ["npx"])[0] == "mcp":
            assert entry["args"] == ["mcp", "--server", "https://box.example/cloche/", *words]


def test_config_for_a_shell_survives_it(tmp_path: Path) -> None:
    line = config("--client", "claude-code", "--env", "A=it's $HOME").split("\n")[1]
    asked = line.replace("claude mcp add cloche --", "printf '%s\\n'")
    done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1:4] == ["mcp", "--env", "A=it's $HOME"]
