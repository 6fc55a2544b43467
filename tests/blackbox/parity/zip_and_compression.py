import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

data = b"some text " * 100
for m in (zlib, bz2, lzma, gzip):
    print(m.__name__, m.decompress(m.compress(data)) == data)
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("ü/file.txt", data)
print(zipfile.ZipFile("a.zip").namelist(), zipfile.is_zipfile("a.zip"))
buf = io.BytesIO()
with tarfile.open(fileobj=buf, mode="w:xz") as t:
    t.add("a.zip")
buf.seek(0)
print(tarfile.open(fileobj=buf).getnames())
try:
    zipfile.ZipFile(io.BytesIO(b"no zip"))
except zipfile.BadZipFile as e:
    print(e)
