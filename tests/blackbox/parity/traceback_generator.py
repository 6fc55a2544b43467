def gen():
    yield 1
    raise StopAsyncIteration("inside")


for x in gen():
    print(x)
