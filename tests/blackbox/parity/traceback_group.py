def fail(kind, *args):
    raise kind(*args)


errors = []
for kind, arg in ((ValueError, 1), (KeyError, "k"), (OSError, 5)):
    try:
        fail(kind, arg)
    except Exception as e:
        errors.append(e)
raise ExceptionGroup("three", [errors[0], ExceptionGroup("inner", errors[1:])])
