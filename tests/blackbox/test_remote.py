"""`cloche run --server URL`: as `cloche run`, but over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness import LONG, Service, clean_env, cloche_bin, eventually, failed, flags, run_cli, tree
from raw_http import KeyedService, ask, request


def remote(
    service: Service, *words: str | os.PathLike[str], **options: Any
) -> subprocess.CompletedProcess[bytes]:
    return run_cli("run", "--server", service.url, *words, **options)


def popen(service: Service, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [cloche_bin(), "run", "--server", service.url, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(),
        process_group=0,
    )


def stored(service: Service) -> list[str]:
    files = ask(service, request("GET", "/v1/files")).json["files"]
    return sorted(file["filename"] for file in files)


def test_the_server_may_be_in_the_environment(service: Service) -> None:
    env = clean_env(CLOCHE_SERVER=service.url)
    done = run_cli("run", "-v", "-c", "print(1)", env=env)
    assert done.stdout == b"1\n" and f"using the server at {service.url}".encode() in done.stderr
    assert f"at {service.url}\n".encode() in run_cli("status", env=env).stdout
    # a flag is nearer
    near = ("--socket", str(service.socket))
    elsewhere = clean_env(CLOCHE_SERVER="http://127.0.0.1:1")
    assert run_cli("run", *near, "-c", "print(2)", env=elsewhere).stdout == b"2\n"
    assert run_cli("status", *near, env=elsewhere).returncode == 0
    assert run_cli("run", "--server", service.url, "-c", "3", env=elsewhere).returncode == 0
    for verb in (("run", "-c", "1"), ("status",)):
        failed(run_cli(*verb, env=elsewhere), "no server answers at http://127.0.0.1:1")
        failed(run_cli(*verb, env=clean_env(CLOCHE_SERVER="ftp://x")), "the server's URL is")


# ---------------------------------------------------------------------------- as cloche run does


def test_output_and_exit_status_pass_through(service: Service) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    done = remote(service, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_output_comes_while_the_program_runs(service: Service) -> None:
    code = "import time; print('first', flush=True); time.sleep(300)"
    with popen(service, *flags(LONG), "-c", code) as cli:
        assert cli.stdout is not None
        assert cli.stdout.readline() == b"first\n"
        cli.send_signal(signal.SIGINT)
        cli.wait()


def test_streams_and_sizes_arrive_whole(service: Service) -> None:
    code = "import sys\nfor i in range(20000): print('grün', i, '\\x00'); print(i, file=sys.stderr)"
    done = remote(service, *flags(LONG), "-c", code)
    assert done.stdout.decode() == "".join(f"grün {i} \x00\n" for i in range(20000))
    assert done.stderr.decode() == "".join(f"{i}\n" for i in range(20000))


def test_a_reader_that_is_gone_ends_it(service: Service) -> None:
    with popen(service, *flags(LONG), "-c", "while True: print('x' * 1000)") as cli:
        assert cli.stdout is not None
        cli.stdout.read(10)
        cli.stdout.close()
        assert cli.wait() == 128 + signal.SIGPIPE


def test_arguments_environment_and_last_line(service: Service) -> None:
    words = ["--env", "A=1", "--env", "B=x=y", "--interactive-last-line"]
    code = "import os, sys; sys.argv[1:], os.environ['A'], os.environ['B']"
    done = remote(service, *words, "-c", code, "--", "one", "--two")
    assert done.stdout == b"(['one', '--two'], '1', 'x=y')\n"
    assert remote(service, "-c", "1 + 1").stdout == b"", "only when asked for"


def test_the_program_from_a_file_and_from_stdin(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text("print('from a file')")
    assert remote(service, file).stdout == b"from a file\n"
    assert remote(service, "-", stdin=b"print('from stdin')").stdout == b"from stdin\n"


def test_stdin_is_sent(service: Service) -> None:
    done = remote(service, "--stdin", "-c", "print(input()); print(input())", stdin=b"a\nb\n")
    assert done.stdout == b"a\nb\n"
    assert remote(service, "-c", "import sys; print(sys.stdin.read())", stdin=b"x").stdout == b"\n"


def test_files_in_and_out(service: Service, tmp_path: Path) -> None:
    small, large = tmp_path / "small.bin", tmp_path / "large.bin"
    small.write_bytes(bytes(range(256)))
    large.write_bytes(os.urandom(3 << 20))
    before = stored(service)
    code = (
        "import os, shutil; os.mkdir('d')\n"
        "shutil.copy('small.bin', 'd/one'); shutil.copy('in/l', 'two')\n"
        "open('empty', 'w')"
    )
    files = ["--file", str(small), "--file", f"{large}:in/l"]
    done = remote(service, *flags(LONG), *files, "--out", tmp_path / "out", "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
    want = {"d/one": small.read_bytes(), "two": large.read_bytes(), "empty": b""}
    assert tree(tmp_path / "out") == want
    assert "input" not in stored(service)[len(before) :], "what was uploaded for it is removed"


def test_json_is_the_whole_result(service: Service) -> None:
    done = remote(service, "--json", "-c", "print('x'); 1/0")
    result = json.loads(done.stdout)
    assert done.returncode == 1 and done.stderr == b""
    assert result["stdout"] == "x\n" and result["error"]["name"] == "ZeroDivisionError"
    assert result["usage"]["wall_ms"] > 0 and result["profile"] == "base"


THREADS = """
import threading
over = threading.Event()
try:
    for i in range(200):
        threading.Thread(target=over.wait).start()
