"""Servers inside live sandboxes: which there are, who reaches them, and how that ends."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from harness import LiveService, eventually
from inside import OK, PLAIN, PORT, Inside, fields_of, raw_request, refused
from keyed_live import KeyedLive
from live import Client
from raw_http import Raw, request, resident_mb

# ---------------------------------------------------------------------------- which port


def test_ports_that_listen_are_listed(box: Inside) -> None:
    assert box.get("/ports") == {"ports": [], "truncated": False}
    v6 = {"family": "socket.AF_INET6"}
    box.serve(PLAIN, port=9000).serve(PLAIN, port=8000, host="'127.0.0.1'")
    box.serve(PLAIN, port=8002, **v6).serve(PLAIN, port=8003, host="'::1'", **v6)
    box.serve(PLAIN, port=9000, **v6).serve(PLAIN, port=7000, host="'127.0.0.2'")
    assert box.ports() == [8000, 8002, 8003, 9000], "not what connections from us cannot reach"
    assert box.get("/ports")["ports"][0] == {"port": 8000, "path": box.at("/", 8000), "url": None}


@pytest.mark.parametrize("host, family", [("::1", "socket.AF_INET6"), ("::", "socket.AF_INET6")])
def test_servers_of_ipv6_alone_are_reached(box: Inside, host: str, family: str) -> None:
    box.serve(PLAIN, host=repr(host), family=family)
    assert box.ask_inside().body == b"hello"


@pytest.mark.parametrize("word", ["0", "65536", "abc", "-1", "80x", "", "8001 "])
def test_a_port_is_a_number(box: Inside, word: str) -> None:
    reply = box.ask("GET", f"/ports/{word.replace(' ', '%20')}/")
    assert reply.status in (404, 422), reply


@pytest.mark.parametrize(
    "path", ["/v1/sandbox%65s/ID/ports/8001/", "/v1/sandboxes/ID/ports/%38001/"]
)
def test_the_path_before_the_port_has_no_escapes(box: Inside, path: str) -> None:
    box.serve(PLAIN)
    refused(box.client.ask("GET", path.replace("ID", box.id)), 404, "no_route")


def test_a_path_without_its_slash_leads_there(box: Inside) -> None:
    reply = box.ask_inside("?a=b")
    assert reply.status == 307 and fields_of(reply, "Location") == [box.at("/?a=b")]


def test_nothing_listens(box: Inside) -> None:
    refused(box.ask_inside(), 502, "port_closed", f"port {PORT}")
    box.serve(PLAIN)
    assert box.ask_inside().status == 200
    box.python("servers[0].shutdown(2); servers[0].close()")
    refused(box.ask_inside(), 502, "port_closed")


def test_a_paused_sandbox_answers_nothing(box: Inside) -> None:
    box.serve(PLAIN)
    assert box.ask("POST", "/pause").status == 200
    refused(box.ask_inside(), 409, "sandbox_paused")
    assert box.ask("POST", "/resume").status == 200
    assert box.ask_inside().status == 200


# ---------------------------------------------------------------------------- its life


def test_the_server_hears_that_a_client_left(box: Inside) -> None:
    box.serve([OK + b"\r\nsome", "hold"])
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        assert raw.head().status == 200
    assert eventually(lambda: box.python("len(ended)") == "1")


def test_a_client_hears_that_the_sandbox_ended(client: Client) -> None:
    with Inside(client) as box:
        box.serve([OK + b"\r\nsome", "hold"], ["hold"])
        begun = raw_request(box.port, request("GET", box.at("/")))
        assert begun.head().status == 200
        waits = raw_request(box.port, request("GET", box.at("/")))
        assert eventually(lambda: box.python("len(heard)") == "2")
        assert box.delete().status == 204
        assert waits.reply().status == 410
        assert not begun.ends().endswith(b"0\r\n\r\n")
        waits.sock.close()
        begun.sock.close()


def test_a_sandbox_has_so_many_connections(box: Inside) -> None:
    box.python(
        "taken = []\n"
        "def take():\n"
        f"    s = socket.create_server(('127.0.0.1', {PORT}))\n"
        "    while True:\n"
        "        taken.append(s.accept()[0])\n"
        "        taken[-1].sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nx')\n"
        "threading.Thread(target=take, daemon=True).start()"
    )
    assert eventually(lambda: box.ports() == [PORT])
    held = [raw_request(box.port, request("GET", box.at("/"))) for _ in range(64)]
    for raw in held:
        assert raw.head().status == 200
    refused(box.ask_inside(), 429, "too_many_at_once", "64")
    held.pop().sock.close()

    def again() -> bool:
        held.append(raw_request(box.port, request("GET", box.at("/"))))
        return held[-1].head().status == 200

    assert eventually(again)
    for raw in held:
        raw.sock.close()


def test_tenants_share_all_connections(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Half for each, whichever of its sandboxes they lead to."""
    service = KeyedLive(tmp_path_factory.mktemp("shared"), "--ports-connections", "4")
    try:
        with ExitStack() as open_ones:
            own = [open_ones.enter_context(Inside(service.client(0))) for _ in range(2)]
            other = open_ones.enter_context(Inside(service.client(1)))
            for box in (*own, other):
                box.serve([OK + b"\r\nx", "hold"])

            def hold(box: Inside) -> Raw:
                key = f"Authorization: {box.client.headers['Authorization']}"
                raw = raw_request(box.port, request("GET", box.at("/"), key))
                open_ones.enter_context(raw)
                return raw

            held = [hold(box) for box in own]
            assert [raw.head().status for raw in held] == [200, 200]
            for box in own:
                refused(box.ask_inside(), 429, "too_many_at_once", "2 connections")
            assert hold(other).head().status == 200, "the other half is for others"
            held[0].sock.close()
            assert eventually(lambda: hold(own[1]).head().status == 200)
    finally:
        service.stop()


