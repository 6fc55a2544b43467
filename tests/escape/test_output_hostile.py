"""What programs print is read and kept by the server: with the sandbox's charge, within a bound,
and for no more of the server's time than the sandbox pays for."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import LiveService, eventually, warm
from http_client import Connection, ask
from live import Box, Client
from raw_http import resident_mb
from turns import IS_ASAN

MB = 1 << 20
KERNELS = 10
OUTPUT_MB = 16  # of each stream
MOST_MB = 2 * OUTPUT_MB + 32  # what is kept for one sandbox: see SECURITY.md
LEAST = 64 << 10  # of each stream
FREED_MB = 256 if IS_ASAN else 0  # what the sanitizer keeps of that
WINDOW_S = 3.0  # of looking at what goes on without end

PRINTS = f"""
import os
for stream in (1, 2):
    for i in range({OUTPUT_MB}): os.write(stream, b"x" * (1 << 20))
"""
SHOWS = """
from IPython.display import display
for i in range(2): display({"text/plain": "y" * 4_000_000}, raw=True)
"""
WAITS = """
import os, time
open("there%d", "w").close()
while not os.path.exists("enough"): time.sleep(0.05)
"""
HOARDS = {"text": PRINTS, "displays": SHOWS, "both": SHOWS + PRINTS}


def metric(port: int, name: str) -> float:
    text = ask(port, "GET", "/metrics").body.decode()
    found = re.findall(rf"^cloche_{name} (\S+)$", text, re.MULTILINE)
    assert found, name
    return float(found[0])


def charged_mb(box: Box) -> float:
    """The charge is measured when somebody wants memory."""
    assert box.client.ask("PUT", f"{box.path}/files/small", "x").status in (200, 201, 204)
    return metric(box.port, "memory_charged_bytes") / MB


def is_whole(result: dict[str, object]) -> bool:
    """Whatever is missing is told."""
    cut = bool(
        result["stdout_truncated"] or result["stderr_truncated"] or result["results_truncated"]
    )
    assert cut == (result["limit_hit"] == "output") == bool(result.get("warnings")), {
        name: value for name, value in result.items() if name not in ("stdout", "stderr", "results")
    }
    return not cut


@pytest.fixture(scope="module")
def hoarders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    options = ("--profiles", "base", "--max-output-bytes", str(OUTPUT_MB * MB))
    yield from warm(LiveService(tmp_path_factory.mktemp("hoarders"), *options))


@pytest.mark.parametrize("code", HOARDS.values(), ids=HOARDS)
def test_what_running_cells_printed_is_bounded_and_charged(
    hoarders: LiveService, code: str
) -> None:
    limits = {"memory_mb": 512, "output_bytes": OUTPUT_MB * MB, "pids": 128}
    with Client(hoarders.port).box(limits=limits) as box, contextlib.ExitStack() as all_cells:
        kernels = [box.kernel() for _ in range(KERNELS)]
        before, charged = resident_mb(hoarders), charged_mb(box)
        cells: list[Connection] = [
            all_cells.enter_context(box.later(code + WAITS % i, kernel_id=k, timeout_ms=60000))
            for i, k in enumerate(kernels)
        ]
        there = "import glob\nlen(glob.glob('there*'))"
        assert eventually(lambda: box.text(there) == str(KERNELS))
        grown = resident_mb(hoarders) - before
        more = charged_mb(box) - charged
        left = 64 + 80 + FREED_MB  # the events of records, and what reading leaves
        assert grown < MOST_MB + left, grown
        assert more > MOST_MB * 0.9, (more, grown)
        few = box.run("print('a few words'); 1 + 1")
        assert (few["stdout"], few["text"]) == ("a few words\n", "2"), "there is always room for"
        box.run("open('enough', 'w').close()")
        results = [cell.reply().json for cell in cells]
        kept = sum(len(result["stdout"]) + len(result["stderr"]) for result in results)
        assert kept <= MOST_MB * MB + KERNELS * 2 * LEAST
        assert not all([is_whole(result) for result in results])
        alone = box.run(PRINTS)
        assert is_whole(alone) and len(alone["stdout"]) == len(alone["stderr"]) == OUTPUT_MB * MB


def test_commands_that_are_over_make_room(hoarders: LiveService) -> None:
    fill = "head -c 15000000 /dev/zero | tr '\\0' x"
    with Client(hoarders.port).box(limits={"output_bytes": OUTPUT_MB * MB}) as box:
        for _ in range(4):
            assert len(box.do("/commands", cmd=fill)["stdout"]) == 15000000
        alone = box.run(SHOWS + PRINTS)
        assert is_whole(alone) and len(alone["stdout"]) == len(alone["stderr"]) == OUTPUT_MB * MB


def inside_s(service: LiveService) -> float:
    """Processor time of all that runs in its sandboxes."""
    tops = list(map(Path, service.own_cgroups()))
    v1 = [int(path.read_text()) for top in tops for path in top.glob("*/cpuacct.usage")]
    v2 = [int(path.read_text().split()[1]) for top in tops for path in top.glob("*/cpu.stat")]
    return sum(v1) / 1e9 if v1 else sum(v2) / 1e6


@pytest.fixture
def boxes(live_service: LiveService) -> Iterator[list[Box]]:
    if not live_service.own_cgroups():
        pytest.skip("no control groups here")
    with contextlib.ExitStack() as all_boxes:
        client = Client(live_service.port)
        yield [
            all_boxes.enter_context(
                client.box(limits={"cpus": 0.5, "memory_mb": 128, "output_bytes": MB})
            )
            for _ in range(3)
        ]


PRINT_WITHOUT_END = {
    "large writes": "yes",
    "a byte at a time": "python3 -c 'import os\nwhile 1: os.write(1, b\"x\")'",
}


@pytest.mark.parametrize("cmd", PRINT_WITHOUT_END.values(), ids=PRINT_WITHOUT_END)
def test_reading_is_paid_for_and_paced(
    live_service: LiveService, boxes: list[Box], cmd: str
) -> None:
    port = boxes[0].port

    def billed() -> float:
        """Beyond what the programs themselves used."""
        paid = float(sum(box.get()["usage"]["cpu_ms"] for box in boxes)) / 1e3
        return paid - inside_s(live_service)

    def spent() -> float:
        return metric(port, "loop_turn_cpu_seconds_sum")

    base = spent()
    for box in boxes:
        for _ in range(4):
            box.ask("POST", "/commands", {"cmd": cmd, "background": True})
    assert eventually(lambda: spent() > base + 3 * 0.5), "what is read without any rest"
    began, paid, took = time.monotonic(), billed(), spent()
    assert eventually(lambda: time.monotonic() - began > WINDOW_S, step_s=0.5)
    took, paid = spent() - took, billed() - paid
    share = took / (time.monotonic() - began)
    assert share < 0.5, "of a processor, for all sandboxes of a tenant"
    assert paid > 0.6 * took, (took, paid)


def one_shot(port: int, code: str, timeout_ms: int) -> tuple[dict[str, Any], float]:
    """Its result, and the processor time of the loop meanwhile."""
    before = metric(port, "loop_turn_cpu_seconds_sum")
    body = {"code": code, "timeout_ms": timeout_ms, "limits": {"cpu_seconds": 60}}
    result = Client(port).ask("POST", "/v1/execute", body).json
    assert result["stdout_truncated"], result["status"]
    return result, metric(port, "loop_turn_cpu_seconds_sum") - before


def test_a_one_shot_pays_for_what_it_prints(live_service: LiveService) -> None:
    code = """
