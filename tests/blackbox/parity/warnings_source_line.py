import warnings


def old():
    warnings.warn("old is old", DeprecationWarning, stacklevel=2)


old()
warnings.warn("a user warning")
warnings.warn("resource", ResourceWarning)
warnings.simplefilter("error")
try:
    warnings.warn("as error")
except UserWarning as e:
    print("raised", e)
