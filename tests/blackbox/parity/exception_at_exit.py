import atexit


@atexit.register
def bye():
    raise ValueError("at exit")


@atexit.register
def exit_in_exit():
    print("runs first")


print("body")
