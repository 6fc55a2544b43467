"""Bytes that are no text, in both streams and in the exception: the result is JSON all the same.

#? status=error exit_code=1
"""

import os

os.write(1, bytes(range(256)) + b"\0\0\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xff")
os.write(2, b"\xe2\x82")


class Odd(Exception):
    def __str__(self):
        return "lone \ud800 and \0 and \x1b[2J " + "\U0010ffff" * 20000


raise Odd
