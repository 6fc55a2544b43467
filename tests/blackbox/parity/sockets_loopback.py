import socket
import threading

server = socket.create_server(("127.0.0.1", 0))


def serve():
    c, _ = server.accept()
    with c:
        c.sendall(c.recv(100)[::-1])


t = threading.Thread(target=serve)
t.start()
with socket.create_connection(server.getsockname()) as c:
    c.sendall(b"abc")
    print(c.recv(100))
t.join()
a, b = socket.socketpair()
a.send(b"x")
print(b.recv(1), a.family.name)
u = socket.socket(socket.AF_UNIX)
u.bind("sock")
print(u.getsockname())
print(socket.gethostbyname("localhost"), socket.getaddrinfo("127.0.0.1", 80)[0][4])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.sendto(b"self", s.getsockname())
print(s.recv(10))
s6 = socket.socket(socket.AF_INET6)
s6.bind(("::1", 0))
print(s6.getsockname()[0])
