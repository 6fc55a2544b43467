import codecs
import difflib
import re
import string
import textwrap
import unicodedata

print("straße".upper(), "ǅ".title(), "İ".lower() == "i̇", "\u0301".isprintable())
print(unicodedata.normalize("NFC", "e\u0301"), unicodedata.name("🌱"), unicodedata.unidata_version)
print(re.findall(r"(?P<a>\w+)-(\d+)", "ä-1 b-22"), re.sub(r"\b(.)", lambda m: m[1].upper(), "one two"))
print(f"{'x':>5}|{3.14159:.2f}|{255:#x}|{1e6:,}|{'é'!a}|{'q'!r}")
print("a,b;c".replace(";", ",").split(","), "%5.1f %s" % (2.25, "x"), string.Template("$a").substitute(a=1))
print(textwrap.fill("a long line of words " * 3, 20))
print("".join(difflib.unified_diff(["a\n"], ["b\n"])))
print(codecs.encode("hello", "rot13"), "ü".encode("utf-16-le"), b"\xff".decode("latin-1"))
try:
    b"\xff".decode()
except UnicodeDecodeError as e:
    print(e)
