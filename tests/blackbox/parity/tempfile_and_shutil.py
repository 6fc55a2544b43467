import os
import shutil
import tempfile

print(tempfile.gettempdir())
with tempfile.TemporaryDirectory() as d:
    os.makedirs(d + "/a/b")
    open(d + "/a/b/c", "w").write("c")
    shutil.copytree(d + "/a", d + "/z")
    print(sorted(os.listdir(d)), open(d + "/z/b/c").read())
    shutil.make_archive("archive", "gztar", d)
    shutil.move(d + "/z", "moved")
print(os.path.exists(d), sorted(os.listdir()))
with tempfile.NamedTemporaryFile("w+") as f:
    f.write("x")
    f.seek(0)
    print(f.read(), oct(os.stat(f.name).st_mode))
with tempfile.TemporaryFile() as f:
    f.write(b"y")
    print(f.tell())
with tempfile.SpooledTemporaryFile(10) as f:
    f.write(b"z" * 20)
    print(f._rolled)
shutil.unpack_archive("archive.tar.gz", "unpacked")
print(sorted(os.listdir("unpacked")), shutil.which("sh") is not None, shutil.disk_usage(".").total > 0)
shutil.rmtree("unpacked")
