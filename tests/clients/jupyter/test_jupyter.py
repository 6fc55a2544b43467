"""Jupyter's clients of today: jupyter_kernel_test, nbclient, and JupyterLab as a frontend of a
sandbox's own port."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import unittest
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupyter_kernel_test
from jupyter_core.utils import ensure_async, run_sync
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager

from cloche import Sandbox
from harness import eventually

ROOT = Path(__file__).resolve().parents[3]
HANG_S = 600


def ensure_sync(call: Any) -> Any:
    """The gateway's client is for async code, and jupyter_kernel_test is not."""
    return lambda *args, **more: run_sync(ensure_async)(call(*args, **more))


class Kernel(jupyter_kernel_test.KernelTests):  # type: ignore[misc]
    """What every kernel must do, with a kernel behind the gateway."""

    __test__ = False  # for pytest: it runs in a process of its own
    kernel_name = "python3"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('oops', file=sys.stderr)"
    code_page_something = "print?"
    code_execute_result = [{"code": "6 * 7", "result": "42"}, {"code": "'a'", "result": "'a'"}]
    code_generate_error = "raise ValueError('no')"
    code_display_data = [
        {
            "code": "from IPython.display import display, HTML; display(HTML('<b>x</b>'))",
            "mime": "text/html",
        }
    ]
    code_history_pattern = "6?* 7"
    supported_history_operations = ("tail", "range", "search")
    completion_samples = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples = ["1", "print(1)"]
    incomplete_code_samples = ["for i in range(3):", "'''abc"]
    invalid_code_samples = ["import = 7q"]
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    @classmethod
    def setUpClass(cls) -> None:
        cls.km = GatewayKernelManager()
        ensure_sync(cls.km.start_kernel)()
        cls.kc = cls.km.client()
        ensure_sync(cls.kc.start_channels)()
        cls.kc.get_shell_msg = ensure_sync(cls.kc.get_shell_msg)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.kc.stop_channels()
        ensure_sync(cls.km.shutdown_kernel)()


def test_kernels_pass_jupyter_kernel_test(service: Any) -> None:
    """In a process of its own: the gateway client is one per process."""
    done = subprocess.run(
        [sys.executable, __file__, service.url],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-6000:]
    print(done.stderr.splitlines()[-3:])


def notebook(*cells: str) -> str:
    made = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "outputs": [], "source": cell}
        | {"execution_count": None}
        for i, cell in enumerate(cells)
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made})


def executed(url: str, where: Path, *cells: str) -> Any:
    """The cells, run by nbclient through that server."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/blackbox/run_notebook.py"), url],
        input=notebook(*cells),
        cwd=where,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["cells"]


def test_nbclient_runs_notebooks(service: Any, tmp_path: Path) -> None:
    cells = executed(service.url, tmp_path, "x = 6", "print('out')\nx * 7", "1 / 0")
    assert "".join(cells[1]["outputs"][0]["text"]) == "out\n"
    assert cells[1]["outputs"][1]["data"]["text/plain"] in ("42", ["42"])
    assert cells[2]["outputs"][0]["ename"] == "ZeroDivisionError"


@contextlib.contextmanager
def lab(place: Path, gateway: str) -> Iterator[str]:
    """JupyterLab with kernels of that gateway; its URL."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    places = {f"JUPYTER_{name}_DIR": str(place) for name in ("RUNTIME", "CONFIG", "DATA")}
    words = ["--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0"]
    words += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    words += [f"--gateway-url={gateway}", f"--ServerApp.root_dir={place}"]
    url = f"http://127.0.0.1:{port}"
    with (place / "log").open("w") as log:
        program = [str(Path(sys.executable).parent / "jupyter-lab"), *words]
        process = subprocess.Popen(program, env=os.environ | places, stdout=log, stderr=log)
    try:
        assert eventually(lambda: answers(url)), (place / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/api").status == 200
    except OSError:
        return False


def test_jupyterlab_has_the_kernels_of_one_sandbox(service: Any, tmp_path: Path) -> None:
    with Sandbox.create(listen=True) as box:
        box.run("open('here', 'w').write('yes')")
        with lab(tmp_path, f"http://127.0.0.1:{box.info().port}") as url:
            page = urllib.request.urlopen(f"{url}/lab").read()
            assert b"JupyterLab" in page
            specs = json.load(urllib.request.urlopen(f"{url}/api/kernelspecs"))["kernelspecs"]
            assert list(specs) == ["python3"]
            cells = executed(url, tmp_path, "x = 6", "x * 7", "print(open('here').read())")
        assert cells[1]["outputs"][0]["data"]["text/plain"] in ("42", ["42"])
        assert "".join(cells[2]["outputs"][0]["text"]) == "yes\n"
        assert len(box.kernels.list()) == 1, "the notebook's is deleted"


if __name__ == "__main__":
    GatewayClient.instance().url = sys.argv.pop()
    unittest.main()
