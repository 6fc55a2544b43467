"""What is sent and not read waits in the sender's buffer, which is out of one pot for all of the
machine's TCP. It does not grow.

#! memory_mb=256
#= waiting: few
#= buffers: as they were
"""

import socket

PAIRS, DATA = 20, bytes(1 << 16)


def send(sock):
    sent = 0
    try:
        while True:
            sent += sock.send(DATA, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return sent


listener = socket.create_server(("127.0.0.1", 0))
pairs = []
for _ in range(PAIRS):
    sender = socket.create_connection(listener.getsockname())
    pairs.append((sender, listener.accept()[0]))
waiting = sum(send(sender) for _ in range(20) for sender, _ in pairs) // PAIRS
print("waiting:", "few" if 0 < waiting < 1 << 20 else waiting)
largest = max(sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for sender, _ in pairs)
print("buffers:", "as they were" if largest <= 1 << 19 else largest)
