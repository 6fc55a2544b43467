"""Files that go in and files that come out."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from harness import LONG, Engine, failed, flags, tree


def test_a_file_in(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n")
    result = engine.run("print(open('data.csv').read(), end='')", file=tmp_path / "data.csv")
    assert result.stdout == "a,b\n"


def test_a_file_in_under_another_name(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\xff")
    code = "print(open('sub/dir/y.bin', 'rb').read())"
    assert engine.run(code, file=f"{tmp_path}/x:sub/dir/y.bin").stdout == "b'\\x00\\xff'\n"


def test_a_fifo_in(engine: Engine, tmp_path: Path) -> None:
    """As a shell's <(command) gives it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(b"x" * 100_000,))
    writer.start()
    assert engine.run("print(len(open('data').read()))", file=f"{fifo}:data").stdout == "100000\n"
    writer.join()


def test_names_with_spaces_and_unicode(engine: Engine, tmp_path: Path) -> None:
    names = ["a b.txt", "数据.txt", "naïve (1).txt", "-dash", "emoji 🌱"]
    for name in names:
        (tmp_path / name).write_text(name)
    code = (
        "import os\n"
        "for n in sorted(os.listdir()):\n"
        "    if n != '__main__.py': print(n, open(n).read() == n)"
    )
    result = engine.run(code, file=[tmp_path / name for name in names])
    assert result.stdout == "".join(f"{name} True\n" for name in sorted(names))


def test_an_input_file_can_be_changed_inside_only(engine: Engine, tmp_path: Path) -> None:
    host = tmp_path / "x"
    host.write_text("old")
    assert engine.run("open('x', 'w').write('new')", file=host).status == "ok"
    assert host.read_text() == "old"


def test_files_out(engine: Engine, tmp_path: Path) -> None:
    code = (
        "import os\n"
        "os.makedirs('a/b')\n"
        "open('top.txt', 'w').write('t')\n"
        "open('a/b/deep.bin', 'wb').write(bytes(range(256)))\n"
        "open('empty', 'w').close()\n"
        "open('.hidden', 'w').write('h')\n"
        "open('with space ü.txt', 'w').write('s')\n"
    )
    out = tmp_path / "out"
    assert engine.cli("--out", out, "-c", code).returncode == 0
    assert tree(out) == {
        "top.txt": b"t",
        "a/b/deep.bin": bytes(range(256)),
        "empty": b"",
        ".hidden": b"h",
        "with space ü.txt": "s".encode(),
    }


def test_an_unchanged_input_is_not_given_back(engine: Engine, tmp_path: Path) -> None:
    for name in ("same", "changed", "same_size", "rewritten"):
        (tmp_path / name).write_text("old")
    code = (
        "open('changed', 'a').write('!')\n"
        "open('same_size', 'w').write('new')\n"
        "open('rewritten', 'w').write('old')\n"
        "open('same').read()\n"
    )
    out = tmp_path / "out"
    files = [
        w
        for name in ("same", "changed", "same_size", "rewritten")
        for w in ("--file", str(tmp_path / name))
    ]
    assert engine.cli(*files, "--out", out, "-c", code).returncode == 0
    assert tree(out) == {"changed": b"old!", "same_size": b"new"}


def test_links_and_other_things_are_not_given_back(engine: Engine, tmp_path: Path) -> None:
    code = (
        "import os, socket\n"
        "os.symlink('/etc/passwd', 'link')\n"
        "os.symlink('/', 'root')\n"
        "os.mkfifo('fifo')\n"
        "socket.socket(socket.AF_UNIX).bind('sock')\n"
        "open('file', 'w').write('x')\n"
    )
    assert engine.cli("--out", tmp_path / "out", "-c", code).returncode == 0
    assert tree(tmp_path / "out") == {"file": b"x"}


def test_the_program_itself_is_not_given_back(engine: Engine, tmp_path: Path) -> None:
    code = (
        "open('__main__.py', 'a').write('# more')\n"
        "import os; os.mkdir('d'); open('d/__main__.py', 'w')"
    )
    assert engine.cli("--out", tmp_path / "out", "-c", code).returncode == 0
    assert tree(tmp_path / "out") == {}


def test_files_in_the_result(engine: Engine, tmp_path: Path) -> None:
    code = "open('a.txt', 'w').write('abc')"
    result = engine.run(code, out=tmp_path / "out")
    assert [(f["path"], f["kind"], f["size_bytes"]) for f in result.files] == [("a.txt", "file", 3)]


def test_files_after_an_error(engine: Engine, tmp_path: Path) -> None:
    done = engine.cli("--out", tmp_path / "out", "-c", "open('a', 'w').write('x'); 1/0")
    assert done.returncode == 1
    assert tree(tmp_path / "out") == {"a": b"x"}


def test_many_files_out(engine: Engine, tmp_path: Path) -> None:
    code = "import os\nfor k in range(300): open(f'f{k}', 'w').write(str(k))"
    assert engine.cli("--out", tmp_path / "out", "--timeout", "60", "-c", code).returncode == 0
    assert tree(tmp_path / "out") == {f"f{k}": str(k).encode() for k in range(300)}


@pytest.mark.parametrize(
    "code,n",
    [
        ("for i in range(1005): open(f'{i}', 'w').close()", 1000),
        ("import os\nos.makedirs('a/' * 40)\nopen('a/' * 40 + 'f', 'w').close()", 0),
        ("open('large', 'w').truncate(1 << 40)", 0),
    ],
)
def test_files_that_do_not_come_out_are_told(
    engine: Engine, tmp_path: Path, code: str, n: int
) -> None:
    out = tmp_path / "out"
    done = engine.cli("--out", out, *flags(LONG), "-c", code)
    assert done.returncode == 0
    assert b"cloche: not all files came out: " in done.stderr
    assert len(list(out.iterdir()) if out.exists() else []) == n
    assert engine.cli(*flags(LONG), "-c", code).stderr == b"", "nobody asked for them"


@pytest.mark.parametrize("target", ["/etc/x", "../x", "a/../../x", "__main__.py", "./__main__.py"])
def test_input_paths_stay_below_the_workspace(engine: Engine, tmp_path: Path, target: str) -> None:
    (tmp_path / "x").write_text("x")
    failed(engine.cli("--file", f"{tmp_path}/x:{target}", "-c", "print('ran')"))
