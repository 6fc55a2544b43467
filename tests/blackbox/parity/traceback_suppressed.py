try:
    int("x")
except ValueError:
    raise TypeError("no context") from None
