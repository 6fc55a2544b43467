import os
import sys

os.mkdir("elsewhere")
os.chdir("elsewhere")
print(os.path.basename(os.getcwd()), sys.path[0] == os.path.dirname(__file__))
os.rmdir("../elsewhere")
try:
    os.getcwd()
except FileNotFoundError as e:
    print(e)
raise ValueError("traceback still finds the source")
