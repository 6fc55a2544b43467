class Custom(Exception):
    pass


def load():
    try:
        return {}["key"]
    except KeyError as e:
        raise Custom("could not load") from e


try:
    load()
except Custom:
    raise RuntimeError("while handling")
