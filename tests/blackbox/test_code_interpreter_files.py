"""The Code Interpreter API: files of programs, and the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from code_interpreter import UUID4, paths
from harness import Service, eventually
from http_client import FORM, ask, download, execute, get, part, post, upload


# ---- files of programs ----


def test_a_result_begins_with_the_fields_of_the_code_interpreter(service: Service) -> None:
    result = execute(service.port, "n = open('d.txt', 'w').write('x')")
    first = ["stdout", "stderr", "exit_code", "timed_out", "duration_ms", "files"]
    assert list(result)[:6] == first
    (made,) = result["files"]
    assert list(made)[:3] == ["path", "kind", "file_id"]
    assert (made["path"], made["kind"]) == ("d.txt", "file")
    assert UUID4.fullmatch(made["file_id"])
    assert isinstance(result["duration_ms"], int) and result["duration_ms"] >= 0


def test_only_new_and_modified_regular_files_are_returned(service: Service) -> None:
    files = [
        {"path": name, "file_id": upload(service.port, "x", b"same")}
        for name in ("same.txt", "changed.txt", "rewritten.txt", "d/removed.txt")
    ]
    code = """if True:
    import os
    open('changed.txt', 'a').write('!')
    open('rewritten.txt', 'w').write('same')
    os.remove('d/removed.txt')
    os.makedirs('deep/er')
    open('deep/er/new.txt', 'w').write('n')
    open('deep/__main__.py', 'w').write('n')
    open('__main__.py', 'a').write('#')
    os.symlink('same.txt', 'link')
    os.symlink('deep', 'dirlink')
    os.mkfifo('fifo')
    open('.hidden', 'w').write('h')
    open('empty', 'w')
