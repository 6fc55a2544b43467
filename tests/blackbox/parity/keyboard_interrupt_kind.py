# Only KeyboardInterrupt itself counts as a signal.
class Mine(KeyboardInterrupt):
    pass


raise Mine("stop")
