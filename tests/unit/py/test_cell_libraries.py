"""Live kernels: figures, frames and other objects of libraries."""

from __future__ import annotations

import json

import pytest

from cell_kernel import listed, png
from live_kernel import Kernel, Zygote

pytest_plugins = ["cell_kernel"]


@pytest.mark.parametrize("which", ["data_kernel", "kernel"])
def test_figures_come_out_by_themselves(which: str, request: pytest.FixtureRequest) -> None:
    kernel: Kernel = request.getfixturevalue(which)
    outcome = kernel.run(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\nplt.plot([1]);"
    )
    shown = outcome.of("display")
    assert outcome.status == "ok" and len(shown) == 2
    assert all(png(event).startswith(b"\x89PNG") for event in shown)
    assert shown[0]["data"]["text/plain"].startswith("<Figure")
    assert kernel.run("plt.get_fignums()").text == "[]"


def test_figures_of_a_cell_that_fails(data_kernel: Kernel) -> None:
    outcome = data_kernel.run("import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0")
    assert len(outcome.of("display")) == 1 and outcome.error["name"] == "ZeroDivisionError"


@pytest.mark.parametrize("which", ["data_kernel", "kernel"])
def test_figures_in_the_formats_that_are_asked_for(
    which: str, request: pytest.FixtureRequest
) -> None:
    kernel: Kernel = request.getfixturevalue(which)
    plot = "import matplotlib.pyplot as plt\nplt.plot([1]);"
    (shown,) = kernel.run(plot, formats=["svg"]).of("display")
    assert "image/png" not in shown["data"] and "<svg" in shown["data"]["image/svg+xml"]
    (shown,) = kernel.run(plot, formats=["png", "svg"]).of("display")
    assert {"image/png", "image/svg+xml"} <= set(shown["data"])
    (shown,) = kernel.run(plot).of("display")
    assert "image/png" in shown["data"] and "image/svg+xml" not in shown["data"]


def test_showing_and_saving_figures(data_kernel: Kernel) -> None:
    data_kernel.start(
        "%matplotlib inline\nimport matplotlib.pyplot as plt, io\n"
        "plt.plot([1])\nplt.show()\nprint('after')\nf, a = plt.subplots()\n"
        "to = io.BytesIO()\nf.savefig(to)\nplt.close(f)\nto.getvalue()[1:4]"
    )
    first = data_kernel.receive()
    outcome = data_kernel.collect(first)
    assert first["ev"] == "display" and len(outcome.of("display")) == 1
    assert (outcome.text, outcome.stdout) == ("b'PNG'", "after\n")


def test_frames_images_and_formulas(data_kernel: Kernel) -> None:
    frame = data_kernel.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndf").result
    assert "<table" in frame["text/html"] and frame["text/plain"].split() == [
        "a",
        "0",
        "1",
        "1",
        "2",
    ]
    picture = data_kernel.run("from PIL import Image\nImage.new('RGB', (2, 2))")
    assert png(picture.of("result")[0]).startswith(b"\x89PNG")
    formula = data_kernel.run("import sympy\nsympy.sqrt(sympy.Symbol('x')) / 2").result
    assert "\\frac{\\sqrt{x}}{2}" in formula["text/latex"] and formula["text/plain"] == "sqrt(x)/2"


def test_pil_shows_pictures_in_the_cell(data_kernel: Kernel) -> None:
    """Also where programs could do so: PIL asks those first."""
    outcome = data_kernel.run(
        "import os, sys, tempfile\nplace = tempfile.mkdtemp()\nname = f'{place}/xdg-open'\n"
        "open(name, 'w').write('#!/bin/sh\\necho opened\\n')\nos.chmod(name, 0o755)\n"
        "os.environ['PATH'] = f\"{place}:{os.environ['PATH']}\"\n"
        "from PIL import Image\nImage.new('RGB', (2, 2)).show()"
    )
    (shown,) = outcome.of("display")
    assert png(shown).startswith(b"\x89PNG") and outcome.stdout == ""


def test_variables_of_libraries(data_kernel: Kernel) -> None:
    data_kernel.run(
        "import numpy as np, pandas as pd\nz = np.zeros((300, 200))\ns = np.arange(3)\n"
        "df = pd.DataFrame({'a': range(1000)})\nf = np.float64(1.5)"
    )
    rows = listed(data_kernel)
    assert (rows["z"]["shape"], rows["z"]["nbytes"], rows["z"]["len"]) == ([300, 200], 480000, 300)
    assert rows["z"]["repr"] == "<numpy.ndarray 300 x 200>"
    assert rows["s"]["repr"] == "array([0, 1, 2])"
    assert (rows["df"]["shape"], rows["df"]["type"]) == ([1000, 1], "pandas.core.frame.DataFrame")
    assert json.dumps(rows["f"]["repr"]) == '"1.5"'


def test_a_zygote_with_libraries_has_one_thread(data_zygote: Zygote) -> None:
    assert data_zygote.state["threads"] == 1
    assert not [name for name in data_zygote.state["files"] if ".ttf" in name]
    assert list(data_zygote.home.iterdir()) == []
