"""The file store beyond the Code Interpreter API: names, forms as clients send them, limits,
uploads that break off."""

from __future__ import annotations

import email.message
import re
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness import Service, eventually
from http_client import (
    BOUNDARY,
    FORM,
    Connection,
    Reply,
    ask,
    download,
    execute,
    get,
    part,
    upload,
)


def stored(service: Service) -> list[Path]:
    """What lies in the store, but the lock and the like."""
    ours = re.compile(r"\.?[0-9a-f]{8}-[0-9a-f-]{27}.*")
    return sorted(p for p in (service.state / "files").iterdir() if ours.fullmatch(p.name))


def shown_name(reply: Reply) -> str:
    """The name a browser would save it under: filename* before filename."""
    value = reply.header("content-disposition")
    assert value is not None and value.startswith("attachment; ")
    value.encode("ascii")
    extended = re.search(r"; filename\*=UTF-8''([A-Za-z0-9%._~-]*)$", value)
    if extended:
        return unquote(extended.group(1))
    message = email.message.Message()
    message["Content-Disposition"] = value
    name = message.get_filename()
    assert isinstance(name, str)
    return name


def form(head: str, data: bytes) -> bytes:
    """A form with one part, whose headers are given."""
    return f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


NAMES = [
    "plain.txt",
    "with space.txt",
    "数据.txt",
    "té st.txt",
    "😀 résumé.pdf",
    "a;b=c.txt",
    "percent%20.txt",
    "sub/dir/file.txt",
    "it's.txt",
    "Ж" * 200 + ".txt",
    "‮txt.exe",
    "a,b&c#d?.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_comes_back_as_it_was(service: Service, name: str) -> None:
    file_id = upload(service.port, name, b"x")
    reply = get(service.port, f"/v1/files/{file_id}")
    assert (reply.status, reply.body) == (200, b"x")
    assert shown_name(reply) == name


@pytest.mark.parametrize("name", ["数据.txt", "a\nb.txt", 'quo"te.txt', "back\\slash.txt", "é/ü"])
def test_a_name_that_a_program_chose_comes_back_too(service: Service, name: str) -> None:
    code = f"import os\nn = {name!r}\nos.makedirs(os.path.dirname(n) or '.', exist_ok=True)\n"
    (made,) = execute(service.port, code + "n = open(n, 'w').write('x')")["files"]
    assert made["path"] == name
    reply = get(service.port, f"/v1/files/{made['file_id']}")
    assert (reply.body, shown_name(reply)) == (b"x", name)
    assert len(reply.headers) == len(set(name for name, _ in reply.headers)), "no header was forged"


def test_a_name_that_is_no_text_is_mended(service: Service) -> None:
    code = "import os\nfd = os.open(b'a\\xffb', os.O_WRONLY | os.O_CREAT)\nn = os.write(fd, b'x')"
    result = execute(service.port, code)
    assert [f["path"] for f in result["files"]] == ["a\ufffdb"]
    reply = get(service.port, f"/v1/files/{result['files'][0]['file_id']}")
    assert (reply.body, shown_name(reply)) == (b"x", "a\ufffdb")


def test_a_download_is_never_taken_for_a_page(service: Service) -> None:
    reply = get(service.port, f"/v1/files/{upload(service.port, 'a.html', b'<script>')}")
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("x-content-type-options") == "nosniff"


def test_head_tells_the_size_of_a_file(service: Service) -> None:
    file_id = upload(service.port, "a", b"x" * 12345)
    with Connection(service.port) as connection:
        reply = connection.ask("HEAD", f"/v1/files/{file_id}")
        assert (reply.status, reply.header("content-length")) == (200, "12345")
        assert connection.ask("GET", f"/v1/files/{file_id}").body == b"x" * 12345
        assert connection.ask("HEAD", f"/v1/files/{uuid.uuid4()}").status == 404


def test_an_empty_file_is_a_file(service: Service) -> None:
    file_id = upload(service.port, "empty", b"")
    assert download(service.port, file_id) == b""


def test_a_form_as_other_clients_send_it(service: Service) -> None:
    head = (
        'content-disposition: form-data; name="file"; filename="a.csv"\r\n'
        "Content-Type: text/csv\r\nX-Other: 1"
    )
    reply = ask(service.port, "POST", "/v1/files", form(head, b"1,2\r\n"), FORM)
    assert (reply.status, reply.json["filename"]) == (201, "a.csv")
    assert download(service.port, reply.json["file_id"]) == b"1,2\r\n"


CLIENTS = {
    ".NET": (
        "Content-Type: text/csv\r\nContent-Disposition: form-data; name=file; "
        "filename=\"=?utf-8?B?5pWw5o2uLmNzdg==?=\"; filename*=utf-8''%E6%95%B0%E6%8D%AE.csv",
        "数据.csv",
    ),
    "bare words": ("Content-Disposition: form-data; name=file; filename=a.csv", "a.csv"),
    "escaped quotes": (
        'Content-Disposition: form-data; name="file"; filename="a\\"b.csv"',
        'a"b.csv',
    ),
    "no blanks": ('Content-Disposition:form-data;name="file";filename="a.csv"', "a.csv"),
}


@pytest.mark.parametrize("parameters", ["", "; charset=UTF-8"], ids=["plain", "with a charset"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_of_any_client(service: Service, client: str, parameters: str) -> None:
    head, name = CLIENTS[client]
    kind = {"Content-Type": FORM["Content-Type"] + parameters}
    reply = ask(service.port, "POST", "/v1/files", form(head, b"1,2\r\n"), kind)
    assert (reply.status, reply.json.get("filename")) == (201, name)
    assert download(service.port, reply.json["file_id"]) == b"1,2\r\n"


def test_other_fields_of_a_form_are_ignored(service: Service) -> None:
    other = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    reply = ask(service.port, "POST", "/v1/files", other.encode() + part(b"data"), FORM)
    assert reply.status == 201
    assert download(service.port, reply.json["file_id"]) == b"data"


def test_of_two_files_one_is_kept_whole(service: Service) -> None:
    first, second = part(b"first" * 9999), part(b"second" * 9999)
    body = first.removesuffix(b"--\r\n") + b"\r\n" + second
    before = len(stored(service))
    reply = ask(service.port, "POST", "/v1/files", body, FORM)
    assert reply.status == 201
    assert download(service.port, reply.json["file_id"]) in (b"first" * 9999, b"second" * 9999)
    assert len(stored(service)) == before + 2, "its bytes and what is known of it"


def test_a_boundary_in_the_data_is_data(service: Service) -> None:
    data = f"\r\n--{BOUNDARY[:-1]}\r\n--{BOUNDARY[:-2]}x--\r\n--".encode() * 500
    assert download(service.port, upload(service.port, "a", data)) == data


def test_an_upload_may_come_in_chunks(service: Service) -> None:
    body = part(bytes(range(256)) * 2000)
    pieces = [body[i : i + 7001] for i in range(0, len(body), 7001)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    with Connection(service.port) as connection:
        connection.send("POST", "/v1/files", None, FORM | {"Transfer-Encoding": "chunked"})
        connection.sock.sendall(chunks)
        reply = connection.reply()
    assert reply.status == 201
    assert download(service.port, reply.json["file_id"]) == bytes(range(256)) * 2000


def in_chunks(service: Service, pieces: list[bytes]) -> Reply:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces if p) + b"0\r\n\r\n"
    with Connection(service.port) as connection:
        connection.send("POST", "/v1/files", None, FORM | {"Transfer-Encoding": "chunked"})
        connection.sock.sendall(chunks)
        return connection.reply()


@pytest.mark.parametrize("data", [b"", b"hello", b"\r\n", b"\r\n--" * 9])
def test_an_upload_may_be_cut_anywhere(service: Service, data: bytes) -> None:
    body = part(data)
    cuts = [[body[:i], body[i:]] for i in range(1, len(body))]
    for pieces in [*cuts, [bytes([byte]) for byte in body]]:
        reply = in_chunks(service, pieces)
        assert reply.status == 201 and reply.json["size_bytes"] == len(data), pieces
        assert download(service.port, reply.json["file_id"]) == data, pieces


def test_an_empty_file_before_another_is_the_one(service: Service) -> None:
    body = part(b"", filename="first").removesuffix(b"--\r\n") + b"\r\n"
    body += part(b"data", filename="second")
    for pieces in ([body], [bytes([byte]) for byte in body]):
        reply = in_chunks(service, pieces)
        assert (reply.json["filename"], reply.json["size_bytes"]) == ("first", 0)


def test_a_large_file_goes_in_and_out_whole(service: Service) -> None:
    data = b"".join(i.to_bytes(4, "big") for i in range(5_000_000))
    file_id = upload(service.port, "large", data)
    assert download(service.port, file_id) == data


def test_uploads_at_the_same_time_do_not_mix(service: Service) -> None:
    def one(i: int) -> bool:
        data = i.to_bytes(4, "big") * 50_000
        return download(service.port, upload(service.port, f"{i}", data)) == data

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(64)))


def test_an_upload_that_breaks_off_leaves_nothing(service: Service) -> None:
    before = stored(service)
    body = part(b"x" * 1_000_000)
    connection = Connection(service.port)
    lines = ["POST /v1/files HTTP/1.1", f"Host: 127.0.0.1:{service.port}"]
    lines += [f"Content-Type: {FORM['Content-Type']}", f"Content-Length: {len(body)}", "", ""]
    connection.sock.sendall("\r\n".join(lines).encode() + body[:600_000])
    assert eventually(lambda: stored(service) != before), "it is written as it comes"
    connection.close()
    assert eventually(lambda: stored(service) == before)


@pytest.mark.parametrize(
    "body",
    [b"", b"garbage", part(b"x")[:-10], f"--{BOUNDARY}--\r\n".encode(), b"\r\n" * 10000],
    ids=["empty", "garbage", "no end", "no parts", "lines"],
)
def test_a_broken_form_is_no_file_and_no_harm(service: Service, body: bytes) -> None:
    reply = ask(service.port, "POST", "/v1/files", body, FORM)
    assert reply.status == (400 if body == part(b"x")[:-10] else 422)
    assert get(service.port, "/health").json["status"] == "ok"


def test_a_form_of_bare_line_feeds_is_no_file(service: Service) -> None:
    before = len(stored(service))
    reply = ask(service.port, "POST", "/v1/files", part(b"x" * 99).replace(b"\r\n", b"\n"), FORM)
    assert (reply.status, reply.json["error"]["code"]) == (422, "bad_fields")
    assert len(stored(service)) == before


def test_a_form_without_a_boundary_is_refused(service: Service) -> None:
    reply = ask(
        service.port, "POST", "/v1/files", part(b"x"), {"Content-Type": "multipart/form-data"}
    )
    assert reply.status in (400, 422)


def test_the_newest_file_is_listed_first(service: Service) -> None:
    made = [upload(service.port, f"{i}", b"x") for i in range(5)]
    listed = [f["file_id"] for f in get(service.port, "/v1/files").json["files"]]
    assert listed[:5] == made[::-1]
    times = [f["upload_time"] for f in get(service.port, "/v1/files").json["files"]]
    assert times == sorted(times, reverse=True)


def test_all_files_together_have_a_limit(start_service: Callable[..., Service]) -> None:
    service = start_service("--files-mb", "2", "--profiles", "base")
    first = upload(service.port, "a", b"x" * 1_500_000)
    reply = ask(service.port, "POST", "/v1/files", part(b"y" * 1_000_000), FORM)
    assert reply.status == 507
    assert (reply.json["error"]["code"], reply.json["error"]["retryable"]) == ("disk_full", True)
    assert download(service.port, first) == b"x" * 1_500_000
    ask(service.port, "DELETE", f"/v1/files/{first}")
    upload(service.port, "b", b"y" * 1_000_000)


def test_a_file_that_cannot_be_kept_is_told_as_such(start_service: Callable[..., Service]) -> None:
    """The run is not spoilt: its result says that there was a file, without an id."""
    service = start_service("--files-mb", "1", "--profiles", "base")
    code = "n = open('big', 'wb').write(b'x' * 2_000_000)\nn = open('small', 'w').write('s')"
    files = {f["path"]: f for f in execute(service.port, code)["files"]}
    assert files["big"]["file_id"] is None
    assert download(service.port, files["small"]["file_id"]) == b"s"


def test_empty_files_have_a_limit(start_service: Callable[..., Service]) -> None:
    """Each takes two inodes and a block of the host's disk."""
    service = start_service("--files-mb", "1", "--profiles", "base")
    made = execute(service.port, "for i in range(300): open(f'n{i}', 'w')")["files"]
    kept = [f["file_id"] for f in made if f["file_id"]]
    assert len(made) == 300 and 100 <= len(kept) <= 128
    assert len(list((service.state / "files").iterdir())) == 2 * len(kept)


def test_the_file_directory_may_be_elsewhere(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    service = start_service("--file-dir", str(tmp_path / "elsewhere"), "--profiles", "base")
    file_id = upload(service.port, "a", b"x")
    assert (tmp_path / "elsewhere" / file_id).read_bytes() == b"x"


def test_a_file_that_vanished_from_the_disk_is_a_404(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    (service.state / "files" / file_id).unlink()
    assert get(service.port, f"/v1/files/{file_id}").status == 404
    assert ask(service.port, "DELETE", f"/v1/files/{file_id}").status in (204, 404)
    assert get(service.port, f"/v1/files/{file_id}").status == 404


def test_a_link_in_the_store_is_not_followed(service: Service, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    file_id = upload(service.port, "a", b"public")
    path = service.state / "files" / file_id
    path.unlink()
    path.symlink_to(secret)
    reply = get(service.port, f"/v1/files/{file_id}")
    assert reply.status == 404 and b"secret" not in reply.body
    path.unlink()
