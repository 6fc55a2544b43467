# A message is shown even when the program has put away its stderr.
import sys

sys.stderr = None
sys.exit("the message")
