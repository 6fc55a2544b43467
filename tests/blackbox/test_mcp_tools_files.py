"""MCP: files of sandboxes by tools and as resources."""

from __future__ import annotations

import base64

import pytest

from harness import LiveService
from mcp_http import ERAS, Failure, Mcp, file_uri


@pytest.fixture(params=ERAS)
def mcp(request: pytest.FixtureRequest, live_service: LiveService) -> Mcp:
    return Mcp(live_service.port, request.param, "sandbox=box")


def test_what_is_written_can_be_read_with_line_numbers(mcp: Mcp) -> None:
    with mcp:
        wrote = mcp.call("write_file", path="a/b.txt", content="one\ntwo\nthree\n")
        assert wrote.text == "wrote /workspace/a/b.txt: 14 bytes"
        assert mcp.call("read_file", path="/workspace/a/b.txt").text == (
            "     1\tone\n     2\ttwo\n     3\tthree\n"
        )
        window = mcp.call("read_file", path="a/b.txt", offset=2, limit=1).text
        assert window == "     2\ttwo\n[the file goes on: offset 3]"
        assert mcp.call("write_file", path="a/b.txt", content="").text.startswith("replaced")
        assert mcp.call("read_file", path="a/b.txt").text == "[the file is empty]"
        assert mcp.value("open('/workspace/a/b.txt').read()") == "''"


def test_bytes_go_in_as_base64(mcp: Mcp) -> None:
    data = bytes(range(256))
    with mcp:
        text = base64.b64encode(data).decode()
        mcp.call("write_file", path="x.bin", content=text, encoding="base64")
        assert mcp.value("open('x.bin', 'rb').read() == bytes(range(256))") == "True"
        shown = mcp.call("read_file", path="x.bin")
        assert "256 bytes" in shown.text and list(shown.links) == [file_uri("x.bin", "box")]
        assert base64.b64decode(mcp.resource(file_uri("x.bin", "box"))["blob"]) == data
        bad = mcp.call("write_file", path="y", content="%%%", encoding="base64")
        assert bad.is_error and "base64" in bad.text


def test_a_picture_is_an_image(mcp: Mcp) -> None:
    with mcp:
        mcp.python("from PIL import Image\nImage.new('RGB', (3, 3)).save('p.png')")
        answer = mcp.call("read_file", path="p.png")
        assert answer.images[0].startswith(b"\x89PNG") and not answer.of("text")


def test_files_are_listed(mcp: Mcp) -> None:
    with mcp:
        assert mcp.call("list_files").text == "[no files]"
        mcp.call("write_file", path="d/e.txt", content="12345")
        mcp.call("write_file", path="top", content="")
        answer = mcp.call("list_files")
        assert [line.split()[0] for line in answer.text.splitlines()] == ["d/", "top"]
        deep = mcp.call("list_files", recursive=True).result["structuredContent"]
        assert [
            (f["path"], f["type"], f["size"]) for f in deep["files"] if f["type"] == "file"
        ] == [
            ("d/e.txt", "file", 5),
            ("top", "file", 0),
        ]
        assert deep["more"] is False
        assert mcp.call("list_files", path="top").text.startswith("top  0 bytes")


def test_many_files_are_listed_to_a_bound(mcp: Mcp) -> None:
    with mcp:
        mcp.python("for i in range(3000): open(f'file{i:05}', 'w').close()")
        answer = mcp.call("list_files")
        assert len(answer.text) < 30000 and "there are more" in answer.text
        assert answer.result["structuredContent"]["more"] is True


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../etc/passwd", "a/../../x", "/workspace/../etc/passwd", "/workspacex/a"],
)
def test_paths_outside_are_refused(mcp: Mcp, path: str) -> None:
    with mcp:
        mcp.python("1")
        for answer in (
            mcp.call("read_file", path=path),
            mcp.call("write_file", path=path, content="x"),
            mcp.call("list_files", path=path),
        ):
            assert answer.is_error and "root:" not in answer.texts, answer
        with pytest.raises(Failure):
            mcp.resource(f"cloche://sandbox/box/{path.replace('..', '%2e%2e')}")


def test_a_link_leads_nowhere(mcp: Mcp) -> None:
    with mcp:
        mcp.shell("ln -s /etc/passwd out; ln -s / root; mkfifo pipe")
        for path in ("out", "root/etc/passwd", "pipe"):
            answer = mcp.call("read_file", path=path)
            assert answer.is_error and "root:" not in answer.texts, answer
            with pytest.raises(Failure):
                mcp.resource(file_uri(path, "box"))


def test_what_is_not_there_is_told(mcp: Mcp) -> None:
    with mcp:
        answer = mcp.call("read_file", path="nothing")
        assert answer.is_error and "list_files" in answer.text
        assert mcp.call("read_file", path="").is_error
        assert mcp.call("write_file", path="/workspace", content="x").is_error
        mcp.call("write_file", path="f", content="x")
        assert mcp.call("write_file", path="f/g", content="x").is_error


def test_a_disk_that_is_full_is_told(mcp: Mcp) -> None:
    with mcp:
        mcp.shell("head -c 600M /dev/zero > big")
        answer = mcp.call("write_file", path="more", content="x" * 1000000)
        assert answer.is_error and "disk" in answer.text


def test_names_of_any_kind_are_shown_escaped(mcp: Mcp) -> None:
    with mcp:
        mcp.python(r"open('a\x1b[31m\u202eb.txt', 'w').close()")
        text = mcp.call("list_files").text
        assert "\x1b" not in text and "\u202e" not in text and "\\u202e" in text


def test_files_made_lately_are_listed_as_resources(mcp: Mcp) -> None:
    with mcp:
        assert mcp.ask("resources/list")["resources"] == []
        mcp.call("write_file", path="new.csv", content="1,2")
        (found,) = mcp.ask("resources/list")["resources"]
        assert found["uri"] == file_uri("new.csv", "box") and found["mimeType"] == "text/csv"
        assert mcp.resource(found["uri"])["text"] == "1,2"
        templates = mcp.ask("resources/templates/list")["resourceTemplates"]
        assert {t["uriTemplate"] for t in templates} == {
            "cloche://sandbox/{name}/{+path}",
            "cloche://execution/{id}/output",
            "cloche://execution/{id}/image/{number}",
        }


def test_variables_of_templates_are_completed(mcp: Mcp) -> None:
    with mcp:
        mcp.call("write_file", path="dir/one.txt", content="")
        ref = {"type": "ref/resource", "uri": "cloche://sandbox/{name}/{+path}"}

        def values(name: str, value: str) -> list[str]:
            done = mcp.ask("completion/complete", ref=ref, argument={"name": name, "value": value})
            found: list[str] = done["completion"]["values"]
            return found

        assert values("name", "b") == ["box"] and values("name", "z") == []
        assert values("path", "") == ["dir/"]
        assert values("path", "dir/o") == ["dir/one.txt"]
        assert values("path", "none/x") == []
