import resource

u = resource.getrusage(resource.RUSAGE_SELF)
print(u.ru_utime >= 0, u.ru_maxrss > 0, resource.getpagesize())
print(resource.getrlimit(resource.RLIMIT_STACK)[0] != 0)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
files = []
try:
    for _ in range(64):
        files.append(open("/dev/null"))
except OSError as e:
    print(e.strerror, len(files))
