open("statistics.py", "w").write("WHO = 'ours'\n")
open("colorsys.py", "w").write("WHO = 'ours'\n")
import colorsys

print(colorsys.WHO)
