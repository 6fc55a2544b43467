"""What the tests of Jupyter's API share."""

from __future__ import annotations


import pytest

BOTH = pytest.mark.parametrize("v1", [False, True], ids=["json", "v1"])
