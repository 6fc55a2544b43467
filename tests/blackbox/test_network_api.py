"""What may be asked for of the network, and what is told of it. Nothing leaves the machine: what is
granted is an address for documentation, and what programs try is refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api_execute import samples
from harness import LiveService, Service, eventually, failed, run_cli, settled
from http_client import ask
from live import Box, Client, error

GRANTED = "@pypi 198.51.100.0/24 *.example.org:443"
REFUSED = "198.51.100.9"

TRY = f"""
import socket
try:
    socket.create_connection(("{REFUSED}", 81), 5)
except OSError as e:
    print(type(e).__name__, e.errno)
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--network", GRANTED)
    yield from settled(LiveService(tmp_path_factory.mktemp("network"), *options))


@pytest.fixture
def client(service: LiveService) -> Client:
    return Client(service.port)


def execute(client: Client, code: str = "pass", **fields: Any) -> Any:
    reply = client.ask("POST", "/v1/execute", {"code": code, "profile": "base", **fields})
    assert reply.status == 200, reply
    return reply.json


def network(box: Box) -> Any:
    return box.get("/network")


# ---------------------------------------------------------------------------- asking


BAD: list[tuple[Any, str]] = [
    (["pypi.org:443", "a..b"], "network[1]"),
    ({"allow": ["pypi.org:443", {"domain": "pypi.org", "ports": [0]}]}, "network.allow[1]"),
    ({"allow": ["*"]}, "network.allow[0]"),
    ({"allow": ["a.*.org"]}, "network.allow[0]"),
    ({"allow": ["198.51.100.1/33"]}, "network.allow[0]"),
    ({"allow": ["@nobody"]}, "network.allow[0]"),
    ({"allow": [], "deny": ["pypi.org"]}, "network.deny[0]"),
    ({"allow": ["pypi.org"], "connections": 1000}, "network.connections"),
    ({"allow": ["pypi.org"], "refuse": "never"}, "network.refuse"),
    ({"allow": ["pypi.org"], "colour": "red"}, "colour"),
    ({"allow": ["pypi.org"] * 300}, "network.allow"),
    (7, "network"),
    ("pypi.org:99999", "network[0]"),
]


@pytest.mark.parametrize(("policy", "word"), BAD, ids=[str(b[0])[:40] for b in BAD])
def test_what_cannot_be_read_names_its_entry(client: Client, policy: Any, word: str) -> None:
    for path, body in (
        ("/v1/execute", {"code": "1", "network": policy}),
        ("/v1/sandboxes", {"network": policy}),
    ):
        reply = client.ask("POST", path, body)
        error(reply, 422, "network_rule_invalid", word)
        assert word in str(reply.json["detail"])


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        ("open", "open"),
        (["pypi.org:443", "example.com"], "example.com"),
        (["pypi.org:80"], "pypi.org:80"),
        (["198.51.0.0/16"], "198.51.0.0/16"),
        ({"allow": ["sub.example.org:443"], "strict_tls": False}, "strict_tls"),
    ],
)
def test_what_is_not_granted_is_named(client: Client, policy: Any, word: str) -> None:
    reply = client.ask("POST", "/v1/execute", {"code": "1", "network": policy})
    error(reply, 403, "network_not_allowed", word)


def test_without_a_maximum_nothing_is_granted(
    live_service: LiveService,
) -> None:
    client = Client(live_service.port)
    reply = client.ask("POST", "/v1/execute", {"code": "1", "network": ["pypi.org"]})
    error(reply, 403, "network_not_allowed")
    assert execute(client, "print(1)", network="none")["stdout"] == "1\n"
    assert live_service.info() and client.ask("GET", "/v1/info").json["network"] | {"up": 0} == {
        "granted": "none",
        "key": None,
        "sets": ["@pypi", "@npm", "@debian"],
        "up": 0,
        "problem": None,
    }
    with client.box() as box:
        error(box.ask("PUT", "/network", "open"), 403, "network_not_allowed")
        error(box.ask("PATCH", "", {"network": ["pypi.org"]}), 403, "network_not_allowed")
        assert box.ask("PUT", "/network", "none").json == "none"


