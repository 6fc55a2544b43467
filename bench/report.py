"""Tables, the verdict on the targets, and the plot."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Verdict:
    target: str
    bound: str
    measured: str
    met: bool


def at_most(target: str, value: float, bound: float, unit: str) -> Verdict:
    return Verdict(target, f"≤ {bound:.3g} {unit}", f"{value:.3g}", value <= bound)


def at_least(target: str, value: float, bound: float, unit: str) -> Verdict:
    return Verdict(target, f"≥ {bound:.3g} {unit}", f"{value:.3g}", value >= bound)


def verdicts(data: dict[str, Any]) -> list[Verdict]:
    """The project's targets, as far as they were measured."""
    found: list[Verdict] = []
    latency = data.get("latency", {})
    if "cloche socket" in latency.get("hello", {}).get("to_python3", {}):
        value = latency["hello"]["to_python3"]["cloche socket"]
        found.append(at_most("hello, base, warm, p50", value, 1 / 10, "× python3"))
    if "pandas" in latency and "cloche socket" in latency["pandas"]["to_bwrap"]:
        value = latency["pandas"]["to_bwrap"]["cloche socket"]
        found.append(at_most("pandas job, data, warm, p50", value, 1 / 40, "× bwrap"))
    rates = data.get("throughput", {}).get("to_bwrap", {})
    for profile, bound in (("base", 8), ("data", 3)):
        if f"cloche {profile}" in rates:
            value = rates[f"cloche {profile}"]["16"]
            found.append(at_least(f"hello, 16 clients, {profile}", value, bound, "× bwrap"))
    memory = data.get("memory", {}).get("mib", {})
    for profile, most in (("base", 1.5), ("data", 3.0)):
        if f"cloche {profile}" in memory:
            value = memory[f"cloche {profile}"]
            found.append(at_most(f"memory per idle sandbox, {profile}", value, most, "MiB"))
    for profile, most, plain in (("base", 3.0, "pass"), ("data", 1.3, "import")):
        if profile in data.get("start", {}):
            value = data["start"][profile]["ratio"]
            name = f"start to first result, {profile}"
            found.append(at_most(name, value, most, f"× python3 -c {plain}"))
    return found


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]

    def text(line: Sequence[str]) -> str:
        first, *rest = (
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths))
        )
        return "  ".join([first, *rest]).rstrip()

    return "\n".join([title, text(head), "  ".join("-" * w for w in widths), *map(text, rows), ""])


def latency_table(program: str, data: dict[str, Any]) -> str:
    rows = []
    for name, ms in sorted(data["ms"].items(), key=lambda item: item[1]["p50"]):
        cells = [f"{ms[p]:.2f}" for p in ("p50", "p90", "p99")]
        rows.append([name, *cells, f"{data['to_python3'][name]:.3f}", f"{ms['n']}"])
    title = f"Latency in ms, {program} ({data['rounds']} rounds, {data['warm']} runs from the pool)"
    return table(title, ["", "p50", "p90", "p99", "× python3", "runs"], rows)


def throughput_table(data: dict[str, Any]) -> str:
    rows = []
    for label, rates in data["per_second"].items():
        cells = [f"{rate:.0f}" for rate in rates.values()]
        against = data["to_bwrap"].get(label, {}).get("16")
        cpu = data["machine_cpu_ms_per_run_16"][label]
        rows.append([label, *cells, "" if against is None else f"{against:.2f}", f"{cpu:.2f}"])
    clients = list(next(iter(data["per_second"].values())))
    head = ["", *(f"{n} clients" for n in clients), "× bwrap at 16", "CPU ms each at 16"]
    return table("Throughput of hello, runs per second", head, rows)


def text(data: dict[str, Any]) -> str:
    parts = [f"Machine: {data['machine']}", ""]
    parts += [f"not here: {name}: {why}" for name, why in data.get("missing", {}).items()]
    parts += [latency_table(name, d) for name, d in data.get("latency", {}).items()]
    if "throughput" in data:
        parts.append(throughput_table(data["throughput"]))
    if "memory" in data:
        rows = [[name, f"{mib:.2f}"] for name, mib in data["memory"]["mib"].items()]
        parts.append(table("Memory per idle sandbox or process", ["", "MiB"], rows))
    if "start" in data:
        rows = [
            [f"{profile}, {label}", *(f"{d[key][p]:.0f}" for p in ("p50", "p90")), extra]
            for profile, d in data["start"].items()
            for label, key, extra in (
                ("engine to first result", "engine_ms", f"{d['ratio']:.2f}"),
                ("plain python3", "plain_ms", ""),
            )
        ]
        parts.append(table("Start in ms", ["", "p50", "p90", "× plain"], rows))
    rows = [[v.target, v.bound, v.measured, "met" if v.met else "NOT MET"] for v in verdicts(data)]
    parts.append(table("Targets", ["", "bound", "measured", ""], rows))
    return "\n".join(parts)


# ---------------------------------------------------------------------------- the plot

OURS, THEIRS = "#1a7f5a", "#9aa3ab"


def bars(axes: Any, title: str, values: dict[str, float], unit: str) -> None:
    names = sorted(values, key=lambda name: -values[name])
    colors = [OURS if name.startswith("cloche") else THEIRS for name in names]
    drawn = axes.barh(names, [values[name] for name in names], color=colors)
    axes.bar_label(drawn, fmt="%.3g", padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(unit, fontsize=8)
    axes.margins(x=0.25)


def plot(data: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(11, 7))
    for axes in grid.flat:
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    for axes, (name, d) in zip(grid[0], data["latency"].items()):
        medians = {contender: ms["p50"] for contender, ms in d["ms"].items()}
        bars(axes, f"{name}: median latency", medians, "ms, logarithmic")
    for label, rates in data["throughput"]["per_second"].items():
        style = "-o" if label.startswith("cloche") else "--o"
        grid[1][0].plot(list(rates), list(rates.values()), style, label=label)
    grid[1][0].set_yscale("log")
    grid[1][0].set_title("hello: runs per second", fontsize=10)
    grid[1][0].set_xlabel("clients", fontsize=8)
    grid[1][0].legend(fontsize=8, frameon=False)
    bars(grid[1][1], "memory per idle sandbox", data["memory"]["mib"], "MiB, logarithmic")
    figure.suptitle(f"{data['machine']['cores']} cores, Linux {data['machine']['kernel']}")
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
