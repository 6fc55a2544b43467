"""What a policy lets through, what it says of the rest, and that it can be changed at any time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from live import SSE, error
from live_network import ALL, ECHO, TRY, NetworkService, attempt, attempts, denied, put, said
from world import (
    CLOSED,
    CLOSED6,
    HOST,
    HOST6,
    HOST_PRIVATE,
    HOST_PRIVATE6,
    OTHER,
    WEB,
    WEB6,
    World,
)

FIRST = f"{TRY}\nprint(attempt('{WEB}', 7), attempt('{OTHER}', 7))"

# ---------------------------------------------------------------------------- what is let through


def test_nothing_is_reached_without_a_policy(net: NetworkService) -> None:
    with net.box() as box:
        assert attempts(box, [(WEB, 7), (OTHER, 80), (WEB6, 7)]) == {
            f"{WEB}:7": "ENETUNREACH",
            f"{OTHER}:80": "ENETUNREACH",
            f"{WEB6}:7": "ENETUNREACH",
        }
        assert attempt(box, "web.example.test") in ("no such name", "try again")
        assert box.ask("GET", "/network").json == "none"


def test_an_address_that_is_allowed(net: NetworkService) -> None:
    with net.box(ECHO) as box:
        result = box.run(FIRST)
        assert result["stdout"] == "connected EACCES\n", result
        (told,) = denied(result)
        assert told["op"] == f"connect to {OTHER} port 7"
        assert told["rule"] == "network:default-deny"
        assert f"{WEB}:7" in told["detail"] and f"{OTHER}:7" in told["detail"]


def test_a_program_that_runs_once(net: NetworkService) -> None:
    result = net.client.ask("POST", "/v1/execute", {"code": FIRST, "network": ECHO}).json
    assert result["stdout"] == "connected EACCES\n", result
    assert [told["rule"] for told in denied(result)] == ["network:default-deny"]
    used = {row["rule"]: (row["connections"], row["refused"]) for row in result["usage"]["network"]}
    assert used == {f"{WEB}:7": (1, 0), "network:default-deny": (0, 1)}


def test_what_is_allowed_leaves_no_refusal(net: NetworkService) -> None:
    """Not even that of an address of IPv6, for which libraries look for a route to order them."""
    policy = ["web.example.test:8080"]
    code = f"{TRY}\nprint(attempt('web.example.test', 8080))"
    once = net.client.ask("POST", "/v1/execute", {"code": code, "network": policy}).json
    with net.box(policy) as box:
        for result in (once, box.run(code)):
            assert (result["stdout"], denied(result)) == ("connected\n", []), result


def test_programs_of_a_batch(net: NetworkService) -> None:
    items = [{"code": FIRST, "network": ECHO}, {"code": FIRST}, {"code": FIRST, "network": "none"}]
    body = net.client.ask("POST", "/v1/execute/batch", {"items": items}).body
    results = sorted(map(json.loads, body.splitlines()), key=lambda one: int(one["index"]))
    shown = [result["stdout"] for result in results]
    assert shown == ["connected EACCES\n", *["ENETUNREACH ENETUNREACH\n"] * 2], results


def test_a_program_that_is_streamed(net: NetworkService) -> None:
    with net.box(ECHO) as box, box.stream(FIRST, SSE) as stream:
        end = stream.until("end")
        assert [told["rule"] for told in end.data["denied"]] == ["network:default-deny"]


@pytest.mark.parametrize(
    "rule, reached",
    [
        (f"{WEB}", {7, 9, 13}),
        (f"{WEB}:7", {7}),
        (f"{WEB}:7,13", {7, 13}),
        (f"{WEB}:8-20", {9, 13}),
        ("198.51.100.0/30:9", {9}),
        (f"{OTHER}", set()),
        ({"address": WEB, "ports": [7, "9-10"]}, {7, 9}),
        ({"cidr": "198.51.100.0/31"}, set()),
    ],
    ids=str,
)
def test_ports(net: NetworkService, rule: Any, reached: set[int]) -> None:
    with net.box({"allow": [rule]}) as box:
        found = attempts(box, [(WEB, port) for port in (7, 9, 13)])
        assert {p for p in (7, 9, 13) if found[f"{WEB}:{p}"] == "connected"} == reached
        assert set(found.values()) <= {"connected", "EACCES"}


def test_a_list_of_strings_is_a_policy(net: NetworkService) -> None:
    with net.box([f"{WEB}:7", f"[{WEB6}]:7"]) as box:
        assert attempt(box, WEB, 7) == attempt(box, WEB6, 7) == "connected"
        assert attempt(box, WEB, 9) == attempt(box, WEB6, 9) == "EACCES"


def test_open_is_what_is_not_closed(net: NetworkService, world: World) -> None:
    with net.box("open") as box:
        assert attempt(box, WEB, 7) == attempt(box, WEB6, 7) == "connected"
        ours = (HOST, HOST6, HOST_PRIVATE, HOST_PRIVATE6)
        places = [*CLOSED, *CLOSED6, *ours, "::ffff:10.9.9.9", f"::ffff:{HOST}", "::10.9.9.9"]
        found = attempts(box, [(place, port) for place in places for port in (80, net.port)])
        assert set(found.values()) == {"EACCES"}, found
        # The host's loopback is not the sandbox's.
        assert attempt(box, "127.0.0.1", net.port) == "ECONNREFUSED"
    assert {place for kind, place, _ in world.seen()} <= {WEB, WEB6}


def test_refusals_of_closed_ranges_say_so(net: NetworkService) -> None:
    with net.box("open") as box:
        code = f"{TRY}\nprint(attempt('169.254.169.254'), attempt('{HOST}', {net.port}))"
        told = denied(box.run(code))
        assert [one["rule"] for one in told] == ["network:closed-range"] * 2
        assert "169.254.169.254" in told[0]["op"]


def test_what_is_denied_is_denied_although_it_is_allowed(net: NetworkService) -> None:
    policy = {"allow": ["198.51.100.0/29"], "deny": ["198.51.100.3/32"]}
    with net.box(policy) as box:
        found = attempts(box, [(WEB, 7), ("198.51.100.3", 7), ("198.51.100.4", 7)])
        assert list(found.values()) == ["connected", "EACCES", "connected"]
        told = denied(box.run(f"{TRY}\nattempt('198.51.100.3', 9)"))
        assert told[0]["rule"].startswith("network:deny") and "198.51.100.3" in told[0]["rule"]


def test_sandboxes_have_each_their_own(net: NetworkService) -> None:
    with net.box(ECHO) as one, net.box([f"{WEB}:9"]) as other, net.box() as third:
        boxes = (one, other, third)
        found = [list(attempts(box, [(WEB, 7), (WEB, 9)]).values()) for box in boxes]
        assert found == [["connected", "EACCES"], ["EACCES", "connected"], ["ENETUNREACH"] * 2]


# ---------------------------------------------------------------------------- changing it


def test_a_change_applies_to_the_next_connect(net: NetworkService) -> None:
    with net.box() as box:
        assert attempt(box, WEB, 7) == "ENETUNREACH"
        put(box, ECHO)
        assert attempt(box, WEB, 7) == "connected"
        put(box, [f"{WEB}:9"])
        assert attempt(box, WEB, 7) == "EACCES"
        put(box, "none")
        assert attempt(box, WEB, 9) == "ENETUNREACH"
        assert box.ask("GET", "/network").json == "none"
        put(box, "open")
        assert attempt(box, WEB, 9) == "connected"


def test_patch_changes_it_too(net: NetworkService) -> None:
    with net.box() as box:
        assert box.ask("PATCH", "", {"network": ECHO}).status == 200
        assert attempt(box, WEB, 7) == "connected"


def test_what_is_read_back_can_be_put_again(net: NetworkService) -> None:
    policies: list[Any] = [ECHO, "open", [f"{WEB}"], {**ALL, "deny": [OTHER], "connections": 7}]
    with net.box() as box:
        for policy in policies:
            put(box, policy)
            first = box.ask("GET", "/network").json
            put(box, first)
            assert box.ask("GET", "/network").json == first


KEEP = f"""
import errno, select, socket
kept = {{port: socket.create_connection(("{WEB}", port), 5) for port in (7, 19)}}
for sock in kept.values():
    sock.settimeout(60)
