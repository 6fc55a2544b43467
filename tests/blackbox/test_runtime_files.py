"""The dialect Sandbox Runtime: files of a session."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from harness import LiveService
from http_client import FORM, JSON, ask, part
from runtime_session import PLACE, Session


@pytest.fixture
def session(live_service: LiveService, request: pytest.FixtureRequest) -> Iterator[Session]:
    made = Session(live_service.port, "s1")
    yield made
    assert made.end().status == 200


def test_files_of_any_size_stream(session: Session) -> None:
    data = bytes(range(256)) * (80 << 12)  # 80 MiB
    assert session.upload("big.bin", data).json == {"filename": "big.bin", "size": len(data)}
    assert session.get("download", "big.bin").body == data
    reply = ask(
        session.port, "GET", session.at("download") + "/big.bin", None, {"Range": "bytes=1-2"}
    )
    assert (reply.status, reply.body) == (206, b"\1\2")


@pytest.mark.parametrize("name", ["/abs/a.txt", "//a", "d/./e", "d//e"])
def test_absolute_paths_are_from_the_session(session: Session, name: str) -> None:
    clean = {"/abs/a.txt": "abs/a.txt", "//a": "a"}.get(name, "d/e")
    assert session.good("create", filename=name, content="1") == {"filename": name, "size": 1}
    assert session.upload(name, b"22").json == {"filename": name, "size": 2}
    assert session.run("cat " + clean)["stdout"] == "22"


@pytest.mark.parametrize("name", ["..", "../a", "./../a", "d/../../a", "d/.."])
def test_paths_that_lead_out_are_refused(session: Session, name: str) -> None:
    start = "start with '.' or" if name[0] == "." else "contain"
    detail = f"Invalid file path: child path cannot {start} '..'"
    for reply in (
        session.post("create", filename=name, content=""),
        session.upload("x", b"", "?filename=" + quote(name)),
        session.upload(name, b""),
        session.post("execute_code", code="", filename=name + "/x"),
    ):
        assert (reply.status, reply.json["detail"]) == (400, detail)


def test_names_that_are_none(session: Session) -> None:
    reply = session.upload("", b"x")
    assert (reply.status, reply.json["detail"]) == (400, "No filename provided")
    assert session.upload("/", b"x").json["detail"] == "No filename provided"
    reply = session.post("create", filename="", content="x")
    assert (reply.status, reply.json["detail"]) == (400, "Invalid file path: there is no name")
    for name in ("x" * 256, "d/" * 2048 + "x"):
        assert session.post("create", filename=name, content="").status == 400
    assert session.files(query="?recursive=1") == {}


def test_what_is_in_the_way(session: Session) -> None:
    session.run("mkdir d; touch f")
    for name in ("d", "f/x"):
        for reply in (session.upload(name, b""), session.post("create", filename=name, content="")):
            assert (reply.status, reply.json["error"]["code"]) == (409, "path_taken"), name


def test_a_form_without_its_end_changes_nothing(session: Session) -> None:
    """A client that died may look as if it had sent all: its length may be right."""
    session.upload("a", b"old")
    place, body = session.at("upload"), part(b"new" * 1000, filename="a")
    for cut in (3, 4, 100, 2000):
        reply = ask(session.port, "POST", place, body[:-cut], FORM | session.headers)
        assert reply.status == 400 and "last boundary" in reply.json["detail"], reply
    assert ask(session.port, "GET", session.at("download") + "/a").body == b"old"
    for more in (b"\r\n", b"what a form may have at its end"):
        assert ask(session.port, "POST", place, body + more, FORM | session.headers).status == 200


def test_an_upload_needs_a_file(session: Session) -> None:
    place = session.at("upload")
    missing = {"type": "missing", "loc": ["body", "file"], "msg": "Field required", "input": None}
    cases: list[tuple[bytes, dict[str, str]]] = [
        (b"{}", JSON),
        (part(b"x", name="other"), FORM),
        (b"", {}),
    ]
    for body, headers in cases:
        reply = ask(session.port, "POST", place, body, headers)
        assert (reply.status, reply.json["detail"]) == (422, [missing])
    reply = ask(session.port, "POST", place, part(b"x", filename=None), FORM)
    assert reply.status == 422 and reply.json["detail"][0]["type"] == "value_error"


@pytest.mark.parametrize(
    "mode,shown", [(420, "644"), (0o700, "700"), (0, "644"), (None, "644"), ("438", "666")]
)
def test_the_mode_of_a_file(session: Session, mode: Any, shown: str) -> None:
    session.good("create", filename="a", content="é", mode=mode)
    assert session.run("stat -c %a a")["stdout"] == shown
    assert session.files() == {"a": 2}


@pytest.mark.parametrize("mode", [-1, 512, "x", 1.5])
def test_a_mode_that_is_none(session: Session, mode: Any) -> None:
    reply = session.post("create", filename="a", content="", mode=mode)
    assert reply.status == 422 and reply.json["detail"][0]["loc"] == ["body", "mode"]


def test_a_list_has_regular_files_only(session: Session) -> None:
    session.run("mkdir -p d/e; touch a.tar.gz .h d/e/x none stdout.log d/stderr.log; mkfifo p")
    reply = ask(session.port, "GET", session.at("files") + "/?recursive=yes")
    kinds = {item["filename"]: item["type"] for item in reply.json["files"]}
    assert kinds == {"a.tar.gz": "gz", ".h": "h", "d/e/x": "unknown", "none": "unknown"}
    assert session.files("d") == {} and session.files("/d/e/") == {"d/e/x": 0}


def test_a_long_list(session: Session) -> None:
    session.run("mkdir d; cd d; seq 12000 | xargs touch")
    assert len(session.files("d")) == 12000


def test_lists_that_there_are_not(session: Session) -> None:
    session.run("touch f")
    for path in ("nodir", "f"):
        reply = ask(session.port, "GET", f"{session.at('files')}/{path}")
        assert (reply.status, reply.json["detail"]) == (404, f"Directory not found: {path}")
    reply = ask(session.port, "GET", session.at("files") + "/?recursive=maybe")
    assert reply.status == 422
    assert reply.json["detail"] == [
        {
            "type": "bool_parsing",
            "loc": ["query", "recursive"],
            "msg": "Input should be a valid boolean, unable to interpret input",
            "input": "maybe",
        }
    ]


def test_a_list_without_its_slash(live_service: LiveService) -> None:
    reply = ask(live_service.port, "GET", f"{PLACE}/files/a%20b?recursive=true")
    assert reply.status == 307
    assert reply.header("location") == f"{PLACE}/files/a%20b/?recursive=true"


@pytest.mark.parametrize(
    "name,kind",
    [
        ("a.html", "text/html; charset=utf-8"),
        ("a.PNG", "image/png"),
        ("a.svg", "image/svg+xml"),
        ("a.csv", "text/csv; charset=utf-8"),
        ("d/a.md", "text/markdown; charset=utf-8"),
    ],
)
def test_a_preview(session: Session, name: str, kind: str) -> None:
    session.upload(name, b"<script>")
    reply = session.get("files/preview", name, "?sid=s1")
    assert (reply.status, reply.body, reply.header("content-type")) == (200, b"<script>", kind)
    assert reply.header("content-security-policy") == "sandbox"
    assert reply.header("x-content-type-options") == "nosniff"
    assert reply.header("content-disposition") is None


def test_a_preview_of_anything_else_is_a_download(session: Session) -> None:
    session.upload("a.exe", b"MZ")
    reply = session.get("files/preview", "a.exe")
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("content-disposition") == 'attachment; filename="a.exe"'


def test_a_session_may_be_called_preview(live_service: LiveService) -> None:
    session = Session(live_service.port, "preview")
    session.upload("a", b"1")
    assert session.files() == {"a": 1}
    session.end()


def pieces(session: Session, name: str, size: int) -> list[str]:
    """A file read piece by piece, as a client does it."""
    found, offset = [], 0
    while True:
        reply = session.get("readfile", name, f"?offset={offset}&buffer_size={size}").json
        found.append(reply["content"])
        assert reply["offset"] > offset and len(found) < 1000
        offset = reply["offset"]
        if reply["is_eof"]:
            assert offset == reply["size"]
            return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 4096])
@pytest.mark.parametrize("text", ["abcdefgh", "äöü€uro", "数据😀x", "\ufeffx"])
def test_text_is_cut_between_characters(session: Session, text: str, size: int) -> None:
    session.good("create", filename="a.txt", content=text)
    assert "".join(pieces(session, "a.txt", size)) == text


def test_a_small_piece_is_as_small_as_asked_for(session: Session) -> None:
    session.good("create", filename="a.txt", content="abcdefgh€x")
    assert pieces(session, "a.txt", 3) == ["abc", "def", "gh", "€", "x"]
    assert pieces(session, "a.txt", 1)[-3:] == ["h", "€", "x"]


@pytest.mark.parametrize("size", [2, 3, 5, 4096])
def test_text_that_is_gbk(session: Session, size: int) -> None:
    text = "中文文本,混合 ASCII。"
    session.upload("a.csv", text.encode("gbk"))
    assert "".join(pieces(session, "a.csv", size)) == text


def test_text_that_is_neither(session: Session) -> None:
    session.upload("a.log", b"ok \xff\xff ok\n\x80")
    text = "".join(pieces(session, "a.log", 4096))
    assert text.startswith("ok ") and "\ufffd" in text and " ok\n" in text
    session.upload("b.txt", "é".encode())
    reply = session.get("readfile", "b.txt", "?offset=1").json
    assert (reply["content"], reply["is_eof"]) == ("\ufffd", True)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_other_files_are_base64(session: Session, size: int) -> None:
    data = bytes(range(256))
    session.upload("a.bin", data)
    assert b"".join(map(base64.b64decode, pieces(session, "a.bin", size))) == data


def test_an_empty_file(session: Session) -> None:
    session.upload("a.txt", b"")
    assert session.get("readfile", "a.txt").json == {
        "content": "",
        "offset": 0,
        "size": 0,
        "is_eof": True,
    }


@pytest.mark.parametrize("name", ["offset", "buffer_size"])
def test_numbers_of_readfile(session: Session, name: str) -> None:
    session.upload("a.txt", b"x")
    for value in ("x", "", "1.5", "0x1"):
        reply = session.get("readfile", "a.txt", f"?{name}={value}")
        assert reply.status == 422
        assert reply.json["detail"][0]["type"] == "int_parsing"
        assert reply.json["detail"][0]["loc"] == ["query", name]
    for value in ("-1", "9" * 30) + (("0", "4194305") if name == "buffer_size" else ()):
        reply = session.get("readfile", "a.txt", f"?{name}={value}")
        assert reply.status == 400 and name in reply.json["detail"]