import os, sys, time
for _ in range(20_000): os.write(1, bytes(65536))
print(time.process_time(), file=sys.stderr)
"""
    result, took = one_shot(live_service.port, code, 60_000)
    paid = result["usage"]["cpu_ms"] / 1e3 - float(result["stderr"])
    assert paid > 0.6 * took, (paid, took)


def test_a_one_shot_that_prints_without_end_is_paced(live_service: LiveService) -> None:
    result, took = one_shot(
        live_service.port, "import os\nwhile True: os.write(1, bytes(65536))", 3000
    )
    assert result["limit_hit"] == "time", result["limit_hit"]
    assert took < 1.2, took


def test_what_commands_do_not_read_is_bounded_and_charged(live_service: LiveService) -> None:
    """The text waits in the server. Of commands that are over nothing waits."""
    with Client(live_service.port).box() as box:
        body = {"argv": ["sleep", "600"], "background": True, "stdin": "x" * (15 * MB)}
        before = charged_mb(box)
        made = []
        refused = 0
        for _ in range(8):
            reply = box.ask("POST", "/commands", body)
            if reply.status == 202:
                made.append(reply.json["id"])
            else:
                assert reply.status in (409, 429, 503), reply
                assert "stdin" in reply.json["error"]["message"]
                refused += 1
        assert made and refused >= 4  # 64 MB in all
        assert charged_mb(box) - before > 15 * (len(made) - 1)
        for command in made:
            assert box.ask("DELETE", f"/commands/{command}").status == 204
        assert eventually(lambda: charged_mb(box) - before < 5)
