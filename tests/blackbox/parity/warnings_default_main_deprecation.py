import asyncio
import warnings

warnings.warn("shown because this is __main__", DeprecationWarning)


async def never():
    pass


never()
print("done")
