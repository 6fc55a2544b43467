import sys

sys.exit("a message on stderr")