def test_every_form_that_a_policy_may_have(client: Client) -> None:
    forms: list[tuple[Any, Any]] = [
        ("none", "none"),
        (None, "none"),
        ([], "none"),
        (["198.51.100.1"], {"allow": ["198.51.100.1"]}),
        ("198.51.100.1:80,443 @pypi", None),
        ({"allow": [{"cidr": "198.51.100.0/25", "ports": [80, "8000-8010"]}]}, None),
    ]
    for asked, shown in forms:
        with client.box(network=asked) as box:
            got = network(box)
            assert got == box.get()["network"]
            assert shown is None or got == shown or (asked == [] and got == {"allow": []}), got


# ---------------------------------------------------------------------------- in force


def test_a_refusal_is_told_where_it_happened(client: Client) -> None:
    result = execute(client, TRY, network=["198.51.100.1"], timeout_ms=20000)
    assert result["stdout"] == "PermissionError 13\n", result
    (told,) = result["denied"]
    assert told["op"] == f"connect to {REFUSED} port 81"
    assert "198.51.100.1" in told["detail"] and f"{REFUSED}:81" in told["detail"]
    assert told["rule"] == "network:default-deny"
    (row,) = result["usage"]["network"]
    assert row == {
        "rule": "network:default-deny",
        "connections": 0,
        "refused": 1,
        "bytes_out": 0,
        "bytes_in": 0,
    }


def test_without_a_network_all_is_as_it_was(client: Client) -> None:
    forms: list[dict[str, Any]] = [{}, {"network": "none"}, {"network": None}]
    for more in forms:
        result = execute(client, TRY, timeout_ms=20000, **more)
        assert result["stdout"] == "OSError 101\n", result
        assert [d["rule"] for d in result["denied"]] == ["network:none"]
        assert "network" not in result["usage"]


def test_a_batch_and_a_stream_have_it_too(client: Client) -> None:
    item = {"code": TRY, "network": ["198.51.100.1"], "profile": "base", "timeout_ms": 20000}
    reply = client.ask("POST", "/v1/execute/batch", {"items": [item, item | {"network": "open"}]})
    lines = [json.loads(line) for line in reply.body.splitlines()]
    by = {line["index"]: line for line in lines}
    assert "PermissionError" in json.dumps(by[0]), by
    assert "network_not_allowed" in json.dumps(by[1]), by
    reply = client.ask("POST", "/v1/execute/stream", item)
    assert b"PermissionError" in reply.body and b"network:default-deny" in reply.body


