import logging
import logging.handlers

logging.warning("root warning")
logging.info("not shown")
log = logging.getLogger("app")
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(funcName)s %(lineno)d %(filename)s %(message)s"))
log.addHandler(handler)
log.propagate = False
log.setLevel(logging.DEBUG)


def work():
    log.debug("value %d", 3)
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("failed")
    log.info("bad %d", "args")


work()
rotating = logging.handlers.RotatingFileHandler("log", maxBytes=50, backupCount=2)
log.addHandler(rotating)
for k in range(5):
    log.info("line %d", k)
import os

print(sorted(n for n in os.listdir() if n.startswith("log")))
