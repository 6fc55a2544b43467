import importlib
import sys

print("run as", __name__)
if __name__ == "__main__":
    import __main__

    print(__main__.__file__)
    spec = importlib.util.find_spec("json")
    print(spec.name, spec.origin)
    try:
        importlib.util.find_spec("__main__")
    except ValueError as e:
        print(e)