def test_another_policy_counts_for_the_next_connect(client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box:
        assert box.run(TRY)["stdout"] == "PermissionError 13\n"
        assert box.ask("PUT", "/network", "none").json == "none"
        assert box.run(TRY)["stdout"] == "OSError 101\n"
        asked = {"allow": ["198.51.100.1"], "refuse": "unreachable"}
        assert box.ask("PUT", "/network", asked).json == asked
        assert box.run(TRY)["stdout"] == "OSError 101\n"
        reply = box.ask("PATCH", "", {"network": ["198.51.100.2"]})
        assert reply.json["network"] == {"allow": ["198.51.100.2"]} == network(box)
        assert box.run(TRY)["stdout"] == "PermissionError 13\n"
        error(box.ask("PUT", "/network", ["example.com"]), 403, "network_not_allowed")
        error(box.ask("PUT", "/network", {"allow": [1]}), 422, "network_rule_invalid", "allow[0]")
        assert network(box) == {"allow": ["198.51.100.2"]}
        assert box.ask("PUT", "/network", {"network": "none"}).json == "none"


def test_one_that_was_made_without_gets_one_later(client: Client) -> None:
    with client.box() as box:
        assert network(box) == "none" and box.run(TRY)["stdout"] == "OSError 101\n"
        assert box.ask("PUT", "/network", ["198.51.100.1"]).status == 200
        result = box.run(TRY)
        assert result["stdout"] == "PermissionError 13\n"
        assert [row["refused"] for row in result["usage"]["network"]] == [1]
        assert box.run("pass")["usage"]["network"] == []


def test_a_wildcard_over_everybody_is_spoken_of(start_live: Callable[..., LiveService]) -> None:
    client = Client(start_live("--profiles", "base", "--network", "open").port)
    assert "*.com" in execute(client, network=["*.com"])["warnings"][0]
    with client.box(network=["*.co.uk"]) as box:
        assert box.made["network"]["broad"] == ["*.co.uk"]
        reply = box.ask("PUT", "/network", ["*.com", "*.example.com"])
        assert reply.json == {"allow": ["*.com", "*.example.com"], "broad": ["*.com"]}
        assert box.ask("PUT", "/network", reply.json).json == reply.json


def test_a_bad_change_changes_nothing(client: Client) -> None:
    with client.box(network=["198.51.100.1"]) as box:
        reply = box.ask("PATCH", "", {"ttl_seconds": 77, "network": ["example.com"]})
        error(reply, 403, "network_not_allowed")
        assert box.get()["ttl_seconds"] != 77


def test_what_is_told_to_operators(service: LiveService, client: Client) -> None:
    before = samples(service)
    result = execute(client, TRY, network=["198.51.100.1"], timeout_ms=20000)
    found = eventually(
        lambda: [one for one in audit(service) if one.get("execution") == result["id"]][:2]
    )
    assert {one.get("network") for one in found} >= {f"{REFUSED} port 81"}, found
    (line,) = [one for one in found if "network" in one]
    assert line["refused"] and line["rule"] == "network:default-deny"
    assert line["tenant"] == "default"

    def counted() -> bool:
        now = samples(service)
        names = ("cloche_network_asks_total", "cloche_network_refused_total")
        return all(now[name, ""] > before[name, ""] for name in names)

    assert eventually(counted)
    assert samples(service)["cloche_network_up", ""] == 1


def audit(service: LiveService) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (service.state / "audit.log").read_text().splitlines()]


# ---------------------------------------------------------------------------- keys, settings


def test_a_key_narrows_what_the_server_grants(
    tmp_path_factory: pytest.TempPathFactory, start_live: Callable[..., LiveService]
) -> None:
    directory = tmp_path_factory.mktemp("keys")
    directory.chmod(0o711)
    file = directory / "keys.json"
    words = {"narrow": ("--network", "198.51.100.1"), "wide": ("--network", "open"), "usual": ()}
    secrets = {
        name: run_cli("key", "add", name, *more, "--keys", file).stdout.decode().strip()
        for name, more in words.items()
    }
    listed = json.loads(run_cli("key", "list", "--json", "--keys", file).stdout)["keys"]
    assert [key["network"] for key in listed] == ["198.51.100.1", "open", None]
    service = start_live("--profiles", "base", "--keys", str(file), "--network", "198.51.100.0/24")
    clients = {n: Client(service.port, Authorization=f"Bearer {s}") for n, s in secrets.items()}

    def status(name: str, policy: Any) -> int:
        body = {"code": "1", "network": policy}
        return clients[name].ask("POST", "/v1/execute", body).status

    assert [status(name, ["198.51.100.1"]) for name in words] == [200, 200, 200]
    assert [status(name, ["198.51.100.2"]) for name in words] == [403, 200, 200]
    assert [status(name, "open") for name in words] == [403, 403, 403]
    assert clients["narrow"].ask("GET", "/v1/info").json["network"]["key"] == "198.51.100.1"


