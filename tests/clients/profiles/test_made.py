"""`cloche profile` with packages of today from PyPI, through the gate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import clean_env, run_cli
from made import Maker, place_of_profiles

PACKAGES = ("pandas>=2", "numpy>=2", "polars", "duckdb", "matplotlib")
CODE = """
import duckdb, numpy, pandas, polars
frame = pandas.DataFrame({"n": numpy.arange(4)})
print(int(frame.n.sum()), polars.DataFrame({"n": [1, 2]})["n"].sum())
print(duckdb.sql("select 6 * 7").fetchall()[0][0])
print(int(numpy.__version__.split(".")[0]) >= 2, int(pandas.__version__.split(".")[0]) >= 2)
"""


@pytest.fixture
def maker() -> Iterator[Maker]:
    with place_of_profiles() as place:
        maker = Maker(place)
        maker.env = {"CLOCHE_LIVE": "on"}
        yield maker


@pytest.mark.timeout(1800)
def test_frames(maker: Maker) -> None:
    preload = "numpy,pandas,polars,duckdb,matplotlib.pyplot"
    done = maker.call("add", "frames", *PACKAGES, "--preload", preload)
    assert done.returncode == 0, done.stderr.decode()
    assert "live        ready" in done.stdout.decode(), "IPython came along"
    record = maker.record("frames")
    assert {"pandas", "polars", "duckdb", "ipython"} <= {p["name"] for p in record["installed"]}
    env = clean_env(CLOCHE_PROFILES_DIR=str(maker.profiles), XDG_RUNTIME_DIR=str(maker.place))
    words = ("run", "--profile", "frames", "--timeout", "60", "--cpu", "60", "--memory", "1024")
    done = run_cli(*words, "-c", CODE, env=env)
    assert done.stdout.decode() == "6 3\n42\nTrue True\n", done.stderr.decode()
    maker.said("sync", "frames")
    assert maker.record("frames")["installed"] == record["installed"]
