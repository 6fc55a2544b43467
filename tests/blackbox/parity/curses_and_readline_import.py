import importlib

for name in ("readline", "curses", "tkinter", "dbm", "crypt", "syslog", "termios", "nis", "spwd"):
    try:
        importlib.import_module(name)
        print(name, "ok")
    except ImportError as e:
        print(name, e)