"""
STATE = """
def state(port):
    try:
        if port == 7:
            kept[port].sendall(b"?")
        while kept[port].recv(65536) != b"?":
            pass
        return "open"
    except OSError as error:
        return errno.errorcode[error.errno]
"""


def test_open_connections_are_judged_again(net: NetworkService) -> None:
    """The one that is no longer allowed is reset, whatever it is doing; the other goes on."""
    with net.box([f"{WEB}:7", f"{WEB}:19"]) as box:
        box.run(KEEP)
        put(box, [f"{WEB}:7"])
        assert said(box, f"{STATE}\nprint(state(7), state(19))") == ["open ECONNRESET"]
        put(box, "none")
        assert said(box, "print(state(7))") == ["ECONNRESET"]


def test_a_connect_that_waits_is_judged_again(net: NetworkService) -> None:
    with net.box(["203.0.113.7"]) as box:
        box.run(
            "import errno, select, socket\nsock = socket.socket()\nsock.setblocking(False)\n"
            "assert sock.connect_ex(('203.0.113.7', 80)) == errno.EINPROGRESS"
        )
        put(box, "none")
        shown = said(
            box, "select.select([], [sock], [], 60)\nprint(errno.errorcode[sock.getsockopt(1, 4)])"
        )
        assert shown[0] in ("ENETUNREACH", "EACCES", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH")


# ---------------------------------------------------------------------------- what is wrong

WRONG: list[tuple[Any, str]] = [
    ({"allow": ["web.example.test", "a..b"]}, "network.allow[1]"),
    ({"allow": ["web.*.test"]}, "network.allow[0]"),
    ({"allow": ["*"]}, "network.allow[0]"),
    ({"allow": ["*x.example.test"]}, "network.allow[0]"),
    ({"allow": [f"{WEB}:0"]}, "network.allow[0]"),
    ({"allow": [f"{WEB}:65536"]}, "network.allow[0]"),
    ({"allow": [f"{WEB}:9-8"]}, "network.allow[0]"),
    ({"allow": ["10.1.0.0/33"]}, "network.allow[0]"),
    ({"allow": ["300.1.1.1"]}, "network.allow[0]"),
    ({"allow": ["http://web.example.test/"]}, "network.allow[0]"),
    ({"allow": ["@nosuchset"]}, "network.allow[0]"),
    ({"allow": [{"domain": "a.test", "address": "1.2.3.4"}]}, "network.allow[0]"),
    ({"allow": [{"domain": "a.test", "ports": ["x"]}]}, "network.allow[0]"),
    ({"allow": [{"domains": "a.test"}]}, "network.allow[0]"),
    ({"allow": [7]}, "network.allow[0]"),
    ({"allow": "a.test"}, "network.allow"),
    ({"allow": ["a.test"] * 1000}, "network.allow"),
    ({"allow": [], "deny": ["name.test"]}, "network.deny[0]"),
    ({"allow": [], "connections": 0}, "network.connections"),
    ({"allow": [], "connections": 10**9}, "network.connections"),
    ({"allow": [], "bytes": -1}, "network.bytes"),
    ({"allow": [], "refuse": "politely"}, "network.refuse"),
    ({"allow": [], "strict_tls": "yes"}, "network.strict_tls"),
    ({"allows": []}, "allows"),
    (["a.test", "b..test"], "network[1]"),
    (True, "network"),
    (5, "network"),
]


@pytest.mark.parametrize("policy, entry", WRONG, ids=[json.dumps(p)[:60] for p, _ in WRONG])
def test_a_rule_that_cannot_be_read_is_named(net: NetworkService, policy: Any, entry: str) -> None:
    body = {"code": "1", "network": policy}
    error(net.client.ask("POST", "/v1/execute", body), 422, "network_rule_invalid", entry)
    error(net.client.ask("POST", "/v1/sandboxes", {"network": policy}), 422, "network_rule_invalid")


def test_a_bad_change_changes_nothing(net: NetworkService) -> None:
    with net.box(ECHO) as box:
        before = box.ask("GET", "/network").json
        error(box.ask("PUT", "/network", {"allow": ["a..b"]}), 422, "network_rule_invalid")
        assert box.ask("GET", "/network").json == before
        assert attempt(box, WEB, 7) == "connected"


# ---------------------------------------------------------------------------- the operator


def test_by_default_nothing_may_be_granted(
    world: World, start_net: Callable[..., NetworkService]
) -> None:
    service = start_net("--network", "none")
    reply = service.client.ask("POST", "/v1/sandboxes", {"network": ECHO})
    error(reply, 403, "network_not_allowed")
    with service.box("none") as box:
        assert attempt(box, WEB, 7) == "ENETUNREACH"


def test_what_falls_away_is_named(world: World, start_net: Callable[..., NetworkService]) -> None:
    service = start_net(
        "--network", f"{WEB}:7,*.example.test:443,10.9.9.0/24", "--network-deny", "10.9.9.10"
    )
    for policy, rule in (
        ([f"{WEB}:7", OTHER], OTHER),
        ([WEB], WEB),
        (["example.test:443"], "example.test"),
        (["web.example.test"], "web.example.test"),
        (["10.9.0.0/16"], "10.9.0.0/16"),
    ):
        error(
            service.client.ask("POST", "/v1/sandboxes", {"network": policy}),
            *(403, "network_not_allowed", rule),
        )
    error(
        service.client.ask("POST", "/v1/sandboxes", {"network": "open"}), 403, "network_not_allowed"
    )
    with service.box([f"{WEB}:7", "a.wild.example.test:443", "10.9.9.0/24"]) as box:
        found = attempts(box, [(WEB, 7), ("10.9.9.9", 80), ("10.9.9.10", 80)])
        assert list(found.values()) == ["connected", "connected", "EACCES"]
        error(box.ask("PUT", "/network", [OTHER]), 403, "network_not_allowed", OTHER)
        assert attempt(box, WEB, 7) == "connected"
    assert ("tcp", "10.9.9.9", 80) in world.seen()
    world.forget()  # it was allowed by its number


def test_sets_have_names(world: World, start_net: Callable[..., NetworkService]) -> None:
    sets = json.dumps({"ours": [f"{WEB}:7", f"{WEB}:9"]})
    service = start_net("--network", "@ours", "--network-sets", sets)
    with service.box(["@ours"]) as box:
        found = attempts(box, [(WEB, 7), (WEB, 9), (WEB, 13)])
        assert list(found.values()) == ["connected", "connected", "EACCES"]