except RuntimeError:
    over.set()
"""


@pytest.mark.parametrize("way", ["engine", "server"])
@pytest.mark.parametrize(
    "code,words",
    [
        ("while True: pass", "stopped: it used more than 1 s of CPU time (--cpu)"),
        ("x = bytearray(1 << 30)", "killed: it needed more than 256 MB of memory (--memory)"),
        (THREADS, "it could not start more: 64 processes and threads at once are allowed (--pids)"),
        ("open('f', 'wb').write(bytes(100 << 20))", "its disk became full: 64 MB are allowed"),
        ("print('x' * 1000001)", "stdout was cut: there was more than 1 MB of it (--output)"),
        ("import os; os.kill(os.getpid(), 11)", "killed by signal 11 (Segmentation fault)"),
    ],
    ids=["cpu", "memory", "pids", "disk", "output", "signal"],
)
def test_a_limit_that_was_hit_is_said_in_words(
    service: Service, way: str, code: str, words: str
) -> None:
    where = ("--server", service.url) if way == "server" else ("--socket", str(service.socket))
    cpu = "1" if "while" in code else "60"
    done = run_cli("run", *where, "--timeout", "60", "--cpu", cpu, "-c", code)
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("cloche: ")]
    assert len(lines) == 1 and words in lines[0], done.stderr


def test_all_that_was_hit_is_said(service: Service) -> None:
    code = "print('x' * 1000, flush=True)\nwhile True: pass"
    for where in (("--server", service.url), ("--socket", str(service.socket))):
        done = run_cli("run", *where, "--timeout", "0.3", "--output", "100", "-c", code)
        assert done.stderr.decode().splitlines() == [
            "cloche: stopped: it ran longer than 0.3 s (--timeout)",
            "cloche: stdout was cut: there was more than 100 bytes of it (--output)",
        ]
    result = json.loads(remote(service, "--json", "-c", "print(1)").stdout)
    assert "warnings" not in result, "nothing to warn of"


def test_limits_and_their_words(service: Service, tmp_path: Path) -> None:
    done = remote(service, "--timeout", "0.3", "-c", "while True: pass")
    assert done.returncode == 124
    assert done.stderr == b"cloche: stopped: it ran longer than 0.3 s (--timeout)\n"
    code = "x = bytearray(1 << 30)"
    done = remote(service, "--memory", "100", "--timeout", "30", "-c", code)
    assert done.returncode == 137
    assert b"needed more than 100 MB of memory (--memory)" in done.stderr
    done = remote(service, "--timeout", "30", "--cpu", "1", "-c", "while True: pass")
    assert done.returncode == 137 and b"more than 1 s of CPU time (--cpu)" in done.stderr
    done = remote(service, "--timeout", "0.3", "--json", "-c", "while True: pass")
    assert done.returncode == 124 and json.loads(done.stdout)["status"] == "timeout"
    done = remote(service, "--output", "100", "-c", "print('x' * 1000)")
    assert (done.returncode, done.stdout) == (0, b"x" * 100)
    note = b"cloche: stdout was cut: there was more than 100 bytes of it (--output)\n"
    assert done.stderr == note
    done = remote(service, "--output", "100", "--json", "-c", "print('x' * 1000)")
    assert json.loads(done.stdout)["limit_hit"] == "output" and done.stderr == note
    code = "open('large', 'w').truncate(1 << 40)"
    assert remote(service, "-c", code).stderr == b""
    done = remote(service, "--out", tmp_path, "-c", code)
    assert done.returncode == 0 and done.stderr.startswith(b"cloche: not all files came out: ")


def test_a_signal_gives_128_and_its_number(service: Service) -> None:
    done = remote(service, "-c", "import os; os.kill(os.getpid(), 15)")
    assert done.returncode == 143 and b"killed by signal 15 (Terminated)" in done.stderr


@pytest.mark.parametrize("json_too", [False, True])
def test_ctrl_c_stops_the_program_inside(service: Service, json_too: bool) -> None:
    name = os.urandom(8).hex()
    code = f"import time; x = '{name}'; print(1, flush=True); time.sleep(300)"
    words = [*flags(LONG), *(["--json"] if json_too else []), "-c", code]

    def running() -> bool:
        return bool(service.info()["running"])

    with popen(service, *words) as cli:
        assert eventually(running)
        cli.send_signal(signal.SIGINT)
        assert cli.wait() == 130
    assert eventually(lambda: not running()), "the program does not outlive its client"


def test_a_unix_socket(start_service: Any, tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    start_service("--profiles", "base", "--http-socket", str(path))
    done = run_cli("run", "--server", f"unix:{path}", "-c", "print(1)")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")
    done = run_cli("status", "--server", f"unix:{path}")
    assert done.returncode == 0 and b"base" in done.stdout


# ---------------------------------------------------------------------------- keys


def test_the_key_comes_from_a_file_or_the_environment(
    keyed_service: KeyedService, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(keyed_service.key + "\n")
    assert remote(keyed_service, "--key-file", file, "-c", "print(1)").stdout == b"1\n"
    env = clean_env(CLOCHE_API_KEY=keyed_service.key)
    assert remote(keyed_service, "-c", "print(2)", env=env).stdout == b"2\n"
    failed(remote(keyed_service, "-c", "print(3)"), "API key", "CLOCHE_API_KEY", "--key-file")
    wrong = clean_env(CLOCHE_API_KEY="clk_wrong")
    done = remote(keyed_service, "--json", "-c", "print(3)", env=wrong)
    assert json.loads(done.stdout)["error"]["code"] == "bad_key" and done.returncode == 125


def test_a_key_in_the_environment_reaches_no_engine() -> None:
    """The private engine's processes get what they need, not this."""
    env = clean_env(CLOCHE_API_KEY="clk_secret", CLOCHE_SOCKET="")
    with subprocess.Popen(
        [cloche_bin(), "run", "--profile", "base", "--timeout", "50", "-c", "input()", "--stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    ) as cli:
        children = Path(f"/proc/{cli.pid}/task/{cli.pid}/children")
        warden = eventually(lambda: children.read_text().split())
        assert warden
        environ = Path(f"/proc/{warden[0]}/environ")
        # Until it has become the warden it still has ours.
        eventually(lambda: b"warden" in Path(f"/proc/{warden[0]}/cmdline").read_bytes())
        text = environ.read_bytes()
        cli.kill()
    assert text and b"clk_secret" not in text


@pytest.mark.parametrize(
    "text,words",
    [("", "first line is empty"), ("a b", "no key"), ("k" * 9999, "longer"), ("ä", "no key")],
)
def test_a_key_file_that_holds_none(
    service: Service, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    failed(remote(service, "--key-file", file, "-c", "1"), words)
    failed(remote(service, "--key-file", tmp_path / "no", "-c", "1"), "No such file")


# ---------------------------------------------------------------------------- what goes wrong


def test_what_cannot_go_over_http_is_said(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "latin.py"
    file.write_bytes(b"# coding: latin-1\nprint('\xe4')\n")
    failed(remote(service, file), "the program", "not UTF-8", "without --server")
    failed(remote(service, "--stdin", "-c", "1", stdin=b"\xff"), "--stdin", "not UTF-8")
    failed(remote(service, "--stdin", "-c", "1", stdin=b"a\0b"), "--stdin", "NUL")
    bad = os.fsdecode(b"\xff")
    failed(remote(service, "-c", "1", "--", bad), "argument 1", "not UTF-8")
    failed(remote(service, "--env", f"A={bad}", "-c", "1"), "--env", "not UTF-8")


def test_the_servers_refusals_come_through(service: Service) -> None:
    failed(remote(service, "--profile", "gpu", "-c", "1"), 'no profile "gpu"')
    failed(remote(service, "--timeout", "999999", "-c", "1"), "maximum of 60000 ms")
    failed(remote(service, "--open-files", "5", "-c", "1"), "open_files", "16")
    done = remote(service, "--json", "--memory", "4000000", "-c", "1")
    assert json.loads(done.stdout)["error"]["code"] == "limit_too_high"


@pytest.mark.parametrize(
    "url,words",
    [
        ("127.0.0.1:8000", "scheme"),
        ("ftp://127.0.0.1", "scheme"),
        ("http://", "no host"),
        ("http://u:p@127.0.0.1", "--key-file"),
        ("http://127.0.0.1/?x", "path"),
        ("unix:", "no path"),
        ("unix:/" + "x" * 200, "too long"),
        ("http://127.0.0.1:99999", "the server's URL is"),
        ("http://127.0.0.1:1", "no server answers"),
        ("unix:/nowhere/at/all", "no server answers"),
    ],
)
def test_a_server_that_is_not_there(url: str, words: str) -> None:
    failed(run_cli("run", "--server", url, "-c", "1"), words)
    failed(run_cli("status", "--server", url), words)


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    failed(run_cli("run", "--server", "http://x", "--socket", "/y", "-c", "1"), "--socket")
    failed(run_cli("run", "--server", "http://x", "--config", "/y", "-c", "1"), "--config")
    failed(run_cli("run", "--key-file", "/y", "-c", "1"), "--key-file is for --server")


def test_a_server_that_dies_meanwhile(start_service: Any) -> None:
    service = start_service("--profiles", "base", "--drain-s", "0")
    code = "import time; print(1, flush=True); time.sleep(300)"
    with popen(service, *flags(LONG), "-c", code) as cli:
        assert cli.stdout is not None and cli.stderr is not None
        cli.stdout.readline()
        service.remember()
        server = next(p for p in service.known if p.role == "cloche-server")
        os.kill(server.pid, signal.SIGKILL)
        assert cli.wait() == 125
        assert b"went away" in cli.stderr.read()


# ---------------------------------------------------------------------------- servers of our own


@contextmanager
def fake(reply: bytes, kind: str = "application/json", cert: Path | None = None) -> Iterator[int]:
    """Something else than cloche on a port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(reply)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "reply,words",
    [
        (b"<html>", "went away"),
        (b"event: output\ndata: {}\n\n", "without output"),
        (b"event: output\ndata: x\n\n", "no JSON"),
        (b'event: result\ndata: ["x"]\n\n', "no JSON object"),
        (b'event: output\ndata: {"stream":"stdout","data":"x"}\n', "went away"),
    ],
)
def test_what_answers_is_no_cloche(reply: bytes, words: str) -> None:
    with fake(reply, "text/event-stream") as port:
        failed(run_cli("run", "--server", f"http://127.0.0.1:{port}", "-c", "1"), words)
        failed(run_cli("status", "--server", f"http://127.0.0.1:{port}"), "no JSON")


def test_names_of_files_cannot_leave_the_directory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for path in ("../x", "/x", "a/../../x"):
        result = {"exit_code": 0, "files": [{"path": path, "file_id": "f", "size_bytes": 5}]}
        reply = b"event: result\ndata: " + json.dumps(result).encode() + b"\n\n"
        with fake(reply) as port:
            url = f"http://127.0.0.1:{port}"
            run_cli("run", "--server", url, "--out", out, "-c", "1")
    assert not list(tmp_path.rglob("x"))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    both = tmp_path / "both.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*words, "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    return both


def test_a_certificate_is_checked(certificate: Path) -> None:
    result = b'event: result\ndata: {"exit_code": 3}\n\n'
    with fake(result, "text/event-stream", certificate) as port:
        url = f"https://localhost:{port}"
        failed(run_cli("run", "--server", url, "-c", "1"), "certificate", "SSL_CERT_FILE")
        env = clean_env(SSL_CERT_FILE=str(certificate))
        assert run_cli("run", "--server", url, "-c", "1", env=env).returncode == 3
        other = f"https://127.0.0.1:{port}"
        failed(run_cli("run", "--server", other, "-c", "1", env=env), "not who it says")
