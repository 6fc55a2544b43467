class A:
    def __del__(self):
        raise RuntimeError("in __del__")


a = A()
del a
print("goes on")