def test_a_key_with_rules_that_cannot_be_read_is_not_made(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    failed(run_cli("key", "add", "a", "--network", "a..b", "--keys", file), "--network[0]")
    assert not file.exists()
    failed(run_cli("key", "list", "--network", "none", "--keys", file), "for add only")


@pytest.mark.parametrize(
    ("flag", "value", "word"),
    [
        ("--network", "pypi.org,a..b", "network[1]"),
        ("--network-sets", '{"x": ["1.2.3.4/99"]}', "x[0]"),
        ("--network-sets", "[]", "network_sets"),
        ("--network-deny", "pypi.org", "network_deny[0]"),
        ("--network-resolvers", "dns.example.org", "network_resolvers"),
        ("--ipybox-allowed-domains", "a..b", "ipybox_allowed_domains[0]"),
        ("--ipybox-allowed-domains", "pypi.org", "ipybox_allowed_domains"),
    ],
)
def test_a_setting_that_cannot_be_read_names_its_entry(flag: str, value: str, word: str) -> None:
    failed(run_cli("serve", flag, value, "--port", "0"), word)


def test_sets_and_denied_ranges_of_the_operator(start_service: Callable[..., Service]) -> None:
    sets = json.dumps({"corp": ["198.51.100.0/24", "git.example.org:443"]})
    service = start_service(
        "--profiles", "base", "--network", "@corp", "--network-sets", sets,
        "--network-deny", f"{REFUSED}/32",
    )  # fmt: skip
    client = Client(service.port)
    result = execute(client, TRY, network=["@corp"], timeout_ms=20000)
    assert result["stdout"] == "PermissionError 13\n"
    assert [d["rule"] for d in result["denied"]] == ["network:operator"], result
    assert "@corp" in client.ask("GET", "/v1/info").json["network"]["sets"]


def test_what_is_granted_changes_while_it_runs(
    tmp_path_factory: pytest.TempPathFactory, start_live: Callable[..., LiveService]
) -> None:
    directory = tmp_path_factory.mktemp("reload")
    directory.chmod(0o711)
    config = directory / "cloche.json"
    profiles: dict[str, Any] = {"data": None}
    config.write_text(json.dumps({"profiles": profiles, "network": ["198.51.100.0/24"]}))
    service = start_live("--config", str(config))
    client = Client(service.port)

    def granted(policy: Any) -> bool:
        body = {"code": "1", "profile": "base", "network": policy}
        return client.ask("POST", "/v1/execute", body).status == 200

    assert granted(["198.51.100.1"]) and not granted(["203.0.113.1"])
    with client.box(network=["198.51.100.1"]) as box:
        config.write_text(json.dumps({"profiles": profiles, "network": "203.0.113.0/24"}))
        service.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: granted(["203.0.113.1"]))
        assert not granted(["198.51.100.1"])
        assert network(box) == {"allow": ["198.51.100.1"]}
        config.write_text(json.dumps({"profiles": profiles, "network": ["a..b"]}))
        service.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: service.drain() and "network[0]" in service.text())
        assert granted(["203.0.113.1"])


# ---------------------------------------------------------------------------- the command line


def test_cloche_run_has_it(service: LiveService) -> None:
    for where in (("--server", service.url), ("--socket", str(service.socket))):
        done = run_cli("run", *where, "--network", "198.51.100.1", "-c", TRY)
        assert done.stdout == b"PermissionError 13\n", done
        failed(run_cli("run", *where, "--network", "example.com", "-c", "1"), "not granted")
        failed(run_cli("run", *where, "--network", "a..b", "-c", "1"), "network[0]")


def test_a_private_engine_grants_what_its_program_asks_for() -> None:
    done = run_cli("run", "--profile", "base", "--network", "198.51.100.1", "-c", TRY)
    assert done.stdout == b"PermissionError 13\n", done
    failed(run_cli("run", "--profile", "base", "--network", "a..b", "-c", "1"), "network[0]")
    limited = run_cli(
        "run", "--profile", "base", "--network", "open", "-c", "1", env={"CLOCHE_NETWORK": "none"}
    )
    failed(limited, "no network is granted")


