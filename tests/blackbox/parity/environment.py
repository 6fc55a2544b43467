import os

ours = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "MPLCONFIGDIR"}
print({k: os.environ[k] for k in sorted(ours)})
for key in ("PATH", "HOME", "LANG"):
    print(key, key in os.environ)
os.environ["ADDED"] = "1"
print(os.getenv("ADDED"), os.popen("echo $ADDED").read())
del os.environ["ADDED"]
print(os.getenv("ADDED"), os.environb[b"PYTHONIOENCODING"])
print([k for k in os.environ if "cloche" in k.lower() or "zygote" in k.lower()])
