"""Socket buffers are memory: they are bounded, and sockets go on working.

#! memory_mb=32
#= buffered: bounded
#= a socket still works: 100000
#? status=ok
"""

import socket
import threading

from attempt import says

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(100)
hoard = []
total = 0
for _ in range(100):
    one = socket.create_connection(server.getsockname())
    two, _ = server.accept()
    hoard += [one, two]
    for end in (one, two):
        end.setblocking(False)
        try:
            while True:
                total += end.send(bytes(1 << 18))
        except BlockingIOError:
            pass
says("buffered", "bounded" if total < 128 << 20 else f"{total >> 20} MB")
one = socket.create_connection(server.getsockname())
two, _ = server.accept()
sender = threading.Thread(target=one.sendall, args=(b"x" * 100_000,))
sender.start()
received = 0
while received < 100_000:
    received += len(two.recv(65536))
sender.join()
says("a socket still works", received)
