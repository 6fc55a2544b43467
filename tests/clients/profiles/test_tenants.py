"""A profile that a tenant makes over HTTP, with packages of today from PyPI, through the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import LiveService
from live import Client
from tenants import make, remove, run
from test_made import CODE, PACKAGES


@pytest.mark.timeout(1800)
def test_frames(tmp_path: Path) -> None:
    service = LiveService(tmp_path, "--profiles", "base")
    try:
        client = Client(service.port)
        limits = {"memory_mb": 1024, "cpu_seconds": 60}
        packages = [name for name in PACKAGES if name != "matplotlib"]
        found = make(client, "frames", *packages, limits=limits)
        assert {"pandas", "polars", "duckdb"} <= {p["name"] for p in found["installed"]}
        result = run(client, "frames", CODE, timeout_ms=60000)
        assert result["stdout"] == "6 3\n42\nTrue True\n", result
        with client.box(profile="frames") as box:
            text = "import pandas, numpy; pandas.DataFrame({'n': numpy.arange(3)}).n.sum().item()"
            assert box.text(text) == "3"
        assert remove(client, "frames").status == 204
        service.stop()
    finally:
        service.kill()
