def outer(value):
    return middle(value, key="k")


def middle(value, *, key):
    return [inner(v) for v in (value,)]


def inner(value):
    return value.missing_attribute


outer(object)
