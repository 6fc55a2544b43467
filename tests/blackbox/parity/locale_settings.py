import codecs
import locale
import time

print(locale.getlocale(), locale.getpreferredencoding(), locale.getencoding())
print(locale.setlocale(locale.LC_ALL), locale.localeconv()["decimal_point"])
print(codecs.lookup(locale.getpreferredencoding()).name)
print(locale.setlocale(locale.LC_ALL, "C"), locale.setlocale(locale.LC_CTYPE, "C.UTF-8"))
print(time.strftime("%A %B", time.gmtime(0)), f"{1234567.5:n}")
print("ä".upper(), sorted(["ä", "b", "A"], key=locale.strxfrm))
