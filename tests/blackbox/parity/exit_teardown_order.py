class Noisy:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name)


a = Noisy("global a")
_b = Noisy("global _b")
print("body done")
