import base64
import configparser
import csv
import io
import json
import marshal
import plistlib
import struct
import tomllib
import xml.etree.ElementTree as ET

print(json.dumps({"ü": [1, 2.5, None, True]}, indent=1), json.loads("1e400"), json.dumps(float("nan")))
w = csv.writer(out := io.StringIO())
w.writerow(["a", 'q"', "x,y"])
print(repr(out.getvalue()), list(csv.DictReader(["a,b", "1,2"])))
c = configparser.ConfigParser()
c.read_string("[s]\nk = v")
print(c["s"]["k"], tomllib.loads("a = [1, 2]"), struct.pack(">Ih", 1, -1), marshal.loads(marshal.dumps((1, "x"))))
print(ET.tostring(ET.fromstring("<a b='1'>t<c/></a>")), base64.b85encode(b"hello"), plistlib.dumps({"a": 1})[:5])
