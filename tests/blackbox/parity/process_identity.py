import os

print(os.getpid() > 0, os.getpid() == int(os.readlink("/proc/self")))
print(os.getcwd() == os.path.dirname(os.path.abspath(__file__)), os.listdir())
print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
print(len(os.sched_getaffinity(0)) == os.cpu_count())
print(os.getresuid()[0] == os.getresuid()[1], os.getresgid()[0] == os.getresgid()[2])
print(os.times().children_user, os.uname().sysname)
print(sorted(os.listdir("/proc/self/task")) == [str(os.getpid())])
