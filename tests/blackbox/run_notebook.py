"""A program of its own, since Jupyter's gateway client is one per process: runs the notebook on
stdin with nbclient, through the server at the URL given or else with ipykernel, and prints it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import nbformat
from nbclient import NotebookClient


def gateway(url: str) -> Any:
    from jupyter_server.gateway.gateway_client import GatewayClient
    from jupyter_server.gateway.managers import GatewayKernelManager

    GatewayClient.instance().url = url
    return GatewayKernelManager()


def main() -> None:
    notebook = nbformat.reads(sys.stdin.read(), as_version=4)
    fields: dict[str, Any] = {"kernel_name": "python3", "timeout": 300, "allow_errors": True}
    if len(sys.argv) > 1:
        fields["km"] = gateway(sys.argv[1])
    client = NotebookClient(notebook, **fields)
    try:
        client.execute()
    finally:
        if "km" in fields:  # not nbclient's own
            channels: Any = client.kc
            channels.stop_channels()
            asyncio.run(fields["km"].shutdown_kernel())
    print(nbformat.writes(notebook))


main()
