"""Locks: none on what the host or a neighbour has too, a bounded number on the sandbox's own files, where
they do what they are for.

#! open_files=256 pids=64
#= a file of /usr, shared: None
#= a file of /usr, all: refused ENOLCK
#= a file of /etc, all: refused ENOLCK
#= /dev/null: refused ENOLCK
#= /dev/null of an open file: refused ENOLCK
#= its own program: None
#= POSIX locks: bounded
#= locks of open files: bounded
#= the hole of a lock: bounded
#= another process is refused: refused EAGAIN
#= who has it: the parent
#= a closed file is free: None
#= a lock waits for its turn: 200
#= flock waits for its turn: 200
#= a handler is called while it waits: yes
#= two connections of one process: 2
#= another connection is refused: database is locked
#= sqlite, four threads: 80
#= a dead process has no locks: None
#? status=ok
"""

import fcntl
import os
import signal
import sqlite3
import struct
import threading
import time

from attempt import attempt, says

OFD_SETLK = 37
flock, lockf = fcntl.flock, fcntl.lockf
EX, SH, NB, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN


def record(kind, start, length):
    return struct.pack("=hhxxxxqqixxxx", kind, os.SEEK_SET, start, length, 0)


def granted(name, function, *args):
    try:
        says(name, function(*args))
    except OSError as exc:
        says(name, f"REFUSED {exc}")


def many(fd, command, kind=fcntl.F_WRLCK):
    for n in range(5000):
        try:
            fcntl.fcntl(fd, command, record(kind, 2 * n, 1))
        except OSError:
            return n
    return 5000


def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid


def judged(name, count, most):
    says(name, "bounded" if 0 < count <= most else count)


def counted(function):
    """Four processes, each of which adds fifty to a number in a file that it opens and locks."""
    with open("number", "w") as file:
        file.write("0")

    def work():
        for _ in range(50):
            with open("number", "r+") as file:
                function(file, EX)
                number = int(file.read())
                file.seek(0)
                file.write(str(number + 1))

    for pid in [in_child(work) for _ in range(4)]:
        os.waitpid(pid, 0)
    return open("number").read()


library = open("/usr/bin/env", "rb")
granted("a file of /usr, shared", lockf, library, SH)
attempt("a file of /usr, all", flock, library, EX)
attempt("a file of /etc, all", flock, open("/etc/passwd"), EX)
null = open("/dev/null", "w")
attempt("/dev/null", lockf, null, EX)
attempt("/dev/null of an open file", fcntl.fcntl, null, OFD_SETLK, record(fcntl.F_WRLCK, 0, 0))
granted("its own program", flock, open(__file__, "rb"), EX)

own = open("own", "w+")
judged("POSIX locks", many(own, fcntl.F_SETLK), 200)
lockf(own, UN)
judged("locks of open files", many(own, OFD_SETLK), 20)
fcntl.fcntl(own, OFD_SETLK, record(fcntl.F_UNLCK, 0, 0))
fcntl.fcntl(own, OFD_SETLK, record(fcntl.F_WRLCK, 0, 0))
judged("the hole of a lock", many(own, OFD_SETLK, fcntl.F_UNLCK), 20)
own.close()

own = open("own", "w+")
lockf(own, EX, 10, 5)


def ask():
    attempt("another process is refused", lockf, own, EX | NB)
    answer = struct.unpack(
        "=hhxxxxqqixxxx", fcntl.fcntl(own, fcntl.F_GETLK, record(fcntl.F_WRLCK, 0, 0))
    )
    expected = (fcntl.F_WRLCK, 0, 5, 10, os.getppid())
    says("who has it", "the parent" if answer == expected else answer)


os.waitpid(in_child(ask), 0)
own.close()
other = open("own", "w+")
os.waitpid(in_child(lambda: granted("a closed file is free", lockf, other, EX | NB)), 0)
says("a lock waits for its turn", counted(lockf))
says("flock waits for its turn", counted(flock))


class Woken(Exception):
    pass


def wake(*_):
    raise Woken


flock(other, EX)
signal.signal(signal.SIGALRM, wake)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    flock(open("own"), EX)
except Woken:
    says("a handler is called while it waits", "yes")

one, two = (sqlite3.connect("data", timeout=0.01) for _ in range(2))
one.execute("create table t (a)")
one.execute("insert into t values (1)")
one.commit()
for connection in (one, two):
    connection.execute("begin")
    connection.execute("select * from t").fetchall()
one.rollback()
two.execute("insert into t values (2)")
two.commit()
says("two connections of one process", one.execute("select count(*) from t").fetchone()[0])


def write():
    try:
        sqlite3.connect("data", timeout=0.01).execute("insert into t values (3)")
    except sqlite3.OperationalError as exc:
        says("another connection is refused", exc)


two.execute("begin exclusive")
os.waitpid(in_child(write), 0)
two.rollback()


def insert():
    connection = sqlite3.connect("many", timeout=60)
    for n in range(20):
        connection.execute("insert into t values (?)", (n,))
        connection.commit()


counting = sqlite3.connect("many", timeout=60)
counting.execute("create table t (a)")
threads = [threading.Thread(target=insert) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
says("sqlite, four threads", counting.execute("select count(*) from t").fetchone()[0])

reader, writer = os.pipe()


def hold():
    mine = open("own", "r+")
    lockf(mine, EX)
    os.write(writer, b"x")
    time.sleep(60)


other.close()
pid = in_child(hold)
os.read(reader, 1)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
granted("a dead process has no locks", lockf, open("own", "r+"), EX | NB)
