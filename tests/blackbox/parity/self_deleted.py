import os

os.remove(__file__)
raise ValueError("no source any more")