"""
    result = execute(service.port, code, files=files)
    assert paths(result) == [".hidden", "changed.txt", "deep/er/new.txt", "empty"]
    kept = {f["path"]: download(service.port, f["file_id"]) for f in result["files"]}
    assert kept[".hidden"] == b"h" and kept["changed.txt"] == b"same!" and kept["empty"] == b""


def test_a_returned_file_is_stored_under_its_path(service: Service) -> None:
    code = "import os\nos.makedirs('out')\nn = open('out/plot.png', 'wb').write(b'png')"
    (made,) = execute(service.port, code)["files"]
    reply = get(service.port, f"/v1/files/{made['file_id']}")
    assert reply.body == b"png"
    assert reply.header("content-disposition") == 'attachment; filename="out/plot.png"'
    listed = {f["file_id"]: f for f in get(service.port, "/v1/files").json["files"]}
    assert listed[made["file_id"]]["filename"] == "out/plot.png"
    assert listed[made["file_id"]]["size_bytes"] == 3


def test_a_returned_file_may_be_given_to_the_next_program(service: Service) -> None:
    (made,) = execute(service.port, "n = open('a.bin', 'wb').write(bytes(range(256)))")["files"]
    files = [{"path": "in/b.bin", "file_id": made["file_id"]}]
    code = "open('in/b.bin', 'rb').read() == bytes(range(256))"
    assert execute(service.port, code, files=files)["stdout"] == "True\n"


# ---- the store ----


def test_a_download_is_the_bytes_as_an_attachment(service: Service) -> None:
    data = bytes(range(256)) * 1000 + b"\r\n--cloche"
    reply = get(service.port, f"/v1/files/{upload(service.port, 'a.bin', data)}")
    assert (reply.status, reply.body) == (200, data)
    assert reply.header("content-type") == "application/octet-stream"
    assert reply.header("content-length") == str(len(data))
    assert reply.header("content-disposition") == 'attachment; filename="a.bin"'


@pytest.mark.parametrize("file_id", ["nonexistent-id", "a" * 1000, "%00", "..", "%2e%2e%2fx", "é"])
def test_a_malformed_id_is_no_file(service: Service, file_id: str) -> None:
    for method in ("GET", "DELETE"):
        reply = ask(service.port, method, "/v1/files/" + file_id.replace("é", "%C3%A9"))
        assert reply.status == (400 if file_id == "%00" else 404)
        if file_id in ("nonexistent-id", "é"):
            assert reply.json["detail"] == f"File with ID '{file_id}' not found"


def test_an_id_in_capitals_is_another(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert get(service.port, f"/v1/files/{file_id.upper()}").status == 404


def test_what_the_store_knows_about_a_file_is_no_file(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert (service.state / "files" / f"{file_id}.meta.json").exists()
    reply = get(service.port, f"/v1/files/{file_id}.meta.json")
    assert reply.status == 404
    files = [{"path": "a", "file_id": f"{file_id}.meta.json"}]
    assert post(service.port, "/v1/execute", {"code": "", "files": files}).status == 404


def test_a_deleted_file_is_gone(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    assert ask(service.port, "DELETE", f"/v1/files/{file_id}").status == 204
    assert get(service.port, f"/v1/files/{file_id}").status == 404
    assert file_id not in [f["file_id"] for f in get(service.port, "/v1/files").json["files"]]
    files = [{"path": "a", "file_id": file_id}]
    assert post(service.port, "/v1/execute", {"code": "", "files": files}).status == 404
    assert not list((service.state / "files").glob(f"*{file_id}*"))


def test_a_file_may_be_as_large_as_the_limit(start_service: Callable[..., Service]) -> None:
    service = start_service("--max-file-mb", "1", "--profiles", "base")
    most = 1024 * 1024
    assert len(download(service.port, upload(service.port, "a", b"x" * most))) == most
    for size in (most + 1, most + most // 2, 20 * most):
        reply = ask(service.port, "POST", "/v1/files", part(b"x" * size), FORM)
        expected = "File size exceeds maximum of 1 MB"
        assert (reply.status, reply.json["detail"]) == (413, expected), size

    def kept() -> list[str]:
        names = [path.name.split(".meta")[0] for path in (service.state / "files").iterdir()]
        return [name for name in names if UUID4.search(name)]

    assert eventually(lambda: len(kept()) == 2), "one file and what is known of it; no leftovers"


def test_a_file_is_kept_for_its_time(start_service: Callable[..., Service]) -> None:
    service = start_service("--file-ttl-s", "1", "--profiles", "base")
    file_id = upload(service.port, "a", b"x")
    assert eventually(lambda: get(service.port, f"/v1/files/{file_id}").status == 404)
    assert get(service.port, "/v1/files").json == {"files": []}
    assert eventually(lambda: not list((service.state / "files").glob(f"{file_id}*")))


def test_a_stored_file_survives_a_restart(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    first = Service(tmp_path, "--profiles", "base")
    try:
        file_id = upload(first.port, "数据 1.txt", b"kept")
        (made,) = execute(first.port, "n = open('made', 'w').write('made')")["files"]
        before = get(first.port, "/v1/files").json
        first.stop()
    finally:
        first.kill()
    second = start_service("--profiles", "base", "--state-dir", str(first.state))
    assert get(second.port, "/v1/files").json == before
    assert download(second.port, file_id) == b"kept"
    assert download(second.port, made["file_id"]) == b"made"


def test_the_state_directory_is_its_owners(service: Service) -> None:
    file_id = upload(service.port, "a", b"x")
    for path in (service.state / "files", service.state / "files" / file_id):
        assert path.stat().st_mode & 0o077 == 0, path


def test_json_replies_are_whole_numbers_of_bytes(service: Service) -> None:
    """A body is as long as its Content-Length in bytes, whatever its characters are."""
    reply = post(service.port, "/v1/execute", {"code": "'数据😀'"})
    assert int(reply.header("content-length") or 0) == len(reply.body)
    assert json.loads(reply.body)["stdout"] == "'数据😀'\n"
