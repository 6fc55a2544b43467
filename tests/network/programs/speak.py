"""TLS and HTTP as bytes. Prints what became of each call."""

import json
import socket
import ssl
import struct


def client_hello(name):
    """Its one record."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def outcome(sock):
    """Whether the connection stands after what was sent; the recorder never answers."""
    sock.settimeout(0.5)
    try:
        return "reset" if sock.recv(1) == b"" else "answered"
    except TimeoutError:
        return "sent"
    except OSError:
        return "reset"


def send(host, port, data, piece=0):
    sock = socket.create_connection((host, port), 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for at in range(0, len(data), piece or len(data)):
            sock.sendall(data[at : at + (piece or len(data))])
    except OSError:
        return "reset"
    return outcome(sock)


def call_bytes(host, port, text, piece=0):
    return send(host, port, text.encode("latin-1"), piece)


def call_hello(host, name, piece):
    return send(host, 443, client_hello(name), piece)


def call_records(host, name, size):
    whole = client_hello(name)[5:]
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    records = [b"\x16\x03\x01" + struct.pack("!H", len(piece)) + piece for piece in pieces]
    return send(host, 443, b"".join(records))


def with_names(name, entries):
    """A hello whose list of names is replaced; all lengths are right."""
    whole = client_hello(name)
    hello = whole[9:]
    old = struct.pack("!HBH", len(name) + 3, 0, len(name)) + name.encode()
    old = struct.pack("!HH", 0, len(old)) + old
    listed = b"".join(struct.pack("!BH", 0, len(e)) + e.encode() for e in entries)
    new = struct.pack("!H", len(listed)) + listed
    new = struct.pack("!HH", 0, len(new)) + new
    at = 34
    at += 1 + hello[at]
    at += 2 + struct.unpack_from("!H", hello, at)[0]
    at += 1 + hello[at]
    extensions = hello[at + 2 :].replace(old, new, 1)
    hello = hello[:at] + struct.pack("!H", len(extensions)) + extensions
    body = b"\x01" + struct.pack("!I", len(hello))[1:] + hello
    return b"\x16\x03\x01" + struct.pack("!H", len(body)) + body


def call_edited(host, name):
    return send(host, 443, with_names("raw.example.test", [name]))


def call_two(host, *names):
    return send(host, 443, with_names("raw.example.test", names))


def call_tls(host, name):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, 443), 10) as sock:
        with context.wrap_socket(sock, server_hostname=name) as tls:
            tls.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            return tls.recv(12).decode()


def call_echo(host, port):
    with socket.create_connection((host, port), 10) as sock:
        sock.sendall(b"abc")
        return sock.recv(3, socket.MSG_WAITALL).decode()


def all_of(calls):
    for name, *words in calls:
        print(json.dumps(globals()[f"call_{name}"](*words)), flush=True)
