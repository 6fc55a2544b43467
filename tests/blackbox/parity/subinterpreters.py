try:
    import _xxsubinterpreters as si
except ImportError:
    print("none")
else:
    i = si.create()
    si.run_string(i, "import sys; print('sub', __name__); sys.stdout.flush()")
    si.destroy(i)
