import os
import select
import selectors

r, w = os.pipe()
print(select.select([r], [w], [], 0)[1] == [w])
os.write(w, b"x")
print(select.select([r], [], [], 1)[0] == [r])
p = select.poll()
p.register(r, select.POLLIN)
print(p.poll(1000)[0][1])
e = select.epoll()
e.register(r, select.EPOLLIN | select.EPOLLET)
print(e.poll(1)[0][1], e.poll(0))
print(selectors.DefaultSelector().__class__.__name__)
fd = os.eventfd(3)
print(os.eventfd_read(fd))
