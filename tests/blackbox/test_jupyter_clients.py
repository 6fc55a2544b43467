"""Clients of Jupyter as they are: nbclient through a gateway client, jupyter-server in gateway
mode, JupyterLab's services."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import notebook_cells
from harness import PYTHON, LiveService, eventually
from jupyter import HANG_S, Channels, Jupyter, jupyter_server, printed, use_services

HERE = Path(__file__).parent


@pytest.fixture
def jupyter(live_service: LiveService) -> Iterator[Jupyter]:
    found = Jupyter(live_service.port)
    yield found
    found.wipe()


# ---- nbclient ----


def executed(notebook: dict[str, Any], where: Path, *words: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [PYTHON, str(HERE / "run_notebook.py"), *words],
        input=json.dumps(notebook),
        cwd=where,
        env=os.environ | {"JUPYTER_RUNTIME_DIR": str(where), "IPYTHONDIR": str(where)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    cells: list[dict[str, Any]] = json.loads(done.stdout)["cells"]
    return cells


def comparable(output: Any) -> Any:
    """Without what cannot be the same: addresses, names of files, line ends of a terminal."""
    text = json.dumps(output)
    text = re.sub(r"0x[0-9a-f]{8,}", "0x", text)
    text = re.sub(r"\((<ipython-input-\d+-[0-9a-f]+>|\d+\.py), line", "(cell, line", text)
    text = text.replace("\\r\\n", "\\n")
    value = json.loads(text)
    if isinstance(value.get("data", {}).get("image/png"), str):
        value["data"]["image/png"] = value["data"]["image/png"].strip()
    return value


def merged(outputs: list[Any]) -> list[Any]:
    """With what was printed to one stream in a row as one: pauses decide how many they are."""
    found: list[Any] = []
    for output in map(comparable, outputs):
        if "text" in output:
            output["text"] = "".join(output["text"])
        last = found[-1] if found else {}
        if output.get("name") and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            found.append(output)
    return found


def test_a_notebook_gives_what_it_gives_with_ipykernel(jupyter: Jupyter, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = notebook_cells.notebook()
    assert len(notebook["cells"]) >= 100
    ours = executed(notebook, tmp_path, f"http://127.0.0.1:{jupyter.port}")
    theirs = executed(notebook, tmp_path)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine["execution_count"] == other["execution_count"], mine["source"]
        assert merged(mine["outputs"]) == merged(other["outputs"]), mine["source"]
    assert jupyter.get("/api/kernels") == []


# ---- jupyter-server as a client ----


@pytest.fixture(params=["jupyter-server", "jupyter-notebook"])
def gateway(jupyter: Jupyter, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Jupyter]:
    """A jupyter-server, or the classic notebook's, whose kernels are ours."""
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param}")
    url = f"--gateway-url=http://127.0.0.1:{jupyter.port}"
    with jupyter_server(tmp_path, url, program=request.param) as port:
        yield Jupyter(port)


@contextmanager
def opened(gateway: Jupyter, kernel: str) -> Iterator[Channels]:
    """jupyter-server drops what comes before its own connection is there: so it is asked again."""
    with gateway.open(kernel) as channels:

        def answered() -> bool:
            channels.send("kernel_info_request", {})
            return bool(select.select([channels.socket.sock], [], [], 0.2)[0])

        assert eventually(answered)
        channels.until(lambda m: m["msg_type"] == "kernel_info_reply")
        yield channels


def test_jupyter_server_in_gateway_mode(gateway: Jupyter, jupyter: Jupyter) -> None:
    specs = gateway.get("/api/kernelspecs")
    assert specs["default"] == "python3" and "base-isolated" in specs["kernelspecs"]
    ident = gateway.kernel("python3")
    assert [kernel["id"] for kernel in jupyter.get("/api/kernels")] == [ident]
    with opened(gateway, ident) as kernel:
        run = kernel.run("print('through two servers')\nname = input('who? ')\nname", ["me"])
        assert run.text() == "through two servers\n" and run.result == "'me'"
        running = kernel.start("print('on', flush=True)\nwhile True: pass")
        kernel.until(printed("on"))
        assert gateway.ask("POST", f"/api/kernels/{ident}/interrupt").status == 204
        assert kernel.finish_late(running).reply["ename"] == "KeyboardInterrupt"
    assert gateway.ask("POST", f"/api/kernels/{ident}/restart").status == 200
    with opened(gateway, ident) as kernel:
        assert kernel.run("name").reply["ename"] == "NameError"
    body = {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    session = gateway.ask("POST", "/api/sessions", body)
    assert session.status == 201, session
    with opened(gateway, session.json["kernel"]["id"]) as kernel:
        assert kernel.ok("1 + 1").result == "2"
    assert gateway.ask("DELETE", f"/api/sessions/{session.json['id']}").status == 204
    assert gateway.ask("DELETE", f"/api/kernels/{ident}").status == 204
    assert jupyter.get("/api/kernels") == []


# ---- JupyterLab's half ----


def test_services_of_jupyterlab(jupyter: Jupyter) -> None:
    use_services(jupyter.port)


# ---- VS Code: a few questions of its extension, then the same library ----


def test_vs_code_without_a_key_is_not_asked_for_a_password(jupyter: Jupyter) -> None:
    assert jupyter.ask("GET", "/hub/api").status == 404, "no hub"
    assert jupyter.ask("GET", "/tree?").status == 200, "nobody has to log in"