def test_a_sandbox_whose_server_is_asked_is_in_use(client: Client) -> None:
    with Inside(client, idle_seconds=1000) as box:
        box.serve([OK + b"\r\nx", "hold"])
        assert box.get()["idle_expires"] is not None
        with raw_request(box.port, request("GET", box.at("/"))) as raw:
            assert raw.head().status == 200
            assert box.get()["idle_expires"] is None
        assert eventually(lambda: box.get()["idle_expires"] is not None)


def test_a_client_that_does_not_read_slows_the_server_down(
    service: LiveService, box: Inside
) -> None:
    box.python("sent = [0]")
    box.python(
        "def flood():\n"
        f"    s = socket.create_server(('127.0.0.1', {PORT}))\n"
        "    c = s.accept()[0]\n"
        "    c.recv(65536)\n"
        "    c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')\n"
        "    try:\n"
        "        while sent[0] < 200 << 20: sent[0] += c.send(bytes(1 << 16))\n"
        "    except OSError: pass\n"
        "    c.close()\n"
        "threading.Thread(target=flood, daemon=True).start()"
    )
    assert eventually(lambda: box.ports() == [PORT])
    before = resident_mb(service)
    with raw_request(box.port, request("GET", box.at("/"))) as raw:
        assert raw.head().status == 200

        def stands() -> bool:
            first = box.python("sent[0]")
            for _ in range(20):  # turns of the server's loop, in each of which it could read
                assert box.client.ask("GET", "/health").status == 200
            return box.python("sent[0]") == first

        assert eventually(stands)
        assert int(box.python("sent[0]")) < 3 << 20, "the kernel takes little from us, too"
        assert resident_mb(service) - before < 16
        got = sum(len(piece) for piece in iter(raw.chunk, b""))
        assert got == 200 << 20


def test_requests_are_counted(service: LiveService, box: Inside) -> None:
    def numbers() -> dict[str, float]:
        text = box.client.ask("GET", "/metrics").body.decode()
        lines = [line.split() for line in text.splitlines() if line.startswith("cloche_port")]
        return {name: float(value) for name, value in lines}

    box.serve(PLAIN)
    before = numbers()
    assert box.ask_inside("/", "POST").status == 200
    after = numbers()
    assert after["cloche_port_requests_total"] == before["cloche_port_requests_total"] + 1
    assert after["cloche_port_sent_bytes_total"] == before["cloche_port_sent_bytes_total"] + 5


def test_a_host_of_ours_is_asked_for_here_too(box: Inside) -> None:
    """DNS names that are pointed at us."""
    box.serve(PLAIN)
    evil = request("GET", box.at("/"), host=b"Host: evil.example\r\n")
    with raw_request(box.port, evil) as raw:
        assert raw.reply().status == 421
    cross = request("GET", box.at("/"), "Origin: null")
    with raw_request(box.port, cross) as raw:
        assert raw.reply().status == 403
    assert box.python("len(heard)") == "0"