def test_the_verb_that_shows_and_changes_it(service: LiveService) -> None:
    def sandbox(verb: str, *words: str) -> Any:
        return run_cli("sandbox", verb, "--server", service.url, *words)

    name = sandbox("create", "--network", "198.51.100.1:80,443,pypi.org:443").stdout.decode()[:-1]
    try:
        shown = json.loads(sandbox("network", name).stdout)
        assert shown == {"allow": ["198.51.100.1:80,443", "pypi.org:443"]}
        more = sandbox("network", name, "--allow", "198.51.100.2", "--allow", "@pypi").stdout
        assert json.loads(more)["allow"][0] == "198.51.100.2"
        assert sandbox("network", name, "--none").stdout == b'"none"\n'
        assert b"network       none" in sandbox("show", name).stdout
        failed(sandbox("network", name, "--open"), "not granted")
        failed(sandbox("network", name, "--open", "--none"), "exclude")
    finally:
        sandbox("delete", name)


# ---------------------------------------------------------------------------- dialects


def test_sandbox_runtime_sessions_have_what_the_operator_says(
    start_live: Callable[..., LiveService],
) -> None:
    service = start_live(
        "--profiles", "base", "--network", "198.51.100.1", "--runtime-allow-network", "true"
    )
    client = Client(service.port)
    run = {"command": f"python3 -c '{TRY}'".replace('"', '\\"').replace("'", '"')}
    asked = {
        "usual": ({}, "PermissionError 13"),
        "without": ({"allow_network": False}, "OSError 101"),
        "named": ({"network": ["198.51.100.1:80"]}, "PermissionError 13"),
    }
    for name, (fields, expected) in asked.items():
        path = f"/workspace/se/session/{name}"
        assert client.ask("POST", path, fields).status == 200
        got = client.ask("POST", f"/workspace/se/execute/{name}", run).json
        assert expected in got["stdout"], got
        assert client.ask("DELETE", path, {}).status == 200
    refused = client.ask("POST", "/workspace/se/session/x", {"network": "open"})
    assert refused.status == 403 and "network_not_allowed" in str(refused.json)
    code = "def handler(event):\n" + "".join(f"    {line}\n" for line in TRY.splitlines())
    reply = client.ask("POST", "/workspace/se/v2/execute_code", {"handler_code": code})
    assert "PermissionError 13" in str(reply.json), reply


def test_ipybox_clients_find_the_network_unreachable(
    start_live: Callable[..., LiveService],
) -> None:
    service = start_live(
        "--profiles", "base", "--network", "198.51.100.0/24",
        "--ipybox-allowed-domains", "198.51.100.1",
    )  # fmt: skip
    assert ask(service.port, "GET", "/files/none").status == 404
    client = Client(service.port)
    (default,) = client.listed()["sandboxes"]
    path = f"/v1/sandboxes/{default['id']}"
    assert default["network"] == {"allow": ["198.51.100.1"], "refuse": "unreachable"}
    result = client.ask("POST", path + "/execute", {"code": TRY}).json
    assert result["stdout"] == "OSError 101\n", result
    header = {"X-Cloche-Allowed-Domains": "198.51.100.2,198.51.100.3"}
    assert ask(service.port, "POST", "/files/f.txt", b"x", header).status == 200
    assert client.ask("GET", path + "/network").json["allow"] == ["198.51.100.2", "198.51.100.3"]
    assert ask(service.port, "GET", "/files/f.txt", None, header).body == b"x"
    header["X-Cloche-Allowed-Domains"] = "example.com"
    assert ask(service.port, "GET", "/files/f.txt", None, header).status == 403
    assert client.ask("DELETE", path).status == 204
